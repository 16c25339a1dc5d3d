//! The rewrite as a function of tokens.

use quote::quote;

use crate::expand::{Role, attribute};

#[test]
fn broken_tokens_come_back_unchanged() {
    let item = quote!(fn k(x: Tensor<f32, 1>) { let q = x + ; });
    let out = attribute(Role::Kernel, quote!(), item.clone());
    assert_eq!(out.to_string(), item.to_string());
}
