//! Launches on the CPU: arguments of every kind, what is refused and in which words, looking at PTX without data.

use tile_runtime::prelude::*;

#[tile_kernel]
fn add(x: Tensor<f32, 1>, y: Tensor<f32, 1>, out: TensorMut<f32, 1>, block: Const<usize>) {
    let i = bid(0);
    let sum = load(x, (i,), (block,)) + load(y, (i,), (block,));
    store(out, (i,), sum);
}

fn iota(n: usize) -> Vec<f32> {
    (0..n).map(|i| i as f32).collect()
}

fn cpu(values: &[f32]) -> DeviceTensor<f32> {
    DeviceTensor::from_slice(&Device::cpu(), &[values.len()], values).expect("one value an element")
}

fn zeros(n: usize) -> DeviceTensor<f32> {
    DeviceTensor::zeros(&Device::cpu(), &[n]).expect("fits")
}

#[test]
fn adds_vectors_with_a_partial_last_block() {
    let (x, y, mut out) = (cpu(&iota(1000)), cpu(&[0.5; 1000]), zeros(1000));
    add(&x, &y, &mut out, 64).launch(1000_usize.div_ceil(64)).expect("valid");
    let expected: Vec<f32> = (0..1000).map(|i| i as f32 + 0.5).collect();
    assert_eq!(out.to_vec().expect("host memory"), expected);
}

#[test]
fn grids_are_numbers_tuples_and_arrays() {
    #[tile_kernel]
    fn place(out: TensorMut<i32, 3>) {
        let at = (bid(2), bid(1), bid(0));
        store(out, at, full((1, 1, 1), bid(0) + 10 * bid(1) + 100 * bid(2)));
    }
    let launched = |grid: Grid| {
        let mut out = DeviceTensor::full(&Device::cpu(), &[2, 2, 3], -1).expect("fits");
        place(&mut out).launch(grid).expect("valid");
        out.to_vec().expect("host memory")
    };
    let all = [0, 1, 2, 10, 11, 12, 100, 101, 102, 110, 111, 112];
    assert_eq!(launched((3, 2_usize, 2_u32).into()), all);
    assert_eq!(launched([3, 2, 2].into()), all);
    let plane = [0, 1, 2, 10, 11, 12, -1, -1, -1, -1, -1, -1];
    assert_eq!(launched((3, 2).into()), plane);
    assert_eq!(launched([3_i64, 2].into()), plane);
    let row = [0, 1, 2, -1, -1, -1, -1, -1, -1, -1, -1, -1];
    assert_eq!(launched(3.into()), row);
    assert_eq!(launched((3,).into()), row);
    // A grid without blocks does nothing.
    assert_eq!(launched((3, 0).into()), [-1; 12]);
}

#[test]
fn grids_out_of_range_are_errors() {
    let (x, y, mut out) = (zeros(4), zeros(4), zeros(4));
    let launch = add(&x, &y, &mut out, 4);
    for grid in [Grid::from(-1), (1 << 16, 1 << 15).into(), (usize::MAX, 2).into()] {
        let error = launch.launch(grid).expect_err("out of range").to_string();
        assert!(
            error.contains("grid of kernel `add`") && error.contains("0 to 2147483647 blocks"),
            "{error}"
        );
    }
    launch.launch(1).expect("the same launch with another grid");
}

#[tile_kernel]
fn fill<T: Number>(out: TensorMut<T, 1>, value: Scalar<T>, block: Const<usize>) {
    store(out, (bid(0),), full((block,), value));
}

#[test]
fn scalars_of_every_element_type_arrive() {
    fn check<T: Number + HostElement>(value: T)
    where
        Scalar<T>: for<'a> KernelParam<Host<'a> = T>,
    {
        let mut out = DeviceTensor::<T>::zeros(&Device::cpu(), &[5]).expect("fits");
        fill(&mut out, value, 4).launch(2).expect("valid");
        assert_eq!(out.to_vec().expect("host memory"), [value; 5]);
    }
    check(-1.5_f32);
    check(f16::from_f32(-0.25));
    check(bf16::from_f32(3.0));
    check(i32::MIN);
    check(i64::MIN + 1);
    check(u32::MAX);

    #[tile_kernel]
    fn choose(out: TensorMut<i32, 1>, first: Scalar<bool>) {
        store(out, (0,), where_(first, full((2,), 1), full((2,), 2)));
    }
    for (first, expected) in [(true, 1), (false, 2)] {
        let mut out = DeviceTensor::zeros(&Device::cpu(), &[2]).expect("fits");
        choose(&mut out, first).launch(1).expect("valid");
        assert_eq!(out.to_vec().expect("host memory"), [expected; 2]);
    }
}

#[tile_kernel]
fn scale<T: Float>(
    x: Tensor<T, 1>,
    bias: Option<Tensor<f32, 1>>,
    factor: Option<Const<f32>>,
    out: TensorMut<T, 1>,
    block: Const<usize>,
) {
    let i = bid(0);
    let mut value = load(x, (i,), (block,)).cast::<f32>();
    if let Some(factor) = factor {
        value = value * factor;
    }
    if let Some(bias) = bias {
        value = value + load(bias, (i,), (block,));
    }
    store(out, (i,), value.cast::<T>());
}

#[test]
fn absent_arguments_and_element_types_are_specialisations() {
    fn scaled<T: Float + HostElement>(
        x: &[T],
        bias: Option<&DeviceTensor<f32>>,
        factor: Option<f32>,
    ) -> Vec<T> {
        let x = DeviceTensor::from_slice(&Device::cpu(), &[x.len()], x).expect("one value an element");
        let mut out = DeviceTensor::zeros(&Device::cpu(), x.shape()).expect("fits");
        scale(&x, bias, factor, &mut out, 2).launch(x.numel().div_ceil(2)).expect("valid");
        out.to_vec().expect("host memory")
    }
    let (x, bias) = ([1.0, 2.0, 3.0], cpu(&[10.0, 20.0, 30.0]));
    assert_eq!(scaled(&x, None, None), x);
    assert_eq!(scaled(&x, Some(&bias), None), [11.0, 22.0, 33.0]);
    assert_eq!(scaled(&x, None, Some(2.0)), [2.0, 4.0, 6.0]);
    assert_eq!(scaled(&x, None, Some(-1.0)), [-1.0, -2.0, -3.0]);
    assert_eq!(scaled(&x, Some(&bias), Some(2.0)), [12.0, 24.0, 36.0]);
    let halves = x.map(bf16::from_f32);
    // 1/3 in bf16 is 0x3EAB: 0.333984375.
    let third = bf16::from_bits(0x3EAB);
    assert_eq!(scaled(&halves, None, Some(1.0 / 3.0))[0], third);
    assert_eq!(scaled(&halves, Some(&bias), Some(2.0)), [12.0, 24.0, 36.0].map(bf16::from_f32));
}

#[test]
fn constants_may_be_const_generics_arrays_and_own_types() {
    #[derive(Clone, Copy)]
    enum Order {
        Same,
        Reversed,
    }
    impl tile_runtime::ConstParam for Order {
        fn key(&self, key: &mut tile_runtime::ConstKey<'_>) {
            key.word(*self as u64);
        }
    }
    #[tile_kernel]
    fn combine<const N: usize>(out: TensorMut<i32, 1>, weights: [i32; 2], order: Order) {
        let [a, b] = match order {
            Order::Same => weights,
            Order::Reversed => [weights[1], weights[0]],
        };
        store(out, (0,), full((N,), 10 * a + b));
    }
    let combined = |launch: &dyn Fn(&mut DeviceTensor<i32>)| {
        let mut out = DeviceTensor::zeros(&Device::cpu(), &[4]).expect("fits");
        launch(&mut out);
        out.to_vec().expect("host memory")
    };
    let run = |weights, order| combined(&|out| combine::<2>(out, weights, order).launch(1).expect("valid"));
    assert_eq!(run([1, 2], Order::Same), [12, 12, 0, 0]);
    assert_eq!(run([1, 2], Order::Reversed), [21, 21, 0, 0]);
    assert_eq!(run([3, 2], Order::Same), [32, 32, 0, 0]);
    let four = combined(&|out| combine::<4>(out, [1, 2], Order::Same).launch(1).expect("valid"));
    assert_eq!(four, [12; 4]);
}

#[test]
fn views_of_any_strides_are_arguments() {
    #[tile_kernel]
    fn copy(x: Tensor<f32, 2>, out: TensorMut<f32, 2>) {
        store(out, (0, 0), load(x, (0, 0), (4, 4)));
    }
    // 3 rows of 4; the view is columns 1..3, transposed: shape (2, 3).
    let x = DeviceTensor::from_slice(&Device::cpu(), &[3, 4], &iota(12)).expect("one value an element");
    let view = x.slice(1, 1..3).and_then(|x| x.transpose(0, 1)).expect("inside");
    let mut out = DeviceTensor::zeros(&Device::cpu(), &[2, 3]).expect("fits");
    copy(&view, &mut out).launch(1).expect("valid");
    assert_eq!(out.to_vec().expect("host memory"), [1.0, 5.0, 9.0, 2.0, 6.0, 10.0]);
    // A column of one tensor may be written while another is read.
    let mut right = x.slice(1, 2..4).expect("inside");
    let left = x.slice(1, 0..2).expect("inside");
    copy(&left, &mut right).launch(1).expect("disjoint columns");
    let expected = [0.0, 1.0, 0.0, 1.0, 4.0, 5.0, 4.0, 5.0, 8.0, 9.0, 8.0, 9.0];
    assert_eq!(x.to_vec().expect("host memory"), expected);
}

#[test]
fn threads_launch_at_the_same_time() {
    std::thread::scope(|scope| {
        for thread in 0..8 {
            scope.spawn(move || {
                for n in 1..20 {
                    let (x, y, mut out) = (cpu(&iota(n)), cpu(&vec![thread as f32; n]), zeros(n));
                    add(&x, &y, &mut out, 1 << (n % 4)).launch(n).expect("valid");
                    let expected: Vec<f32> = (0..n).map(|i| (i + thread) as f32).collect();
                    assert_eq!(out.to_vec().expect("host memory"), expected);
                }
            });
        }
    });
}

#[test]
fn the_crate_may_have_another_name() {
    mod facade {
        pub(super) mod inner {
            pub(crate) use tile_runtime as renamed;
        }
    }
    #[tile_kernel(crate = facade::inner::renamed)]
    fn one(out: TensorMut<f32, 1>) {
        store(out, (0,), full((1,), 1.0));
    }
    let mut out = zeros(1);
    one(&mut out).launch(1).expect("valid");
    assert_eq!(out.to_vec().expect("host memory"), [1.0]);
}

#[test]
fn parameters_without_a_name_do_not_collide() {
    #[tile_kernel]
    fn last(_: Tensor<f32, 1>, _: Option<Tensor<f32, 1>>, _: Scalar<i32>, out: TensorMut<f32, 1>) {
        store(out, (0,), full((1,), 1.0));
    }
    let (x, mut out) = (zeros(3), zeros(1));
    last(&x, Some(&x), 7, &mut out).launch(1).expect("valid");
    assert_eq!(out.to_vec().expect("host memory"), [1.0]);
}
