//! Matrix loads, stores and products: every form, with the places of elements as the PTX manual lists them.

use super::{Case, at, builder, bytes_of};
use crate::ptx::*;

/// A kernel that multiplies fragments read from the inputs: register r of lane l is word `32 r + l`.
fn product(shape: MmaShape, ty: Ty, a: Vec<u32>, b: Vec<u32>, c: Vec<f32>) -> Vec<f32> {
    let (mut f, p) = builder(32, 3);
    let tid = f.special(SpecialReg::TidX);
    let fragment = |f: &mut FuncBuilder, base: Reg, count: usize, ty: Ty| -> Vec<Reg> {
        let first = at(f, base, tid, 4);
        let AddrBase::Reg(reg) = first.base else { unreachable!("the base is a register") };
        (0..count).map(|r| f.ld(Space::Global, ty, Addr::reg(reg, 128 * r as i64))).collect()
    };
    let (a_regs, b_regs) = shape.registers(ty).expect("the form exists");
    let a_regs = fragment(&mut f, p[0], a_regs, Ty::B32);
    let b_regs = fragment(&mut f, p[1], b_regs, Ty::B32);
    let d: [Reg; 4] = fragment(&mut f, p[2], 4, Ty::F32).try_into().expect("four registers");
    f.mma_in_place(shape, ty, d, &a_regs, &b_regs);
    let to = at(&mut f, p[3], tid, 16);
    f.st(Space::Global, Ty::F32, to, &d.map(Operand::from));
    let floats = c.into_iter().map(f32::to_bits);
    let inputs = vec![bytes_of(a), bytes_of(b), bytes_of(floats)];
    let case = Case { inputs, ..Case::new(f.finish(), 512) };
    case.clean_u32().into_iter().map(f32::from_bits).collect()
}

/// The bits of a small integer.
fn bits(ty: Ty, x: i64) -> u32 {
    match ty {
        Ty::BF16 => half::bf16::from_f32(x as f32).to_bits().into(),
        Ty::F16 => half::f16::from_f32(x as f32).to_bits().into(),
        _ => (x as f32).to_bits(),
    }
}

fn a_value(row: usize, k: usize) -> i64 {
    (row as i64 * 7 + k as i64 * 3) % 11 - 5
}

fn b_value(k: usize, column: usize) -> i64 {
    (k as i64 * 5 + column as i64 * 2) % 13 - 6
}

/// The manual's formulas for the row and column of element `i` of a lane (PTX ISA 9.7.14.5.6 to 9.7.14.5.8).
fn a_place(shape: MmaShape, ty: Ty, lane: usize, i: usize) -> (usize, usize) {
    let (group, thread) = (lane >> 2, lane % 4);
    match (shape, ty) {
        (MmaShape::M16N8K16, _) => {
            let row = if i < 2 || (4..6).contains(&i) { group } else { group + 8 };
            (row, thread * 2 + (i & 1) + if i >= 4 { 8 } else { 0 })
        }
        (_, Ty::TF32) => {
            let row = if i == 0 || i == 2 { group } else { group + 8 };
            (row, if i < 2 { thread } else { thread + 4 })
        }
        _ => (if i < 2 { group } else { group + 8 }, thread * 2 + (i & 1)),
    }
}

fn b_place(ty: Ty, lane: usize, i: usize) -> (usize, usize) {
    let (group, thread) = (lane >> 2, lane % 4);
    match ty {
        Ty::TF32 => (if i == 0 { thread } else { thread + 4 }, group),
        _ => (thread * 2 + (i & 1) + if i >= 2 { 8 } else { 0 }, group),
    }
}

fn fragment(ty: Ty, registers: usize, value: impl Fn(usize, usize) -> i64) -> Vec<u32> {
    let word = |register: usize, lane: usize| match ty {
        Ty::TF32 => bits(ty, value(lane, register)),
        _ => bits(ty, value(lane, 2 * register)) | bits(ty, value(lane, 2 * register + 1)) << 16,
    };
    (0..registers).flat_map(|r| (0..32).map(move |lane| (r, lane))).map(|(r, lane)| word(r, lane)).collect()
}

#[test]
fn products_of_every_form() {
    let forms = [
        (MmaShape::M16N8K16, Ty::BF16, 16),
        (MmaShape::M16N8K16, Ty::F16, 16),
        (MmaShape::M16N8K8, Ty::BF16, 8),
        (MmaShape::M16N8K8, Ty::F16, 8),
        (MmaShape::M16N8K8, Ty::TF32, 8),
        (MmaShape::M16N8K4, Ty::TF32, 4),
    ];
    for (shape, ty, depth) in forms {
        let (a_regs, b_regs) = shape.registers(ty).expect("the form exists");
        let a = fragment(ty, a_regs, |lane, i| {
            let (row, k) = a_place(shape, ty, lane, i);
            a_value(row, k)
        });
        let b = fragment(ty, b_regs, |lane, i| {
            let (k, column) = b_place(ty, lane, i);
            b_value(k, column)
        });
        let c: Vec<f32> = (0..128).map(|i| i as f32 * 0.5).collect();
        let found = product(shape, ty, a, b, c.clone());
        for lane in 0..32 {
            for i in 0..4 {
                // Rows groupID for c0 and c1, groupID + 8 for c2 and c3.
                let (row, column) = ((lane >> 2) + if i < 2 { 0 } else { 8 }, (lane % 4) * 2 + (i & 1));
                let sum: i64 = (0..depth).map(|k| a_value(row, k) * b_value(k, column)).sum();
                let right = sum as f32 + c[32 * i + lane];
                assert_eq!(found[4 * lane + i], right, "{} {ty}, lane {lane}, c{i}", shape.name());
            }
        }
    }
}

#[test]
fn tf32_products_ignore_the_low_bits() {
    let one = vec![1f32.to_bits() | 0x1fff; 128];
    let found = product(MmaShape::M16N8K8, Ty::TF32, one.clone(), one[..64].to_vec(), vec![0.0; 128]);
    assert_eq!(found, vec![8.0; 128]);
}

/// Thread l stores elements 16 l.. (16-bit, each its own index) of `count` 8x8 matrices, and all load them as fragments.
fn load_matrices(count: usize, trans: bool) -> Vec<u32> {
    let (mut f, p) = builder(32, 0);
    f.kernel_mut().shared = Shared::Static { bytes: 512, align: 128 };
    let tid = f.special(SpecialReg::TidX);
    let base = f.shared_addr();
    let mine = f.mad_lo(Ty::U32, tid, 16, base);
    let mine = f.materialize(Ty::U32, mine);
    let words: Vec<Operand> = (0..4)
        .map(|i| {
            let low = f.mad_lo(Ty::U32, tid, 8, 2 * i);
            let pair = f.mad_lo(Ty::U32, low, 0x1_0001, 0x1_0000);
            f.materialize(Ty::U32, pair).into()
        })
        .collect();
    f.st(Space::Shared, Ty::B32, mine, &words);
    f.bar_sync();
    let loaded = f.ldmatrix(count, trans, mine);
    let to = at(&mut f, p[0], tid, 4 * count as i64);
    for (i, &reg) in loaded.iter().enumerate() {
        let AddrBase::Reg(base) = to.base else { unreachable!("the base is a register") };
        f.st(Space::Global, Ty::B32, Addr::reg(base, 4 * i as i64), &[reg.into()]);
    }
    Case::new(f.finish(), 128 * count).clean_u32()
}

#[test]
fn matrix_loads() {
    for count in [1, 2, 4] {
        let (plain, trans) = (load_matrices(count, false), load_matrices(count, true));
        for lane in 0..32u32 {
            for m in 0..count as u32 {
                let element = |row: u32, column: u32| 64 * m + 8 * row + column;
                let at = (lane * count as u32 + m) as usize;
                let (group, pair) = (lane / 4, lane % 4 * 2);
                assert_eq!(plain[at], element(group, pair) | element(group, pair + 1) << 16);
                assert_eq!(trans[at], element(pair, group) | element(pair + 1, group) << 16);
            }
        }
    }
}

#[test]
fn matrix_stores_undo_matrix_loads() {
    for trans in [false, true] {
        let (mut f, p) = builder(32, 1);
        f.kernel_mut().shared = Shared::Static { bytes: 1024, align: 128 };
        let tid = f.special(SpecialReg::TidX);
        let base = f.shared_addr();
        let mine = f.mad_lo(Ty::U32, tid, 16, base);
        let mine = f.materialize(Ty::U32, mine);
        let from = at(&mut f, p[0], tid, 16);
        let words = f.ld_vec(Space::Global, Ty::B32, 4, None, from);
        let words: Vec<Operand> = words.iter().map(|&word| word.into()).collect();
        f.st(Space::Shared, Ty::B32, mine, &words);
        f.bar_sync();
        let srcs = f.ldmatrix(4, trans, mine);
        let addr = Addr::reg(mine, 512);
        f.emit(Inst::Stmatrix { trans, addr, srcs });
        f.bar_sync();
        let words = f.ld_vec(Space::Shared, Ty::B32, 4, None, addr);
        let words: Vec<Operand> = words.iter().map(|&word| word.into()).collect();
        let to = at(&mut f, p[1], tid, 16);
        f.st(Space::Global, Ty::B32, to, &words);
        let input: Vec<u32> = (0..128).map(|i| i * 0x0101_0103).collect();
        let case = Case { inputs: vec![bytes_of(input.clone())], ..Case::new(f.finish(), 512) };
        assert_eq!(case.clean_u32(), input, "trans: {trans}");
    }
}
