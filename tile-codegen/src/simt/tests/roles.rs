//! Kernels divided into roles by hand, on the executor: right on every schedule, without a report.

mod channels;
mod conditions;
mod fused;
mod refused;

use super::compiled::{Tensor as Data, on_cpu, on_ptx, staged};
use crate::compile::{Compiled, compile_with_roles};
use crate::config::Config;
use crate::ir::{Elem, Kernel, Op, OpId, TensorFacts};
use crate::ops::OpKind;
use crate::passes::assign_roles::{Partition, Role};
use crate::target::Target;

/// What the attribute's expansion finds the language in.
mod rt {
    pub(crate) use crate::dsl::private as __private;
}

/// Facts of a row-major tensor that bulk tensor copies can load.
fn facts(rank: usize, bytes: u32) -> TensorFacts {
    let mut stride_align = vec![16; rank];
    stride_align[rank - 1] = bytes;
    TensorFacts { align: 16, stride_align, ..TensorFacts::contiguous(rank, bytes as usize) }
}

/// A role of warps that compute, or of one thread that loads.
fn role(warps: usize, registers: usize, single: bool) -> Role {
    Role { warps, registers, single }
}

/// Who owns which operations.
type Owner<'a> = &'a dyn Fn(&Kernel, OpId, &Op) -> Option<usize>;

/// The partition of a kernel, whose channels have `stages`.
fn partition(kernel: &Kernel, roles: &[Role], stages: usize, owner: Owner<'_>) -> Partition {
    let mut partition = Partition { roles: roles.to_vec(), ..Partition::default() };
    kernel.walk(|id, op| {
        if let Some(owner) = owner(kernel, id, op) {
            partition.owner.insert(id, owner);
            partition.stages.insert(id, stages);
        }
    });
    partition
}

/// Compiles with these roles; the error's text if that is refused.
fn divided(kernel: &Kernel, roles: &[Role], stages: usize, owner: Owner<'_>) -> Result<Compiled, String> {
    let chosen = |kernel: &Kernel| partition(kernel, roles, stages, owner);
    let mut shown = String::new();
    let compiled =
        compile_with_roles(kernel, &Target::SM_90A, &Config::default(), &chosen, &mut |_, kernel| {
            shown = crate::ir::print::print(kernel);
        });
    compiled.map_err(|faults| format!("{faults}\n{shown}"))
}

/// The divided kernel on the executor agrees with the whole one on the CPU, within `tolerance`, absolute and relative.
/// Returns the divided one.
fn agrees(
    kernel: &Kernel,
    roles: &[Role],
    stages: usize,
    owner: Owner<'_>,
    inputs: &[Data],
    out: &[i64],
    tolerance: f32,
) -> Compiled {
    let compiled = divided(kernel, roles, stages, owner).unwrap_or_else(|e| panic!("{e}"));
    let right = on_cpu(kernel, inputs, out, [1, 1, 1]);
    let found = on_ptx(&compiled, inputs, out, [1, 1, 1]);
    assert_eq!(found.len(), right.len());
    for (at, (&found, &right)) in found.iter().zip(&right).enumerate() {
        let error = (found - right).abs();
        assert!(error <= tolerance * (1.0 + right.abs()), "element {at}: {found} is not {right}");
    }
    compiled
}

/// The number of a store among the stores of the kernel.
fn store_number(kernel: &Kernel, id: OpId) -> Option<usize> {
    let mut stores = Vec::new();
    kernel.walk(|id, op| stores.extend(matches!(op.kind, OpKind::Store(_)).then_some(id)));
    stores.iter().position(|&store| store == id)
}

/// Whether the operation's first result is a tile of this type and shape.
fn makes(kernel: &Kernel, op: &Op, elem: Elem, shape: &[usize]) -> bool {
    let tile = op.results.first().and_then(|&result| kernel.ty(result).as_tile());
    tile.is_some_and(|tile| tile.elem == elem && tile.shape == shape)
}

fn is_load(op: &Op) -> bool {
    matches!(op.kind, OpKind::Load(_))
}
