//! The program from outside: what it says about a command line that it cannot follow.

use std::process::{Command, Output};

use mamba2::{MixerWeights, case::Dtype, mixer::Sizes};

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
        (&["forward", "--tokens", "18446744073709551615"], "does not fit"),
        (&["forward", "--batch", "4611686018427387904"], "does not fit"),
        (
            &["show", "matmul"],
            "there is no kernel `matmul`; expected one of chunk_cumsum, fwd_pass_state, compute_out, step",
        ),
        (
            &["show", "compute_out", "--with", "gate"],
            "there is no option `gate`; expected one of bias, softplus",
        ),
        (&["show", "compute_out", "--with", "seq-idx,cu-seqlens"], "expected one of the two"),
        (&["show", "compute_out", "--with", "slots"], "expected slots for `step` alone"),
        (
            &["show", "compute_out", "--with", "cu-seqlens"],
            "describe 1 batch elements of 16384 tokens; expected 4",
        ),
        (&["show", "step", "--with", "initial"], "the states of a step are its argument"),
        (&["show", "compute_out", "--tokens", "18446744073709551615"], "does not fit"),
        (&["forward", "--tokens", "99999999999999"], "more than this machine gives"),
        (&["bench", "--device", "ptx:sm_80"], "times of a PTX executor mean nothing"),
        (&["bench-calls", "--device", "ptx:sm_80"], "times of a PTX executor mean nothing"),
    ] {
        let out = run(args);
        let text = String::from_utf8_lossy(&out.stderr);
        assert!(!out.status.success() && text.contains(part), "{args:?}: {text}");
        assert!(!text.contains("panicked"), "{text}");
    }
}

fn golden(name: &str) -> String {
    format!("{}/../tests/data/golden/{name}.safetensors", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn golden_files_pass_on_the_cpu() {
    let names = [
        "basic-bf16",
        "basic-f16",
        "basic-f32",
        "dt-limit",
        "gate-z",
        "groups",
        "initial-state",
        "no-skip",
        "packed",
        "short",
        "skip-per-dim",
        "softplus-bias",
        "state-256",
        "step",
        "tail",
    ];
    let paths = names.map(golden);
    let args: Vec<&str> =
        ["check", "--device", "cpu"].into_iter().chain(paths.iter().map(String::as_str)).collect();
    let out = run(&args);
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "{text}{}", String::from_utf8_lossy(&out.stderr));
    for name in names {
        assert!(text.lines().any(|line| line.starts_with(name) && line.contains("  pass  y ")), "{text}");
    }
}

#[test]
fn a_file_that_is_not_there_fails_among_others() {
    let out = run(&["check", "--device", "cpu", &golden("short"), "nowhere.safetensors"]);
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(!out.status.success());
    for part in ["short ", "  pass  ", "nowhere  ERROR", "1 of 2 passed"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn forward_prints_its_figures_and_writes_its_results() {
    let path = std::env::temp_dir().join(format!("mamba2-program-{}.safetensors", std::process::id()));
    let sizes = ["--tokens", "70", "--heads", "2", "--head-dim", "32", "--state", "32", "--dtype", "f32"];
    let file = path.to_str().unwrap();
    let args: Vec<&str> = ["forward", "--device", "cpu", "--output", file].into_iter().chain(sizes).collect();
    let out = run(&args);
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "{text}{}", String::from_utf8_lossy(&out.stderr));
    for part in ["tokens 70", "device   CPU", "target   cpu", "chunk    ", "tokens/s", "error    ok: y "] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let bytes = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(tensors.tensor("y").unwrap().shape(), [1, 70, 2, 32]);
    assert_eq!(tensors.tensor("state").unwrap().shape(), [1, 2, 32, 32]);
}

#[test]
fn a_layer_runs_from_a_file_of_weights() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("layer.safetensors");
    let sizes = Sizes { model: 64, heads: 4, head_dim: 32, groups: 2, state: 16, width: 4 };
    MixerWeights::random(sizes, Dtype::BF16, 1).write(&path, "mixer.", Dtype::BF16).unwrap();
    let file = path.to_str().unwrap();
    for device in ["cpu", "ptx:sm_80", "ptx:sm_90a"] {
        for dtype in ["bf16", "f32"] {
            let out = run(&[
                "layer",
                "--weights",
                file,
                "--prefix",
                "mixer.",
                "--groups",
                "2",
                "--device",
                device,
                "--dtype",
                dtype,
                "--batch",
                "2",
                "--tokens",
                "20",
                "--steps",
                "2",
            ]);
            let text = String::from_utf8_lossy(&out.stdout);
            assert!(out.status.success(), "{device} {dtype}: {text}{}", String::from_utf8_lossy(&out.stderr));
            for part in ["model 64, heads 4", "prefill  2 x 20 tokens", "decode   2 steps", "error    ok: y "]
            {
                assert!(text.contains(part), "{part}: {text}");
            }
        }
    }
    for (flag, value, part) in [
        ("--groups", "9223372036854775808", "is the number of groups"),
        ("--steps", "18446744073709551615", "cannot be counted"),
        ("--tokens", "99999999999999", "more than this machine gives"),
    ] {
        let mut args = vec!["layer", "--weights", file, "--prefix", "mixer.", flag, value];
        if flag != "--groups" {
            args.extend(["--groups", "2"]);
        }
        let out = run(&args);
        let text = String::from_utf8_lossy(&out.stderr);
        assert!(!out.status.success() && text.contains(part) && !text.contains("panicked"), "{flag}: {text}");
    }
    let out = run(&["layer", "--weights", file, "--groups", "2"]);
    let text = String::from_utf8_lossy(&out.stderr);
    assert!(text.contains("which prefix do the mixer's tensors have?"), "{text}");
}

#[test]
fn devices_that_are_not_there_are_errors() {
    for device in ["gpu", "cuda:99", "meta"] {
        let out = run(&["check", "--device", device, &golden("short")]);
        assert!(!out.status.success(), "{device}");
        assert!(String::from_utf8_lossy(&out.stderr).starts_with("error: "), "{device}");
    }
}

#[test]
fn bench_draws_earlier_lines() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(
        file("ours.jsonl"),
        "{\"shape\":\"seed\",\"us\":245.2,\"device\":\"GPU\",\"target\":\"sm_90a\"}\n",
    )
    .unwrap();
    std::fs::write(file("peer.jsonl"), "{\"shape\":\"seed\",\"us\":361.6,\"peer\":\"triton\"}\n").unwrap();
    for (figure, start) in [("figure.svg", &b"<svg "[..]), ("figure.png", b"\x89PNG\r\n")] {
        let out = run(&[
            "bench",
            "--plot",
            &file(figure),
            "--from",
            &file("ours.jsonl"),
            "--peer",
            &file("peer.jsonl"),
        ]);
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        assert!(std::fs::read(file(figure)).unwrap().starts_with(start));
    }
    let svg = std::fs::read_to_string(file("figure.svg")).unwrap();
    for label in ["mamba2, GPU, sm_90a", "triton"] {
        assert!(svg.lines().any(|line| line == label), "{svg}");
    }
    let out = run(&["bench", "--device", "cpu", "--plot", &file("figure.svg")]);
    let text = String::from_utf8_lossy(&out.stderr);
    assert!(!out.status.success() && text.contains("name some with --shape"), "{text}");
}
