//! Products of 16-bit tiles that are smaller than tensor cores take: FMAs, as emitted, on the PTX executor.

use tile_runtime::prelude::*;

/// `out = x y`, one block.
#[tile_kernel]
fn product(x: Tensor<bf16, 2>, y: Tensor<bf16, 2>, out: TensorMut<f32, 2>, tile: Const<[usize; 3]>) {
    let [m, n, k] = tile;
    store(out, (0, 0), mma(load(x, (0, 0), (m, k)), load(y, (0, 0), (k, n)), zeros::<f32>((m, n))));
}

#[test]
fn products_below_the_size_of_tensor_cores() {
    for name in ["ptx:sm_80", "ptx:sm_90a"] {
        let device = Device::parse(name).expect("an executor");
        for (tile, num_warps) in [([8, 16, 32], 1), ([64, 4, 16], 4), ([64, 64, 8], 4)] {
            let [m, n, k] = tile;
            // Whole numbers of a few bits: every sum is exact.
            let a: Vec<i32> = (0..m * k).map(|i| (i as i32 * 7) % 11 - 5).collect();
            let b: Vec<i32> = (0..k * n).map(|i| (i as i32 * 5) % 13 - 6).collect();
            let tensor = |shape: &[usize], values: &[i32]| {
                let values: Vec<bf16> = values.iter().map(|&v| bf16::from_f32(v as f32)).collect();
                DeviceTensor::from_slice(&device, shape, &values).expect("fits")
            };
            let (x, y) = (tensor(&[m, k], &a), tensor(&[k, n], &b));
            let mut out = DeviceTensor::zeros(&device, &[m, n]).expect("fits");
            let config = Config { num_warps: Some(num_warps), ..Config::default() };
            product(&x, &y, &mut out, tile).config(config).launch(1).expect("runs");
            let sum = |at: usize| (0..k).map(|i| a[at / n * k + i] * b[i * n + at % n]).sum::<i32>();
            let expected: Vec<f32> = (0..m * n).map(|at| sum(at) as f32).collect();
            assert_eq!(out.to_vec().expect("copied"), expected, "{name} {tile:?}");
        }
    }
}
