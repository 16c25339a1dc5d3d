//! Swizzles and accesses, by counting banks and moving every element.

use super::super::{SharedAccess, SharedLayout, WarpGrid, Wavefronts, blocked, mma_acc};
use super::{layouts, memory, places};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Cycles to serve lanes at these byte offsets with `bytes` each: lanes are served in groups that ask for 128 bytes.
fn brute_cycles(offsets: &[u32], bytes: u32) -> usize {
    let group = (128 / bytes.max(4)) as usize;
    let cycles = |lanes: &[u32]| {
        let mut banks = vec![BTreeSet::new(); 32];
        for at in lanes.iter().flat_map(|&offset| (0..bytes).map(move |byte| offset + byte)) {
            banks[(at / 4 % 32) as usize].insert(at / 4);
        }
        banks.iter().map(BTreeSet::len).max().unwrap()
    };
    offsets.chunks(group).map(cycles).sum()
}

#[test]
fn swizzles_are_those_of_the_hardware() {
    // 16-bit rows of 64, 32 and 16 elements: 128, 64 and 32 byte modes. Chunk c of row r, in 16-byte units.
    for (cols, mode) in [(64u32, 128u32), (32, 64), (16, 32)] {
        let shared = SharedLayout::swizzled(&[16, cols as usize], &[1, 0], 2).unwrap();
        assert_eq!((shared.swizzle, shared.align(), shared.bytes), (mode, 8 * mode, 32 * cols));
        for row in 0..16 {
            for chunk in 0..cols / 8 {
                let line = row * cols * 2 / 128;
                let expected = (row * cols / 8 + chunk) ^ (line % (mode / 16));
                assert_eq!(shared.offset(row * cols + chunk * 8), expected * 16);
            }
        }
    }
}

#[test]
fn long_rows_are_cut_into_boxes() {
    let shared = SharedLayout::swizzled(&[32, 128], &[1, 0], 2).unwrap();
    for (row, col) in (0..32).flat_map(|row| (0..128).map(move |col| (row, col))) {
        let (piece, chunk, inner) = (col / 64, col % 64 / 8, col % 8);
        let expected = piece * 32 * 128 + row * 128 + (chunk ^ (row % 8)) * 16 + inner * 2;
        assert_eq!(shared.offset(row * 128 + col), expected);
    }
}

#[test]
fn short_rows_stay_dense() {
    let swizzled = SharedLayout::swizzled(&[64, 8], &[1, 0], 2).unwrap();
    assert_eq!(swizzled, SharedLayout::linear(&[64, 8], &[1, 0], 2).unwrap());
    assert_eq!(SharedLayout::linear(&[4, 8], &[0, 1], 4).unwrap().offset(8), 4);
    assert!(SharedLayout::swizzled(&[8, 8], &[1, 0], 3).is_err());
    assert!(SharedLayout::swizzled(&[8, 8], &[1, 1], 2).is_err());
}

#[test]
fn eight_rows_of_chunks_hit_all_banks() {
    for elem in [1, 2, 4] {
        for (rows, cols) in [(8usize, 16usize), (16, 16), (32, 32), (64, 64), (16, 128), (128, 256)] {
            let shared = SharedLayout::swizzled(&[rows, cols], &[1, 0], elem).unwrap();
            let per_chunk = 16 / elem;
            for (first, chunk) in (0..rows / 8).flat_map(|r| (0..cols / per_chunk).map(move |c| (r * 8, c))) {
                let at = |row: usize| shared.offset(((first + row) * cols + chunk * per_chunk) as u32);
                let offsets: Vec<u32> = (0..8).map(at).collect();
                assert_eq!(brute_cycles(&offsets, 16), 1, "{rows}x{cols}x{elem}");
            }
        }
    }
}

#[test]
fn row_wise_stores_are_conflict_free() {
    for (rows, cols) in [(64, 16), (64, 32), (64, 64), (64, 128), (16, 256)] {
        let layout = blocked(&[rows, cols], &[1, 0], 8, 4).unwrap();
        let access = SharedAccess::new(&layout, &SharedLayout::swizzled(&[rows, cols], &[1, 0], 2).unwrap());
        assert_eq!((access.vector, access.bank_conflicts()), (8, 0));
        assert_eq!(access.wavefronts(), Wavefronts { actual: 4, ideal: 4 });
    }
}

#[test]
fn transposed_reads_conflict_without_a_swizzle() {
    // Lane l reads row l of a dense 32 x 32 tile of 32-bit elements, 4 columns at a time. All rows start in bank 0, so
    // each of the 4 quarter-warps takes 8 cycles.
    let layout = blocked(&[32, 32], &[0, 1], 1, 1).unwrap();
    let access = SharedAccess::new(&layout, &SharedLayout::linear(&[32, 32], &[1, 0], 4).unwrap());
    assert_eq!((access.vector, access.wavefronts().actual, access.bank_conflicts()), (4, 32, 28));
}

#[test]
fn accumulators_store_pairs() {
    let layout = mma_acc(&[64, 64], WarpGrid { batch: 1, m: 4, n: 1 }).unwrap();
    let access = SharedAccess::new(&layout, &SharedLayout::swizzled(&[64, 64], &[1, 0], 2).unwrap());
    assert_eq!((access.vector, access.bank_conflicts()), (2, 0));
    assert_eq!(access.vectors[1], [2, 3]);
    // Rows r and r + 8 differ by 1024 bytes, which no thread's offset contains: an immediate.
    assert_eq!(access.split(access.offsets[1]), (0, 1024));
}

fn shared_of(shape: &[usize], rotate: usize, swizzle: bool, elem_bytes: usize) -> SharedLayout {
    let mut order: Vec<usize> = (0..shape.len()).collect();
    order.rotate_left(rotate.checked_rem(shape.len()).unwrap_or(0));
    let make = if swizzle { SharedLayout::swizzled } else { SharedLayout::linear };
    make(shape, &order, elem_bytes).unwrap()
}

proptest! {
    #[test]
    fn accesses_move_every_element(
        layout in layouts(), rotate in 0usize..3, swizzle: bool, log_bytes in 0u32..5,
    ) {
        let shared = shared_of(layout.shape(), rotate, swizzle, 1 << log_bytes);
        let cells = memory(&shared);
        let access = SharedAccess::new(&layout, &shared);
        let bytes = (access.vector * shared.elem_bytes) as u32;
        prop_assert!(bytes <= 16);
        let all: BTreeSet<usize> = access.vectors.iter().flatten().copied().collect();
        prop_assert!(all.into_iter().eq(0..layout.num_regs()));
        for (regs, &offset) in access.vectors.iter().zip(&access.offsets) {
            let (xor, add) = access.split(offset);
            for w in 0..layout.num_warps() {
                let starts: Vec<u32> = (0..32).map(|l| access.thread.at(l, w) ^ offset).collect();
                for (l, &start) in starts.iter().enumerate() {
                    prop_assert_eq!(start, (access.thread.at(l, w) ^ xor) + add);
                    prop_assert_eq!(start % bytes, 0);
                    for (i, &reg) in regs.iter().enumerate() {
                        let at = start as usize + i * shared.elem_bytes;
                        prop_assert_eq!(cells[at], Some(layout.flat(reg, l, w)));
                    }
                }
                prop_assert_eq!(access.wavefronts().actual, brute_cycles(&starts, bytes));
            }
        }
    }

    #[test]
    fn placed_elements_are_all_held(layout in layouts(), rotate in 0usize..3, swizzle: bool) {
        let shared = shared_of(layout.shape(), rotate, swizzle, 2);
        let held: BTreeSet<u32> = places(&layout).map(|(r, l, w)| shared.offset(layout.flat(r, l, w))).collect();
        prop_assert!(held.into_iter().eq((0..shared.bytes).step_by(2)));
    }
}
