//! Tensors for cases: values from a hash, in memory of every arrangement that a launch may meet.

use tile_runtime::Result;
use tile_runtime::prelude::*;

use crate::held::Held;

/// Which numbers.
#[derive(Clone, Copy, Debug)]
pub enum Fill {
    /// Whole numbers from -4 to 4: sums of thousands of products of them are exact in f32.
    Small,
    /// Whole numbers from -120 to 120, exact in every float type.
    Wide,
    /// Fractions of 1/1024 between two bounds, rounded to the type.
    Between(f64, f64),
    /// The same number everywhere.
    All(f64),
    /// 0 and 1.
    Flags,
}

impl Fill {
    /// Element `index` of the tensor with this seed.
    pub fn at(self, seed: u64, index: usize) -> f64 {
        let word = mix(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(index as u64 + 1));
        match self {
            Fill::Small => (word % 9) as f64 - 4.0,
            Fill::Wide => (word % 241) as f64 - 120.0,
            Fill::Between(low, high) => {
                let steps = ((high - low) * 1024.0) as u64 + 1;
                low + (word % steps) as f64 / 1024.0
            }
            Fill::All(value) => value,
            Fill::Flags => (word & 1) as f64,
        }
    }
}

/// The finaliser of splitmix64.
fn mix(mut z: u64) -> u64 {
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// How a tensor lies in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum View {
    /// Row-major, from the beginning of its memory.
    Plain,
    /// Row-major from the second element on: aligned to one element only.
    Offset,
    /// The columns 2.. of a wider tensor, so that rows lie at an odd distance.
    Slice,
    /// The transpose (of the last two axes) of a row-major tensor.
    Transposed,
    /// Every second element of the last axis.
    Sparse,
    /// One row for all: the first axis has stride 0. For inputs only.
    Broadcast,
}

/// Every arrangement of an input.
pub const INPUTS: [View; 6] =
    [View::Plain, View::Offset, View::Slice, View::Transposed, View::Sparse, View::Broadcast];
/// Every arrangement of an output.
pub const OUTPUTS: [View; 5] = [View::Plain, View::Offset, View::Slice, View::Transposed, View::Sparse];

/// A tensor of `shape` in memory of its own: the whole memory, and the tensor in it. Elements of the memory outside the
/// tensor have values as well, so that reads and writes astray show.
pub fn tensor<T: Held>(
    device: &Device,
    shape: &[usize],
    view: View,
    fill: Fill,
    seed: u64,
) -> Result<(DeviceTensor<T>, DeviceTensor<T>)> {
    let rank = shape.len();
    let view =
        if rank < 2 && matches!(view, View::Transposed | View::Broadcast) { View::Plain } else { view };
    let mut whole = shape.to_vec();
    match view {
        View::Plain => {}
        View::Offset => whole = vec![shape.iter().product::<usize>() + 1],
        View::Slice => whole[rank - 1] += 3,
        View::Transposed => whole.swap(rank - 1, rank - 2),
        View::Sparse => whole.push(2),
        View::Broadcast => whole[0] = 1,
    }
    let values: Vec<T> = (0..whole.iter().product()).map(|i| T::of(fill.at(seed, i))).collect();
    let memory = DeviceTensor::from_slice(device, &whole, &values)?;
    let tensor = match view {
        View::Plain => memory.clone(),
        View::Offset => memory.slice(0, 1..whole[0])?.reshape(shape)?,
        View::Slice => memory.slice(rank - 1, 2..2 + shape[rank - 1])?,
        View::Transposed => memory.transpose(rank - 1, rank - 2)?,
        View::Sparse => memory.select(rank, 1)?,
        View::Broadcast => memory.broadcast_to(shape)?,
    };
    Ok((memory, tensor))
}
