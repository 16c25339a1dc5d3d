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

impl From<&KernelSource> for SourceText {
    fn from(source: &KernelSource) -> Self {
        Self { file: source.file.into(), first_line: source.first_line, text: source.text.into() }
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
