//! The registers of a warp: 32 lanes of every register, with a bit for each lane that it was written.

use super::program::Program;
use crate::ptx::{Operand, Reg, RegClass, Ty, wrap};

/// The value of a register or operand in every lane.
pub(super) type Lanes = [u64; 32];

/// The registers of a warp.
#[derive(Debug)]
pub(super) struct Regs {
    first: [usize; RegClass::ALL.len()],
    predicates: usize,
    preds: Vec<u32>,
    planes: Vec<Lanes>,
    /// For each register the lanes in which it was written.
    pub(super) defined: Vec<u32>,
}

impl Regs {
    pub(super) fn new(program: &Program) -> Regs {
        Regs {
            first: program.first,
            predicates: program.predicates,
            preds: vec![0; program.predicates],
            planes: vec![[0; 32]; program.registers - program.predicates],
            defined: vec![0; program.registers],
        }
    }

    fn number(&self, reg: Reg) -> usize {
        self.first[reg.class as usize] + reg.id as usize
    }

    /// A register that is no predicate.
    pub(super) fn plane(&self, reg: Reg) -> &Lanes {
        &self.planes[self.number(reg) - self.predicates]
    }

    /// A register by its number, which is no predicate.
    pub(super) fn plane_at(&self, number: usize) -> &Lanes {
        &self.planes[number - self.predicates]
    }

    /// Writes the lanes of `mask`, cut to the register's width.
    pub(super) fn set(&mut self, reg: Reg, mask: u32, values: &Lanes) {
        let width = u64::MAX >> (64 - reg.class.bits());
        let at = self.number(reg) - self.predicates;
        let plane = &mut self.planes[at];
        if mask == u32::MAX {
            plane.iter_mut().zip(values).for_each(|(old, new)| *old = new & width);
            return;
        }
        for (lane, (old, new)) in plane.iter_mut().zip(values).enumerate() {
            if mask >> lane & 1 != 0 {
                *old = new & width;
            }
        }
    }

    /// The lanes in which a predicate is true.
    pub(super) fn pred(&self, reg: Reg) -> u32 {
        self.preds[self.number(reg)]
    }

    /// As [`Regs::pred`], by the register's number.
    pub(super) fn pred_at(&self, number: usize) -> u32 {
        self.preds[number]
    }

    /// Writes the lanes of `mask` of a predicate.
    pub(super) fn set_pred(&mut self, reg: Reg, mask: u32, bits: u32) {
        let at = self.number(reg);
        self.preds[at] = self.preds[at] & !mask | bits & mask;
    }

    /// The value of an operand of type `ty` that is no special register: registers as their bits, literals cut to `ty`.
    pub(super) fn operand(&self, operand: Operand, ty: Ty) -> Lanes {
        match operand {
            Operand::Reg(reg) if reg.class == RegClass::Pred => {
                let bits = self.pred(reg);
                std::array::from_fn(|lane| u64::from(bits >> lane & 1))
            }
            Operand::Reg(reg) => *self.plane(reg),
            Operand::Imm(value) => [wrap(ty, value) as u64; 32],
            Operand::F32(bits) => [u64::from(bits); 32],
            Operand::F64(bits) => [bits; 32],
            Operand::Special(_) => unreachable!("special registers are read by `mov` alone"),
        }
    }
}
