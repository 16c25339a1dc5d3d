//! Reductions and scans. Floats accumulate in f32, in an order fixed by the shape alone, and round once.

use super::elementwise::Int;
use super::round;
use super::strided::{Dims, RowReader, Walk, row_major};
use super::value::{Element, TileValue};
use crate::ir::Elem;
use crate::ops::binary::{larger, smaller};
use crate::ops::reduce::ReduceKind;

/// How a reduction combines: one row into one number, and one row into a row of running numbers.
struct Fold<T> {
    start: T,
    one: fn(T, T) -> T,
    row: fn(&[T]) -> T,
    into: fn(&mut [T], &[T]),
}

macro_rules! fold {
    ($T:ty, $start:expr, $a:ident, $b:ident => $value:expr) => {
        Fold::<$T> {
            start: $start,
            one: |$a, $b| $value,
            row: |row| {
                // Sixteen running values, so that the compiler can use vectors.
                let mut lanes = [$start; 16];
                let mut pieces = row.chunks_exact(16);
                for piece in &mut pieces {
                    lanes.iter_mut().zip(piece).for_each(|(lane, &$b)| {
                        let $a = *lane;
                        *lane = $value;
                    });
                }
                let rest = pieces.remainder().iter().copied();
                lanes.into_iter().chain(rest).fold($start, |$a, $b| $value)
            },
            into: |out, row| {
                out.iter_mut().zip(row).for_each(|(out, &$b)| {
                    let $a = *out;
                    *out = $value;
                })
            },
        }
    };
}

fn float_fold(kind: ReduceKind, propagate_nan: bool) -> Fold<f32> {
    match (kind, propagate_nan) {
        // -0.0 is the neutral element of addition: 0.0 would lose the sign of a sum of negative zeros.
        (ReduceKind::Sum, _) => fold!(f32, -0.0, a, b => a + b),
        // NaN is the neutral element of the kind of maximum that ignores it.
        (ReduceKind::Max, false) => fold!(f32, f32::NAN, a, b => larger(a, b)),
        (ReduceKind::Min, false) => fold!(f32, f32::NAN, a, b => smaller(a, b)),
        (ReduceKind::Max, true) => {
            fold!(f32, f32::NEG_INFINITY, a, b => if a.is_nan() || b.is_nan() { f32::NAN } else { larger(a, b) })
        }
        (ReduceKind::Min, true) => {
            fold!(f32, f32::INFINITY, a, b => if a.is_nan() || b.is_nan() { f32::NAN } else { smaller(a, b) })
        }
    }
}

fn int_fold<T: Int>(kind: ReduceKind, min: T, max: T) -> Fold<T> {
    // The macro needs constants; the extremes of a generic integer are none.
    match kind {
        ReduceKind::Sum => Fold {
            start: T::wrap_from(0),
            one: |a, b| T::wrap_from(a.wide().wrapping_add(b.wide())),
            row: |row| T::wrap_from(row.iter().fold(0, |a, b| a.wrapping_add(b.wide()))),
            into: |out, row| {
                let pairs = out.iter_mut().zip(row);
                pairs.for_each(|(out, b)| *out = T::wrap_from(out.wide().wrapping_add(b.wide())));
            },
        },
        ReduceKind::Max => Fold {
            start: min,
            one: |a, b| a.max(b),
            row: |row| row.iter().copied().fold(row[0], |a, b| a.max(b)),
            into: |out, row| out.iter_mut().zip(row).for_each(|(out, &b)| *out = (*out).max(b)),
        },
        ReduceKind::Min => Fold {
            start: max,
            one: |a, b| a.min(b),
            row: |row| row.iter().copied().fold(row[0], |a, b| a.min(b)),
            into: |out, row| out.iter_mut().zip(row).for_each(|(out, &b)| *out = (*out).min(b)),
        },
    }
}

fn fold_axes<T: Element>(x: &TileValue, axes: &[usize], fold: &Fold<T>) -> (Dims, Vec<T>) {
    let keep = |(axis, &size): (usize, &usize)| if axes.contains(&axis) { 1 } else { size };
    let shape: Dims = x.shape().iter().enumerate().map(keep).collect();
    let mut to = row_major(&shape);
    to.iter_mut().enumerate().for_each(|(axis, stride)| *stride *= usize::from(!axes.contains(&axis)));
    let mut out = vec![fold.start; shape.iter().product()];
    let (data, strides) = x.expect::<T>();
    let walk = Walk::new(x.shape(), [&to, strides]);
    let (len, reduced) = (walk.row_len(), walk.row_stride(0) == 0);
    let mut reader = RowReader::new(data, walk.row_stride(1));
    walk.rows(|[to, from]| {
        for start in (0..len).step_by(super::strided::CHUNK) {
            let row = reader.piece(from, start, (len - start).min(super::strided::CHUNK));
            if reduced {
                out[to] = (fold.one)(out[to], (fold.row)(row));
            } else {
                let at = to + start;
                (fold.into)(&mut out[at..at + row.len()], row);
            }
        }
    });
    (shape, out)
}

/// Reduces `axes`, which stay as size 1.
pub(crate) fn reduce(x: &TileValue, kind: ReduceKind, axes: &[usize], propagate_nan: bool) -> TileValue {
    fn int<T: Int>(x: &TileValue, axes: &[usize], fold: &Fold<T>) -> TileValue {
        let (shape, out) = fold_axes(x, axes, fold);
        TileValue::new(x.elem(), &shape, out)
    }
    match x.elem() {
        elem @ (Elem::F32 | Elem::F16 | Elem::BF16 | Elem::TF32) => {
            let (shape, mut out) = fold_axes(x, axes, &float_fold(kind, propagate_nan));
            round::slice(elem, &mut out);
            TileValue::new(elem, &shape, out)
        }
        Elem::I32 => int(x, axes, &int_fold(kind, i32::MIN, i32::MAX)),
        Elem::I64 => int(x, axes, &int_fold(kind, i64::MIN, i64::MAX)),
        Elem::U32 => int(x, axes, &int_fold(kind, u32::MIN, u32::MAX)),
        Elem::Bool => unreachable!("the type rule refuses reductions of truth values"),
    }
}

/// The inclusive prefix sum along an axis, one element after the other.
pub(crate) fn cumsum(x: TileValue, axis: usize, reverse: bool) -> TileValue {
    fn int<T: Int>(x: TileValue, axis: usize, reverse: bool) -> TileValue {
        scan::<T>(x, axis, reverse, |a, b| T::wrap_from(a.wide().wrapping_add(b.wide())), |_| {})
    }
    match x.elem() {
        elem @ (Elem::F32 | Elem::F16 | Elem::BF16 | Elem::TF32) => {
            scan::<f32>(x, axis, reverse, |a, b| a + b, |values| round::slice(elem, values))
        }
        Elem::I32 => int::<i32>(x, axis, reverse),
        Elem::I64 => int::<i64>(x, axis, reverse),
        Elem::U32 => int::<u32>(x, axis, reverse),
        Elem::Bool => unreachable!("the type rule refuses scans of truth values"),
    }
}

fn scan<T: Element>(
    x: TileValue,
    axis: usize,
    reverse: bool,
    add: impl Fn(T, T) -> T,
    finish: impl FnOnce(&mut [T]),
) -> TileValue {
    let (elem, shape) = (x.elem(), Dims::from(x.shape()));
    let (count, inner) = (shape[axis], shape[axis + 1..].iter().product::<usize>());
    let mut data = x.into_dense::<T>();
    let values: &mut Vec<T> = std::sync::Arc::make_mut(&mut data);
    for lanes in values.chunks_exact_mut(count * inner) {
        for step in 1..count {
            let at = if reverse { (count - 1 - step) * inner } else { step * inner };
            let (low, high) = lanes.split_at_mut(if reverse { at + inner } else { at });
            let (from, to) = if reverse {
                (&high[..inner], &mut low[at..])
            } else {
                (&low[at - inner..], &mut high[..inner])
            };
            to.iter_mut().zip(from).for_each(|(to, &from)| *to = add(from, *to));
        }
    }
    finish(values);
    let strides = row_major(&shape);
    TileValue::from_arc(elem, shape, strides, data)
}
