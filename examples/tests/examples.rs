//! Every example, small on the CPU, and its kernels as PTX.

use examples::{Check, Result, Value};
use tile_runtime::prelude::*;

#[expect(dead_code, reason = "the command line is the program's")]
#[path = "../examples/attention.rs"]
pub mod attention;
#[expect(dead_code, reason = "the command line is the program's")]
#[path = "../examples/cumsum.rs"]
pub mod cumsum;
#[expect(dead_code, reason = "the command line is the program's")]
#[path = "../examples/layer_norm.rs"]
pub mod layer_norm;
#[expect(dead_code, reason = "the command line is the program's")]
#[path = "../examples/matmul.rs"]
pub mod matmul;
#[expect(dead_code, reason = "the command line is the program's")]
#[path = "../examples/rms_norm.rs"]
pub mod rms_norm;
#[expect(dead_code, reason = "the command line is the program's")]
#[path = "../examples/softmax.rs"]
pub mod softmax;
#[expect(dead_code, reason = "the command line is the program's")]
#[path = "../examples/transpose.rs"]
pub mod transpose;
#[expect(dead_code, reason = "the command line is the program's")]
#[path = "../examples/vector_add.rs"]
pub mod vector_add;

/// Fails with the line of a check that failed.
fn passes(check: Result<Check>) {
    let check = check.expect("the example runs");
    assert!(check.passed(), "{check}");
}

/// The PTX of a launch holds its kernel. Set `EXAMPLES_PTX_DIR` to keep the text.
fn compiles(file: &str, launch: &Launch<'_>) {
    let ptx = launch.ptx(&Target::SM_80).unwrap_or_else(|error| panic!("{file}: {error}"));
    assert!(ptx.contains(".entry"), "{file}: no kernel in\n{ptx}");
    if let Some(folder) = std::env::var_os("EXAMPLES_PTX_DIR") {
        std::fs::write(std::path::Path::new(&folder).join(format!("{file}.ptx")), ptx).expect("a folder");
    }
}

fn meta<T: Value>(shape: &[usize]) -> DeviceTensor<T> {
    DeviceTensor::meta(shape).expect("a shape")
}

#[test]
fn vector_add_on_cpu() {
    for n in [1, 1024, 2500] {
        passes(vector_add::check::<f32>(&Device::cpu(), n, 1024, vector_add::CONFIG));
        passes(vector_add::check::<bf16>(&Device::cpu(), n, 1024, vector_add::CONFIG));
    }
}

#[test]
fn vector_add_as_ptx() {
    let (x, mut out) = (meta::<bf16>(&[2500]), meta(&[2500]));
    compiles("vector_add", &vector_add::launch(&x, &x, &mut out, vector_add::BLOCK, vector_add::CONFIG).0);
}

#[test]
fn softmax_on_cpu() {
    for columns in [1, 37, 64, softmax::MAX_COLUMNS] {
        passes(softmax::check::<f32>(&Device::cpu(), 3, columns, softmax::TUNING));
        passes(softmax::check::<f16>(&Device::cpu(), 3, columns, softmax::TUNING));
        passes(softmax::check::<bf16>(&Device::cpu(), 3, columns, softmax::TUNING));
    }
    assert!(softmax::check::<f32>(&Device::cpu(), 1, softmax::MAX_COLUMNS + 1, softmax::TUNING).is_err());
}

#[test]
fn softmax_as_ptx() {
    for columns in [37, 4096, softmax::MAX_COLUMNS] {
        let (x, mut out) = (meta::<f32>(&[3, columns]), meta(&[3, columns]));
        compiles(&format!("softmax-f32-{columns}"), &softmax::launch(&x, &mut out, softmax::TUNING).0);
        let (x, mut out) = (meta::<bf16>(&[3, columns]), meta(&[3, columns]));
        compiles(&format!("softmax-bf16-{columns}"), &softmax::launch(&x, &mut out, softmax::TUNING).0);
    }
}

#[test]
fn layer_norm_on_cpu() {
    for columns in [2, 100, 1024] {
        passes(layer_norm::check::<f32>(&Device::cpu(), 3, columns, layer_norm::TUNING));
        passes(layer_norm::check::<bf16>(&Device::cpu(), 3, columns, layer_norm::TUNING));
    }
}

#[test]
fn layer_norm_as_ptx() {
    for columns in [100, 4096] {
        let (x, weight, mut out) = (meta::<bf16>(&[3, columns]), meta(&[columns]), meta(&[3, columns]));
        let launch = layer_norm::launch(&x, [&weight, &weight], &mut out, layer_norm::TUNING).0;
        compiles(&format!("layer_norm-{columns}"), &launch);
    }
}

#[test]
fn rms_norm_on_cpu() {
    for columns in [1, 1000, 2050] {
        passes(rms_norm::check::<f32>(&Device::cpu(), 3, columns, rms_norm::TUNING));
        passes(rms_norm::check::<bf16>(&Device::cpu(), 3, columns, rms_norm::TUNING));
    }
}

#[test]
fn rms_norm_as_ptx() {
    let (x, weight, mut out) = (meta::<bf16>(&[3, 2050]), meta(&[2050]), meta(&[3, 2050]));
    compiles("rms_norm", &rms_norm::launch(&x, &weight, &mut out, rms_norm::TUNING).0);
}

#[test]
fn cumsum_on_cpu() {
    for columns in [1, 1000, 2050] {
        passes(cumsum::check(&Device::cpu(), 3, columns, 1024, cumsum::CONFIG));
    }
}

#[test]
fn cumsum_as_ptx() {
    let (x, mut out) = (meta(&[3, 2050]), meta(&[3, 2050]));
    compiles("cumsum", &cumsum::launch(&x, &mut out, cumsum::BLOCK, cumsum::CONFIG).0);
}

#[test]
fn transpose_on_cpu() {
    for (rows, columns) in [(1, 1), (64, 64), (100, 37)] {
        passes(transpose::check::<f32>(&Device::cpu(), rows, columns, transpose::BLOCK, transpose::CONFIG));
        passes(transpose::check::<bf16>(&Device::cpu(), rows, columns, transpose::BLOCK, transpose::CONFIG));
    }
}

#[test]
fn transpose_as_ptx() {
    let (x, mut out) = (meta::<f32>(&[100, 37]), meta(&[37, 100]));
    compiles("transpose-f32", &transpose::launch(&x, &mut out, transpose::BLOCK, transpose::CONFIG).0);
    let (x, mut out) = (meta::<bf16>(&[128, 256]), meta(&[256, 128]));
    compiles("transpose-bf16", &transpose::launch(&x, &mut out, transpose::BLOCK, transpose::CONFIG).0);
}

#[test]
fn matmul_on_cpu() {
    for shape in [[1, 1, 1], [128, 128, 64], [130, 33, 100]] {
        passes(matmul::check::<bf16>(&Device::cpu(), shape));
        passes(matmul::check::<f16>(&Device::cpu(), shape));
        passes(matmul::check::<f32>(&Device::cpu(), shape));
    }
}

#[test]
fn matmul_as_ptx() {
    fn one<T: Value>([m, n, k]: [usize; 3]) {
        let (a, b, mut c) = (meta::<T>(&[m, k]), meta(&[k, n]), meta(&[m, n]));
        compiles(
            &format!("matmul-{}-{m}x{n}x{k}", T::NAME),
            &matmul::product(&a, &b, &mut c, matmul::tuning::<T>(Some(Target::SM_80))).0,
        );
    }
    // Rows of 16-byte multiples and ragged ones.
    for shape in [[256, 256, 256], [130, 33, 101]] {
        one::<bf16>(shape);
        one::<f16>(shape);
        one::<f32>(shape);
    }
}

#[test]
fn attention_on_cpu() {
    for (tokens, head_dim) in [(1, 16), (64, 40), (150, 64)] {
        let shape = attention::Shape { batch: 1, heads: 2, tokens, head_dim };
        let tuning = attention::tuning(None);
        for causal in [false, true] {
            passes(attention::check::<bf16>(&Device::cpu(), shape, causal, tuning));
            passes(attention::check::<f16>(&Device::cpu(), shape, causal, tuning));
        }
    }
}

#[test]
fn attention_as_ptx() {
    for (head_dim, causal) in [(64, true), (80, false), (128, true)] {
        let shape = [1, 2, 150, head_dim];
        let (x, mut out) = (meta::<bf16>(&shape), meta(&shape));
        let tuning = attention::tuning(Some(Target::SM_80));
        let launch = attention::launch([&x, &x, &x], &mut out, causal, tuning).0;
        compiles(&format!("attention-{head_dim}-{causal}"), &launch);
    }
}

/// Tiles for Hopper's warpgroups, as emitted: bulk copies, roles and asynchronous products, on the PTX executor.
#[test]
fn products_on_the_sm_90a_executor() {
    let device = Device::parse("ptx:sm_90a").expect("an executor");
    passes(matmul::check::<bf16>(&device, [136, 264, 136]));
    let shape = attention::Shape { batch: 1, heads: 1, tokens: 264, head_dim: 64 };
    for causal in [false, true] {
        passes(attention::check::<bf16>(&device, shape, causal, attention::tuning(Some(Target::SM_90A))));
    }
}
