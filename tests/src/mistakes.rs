//! Faulty kernels, one mistake each, and what is said of them.

use tile_runtime::Error;
use tile_runtime::prelude::*;

#[tile_kernel]
fn odd_tile(out: TensorMut<f32, 1>) {
    store(out, (bid(0),), zeros::<f32>((48,)));
}

#[tile_kernel]
fn shapes_apart(x: Tensor<f32, 1>, out: TensorMut<f32, 1>) {
    let row = load(x, (0,), (16,));
    let long = load(x, (0,), (32,));
    store(out, (0,), row + long);
}

#[tile_kernel]
fn other_count(x: Tensor<f32, 1>, out: TensorMut<f32, 1>) {
    let t = load(x, (0,), (64,)).reshape((4, 8));
    store(out, (0,), t.sum(0));
}

#[tile_kernel]
fn axis_astray(x: Tensor<f32, 2>, out: TensorMut<f32, 1>) {
    let t = load(x, (0, 0), (8, 8));
    store(out, (0,), t.sum(2));
}

#[tile_kernel]
fn product_of_misfits(x: Tensor<bf16, 2>, out: TensorMut<f32, 2>) {
    let a = load(x, (0, 0), (16, 32));
    let p = mma(a, a, zeros((16, 32)));
    store(out, (0, 0), p);
}

#[tile_kernel]
fn growing(out: TensorMut<f32, 2>, n: Scalar<i32>) {
    let mut t = zeros::<f32>((1, 8));
    for _ in 0..n {
        t = t + ones::<f32>((4, 8));
    }
    store(out, (0, 0), t);
}

#[tile_kernel]
fn literal_too_large(out: TensorMut<i32, 1>) {
    store(out, (0,), zeros::<i32>((4,)) + 3_000_000_000_i64);
}

#[tile_kernel]
fn panics(out: TensorMut<f32, 1>, pick: Const<usize>) {
    let sizes = [16, 32];
    store(out, (0,), zeros::<f32>((sizes[pick],)));
}

#[tile_kernel]
fn outside_the_tile(x: Tensor<f32, 2>, out: TensorMut<f32, 2>) {
    store(out, (0, 0), load(x, (0, 0), (8, 8)).extract((0, 2), (8, 4)));
}

#[tile_kernel]
fn two_mistakes(x: Tensor<f32, 2>, out: TensorMut<f32, 2>) {
    let t = load(x, (0, 0), (8, 8));
    let column = t.sum_keepdims(-3);
    let spread = t.broadcast_to((4, 8, 16));
    store(out, (0, 0), column * spread.sum(0));
}

/// What is said of each faulty kernel, by the kernel's name.
///
/// # Panics
/// If a kernel is accepted.
pub fn rendered() -> Vec<(&'static str, String)> {
    fn meta<T: HostElement>(shape: &[usize]) -> DeviceTensor<T> {
        DeviceTensor::meta(shape).expect("a small shape")
    }
    fn text(launch: Launch<'_>) -> String {
        match launch.stage() {
            Err(error @ Error::Kernel(_)) => error.to_string(),
            other => panic!("expected a fault of the kernel, found {other:?}"),
        }
    }
    let (one, two, half) = (meta(&[64]), meta(&[64, 64]), meta(&[64, 64]));
    let (mut out, mut wide, mut ints) = (meta(&[64]), meta(&[64, 64]), meta(&[64]));
    vec![
        ("odd_tile", text(odd_tile(&mut out))),
        ("shapes_apart", text(shapes_apart(&one, &mut out))),
        ("other_count", text(other_count(&one, &mut out))),
        ("axis_astray", text(axis_astray(&two, &mut out))),
        ("product_of_misfits", text(product_of_misfits(&half, &mut wide))),
        ("growing", text(growing(&mut wide, 3))),
        ("literal_too_large", text(literal_too_large(&mut ints))),
        ("panics", text(panics(&mut out, 2))),
        ("outside_the_tile", text(outside_the_tile(&two, &mut wide))),
        ("two_mistakes", text(two_mistakes(&two, &mut wide))),
    ]
}
