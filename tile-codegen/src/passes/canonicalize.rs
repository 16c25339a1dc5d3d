//! `canonicalize`: the one clean-up pass. It changes no result by a single bit, and running it twice changes nothing more.
//!
//! In program order, each operation is
//! * computed, if its operands are constants and every machine computes the same (`fold`);
//! * replaced by an equal value that exists, or by a simpler operation (`rules`);
//! * taken apart, if it is a branch that is decided, a loop that does not run or a scope that nothing leaves early
//!   (`control`);
//! * merged with an equal operation whose result is visible here, if it is pure. Loads are never merged.
//!
//! Then pure operations and loads whose results nobody uses are removed. All this repeats until nothing changes: every
//! round removes operations, or replaces them by ones of fewer operands or nearer to their inputs.
//!
//! Once layouts are assigned, operations are only merged (if their results also have the same layouts) and removed.

use std::collections::HashMap;

use super::{Changed, PassCx};
use crate::diag::Diagnostics;
use crate::ir::{Kernel, LocId, OpId, RegionId, Stage, Type, ValueId};
use crate::layout::Layout;
use crate::ops::{Effects, OpKind, TileOp};

mod control;
mod fold;
mod rules;

/// Runs the pass.
///
/// # Errors
/// None.
pub fn run(kernel: &mut Kernel, _: &PassCx<'_>) -> Result<Changed, Diagnostics> {
    let mut changed = Changed::No;
    loop {
        let rewritten = rewrite(kernel);
        let removed = remove_unused(kernel);
        if !rewritten && !removed {
            return Ok(changed);
        }
        changed = Changed::Yes;
    }
}

/// Operations are equal if these are.
type Key = (OpKind, Vec<ValueId>, Vec<(Type, Option<Layout>)>);

/// Whether the operations after an operation are reached.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    /// They are.
    Next,
    /// A jump has taken their place.
    Jumped,
}

struct Rewriter<'k> {
    kernel: &'k mut Kernel,
    /// Values that others replace.
    replaced: HashMap<ValueId, ValueId>,
    /// The operation that defines a value, and the region in which it is now.
    definitions: HashMap<ValueId, (OpId, RegionId)>,
    /// The pure operations that are visible, for each open region.
    known: Vec<HashMap<Key, Vec<ValueId>>>,
    /// The operations of the open regions so far.
    open: Vec<(RegionId, Vec<OpId>)>,
    changed: bool,
}

/// One round over all operations.
fn rewrite(kernel: &mut Kernel) -> bool {
    let body = kernel.body;
    let mut rewriter = Rewriter {
        kernel,
        replaced: HashMap::new(),
        definitions: HashMap::new(),
        known: Vec::new(),
        open: Vec::new(),
        changed: false,
    };
    rewriter.region(body);
    rewriter.changed
}

impl Rewriter<'_> {
    fn region(&mut self, id: RegionId) {
        let ops = std::mem::take(&mut self.kernel.regions[id].ops);
        self.open.push((id, Vec::new()));
        self.known.push(HashMap::new());
        self.ops(&ops);
        self.known.pop();
        let (_, ops) = self.open.pop().expect("the region was opened above");
        self.kernel.regions[id].ops = ops;
    }

    /// Processes operations into the innermost open region; those after a jump are dropped.
    fn ops(&mut self, ops: &[OpId]) -> Flow {
        for &op in ops {
            if self.op(op) == Flow::Jumped {
                return Flow::Jumped;
            }
        }
        Flow::Next
    }

    fn op(&mut self, id: OpId) -> Flow {
        let operands: Vec<_> = self.kernel.ops[id].operands.iter().map(|&v| self.resolve(v)).collect();
        self.kernel.ops[id].operands = operands;
        if self.kernel.stage == Stage::Tile {
            if let Some(flow) = self.take_apart(id) {
                self.changed = true;
                return flow;
            }
            if let Some(value) = self.simplify(id) {
                self.replace(id, &[value]);
                return Flow::Next;
            }
        }
        let op = &self.kernel.ops[id];
        if op.kind.effects() == Effects::Pure {
            let key = self.key(id);
            if let Some(equal) = self.known.iter().find_map(|known| known.get(&key)).cloned() {
                self.replace(id, &equal);
                return Flow::Next;
            }
            let results = self.kernel.ops[id].results.clone();
            self.known.last_mut().expect("a region is open").insert(key, results);
        }
        for region in self.kernel.ops[id].regions.clone() {
            self.region(region);
        }
        let depth = self.open.len() - 1;
        self.attach(id, depth);
        if self.kernel.ops[id].kind.is_terminator() { Flow::Jumped } else { Flow::Next }
    }

    /// The value that stands for a value now.
    fn resolve(&self, mut value: ValueId) -> ValueId {
        while let Some(&by) = self.replaced.get(&value) {
            value = by;
        }
        value
    }

    /// Drops an operation whose results others replace.
    fn replace(&mut self, id: OpId, by: &[ValueId]) {
        self.changed = true;
        for (&result, &by) in self.kernel.ops[id].results.iter().zip(by) {
            self.replaced.insert(result, by);
        }
    }

    fn key(&self, id: OpId) -> Key {
        let op = &self.kernel.ops[id];
        let results = op.results.iter().map(|&v| &self.kernel.values[v]);
        (op.kind.clone(), op.operands.clone(), results.map(|v| (v.ty.clone(), v.layout.clone())).collect())
    }

    /// Puts an operation at the end of the open region of the given depth.
    fn attach(&mut self, id: OpId, depth: usize) {
        let (region, ops) = &mut self.open[depth];
        ops.push(id);
        for &result in &self.kernel.ops[id].results {
            self.definitions.insert(result, (id, *region));
        }
    }

    /// A new operation of one result at the current place, or one that is known to be equal.
    fn emit(&mut self, kind: impl Into<OpKind>, operands: Vec<ValueId>, loc: LocId) -> ValueId {
        let kind = kind.into();
        let types: Vec<_> = operands.iter().map(|&v| self.kernel.ty(v).clone()).collect();
        let results = kind.infer(&types).expect("the rules make operations that fit their operands");
        // Constants live in the entry region; they are visible everywhere.
        let depth = if matches!(kind, OpKind::Constant(_)) { 0 } else { self.open.len() - 1 };
        let id = self.kernel.new_op(kind, operands, results, loc);
        let pure = self.kernel.ops[id].kind.effects() == Effects::Pure;
        let key = self.key(id);
        if let Some(equal) = self.known.iter().find_map(|known| known.get(&key)).filter(|_| pure) {
            return equal[0];
        }
        let results = self.kernel.ops[id].results.clone();
        if pure {
            self.known[depth].insert(key, results.clone());
        }
        self.attach(id, depth);
        results[0]
    }

    /// The operation that defines a value, if it is not a parameter or a region argument.
    fn definition(&self, value: ValueId) -> Option<&crate::ir::Op> {
        self.definitions.get(&value).map(|&(op, _)| &self.kernel.ops[op])
    }
}

/// Removes pure operations and loads whose results nobody uses.
fn remove_unused(kernel: &mut Kernel) -> bool {
    let removable = |kind: &OpKind| matches!(kind.effects(), Effects::Pure | Effects::ReadsGlobal);
    let mut maker: HashMap<ValueId, OpId> = HashMap::new();
    let mut used = vec![false; kernel.ops.len()];
    let mut open = Vec::new();
    kernel.walk(|id, op| {
        maker.extend(op.results.iter().map(|&result| (result, id)));
        if !removable(&op.kind) {
            used[id.index()] = true;
            open.push(id);
        }
    });
    while let Some(id) = open.pop() {
        for operand in &kernel.ops[id].operands {
            if let Some(&op) = maker.get(operand)
                && !std::mem::replace(&mut used[op.index()], true)
            {
                open.push(op);
            }
        }
    }
    let mut removed = false;
    for region in kernel.regions.ids() {
        let ops = &mut kernel.regions[region].ops;
        let before = ops.len();
        ops.retain(|op| used[op.index()]);
        removed |= ops.len() != before;
    }
    removed
}
