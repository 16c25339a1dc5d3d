//! Every conversion that the checker allows.

use tile_codegen::ptx::{FuncBuilder, Inst, Round, Sm, Ty, check_kernel, need};

use super::Probe;
use super::builder::Builder;
use super::values::{Random, edges, floats, random};

const TYPES: [Ty; 12] = [
    Ty::U8,
    Ty::S8,
    Ty::U16,
    Ty::S16,
    Ty::U32,
    Ty::S32,
    Ty::U64,
    Ty::S64,
    Ty::F16,
    Ty::BF16,
    Ty::F32,
    Ty::F64,
];

pub(super) fn probes() -> Vec<Probe> {
    let mut all: Vec<Probe> =
        TYPES.into_iter().flat_map(|src| [80, 90].map(|sm| from(src, sm))).flatten().collect();
    all.push(pairs());
    all
}

fn operands(ty: Ty) -> Vec<u64> {
    if ty.bits() == 8 {
        // The upper half of the register does not matter.
        return (0..256).step_by(5).chain([255, 127, 128, 0x1ff, 0x7f80, 0xff00]).collect();
    }
    if !ty.is_float() {
        return edges(ty, 44);
    }
    let mut values = floats(ty);
    values.extend(borders(ty));
    values.extend(random(ty, 32, 21));
    values
}

/// Floats around the borders of integers and halves between integers.
fn borders(ty: Ty) -> Vec<u64> {
    let mut draw = Random(22);
    let mut numbers: Vec<f64> =
        [0.5, 1.5, 2.5, 3.5, 0.49999997, 0.50000006, 126.5, 127.5, 128.5, 254.5, 255.5, 256.5].into();
    for power in [7, 8, 11, 15, 16, 24, 31, 32, 52, 53, 63, 64] {
        let border = 2f64.powi(power);
        numbers.extend([
            border,
            border - 0.5,
            border - 1.0,
            border * (1.0 - 2f64.powi(-24)),
            border * (1.0 + 2f64.powi(-23)),
        ]);
    }
    numbers.extend((0..16).map(|_| draw.unit() * 300.0));
    // Ties and near ties of the narrower formats.
    for (bits, scale) in [(8, 1.0), (11, 1.0), (8, 3.0), (11, 7.0), (11, 5.960464477539063e-8), (24, 1.0)] {
        let tie = 1.0 + 2f64.powi(-bits);
        numbers.extend(
            [tie, tie + 2f64.powi(1 - bits), tie * (1.0 + 2f64.powi(-23)), tie * (1.0 - 2f64.powi(-23))]
                .map(|x| x * scale),
        );
    }
    numbers.extend([65504.0, 65519.0, 65520.0, 65536.0, 3.3895e38, 3.3961775e38]);
    let both = numbers.iter().flat_map(|&x| [x, -x]);
    let bits = |x: f64| match ty {
        Ty::F16 => u64::from(half::f16::from_f64(x).to_bits()),
        Ty::BF16 => u64::from(half::bf16::from_f64(x).to_bits()),
        Ty::F64 => x.to_bits(),
        _ => u64::from((x as f32).to_bits()),
    };
    both.map(bits).collect()
}

fn rounds() -> impl Iterator<Item = Option<Round>> {
    [None].into_iter().chain(Round::ALL.iter().map(|&round| Some(round)))
}

/// The instruction, if there is one and its least architecture is `sm`.
fn allowed(inst: &Inst, sm: u32, dst: Ty, src: Ty) -> bool {
    let Inst::Cvt { round, ftz, sat, .. } = *inst else { return false };
    let mut f = FuncBuilder::new("cvt", 32);
    let from = f.mov_imm(Ty::U64, 0);
    let at = f.ld(tile_codegen::ptx::Space::Global, src.class().declared(), from);
    let to = f.reg(dst.class());
    f.emit(Inst::Cvt { dst_ty: dst, src_ty: src, round, ftz, sat, dst: to, src: at.into() });
    check_kernel(&f.finish(), Sm::SM_90A).is_ok() && need(inst).sm == sm
}

/// Every conversion from `src` that needs `sm`.
fn from(src: Ty, sm: u32) -> Option<Probe> {
    let mut p = Builder::elements(format!("convert/from {src}, sm_{sm}"), &[(src, operands(src))]);
    let mut any = false;
    for dst_ty in TYPES.into_iter().chain([Ty::TF32]) {
        for round in rounds() {
            for (ftz, sat) in [(false, false), (false, true), (true, false), (true, true)] {
                let dst = p.f.reg(dst_ty.class());
                let inst = Inst::Cvt { dst_ty, src_ty: src, round, ftz, sat, dst, src: p.x[0].into() };
                if !allowed(&inst, sm, dst_ty, src) {
                    continue;
                }
                p.f.emit(inst);
                let round = round.map_or(String::new(), |round| format!(".{}", round.name()));
                let flags =
                    [(ftz, ".ftz"), (sat, ".sat")].map(|(on, text)| if on { text } else { "" }).concat();
                p.out(format!("cvt{round}{flags}.{dst_ty}.{src}"), dst);
                any = true;
            }
        }
    }
    any.then(|| p.finish())
}

/// Two f32 to a pair of 16-bit floats.
fn pairs() -> Probe {
    let lo = operands(Ty::F32);
    let mut hi = lo.clone();
    hi.rotate_left(7);
    let mut p = Builder::elements("convert/pairs", &[(Ty::F32, lo), (Ty::F32, hi)]);
    for ty in [Ty::F16x2, Ty::BF16x2] {
        let value = p.f.cvt_pack(ty, p.x[0], p.x[1]);
        p.out(format!("cvt.rn.{ty}.f32"), value);
    }
    p.finish()
}
