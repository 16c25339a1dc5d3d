//! Every text that a user can see, and the list in which errors gather.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use syn::Error;

/// The errors of one attribute, in source order of discovery.
#[derive(Default)]
pub(crate) struct Errors(Vec<Error>);

impl Errors {
    /// An error under one token.
    pub(crate) fn at(&mut self, span: Span, text: impl Into<String>) {
        self.0.push(Error::new(span, text.into()));
    }

    /// An error under everything from the first to the last token.
    pub(crate) fn on(&mut self, tokens: &impl ToTokens, text: impl Into<String>) {
        self.0.push(Error::new_spanned(tokens, text.into()));
    }

    pub(crate) fn push(&mut self, error: Error) {
        self.0.push(error);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As macro calls: items at the top level, statements in a body.
    pub(crate) fn to_tokens(&self) -> TokenStream {
        self.0.iter().map(Error::to_compile_error).collect()
    }
}

// The attribute and the signature.
pub(crate) const ATTRIBUTE_ARGUMENT: &str =
    "unknown argument; the only one is the path of the runtime crate: `crate = path::to::tile_runtime`";
pub(crate) const NOT_A_FUNCTION: &str = "this attribute goes on a function";
pub(crate) const KERNEL_SELF: &str =
    "a kernel cannot be a method; make it a free function and pass what it needs as parameters";
pub(crate) const KERNEL_RETURNS: &str = "a kernel returns nothing; write its results with `store` into a `TensorMut` parameter and remove the return type";
pub(crate) const KERNEL_LIFETIME: &str =
    "a kernel has no lifetime parameters; write `Tensor<T, RANK>` and `TensorMut<T, RANK>` without lifetimes";
pub(crate) const KERNEL_IMPL_TRAIT: &str = "a kernel parameter needs a named type; write a generic parameter, `fn kernel<T: Trait>(x: T)`, instead of `impl Trait`";
pub(crate) const KERNEL_REFERENCE: &str = "a kernel parameter cannot be a reference; write `Tensor<T, RANK>` or `TensorMut<T, RANK>` for memory, and pass other values themselves";
pub(crate) const VARIADIC: &str = "a kernel takes a fixed list of parameters; remove `...`";

pub(crate) fn qualifier(word: &str) -> String {
    format!("tile code cannot be `{word}`; write a plain `fn`")
}

// Loops.
pub(crate) const INCLUSIVE_RANGE: &str =
    "a runtime loop counts over a half-open range; write `a..b + 1` instead of `a..=b`";
pub(crate) const OPEN_RANGE: &str = "a runtime loop needs both ends of its range; write `a..b`";
pub(crate) const REVERSED_RANGE: &str = "a runtime loop counts upwards; write `for i in 0..n` and use `n - 1 - i`, or `unroll((0..n).rev())` to unroll it";
pub(crate) const NOT_A_RANGE: &str = "`for` takes `a..b`, `(a..b).step_by(n)` for a runtime loop, or `unroll(..)` for a loop that runs while \
     the kernel is built; write `unroll(..)` around this";

// Jumps.
pub(crate) const LABELLED_JUMP: &str = "a label cannot name or cross a runtime loop; set a variable, leave the inner loop, and test the \
     variable in the outer one";
pub(crate) const BREAK_VALUE: &str =
    "this loop has no value; assign a variable declared before the loop, then write `break` alone";
pub(crate) const RETURN_IN_LOOP: &str =
    "`return` cannot leave a runtime loop; set a variable, `break`, and return after the loop";
pub(crate) const JUMP_IN_OPERAND: &str = "the right side of `&&` and `||` cannot jump, because a runtime condition evaluates both sides; write an `if`";

pub(crate) fn unknown_label(label: &str) -> String {
    format!("no loop or block around this has the label `'{label}`")
}

pub(crate) fn outside_loop(word: &str) -> String {
    format!("`{word}` outside of a loop")
}

pub(crate) fn hidden_carried(word: &str, variable: &str) -> String {
    format!(
        "this `{word}` must hand on the loop's `{variable}`, which another `{variable}` hides here; rename the inner one"
    )
}

// Assignments.
pub(crate) fn closure_assigns(variable: &str) -> String {
    format!(
        "a closure in tile code cannot change `{variable}` from outside; return the new value and assign it at the call"
    )
}

pub(crate) fn operand_assigns(variable: &str) -> String {
    format!(
        "the right side of `&&` and `||` cannot change `{variable}`, because a runtime condition evaluates both sides; \
         assign it before, or write an `if`"
    )
}

pub(crate) fn deferred_let(variable: &str) -> String {
    format!(
        "`{variable}` gets its first value inside control flow; write `let {variable} = if .. {{ .. }} else {{ .. }};`"
    )
}

// Syntax that has no meaning in tile code.
pub(crate) const ASYNC: &str = "tile code cannot be `async`; write the code without it";
pub(crate) const AWAIT: &str =
    "tile code cannot wait for a future; await it on the host and pass the value as a parameter";
pub(crate) const TRY_BLOCK: &str =
    "`try` blocks are not supported in tile code; move the block into a function and use `?` there";
pub(crate) const UNSAFE: &str =
    "tile code cannot be `unsafe`; move the block into a function outside of the kernel";
pub(crate) const YIELD: &str = "tile code cannot `yield`; write a loop";
