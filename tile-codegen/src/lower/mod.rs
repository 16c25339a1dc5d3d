//! Lowering of a laid-out kernel to PTX: what the operations' `lower` hooks share.
//!
//! A tile value is a list of operands, one for each register of its layout; a scalar has one. Loop-invariant thread
//! coordinates and parameters are computed once, in a prologue. Branches follow scalars, which are equal in all threads
//! of a block, so that every branch is uniform and barriers may stand anywhere.

pub mod abi;
mod bulk_store;
pub mod channels;
mod control;
pub mod convert;
pub mod fma;
pub mod global;
pub mod indexed;
pub mod math;
mod rings;
mod roles;
pub mod shared;
mod thread;
pub mod wgmma;

use std::collections::BTreeMap;

pub use abi::Slot;
pub(crate) use control::Jumps;

use crate::ir::{Elem, Kernel, OpId, ParamKind, RegionId, ValueId};
use crate::layout::Layout;
use crate::ops::lower::Lower;
use crate::passes::accumulators::Accumulators;
use crate::passes::allocate_shared::SharedPlan;
use crate::ptx::{self, FuncBuilder, Line, Operand, Reg, RegClass, Shared, Ty};
use crate::target::Target;

/// The state of lowering one kernel.
pub struct LowerCx<'k> {
    /// The laid-out kernel.
    pub kernel: &'k Kernel,
    /// Where shared tiles and scratch lie.
    pub shared: &'k SharedPlan,
    /// The function so far, without the prologue.
    pub f: FuncBuilder,
    /// What runs once before the function, or the role, and then before each arm around that has its own.
    prologues: Vec<Vec<Line>>,
    values: BTreeMap<ValueId, Vec<Operand>>,
    params: BTreeMap<Slot, u32>,
    loaded: BTreeMap<Slot, Reg>,
    thread: thread::ThreadRegs,
    packed: BTreeMap<(Reg, Reg), Reg>,
    global: global::Cache,
    /// Who runs the code.
    crew: roles::Crew,
    channels: channels::Channels,
    /// Blocks that share the registers of a multiprocessor.
    blocks: usize,
    /// Whether bulk tensor copies store tiles.
    bulk_stores: bool,
    /// Whether the target stores matrices to shared memory as it loads them.
    stores_matrices: bool,
    /// Tensor maps, in the order of the parameters.
    maps: Vec<channels::MapPlan>,
    /// The stage of each received or copied tile, and of views.
    stages: BTreeMap<ValueId, Reg>,
    accumulators: Accumulators,
    /// Whether carried accumulators that start as zeros hold something yet.
    lazy: BTreeMap<ValueId, Reg>,
    jumps: Jumps,
}

/// The register class that holds an element.
pub fn class(elem: Elem) -> RegClass {
    match elem {
        Elem::F32 | Elem::TF32 => RegClass::F32,
        Elem::F16 | Elem::BF16 => RegClass::B16,
        Elem::I32 | Elem::U32 => RegClass::B32,
        Elem::I64 => RegClass::B64,
        Elem::Bool => RegClass::Pred,
    }
}

/// The type that moves an element between registers.
pub fn move_ty(elem: Elem) -> Ty {
    match elem {
        Elem::F32 | Elem::TF32 => Ty::F32,
        Elem::F16 | Elem::BF16 => Ty::B16,
        Elem::I32 | Elem::U32 => Ty::B32,
        Elem::I64 => Ty::B64,
        Elem::Bool => Ty::Pred,
    }
}

/// The type of integer arithmetic.
pub fn int_ty(elem: Elem) -> Ty {
    match elem {
        Elem::U32 => Ty::U32,
        Elem::I64 => Ty::S64,
        Elem::I32 | Elem::F32 | Elem::F16 | Elem::BF16 | Elem::TF32 | Elem::Bool => Ty::S32,
    }
}

/// Lowers a laid-out kernel to a PTX kernel and the order of its parameters. At least `blocks` share a multiprocessor.
pub fn lower(
    kernel: &Kernel,
    shared: &SharedPlan,
    target: &Target,
    blocks: usize,
) -> (ptx::Kernel, Vec<Slot>) {
    let num_warps = kernel.num_warps.expect("a laid-out kernel has its number of warps");
    let mut f = FuncBuilder::new(kernel.name.clone(), 32 * num_warps as u32);
    let slots = abi::slots(kernel);
    let params = slots.iter().map(|slot| (*slot, abi::declare(&mut f, kernel, *slot))).collect();
    if shared.bytes > 0 {
        f.kernel_mut().shared = Shared::Dynamic { align: 1024 };
    }
    let mut cx = LowerCx {
        kernel,
        shared,
        f,
        prologues: vec![Vec::new()],
        values: BTreeMap::new(),
        params,
        loaded: BTreeMap::new(),
        thread: thread::ThreadRegs::default(),
        packed: BTreeMap::new(),
        global: global::Cache::default(),
        crew: roles::Crew { first_warp: 0, warps: num_warps, barrier: 0, whole: true, single: false },
        channels: channels::Channels::default(),
        blocks,
        bulk_stores: false,
        stores_matrices: target.warpgroups,
        maps: channels::maps(kernel),
        stages: BTreeMap::new(),
        accumulators: Accumulators::of(kernel),
        lazy: BTreeMap::new(),
        jumps: Jumps::default(),
    };
    cx.bulk_stores = cx.has_bulk_stores();
    cx.scalar_params();
    cx.init_channels();
    cx.region(kernel.body);
    if !cx.has_roles() {
        cx.wait_for_bulk_stores();
    }
    let LowerCx { mut f, prologues, .. } = cx;
    let mut prologue = prologues.concat();
    let body = std::mem::take(&mut f.kernel_mut().lines);
    prologue.extend(body);
    f.kernel_mut().lines = prologue;
    (f.finish(), slots)
}

impl LowerCx<'_> {
    /// Binds the scalar parameters, which are loaded before everything else.
    fn scalar_params(&mut self) {
        let kernel = self.kernel;
        let scalars = kernel.params.iter().enumerate().filter(|(_, p)| p.kind == ParamKind::Scalar);
        for (param, p) in scalars {
            let mut reg = self.param(Slot::Scalar { param });
            if kernel.tile(p.value).elem == Elem::Bool {
                reg = self.hoist(|f| f.setp(ptx::Cmp::Ne, Ty::U32, reg, 0));
            }
            self.bind(p.value, vec![reg.into()]);
        }
    }

    /// Lowers the operations of a region in order.
    pub fn region(&mut self, region: RegionId) {
        for &id in &self.kernel.regions[region].ops {
            let op = &self.kernel.ops[id];
            self.f.set_loc(op.loc.0);
            op.kind.lower(self, id);
        }
    }

    /// Emits instructions that run once, before everything else in the innermost prologue. They may use only what was
    /// hoisted before.
    pub fn hoist<R>(&mut self, emit: impl FnOnce(&mut FuncBuilder) -> R) -> R {
        let innermost = self.prologues.len() - 1;
        self.hoist_to(innermost, emit)
    }

    /// As [`LowerCx::hoist`], before the whole function or role: for registers that change and are read wherever it goes.
    pub(crate) fn hoist_state<R>(&mut self, emit: impl FnOnce(&mut FuncBuilder) -> R) -> R {
        self.hoist_to(0, emit)
    }

    fn hoist_to<R>(&mut self, prologue: usize, emit: impl FnOnce(&mut FuncBuilder) -> R) -> R {
        let mark = self.f.len();
        let result = emit(&mut self.f);
        let tail = self.f.kernel_mut().lines.split_off(mark);
        self.prologues[prologue].extend(tail);
        result
    }

    /// Lowers code that may not run, and at most once, with a prologue of its own, so that nothing of it costs time or registers
    /// elsewhere. It computes again what is known already, which else would stay in registers up to it.
    fn with_own_prologue(&mut self, lower: impl FnOnce(&mut Self)) {
        let start = self.f.len();
        let loaded = std::mem::take(&mut self.loaded);
        let thread = std::mem::take(&mut self.thread);
        let global = std::mem::take(&mut self.global);
        let maps = std::mem::take(&mut self.channels.maps);
        self.prologues.push(Vec::new());
        lower(self);
        let own = self.prologues.pop().expect("it was pushed above");
        let body = self.f.kernel_mut().lines.split_off(start);
        self.f.kernel_mut().lines.extend(own.into_iter().chain(body));
        (self.loaded, self.thread, self.global, self.channels.maps) = (loaded, thread, global, maps);
    }

    /// A kernel parameter in a register.
    pub fn param(&mut self, slot: Slot) -> Reg {
        if let Some(reg) = self.loaded.get(&slot) {
            return *reg;
        }
        let (ty, index) = (slot.ty(self.kernel), self.params[&slot]);
        let reg = self.hoist(|f| f.ld_param(ty, index));
        self.loaded.insert(slot, reg);
        reg
    }

    /// The operands of a value: one for each register of its layout.
    pub fn values(&self, value: ValueId) -> Vec<Operand> {
        self.values.get(&value).cloned().expect("a value is lowered before its uses")
    }

    /// The operand of a scalar.
    pub fn scalar(&self, value: ValueId) -> Operand {
        self.values(value)[0]
    }

    /// Binds a value.
    pub fn bind(&mut self, value: ValueId, operands: Vec<Operand>) {
        self.values.insert(value, operands);
    }

    /// Binds the single result of an operation.
    pub fn bind_result(&mut self, id: OpId, operands: Vec<Operand>) {
        if let Some(&accumulator) = self.accumulators.updates.get(&id) {
            let regs = self.values(accumulator);
            for (reg, value) in regs.iter().zip(operands) {
                self.f.mov_to(Ty::F32, reg.reg().expect("an accumulator is in registers"), value);
            }
            self.bind(self.kernel.ops[id].results[0], regs);
            return;
        }
        self.bind(self.kernel.ops[id].results[0], operands);
    }

    /// The layout of a tile.
    pub fn layout(&self, value: ValueId) -> &Layout {
        self.kernel.values[value].layout.as_ref().expect("a laid-out kernel has a layout for every tile")
    }

    /// The element type of a tile.
    pub fn elem(&self, value: ValueId) -> Elem {
        self.kernel.tile(value).elem
    }

    /// The operand in a register.
    pub fn in_reg(&mut self, elem: Elem, operand: Operand) -> Reg {
        match operand {
            Operand::Reg(reg) => reg,
            other if elem == Elem::Bool => {
                // Predicates have no literals in `mov`.
                self.f.setp(ptx::Cmp::Ne, Ty::S32, other, 0)
            }
            other => {
                let dst = self.f.reg(class(elem));
                self.f.mov_to(move_ty(elem), dst, other);
                dst
            }
        }
    }

    /// Two 16-bit registers as one of 32 bits; halves that came out of one are put back for free.
    pub fn pack2(&mut self, low: Reg, high: Reg) -> Reg {
        if let Some(&whole) = self.packed.get(&(low, high)) {
            return whole;
        }
        self.f.pack(Ty::B32, &[low, high])
    }

    /// The halves of a 32-bit register.
    pub fn unpack2(&mut self, whole: Reg) -> [Reg; 2] {
        let [low, high] = self.f.unpack::<2>(Ty::B32, RegClass::B16, whole);
        self.packed.insert((low, high), whole);
        [low, high]
    }
}
