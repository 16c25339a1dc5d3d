//! `store`: a tile into a tensor. Indices count tiles, or elements; those outside the tensor are dropped.

use super::reshape::Reshape;
use super::window::{Start, Steps};
use super::{Attr, AttrReader, Effects, TileOp};
use crate::diag::{Code, OpError};
use crate::dsl::session::Raw;
use crate::dsl::{Element, IndexOfRank, Operand, Scalar, Storable, TensorMut, Tile, host, session};
use crate::ir::Type;

/// (tile, tensor, one index for each axis) -> nothing.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Store {
    /// What the index counts.
    pub steps: Steps,
}

impl TileOp for Store {
    fn name(&self) -> &'static str {
        "store"
    }
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        self.steps.attr().into_iter().collect()
    }
    fn parse(name: &str, attrs: &mut AttrReader) -> Option<Result<Self, OpError>> {
        (name == "store").then(|| Ok(Self { steps: Steps::parse(attrs)? }))
    }
    fn result_count(&self) -> usize {
        0
    }
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
        let Some((tile, rest)) = operands.split_first() else {
            return Err(OpError::new(Code::Structure, "`store` takes a tile, a tensor and its indices"));
        };
        let tile = &match tile {
            // Once layouts are assigned, bulk tensor copies store out of shared memory.
            Type::Shared(shared) => TileType::new(shared.elem, shared.layout.shape.clone()),
            Type::Tile(_) | Type::Tensor(_) | Type::Error => super::rule::tile("store", tile)?.clone(),
        };
        let (tensor, index) = super::rule::tensor_and_index("store", rest)?;
        super::rule::tile_index("store", tensor, &tile.shape, index)?;
        if tile.elem != tensor.elem {
            return Err(OpError::new(
                Code::ElementType,
                format!("`store` of a `{}` tile into a `{}` tensor", tile.elem, tensor.elem),
            )
            .help(format!("convert it: `.cast::<{}>()`", tensor.elem)));
        }
        if !tensor.mutable {
            return Err(OpError::new(Code::ElementType, "`store` into a tensor that is only read")
                .help("declare the parameter as `TensorMut<..>`"));
        }
        Ok(Vec::new())
    }
    fn effects(&self) -> Effects {
        Effects::WritesGlobal
    }
}

// ---- in kernels

/// What `store` and the like write: a tile of the tensor's element type, or one element: a `Scalar` or a number.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be stored into a tensor of `{T}`",
    label = "expected a `Tile<{T}>`, a `Scalar<{T}>` or a number",
    note = "element types never convert silently: write `.cast::<{T}>()`"
)]
pub trait StoreValue<T> {
    #[doc(hidden)]
    #[track_caller]
    fn store_raw(self, rank: usize) -> Raw;
}

impl<T: Element> StoreValue<T> for Tile<T> {
    fn store_raw(self, _: usize) -> Raw {
        self.raw()
    }
}

/// One element, whatever the rank.
impl<T: Element> StoreValue<T> for Scalar<T> {
    #[track_caller]
    fn store_raw(self, rank: usize) -> Raw {
        if rank == 0 {
            return self.raw();
        }
        session::op(Reshape { shape: vec![1; rank] }, &[self.raw()])
    }
}

impl<T: Element, H: Operand<Scalar<T>>> StoreValue<T> for H {
    #[track_caller]
    fn store_raw(self, rank: usize) -> Raw {
        Scalar::<T>::new(host::constant::<T>(self)).store_raw(rank)
    }
}

/// Writes a tile at an index that counts tiles of its shape; elements outside the tensor are dropped. [`store_at`] counts
/// elements.
#[track_caller]
pub fn store<T: Storable, const RANK: usize>(
    tensor: TensorMut<T, RANK>,
    index: impl IndexOfRank<RANK>,
    value: impl StoreValue<T>,
) {
    let operands = [&[value.store_raw(RANK), tensor.raw()], index.index_raws().as_slice()].concat();
    session::effect(Store { steps: Steps::Tiles }, &operands);
}

/// Writes a tile from an element on: `store_at(y, (b, t0 + 3, ch), tile)`. The tile may begin and end anywhere, also before
/// the tensor; elements outside the tensor are dropped.
///
/// Where tiles that one block stores overlap, the later one stays. Those of several blocks must not overlap: each
/// element then has a value of an unspecified one of them.
#[track_caller]
pub fn store_at<T: Storable, const RANK: usize>(
    tensor: TensorMut<T, RANK>,
    index: impl IndexOfRank<RANK>,
    value: impl StoreValue<T>,
) {
    let operands = [&[value.store_raw(RANK), tensor.raw()], index.index_raws().as_slice()].concat();
    session::effect(Store { steps: Steps::Elements }, &operands);
}

// ---- on the CPU

#[cfg(feature = "cpu")]
impl super::eval::Eval for Store {
    fn eval(
        &self,
        _: super::eval::EvalCx,
        operands: &mut super::eval::Operands<'_>,
    ) -> Option<crate::cpu::TileValue> {
        let (tile, tensor) = (operands.tile(), operands.tensor());
        let at = crate::cpu::transfer::At { index: &operands.indices(), steps: self.steps };
        crate::cpu::transfer::store(&tile, tensor, at);
        None
    }
}

// ---- in PTX

use super::OpKind;
use super::place::{Natural, Place, PlaceCx, Want};
use crate::explain::Reason;
use crate::ir::{Kernel, OpId, RegionId, TileType, ValueId};
use crate::layout::{Layout, SharedLayout};

/// Tiles from this many elements on are stored by consecutive threads to consecutive addresses, at the price of an
/// exchange.
const COALESCE: usize = 1024;

impl Place for Store {
    fn natural(&self, _: &PlaceCx<'_>, _: &[Option<Natural>]) -> Option<Natural> {
        None
    }
    fn wants(&self, cx: &PlaceCx<'_>, operands: &[Option<Natural>], _: Option<&Layout>) -> Vec<Want> {
        let mut wants = vec![Want::Any; cx.op.operands.len()];
        let Some(tile) = cx.tile(0) else { return wants };
        if let Ok(placed) = self.bulk(cx, tile) {
            wants[0] = Want::Placed(placed);
            return wants;
        }
        let start = Start { tensor: cx.op.operands[1], index: &cx.op.operands[2..], steps: self.steps };
        let coalesced = || crate::lower::global::coalesced(cx.kernel, start, tile, cx.num_warps);
        let layout = match &operands[0] {
            Some(natural) if tile.numel() < COALESCE => natural.layout.clone(),
            Some(_) | None => coalesced(),
        };
        if tile.rank() > 0 {
            wants[0] = Want::Regs(layout);
        }
        wants
    }
}

impl Store {
    /// Where a tile must be for a bulk tensor copy to store it. Copies run on while the program goes on, so nothing else may
    /// access the tensor, and no two iterations the same tile of it.
    ///
    /// # Errors
    /// Why threads store it themselves.
    pub(crate) fn bulk(&self, cx: &PlaceCx<'_>, tile: &TileType) -> Result<SharedLayout, Reason> {
        let (kernel, tensor) = (cx.kernel, cx.op.operands[1]);
        if !cx.target.warpgroups {
            return Err(Reason::TargetWithoutBulk(cx.target.name));
        }
        if !crate::passes::assign_roles::has_channels(kernel) {
            return Err(Reason::Undivided);
        }
        if self.steps == Steps::Elements {
            return Err(Reason::Steps);
        }
        if tile.numel() < COALESCE {
            return Err(Reason::Small(tile.numel()));
        }
        let mut accesses = 0;
        kernel.walk(|_, op| {
            accesses += usize::from(op.kind.accesses_tensor() && op.operands.contains(&tensor));
        });
        if accesses > 1 {
            return Err(Reason::Accesses(accesses));
        }
        if each_iteration_apart(kernel, kernel.body, cx.id, &cx.op.operands[2..]) != Some(true) {
            return Err(Reason::SameTile);
        }
        let place = crate::passes::assign_roles::bulk_place(kernel, tensor, &tile.shape)?;
        // Copies write whole pieces of 16 bytes, also where the tensor ends inside one.
        let facts = kernel.facts(tensor).ok_or(Reason::NoUnitAxis)?;
        let extent = facts.extent_align[facts.unit_axis.ok_or(Reason::NoUnitAxis)?];
        if extent as usize * tile.elem.bytes() >= 16 { Ok(place) } else { Err(Reason::Extent(extent)) }
    }
}

/// Whether the index of every loop around an operation is among the indices of its tile; `None` if the operation is not in
/// the region.
fn each_iteration_apart(kernel: &Kernel, region: RegionId, id: OpId, index: &[ValueId]) -> Option<bool> {
    for &op in &kernel.regions[region].ops {
        if op == id {
            return Some(true);
        }
        for &inner in &kernel.ops[op].regions {
            let Some(apart) = each_iteration_apart(kernel, inner, id, index) else { continue };
            return Some(match kernel.ops[op].kind {
                OpKind::For(_) => apart && index.contains(&kernel.regions[inner].args[0]),
                OpKind::Loop(_) => false,
                _ => apart,
            });
        }
    }
    None
}

impl super::lower::Lower for Store {
    fn scratch(&self, _: &crate::ir::Kernel, _: &crate::ir::Op) -> u32 {
        0
    }
    fn lower(&self, cx: &mut crate::lower::LowerCx<'_>, id: crate::ir::OpId) {
        let op = cx.kernel.ops[id].clone();
        let (tile, tensor) = (op.operands[0], op.operands[1]);
        if cx.kernel.ty(tile).as_shared().is_some() {
            return cx.bulk_store(id);
        }
        let layout = cx.layout(tile).clone();
        let start = Start { tensor, index: &op.operands[2..], steps: self.steps };
        let window = cx.window(start, &layout);
        let (lane, warp) = layout.replication();
        let owner = cx.owner(lane, warp);
        let values = cx.values(tile);
        cx.store_window(&window, &values, owner);
    }
}
