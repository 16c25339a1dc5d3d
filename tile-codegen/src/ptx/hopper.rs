//! The instructions that came with Hopper: mbarriers, bulk copies, products of warpgroups, register budgets.

use smallvec::SmallVec;

use super::inst::{Inst, Regs};
use super::ops::Space;
use super::reg::*;

/// The coordinates of a box in a tensor, the innermost dimension first, 1 to 5 of them.
pub type Coords = SmallVec<[Operand; 5]>;

/// Where the A operand of a warpgroup's product comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WgmmaA {
    /// Four 32-bit registers, with the layout of `mma.sync`'s A fragment for each warp's 16 rows.
    Regs(Regs),
    /// A descriptor of shared memory in a 64-bit register.
    Desc(Reg),
}

/// One instruction of Hopper, without its guard. Sections are those of the PTX ISA.
#[allow(missing_docs, reason = "each line shows what its fields mean")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hopper {
    /// `mbarrier.init.shared::cta.b64 [a], count` (9.7.13.15.9).
    MbarrierInit { addr: Addr, count: Operand },
    /// `mbarrier.inval.shared::cta.b64 [a]` (9.7.13.15.10).
    MbarrierInval { addr: Addr },
    /// `mbarrier.arrive.release.cta.shared::cta.b64 _, [a][, count]` (9.7.13.15.13).
    MbarrierArrive { addr: Addr, count: Option<Operand> },
    /// `mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [a], bytes` (9.7.13.15.13).
    MbarrierArriveExpectTx { addr: Addr, bytes: Operand },
    /// `mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [a], bytes` (9.7.13.15.11).
    MbarrierExpectTx { addr: Addr, bytes: Operand },
    /// `mbarrier.{try,test}_wait.parity.acquire.cta.shared::cta.b64 p, [a], parity`: whether the phase of this parity is
    /// complete; `blocking` (`try_wait`) may suspend the thread for a while (9.7.13.15.16).
    MbarrierWait { blocking: bool, dst: Reg, addr: Addr, parity: Operand },
    /// `cp.async.mbarrier.arrive.noinc.shared::cta.b64 [a]`: arrives once all earlier `cp.async` of the thread are complete
    /// (9.7.13.15.15).
    CpAsyncMbarrierArrive { addr: Addr },

    /// `cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [d], [s], bytes, [mbar]` (9.7.9.25.4).
    BulkLoad { dst: Addr, src: Addr, bytes: Operand, mbar: Addr },
    /// `cp.async.bulk.global.shared::cta.bulk_group [d], [s], bytes` (9.7.9.25.4).
    BulkStore { dst: Addr, src: Addr, bytes: Operand },
    /// `cp.async.bulk.tensor.Nd.shared::cluster.global.tile.mbarrier::complete_tx::bytes [d], [map, {c..}], [mbar]`; `map` is
    /// a generic address (9.7.9.25.5).
    TensorLoad { dst: Addr, map: Reg, coords: Coords, mbar: Addr },
    /// `cp.async.bulk.tensor.Nd.global.shared::cta.tile.bulk_group [map, {c..}], [s]` (9.7.9.25.5).
    TensorStore { map: Reg, coords: Coords, src: Addr },
    /// `cp.async.bulk.commit_group` (9.7.9.25.4).
    BulkCommit,
    /// `cp.async.bulk.wait_group[.read] n`: until at most n of the latest groups are pending, or (`read`) have not yet read
    /// their sources (9.7.9.25.4).
    BulkWait { pending: u32, read: bool },
    /// `prefetch.tensormap [map]`, a generic address (9.7.9.15).
    PrefetchTensorMap { map: Reg },

    /// `fence.proxy.async[.SPACE]`: orders generic and asynchronous accesses, to all memory without a space (9.7.13.4).
    FenceProxyAsync { space: Option<Space> },
    /// `fence.mbarrier_init.release.cluster`: makes initialised mbarriers known to bulk copies (9.7.13.4).
    FenceMbarrierInit,

    /// `wgmma.fence.sync.aligned`: orders accesses to registers before products that use them (9.7.15.7.1).
    WgmmaFence,
    /// `wgmma.mma_async.sync.aligned.m64nNkK.f32.TY.TY d, a, b, scale_d, ±1, ±1[, trans_a][, trans_b]`: d = ±a · ±b + d, or
    /// without d where `scale_d` is false. K is 16, or 8 for tf32 (9.7.15.5).
    ///
    /// The visitor calls `d` written; it calls it read as well only where `scale_d` is the literal 1, since a predicate may
    /// well be false the first time.
    Wgmma(Wgmma),
    /// `wgmma.commit_group.sync.aligned` (9.7.15.7.2).
    WgmmaCommit,
    /// `wgmma.wait_group.sync.aligned n`: until at most n of the latest groups are pending (9.7.15.7.3).
    WgmmaWait(u32),

    /// `setmaxnreg.{inc,dec}.sync.aligned.u32 count`: registers of each thread of the warpgroup (9.7.19.5).
    SetMaxNReg { increase: bool, count: u32 },
    /// `elect.sync d|p, mask`: p is true in one lane, whose number is d (9.7.13.14).
    Elect { dst: Option<Reg>, pred: Reg, mask: Operand },
    /// `griddepcontrol.wait`: until the grids that this one depends on are complete (9.7.13.13).
    GridDepWait,
    /// `griddepcontrol.launch_dependents` (9.7.13.13).
    GridDepLaunch,

    /// `mov.b64 d, PARAM`: the address of a parameter in parameter memory (9.7.9.3).
    ParamAddr { dst: Reg, param: u32 },
    /// `cvta.param.u64 d, a`: an address in parameter memory as a generic one (9.7.9.20).
    CvtaParam { dst: Reg, src: Reg },
}

/// The product of a warpgroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wgmma {
    /// Columns of B and D: a multiple of 8, at most 256.
    pub n: u32,
    /// The type of A and B: `F16`, `BF16` or `TF32`.
    pub ty: Ty,
    /// The accumulators: n / 2 registers of f32.
    pub d: Vec<Reg>,
    /// The left operand: 64 rows.
    pub a: WgmmaA,
    /// The right operand: a descriptor of shared memory in a 64-bit register.
    pub b: Reg,
    /// Whether D is added: a predicate, or the literal 0 or 1.
    pub scale_d: Operand,
    /// Whether A is negated.
    pub neg_a: bool,
    /// Whether B is negated.
    pub neg_b: bool,
    /// Whether A is M-major rather than K-major in shared memory (16-bit types).
    pub trans_a: bool,
    /// Whether B is N-major rather than K-major in shared memory (16-bit types).
    pub trans_b: bool,
}

impl Wgmma {
    /// The depth of one product: 32 bytes.
    pub fn k(&self) -> u32 {
        if self.ty == Ty::TF32 { 8 } else { 16 }
    }
}

impl From<Hopper> for Inst {
    fn from(inst: Hopper) -> Inst {
        Inst::Hopper(inst)
    }
}

impl Hopper {
    /// The addresses that the instruction names, with their spaces.
    pub(super) fn addresses(&self) -> SmallVec<[(Space, Addr); 3]> {
        let list: &[(Space, Addr)] = match self {
            Hopper::MbarrierInit { addr, .. }
            | Hopper::MbarrierInval { addr }
            | Hopper::MbarrierArrive { addr, .. }
            | Hopper::MbarrierArriveExpectTx { addr, .. }
            | Hopper::MbarrierExpectTx { addr, .. }
            | Hopper::MbarrierWait { addr, .. }
            | Hopper::CpAsyncMbarrierArrive { addr } => &[(Space::Shared, *addr)],
            Hopper::BulkLoad { dst, src, mbar, .. } => {
                &[(Space::Shared, *dst), (Space::Global, *src), (Space::Shared, *mbar)]
            }
            Hopper::BulkStore { dst, src, .. } => &[(Space::Global, *dst), (Space::Shared, *src)],
            Hopper::TensorLoad { dst, mbar, .. } => &[(Space::Shared, *dst), (Space::Shared, *mbar)],
            Hopper::TensorStore { src, .. } => &[(Space::Shared, *src)],
            Hopper::ParamAddr { param, .. } => &[(Space::Param, Addr::param(*param))],
            Hopper::BulkCommit
            | Hopper::BulkWait { .. }
            | Hopper::PrefetchTensorMap { .. }
            | Hopper::FenceProxyAsync { .. }
            | Hopper::FenceMbarrierInit
            | Hopper::WgmmaFence
            | Hopper::Wgmma(_)
            | Hopper::WgmmaCommit
            | Hopper::WgmmaWait(_)
            | Hopper::SetMaxNReg { .. }
            | Hopper::Elect { .. }
            | Hopper::GridDepWait
            | Hopper::GridDepLaunch
            | Hopper::CvtaParam { .. } => &[],
        };
        SmallVec::from_slice(list)
    }
}
