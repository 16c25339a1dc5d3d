//! The instructions, as a typed enum: the printer, the checker and the executor match on it exhaustively.

use smallvec::SmallVec;

use super::hopper::Hopper;
use super::ops::*;
use super::reg::*;

/// A short list of registers.
pub type Regs = SmallVec<[Reg; 4]>;

/// One instruction, without its guard. Sections are those of the PTX ISA; fields are named as in its syntax.
#[allow(missing_docs, reason = "each line shows what its fields mean")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inst {
    /// `mov.TY d, a`: copies a register, a literal or a special register (9.7.9.3).
    Mov { ty: Ty, dst: Reg, src: Operand },
    /// `mov.u32 d, smem`: the address of the kernel's shared memory (9.7.9.3).
    SharedAddr { dst: Reg },
    /// `cvta.to.SPACE.u64 d, a`: a generic address as one of a state space (9.7.9.20).
    CvtaTo { space: Space, dst: Reg, src: Reg },
    /// `mov.TY d, {a, b, ..}`: joins equal parts, the lowest first, into `.b32` or `.b64` (9.7.9.4).
    Pack { ty: Ty, dst: Reg, parts: Regs },
    /// `mov.TY {d, e, ..}, a`: splits `.b32` or `.b64` into equal parts, the lowest first (9.7.9.4).
    Unpack { ty: Ty, dsts: Regs, src: Reg },

    /// `OP.TY d, a, b` on integers or bits (9.7.1, 9.7.8).
    Int { op: IntOp, ty: Ty, dst: Reg, a: Operand, b: Operand },
    /// `OP.TY d, a` on integers or bits (9.7.1, 9.7.8).
    IntUn { op: IntUnOp, ty: Ty, dst: Reg, a: Operand },
    /// `mul.wide.TY d, a, b`: the whole product, twice as wide as `ty` (9.7.1.3).
    MulWide { ty: Ty, dst: Reg, a: Operand, b: Operand },
    /// `mad.lo.TY d, a, b, c`: low half of a·b plus c (9.7.1.4).
    MadLo { ty: Ty, dst: Reg, a: Operand, b: Operand, c: Operand },
    /// `mad.wide.TY d, a, b, c`: the whole product plus c; c and d are twice as wide as `ty` (9.7.1.4).
    MadWide { ty: Ty, dst: Reg, a: Operand, b: Operand, c: Operand },
    /// `lop3.b32 d, a, b, c, lut`: any function of three bits, by its truth table (9.7.8.6).
    Lop3 { dst: Reg, a: Operand, b: Operand, c: Operand, lut: u8 },
    /// `bfe.TY d, a, pos, len`: extracts a bit field, sign-extended for signed types (9.7.1.19).
    Bfe { ty: Ty, dst: Reg, a: Operand, pos: Operand, len: Operand },
    /// `bfi.TY d, a, b, pos, len`: b with the low bits of a inserted as a bit field (9.7.1.20).
    Bfi { ty: Ty, dst: Reg, a: Operand, b: Operand, pos: Operand, len: Operand },
    /// `shf.l.wrap.b32` / `shf.r.wrap.b32 d, a, b, c`: shifts the pair {b, a} by c modulo 32 (9.7.8.7).
    Shf { left: bool, dst: Reg, a: Operand, b: Operand, c: Operand },
    /// `prmt.b32 d, a, b, selector`: picks four of the eight bytes of {b, a} (9.7.9.7).
    Prmt { dst: Reg, a: Operand, b: Operand, selector: Operand },

    /// `OP[.ftz].TY d, a, b` on f32 or f64 (9.7.3).
    Float { op: FloatOp, ty: Ty, ftz: bool, dst: Reg, a: Operand, b: Operand },
    /// `OP[.ftz].TY d, a` on f32 or f64 (9.7.3).
    FloatUn { op: FloatUnOp, ty: Ty, ftz: bool, dst: Reg, a: Operand },
    /// `fma.rn[.ftz].TY d, a, b, c`: a·b + c with one rounding, on f32 or f64 (9.7.3.6).
    Fma { ty: Ty, ftz: bool, dst: Reg, a: Operand, b: Operand, c: Operand },

    /// `cvt[.ROUND][.ftz][.sat].DST.SRC d, a` (9.7.9.21).
    Cvt { dst_ty: Ty, src_ty: Ty, round: Option<Round>, ftz: bool, sat: bool, dst: Reg, src: Operand },
    /// `cvt.rn.TY.f32 d, hi, lo`: two f32 rounded to a pair of 16-bit floats (9.7.9.21).
    CvtPack { ty: Ty, dst: Reg, hi: Operand, lo: Operand },

    /// `setp.CMP.TY p, a, b` (9.7.6.1).
    Setp { cmp: Cmp, ty: Ty, dst: Reg, a: Operand, b: Operand },
    /// `selp.TY d, a, b, p`: a where p, else b (9.7.6.3).
    Selp { ty: Ty, dst: Reg, a: Operand, b: Operand, pred: Reg },
    /// `OP.pred p, a, b` (9.7.8).
    Pred { op: PredOp, dst: Reg, a: Reg, b: Reg },
    /// `not.pred p, a` (9.7.8.4).
    PredNot { dst: Reg, a: Reg },

    /// `ld[.SEM.SCOPE].SPACE[.CACHE][.vN].TY {d..}, [a]`: 1, 2 or 4 elements (9.7.9.8).
    Ld { space: Space, ty: Ty, sem: MemSem, cache: Option<LdCache>, dsts: Regs, addr: Addr },
    /// `st[.SEM.SCOPE].SPACE[.CACHE][.vN].TY [a], {b..}`: 1, 2 or 4 elements (9.7.9.11).
    St { space: Space, ty: Ty, sem: MemSem, cache: Option<StCache>, addr: Addr, srcs: SmallVec<[Operand; 4]> },
    /// `atom.SEM.SCOPE.SPACE.OP.TY d, [a], b[, c]`; `cmp` is there for `cas` alone (9.7.13.5).
    Atom {
        op: AtomOp,
        ty: Ty,
        space: Space,
        sem: MemSem,
        dst: Reg,
        addr: Addr,
        cmp: Option<Operand>,
        src: Operand,
    },
    /// `red.SEM.SCOPE.SPACE.OP.TY [a], b` (9.7.13.6).
    Red { op: AtomOp, ty: Ty, space: Space, sem: MemSem, addr: Addr, src: Operand },

    /// `shfl.sync.MODE.b32 d[|p], a, lane, clamp, mask` (9.7.9.6).
    Shfl {
        mode: ShflMode,
        dst: Reg,
        pred: Option<Reg>,
        src: Reg,
        lane: Operand,
        clamp: Operand,
        mask: Operand,
    },
    /// `vote.sync.MODE.pred p, [!]a, mask`, or `.ballot.b32 d, [!]a, mask` (9.7.13.7).
    Vote { mode: VoteMode, dst: Reg, src: Reg, negated: bool, mask: Operand },
    /// `redux.sync.OP.TY d, a, mask` on 32 bits (9.7.13.8).
    Redux { op: ReduxOp, ty: Ty, dst: Reg, src: Reg, mask: Operand },

    /// `bar.sync id[, threads]` (9.7.13.1).
    BarSync { id: Operand, threads: Option<u32> },
    /// `bar.arrive id, threads` (9.7.13.1).
    BarArrive { id: Operand, threads: u32 },
    /// `bar.warp.sync mask` (9.7.13.2).
    BarWarpSync { mask: Operand },
    /// `membar.LEVEL` (9.7.13.4).
    Membar { level: MembarLevel },
    /// `fence.SEM.SCOPE` (9.7.13.4).
    Fence { sem: FenceSem, scope: Scope },

    /// `LABEL:` (4.2).
    Label(Label),
    /// `bra[.uni] LABEL` (9.7.12.2).
    Bra { label: Label, uni: bool },
    /// `ret` (9.7.12.5).
    Ret,
    /// `exit` (9.7.12.6).
    Exit,
    /// `trap` (9.7.19.4).
    Trap,

    /// `mma.sync.aligned.SHAPE.row.col.f32.TY.TY.f32 d, a, b, c` (9.7.14.5).
    Mma { shape: MmaShape, ty: Ty, d: [Reg; 4], a: Regs, b: Regs, c: [Reg; 4] },
    /// `ldmatrix.sync.aligned.m8n8.xN[.trans].shared.b16 {d..}, [a]`: 1, 2 or 4 matrices (9.7.14.5.15).
    Ldmatrix { trans: bool, dsts: Regs, addr: Addr },
    /// `stmatrix.sync.aligned.m8n8.xN[.trans].shared.b16 [a], {b..}`: 1, 2 or 4 matrices (9.7.14.5.16).
    Stmatrix { trans: bool, addr: Addr, srcs: Regs },

    /// `cp.async.CACHE.shared.global [d], [s], BYTES[, src_size]`: bytes past src_size become 0 (9.7.9.25).
    CpAsync { cache: CpCache, bytes: u32, dst: Addr, src: Addr, src_size: Option<Operand> },
    /// `cp.async.commit_group` (9.7.9.25).
    CpAsyncCommit,
    /// `cp.async.wait_group n`: until at most n of the latest groups are pending (9.7.9.25).
    CpAsyncWait(u32),
    /// `cp.async.wait_all` (9.7.9.25).
    CpAsyncWaitAll,

    /// An instruction that came with Hopper.
    Hopper(Hopper),
}

impl Inst {
    /// Whether control never reaches the next line (when the instruction is not guarded).
    pub fn ends_block(&self) -> bool {
        matches!(self, Inst::Bra { .. } | Inst::Ret | Inst::Exit | Inst::Trap)
    }
}
