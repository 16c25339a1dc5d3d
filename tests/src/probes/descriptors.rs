//! Descriptors of shared operands: which bytes a product of a warpgroup reads, for every major order, swizzle and offset.
//!
//! Shared memory numbers its elements: first their low 8 bits, then the higher ones, each exact in every type. The other
//! operand picks one element for each sum, once by 1 and once by 256, so that an accumulator holds an element's number.

use half::{bf16, f16};
use tile_codegen::ptx::{Hopper, Reg, RegClass, Regs, Ty, Wgmma, WgmmaA};
use tile_codegen::simt::TensorSwizzle;

use super::Probe;
use super::builder::Builder;
use super::shared::{DATA, Fields, SWIZZLES, Tile, span, swizzle_name};
use super::values::f32_bits;

/// Threads of a warpgroup.
pub(super) const THREADS: u32 = 128;
/// Bytes of numbered elements.
const NUMBERED: i64 = 32 << 10;
/// Where the numbered elements begin, behind the operand that picks.
const NUMBERS: i64 = 3 * DATA;

pub(super) fn probes() -> Vec<Probe> {
    let mut all = Vec::new();
    for ty in [Ty::F16, Ty::BF16, Ty::TF32] {
        all.push(registers(ty));
        for (fields, from) in fields() {
            // bf16 is as f16, as far as places go: one case of each kind shows it.
            let rare = ty == Ty::BF16 && !(fields.swizzle == TensorSwizzle::B128 && from == 0);
            if (fields.trans && ty == Ty::TF32) || rare {
                continue;
            }
            all.push(left(ty, fields, from));
            all.push(right(ty, fields, from));
        }
    }
    all
}

/// Descriptors, and how many bytes after the beginning of the swizzle's pattern their operands begin.
fn fields() -> Vec<(Fields, u64)> {
    let mut all = Vec::new();
    for swizzle in SWIZZLES {
        let mut add = |trans, leading, stride, from| {
            all.push((Fields { swizzle, trans, leading, stride }, from));
        };
        let span = span(swizzle);
        if swizzle == TensorSwizzle::None {
            for trans in [false, true] {
                add(trans, 128, 256, 0);
                add(trans, 2048, 128, 0);
                add(trans, 16 * 67, 16 * 11, 48);
            }
            continue;
        }
        add(false, 16, 8 * span, 0);
        add(false, 0, 16 * span, 0);
        add(false, 1024, 8 * span, 8 * span);
        for from in (32..span).step_by(32) {
            add(false, 16, 8 * span, from);
        }
        add(true, 16 * span, 8 * span, 0);
        add(true, 1024, 4096, 0);
        add(true, 8 * span, 2048, 8 * span);
    }
    all
}

fn title(what: &str, ty: Ty, fields: Fields, from: u64) -> String {
    let major = if fields.trans { "MN-major" } else { "K-major" };
    let (leading, stride) = (fields.leading, fields.stride);
    let swizzle = swizzle_name(fields.swizzle);
    format!("descriptor/{what} {ty} {major}, {swizzle}, leading {leading}, stride {stride}, from {from}")
}

/// The bits of a number in a type of operands.
pub(super) fn bits(ty: Ty, value: f64) -> u64 {
    match ty {
        Ty::F16 => u64::from(f16::from_f64(value).to_bits()),
        Ty::BF16 => u64::from(bf16::from_f64(value).to_bits()),
        _ => f32_bits(value),
    }
}

/// Columns along K of one product.
pub(super) fn depth(ty: Ty) -> u64 {
    if ty == Ty::TF32 { 8 } else { 16 }
}

/// Fresh accumulators for `n` columns.
pub(super) fn accumulators(p: &mut Builder, n: u64) -> Vec<Reg> {
    (0..n / 2).map(|_| p.f.reg(RegClass::F32)).collect()
}

/// A product with K-major operands that is added to `d`, or replaces it.
pub(super) fn product(ty: Ty, d: &[Reg], a: WgmmaA, b: Reg, adds: bool) -> Wgmma {
    Wgmma {
        n: 2 * d.len() as u32,
        ty,
        d: d.to_vec(),
        a,
        b,
        scale_d: u32::from(adds).into(),
        neg_a: false,
        neg_b: false,
        trans_a: false,
        trans_b: false,
    }
}

/// Issues products between a fence and a wait.
pub(super) fn multiply(p: &mut Builder, products: impl IntoIterator<Item = Wgmma>) {
    p.f.hopper(Hopper::WgmmaFence);
    products.into_iter().for_each(|product| p.f.wgmma(product));
    p.f.hopper(Hopper::WgmmaCommit);
    p.f.hopper(Hopper::WgmmaWait(0));
}

pub(super) fn show(p: &mut Builder, name: &str, d: &[Reg]) {
    d.iter().enumerate().for_each(|(i, &d)| p.out(format!("{name}{i}"), d));
}

/// The low or the high part of the numbers of elements.
fn numbers(ty: Ty, high: bool) -> Vec<u8> {
    let size = ty.bytes() as usize;
    let part = |i: i64| if high { i >> 8 } else { i & 255 };
    let element = |i| bits(ty, part(i) as f64).to_le_bytes().into_iter().take(size);
    (0..NUMBERED / size as i64).flat_map(element).collect()
}

/// Column n of a K-major B without a swizzle picks element n % K of a row.
fn picks(ty: Ty, n: u64, value: f64) -> (Tile, Vec<u8>) {
    let tile = Tile { ty, swizzle: TensorSwizzle::None, rows: n, depth: depth(ty) };
    (tile, tile.image(|row, k| bits(ty, if row % depth(ty) == k { value } else { 0.0 })))
}

/// A of numbered elements in shared memory, seen through B.
fn left(ty: Ty, fields: Fields, from: u64) -> Probe {
    let mut p = Builder::new(title("A", ty, fields, from), THREADS, &[]);
    p.aligned_shared(NUMBERS + NUMBERED);
    let d = accumulators(&mut p, depth(ty));
    let a = fields.descriptor(&mut p, NUMBERS + from as i64);
    let (tile, _) = picks(ty, depth(ty), 0.0);
    let b = tile.descriptor(&mut p, DATA, 0);
    for (high, scale) in [(false, 1.0), (true, 256.0)] {
        p.fill(DATA, &picks(ty, depth(ty), scale).1, THREADS);
        p.fill(NUMBERS, &numbers(ty, high), THREADS);
        p.publish();
        let form = product(ty, &d, WgmmaA::Desc(a), b, high);
        multiply(&mut p, [Wgmma { trans_a: fields.trans, ..form }]);
        p.f.bar_sync();
    }
    show(&mut p, "d", &d);
    p.finish()
}

/// The registers of A of a warpgroup by thread, `value(row, k)` its elements: 16 rows a warp, as for `mma.sync`.
pub(super) fn a_columns(ty: Ty, value: impl Fn(u64, u64) -> f64) -> Vec<(Ty, Vec<u64>)> {
    let pack = if ty == Ty::TF32 { 1 } else { 2 };
    let register = |thread: u64, r: u64| {
        let (warp, lane) = (thread / 32, thread % 32);
        let (row, k) = (16 * warp + lane / 4 + 8 * (r % 2), pack * (lane % 4) + 4 * pack * (r / 2));
        (0..pack).fold(0, |word, half| word | bits(ty, value(row, k + half)) << (16 * half))
    };
    let column = |r| (0..u64::from(THREADS)).map(|thread| register(thread, r)).collect();
    (0..4).map(|r| (Ty::B32, column(r))).collect()
}

/// B of numbered elements in shared memory, seen through A in registers.
fn right(ty: Ty, fields: Fields, from: u64) -> Probe {
    let pick = |scale: f64| a_columns(ty, |row, k| if row % depth(ty) == k { scale } else { 0.0 });
    let columns = [pick(1.0), pick(256.0)].concat();
    let mut p = Builder::new(title("B", ty, fields, from), THREADS, &columns);
    p.aligned_shared(NUMBERS + NUMBERED);
    // MN-major operands of several patterns' width need the leading offset.
    let d = accumulators(&mut p, if fields.trans { 128 } else { 64 });
    let b = fields.descriptor(&mut p, NUMBERS + from as i64);
    for (high, first) in [(false, 0), (true, 4)] {
        p.fill(NUMBERS, &numbers(ty, high), THREADS);
        p.publish();
        let a = WgmmaA::Regs(Regs::from_slice(&p.x[first..first + 4]));
        multiply(&mut p, [Wgmma { trans_b: fields.trans, ..product(ty, &d, a, b, high) }]);
        p.f.bar_sync();
    }
    show(&mut p, "d", &d);
    p.finish()
}

/// A in registers that number their halves by thread and register, seen through B.
fn registers(ty: Ty) -> Probe {
    let pack = if ty == Ty::TF32 { 1 } else { 2 };
    let column = |high: bool, r: u64| {
        let half = |thread: u64, half: u64| {
            let number = (4 * thread + r) * pack + half;
            bits(ty, (if high { number >> 8 } else { number & 255 }) as f64) << (16 * half)
        };
        (0..u64::from(THREADS)).map(|thread| (0..pack).fold(0, |word, i| word | half(thread, i))).collect()
    };
    let columns: Vec<_> = (0..8).map(|i| (Ty::B32, column(i >= 4, i % 4))).collect();
    let mut p = Builder::new(format!("descriptor/A {ty} in registers"), THREADS, &columns);
    p.aligned_shared(2 * NUMBERS);
    let d = accumulators(&mut p, depth(ty));
    let (tile, _) = picks(ty, depth(ty), 0.0);
    let b = tile.descriptor(&mut p, DATA, 0);
    for (high, first, scale) in [(false, 0, 1.0), (true, 4, 256.0)] {
        p.fill(DATA, &picks(ty, depth(ty), scale).1, THREADS);
        p.publish();
        let a = WgmmaA::Regs(Regs::from_slice(&p.x[first..first + 4]));
        multiply(&mut p, [product(ty, &d, a, b, high)]);
        p.f.bar_sync();
    }
    show(&mut p, "d", &d);
    p.finish()
}
