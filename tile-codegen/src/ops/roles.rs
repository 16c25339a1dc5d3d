//! `roles`: regions that groups of warps run at the same time. Only `assign_roles` makes it.

use super::{Attr, AttrReader, Effects, TileOp};
use crate::diag::OpError;
use crate::ir::Type;

/// Nothing -> nothing, one region for each role. Channels carry what one role makes for another.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Roles {
    /// Warps of each role, in the order of the block's threads.
    pub warps: Vec<usize>,
    /// Registers of each thread of each role; 0 leaves them as the kernel starts. All roles of a warpgroup have the same.
    pub registers: Vec<usize>,
    /// Roles of which one thread alone runs, 1 or 0 each.
    pub single: Vec<usize>,
}

impl Roles {
    /// The first warp of a role.
    pub fn first_warp(&self, role: usize) -> usize {
        self.warps[..role].iter().sum()
    }
    /// The warps of the block, in whole warpgroups where registers move between them.
    pub fn block_warps(&self) -> usize {
        let warps: usize = self.warps.iter().sum();
        if self.registers.iter().any(|&r| r > 0) { warps.next_multiple_of(4) } else { warps }
    }
}

impl TileOp for Roles {
    fn name(&self) -> &'static str {
        "roles"
    }
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        vec![
            ("warps", Attr::list(&self.warps)),
            ("registers", Attr::list(&self.registers)),
            ("single", Attr::list(&self.single)),
        ]
    }
    fn parse(name: &str, attrs: &mut AttrReader) -> Option<Result<Self, OpError>> {
        (name == "roles").then(|| {
            Ok(Self {
                warps: attrs.indices("warps")?,
                registers: attrs.indices("registers")?,
                single: attrs.indices("single")?,
            })
        })
    }
    fn result_count(&self) -> usize {
        0
    }
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
        super::rule::no_operands("roles", operands)?;
        Ok(Vec::new())
    }
    fn effects(&self) -> Effects {
        Effects::Control
    }
}

// ---- in kernels

// ---- on the CPU

/// The CPU runs kernels before their operations are divided into roles, and refuses others.
#[cfg(feature = "cpu")]
impl super::eval::Eval for Roles {
    fn eval(
        &self,
        _: super::eval::EvalCx,
        _: &mut super::eval::Operands<'_>,
    ) -> Option<crate::cpu::TileValue> {
        unreachable!("the CPU refuses kernels with roles")
    }
}

// ---- in PTX

super::place::place_nothing!(Roles);

impl super::lower::Lower for Roles {
    fn scratch(&self, _: &crate::ir::Kernel, _: &crate::ir::Op) -> u32 {
        0
    }
    fn lower(&self, cx: &mut crate::lower::LowerCx<'_>, id: crate::ir::OpId) {
        cx.lower_roles(id, self);
    }
}
