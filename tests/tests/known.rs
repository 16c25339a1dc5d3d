//! Cases that other tile compilers got wrong, on the CPU; faults that must be refused; kernels of many forms.

use tile_runtime::prelude::*;
use tile_tests::known;

#[test]
fn known_cases() {
    let failed = known::failures(&Device::cpu());
    assert!(failed.is_empty(), "failed: {failed:?}");
}

#[tile_kernel]
fn narrow(x: Tensor<bf16, 2>, out: TensorMut<f32, 2>, n: Const<usize>) {
    let a = load(x, (0, 0), (64, 64));
    let b = load(x, (0, 0), (64, n));
    store(out, (0, 0), mma(a, b, zeros((64, n))));
}

/// L04: products whose N is no power of two are refused by name, or padded: never a wrong tile.
#[test]
fn odd_widths_of_products_are_refused() {
    let x = DeviceTensor::<bf16>::meta(&[64, 256]).expect("a small shape");
    let mut out = DeviceTensor::<f32>::meta(&[64, 256]).expect("a small shape");
    for n in [24, 40, 48, 56, 72, 80, 96, 104, 192] {
        let error = narrow(&x, &mut out, n).stage().expect_err("no power of two").to_string();
        assert!(error.contains("E0101") && error.contains(&format!("found {n}")), "{error}");
    }
    for n in [1, 2, 4, 8, 16] {
        narrow(&x, &mut out, n).compile(&Target::SM_80).expect("a power of two");
    }
}

/// R09: items in a kernel's body are the kernel's own.
#[test]
fn items_inside_kernels() {
    #[tile_kernel]
    fn with_items(out: TensorMut<f32, 1>) {
        use std::f32::consts::PI;
        const HALF: f32 = 0.5;
        struct Pair(f32, f32);
        fn pick(first: bool, pair: &Pair) -> f32 {
            if first { pair.0 } else { pair.1 }
        }
        let twice = |t: Tile<f32>| t + t;
        store(out, (0,), twice(full((4,), pick(false, &Pair(PI, HALF)))));
    }
    let mut out = DeviceTensor::zeros(&Device::cpu(), &[4]).expect("fits");
    with_items(&mut out).launch(1).expect("valid");
    assert_eq!(out.to_vec().expect("host memory"), [1.0; 4]);
}

/// R22: literals of every form take the type that stands beside them.
#[test]
fn literals() {
    #[tile_kernel]
    fn literal_forms(
        ints: TensorMut<i32, 1>,
        floats: TensorMut<f32, 1>,
        flags: TensorMut<bool, 1>,
        n: Const<usize>,
    ) {
        store(ints, (0,), full((1,), -1));
        store(ints, (1,), zeros::<i32>((1,)) + 0xFF);
        store(ints, (2,), zeros::<i32>((1,)) + 1i32);
        store(ints, (3,), -(ones::<i32>((1,)) * i32::MAX));
        store(ints, (4,), full((1,), n as i32));
        store(floats, (0,), full((1,), -1.0));
        store(floats, (1,), full((1,), 1e-3));
        store(floats, (2,), zeros::<f32>((1,)) + core::f32::consts::LOG2_E);
        store(floats, (3,), full((1,), f32::NEG_INFINITY));
        store(floats, (4,), 2.0 - ones::<f32>((1,)) / 4.0);
        store(flags, (0,), full((1,), true));
        store(flags, (1,), !full((1,), true));
    }
    let mut ints = DeviceTensor::zeros(&Device::cpu(), &[5]).expect("fits");
    let mut floats = DeviceTensor::zeros(&Device::cpu(), &[5]).expect("fits");
    let mut flags = DeviceTensor::full(&Device::cpu(), &[2], true).expect("fits");
    literal_forms(&mut ints, &mut floats, &mut flags, 7).launch(1).expect("valid");
    assert_eq!(ints.to_vec().expect("host memory"), [-1, 255, 1, -i32::MAX, 7]);
    assert_eq!(
        floats.to_vec().expect("host memory"),
        [-1.0, 1e-3, std::f32::consts::LOG2_E, f32::NEG_INFINITY, 1.75]
    );
    assert_eq!(flags.to_vec().expect("host memory"), [true, false]);
}

/// R08: two instances of one kernel of a type and a constant, in one process.
#[test]
fn instances_of_generic_kernels() {
    #[tile_kernel]
    fn doubled<T: Float, const N: usize>(x: Tensor<T, 1>, out: TensorMut<T, 1>) {
        let t = load(x, (bid(0),), (N,));
        store(out, (bid(0),), t + t * (N as f64 / 64.0));
    }
    let device = Device::cpu();
    let x = DeviceTensor::from_slice(&device, &[200], &[1.0_f32; 200]).expect("one value an element");
    let mut out = DeviceTensor::zeros(&device, &[200]).expect("fits");
    doubled::<f32, 64>(&x, &mut out).launch(4).expect("valid");
    assert_eq!(out.to_vec().expect("host memory"), [2.0; 200]);
    let x = DeviceTensor::from_slice(&device, &[200], &[bf16::ONE; 200]).expect("one value an element");
    let mut out = DeviceTensor::zeros(&device, &[200]).expect("fits");
    doubled::<bf16, 128>(&x, &mut out).launch(2).expect("valid");
    assert_eq!(out.to_vec().expect("host memory"), [bf16::from_f32(3.0); 200]);
}
