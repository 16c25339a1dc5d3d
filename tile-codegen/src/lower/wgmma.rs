//! Products of warpgroups: descriptors, instructions, and accumulators that stay in their registers.

use super::LowerCx;
use crate::ir::{Elem, OpId, Type, ValueId};
use crate::layout::{
    DEPTH_BYTES, Layout, ROWS, SharedLayout, ThreadOffset, Warpgroups, WgmmaOperand, wgmma_acc,
};
use crate::ops::OpKind;
use crate::ops::mma::wide::{left, right, turn};
use crate::ptx::{Cmp, Hopper, IntOp, Operand, Reg, RegClass, Regs, Ty, Wgmma, WgmmaA};

/// A left operand in registers or as a descriptor without the step of depth.
enum Left {
    Regs(Vec<Reg>),
    Shared(Described),
}

/// The parts of a descriptor: the lower word at address and depth 0, the constant upper one.
struct Described {
    operand: WgmmaOperand,
    low: Reg,
    high: Reg,
}

/// A product as instructions do it.
struct Product {
    /// Whether `a` is the left operand; else `b` is, and everything is transposed.
    straight: bool,
    left: ValueId,
    right: ValueId,
    elem: Elem,
    /// Columns of an instruction.
    n: usize,
    /// Instructions along the depth.
    steps: usize,
    /// Blocks of 64 rows of a warpgroup in each plane, and how many rows and planes it has.
    row_blocks: usize,
    own_rows: usize,
    own_planes: usize,
    shares: Warpgroups,
}

impl Product {
    fn of(cx: &LowerCx<'_>, op: &crate::ir::Op, layout: &Layout) -> Product {
        let shape = layout.shape();
        let (rank, groups) = (shape.len(), layout.num_warps() / 4);
        let (rows, cols) = (shape[rank - 2], shape[rank - 1]);
        let batch = if rank == 3 { shape[0] } else { 1 };
        let straight = wgmma_acc(shape, groups).is_ok_and(|straight| straight == *layout);
        let [a, b] = [op.operands[0], op.operands[1]];
        let (left, right, m, n) = if straight { (a, b, rows, cols) } else { (b, a, cols, rows) };
        let elem = cx.element(right);
        let depth = cx.shape(a)[rank - 1];
        let shares = Warpgroups::new(groups, batch);
        let own_rows = m / shares.m;
        Product {
            straight,
            left,
            right,
            elem,
            n,
            steps: depth * elem.bytes() / DEPTH_BYTES,
            row_blocks: own_rows / ROWS,
            own_rows,
            own_planes: batch / shares.batch,
            shares,
        }
    }

    fn ty(&self) -> Ty {
        match self.elem {
            Elem::F16 => Ty::F16,
            Elem::TF32 => Ty::TF32,
            Elem::BF16 | Elem::F32 | Elem::I32 | Elem::I64 | Elem::U32 | Elem::Bool => Ty::BF16,
        }
    }

    /// The offset of a warpgroup's part of an operand: for each bit of the warpgroup's number, rows first, then planes.
    fn share(&self, operand: &WgmmaOperand, rows: bool) -> ThreadOffset {
        let row = |bit: u32| if rows { operand.offset(0, self.own_rows << bit, 0) } else { 0 };
        let plane = |bit: u32| operand.offset(self.own_planes << bit, 0, 0);
        let bits = |n: usize| 0..n.trailing_zeros();
        let shares = bits(self.shares.m).map(row).chain(bits(self.shares.batch).map(plane));
        ThreadOffset { lane: [0; 5], warp: [0, 0].into_iter().chain(shares).collect() }
    }
}

impl LowerCx<'_> {
    /// Issues `acc + a @ b` and binds the result, which is complete after a wait.
    pub(crate) fn wide_product(&mut self, id: OpId) {
        let op = self.kernel.ops[id].clone();
        let layout = self.layout(op.results[0]).clone();
        let product = Product::of(self, &op, &layout);
        let left = self.left(&product);
        let right = self.right(&product);
        let (sums, clear, flag) = self.accumulator(id, layout.num_regs());
        self.f.hopper(Hopper::WgmmaFence);
        for (block, d) in sums.chunks(product.n / 2).enumerate() {
            let (plane, row) = (block / product.row_blocks, block % product.row_blocks * ROWS);
            for step in 0..product.steps {
                let k = step * DEPTH_BYTES / product.elem.bytes();
                let a = match &left {
                    Left::Regs(words) => {
                        let at = (block * product.steps + step) * 4;
                        WgmmaA::Regs(Regs::from_slice(&words[at..at + 4]))
                    }
                    Left::Shared(d) => WgmmaA::Desc(self.descriptor(d, plane, row, k)),
                };
                let b = self.descriptor(&right, plane, 0, k);
                let scale_d = clear.filter(|_| step == 0).unwrap_or(Operand::Imm(1));
                let trans_a = matches!(&left, Left::Shared(d) if d.operand.transposed);
                self.f.wgmma(Wgmma {
                    n: product.n as u32,
                    ty: product.ty(),
                    d: d.to_vec(),
                    a,
                    b,
                    scale_d,
                    neg_a: false,
                    neg_b: false,
                    trans_a,
                    trans_b: right.operand.transposed,
                });
            }
        }
        self.f.hopper(Hopper::WgmmaCommit);
        if let Some(flag) = flag {
            self.f.mov_to(Ty::B32, flag, 1);
        }
        self.bind_result(id, sums.into_iter().map(Operand::from).collect());
    }

    fn element(&self, value: ValueId) -> Elem {
        match self.kernel.ty(value) {
            Type::Shared(s) => s.elem,
            Type::Tile(_) | Type::Tensor(_) | Type::Error => self.elem(value),
        }
    }

    fn shape(&self, value: ValueId) -> Vec<usize> {
        match self.kernel.ty(value) {
            Type::Shared(s) => s.layout.shape.clone(),
            Type::Tile(_) | Type::Tensor(_) | Type::Error => self.kernel.tile(value).shape.clone(),
        }
    }

    /// The accumulator's registers; the scale of what they hold at the first step (`None`: they are added to); and the
    /// flag to set once they hold something.
    fn accumulator(&mut self, id: OpId, count: usize) -> (Vec<Reg>, Option<Operand>, Option<Reg>) {
        let acc = self.kernel.ops[id].operands[2];
        if let Some(&flag) = self.lazy.get(&acc) {
            let regs = self.values(acc).iter().map(|o| o.reg().expect("carried in registers")).collect();
            let filled = self.f.setp(Cmp::Ne, Ty::S32, flag, 0);
            return (regs, Some(filled.into()), Some(flag));
        }
        let values = self.values(acc);
        if values.iter().all(|v| *v == Operand::f32(0.0)) {
            return ((0..count).map(|_| self.f.reg(RegClass::F32)).collect(), Some(Operand::Imm(0)), None);
        }
        let in_place = self.accumulators.in_place.contains(&id);
        let own = |cx: &mut Self, value: Operand| match value {
            Operand::Reg(reg) if in_place => reg,
            other => {
                let reg = cx.f.reg(RegClass::F32);
                cx.f.mov_to(Ty::F32, reg, other);
                reg
            }
        };
        (values.into_iter().map(|value| own(self, value)).collect(), None, None)
    }

    fn left(&mut self, product: &Product) -> Left {
        let (value, elem) = (product.left, product.elem);
        let Type::Shared(shared) = self.kernel.ty(value) else {
            let regs: Vec<Reg> = self.values(value).into_iter().map(|v| self.in_reg(elem, v)).collect();
            return Left::Regs(match elem {
                Elem::TF32 => regs.into_iter().map(|reg| self.f.mov(Ty::B32, reg)).collect(),
                _ => regs.chunks(2).map(|pair| self.pack2(pair[0], pair[1])).collect(),
            });
        };
        let operand = left(&turned(&shared.layout, product.straight)).expect("the layout was chosen to fit");
        let share = product.share(&operand, true);
        Left::Shared(self.described(value, operand, &share))
    }

    fn right(&mut self, product: &Product) -> Described {
        let value = product.right;
        let shared = self.kernel.ty(value).as_shared().expect("the right operand is in shared memory");
        let operand = right(&turned(&shared.layout, product.straight)).expect("the layout was chosen to fit");
        let share = product.share(&operand, false);
        self.described(value, operand, &share)
    }

    fn described(&mut self, value: ValueId, operand: WgmmaOperand, share: &ThreadOffset) -> Described {
        let share = self.linear(share);
        let (base, offset) = self.shared_at(value);
        let address = self.f.add_s32(base, i64::from(offset));
        let address = self.f.add_s32(address, share);
        let start = self.f.int(IntOp::Shr, Ty::U32, address, 4);
        let low = self.f.int(IntOp::Or, Ty::B32, start, (operand.descriptor & 0xffff_ffff) as i64);
        let low = self.f.materialize(Ty::B32, low);
        let high = (operand.descriptor >> 32) as u32;
        let high = self.f.materialize(Ty::B32, i64::from(high as i32));
        Described { operand, low, high }
    }

    /// The descriptor of the instruction that starts at row `mn` and depth `k` of a plane.
    fn descriptor(&mut self, d: &Described, plane: usize, mn: usize, k: usize) -> Reg {
        let low = self.f.add_s32(d.low, i64::from(d.operand.offset(plane, mn, k) >> 4));
        let low = self.f.materialize(Ty::B32, low);
        self.f.pack(Ty::B64, &[low, d.high])
    }
}

fn turned(shared: &SharedLayout, straight: bool) -> SharedLayout {
    let axes = turn(shared.shape.len());
    if straight { shared.clone() } else { shared.permute(axes).expect("a permutation of the axes") }
}

/// Whether a product is done by warpgroups: its accumulator is laid out for them, and an operand that tensor cores take is
/// in shared memory. Products by FMAs have both operands there too.
pub(crate) fn is_wide(kernel: &crate::ir::Kernel, id: OpId) -> bool {
    let op = &kernel.ops[id];
    let OpKind::Mma(_) = op.kind else { return false };
    let fits = |s: &crate::ir::SharedType| matches!(s.elem, Elem::F16 | Elem::BF16 | Elem::TF32);
    let shared = op.operands[..2].iter().any(|&v| kernel.ty(v).as_shared().is_some_and(fits));
    let Some(layout) = kernel.values[op.results[0]].layout.as_ref().filter(|_| shared) else { return false };
    let groups = layout.num_warps() / 4;
    let axes = turn(layout.shape().len());
    let wide = |layout: &Layout| wgmma_acc(layout.shape(), groups).is_ok_and(|wide| wide == *layout);
    groups > 0 && (wide(layout) || layout.permute(axes).is_ok_and(|turned| wide(&turned)))
}
