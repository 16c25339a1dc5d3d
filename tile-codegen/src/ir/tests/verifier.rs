//! One broken kernel for each rule of the verifier.

use crate::ir::{Builder, Elem, Kernel, ParamKind, TensorFacts, Type, parse_file, verify};
use crate::ops::*;

/// Verifies the operations of an entry region, or a whole kernel; lists `line: code message`.
fn faults(text: &str) -> Vec<String> {
    let whole = match text.contains("kernel @") {
        true => text.to_string(),
        false => format!(
            "kernel @k(%t: tensor<f32, 1>, %w: tensor_mut<f32, 1>, %n: i32) {{ stage = tile }} {{\n{text}\n}}"
        ),
    };
    let kernel = parse_file("k", &whole).unwrap_or_else(|e| panic!("{e}\n{whole}"));
    match verify(&kernel) {
        Ok(()) => Vec::new(),
        Err(list) => list
            .iter()
            .map(|d| format!("{}: {} {}", d.loc.as_ref().map_or(0, |l| l.line - 1), d.code, d.message))
            .collect(),
    }
}

/// One fault, whose text contains the words.
fn refuses(text: &str, expected: &str) {
    let found = faults(text);
    assert!(found.len() == 1 && found[0].contains(expected), "{text}\nexpected {expected}\nfound {found:#?}");
}

#[test]
fn accepts_a_correct_kernel() {
    let text = "\
%0 = constant { value = 0, elem = i32 } : i32
%1 = constant { value = 0.0, elem = f32 } : f32
%2 = constant { value = true, elem = bool } : bool
%3 = scope {
  %4 = for %0, %n, %n, %1 (%5: i32, %6: f32) {
    %7 = if %2 { continue %6 } { yield %6 } : f32
    %8 = loop %7 (%9: f32) { %10 = if %2 { break %9 } { exit %9 } : f32
      yield %10 } : f32
    yield %8
  } : f32
  exit %4
} : f32";
    assert_eq!(faults(text), Vec::<String>::new());
}

#[test]
fn values_are_defined_before_use() {
    refuses(
        "%0 = neg %1 : i32\n%1 = bid { axis = 0 } : i32",
        "1: E0202 `neg`: %1 is used before its definition",
    );
    let inner = "%0 = constant { value = true, elem = bool } : bool\n\
                 if %0 {\n %1 = bid { axis = 0 } : i32\n yield\n} { yield }\n%2 = neg %1 : i32";
    refuses(inner, "6: E0202 `neg`: %1 is defined in a region that is closed here");
    refuses(
        "%0 = for %n, %n, %n, %0 (%1: i32, %2: f32) { yield %2 } : f32",
        "%0 is used before its definition",
    );
}

#[test]
fn types_follow_from_operands() {
    refuses("%0 = neg %n : 4xi32", "`neg`: the result types are `4xi32`, expected `i32`");
    refuses("%0 = exp %n : i32", "E0102 `exp` has no meaning for `i32`");
    refuses("%0 = bid { axis = 0 } : error", "the operation that makes it was refused");
    refuses("neg %n", "the result types are `()`, expected `i32`");
}

#[test]
fn shapes_are_powers_of_two() {
    let found = faults(
        "%0 = for %n, %n, %n, %1 (%2: i32, %3: 3xi32) { yield %3 } : 3xi32\n%1 = bid { axis = 0 } : i32",
    );
    assert!(
        found.iter().any(|f| f.contains("E0101") && f.contains("must be a power of two, found (3,)")),
        "{found:#?}"
    );
    refuses(
        "%0 = broadcast_to %n { shape = [65536, 65536] } : 65536x65536xi32",
        "E0101 `broadcast_to`: %0: a tile has at most 2^31 elements",
    );
}

#[test]
fn tensors_are_only_loaded_stored_and_measured() {
    refuses("%0 = neg %t : f32", "the tensor %t can only be loaded from, stored to and measured");
    refuses("store %t, %w, %n", "`store` takes a tile here");
    refuses("kernel @k(%t: tensor<f32, 6>) { stage = tile } {\n}", "a tensor has 1 to 5 axes, found 6");
    refuses("kernel @k(%t: tensor<tf32, 1>) { stage = tile } {\n}", "`tf32` exists in tiles only");
}

#[test]
fn parameters_are_tensors_with_facts_or_scalars() {
    refuses("kernel @k(%a: 4xi32) { stage = tile } {\n}", "parameter `a`: its type is `4xi32`");
    let facts =
        |f: &str| format!("kernel @k(%t: tensor<f32, 1> {{ {f}, small = true }}) {{ stage = tile }} {{\n}}");
    refuses(&facts("align = 4, stride_align = [4, 4], extent_align = [1]"), "its facts are not of rank 1");
    refuses(&facts("align = 4, stride_align = [3], extent_align = [1]"), "a power of two up to 16, found 3");
    refuses(
        &facts("align = 32, stride_align = [4], extent_align = [1]"),
        "a power of two up to 16, found 32",
    );
    refuses(
        &facts("unit_axis = 1, align = 4, stride_align = [4], extent_align = [1]"),
        "unit axis does not exist",
    );
    let mut kernel = Kernel::new("k");
    for _ in 0..2 {
        kernel.add_param("a", Type::scalar(Elem::I32), ParamKind::Scalar);
    }
    assert!(verify(&kernel).expect_err("refused").to_string().contains("two parameters are called `a`"));
    assert_eq!(TensorFacts::contiguous(2, 4).unit_axis, Some(1));
}

#[test]
fn terminators_end_regions() {
    refuses("yield", "`yield`: a terminator stands at the end of a region inside the kernel's body only");
    refuses("scope { %0 = bid { axis = 0 } : i32 }", "`scope`: a region does not end in");
    refuses("scope {\n exit\n exit\n}", "2: E0202 `exit`: a terminator stands at the end");
    refuses("scope { yield }", "`yield`: it stands at the end of a loop body or an arm of an `if` only");
    refuses("scope { break }", "`break`: it stands inside a `for` or `loop` only");
    refuses("for %n, %n, %n (%0: i32) { exit }", "`exit`: it stands inside a `scope` only");
    refuses(
        "scope {\n %0 = constant { value = 1, elem = i32 } : i32\n exit\n}",
        "2: E0202 `constant`: constants live",
    );
}

#[test]
fn control_flow_carries_one_type() {
    refuses(
        "scope { exit %n }",
        "E0110 `exit`: the operands are of types `i32`, the results of `scope` of `()`",
    );
    refuses(
        "%0 = scope { exit %n } : f32",
        "the operands are of types `i32`, the results of `scope` of `f32`",
    );
    refuses(
        "%0 = loop %n (%1: f32) { break %n } : i32",
        "E0110 `loop`: the region arguments are of types `f32`, the results of `i32`",
    );
    refuses("%0 = loop (%1: i32) { break %n } : i32", "the initial values are of types `()`");
    refuses("%0 = loop %n (%1: i32) { yield } : i32", "`yield`: the operands are of types `()`");
}

#[test]
fn loops_count_in_one_integer_type() {
    refuses("for %n, %n, %n (%0: i64) { yield }", "one integer type, found `i32, i32, i32, i64`");
    refuses("for %n, %n, %n { yield }", "one integer type, found `i32, i32, i32`");
    refuses("for %n (%0: i32) { yield }", "it takes a lower bound, an upper bound and a step");
    let float = "%0 = constant { value = 0.0, elem = f32 } : f32\nfor %0, %0, %0 (%1: f32) { yield }";
    refuses(float, "one integer type, found `f32, f32, f32, f32`");
    refuses("if %n { yield } { yield }", "the condition is a `bool` scalar, found `i32`");
    refuses("scope %n { exit }", "`scope`: it takes no operands");
}

#[test]
fn regions_are_as_many_as_the_operation_holds() {
    refuses("%0 = bid { axis = 0 } { exit } : i32", "`bid`: the operation holds regions");
    refuses("scope", "`scope`: it has 1 regions, found 0");
    refuses("scope (%0: i32) { exit }", "`scope`: its regions have no arguments");
}

#[test]
fn layouts_belong_to_their_stage() {
    let kernel = |head: &str, ty: &str| {
        format!(
            "#0 = layout {{ shape = [], reg = [], lane = [0, 0, 0, 0, 0], warp = [0] }}\n\
             #1 = layout {{ shape = [1], reg = [], lane = [0, 0, 0, 0, 0], warp = [0] }}\n\
             kernel @k() {{ {head} }} {{\n %0 = bid {{ axis = 0 }} : {ty}\n}}"
        )
    };
    assert_eq!(faults(&kernel("warps = 2, stage = laid_out", "i32 #0")), Vec::<String>::new());
    refuses(&kernel("warps = 2, stage = laid_out", "i32"), "%0: it has no layout");
    refuses(&kernel("warps = 4, stage = laid_out", "i32 #0"), "its layout is for 2 warps, expected 4");
    refuses(&kernel("warps = 2, stage = laid_out", "i32 #1"), "its layout is of shape (1,), expected ()");
    refuses(&kernel("stage = laid_out", "i32 #0"), "the number of warps is not set");
    refuses(&kernel("stage = tile", "i32 #0"), "it has a layout before layouts are assigned");
}

#[test]
fn regions_and_operations_form_a_tree() {
    let mut b = Builder::new("k");
    let value = b.emit(bid::Bid { axis: 0 }.into(), vec![], Default::default())[0];
    let again = b.kernel.regions[b.kernel.body].ops[0];
    b.append(again);
    let mut message = verify(&b.kernel).expect_err("refused").to_string();
    assert!(message.contains("`bid`, operation #0, is attached twice"), "{message}");

    b.kernel.regions[b.kernel.body].ops.pop();
    let op = b.kernel.new_op(
        unary::Unary { op: unary::UnaryOp::Neg }.into(),
        vec![value],
        vec![],
        Default::default(),
    );
    b.kernel.ops[op].results.push(value);
    b.append(op);
    message = verify(&b.kernel).expect_err("refused").to_string();
    assert!(message.contains("%0 is defined twice"), "{message}");

    b.kernel.ops[op].regions.push(b.kernel.body);
    message = verify(&b.kernel).expect_err("refused").to_string();
    assert!(message.contains("region #0 is attached twice"), "{message}");
}
