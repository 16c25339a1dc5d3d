//! Generic kernels in a module of their own, used with several types and sizes: each use is a kernel of its own.

#![deny(warnings, unused, missing_docs, unreachable_pub)]

use tile_runtime::prelude::*;

/// Kernels.
pub mod kernels {
    use tile_runtime::prelude::*;

    /// What a kernel does to a tile.
    pub trait Step {
        /// Does it.
        fn step<T: Float>(t: Tile<T>) -> Tile<T>;
    }

    /// Doubles.
    pub struct Double;

    impl Step for Double {
        fn step<T: Float>(t: Tile<T>) -> Tile<T> {
            t * 2.0
        }
    }

    /// Adds one.
    pub struct Increment;

    impl Step for Increment {
        fn step<T: Float>(t: Tile<T>) -> Tile<T> {
            t + 1.0
        }
    }

    /// Applies `S` to `x`, `N` times.
    #[tile_kernel]
    pub fn apply<T, S: Step, const N: usize, const UP: bool>(
        x: Tensor<T, 1>,
        out: TensorMut<T, 1>,
        block: Const<usize>,
    ) where
        T: Float,
    {
        let mut t = load(x, (bid(0),), (block,));
        for _ in unroll(0..N) {
            t = S::step(t);
        }
        store(out, (bid(0),), if UP { t } else { -t });
    }
}

/// A kernel for each element type.
macro_rules! fills {
    ($($name:ident: $ty:ty = $value:expr;)*) => {$(
        /// Fills a tensor.
        #[tile_kernel]
        fn $name(out: TensorMut<$ty, 1>, n: Scalar<i32>) {
            let mut value = full::<$ty>((2,), $value);
            for _ in 0..n {
                value += $value;
            }
            store(out, (0,), value);
        }
    )*};
}
fills! { fill_f32: f32 = 0.5; fill_i32: i32 = 3; }

fn main() {
    use half::bf16;
    use kernels::{Double, Increment, apply};
    let device = Device::cpu();
    let x = DeviceTensor::from_slice(&device, &[64], &[1.5f32; 64]).unwrap();
    let mut out = DeviceTensor::zeros(&device, &[64]).unwrap();
    apply::<f32, Double, 3, true>(&x, &mut out, 64).launch(1).unwrap();
    assert_eq!(out.to_vec().unwrap(), [12.0; 64]);
    apply::<f32, Increment, 3, false>(&x, &mut out, 32).launch(2).unwrap();
    assert_eq!(out.to_vec().unwrap(), [-4.5; 64]);
    let y = DeviceTensor::from_slice(&device, &[128], &[bf16::from_f32(1.5); 128]).unwrap();
    let mut out = DeviceTensor::zeros(&device, &[128]).unwrap();
    apply::<_, Double, 1, true>(&y, &mut out, 128).launch(1).unwrap();
    assert_eq!(out.to_vec().unwrap(), [bf16::from_f32(3.0); 128]);
    let mut out = DeviceTensor::zeros(&device, &[2]).unwrap();
    fill_f32(&mut out, 3).launch(1).unwrap();
    assert_eq!(out.to_vec().unwrap(), [2.0, 2.0]);
    let mut out = DeviceTensor::zeros(&device, &[2]).unwrap();
    fill_i32(&mut out, 3).launch(1).unwrap();
    assert_eq!(out.to_vec().unwrap(), [12, 12]);
}
