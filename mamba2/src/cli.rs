//! The commands of the program and what they share.

mod accuracy;
mod bench;
mod bench_calls;
mod bench_step;
mod check;
mod forward;
mod layer;
mod plot;
mod product;
mod shape_args;
mod show;
mod text;
mod tune;

use clap::{Parser, Subcommand};

/// An error that ends the program; its text says what to do.
pub(crate) type Error = Box<dyn std::error::Error + Send + Sync>;
/// A command's own result: whether everything that it checked passed.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// The Mamba-2 forward pass as tile kernels, on the CPU or an NVIDIA GPU.
#[derive(Debug, Parser)]
#[command(name = "mamba2", version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the forward pass once and compare it with the float64 reference.
    Forward(forward::Args),
    /// Run golden files and compare with the results in them, one line a file.
    Check(check::Args),
    /// Time the forward pass, after checking it against the float64 reference.
    Bench(bench::Args),
    /// Time decode steps beside a copy, on a GPU.
    BenchStep(bench_step::Args),
    /// Time what a warm call costs the host, and replay one as a graph.
    BenchCalls(bench_calls::Args),
    /// Run a whole mixer from a file of weights, and compare it with its definition in float64.
    Layer(layer::Args),
    /// Try every plan for one problem, and keep the fastest for later passes over such problems on this device.
    Tune(tune::Args),
    /// Print the tile IR or the PTX of one kernel.
    Show(show::Args),
}

impl Cli {
    /// Runs the command. False if a result was wrong or could not be had for lack of a feature.
    pub(crate) fn run(&self) -> Result<bool> {
        match &self.command {
            Command::Forward(args) => forward::run(args),
            Command::Check(args) => check::run(args),
            Command::Bench(args) => bench::run(args),
            Command::BenchStep(args) => bench_step::run(args),
            Command::BenchCalls(args) => bench_calls::run(args),
            Command::Layer(args) => layer::run(args),
            Command::Tune(args) => tune::run(args),
            Command::Show(args) => show::run(args),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_documented_forms_parse() {
        for line in [
            "mamba2 forward",
            "mamba2 forward --device cuda:1 --shape seed --tokens 100 --heads 4 --head-dim 32 --dtype f16 --chunk 64 --seed 3",
            "mamba2 forward --input in.safetensors --output out.safetensors",
            "mamba2 check a.safetensors b.safetensors --device cpu",
            "mamba2 bench --device cuda --shape seed,t2k --dtype bf16 --json out.json",
            "mamba2 bench --plot figure.svg",
            "mamba2 bench --plot figure.png --from old.jsonl --from new.jsonl --peer triton.jsonl",
            "mamba2 tune --device cuda --shape seed --dtype bf16 --json tuned.jsonl",
            "mamba2 tune --input in.safetensors --chunk 64 --dry-run",
            "mamba2 show compute_out --target sm_80 --stage ptx",
            "mamba2 show compute_out --target sm_90a --explain",
            "mamba2 bench-step --batch 1,16,256 --heads 80",
            "mamba2 bench-calls --shape m130m",
            "mamba2 layer --weights layer.safetensors --prefix layers.0.mixer. --groups 2 --norm-before-gate",
            "mamba2 show compute_out --with z,cu-seqlens,initial --batch 1",
            "mamba2 show step --with slots",
        ] {
            assert!(Cli::try_parse_from(line.split(' ')).is_ok(), "{line}");
        }
        for line in [
            "mamba2 forward --input in.safetensors --shape seed",
            "mamba2 forward --input in.safetensors --tokens 5",
            "mamba2 forward --input in.safetensors --dtype f16",
            "mamba2 forward --dtype f64",
            "mamba2 check",
            "mamba2 bench --from lines.jsonl",
            "mamba2 bench --peer lines.jsonl",
            "mamba2 bench --plot figure.svg --from lines.jsonl --shape seed",
            "mamba2 bench --plot figure.svg --from lines.jsonl --json out.jsonl",
            "mamba2 layer",
            "mamba2 show",
            "mamba2 show compute_out --time --explain",
            "mamba2 show compute_out --with gate",
        ] {
            assert!(Cli::try_parse_from(line.split(' ')).is_err(), "{line}");
        }
    }
}
