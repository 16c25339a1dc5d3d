//! Products of warpgroups: every type and many widths, signs, scales, groups, and how sums are rounded.

use tile_codegen::ptx::{Cmp, Hopper, Operand, Reg, Regs, Ty, Wgmma, WgmmaA};
use tile_codegen::simt::TensorSwizzle;

use super::builder::Builder;
use super::descriptors::{THREADS, a_columns, accumulators, bits, depth, multiply, product, show};
use super::shared::{DATA, SWIZZLES, Tile, swizzle_name};
use super::values::Random;
use super::{Compare, Probe};

const TYPES: [Ty; 3] = [Ty::F16, Ty::BF16, Ty::TF32];
/// Columns of B, narrow to wide.
const WIDTHS: [u64; 9] = [8, 16, 24, 40, 64, 104, 128, 200, 256];

pub(super) fn probes() -> Vec<Probe> {
    let mut all = Vec::new();
    for ty in TYPES {
        all.extend(WIDTHS.map(|n| widths(ty, n)));
        all.extend([8, 72, 256].map(|n| from_registers(ty, n)));
        all.push(scales(ty));
        all.push(numbers(ty, 1));
        all.push(numbers(ty, 4));
        all.push(special(ty));
        all.push(cut(ty));
    }
    all.extend(SWIZZLES.map(steps));
    all.push(groups());
    all
}

/// Small integers, exact in every type, as are their sums.
fn small(seed: u64, row: u64, k: u64) -> f64 {
    Random(seed + 1000 * row + k).below(13) as f64 - 6.0
}

/// Two K-major operands in shared memory.
struct Pair {
    a: Tile,
    b: Tile,
}

impl Pair {
    fn new(ty: Ty, swizzle: TensorSwizzle, n: u64, depth: u64) -> Pair {
        let tile = |rows| Tile { ty, swizzle, rows, depth };
        Pair { a: tile(64), b: tile(n) }
    }

    fn b_at(&self) -> i64 {
        DATA + self.a.bytes().next_multiple_of(1024) as i64
    }

    /// Fills shared memory with `a(row, k)` and `b(column, k)`.
    fn fill(&self, p: &mut Builder, a: impl Fn(u64, u64) -> f64, b: impl Fn(u64, u64) -> f64) {
        let ty = self.a.ty;
        let [a, b] = [self.a.image(|i, k| bits(ty, a(i, k))), self.b.image(|i, k| bits(ty, b(i, k)))];
        p.aligned_shared(self.b_at() + b.len().next_multiple_of(16 * THREADS as usize) as i64);
        p.fill(DATA, &a, THREADS);
        p.fill(self.b_at(), &b, THREADS);
        p.publish();
    }

    /// The product of step `step`, which is added to `d` or replaces it.
    fn product(&self, p: &mut Builder, d: &[Reg], step: u64, adds: bool) -> Wgmma {
        let a = self.a.descriptor(p, DATA, step);
        let b = self.b.descriptor(p, self.b_at(), step);
        product(self.a.ty, d, WgmmaA::Desc(a), b, adds)
    }

    /// All steps, added up in `d`, which they replace.
    fn chain(&self, p: &mut Builder, d: &[Reg]) {
        let steps = self.a.depth / depth(self.a.ty);
        let products: Vec<_> = (0..steps).map(|step| self.product(p, d, step, step > 0)).collect();
        multiply(p, products);
    }
}

/// Four steps along rows of 128 bytes.
fn widths(ty: Ty, n: u64) -> Probe {
    let mut p = Builder::new(format!("wgmma/{ty} n{n}"), THREADS, &[]);
    let pair = Pair::new(ty, TensorSwizzle::B128, n, 4 * depth(ty));
    pair.fill(&mut p, |row, k| small(1, row, k), |column, k| small(2, column, k));
    let d = accumulators(&mut p, n);
    pair.chain(&mut p, &d);
    show(&mut p, "d", &d);
    p.finish()
}

/// Four steps along boxes of every swizzle.
fn steps(swizzle: TensorSwizzle) -> Probe {
    let mut p = Builder::new(format!("wgmma/steps, {}", swizzle_name(swizzle)), THREADS, &[]);
    let pair = Pair::new(Ty::BF16, swizzle, 32, 64);
    pair.fill(&mut p, |row, k| small(3, row, k), |column, k| small(4, column, k));
    let d = accumulators(&mut p, 32);
    pair.chain(&mut p, &d);
    show(&mut p, "d", &d);
    p.finish()
}

fn from_registers(ty: Ty, n: u64) -> Probe {
    let columns = a_columns(ty, |row, k| small(5, row, k));
    let mut p = Builder::new(format!("wgmma/{ty} n{n}, A in registers"), THREADS, &columns);
    let pair = Pair::new(ty, TensorSwizzle::B32, n, depth(ty));
    pair.fill(&mut p, |_, _| 0.0, |column, k| small(6, column, k));
    let d = accumulators(&mut p, n);
    d.iter().enumerate().for_each(|(i, &d)| p.f.mov_to(Ty::F32, d, Operand::f32(1000.0 * i as f32)));
    let a = WgmmaA::Regs(Regs::from_slice(&p.x[..4]));
    let b = pair.b.descriptor(&mut p, pair.b_at(), 0);
    multiply(&mut p, [product(ty, &d, a, b, true)]);
    show(&mut p, "d", &d);
    p.finish()
}

/// D added or not, by literal and by predicate; A and B negated or not.
fn scales(ty: Ty) -> Probe {
    let mut p = Builder::new(format!("wgmma/{ty} scales"), THREADS, &[]);
    let pair = Pair::new(ty, TensorSwizzle::B32, 8, depth(ty));
    pair.fill(&mut p, |row, k| small(7, row, k), |column, k| small(8, column, k));
    let blocks = p.f.mov_imm(Ty::B32, 1);
    let [yes, no] = [1u32, 2].map(|n| p.f.setp(Cmp::Eq, Ty::U32, blocks, n));
    let literals = [("1", Operand::Imm(1)), ("0", Operand::Imm(0))];
    let scales = literals.into_iter().chain([("true", yes.into()), ("false", no.into())]);
    for (name, scale_d) in scales {
        for (neg_a, neg_b) in [(false, false), (true, false), (false, true), (true, true)] {
            let d = accumulators(&mut p, 8);
            d.iter().for_each(|&d| p.f.mov_to(Ty::F32, d, Operand::f32(0.5)));
            let form = pair.product(&mut p, &d, 0, true);
            multiply(&mut p, [Wgmma { scale_d, neg_a, neg_b, ..form }]);
            let sign = |negative| if negative { '-' } else { '+' };
            show(&mut p, &format!("scale-d {name}, {}A {}B, d", sign(neg_a), sign(neg_b)), &d);
        }
    }
    p.finish()
}

/// Random numbers in -1..1, in one product or a chain of them.
fn numbers(ty: Ty, steps: u64) -> Probe {
    let mut p = Builder::new(format!("wgmma/{ty} numbers, {steps} steps"), THREADS, &[]);
    let pair = Pair::new(ty, TensorSwizzle::B128, 32, 4 * depth(ty));
    let value = |seed: u64| move |row: u64, k: u64| Random(seed + 1000 * row + k).unit();
    pair.fill(&mut p, value(11), value(12));
    let d = accumulators(&mut p, 32);
    let products: Vec<_> = (0..steps).map(|step| pair.product(&mut p, &d, step, step > 0)).collect();
    multiply(&mut p, products);
    // Up to 64 terms below 1, each cut at a step of the largest sum so far.
    let abs = (1 + depth(ty) * steps) as f64 * 2f64.powi(-19);
    let why = "order and rounding of the sum are open";
    for (i, &d) in d.iter().enumerate() {
        p.out_as(format!("d{i}"), d, Compare::Within { rel: 0.0, abs, why });
    }
    p.finish()
}

/// Every pair of a row with one unusual number and a column with one, added to unusual accumulators: NaN, infinities,
/// subnormals, negative zeros, the largest numbers.
fn special(ty: Ty) -> Probe {
    let (tiny, large) = match ty {
        Ty::F16 => (2f64.powi(-24), 65504.0),
        _ => (2f64.powi(-130), 2f64.powi(127)),
    };
    let list = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, tiny, -0.0, 1.0, large, -large];
    let sums = [0.0, -0.0, f32::NAN, f32::INFINITY, f32::MIN_POSITIVE / 4.0];
    let mut p = Builder::new(format!("wgmma/{ty} special numbers"), THREADS, &[]);
    let pair = Pair::new(ty, TensorSwizzle::B32, 8, depth(ty));
    let pick = move |row: u64, k: u64| if k == 0 { list[(row % 8) as usize] } else { 0.0 };
    pair.fill(&mut p, pick, move |column, k| if k < 2 { list[((column + 3 * k) % 8) as usize] } else { 0.0 });
    for sum in sums {
        let d = accumulators(&mut p, 8);
        d.iter().for_each(|&d| p.f.mov_to(Ty::F32, d, Operand::f32(sum)));
        let form = pair.product(&mut p, &d, 0, true);
        multiply(&mut p, [form]);
        show(&mut p, &format!("onto {sum:e}, d"), &d);
    }
    p.finish()
}

/// What a sum keeps of small terms beside a large one that goes away: the accumulator and the terms differ by powers of two.
fn cut(ty: Ty) -> Probe {
    let mut p = Builder::new(format!("wgmma/{ty} small terms"), THREADS, &[]);
    let pair = Pair::new(ty, TensorSwizzle::B32, 32, depth(ty));
    // Rows: 2^-(row % 16 / 2), times 3 for odd k. Columns: 2^-(column % 8) for k above column / 8, and a large number at k = 0 in
    // the even ones.
    let a =
        |row: u64, k: u64| 2f64.powi(-(row as i32 % 16) / 2) * if k.is_multiple_of(2) { 1.0 } else { 3.0 };
    let b = |column: u64, k: u64| match k {
        0 => 256.0 * f64::from(u8::from(column.is_multiple_of(2))),
        k if k > column / 8 => 2f64.powi(-(column as i32 % 8)) * if k == 5 { -1.0 } else { 1.0 },
        _ => 0.0,
    };
    pair.fill(&mut p, a, b);
    for sum in [0.0, 1.0, 4097.0, -65535.0, 16_777_215.0, 1.5e-5] {
        let d = accumulators(&mut p, 32);
        d.iter().for_each(|&d| p.f.mov_to(Ty::F32, d, Operand::f32(sum)));
        let form = pair.product(&mut p, &d, 0, true);
        multiply(&mut p, [form]);
        let abs = 17.0 * f64::from(sum.abs().max(1024.0)) * 2f64.powi(-22);
        let why = "order and rounding of the sum are open";
        for (i, &d) in d.iter().enumerate() {
            p.out_as(format!("onto {sum:e}, d{i}"), d, Compare::Within { rel: 0.0, abs, why });
        }
    }
    p.finish()
}

/// Groups of products: the first is read while the second may be under way; and products onto each other's sums. Those that
/// replace their sums have operands of their own: of two alike, the driver's assembler drops one.
fn groups() -> Probe {
    let mut p = Builder::new("wgmma/groups", THREADS, &[]);
    let pair = Pair::new(Ty::F16, TensorSwizzle::B64, 16, 64);
    pair.fill(&mut p, |row, k| small(15, row, k), |column, k| small(16, column, k));
    let sums = [accumulators(&mut p, 16), accumulators(&mut p, 16), accumulators(&mut p, 16)];
    let first = [pair.product(&mut p, &sums[0], 0, false)];
    let second = [pair.product(&mut p, &sums[1], 1, false), pair.product(&mut p, &sums[2], 2, false)];
    let third = [pair.product(&mut p, &sums[1], 0, true), pair.product(&mut p, &sums[1], 1, true)];
    p.f.hopper(Hopper::WgmmaFence);
    for group in [first.to_vec(), second.to_vec(), third.to_vec()] {
        group.into_iter().for_each(|product| p.f.wgmma(product));
        p.f.hopper(Hopper::WgmmaCommit);
    }
    p.f.hopper(Hopper::WgmmaWait(2));
    show(&mut p, "first group, d", &sums[0]);
    p.f.hopper(Hopper::WgmmaWait(1));
    show(&mut p, "second group, d", &sums[2]);
    p.f.hopper(Hopper::WgmmaWait(0));
    show(&mut p, "third group, d", &sums[1]);
    p.finish()
}
