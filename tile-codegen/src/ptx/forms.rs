//! Which types and modifiers an instruction has.

use super::inst::Inst;
use super::ops::*;
use super::reg::*;

/// `Err` says what is wrong with the instruction itself, whatever surrounds it.
pub(super) fn check_form(inst: &Inst) -> Result<(), String> {
    match inst {
        Inst::Mov { ty, .. } => require(moves(*ty) || *ty == Ty::Pred, || format!("mov has no .{ty}")),
        Inst::CvtaTo { space, .. } => {
            require(*space != Space::Param, || "cvta has no form to .param".to_string())
        }
        Inst::Pack { ty, parts, .. } | Inst::Unpack { ty, dsts: parts, .. } => {
            let ok = matches!((ty, parts.len()), (Ty::B32, 2) | (Ty::B64, 2 | 4));
            require(ok, || format!("a .{ty} has no {} parts", parts.len()))
        }
        Inst::Int { op, ty, .. } => require(int_has(*op, *ty), || format!("{} has no .{ty}", op.name())),
        Inst::IntUn { op, ty, .. } => require(int_un_has(*op, *ty), || format!("{} has no .{ty}", op.name())),
        Inst::MulWide { ty, .. } | Inst::MadWide { ty, .. } => {
            require(ty.is_int() && matches!(ty.bits(), 16 | 32), || format!("a wide product has no .{ty}"))
        }
        Inst::MadLo { ty, .. } => require(ty.is_int() && ty.bits() >= 16, || format!("mad.lo has no .{ty}")),
        Inst::Bfe { ty, .. } => require(ty.is_int() && ty.bits() >= 32, || format!("bfe has no .{ty}")),
        Inst::Bfi { ty, .. } => {
            require(matches!(ty, Ty::B32 | Ty::B64), || format!("bfi has no .{ty}, but .b32 and .b64"))
        }
        Inst::Float { op, ty, ftz, .. } => {
            let single =
                matches!(op, FloatOp::DivFull | FloatOp::DivApprox | FloatOp::MinNan | FloatOp::MaxNan);
            check_float(op.name(), *ty, *ftz, single)
        }
        Inst::FloatUn { op, ty, ftz, .. } => {
            let any = matches!(
                op,
                FloatUnOp::Neg
                    | FloatUnOp::Abs
                    | FloatUnOp::SqrtRn
                    | FloatUnOp::RcpRn
                    | FloatUnOp::RsqrtApprox
            );
            require(!(*ftz && *op == FloatUnOp::TanhApprox), || "tanh.approx has no .ftz".to_string())?;
            check_float(op.name(), *ty, *ftz, !any)
        }
        Inst::Fma { ty, ftz, .. } => check_float("fma.rn", *ty, *ftz, false),
        Inst::Cvt { dst_ty, src_ty, round, ftz, sat, .. } => check_cvt(*dst_ty, *src_ty, *round, *ftz, *sat),
        Inst::CvtPack { ty, .. } => {
            require(matches!(ty, Ty::F16x2 | Ty::BF16x2), || format!("a packed cvt has no .{ty}"))
        }
        Inst::Setp { cmp, ty, .. } => check_setp(*cmp, *ty),
        Inst::Selp { ty, .. } => require(moves(*ty), || format!("selp has no .{ty}")),
        Inst::Ld { .. } | Inst::St { .. } | Inst::CpAsync { .. } => check_memory(inst),
        Inst::Atom { op, ty, space, sem, cmp, .. } => {
            check_atom(*op, *ty, *space)?;
            require(cmp.is_some() == (*op == AtomOp::Cas), || {
                "atom.cas has a comparison value, the others have none".to_string()
            })?;
            require(*sem != MemSem::Weak, || "atom is never weak; use relaxed".to_string())
        }
        Inst::Red { op, ty, space, sem, .. } => {
            check_atom(*op, *ty, *space)?;
            require(!matches!(op, AtomOp::Exch | AtomOp::Cas), || format!("red has no .{}", op.name()))?;
            let ok = matches!(sem, MemSem::Relaxed(_) | MemSem::Release(_));
            require(ok, || "red is .relaxed or .release".to_string())
        }
        Inst::Redux { op, ty, .. } => {
            let bits = matches!(op, ReduxOp::And | ReduxOp::Or | ReduxOp::Xor);
            let ok = if bits { *ty == Ty::B32 } else { matches!(ty, Ty::U32 | Ty::S32) };
            require(ok, || format!("redux.sync.{} has no .{ty}", op.name()))
        }
        Inst::BarSync { id, threads } => check_barrier(*id, *threads),
        Inst::BarArrive { id, threads } => check_barrier(*id, Some(*threads)),
        Inst::Mma { shape, ty, a, b, .. } => {
            let found = (a.len(), b.len());
            require(shape.registers(*ty) == Some(found), || {
                format!("mma {} of .{ty} does not take {} and {} registers", shape.name(), found.0, found.1)
            })
        }
        Inst::Ldmatrix { dsts: regs, .. } | Inst::Stmatrix { srcs: regs, .. } => {
            require(matches!(regs.len(), 1 | 2 | 4), || {
                format!("{} matrices, expected 1, 2 or 4", regs.len())
            })
        }
        Inst::SharedAddr { .. }
        | Inst::Lop3 { .. }
        | Inst::Shf { .. }
        | Inst::Prmt { .. }
        | Inst::Pred { .. }
        | Inst::PredNot { .. }
        | Inst::Shfl { .. }
        | Inst::Vote { .. }
        | Inst::BarWarpSync { .. }
        | Inst::Membar { .. }
        | Inst::Fence { .. }
        | Inst::Label(_)
        | Inst::Bra { .. }
        | Inst::Ret
        | Inst::Exit
        | Inst::Trap
        | Inst::CpAsyncCommit
        | Inst::CpAsyncWait(_)
        | Inst::CpAsyncWaitAll => Ok(()),
        Inst::Hopper(inst) => inst.check_form(),
    }
}

pub(super) fn require(ok: bool, message: impl FnOnce() -> String) -> Result<(), String> {
    if ok { Ok(()) } else { Err(message()) }
}

/// Types that `mov`, `selp` and (with 8 bits as well) loads have.
fn moves(ty: Ty) -> bool {
    ty.bits() >= 16 && ty.kind() != TyKind::SmallFloat
}

fn int_has(op: IntOp, ty: Ty) -> bool {
    let bits = ty.kind() == TyKind::Bits;
    let kind = match op {
        IntOp::And | IntOp::Or | IntOp::Xor | IntOp::Shl => bits,
        IntOp::Shr => bits || ty.is_int(),
        _ => ty.is_int(),
    };
    kind && ty.bits() >= 16
}

fn int_un_has(op: IntUnOp, ty: Ty) -> bool {
    match op {
        IntUnOp::Neg | IntUnOp::Abs => ty.kind() == TyKind::Signed && ty.bits() >= 16,
        IntUnOp::Not => ty.kind() == TyKind::Bits && ty.bits() >= 16,
        IntUnOp::Popc | IntUnOp::Clz | IntUnOp::Brev => matches!(ty, Ty::B32 | Ty::B64),
    }
}

fn check_float(name: &str, ty: Ty, ftz: bool, single: bool) -> Result<(), String> {
    require(ty == Ty::F32 || (ty == Ty::F64 && !single), || format!("{name} has no .{ty}"))?;
    require(!ftz || ty == Ty::F32, || format!("{name}.{ty} has no .ftz"))
}

fn check_setp(cmp: Cmp, ty: Ty) -> Result<(), String> {
    let ok = match cmp {
        Cmp::Eq | Cmp::Ne => moves(ty),
        Cmp::Lt | Cmp::Le | Cmp::Gt | Cmp::Ge => {
            ty.bits() >= 16 && (ty.is_int() || ty.kind() == TyKind::Float)
        }
        _ => ty.kind() == TyKind::Float,
    };
    require(ok, || format!("setp.{} has no .{ty}", cmp.name()))
}

fn check_cvt(dst: Ty, src: Ty, round: Option<Round>, ftz: bool, sat: bool) -> Result<(), String> {
    let number = |ty: Ty| ty.is_int() || (ty.is_float() && !matches!(ty, Ty::F16x2 | Ty::BF16x2));
    let text = || format!("cvt.{dst}.{src}");
    require(number(dst) && number(src) && src != Ty::TF32, || format!("there is no {}", text()))?;
    require(!ftz || dst == Ty::F32 || src == Ty::F32, || format!("{} has no .ftz", text()))?;
    let bf16 = dst == Ty::BF16 || src == Ty::BF16;
    require(!(bf16 && (dst.bits() == 8 || src.bits() == 8)), || format!("there is no {}", text()))?;
    require(!(sat && (bf16 || always_fits(dst, src))), || format!("{} has no .sat", text()))?;
    let to_int = matches!(round, Some(Round::Rni | Round::Rzi | Round::Rmi | Round::Rpi));
    let to_float = matches!(round, Some(Round::Rn | Round::Rz | Round::Rm | Round::Rp));
    let ok = match (dst, src) {
        (Ty::TF32, Ty::F32) => matches!(round, Some(Round::Rna | Round::Rn | Round::Rz)) && !ftz && !sat,
        (Ty::TF32, _) => false,
        (d, s) if d.is_int() && s.is_int() => round.is_none(),
        (d, _) if d.is_int() => to_int,
        (_, s) if s.is_int() => to_float,
        (Ty::BF16, Ty::F32) => matches!(round, Some(Round::Rn | Round::Rz)),
        (Ty::BF16, Ty::F16) | (Ty::F16, Ty::BF16) => to_float,
        (d, s) if d.bits() < s.bits() => to_float,
        (d, s) if d == s => to_int,
        _ => round.is_none(),
    };
    let found = round.map_or("no rounding", Round::name);
    require(ok, || format!("{} with {found}: give the rounding that these types need", text()))
}

/// Whether integers of type `src` all are integers of type `dst`: assemblers refuse `.sat` there.
fn always_fits(dst: Ty, src: Ty) -> bool {
    let sign = u32::from(dst.kind() != src.kind());
    dst.is_int()
        && src.is_int()
        && (dst.kind() == TyKind::Signed || src.kind() == TyKind::Unsigned)
        && dst.bits() >= src.bits() + sign
}

fn check_memory(inst: &Inst) -> Result<(), String> {
    match inst {
        Inst::Ld { space, ty, sem, cache, dsts, addr } => {
            check_vector(*ty, dsts.len())?;
            check_base(*space, *addr)?;
            let ok = matches!(sem, MemSem::Weak | MemSem::Relaxed(_) | MemSem::Acquire(_));
            require(ok, || format!("ld has no .{}", sem.name()))?;
            require(*sem == MemSem::Weak || cache.is_none(), || {
                "an ordered ld has no cache operator".into()
            })?;
            require(*sem == MemSem::Weak || matches!(space, Space::Global | Space::Shared), || {
                format!("an ordered ld has no .{}", space.name())
            })?;
            let read_only = matches!(cache, Some(LdCache::Nc | LdCache::NcNoAllocate));
            require(!read_only || *space == Space::Global, || "ld.nc is for .global alone".to_string())?;
            require(*space != Space::Param || cache.is_none(), || {
                "ld.param has no cache operator".to_string()
            })?;
            let twice = dsts.iter().enumerate().any(|(i, dst)| dsts[..i].contains(dst));
            require(!twice, || "ld writes a register twice".to_string())
        }
        Inst::St { space, ty, sem, cache, addr, srcs } => {
            check_vector(*ty, srcs.len())?;
            check_base(*space, *addr)?;
            require(*space != Space::Param, || "parameters are read only".to_string())?;
            let ok = matches!(sem, MemSem::Weak | MemSem::Relaxed(_) | MemSem::Release(_));
            require(ok, || format!("st has no .{}", sem.name()))?;
            require(*sem == MemSem::Weak || *space != Space::Local, || "an ordered st has no .local".into())?;
            require(*sem == MemSem::Weak || cache.is_none(), || "an ordered st has no cache operator".into())
        }
        Inst::CpAsync { cache, bytes, dst, src, .. } => {
            let ok = matches!((cache, bytes), (CpCache::Ca, 4 | 8 | 16) | (CpCache::Cg, 16));
            require(ok, || format!("cp.async.{} does not copy {bytes} bytes", cache.name()))?;
            check_base(Space::Shared, *dst)?;
            check_base(Space::Global, *src)
        }
        _ => unreachable!("check_form() sends loads and stores only"),
    }
}

fn check_vector(ty: Ty, count: usize) -> Result<(), String> {
    require(moves(ty) || ty.bits() == 8, || format!("loads and stores have no .{ty}"))?;
    let ok = matches!(count, 1 | 2 | 4) && count as u32 * ty.bytes() <= 16;
    require(ok, || format!("{count} elements of .{ty}; expected 1, 2 or 4, at most 16 bytes"))
}

/// The symbols live in one space each, and offsets have 32 bits.
pub(super) fn check_base(space: Space, addr: Addr) -> Result<(), String> {
    let ok = match addr.base {
        AddrBase::Reg(_) => space != Space::Param,
        AddrBase::Param(_) => space == Space::Param,
        AddrBase::Shared => space == Space::Shared,
        AddrBase::Local => space == Space::Local,
    };
    require(ok, || format!("the address is not one of .{}", space.name()))?;
    require(i32::try_from(addr.offset).is_ok(), || format!("offset {} beyond 32 bits", addr.offset))
}

fn check_atom(op: AtomOp, ty: Ty, space: Space) -> Result<(), String> {
    require(matches!(space, Space::Global | Space::Shared), || format!("no atomics in .{}", space.name()))?;
    let ok = match op {
        AtomOp::Add => {
            matches!(ty, Ty::U32 | Ty::S32 | Ty::U64 | Ty::F32 | Ty::F64)
                || matches!(ty, Ty::F16 | Ty::BF16 | Ty::F16x2 | Ty::BF16x2)
        }
        AtomOp::Min | AtomOp::Max => ty.is_int() && ty.bits() >= 32,
        AtomOp::And | AtomOp::Or | AtomOp::Xor | AtomOp::Exch => matches!(ty, Ty::B32 | Ty::B64),
        AtomOp::Cas => matches!(ty, Ty::B16 | Ty::B32 | Ty::B64),
    };
    require(ok, || format!("atomic {} has no .{ty}", op.name()))
}

fn check_barrier(id: Operand, threads: Option<u32>) -> Result<(), String> {
    require(id.imm().is_none_or(|id| (0..16).contains(&id)), || "barriers are numbered 0 to 15".to_string())?;
    let ok = threads.is_none_or(|n| n > 0 && n % 32 == 0);
    require(ok, || format!("{} threads at a barrier, expected a multiple of 32", threads.unwrap_or(0)))
}
