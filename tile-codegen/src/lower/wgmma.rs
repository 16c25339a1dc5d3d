//! Products of warpgroups: descriptors, instructions, and accumulators that stay in their registers.

use super::LowerCx;
use crate::ir::{Elem, OpId, Type, ValueId};
use crate::layout::{DEPTH_BYTES, ROWS, SharedLayout, ThreadOffset, WgmmaOperand, wgmma_acc};
use crate::ops::OpKind;
use crate::ops::mma::wide::{left, right};
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

impl LowerCx<'_> {
    /// Issues `acc + a @ b` and binds the result, which is complete after a wait.
    pub(crate) fn wide_product(&mut self, id: OpId) {
        let op = self.kernel.ops[id].clone();
        let [a, b] = [op.operands[0], op.operands[1]];
        let layout = self.layout(op.results[0]).clone();
        let (rows, cols) = (layout.shape()[0], layout.shape()[1]);
        let groups = layout.num_warps() / 4;
        let straight = wgmma_acc(&[rows, cols], groups).is_ok_and(|straight| straight == layout);
        let (left_value, right_value) = if straight { (a, b) } else { (b, a) };
        let (m, n) = if straight { (rows, cols) } else { (cols, rows) };
        let elem = self.element(right_value);
        let depth = self.shape(a)[1] * elem.bytes() / DEPTH_BYTES;
        let left = self.left(left_value, elem, straight, m / groups);
        let right = self.right(right_value, straight);
        let (sums, clear, flag) = self.accumulator(id, layout.num_regs());
        self.f.hopper(Hopper::WgmmaFence);
        let k = DEPTH_BYTES / elem.bytes();
        let per_block = n / 2;
        for (block, d) in sums.chunks(per_block).enumerate() {
            for step in 0..depth {
                let a = match &left {
                    Left::Regs(words) => {
                        let at = (block * depth + step) * 4;
                        WgmmaA::Regs(Regs::from_slice(&words[at..at + 4]))
                    }
                    Left::Shared(d) => WgmmaA::Desc(self.descriptor(d, block * ROWS, step * k)),
                };
                let b = self.descriptor(&right, 0, step * k);
                let scale_d = match (step, clear) {
                    (0, Some(scale)) => scale,
                    _ => Operand::Imm(1),
                };
                let trans_a = matches!(&left, Left::Shared(d) if d.operand.transposed);
                self.f.wgmma(Wgmma {
                    n: n as u32,
                    ty: if elem == Elem::F16 { Ty::F16 } else { Ty::BF16 },
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

    fn left(&mut self, value: ValueId, elem: Elem, straight: bool, own_rows: usize) -> Left {
        let Type::Shared(shared) = self.kernel.ty(value) else {
            let regs: Vec<Reg> = self.values(value).into_iter().map(|v| self.in_reg(elem, v)).collect();
            return Left::Regs(regs.chunks(2).map(|pair| self.pack2(pair[0], pair[1])).collect());
        };
        let operand = left(&turned(&shared.layout, straight)).expect("the layout was chosen to fit");
        // Each warpgroup starts at its own rows.
        let groups = shared.layout.shape[usize::from(!straight)] / own_rows;
        let bases = (0..groups.trailing_zeros()).map(|bit| operand.offset(own_rows << bit, 0));
        let warp = [0, 0].into_iter().chain(bases).collect();
        let rows = self.linear(&ThreadOffset { lane: [0; 5], warp });
        Left::Shared(self.described(value, operand, rows))
    }

    fn right(&mut self, value: ValueId, straight: bool) -> Described {
        let shared = self.kernel.ty(value).as_shared().expect("the right operand is in shared memory");
        let operand = right(&turned(&shared.layout, straight)).expect("the layout was chosen to fit");
        self.described(value, operand, Operand::Imm(0))
    }

    fn described(&mut self, value: ValueId, operand: WgmmaOperand, rows: Operand) -> Described {
        let (base, offset) = self.shared_at(value);
        let address = self.f.add_s32(base, i64::from(offset));
        let address = self.f.add_s32(address, rows);
        let start = self.f.int(IntOp::Shr, Ty::U32, address, 4);
        let low = self.f.int(IntOp::Or, Ty::B32, start, (operand.descriptor & 0xffff_ffff) as i64);
        let low = self.f.materialize(Ty::B32, low);
        let high = (operand.descriptor >> 32) as u32;
        let high = self.f.materialize(Ty::B32, i64::from(high as i32));
        Described { operand, low, high }
    }

    /// The descriptor of the instruction that starts at row `mn` and depth `k`.
    fn descriptor(&mut self, d: &Described, mn: usize, k: usize) -> Reg {
        let low = self.f.add_s32(d.low, i64::from(d.operand.offset(mn, k) >> 4));
        let low = self.f.materialize(Ty::B32, low);
        self.f.pack(Ty::B64, &[low, d.high])
    }
}

fn turned(shared: &SharedLayout, straight: bool) -> SharedLayout {
    if straight { shared.clone() } else { shared.permute(&[1, 0]).expect("a matrix has two axes") }
}

/// Whether a product is done by warpgroups: its accumulator is laid out for them, and an operand is in shared memory.
/// Products by FMAs have both operands there too.
pub(crate) fn is_wide(kernel: &crate::ir::Kernel, id: OpId) -> bool {
    let op = &kernel.ops[id];
    let OpKind::Mma(_) = op.kind else { return false };
    let shared = op.operands[..2].iter().any(|&v| kernel.ty(v).as_shared().is_some());
    let Some(layout) = kernel.values[op.results[0]].layout.as_ref().filter(|_| shared) else { return false };
    let &[rows, cols] = layout.shape() else { return false };
    let groups = layout.num_warps() / 4;
    let straight = wgmma_acc(&[rows, cols], groups).is_ok_and(|wide| wide == *layout);
    let swapped = || wgmma_acc(&[cols, rows], groups).and_then(|wide| wide.permute(&[1, 0]));
    straight || swapped().is_ok_and(|wide| wide == *layout)
}
