//! `atom` and `red`: read-modify-write of memory, lane by lane.

use super::access::word;
use super::counts::lanes;
use super::memory::Access;
use super::nan::{NAN_16, bits_f64, bits_f64_in_memory};
use super::number::{bits_f32, convert, flush, widen};
use super::report::ReportKind;
use super::step::Step;
use crate::ptx::{Addr, AtomOp, IntOp, MemSem, Operand, Reg, Round, Space, Ty, int_bin};

/// The new value of memory that holds `old`.
fn combine(op: AtomOp, ty: Ty, global: bool, old: u64, cmp: u64, src: u64) -> u64 {
    let int = |op: IntOp| int_bin(op, ty, old as i64, src as i64).expect("no division") as u64;
    match op {
        AtomOp::Add if ty.is_float() => add(ty, global, old, src),
        AtomOp::Add => int(IntOp::Add),
        AtomOp::Min => int(IntOp::Min),
        AtomOp::Max => int(IntOp::Max),
        AtomOp::And => old & src,
        AtomOp::Or => old | src,
        AtomOp::Xor => old ^ src,
        AtomOp::Exch => src,
        AtomOp::Cas => {
            if old == cmp {
                src
            } else {
                old
            }
        }
    }
}

/// `a`, from memory, plus `b`. Sums of f32 in global memory flush subnormal numbers, those in shared memory do not (PTX ISA
/// 9.7.13.5).
fn add(ty: Ty, global: bool, a: u64, b: u64) -> u64 {
    let small = |ty: Ty, a: u64, b: u64| {
        let sum = f64::from(widen(ty, a)) + f64::from(widen(ty, b));
        if sum.is_nan() { NAN_16 } else { convert(ty, Ty::F64, Some(Round::Rn), false, false, sum.to_bits()) }
    };
    match ty {
        Ty::F64 => {
            let (a, b) = (f64::from_bits(a), f64::from_bits(b));
            if global { bits_f64_in_memory(a, b, a + b) } else { bits_f64(&[a, b], a + b) }
        }
        Ty::F16 | Ty::BF16 => small(ty, a, b),
        Ty::F16x2 => small(Ty::F16, a >> 16, b >> 16) << 16 | small(Ty::F16, a, b),
        Ty::BF16x2 => small(Ty::BF16, a >> 16, b >> 16) << 16 | small(Ty::BF16, a, b),
        _ => {
            let (a, b) = (f32::from_bits(a as u32), f32::from_bits(b as u32));
            if global { bits_f32(flush(flush(a) + flush(b))) } else { bits_f32(a + b) }
        }
    }
}

impl Step<'_, '_> {
    /// An atomic with its comparison value and its source; `dst` gets the old value.
    pub(super) fn atomic(
        &mut self,
        (op, ty): (AtomOp, Ty),
        space: Space,
        sem: MemSem,
        dst: Option<Reg>,
        addr: Addr,
        [cmp, src]: [Option<Operand>; 2],
    ) {
        let (at, size) = (self.addresses(addr), ty.bytes() as usize);
        let [cmp, src] = [cmp, src].map(|x| x.map_or([0; 32], |x| self.operand(x, ty)));
        let width = u64::MAX >> (64 - ty.bits());
        self.count_access(space, &at, size, true);
        self.after_read(space, sem, &at);
        self.before_write(space, sem, &at, true);
        let mut olds = [0; 32];
        let memory = self.engine.memory;
        let _atomic = memory.atomics.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for lane in lanes(self.mask) {
            if !self.aligned(lane, at[lane], size) {
                continue;
            }
            let Some(old) = self.atomic_old(space, lane, at[lane], size) else { continue };
            olds[lane] = old;
            let global = space == Space::Global;
            let new = combine(op, ty, global, old, cmp[lane] & width, src[lane] & width) & width;
            let data = &new.to_le_bytes()[..size];
            match space {
                Space::Shared => self.write_shared(lane, at[lane], data, true),
                _ => self.write_global(lane, at[lane], data, true),
            }
        }
        self.after_write(sem);
        if let Some(dst) = dst {
            self.set(dst, &olds);
        }
    }

    /// The value before; the write that follows finds races.
    fn atomic_old(&mut self, space: Space, lane: usize, at: u64, size: usize) -> Option<u64> {
        let mut data = [0; 8];
        if space == Space::Shared {
            let offset = self.shared_offset(lane, at, size)?;
            if !self.block.shared.is_defined(offset, size) {
                self.report_undefined(lane, "shared");
            }
            self.block.shared.peek(offset, &mut data[..size]);
            return Some(word(&data));
        }
        let (index, offset) = self.global_place(lane, at, size)?;
        let region = self.engine.memory.region(index);
        if region.access == Access::Read {
            let message = || format!("writes `{}`, which was given to be read", region.name);
            self.report(ReportKind::ReadOnly, Some(lane), message);
            return None;
        }
        if !region.is_defined(offset, size as u64) {
            self.report_undefined(lane, "global");
        }
        region.read(offset, &mut data[..size]);
        Some(word(&data))
    }
}
