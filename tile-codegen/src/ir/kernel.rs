//! Kernels: values, operations and regions.

use super::arena::{Arena, Id};
use super::loc::{LocId, Locs};
use super::types::{TileType, Type};
use crate::explain::Note;
use crate::layout::Layout;
use crate::ops::OpKind;

/// Names a value.
pub type ValueId = Id<Value>;
/// Names an operation.
pub type OpId = Id<Op>;
/// Names a region.
pub type RegionId = Id<Region>;

/// An SSA value.
#[derive(Clone, Debug)]
pub struct Value {
    /// Its type.
    pub ty: Type,
    /// Where its elements live in registers, once `assign_layouts` has run. Tiles only.
    pub layout: Option<Layout>,
}

/// An operation.
#[derive(Clone, Debug)]
pub struct Op {
    /// What it does, with its attributes.
    pub kind: OpKind,
    /// Arguments.
    pub operands: Vec<ValueId>,
    /// Results.
    pub results: Vec<ValueId>,
    /// Nested regions (control flow only).
    pub regions: Vec<RegionId>,
    /// Where the user wrote it.
    pub loc: LocId,
}

/// A list of operations with arguments, ended by a terminator.
#[derive(Clone, Debug, Default)]
pub struct Region {
    /// Values bound on entry.
    pub args: Vec<ValueId>,
    /// Operations in order.
    pub ops: Vec<OpId>,
}

/// What is known of a tensor argument at one launch; part of the specialisation and of every cache key.
///
/// The axis of a size-1 extent counts as stride 0: its stride is never used.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TensorFacts {
    /// The axis whose stride is 1, if there is one (the last such axis).
    pub unit_axis: Option<usize>,
    /// Alignment of the base pointer in bytes: a power of two, at most 16.
    pub align: u32,
    /// For each axis, the largest power of two (at most 16) that divides the stride in bytes.
    pub stride_align: Vec<u32>,
    /// For each axis, the largest power of two (at most 16) that divides the extent in elements.
    pub extent_align: Vec<u32>,
    /// Whether every element offset fits in 31 bits.
    pub offsets_fit_i32: bool,
}

impl TensorFacts {
    /// Facts of a row-major tensor about which nothing else is known.
    pub fn contiguous(rank: usize, elem_bytes: usize) -> Self {
        let mut stride_align = vec![elem_bytes as u32; rank];
        if rank == 0 {
            stride_align.clear();
        }
        Self {
            unit_axis: rank.checked_sub(1),
            align: elem_bytes as u32,
            stride_align,
            extent_align: vec![1; rank],
            offsets_fit_i32: false,
        }
    }
}

/// What kind of argument a parameter takes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ParamKind {
    /// A tensor with its facts.
    Tensor(TensorFacts),
    /// A runtime scalar.
    Scalar,
}

/// A kernel parameter.
#[derive(Clone, Debug)]
pub struct Param {
    /// The user's name for it.
    pub name: String,
    /// The value it binds.
    pub value: ValueId,
    /// Tensor or scalar.
    pub kind: ParamKind,
}

/// How far a kernel has been lowered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Stage {
    /// As staged: values have no layouts.
    Tile,
    /// Every tile has a layout and exchanges go through shared memory.
    LaidOut,
}

/// A kernel in tile IR.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its name, also of the PTX entry.
    pub name: String,
    /// Parameters in order.
    pub params: Vec<Param>,
    /// All values.
    pub values: Arena<Value>,
    /// All operations, including detached ones.
    pub ops: Arena<Op>,
    /// All regions.
    pub regions: Arena<Region>,
    /// The entry region.
    pub body: RegionId,
    /// Locations.
    pub locs: Locs,
    /// How far it has been lowered.
    pub stage: Stage,
    /// Warps per block, once chosen.
    pub num_warps: Option<usize>,
    /// What passes decided of operations, and why; nothing depends on it.
    pub notes: Vec<Note>,
}

impl Kernel {
    /// An empty kernel.
    pub fn new(name: impl Into<String>) -> Self {
        let mut regions = Arena::default();
        let body = regions.push(Region::default());
        Self {
            name: name.into(),
            params: Vec::new(),
            values: Arena::default(),
            ops: Arena::default(),
            regions,
            body,
            locs: Locs::default(),
            stage: Stage::Tile,
            num_warps: None,
            notes: Vec::new(),
        }
    }

    /// A new value without a layout.
    pub fn new_value(&mut self, ty: Type) -> ValueId {
        self.values.push(Value { ty, layout: None })
    }

    /// Adds a parameter.
    pub fn add_param(&mut self, name: impl Into<String>, ty: Type, kind: ParamKind) -> ValueId {
        let value = self.new_value(ty);
        self.params.push(Param { name: name.into(), value, kind });
        value
    }

    /// Makes a detached operation with fresh results of the given types.
    pub fn new_op(&mut self, kind: OpKind, operands: Vec<ValueId>, results: Vec<Type>, loc: LocId) -> OpId {
        let results = results.into_iter().map(|ty| self.new_value(ty)).collect();
        self.ops.push(Op { kind, operands, results, regions: Vec::new(), loc })
    }

    /// The type of a value.
    pub fn ty(&self, value: ValueId) -> &Type {
        &self.values[value].ty
    }

    /// The tile type of a value that is known to be a tile.
    pub fn tile(&self, value: ValueId) -> &TileType {
        self.ty(value).as_tile().expect("the verifier has checked that this value is a tile")
    }

    /// The facts of a tensor parameter's value.
    pub fn facts(&self, tensor: ValueId) -> Option<&TensorFacts> {
        self.params.iter().find(|p| p.value == tensor).and_then(|p| match &p.kind {
            ParamKind::Tensor(facts) => Some(facts),
            ParamKind::Scalar => None,
        })
    }

    /// Calls `f` on every attached operation, in program order, outer before inner.
    pub fn walk(&self, mut f: impl FnMut(OpId, &Op)) {
        self.walk_region(self.body, &mut f);
    }

    fn walk_region(&self, region: RegionId, f: &mut impl FnMut(OpId, &Op)) {
        for &id in &self.regions[region].ops {
            let op = &self.ops[id];
            f(id, op);
            for &inner in &op.regions {
                self.walk_region(inner, f);
            }
        }
    }
}
