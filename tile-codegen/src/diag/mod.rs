//! Diagnostics: what was found, what was expected, what to write instead.

use std::fmt;

use crate::ir::Loc;

mod code;
mod render;

pub use code::Code;
pub use render::{Mark, Source, render, render_fault};

/// A fault that an operation's own rule found, before it is tied to a place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpError {
    /// Which kind of fault.
    pub code: Code,
    /// What was found and what was expected.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
}

impl OpError {
    /// A fault.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), help: None }
    }
    /// Adds what to write instead.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// A fault with its place in the user's source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// Which kind of fault.
    pub code: Code,
    /// What was found and what was expected.
    pub message: String,
    /// Where, if known.
    pub loc: Option<Loc>,
    /// What to write instead.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A diagnostic without a place.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), loc: None, help: None }
    }
    /// A few words beside the marked source: the fault without its details.
    pub fn label(&self) -> Option<&'static str> {
        self.code.label()
    }
    /// Ties an operation's fault to a place.
    pub fn from_op(error: OpError, loc: Option<Loc>) -> Self {
        Self { code: error.code, message: error.message, loc, help: error.help }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error[{}]: {}", self.code, self.message)?;
        if let Some(loc) = &self.loc {
            write!(f, "\n  --> {}:{}:{}", loc.file, loc.line, loc.column)?;
        }
        if let Some(help) = &self.help {
            write!(f, "\n  help: {help}")?;
        }
        Ok(())
    }
}

/// Every fault found, in the order found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
}

impl Diagnostics {
    /// Adds a fault.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.list.push(diagnostic);
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
    /// The faults.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.list.iter()
    }
    /// `Ok` if there is none.
    pub fn into_result(self) -> Result<(), Diagnostics> {
        if self.list.is_empty() { Ok(()) } else { Err(self) }
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, d) in self.list.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{d}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

impl From<Diagnostic> for Diagnostics {
    fn from(one: Diagnostic) -> Self {
        Self { list: vec![one] }
    }
}
