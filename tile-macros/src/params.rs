//! Signatures: what a kernel's and a helper's may say.

use syn::spanned::Spanned;
use syn::{FnArg, GenericParam, ReturnType, Signature, Type};

use crate::expand::Role;
use crate::jumps::names_impl;
use crate::messages::{self, Errors};

/// Reports everything that the role's signature may not have.
pub(crate) fn check(role: Role, sig: &Signature, errors: &mut Errors) {
    if let Some(word) = &sig.constness {
        errors.at(word.span, messages::qualifier("const"));
    }
    if let Some(word) = &sig.asyncness {
        errors.at(word.span, messages::qualifier("async"));
    }
    if let Some(word) = &sig.unsafety {
        errors.at(word.span, messages::qualifier("unsafe"));
    }
    if let Some(abi) = &sig.abi {
        errors.at(abi.extern_token.span, messages::qualifier("extern"));
    }
    if let Some(variadic) = &sig.variadic {
        errors.on(variadic, messages::VARIADIC);
    }
    if role == Role::Kernel {
        kernel(sig, errors);
    }
}

fn kernel(sig: &Signature, errors: &mut Errors) {
    for param in &sig.generics.params {
        if let GenericParam::Lifetime(lifetime) = param {
            errors.at(lifetime.lifetime.span(), messages::KERNEL_LIFETIME);
        }
    }
    for input in &sig.inputs {
        match input {
            FnArg::Receiver(receiver) => errors.at(receiver.self_token.span, messages::KERNEL_SELF),
            FnArg::Typed(param) if names_impl(&param.ty) => errors.on(&param.ty, messages::KERNEL_IMPL_TRAIT),
            FnArg::Typed(param) => {
                if let Type::Reference(reference) = &*param.ty
                    && reference.lifetime.is_none()
                {
                    errors.on(reference, messages::KERNEL_REFERENCE);
                }
            }
        }
    }
    if let ReturnType::Type(_, ty) = &sig.output {
        let unit = matches!(&**ty, Type::Tuple(t) if t.elems.is_empty());
        if !unit {
            errors.at(ty.span(), messages::KERNEL_RETURNS);
        }
    }
}
