//! Matrix products on plain FMAs: exact f32, and shapes too small for tensor cores. Operands are read from shared
//! memory; the accumulator is a register tile.

use super::LowerCx;
use crate::ir::Elem;
use crate::layout::{Layout, SharedLayout, ThreadOffset};
use crate::ptx::{Addr, Cmp, Operand, Reg, RegClass, Space, Ty};

/// One operand in shared memory, as the threads of an accumulator layout read it.
struct Side {
    elem: Elem,
    thread: ThreadOffset,
    /// Byte offset for each distinct coordinate; consecutive ones are read together.
    offsets: Vec<u32>,
    /// For each accumulator register: which distinct coordinate.
    of_reg: Vec<usize>,
    /// Bytes between consecutive k.
    step: u32,
}

/// How much of k one trip of the loop does.
const UNROLL: usize = 4;

impl Side {
    /// `axis`: which axis of the operand is k; the accumulator's other matrix axis is dropped.
    fn new(elem: Elem, acc: &Layout, shared: &SharedLayout, k_axis: usize) -> Side {
        let rank = acc.shape().len();
        let strides: Vec<usize> = (0..rank).map(|a| shared.shape[a + 1..].iter().product()).collect();
        // Along the operand's k axis the accumulator has the other operand's axis: coordinate 0 there.
        let lift = |flat: u32| {
            let mut rest = flat as usize;
            let mut index = 0;
            for axis in (0..rank).rev() {
                let coord = rest % acc.shape()[axis];
                rest /= acc.shape()[axis];
                if axis != k_axis {
                    index += coord * strides[axis];
                }
            }
            shared.offset(index as u32)
        };
        let thread =
            ThreadOffset { lane: acc.lane().map(lift), warp: acc.warp().iter().map(|&b| lift(b)).collect() };
        let all: Vec<u32> = (0..acc.num_regs()).map(|r| lift(acc.flat(r, 0, 0))).collect();
        let mut offsets = all.clone();
        offsets.sort_unstable();
        offsets.dedup();
        let of_reg = all.iter().map(|o| offsets.binary_search(o).expect("every offset is listed")).collect();
        let step = shared.offset(strides[k_axis] as u32);
        Side { elem, thread, offsets, of_reg, step }
    }
}

impl LowerCx<'_> {
    /// `acc + a @ b` with both operands in dense shared tiles at bytes `at[0]` and `at[1]`.
    pub fn fma_product(
        &mut self,
        elem: Elem,
        layout: &Layout,
        shared: [&SharedLayout; 2],
        at: [(Reg, u32); 2],
        acc: Vec<Operand>,
    ) -> Vec<Operand> {
        let rank = layout.shape().len();
        let k = shared[0].shape[rank - 1];
        let a = Side::new(elem, layout, shared[0], rank - 1);
        let b = Side::new(elem, layout, shared[1], rank - 2);
        let acc: Vec<Reg> = acc
            .into_iter()
            .map(|x| {
                let reg = self.f.reg(RegClass::F32);
                self.f.mov_to(Ty::F32, reg, x);
                reg
            })
            .collect();
        let unroll = UNROLL.min(k);
        let pointers = [self.start(&a, at[0].0), self.start(&b, at[1].0)];
        let left = self.f.mov_imm(Ty::U32, (k / unroll) as i64);
        let head = self.f.label();
        self.f.place(head);
        for step in 0..unroll as u32 {
            let xs = self.column(&a, pointers[0], at[0].1 + step * a.step);
            let ys = self.column(&b, pointers[1], at[1].1 + step * b.step);
            for (reg, &sum) in acc.iter().enumerate() {
                let (x, y) = (xs[a.of_reg[reg]], ys[b.of_reg[reg]]);
                self.f.emit(crate::ptx::Inst::Fma {
                    ty: Ty::F32,
                    ftz: false,
                    dst: sum,
                    a: x,
                    b: y,
                    c: sum.into(),
                });
            }
        }
        for (pointer, side) in pointers.iter().zip([&a, &b]) {
            let next = self.f.add_s32(*pointer, unroll as u32 * side.step);
            self.f.mov_to(Ty::U32, *pointer, next);
        }
        let fewer = self.f.sub_s32(left, 1);
        self.f.mov_to(Ty::U32, left, fewer);
        let more = self.f.setp(Cmp::Ne, Ty::S32, left, 0);
        self.f.bra_if(more, head, true);
        acc.into_iter().map(Operand::from).collect()
    }

    /// A mutable register with the thread's first address of an operand.
    fn start(&mut self, side: &Side, base: Reg) -> Reg {
        let part = self.linear(&side.thread);
        let address = self.f.add_s32(base, part);
        let pointer = self.f.reg(RegClass::B32);
        self.f.mov_to(Ty::U32, pointer, address);
        pointer
    }

    /// The distinct elements that a thread needs of one k, in f32.
    fn column(&mut self, side: &Side, pointer: Reg, at: u32) -> Vec<Operand> {
        let bytes = side.elem.bytes() as u32;
        let aligned =
            |offset: u32, n: u32| offset.is_multiple_of(n * bytes) && side.step.is_multiple_of(n * bytes);
        let free = |n: u32| side.thread.mask() & (n * bytes - 1) == 0 && at.is_multiple_of(n * bytes);
        let mut out = Vec::new();
        let mut i = 0;
        while i < side.offsets.len() {
            let first = side.offsets[i];
            let run =
                (1..4).take_while(|&n| side.offsets.get(i + n) == Some(&(first + n as u32 * bytes))).count()
                    + 1;
            let n = [4, 2, 1]
                .into_iter()
                .find(|&n| n <= run && aligned(first, n as u32) && free(n as u32))
                .unwrap_or(1);
            let addr = Addr::reg(pointer, i64::from(at + first));
            let loaded = self.load_vector(side.elem, n, Space::Shared, addr, None, Operand::Imm(0), false);
            for value in loaded {
                out.push(self.widen(side.elem, value));
            }
            i += n;
        }
        out
    }
}
