//! Tensors on the CPU: constructors, views against plain index arithmetic, bounds, overlap, sharing.

use half::{bf16, f16};
use tile_runtime::{CpuBuffer, Device, DeviceTensor, Elem, Element, Error};

fn iota(shape: &[usize]) -> DeviceTensor<i32> {
    let values: Vec<i32> = (0..shape.iter().product::<usize>() as i32).collect();
    DeviceTensor::from_slice(&Device::cpu(), shape, &values).expect("one value an element")
}

/// Every index of `shape` in row-major order.
fn indices(shape: &[usize]) -> Vec<Vec<usize>> {
    shape.iter().fold(vec![vec![]], |heads, &extent| {
        let longer = |head: Vec<usize>| (0..extent).map(move |i| [head.clone(), vec![i]].concat());
        heads.into_iter().flat_map(longer).collect()
    })
}

#[test]
fn every_element_type_round_trips() {
    fn check<T: Element>(values: &[T]) {
        let tensor = DeviceTensor::from_slice(&Device::cpu(), &[values.len()], values).expect("fits");
        assert_eq!(tensor.to_vec().expect("host memory"), values);
        let full = DeviceTensor::full(&Device::cpu(), &[3, 2], values[1]).expect("fits");
        assert_eq!(full.to_vec().expect("host memory"), vec![values[1]; 6]);
        assert_eq!(size_of::<T>(), T::TYPE.bytes());
    }
    check(&[0.0_f32, -1.5, f32::MAX, f32::INFINITY]);
    check(&[f16::ZERO, f16::from_f32(-2.5), f16::MAX]);
    check(&[bf16::ZERO, bf16::from_f32(3.0), bf16::MIN]);
    check(&[0_i32, i32::MIN, i32::MAX]);
    check(&[0_i64, i64::MIN, i64::MAX, 1 << 40]);
    check(&[0_u32, u32::MAX, 7]);
    check(&[false, true, false]);
}

#[test]
fn slices_and_transposes_follow_index_arithmetic() {
    let tensor = iota(&[4, 5, 6]);
    let view = tensor.slice(1, 1..4).and_then(|t| t.transpose(0, 2)).expect("inside");
    assert_eq!(view.shape(), [6, 3, 4]);
    // Index (i, j, k) of the view is (k, j + 1, i) of the tensor.
    let expected: Vec<i32> =
        indices(&[6, 3, 4]).iter().map(|i| (i[2] * 30 + (i[1] + 1) * 6 + i[0]) as i32).collect();
    assert_eq!(view.to_vec().expect("host memory"), expected);
    assert!(!view.is_contiguous());
    let copy = view.contiguous().expect("fits");
    assert!(copy.is_contiguous() && copy.to_vec().expect("host memory") == expected);
    let selected = tensor.select(1, 2).expect("inside");
    let rows: Vec<i32> = indices(&[4, 6]).iter().map(|i| (i[0] * 30 + 12 + i[1]) as i32).collect();
    assert_eq!((selected.shape(), selected.to_vec().expect("host memory")), (&[4, 6][..], rows));
}

#[test]
fn permutations_of_random_shapes_follow_index_arithmetic() {
    // A small linear congruential generator keeps the cases fixed.
    let mut state = 12345_u32;
    let mut next = |below: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) as usize % below
    };
    for _ in 0..200 {
        let rank = next(5);
        let shape: Vec<usize> = (0..rank).map(|_| 1 + next(4)).collect();
        let mut axes: Vec<usize> = (0..rank).collect();
        for i in (1..rank).rev() {
            axes.swap(i, next(i + 1));
        }
        let tensor = iota(&shape);
        let view = tensor.permute(&axes).expect("a permutation");
        let new_shape: Vec<usize> = axes.iter().map(|&axis| shape[axis]).collect();
        let expected: Vec<i32> = indices(&new_shape)
            .iter()
            .map(|index| {
                let mut old = vec![0; rank];
                for (&axis, &i) in axes.iter().zip(index) {
                    old[axis] = i;
                }
                old.iter().zip(&shape).fold(0, |at, (&i, &extent)| at * extent as i32 + i as i32)
            })
            .collect();
        assert_eq!(view.shape(), new_shape);
        assert_eq!(view.to_vec().expect("host memory"), expected, "shape {shape:?}, axes {axes:?}");
    }
}

#[test]
fn broadcasts_and_negative_strides() {
    let row = iota(&[3]);
    let wide = row.broadcast_to(&[2, 3]).expect("broadcasts");
    assert_eq!(wide.strides(), [0, 1]);
    assert_eq!(wide.to_vec().expect("host memory"), [0, 1, 2, 0, 1, 2]);
    assert!(wide.repeats_elements() && !row.repeats_elements());
    let reversed = row.with_strides(&[3], &[-1], 2).expect("inside");
    assert_eq!(reversed.to_vec().expect("host memory"), [2, 1, 0]);
    assert!(row.broadcast_to(&[2, 4]).is_err());
    assert!(iota(&[2, 3]).broadcast_to(&[3]).is_err());
}

#[test]
fn views_share_memory() {
    let tensor = iota(&[2, 4]);
    let column = tensor.select(1, 3).expect("inside");
    column.copy_from_slice(&[-1, -2]).expect("two elements");
    assert_eq!(tensor.to_vec().expect("host memory"), [0, 1, 2, -1, 4, 5, 6, -2]);
    tensor.slice(0, 1..2).and_then(|row| row.fill(9)).expect("inside");
    assert_eq!(tensor.to_vec().expect("host memory"), [0, 1, 2, -1, 9, 9, 9, 9]);
    assert_eq!(column.to_vec().expect("host memory"), [-1, 9]);
}

#[test]
fn reshape_needs_contiguous_elements() {
    let tensor = iota(&[4, 6]);
    assert_eq!(tensor.reshape(&[2, 12]).expect("as many").shape(), [2, 12]);
    let error = tensor.transpose(0, 1).and_then(|t| t.reshape(&[24])).expect_err("not contiguous");
    assert!(error.to_string().contains("call contiguous() first"), "{error}");
    assert!(tensor.reshape(&[5, 5]).expect_err("another count").to_string().contains("24 elements"));
    // A dimension of extent 1 may have any stride and still be contiguous.
    let odd = tensor.with_strides(&[1, 24], &[1_000_000_000, 1], 0).expect("inside");
    assert!(odd.is_contiguous() && odd.reshape(&[24]).is_ok());
}

#[test]
fn nothing_leaves_its_storage() {
    let tensor = iota(&[10]);
    for (shape, strides, offset) in [
        (&[11][..], &[1][..], 0),
        (&[2], &[9], 1),
        (&[3], &[-1], 1),
        (&[1], &[1], 10),
        (&[2, 2], &[i64::MAX, 1], 0),
        (&[3], &[i64::MIN], 0),
    ] {
        let error = tensor.with_strides(shape, strides, offset).expect_err("outside");
        assert!(matches!(error, Error::OutOfBounds { .. } | Error::Shape { .. }), "{error}");
    }
    // An empty view touches nothing, wherever it starts.
    assert_eq!(tensor.with_strides(&[0], &[1], 10).and_then(|t| t.to_vec()).expect("empty"), [0; 0]);
    assert!(tensor.slice(0, 5..11).is_err() && tensor.slice(1, 0..1).is_err());
    #[expect(clippy::reversed_empty_ranges, reason = "it must be refused")]
    let backwards = tensor.slice(0, 6..5);
    assert!(backwards.is_err());
    assert!(
        tensor.select(0, 10).is_err() && tensor.permute(&[0, 0]).is_err() && tensor.transpose(0, 1).is_err()
    );
    assert!(DeviceTensor::<f32>::zeros(&Device::cpu(), &[usize::MAX, 2]).is_err());
    assert!(DeviceTensor::from_slice(&Device::cpu(), &[2], &[1.0_f32]).is_err());
    assert!(tensor.copy_from_slice(&[0; 9]).is_err());
}

#[test]
fn empty_tensors_are_ordinary() {
    let empty = DeviceTensor::<f32>::zeros(&Device::cpu(), &[3, 0, 2]).expect("no bytes");
    assert!(empty.is_contiguous() && empty.to_vec().expect("nothing").is_empty());
    empty.fill(1.0).expect("nothing");
    assert_eq!(empty.slice(0, 3..3).expect("empty").numel(), 0);
    assert!(!empty.overlaps(&empty));
    let scalar = DeviceTensor::from_slice(&Device::cpu(), &[], &[4.0_f32]).expect("one element");
    assert_eq!((scalar.rank(), scalar.to_vec().expect("one")), (0, vec![4.0]));
}

#[test]
fn overlap_is_decided_by_bytes() {
    let fused = iota(&[70, 161]);
    let (x, b) = (fused.slice(1, 64..128).expect("inside"), fused.slice(1, 128..144).expect("inside"));
    assert!(!x.overlaps(&b), "disjoint columns of one pitch");
    assert!(x.overlaps(&fused) && b.overlaps(&fused.slice(1, 143..145).expect("inside")));
    assert!(!fused.slice(0, 0..3).expect("inside").overlaps(&fused.slice(0, 3..9).expect("inside")));
    assert!(!fused.overlaps(&iota(&[70, 161])), "another storage");
    assert!(fused.overlaps(&fused.clone()));
    // A window of the last column and the next row's first column meets both.
    let edge = fused.with_strides(&[69, 2], &[161, 1], 160).expect("inside");
    assert!(edge.overlaps(&fused.slice(1, 0..1).expect("inside")));
    assert!(!edge.overlaps(&x));
    let row = fused.with_strides(&[2], &[1], 160).expect("inside");
    assert!(!row.overlaps(&fused.with_strides(&[2], &[1], 162).expect("inside")));
}

#[test]
fn overlap_never_misses_a_common_element() {
    let tensor = iota(&[60]);
    let views: Vec<_> = [0, 1, 5, 7]
        .into_iter()
        .flat_map(|offset| [[1, 2], [3, 2], [4, 3]].map(|shape| (offset, shape)))
        .flat_map(|(offset, shape)| {
            [[6, 1], [5, 2], [12, 6], [1, 0], [7, 3]].map(|strides| (offset, shape, strides))
        })
        .map(|(offset, shape, strides)| tensor.with_strides(&shape, &strides, offset).expect("inside"))
        .collect();
    let mut exact = 0;
    for a in &views {
        let set = a.to_vec().expect("host memory");
        let mut sorted = set.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert!(sorted.len() == set.len() || a.repeats_elements());
        for b in &views {
            let common = b.to_vec().expect("host memory").iter().any(|value| set.contains(value));
            assert!(
                a.overlaps(b) || !common,
                "{a:?} at {} and {b:?} at {}",
                a.offset_elements(),
                b.offset_elements()
            );
            exact += usize::from(a.overlaps(b) == common);
        }
    }
    assert!(exact * 10 > views.len() * views.len() * 7, "mostly exact: {exact}");
}

#[test]
fn meta_tensors_have_shapes_only() {
    let meta = DeviceTensor::<bf16>::meta_strided(&[2, 70_000, 512, 64], &[2_293_760_000, 32_768, 64, 1])
        .expect("fits");
    assert_eq!(meta.numel(), 4_587_520_000);
    assert!(meta.is_contiguous() && meta.device().is_meta());
    assert!(matches!(meta.to_vec(), Err(Error::NoData { .. })));
    assert!(matches!(meta.slice(0, 0..1).and_then(|t| t.fill(bf16::ONE)), Err(Error::NoData { .. })));
    assert_eq!(iota(&[2, 3]).to_device(&Device::meta()).expect("a shape").shape(), [2, 3]);
    assert!(DeviceTensor::<f32>::meta_strided(&[2], &[-1]).is_err());
}

#[test]
fn run_time_types_convert_only_to_themselves() {
    let tensor = iota(&[4]);
    assert_eq!(tensor.as_any().elem(), Elem::I32);
    assert!(tensor.as_any().typed::<i32>().is_ok());
    let error = tensor.as_any().typed::<f32>().expect_err("another type");
    assert!(error.to_string().contains("found element type i32, expected f32"), "{error}");
}

#[test]
fn buffers_convert_runs() {
    let values: Vec<f32> = (0..1000).map(|i| i as f32 * 0.37 - 100.0).collect();
    for (elem, size) in [(Elem::F32, 4), (Elem::F16, 2), (Elem::BF16, 2)] {
        let buffer = CpuBuffer::zeroed(3000 * size).expect("small");
        buffer.store_f32(elem, 2999, -3, &values).expect("inside");
        let mut back = vec![0.0; 1000];
        buffer.load_f32(elem, 2999, -3, &mut back).expect("inside");
        for (&value, &back) in values.iter().zip(&back) {
            let expected = match elem {
                Elem::F16 => f16::from_f32(value).to_f32(),
                Elem::BF16 => bf16::from_f32(value).to_f32(),
                _ => value,
            };
            assert_eq!(back, expected);
        }
    }
    let buffer = CpuBuffer::from_slice(&[u32::MAX, 5]).expect("small");
    let mut ints = [0; 2];
    buffer.load_i64(Elem::U32, 0, 1, &mut ints).expect("inside");
    assert_eq!(ints, [4_294_967_295, 5]);
    buffer.load_i64(Elem::I32, 0, 1, &mut ints).expect("inside");
    assert_eq!(ints, [-1, 5]);
    assert!(buffer.load_i64(Elem::U32, 1, 1, &mut ints).is_err());
    assert!(buffer.load_f32(Elem::U32, 0, 1, &mut [0.0]).is_err());
    // Byte 2 counts as true.
    let bytes = CpuBuffer::from_slice(&[0x0000_0102_u32]).expect("small");
    let mut bools = [false; 4];
    bytes.load_run(0, 1, &mut bools).expect("inside");
    assert_eq!(bools, [true, true, false, false]);
}

#[test]
fn racing_threads_lose_no_atomic_update_and_tear_no_value() {
    let buffer = CpuBuffer::zeroed(64 * 8).expect("small");
    std::thread::scope(|scope| {
        for thread in 0..4_i64 {
            let buffer = &buffer;
            scope.spawn(move || {
                for _ in 0..1000 {
                    buffer.fetch_update(0, |old: i64| old + 1).expect("inside");
                    buffer.store_run(1, 1, &[thread * 0x0101_0101_0101_0101; 63]).expect("inside");
                    let mut seen = [0_i64; 63];
                    buffer.load_run(1, 1, &mut seen).expect("inside");
                    assert!(seen.iter().all(|value| value % 0x0101_0101_0101_0101 == 0));
                }
            });
        }
    });
    let mut count = [0_i64];
    buffer.load_run(0, 1, &mut count).expect("inside");
    assert_eq!(count, [4000]);
}
