//! Which products of warpgroups update their accumulator in its registers: an analysis that `insert_waits` and lowering
//! share.

use std::collections::{BTreeMap, BTreeSet};

use crate::ir::{Elem, Kernel, OpId, RegionId, ValueId};
use crate::lower::wgmma::is_wide;
use crate::ops::{Literal, OpKind};

/// How accumulators live.
#[derive(Clone, Debug, Default)]
pub struct Accumulators {
    /// Products whose accumulator nobody else uses, and which is made in the same region.
    pub in_place: BTreeSet<OpId>,
    /// Carried accumulators that start as zeros: arguments of a loop's region that the first product of the loop fills
    /// instead of adding to, so that no register is written before.
    pub lazy: BTreeSet<ValueId>,
    /// Elementwise operations on accumulators that nobody else uses, with the operand in whose registers the result goes.
    pub updates: BTreeMap<OpId, ValueId>,
    /// Values in one set of registers have one representative.
    same: BTreeMap<ValueId, ValueId>,
}

impl Accumulators {
    /// Analyses a laid-out kernel.
    pub fn of(kernel: &Kernel) -> Accumulators {
        let mut uses: BTreeMap<ValueId, usize> = BTreeMap::new();
        let mut home: BTreeMap<ValueId, RegionId> = BTreeMap::new();
        let mut zeros: BTreeSet<ValueId> = BTreeSet::new();
        collect(kernel, kernel.body, &mut uses, &mut home, &mut zeros);
        let mut found = Accumulators::default();
        let sums = sums(kernel);
        let mut makers = BTreeMap::new();
        kernel.walk(|id, op| makers.extend(op.results.iter().map(|&result| (result, id))));
        let mut regions = vec![kernel.body];
        while let Some(region) = regions.pop() {
            for &id in &kernel.regions[region].ops {
                let op = &kernel.ops[id];
                regions.extend(&op.regions);
                let once = |acc: &ValueId| uses.get(acc) == Some(&1) && home.get(acc) == Some(&region);
                let own =
                    |acc: &ValueId| aliases(kernel, &makers, *acc).is_some_and(|all| all.iter().all(once));
                if is_wide(kernel, id) && own(&op.operands[2]) && !zeros.contains(&op.operands[2]) {
                    found.in_place.insert(id);
                    found.join(op.results[0], op.operands[2]);
                }
                if let OpKind::Binary(_) = op.kind
                    && let Some(x) = op.operands.iter().copied().find(|x| own(x) && sums.contains(x))
                    && kernel.values[x].layout == kernel.values[op.results[0]].layout
                    && feeds_sum(kernel, region, op.results[0], &uses)
                {
                    found.updates.insert(id, x);
                    found.join(op.results[0], x);
                }
            }
        }
        found.join_loops(kernel);
        found.find_lazy(kernel, &zeros);
        found
    }

    /// The value that stands for all in the same registers.
    pub fn registers(&self, mut value: ValueId) -> ValueId {
        while let Some(&next) = self.same.get(&value) {
            value = next;
        }
        value
    }

    fn join(&mut self, a: ValueId, b: ValueId) {
        let (a, b) = (self.registers(a), self.registers(b));
        if a != b {
            self.same.insert(a, b);
        }
    }

    /// A carried value keeps its registers where every way round the loop yields what was made in them.
    fn join_loops(&mut self, kernel: &Kernel) {
        kernel.walk(|_, op| {
            if let Some(args) = carried(kernel, op) {
                for (&arg, &result) in args.iter().zip(&op.results) {
                    self.join(result, arg);
                }
            }
        });
    }

    fn find_lazy(&mut self, kernel: &Kernel, zeros: &BTreeSet<ValueId>) {
        let mut lazy = BTreeSet::new();
        kernel.walk(|_, op| {
            let (OpKind::For(_), Some(args)) = (&op.kind, carried(kernel, op)) else { return };
            let inits = &op.operands[op.operands.len() - args.len()..];
            for (&arg, init) in args.iter().zip(inits) {
                let body = &kernel.regions[op.regions[0]].ops;
                let filled =
                    body.iter().any(|id| self.in_place.contains(id) && kernel.ops[*id].operands[2] == arg);
                if zeros.contains(init) && filled {
                    lazy.insert(arg);
                }
            }
        });
        self.lazy = lazy;
    }
}

/// The values whose registers a value has: its own, and what it is a view of. `None` for a broadcast, whose elements share
/// registers.
fn aliases(kernel: &Kernel, makers: &BTreeMap<ValueId, OpId>, value: ValueId) -> Option<Vec<ValueId>> {
    let mut found = vec![value];
    loop {
        let Some(op) = makers.get(found.last()?).map(|&id| &kernel.ops[id]) else { return Some(found) };
        match op.kind {
            OpKind::Reshape(_) | OpKind::Permute(_) | OpKind::ConvertLayout(_) => found.push(op.operands[0]),
            OpKind::BroadcastTo(_) => return None,
            _ => return Some(found),
        }
    }
}

/// The results of products of warpgroups, and the tiles like them that are carried round loops.
fn sums(kernel: &Kernel) -> BTreeSet<ValueId> {
    let (mut products, mut arguments) = (BTreeSet::new(), BTreeSet::new());
    kernel.walk(|id, op| {
        if is_wide(kernel, id) {
            products.insert(op.results[0]);
        }
        arguments.extend(carried(kernel, op).into_iter().flatten().copied());
    });
    let like = |arg: &ValueId| {
        let tile = kernel.ty(*arg).as_tile();
        tile.is_some_and(|t| t.elem == Elem::F32) && products.iter().any(|p| kernel.ty(*p) == kernel.ty(*arg))
    };
    arguments.retain(like);
    products.into_iter().chain(arguments).collect()
}

/// Whether the only use of a value is as the accumulator of a product of warpgroups, or at the end of the region.
fn feeds_sum(kernel: &Kernel, region: RegionId, value: ValueId, uses: &BTreeMap<ValueId, usize>) -> bool {
    uses.get(&value) == Some(&1)
        && kernel.regions[region].ops.iter().any(|&id| {
            let op = &kernel.ops[id];
            (is_wide(kernel, id) && op.operands[2] == value)
                || (matches!(op.kind, OpKind::Yield(_)) && op.operands.contains(&value))
        })
}

/// The arguments of a loop's region that carry values.
fn carried<'k>(kernel: &'k Kernel, op: &crate::ir::Op) -> Option<&'k [ValueId]> {
    matches!(op.kind, OpKind::For(_) | OpKind::Loop(_)).then(|| {
        let args = &kernel.regions[op.regions[0]].args;
        &args[args.len() - op.results.len()..]
    })
}

fn collect(
    kernel: &Kernel,
    region: RegionId,
    uses: &mut BTreeMap<ValueId, usize>,
    home: &mut BTreeMap<ValueId, RegionId>,
    zeros: &mut BTreeSet<ValueId>,
) {
    home.extend(kernel.regions[region].args.iter().map(|&arg| (arg, region)));
    for &id in &kernel.regions[region].ops {
        let op = &kernel.ops[id];
        for &operand in &op.operands {
            *uses.entry(operand).or_default() += 1;
        }
        home.extend(op.results.iter().map(|&result| (result, region)));
        let zero = match &op.kind {
            OpKind::Constant(constant) => constant.value == Literal::float(0.0),
            OpKind::BroadcastTo(_) | OpKind::Reshape(_) | OpKind::ConvertLayout(_) => {
                zeros.contains(&op.operands[0])
            }
            _ => false,
        };
        if zero {
            zeros.extend(&op.results);
        }
        for &inner in &op.regions {
            collect(kernel, inner, uses, home, zeros);
        }
    }
}
