//! `mma`: the matrix product `acc + a @ b`, on tensor cores where the element type has them; f32 is exact f32 (FMA).

pub(crate) mod wide;

use super::{Attr, AttrReader, Effects, TileOp};
use crate::diag::{Code, OpError};
use crate::dsl::{MmaOperand, Tile, session};
use crate::ir::{Dim, Elem, TileType, Type, dim};

/// (a, b, acc) -> tile of the accumulator's type.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Mma;

impl TileOp for Mma {
    fn name(&self) -> &'static str {
        "mma"
    }
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        Vec::new()
    }
    fn parse(name: &str, attrs: &mut AttrReader) -> Option<Result<Self, OpError>> {
        (name == "mma").then(|| {
            let _ = attrs;
            Ok(Self)
        })
    }
    fn result_count(&self) -> usize {
        1
    }
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
        let [a, b, acc] = super::rule::operands::<3>("mma", operands)?;
        let (a, b, acc) = (operand("a", a)?, operand("b", b)?, super::rule::tile("mma", acc)?.clone());
        check_types(a.elem, b.elem, acc.elem)?;
        rule(&a, &b, &acc)?;
        Ok(vec![Type::Tile(acc)])
    }
    fn effects(&self) -> Effects {
        Effects::Pure
    }
}

/// An operand is a tile, or a shared tile once layouts are assigned.
fn operand(name: &str, ty: &Type) -> Result<TileType, OpError> {
    match ty {
        Type::Tile(tile) => Ok(tile.clone()),
        Type::Shared(shared) => Ok(TileType::new(shared.elem, shared.layout.shape.to_vec())),
        Type::Tensor(_) | Type::Error => {
            Err(OpError::new(Code::MmaType, format!("operand `{name}` of `mma` must be a tile"))
                .help("load a tile of the tensor first: `load(t, (i, j), (m, k))`"))
        }
    }
}

fn check_types(a: Elem, b: Elem, acc: Elem) -> Result<(), OpError> {
    if a != b {
        return Err(OpError::new(
            Code::MmaType,
            format!("`mma` multiplies one element type, found `{a}` and `{b}`"),
        )
        .help(format!("convert one side, for example `.cast::<{a}>()`")));
    }
    if !a.is_float() {
        return Err(OpError::new(Code::MmaType, format!("`mma` of `{a}` is not supported"))
            .help("operands are f16, bf16, tf32 or f32"));
    }
    if acc != Elem::F32 {
        return Err(OpError::new(
            Code::MmaType,
            format!("`mma` accumulates `{a}` products in `f32`, found a `{acc}` accumulator"),
        )
        .help("start from `zeros::<f32>(..)` and cast the result"));
    }
    Ok(())
}

/// The shape rule: `[.., m, k] @ [.., k, n] + [.., m, n]`, of rank 2, or 3 with equal batch dimensions.
pub fn rule<D: Dim>(a: &TileType<D>, b: &TileType<D>, acc: &TileType<D>) -> Result<(), OpError> {
    let shapes = || format!("{} @ {} + {}", dim::show(&a.shape), dim::show(&b.shape), dim::show(&acc.shape));
    let rank = acc.rank();
    if !(2..=3).contains(&rank) || a.rank() != rank || b.rank() != rank {
        return Err(OpError::new(
            Code::MmaShape,
            format!("`mma` takes tiles of rank 2, or all of rank 3, found {}", shapes()),
        )
        .help("`reshape` the operands to (m, k), (k, n) and (m, n)"));
    }
    let fault = |what: &str, x: &D, y: &D| {
        OpError::new(Code::MmaShape, format!("{what} differ in `mma`: {x} and {y} in {}", shapes()))
            .help("shapes are (m, k) @ (k, n) + (m, n); `transpose` an operand that is the other way round")
    };
    let (m, n) = (rank - 2, rank - 1);
    if a.shape[n].differs(&b.shape[m]) {
        return Err(fault("the inner dimensions", &a.shape[n], &b.shape[m]));
    }
    if a.shape[m].differs(&acc.shape[m]) {
        return Err(fault("the rows of a and of the accumulator", &a.shape[m], &acc.shape[m]));
    }
    if b.shape[n].differs(&acc.shape[n]) {
        return Err(fault("the columns of b and of the accumulator", &b.shape[n], &acc.shape[n]));
    }
    if rank == 3 && (a.shape[0].differs(&acc.shape[0]) || b.shape[0].differs(&acc.shape[0])) {
        return Err(fault("the batch dimensions", &a.shape[0], &b.shape[0]));
    }
    Ok(())
}

// ---- in kernels

/// The matrix product `acc + a @ b`: shapes `(m, k)`, `(k, n)`, `(m, n)`, or all with a leading batch dimension.
/// Operands have one type of f32, f16, bf16 and tf32; the accumulator is f32.
#[track_caller]
pub fn mma<T: MmaOperand>(a: Tile<T>, b: Tile<T>, acc: Tile<f32>) -> Tile<f32> {
    Tile::new(session::op(Mma, &[a.raw(), b.raw(), acc.raw()]))
}

// ---- on the CPU

#[cfg(feature = "cpu")]
impl super::eval::Eval for Mma {
    fn eval(
        &self,
        _: super::eval::EvalCx,
        operands: &mut super::eval::Operands<'_>,
    ) -> Option<crate::cpu::TileValue> {
        let (a, b, acc) = (operands.tile(), operands.tile(), operands.tile());
        Some(crate::cpu::product::mma(a, b, acc))
    }
}

// ---- in PTX

use super::place::{Natural, Place, PlaceCx, Want};
use crate::layout::Layout;

use crate::explain::{Product, Reason};
use crate::layout::{WarpGrid, mma_a, mma_acc, mma_b};

/// The sizes of a product: batch, m, n, k.
pub(crate) fn sizes(a: &TileType, acc: &TileType) -> [usize; 4] {
    let rank = acc.rank();
    let batch = if rank == 3 { acc.shape[0] } else { 1 };
    [batch, acc.shape[rank - 2], acc.shape[rank - 1], a.shape[rank - 1]]
}

impl Mma {
    /// How warps share a product on tensor cores, through `mma.sync`. `chained` keeps all of a row in one warp.
    ///
    /// # Errors
    /// Why it is done by FMAs on a register tile instead, with operands in shared memory.
    pub(crate) fn tensor_cores(
        a: &TileType,
        acc: &TileType,
        num_warps: usize,
        chained: bool,
    ) -> Result<WarpGrid, Reason> {
        let [batch, m, n, k] = sizes(a, acc);
        let least_k = match a.elem {
            Elem::F16 | Elem::BF16 => 16,
            Elem::TF32 => 8,
            Elem::F32 | Elem::I32 | Elem::I64 | Elem::U32 | Elem::Bool => return Err(Reason::Exact),
        };
        if m < 16 || n < 8 {
            return Err(Reason::SmallProduct { m, n });
        }
        if k < least_k {
            return Err(Reason::Depth { k, least: least_k });
        }
        let batch = batch.min(num_warps);
        let left = num_warps / batch;
        let grids = (0..=left.trailing_zeros()).flat_map(|wm| {
            (0..=left.trailing_zeros() - wm).map(move |wn| WarpGrid { batch, m: 1 << wm, n: 1 << wn })
        });
        let fits = grids.filter(|g| m / g.m >= 16 && n / g.n >= 8);
        // Most warps first; then, in a chain, few columns of warps; else the fewest operand bytes for each warp.
        let cost = |g: &WarpGrid| {
            let traffic = m / g.m + n / g.n;
            (num_warps / g.num_warps(), if chained { g.n } else { 0 }, traffic)
        };
        fits.min_by_key(cost).ok_or(Reason::SmallProduct { m, n })
    }

    /// The way that a product takes, and why no faster one.
    pub(crate) fn product(cx: &PlaceCx<'_>) -> Product {
        let slower = match Self::wide_plan(cx) {
            Ok(wide) => return wide.product(cx),
            Err(reason) => reason,
        };
        let Some(a) = cx.tile(0) else { return Product::Fma { slower, slow: Reason::Unreadable } };
        match Self::tensor_cores(a, cx.result(), cx.num_warps, cx.chained.contains(&cx.id)) {
            Ok(grid) => Product::TensorCores { warps: [grid.batch, grid.m, grid.n], slower },
            Err(slow) => Product::Fma { slower, slow },
        }
    }

    /// The layouts of a, b and the accumulator on tensor cores; warps beyond the grid hold copies.
    pub(crate) fn fragments(
        a: &TileType,
        b: &TileType,
        acc: &TileType,
        grid: WarpGrid,
        num_warps: usize,
    ) -> [Layout; 3] {
        let bytes = a.elem.bytes();
        let widen = |layout: Result<Layout, crate::layout::LayoutError>| {
            let layout = layout.expect("the path was chosen to fit");
            let mut warp = layout.warp().to_vec();
            warp.resize(num_warps.trailing_zeros() as usize, 0);
            Layout::new(layout.shape().to_vec(), layout.reg().to_vec(), *layout.lane(), warp)
                .expect("replicated warps keep a layout valid")
        };
        [
            widen(mma_a(&a.shape, grid, bytes)),
            widen(mma_b(&b.shape, grid, bytes)),
            widen(mma_acc(&acc.shape, grid)),
        ]
    }

    /// The accumulator layout of the FMA path: each thread holds up to 4 x 4 neighbours and repeats of them.
    pub(crate) fn fma_layout(acc: &TileType, num_warps: usize) -> Layout {
        let rank = acc.rank();
        let (m, n) = (acc.shape[rank - 2].trailing_zeros(), acc.shape[rank - 1].trailing_zeros());
        let batch = acc.numel().trailing_zeros() - m - n;
        let mut cols: std::collections::VecDeque<u32> = (0..n).map(|i| 1 << i).collect();
        let mut rows: std::collections::VecDeque<u32> = (0..m).map(|i| 1 << (n + i)).collect();
        let per_thread = (acc.numel() / (32 * num_warps)).max(1).trailing_zeros() as usize;
        let mut reg: Vec<u32> = Vec::new();
        reg.extend(cols.drain(..cols.len().min(2).min(per_thread)));
        let more = rows.len().min(2).min(per_thread - reg.len());
        reg.extend(rows.drain(..more));
        let mut lanes: Vec<u32> = cols.drain(..cols.len().min(3)).collect();
        let mut rest: Vec<u32> =
            rows.into_iter().chain(cols).chain((0..batch).map(|i| 1 << (m + n + i))).collect();
        lanes.extend(rest.drain(..rest.len().min(5 - lanes.len())));
        lanes.resize(5, 0);
        let mut warp: Vec<u32> = rest.drain(..rest.len().min(num_warps.trailing_zeros() as usize)).collect();
        warp.resize(num_warps.trailing_zeros() as usize, 0);
        reg.extend(rest);
        let lane = [lanes[0], lanes[1], lanes[2], lanes[3], lanes[4]];
        Layout::new(acc.shape.clone(), reg, lane, warp).expect("every bit is placed once")
    }
}

impl Place for Mma {
    fn natural(&self, cx: &PlaceCx<'_>, _: &[Option<Natural>]) -> Option<Natural> {
        if let Ok(wide) = Self::wide_plan(cx) {
            return Some(Natural { layout: wide.acc, weight: 3, soft: false });
        }
        let (a, b) = (cx.tile(0)?, cx.tile(1)?);
        let layout = match Self::tensor_cores(a, cx.result(), cx.num_warps, cx.chained.contains(&cx.id)) {
            Ok(grid) => {
                let [_, _, acc] = Self::fragments(a, b, cx.result(), grid, cx.num_warps);
                acc
            }
            Err(_) => Self::fma_layout(cx.result(), cx.num_warps),
        };
        Some(Natural { layout, weight: 3, soft: false })
    }
    fn wants(&self, cx: &PlaceCx<'_>, _: &[Option<Natural>], _: Option<&Layout>) -> Vec<Want> {
        if let Ok(wide::Wide { acc, operands: [a, b], .. }) = Self::wide_plan(cx) {
            return vec![a, b, Want::Regs(acc)];
        }
        let (Some(a), Some(b)) = (cx.tile(0), cx.tile(1)) else { return vec![Want::Any; 3] };
        match Self::tensor_cores(a, cx.result(), cx.num_warps, cx.chained.contains(&cx.id)) {
            Ok(grid) => Self::fragments(a, b, cx.result(), grid, cx.num_warps).map(Want::Regs).to_vec(),
            Err(_) => {
                let acc = Self::fma_layout(cx.result(), cx.num_warps);
                // a: rows fastest; b: columns fastest; so that neighbours are read as vectors.
                let (fast_a, fast_b) =
                    if a.rank() == 3 { (vec![1, 2, 0], vec![2, 1, 0]) } else { (vec![0, 1], vec![1, 0]) };
                let place = |operand: usize, order: Vec<usize>| {
                    let copied = cx.copied_operand(operand).filter(|layout| layout.swizzle == 0);
                    copied.map_or(Want::Shared(order), |layout| Want::Placed(layout.clone()))
                };
                vec![place(0, fast_a), place(1, fast_b), Want::Regs(acc)]
            }
        }
    }
}

impl super::lower::Lower for Mma {
    fn scratch(&self, _: &crate::ir::Kernel, _: &crate::ir::Op) -> u32 {
        0
    }
    fn lower(&self, cx: &mut crate::lower::LowerCx<'_>, id: crate::ir::OpId) {
        if crate::lower::wgmma::is_wide(cx.kernel, id) {
            return cx.wide_product(id);
        }
        let op = cx.kernel.ops[id].clone();
        let [a, b, acc] = [op.operands[0], op.operands[1], op.operands[2]];
        let layout = cx.layout(op.results[0]).clone();
        let sums = cx.values(acc);
        let out = match (cx.kernel.ty(a), cx.kernel.ty(b)) {
            (Type::Shared(sa), Type::Shared(sb)) => {
                let (at, elem) = ([cx.shared_at(a), cx.shared_at(b)], sa.elem);
                cx.fma_product(elem, &layout, [&sa.layout, &sb.layout], at, sums)
            }
            _ => {
                let elem = cx.elem(a);
                let a = self.words(cx, a, elem);
                let b = self.words(cx, b, elem);
                tensor_core(cx, elem, &layout, &a, &b, sums)
            }
        };
        cx.bind_result(id, out);
    }
}

use crate::lower::LowerCx;
use crate::ptx::{Inst, MmaShape, Operand, Reg, RegClass, Regs, Ty};

impl Mma {
    /// The 32-bit registers of an operand fragment: pairs of 16-bit elements, or one tf32 each.
    fn words(&self, cx: &mut LowerCx<'_>, value: crate::ir::ValueId, elem: Elem) -> Vec<Reg> {
        let regs: Vec<Reg> = cx.values(value).into_iter().map(|v| cx.in_reg(elem, v)).collect();
        if elem == Elem::TF32 {
            let bits = |&reg: &Reg| {
                let word = cx.f.reg(RegClass::B32);
                cx.f.mov_to(Ty::B32, word, reg);
                word
            };
            return regs.iter().map(bits).collect();
        }
        regs.chunks(2).map(|pair| cx.pack2(pair[0], pair[1])).collect()
    }
}

/// One `mma.sync` for each instruction tile, the k blocks outermost so that neighbouring instructions are independent.
fn tensor_core(
    cx: &mut LowerCx<'_>,
    elem: Elem,
    layout: &Layout,
    a: &[Reg],
    b: &[Reg],
    sums: Vec<Operand>,
) -> Vec<Operand> {
    let (shape, ty) = match elem {
        Elem::F16 => (MmaShape::M16N8K16, Ty::F16),
        Elem::TF32 => (MmaShape::M16N8K8, Ty::TF32),
        Elem::BF16 | Elem::F32 | Elem::I32 | Elem::I64 | Elem::U32 | Elem::Bool => {
            (MmaShape::M16N8K16, Ty::BF16)
        }
    };
    // Registers of a warp along each axis, in instruction tiles: bits of the accumulator beyond one tile.
    let rank = layout.shape().len();
    let along = |axis: usize, inside: u32| 1usize << (layout.reg_bits_on(axis).count_ones() - inside);
    let (rows, cols) = (along(rank - 2, 1), along(rank - 1, 1));
    let batch = if rank == 3 { along(0, 0) } else { 1 };
    let depth = a.len() / (4 * rows * batch);
    let mut sums: Vec<Reg> = sums.into_iter().map(|s| cx.in_reg(Elem::F32, s)).collect();
    for k in 0..depth {
        for tile in 0..batch * rows * cols {
            let (plane, row, col) = (tile / (rows * cols), tile / cols % rows, tile % cols);
            let a_at = ((plane * rows + row) * depth + k) * 4;
            let b_at = ((plane * cols + col) * depth + k) * 2;
            let c: [Reg; 4] = std::array::from_fn(|i| sums[tile * 4 + i]);
            let d = cx.f.regs::<4>(RegClass::F32);
            let (a, b) = (Regs::from_slice(&a[a_at..a_at + 4]), Regs::from_slice(&b[b_at..b_at + 2]));
            cx.f.emit(Inst::Mma { shape, ty, d, a, b, c });
            sums[tile * 4..tile * 4 + 4].copy_from_slice(&d);
        }
    }
    sums.into_iter().map(Operand::from).collect()
}
