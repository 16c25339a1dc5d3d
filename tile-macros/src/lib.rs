//! The attributes `#[tile_kernel]` and `#[tile_fn]`: nothing but their entry points.
//!
//! Layers, in order: `parse` (tokens to a function), `check` and `params` (what a kernel may not contain, each with
//! a message of `messages`), `expand` (the rewrite, one construct a file; its documentation is the contract with
//! the runtime crate), `launch` (the host function around it), `fallback` (what to emit when that cannot be done).
//! Everything works on `proc_macro2` tokens, so that the tests can feed it without a compiler.

mod args;
mod branch;
mod check;
mod expand;
mod fallback;
mod flow;
mod jumps;
mod launch;
mod literals;
mod loops;
mod messages;
mod ops;
mod params;
mod parse;
mod ranges;
mod scope;
#[cfg(test)]
mod tests;

use proc_macro::TokenStream;

/// Turns a function into a tile kernel: a host function of the same name whose parameters are what the host passes
/// (tensors, numbers, constants) and whose result is a launch.
///
/// ```text
/// #[tile_kernel]
/// pub fn scale<T: Float>(x: Tensor<T, 1>, out: TensorMut<T, 1>, factor: f32, block: Const<usize>) {
///     let t = load(x, (bid(0),), (block,));
///     store(out, (bid(0),), t * factor);
/// }
/// ```
///
/// `#[tile_kernel(crate = path)]` names the runtime crate where it is not `::tile_runtime`.
#[proc_macro_attribute]
pub fn tile_kernel(args: TokenStream, item: TokenStream) -> TokenStream {
    expand::attribute(expand::Role::Kernel, args.into(), item.into()).into()
}

/// Marks a helper of kernels that needs control flow, comparisons or `as` on run-time values. The function keeps its
/// signature; only its body is rewritten, as a kernel's is.
///
/// `#[tile_fn(crate = path)]` names the runtime crate where it is not `::tile_runtime`.
#[proc_macro_attribute]
pub fn tile_fn(args: TokenStream, item: TokenStream) -> TokenStream {
    expand::attribute(expand::Role::Helper, args.into(), item.into()).into()
}
