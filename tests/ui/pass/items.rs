//! A kernel with items of its own: a function, constants, a `use`, types, closures, a macro.

use tile_runtime::prelude::*;

#[tile_kernel]
fn kernel(x: Tensor<f32, 1>, out: TensorMut<f32, 1>, rows: Const<usize>) {
    use std::f32::consts::LOG2_E as LOG;
    const HALF: f32 = 0.5;
    const ROWS: usize = 2 + 2;
    static SHIFT: f32 = 1.0;

    /// Two tiles.
    #[derive(Clone, Copy)]
    struct Pair {
        first: Tile<f32>,
        second: Tile<f32>,
    }

    impl Pair {
        fn sum(self) -> Tile<f32> {
            self.first + self.second
        }
    }

    enum Which {
        Sum,
        First,
    }

    fn pick(which: Which, pair: Pair) -> Tile<f32> {
        match which {
            Which::Sum => pair.sum(),
            Which::First => pair.first,
        }
    }

    macro_rules! plus_one {
        ($t:expr) => {
            $t + 1.0
        };
    }

    assert!(rows == ROWS, "found {rows} rows");
    let shifted = |t: Tile<f32>, by: f32| t + by;
    let t = load(x, (0,), (rows,));
    let pair = Pair { first: t * HALF, second: shifted(t, SHIFT) };
    let one = pick(Which::First, pair) * LOG / LOG2_E;
    store(out, (0,), plus_one!(pick(Which::Sum, pair) + one));
}

fn main() {
    let device = Device::cpu();
    let x = DeviceTensor::from_slice(&device, &[4], &[0.0f32, 2.0, 4.0, 8.0]).unwrap();
    let mut out = DeviceTensor::zeros(&device, &[4]).unwrap();
    kernel(&x, &mut out, 4).launch(1).unwrap();
    // x / 2 + (x + 1) + x / 2 + 1
    assert_eq!(out.to_vec().unwrap(), [2.0, 6.0, 10.0, 18.0]);
}
