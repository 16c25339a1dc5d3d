//! Elements named one by one: counts, places in a queue, permutations; windows that lie anywhere.

use tile_runtime::prelude::*;

use super::{result, tensor};
use crate::small::{compact, histogram, total};

super::cases! { histograms tickets_are_all_different compaction_keeps_all permutations_are_inverse the_last_block_sums shifts }

/// Every number is counted once, whichever blocks meet at its place.
fn histograms(device: &Device) {
    // i * i modulo 1021: 0 once a period, and each square twice.
    let values: Vec<i32> = (0..1021 * 8_i64).map(|i| (i * i % 1021) as i32).collect();
    let x = tensor(device, &[values.len()], &values);
    let found = result(device, &[1021], 8, |out, grid| histogram(&x, out).launch(grid));
    for (number, &count) in found.iter().enumerate() {
        let right = if number == 0 { 8 } else { 16 * i32::from(values.contains(&(number as i32))) };
        assert_eq!(count, right, "{number}");
    }
}

#[tile_kernel]
fn draw(tickets: TensorMut<i32, 1>, next: TensorMut<i32, 1>) {
    let relaxed = Atomically::new().order(MemoryOrder::Relaxed);
    store(tickets, (bid(0),), atomic_add_with(next, (0 * arange::<i32>(64),), 1, relaxed));
}

/// Tickets that elements of all blocks draw from one place are all different, and none is left out.
fn tickets_are_all_different(device: &Device) {
    let mut next = DeviceTensor::<i32>::zeros(device, &[1]).expect("fits");
    let mut found = result(device, &[640], 10, |out, grid| draw(out, &mut next).launch(grid));
    found.sort_unstable();
    assert_eq!(found, (0..640).collect::<Vec<_>>());
    assert_eq!(next.to_vec().expect("copies"), [640]);
}

/// The elements above 0 are all there, once each.
fn compaction_keeps_all(device: &Device) {
    let values: Vec<f32> = (0..5000).map(|i| (i * 37 % 5000 - 2500) as f32).collect();
    let x = tensor(device, &[5000], &values);
    let mut count = DeviceTensor::<i32>::zeros(device, &[1]).expect("fits");
    let mut found = result(device, &[2600], 20, |out, grid| compact(&x, out, &mut count).launch(grid));
    found.sort_by(f32::total_cmp);
    let right: Vec<f32> = [0.0; 101].into_iter().chain((1..2500).map(|i| i as f32)).collect();
    assert_eq!(found, right);
    assert_eq!(count.to_vec().expect("copies"), [2499]);
}

#[tile_kernel]
fn through_a_permutation(
    x: Tensor<f32, 1>,
    by: Tensor<i32, 1>,
    there: TensorMut<f32, 1>,
    back: TensorMut<f32, 1>,
) {
    let by = load(by, (0,), (512,));
    let t = gather(x, (by,));
    store(there, (0,), t);
    scatter(back, (by,), t);
}

/// A scatter is the inverse of the gather with the same indices.
fn permutations_are_inverse(device: &Device) {
    let values: Vec<f32> = (0..512).map(|i| i as f32).collect();
    // Odd multiples permute what is below a power of two.
    let by: Vec<i32> = (0..512).map(|i| (i * 205 + 77) % 512).collect();
    let (x, list) = (tensor(device, &[512], &values), tensor(device, &[512], &by));
    let mut there = DeviceTensor::<f32>::zeros(device, &[512]).expect("fits");
    let back =
        result(device, &[512], 1, |out, grid| through_a_permutation(&x, &list, &mut there, out).launch(grid));
    assert_eq!(there.to_vec().expect("copies"), by.iter().map(|&i| i as f32).collect::<Vec<_>>());
    assert_eq!(back, values);
}

/// The block that comes last sees what all the others have stored.
fn the_last_block_sums(device: &Device) {
    let values: Vec<f32> = (0..200_000).map(|i| (i % 8) as f32).collect();
    let x = tensor(device, &[200_000], &values);
    let mut parts = DeviceTensor::<f32>::zeros(device, &[256]).expect("fits");
    let mut done = DeviceTensor::<i32>::zeros(device, &[1]).expect("fits");
    let found = result(device, &[1], 196, |out, grid| total(&x, &mut parts, &mut done, out).launch(grid));
    assert_eq!(found, [700_000.0]);
}

#[tile_kernel]
fn shift(x: Tensor<f32, 1>, out: TensorMut<f32, 1>, by: Scalar<i32>) {
    store(out, (bid(0),), load_at(x, (bid(0) * 128 - by,), (128,)));
}

/// A shift by any distance, in either direction, leaves zeros behind.
fn shifts(device: &Device) {
    let values: Vec<f32> = (1..=1000).map(|i| i as f32).collect();
    let x = tensor(device, &[1000], &values);
    for by in [0, 1, 3, 4, 127, 128, 999, 1000, 1_000_000, -1, -4, -999, -1000, -1_000_000] {
        let found = result(device, &[1000], 8, |out, grid| shift(&x, out, by).launch(grid));
        for (i, &y) in found.iter().enumerate() {
            let from = i as i64 - i64::from(by);
            let right = if (0..1000).contains(&from) { (from + 1) as f32 } else { 0.0 };
            assert_eq!(y, right, "element {i} shifted by {by}");
        }
    }
}
