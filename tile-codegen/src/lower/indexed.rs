//! Elements of tensors named by index tiles: their addresses, and the accesses of gathers and scatters.

use std::collections::HashMap;

use super::{LowerCx, Slot};
use crate::ir::{Elem, TensorType};
use crate::ops::indexed::Indexed;
use crate::ptx::{Addr, Cmp, Inst, MemSem, Operand, PredOp, Reg, Scope, Space, Ty};

/// An element: its address, and the predicate under which it is inside the tensor and not masked.
#[derive(Clone, Copy)]
pub(crate) struct Element {
    /// Where it is, if the predicate holds.
    pub(crate) addr: Addr,
    /// Whether it may be accessed.
    pub(crate) pred: Reg,
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
}
