//! The rewrite as a function of tokens: what is rejected and where, what is accepted, and the source table.

use std::str::FromStr;

use proc_macro2::{TokenStream, TokenTree};

use crate::expand::{Role, attribute};

fn tokens(text: &str) -> TokenStream {
    TokenStream::from_str(text).expect("the test's source has balanced tokens")
}

fn expand(role: Role, item: &str) -> TokenStream {
    attribute(role, TokenStream::new(), tokens(item))
}

/// All tokens, groups opened.
fn flat(stream: TokenStream) -> Vec<TokenTree> {
    let mut all = Vec::new();
    for tree in stream {
        all.push(tree.clone());
        if let TokenTree::Group(group) = tree {
            all.extend(flat(group.stream()));
        }
    }
    all
}

fn text_of(tree: &TokenTree) -> String {
    syn::parse_str::<syn::LitStr>(&tree.to_string()).expect("a string literal").value()
}

/// The `compile_error!`s: text, and the byte at which the first token of the mistake starts (one line only).
fn errors(out: TokenStream) -> Vec<(String, usize)> {
    let all = flat(out);
    let named = |tree: &TokenTree| matches!(tree, TokenTree::Ident(i) if i == "compile_error");
    (0..all.len())
        .filter(|i| named(&all[*i]))
        .map(|i| (text_of(&all[i + 3]), all[i].span().start().column))
        .collect()
}

/// One error, under the last place of `at` in the item, whose text has `says` in it.
#[track_caller]
fn rejects(role: Role, item: &str, at: &str, says: &str) {
    let out = expand(role, item);
    let found = errors(out.clone());
    assert_eq!(found.len(), 1, "{item}\n{found:?}");
    assert!(found[0].0.contains(says), "{item}\n{found:?}");
    assert_eq!(Some(found[0].1), item.rfind(at), "{item}\n{found:?}");
    syn::parse2::<syn::File>(out).unwrap_or_else(|e| panic!("{item}\n{e}"));
}

#[track_caller]
fn rejects_body(body: &str, at: &str, says: &str) {
    rejects(Role::Kernel, &format!("fn k(n: Scalar<i32>, v: usize) {{ {body} }}"), at, says);
}

/// Accepted, and the expansion, blanks removed, contains each of the parts in this order.
#[track_caller]
fn expands(role: Role, item: &str, parts: &[&str]) {
    let out = expand(role, item);
    assert_eq!(errors(out.clone()), [], "{item}");
    syn::parse2::<syn::File>(out.clone()).unwrap_or_else(|e| panic!("{item}\n{e}\n{out}"));
    let text: String = out.to_string().split_whitespace().collect();
    let mut from = 0;
    for part in parts {
        let part: String = part.split_whitespace().collect();
        match text[from..].find(&part) {
            Some(at) => from += at + part.len(),
            None => panic!("{item}\nno `{part}` in\n{}", &text[from..]),
        }
    }
}

#[track_caller]
fn expands_body(body: &str, parts: &[&str]) {
    expands(Role::Helper, &format!("fn k(n: Scalar<i32>, v: usize) {{ {body} }}"), parts);
}

#[test]
fn broken_tokens_come_back_unchanged() {
    for item in ["fn k(x: Tensor<f32, 1>) { let q = x + ; }", "fn k(", "fn k();"].map(TokenStream::from_str) {
        let Ok(item) = item else { continue }; // unbalanced: no attribute ever sees it
        let out = attribute(Role::Kernel, TokenStream::new(), item.clone());
        assert_eq!(out.to_string(), item.to_string());
    }
}

#[test]
fn signatures_that_no_kernel_has() {
    let kernel = Role::Kernel;
    rejects(kernel, "async fn k() {}", "async", "cannot be `async`");
    rejects(kernel, "const fn k() {}", "const", "cannot be `const`");
    rejects(kernel, "unsafe fn k() {}", "unsafe", "cannot be `unsafe`");
    rejects(kernel, "extern \"C\" fn k() {}", "extern", "cannot be `extern`");
    rejects(kernel, "fn k(v: usize) -> usize { v }", "usize", "remove the return type");
    rejects(kernel, "fn k<'a>(v: usize) {}", "'a", "no lifetime parameters");
    rejects(kernel, "fn k(v: impl Copy) {}", "impl", "generic parameter");
    rejects(kernel, "fn k(v: &dyn Fn()) {}", "&dyn", "cannot be a reference");
    expands(kernel, "fn k(v: &'static str) {}", &["v: <&'static str as"]);
    rejects(kernel, "fn k(&self) {}", "self", "cannot be a method");
    rejects(kernel, "struct S;", "struct", "goes on a function");
    rejects(Role::Helper, "async fn k() {}", "async", "write a plain `fn`");
    let out = attribute(kernel, tokens("foo = 1"), tokens("fn k() {}"));
    assert!(errors(out)[0].0.contains("crate = path"));
}

#[test]
fn loops_that_are_none() {
    rejects_body("for i in 0..=n { use_(i) }", "0..=n", "`a..b + 1`");
    rejects_body("for i in 0.. { use_(i) }", "0..", "both ends");
    rejects_body("for i in (0..n).rev() { use_(i) }", "(0..n)", "`n - 1 - i`");
    rejects_body("for i in [1, 2] { use_(i) }", "[1, 2]", "`unroll(..)`");
    rejects_body("for i in v.iter() { use_(i) }", "v.iter", "`unroll(..)`");
}

#[test]
fn jumps_that_have_no_meaning() {
    rejects_body("'a: for i in 0..n { for j in 0..i { break 'a; } }", "'a", "a label cannot");
    rejects_body("'a: for i in unroll(0..4) { for j in 0..n { continue 'a; } }", "'a", "a label cannot");
    rejects_body("'a: { for j in 0..n { break 'a; } }", "'a", "a label cannot");
    rejects_body("for i in 0..n { break 'z; }", "'z", "label `'z`");
    rejects_body("let z = loop { break 3; };", "break", "has no value");
    rejects_body("for i in unroll(0..3) { if v == 1 { break 3; } }", "break", "has no value");
    rejects_body("for i in 0..n { if i > 3 { return; } }", "return", "`return` cannot leave");
    rejects_body("while n > 3 { return; }", "return", "`return` cannot leave");
    rejects_body("if n > 3 { break; }", "break", "outside of a loop");
    rejects_body("for i in 0..n { let f = || { continue; }; }", "continue", "outside of a loop");
    rejects_body("for i in 0..n { if n > 3 && { break } {} }", "{ break", "write an `if`");
    let hidden = "let mut s = n; for i in 0..n { s += i; let s = i; if s > 3 { break; } }";
    rejects_body(hidden, "break", "another `s` hides");
}

#[test]
fn assignments_in_the_wrong_place() {
    rejects_body("let mut s = n; let mut f = || { s = n; };", "s = n; }", "return the new value");
    rejects_body("let mut s = n; if n > 3 && { s += 1; n > 4 } {}", "s += 1", "assign it before");
    rejects_body("let mut s = n; let b = n > 3 || { s = n; n > 4 };", "s = n; n", "assign it before");
    rejects_body("let q; if n > 3 { q = n; } else { q = n + 1; }", "q; if", "let q = if");
    rejects_body("let q: T; for i in 0..n { q = i; }", "q: T", "let q = if");
}

#[test]
fn syntax_without_meaning() {
    rejects_body("let f = async { v };", "async", "`async`");
    rejects_body("let f = async || v;", "async", "`async`");
    rejects_body("let f = g().await;", "await", "await it on the host");
    rejects_body("unsafe { g() }", "unsafe", "`unsafe`");
}

#[test]
fn loops() {
    expands_body(
        "let mut acc = n; for i in 0..n { acc += i; }",
        &[
            "for_begin(",
            ".carry(&mut acc)",
            "let i =",
            ".enter()",
            "acc += i",
            ".out(&acc)",
            ".end(true)",
            ".result(&mut acc)",
        ],
    );
    expands_body("for i in (v..n).step_by(4) {}", &["for_begin(", ", 4)"]);
    expands_body("while n < 3 {}", &["loop_begin()", ".enter();", ".test(", "CmpOrd::lt"]);
    expands_body(
        "for i in unroll(0..4) { if v == i { break; } }",
        &["'__tile_", ": for i in unroll(0..4)", "host_jump_under_runtime_if(&", "break '__tile_"],
    );
    expands_body("while let Some(x) = it.next() { break; }", &["while let Some(x) = it.next() { break; }"]);
    // Left alone: rustc says that the variable is not `mut`.
    let out =
        expand(Role::Helper, "fn k(n: Scalar<i32>) { let acc = n; for i in 0..n { acc = i; } }").to_string();
    assert!(!out.contains("carry"));
}

#[test]
fn jumps() {
    expands_body(
        "let mut s = n; for i in 0..n { if i == 3 { continue } s += i; if i > 4 { break } }",
        &[
            ".out(&s)",
            ".cont()",
            "break '__tile_",
            "::None",
            ".exited(",
            ".out(&s)",
            ".brk()",
            "= true",
            "if __tile_",
            ".out(&s)",
            ".end(",
        ],
    );
    let early = "fn h(c: Scalar<bool>, x: Tile<f32>) -> Tile<f32> { if c { return x; } x + x }";
    expands(Role::Helper, early, &["fn_begin::<Tile<f32>>()", ".ret(x)", ".exited(", ".end(__tile_"]);
    // The loop inside is not left, so neither is the `if`.
    let inner =
        expand(Role::Helper, "fn k(n: Scalar<i32>) { if n > 3 { for i in 0..n { break; } } }").to_string();
    assert!(inner.contains("brk") && !inner.contains("exited"));
}

#[test]
fn branches() {
    expands_body(
        "let mut q = n; if n > 3 { q = q + 1; } else { q = v; }",
        &[
            "if_begin(",
            ".save(&mut q)",
            ".then()",
            ".out_then(&mut q)",
            ".then_done(",
            ".els()",
            ".out_else(&mut q)",
            "join(",
            ".result(&mut q)",
        ],
    );
    expands_body("let q = if n > 3 { panic!() } else { n };", &["join_one(&mut", ", true)"]);
    expands_body("let q = if n > 3 { n } else { panic!() };", &["join_one(&mut", ", false)"]);
    expands_body("if let Some(x) = v {} else if n > 3 {}", &["if let Some(x) = v {} else {{", "if_begin("]);
    expands_body(
        "g(match v { 0 => if n > 3 { n } else { v } 1 => n && v, _ => n as T });",
        &["match v { 0 =>", "1 =>", "_ =>"],
    );
    expands_body("if let Some(x) = v { g(x < 3) }", &["if let Some(x) = v { g(", "CmpOrd::lt"]);
}

#[test]
fn operators() {
    expands_body("g(n == 3);", &["CmpEq::eq(&(n), &(3))"]);
    expands_body("g(3 < n);", &["CmpOrd::gt(&(n), &(3))"]);
    expands_body("g(1 < 2);", &["g(1 < 2)"]);
    expands_body("g(2 * n + 1);", &["(::tile_runtime::__private::Lit(2) * n) + 1"]);
    expands_body("g(2.0 * n);", &["g(2.0 * n)"]);
    expands_body("g(a && b);", &["and_needs_right(&", "Some(b)", "Logic::and("]);
    expands_body("g(a || b);", &["or_needs_right(&", "Some(b)", "Logic::or("]);
    expands_body("g(n as f32); g(3 as f32);", &["CastAs::<f32>::cast_as(", "g(3 as f32)"]);
    expands_body("g([0; 1 + 2]); h::<{ A < B }>();", &["g([0; 1 + 2]); h::<{ A < B }>();"]);
}

#[test]
fn literals_become_runtime_values_only_where_control_flow_assigns_them() {
    let lifted = "lift::<::core::primitive::i32>(0)";
    expands_body(
        "let mut s = 0; for i in 0..n { s += i; }",
        &[&format!("let mut s = ::tile_runtime::__private::{lifted}")],
    );
    expands_body("let (mut s, t) = (0, 1); if n > 3 { s = 2; }", &[lifted, ", 1)", "i32>(2)"]);
    expands_body("let mut s = false; if n > 3 { s = true; }", &["bool>(false)", "bool>(true)"]);
    expands_body("let mut s = 1usize; for i in 0..n { s += i; }", &["let mut s = 1usize;"]);
    expands_body("let mut s: usize = 1; for i in 0..n { s += i; }", &["let mut s: usize = 1;"]);
    expands_body("let mut s = 0; for i in unroll(0..4) { s += i; }", &["let mut s = 0;"]);
    expands_body("let mut s = 0; s = 1;", &["let mut s = 0; s = 1;"]);
}

#[test]
fn kernels() {
    expands(
        Role::Kernel,
        "/// Doc.\npub(crate) fn k<T: Float, const N: usize>(x: Tensor<T, 2>, mut v: Const<usize>, #[cfg(a)] w: usize, _: bool) where T: Copy {}",
        &[
            "Doc.",
            "pub(crate) fn k<'__tile, T: Float, const N: usize>(x: <Tensor<T, 2> as ::tile_runtime::__private::KernelParam>::Host<'__tile>, v: <",
            "#[cfg(a)] w: <",
            "-> ::tile_runtime::Launch<'__tile> where T: Copy, Tensor<T, 2>: ::tile_runtime::__private::KernelParam,",
            "::bind(x, \"x\", &mut __tile_args);",
            "#[cfg(a)] <usize as",
            "static __TILE_SOURCE",
            "fn k<T: Float, const N: usize>(__tile_cx: &mut ::tile_runtime::__private::StageArgs<'_>) where T: Copy",
            "let x: Tensor<T, 2> = <Tensor<T, 2> as ::tile_runtime::__private::KernelParam>::stage(__tile_cx);",
            "let mut v: Const<usize> =",
            "#[cfg(a)] let w: usize =",
            "let _: bool =",
            "::tile_runtime::__private::launch(",
            "name: \"k\"",
            "k::<T, N>",
        ],
    );
    let out =
        attribute(Role::Kernel, tokens("crate = a::b"), tokens("fn k(n: N) { if n > 1 {} }")).to_string();
    assert!(out.contains("a :: b :: __private :: CmpOrd") && !out.contains("tile_runtime"));
}

/// The value after `name :` in the source table.
fn field(out: TokenStream, name: &str) -> TokenTree {
    let all = flat(out);
    let at =
        all.iter().position(|t| matches!(t, TokenTree::Ident(i) if i == name)).expect("the field is there");
    all[at + 2].clone()
}

#[test]
fn the_table_holds_the_functions_text() {
    let source =
        "pub fn k(\n    n: Scalar<i32>, \n) {\n    // a comment\n\n    let a = n + 1; /* x */\n    }";
    let out = expand(Role::Helper, &format!("#[inline]\n/// Doc.\n{source}"));
    assert_eq!(field(out.clone(), "first_line").to_string(), "3");
    // Blanks at a line's end inside of the signature have no token.
    assert_eq!(text_of(&field(out, "text")), source.replace(", \n", ",\n"));
}

#[test]
fn the_table_maps_places_to_extents() {
    let source = "fn k(n: Scalar<i32>) { let a = f(n) + n * n; let b = (a - n).max(a) < n; for i in 0..n { g(-a, n as T); } if n { } s += a + b + n; }";
    let out = expand(Role::Helper, source);
    let TokenTree::Punct(_) = field(out.clone(), "ranges") else { panic!("`&[..]`") };
    let all = flat(out);
    let at = all.iter().position(|t| matches!(t, TokenTree::Ident(i) if i == "ranges")).expect("there");
    let TokenTree::Group(rows) = &all[at + 3] else { panic!("`[..]`") };
    let row = |tree: TokenTree| -> Option<Vec<usize>> {
        let TokenTree::Group(g) = tree else { return None };
        Some(g.stream().into_iter().filter_map(|t| t.to_string().parse().ok()).collect())
    };
    let rows: Vec<Vec<usize>> = rows.stream().into_iter().filter_map(row).collect();
    assert!(rows.is_sorted());
    for (key, extent) in [
        ("f(n)", "f(n)"),
        ("+ n * n", "f(n) + n * n"),
        ("n * n", "n * n"),
        ("a - n", "a - n"),
        ("max", "max(a)"),
        ("< n;", "(a - n).max(a) < n"),
        ("0..n", "for i in 0..n"),
        ("-a", "-a"),
        ("as T", "n as T"),
        ("n { }", "n"),
        ("s += a", "s += a + b + n"),
        ("a + b", "a + b"),
        ("+ n; }", "a + b + n"),
    ] {
        let column = source.find(key).expect("the key is in the source") + 1;
        let row = rows.iter().find(|r| r[..2] == [1, column]).unwrap_or_else(|| panic!("no row for `{key}`"));
        assert_eq!(&source[row[3] - 1..row[5] - 1], extent, "`{key}`");
    }
}
