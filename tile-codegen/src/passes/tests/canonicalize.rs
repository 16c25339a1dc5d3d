//! `canonicalize`: what it makes of small kernels, and that random ones keep their results.

use proptest::prelude::*;

use super::cx;
use crate::ir::{Kernel, parse, print, verify};
use crate::passes::{Changed, canonicalize};

const HEAD: &str =
    "kernel @k(%x: tensor<f32, 2>, %y: tensor_mut<f32, 2>, %n: i32, %b: bool, %f: f32) { stage = tile } {";

fn body(text: &str) -> Kernel {
    let kernel = parse(&format!("{HEAD}\n{text}\n}}")).unwrap_or_else(|e| panic!("{e}\n{text}"));
    verify(&kernel).unwrap_or_else(|e| panic!("{e}\n{text}"));
    kernel
}

/// The operations of a kernel, one a line, without the indentation of its body.
fn ops(kernel: &Kernel) -> String {
    let text = print(kernel);
    let lines = text.lines().skip(1).map(|line| line.strip_prefix("  ").unwrap_or(line));
    let mut lines: Vec<_> = lines.collect();
    lines.pop();
    lines.join("\n")
}

/// Canonicalizes `before` and expects `after`; both are written as printed.
fn becomes(before: &str, after: &str) {
    let mut kernel = body(before);
    let changed = canonicalize::run(&mut kernel, &cx()).expect("the pass has no errors");
    verify(&kernel).unwrap_or_else(|e| panic!("{e}\n{}", print(&kernel)));
    let found = ops(&kernel);
    assert_eq!(found, after.trim(), "\n{found}\n");
    assert_eq!(changed == Changed::Yes, ops(&body(before)) != after.trim());
}

/// `%n op constant`, stored so that it is used, is `%n` alone.
fn vanishes(ty: &str, constant: &str, op: &str, constant_first: bool) {
    let (p, store) =
        if ty == "i32" { ("%n", "cast %1 { elem = f32 } : f32") } else { ("%f", "neg %1 : f32") };
    let operands = if constant_first { format!("%0, {p}") } else { format!("{p}, %0") };
    let tail = |value: &str, n: usize| {
        let store = store.replace("%1", value);
        format!(
            "%{n} = {store}\n%{} = broadcast_to %{n} {{ shape = [1, 1] }} : 1x1xf32\nstore %{}, %y, %n, %n",
            n + 1,
            n + 1
        )
    };
    let before = format!(
        "%0 = constant {{ value = {constant}, elem = {ty} }} : {ty}\n%1 = {op} {operands} : {ty}\n{}",
        tail("%1", 2)
    );
    becomes(&before, &tail(p, 0));
}

#[test]
fn neutral_constants_vanish() {
    for (ty, constant, op) in [
        ("i32", "0", "add"),
        ("i32", "0", "sub"),
        ("i32", "1", "mul"),
        ("i32", "1", "div"),
        ("i32", "0", "or"),
        ("i32", "0", "xor"),
        ("i32", "0", "shl"),
        ("i32", "0", "shr"),
        ("f32", "-0.0", "add"),
        ("f32", "0.0", "sub"),
        ("f32", "1.0", "mul"),
        ("f32", "1.0", "div"),
    ] {
        vanishes(ty, constant, op, false);
    }
    for (ty, constant, op) in
        [("i32", "0", "add"), ("i32", "1", "mul"), ("f32", "1.0", "mul"), ("f32", "-0.0", "add")]
    {
        vanishes(ty, constant, op, true);
    }
}

/// Adding +0.0 turns -0.0 into +0.0, and 0 * NaN is NaN.
#[test]
fn float_sums_with_zero_and_products_with_zero_stay() {
    for op in ["add", "mul"] {
        let text = format!(
            "%0 = constant {{ value = 0.0, elem = f32 }} : f32\n%1 = {op} %f, %0 : f32\n\
             %2 = broadcast_to %1 {{ shape = [1, 1] }} : 1x1xf32\nstore %2, %y, %n, %n"
        );
        becomes(&text, &text);
    }
}

/// Constants and results that are used by a store of `f32`; expected values by hand.
#[test]
fn constants_are_folded() {
    let cases = [
        ("i32", "2147483647", "1", "add", "-2147483648"),
        ("i32", "-7", "2", "div", "-3"),
        ("i32", "-7", "2", "rem", "-1"),
        ("i32", "5", "0", "div", "0"),
        ("i32", "-8", "33", "shr", "-4"),
        ("u32", "4294967295", "1", "shr", "2147483647"),
        ("u32", "0", "1", "sub", "4294967295"),
        ("i64", "9223372036854775807", "1", "add", "-9223372036854775808"),
        ("f32", "16777216.0", "1.0", "add", "16777216.0"),
        ("f32", "1.0", "0.0", "div", "inf"),
        // bf16 has 8 bits of precision, f16 has 11; halfway cases go to even.
        ("bf16", "256.0", "1.0", "add", "256.0"),
        ("bf16", "258.0", "1.0", "add", "260.0"),
        ("f16", "2048.0", "1.0", "add", "2048.0"),
        ("f16", "60000.0", "60000.0", "add", "inf"),
    ];
    for (ty, a, b, op, result) in cases {
        let before = format!(
            "%0 = constant {{ value = {a}, elem = {ty} }} : {ty}\n%1 = constant {{ value = {b}, elem = {ty} }} : {ty}\n\
             %2 = {op} %0, %1 : {ty}\n%3 = bid {{ axis = 0 }} : i32\n%4 = cast %3 {{ elem = {ty} }} : {ty}\n\
             %5 = maximum %2, %4 : {ty}\n%6 = cast %5 {{ elem = f32 }} : f32\n%7 = broadcast_to %6 {{ shape = [1, 1] }} : 1x1xf32\n\
             store %7, %y, %n, %n"
        );
        let mut kernel = body(&before);
        canonicalize::run(&mut kernel, &cx()).expect("the pass has no errors");
        let found = ops(&kernel);
        let expected = format!("constant {{ value = {result}, elem = {ty} }}");
        assert!(found.contains(&expected), "{op} {a} {b}: {found}");
        assert_eq!(found.matches("constant").count(), 1, "{found}");
    }
}

#[test]
fn inexact_functions_and_nan_are_not_folded() {
    for op in ["exp %0", "sqrt %0", "log %0", "div %0, %0"] {
        let text = format!(
            "%0 = constant {{ value = 0.0, elem = f32 }} : f32\n%1 = {op} : f32\n\
             %2 = broadcast_to %1 {{ shape = [1, 1] }} : 1x1xf32\nstore %2, %y, %n, %n"
        );
        becomes(&text, &text);
    }
}

/// Which of two zeros is smaller is not fixed, so neither is the sign of the result.
#[test]
fn extremes_of_two_zeros_are_not_folded() {
    for op in ["minimum", "maximum_nan"] {
        let text = format!(
            "%0 = constant {{ value = 0.0, elem = f32 }} : f32\n%1 = constant {{ value = -0.0, elem = f32 }} : f32\n\
             %2 = {op} %0, %1 : f32\n%3 = broadcast_to %2 {{ shape = [1, 1] }} : 1x1xf32\nstore %3, %y, %n, %n"
        );
        becomes(&text, &text);
    }
}

#[test]
fn moves_are_merged() {
    let load = "%0 = load %x, %n, %n { shape = [4, 8], pad = 0.0 } : 4x8xf32\n";
    becomes(
        &format!(
            "{load}%1 = reshape %0 {{ shape = [8, 4] }} : 8x4xf32\n%2 = reshape %1 {{ shape = [4, 8] }} : 4x8xf32\n\
             %3 = permute %2 {{ axes = [0, 1] }} : 4x8xf32\n%4 = permute %3 {{ axes = [1, 0] }} : 8x4xf32\n\
             %5 = permute %4 {{ axes = [1, 0] }} : 4x8xf32\n%6 = broadcast_to %5 {{ shape = [4, 8] }} : 4x8xf32\n\
             %7 = extract %6 {{ index = [0, 0], shape = [4, 8] }} : 4x8xf32\n\
             %8 = cast %7 {{ elem = f32 }} : 4x8xf32\nstore %8, %y, %n, %n"
        ),
        &format!("{load}store %0, %y, %n, %n"),
    );
    becomes(
        "%0 = broadcast_to %f { shape = [2, 8] } : 2x8xf32\n%1 = reshape %0 { shape = [16] } : 16xf32\n\
         %2 = broadcast_to %1 { shape = [4, 16] } : 4x16xf32\n%3 = permute %2 { axes = [1, 0] } : 16x4xf32\n\
         %4 = extract %3 { index = [1, 1], shape = [8, 2] } : 8x2xf32\nstore %4, %y, %n, %n",
        "%0 = broadcast_to %f { shape = [8, 2] } : 8x2xf32\nstore %0, %y, %n, %n",
    );
    becomes(
        "%0 = load %y, %n, %n { shape = [8, 8], pad = 0.0 } : 8x8xf32\n\
         %1 = extract %0 { index = [1, 0], shape = [4, 8] } : 4x8xf32\n\
         %2 = extract %1 { index = [1, 3], shape = [2, 2] } : 2x2xf32\nstore %2, %y, %n, %n",
        "%0 = load %y, %n, %n { shape = [8, 8], pad = 0.0 } : 8x8xf32\n\
         %1 = extract %0 { index = [3, 3], shape = [2, 2] } : 2x2xf32\nstore %1, %y, %n, %n",
    );
}

#[test]
fn parts_of_loaded_tiles_are_loaded_alone() {
    becomes(
        "%0 = constant { value = 3, elem = i32 } : i32\n\
         %1 = load %x, %0, %n { shape = [8, 16], pad = 0.5 } : 8x16xf32\n\
         %2 = extract %1 { index = [1, 2], shape = [2, 4] } : 2x4xf32\nstore %2, %y, %n, %n",
        // Row tile 3 * (8 / 2) + 1, column tile n * (16 / 4) + 2.
        "%0 = constant { value = 13, elem = i32 } : i32\n%1 = cast %n { elem = i64 } : i64\n\
         %2 = constant { value = 4, elem = i64 } : i64\n%3 = mul %1, %2 : i64\n\
         %4 = constant { value = 2, elem = i64 } : i64\n%5 = add %3, %4 : i64\n\
         %6 = load %x, %0, %5 { shape = [2, 4], pad = 0.5 } : 2x4xf32\nstore %6, %y, %n, %n",
    );
}

#[test]
fn equal_operations_are_merged_where_they_are_visible() {
    let tail = "%3 = broadcast_to %2 { shape = [1, 1] } : 1x1xf32\nstore %3, %y, %n, %n";
    becomes(
        &format!("%0 = abs %f : f32\n%1 = abs %f : f32\n%2 = sub %0, %1 : f32\n{tail}"),
        "%0 = abs %f : f32\n%1 = sub %0, %0 : f32\n%2 = broadcast_to %1 { shape = [1, 1] } : 1x1xf32\nstore %2, %y, %n, %n",
    );
    // Loads of a tensor that is written between them differ.
    let loads = "%0 = load %y, %n, %n { shape = [1, 1], pad = 0.0 } : 1x1xf32\n%1 = abs %0 : 1x1xf32\n\
                 store %1, %y, %n, %n\n%2 = load %y, %n, %n { shape = [1, 1], pad = 0.0 } : 1x1xf32\n\
                 %3 = abs %2 : 1x1xf32\nstore %3, %y, %n, %n";
    becomes(loads, loads);
    // The arms of a branch do not see each other.
    let arms = "%0 = if %b {\n  %1 = abs %f : f32\n  yield %1\n} {\n  %2 = abs %f : f32\n  yield %2\n} : f32\n\
                %3 = broadcast_to %0 { shape = [1, 1] } : 1x1xf32\nstore %3, %y, %n, %n";
    becomes(arms, arms);
}

#[test]
fn unused_operations_and_loads_are_removed() {
    becomes("%0 = load %x, %n, %n { shape = [4, 4], pad = 0.0 } : 4x4xf32\n%1 = exp %0 : 4x4xf32", "");
}

const STORE: &str = "= broadcast_to %f { shape = [1, 1] } : 1x1xf32\nstore";

#[test]
fn decided_branches_are_taken() {
    let branch = |known: &str| {
        format!(
            "%0 = constant {{ value = {known}, elem = bool }} : bool\n%1 = if %0 {{\n  %2 = abs %f : f32\n  yield %2\n}} {{\n  \
             yield %f\n}} : f32\n%3 = broadcast_to %1 {{ shape = [1, 1] }} : 1x1xf32\nstore %3, %y, %n, %n"
        )
    };
    becomes(
        &branch("true"),
        "%0 = abs %f : f32\n%1 = broadcast_to %0 { shape = [1, 1] } : 1x1xf32\nstore %1, %y, %n, %n",
    );
    becomes(&branch("false"), &format!("%0 {STORE} %0, %y, %n, %n"));
}

#[test]
fn a_jump_in_a_taken_arm_drops_what_follows() {
    becomes(
        "%0 = constant { value = true, elem = bool } : bool\n%1 = broadcast_to %f { shape = [1, 1] } : 1x1xf32\n\
         scope {\n  if %0 {\n    exit\n  } {\n    yield\n  }\n  store %1, %y, %n, %n\n  exit\n}",
        "",
    );
    // The scope stays if it may be left early.
    let early = "%0 = broadcast_to %f { shape = [1, 1] } : 1x1xf32\nscope {\n  if %b {\n    exit\n  } {\n    yield\n  }\n  \
                 store %0, %y, %n, %n\n  exit\n}";
    becomes(early, early);
}

#[test]
fn loops_that_do_not_run_are_removed() {
    let text = |low: i32, high: i32, step: i32| {
        format!(
            "%0 = constant {{ value = {low}, elem = i32 }} : i32\n%1 = constant {{ value = {high}, elem = i32 }} : i32\n\
             %2 = constant {{ value = {step}, elem = i32 }} : i32\n%3 = for %0, %1, %2, %f (%4: i32, %5: f32) {{\n  \
             %6 = exp %5 : f32\n  yield %6\n}} : f32\n%7 = broadcast_to %3 {{ shape = [1, 1] }} : 1x1xf32\n\
             store %7, %y, %n, %n"
        )
    };
    becomes(&text(4, 4, 1), &format!("%0 {STORE} %0, %y, %n, %n"));
    becomes(&text(3, 4, 1), &text(3, 4, 1));
    // A step that is not positive is a fault when the kernel runs; it is not hidden.
    becomes(&text(4, 3, 0), &text(4, 3, 0));
}

#[test]
fn decided_selections_and_logic_vanish() {
    let tail = "%9 = broadcast_to %8 { shape = [1, 1] } : 1x1xf32\nstore %9, %y, %n, %n";
    becomes(
        &format!(
            "%0 = constant {{ value = true, elem = bool }} : bool\n%1 = or %b, %0 : bool\n%2 = and %1, %0 : bool\n\
             %3 = exp %f : f32\n%8 = where %2, %f, %3 : f32\n{tail}"
        ),
        &format!("%0 {STORE} %0, %y, %n, %n"),
    );
    becomes(&format!("%8 = where %b, %f, %f : f32\n{tail}"), &format!("%0 {STORE} %0, %y, %n, %n"));
}

#[cfg(feature = "cpu")]
mod results {
    use super::*;
    use crate::cpu::{Arg, Program, TileValue, VecMemory, run_grid};
    use crate::ir::Elem;
    use crate::ir::tests::random_kernel;

    /// What a random kernel leaves in its tensors.
    fn run(kernel: &Kernel) -> (Vec<u32>, Vec<i64>) {
        let x: Vec<f32> = (0..35).map(|i| (i as f32 - 11.0) * 0.375).collect();
        let (x, y) = (VecMemory::floats(Elem::F32, &x), VecMemory::floats(Elem::F32, &[0.25; 4096]));
        let m = VecMemory::ints(Elem::I32, &(0..2048).collect::<Vec<_>>());
        let args = [
            Arg::Tensor(x.tensor(&[5, 7])),
            Arg::Tensor(y.tensor(&[2, 2048])),
            Arg::Tensor(m.tensor(&[2048])),
            Arg::Scalar(TileValue::scalar(Elem::I32, 1i32)),
        ];
        let program = Program::new(kernel).expect("a verified kernel");
        run_grid(&program, [2, 1, 1], &args).expect("steps are positive");
        (y.to_floats().into_iter().map(f32::to_bits).collect(), m.to_ints())
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn random_kernels_keep_their_results(choices in prop::collection::vec(any::<u32>(), 0..120)) {
            let before = random_kernel(&choices);
            let mut after = before.clone();
            canonicalize::run(&mut after, &cx()).expect("the pass has no errors");
            verify(&after).map_err(|e| TestCaseError::fail(format!("{e}\n{}\n{}", print(&before), print(&after))))?;
            prop_assert_eq!(run(&before), run(&after), "\n{}\n{}", print(&before), print(&after));
            let once = print(&after);
            let changed = canonicalize::run(&mut after, &cx()).expect("the pass has no errors");
            prop_assert_eq!(print(&after), once);
            prop_assert_eq!(changed, Changed::No);
        }
    }
}
