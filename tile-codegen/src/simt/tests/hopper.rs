//! Products of warpgroups on tiles that bulk copies bring: every swizzle and major order, A from both places.

use super::{SEEDS, at, show, words};
use crate::ptx::*;
use crate::simt::{Access, Memory, Outcome, Program, Run, TensorMap, TensorSwizzle};

/// A kernel, its tensor maps (over the inputs, in order), its other inputs and the length of its output.
pub(super) struct Launch {
    pub(super) kernel: Kernel,
    pub(super) tensors: Vec<(Vec<u8>, TensorMap)>,
    pub(super) inputs: Vec<Vec<u8>>,
    /// The initial bytes of the output; parameters are maps, inputs, then the output.
    pub(super) out: Vec<u8>,
    /// Whether a last map, on the output, comes before the inputs.
    pub(super) out_map: Option<TensorMap>,
    pub(super) shared: u32,
}

impl Launch {
    pub(super) fn run(&self, seed: u64) -> (Outcome, Vec<u8>) {
        let module = Module { target: Sm::SM_90A, kernels: vec![self.kernel.clone()] };
        let program = Program::new(&module, &self.kernel.name).unwrap_or_else(|e| panic!("{e}"));
        let mut memory = Memory::new();
        let mut params = Vec::new();
        for (bytes, map) in &self.tensors {
            let address = memory.add("tensor", bytes, Access::Read);
            params.push(TensorMap { address, ..map.clone() }.encode().unwrap_or_else(|e| panic!("{e}")));
        }
        let out = memory.add("out", &self.out, Access::Write);
        if let Some(map) = &self.out_map {
            let map = TensorMap { address: out, ..map.clone() };
            params.push(map.encode().unwrap_or_else(|e| panic!("{e}")));
        }
        for input in &self.inputs {
            params.push(memory.add("input", input, Access::Read).to_le_bytes().to_vec());
        }
        params.push(out.to_le_bytes().to_vec());
        let run =
            Run { seed, budget: 1 << 18, shared_bytes: self.shared, ..Run::new(&program, [1, 1, 1], params) };
        let outcome = run.execute(&memory).unwrap_or_else(|e| panic!("{e}"));
        (outcome, memory.bytes(out).expect("the region is there"))
    }

    /// The output, which is the same without a report for every seed.
    #[track_caller]
    pub(super) fn clean(&self) -> Vec<u8> {
        let (first, right) = self.run(0);
        assert!(first.is_clean(), "{}", show(&first));
        for seed in SEEDS.skip(1) {
            let (outcome, out) = self.run(seed);
            assert!(outcome.is_clean(), "seed {seed}: {}", show(&outcome));
            assert!(out == right, "seed {seed}");
        }
        right
    }
}

/// An operand of a product: which memory order, which swizzle, how many rows along M or N.
#[derive(Clone, Copy, Debug)]
struct Layout {
    swizzle: TensorSwizzle,
    trans: bool,
    count: u64,
}

impl Layout {
    fn span(self) -> u64 {
        self.swizzle.span().unwrap_or(16)
    }

    /// Elements of a box along the inner dimension.
    fn width(self, size: u64) -> u64 {
        self.span() / size
    }

    fn rows(self, depth: u64) -> u64 {
        if self.trans { depth } else { self.count }
    }

    fn inner(self, depth: u64) -> u64 {
        if self.trans { self.count } else { depth }
    }

    fn bytes(self, depth: u64, size: u64) -> u64 {
        self.count * depth * size
    }

    fn box_bytes(self, depth: u64) -> u64 {
        self.rows(depth) * self.span()
    }

    fn map(self, depth: u64, size: u64) -> TensorMap {
        let dims = [self.inner(depth), self.rows(depth)];
        let sides = [self.width(size) as u32, self.rows(depth) as u32];
        TensorMap::dense(0, size as u32, &dims, &sides, self.swizzle)
    }

    /// The tensor in memory: `value(row, k)` as bytes.
    fn tensor(self, depth: u64, encode: impl Fn(u64, u64) -> Vec<u8>) -> Vec<u8> {
        let element = |row: u64, inner: u64| if self.trans { encode(inner, row) } else { encode(row, inner) };
        let rows = 0..self.rows(depth);
        rows.flat_map(|row| (0..self.inner(depth)).map(move |i| (row, i)))
            .flat_map(|(row, i)| element(row, i))
            .collect()
    }

    /// Loads all boxes from `map` to `base` bytes into shared memory.
    fn load(
        self,
        f: &mut FuncBuilder,
        pred: Reg,
        (map, base): (Reg, i64),
        depth: u64,
        size: u64,
        mbar: Addr,
    ) {
        for (i, first) in (0..self.inner(depth)).step_by(self.width(size) as usize).enumerate() {
            let dst = Addr::shared(base + i as i64 * self.box_bytes(depth) as i64);
            let coords = [Operand::Imm(first as i64), Operand::Imm(0)].into_iter().collect();
            f.emit_if(pred, Hopper::TensorLoad { dst, map, coords, mbar }.into());
        }
    }

    /// The leading and stride offsets, and how far step `j` of 32 bytes of depth is from the start.
    fn offsets(self, depth: u64, j: u64) -> (u64, u64, u64) {
        let (span, whole) = (self.span(), self.box_bytes(depth));
        match (self.trans, self.swizzle) {
            (false, TensorSwizzle::None) => (whole, 128, j * 2 * whole),
            (false, _) => (16, 8 * span, j * 32),
            (true, TensorSwizzle::None) => (128, whole, j * 256),
            (true, _) => (whole, 8 * span, j * 16 * span),
        }
    }

    /// The descriptor of step `j` of the operand at `base`, as a register.
    fn descriptor(self, f: &mut FuncBuilder, base: i64, depth: u64, j: u64) -> Reg {
        let (leading, stride, from) = self.offsets(depth, j);
        let mode = match self.swizzle {
            TensorSwizzle::None => 0,
            TensorSwizzle::B128 => 1,
            TensorSwizzle::B64 => 2,
            TensorSwizzle::B32 => 3u64,
        };
        let fixed = (leading >> 4) << 16 | (stride >> 4) << 32 | mode << 62;
        let start = f.shared_addr();
        let start = f.int(IntOp::Add, Ty::U32, start, base + from as i64);
        let start = f.shr_u32(start, 4);
        let start = f.cvt(Ty::U64, Ty::U32, start);
        let desc = f.int(IntOp::Or, Ty::B64, start, fixed as i64);
        f.materialize(Ty::B64, desc)
    }
}

fn a_value(row: u64, k: u64) -> i64 {
    (row as i64 * 7 + k as i64 * 3) % 11 - 5
}

fn b_value(column: u64, k: u64) -> i64 {
    (k as i64 * 5 + column as i64 * 2) % 13 - 6
}

/// A small integer as an element.
fn element(ty: Ty, x: i64) -> Vec<u8> {
    match ty {
        Ty::BF16 => half::bf16::from_f32(x as f32).to_le_bytes().to_vec(),
        Ty::F16 => half::f16::from_f32(x as f32).to_le_bytes().to_vec(),
        _ => (x as f32).to_le_bytes().to_vec(),
    }
}

/// A·Bᵀ as f32, row by row.
fn expected(n: u64, depth: u64) -> Vec<f32> {
    let sum = |i: u64, j: u64| (0..depth).map(|k| a_value(i, k) * b_value(j, k)).sum::<i64>() as f32;
    (0..64).flat_map(|i| (0..n).map(move |j| (i, j))).map(|(i, j)| sum(i, j)).collect()
}

/// Stores the accumulators of a warpgroup to 64 rows of `n` f32 at `out`.
fn store_accumulators(f: &mut FuncBuilder, out: Reg, d: &[Reg], n: u64) {
    let tid = f.special(SpecialReg::TidX);
    let (warp, lane) = (f.shr_u32(tid, 5), f.and_b32(tid, 31));
    let (group, place) = (f.shr_u32(lane, 2), f.and_b32(lane, 3));
    let row = f.mad_lo(Ty::U32, warp, 16, group);
    let first = f.shl_b32(place, 1);
    let index = f.mad_lo(Ty::U32, row, Operand::Imm(n as i64), first);
    let to = at(f, out, index, 4);
    let AddrBase::Reg(base) = to.base else { unreachable!("the base is a register") };
    for (i, &reg) in d.iter().enumerate() {
        let offset = (i as i64 / 2 % 2 * 8) * n as i64 + i as i64 / 4 * 8 + i as i64 % 2;
        f.st(Space::Global, Ty::F32, Addr::reg(base, 4 * offset), &[reg.into()]);
    }
}

fn product(ty: Ty, n: u64, d: &[Reg], a: WgmmaA, b: Reg, scale_d: impl Into<Operand>) -> Wgmma {
    Wgmma {
        n: n as u32,
        ty,
        d: d.to_vec(),
        a,
        b,
        scale_d: scale_d.into(),
        neg_a: false,
        neg_b: false,
        trans_a: false,
        trans_b: false,
    }
}

/// One warpgroup multiplies one tile of A and one of B, both in shared memory.
fn multiply(ty: Ty, a: Layout, b: Layout, depth: u64, neg: bool) -> Launch {
    let size = if ty == Ty::TF32 { 4 } else { 2 };
    let mut f = FuncBuilder::new("multiply", 128);
    let bytes = ParamKind::Bytes { size: 128, align: 64 };
    let maps = [f.param("a", bytes), f.param("b", bytes)].map(|map| f.param_generic_addr(map));
    let out = f.param("out", ParamKind::Scalar(Ty::U64));
    let out = f.ld_param(Ty::U64, out);
    f.kernel_mut().shared = Shared::Dynamic { align: 1024 };
    let (mbar, a_at) = (Addr::shared(0), 1024);
    let (a_bytes, b_bytes) = (a.bytes(depth, size), b.bytes(depth, size));
    let b_at = a_at + a_bytes.next_multiple_of(1024) as i64;
    let tid = f.special(SpecialReg::TidX);
    let first = f.setp(Cmp::Eq, Ty::U32, tid, 0);
    f.emit_if(first, Hopper::MbarrierInit { addr: mbar, count: Operand::Imm(1) }.into());
    f.emit_if(first, Hopper::FenceMbarrierInit.into());
    f.bar_sync();
    let expect = Operand::Imm((a_bytes + b_bytes) as i64);
    f.emit_if(first, Hopper::MbarrierArriveExpectTx { addr: mbar, bytes: expect }.into());
    a.load(&mut f, first, (maps[0], a_at), depth, size, mbar);
    b.load(&mut f, first, (maps[1], b_at), depth, size, mbar);
    f.mbarrier_wait(mbar, 0);
    let d: Vec<Reg> = (0..b.count / 2).map(|_| f.reg(RegClass::F32)).collect();
    f.hopper(Hopper::WgmmaFence);
    for j in 0..depth * size / 32 {
        let left = WgmmaA::Desc(a.descriptor(&mut f, a_at, depth, j));
        let right = b.descriptor(&mut f, b_at, depth, j);
        let form = product(ty, b.count, &d, left, right, i64::from(j > 0));
        f.wgmma(Wgmma { trans_a: a.trans, trans_b: b.trans, neg_a: neg, ..form });
    }
    f.hopper(Hopper::WgmmaCommit);
    f.hopper(Hopper::WgmmaWait(0));
    store_accumulators(&mut f, out, &d, b.count);
    let tensors = vec![
        (a.tensor(depth, |row, k| element(ty, a_value(row, k))), a.map(depth, size)),
        (b.tensor(depth, |row, k| element(ty, b_value(row, k))), b.map(depth, size)),
    ];
    let out = vec![0; 256 * b.count as usize];
    let shared = (b_at + b_bytes as i64) as u32;
    Launch { kernel: f.finish(), tensors, inputs: Vec::new(), out, out_map: None, shared }
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    words(bytes).into_iter().map(f32::from_bits).collect()
}

const SWIZZLES: [TensorSwizzle; 4] =
    [TensorSwizzle::None, TensorSwizzle::B32, TensorSwizzle::B64, TensorSwizzle::B128];

#[test]
fn k_major_operands_with_every_swizzle() {
    for swizzle in SWIZZLES {
        for (ty, n, size) in [(Ty::BF16, 16, 2), (Ty::F16, 24, 2), (Ty::TF32, 8, 4)] {
            let depth = swizzle.span().unwrap_or(64) / size;
            let layout = |count| Layout { swizzle, trans: false, count };
            let found = multiply(ty, layout(64), layout(n), depth, false).clean();
            assert_eq!(floats(&found), expected(n, depth), "{swizzle:?} {ty}");
        }
    }
}

#[test]
fn mn_major_operands_with_every_swizzle() {
    for swizzle in SWIZZLES {
        for (trans_a, trans_b) in [(true, false), (false, true), (true, true)] {
            let k_major = TensorSwizzle::B64;
            let layout = |trans| Layout { swizzle: if trans { swizzle } else { k_major }, trans, count: 64 };
            let found = multiply(Ty::BF16, layout(trans_a), layout(trans_b), 32, false).clean();
            assert_eq!(floats(&found), expected(64, 32), "{swizzle:?} {trans_a} {trans_b}");
        }
    }
}

#[test]
fn wide_and_negated_products() {
    let layout = |count| Layout { swizzle: TensorSwizzle::B128, trans: false, count };
    let found = multiply(Ty::F16, layout(64), layout(256), 64, true).clean();
    let right: Vec<f32> = expected(256, 64).into_iter().map(|x| -x).collect();
    // A sum of zero products of both signs is +0.
    assert!(floats(&found).iter().zip(&right).all(|(a, b)| a == b));
}

/// A from registers, read from global memory with the places that the manual lists for `mma.sync`. 100 is added.
#[test]
fn a_from_registers() {
    let b = Layout { swizzle: TensorSwizzle::B32, trans: false, count: 16 };
    let mut f = FuncBuilder::new("registers", 128);
    let map = f.param("b", ParamKind::Bytes { size: 128, align: 64 });
    let map = f.param_generic_addr(map);
    let [a, out] = ["a", "out"].map(|name| f.param(name, ParamKind::Scalar(Ty::U64)));
    let [a, out] = [a, out].map(|param| f.ld_param(Ty::U64, param));
    f.kernel_mut().shared = Shared::Dynamic { align: 1024 };
    let tid = f.special(SpecialReg::TidX);
    let first = f.setp(Cmp::Eq, Ty::U32, tid, 0);
    let mbar = Addr::shared(0);
    f.emit_if(first, Hopper::MbarrierInit { addr: mbar, count: Operand::Imm(1) }.into());
    f.emit_if(first, Hopper::FenceMbarrierInit.into());
    f.bar_sync();
    f.emit_if(first, Hopper::MbarrierArriveExpectTx { addr: mbar, bytes: Operand::Imm(512) }.into());
    b.load(&mut f, first, (map, 1024), 16, 2, mbar);
    let (warp, lane) = (f.shr_u32(tid, 5), f.and_b32(tid, 31));
    let (group, place) = (f.shr_u32(lane, 2), f.and_b32(lane, 3));
    let row = f.mad_lo(Ty::U32, warp, 16, group);
    let column = f.shl_b32(place, 1);
    let index = f.mad_lo(Ty::U32, row, 16, column);
    let from = at(&mut f, a, index, 2);
    let AddrBase::Reg(base) = from.base else { unreachable!("the base is a register") };
    // a0 a1: row g; a2 a3: row g + 8; a4 a5: row g, 8 columns on; a6 a7: both.
    let regs: Regs = [0, 8 * 32, 16, 8 * 32 + 16]
        .map(|offset| f.ld(Space::Global, Ty::B32, Addr::reg(base, offset)))
        .into_iter()
        .collect();
    f.mbarrier_wait(mbar, 0);
    let d: Vec<Reg> = (0..8).map(|_| f.reg(RegClass::F32)).collect();
    d.iter().for_each(|&d| f.mov_to(Ty::F32, d, Operand::f32(100.0)));
    f.hopper(Hopper::WgmmaFence);
    let right = b.descriptor(&mut f, 1024, 16, 0);
    f.wgmma(product(Ty::BF16, 16, &d, WgmmaA::Regs(regs), right, 1));
    f.hopper(Hopper::WgmmaCommit);
    f.hopper(Hopper::WgmmaWait(0));
    store_accumulators(&mut f, out, &d, 16);
    let rows = (0..64).flat_map(|row| (0..16).map(move |k| (row, k)));
    let a: Vec<u8> = rows.flat_map(|(row, k)| element(Ty::BF16, a_value(row, k))).collect();
    let tensors = vec![(b.tensor(16, |row, k| element(Ty::BF16, b_value(row, k))), b.map(16, 2))];
    let launch = Launch {
        kernel: f.finish(),
        tensors,
        inputs: vec![a],
        out: vec![0; 4096],
        out_map: None,
        shared: 2048,
    };
    let right: Vec<f32> = expected(16, 16).into_iter().map(|x| x + 100.0).collect();
    assert_eq!(floats(&launch.clean()), right);
}
