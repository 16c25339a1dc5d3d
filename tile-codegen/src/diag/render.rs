//! Renders diagnostics with the user's source lines and a range of carets, as rustc does.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Element, Level, Origin, Renderer, Snippet};

use super::{Diagnostic, Diagnostics};
use crate::ir::Loc;

/// A piece of a file: the number of its first line, counted from 1, and its text.
pub type Source<'a> = (u32, &'a str);

/// Renders diagnostics without colours, one after the other with an empty line between them.
///
/// `source` finds the text of a file, or of the part of it that holds the kernel. Where there is none, or where it does
/// not reach a diagnostic's lines, only `file:line:column` is shown.
pub fn render<'a>(diagnostics: &Diagnostics, source: impl Fn(&str) -> Option<Source<'a>>) -> String {
    let texts: Vec<_> = diagnostics.iter().map(|d| render_one(d, &source)).collect();
    texts.join("\n\n")
}

/// A place of a fault: where it is, what the mark there says, and the text of the file.
pub type Mark<'a> = (&'a Loc, Option<&'a str>, Option<Source<'a>>);

/// Renders a fault that has no code: its title, its places as [`render`] shows them, and notes.
pub fn render_fault(title: &str, marks: &[Mark<'_>], notes: &[String]) -> String {
    let places = marks.iter().map(|&(loc, label, source)| place(loc, label, source));
    let notes = notes.iter().map(|note| Element::from(Level::NOTE.message(note.as_str())));
    Renderer::plain().render(&[Level::ERROR.primary_title(title).elements(places.chain(notes))])
}

fn render_one<'a>(diagnostic: &Diagnostic, source: &impl Fn(&str) -> Option<Source<'a>>) -> String {
    let code = diagnostic.code.to_string();
    let place = diagnostic.loc.as_ref().map(|loc| place(loc, diagnostic.label(), source(&loc.file)));
    let help = diagnostic.help.as_deref().map(|help| Element::from(Level::HELP.message(help)));
    let title = Level::ERROR.primary_title(diagnostic.message.as_str()).id(code);
    Renderer::plain().render(&[title.elements(place.into_iter().chain(help))])
}

/// The source lines of a place with its range marked, or its position alone.
fn place<'a>(loc: &'a Loc, label: Option<&'a str>, source: Option<Source<'a>>) -> Element<'a> {
    let marked = source.and_then(|(first, text)| Some((first, text, range(loc, first, text)?)));
    match marked {
        Some((first, text, range)) => {
            let mark = AnnotationKind::Primary.span(range).label(label);
            Snippet::source(text).line_start(first as usize).path(loc.file.as_str()).annotation(mark).into()
        }
        None => {
            let origin = Origin::path(loc.file.as_str());
            origin.line(loc.line as usize).char_column(loc.column as usize).into()
        }
    }
}

/// The bytes of a place in a text that begins at line `first`; at least one character, if there is one.
fn range(loc: &Loc, first: u32, text: &str) -> Option<Range<usize>> {
    let start = offset(text, loc.line.checked_sub(first)?, loc.column)?;
    let end = loc.end_line.checked_sub(first).and_then(|line| offset(text, line, loc.end_column));
    let next = text[start..].chars().next().map_or(start, |c| start + c.len_utf8());
    Some(start..end.unwrap_or(next).max(next))
}

/// The byte at a line, counted from 0, and a column in characters, counted from 1; at most the end of the line.
fn offset(text: &str, line: u32, column: u32) -> Option<usize> {
    let mut start = 0;
    for _ in 0..line {
        start += text[start..].find('\n')? + 1;
    }
    let line = text[start..].split('\n').next().unwrap_or("");
    let at = line.char_indices().nth((column as usize).saturating_sub(1)).map_or(line.len(), |(at, _)| at);
    Some(start + at)
}

#[cfg(test)]
mod tests;
