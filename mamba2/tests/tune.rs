//! `mamba2 tune` from outside: it writes a result, and later forward passes use it as far as it makes sense.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const SIZES: [&str; 8] = ["--tokens", "70", "--heads", "2", "--head-dim", "16", "--state", "16"];

fn run(folder: &Path, args: &[&str], variables: &[(&str, &str)]) -> (Output, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mamba2"));
    command.env_remove("TILE_TUNED").env("TILE_TUNED_DIR", folder).envs(variables.iter().copied());
    let out = command.args(args).output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    (out, text)
}

/// What `mamba2 forward` says of the chunk, having checked its result.
fn chunk(folder: &Path, variables: &[(&str, &str)]) -> String {
    let args: Vec<&str> = ["forward", "--device", "cpu", "--dtype", "f32"].into_iter().chain(SIZES).collect();
    let (out, text) = run(folder, &args, variables);
    assert!(out.status.success() && text.contains("error    ok: y "), "{text}");
    let line = text.lines().find_map(|line| line.strip_prefix("chunk    "));
    line.expect("a line for the chunk").to_owned()
}

fn results(folder: &Path) -> Vec<PathBuf> {
    let Ok(files) = fs::read_dir(folder) else { return Vec::new() };
    files.map(|file| file.unwrap().path()).collect()
}

#[test]
fn forward_uses_what_tune_found() {
    let folder = tempfile::tempdir().unwrap();
    let (tuned, json) = (folder.path().join("tuned"), folder.path().join("all.jsonl"));
    assert_eq!(chunk(&tuned, &[]), "128");
    let json_text = json.to_str().unwrap();
    let args: Vec<&str> = ["tune", "--device", "cpu", "--json", json_text].into_iter().chain(SIZES).collect();
    let (out, text) = run(&tuned, &args, &[]);
    assert!(out.status.success(), "{text}");
    for part in ["compute_out, chunk 64: ", "fwd_pass_state, chunk 32: ", "default  ", "winner   ", "ok: y "]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let lines = fs::read_to_string(&json).unwrap();
    let lines: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of_forward = |flag: &str| {
        let found = lines.iter().filter(|line| line["round"] == "forward" && line[flag] == true);
        found.map(|line| line["point"].clone()).collect::<Vec<_>>()
    };
    let [path] = &results(&tuned)[..] else { panic!("one result: {text}") };
    let result = fs::read_to_string(path).unwrap();
    let kept: serde_json::Value = serde_json::from_str(&result).unwrap();
    assert_eq!(of_forward("winner"), [kept["point"].clone()]);
    assert_eq!(of_forward("default").len(), 1);
    assert!(chunk(&tuned, &[]).ends_with(", a result of tuning"));

    // Which plan is fastest here is chance; another one in its place is used as well.
    let with = |changes: &[(&str, u64)]| {
        let mut edited = kept.clone();
        for &(name, value) in changes {
            edited["point"][name] = value.into();
        }
        fs::write(path, edited.to_string()).unwrap();
        chunk(&tuned, &[])
    };
    let small = [("chunk", 32), ("state_tokens", 16), ("out_tokens", 32)];
    assert_eq!(with(&small), "32, a result of tuning");
    assert_eq!(chunk(&tuned, &[("TILE_TUNED", "off")]), "128");
    for fault in [("chunk", 48), ("chunk", 0), ("out_tokens", 64), ("state_warps", 5), ("block_heads", 3)] {
        assert_eq!(with(&[&small[..], &[fault]].concat()), "128", "{fault:?}");
    }
    fs::write(path, &result[..result.len() / 2]).unwrap();
    assert_eq!(chunk(&tuned, &[]), "128");
}

#[test]
fn options_in_a_file_are_tuned_for() {
    for (name, part) in [("packed", ", sequences by "), ("gate-z", ", z ")] {
        let folder = tempfile::tempdir().unwrap();
        let file = format!("{}/../tests/data/golden/{name}.safetensors", env!("CARGO_MANIFEST_DIR"));
        let (out, text) =
            run(folder.path(), &["tune", "--device", "cpu", "--chunk", "32", "--input", &file], &[]);
        let bucket = text.lines().find(|line| line.starts_with("for      ")).unwrap_or_default();
        assert!(out.status.success() && bucket.contains(part) && bucket.ends_with(", chunk 32"), "{text}");
        assert_eq!(results(folder.path()).len(), 1, "{text}");
    }
}

#[test]
fn nothing_is_kept_unless_it_should_be() {
    let folder = tempfile::tempdir().unwrap();
    let small =
        ["tune", "--device", "cpu", "--tokens", "16", "--heads", "1", "--head-dim", "16", "--state", "16"];
    let (out, text) = run(folder.path(), &[&small[..], &["--dry-run"]].concat(), &[]);
    assert!(out.status.success() && text.contains("winner   "), "{text}");
    let (out, text) = run(folder.path(), &small, &[("TILE_TUNED", "off")]);
    assert!(out.status.success() && text.contains("kept     nothing"), "{text}");
    for (device, part) in [("ptx:sm_80", "taking times on device ptx:sm_80"), ("gpu", "unknown device")] {
        let (out, text) =
            run(folder.path(), &[&small[..1], &["--device", device], &small[3..]].concat(), &[]);
        assert!(!out.status.success() && text.contains(part), "{text}");
    }
    assert!(results(folder.path()).is_empty());
}
