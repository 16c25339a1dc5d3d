//! Instructions with values worked out by plain Rust or by hand from the PTX manual.

use super::{as_float, map};
use crate::ptx::*;

/// Some 32-bit patterns with both signs, extremes and mixed bits.
const WORDS: [u32; 8] = [0, 1, 7, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0x1234_5678, 0xdead_beef];

fn check(body: impl FnOnce(&mut FuncBuilder, Reg) -> Operand, right: impl Fn(u32) -> u32) {
    let found = map(&WORDS, body);
    for (&x, found) in WORDS.iter().zip(found) {
        assert_eq!(found, right(x), "of {x:#x}");
    }
}

fn int(op: IntOp, ty: Ty, b: i64) -> impl FnOnce(&mut FuncBuilder, Reg) -> Operand {
    move |f, x| f.int(op, ty, x, Operand::Imm(b))
}

#[test]
fn integers() {
    check(int(IntOp::Add, Ty::S32, 5), |x| x.wrapping_add(5));
    check(int(IntOp::Sub, Ty::U32, 9), |x| x.wrapping_sub(9));
    check(int(IntOp::MulLo, Ty::S32, -3), |x| x.wrapping_mul(3).wrapping_neg());
    check(int(IntOp::MulHi, Ty::U32, 0x9000_0000), |x| ((u64::from(x) * 0x9000_0000) >> 32) as u32);
    check(int(IntOp::MulHi, Ty::S32, -7), |x| ((i64::from(x as i32) * -7) >> 32) as u32);
    check(int(IntOp::Div, Ty::S32, -3), |x| (x as i32).wrapping_div(-3) as u32);
    check(int(IntOp::Rem, Ty::U32, 10), |x| x % 10);
    check(int(IntOp::Min, Ty::S32, 3), |x| (x as i32).min(3) as u32);
    check(int(IntOp::Max, Ty::U32, 0x8000_0000), |x| x.max(0x8000_0000));
    check(int(IntOp::Shr, Ty::S32, 33), |x| ((x as i32) >> 31) as u32);
    check(int(IntOp::Shl, Ty::B32, 32), |_| 0);
    check(|f, x| f.int_un(IntUnOp::Popc, Ty::B32, x), u32::count_ones);
    check(|f, x| f.int_un(IntUnOp::Brev, Ty::B32, x), u32::reverse_bits);
    check(|f, x| f.mad_lo_s32(x, 3, 4), |x| x.wrapping_mul(3).wrapping_add(4));
}

#[test]
fn wide_products() {
    let high = |ty: Ty| {
        move |f: &mut FuncBuilder, x: Reg| {
            let dst = f.reg(RegClass::B64);
            f.emit(Inst::MulWide { ty, dst, a: x.into(), b: Operand::Imm(-5) });
            let [_, high] = f.unpack::<2>(Ty::B64, RegClass::B32, dst);
            high.into()
        }
    };
    check(high(Ty::S32), |x| ((i64::from(x as i32) * -5) >> 32) as u32);
    check(high(Ty::U32), |x| ((u64::from(x) * 0xffff_fffb) >> 32) as u32);
}

#[test]
fn bit_fields_and_permutations() {
    let [y, z] = [Operand::Imm(0x0ff0_f0f0), Operand::Imm(0x3333_5555)];
    // 0xE8 is the majority, 0xCA picks b where a, else c.
    check(
        |f, x| f.lop3(x, y, z, 0xe8).into(),
        |x| {
            let (y, z) = (0x0ff0_f0f0, 0x3333_5555);
            (x & y) | (x & z) | (y & z)
        },
    );
    check(|f, x| f.lop3(x, y, z, 0xca).into(), |x| (x & 0x0ff0_f0f0) | (!x & 0x3333_5555));
    let field = |ty: Ty| {
        move |f: &mut FuncBuilder, x: Reg| {
            let dst = f.reg(RegClass::B32);
            f.emit(Inst::Bfe { ty, dst, a: x.into(), pos: Operand::Imm(4), len: Operand::Imm(9) });
            dst.into()
        }
    };
    check(field(Ty::U32), |x| x >> 4 & 0x1ff);
    check(field(Ty::S32), |x| ((x << 19) as i32 >> 23) as u32);
    let insert = |f: &mut FuncBuilder, x: Reg| {
        let dst = f.reg(RegClass::B32);
        let (pos, len) = (Operand::Imm(8), Operand::Imm(4));
        f.emit(Inst::Bfi { ty: Ty::B32, dst, a: x.into(), b: Operand::Imm(-1), pos, len });
        dst.into()
    };
    check(insert, |x| 0xffff_f0ff | (x & 15) << 8);
    let funnel = |left: bool| {
        move |f: &mut FuncBuilder, x: Reg| {
            let (dst, b, c) = (f.reg(RegClass::B32), Operand::Imm(0x89ab_cdef), Operand::Imm(40));
            f.emit(Inst::Shf { left, dst, a: x.into(), b, c });
            dst.into()
        }
    };
    // shf.l: (b << 8) | (a >> 24); shf.r: (b << 24) | (a >> 8).
    check(funnel(true), |x| 0xabcd_ef00 | x >> 24);
    check(funnel(false), |x| 0xef00_0000 | x >> 8);
    // Bytes a0 b3 a3 and the sign of a3.
    check(
        |f, x| f.prmt(x, Operand::Imm(0x1122_3344), Operand::Imm(0xb370)).into(),
        |x| {
            let [a0, _, _, a3] = x.to_le_bytes();
            u32::from_le_bytes([a0, 0x11, a3, if a3 >= 128 { 255 } else { 0 }])
        },
    );
}

/// `body` on floats, with the bits of the result.
fn floats(input: &[f32], body: impl FnOnce(&mut FuncBuilder, Reg) -> Reg) -> Vec<f32> {
    let bits: Vec<u32> = input.iter().map(|x| x.to_bits()).collect();
    let found = map(&bits, |f, x| {
        let x = as_float(f, x);
        let y = body(f, x);
        let bits = f.reg(RegClass::B32);
        f.mov_to(Ty::B32, bits, y);
        bits.into()
    });
    found.into_iter().take(input.len()).map(f32::from_bits).collect()
}

#[test]
fn floats_round_once() {
    let x = [1.0 + f32::EPSILON, 3.0, 1e30, -0.1];
    let third = Operand::f32(1.0 / 3.0);
    assert_eq!(floats(&x, |f, x| f.mul_f32(x, third)), x.map(|x| x * (1.0 / 3.0)));
    // (1 + e)² - (1 + 2e) is e² exactly.
    let one = [1.0 + f32::EPSILON];
    let minus = Operand::f32(-(1.0 + 2.0 * f32::EPSILON));
    assert_eq!(floats(&one, |f, x| f.fma_f32(x, x, minus)), [f32::EPSILON * f32::EPSILON]);
    assert_eq!(floats(&x, |f, x| f.div_f32(1.0f32.into_operand(), x)), x.map(|x| 1.0 / x));
}

/// Literals of f32 for the tests.
trait IntoOperand {
    fn into_operand(self) -> Operand;
}

impl IntoOperand for f32 {
    fn into_operand(self) -> Operand {
        Operand::f32(self)
    }
}

#[test]
fn minima_and_maxima_of_nan_and_zeros() {
    let x = [f32::NAN, 1.0, -0.0, 0.0];
    let bits = |values: Vec<f32>| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    let zero = Operand::f32(0.0);
    assert_eq!(bits(floats(&x, |f, x| f.min_f32(x, zero))), [0, 0, 0x8000_0000, 0]);
    assert_eq!(bits(floats(&x, |f, x| f.max_f32(x, zero))), [0, 0x3f80_0000, 0, 0]);
    assert_eq!(bits(floats(&x, |f, x| f.min_nan_f32(x, zero))), [0x7fff_ffff, 0, 0x8000_0000, 0]);
}

#[test]
fn approximations_are_within_their_documented_error() {
    let x: Vec<f32> = (0..32).map(|i| 0.03 + 0.37 * i as f32).collect();
    type Case = (FloatUnOp, fn(f64) -> f64, f64);
    let ops: [Case; 6] = [
        (FloatUnOp::Ex2Approx, f64::exp2, 2e-7),
        (FloatUnOp::Lg2Approx, f64::log2, 4e-7),
        (FloatUnOp::RcpApprox, f64::recip, 1.2e-7),
        (FloatUnOp::RsqrtApprox, |x| 1.0 / x.sqrt(), 1.9e-7),
        (FloatUnOp::SinApprox, f64::sin, 5e-7),
        (FloatUnOp::TanhApprox, f64::tanh, 5e-4),
    ];
    for (op, right, error) in ops {
        for (x, found) in x.iter().zip(floats(&x, |f, x| f.float_un(op, Ty::F32, x))) {
            let right = right(f64::from(*x));
            let error = error * right.abs().max(1.0);
            assert!((f64::from(found) - right).abs() <= error, "{} of {x}: {found}", op.name());
        }
    }
    // 2^-130 is subnormal: kept, or flushed where the instruction says so.
    let flushed = |ftz: bool| {
        floats(&[-130.0], |f, a| {
            let dst = f.reg(RegClass::F32);
            f.emit(Inst::FloatUn { op: FloatUnOp::Ex2Approx, ty: Ty::F32, ftz, dst, a: a.into() });
            dst
        })
    };
    assert_eq!((flushed(false)[0], flushed(true)[0]), (f32::from_bits(1 << 19), 0.0));
}

#[test]
fn comparisons_with_nan() {
    let x = [1.0, f32::NAN, 3.0, 2.0];
    let less = |cmp: Cmp| {
        floats(&x, |f, x| {
            let pred = f.setp(cmp, Ty::F32, x, Operand::f32(2.0));
            let value = f.selp(Ty::F32, Operand::f32(1.0), Operand::f32(0.0), pred);
            f.materialize(Ty::F32, value)
        })
    };
    assert_eq!(less(Cmp::Lt), [1.0, 0.0, 0.0, 0.0]);
    assert_eq!(less(Cmp::Ltu), [1.0, 1.0, 0.0, 0.0]);
    assert_eq!(less(Cmp::Ne), [1.0, 0.0, 1.0, 0.0]);
    assert_eq!(less(Cmp::Neu), [1.0, 1.0, 1.0, 0.0]);
    assert_eq!(less(Cmp::Nan), [0.0, 1.0, 0.0, 0.0]);
}

/// The input of lane i is i.
fn lanes(body: impl FnOnce(&mut FuncBuilder, Reg) -> Operand) -> Vec<u32> {
    map(&(0..32).collect::<Vec<u32>>(), body)
}

#[test]
fn shuffles() {
    let shuffle = |mode: ShflMode, by: i64, clamp: i64| {
        lanes(move |f, src| {
            let (dst, pred, mask) = (f.reg(RegClass::B32), f.reg(RegClass::Pred), Operand::Imm(0xffff_ffff));
            let (lane, clamp) = (Operand::Imm(by), Operand::Imm(clamp));
            f.emit(Inst::Shfl { mode, dst, pred: Some(pred), src, lane, clamp, mask });
            let outside = f.int(IntOp::Add, Ty::U32, dst, 100);
            f.selp(Ty::U32, dst, outside, pred)
        })
    };
    let right = |from: fn(u32) -> u32| (0..32).map(from).collect::<Vec<u32>>();
    assert_eq!(shuffle(ShflMode::Bfly, 5, 31), right(|i| i ^ 5));
    assert_eq!(shuffle(ShflMode::Up, 3, 0), right(|i| if i < 3 { i + 100 } else { i - 3 }));
    assert_eq!(shuffle(ShflMode::Down, 4, 31), right(|i| if i > 27 { i + 100 } else { i + 4 }));
    // Segments of 8 lanes: the mask of segments is 0b11000.
    assert_eq!(shuffle(ShflMode::Idx, 2, 0x181f), right(|i| i / 8 * 8 + 2));
    assert_eq!(shuffle(ShflMode::Up, 1, 0x1800), right(|i| if i % 8 == 0 { i + 100 } else { i - 1 }));
}

#[test]
fn votes_and_reductions_of_lanes() {
    let ballot = lanes(|f, x| {
        let low = f.setp(Cmp::Lt, Ty::U32, x, 5);
        f.vote(VoteMode::Ballot, low).into()
    });
    assert_eq!(ballot, [31; 32]);
    for (mode, bound, right) in
        [(VoteMode::All, 32, 1), (VoteMode::All, 31, 0), (VoteMode::Any, 1, 1), (VoteMode::Uni, 9, 0)]
    {
        let votes = lanes(|f, x| {
            let low = f.setp(Cmp::Lt, Ty::U32, x, bound);
            let answer = f.vote(mode, low);
            f.selp(Ty::U32, 1, 0, answer)
        });
        assert_eq!(votes, [right; 32], "{}", mode.name());
    }
    let redux = |op: ReduxOp, ty: Ty| {
        lanes(move |f, src| {
            let dst = f.reg(RegClass::B32);
            f.emit(Inst::Redux { op, ty, dst, src, mask: Operand::Imm(0xffff_ffff) });
            dst.into()
        })
    };
    assert_eq!(redux(ReduxOp::Add, Ty::U32), [496; 32]);
    assert_eq!(redux(ReduxOp::Max, Ty::S32), [31; 32]);
    assert_eq!(redux(ReduxOp::Or, Ty::B32), [31; 32]);
}

#[test]
fn lanes_part_and_meet_again() {
    // The sum of 1..=lane by a loop, plus 1000 in odd lanes; then all lanes shuffle together.
    let found = lanes(|f, x| {
        let (sum, left) = (f.mov_imm(Ty::U32, 0), f.mov(Ty::U32, x));
        let (again, done, even) = (f.label(), f.label(), f.label());
        f.place(again);
        let none = f.setp(Cmp::Eq, Ty::U32, left, 0);
        f.bra_if(none, done, false);
        f.emit(Inst::Int { op: IntOp::Add, ty: Ty::U32, dst: sum, a: sum.into(), b: left.into() });
        f.emit(Inst::Int { op: IntOp::Sub, ty: Ty::U32, dst: left, a: left.into(), b: Operand::Imm(1) });
        f.bra(again, false);
        f.place(done);
        let odd = f.and_b32(x, 1);
        let is_even = f.setp(Cmp::Eq, Ty::U32, odd, 0);
        f.bra_if(is_even, even, false);
        f.emit(Inst::Int { op: IntOp::Add, ty: Ty::U32, dst: sum, a: sum.into(), b: Operand::Imm(1000) });
        f.place(even);
        f.shfl(ShflMode::Bfly, sum, 1).into()
    });
    let right = |i: u32| i * (i + 1) / 2 + i % 2 * 1000;
    assert_eq!(found, (0..32).map(|i| right(i ^ 1)).collect::<Vec<_>>());
}
