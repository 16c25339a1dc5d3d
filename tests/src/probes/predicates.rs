//! Comparisons, selections and logic on predicates.

use tile_codegen::ptx::{Cmp, PredOp, Ty};

use super::Probe;
use super::builder::Builder;
use super::values::{floats, integers, pairs, random};

const ORDERED: [Cmp; 6] = [Cmp::Eq, Cmp::Ne, Cmp::Lt, Cmp::Le, Cmp::Gt, Cmp::Ge];

pub(super) fn probes() -> Vec<Probe> {
    let integers = [Ty::U16, Ty::S16, Ty::U32, Ty::S32, Ty::U64, Ty::S64, Ty::B16, Ty::B32, Ty::B64];
    let mut all: Vec<Probe> = integers.into_iter().chain([Ty::F32, Ty::F64]).map(compare).collect();
    all.push(select());
    all.push(logic());
    all
}

/// The results of all comparisons as bits of one word, in the order of [`Cmp::ALL`].
fn compare(ty: Ty) -> Probe {
    let (list, comparisons): (Vec<u64>, &[Cmp]) = match ty {
        Ty::F32 | Ty::F64 => (
            floats(ty).into_iter().step_by(2).chain(floats(ty).into_iter().skip(1).step_by(4)).collect(),
            Cmp::ALL,
        ),
        Ty::B16 | Ty::B32 | Ty::B64 => (integers(ty), &ORDERED[..2]),
        _ => (integers(ty), &ORDERED),
    };
    let few: Vec<u64> = list.iter().copied().step_by(2).collect();
    let (a, b) = pairs(&list, &few);
    let mut p = Builder::elements(format!("predicates/setp {ty}"), &[(ty, a), (ty, b)]);
    let mut word = p.f.mov_imm(Ty::B32, 0);
    for (i, &cmp) in comparisons.iter().enumerate() {
        let pred = p.f.setp(cmp, ty, p.x[0], p.x[1]);
        let bit = p.f.selp(Ty::B32, 1i32 << i, 0u32, pred);
        let next = p.f.or_b32(word, bit);
        word = p.f.materialize(Ty::B32, next);
    }
    let names: Vec<_> = comparisons.iter().map(|cmp| cmp.name()).collect();
    p.out(format!("setp.{ty}, a bit each: {}", names.join(" ")), word);
    p.finish()
}

fn select() -> Probe {
    let types =
        [Ty::B16, Ty::B32, Ty::B64, Ty::U16, Ty::U32, Ty::U64, Ty::S16, Ty::S32, Ty::S64, Ty::F32, Ty::F64];
    let mut columns = vec![(Ty::U32, random(Ty::U32, 64, 31))];
    for (i, ty) in types.into_iter().enumerate() {
        columns.extend([0, 1].map(|j| (ty, random(ty, 64, 32 + 2 * i as u64 + j))));
    }
    let mut p = Builder::elements("predicates/selp", &columns);
    let pred = p.f.setp(Cmp::Gt, Ty::S32, p.x[0], 0u32);
    for (i, ty) in types.into_iter().enumerate() {
        let value = p.f.selp(ty, p.x[1 + 2 * i], p.x[2 + 2 * i], pred);
        p.out(format!("selp.{ty}"), value);
    }
    p.finish()
}

fn logic() -> Probe {
    let (a, b) = pairs(&[0, 1], &[0, 1]);
    let mut p = Builder::elements("predicates/logic", &[(Ty::U32, a), (Ty::U32, b)]);
    let a = p.f.setp(Cmp::Ne, Ty::U32, p.x[0], 0u32);
    let b = p.f.setp(Cmp::Ne, Ty::U32, p.x[1], 0u32);
    for &op in PredOp::ALL {
        let value = p.f.pred(op, a, b);
        p.out(format!("{}.pred", op.name()), value);
    }
    let value = p.f.pred_not(a);
    p.out("not.pred", value);
    let copy = p.f.mov(Ty::Pred, a);
    p.out("mov.pred", copy);
    p.finish()
}
