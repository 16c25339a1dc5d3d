//! Tokens to a function, or the reason why there is none.

use proc_macro2::TokenStream;
use syn::{Item, ItemFn};

/// What an attribute was put on.
pub(crate) enum Parsed {
    /// A function with a body.
    Function(Box<ItemFn>),
    /// Another item.
    Other(Box<Item>),
    /// Tokens that are no item; rustc reports those itself.
    Broken,
}

pub(crate) fn parse(tokens: &TokenStream) -> Parsed {
    if let Ok(function) = syn::parse2::<ItemFn>(tokens.clone()) {
        return Parsed::Function(Box::new(function));
    }
    match syn::parse2::<Item>(tokens.clone()) {
        Ok(Item::Verbatim(_) | Item::Fn(_)) | Err(_) => Parsed::Broken,
        Ok(item) => Parsed::Other(Box::new(item)),
    }
}
