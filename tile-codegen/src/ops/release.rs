//! `release`: gives a stage of a channel back to its sender. Only `insert_waits` makes it.

use super::{Attr, AttrReader, Effects, TileOp};
use crate::diag::OpError;
use crate::ir::Type;

/// Nothing -> nothing: the oldest stage that was received and not yet released.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Release {
    /// The channel.
    pub channel: usize,
    /// The number of stages.
    pub stages: usize,
    /// Whether the newest stage stays in use: the one before it is released, if there is one.
    pub lagging: bool,
}

impl TileOp for Release {
    fn name(&self) -> &'static str {
        "release"
    }
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        vec![
            ("channel", Attr::Int(self.channel as i64)),
            ("stages", Attr::Int(self.stages as i64)),
            ("lagging", Attr::Bool(self.lagging)),
        ]
    }
    fn parse(name: &str, attrs: &mut AttrReader) -> Option<Result<Self, OpError>> {
        (name == "release").then(|| {
            Ok(Self {
                channel: attrs.index("channel")?,
                stages: attrs.index("stages")?,
                lagging: attrs.flag("lagging")?,
            })
        })
    }
    fn result_count(&self) -> usize {
        0
    }
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
        super::rule::no_operands("release", operands)?;
        Ok(Vec::new())
    }
    fn effects(&self) -> Effects {
        Effects::Channel
    }
}

// ---- in kernels

// ---- on the CPU

super::refused_by_cpu!(Release);

// ---- in PTX

super::place::place_nothing!(Release);

impl super::lower::Lower for Release {
    fn scratch(&self, _: &crate::ir::Kernel, _: &crate::ir::Op) -> u32 {
        0
    }
    fn lower(&self, cx: &mut crate::lower::LowerCx<'_>, id: crate::ir::OpId) {
        let _ = id;
        cx.release(self);
    }
}
