//! Rust text without comments and literals, so that rules see code alone.

/// `text` with every comment, string and character literal made blank; lines stay where they are.
pub(super) fn code_only(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = literal_end(&chars, at);
        if end == at {
            out.push(chars[at]);
            at += 1;
        } else {
            out.extend(chars[at..end].iter().map(|&c| if c == '\n' { '\n' } else { ' ' }));
            at = end;
        }
    }
    out
}

/// The end of the comment or literal that starts at `at`; `at` itself if none does.
fn literal_end(chars: &[char], at: usize) -> usize {
    let next = chars.get(at + 1).copied();
    match chars[at] {
        '/' if next == Some('/') => find(chars, at, |c| c[0] == '\n'),
        '/' if next == Some('*') => block_comment_end(chars, at),
        '"' => string_end(chars, at + 1),
        'r' if !in_word(chars, at) || chars.get(at.wrapping_sub(1)) == Some(&'b') => {
            raw_string_end(chars, at)
        }
        '\'' => char_end(chars, at),
        _ => at,
    }
}

fn in_word(chars: &[char], at: usize) -> bool {
    at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_')
}

fn find(chars: &[char], from: usize, stop: impl Fn(&[char]) -> bool) -> usize {
    (from..chars.len()).find(|&at| stop(&chars[at..])).unwrap_or(chars.len())
}

/// Block comments nest.
fn block_comment_end(chars: &[char], start: usize) -> usize {
    let (mut depth, mut at) = (0, start);
    while at < chars.len() {
        match chars[at..] {
            ['/', '*', ..] => {
                depth += 1;
                at += 2;
            }
            ['*', '/', ..] => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    at
}

/// The end of a string whose text starts at `at`.
fn string_end(chars: &[char], mut at: usize) -> usize {
    while at < chars.len() && chars[at] != '"' {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(chars.len())
}

/// `r"..."` or `r#"..."#`; `at` itself for a raw identifier or another word that starts with r.
fn raw_string_end(chars: &[char], at: usize) -> usize {
    let hashes = chars[at + 1..].iter().take_while(|&&c| c == '#').count();
    if chars.get(at + 1 + hashes) != Some(&'"') {
        return at;
    }
    let closes = |c: &[char]| c[0] == '"' && c[1..].iter().take_while(|&&c| c == '#').count() >= hashes;
    (find(chars, at + 2 + hashes, closes) + 1 + hashes).min(chars.len())
}

/// `'x'` or `'\n'`; `at` itself for a lifetime or a label.
fn char_end(chars: &[char], at: usize) -> usize {
    match chars[at + 1..] {
        ['\\', _, ..] => (find(chars, at + 3, |c| c[0] == '\'') + 1).min(chars.len()),
        [_, '\'', ..] => at + 3,
        _ => at,
    }
}

/// The places of `word` in one line of code, not as a part of a longer word.
pub(super) fn has_word(line: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word)
        .any(|(at, _)| !line[..at].ends_with(part) && !line[at + word.len()..].starts_with(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blank() {
        let code = "a(\"un//safe \\\" x\", 'u', '\\'', r#\"b\"c\"#) /* d /* e */ f */ g::<'h>() // i\nj";
        let kept: String = code_only(code).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(kept, "a( , , , ) g::<'h>() j");
        assert_eq!(code_only("\"a\nb\"\nc").lines().count(), 3);
        assert_eq!(code_only("br\"x\" for r in r#type").trim(), "b     for r in r#type");
    }

    #[test]
    fn words_are_whole() {
        assert!(has_word("unsafe { x }", "unsafe"));
        assert!(!has_word("unsafe_op_in_unsafe_fn", "unsafe"));
    }
}
