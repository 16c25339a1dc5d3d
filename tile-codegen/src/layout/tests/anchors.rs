//! Fragments against the row and column formulas of the PTX manual, coalescing against hand-written tables.

use super::super::{
    Conversion, Layout, LayoutError, MmaTile, WarpGrid, blocked, conversion, mma_a, mma_acc, mma_b,
};
use super::places;

const ONE: WarpGrid = WarpGrid { batch: 1, m: 1, n: 1 };

/// Checks registers of a single-instruction tile against `(i, group_id, thread_in_group) -> (row, col)`.
fn check(layout: &Layout, regs: usize, formula: impl Fn(usize, usize, usize) -> (usize, usize)) {
    assert_eq!(layout.num_regs(), regs);
    for (i, lane, warp) in places(layout) {
        let (row, col) = formula(i, lane >> 2, lane % 4);
        assert_eq!(layout.coords(i, lane, warp), [row, col], "register {i} of lane {lane}");
    }
}

#[test]
fn m16n8_accumulator() {
    check(&mma_acc(&[16, 8], ONE).unwrap(), 4, |i, group, t| {
        (if i < 2 { group } else { group + 8 }, t * 2 + (i & 1))
    });
}

#[test]
fn m16n8k16_operands() {
    check(&mma_a(&[16, 16], ONE, 2).unwrap(), 8, |i, group, t| {
        let row = if i < 2 || (4..6).contains(&i) { group } else { group + 8 };
        (row, if i < 4 { t * 2 + (i & 1) } else { t * 2 + (i & 1) + 8 })
    });
    check(&mma_b(&[16, 8], ONE, 2).unwrap(), 4, |i, group, t| {
        (if i < 2 { t * 2 + (i & 1) } else { t * 2 + (i & 1) + 8 }, group)
    });
}

#[test]
fn m16n8k8_tf32_operands() {
    check(&mma_a(&[16, 8], ONE, 4).unwrap(), 4, |i, group, t| {
        let row = if i == 0 || i == 2 { group } else { group + 8 };
        (row, if i < 2 { t } else { t + 4 })
    });
    check(&mma_b(&[8, 8], ONE, 4).unwrap(), 2, |i, group, t| (if i == 0 { t } else { t + 4 }, group));
}

#[test]
fn m16n8k32_operands() {
    check(&mma_a(&[16, 32], ONE, 1).unwrap(), 16, |i, group, t| {
        let row = if i < 4 || (8..12).contains(&i) { group } else { group + 8 };
        (row, if i < 8 { t * 4 + (i & 3) } else { t * 4 + (i & 3) + 16 })
    });
    check(&mma_b(&[32, 8], ONE, 1).unwrap(), 8, |i, group, t| {
        (if i < 4 { t * 4 + (i & 3) } else { t * 4 + (i & 3) + 16 }, group)
    });
}

/// Blocks of instructions in registers and parts of the tile in warps, written with divisions.
#[test]
fn larger_tiles_repeat_the_fragment() {
    let (batch, m, n, k) = (4, 64, 32, 64);
    let warps = WarpGrid { batch: 2, m: 2, n: 2 };
    let (own_b, own_m, own_n) = (batch / 2, m / 2, n / 2);
    let start = |w: usize| (w / 4 * own_b, w / 2 % 2 * own_m, w % 2 * own_n);

    let acc = mma_acc(&[batch, m, n], warps).unwrap();
    for (r, lane, w) in places(&acc) {
        let (i, block) = (r % 4, r / 4);
        let (nb, mb, bb) =
            (block % (own_n / 8), block / (own_n / 8) % (own_m / 16), block / (own_n / 8 * own_m / 16));
        let (b0, m0, n0) = start(w);
        let row = m0 + mb * 16 + lane / 4 + if i < 2 { 0 } else { 8 };
        let col = n0 + nb * 8 + lane % 4 * 2 + i % 2;
        assert_eq!(acc.coords(r, lane, w), [b0 + bb, row, col]);
    }
    let a = mma_a(&[batch, m, k], warps, 2).unwrap();
    for (r, lane, w) in places(&a) {
        let (i, block) = (r % 8, r / 8);
        let (kb, mb, bb) = (block % (k / 16), block / (k / 16) % (own_m / 16), block / (k / 16 * own_m / 16));
        let (b0, m0, _) = start(w);
        let row = m0 + mb * 16 + lane / 4 + if [2, 3, 6, 7].contains(&i) { 8 } else { 0 };
        let col = kb * 16 + lane % 4 * 2 + i % 2 + if i >= 4 { 8 } else { 0 };
        assert_eq!(a.coords(r, lane, w), [b0 + bb, row, col]);
    }
    let b = mma_b(&[batch, k, n], warps, 2).unwrap();
    for (r, lane, w) in places(&b) {
        let (i, block) = (r % 4, r / 4);
        let (kb, nb, bb) = (block % (k / 16), block / (k / 16) % (own_n / 8), block / (k / 16 * own_n / 8));
        let (b0, _, n0) = start(w);
        let row = kb * 16 + lane % 4 * 2 + i % 2 + if i >= 2 { 8 } else { 0 };
        assert_eq!(b.coords(r, lane, w), [b0 + bb, row, n0 + nb * 8 + lane / 4]);
    }
}

/// The result of one product is operand A of the next without moving between threads, when warps split rows only.
#[test]
fn accumulator_is_operand_a() {
    for (m, k, wm) in [(16, 16, 1), (64, 64, 4), (128, 32, 4), (64, 128, 2)] {
        let warps = WarpGrid { batch: 1, m: wm, n: 1 };
        let acc = mma_acc(&[m, k], warps).unwrap();
        let a = mma_a(&[m, k], warps, 2).unwrap();
        assert_eq!((acc.lane(), acc.warp()), (a.lane(), a.warp()));
        assert!(matches!(conversion(&acc, &a).unwrap(), Conversion::Identity | Conversion::Registers(_)));
        let tf32 = mma_a(&[m, k], warps, 4).unwrap();
        assert_eq!(conversion(&acc, &tf32).unwrap(), Conversion::Shared);
    }
}

#[test]
fn operands_too_small_are_errors() {
    let warps = WarpGrid { batch: 1, m: 2, n: 2 };
    assert!(
        matches!(mma_acc(&[16, 32], warps), Err(LayoutError::Mma(text)) if text.contains("M of at least 32"))
    );
    assert!(
        matches!(mma_acc(&[32, 8], warps), Err(LayoutError::Mma(text)) if text.contains("N of at least 16"))
    );
    assert!(
        matches!(mma_a(&[32, 8], warps, 2), Err(LayoutError::Mma(text)) if text.contains("K of at least 16"))
    );
    assert!(mma_b(&[8, 16], warps, 4).is_ok());
    assert!(mma_acc(&[64], ONE).is_err());
    assert!(mma_acc(&[32, 32], WarpGrid { batch: 2, m: 1, n: 1 }).is_err());
    assert_eq!(MmaTile::new(2), Ok(MmaTile { m: 16, n: 8, k: 16 }));
    assert!(MmaTile::new(8).is_err());
}

#[test]
fn blocked_walks_memory_in_order() {
    // 64 x 64 by 4 warps, 8 elements per thread: 8 lanes cover a row, a warp 4 rows, 4 warps 16 rows.
    let layout = blocked(&[64, 64], &[1, 0], 8, 4).unwrap();
    for (r, l, w) in places(&layout) {
        assert_eq!(layout.coords(r, l, w), [r / 8 * 16 + w * 4 + l / 8, l % 8 * 8 + r % 8]);
    }
    // Column-major: the same with the axes exchanged.
    assert_eq!(blocked(&[64, 64], &[0, 1], 8, 4).unwrap().permute(&[1, 0]).unwrap(), layout);
}

#[test]
fn blocked_replicates_small_tiles() {
    let layout = blocked(&[16], &[0], 4, 4).unwrap();
    assert_eq!((layout.num_regs(), layout.replication()), (4, (0b11100, 0b11)));
    assert_eq!(blocked(&[2], &[0], 8, 1).unwrap().num_regs(), 2);
    assert_eq!(blocked(&[], &[], 8, 2).unwrap(), Layout::scalar(2).unwrap());
    assert_eq!(blocked(&[4], &[0], 3, 1), Err(LayoutError::Vector(3)));
}
