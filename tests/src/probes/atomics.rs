//! Atomics and reductions in global and shared memory: old value and new value, each thread on an element of its own, and
//! sums of all threads in one place.

use tile_codegen::ptx::{Addr, AtomOp, Inst, MemSem, Operand, Reg, Scope, Space, Ty};

use super::builder::{Builder, THREADS};
use super::values::{edges, floats, integers, pairs};
use super::{Compare, Probe};

const ADDED: [Ty; 9] =
    [Ty::U32, Ty::S32, Ty::U64, Ty::F32, Ty::F64, Ty::F16, Ty::BF16, Ty::F16x2, Ty::BF16x2];

pub(super) fn probes() -> Vec<Probe> {
    let mut all = Vec::new();
    for space in [Space::Global, Space::Shared] {
        let types = [
            Ty::U32,
            Ty::S32,
            Ty::U64,
            Ty::S64,
            Ty::B32,
            Ty::B64,
            Ty::F32,
            Ty::F64,
            Ty::F16,
            Ty::BF16,
            Ty::F16x2,
            Ty::BF16x2,
            Ty::B16,
        ];
        all.extend(types.map(|ty| own(space, ty)));
        all.push(together(space));
    }
    all.push(orderings());
    all
}

fn ops(ty: Ty) -> Vec<AtomOp> {
    let mut ops = Vec::new();
    if ADDED.contains(&ty) {
        ops.push(AtomOp::Add);
    }
    match ty {
        Ty::U32 | Ty::S32 | Ty::U64 | Ty::S64 => ops.extend([AtomOp::Min, AtomOp::Max]),
        Ty::B16 => ops.push(AtomOp::Cas),
        Ty::B32 | Ty::B64 => ops.extend([AtomOp::And, AtomOp::Or, AtomOp::Xor, AtomOp::Exch, AtomOp::Cas]),
        _ => {}
    }
    ops
}

fn operands(ty: Ty) -> (Vec<u64>, Vec<u64>) {
    match ty {
        Ty::F16x2 | Ty::BF16x2 => {
            let half = floats(if ty == Ty::F16x2 { Ty::F16 } else { Ty::BF16 });
            let (a, b) = pairs(&half, &half);
            let join =
                |v: Vec<u64>| -> Vec<u64> { v.chunks_exact(2).map(|pair| pair[0] | pair[1] << 16).collect() };
            (join(a), join(b))
        }
        Ty::F32 | Ty::F64 | Ty::F16 | Ty::BF16 => {
            let few: Vec<u64> =
                floats(ty).into_iter().step_by(2).chain(edges(ty, 8).into_iter().rev().take(8)).collect();
            pairs(&few, &few)
        }
        _ => pairs(&integers(ty), &integers(ty)),
    }
}

/// Where the thread's element is in shared memory.
fn shared_slot(p: &mut Builder) -> Reg {
    p.shared(8 * THREADS);
    let base = p.f.shared_addr();
    let thread = p.low(p.index, THREADS);
    p.f.mad_lo_s32(thread, 8u32, base).reg().expect("not a literal")
}

fn emit(p: &mut Builder, op: AtomOp, ty: Ty, space: Space, addr: Addr, sem: MemSem) -> Reg {
    let dst = p.f.reg(ty.class());
    // A comparison that succeeds in about half of the threads.
    let odd = p.low(p.index, 2);
    let cmp = (op == AtomOp::Cas).then(|| {
        let odd = p.f.setp(tile_codegen::ptx::Cmp::Ne, Ty::U32, odd, 0u32);
        p.f.selp(ty.class().declared(), p.x[0], p.x[1], odd)
    });
    p.f.emit(Inst::Atom { op, ty, space, sem, dst, addr, cmp, src: p.x[1].into() });
    dst
}

/// Every operation of a type: from the first column's value, with the second's.
fn own(space: Space, ty: Ty) -> Probe {
    let (a, b) = operands(ty);
    let mut p = Builder::elements(format!("atomics/{} {ty}", space.name()), &[(ty, a), (ty, b)]);
    let slot = (space == Space::Shared).then(|| shared_slot(&mut p));
    let bits = ty.class().declared();
    let relaxed = MemSem::Relaxed(Scope::Gpu);
    for op in ops(ty) {
        let cell = p.cell(format!("{}.{ty}: new value", op.name()), bits, Compare::Bits);
        let place = Addr::reg(slot.unwrap_or(cell), 0);
        p.f.st(space, bits, place, &[p.x[0].into()]);
        let old = emit(&mut p, op, ty, space, place, relaxed);
        p.out(format!("atom.{}.{ty}: old value", op.name()), old);
        if let Some(slot) = slot {
            let new = p.f.ld(Space::Shared, bits, slot);
            p.f.st(Space::Global, bits, Addr::reg(cell, 0), &[new.into()]);
        }
        if matches!(op, AtomOp::Exch | AtomOp::Cas) {
            continue;
        }
        let cell = p.cell(format!("red.{}.{ty}: new value", op.name()), bits, Compare::Bits);
        let place = Addr::reg(slot.unwrap_or(cell), 0);
        p.f.st(space, bits, place, &[p.x[0].into()]);
        p.f.red(op, ty, space, place, p.x[1]);
        if let Some(slot) = slot {
            let new = p.f.ld(Space::Shared, bits, slot);
            p.f.st(Space::Global, bits, Addr::reg(cell, 0), &[new.into()]);
        }
    }
    p.finish()
}

/// All threads of a warp add to one place, in every form of the address.
fn together(space: Space) -> Probe {
    let column: Vec<u64> = (0..32).map(|lane| 1 + 3 * lane).collect();
    let mut p = Builder::new(format!("atomics/together {}", space.name()), 32, &[(Ty::U32, column)]);
    p.shared(64);
    for (i, ty) in [Ty::U32, Ty::U64, Ty::F32, Ty::F64].into_iter().enumerate() {
        let source = p.f.cvt(ty, Ty::U32, p.x[0]);
        let place = p.common(format!("sum of 32 lanes {ty}"), ty, Compare::Bits);
        if space == Space::Global {
            p.f.red(AtomOp::Add, ty, space, Addr::reg(place, 0), source);
            continue;
        }
        let base = p.f.shared_addr();
        let (shared, first) =
            (Addr::reg(base, 8 * i as i64), p.f.setp(tile_codegen::ptx::Cmp::Eq, Ty::U32, p.index, 0u32));
        let zero = p.f.cvt(ty, Ty::U32, 0u32);
        let store = |srcs: [Operand; 1], space, addr| Inst::St {
            space,
            ty,
            sem: MemSem::Weak,
            cache: None,
            addr,
            srcs: srcs.into_iter().collect(),
        };
        p.f.emit_if(first, store([zero], Space::Shared, shared));
        p.f.bar_sync();
        p.f.red(AtomOp::Add, ty, space, shared, source);
        p.f.bar_sync();
        let sum = p.f.ld(space, ty, shared);
        p.f.emit_if(first, store([sum.into()], Space::Global, Addr::reg(place, 0)));
    }
    p.finish()
}

/// Every ordering and scope once.
fn orderings() -> Probe {
    let mut p =
        Builder::elements("atomics/orderings", &[(Ty::U32, vec![5; 64]), (Ty::U32, (0..64).collect())]);
    for scope in [Scope::Cta, Scope::Gpu, Scope::Sys] {
        for sem in
            [MemSem::Relaxed(scope), MemSem::Acquire(scope), MemSem::Release(scope), MemSem::AcqRel(scope)]
        {
            let cell = p.cell(format!("atom.{}.{}", sem.name(), scope.name()), Ty::B32, Compare::Bits);
            emit(&mut p, AtomOp::Add, Ty::U32, Space::Global, Addr::reg(cell, 0), sem);
            if matches!(sem, MemSem::Relaxed(_) | MemSem::Release(_)) {
                let addr = Addr::reg(
                    p.cell(format!("red.{}.{}", sem.name(), scope.name()), Ty::B32, Compare::Bits),
                    0,
                );
                let src = p.x[1].into();
                p.f.emit(Inst::Red { op: AtomOp::Add, ty: Ty::U32, space: Space::Global, sem, addr, src });
            }
        }
    }
    p.finish()
}
