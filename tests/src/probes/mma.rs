//! `mma.sync`: where each element of a fragment lies, and how products are added.
//!
//! Registers are filled by lane, register and half, so that no layout is taken for granted; integers small enough for
//! every format make results exact whatever the order of the sums.

use half::{bf16, f16};
use tile_codegen::ptx::{Inst, MmaShape, Regs, Ty};

use super::builder::Builder;
use super::values::{Random, f32_bits};
use super::{Compare, Probe};

const FORMS: [(MmaShape, Ty); 6] = [
    (MmaShape::M16N8K16, Ty::F16),
    (MmaShape::M16N8K16, Ty::BF16),
    (MmaShape::M16N8K8, Ty::F16),
    (MmaShape::M16N8K8, Ty::BF16),
    (MmaShape::M16N8K8, Ty::TF32),
    (MmaShape::M16N8K4, Ty::TF32),
];

pub(super) fn probes() -> Vec<Probe> {
    FORMS
        .into_iter()
        .flat_map(|(shape, ty)| [places(shape, ty), numbers(shape, ty), special(shape, ty)])
        .collect()
}

/// The bits of one element.
fn element(ty: Ty, value: f64) -> u64 {
    match ty {
        Ty::F16 => u64::from(f16::from_f64(value).to_bits()),
        Ty::BF16 => u64::from(bf16::from_f64(value).to_bits()),
        _ => f32_bits(value),
    }
}

/// Columns of registers for some warps: `value(warp, place)` fills them, with places counted lane by lane.
fn fragment(
    ty: Ty,
    warps: usize,
    registers: usize,
    mut value: impl FnMut(usize, usize) -> f64,
) -> Vec<Vec<u64>> {
    let pack = if ty.bits() == 16 { 2 } else { 1 };
    let mut columns = vec![Vec::new(); registers];
    for thread in 0..32 * warps {
        for (r, column) in columns.iter_mut().enumerate() {
            let place = |half| (thread % 32 * registers + r) * pack + half;
            let bits = (0..pack).map(|half| element(ty, value(thread / 32, place(half))) << (16 * half));
            column.push(bits.fold(0, |all, part| all | part));
        }
    }
    columns
}

fn build(name: String, shape: MmaShape, ty: Ty, fragments: [Vec<Vec<u64>>; 3], compare: Compare) -> Probe {
    let (na, nb) = shape.registers(ty).expect("a form of mma");
    let [a, b, c] = fragments;
    let columns = a.into_iter().chain(b).map(|column| (Ty::B32, column));
    let columns: Vec<_> = columns.chain(c.into_iter().map(|column| (Ty::F32, column))).collect();
    let mut p = Builder::new(name, 32, &columns);
    let (a, b) = (Regs::from_slice(&p.x[..na]), Regs::from_slice(&p.x[na..na + nb]));
    let c = std::array::from_fn(|i| p.x[na + nb + i]);
    let d = p.f.regs::<4>(Ty::F32.class());
    p.f.emit(Inst::Mma { shape, ty, d, a, b, c });
    for (i, d) in d.into_iter().enumerate() {
        p.out_as(format!("d{i}"), d, compare);
    }
    p.finish()
}

fn title(shape: MmaShape, ty: Ty, what: &str) -> String {
    format!("mma/{} {ty}, {what}", shape.name())
}

/// Elements numbered by their place: warp 0 numbers A, warp 1 numbers B, warp 2 numbers C, the other fragments hold small
/// integers; warps 3 to 10 have a single 1 in A or B.
fn places(shape: MmaShape, ty: Ty) -> Probe {
    let (na, nb) = shape.registers(ty).expect("a form of mma");
    let mut draw = Random(51);
    let mut small = move || draw.below(9) as f64 - 4.0;
    let hot = |warp: usize, place: usize| f64::from(u8::from(place == (warp * 29 + 5) % 64));
    let mut other = Random(52);
    let mut small_b = move || other.below(9) as f64 - 4.0;
    let warps = 11;
    let a = fragment(ty, warps, na, |warp, place| match warp {
        0 => place as f64,
        3..=6 => hot(warp, place),
        _ => small(),
    });
    let b = fragment(ty, warps, nb, |warp, place| match warp {
        1 => place as f64,
        7..=10 => hot(warp, place),
        _ => small_b(),
    });
    let c = fragment(Ty::F32, warps, 4, |warp, place| if warp == 2 { 1000.0 + place as f64 } else { 0.0 });
    build(title(shape, ty, "places"), shape, ty, [a, b, c], Compare::Bits)
}

/// Random numbers in -1..1, in 8 warps.
fn numbers(shape: MmaShape, ty: Ty) -> Probe {
    let (na, nb) = shape.registers(ty).expect("a form of mma");
    let mut draw = Random(53);
    let a = fragment(ty, 8, na, |_, _| draw.unit());
    let b = fragment(ty, 8, nb, |_, _| draw.unit());
    let c = fragment(Ty::F32, 8, 4, |_, _| draw.unit());
    // At most 17 terms below 1, each cut at a step of the largest sum so far.
    let compare = Compare::Within {
        rel: 0.0,
        abs: 17.0 * 2f64.powi(-20),
        why: "order and rounding of the sum are open",
    };
    build(title(shape, ty, "numbers"), shape, ty, [a, b, c], compare)
}

/// One unusual number each in A, B or C, all else zero or one: NaN, infinities, subnormals, negative zero, cancellation.
fn special(shape: MmaShape, ty: Ty) -> Probe {
    let (na, nb) = shape.registers(ty).expect("a form of mma");
    let tiny = if ty == Ty::F16 { 2f64.powi(-24) } else { 2f64.powi(-130) };
    let a_of = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, tiny, -0.0, 1.0, tiny, 0.0];
    let b_of = [1.0, 1.0, 0.0, 1.0, 0.0, 1.0, tiny, 1.0];
    let c_of = [0.0, 0.0, 0.0, 0.0, -0.0, -1.0, 0.0, 2f64.powi(-140)];
    let warps = a_of.len();
    // One row of A and one column of B have the number, wherever it lies: every lane of group 0 holds some of it.
    let a = fragment(ty, warps, na, |warp, place| if place == 0 { a_of[warp] } else { 0.0 });
    let b = fragment(ty, warps, nb, |warp, _| b_of[warp]);
    let c = fragment(Ty::F32, warps, 4, |warp, _| c_of[warp]);
    build(title(shape, ty, "special numbers"), shape, ty, [a, b, c], Compare::Bits)
}
