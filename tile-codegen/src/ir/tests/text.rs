//! Printing and parsing.

use proptest::prelude::*;

use super::random_kernel;
use crate::ir::{Builder, Elem, Kernel, Stage, Type, parse, parse_file, print, print_with_locs};
use crate::layout::{Layout, SharedLayout};
use crate::ops::*;

/// Every operation and type, at the stage where all of them may occur.
const EVERYTHING: &str = "\
#0 = layout { shape = [], reg = [], lane = [0, 0, 0, 0, 0], warp = [0] }
#1 = layout { shape = [64], reg = [1], lane = [2, 4, 8, 16, 32], warp = [0] }
#s0 = shared { shape = [8, 64], elem_bytes = 2, bases = [2, 4, 8, 16, 32, 64, 144, 288, 576], bytes = 1024, swizzle = 128 }
kernel @all(%x: tensor<bf16, 4> { unit_axis = 3, align = 16, stride_align = [16, 16, 16, 2], \
extent_align = [1, 1, 4, 8], small = true }, %y: tensor_mut<f32, 1> { align = 4, stride_align = [4], \
extent_align = [1], small = false }, %n: i32 #0) { warps = 2, stage = laid_out } {
  %0 = constant { value = -0.0, elem = f32 } : f32 #0
  %1 = constant { value = nan_0x7ff8000000000001, elem = f32 } : f32
  %2 = constant { value = 1e-45, elem = f32 } : f32
  %3 = constant { value = 9007199254740993, elem = i64 } : i64
  %4 = arange { len = 64, elem = i32 } : 64xi32 #1
  %5 = bid { axis = 0 } : i32
  %6 = num_blocks { axis = 2 } : i32
  %7 = extent %x { axis = 1 } : i32
  %8 = load %x, %5, %5, %5, %5 { shape = [1, 1, 8, 64], pad = -inf } : 1x1x8x64xbf16
  %9 = reshape %8 { shape = [8, 64] } : 8x64xbf16
  %10 = permute %9 { axes = [1, 0] } : 64x8xbf16
  %11 = to_shared %9 { layout = #s0 } : shared<bf16, #s0>
  barrier
  %12 = from_shared %11 { origin = [0, 32], shape = [8, 32] } : 8x32xbf16
  %13 = convert_layout %12 : 8x32xbf16
  %14 = extract %13 { index = [0, 1], shape = [8, 16] } : 8x16xbf16
  %15 = cast %14 { elem = tf32 } : 8x16xtf32
  %16 = reduce %14 { kind = max, axes = [1], propagate_nan = true } : 8x1xbf16
  %17 = cumsum %16 { axis = 0, reverse = false } : 8x1xbf16
  %18 = broadcast_to %17 { shape = [8, 16] } : 8x16xbf16
  %19 = softplus %18 : 8x16xbf16
  %20 = maximum_nan %19, %18 : 8x16xbf16
  %21 = ge %20, %18 : 8x16xbool
  %22 = where %21, %20, %18 : 8x16xbf16
  %23 = fma %18, %19, %20 : 8x16xbf16
  %24 = mma %11, %10, %9 : 8x8xf32
  store %0, %y, %5 { steps = elements }
  %25, %26 = for %5, %n, %6, %0, %1 (%27: i32, %28: f32, %29: f32) {
    %30 = if %21 {
      continue %28, %29
    } {
      yield %28
    } : f32
    yield %30, %29
  } : f32, f32
  %31 = loop %0 (%32: f32) {
    break %32
  } : f32
  scope {
    exit
  }
  %33 = add %31, %0 : error
  %34 = gather %y, %5 { pad = 0.0 } : f32
  scatter %34, %y, %5
  %35 = atomic_add %34, %y, %5 { order = acq_rel, scope = device } : f32
  copy_async %x, %5, %5, %5 { channel = 2, elem = bf16, layout = #s0, stages = 3 }
  copy_commit
  copy_wait { pending = 1 }
  %36 = copied %5 { channel = 2, elem = bf16, layout = #s0, stages = 3, placed = true } : shared<bf16, #s0>
  roles { warps = [4, 1], registers = [0, 0], single = [0, 1] } {
    %37 = receive { channel = 0, elem = bf16, layout = #s0, stages = 2, placed = true } : shared<bf16, #s0>
    %38 = view_shared %37 { layout = #s0 } : shared<bf16, #s0>
    mma_wait { pending = 1 }
    release { channel = 0, stages = 2, lagging = true }
    yield
  } {
    send %x, %5, %5 { channel = 0, elem = bf16, layout = #s0, stages = 2 }
    send_tile %9 { channel = 1, elem = bf16, layout = #s0, stages = 1 }
    yield
  }
}
";

#[test]
fn text_of_every_operation_reads_back() {
    let kernel = parse(EVERYTHING).expect("the text is well formed");
    assert_eq!(print(&kernel), EVERYTHING);
    let mut names = Vec::new();
    kernel.walk(|_, op| names.push(op.kind.name()));
    names.sort_unstable();
    names.dedup();
    macro_rules! count {
        ($($variant:ident $module:ident :: $op:ident,)*) => { [$(stringify!($op)),*].len() };
    }
    // One operation of each kind, and a second one of the binary family.
    assert_eq!(names.len(), crate::for_each_op!(count) + 1, "{names:?}");
}

#[test]
fn places_are_printed_on_request_and_read_back() {
    let text = "kernel @k() { stage = tile } {\n  %0 = bid { axis = 0 } : i32 @ src/a b.rs:3:5-4:17\n}\n";
    let kernel = parse(text).expect("the text is well formed");
    assert_eq!(print_with_locs(&kernel), text);
    assert!(!print(&kernel).contains("src/a"));
}

#[test]
fn operations_of_a_file_are_placed_in_it() {
    let text = "// a comment\nkernel @k() { stage = tile } { // another\n  %0 = bid { axis = 0 } : i32\n}\n";
    let kernel = parse_file("k.tir", text).expect("the text is well formed");
    assert!(print_with_locs(&kernel).contains(" : i32 @ k.tir:3:8-3:30\n"));
}

#[test]
fn names_that_are_no_identifiers_are_quoted() {
    let mut kernel = Kernel::new("a \"b\"\n\\");
    kernel.add_param("64", Type::scalar(Elem::I32), crate::ir::ParamKind::Scalar);
    let text = print(&kernel);
    assert_eq!(text, "kernel @\"a \\\"b\\\"\\n\\\\\"(%\"64\": i32) { stage = tile } {\n}\n");
    assert_eq!(parse(&text).expect("quoted names are read").name, kernel.name);
}

#[test]
fn layouts_stand_once_before_the_kernel() {
    let mut b = Builder::new("k");
    let layout = Layout::new(vec![64], vec![1], [2, 4, 8, 16, 32], vec![0]).expect("a layout");
    for _ in 0..2 {
        let value = b.emit(arange::Arange { len: 64, elem: Elem::I32 }.into(), vec![], Default::default())[0];
        b.kernel.values[value].layout = Some(layout.clone());
    }
    let shared = SharedLayout::swizzled(&[8, 64], &[1, 0], 2).expect("a shared layout");
    b.kernel.stage = Stage::LaidOut;
    let text = print(&b.kernel);
    assert_eq!(text.matches("layout {").count(), 1);
    assert_eq!(text.matches(": 64xi32 #0\n").count(), 2);
    // The layout in `EVERYTHING` is the one that the swizzle makes.
    assert!(print(&parse(EVERYTHING).expect("well formed")).contains(&format!("{:?}", shared.bases)));
}

fn message(text: &str) -> String {
    parse(text).expect_err("the text is refused").to_string()
}

#[test]
fn faults_name_the_line_and_column() {
    let cases = [
        ("", "expected `kernel`, found the end of the text\n  --> <text>:1:1"),
        ("kernel @k() {\n", "the attribute `stage` is missing\n  --> <text>:1:13"),
        ("kernel @k() { stage = tile } {\n  %0 = bad\n}", "there is no operation `bad`\n  --> <text>:2:8"),
        (
            "kernel @k() { stage = tile } {\n  %0 = bid : i32\n}",
            "the attribute `axis` is missing\n  --> <text>:2:8",
        ),
        ("kernel @k() { stage = tile } {\n  %0 = bid { axis = 0, y = 1 } : i32\n}", "no attribute `y`"),
        (
            "kernel @k() { stage = tile } {\n  %0 = neg %1 : i32\n}",
            "`%1` is never defined\n  --> <text>:2:12",
        ),
        ("kernel @k(%0: i32, %0: i32) { stage = tile } {\n}", "`%0` is defined twice\n  --> <text>:1:20"),
        ("kernel @k(%0: 4xi33) { stage = tile } {\n}", "found `4xi33`\n  --> <text>:1:15"),
        ("kernel @k(%0: i32 #2) { stage = tile } {\n}", "there is no layout `#2`"),
        ("kernel @k() { stage = late } {\n}", "the stage is `tile` or `laid_out`, found `late`"),
        ("kernel @k() { stage = tile } {\n} }", "expected the end of the text, found `}`\n  --> <text>:2:3"),
        ("kernel @k() { stage = tile } {\n  ;\n}", "`;` begins no token\n  --> <text>:2:3"),
        ("#0 = layout { shape = [3], reg = [], lane = [0, 0, 0, 0, 0], warp = [] }", "no layout"),
    ];
    for (text, expected) in cases {
        let found = message(text);
        assert!(found.contains(expected), "{found}\nlacks\n{expected}");
        assert!(found.starts_with("error[E0201]"), "{found}");
    }
}

#[test]
fn deep_nesting_is_refused() {
    let text = format!("kernel @k() {{ stage = tile }} {{ {}", "scope { ".repeat(100_000));
    assert!(message(&text).contains("nested more than 64 deep"));
}

#[test]
fn every_float_reads_back_bit_for_bit() {
    let bits = [0, 1, 1 << 63, 0x7ff0_0000_0000_0000, 0xfff0_0000_0000_0000, 0x7ff8_0000_0000_0000, u64::MAX];
    for bits in bits.into_iter().chain([0.1f64, 1e16, 1e-7, 123456789.125, f64::MAX].map(f64::to_bits)) {
        let mut b = Builder::new("k");
        let value = Literal::Float(bits);
        b.emit(constant::Constant { value, elem: Elem::F32 }.into(), vec![], Default::default());
        let again = parse(&print(&b.kernel)).expect("the text is well formed");
        again.walk(|_, op| {
            assert_eq!(op.kind, OpKind::Constant(constant::Constant { value, elem: Elem::F32 }), "{bits:#x}");
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_kernels_read_back(choices in prop::collection::vec(any::<u32>(), 0..80)) {
        let kernel = random_kernel(&choices);
        let text = print_with_locs(&kernel);
        let again = parse(&text).map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?;
        prop_assert_eq!(print_with_locs(&again), text);
        crate::ir::verify(&again).map_err(|e| TestCaseError::fail(format!("{e}\n{}", print(&again))))?;
    }

    /// Cuts, swaps and replaces characters: the outcome is a kernel or a diagnostic, and a kernel can be verified.
    #[test]
    fn broken_text_never_panics(
        choices in prop::collection::vec(any::<u32>(), 0..20),
        everything in any::<bool>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..4u8), 1..6),
        text in "[-%@#(){}\\[\\]<>,:=a-z0-9 \n.\"]{0,3}",
    ) {
        let original = if everything { EVERYTHING.to_string() } else { print_with_locs(&random_kernel(&choices)) };
        let mut chars: Vec<char> = original.chars().collect();
        for (a, b, edit) in edits {
            if chars.is_empty() {
                break;
            }
            let (a, b) = (a.index(chars.len()), b.index(chars.len()));
            match edit {
                0 => chars.swap(a, b),
                1 => { chars.splice(a..(a + 3).min(chars.len()), text.chars()); }
                2 => { chars.drain(a.min(b)..a.max(b).min(a.min(b) + 40)); }
                _ => { let part: Vec<char> = chars[a.min(b)..a.max(b).min(a.min(b) + 40)].to_vec(); chars.splice(a..a, part); }
            }
        }
        if let Ok(kernel) = parse(&chars.into_iter().collect::<String>()) {
            let printed = print(&kernel);
            let _ = crate::ir::verify(&kernel);
            if let Ok(again) = parse(&printed) {
                prop_assert_eq!(print(&again), printed);
            } else {
                prop_assert!(false, "{}", printed);
            }
        }
    }
}
