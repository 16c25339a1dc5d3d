//! Errors of the forward pass.

/// Why a forward pass was refused or failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// An argument does not fit the others.
    #[error("argument `{argument}` {found}; expected {expected}")]
    Argument {
        /// Its name.
        argument: &'static str,
        /// What it is.
        found: String,
        /// What it must be.
        expected: String,
    },
    /// A name that `show` does not know.
    #[error("there is no {what} `{name}`; expected one of {known}")]
    Unknown {
        /// What was named.
        what: &'static str,
        /// The name.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// The device, a launch or a compilation failed.
    #[error(transparent)]
    Runtime(#[from] tile_runtime::Error),
    /// No plan that tuning tried has a time.
    #[error(transparent)]
    Tuning(#[from] tile_runtime::tune::NoWinner),
}

/// Results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
