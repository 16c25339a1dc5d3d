//! Thread coordinates: lane, warp and block indices, and linear functions of their bits.

use std::collections::BTreeMap;

use super::{LowerCx, Slot};
use crate::layout::ThreadOffset;
use crate::ptx::{Cmp, FuncBuilder, IntOp, Operand, Reg, SpecialReg, Ty};

/// Registers that the prologue has computed.
#[derive(Clone, Default)]
pub(super) struct ThreadRegs {
    tid: Option<Reg>,
    first: Option<Reg>,
    block: Option<[Operand; 3]>,
    linear: BTreeMap<([u32; 5], Vec<u32>), Operand>,
    owner: BTreeMap<(u32, u32), Option<Reg>>,
    shared: Option<Reg>,
}

impl LowerCx<'_> {
    /// The thread's index in the block: lane in the low five bits, warp above.
    pub fn tid(&mut self) -> Reg {
        if let Some(tid) = self.thread.tid {
            return tid;
        }
        let tid = self.role_tid();
        self.thread.tid = Some(tid);
        tid
    }

    /// Whether this is the first thread of the role: the one that starts bulk tensor copies.
    pub(super) fn first_thread(&mut self) -> Reg {
        if let Some(first) = self.thread.first {
            return first;
        }
        let tid = self.tid();
        let first = self.hoist(|f| f.setp(Cmp::Eq, Ty::S32, tid, 0));
        self.thread.first = Some(first);
        first
    }

    /// The XOR of the bases of the thread's set lane and warp bits.
    pub fn linear(&mut self, offset: &ThreadOffset) -> Operand {
        let key = (offset.lane, offset.warp.clone());
        if let Some(&known) = self.thread.linear.get(&key) {
            return known;
        }
        let tid = self.tid();
        let bases: Vec<u32> = offset.lane.iter().chain(&offset.warp).copied().collect();
        let value = self.hoist(|f| xor_of_bases(f, tid, &bases));
        self.thread.linear.insert(key, value);
        value
    }

    /// A predicate that elects one owner of each element, given the replicating lane and warp bits; `None` if every
    /// thread owns what it holds.
    pub fn owner(&mut self, lane_mask: u32, warp_mask: u32) -> Option<Reg> {
        if let Some(&known) = self.thread.owner.get(&(lane_mask, warp_mask)) {
            return known;
        }
        let mask = lane_mask | warp_mask << 5;
        let pred = (mask != 0).then(|| {
            let tid = self.tid();
            self.hoist(|f| {
                let bits = f.int(IntOp::And, Ty::B32, tid, mask);
                f.setp(Cmp::Eq, Ty::S32, bits, 0)
            })
        });
        self.thread.owner.insert((lane_mask, warp_mask), pred);
        pred
    }

    /// The address of the block's shared memory.
    pub fn shared_base(&mut self) -> Reg {
        if let Some(base) = self.thread.shared {
            return base;
        }
        let base = self.hoist(|f| f.shared_addr());
        self.thread.shared = Some(base);
        base
    }

    /// This block's index along each grid axis. Blocks are launched along x alone, so that no axis has a limit of its
    /// own; x is the fastest.
    pub fn block_index(&mut self) -> [Operand; 3] {
        if let Some(block) = self.thread.block {
            return block;
        }
        let (x, y) = (self.param(Slot::Blocks { axis: 0 }), self.param(Slot::Blocks { axis: 1 }));
        let block = self.hoist(|f| {
            let linear = f.special(SpecialReg::CtaIdX);
            let rest = f.div_u32(linear, x);
            let rows = f.mul_lo_s32(rest, x);
            let first = f.sub_s32(linear, rows);
            let third = f.div_u32(rest, y);
            let planes = f.mul_lo_s32(third, y);
            let second = f.sub_s32(rest, planes);
            [first, second, third]
        });
        self.thread.block = Some(block);
        block
    }
}

/// A linear function of the bits of `tid`: pairs (thread bit, result bit) of the same distance move together, by one
/// mask and one shift.
fn xor_of_bases(f: &mut FuncBuilder, tid: Reg, bases: &[u32]) -> Operand {
    let mut groups: BTreeMap<i32, u32> = BTreeMap::new();
    for (bit, &base) in bases.iter().enumerate() {
        for to in (0..32).filter(|to| base >> to & 1 == 1) {
            *groups.entry(to - bit as i32).or_default() |= 1 << bit;
        }
    }
    let mut value = Operand::Imm(0);
    for (shift, mask) in groups {
        let bits = f.int(IntOp::And, Ty::B32, tid, mask);
        let op = if shift >= 0 { IntOp::Shl } else { IntOp::Shr };
        let moved = f.int(op, Ty::B32, bits, shift.abs());
        value = f.int(IntOp::Xor, Ty::B32, value, moved);
    }
    value
}

impl LowerCx<'_> {
    /// The thread's lane.
    pub fn lane(&mut self) -> Operand {
        self.linear(&ThreadOffset { lane: [1, 2, 4, 8, 16], warp: Vec::new() })
    }
}
