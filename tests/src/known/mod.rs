//! Cases that other tile compilers got wrong, with the numbers that are right. Each runs on the CPU and on a GPU.

mod arithmetic;
mod control;
mod elements;
mod memory;
mod tiles;

use tile_runtime::prelude::*;

/// A case by its name; it panics if the device's result is not the right one.
pub type Known = (&'static str, fn(&Device));

/// Every case.
pub fn all() -> Vec<Known> {
    [arithmetic::CASES, control::CASES, elements::CASES, memory::CASES, tiles::CASES].concat()
}

/// Runs every case and prints what each that fails says; the names of those.
pub fn failures(device: &Device) -> Vec<&'static str> {
    let fails = |case: fn(&Device)| {
        let device = device.clone();
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || case(&device))).is_err()
    };
    let failed = all().into_iter().filter(|(_, case)| fails(*case)).map(|(name, _)| name);
    failed.inspect(|name| println!("FAILED {name}")).collect()
}

/// A list of functions with their names.
macro_rules! cases {
    ($($name:ident)*) => {
        pub(super) const CASES: &[super::Known] = &[$((stringify!($name), $name)),*];
    };
}
use cases;

/// A row-major tensor.
fn tensor<T: HostElement>(device: &Device, shape: &[usize], values: &[T]) -> DeviceTensor<T> {
    DeviceTensor::from_slice(device, shape, values).expect("one value an element")
}

/// What a kernel makes of an output of zeros; the closure launches it.
#[track_caller]
fn result<T: HostElement>(
    device: &Device,
    shape: &[usize],
    grid: impl Into<Grid>,
    kernel: impl FnOnce(&mut DeviceTensor<T>, Grid) -> Result<()>,
) -> Vec<T> {
    let mut out = DeviceTensor::zeros(device, shape).expect("fits");
    kernel(&mut out, grid.into()).unwrap_or_else(|error| panic!("{error}"));
    out.to_vec().expect("copies")
}
