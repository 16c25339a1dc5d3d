//! Source locations, kept beside the operations.

/// A range in the user's source. Lines and columns count from 1; the end is exclusive.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Loc {
    /// File, relative to the workspace as the compiler names it.
    pub file: String,
    /// First line.
    pub line: u32,
    /// First column.
    pub column: u32,
    /// Last line.
    pub end_line: u32,
    /// Column after the last character.
    pub end_column: u32,
}

/// An index into a kernel's location table; 0 means "unknown".
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, PartialOrd, Ord)]
pub struct LocId(pub u32);

/// The locations of one kernel, each once.
#[derive(Clone, Debug, Default)]
pub struct Locs {
    table: Vec<Loc>,
}

impl Locs {
    /// The id of a location, adding it if new.
    pub fn intern(&mut self, loc: Loc) -> LocId {
        let at = self.table.iter().position(|l| *l == loc).unwrap_or_else(|| {
            self.table.push(loc);
            self.table.len() - 1
        });
        LocId(at as u32 + 1)
    }
    /// The location, unless unknown.
    pub fn get(&self, id: LocId) -> Option<&Loc> {
        self.table.get((id.0 as usize).checked_sub(1)?)
    }
}
