//! Snapshots: PTX for `sm_80` and `sm_90a`, tile IR after passes, and rendered diagnostics.
//!
//! `cargo xtask bless` rewrites them after an intended change; `cargo xtask ptxas --check` assembles those of PTX.

use mamba2::case::Dtype;
use tile_runtime::prelude::*;
use tile_tests::mistakes;
use tile_tests::small::{
    SEED, add, compact, four_taps, histogram, move_rows, padded, product, running_sum, softmax, total,
    transpose_tiles,
};

fn mamba(kernel: &str, stage: &str, dtype: Dtype) -> String {
    mamba2::Variant::new(kernel, "sm_80", SEED, dtype).show(stage).expect("the kernel compiles")
}

#[test]
fn ptx_of_mamba2() {
    for kernel in mamba2::KERNELS {
        insta::assert_snapshot!(format!("{kernel}_bf16_ptx"), mamba(kernel, "ptx", Dtype::BF16));
    }
    for kernel in ["fwd_pass_state", "compute_out"] {
        let ptx = mamba2::Variant::new(kernel, "sm_90a", SEED, Dtype::BF16)
            .show("ptx")
            .expect("the kernel compiles");
        insta::assert_snapshot!(format!("{kernel}_bf16_sm_90a_ptx"), ptx);
    }
    insta::assert_snapshot!("fwd_pass_state_f32_ptx", mamba("fwd_pass_state", "ptx", Dtype::F32));
}

#[test]
fn tile_ir_of_mamba2() {
    for stage in ["staged", "canonicalize", "insert_barriers"] {
        insta::assert_snapshot!(format!("chunk_cumsum_{stage}"), mamba("chunk_cumsum", stage, Dtype::BF16));
    }
    for stage in ["pipeline_loads", "assign_layouts"] {
        insta::assert_snapshot!(
            format!("fwd_pass_state_{stage}"),
            mamba("fwd_pass_state", stage, Dtype::BF16)
        );
    }
}

fn meta<T: HostElement>(shape: &[usize]) -> DeviceTensor<T> {
    DeviceTensor::meta(shape).expect("a small shape")
}

#[test]
fn ptx_of_small_kernels() {
    let ptx = |launch: Launch<'_>| launch.ptx(&Target::SM_80).expect("the kernel compiles");
    let (x, y, mut out) = (meta(&[1 << 20]), meta(&[1 << 20]), meta(&[1 << 20]));
    insta::assert_snapshot!("add_ptx", ptx(add(&x, &y, &mut out)));
    let (x, mut out) = (meta(&[4096, 1000]), meta(&[4096, 1000]));
    insta::assert_snapshot!("softmax_ptx", ptx(softmax(&x, &mut out)));
    let (x, mut out) = (meta(&[4096, 512]), meta(&[4096, 512]));
    insta::assert_snapshot!("running_sum_ptx", ptx(running_sum(&x, &mut out)));
    let (x, y, mut out) = (meta(&[4096, 4096]), meta(&[4096, 4096]), meta(&[4096, 4096]));
    insta::assert_snapshot!("product_ptx", ptx(product(&x, &y, &mut out)));
    let hopper = product(&x, &y, &mut out).ptx(&Target::SM_90A).expect("the kernel compiles");
    insta::assert_snapshot!("product_sm_90a_ptx", hopper);
    let (x, mut out) = (meta(&[4096, 4096]), meta(&[4096, 4096]));
    insta::assert_snapshot!("transpose_ptx", ptx(transpose_tiles(&x, &mut out)));
    // Rows of 50 elements, 100 bytes apart: narrow loads, and padding.
    let (x, mut out) = (meta(&[1000, 50]), meta(&[1000]));
    insta::assert_snapshot!("padded_ptx", ptx(padded(&x, &mut out)));
}

#[test]
fn ptx_of_accesses_by_element() {
    for (target, name) in [(Target::SM_80, "ptx"), (Target::SM_90A, "sm_90a_ptx")] {
        let ptx = |launch: Launch<'_>| launch.ptx(&target).expect("the kernel compiles");
        let (x, weights, mut out) = (meta(&[2, 2048, 256]), meta(&[4, 256]), meta(&[2, 2048, 256]));
        insta::assert_snapshot!(format!("four_taps_{name}"), ptx(four_taps(&x, &weights, &mut out)));
        let (table, from, to, mut pool) = (meta(&[1000, 64]), meta(&[500]), meta(&[500]), meta(&[800, 64]));
        insta::assert_snapshot!(format!("move_rows_{name}"), ptx(move_rows(&table, &from, &to, &mut pool)));
        let (x, mut counts) = (meta(&[1 << 20]), meta(&[256]));
        insta::assert_snapshot!(format!("histogram_{name}"), ptx(histogram(&x, &mut counts)));
        let (x, mut out, mut count) = (meta(&[1 << 20]), meta(&[1 << 20]), meta(&[1]));
        insta::assert_snapshot!(format!("compact_{name}"), ptx(compact(&x, &mut out, &mut count)));
        let (x, mut parts, mut done, mut out) = (meta(&[1 << 18]), meta(&[256]), meta(&[1]), meta(&[1]));
        insta::assert_snapshot!(format!("total_{name}"), ptx(total(&x, &mut parts, &mut done, &mut out)));
    }
}

/// Byte for byte: nothing of a process, a thread or an earlier compilation is in the text (case R23).
#[test]
fn ptx_is_deterministic() {
    let make = || mamba("fwd_pass_state", "ptx", Dtype::F16);
    let first = make();
    let others: Vec<_> = (0..3).map(|_| std::thread::spawn(make)).collect();
    for other in others {
        assert_eq!(other.join().expect("no panic"), first);
    }
    assert_eq!(make(), first);
}

#[test]
fn diagnostics() {
    for (name, text) in mistakes::rendered() {
        insta::assert_snapshot!(name, text);
    }
}
