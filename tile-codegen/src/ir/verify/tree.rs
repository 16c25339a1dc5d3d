//! The first check: ids are in range, and regions and operations form a tree, so that later code can walk it.

use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::ir::{Kernel, OpId, RegionId, ValueId};
use crate::ops::TileOp;

/// Checks the rules under "Structure" that everything else relies on.
pub(super) fn check(kernel: &Kernel) -> Result<(), Diagnostics> {
    let mut tree = Tree {
        kernel,
        regions: vec![false; kernel.regions.len()],
        ops: vec![false; kernel.ops.len()],
        out: Diagnostics::default(),
    };
    for param in &kernel.params {
        tree.values(std::slice::from_ref(&param.value), &format!("parameter `{}`", param.name));
    }
    let mut open = vec![kernel.body];
    while let Some(region) = open.pop() {
        tree.region(region, &mut open);
    }
    tree.out.into_result()
}

struct Tree<'k> {
    kernel: &'k Kernel,
    regions: Vec<bool>,
    ops: Vec<bool>,
    out: Diagnostics,
}

impl Tree<'_> {
    fn fault(&mut self, message: String) {
        self.out.push(Diagnostic::new(Code::Structure, message));
    }

    fn values(&mut self, values: &[ValueId], owner: &str) {
        for &value in values {
            if self.kernel.values.get(value).is_none() {
                self.fault(format!("{owner} names a value that does not exist: {value:?}"));
            }
        }
    }

    fn region(&mut self, id: RegionId, open: &mut Vec<RegionId>) {
        let kernel = self.kernel;
        let Some(region) = kernel.regions.get(id) else {
            return self.fault(format!("there is no region {id:?}"));
        };
        if std::mem::replace(&mut self.regions[id.index()], true) {
            return self.fault(format!("region {id:?} is attached twice"));
        }
        self.values(&region.args, "a region");
        for &op in &region.ops {
            self.op(op, open);
        }
    }

    fn op(&mut self, id: OpId, open: &mut Vec<RegionId>) {
        let kernel = self.kernel;
        let Some(op) = kernel.ops.get(id) else {
            return self.fault(format!("there is no operation {id:?}"));
        };
        if std::mem::replace(&mut self.ops[id.index()], true) {
            return self.fault(format!("`{}`, operation {id:?}, is attached twice", op.kind.name()));
        }
        let owner = format!("`{}`", op.kind.name());
        self.values(&op.operands, &owner);
        self.values(&op.results, &owner);
        open.extend(&op.regions);
    }
}
