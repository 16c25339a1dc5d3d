//! Shared memory: writing and reading register tiles, by vectors or by `ldmatrix`; and vectors of any space.

use super::{LowerCx, class};
use crate::ir::Elem;
use crate::layout::{Layout, SharedAccess, SharedLayout, ThreadOffset, ldmatrix};
use crate::ptx::{Addr, Inst, IntOp, LdCache, MemSem, Operand, Reg, Regs, Space, StCache, Ty};

/// The memory type, the count and the elements of each word of a vector access.
fn words(elem: Elem, count: usize) -> (Ty, usize, usize) {
    match (elem, count) {
        (Elem::Bool, _) => (Ty::U8, count, 1),
        (Elem::F16 | Elem::BF16, 1) => (Ty::B16, 1, 1),
        (Elem::F16 | Elem::BF16, n) => (Ty::B32, n / 2, 2),
        (Elem::F32 | Elem::TF32, n) => (Ty::F32, n, 1),
        (Elem::I32 | Elem::U32, n) => (Ty::B32, n, 1),
        (Elem::I64, n) => (Ty::B64, n, 1),
    }
}

/// The type in memory of one element.
pub(super) fn word_ty(elem: Elem) -> Ty {
    words(elem, 1).0
}

impl LowerCx<'_> {
    /// The address of a thread's access to a shared tile at `tile`, a register and a constant: `tile + (thread ^ offset)`.
    pub fn shared_address(&mut self, tile: (Reg, u32), thread: &ThreadOffset, offset: u32) -> Addr {
        let (xor, add) = thread.split(offset);
        let part = self.linear(thread);
        let turned = self.f.int(IntOp::Xor, Ty::B32, part, xor);
        let address = self.f.add_s32(tile.0, turned);
        let address = self.f.materialize(Ty::B32, address);
        Addr::reg(address, i64::from(tile.1 + add))
    }

    /// Writes a tile held in `layout`.
    pub fn write_shared(
        &mut self,
        elem: Elem,
        values: &[Operand],
        layout: &Layout,
        shared: &SharedLayout,
        tile: (Reg, u32),
    ) {
        let (lane, warp) = layout.replication();
        if self.stores_matrices
            && matches!(elem, Elem::F16 | Elem::BF16)
            && (lane, warp) == (0, 0)
            && let Some(plan) = ldmatrix(layout, shared)
        {
            return self.write_matrices(elem, values, &plan, tile);
        }
        let access = SharedAccess::new(layout, shared);
        let owner = self.owner(lane, warp);
        for (regs, &offset) in access.vectors.iter().zip(&access.offsets) {
            let addr = self.shared_address(tile, &access.thread, offset);
            let part: Vec<Operand> = regs.iter().map(|&r| values[r]).collect();
            self.store_vector(elem, &part, Space::Shared, addr, owner);
        }
    }

    /// Reads a tile, or the sub-tile at element `origin`, into `layout`.
    pub fn read_shared(
        &mut self,
        elem: Elem,
        layout: &Layout,
        shared: &SharedLayout,
        origin: &[usize],
        tile: (Reg, u32),
    ) -> Vec<Operand> {
        if layout.shape() != shared.shape {
            return self.read_sub_tile(elem, layout, shared, origin, tile);
        }
        if matches!(elem, Elem::F16 | Elem::BF16 | Elem::TF32 | Elem::F32)
            && let Some(plan) = ldmatrix(layout, shared)
        {
            return self.read_matrices(elem, layout, &plan, tile);
        }
        let access = SharedAccess::new(layout, shared);
        let mut out = vec![Operand::Imm(0); layout.num_regs()];
        for (regs, &offset) in access.vectors.iter().zip(&access.offsets) {
            let addr = self.shared_address(tile, &access.thread, offset);
            let loaded =
                self.load_vector(elem, regs.len(), Space::Shared, addr, None, Operand::Imm(0), false);
            for (&reg, value) in regs.iter().zip(loaded) {
                out[reg] = value;
            }
        }
        out
    }

    /// `stmatrix` moves what `ldmatrix` would, the other way.
    fn write_matrices(
        &mut self,
        elem: Elem,
        values: &[Operand],
        plan: &crate::layout::Ldmatrix,
        tile: (Reg, u32),
    ) {
        for step in &plan.steps {
            let addr = self.shared_address(tile, &plan.row, step.offset);
            let mut word = |first: usize| {
                let [low, high] = [values[first], values[first + 1]].map(|v| self.in_reg(elem, v));
                self.pack2(low, high)
            };
            let srcs = step.dests.iter().map(|&first| word(first)).collect();
            self.f.emit(Inst::Stmatrix { trans: plan.trans, addr, srcs });
        }
    }

    fn read_matrices(
        &mut self,
        elem: Elem,
        layout: &Layout,
        plan: &crate::layout::Ldmatrix,
        tile: (Reg, u32),
    ) -> Vec<Operand> {
        let mut out = vec![Operand::Imm(0); layout.num_regs()];
        for step in &plan.steps {
            let addr = self.shared_address(tile, &plan.row, step.offset);
            let words = self.f.ldmatrix(plan.matrices, plan.trans, addr);
            for (&first, &word) in step.dests.iter().zip(&words) {
                if plan.packed == 2 {
                    let [low, high] = self.unpack2(word);
                    out[first] = low.into();
                    out[first + 1] = high.into();
                } else {
                    let value = self.f.reg(class(elem));
                    self.f.mov_to(Ty::B32, value, word);
                    out[first] = value.into();
                }
            }
        }
        out
    }

    fn read_sub_tile(
        &mut self,
        elem: Elem,
        layout: &Layout,
        shared: &SharedLayout,
        origin: &[usize],
        tile: (Reg, u32),
    ) -> Vec<Operand> {
        let flat = |coords: &[usize]| coords.iter().zip(&shared.shape).fold(0, |f, (c, n)| f * n + c) as u32;
        // A sub-tile starts at a multiple of its shape, so that coordinates add without carries.
        let lift = |index: u32| {
            let mut rest = index as usize;
            let mut coords = vec![0; layout.shape().len()];
            for (axis, &n) in layout.shape().iter().enumerate().rev() {
                coords[axis] = rest % n;
                rest /= n;
            }
            shared.offset(flat(&coords))
        };
        let thread = ThreadOffset {
            lane: layout.lane().map(lift),
            warp: layout.warp().iter().map(|&b| lift(b)).collect(),
        };
        let start = shared.offset(flat(origin));
        (0..layout.num_regs())
            .map(|reg| {
                let addr = self.shared_address(tile, &thread, start ^ lift(layout.flat(reg, 0, 0)));
                self.load_vector(elem, 1, Space::Shared, addr, None, Operand::Imm(0), false)[0]
            })
            .collect()
    }

    /// Loads consecutive elements; where `pred` is false they are `pad`, which is then given in bits of the element.
    #[expect(clippy::too_many_arguments, reason = "one access has this many properties")]
    pub fn load_vector(
        &mut self,
        elem: Elem,
        count: usize,
        space: Space,
        addr: Addr,
        pred: Option<Reg>,
        pad: Operand,
        read_only: bool,
    ) -> Vec<Operand> {
        let (ty, words, per_word) = words(elem, count);
        let cache = (read_only && space == Space::Global).then_some(LdCache::Nc);
        let mut loaded = Vec::new();
        // Bytes have no vector registers of their own size here: one access each.
        let chunks = if elem == Elem::Bool { words } else { 1 };
        for chunk in 0..chunks {
            let addr = Addr { offset: addr.offset + chunk as i64, ..addr };
            let dsts: Regs = (0..words / chunks).map(|_| self.f.reg(ty.class())).collect();
            if pred.is_some() {
                let pad = repeated(elem, pad, per_word);
                for &dst in &dsts {
                    self.f.mov_to(pad_ty(ty), dst, pad);
                }
            }
            let inst = Inst::Ld { space, ty, sem: MemSem::Weak, cache, dsts: dsts.clone(), addr };
            self.f.emit_guarded(pred.map(|p| (p, false)), inst);
            loaded.extend(dsts);
        }
        let mut out = Vec::with_capacity(count);
        for word in loaded {
            if per_word == 2 {
                out.extend(self.unpack2(word).map(Operand::from));
            } else {
                out.push(self.from_bits(elem, word));
            }
        }
        out
    }

    /// Stores consecutive elements where `pred` is true.
    pub fn store_vector(
        &mut self,
        elem: Elem,
        values: &[Operand],
        space: Space,
        addr: Addr,
        pred: Option<Reg>,
    ) {
        let (ty, _, per_word) = words(elem, values.len());
        let mut srcs: Vec<Operand> = Vec::new();
        for part in values.chunks(per_word) {
            let bits: Vec<Reg> = part.iter().map(|&x| self.raw_bits(elem, x)).collect();
            srcs.push(match bits[..] {
                [low, high] => self.pack2(low, high).into(),
                _ => bits[0].into(),
            });
        }
        let guard = pred.map(|p| (p, false));
        let cache: Option<StCache> = None;
        let chunk = if elem == Elem::Bool { 1 } else { srcs.len() };
        for (i, srcs) in srcs.chunks(chunk).enumerate() {
            let addr = Addr { offset: addr.offset + (i * chunk * ty.bytes() as usize) as i64, ..addr };
            let srcs = srcs.iter().copied().collect();
            self.f.emit_guarded(guard, Inst::St { space, ty, sem: MemSem::Weak, cache, addr, srcs });
        }
    }
}

/// The register type that a padding constant is moved with.
fn pad_ty(ty: Ty) -> Ty {
    if ty == Ty::U8 { Ty::U16 } else { ty }
}

/// A padding constant in each element of a word.
fn repeated(elem: Elem, pad: Operand, per_word: usize) -> Operand {
    match (elem, pad) {
        (Elem::F16 | Elem::BF16, Operand::Imm(bits)) if per_word == 2 => {
            let bits = bits as u16 as i64;
            Operand::Imm(bits | bits << 16)
        }
        (_, pad) => pad,
    }
}
