//! Tensor core products and matrix loads and stores, with the fragment layouts of the PTX ISA (9.7.14.5).
//!
//! Lane l has group g = l / 4 and place t = l % 4. A register of 16-bit elements holds two, the lower column (A, C) or
//! row (B) in the lower half.
//!
//! | fragment | register r holds |
//! |---|---|
//! | A, 16-bit, k 16 | row g + 8 (r & 1), columns 2t + 8 (r / 2) and the next |
//! | A, 16-bit, k 8 | row g + 8 r, columns 2t and the next |
//! | A, tf32 | row g + 8 (r & 1), column t + 4 (r / 2) |
//! | B, 16-bit | rows 2t + 8 r and the next, column g |
//! | B, tf32 | row t + 4 r, column g |
//! | C and D, f32 | row g + 8 (r / 2), column 2t + (r & 1) |
//!
//! Products are exact in f32; each element adds them to its accumulator one by one, k upwards, rounding to nearest even.
//! Tensor cores add groups of products at once and round differently: compare within a tolerance.

use super::clock::MANY;
use super::counts::passes;
use super::number::widen;
use super::regs::Lanes;
use super::report::ReportKind;
use super::step::Step;
use crate::ptx::{Addr, MmaShape, Reg, Ty};

/// Bits of f32 that tf32 has.
const TF32_BITS: u32 = 0xffff_e000;

/// A fragment's element as f32: half `half` of a register, or all of a tf32 register.
fn element(ty: Ty, register: u64, half: usize) -> f32 {
    match ty {
        Ty::TF32 => f32::from_bits(register as u32 & TF32_BITS),
        _ => widen(ty, register >> (16 * half) & 0xffff),
    }
}

/// Rows 0..16 of A, `depth` columns each; B as `depth` rows of 8.
struct Operands {
    a: [[f32; 16]; 16],
    b: [[f32; 8]; 16],
    depth: usize,
}

impl Operands {
    fn of(shape: MmaShape, ty: Ty, a: &[&Lanes], b: &[&Lanes]) -> Operands {
        let depth = match shape {
            MmaShape::M16N8K16 => 16,
            MmaShape::M16N8K8 => 8,
            MmaShape::M16N8K4 => 4,
        };
        let mut out = Operands { a: [[0.0; 16]; 16], b: [[0.0; 8]; 16], depth };
        // Elements in a register, and registers' distance along k.
        let (pack, step) = if ty == Ty::TF32 { (1, 4) } else { (2, 8) };
        for lane in 0..32 {
            let (group, place) = (lane / 4, lane % 4);
            for half in 0..pack {
                for (r, values) in a.iter().enumerate() {
                    let k = pack * place + step * (r / 2) + half;
                    out.a[group + 8 * (r % 2)][k] = element(ty, values[lane], half);
                }
                for (r, values) in b.iter().enumerate() {
                    let k = pack * place + step * r + half;
                    out.b[k][group] = element(ty, values[lane], half);
                }
            }
        }
        out
    }

    fn multiply(&self, sums: &mut [[f32; 8]; 16]) {
        for (row, sums) in self.a.iter().zip(sums) {
            for (a, b) in row.iter().zip(&self.b).take(self.depth) {
                for (sum, b) in sums.iter_mut().zip(b) {
                    *sum += a * b;
                }
            }
        }
    }
}

/// The row and column of an accumulator's register.
fn accumulator(lane: usize, register: usize) -> (usize, usize) {
    (lane / 4 + 8 * (register / 2), lane % 4 * 2 + register % 2)
}

impl Step<'_, '_> {
    pub(super) fn mma(
        &mut self,
        shape: MmaShape,
        ty: Ty,
        d: &[Reg; 4],
        (a, b): (&[Reg], &[Reg]),
        c: &[Reg; 4],
    ) {
        self.need_32_lanes();
        let regs = &self.warp.regs;
        let planes =
            |list: &[Reg]| list.iter().map(|&reg| regs.plane(reg)).collect::<smallvec::SmallVec<[_; 4]>>();
        let operands = Operands::of(shape, ty, &planes(a), &planes(b));
        let mut sums = [[0.0f32; 8]; 16];
        for (register, &c) in c.iter().enumerate() {
            for (lane, &value) in regs.plane(c).iter().enumerate() {
                let (row, column) = accumulator(lane, register);
                sums[row][column] = f32::from_bits(value as u32);
            }
        }
        operands.multiply(&mut sums);
        for (register, &d) in d.iter().enumerate() {
            let values: Lanes = std::array::from_fn(|lane| {
                let (row, column) = accumulator(lane, register);
                super::number::bits_f32(sums[row][column])
            });
            self.set(d, &values);
        }
        self.engine.counts.matrix_flops += 2 * 16 * 8 * operands.depth as u64;
    }

    /// The lanes whose addresses are rows of `count` matrices of 8 rows.
    fn rows(&self, count: usize) -> std::ops::Range<usize> {
        0..8 * count
    }

    fn row_ok(&mut self, lane: usize, address: u64) -> bool {
        let ok = address.is_multiple_of(16);
        if !ok {
            self.report(ReportKind::Misaligned, Some(lane), || {
                format!("row address {address:#x} is no multiple of 16")
            });
        }
        ok
    }

    pub(super) fn ldmatrix(&mut self, trans: bool, dsts: &[Reg], addr: Addr) {
        self.need_32_lanes();
        let at = self.addresses(addr);
        let rows = self.rows(dsts.len());
        let mask = u32::MAX >> (32 - rows.len());
        self.engine.counts.shared_loads.add(passes(mask, &at, 16));
        let mut matrices = [[[0u8; 16]; 8]; 4];
        for lane in rows {
            if self.row_ok(lane, at[lane]) {
                self.read_shared_as(lane, MANY, at[lane], &mut matrices[lane / 8][lane % 8], false);
            }
        }
        let element = |matrix: usize, row: usize, column: usize| {
            let bytes = &matrices[matrix][row];
            u64::from(bytes[2 * column]) | u64::from(bytes[2 * column + 1]) << 8
        };
        for (m, &dst) in dsts.iter().enumerate() {
            let values: Lanes = std::array::from_fn(|lane| {
                let (group, pair) = (lane / 4, lane % 4 * 2);
                let of =
                    |i: usize| if trans { element(m, pair + i, group) } else { element(m, group, pair + i) };
                of(0) | of(1) << 16
            });
            self.set(dst, &values);
        }
    }

    pub(super) fn stmatrix(&mut self, trans: bool, addr: Addr, srcs: &[Reg]) {
        self.need_32_lanes();
        let at = self.addresses(addr);
        let rows = self.rows(srcs.len());
        let mask = u32::MAX >> (32 - rows.len());
        self.engine.counts.shared_stores.add(passes(mask, &at, 16));
        let mut matrices = [[[0u8; 16]; 8]; 4];
        for (matrix, &src) in matrices.iter_mut().zip(srcs) {
            for (lane, &value) in self.warp.regs.plane(src).iter().enumerate() {
                for i in 0..2 {
                    let (group, pair) = (lane / 4, lane % 4 * 2 + i);
                    let (row, column) = if trans { (pair, group) } else { (group, pair) };
                    let bytes = ((value >> (16 * i)) as u16).to_le_bytes();
                    matrix[row][2 * column..2 * column + 2].copy_from_slice(&bytes);
                }
            }
        }
        for lane in rows {
            if self.row_ok(lane, at[lane]) {
                self.write_shared_as(lane, MANY, at[lane], &matrices[lane / 8][lane % 8], false);
            }
        }
    }
}
