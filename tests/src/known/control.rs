//! Control flow: literal arms, short circuits, jumps, steps, loops without iterations.

use tile_runtime::prelude::*;

use super::{result, tensor};

super::cases! {
    literal_arms short_circuits truth_tables jumps scalars_under_if steps short_loops races bool_loops blocks_once
    large_grid
}

#[tile_kernel]
fn arms(out: TensorMut<f32, 1>) {
    let c = bid(0) == 0;
    let v = if c { 1.0 } else { 0.0 };
    store(out, (bid(0),), v);
    let t = if c { full((1,), 5.0) } else { zeros((1,)) };
    store(out, (bid(0) + 3,), t);
    let w = if c {
        1.5
    } else if bid(0) == 1 {
        2.5
    } else {
        3.5
    };
    store(out, (bid(0) + 6,), w);
}

/// L13: arms that are literals obey the runtime condition.
fn literal_arms(device: &Device) {
    let found = result(device, &[9], 3, |out, grid| arms(out).launch(grid));
    assert_eq!(found, [1.0, 0.0, 0.0, 5.0, 0.0, 0.0, 1.5, 2.5, 3.5]);
}

#[tile_kernel]
fn changes(x: Tensor<i32, 1>, out: TensorMut<i32, 1>) {
    let mut n = 0;
    for i in 0..x.dim(0) {
        if i == 0 || load_scalar(x, (i - 1,)) != load_scalar(x, (i,)) {
            n += 1;
        }
    }
    store(out, (0,), n);
}

/// L14: the right side of `||` may look outside the tensor; it reads the padding, not memory before it.
fn short_circuits(device: &Device) {
    let x = tensor(device, &[3], &[5, 5, 7]);
    assert_eq!(result(device, &[1], 1, |out, grid| changes(&x, out).launch(grid)), [2]);
}

#[tile_kernel]
fn truth(out: TensorMut<bool, 1>, a: Scalar<bool>, b: Scalar<bool>) {
    store(out, (0,), full((1,), a && b));
    store(out, (1,), full((1,), a || b));
    store(out, (2,), full((1,), !a));
    store(out, (3,), full((1,), a ^ b));
    let (s, t) = (full((1,), a), full((1,), b));
    store(out, (4,), s && t);
    store(out, (5,), s || t);
    store(out, (6,), !s);
    store(out, (7,), s ^ t);
}

/// L14: every entry of the truth tables, on scalars and tiles.
fn truth_tables(device: &Device) {
    for (a, b) in [(false, false), (false, true), (true, false), (true, true)] {
        let row = [a && b, a || b, !a, a ^ b];
        assert_eq!(result(device, &[8], 1, |out, grid| truth(out, a, b).launch(grid)), [row, row].concat());
    }
}

#[tile_kernel]
fn sum_with_jumps(out: TensorMut<i32, 1>, n: Scalar<i32>) {
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

/// L15: values carried by `break` and `continue`.
fn jumps(device: &Device) {
    for (n, expected) in [(0, 0), (2, 1), (5, 7), (99, 42)] {
        assert_eq!(result(device, &[1], 1, |out, grid| sum_with_jumps(out, n).launch(grid)), [expected]);
    }
}

#[tile_kernel]
fn lowered(out: TensorMut<i32, 1>, stop: Scalar<i32>) {
    let mut c = bid(0);
    for i in 0..stop {
        if c > i {
            c -= i + 1;
        }
    }
    store(out, (bid(0),), c);
}

/// L17: a scalar that only an `if` inside a loop changes.
fn scalars_under_if(device: &Device) {
    assert_eq!(result(device, &[4], 4, |out, grid| lowered(out, 1).launch(grid)), [0, 0, 1, 2]);
}

#[tile_kernel]
fn stepped(out: TensorMut<i32, 1>, low: Scalar<i32>, n: Scalar<i32>, fixed: Const<i32>) {
    let (mut a, mut b) = (0, 0);
    for _ in (low..n).step_by(2) {
        a += 1;
    }
    for _ in (0..fixed).step_by(2) {
        b += 1;
    }
    store(out, (0,), a);
    store(out, (1,), b);
}

/// L48: loops with a step, also without an iteration.
fn steps(device: &Device) {
    for (n, expected) in [(0, 0), (1, 1), (2, 1), (5, 3)] {
        assert_eq!(
            result(device, &[2], 1, |out, grid| stepped(out, 0, n, n).launch(grid)),
            [expected, expected],
            "{n}"
        );
    }
    assert_eq!(result(device, &[2], 1, |out, grid| stepped(out, 7, 3, 0).launch(grid)), [0, 0]);
    assert_eq!(result(device, &[2], 1, |out, grid| stepped(out, 7, 8, 0).launch(grid)), [1, 0]);
}

#[tile_kernel]
fn products(a: Tensor<f32, 2>, b: Tensor<f32, 2>, out: TensorMut<f32, 2>, low: Scalar<i32>, n: Scalar<i32>) {
    let mut acc = ones::<f32>((16, 16));
    for k in low..n {
        let (s, t) = (load(a, (0, k), (16, 16)), load(b, (k, 0), (16, 16)));
        acc = mma(s.cast::<bf16>(), t.cast::<bf16>(), acc);
    }
    store(out, (0, 0), acc);
}

/// L02: loops of fewer iterations than any pipeline has stages; memory beyond the tensors is poisoned.
fn short_loops(device: &Device) {
    for n in 0..5_usize {
        let memory = vec![f32::NAN; 16 * 200];
        let (a, b) = (tensor(device, &[16, 200], &memory), tensor(device, &[200, 16], &memory));
        let (a, b) = (a.slice(1, 0..16 * n).expect("inside"), b.slice(0, 0..16 * n).expect("inside"));
        if n > 0 {
            a.fill(1.0).expect("fits");
            b.fill(1.0).expect("fits");
        }
        let found = result(device, &[16, 16], 1, |out, grid| products(&a, &b, out, 0, n as i32).launch(grid));
        assert!(found.iter().all(|&y| y == 1.0 + 16.0 * n as f32), "{n}: {found:?}");
    }
    let (a, b) = (tensor(device, &[16, 128], &[1.0; 2048]), tensor(device, &[128, 16], &[1.0; 2048]));
    let found = result(device, &[16, 16], 1, |out, grid| products(&a, &b, out, 7, 8).launch(grid));
    assert_eq!(found, [17.0; 256]);
}

#[tile_kernel]
fn exchanged(x: Tensor<f32, 2>, out: TensorMut<f32, 2>, go: Scalar<bool>, n: Const<usize>) {
    if go {
        let mut y = cumsum(load(x, (0, 0), (n, n)), 0).transpose();
        for _ in 0..3 {
            y = y + y.transpose();
        }
        store(out, (0, 0), y);
    }
}

/// L07: barriers under a branch and in a loop, on tiles that do not fill the tensor; every run gives the same.
fn races(device: &Device) {
    for size in [48_usize, 40] {
        let x: Vec<f32> = (0..size * size).map(|i| (i % 7) as f32).collect();
        let at = |i: usize, j: usize| x[i * size + j];
        let mut y = vec![vec![0.0; 64]; 64];
        for (j, row) in y.iter_mut().enumerate().take(size) {
            let mut sum = 0.0;
            for (i, entry) in row.iter_mut().enumerate() {
                sum += if i < size { at(i, j) } else { 0.0 };
                *entry = sum;
            }
        }
        for _ in 0..3 {
            y = (0..64).map(|i| (0..64).map(|j| y[i][j] + y[j][i]).collect()).collect();
        }
        let expected: Vec<f32> = (0..size * size).map(|i| y[i / size][i % size]).collect();
        let x = tensor(device, &[size, size], &x);
        for _ in 0..if device.is_cuda() { 200 } else { 2 } {
            assert_eq!(
                result(device, &[size, size], 1, |out, grid| exchanged(&x, out, true, 64).launch(grid)),
                expected
            );
        }
        assert_eq!(
            result(device, &[size, size], 1, |out, grid| exchanged(&x, out, false, 64).launch(grid)),
            vec![0.0; size * size]
        );
    }
}

#[tile_kernel]
fn any_of(x: Tensor<bool, 2>, out: TensorMut<bool, 1>, numbers: TensorMut<i32, 1>) {
    let mut any = zeros::<bool>((1, 8));
    for row in 0..x.dim(0) {
        any = any | load(x, (row, 0), (1, 8));
    }
    store(out, (0,), any.reshape((8,)));
    store(numbers, (0,), where_(any.reshape((8,)), 1, 0));
}

/// L51: loaded truth values stay truth values.
fn bool_loops(device: &Device) {
    let x: Vec<bool> = (0..24).map(|i| i % 5 == 0).collect();
    let expected: Vec<bool> = (0..8).map(|j| (0..3).any(|i| x[i * 8 + j])).collect();
    let x = tensor(device, &[3, 8], &x);
    let mut numbers = DeviceTensor::zeros(device, &[8]).expect("fits");
    assert_eq!(result(device, &[8], 1, |out, grid| any_of(&x, out, &mut numbers).launch(grid)), expected);
}

#[tile_kernel]
fn mark(out: TensorMut<i32, 2>) {
    let old = load(out, (bid(1), bid(0)), (1, 1));
    store(out, (bid(1), bid(0)), old + bid(0) * 100 + bid(1) + 1);
}

/// L54: every block of a grid runs once.
fn blocks_once(device: &Device) {
    for (x, y) in [(1, 1), (7, 5), (9, 13), (17, 1)] {
        let found = result(device, &[y, x], (x, y), |out, grid| mark(out).launch(grid));
        let expected: Vec<i32> = (0..x * y).map(|i| (i % x * 100 + i / x + 1) as i32).collect();
        assert_eq!(found, expected);
    }
}

#[tile_kernel]
fn mark_depth(out: TensorMut<i32, 2>) {
    store(out, (bid(1), bid(2)), bid(1) - bid(2));
}

/// L22: axes 1 and 2 of a grid may pass 65535.
fn large_grid(device: &Device) {
    let found = result(device, &[70_000, 1], (1, 70_000, 1), |out, grid| mark_depth(out).launch(grid));
    assert!(found.iter().enumerate().all(|(i, &y)| y == i as i32));
    let found = result(device, &[1, 70_000], (1, 1, 70_000), |out, grid| mark_depth(out).launch(grid));
    assert!(found.iter().enumerate().all(|(i, &y)| y == -(i as i32)));
}
