//! Elements of tensors named by index tiles: their addresses, and the accesses of gathers, scatters and atomics.

use std::collections::HashMap;

use super::{LowerCx, Slot};
use crate::ir::{Elem, OpId, TensorType};
use crate::layout::ThreadOffset;
use crate::ops::indexed::Indexed;
use crate::ptx::{Addr, AtomOp, Cmp, Inst, MemSem, Operand, PredOp, Reg, Scope, Space, Ty};

/// An element: its address, and the predicate under which it is inside the tensor and not masked.
#[derive(Clone, Copy)]
pub(crate) struct Element {
    /// Where it is, if the predicate holds.
    pub(crate) addr: Addr,
    /// Whether it may be accessed.
    pub(crate) pred: Reg,
}

/// An instruction that reads and replaces an element in one step.
#[derive(Clone, Copy)]
pub(crate) struct Update {
    /// What it does.
    pub(crate) op: AtomOp,
    /// On which type.
    pub(crate) ty: Ty,
    /// What it orders, and among whom.
    pub(crate) sem: MemSem,
}

/// What the elements of one operation share: most index tiles repeat along some axis.
#[derive(Default)]
struct Known {
    /// For an index along an axis, its byte offset and whether it is inside.
    axes: HashMap<(usize, Operand), (Operand, Reg)>,
    /// Addresses and predicates of the first axes together.
    sums: HashMap<Vec<Operand>, (Operand, Reg)>,
}

impl LowerCx<'_> {
    /// The elements that the registers of index tiles name, in the order of the registers.
    pub(crate) fn elements(&mut self, indexed: &Indexed<'_>) -> Vec<Element> {
        let (param, _, elem) = self.tensor(indexed.tensor);
        let index: Vec<(Elem, Vec<Operand>)> =
            indexed.index.iter().map(|&v| (self.elem(v), self.values(v))).collect();
        let mask = indexed.mask.map(|mask| self.values(mask));
        let mut known = Known::default();
        (0..index[0].1.len())
            .map(|reg| {
                let at: Vec<(Elem, Operand)> =
                    index.iter().map(|(elem, values)| (*elem, values[reg])).collect();
                let (address, mut pred) = self.element_at(param, elem, &at, &mut known);
                if let Some(mask) = &mask {
                    let mask = self.in_reg(Elem::Bool, mask[reg]);
                    pred = self.f.pred(PredOp::And, pred, mask);
                }
                Element { addr: Addr::reg(self.f.materialize(Ty::B64, address), 0), pred }
            })
            .collect()
    }

    /// The address at the given indices of the first axes, and whether all of them are inside.
    fn element_at(
        &mut self,
        param: usize,
        elem: Elem,
        at: &[(Elem, Operand)],
        known: &mut Known,
    ) -> (Operand, Reg) {
        let key: Vec<Operand> = at.iter().map(|&(_, index)| index).collect();
        if let Some(&sum) = known.sums.get(&key) {
            return sum;
        }
        let (&last, before) = at.split_last().expect("a tensor has an axis");
        let (offset, inside) = self.along(param, elem, before.len(), last, known);
        let sum = if before.is_empty() {
            let base: Operand = self.param(Slot::Pointer { param }).into();
            (self.f.add_s64(base, offset), inside)
        } else {
            let (address, pred) = self.element_at(param, elem, before, known);
            (self.f.add_s64(address, offset), self.f.pred(PredOp::And, pred, inside))
        };
        known.sums.insert(key, sum);
        sum
    }

    /// The byte offset of an index along an axis, and whether it is inside.
    fn along(
        &mut self,
        param: usize,
        elem: Elem,
        axis: usize,
        (of, index): (Elem, Operand),
        known: &mut Known,
    ) -> (Operand, Reg) {
        if let Some(&along) = known.axes.get(&(axis, index)) {
            return along;
        }
        // As unsigned numbers, negative indices are beyond every extent, of which the largest is 2^31 - 1.
        let extent = self.param(Slot::Extent { param, axis });
        let inside = match of {
            Elem::I64 => {
                let extent = self.hoist(|f| f.cvt(Ty::S64, Ty::U32, extent));
                self.f.setp(Cmp::Lt, Ty::U64, index, extent)
            }
            _ => self.f.setp(Cmp::Lt, Ty::U32, index, extent),
        };
        let wide = self.f.cvt(Ty::S64, super::int_ty(of), index);
        let stride = self.byte_stride(param, axis, elem);
        let along = (self.f.mul_lo_s64(wide, stride), inside);
        known.axes.insert((axis, index), along);
        along
    }

    /// Reads elements; those outside the tensor, or masked, are `pad`.
    pub(crate) fn gather(
        &mut self,
        indexed: &Indexed<'_>,
        tensor: &TensorType,
        pad: Operand,
    ) -> Vec<Operand> {
        let mut out = Vec::new();
        for Element { addr, pred } in self.elements(indexed) {
            let read_only = !tensor.mutable;
            out.extend(self.load_vector(tensor.elem, 1, Space::Global, addr, Some(pred), pad, read_only));
        }
        out
    }

    /// Writes elements but for those outside the tensor, or masked. Several threads may write one: that is no race of
    /// relaxed stores.
    pub(crate) fn scatter(&mut self, indexed: &Indexed<'_>) {
        let value = indexed.values[0];
        let (elem, values) = (self.elem(value), self.values(value));
        let owner = self.element_owner(value);
        for (Element { addr, mut pred }, value) in self.elements(indexed).into_iter().zip(values) {
            if let Some(owner) = owner {
                pred = self.f.pred(PredOp::And, pred, owner);
            }
            let ty = super::shared::word_ty(elem);
            let srcs = [Operand::from(self.raw_bits(elem, value))].into_iter().collect();
            let sem = MemSem::Relaxed(Scope::Gpu);
            self.f.emit_if(pred, Inst::St { space: Space::Global, ty, sem, cache: None, addr, srcs });
        }
    }

    /// A predicate that elects one thread for each element of a tile; `None` if there are no copies.
    pub(super) fn element_owner(&mut self, tile: crate::ir::ValueId) -> Option<Reg> {
        let (lane, warp) = self.layout(tile).replication();
        self.owner(lane, warp)
    }

    /// Updates elements, each by one of the threads that hold it. Returns the old values, zero for elements outside the
    /// tensor, masked, or left to another thread.
    pub(crate) fn update(&mut self, indexed: &Indexed<'_>, update: Update, returns: bool) -> Vec<Operand> {
        let Update { op, ty, sem } = update;
        let elem = self.elem(indexed.values[0]);
        let values: Vec<Vec<Operand>> = indexed.values.iter().map(|&v| self.values(v)).collect();
        let owner = self.element_owner(indexed.values[0]);
        let reduces = !returns && matches!(sem, MemSem::Relaxed(_) | MemSem::Release(_));
        let mut out = Vec::new();
        for (reg, Element { addr, mut pred }) in self.elements(indexed).into_iter().enumerate() {
            if let Some(owner) = owner {
                pred = self.f.pred(PredOp::And, pred, owner);
            }
            let mut words =
                values.iter().map(|values| self.as_word(ty, elem, values[reg])).collect::<Vec<_>>();
            let src = words.pop().expect("an update has a value");
            let space = Space::Global;
            if reduces && !matches!(op, AtomOp::Exch | AtomOp::Cas) {
                self.f.emit_if(pred, Inst::Red { op, ty, space, sem, addr, src });
                out.push(Operand::Imm(0));
                continue;
            }
            let dst = self.f.reg(ty.class());
            self.f.mov_to(ty, dst, if ty == Ty::F32 { Operand::f32(0.0) } else { Operand::Imm(0) });
            self.f.emit_if(pred, Inst::Atom { op, ty, space, sem, dst, addr, cmp: words.pop(), src });
            out.push(self.of_word(elem, dst));
        }
        out
    }

    /// An element as an instruction of another type of its width takes it.
    fn as_word(&mut self, ty: Ty, elem: Elem, value: Operand) -> Operand {
        if elem != Elem::F32 || ty == Ty::F32 {
            return value;
        }
        let (from, word) = (self.in_reg(elem, value), self.f.reg(ty.class()));
        self.f.mov_to(ty, word, from);
        word.into()
    }

    /// The element in a register of an instruction of another type of its width.
    fn of_word(&mut self, elem: Elem, word: Reg) -> Operand {
        if elem != Elem::F32 || word.class == super::class(elem) {
            return word.into();
        }
        let value = self.f.reg(super::class(elem));
        self.f.mov_to(Ty::B32, value, word);
        value.into()
    }

    /// Gives old values from the threads that have them to all that hold their elements, through the operation's scratch.
    pub(crate) fn share_old(&mut self, id: OpId, indexed: &Indexed<'_>, old: &[Operand]) -> Vec<Operand> {
        let (elem, layout) = (self.elem(indexed.values[0]), self.layout(indexed.values[0]).clone());
        let owner = self.element_owner(indexed.values[0]);
        let at = (self.shared_base(), self.shared.scratch[&id]);
        let scaled = |base: u32| base * elem.bytes() as u32;
        let thread = ThreadOffset {
            lane: layout.lane().map(scaled),
            warp: layout.warp().iter().map(|&base| scaled(base)).collect(),
        };
        let offsets: Vec<u32> = (0..layout.num_regs()).map(|reg| scaled(layout.flat(reg, 0, 0))).collect();
        for (&offset, &old) in offsets.iter().zip(old) {
            let addr = self.shared_address(at, &thread, offset);
            self.store_vector(elem, &[old], Space::Shared, addr, owner);
        }
        self.barrier();
        let mut out = Vec::new();
        for offset in offsets {
            let addr = self.shared_address(at, &thread, offset);
            out.extend(self.load_vector(elem, 1, Space::Shared, addr, None, Operand::Imm(0), false));
        }
        out
    }
}
