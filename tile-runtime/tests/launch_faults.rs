//! What a launch refuses, in which words; faults in kernels; code without data.

use tile_runtime::prelude::*;

#[tile_kernel]
fn add(x: Tensor<f32, 1>, y: Tensor<f32, 1>, out: TensorMut<f32, 1>, block: Const<usize>) {
    let i = bid(0);
    let sum = load(x, (i,), (block,)) + load(y, (i,), (block,));
    store(out, (i,), sum);
}

fn zeros(shape: &[usize]) -> DeviceTensor<f32> {
    DeviceTensor::zeros(&Device::cpu(), shape).expect("fits")
}

fn meta(shape: &[usize]) -> DeviceTensor<f32> {
    DeviceTensor::meta(shape).expect("63 bits")
}

/// The error's words, each of which must be there.
#[track_caller]
fn refused(result: Result<()>, words: &[&str]) -> Error {
    let error = result.expect_err("this is refused");
    let text = error.to_string();
    words.iter().for_each(|word| assert!(text.contains(word), "{word:?} is missing in: {text}"));
    error
}

#[test]
fn a_tensor_of_another_rank() {
    let (x, y, mut out) = (zeros(&[2, 3]), zeros(&[6]), zeros(&[6]));
    let words = ["argument `x` of kernel `add`", "rank 2 (shape [2, 3])", "Tensor<f32, 1>", "reshape()"];
    let error = refused(add(&x, &y, &mut out, 8).launch(1), &words);
    assert!(matches!(error, Error::Argument { .. }));
    let mut out = zeros(&[6, 1]);
    refused(add(&y, &y, &mut out, 8).launch(1), &["argument `out`", "TensorMut<f32, 1>"]);
}

#[test]
fn a_tensor_of_rank_zero_or_above_five() {
    #[tile_kernel]
    fn six(x: Tensor<f32, 6>) {
        let _ = x;
    }
    refused(six(&zeros(&[1; 6])).launch(1), &["argument `x` of kernel `six`", "1 to 5 axes"]);
    refused(add(&zeros(&[]), &zeros(&[1]), &mut zeros(&[1]), 1).launch(1), &["argument `x`", "rank 0"]);
    refused(add(&zeros(&[1; 7]), &zeros(&[1]), &mut zeros(&[1]), 1).launch(1), &["argument `x`", "rank 7"]);
}

#[test]
fn tensors_of_two_devices() {
    let (x, y, mut out) = (zeros(&[8]), meta(&[8]), zeros(&[8]));
    let words = ["argument `y` of kernel `add`", "found device meta", "expected device cpu", "to_device()"];
    let error = refused(add(&x, &y, &mut out, 8).launch(1), &words);
    assert!(matches!(error, Error::DeviceMismatch { .. }));
    let stream = Device::meta().default_stream();
    let words = ["the arguments of kernel `add`", "found device cpu", "expected device meta"];
    refused(add(&x, &x, &mut out, 8).on(&stream).launch(1), &words);
}

#[test]
fn a_written_tensor_that_overlaps_another() {
    let x = zeros(&[16]);
    let (a, mut b) = (x.slice(0, 0..9).expect("inside"), x.slice(0, 8..16).expect("inside"));
    let words = ["argument `out` of kernel `add`", "overlaps argument `y`", "pass a copy"];
    refused(add(&zeros(&[8]), &a, &mut b, 8).launch(1), &words);

    #[tile_kernel]
    fn two(a: TensorMut<f32, 1>, b: TensorMut<f32, 1>) {
        let _ = (a, b);
    }
    let (mut a, mut b) = (x.clone(), x.clone());
    refused(two(&mut a, &mut b).launch(1), &["argument `a` of kernel `two`", "overlaps argument `b`"]);
    // Reading one tensor twice is fine, and so are disjoint parts.
    let (first, mut second) = (x.slice(0, 0..8).expect("inside"), x.slice(0, 8..16).expect("inside"));
    add(&first, &first, &mut second, 8).launch(1).expect("disjoint");
}

#[test]
fn a_written_broadcast_view() {
    let (x, one) = (zeros(&[8]), zeros(&[1]));
    let mut out = one.broadcast_to(&[8]).expect("an axis of extent 1");
    let words = ["argument `out` of kernel `add`", "two indices may name one element", "strides [0]"];
    refused(add(&x, &x, &mut out, 8).launch(1), &words);
    // Reading one is fine.
    add(&out, &x, &mut zeros(&[8]), 8).launch(1).expect("read only");
}

#[test]
fn an_extent_beyond_31_bits() {
    let long = 1 << 31;
    let (x, mut out) = (meta(&[long]), meta(&[8]));
    let words = ["argument `x` of kernel `add`", "axis 0 has 2147483648 elements", "2147483647", "slice()"];
    refused(add(&x, &x, &mut out, 8).stage().map(drop), &words);
    let (x, mut out) = (meta(&[long - 1]), meta(&[8]));
    add(&x, &x, &mut out, 8).stage().expect("within 31 bits");
}

#[test]
fn meta_tensors_give_code_but_do_not_run() {
    let (x, y, mut out) = (meta(&[64]), meta(&[64]), meta(&[64]));
    let launch = add(&x, &y, &mut out, 64);
    let error = refused(launch.launch(1), &["launch of kernel `add`", "meta device has no elements"]);
    assert!(matches!(error, Error::NoData { .. }));
    let ptx = launch.ptx(&Target::SM_80).expect("a valid kernel");
    assert!(ptx.contains(".target sm_80") && ptx.contains(".visible .entry add("), "{ptx}");
    let compiled = launch.compile(&Target::SM_80).expect("a valid kernel");
    assert_eq!((compiled.ptx.as_str(), compiled.entry.as_str()), (ptx.as_str(), "add"));
    // Aligned tensors with data give the same code.
    let (x, y, mut out) = (zeros(&[64]), zeros(&[64]), zeros(&[64]));
    assert_eq!(add(&x, &y, &mut out, 64).ptx(&Target::SM_80).expect("a valid kernel"), ptx);
    let staged = launch.stage().expect("a valid kernel");
    assert_eq!(staged.kernel.name, "add");
    let names: Vec<_> = staged.kernel.params.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["x", "y", "out"]);
}

#[test]
fn the_configuration_decides_the_number_of_threads() {
    let (x, y, mut out) = (meta(&[512]), meta(&[512]), meta(&[512]));
    let with = |num_warps, out: &mut DeviceTensor<f32>| {
        add(&x, &y, out, 512).config(Config { num_warps, ..Config::default() }).compile(&Target::SM_80)
    };
    assert_eq!(with(Some(2), &mut out).expect("valid").threads, 64);
    assert_eq!(with(Some(8), &mut out).expect("valid").threads, 256);
    let words = ["kernel `add` cannot be compiled for sm_80 with 3 warps", "E0302", "1, 2, 4, 8 or 16"];
    let error = refused(with(Some(3), &mut out).map(drop), &words);
    assert!(matches!(error, Error::Kernel(_)));
}

#[test]
fn a_shape_that_does_not_fit_shows_the_line() {
    #[tile_kernel]
    fn misfit(x: Tensor<f32, 1>, out: TensorMut<f32, 1>, n: Const<usize>) {
        let wide = load(x, (0,), (n,));
        let sum = wide + full((4,), 1.0);
        store(out, (0,), sum);
    }
    let (x, mut out) = (zeros(&[8]), zeros(&[8]));
    let words = [
        "kernel `misfit` cannot be staged",
        "error[E0103]",
        "(8,)",
        "(4,)",
        "launch_faults.rs:",
        "let sum = wide + full((4,), 1.0);",
        "^^^^",
    ];
    let error = refused(misfit(&x, &mut out, 8).launch(1), &words);
    let Error::Kernel(error) = error else { panic!("another kind of error") };
    assert_eq!(error.diagnostics.iter().count(), 1);
    misfit(&x, &mut out, 4).launch(1).expect("equal shapes");
}

#[test]
fn panics_of_a_kernels_host_code_are_errors() {
    #[tile_kernel]
    fn index(out: TensorMut<f32, 1>, at: Const<usize>) {
        let sizes = [1.0, 2.0];
        store(out, (0,), full((1,), sizes[at]));
    }
    #[tile_kernel]
    fn divide(out: TensorMut<f32, 1>, total: Const<usize>, by: Const<usize>) {
        let n = total / by;
        store(out, (0,), full((n,), 1.0));
    }
    let mut out = zeros(&[2]);
    let words = ["kernel `index` cannot be staged", "E0112", "index out of bounds", "sizes[at]"];
    refused(index(&mut out, 2).launch(1), &words);
    refused(index(&mut out, 2).launch(1), &words);
    index(&mut out, 1).launch(1).expect("in bounds");
    assert_eq!(out.to_vec().expect("host memory"), [2.0, 0.0]);
    let words = ["kernel `divide` cannot be staged", "attempt to divide by zero", "total / by"];
    refused(divide(&mut out, 8, 0).launch(1), &words);
    divide(&mut out, 8, 4).launch(1).expect("two elements");
    assert_eq!(out.to_vec().expect("host memory"), [1.0, 1.0]);
}

#[test]
fn a_loop_step_that_is_not_positive_is_an_error() {
    #[tile_kernel]
    fn steps(out: TensorMut<i32, 1>, step: Scalar<i32>) {
        let mut count = 0;
        for _ in (0..8).step_by(step) {
            count = count + 1;
        }
        store(out, (0,), full((1,), count));
    }
    let mut out = DeviceTensor::zeros(&Device::cpu(), &[1]).expect("fits");
    steps(&mut out, 3).launch(1).expect("a positive step");
    assert_eq!(out.to_vec().expect("host memory"), [3]);
    let words = ["kernel `steps` cannot be run on the CPU", "step of a loop must be positive, found 0"];
    refused(steps(&mut out, 0).launch(4), &words);
}

#[test]
fn launches_without_tensors_run() {
    #[tile_kernel]
    fn nothing() {}
    nothing().launch(3).expect("valid");
    nothing().on(&Device::cpu().default_stream()).launch((2, 2)).expect("valid");
    assert!(nothing().ptx(&Target::SM_80).expect("valid").contains(".entry nothing("));
}

#[test]
fn names_that_ptx_cannot_spell() {
    #[tile_kernel]
    fn größe(out: TensorMut<f32, 1>, länge: Const<usize>) {
        store(out, (0,), full((länge,), 1.0));
    }
    let mut out = zeros(&[2]);
    größe(&mut out, 2).launch(1).expect("valid");
    let ptx = größe(&mut out, 2).ptx(&Target::SM_80).expect("valid");
    // The code points of the two letters.
    assert!(ptx.contains(".visible .entry gr_uf6_udfe("), "{ptx}");
    refused(größe(&mut out, 3).launch(1), &["kernel `größe` cannot be staged", "power of two", "(länge,)"]);
}
