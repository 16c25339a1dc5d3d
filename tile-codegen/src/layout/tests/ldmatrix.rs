//! `ldmatrix` descriptions, executed by a model of the instruction on memory that holds flat indices.

use super::super::{Layout, SharedLayout, WarpGrid, blocked, ldmatrix, mma_a, mma_acc, mma_b};
use super::memory;

/// Loads the whole tile as described and compares every register with the layout; returns `(matrices, trans)`.
fn simulate(layout: &Layout, shared: &SharedLayout) -> (usize, bool) {
    let description = ldmatrix(layout, shared).expect("the layout fits ldmatrix");
    let (cells, elem) = (memory(shared), shared.elem_bytes);
    for warp in 0..layout.num_warps() {
        let mut regs = vec![vec![None; 32]; layout.num_regs()];
        for step in &description.steps {
            assert_eq!(step.dests.len(), description.matrices);
            for (matrix, &dest) in step.dests.iter().enumerate() {
                let row = |r: usize| (description.row.at(matrix * 8 + r, warp) ^ step.offset) as usize;
                assert!((0..8).all(|r| row(r) % 16 == 0), "rows are aligned");
                for (lane, part) in (0..32).flat_map(|lane| (0..4 / elem).map(move |part| (lane, part))) {
                    let at = if description.trans {
                        row(2 * (lane % 4) + part) + lane / 4 * elem
                    } else {
                        row(lane / 4) + lane % 4 * 4 + part * elem
                    };
                    regs[dest + part][lane] = cells[at];
                }
            }
        }
        for (reg, lanes) in regs.iter().enumerate() {
            for (lane, &value) in lanes.iter().enumerate() {
                assert_eq!(
                    value,
                    Some(layout.flat(reg, lane, warp)),
                    "register {reg} lane {lane} warp {warp}"
                );
            }
        }
    }
    let wavefronts = description.wavefronts();
    if shared.swizzle != 0 {
        assert_eq!(wavefronts.actual, wavefronts.ideal, "swizzled rows have no conflicts");
    }
    (description.matrices, description.trans)
}

const WARPS: [WarpGrid; 3] =
    [WarpGrid { batch: 1, m: 1, n: 1 }, WarpGrid { batch: 1, m: 4, n: 1 }, WarpGrid { batch: 1, m: 2, n: 2 }];

#[test]
fn operands_of_16_bits_in_both_major_orders() {
    for warps in WARPS {
        for (m, n, k) in [(64, 16, 16), (64, 32, 64), (128, 64, 128)] {
            let a = mma_a(&[m, k], warps, 2).unwrap();
            let b = mma_b(&[k, n], warps, 2).unwrap();
            for placed in [SharedLayout::swizzled, SharedLayout::linear] {
                assert_eq!(simulate(&a, &placed(&[m, k], &[1, 0], 2).unwrap()), (4, false));
                assert_eq!(simulate(&a, &placed(&[m, k], &[0, 1], 2).unwrap()), (4, true));
                let x4 = if k == 16 && n / warps.n == 8 { 2 } else { 4 };
                assert_eq!(simulate(&b, &placed(&[k, n], &[0, 1], 2).unwrap()), (x4, false));
                assert_eq!(simulate(&b, &placed(&[k, n], &[1, 0], 2).unwrap()), (x4, true));
            }
        }
    }
}

#[test]
fn operands_with_a_batch() {
    let warps = WarpGrid { batch: 2, m: 2, n: 1 };
    let a = mma_a(&[4, 32, 32], warps, 2).unwrap();
    assert_eq!(simulate(&a, &SharedLayout::swizzled(&[4, 32, 32], &[2, 1, 0], 2).unwrap()), (4, false));
    let b = mma_b(&[4, 32, 32], warps, 2).unwrap();
    assert_eq!(simulate(&b, &SharedLayout::swizzled(&[4, 32, 32], &[2, 1, 0], 2).unwrap()), (4, true));
}

#[test]
fn operands_of_other_sizes_only_along_rows() {
    for warps in WARPS {
        for elem in [1, 4] {
            let (a, b) = (mma_a(&[64, 64], warps, elem).unwrap(), mma_b(&[64, 64], warps, elem).unwrap());
            let along_last = SharedLayout::swizzled(&[64, 64], &[1, 0], elem).unwrap();
            let along_first = SharedLayout::swizzled(&[64, 64], &[0, 1], elem).unwrap();
            assert_eq!(simulate(&a, &along_last), (4, false));
            assert_eq!(simulate(&b, &along_first), (4, false));
            assert_eq!(ldmatrix(&a, &along_first), None);
            assert_eq!(ldmatrix(&b, &along_last), None);
        }
    }
}

/// The smallest B operands have fewer than four matrices.
#[test]
fn few_matrices() {
    let b = mma_b(&[16, 8], WARPS[0], 2).unwrap();
    assert_eq!(simulate(&b, &SharedLayout::swizzled(&[16, 8], &[1, 0], 2).unwrap()), (2, true));
    let one = mma_acc(&[16, 8], WARPS[0]).unwrap();
    assert_eq!(simulate(&one, &SharedLayout::swizzled(&[16, 8], &[1, 0], 2).unwrap()), (2, false));
}

#[test]
fn other_layouts_do_not_fit() {
    let rows = blocked(&[64, 64], &[1, 0], 8, 4).unwrap();
    let shared = SharedLayout::swizzled(&[64, 64], &[1, 0], 2).unwrap();
    assert_eq!(ldmatrix(&rows, &shared), None);
    let wide = mma_a(&[64, 64], WARPS[1], 2).unwrap();
    assert_eq!(ldmatrix(&wide, &SharedLayout::swizzled(&[64, 64], &[1, 0], 8).unwrap()), None);
    // Warp 1 holds the elements of each pair exchanged: its rows would start in the middle of one.
    let exchanged = Layout::new(vec![16, 8], vec![1, 64], [2, 4, 8, 16, 32], vec![1]).unwrap();
    let shared = SharedLayout::swizzled(&[16, 8], &[1, 0], 2).unwrap();
    assert_eq!(ldmatrix(&exchanged, &shared), None);
    let plain = Layout::new(vec![16, 8], vec![1, 64], [2, 4, 8, 16, 32], vec![64]).unwrap();
    assert_eq!(simulate(&plain, &shared), (2, false));
}
