//! Developer commands: `cargo xtask test`, `ptxas`, `pack`, `tidy`, `bless`.

mod bless;
mod pack;
mod process;
mod ptxas;
mod steps;
mod test;
mod tidy;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Developer commands of the workspace.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run every check that needs cargo alone, and the ptxas checks where ptxas is installed
    Test,
    /// Install the pinned ptxas and nvdisasm into target/ptxas, through pip
    Ptxas {
        /// Instead assemble every PTX snapshot and fail on errors, warnings and spills
        #[arg(long)]
        check: bool,
    },
    /// Build in release mode and pack programs, tests and data for a GPU machine without a toolchain
    Pack {
        /// The folder to write, replaced if it holds an earlier pack
        #[arg(default_value = ".gpu/product")]
        dest: PathBuf,
    },
    /// Check the house rules
    Tidy,
    /// Run the tests and accept what they print as the new snapshots
    Bless {
        /// Arguments for the test runner, such as the name of a test
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Test => test::run_all(),
        Command::Ptxas { check: false } => ptxas::install(),
        Command::Ptxas { check: true } => ptxas::check(),
        Command::Pack { dest } => pack::run(&dest),
        Command::Tidy => tidy::run(),
        Command::Bless { args } => bless::run_tests(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Cli;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
