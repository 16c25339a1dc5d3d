//! Explanations: snapshots of what is said of whole kernels, and every reason once, from a kernel made for it.

use mamba2::case::Dtype;
use tile_runtime::prelude::*;
use tile_tests::small::{SEED, product};

fn meta<T: HostElement>(shape: &[usize]) -> DeviceTensor<T> {
    DeviceTensor::meta(shape).expect("a small shape")
}

#[test]
fn explanations() {
    for target in [Target::SM_80, Target::SM_90A] {
        for kernel in mamba2::KERNELS {
            let text =
                mamba2::Variant::new(kernel, target.name, SEED, Dtype::BF16).explain().expect("it compiles");
            insta::assert_snapshot!(format!("{kernel}_{}", target.name), text);
        }
        let (x, y, mut out) = (meta(&[4096, 4096]), meta(&[4096, 4096]), meta(&[4096, 4096]));
        let text = product(&x, &y, &mut out).explain(&target).expect("it compiles");
        insta::assert_snapshot!(format!("product_{}", target.name), text);
    }
}
