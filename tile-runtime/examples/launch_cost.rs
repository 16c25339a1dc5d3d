//! Measures what a launch costs the host once its kernel is known: nine arguments, a grid of one block, and a kernel
//! that stores one number. The device is the first argument (`cpu`, `cuda`), else the best one.

use std::time::Instant;

use tile_runtime::prelude::*;

#[tile_kernel]
#[allow(unused_variables)]
fn little(
    a: Tensor<f32, 3>,
    b: Tensor<f32, 3>,
    c: Option<Tensor<f32, 3>>,
    d: Option<Tensor<f32, 3>>,
    factor: Scalar<f32>,
    rows: Const<usize>,
    columns: Const<usize>,
    ordered: Const<bool>,
    out: TensorMut<f32, 1>,
) {
    store(out, (0,), full((1,), factor));
}

const LAUNCHES: u32 = 20_000;

fn main() -> Result<()> {
    let device = std::env::args().nth(1).map_or_else(|| Ok(Device::best()), |name| Device::parse(&name))?;
    let tensor = || DeviceTensor::<f32>::zeros(&device, &[4, 64, 32]);
    let (a, b, c) = (tensor()?, tensor()?, tensor()?);
    let mut out = DeviceTensor::zeros(&device, &[1])?;
    let mut launch = || little(&a, &b, Some(&c), None, 2.0, 64, 32, true, &mut out).launch(1);
    launch()?;
    device.synchronize()?;
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let start = Instant::now();
        for _ in 0..LAUNCHES {
            launch()?;
        }
        best = best.min(start.elapsed().as_secs_f64());
        device.synchronize()?;
    }
    println!("{device}: {:.2} us a launch", best * 1e6 / f64::from(LAUNCHES));
    Ok(())
}
