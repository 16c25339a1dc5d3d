//! The parameters of a kernel: values bound before its body runs.

use super::element::Storable;
use super::handle::{Scalar, Tensor, TensorMut};
use super::session::{self, Raw};
use crate::ir::{ParamKind, TensorFacts, TensorType, Type};

/// Makes the parameters of the kernel that is being staged, in order.
#[derive(Debug)]
pub struct Params(());

impl Params {
    pub(crate) fn new() -> Self {
        Self(())
    }

    /// A tensor that the kernel reads.
    pub fn tensor<T: Storable, const RANK: usize>(
        &mut self,
        name: &str,
        facts: TensorFacts,
    ) -> Tensor<T, RANK> {
        Tensor::new(tensor(name, TensorType { elem: T::ELEM, rank: RANK, mutable: false }, facts))
    }

    /// A tensor that the kernel reads and writes.
    pub fn tensor_mut<T: Storable, const RANK: usize>(
        &mut self,
        name: &str,
        facts: TensorFacts,
    ) -> TensorMut<T, RANK> {
        TensorMut::new(tensor(name, TensorType { elem: T::ELEM, rank: RANK, mutable: true }, facts))
    }

    /// A runtime scalar.
    pub fn scalar<T: Storable>(&mut self, name: &str) -> Scalar<T> {
        Scalar::new(param(name, Type::scalar(T::ELEM), ParamKind::Scalar))
    }
}

fn tensor(name: &str, ty: TensorType, facts: TensorFacts) -> Raw {
    param(name, Type::Tensor(ty), ParamKind::Tensor(facts))
}

fn param(name: &str, ty: Type, kind: ParamKind) -> Raw {
    session::with(|s| {
        let id = s.builder.kernel.add_param(name, ty, kind);
        s.raw(id)
    })
}
