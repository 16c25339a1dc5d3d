//! Cases of the language, a group a file: each operation in each element type, in every situation of layouts.

mod atomics;
mod chains;
mod control;
mod conversions;
mod elementwise;
mod indexed;
mod movement;
mod products;
mod reductions;
mod scans;
mod windows;

pub use atomics::atomics;
pub use chains::chains;
pub use control::control;
pub use conversions::conversions;
pub use elementwise::elementwise;
pub use indexed::indexed;
pub use movement::movement;
pub use products::products;
pub use reductions::reductions;
pub use scans::scans;
pub use windows::windows;

use tile_runtime::prelude::*;

use crate::held::Held;
use crate::input::{Fill, View, tensor};
use crate::lab::{Cases, values};
use crate::tolerance::Tolerance;

/// A tensor of a case: shape, place in memory, numbers.
#[derive(Clone, Debug)]
struct Spec {
    shape: Vec<usize>,
    view: View,
    fill: Fill,
}

/// A row-major tensor.
fn plain(shape: &[usize], fill: Fill) -> Spec {
    Spec { shape: shape.to_vec(), view: View::Plain, fill }
}

/// A tensor of whole numbers that lies in memory in a given way.
fn lying(shape: &[usize], view: View) -> Spec {
    Spec { shape: shape.to_vec(), view, fill: Fill::Wide }
}

/// How a case runs: its name, how its result is compared, the elements of its largest tile, and the grid.
#[derive(Clone, Debug)]
struct How {
    name: String,
    tolerance: Tolerance,
    tile: usize,
    grid: [usize; 3],
}

/// A case that is compared exactly.
fn exact(name: String, tile: usize, grid: [usize; 3]) -> How {
    How { name, tolerance: Tolerance::Exact, tile, grid }
}

/// Adds a kernel of one input and one output; the output's whole memory is compared.
fn one<T: Held, U: Held>(
    cases: &mut Cases,
    how: How,
    x: Spec,
    out: Spec,
    kernel: impl for<'a> Fn(&'a DeviceTensor<T>, &'a mut DeviceTensor<U>) -> Launch<'a> + 'static,
) {
    let How { name, tolerance, tile, grid } = how;
    cases.add(name, tolerance, tile, move |run| {
        let (_, x) = tensor::<T>(run.device(), &x.shape, x.view, x.fill, 1)?;
        let (memory, mut out) = tensor::<U>(run.device(), &out.shape, out.view, out.fill, 2)?;
        run.launch(kernel(&x, &mut out), grid)?;
        values(&memory)
    });
}

/// As [`one`], of two inputs of one element type.
fn two<T: Held, U: Held>(
    cases: &mut Cases,
    how: How,
    [x, y]: [Spec; 2],
    out: Spec,
    kernel: impl for<'a> Fn(&'a DeviceTensor<T>, &'a DeviceTensor<T>, &'a mut DeviceTensor<U>) -> Launch<'a>
    + 'static,
) {
    let How { name, tolerance, tile, grid } = how;
    cases.add(name, tolerance, tile, move |run| {
        let (_, x) = tensor::<T>(run.device(), &x.shape, x.view, x.fill, 1)?;
        let (_, y) = tensor::<T>(run.device(), &y.shape, y.view, y.fill, 3)?;
        let (memory, mut out) = tensor::<U>(run.device(), &out.shape, out.view, out.fill, 2)?;
        run.launch(kernel(&x, &y, &mut out), grid)?;
        values(&memory)
    });
}
