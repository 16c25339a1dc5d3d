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
        passes(vector_add::check(&Device::cpu(), n));
    }
}

#[test]
fn vector_add_as_ptx() {
    let x = meta(&[2500]);
    compiles("vector_add", &vector_add::vector_add(&x, &x, &mut meta(&[2500]), vector_add::BLOCK));
}

#[test]
fn softmax_on_cpu() {
    for columns in [1, 37, 64, softmax::MAX_COLUMNS] {
        passes(softmax::check::<f32>(&Device::cpu(), 3, columns));
        passes(softmax::check::<f16>(&Device::cpu(), 3, columns));
        passes(softmax::check::<bf16>(&Device::cpu(), 3, columns));
    }
    assert!(softmax::check::<f32>(&Device::cpu(), 1, softmax::MAX_COLUMNS + 1).is_err());
}

#[test]
fn softmax_as_ptx() {
    for columns in [37, 4096, softmax::MAX_COLUMNS] {
        let (x, mut out) = (meta::<f32>(&[3, columns]), meta(&[3, columns]));
        let block = columns.next_power_of_two();
        compiles(&format!("softmax-f32-{columns}"), &softmax::softmax(&x, &mut out, block));
        let (x, mut out) = (meta::<bf16>(&[3, columns]), meta(&[3, columns]));
        compiles(&format!("softmax-bf16-{columns}"), &softmax::softmax(&x, &mut out, block));
    }
}

#[test]
fn layer_norm_on_cpu() {
    for columns in [2, 100, 1024] {
        passes(layer_norm::check::<f32>(&Device::cpu(), 3, columns));
        passes(layer_norm::check::<bf16>(&Device::cpu(), 3, columns));
    }
}

#[test]
fn layer_norm_as_ptx() {
    for columns in [100, 4096] {
        let (x, weight, mut out) = (meta::<bf16>(&[3, columns]), meta(&[columns]), meta(&[3, columns]));
        let block = columns.next_power_of_two();
        let launch = layer_norm::layer_norm(&x, &weight, &weight, &mut out, 1e-5, block);
        compiles(&format!("layer_norm-{columns}"), &launch);
    }
}

#[test]
fn rms_norm_on_cpu() {
    for columns in [1, 1000, 2050] {
        passes(rms_norm::check::<f32>(&Device::cpu(), 3, columns));
        passes(rms_norm::check::<bf16>(&Device::cpu(), 3, columns));
    }
}

#[test]
fn rms_norm_as_ptx() {
    let (x, weight, mut out) = (meta::<bf16>(&[3, 2050]), meta(&[2050]), meta(&[3, 2050]));
    compiles("rms_norm", &rms_norm::rms_norm(&x, &weight, &mut out, 1e-5, rms_norm::BLOCK));
}

#[test]
fn cumsum_on_cpu() {
    for columns in [1, 1000, 2050] {
        passes(cumsum::check(&Device::cpu(), 3, columns));
    }
}

#[test]
fn cumsum_as_ptx() {
    compiles("cumsum", &cumsum::running_sum(&meta(&[3, 2050]), &mut meta(&[3, 2050]), cumsum::BLOCK));
}

#[test]
fn transpose_on_cpu() {
    for (rows, columns) in [(1, 1), (64, 64), (100, 37)] {
        passes(transpose::check::<f32>(&Device::cpu(), rows, columns));
        passes(transpose::check::<bf16>(&Device::cpu(), rows, columns));
    }
}

#[test]
fn transpose_as_ptx() {
    let (x, mut out) = (meta::<f32>(&[100, 37]), meta(&[37, 100]));
    compiles("transpose-f32", &transpose::transpose_matrix(&x, &mut out, transpose::BLOCK));
    let (x, mut out) = (meta::<bf16>(&[128, 256]), meta(&[256, 128]));
    compiles("transpose-bf16", &transpose::transpose_matrix(&x, &mut out, transpose::BLOCK));
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
            &matmul::product(&a, &b, &mut c, matmul::tiles::<T>()).0,
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
        passes(attention::check::<bf16>(&Device::cpu(), shape));
        passes(attention::check::<f16>(&Device::cpu(), shape));
    }
}

#[test]
fn attention_as_ptx() {
    for head_dim in [64, 80, 128] {
        let shape = [1, 2, 150, head_dim];
        let (x, mut out) = (meta::<bf16>(&shape), meta(&shape));
        let (rows, keys) = (attention::BLOCK_Q, attention::BLOCK_K);
        let launch =
            attention::attention(&x, &x, &x, &mut out, 0.125, rows, keys, attention::block_d(head_dim));
        compiles(&format!("attention-{head_dim}"), &launch);
    }
}
