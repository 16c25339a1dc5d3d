//! The host function around a kernel.
//!
//! ```text
//! pub fn name<'__tile, G>(p: <P as KernelParam>::Host<'__tile>, ..) -> crate::Launch<'__tile> where .., P: KernelParam {
//!     let mut args = ArgList::new();
//!     <P as KernelParam>::bind(p, "p", &mut args);     // in the order of the parameters
//!     {
//!         static __TILE_SOURCE: KernelSource = ..;
//!         fn name<G>(cx: &mut StageArgs<'_>) where .., P: KernelParam {   // stages the kernel; needs nothing but `cx`
//!             let p: P = <P as KernelParam>::stage(cx);    // in the order of the parameters
//!             { body }
//!         }
//!         launch(KernelInfo { name: "name", module: module_path!(), source: &__TILE_SOURCE }, args, name::<G>)
//!     }
//! }
//! ```
//! The inner function has a block of its own, so that a parameter with the kernel's name is the parameter where it is
//! bound, and the function where that is launched.
//!
//! with, in `crate::__private`,
//! ```text
//! trait KernelParam: Sized { type Host<'a>; fn bind<'a>(host: Self::Host<'a>, name: &'static str, args: &mut ArgList<'a>);
//!                            fn stage(cx: &mut StageArgs) -> Self; }
//! struct ArgList<'a>; impl ArgList<'_> { fn new() -> Self; }
//! struct KernelInfo { name: &'static str, module: &'static str, source: &'static KernelSource }
//! fn launch<'a>(info: KernelInfo, args: ArgList<'a>, stage: fn(&mut StageArgs)) -> crate::Launch<'a>;
//! ```
//! The pointer to the inner function, together with the name, identifies an instance of a generic kernel.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{
    Attribute, FnArg, GenericParam, Generics, ItemFn, Pat, PatType, Type, WhereClause, WherePredicate,
    parse_quote_spanned,
};

use crate::args::Krate;
use crate::expand::split_attributes;

/// A parameter of the kernel.
struct Param<'a> {
    /// The host function's name for it.
    ident: Ident,
    /// What messages call it.
    name: String,
    pattern: &'a Pat,
    ty: &'a Type,
    attrs: &'a [Attribute],
}

impl<'a> Param<'a> {
    fn new(index: usize, p: &'a PatType) -> Self {
        let (ident, name) = match &*p.pat {
            Pat::Ident(i) => (i.ident.clone(), i.ident.unraw().to_string()),
            other => {
                let ident = format_ident!("__tile_arg{index}", span = other.span());
                (ident, other.to_token_stream().to_string())
            }
        };
        Param { ident, name, pattern: &p.pat, ty: &p.ty, attrs: &p.attrs }
    }

    /// `#[cfg]` alone: the only attribute that means the same in every place.
    fn cfgs(&self) -> TokenStream {
        self.attrs.iter().filter(|a| a.path().is_ident("cfg")).map(ToTokens::to_token_stream).collect()
    }

    fn host(&self, krate: &Krate) -> TokenStream {
        let (ident, ty, cfgs, at) = (&self.ident, self.ty, self.cfgs(), self.ty.span());
        let param = krate.private(at, "KernelParam");
        quote_spanned!(at=> #cfgs #ident: <#ty as #param>::Host<'__tile>)
    }

    /// `P: KernelParam`, which makes rustc report a type that is none once. A predicate takes no `#[cfg]`.
    fn bound(&self, krate: &Krate) -> Option<WherePredicate> {
        let (ty, at) = (self.ty, self.ty.span());
        let param = krate.private(at, "KernelParam");
        self.cfgs().is_empty().then(|| parse_quote_spanned!(at=> #ty: #param))
    }

    fn bind(&self, krate: &Krate) -> TokenStream {
        let (ident, name, ty, cfgs, at) = (&self.ident, &self.name, self.ty, self.cfgs(), self.ty.span());
        let param = krate.private(at, "KernelParam");
        quote_spanned!(at=> #cfgs <#ty as #param>::bind(#ident, #name, &mut __tile_args);)
    }

    fn stage(&self, krate: &Krate) -> TokenStream {
        let (pattern, ty, attrs, at) = (self.pattern, self.ty, self.attrs, self.ty.span());
        let param = krate.private(at, "KernelParam");
        quote_spanned!(at=> #(#attrs)* let #pattern: #ty = <#ty as #param>::stage(__tile_cx);)
    }
}

/// The whole item.
pub(crate) fn kernel(
    krate: &Krate,
    function: &ItemFn,
    source: &TokenStream,
    allowed: &TokenStream,
    body: &TokenStream,
) -> TokenStream {
    let sig = &function.sig;
    let at = sig.fn_token.span;
    let params: Vec<_> = sig
        .inputs
        .iter()
        .enumerate()
        .filter_map(|(i, input)| match input {
            FnArg::Typed(p) => Some(Param::new(i, p)),
            FnArg::Receiver(_) => None,
        })
        .collect();
    let (outer, _) = split_attributes(function);
    let (vis, name) = (&function.vis, &sig.ident);
    let (generics, where_clause) = (&sig.generics.params, where_clause(krate, function, &params));
    let host = params.iter().map(|p| p.host(krate));
    let bind = params.iter().map(|p| p.bind(krate));
    let mutable = (!params.is_empty()).then(|| quote_spanned!(at=> mut));
    let stage = stage(krate, function, &params, allowed, body);
    let (list, info, launch) =
        (krate.private(at, "ArgList"), krate.private(at, "KernelInfo"), krate.private(at, "launch"));
    let (result, text, turbofish) = (krate.path(at), name.unraw().to_string(), turbofish(&sig.generics, at));
    quote_spanned!(at=>
        #(#outer)*
        #[allow(clippy::too_many_arguments, clippy::type_complexity, trivial_bounds)]
        #vis fn #name<'__tile, #generics>(#(#host),*) -> #result::Launch<'__tile> #where_clause {
            let #mutable __tile_args = #list::new();
            #(#bind)*
            {
                #source
                #stage
                #launch(
                    #info { name: #text, module: ::core::module_path!(), source: &__TILE_SOURCE },
                    __tile_args,
                    #name #turbofish,
                )
            }
        }
    )
}

/// The function that stages the kernel. It has the kernel's name, so that messages show that one.
fn stage(
    krate: &Krate,
    function: &ItemFn,
    params: &[Param],
    allowed: &TokenStream,
    body: &TokenStream,
) -> TokenStream {
    let at = function.sig.fn_token.span;
    let (name, generics) = (&function.sig.ident, &function.sig.generics);
    let (params_of, where_clause) = (&generics.params, where_clause(krate, function, params));
    let (_, inner) = split_attributes(function);
    let cx = krate.private(at, "StageArgs");
    let values = params.iter().map(|p| p.stage(krate));
    let unused = params.is_empty().then(|| quote_spanned!(at=> let _ = __tile_cx;));
    let mut block = proc_macro2::Group::new(proc_macro2::Delimiter::Brace, quote!(#body));
    // Braces that count as generated: no lint about braces sees them.
    block.set_span(Span::mixed_site().located_at(function.block.brace_token.span.join()));
    quote_spanned!(at=> #allowed fn #name<#params_of>(__tile_cx: &mut #cx<'_>) #where_clause {
        #(#inner)*
        #(#values)*
        #unused
        #block
    })
}

/// The user's predicates and one for each parameter's type.
fn where_clause(krate: &Krate, function: &ItemFn, params: &[Param]) -> Option<WhereClause> {
    let bounds: Vec<_> = params.iter().filter_map(|p| p.bound(krate)).collect();
    let mut generics = function.sig.generics.clone();
    if !bounds.is_empty() {
        generics.make_where_clause().predicates.extend(bounds);
    }
    generics.where_clause
}

fn turbofish(generics: &Generics, at: Span) -> TokenStream {
    let names: Vec<_> = generics
        .params
        .iter()
        .filter_map(|param| match param {
            GenericParam::Type(t) => Some(&t.ident),
            GenericParam::Const(c) => Some(&c.ident),
            GenericParam::Lifetime(_) => None,
        })
        .collect();
    if names.is_empty() { TokenStream::new() } else { quote_spanned!(at=> ::<#(#names),*>) }
}
