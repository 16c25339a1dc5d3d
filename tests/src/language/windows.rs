//! Windows that begin at any element: before the tensor, after it, on top of each other.

use tile_runtime::prelude::*;

use super::{exact, lying, one, plain};
use crate::held::Held;
use crate::input::{Fill, INPUTS, OUTPUTS, View};
use crate::lab::Cases;

/// Tiles of a shifted grid; what is known of the shift is known when the kernel is compiled, or nothing is.
#[tile_kernel]
fn shifted<T: Storable>(
    x: Tensor<T, 2>,
    out: TensorMut<T, 2>,
    tile: [usize; 2],
    shift: [i32; 2],
    by: Scalar<i32>,
    known: bool,
) {
    let (row, column) = (bid(1) * tile[0], bid(0) * tile[1]);
    let (row, column) = if known {
        (row + shift[0], column + shift[1])
    } else {
        (row + shift[0] - by, column + shift[1] + by)
    };
    store_at(out, (row, column), load_at(x, (row, column), tile));
}

/// The padding shows in the result.
#[tile_kernel]
fn padded<T: Storable, P: Operand<Tile<T>>>(
    x: Tensor<T, 2>,
    out: TensorMut<T, 2>,
    pad: Const<P>,
    row: Scalar<i64>,
    column: Scalar<i32>,
) {
    store(out, (0, bid(0)), load_at_with(x, (row, column + bid(0)), (16, 32), pad));
}

/// Of the taps.
const WEIGHTS: [f32; 4] = [1.0, -2.0, 3.0, 0.5];

/// Four taps along the tokens, as a causal convolution has them: `[batch, tokens, channels]`.
#[tile_kernel]
fn four_taps<T: Float>(x: Tensor<T, 3>, out: TensorMut<T, 3>, tokens: Const<usize>, channels: Const<usize>) {
    let (first, channel) = (bid(1) * tokens, bid(0) * channels);
    let mut acc = zeros::<f32>((1, tokens, channels));
    for tap in unroll(0..4) {
        let window = load_at(x, (bid(2), first + tap - 3, channel), (1, tokens, channels));
        acc = acc + window.cast::<f32>() * WEIGHTS[tap];
    }
    store_at(out, (bid(2), first, channel), acc.cast::<T>());
}

/// Stores on top of each other: the later one stays.
#[tile_kernel]
fn overlapping(x: Tensor<i32, 2>, out: TensorMut<i32, 2>, step: Scalar<i32>) {
    for i in 0..6 {
        let t = load_at(x, (i * 2, i), (8, 32));
        store_at(out, (i - 2, i * step - 5), if i % 2 == 0 { t } else { t.reshape((32, 8)).transpose() });
    }
}

/// Each step reads what the one before stored beside it.
#[tile_kernel]
fn spreading(x: Tensor<i32, 1>, out: TensorMut<i32, 1>, steps: Scalar<i32>) {
    store(out, (0,), load(x, (0,), (128,)));
    for i in 0..steps {
        let t = load_at(out, (i,), (64,)) + load_at(out, (i + 3,), (64,));
        store_at(out, (i + 1,), t);
    }
}

fn views<T: Held>(cases: &mut Cases) {
    let shape = [45, 90];
    let mut add = |tile: [usize; 2], shift: [i32; 2], from: View, to: View, known: bool| {
        let name = format!("window {tile:?} shifted {shift:?} {known} {from:?} {to:?} {}", T::NAME);
        let grid = [90_usize.div_ceil(tile[1]) + 1, 45_usize.div_ceil(tile[0]) + 1, 1];
        let how = exact(name, tile[0] * tile[1], grid);
        one::<T, T>(cases, how, lying(&shape, from), lying(&shape, to), move |x, out| {
            shifted(x, out, tile, shift, 1, known)
        });
    };
    for from in INPUTS {
        add([8, 32], [-3, -8], from, View::Plain, true);
        add([16, 16], [-5, -4], from, View::Plain, false);
    }
    for to in OUTPUTS {
        add([32, 4], [0, -2], View::Plain, to, true);
        add([1, 128], [-1, -7], View::Plain, to, false);
    }
    for shift in [0, 1, 2, -4, -8, -16] {
        add([16, 64], [-16, shift], View::Plain, View::Plain, true);
    }
}

fn pads<T: Held, P>(cases: &mut Cases, pad: P)
where
    P: Operand<Tile<T>> + tile_runtime::ConstParam + std::fmt::Debug + 'static,
{
    let wide = 1_i64 << 40;
    for (row, column) in
        [(0, 0), (-3, -5), (-8, 0), (9, 30), (10, 2), (2, 39), (i64::MIN, 0), (-wide, 3), (wide, 3)]
    {
        let how = exact(format!("pad {pad:?} around {row} {column} {}", T::NAME), 512, [2, 1, 1]);
        one::<T, T>(
            cases,
            how,
            plain(&[10, 37], Fill::Wide),
            plain(&[16, 64], Fill::Flags),
            move |x, out| padded::<T, P>(x, out, pad, row, column),
        );
    }
}

fn taps<T: Held + Float>(cases: &mut Cases) {
    for (tokens, channels) in [(8, 8), (64, 32), (16, 128)] {
        let grid = [100_usize.div_ceil(channels), 50_usize.div_ceil(tokens), 2];
        let how = exact(format!("four taps {tokens}x{channels} {}", T::NAME), tokens * channels, grid);
        let shape = [2, 50, 100];
        one::<T, T>(cases, how, plain(&shape, Fill::Small), plain(&shape, Fill::Flags), move |x, out| {
            four_taps(x, out, tokens, channels)
        });
    }
}

/// Windows at any element.
pub fn windows() -> Cases {
    let mut cases = Cases::default();
    views::<f32>(&mut cases);
    views::<bf16>(&mut cases);
    views::<i64>(&mut cases);
    views::<bool>(&mut cases);
    pads::<f32, f32>(&mut cases, f32::INFINITY);
    pads::<f16, f32>(&mut cases, -2.5);
    pads::<i32, i32>(&mut cases, 7);
    taps::<f32>(&mut cases);
    taps::<bf16>(&mut cases);
    for step in [0, 1, 4, 16, 40] {
        let how = exact(format!("overlapping windows every {step}"), 256, [1, 1, 1]);
        one::<i32, i32>(
            &mut cases,
            how,
            plain(&[16, 40], Fill::Wide),
            plain(&[12, 100], Fill::Flags),
            move |x, out| overlapping(x, out, step),
        );
    }
    let how = exact("spreading windows".into(), 128, [1, 1, 1]);
    one::<i32, i32>(&mut cases, how, plain(&[128], Fill::Small), plain(&[120], Fill::Flags), |x, out| {
        spreading(x, out, 20)
    });
    cases
}
