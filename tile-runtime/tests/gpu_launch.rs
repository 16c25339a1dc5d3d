//! Launches on a GPU give what they give on the CPU; graphs, streams and threads. Each test says
//! "skipped: no device" where there is none.

use tile_runtime::prelude::*;

/// The GPU, or none with a word about it.
fn gpu() -> Option<Device> {
    match Device::cuda(0) {
        Ok(device) => Some(device),
        Err(error) => {
            println!("skipped: no device ({error})");
            None
        }
    }
}

#[tile_kernel]
fn add(x: Tensor<f32, 1>, y: Tensor<f32, 1>, out: TensorMut<f32, 1>, block: Const<usize>) {
    let i = bid(0);
    let sum = load(x, (i,), (block,)) + load(y, (i,), (block,));
    store(out, (i,), sum);
}

/// `out = x · factor + bias`, over the grid (columns, rows).
#[tile_kernel]
fn affine<T: Float>(
    x: Tensor<T, 2>,
    factor: Scalar<f32>,
    bias: Option<Tensor<f32, 1>>,
    out: TensorMut<T, 2>,
    block: Const<usize>,
) {
    let (column, row) = (bid(0), bid(1));
    let mut value = load(x, (row, column), (1, block)).cast::<f32>() * factor;
    if let Some(bias) = bias {
        value = value + load(bias, (column,), (block,));
    }
    store(out, (row, column), value.cast::<T>());
}

fn iota(n: usize) -> Vec<f32> {
    (0..n).map(|i| i as f32).collect()
}

fn vector(device: &Device, values: &[f32]) -> DeviceTensor<f32> {
    DeviceTensor::from_slice(device, &[values.len()], values).expect("one value an element")
}

#[test]
fn adds_vectors_of_every_length_and_alignment() {
    let Some(device) = gpu() else { return };
    let (x, y) = (vector(&device, &iota(5000)), vector(&device, &[0.5; 5000]));
    for n in [1, 2, 31, 128, 1000, 4096, 4999] {
        for start in [0, 1] {
            let (x, y) = (x.slice(0, start..start + n), y.slice(0, 0..n));
            let mut out = DeviceTensor::zeros(&device, &[n]).expect("fits");
            let (x, y) = (x.expect("inside"), y.expect("inside"));
            add(&x, &y, &mut out, 256).launch(n.div_ceil(256)).expect("valid");
            let expected: Vec<f32> = (0..n).map(|i| (i + start) as f32 + 0.5).collect();
            assert_eq!(out.to_vec().expect("copies"), expected, "{n} elements from {start} on");
        }
    }
}

#[test]
fn scalars_options_types_and_strides_reach_the_kernel() {
    fn check<T: Float + HostElement>(device: &Device, round: fn(f32) -> T) {
        let values: Vec<T> = iota(6 * 40).into_iter().map(round).collect();
        let x = DeviceTensor::from_slice(device, &[6, 40], &values).expect("one value an element");
        let x = x.transpose(0, 1).and_then(|x| x.slice(1, 1..4)).expect("inside");
        let bias = vector(device, &[1.0, 2.0, 3.0]);
        for bias_of in [None, Some(&bias)] {
            let mut out = DeviceTensor::zeros(device, &[40, 3]).expect("fits");
            affine(&x, 0.5, bias_of, &mut out, 4).launch((1, 40)).expect("valid");
            let expected = (0..40 * 3).map(|i| {
                let (row, column) = (i / 3, i % 3);
                let bias = if bias_of.is_some() { (column + 1) as f32 } else { 0.0 };
                // Exact in bf16 too: at most 8 significant bits before halving.
                round(((column + 1) * 40 + row) as f32 * 0.5 + bias)
            });
            assert_eq!(out.to_vec().expect("copies"), expected.collect::<Vec<_>>());
        }
    }
    let Some(device) = gpu() else { return };
    check::<f32>(&device, |x| x);
    check::<f16>(&device, f16::from_f32);
    check::<bf16>(&device, bf16::from_f32);
}

#[test]
fn captured_launches_are_replayed() {
    let Some(device) = gpu() else { return };
    let (x, one) = (vector(&device, &iota(1000)), vector(&device, &[1.0; 1000]));
    let (mut a, mut b) = (x.clone(), DeviceTensor::zeros(&device, &[1000]).expect("fits"));
    let stream = device.new_stream().expect("a stream");
    let graph = Graph::capture(&stream, |stream| {
        add(&a.clone(), &one, &mut b, 128).on(stream).launch(8)?;
        add(&b.clone(), &one, &mut a, 128).on(stream).launch(8)
    })
    .expect("two launches");
    assert_eq!(graph.nodes(), 2);
    for _ in 0..3 {
        graph.launch(&stream).expect("queued");
    }
    // Two launches a replay, each adds one.
    let expected: Vec<f32> = (0..1000).map(|i| i as f32 + 6.0).collect();
    assert_eq!(x.to_vec().expect("copies"), expected);
}

#[test]
fn threads_share_one_loaded_kernel() {
    let Some(device) = gpu() else { return };
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let device = &device;
            scope.spawn(move || {
                let stream = device.new_stream().expect("a stream");
                let (x, y) = (vector(device, &iota(777)), vector(device, &[thread as f32; 777]));
                let mut out = DeviceTensor::zeros(device, &[777]).expect("fits");
                add(&x, &y, &mut out, 512).on(&stream).launch(2).expect("valid");
                let expected: Vec<f32> = (0..777).map(|i| (i + thread) as f32).collect();
                assert_eq!(out.to_vec().expect("copies"), expected);
            });
        }
    });
}

#[test]
fn every_number_of_warps_computes_the_same() {
    let Some(device) = gpu() else { return };
    let (x, y) = (vector(&device, &iota(1000)), vector(&device, &[0.25; 1000]));
    let expected: Vec<f32> = (0..1000).map(|i| i as f32 + 0.25).collect();
    for warps in [1, 2, 4, 8, 16] {
        let mut out = DeviceTensor::zeros(&device, &[1000]).expect("fits");
        let config = Config { num_warps: Some(warps), ..Config::default() };
        add(&x, &y, &mut out, 256).config(config).launch(4).expect("valid");
        assert_eq!(out.to_vec().expect("copies"), expected, "{warps} warps");
    }
}

#[test]
fn tensors_of_the_gpu_and_the_cpu_do_not_mix() {
    let Some(device) = gpu() else { return };
    let (x, y) = (vector(&device, &[1.0]), vector(&Device::cpu(), &[1.0]));
    let mut out = DeviceTensor::zeros(&device, &[1]).expect("fits");
    let error = add(&x, &y, &mut out, 1).launch(1).expect_err("two devices").to_string();
    assert!(
        error.contains("argument `y` of kernel `add`: found device cpu, expected device cuda:0"),
        "{error}"
    );
}
