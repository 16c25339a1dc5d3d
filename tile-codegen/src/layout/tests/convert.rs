//! Conversions, by brute force over all threads.

use super::super::{
    Conversion, Layout, LayoutError, SharedAccess, WarpGrid, blocked, conversion, mma_acc, scratch,
};
use super::layouts;
use proptest::prelude::*;

/// A register map that works in every thread, by search.
fn brute_map(from: &Layout, to: &Layout) -> Option<Vec<usize>> {
    let works = |target: usize, source: usize| {
        (0..to.num_warps()).all(|w| (0..32).all(|l| to.flat(target, l, w) == from.flat(source, l, w)))
    };
    (0..to.num_regs()).map(|target| (0..from.num_regs()).find(|&source| works(target, source))).collect()
}

#[test]
fn mismatched_tiles_are_errors() {
    let a = blocked(&[8, 8], &[1, 0], 2, 2).unwrap();
    let b = blocked(&[64], &[0], 2, 2).unwrap();
    let c = blocked(&[8, 8], &[1, 0], 2, 4).unwrap();
    assert!(matches!(conversion(&a, &b), Err(LayoutError::Shape { .. })));
    assert_eq!(conversion(&a, &c), Err(LayoutError::Warps(4)));
}

#[test]
fn registers_can_be_reordered() {
    let from = Layout::new(vec![128], vec![1, 2], [4, 8, 16, 32, 64], vec![]).unwrap();
    let to = Layout::new(vec![128], vec![2, 3], [4, 8, 16, 32, 64], vec![]).unwrap();
    assert_eq!(conversion(&from, &to), Ok(Conversion::Registers(vec![0, 2, 3, 1])));
    assert_eq!(conversion(&from, &from), Ok(Conversion::Identity));
}

#[test]
fn scratch_avoids_conflicts_between_accumulators_and_rows() {
    let acc = mma_acc(&[64, 64], WarpGrid { batch: 1, m: 2, n: 2 }).unwrap();
    let rows = blocked(&[64, 64], &[1, 0], 8, 4).unwrap();
    let shared = scratch(&acc, &rows, 2).unwrap();
    let (write, read) = (SharedAccess::new(&acc, &shared), SharedAccess::new(&rows, &shared));
    assert_eq!((write.bank_conflicts(), read.bank_conflicts(), read.vector), (0, 0, 8));
    // Columns fastest on both sides: the placement follows.
    let turn = |layout: &Layout| layout.permute(&[1, 0]).unwrap();
    let shared = scratch(&turn(&acc), &turn(&rows), 2).unwrap();
    assert_eq!(SharedAccess::new(&turn(&rows), &shared).vector, 8);
}

proptest! {
    #[test]
    fn conversions_agree_with_search(from in layouts(), rows in prop::collection::vec((0usize..8, 0usize..8), 0..6)) {
        // A random invertible change of the register bases, then search.
        let mut reg = from.reg().to_vec();
        for (to, by) in rows {
            if to < reg.len() && by < reg.len() && to != by {
                reg[to] ^= reg[by];
            }
        }
        let to = Layout::new(from.shape().to_vec(), reg, *from.lane(), from.warp().to_vec()).unwrap();
        let found = match conversion(&from, &to).unwrap() {
            Conversion::Identity => Some((0..to.num_regs()).collect()),
            Conversion::Registers(map) => Some(map),
            Conversion::Shared => None,
        };
        prop_assert!(found.is_some());
        prop_assert_eq!(found, brute_map(&from, &to));
    }

    #[test]
    fn unrelated_layouts_agree_with_search(from in layouts(), other in layouts()) {
        let Ok(to) = other.reshape(from.shape()) else { return Ok(()) };
        if to.num_warps() != from.num_warps() {
            return Ok(());
        }
        let found = match conversion(&from, &to).unwrap() {
            Conversion::Identity => Some((0..to.num_regs()).collect()),
            Conversion::Registers(map) => Some(map),
            Conversion::Shared => None,
        };
        prop_assert_eq!(found, brute_map(&from, &to));
    }

    #[test]
    fn scratch_is_dense(from in layouts(), log_bytes in 0u32..5) {
        let shared = scratch(&from, &from, 1 << log_bytes).unwrap();
        prop_assert_eq!(shared.bytes as usize, from.numel() << log_bytes);
    }
}
