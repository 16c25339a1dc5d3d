//! From the place that `Location::caller` reports to the whole construct in the user's source.

use std::panic::Location;

use crate::ir::Loc;

/// A place in a file, counted from 1.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    file: String,
    line: u32,
    column: u32,
}

impl From<&Location<'_>> for Place {
    fn from(at: &Location<'_>) -> Self {
        Self { file: at.file().into(), line: at.line(), column: at.column() }
    }
}

/// The source of one kernel or helper function, baked into the program by its attribute.
#[derive(Clone, Copy, Debug)]
pub struct KernelSource {
    /// File, as the compiler names it.
    pub file: &'static str,
    /// The number of the first line of `text`, from 1.
    pub first_line: u32,
    /// The function's lines; empty where the attribute could not read them.
    pub text: &'static str,
    /// For the place (line, column) that an operation reports, the construct that it stands for:
    /// `[line, column, start line, start column, end line, end column]`, counted from 1, the end exclusive.
    pub ranges: &'static [[u32; 6]],
}

/// Lines of the user's source, for rendering diagnostics.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceText {
    /// File, as in [`Loc`].
    pub file: String,
    /// The number of the first line.
    pub first_line: u32,
    /// The lines.
    pub text: String,
}

impl SourceText {
    /// Whether the location lies in these lines.
    pub fn contains(&self, loc: &Loc) -> bool {
        let lines = self.text.lines().count() as u32;
        self.file == loc.file && (self.first_line..self.first_line + lines).contains(&loc.line)
    }
}

/// The lines of a file that are known.
pub(crate) fn text<'a>(sources: &'a [SourceText], file: &str) -> Option<(u32, &'a str)> {
    sources.iter().find(|s| s.file == file).map(|s| (s.first_line, s.text.as_str()))
}

/// One piece of text a file; lines between functions are blank.
pub(crate) fn merge(sources: &[&'static KernelSource]) -> Vec<SourceText> {
    let mut sorted: Vec<_> = sources.iter().filter(|s| !s.text.is_empty()).collect();
    sorted.sort_by_key(|s| (s.file, s.first_line));
    let mut merged: Vec<SourceText> = Vec::new();
    for source in sorted {
        match merged.last_mut().filter(|last| last.file == source.file) {
            Some(last) => last.append(source),
            None => merged.push(SourceText {
                file: source.file.into(),
                first_line: source.first_line,
                text: source.text.into(),
            }),
        }
    }
    merged
}

impl SourceText {
    /// Appends a function that begins at or after this text's first line.
    fn append(&mut self, source: &KernelSource) {
        let lines = self.text.lines().count() as u32;
        let next = self.first_line + lines;
        // A function inside another one, or on its last line, has its lines already, but for those beyond the end.
        let known = next.saturating_sub(source.first_line) as usize;
        let missing: Vec<_> = source.text.lines().skip(known).collect();
        if missing.is_empty() {
            return;
        }
        if !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        self.text.extend(std::iter::repeat_n('\n', source.first_line.saturating_sub(next) as usize));
        self.text.push_str(&missing.join("\n"));
    }
}

/// The range that a place stands for: by the tables, else the one character there.
pub(crate) fn range(sources: &[&'static KernelSource], at: &Place) -> Loc {
    let (line, column) = (at.line, at.column);
    let known = sources.iter().filter(|s| same_file(s.file, &at.file));
    let mut rows = known.flat_map(|s| s.ranges.iter().map(move |row| (s, row)));
    match rows.find(|(_, row)| row[0] == line && row[1] == column) {
        Some((source, &[_, _, line, column, end_line, end_column])) => {
            Loc { file: source.file.into(), line, column, end_line, end_column }
        }
        None => Loc { file: at.file.clone(), line, column, end_line: line, end_column: column + 1 },
    }
}

/// The compiler may name a file by different prefixes in macros and in the program.
fn same_file(a: &str, b: &str) -> bool {
    let tail = |long: &str, short: &str| {
        !short.is_empty()
            && long.strip_suffix(short).is_some_and(|rest| rest.is_empty() || rest.ends_with(['/', '\\']))
    };
    tail(a, b) || tail(b, a)
}
