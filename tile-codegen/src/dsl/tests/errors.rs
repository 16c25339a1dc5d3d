//! Faults: their codes, their texts, and the user's code that they stand under.

use tile_macros::tile_fn;

use super::{faults, out, refused, staged};
use crate::diag::Code;
use crate::dsl::prelude::*;

/// Stages a function of one output and compares its faults.
fn expect(kernel: fn(TensorMut<f32, 1>), expected: &[(&str, &str)]) {
    let error = refused(|p| kernel(out(p)));
    let found = faults(&error);
    let found: Vec<_> = found.iter().map(|(text, at)| (text.as_str(), at.as_str())).collect();
    assert_eq!(found, expected);
}

#[tile_fn(crate = super::rt)]
fn shapes(out: TensorMut<f32, 1>) {
    let a = zeros::<f32>((16, 16));
    let b = zeros::<f32>((16, 32));
    let c = a * 2.0 + b;
    store(out, (0,), c);
}

#[test]
fn shapes_that_do_not_broadcast() {
    let text = "E0103: `add` of the shapes (16, 16) and (16, 32): the shapes (16, 16) and (16, 32) do not broadcast to \
                one: axis 1 is 16 and 32";
    expect(shapes, &[(text, "a * 2.0 + b")]);
}

#[tile_fn(crate = super::rt)]
fn dimensions(_out: TensorMut<f32, 1>) {
    let _ = zeros::<f32>((16, 48));
    let _ = arange::<i32>(-4);
    let t = ones::<f32>((4, 4));
    let _ = t.reshape((3, -1));
    let _ = sum(t, 2);
    let _ = t.max((0, -2));
    let _ = t.permute((0, 1, 2));
    let _ = t.extract((0, 2), (2, 2));
    let _ = t.item();
    let _ = bid(3);
    let _ = t.expand_dims(0).transpose();
}

#[test]
fn shape_rules() {
    expect(
        dimensions,
        &[
            (
                "E0101: a tile dimension must be a power of two, found 48 in (16, 48)",
                "zeros::<f32>((16, 48))",
            ),
            ("E0101: a tile dimension must be a power of two, found -4 in (-4,)", "arange::<i32>(-4)"),
            ("E0101: a tile dimension must be a power of two, found 3 in (3, -1)", "reshape((3, -1))"),
            ("E0105: axis 2 of a tile of rank 2: axes are 0 to 1", "sum(t, 2)"),
            ("E0105: axis 0 is named twice", "max((0, -2))"),
            ("E0108: `permute` of a tile of rank 2 needs 2 axes, found 3", "permute((0, 1, 2))"),
            (
                "E0109: `extract` reaches outside axis 1: sub-tile 2 of size 2 in a dimension of 4",
                "extract((0, 2), (2, 2))",
            ),
            ("E0104: `item` of a tile of shape (4, 4), which has 16 elements", "item()"),
            ("E0105: a grid has axes 0, 1 and 2, found 3", "bid(3)"),
            ("E0108: `transpose` of a tile of rank 3, expected rank 2", "transpose()"),
        ],
    );
}

#[tile_fn(crate = super::rt)]
fn carried(out: TensorMut<f32, 1>) {
    let mut acc = zeros::<f32>((1, 4));
    for _ in 0..4 {
        acc = acc + ones((8, 4));
    }
    let mut q = acc;
    if bid(0) == 1 {
        q = q.reshape((4, 1));
    }
    store(out, (0,), q);
}

#[test]
fn variables_keep_their_types() {
    let error = refused(|p| carried(out(p)));
    let found = faults(&error);
    let text = "E0110: a variable changes its type in a loop: a `f32` tile of shape (1, 4) before, a `f32` tile of shape \
                (8, 4) after";
    assert_eq!(found[0], (text.to_string(), "acc = acc + ones((8, 4))".to_string()));
    let text = "E0110: a variable changes its type in a branch: a `f32` tile of shape (1, 4) before, a `f32` tile of \
                shape (4, 1) after";
    assert_eq!(found[1], (text.to_string(), "q = q.reshape((4, 1))".to_string()));
}

#[tile_fn(crate = super::rt)]
fn host_panic(_out: TensorMut<f32, 1>) {
    let sizes = [16, 32];
    let which = sizes.len();
    let _ = zeros::<f32>((sizes[which], 16));
}

#[test]
fn host_panics_become_faults() {
    let error = refused(|p| host_panic(out(p)));
    let first = error.diagnostics.iter().next().unwrap();
    assert_eq!(first.code, Code::HostPanic);
    assert_eq!(
        first.message,
        "host code of the kernel panicked: index out of bounds: the len is 2 but the index is 2"
    );
    assert!(first.loc.as_ref().is_some_and(|loc| loc.file.ends_with("errors.rs")));
    // The next kernel of this thread is not disturbed.
    staged(|p| store(out::<f32>(p), (0,), 1.0));
}

#[tile_fn(crate = super::rt)]
fn literals(_out: TensorMut<f32, 1>) {
    let _ = zeros::<i32>((4,)) + 3_000_000_000usize;
    let _ = zeros::<u32>((4,)) * -1;
}

#[test]
fn literals_out_of_range() {
    expect(
        literals,
        &[
            (
                "E0113: the literal `3000000000` is no value of `i32`",
                "zeros::<i32>((4,)) + 3_000_000_000usize",
            ),
            ("E0113: the literal `-1` is no value of `u32`", "zeros::<u32>((4,)) * -1"),
        ],
    );
}

#[tile_fn(crate = super::rt)]
fn unrolled_jump(out: TensorMut<f32, 1>) {
    let mut t = zeros::<f32>((1,));
    for i in unroll(0..4) {
        if bid(0) == i {
            break;
        }
        t += 1.0;
    }
    store(out, (0,), t);
}

#[test]
fn an_unrolled_loop_cannot_stop_at_run_time() {
    let text = "E0111: a jump out of a loop or closure that runs while the kernel is built stands under a runtime condition";
    let error = refused(|p| unrolled_jump(out(p)));
    assert_eq!(faults(&error).iter().map(|f| f.0.as_str()).collect::<Vec<_>>(), [text]);
}

#[tile_fn(crate = super::rt)]
fn question_mark(c: Scalar<bool>, x: Option<Tile<f32>>) -> Option<Tile<f32>> {
    let y = if c { x? * 2.0 } else { zeros((1,)) };
    Some(y + 1.0)
}

#[test]
fn leaving_a_runtime_if_by_a_question_mark() {
    let error = refused(|p| {
        let _ = question_mark(p.scalar("c"), None);
    });
    assert_eq!(faults(&error)[0].0, "E0111: host code leaves this `if` before it ends");
    staged(|p| {
        let y = question_mark(p.scalar("c"), Some(ones((1,)))).unwrap();
        store(out::<f32>(p), (0,), y);
    });
}

#[test]
fn products_that_do_not_fit() {
    let error = refused(|_| {
        let _ = mma(zeros::<bf16>((16, 32)), zeros((16, 8)), zeros((16, 8)));
    });
    let first = error.diagnostics.iter().next().unwrap();
    assert_eq!(first.code, Code::MmaShape);
    assert!(first.loc.as_ref().is_some_and(|loc| loc.file.ends_with("errors.rs")));
}

#[test]
fn a_fault_silences_its_consequences() {
    let error = refused(|p| {
        let bad = zeros::<f32>((3,));
        let worse = (bad + 1.0).exp2().sum(0).expand_dims(0) * ones((2, 2));
        store(out::<f32>(p), (0,), worse);
        let _ = zeros::<f32>((bad.shape()[0],));
    });
    assert_eq!(error.diagnostics.iter().map(|d| d.code).collect::<Vec<_>>(), [Code::TileDimension]);
}

#[test]
fn values_of_another_kernel() {
    let mut kept = None;
    staged(|_| kept = Some(bid(0)));
    let error = refused(|p| store(out::<i32>(p), (0,), kept.unwrap() + 1));
    assert_eq!(error.diagnostics.iter().map(|d| d.code).collect::<Vec<_>>(), [Code::Staging]);
}

#[test]
fn operations_outside_a_kernel_say_so() {
    let panic = std::thread::spawn(crate::dsl::tests::quiet_bid).join().unwrap();
    assert!(panic.contains("inside a kernel only"), "{panic}");
}

#[test]
fn faults_show_the_users_lines() {
    let text = refused(|p| shapes(out(p))).to_string();
    assert!(text.contains("let c = a * 2.0 + b;"), "{text}");
    assert!(text.contains("^^^^^^^^^^^"), "{text}");
}

#[tile_fn(crate = super::rt)]
fn bad_steps(out: TensorMut<f32, 1>, step: i32) {
    let mut n = 0.0;
    for _ in (0..8).step_by(step) {
        n += 1.0;
    }
    store(out, (0,), n);
}

#[test]
fn loops_count_upwards() {
    for step in [0, -2] {
        let error = refused(|p| bad_steps(out(p), step));
        let text = format!("E0111: a loop counts upwards by its step, found {step}");
        assert_eq!(faults(&error), [(text, "for _ in (0..8).step_by(step)".to_string())]);
    }
    staged(|p| bad_steps(out(p), 3));
}

#[tile_fn(crate = super::rt)]
fn returned(x: Tile<f32>, c: Scalar<bool>) -> Tile<f32> {
    if c {
        return x;
    }
    x.expand_dims(0)
}

#[tile_fn(crate = super::rt)]
fn returned_number(c: Scalar<bool>) -> usize {
    if c {
        return 1;
    }
    2
}

#[test]
fn returns_agree() {
    let error = refused(|p| {
        let c = p.scalar("c");
        let _ = returned(ones((4,)), c);
        let _ = returned_number(c);
    });
    let found: Vec<_> = error.diagnostics.iter().map(|d| (d.code, d.message.clone())).collect();
    let shapes = "a function returns a `f32` tile of shape (4,) first and a `f32` tile of shape (1, 4) here";
    assert_eq!(found[0], (Code::Carried, shapes.to_string()));
    assert_eq!(found[1].0, Code::Staging);
}
