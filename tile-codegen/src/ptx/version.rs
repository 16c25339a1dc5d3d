//! The lowest PTX `.version` and target that have an instruction, so that old drivers load what they can run.

use std::fmt;

use super::hopper::Hopper;
use super::inst::Inst;
use super::module::{Module, Sm};
use super::ops::*;
use super::reg::*;

/// A PTX ISA version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version {
    /// The number before the dot.
    pub major: u32,
    /// The number after the dot.
    pub minor: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// What an instruction needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// The lowest PTX ISA version.
    pub version: Version,
    /// The lowest architecture, as ten times the compute capability.
    pub sm: u32,
    /// Whether it must be exactly that architecture, as in `sm_90a`.
    pub specific: bool,
}

const fn at(major: u32, minor: u32, sm: u32) -> Need {
    Need { version: Version { major, minor }, sm, specific: false }
}

/// What every target here has: PTX ISA 7.0 brought sm_80 with `cp.async`, `mma` on bf16 and tf32, `redux.sync`,
/// `cvt` to bf16, bf16x2, f16x2 and tf32, and `min.NaN`/`max.NaN`; all else is older.
const BASE: Need = at(7, 0, 80);
/// The cluster scope, `stmatrix` and the rest of bf16 came with sm_90.
const HOPPER: Need = at(7, 8, 90);

/// The rest of Hopper: "introduced in PTX ISA version 8.0, requires sm_90".
const BULK: Need = at(8, 0, 90);
/// Products of warpgroups and register budgets: "requires sm_90a".
const WARPGROUP: Need = Need { specific: true, ..BULK };

/// The lowest version that knows the target (PTX ISA, release notes).
fn target_version(target: Sm) -> Version {
    let need = match (target.number, target.specific) {
        (..=80, _) => at(7, 0, 80),
        (..=86, _) => at(7, 1, 86),
        (..=87, _) => at(7, 4, 87),
        (..=89, _) => at(7, 8, 89),
        (90, false) => at(7, 8, 90),
        (90, true) => at(8, 0, 90),
        (..=101, _) => at(8, 6, 100),
        (..=120, _) => at(8, 7, 120),
        _ => at(9, 0, 121),
    };
    need.version
}

/// The lowest version and architecture that have the instruction: the one table, with the manual's notes.
pub fn need(inst: &Inst) -> Need {
    match inst {
        // "ld.L1::no_allocate introduced in PTX ISA version 7.4".
        Inst::Ld { cache: Some(LdCache::NcNoAllocate), .. } => at(7, 4, 80),
        Inst::Ld { sem, .. } | Inst::St { sem, .. } => scope_need(sem.scope()),
        // "atom.add.noftz.{bf16, bf16x2} introduced in PTX ISA version 7.8, require sm_90"; likewise red.
        Inst::Atom { ty: Ty::BF16 | Ty::BF16x2, .. } | Inst::Red { ty: Ty::BF16 | Ty::BF16x2, .. } => HOPPER,
        Inst::Atom { sem, .. } | Inst::Red { sem, .. } => scope_need(sem.scope()),
        Inst::Fence { scope, .. } => scope_need(Some(*scope)),
        // "cvt with .f32.bf16.ftz requires .target sm_90 or higher", says the assembler.
        Inst::Cvt { src_ty: Ty::BF16, ftz: true, .. } => HOPPER,
        Inst::Cvt { dst_ty, src_ty, round, .. } => cvt_need(*dst_ty, *src_ty, *round),
        Inst::Mov { src: Operand::Special(SpecialReg::ClusterCtaRank), .. } => HOPPER,
        // "stmatrix introduced in PTX ISA version 7.8, requires sm_90".
        Inst::Stmatrix { .. } => HOPPER,
        Inst::Hopper(inst) => hopper_need(inst),
        _ => BASE,
    }
}

/// mbarriers are older, but not the forms that say `.shared::cta` and their ordering.
fn hopper_need(inst: &Hopper) -> Need {
    match inst {
        Hopper::MbarrierInit { .. } | Hopper::MbarrierInval { .. } | Hopper::CpAsyncMbarrierArrive { .. } => {
            at(7, 8, 80)
        }
        Hopper::MbarrierArrive { count: None, .. } => at(8, 0, 80),
        Hopper::MbarrierWait { blocking: false, .. } => at(8, 0, 80),
        Hopper::MbarrierArrive { count: Some(_), .. }
        | Hopper::MbarrierWait { blocking: true, .. }
        | Hopper::MbarrierArriveExpectTx { .. }
        | Hopper::MbarrierExpectTx { .. }
        | Hopper::BulkLoad { .. }
        | Hopper::BulkStore { .. }
        | Hopper::TensorLoad { .. }
        | Hopper::TensorStore { .. }
        | Hopper::BulkCommit
        | Hopper::BulkWait { .. }
        | Hopper::PrefetchTensorMap { .. }
        | Hopper::FenceProxyAsync { .. }
        | Hopper::FenceMbarrierInit
        | Hopper::Elect { .. } => BULK,
        // "griddepcontrol introduced in PTX ISA version 7.8, requires sm_90".
        Hopper::GridDepWait | Hopper::GridDepLaunch => HOPPER,
        Hopper::WgmmaFence
        | Hopper::Wgmma(_)
        | Hopper::WgmmaCommit
        | Hopper::WgmmaWait(_)
        | Hopper::SetMaxNReg { .. } => WARPGROUP,
        Hopper::ParamAddr { .. } => BASE,
        // "cvta.param introduced in PTX ISA version 7.7".
        Hopper::CvtaParam { .. } => at(7, 7, 80),
    }
}

/// "Support for .cluster scope introduced in PTX ISA version 7.8, requires sm_90".
fn scope_need(scope: Option<Scope>) -> Need {
    if scope == Some(Scope::Cluster) { HOPPER } else { BASE }
}

/// Conversions with bf16 and tf32 came in three steps.
fn cvt_need(dst: Ty, src: Ty, round: Option<Round>) -> Need {
    match (dst, src) {
        (Ty::BF16, Ty::F32) => BASE,
        (Ty::F32, Ty::BF16) => at(7, 1, 80),
        (Ty::BF16, _) | (_, Ty::BF16) => HOPPER,
        (Ty::TF32, _) if round != Some(Round::Rna) => HOPPER,
        _ => BASE,
    }
}

/// The `.version` of a module: the lowest that has its target and every instruction in it.
pub fn module_version(module: &Module) -> Version {
    let lines = module.kernels.iter().flat_map(|kernel| &kernel.lines);
    lines.map(|line| need(&line.inst).version).fold(target_version(module.target), Version::max)
}
