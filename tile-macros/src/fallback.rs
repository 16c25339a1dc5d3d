//! What is emitted beside an error when the real expansion makes no sense: enough for editors and callers.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{ItemFn, parse_quote};

use crate::messages::Errors;

/// The function as written, its body replaced: used when the signature itself is at fault.
pub(crate) fn signature_only(mut function: ItemFn, errors: &Errors) -> TokenStream {
    function.sig.constness = None;
    function.sig.asyncness = None;
    function.sig.unsafety = None;
    function.sig.abi = None;
    function.sig.variadic = None;
    function.attrs.push(parse_quote!(#[allow(unused, clippy::all)]));
    function.block = parse_quote!({ ::core::unreachable!() });
    with_errors(function, errors)
}

/// An item, untouched, and the errors after it.
pub(crate) fn with_errors(item: impl ToTokens, errors: &Errors) -> TokenStream {
    let errors = errors.to_tokens();
    quote!(#item #errors)
}
