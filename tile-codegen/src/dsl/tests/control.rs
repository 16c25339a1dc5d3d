//! Loops, branches and early returns.

use tile_macros::tile_fn;

use super::{names, out, run_floats, run_ints, staged};
use crate::dsl::prelude::*;

#[tile_fn(crate = super::rt)]
fn jumps(out: TensorMut<i32, 1>, n: Scalar<i32>) {
    let mut s = 0;
    for i in 0..10 {
        if i == 3 {
            continue;
        }
        if i == n {
            break;
        }
        s += i;
    }
    store(out, (0,), s);
}

#[test]
fn break_and_continue() {
    let kernel = staged(|p| jumps(out(p), p.scalar("n")));
    for (n, sum) in [(0, 0), (2, 1), (5, 7), (99, 42)] {
        assert_eq!(run_ints(&kernel, 1, 1, &[n]), [sum], "n = {n}");
    }
}

#[tile_fn(crate = super::rt)]
fn literal_arms(out: TensorMut<f32, 1>) {
    let c = bid(0);
    let v = if c == 0 {
        1.0
    } else if c == 1 {
        0.5
    } else {
        0.0
    };
    store(out, (c,), v);
}

#[test]
fn literal_arms_follow_the_runtime_condition() {
    let kernel = staged(|p| literal_arms(out(p)));
    assert_eq!(run_floats(&kernel, 3, 3), [1.0, 0.5, 0.0]);
}

#[tile_fn(crate = super::rt)]
fn mixed_arms(out: TensorMut<f32, 1>) {
    let c = bid(0);
    let z = full::<f32>((2,), 3.0);
    let (a, b) = if c == 0 { (z + 1.0, 7.0) } else { (z, 8.0) };
    let u = if c == 0 { a } else { 2.0 };
    store(out, (c,), u * b);
}

#[test]
fn tile_and_literal_arms_join() {
    let kernel = staged(|p| mixed_arms(out(p)));
    assert_eq!(run_floats(&kernel, 2, 4), [28.0, 28.0, 16.0, 16.0]);
}

#[tile_fn(crate = super::rt)]
fn changed_under_if(out: TensorMut<i32, 1>, stop: Scalar<i32>) {
    let mut c = bid(0);
    for i in 0..stop {
        if c > i {
            c -= i + 1;
        }
    }
    store(out, (bid(0),), c);
}

#[test]
fn variable_changed_under_an_if_in_a_loop() {
    let kernel = staged(|p| changed_under_if(out(p), p.scalar("stop")));
    assert_eq!(run_ints(&kernel, 4, 4, &[1]), [0, 0, 1, 2]);
}

#[tile_fn(crate = super::rt)]
fn whiles(out: TensorMut<i32, 1>, n: Scalar<i32>) {
    let mut k = 0;
    while k < n && k != 7 {
        k += 1;
    }
    let mut s = 0;
    loop {
        s += k;
        if s >= 20 || s == 0 {
            break;
        }
    }
    store(out, (0,), k);
    store(out, (1,), s);
}

#[test]
fn while_and_loop() {
    let kernel = staged(|p| whiles(out(p), p.scalar("n")));
    assert_eq!(run_ints(&kernel, 1, 2, &[3]), [3, 21]);
    assert_eq!(run_ints(&kernel, 1, 2, &[100]), [7, 21]);
    assert_eq!(run_ints(&kernel, 1, 2, &[0]), [0, 0]);
}

#[tile_fn(crate = super::rt)]
fn both_arms_jump(out: TensorMut<i32, 1>, n: Scalar<i32>) {
    let mut s = 0;
    for i in 0..100 {
        s += i;
        if i != 4 {
            if i < n {
                continue;
            } else {
                s += 1000;
                break;
            }
        }
        s += 10;
    }
    store(out, (0,), s);
}

#[test]
fn an_arm_that_only_jumps_leave_is_ended() {
    let kernel = staged(|p| both_arms_jump(out(p), p.scalar("n")));
    assert_eq!(run_ints(&kernel, 1, 1, &[2]), [1003]);
    assert_eq!(run_ints(&kernel, 1, 1, &[6]), [1031]);
}

#[tile_fn(crate = super::rt)]
fn steps(out: TensorMut<i32, 1>, n: Scalar<i32>, high: usize) {
    let (mut a, mut b, mut c) = (0, 0, 0);
    for _ in (0..n).step_by(2) {
        a += 1;
    }
    for _ in 7..high {
        b += 1;
    }
    for i in unroll(0..high) {
        c += i;
    }
    store(out, (0,), a);
    store(out, (1,), b);
    store(out, (2,), c);
}

#[test]
fn steps_and_bounds() {
    let kernel = staged(|p| steps(out(p), p.scalar("n"), 4));
    for (n, rounds) in [(0, 0), (1, 1), (2, 1), (5, 3)] {
        assert_eq!(run_ints(&kernel, 1, 3, &[n]), [rounds, 0, 6]);
    }
}

#[tile_fn(crate = super::rt)]
fn early(x: Tile<i32>, c: Scalar<bool>, host: bool) -> Tile<i32> {
    if host {
        return x + 100;
    }
    if c {
        return x * 2;
    }
    let y = x + 1;
    y
}

#[tile_fn(crate = super::rt)]
fn early_kernel(out: TensorMut<i32, 1>, host: bool) {
    let i = bid(0);
    if i >= 3 {
        return;
    }
    let x = full((1,), i);
    store(out, (i,), early(x, i == 1, host));
}

#[test]
fn early_returns() {
    let kernel = staged(|p| early_kernel(out(p), false));
    assert_eq!(run_ints(&kernel, 5, 5, &[]), [1, 2, 3, -1, -1]);
    let kernel = staged(|p| early_kernel(out(p), true));
    assert_eq!(run_ints(&kernel, 5, 5, &[]), [100, 101, 102, -1, -1]);
    assert_eq!(names(&kernel).iter().filter(|n| **n == "scope").count(), 1, "a host `return` needs no scope");
}

#[tile_fn(crate = super::rt)]
fn nested_returns(x: Tile<i32>, a: Scalar<bool>, b: Scalar<bool>) -> Tile<i32> {
    let mut y = x;
    if a {
        y = y + 1;
        if b {
            return y * 10;
        } else {
            return y * 20;
        }
    } else if b {
        y = y + 2;
    }
    y * 30
}

#[test]
fn an_arm_that_only_returns_leave_is_ended() {
    let kernel = staged(|p| {
        let i = bid(0);
        let (a, b) = ((i & 1).cast::<bool>(), (i & 2).cast::<bool>());
        store(out::<i32>(p), (i,), nested_returns(ones((1,)), a, b));
    });
    assert_eq!(run_ints(&kernel, 4, 4, &[]), [30, 40, 90, 20]);
}

#[tile_fn(crate = super::rt)]
fn one_arm_jumps(out: TensorMut<i32, 1>, n: Scalar<i64>) {
    let mut s = 0;
    for i in 0..n {
        let x = if i == 2 {
            s += 100;
            continue;
        } else {
            i as i32 + 1
        };
        s += x;
    }
    store(out, (0,), s);
}

#[test]
fn the_value_of_an_if_with_one_jumping_arm() {
    let kernel = staged(|p| {
        let n = p.scalar::<i32>("n");
        one_arm_jumps(out(p), n.cast());
    });
    let values = {
        use crate::cpu::{Arg, Program, TileValue, VecMemory, run_grid};
        use crate::ir::Elem;
        let sums = VecMemory::ints(Elem::I32, &[-1]);
        let args = [Arg::Scalar(TileValue::scalar(Elem::I32, 5i32)), Arg::Tensor(sums.tensor(&[1]))];
        run_grid(&Program::new(&kernel).unwrap(), [1, 1, 1], &args).unwrap();
        sums.to_ints()
    };
    assert_eq!(values, [112]);
}

#[tile_fn(crate = super::rt)]
fn vectors(out: TensorMut<i32, 1>, n: Scalar<i32>) {
    let mut sums = vec![zeros::<i32>((1,)); 3];
    let mut pair = (scalar(1), scalar(1));
    for i in 0..n {
        for j in unroll(0..3usize) {
            sums[j] += i * j;
        }
        pair = (pair.1, pair.0 + pair.1);
    }
    for j in unroll(0..3usize) {
        store(out, (j,), sums[j]);
    }
    store(out, (3,), pair.0);
}

#[test]
fn vectors_and_tuples_are_carried() {
    let kernel = staged(|p| vectors(out(p), p.scalar("n")));
    assert_eq!(run_ints(&kernel, 1, 4, &[5]), [0, 10, 20, 8]);
    assert_eq!(run_ints(&kernel, 1, 4, &[0]), [0, 0, 0, 1]);
}

#[tile_fn(crate = super::rt)]
fn host_branches(out: TensorMut<i32, 1>, scale: Option<i32>, twice: bool) {
    let mut t = ones::<i32>((1,));
    let mut count: usize = 1;
    if twice {
        count = 2;
    }
    if let Some(scale) = scale {
        t = t * scale;
    }
    let more = if twice && count == 2 { 5 } else { 0 };
    store(out, (0,), t * count + more);
}

#[test]
fn host_conditions_decide_while_staging() {
    let kernel = staged(|p| host_branches(out(p), Some(10), true));
    assert_eq!(run_ints(&kernel, 1, 1, &[]), [25]);
    assert!(!names(&kernel).contains(&"if"));
    assert_eq!(run_ints(&staged(|p| host_branches(out(p), None, false)), 1, 1, &[]), [1]);
}

#[tile_fn(crate = super::rt)]
fn logic(out: TensorMut<i32, 1>, host: bool) {
    let (a, b) = (bid(0) % 2 == 1, bid(0) / 2 == 1);
    let bit = |c: Scalar<bool>, n: i32| c.cast::<i32>() << n;
    let all =
        bit(a && b, 0) | bit(a || b, 1) | bit(!a, 2) | bit(a ^ b, 3) | bit(host && a, 4) | bit(host || b, 5);
    store(out, (bid(0),), all);
}

#[test]
fn truth_tables() {
    // Bits: a && b, a || b, !a, a ^ b, host && a, host || b, for (a, b) = 00, 10, 01, 11.
    let without = staged(|p| logic(out(p), false));
    assert_eq!(run_ints(&without, 4, 4, &[]), [0b000100, 0b001010, 0b101110, 0b100011]);
    let with = staged(|p| logic(out(p), true));
    assert_eq!(run_ints(&with, 4, 4, &[]), [0b100100, 0b111010, 0b101110, 0b110011]);
}

#[tile_fn(crate = super::rt)]
fn neighbours(x: Tensor<i32, 1>, out: TensorMut<i32, 1>) {
    let mut n = 0;
    for i in 0..3 {
        if i == 0 || load_scalar(x, (i - 1,)) != load_scalar(x, (i,)) {
            n += 1;
        }
    }
    store(out, (0,), n);
}

#[test]
fn or_does_not_read_outside() {
    use crate::cpu::{Arg, Program, VecMemory, run_grid};
    use crate::ir::Elem;
    let kernel = staged(|p| neighbours(p.tensor("x", super::facts(1)), out(p)));
    let x = VecMemory::ints(Elem::I32, &[5, 5, 7]);
    let sums = VecMemory::ints(Elem::I32, &[-1]);
    let args = [Arg::Tensor(x.tensor(&[3])), Arg::Tensor(sums.tensor(&[1]))];
    run_grid(&Program::new(&kernel).unwrap(), [1, 1, 1], &args).unwrap();
    assert_eq!(sums.to_ints(), [2]);
}
