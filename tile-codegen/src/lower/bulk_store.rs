//! Stores by bulk tensor copies: one thread of the role starts them; they read shared memory while the program goes on.
//!
//! The thread waits for its copies to have read before the next barrier: what is written after it may take their place.

use super::LowerCx;
use super::channels::{MapPlan, corners};
use crate::ir::OpId;
use crate::ops::OpKind;
use crate::ptx::{Addr, Cmp, Hopper, Operand, PredOp, Ty};

impl LowerCx<'_> {
    /// Whether any tile is stored by bulk tensor copies.
    pub(super) fn has_bulk_stores(&self) -> bool {
        let mut found = false;
        self.kernel.walk(|_, op| {
            let shared = |v| self.kernel.ty(v).as_shared().is_some();
            found |= matches!(op.kind, OpKind::Store(_)) && shared(op.operands[0]);
        });
        found
    }

    /// Stores a tile that lies in shared memory, and that a barrier has made known to all.
    pub(crate) fn bulk_store(&mut self, id: OpId) {
        let op = self.kernel.ops[id].clone();
        let (tile, tensor) = (op.operands[0], op.operands[1]);
        let shared = self.kernel.ty(tile).as_shared().expect("a tile in shared memory").clone();
        let plan = MapPlan::of(self.kernel, tensor, shared.elem, &shared.layout)
            .expect("a tile that is stored so has a tensor map");
        let map = self.map(&plan);
        let shape = &shared.layout.shape;
        let starts: Vec<Operand> =
            op.operands[2..].iter().zip(shape).map(|(&i, &n)| self.coordinate(i, n)).collect();
        // Tiles before the tensor's start are outside, and illegal as coordinates of a store.
        if starts.iter().any(|start| start.imm().is_some_and(|start| start < 0)) {
            return;
        }
        let mut first = self.first_thread();
        for start in starts.iter().filter(|start| start.reg().is_some()) {
            let inside = self.f.setp(Cmp::Ge, Ty::S32, *start, 0);
            first = self.f.pred(PredOp::And, first, inside);
        }
        let (base, offset) = self.shared_at(tile);
        for corner in corners(&plan, shape) {
            let coords =
                plan.axes.iter().map(|&axis| self.f.add_s32(starts[axis], corner[axis] as i64)).collect();
            let flat = corner.iter().zip(shape).fold(0, |flat, (c, n)| flat * n + c);
            let src = Addr::reg(base, i64::from(offset + shared.layout.offset(flat as u32)));
            self.f.emit_if(first, Hopper::TensorStore { map, coords, src }.into());
        }
        self.f.emit_if(first, Hopper::BulkCommit.into());
    }

    /// Waits until the role's copies have read what they store.
    pub(super) fn wait_for_bulk_stores(&mut self) {
        if self.bulk_stores {
            let first = self.first_thread();
            self.f.emit_if(first, Hopper::BulkWait { pending: 0, read: true }.into());
        }
    }
}
