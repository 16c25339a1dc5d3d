//! The program from outside: what it says about a command line that it cannot follow.

use std::process::{Command, Output};

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mamba2")).args(args).output().unwrap()
}

#[test]
fn mistakes_end_in_an_error_that_helps() {
    for (args, part) in [
        (&["forward", "--shape", "huge"][..], "the named shapes are seed"),
        (&["forward", "--groups", "7"], "a multiple of groups"),
        (&["forward", "--dtype", "f64"], "write f32, f16 or bf16"),
        (&["forward", "--input", "nowhere.safetensors"], "nowhere.safetensors: "),
        (&["show", "compute_out", "--shape", "huge"], "the named shapes are seed"),
    ] {
        let out = run(args);
        let text = String::from_utf8_lossy(&out.stderr);
        assert!(!out.status.success() && text.contains(part), "{args:?}: {text}");
        assert!(!text.contains("panicked"), "{text}");
    }
}
