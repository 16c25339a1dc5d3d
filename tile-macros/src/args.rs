//! The attribute's arguments: the path of the runtime crate, and tokens that name things in it.

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::{Path, Token};

use crate::messages;

/// Where the expansion finds the runtime crate.
#[derive(Default)]
pub(crate) struct Krate(Option<Path>);

impl Parse for Krate {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        if input.is_empty() {
            return Ok(Krate(None));
        }
        if !input.peek(Token![crate]) {
            return Err(input.error(messages::ATTRIBUTE_ARGUMENT));
        }
        input.parse::<Token![crate]>()?;
        input.parse::<Token![=]>()?;
        let path = input.call(Path::parse_mod_style)?;
        input.parse::<Option<Token![,]>>()?;
        if input.is_empty() { Ok(Krate(Some(path))) } else { Err(input.error(messages::ATTRIBUTE_ARGUMENT)) }
    }
}

impl Krate {
    /// The crate's path, every token located at `at`.
    pub(crate) fn path(&self, at: Span) -> TokenStream {
        match &self.0 {
            None => quote_spanned!(at=> ::tile_runtime),
            Some(path) => locate(path.to_token_stream(), at),
        }
    }

    /// `crate::__private::name`, every token located at `at`.
    pub(crate) fn private(&self, at: Span, name: &str) -> TokenStream {
        let (path, name) = (self.path(at), Ident::new(name, at));
        quote_spanned!(at=> #path::__private::#name)
    }
}

/// Moves tokens to another place; names still resolve as they were written (`$crate`).
fn locate(tokens: TokenStream, at: Span) -> TokenStream {
    tokens
        .into_iter()
        .map(|tree| match tree {
            TokenTree::Group(g) => {
                let mut moved = Group::new(g.delimiter(), locate(g.stream(), at));
                moved.set_span(at.resolved_at(g.span()));
                TokenTree::Group(moved)
            }
            mut leaf => {
                leaf.set_span(at.resolved_at(leaf.span()));
                leaf
            }
        })
        .collect()
}
