//! Rings: shared stages that all threads fill by `cp.async`, each its own pieces of 16 bytes.

use std::collections::BTreeMap;

use super::LowerCx;
use super::global::pieces;
use crate::ir::OpId;
use crate::layout::SharedAccess;
use crate::ops::copied::Copied;
use crate::ops::copy_async::CopyAsync;
use crate::ops::window::{Start, Steps};
use crate::ptx::{Addr, IntOp, Reg, Ty};

impl LowerCx<'_> {
    /// `copy_async`: each thread starts to copy its pieces into a stage.
    pub(crate) fn copy_async(&mut self, id: OpId, copy: &CopyAsync) {
        let op = self.kernel.ops[id].clone();
        let (tensor, index) = (op.operands[0], &op.operands[1..op.operands.len() - 1]);
        let stage = self.scalar(op.operands[op.operands.len() - 1]);
        let layout = pieces(self.kernel, tensor, &copy.layout, self.crew.warps);
        let access = SharedAccess::new(&layout, &copy.layout);
        let (lane, warp) = layout.replication();
        let owner = self.owner(lane, warp);
        let stage = self.stage_address(copy.channel, stage);
        let mut bases: BTreeMap<u32, Reg> = BTreeMap::new();
        let mut to = Vec::new();
        for &offset in &access.offsets {
            let (xor, add) = access.split(offset);
            let base = match bases.get(&xor) {
                Some(&known) => known,
                None => {
                    let part = self.linear(&access.thread);
                    let turned = self.f.int(IntOp::Xor, Ty::B32, part, i64::from(xor));
                    let base = self.f.add_s32(stage, turned);
                    self.f.materialize(Ty::B32, base)
                }
            };
            bases.insert(xor, base);
            to.push(Addr::reg(base, i64::from(add)));
        }
        let start = Start { tensor, index, steps: Steps::Tiles };
        let window = self.piece_window(start, &layout);
        self.copy_window(&window, &to, owner);
    }

    /// `copied`: where the stage lies.
    pub(crate) fn copied(&mut self, id: OpId, copied: &Copied) {
        let op = &self.kernel.ops[id];
        let (stage, result) = (self.scalar(op.operands[0]), op.results[0]);
        let stage = self.stage_address(copied.channel, stage);
        self.stages.insert(result, stage);
    }
}
