//! `atomic_add` and its like: elements of a tensor, named by index tiles, are read and replaced in one step each.
//!
//! Each element of the index tiles is applied exactly once, in an unspecified order, also where several name one place.
//! Operations of a block take place in the order of the program: what it stored before is stored when an operation of
//! order release takes place, and what it loads after one of order acquire is loaded after it. The old value of a scalar
//! is the same in all threads of a block, so that it may decide which way the block goes.

use super::indexed::{self, IndexTiles, Indexed, Mask};
use super::store::StoreValue;
use super::{Attr, AttrReader, Effects, TileOp};
use crate::diag::{Code, OpError};
use crate::dsl::session::{self, Raw};
use crate::dsl::{AtomicNumber, Int, TensorMut, Tile};
use crate::ir::{Class, Elem, Kernel, Op, Type};

macro_rules! words {
    ($(#[doc = $about:literal])+ $name:ident { $(#[doc = $doc:literal] $variant:ident $word:literal,)* }) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum $name { $(#[doc = $doc] $variant,)* }
        impl $name {
            /// All of them.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];
            /// The name in IR text.
            pub fn name(self) -> &'static str { match self { $($name::$variant => $word,)* } }
            fn from_name(name: &str) -> Result<Self, OpError> {
                let found = Self::ALL.iter().copied().find(|w| w.name() == name);
                let names = Self::ALL.iter().map(|w| w.name()).collect::<Vec<_>>().join("`, `");
                found.ok_or_else(|| {
                    OpError::new(Code::Parse, format!("found `{name}`, expected one of `{names}`"))
                })
            }
        }
    };
}
words! {
    /// What becomes of an element.
    AtomicOp {
        /// The sum of the old value and the given one.
        Add "atomic_add",
        /// The smaller one.
        Min "atomic_min",
        /// The larger one.
        Max "atomic_max",
        /// The bits of both.
        And "atomic_and",
        /// The bits of either.
        Or "atomic_or",
        /// The bits of one of them alone.
        Xor "atomic_xor",
        /// The given value.
        Xchg "atomic_xchg",
        /// The desired value if the old one is the expected one, else the old one.
        Cas "atomic_cas",
    }
}
words! {
    /// What an atomic operation orders besides itself. Operations of different blocks that meet at one element are ordered;
    /// what a block stored before a release there, a block sees after an acquire there that comes later.
    MemoryOrder {
        /// Nothing.
        Relaxed "relaxed",
        /// What the block accesses later comes after it.
        Acquire "acquire",
        /// What the block accessed earlier comes before it.
        Release "release",
        /// Both.
        AcqRel "acq_rel",
    }
}
words! {
    /// Among whom an atomic operation is one step, and ordered.
    MemoryScope {
        /// The threads of the block. Other blocks must not access the elements meanwhile.
        Block "block",
        /// All blocks of the device.
        Device "device",
        /// The device, other devices and the host.
        System "system",
    }
}

/// How an atomic operation is done: its mask, order and scope.
///
/// ```
/// use tile_codegen::dsl::prelude::{Atomically, MemoryOrder, MemoryScope};
///
/// let counter = Atomically::new().order(MemoryOrder::Relaxed).scope(MemoryScope::Device);
/// assert_eq!(counter.order, MemoryOrder::Relaxed);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Atomically {
    /// What it orders; `AcqRel` unless said.
    pub order: MemoryOrder,
    /// Among whom; `Device` unless said.
    pub scope: MemoryScope,
    mask: Option<Raw>,
}

impl Default for Atomically {
    fn default() -> Self {
        Self::new()
    }
}

impl Atomically {
    /// Everywhere, with the strongest order, among the blocks of the device.
    pub const fn new() -> Self {
        Self { order: MemoryOrder::AcqRel, scope: MemoryScope::Device, mask: None }
    }
    /// Sets [`Atomically::order`]. `Relaxed` is by far the fastest, and right for counters that nobody waits for.
    pub const fn order(self, order: MemoryOrder) -> Self {
        Self { order, ..self }
    }
    /// Sets [`Atomically::scope`].
    pub const fn scope(self, scope: MemoryScope) -> Self {
        Self { scope, ..self }
    }
    /// Only where `mask` holds; it broadcasts with the indices.
    #[track_caller]
    pub fn mask(self, mask: impl Mask) -> Self {
        Self { mask: Some(mask.mask_raw()), ..self }
    }
}

/// (value, tensor, one index tile for each axis, a mask or none) -> the old values; `atomic_cas` has the expected value
/// before the desired one.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Atomic {
    /// What becomes of the elements.
    pub op: AtomicOp,
    /// What it orders.
    pub order: MemoryOrder,
    /// Among whom.
    pub scope: MemoryScope,
}

impl AtomicOp {
    /// How many values it takes.
    pub(crate) fn values(self) -> usize {
        if self == AtomicOp::Cas { 2 } else { 1 }
    }

    /// Whether it has a meaning for elements of this type.
    fn takes(self, elem: Elem) -> bool {
        match self {
            AtomicOp::Add | AtomicOp::Xchg => elem.class() == Class::Int || elem == Elem::F32,
            AtomicOp::Min | AtomicOp::Max | AtomicOp::And | AtomicOp::Or | AtomicOp::Xor | AtomicOp::Cas => {
                elem.class() == Class::Int
            }
        }
    }

    /// Whether the order of several such operations shows in their old values alone.
    fn commutes(self) -> bool {
        match self {
            AtomicOp::Add | AtomicOp::Min | AtomicOp::Max | AtomicOp::And | AtomicOp::Or | AtomicOp::Xor => {
                true
            }
            AtomicOp::Xchg | AtomicOp::Cas => false,
        }
    }
}

impl TileOp for Atomic {
    fn name(&self) -> &'static str {
        self.op.name()
    }
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        vec![("order", Attr::Word(self.order.name())), ("scope", Attr::Word(self.scope.name()))]
    }
    fn parse(name: &str, attrs: &mut AttrReader) -> Option<Result<Self, OpError>> {
        let op = AtomicOp::from_name(name).ok()?;
        let mut rest = || {
            let order = MemoryOrder::from_name(&attrs.word("order")?)?;
            Ok(Self { op, order, scope: MemoryScope::from_name(&attrs.word("scope")?)? })
        };
        Some(rest())
    }
    fn result_count(&self) -> usize {
        1
    }
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
        let name = self.op.name();
        let Some((values, rest)) = operands.split_at_checked(self.op.values()) else {
            let message = format!("`{name}` takes values, a tensor and index tiles");
            return Err(OpError::new(Code::Structure, message));
        };
        let (tensor, shape) = indexed::elements(name, rest)?;
        for value in values {
            let value = super::rule::tile(name, value)?;
            super::rule::same_shape(name, &value.shape, shape)?;
            indexed::same_elem(name, value.elem, tensor.elem)?;
        }
        indexed::writable(name, tensor)?;
        if !self.op.takes(tensor.elem) {
            let types = Elem::ALL.iter().filter(|&&elem| self.op.takes(elem)).map(|elem| format!("`{elem}`"));
            let types = types.collect::<Vec<_>>().join(", ");
            let message = format!("`{name}` on a tensor of `{}`", tensor.elem);
            return Err(OpError::new(Code::ElementType, message).help(format!(
                "memory has this operation for {types}: keep such elements in a tensor of theirs"
            )));
        }
        Ok(vec![Type::tile(tensor.elem, shape.to_vec())])
    }
    fn effects(&self) -> Effects {
        Effects::WritesGlobal
    }
}

impl Atomic {
    /// Whether the old values are used.
    fn returns(kernel: &Kernel, op: &Op) -> bool {
        let mut used = false;
        kernel.walk(|_, user| used |= user.operands.contains(&op.results[0]));
        used
    }

    /// Whether executions of this operation need no order among themselves.
    pub(crate) fn unordered(&self, kernel: &Kernel, op: &Op) -> bool {
        self.order == MemoryOrder::Relaxed && self.op.commutes() && !Self::returns(kernel, op)
    }
}

// ---- in kernels

#[track_caller]
fn raw(op: AtomicOp, values: &[Raw], tensor: Raw, index: &[Raw], how: Atomically) -> Raw {
    let Atomically { order, scope, mask } = how;
    session::op(Atomic { op, order, scope }, &indexed::operands(op.name(), values, tensor, index, mask))
}

macro_rules! functions {
    ($($(#[doc = $doc:literal])+ $f:ident $with:ident $op:ident $bound:ident;)*) => {$(
        $(#[doc = $doc])+
        ///
        /// Each element in one step, with order `AcqRel` among the blocks of the device. `index` has one tile of `i32`, `i64` or
        /// `u32` for each axis, counted in elements; indices and value broadcast to one shape. Returns the old values, zero
        /// where the indices are outside the tensor, which changes nothing.
        #[track_caller]
        pub fn $f<T: $bound, const RANK: usize>(
            tensor: TensorMut<T, RANK>,
            index: impl IndexTiles<RANK>,
            value: impl StoreValue<T>,
        ) -> Tile<T> {
            $with(tensor, index, value, Atomically::new())
        }

        #[doc = concat!("As [`", stringify!($f), "`], with a mask, an order or a scope. Old values are zero where the mask does not hold.")]
        #[track_caller]
        pub fn $with<T: $bound, const RANK: usize>(
            tensor: TensorMut<T, RANK>,
            index: impl IndexTiles<RANK>,
            value: impl StoreValue<T>,
            how: Atomically,
        ) -> Tile<T> {
            let value = value.store_raw(0);
            Tile::new(raw(AtomicOp::$op, &[value], tensor.raw(), &index.tile_raws(), how))
        }
    )*};
}
functions! {
    /// Adds `value` to elements of a tensor; integers wrap. Sums of `f32` depend on the order in which blocks come, and a
    /// GPU may take subnormal numbers for zero.
    atomic_add atomic_add_with Add AtomicNumber;
    /// Replaces elements of a tensor by `value` where it is smaller.
    atomic_min atomic_min_with Min Int;
    /// Replaces elements of a tensor by `value` where it is larger.
    atomic_max atomic_max_with Max Int;
    /// Keeps the bits of elements of a tensor that `value` has as well.
    atomic_and atomic_and_with And Int;
    /// Adds the bits of `value` to elements of a tensor.
    atomic_or atomic_or_with Or Int;
    /// Flips the bits of elements of a tensor that `value` has.
    atomic_xor atomic_xor_with Xor Int;
    /// Replaces elements of a tensor by `value`.
    atomic_xchg atomic_xchg_with Xchg AtomicNumber;
}

/// Replaces elements of a tensor by `desired` where they are `expected`.
///
/// Each element in one step, with order `AcqRel` among the blocks of the device. `index` has one tile of `i32`, `i64` or `u32`
/// for each axis, counted in elements; indices and values broadcast to one shape. Returns the old values, which are the
/// expected ones where the element was replaced; zero where the indices are outside the tensor, which changes nothing.
#[track_caller]
pub fn atomic_cas<T: Int, const RANK: usize>(
    tensor: TensorMut<T, RANK>,
    index: impl IndexTiles<RANK>,
    expected: impl StoreValue<T>,
    desired: impl StoreValue<T>,
) -> Tile<T> {
    atomic_cas_with(tensor, index, expected, desired, Atomically::new())
}

/// As [`atomic_cas`], with a mask, an order or a scope. Old values are zero where the mask does not hold.
#[track_caller]
pub fn atomic_cas_with<T: Int, const RANK: usize>(
    tensor: TensorMut<T, RANK>,
    index: impl IndexTiles<RANK>,
    expected: impl StoreValue<T>,
    desired: impl StoreValue<T>,
    how: Atomically,
) -> Tile<T> {
    let values = [expected.store_raw(0), desired.store_raw(0)];
    Tile::new(raw(AtomicOp::Cas, &values, tensor.raw(), &index.tile_raws(), how))
}

// ---- on the CPU

#[cfg(feature = "cpu")]
impl super::eval::Eval for Atomic {
    fn eval(
        &self,
        _: super::eval::EvalCx,
        operands: &mut super::eval::Operands<'_>,
    ) -> Option<crate::cpu::TileValue> {
        let expected = (self.op == AtomicOp::Cas).then(|| operands.tile());
        let value = operands.tile();
        let elements = crate::cpu::indexed::Elements::new(operands);
        Some(crate::cpu::atomics::update(&elements, self.op, expected.as_ref(), &value))
    }
}

// ---- in PTX

use super::place::{Natural, Place, PlaceCx, Want};
use crate::layout::Layout;
use crate::lower::indexed::Update;
use crate::ptx::{AtomOp, MemSem, Scope, Ty};

impl Place for Atomic {
    fn natural(&self, cx: &PlaceCx<'_>, operands: &[Option<Natural>]) -> Option<Natural> {
        let layout = indexed::layout(cx, &cx.result().shape, operands);
        Some(Natural { layout, weight: 1, soft: false })
    }
    fn wants(&self, cx: &PlaceCx<'_>, operands: &[Option<Natural>], _: Option<&Layout>) -> Vec<Want> {
        indexed::wants(cx, operands)
    }
}

impl Atomic {
    /// The instruction for elements of a type.
    fn instruction(&self, elem: Elem) -> Update {
        let bits = if elem == Elem::I64 { Ty::B64 } else { Ty::B32 };
        let (signed, unsigned) = match elem {
            Elem::I64 => (Ty::S64, Ty::U64),
            Elem::U32 => (Ty::U32, Ty::U32),
            _ => (Ty::S32, Ty::S32),
        };
        let (op, ty) = match self.op {
            AtomicOp::Add if elem == Elem::F32 => (AtomOp::Add, Ty::F32),
            AtomicOp::Add => (AtomOp::Add, unsigned),
            AtomicOp::Min => (AtomOp::Min, signed),
            AtomicOp::Max => (AtomOp::Max, signed),
            AtomicOp::And => (AtomOp::And, bits),
            AtomicOp::Or => (AtomOp::Or, bits),
            AtomicOp::Xor => (AtomOp::Xor, bits),
            AtomicOp::Xchg => (AtomOp::Exch, bits),
            AtomicOp::Cas => (AtomOp::Cas, bits),
        };
        let scope = match self.scope {
            MemoryScope::Block => Scope::Cta,
            MemoryScope::Device => Scope::Gpu,
            MemoryScope::System => Scope::Sys,
        };
        let sem = match self.order {
            MemoryOrder::Relaxed => MemSem::Relaxed(scope),
            MemoryOrder::Acquire => MemSem::Acquire(scope),
            MemoryOrder::Release => MemSem::Release(scope),
            MemoryOrder::AcqRel => MemSem::AcqRel(scope),
        };
        Update { op, ty, sem }
    }
}

impl super::lower::Lower for Atomic {
    /// The old values, where several threads hold copies of an element and one of them changes memory.
    fn scratch(&self, kernel: &Kernel, op: &Op) -> u32 {
        let Some(layout) = &kernel.values[op.operands[0]].layout else { return 0 };
        if layout.replication() == (0, 0) || !Self::returns(kernel, op) {
            return 0;
        }
        let tile = kernel.tile(op.operands[0]);
        (tile.numel() * tile.elem.bytes()) as u32
    }
    fn lower(&self, cx: &mut crate::lower::LowerCx<'_>, id: crate::ir::OpId) {
        let op = cx.kernel.ops[id].clone();
        let indexed = Indexed::of(cx.kernel, &op, self.op.values());
        let returns = Self::returns(cx.kernel, &op);
        let update = self.instruction(cx.elem(indexed.values[0]));
        let old = cx.update(&indexed, update, returns);
        let old = if self.scratch(cx.kernel, &op) > 0 { cx.share_old(id, &indexed, &old) } else { old };
        cx.bind(op.results[0], old);
    }
}
