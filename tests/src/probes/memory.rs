//! Loads and stores: every type, vector, state space, cache operator and ordering.

use tile_codegen::ptx::{
    Addr, Inst, LdCache, MemSem, Operand, Reg, RegClass, Regs, Scope, Space, StCache, Ty,
};

use super::builder::Builder;
use super::values::random;
use super::{Compare, Probe};

const TYPES: [Ty; 14] = [
    Ty::B8,
    Ty::U8,
    Ty::S8,
    Ty::B16,
    Ty::U16,
    Ty::S16,
    Ty::B32,
    Ty::U32,
    Ty::S32,
    Ty::B64,
    Ty::U64,
    Ty::S64,
    Ty::F32,
    Ty::F64,
];

pub(super) fn probes() -> Vec<Probe> {
    let mut all: Vec<Probe> = [Space::Global, Space::Shared, Space::Local].map(vectors).into();
    all.extend([widening(), caches(), orderings()]);
    all
}

fn ld(p: &mut Builder, space: Space, ty: Ty, sem: MemSem, cache: Option<LdCache>, dsts: &[Reg], addr: Addr) {
    p.f.emit(Inst::Ld { space, ty, sem, cache, dsts: Regs::from_slice(dsts), addr });
}

/// The thread's 16 bytes in a state space, with the input's first two columns in them.
fn place(p: &mut Builder, space: Space) -> Addr {
    let addr = match space {
        Space::Shared => {
            p.shared(16 * 32);
            let base = p.f.shared_addr();
            let lane = p.low(p.index, 32);
            Addr::reg(p.f.mad_lo_s32(lane, 16u32, base).reg().expect("not a literal"), 0)
        }
        Space::Local => {
            p.f.kernel_mut().local_bytes = 32;
            Addr::local(16)
        }
        _ => {
            p.cell("words 0 and 1", Ty::B64, Compare::Bits);
            // Two regions of 8 bytes an element follow each other: 16 bytes a thread.
            let last = p.common("words 2 and 3", Ty::B64, Compare::Bits);
            let index = p.index;
            let first = p.f.add_s64(last, -(8i64 * 32)).reg().expect("not a literal");
            Addr::reg(p.element(first, index, 16), 0)
        }
    };
    refill(p, space, addr);
    addr
}

fn refill(p: &mut Builder, space: Space, addr: Addr) {
    for (i, x) in [p.x[0], p.x[1]].into_iter().enumerate() {
        p.f.st(space, Ty::B64, Addr { offset: addr.offset + 8 * i as i64, ..addr }, &[x.into()]);
    }
}

/// Loads each vector form, shows the elements, stores them back in reverse and shows all 16 bytes.
fn vectors(space: Space) -> Probe {
    let columns = [(Ty::B64, random(Ty::B64, 32, 71)), (Ty::B64, random(Ty::B64, 32, 72))];
    let mut p = Builder::new(format!("memory/{}", space.name()), 32, &columns);
    let addr = place(&mut p, space);
    for ty in TYPES {
        for count in [1, 2, 4].into_iter().filter(|&count| count as u32 * ty.bytes() <= 16) {
            refill(&mut p, space, addr);
            let regs = p.f.ld_vec(space, ty, count, None, addr);
            for (i, &reg) in regs.iter().enumerate() {
                p.out(format!("ld.{}.v{count}.{ty}, {i}", space.name()), reg);
            }
            let back: Vec<Operand> = regs.iter().rev().map(|&reg| reg.into()).collect();
            p.f.st(space, ty, addr, &back);
            for i in 0..2 {
                let word = p.f.ld(space, Ty::B64, Addr { offset: addr.offset + 8 * i, ..addr });
                p.out(format!("st.{}.v{count}.{ty}, word {i}", space.name()), word);
            }
        }
    }
    p.finish()
}

/// Loads into wider registers, and stores of their low part.
fn widening() -> Probe {
    let columns = [(Ty::B64, random(Ty::B64, 32, 73)), (Ty::B64, random(Ty::B64, 32, 74))];
    let mut p = Builder::new("memory/widening", 32, &columns);
    let addr = place(&mut p, Space::Shared);
    for ty in TYPES.into_iter().filter(|ty| ty.bits() < 64 && !ty.is_float()) {
        for class in [RegClass::B32, RegClass::B64].into_iter().filter(|class| class.bits() > ty.bits()) {
            let dst = p.f.reg(class);
            ld(&mut p, Space::Shared, ty, MemSem::Weak, None, &[dst], addr);
            p.out(format!("ld.{ty} to {} bits", class.bits()), dst);
            let source =
                if class == RegClass::B64 { p.x[1].into() } else { p.f.cvt(Ty::U32, Ty::U64, p.x[1]) };
            refill(&mut p, Space::Shared, addr);
            p.f.st(Space::Shared, ty, addr, &[source]);
            let word = p.f.ld(Space::Shared, Ty::B64, addr);
            p.out(format!("st.{ty} from {} bits", class.bits()), word);
            refill(&mut p, Space::Shared, addr);
        }
    }
    p.finish()
}

/// Cache operators do not change values.
fn caches() -> Probe {
    let mut p = Builder::new("memory/caches", 32, &[(Ty::U32, random(Ty::U32, 32, 75))]);
    let words: Vec<u8> = (0..32 * 16).map(|i| (i * 7 % 256) as u8).collect();
    let source = p.bytes(&words);
    let index = p.index;
    let at = Addr::reg(p.element(source, index, 16), 0);
    for &cache in LdCache::ALL {
        for count in [1, 2, 4] {
            let regs = p.f.ld_vec(Space::Global, Ty::B32, count, Some(cache), at);
            p.out(format!("ld.global.{}.v{count}.b32", cache.name()), regs[count - 1]);
        }
    }
    for &cache in StCache::ALL {
        let cell = p.cell(format!("st.global.{}", cache.name()), Ty::B32, Compare::Bits);
        let (addr, srcs) = (Addr::reg(cell, 0), [p.x[0].into()].into_iter().collect());
        p.f.emit(Inst::St {
            space: Space::Global,
            ty: Ty::B32,
            sem: MemSem::Weak,
            cache: Some(cache),
            addr,
            srcs,
        });
    }
    p.finish()
}

/// Orderings do not change values that no other thread writes.
fn orderings() -> Probe {
    let mut p = Builder::new("memory/orderings", 32, &[(Ty::B32, random(Ty::B32, 32, 76))]);
    for scope in [Scope::Cta, Scope::Cluster, Scope::Gpu, Scope::Sys] {
        for (store, load) in [
            (MemSem::Relaxed(scope), MemSem::Relaxed(scope)),
            (MemSem::Release(scope), MemSem::Acquire(scope)),
        ] {
            let name = format!("st.{}.{}", store.name(), scope.name());
            let cell = p.cell(name, Ty::B32, Compare::Bits);
            let (addr, srcs) = (Addr::reg(cell, 0), [p.x[0].into()].into_iter().collect());
            p.f.emit(Inst::St { space: Space::Global, ty: Ty::B32, sem: store, cache: None, addr, srcs });
            let dst = p.f.reg(RegClass::B32);
            ld(&mut p, Space::Global, Ty::B32, load, None, &[dst], addr);
            p.out(format!("ld.{}.{}", load.name(), scope.name()), dst);
        }
    }
    p.finish()
}
