//! Builds IR at an insertion point; used by the staged language and by tests.

use super::kernel::{Kernel, OpId, RegionId, ValueId};
use super::loc::LocId;
use super::types::Type;
use crate::diag::{Diagnostic, Diagnostics};
use crate::ops::{OpKind, TileOp};

/// A kernel under construction, with the regions that are open and the faults found so far.
#[derive(Debug)]
pub struct Builder {
    /// The kernel so far.
    pub kernel: Kernel,
    /// Faults found while building.
    pub diagnostics: Diagnostics,
    open: Vec<RegionId>,
}

impl Builder {
    /// A builder for a new kernel; operations go to the entry region.
    pub fn new(name: impl Into<String>) -> Self {
        let kernel = Kernel::new(name);
        let open = vec![kernel.body];
        Self { kernel, diagnostics: Diagnostics::default(), open }
    }

    /// The region that receives operations.
    pub fn region(&self) -> RegionId {
        *self.open.last().expect("the entry region stays open")
    }

    /// How many regions are open; 1 means only the entry region.
    pub fn depth(&self) -> usize {
        self.open.len()
    }

    /// Opens a new region with arguments of the given types; operations go there until [`Builder::close`].
    pub fn open(&mut self, args: &[Type]) -> (RegionId, Vec<ValueId>) {
        let args: Vec<_> = args.iter().map(|ty| self.kernel.new_value(ty.clone())).collect();
        let region = self.kernel.regions.push(super::kernel::Region { args: args.clone(), ops: Vec::new() });
        self.open.push(region);
        (region, args)
    }

    /// Closes the innermost open region and returns it.
    pub fn close(&mut self) -> RegionId {
        debug_assert!(self.open.len() > 1, "the entry region stays open");
        self.open.pop().expect("a region is open")
    }

    /// Appends an operation whose result types follow from its operands.
    ///
    /// A fault becomes a diagnostic at `loc` and results of type [`Type::Error`], which silence follow-up faults.
    pub fn emit(&mut self, kind: OpKind, operands: Vec<ValueId>, loc: LocId) -> Vec<ValueId> {
        let types: Vec<_> = operands.iter().map(|&v| self.kernel.ty(v).clone()).collect();
        let results = if types.contains(&Type::Error) {
            vec![Type::Error; kind.result_count()]
        } else {
            match kind.infer(&types) {
                Ok(results) => results,
                Err(error) => {
                    let at = self.kernel.locs.get(loc).cloned();
                    self.diagnostics.push(Diagnostic::from_op(error, at));
                    vec![Type::Error; kind.result_count()]
                }
            }
        };
        let op = self.kernel.new_op(kind, operands, results, loc);
        self.append(op);
        self.kernel.ops[op].results.clone()
    }

    /// Appends an operation in the entry region, before everything that later regions do (constants live there).
    pub fn emit_in_entry(&mut self, kind: OpKind, operands: Vec<ValueId>, loc: LocId) -> Vec<ValueId> {
        let inner = std::mem::replace(&mut self.open, vec![self.kernel.body]);
        let results = self.emit(kind, operands, loc);
        self.open = inner;
        results
    }

    /// Appends a control-flow operation with explicit regions and result types.
    pub fn emit_with_regions(
        &mut self,
        kind: OpKind,
        operands: Vec<ValueId>,
        regions: Vec<RegionId>,
        results: Vec<Type>,
        loc: LocId,
    ) -> Vec<ValueId> {
        let op = self.kernel.new_op(kind, operands, results, loc);
        self.kernel.ops[op].regions = regions;
        self.append(op);
        self.kernel.ops[op].results.clone()
    }

    /// Appends an operation that was made detached.
    pub fn append(&mut self, op: OpId) {
        let region = self.region();
        self.kernel.regions[region].ops.push(op);
    }
}
