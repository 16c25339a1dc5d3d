//! Loads and stores: padding, partial tiles, strides of every kind, indices of every size.

use super::{i32s, list};
use crate::cpu::transfer::{At, load, store};
use crate::cpu::{Slice, SliceMut, TensorArg, TensorMemory, TileValue, VecMemory};
use crate::ir::Elem;
use crate::ops::Literal;
use crate::ops::window::Steps;

const ZERO: Literal = Literal::Int(0);

/// An index that counts tiles.
fn tiles(index: &[i64]) -> At<'_> {
    At { index, steps: Steps::Tiles }
}

/// An index that counts elements.
fn elements(index: &[i64]) -> At<'_> {
    At { index, steps: Steps::Elements }
}

fn view<'a>(memory: &'a VecMemory, offset: i64, shape: &[i64], strides: &[i64]) -> TensorArg<'a> {
    TensorArg { memory, offset, shape: shape.to_vec(), strides: strides.to_vec() }
}

#[test]
fn elements_outside_are_the_padding_value() {
    let memory = VecMemory::floats(Elem::F32, &[1.0; 16]);
    let sum = |pad: Literal| {
        list::<f32>(&load(&memory.tensor(&[16]), tiles(&[0]), &[256], pad)).iter().sum::<f32>()
    };
    assert_eq!(sum(ZERO), 16.0);
    assert_eq!(sum(Literal::float(-1.0)), 16.0 - 240.0);
    let memory = VecMemory::floats(Elem::BF16, &[-3.0; 100]);
    let tail = load(&memory.tensor(&[100]), tiles(&[1]), &[64], Literal::float(f64::NEG_INFINITY));
    assert_eq!(list::<f32>(&tail), [vec![-3.0; 36], vec![f32::NEG_INFINITY; 28]].concat());
    // A third of one is rounded to the element type.
    let pad = load(&memory.tensor(&[100]), tiles(&[50]), &[2], Literal::float(1.0 / 3.0));
    assert_eq!(list::<f32>(&pad), [0.333_984_38; 2]);
}

#[test]
fn tiles_are_counted_from_the_origin_in_both_directions() {
    let memory = VecMemory::ints(Elem::I32, &(0..15).collect::<Vec<_>>());
    let tensor = memory.tensor(&[3, 5]);
    let at = |i, j| list::<i32>(&load(&tensor, tiles(&[i, j]), &[2, 2], Literal::Int(-1)));
    assert_eq!(at(0, 0), [0, 1, 5, 6]);
    assert_eq!(at(0, 2), [4, -1, 9, -1]);
    assert_eq!(at(1, 2), [14, -1, -1, -1]);
    for outside in [(-1, 0), (0, -1), (2, 0), (0, 3), (i64::MAX, 0), (0, i64::MIN)] {
        assert_eq!(at(outside.0, outside.1), [-1; 4], "{outside:?}");
    }
}

#[test]
fn stores_outside_are_dropped() {
    let memory = VecMemory::ints(Elem::I32, &[0; 20]);
    let tensor = view(&memory, 2, &[3, 5], &[5, 1]);
    let tile = i32s(&[2, 2], &[1, 2, 3, 4]);
    for index in [[1, 2], [0, 0], [-1, 0], [5, 1], [i64::MIN, i64::MAX]] {
        store(&tile, &tensor, tiles(&index));
    }
    let mut expected = vec![0; 20];
    (expected[2], expected[3], expected[7], expected[8], expected[16]) = (1, 2, 3, 4, 1);
    assert_eq!(memory.to_ints(), expected);
}

#[test]
fn windows_begin_at_any_element() {
    let memory = VecMemory::ints(Elem::I32, &(0..15).collect::<Vec<_>>());
    let tensor = memory.tensor(&[3, 5]);
    let at = |i, j| list::<i32>(&load(&tensor, elements(&[i, j]), &[2, 2], Literal::Int(-1)));
    assert_eq!(at(1, 1), [6, 7, 11, 12]);
    assert_eq!(at(-1, 3), [-1, -1, 3, 4]);
    assert_eq!(at(2, -1), [-1, 10, -1, -1]);
    for outside in [(-2, 0), (0, -2), (3, 0), (0, 5), (i64::MAX, 0), (0, i64::MIN)] {
        assert_eq!(at(outside.0, outside.1), [-1; 4], "{outside:?}");
    }
    for index in [[-1, -1], [1, 2], [2, 4], [i64::MIN, 0]] {
        store(&i32s(&[2, 2], &[51, 52, 53, 54]), &tensor, elements(&index));
    }
    assert_eq!(memory.to_ints(), [54, 1, 2, 3, 4, 5, 6, 51, 52, 9, 10, 11, 53, 54, 51]);
}

#[test]
fn any_strides_reach_the_same_elements() {
    let memory = VecMemory::ints(Elem::I32, &(0..64).collect::<Vec<_>>());
    for strides in [[8, 1], [1, 8], [9, 2], [0, 1], [3, 0], [-8, 1], [2, -3], [-1, -8]] {
        let offset = 30;
        let tensor = view(&memory, offset, &[3, 3], &strides);
        let found = list::<i32>(&load(&tensor, tiles(&[0, 0]), &[4, 4], Literal::Int(-7)));
        for (at, x) in found.iter().enumerate() {
            let (i, j) = (at as i64 / 4, at as i64 % 4);
            let right = if i < 3 && j < 3 { offset + i * strides[0] + j * strides[1] } else { -7 };
            assert_eq!(i64::from(*x), right, "{strides:?}");
        }
        if strides.contains(&0) {
            continue;
        }
        let copy = VecMemory::ints(Elem::I32, &[0; 64]);
        let tile = load(&tensor, tiles(&[0, 0]), &[4, 4], ZERO);
        store(&tile, &view(&copy, offset, &[3, 3], &strides), tiles(&[0, 0]));
        for at in 0..9 {
            let place = offset + at / 3 * strides[0] + at % 3 * strides[1];
            assert_eq!(copy.to_ints()[place as usize], place, "{strides:?}");
        }
        assert_eq!(copy.to_ints().iter().filter(|&&x| x != 0).count(), 9);
    }
}

#[test]
fn a_column_tile_stores_into_a_row_major_tensor() {
    let source = VecMemory::ints(Elem::I32, &(0..16).collect::<Vec<_>>());
    let turned = load(&view(&source, 0, &[4, 4], &[1, 4]), tiles(&[0, 0]), &[4, 4], ZERO);
    let copy = VecMemory::ints(Elem::I32, &[0; 16]);
    store(&turned, &copy.tensor(&[4, 4]), tiles(&[0, 0]));
    let right: Vec<i64> = (0..16).map(|at| at % 4 * 4 + at / 4).collect();
    assert_eq!(copy.to_ints(), right);
}

#[test]
fn the_stride_of_a_size_one_axis_is_never_used() {
    let memory = VecMemory::ints(Elem::I32, &[5, 6, 7, 8]);
    for stride in [0, 1, 1_000_000_000, i64::MAX, i64::MIN] {
        let tensor = view(&memory, 0, &[1, 4, 1], &[stride, 1, stride]);
        let found = list::<i32>(&load(&tensor, tiles(&[0, 0, 0]), &[2, 4, 1], ZERO));
        assert_eq!(found, [5, 6, 7, 8, 0, 0, 0, 0]);
        store(&i32s(&[2, 2, 2], &[1, 0, 2, 0, 9, 9, 9, 9]), &tensor, tiles(&[0, 0, 0]));
        assert_eq!(memory.to_ints(), [1, 2, 7, 8]);
        store(&i32s(&[1, 2, 1], &[5, 6]), &tensor, tiles(&[0, 0, 0]));
    }
}

/// A tensor whose elements are their own storage index.
struct Endless;

impl TensorMemory for Endless {
    fn elem(&self) -> Elem {
        Elem::I64
    }
    fn read(&self, start: i64, stride: i64, out: SliceMut<'_>) {
        if let SliceMut::I64(out) = out {
            out.iter_mut().zip(0..).for_each(|(out, step)| *out = start + step * stride);
        }
    }
    fn write(&self, _: i64, _: i64, _: Slice<'_>) {}
    fn update(&self, at: i64, _: &dyn Fn(u64) -> u64) -> u64 {
        at as u64
    }
}

#[test]
fn offsets_have_64_bits() {
    let strides = vec![16_777_217, 1 << 33];
    let tensor = TensorArg { memory: &Endless, offset: 0, shape: vec![130, 1 << 20], strides };
    let found = list::<i64>(&load(&tensor, tiles(&[64, 1 << 18]), &[2, 2], ZERO));
    let right = |i: i64, j: i64| (128 + i) * 16_777_217 + ((1 << 19) + j) * (1 << 33);
    assert_eq!(found, [right(0, 0), right(0, 1), right(1, 0), right(1, 1)]);
}

#[test]
fn every_element_type_goes_through_memory() {
    let bytes = VecMemory::ints(Elem::Bool, &[0, 1, 2, 255]);
    let tile = load(&bytes.tensor(&[4]), tiles(&[0]), &[4], Literal::Bool(true));
    assert_eq!(list::<bool>(&tile), [false, true, true, true]);
    let copy = VecMemory::ints(Elem::Bool, &[7; 4]);
    store(&tile, &copy.tensor(&[4]), tiles(&[0]));
    assert_eq!(copy.to_ints(), [0, 1, 1, 1]);
    let memory = VecMemory::ints(Elem::U32, &[-1, 5]);
    let tile = load(&memory.tensor(&[2]), tiles(&[0]), &[2], ZERO);
    assert_eq!(list::<u32>(&tile), [u32::MAX, 5]);
    let wide = VecMemory::ints(Elem::I64, &[0; 2]);
    store(&TileValue::new(Elem::I64, &[2], vec![i64::MIN, 3]), &wide.tensor(&[2]), tiles(&[0]));
    assert_eq!(wide.to_ints(), [i64::MIN, 3]);
    for elem in [Elem::F16, Elem::BF16] {
        let memory = VecMemory::floats(elem, &[0.1, -2.5]);
        let tile = load(&memory.tensor(&[2]), tiles(&[0]), &[2], ZERO);
        assert_eq!(list::<f32>(&tile), memory.to_floats());
        assert_eq!(memory.to_floats()[1], -2.5);
    }
}
