//! The second forward walk: the kernel again, with layouts and explicit exchanges.

use std::collections::BTreeMap;

use super::{Demand, Plan};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::explain::{Choice, Note};
use crate::ir::{Builder, Kernel, LocId, OpId, RegionId, Stage, Type, ValueId};
use crate::layout::{Conversion, Layout, SharedLayout, conversion, scratch};
use crate::ops::{
    OpKind, convert_layout::ConvertLayout, copied::Copied, from_shared::FromShared, mma::Mma, receive::Receive,
    to_shared::ToShared, view_shared::ViewShared,
};

/// The forms of one old value in the new kernel.
#[derive(Clone, Default)]
struct Forms {
    regs: Vec<(Layout, ValueId)>,
    shared: Vec<(SharedLayout, ValueId)>,
    /// Scalars and tensors: one form.
    plain: Option<ValueId>,
}

struct Rebuild<'p, 'k> {
    plan: &'p Plan<'k>,
    builder: Builder,
    forms: BTreeMap<ValueId, Forms>,
    scalar: Layout,
}

type Fault = Diagnostics;

fn fault(message: impl Into<String>) -> Fault {
    let mut list = Diagnostics::default();
    list.push(Diagnostic::new(Code::Structure, message));
    list
}

impl Plan<'_> {
    pub(super) fn rebuild(&self) -> Result<Kernel, Diagnostics> {
        let old = self.kernel;
        let mut builder = Builder::new(old.name.clone());
        builder.kernel.locs = old.locs.clone();
        builder.kernel.notes = old.notes.clone();
        let warps = self.num_warps.get();
        let scalar = Layout::scalar(warps.next_power_of_two()).map_err(|e| fault(e.to_string()))?;
        let mut rebuild = Rebuild { plan: self, builder, forms: BTreeMap::new(), scalar };
        for param in &old.params {
            let ty = old.ty(param.value).clone();
            let value = rebuild.builder.kernel.add_param(param.name.clone(), ty, param.kind.clone());
            rebuild.define_plain(param.value, value);
        }
        rebuild.region(old.body)?;
        let Builder { mut kernel, diagnostics, .. } = rebuild.builder;
        diagnostics.into_result()?;
        kernel.stage = Stage::LaidOut;
        kernel.num_warps = Some(warps);
        Ok(kernel)
    }
}

impl Rebuild<'_, '_> {
    fn define_plain(&mut self, old: ValueId, new: ValueId) {
        if self.plan.kernel.ty(old).as_tile().is_some() {
            self.builder.kernel.values[new].layout = Some(self.scalar.clone());
        }
        self.forms.entry(old).or_default().plain = Some(new);
    }

    fn define(&mut self, old: ValueId, layout: Layout, new: ValueId) {
        self.builder.kernel.values[new].layout = Some(layout.clone());
        self.forms.entry(old).or_default().regs.push((layout, new));
    }

    fn define_result(&mut self, old: ValueId, new: ValueId) {
        if self.plan.placed(old) {
            self.define(old, self.plan.fixed(old), new)
        } else {
            self.define_plain(old, new)
        }
    }

    fn region(&mut self, region: RegionId) -> Result<(), Fault> {
        for &id in &self.plan.kernel.regions[region].ops {
            if self.plan.is_dead(id) {
                continue;
            }
            self.supply(id)?;
            self.op(id)?;
        }
        Ok(())
    }

    /// Makes every form that an operation (or anything inside it) wants of the values that exist here.
    fn supply(&mut self, id: OpId) -> Result<(), Fault> {
        let loc = self.plan.kernel.ops[id].loc;
        let needs = self.plan.needs.get(&id).cloned().unwrap_or_default();
        let mut reads = Vec::new();
        for (value, demand) in needs {
            let Some(forms) = self.forms.get(&value) else { continue };
            match demand {
                Demand::Regs(to) => {
                    if forms.regs.iter().any(|(l, _)| *l == to) {
                        continue;
                    }
                    if let (Some(_), Some((_, shared))) = (self.plan.shared.get(&value), forms.shared.first()) {
                        reads.push((value, *shared, to));
                        continue;
                    }
                    let (from, source) =
                        forms.regs.first().cloned().ok_or_else(|| fault("a value has no form"))?;
                    match conversion(&from, &to).map_err(|e| fault(e.to_string()))? {
                        Conversion::Identity | Conversion::Registers(_) => {
                            let new = self.emit(ConvertLayout.into(), vec![source], loc)?;
                            self.define(value, to, new);
                        }
                        Conversion::Shared => {
                            let shared = self.exchange(value, &from, &to, source, loc)?;
                            reads.push((value, shared, to));
                        }
                    }
                }
                Demand::Shared(order) => self.share(value, &order, loc)?,
                Demand::Placed(layout) => self.place(value, layout, loc)?,
            }
        }
        for (value, shared, to) in reads {
            if self.forms[&value].regs.iter().any(|(l, _)| *l == to) {
                continue;
            }
            let read = FromShared { origin: vec![0; to.shape().len()], shape: to.shape().to_vec() };
            let new = self.emit(read.into(), vec![shared], loc)?;
            self.define(value, to, new);
        }
        Ok(())
    }

    /// Writes a value to shared memory for a conversion, unless a suitable copy is there.
    fn exchange(
        &mut self,
        value: ValueId,
        from: &Layout,
        to: &Layout,
        source: ValueId,
        loc: LocId,
    ) -> Result<ValueId, Fault> {
        let bytes = self.plan.kernel.tile(value).elem.bytes();
        let layout = scratch(from, to, bytes).map_err(|e| fault(e.to_string()))?;
        self.write(value, layout, source, loc)
    }

    fn share(&mut self, value: ValueId, order: &[usize], loc: LocId) -> Result<(), Fault> {
        let tile = self.plan.kernel.tile(value);
        let layout =
            SharedLayout::linear(&tile.shape, order, tile.elem.bytes()).map_err(|e| fault(e.to_string()))?;
        let source = self.source(value, loc)?;
        self.write(value, layout, source, loc).map(|_| ())
    }

    /// Puts a value in shared memory in exactly this layout.
    fn place(&mut self, value: ValueId, layout: SharedLayout, loc: LocId) -> Result<(), Fault> {
        if self.forms[&value].shared.iter().any(|(l, _)| *l == layout) {
            return Ok(());
        }
        let source = self.source(value, loc)?;
        let new = self.emit(ToShared { layout: layout.clone() }.into(), vec![source], loc)?;
        self.forms.entry(value).or_default().shared.push((layout, new));
        Ok(())
    }

    /// A value in registers, read out of shared memory if it is nowhere else.
    fn source(&mut self, value: ValueId, loc: LocId) -> Result<ValueId, Fault> {
        if let Some((_, source)) = self.forms[&value].regs.first() {
            return Ok(*source);
        }
        let (_, shared) =
            self.forms[&value].shared.first().cloned().ok_or_else(|| fault("a value has no form"))?;
        let layout = self.plan.fixed(value);
        let read = FromShared { origin: vec![0; layout.shape().len()], shape: layout.shape().to_vec() };
        let new = self.emit(read.into(), vec![shared], loc)?;
        self.define(value, layout, new);
        Ok(new)
    }

    fn write(
        &mut self,
        value: ValueId,
        layout: SharedLayout,
        source: ValueId,
        loc: LocId,
    ) -> Result<ValueId, Fault> {
        // A copy for another conversion serves as well, but for those that want exactly this layout.
        let there = |l: &SharedLayout| *l == layout || (layout.swizzle != 0 && l.swizzle != 0);
        if let Some((_, there)) = self.forms[&value].shared.iter().find(|(l, _)| there(l)) {
            return Ok(*there);
        }
        let new = self.emit(ToShared { layout: layout.clone() }.into(), vec![source], loc)?;
        self.forms.entry(value).or_default().shared.push((layout, new));
        Ok(new)
    }

    fn emit(&mut self, kind: OpKind, operands: Vec<ValueId>, loc: LocId) -> Result<ValueId, Fault> {
        let results = self.builder.emit(kind, operands, loc);
        results.first().copied().ok_or_else(|| fault("an exchange has one result"))
    }

    fn form(&self, value: ValueId, demand: Option<&Demand>) -> Result<ValueId, Fault> {
        let missing = || fault("a value is used before it is placed");
        let forms = self.forms.get(&value).ok_or_else(missing)?;
        let found = match demand {
            None => forms.plain,
            Some(Demand::Regs(layout)) => forms.regs.iter().find(|(l, _)| l == layout).map(|(_, v)| *v),
            Some(Demand::Shared(order)) => {
                let tile = self.plan.kernel.tile(value);
                let layout = SharedLayout::linear(&tile.shape, order, tile.elem.bytes()).ok();
                forms.shared.iter().find(|(l, _)| Some(l) == layout.as_ref()).map(|(_, v)| *v)
            }
            Some(Demand::Placed(layout)) => forms.shared.iter().find(|(l, _)| l == layout).map(|(_, v)| *v),
        };
        found.ok_or_else(missing)
    }

    fn op(&mut self, id: OpId) -> Result<(), Fault> {
        let op = &self.plan.kernel.ops[id];
        match &op.kind {
            OpKind::For(_) | OpKind::Loop(_) | OpKind::If(_) | OpKind::Scope(_) => self.control(id),
            OpKind::Roles(roles) => self.roles(id, &roles.warps),
            OpKind::Receive(_) | OpKind::Copied(_) | OpKind::Reshape(_) | OpKind::Permute(_)
                if self.plan.shared.contains_key(&op.results[0]) =>
            {
                self.view(id)
            }
            kind if kind.is_terminator() => {
                let operands = self.operands_from_needs(id)?;
                self.builder.emit(kind.clone(), operands, op.loc);
                Ok(())
            }
            _ => self.plain(id),
        }
    }

    /// The operands of an operation whose needs list one demand for each placed operand, in order.
    fn operands_from_needs(&self, id: OpId) -> Result<Vec<ValueId>, Fault> {
        let op = &self.plan.kernel.ops[id];
        let mut needs = self.plan.needs.get(&id).map_or(&[][..], Vec::as_slice).iter();
        let form = |&v: &ValueId| {
            let demand = if self.plan.placed(v) { needs.next().map(|(_, d)| d) } else { None };
            self.form(v, demand)
        };
        op.operands.iter().map(form).collect()
    }

    /// An operation is repeated for each layout that its result is made in.
    fn plain(&mut self, id: OpId) -> Result<(), Fault> {
        let op = self.plan.kernel.ops[id].clone();
        if let Some(choice) = self.choice(id) {
            self.builder.kernel.notes.push(Note::of(self.plan.kernel, &op, choice));
        }
        let placed = op.results.first().copied().filter(|&r| self.plan.placed(r));
        let layouts: Vec<Option<Layout>> = match placed {
            None => vec![None],
            Some(result) => self.plan.made_in(result).into_iter().map(Some).collect(),
        };
        let naturals = self.plan.operand_naturals(id);
        for layout in layouts {
            let wants =
                crate::ops::place::Place::wants(&op.kind, &self.plan.cx(id), &naturals, layout.as_ref());
            let mut operands = Vec::new();
            for (&operand, want) in op.operands.iter().zip(wants) {
                let demand = match want {
                    crate::ops::place::Want::Any => None,
                    crate::ops::place::Want::Regs(layout) => Some(Demand::Regs(layout)),
                    crate::ops::place::Want::Shared(order) => Some(Demand::Shared(order)),
                    crate::ops::place::Want::Placed(layout) => Some(Demand::Placed(layout)),
                };
                operands.push(self.form(operand, demand.as_ref())?);
            }
            let results = self.builder.emit(placed_kind(&op.kind), operands, op.loc);
            match (layout, op.results.first(), results.first()) {
                (Some(layout), Some(&old), Some(&new)) => self.define(old, layout, new),
                (None, Some(&old), Some(&new)) => self.define_plain(old, new),
                _ => {}
            }
        }
        Ok(())
    }

    /// What the placement of an operation decides of its path.
    fn choice(&self, id: OpId) -> Option<Choice> {
        let cx = self.plan.cx(id);
        match &cx.op.kind {
            OpKind::Mma(_) => Some(Choice::Product(Mma::product(&cx))),
            OpKind::Store(store) => store.bulk(&cx, cx.tile(0)?).err().map(Choice::NoBulkStore),
            _ => None,
        }
    }

    /// What a channel carries or copies bring, or a view of it: in shared memory, to be read where it is used.
    fn view(&mut self, id: OpId) -> Result<(), Fault> {
        let op = self.plan.kernel.ops[id].clone();
        let layout = self.plan.shared[&op.results[0]].clone();
        let new = match &op.kind {
            OpKind::Receive(receive) => {
                self.emit(Receive { placed: true, ..receive.clone() }.into(), Vec::new(), op.loc)?
            }
            OpKind::Copied(copied) => {
                let stage = self.form(op.operands[0], None)?;
                self.emit(Copied { placed: true, ..copied.clone() }.into(), vec![stage], op.loc)?
            }
            _ => {
                let there = self.plan.shared[&op.operands[0]].clone();
                let source = self.form(op.operands[0], Some(&Demand::Placed(there)))?;
                self.emit(ViewShared { layout: layout.clone() }.into(), vec![source], op.loc)?
            }
        };
        self.forms.entry(op.results[0]).or_default().shared.push((layout, new));
        Ok(())
    }

    /// Each role is laid out for its own warps.
    fn roles(&mut self, id: OpId, warps: &[usize]) -> Result<(), Fault> {
        let op = self.plan.kernel.ops[id].clone();
        let (block, scalar) = (self.plan.num_warps.get(), self.scalar.clone());
        let mut regions = Vec::new();
        for (&warps, &region) in warps.iter().zip(&op.regions) {
            self.plan.num_warps.set(warps);
            self.scalar = Layout::scalar(warps).map_err(|e| fault(e.to_string()))?;
            let before = self.forms.clone();
            self.builder.open(&[]);
            self.region(region)?;
            regions.push(self.builder.close());
            self.forms = before;
        }
        self.plan.num_warps.set(block);
        self.scalar = scalar;
        self.builder.emit_with_regions(op.kind, Vec::new(), regions, Vec::new(), op.loc);
        Ok(())
    }

    fn control(&mut self, id: OpId) -> Result<(), Fault> {
        let op = self.plan.kernel.ops[id].clone();
        let carried = op.results.len().min(op.operands.len());
        let first =
            op.operands.len() - if matches!(op.kind, OpKind::For(_) | OpKind::Loop(_)) { carried } else { 0 };
        let mut operands = Vec::new();
        for (i, &operand) in op.operands.iter().enumerate() {
            let fixed = (i >= first && self.plan.placed(operand))
                .then(|| Demand::Regs(self.plan.fixed(op.results[i - first])));
            operands.push(self.form(operand, fixed.as_ref())?);
        }
        let mut regions = Vec::new();
        for &region in &op.regions {
            let args = self.plan.kernel.regions[region].args.clone();
            let types: Vec<Type> = args.iter().map(|&a| self.plan.kernel.ty(a).clone()).collect();
            let before = self.forms.clone();
            let (_, new_args) = self.builder.open(&types);
            for (&old, &new) in args.iter().zip(&new_args) {
                self.define_result(old, new);
            }
            self.region(region)?;
            regions.push(self.builder.close());
            self.forms = before;
        }
        let types = op.results.iter().map(|&r| self.plan.kernel.ty(r).clone()).collect();
        let results = self.builder.emit_with_regions(op.kind.clone(), operands, regions, types, op.loc);
        for (&old, &new) in op.results.iter().zip(&results) {
            self.define_result(old, new);
        }
        Ok(())
    }
}

/// What an operation becomes once its operands are placed: an `extract` reads out of shared memory.
fn placed_kind(kind: &OpKind) -> OpKind {
    match kind {
        OpKind::Extract(op) => {
            let origin = op.index.iter().zip(&op.shape).map(|(i, n)| i * n).collect();
            FromShared { origin, shape: op.shape.clone() }.into()
        }
        other => other.clone(),
    }
}
