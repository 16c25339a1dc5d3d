//! The golden files, read and reproduced by the float64 reference.

use std::path::{Path, PathBuf};

use mamba2::{
    Options, file,
    golden::{self, Golden},
    inputs, reference, resident, tolerance,
};
use tile_runtime::Device;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/golden")
}

fn files() -> Vec<(String, Golden)> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "safetensors"));
    paths.sort();
    let name = |path: &Path| path.file_stem().unwrap().to_string_lossy().into_owned();
    paths.iter().map(|path| (name(path), golden::read(path).unwrap())).collect()
}

#[test]
fn the_reference_reproduces_every_golden_file() {
    let files = files();
    assert_eq!(files.len(), 15);
    for (name, golden) in files {
        let out = reference::forward(&golden.case.reference_inputs()).unwrap();
        let errors = golden.errors(&out.y, &out.final_states, out.sequence_states.as_deref());
        assert!(errors.y <= tolerance::STORED_REFERENCE, "{name}: y {:e}", errors.y);
        assert!(errors.state <= tolerance::STORED_REFERENCE, "{name}: state {:e}", errors.state);
    }
}

#[test]
fn every_golden_file_passes_on_the_cpu() {
    for (name, golden) in files() {
        let out = resident::run(&Device::cpu(), &golden.case, &Options::default()).unwrap();
        let errors = golden.errors(&out.y, &out.final_states, out.sequence_states.as_deref());
        let limits = golden.limits();
        assert!(errors.within(&limits), "{name}: {errors:?}, limits {limits:?}");
    }
}

#[test]
fn limits_follow_the_pass_rule() {
    for (name, y, state) in [
        ("basic-bf16", 2.2e-3_f64, 2.2e-3_f64),
        ("no-skip", 1.25 * 0.0023314454028043365, 2.2e-3),
        ("basic-f16", 2.8e-4, 1.25 * 0.00022864424318425777),
        ("basic-f32", 2e-5, 2e-5),
        ("step", 2.5e-3, 1e-5),
    ] {
        let limits = golden::read(&folder().join(format!("{name}.safetensors"))).unwrap().limits();
        assert!((limits.y - y).abs() < 1e-12, "{name}: {limits:?}");
        assert!((limits.state - state).abs() < 1e-12, "{name}: {limits:?}");
    }
}

#[test]
fn a_wrong_result_fails() {
    let golden = golden::read(&folder().join("short.safetensors")).unwrap();
    let limits = golden.limits();
    assert!(golden.errors(&golden.y, &golden.final_states, None).within(&limits));
    let mut y = golden.y.clone();
    y[0] = f32::NAN;
    assert!(!golden.errors(&y, &golden.final_states, None).within(&limits));
    let off: Vec<f32> = golden.final_states.iter().map(|s| s * 1.01).collect();
    assert!(!golden.errors(&golden.y, &off, None).within(&limits));
    assert!(!golden.errors(&golden.y[1..], &golden.final_states, None).within(&limits));
    let packed = golden::read(&folder().join("packed.safetensors")).unwrap();
    assert!(!packed.errors(&packed.y, &packed.final_states, None).within(&packed.limits()));
}

#[test]
fn outputs_are_written_in_the_type_of_x() {
    let path = std::env::temp_dir().join(format!("mamba2-outputs-{}.safetensors", std::process::id()));
    let case = inputs::generate(
        mamba2::problem::Shape { batch: 1, tokens: 3, groups: 1, heads: 2, head_dim: 4, state: 2 },
        mamba2::case::Dtype::BF16,
        0,
    );
    file::write_outputs(&path, case.shape, case.dtype, &case.x, &[0.5; 16]).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let y = tensors.tensor("y").unwrap();
    assert_eq!((y.dtype(), y.shape()), (safetensors::Dtype::BF16, &[1, 3, 2, 4][..]));
    // The upper half of the bits of each f32, since the values are bf16 already.
    let expected: Vec<u8> = case.x.iter().flat_map(|v| ((v.to_bits() >> 16) as u16).to_le_bytes()).collect();
    assert_eq!(y.data(), expected);
    assert_eq!(tensors.tensor("state").unwrap().shape(), [1, 2, 4, 2]);
    assert!(file::write_outputs(&path, case.shape, case.dtype, &case.x[1..], &[0.5; 16]).is_err());
}

#[test]
fn bad_files_are_errors_that_name_the_file() {
    let missing = golden::read(Path::new("nowhere.safetensors")).unwrap_err().to_string();
    assert!(missing.starts_with("nowhere.safetensors: "), "{missing}");
    let text = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    assert!(file::read_case(&text).unwrap_err().to_string().contains("not a safetensors file"));
    let path = std::env::temp_dir().join(format!("mamba2-bad-{}.safetensors", std::process::id()));
    let view = safetensors::tensor::TensorView::new(safetensors::Dtype::F32, vec![1], &[0; 4]).unwrap();
    safetensors::serialize_to_file([("dt", view)], None::<std::collections::HashMap<String, String>>, &path)
        .unwrap();
    let error = file::read_case(&path).unwrap_err().to_string();
    std::fs::remove_file(&path).unwrap();
    assert!(error.contains("no tensor called 'x'"), "{error}");
}
