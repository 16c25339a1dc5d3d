//! Kernel parameters: what the host passes for each, and what the kernel gets.

use tile_codegen::dsl::{Scalar, Storable, Tensor, TensorMut};

use crate::args::{ArgList, StageArgs};
use crate::element::Element;
use crate::param_const::ConstParam;
use crate::tensor::DeviceTensor;

/// The type of a kernel parameter.
///
/// | parameter | the host passes | the kernel gets |
/// |---|---|---|
/// | `Tensor<T, R>` | `&DeviceTensor<T>` of rank `R` | a tensor to load from |
/// | `TensorMut<T, R>` | `&mut DeviceTensor<T>` of rank `R` | a tensor to load from and store to |
/// | `Scalar<T>` | `T` | a number known at run time |
/// | `Const<T>`, that is any [`ConstParam`] | `T` | the value itself: each value is a specialisation |
/// | `Option<P>` | `Option` of what `P` takes | `Some` or `None` itself: absence is a specialisation |
///
/// Values of your own become parameters by [`ConstParam`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a kernel parameter",
    label = "expected `Tensor<T, RANK>`, `TensorMut<T, RANK>`, `Scalar<T>`, `Const<T>` or an `Option` of one",
    note = "host values of your own types specialise a kernel when they implement `tile_runtime::ConstParam`"
)]
pub trait KernelParam: Sized {
    /// What the host passes.
    type Host<'a>;
    /// Adds the argument to a launch.
    #[doc(hidden)]
    fn bind<'a>(host: Self::Host<'a>, name: &'static str, args: &mut ArgList<'a>);
    /// The parameter, while its kernel is staged.
    #[doc(hidden)]
    fn stage(cx: &mut StageArgs<'_>) -> Self;
}

impl<T: Storable, const RANK: usize> KernelParam for Tensor<T, RANK> {
    type Host<'a> = &'a DeviceTensor<T>;

    fn bind<'a>(host: Self::Host<'a>, name: &'static str, args: &mut ArgList<'a>) {
        args.tensor(name, host.as_any(), false, RANK);
    }

    fn stage(cx: &mut StageArgs<'_>) -> Self {
        let (params, name, facts) = cx.tensor();
        params.tensor(&name, facts)
    }
}

impl<T: Storable, const RANK: usize> KernelParam for TensorMut<T, RANK> {
    type Host<'a> = &'a mut DeviceTensor<T>;

    fn bind<'a>(host: Self::Host<'a>, name: &'static str, args: &mut ArgList<'a>) {
        args.tensor(name, host.as_any(), true, RANK);
    }

    fn stage(cx: &mut StageArgs<'_>) -> Self {
        let (params, name, facts) = cx.tensor();
        params.tensor_mut(&name, facts)
    }
}

impl<T: Storable + Element> KernelParam for Scalar<T> {
    type Host<'a> = T;

    fn bind<'a>(host: T, name: &'static str, args: &mut ArgList<'a>) {
        args.scalar(name, T::TYPE, host.to_word().into());
    }

    fn stage(cx: &mut StageArgs<'_>) -> Self {
        let (params, name) = cx.scalar();
        params.scalar(&name)
    }
}

impl<P: KernelParam> KernelParam for Option<P> {
    type Host<'a> = Option<P::Host<'a>>;

    fn bind<'a>(host: Self::Host<'a>, name: &'static str, args: &mut ArgList<'a>) {
        args.presence(name, host.is_some());
        if let Some(host) = host {
            P::bind(host, name, args);
        }
    }

    fn stage(cx: &mut StageArgs<'_>) -> Self {
        cx.presence().then(|| P::stage(cx))
    }
}

impl<T: ConstParam> KernelParam for T {
    type Host<'a> = T;

    fn bind<'a>(host: T, name: &'static str, args: &mut ArgList<'a>) {
        args.constant(name, host, T::key);
    }

    fn stage(cx: &mut StageArgs<'_>) -> Self {
        cx.constant()
    }
}
