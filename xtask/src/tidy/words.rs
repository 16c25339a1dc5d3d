//! Words that must not be in the repository: folders of one machine, and how a text came to be.

use std::path::Path;

use super::Fault;

// Put together here, so that this file does not hold them.
/// Beginnings of absolute paths that exist on one machine only.
const FOLDERS: [&str; 3] = [concat!("/ho", "me"), concat!("/ro", "ot"), concat!("/wo", "rk")];
/// Words for what wrote a text. The second is an ordinary word of programs, so it counts in documents alone.
const ORIGINS: [(&str, bool); 2] = [(concat!("assis", "tant"), false), (concat!("ses", "sion"), true)];

/// Faults of one text file.
pub(super) fn check(path: &Path, text: &str) -> Vec<Fault> {
    if path.file_name().is_some_and(|name| name == "Cargo.lock") {
        return Vec::new();
    }
    let document = path.extension().is_some_and(|e| e == "md");
    let mut faults = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for folder in FOLDERS {
            if has_folder(line, folder) {
                faults.push(Fault::new(
                    path,
                    index + 1,
                    format!("names `{folder}`, a folder of one machine"),
                ));
            }
        }
        let lower = line.to_lowercase();
        for (word, documents_only) in ORIGINS {
            if (document || !documents_only) && lower.contains(word) {
                faults.push(Fault::new(
                    path,
                    index + 1,
                    format!("`{word}`: the project speaks of itself alone"),
                ));
            }
        }
    }
    faults
}

/// Whether an absolute path starts with `folder`.
fn has_folder(line: &str, folder: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || "_-.".contains(c);
    line.match_indices(folder)
        .any(|(at, _)| !line[..at].ends_with(part) && !line[at + folder.len()..].starts_with(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_one_machine_are_found() {
        for folder in FOLDERS {
            assert!(has_folder(&format!("see {folder}/project"), folder));
            assert!(has_folder(&format!("`{folder}`"), folder));
            assert!(!has_folder(&format!("a{folder}/project"), folder));
            assert!(!has_folder(&format!("{folder}space/project"), folder));
        }
    }

    #[test]
    fn programs_may_use_ordinary_words() {
        let line = format!("a {} of staging", ORIGINS[1].0);
        assert!(check(Path::new("src/a.rs"), &line).is_empty());
        assert_eq!(check(Path::new("docs/a.md"), &line).len(), 1);
        assert_eq!(check(Path::new("src/a.rs"), ORIGINS[0].0).len(), 1);
    }
}
