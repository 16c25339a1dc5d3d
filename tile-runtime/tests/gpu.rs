//! Tests that need a GPU: copies, streams, lifetimes, modules, graphs, `cudarc` slices. Each says
//! "skipped: no device" where there is none.

use std::ffi::c_void;
use std::sync::Arc;
use std::time::Instant;

use cudarc::driver::{CudaContext, DevicePtr};
use tile_runtime::cuda::{Function, Module};
use tile_runtime::{Access, Device, DeviceTensor, Element, Error, Graph, Result, Stream, Use};

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

/// `out[i] = in[i] + 1` for `n` elements, after reading the value `spin` times to take long; one thread an element.
const ADD_ONE: &str = "
.version 7.0
.target sm_80
.address_size 64
.visible .entry add_one(.param .u64 p_in, .param .u64 p_out, .param .u32 p_n, .param .u32 p_spin)
{
    .reg .pred %p<3>;
    .reg .b32 %r<10>;
    .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [p_in];
    ld.param.u64 %rd2, [p_out];
    ld.param.u32 %r1, [p_n];
    ld.param.u32 %r2, [p_spin];
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mov.u32 %r5, %tid.x;
    mad.lo.s32 %r6, %r3, %r4, %r5;
    setp.ge.u32 %p1, %r6, %r1;
    @%p1 bra DONE;
    mul.wide.u32 %rd3, %r6, 4;
    add.s64 %rd4, %rd1, %rd3;
    add.s64 %rd5, %rd2, %rd3;
LOOP:
    ld.volatile.global.u32 %r7, [%rd4];
    setp.eq.u32 %p2, %r2, 0;
    @%p2 bra STORE;
    sub.u32 %r2, %r2, 1;
    bra LOOP;
STORE:
    add.u32 %r8, %r7, 1;
    st.global.u32 [%rd5], %r8;
DONE:
    ret;
}
";

fn add_one(device: &Device) -> Arc<Function> {
    let module = Module::load_ptx(device, ADD_ONE, "add_one").expect("valid PTX");
    module.function("add_one").expect("the entry is there")
}

fn launch(
    function: &Arc<Function>,
    stream: &Stream,
    from: &DeviceTensor<i32>,
    to: &DeviceTensor<i32>,
    spin: u32,
) -> Result<()> {
    let uses = [
        Use { storage: from.storage(), access: Access::Read },
        Use { storage: to.storage(), access: Access::Write },
    ];
    stream.submit(&uses, || {
        let mut addresses = [from, to].map(|tensor| tensor.as_any().device_address().expect("on the GPU"));
        let (mut n, mut spin) = (to.numel() as u32, spin);
        let [from, to] = &mut addresses;
        let mut parameters: [*mut c_void; 4] =
            [(from as *mut u64).cast(), (to as *mut u64).cast(), (&raw mut n).cast(), (&raw mut spin).cast()];
        // SAFETY: the parameters are those of ADD_ONE, and the uses name both tensors.
        unsafe { function.launch(stream, [n.div_ceil(128), 1, 1], 128, 0, &mut parameters) }
    })
}

fn iota(device: &Device, n: i32) -> DeviceTensor<i32> {
    let values: Vec<i32> = (0..n).collect();
    DeviceTensor::from_slice(device, &[n as usize], &values).expect("fits")
}

fn counted(n: i32, from: i32) -> Vec<i32> {
    (from..from + n).collect()
}

/// Long enough for the host to run ahead by far: about a hundred microseconds and more.
const LONG: u32 = 20_000;

#[test]
fn figures_are_plausible() {
    let Some(device) = gpu() else { return };
    assert!(device.compute_capability().expect("a GPU") >= (8, 0));
    assert!(device.max_shared_bytes_per_block().expect("a GPU") >= 99 * 1024);
    assert!(device.multiprocessors() > 0 && !device.name().is_empty());
    let (free, total) = device.memory_info().expect("driver call").expect("a GPU");
    assert!(free <= total);
    assert_eq!(device, Device::parse("cuda").expect("the same"));
    assert!(Device::best().is_cuda());
}

#[test]
fn every_element_type_round_trips() {
    fn check<T: Element>(device: &Device, values: &[T]) {
        let tensor = DeviceTensor::from_slice(device, &[values.len()], values).expect("fits");
        assert_eq!(tensor.to_vec().expect("copies"), values);
        let full = DeviceTensor::full(device, &[3, 5], values[1]).expect("fits");
        assert_eq!(full.to_vec().expect("copies"), vec![values[1]; 15]);
        full.slice(1, 1..3).and_then(|view| view.fill(values[0])).expect("a view with gaps");
        let expected: Vec<T> = (0..15).map(|i| values[usize::from(!(1..3).contains(&(i % 5)))]).collect();
        assert_eq!(full.to_vec().expect("copies"), expected);
        assert_eq!(
            DeviceTensor::<T>::zeros(device, &[4]).and_then(|t| t.to_vec()).expect("fits"),
            [T::default(); 4]
        );
    }
    let Some(device) = gpu() else { return };
    check(&device, &[0.5_f32, -1.5, f32::INFINITY]);
    check(&device, &[half::f16::ONE, half::f16::from_f32(-2.5)]);
    check(&device, &[half::bf16::ONE, half::bf16::from_f32(3.0)]);
    check(&device, &[7_i32, i32::MIN]);
    check(&device, &[7_i64, -1, 1 << 40]);
    check(&device, &[1_i64 << 40, (1 << 40) + 3]);
    check(&device, &[7_u32, u32::MAX]);
    check(&device, &[false, true]);
}

#[test]
fn views_copy_like_those_of_the_cpu() {
    let Some(device) = gpu() else { return };
    let shape = [4, 5, 6];
    let values = counted(120, 0);
    let [cpu, cuda] = [Device::cpu(), device.clone()]
        .map(|device| DeviceTensor::from_slice(&device, &shape, &values).expect("fits"));
    let view = |tensor: &DeviceTensor<i32>| {
        tensor
            .slice(1, 1..4)
            .and_then(|t| t.permute(&[2, 0, 1]))
            .and_then(|t| t.slice(0, 2..5))
            .expect("inside")
    };
    assert_eq!(view(&cuda).to_vec().expect("copies"), view(&cpu).to_vec().expect("copies"));
    assert_eq!(
        view(&cuda).contiguous().and_then(|t| t.to_vec()).expect("copies"),
        view(&cpu).to_vec().expect("copies")
    );
    let new: Vec<i32> = counted(36, 1000);
    for tensor in [&cpu, &cuda] {
        view(tensor).copy_from_slice(&new).expect("as many");
    }
    assert_eq!(cuda.to_vec().expect("copies"), cpu.to_vec().expect("copies"));
    assert_eq!(
        cuda.to_device(&Device::cpu()).and_then(|t| t.to_vec()).expect("copies"),
        cpu.to_vec().expect("copies")
    );
    let empty = DeviceTensor::<f32>::zeros(&device, &[0, 3]).expect("nothing");
    assert!(empty.to_vec().expect("nothing").is_empty());
}

#[test]
fn launches_on_several_streams_are_ordered_by_their_buffers() {
    let Some(device) = gpu() else { return };
    let function = add_one(&device);
    let attributes = function.attributes();
    assert!(attributes.registers > 0 && attributes.local_bytes == 0 && attributes.max_threads >= 128);
    let streams: Vec<_> = (0..3).map(|_| device.new_stream().expect("a stream")).collect();
    let n = 4096;
    let (mut from, mut to) = (iota(&device, n), DeviceTensor::zeros(&device, &[n as usize]).expect("fits"));
    for step in 0..30 {
        launch(&function, &streams[step % 3], &from, &to, LONG / 4).expect("queued");
        std::mem::swap(&mut from, &mut to);
    }
    assert_eq!(from.to_vec().expect("copies"), counted(n, 30));
}

#[test]
fn buffers_outlive_the_work_queued_on_them() {
    let Some(device) = gpu() else { return };
    let function = add_one(&device);
    let n = 1 << 16;
    for _ in 0..20 {
        let stream = device.new_stream().expect("a stream");
        let out = DeviceTensor::zeros(&device, &[n as usize]).expect("fits");
        let input = iota(&device, n);
        launch(&function, &stream, &input, &out, LONG).expect("queued");
        // Freed while the kernel reads it; the new tensors would overwrite it if it were reused too early.
        drop(input);
        let others: Vec<_> =
            (0..4).map(|_| DeviceTensor::full(&device, &[n as usize], -7).expect("fits")).collect();
        assert_eq!(out.to_vec().expect("copies"), counted(n, 1));
        drop((others, stream));
    }
}

#[test]
fn events_order_and_time() {
    let Some(device) = gpu() else { return };
    let function = add_one(&device);
    let (input, out) = (iota(&device, 128), DeviceTensor::zeros(&device, &[128]).expect("fits"));
    let (a, b) = (device.new_stream().expect("a stream"), device.new_stream().expect("a stream"));
    let start = a.record().expect("recorded");
    launch(&function, &a, &input, &out, LONG).expect("queued");
    let end = a.record().expect("recorded");
    b.wait(&end).expect("queued");
    b.synchronize().expect("runs");
    let ms = start.elapsed_ms(&end).expect("both reached");
    assert!(ms > 0.01 && ms < 10_000.0, "{ms}");
}

#[test]
fn a_launch_costs_little_host_time() {
    let Some(device) = gpu() else { return };
    let function = add_one(&device);
    let stream = device.default_stream();
    let (input, out) = (iota(&device, 128), DeviceTensor::zeros(&device, &[128]).expect("fits"));
    launch(&function, &stream, &input, &out, 0).expect("queued");
    stream.synchronize().expect("runs");
    // Short bursts keep the launch queue from filling; the best one is the cost without disturbance.
    let burst = || {
        let start = Instant::now();
        for _ in 0..100 {
            launch(&function, &stream, &input, &out, 0).expect("queued");
        }
        let each = start.elapsed() / 100;
        stream.synchronize().expect("runs");
        each
    };
    let best = (0..20).map(|_| burst()).min().expect("20 bursts");
    println!("host time of a launch: {best:?}");
    assert!(best.as_micros() < 10, "{best:?}");
}

#[test]
fn graphs_replay_and_keep_what_they_use() {
    let Some(device) = gpu() else { return };
    let stream = device.new_stream().expect("a stream");
    let (input, out) = (iota(&device, 1000), DeviceTensor::zeros(&device, &[1000]).expect("fits"));
    let graph = {
        let function = add_one(&device);
        let middle = DeviceTensor::zeros(&device, &[1000]).expect("fits");
        Graph::capture(&stream, |stream| {
            launch(&function, stream, &input, &middle, 0)?;
            let inside = DeviceTensor::zeros(&device, &[1000])?;
            launch(&function, stream, &middle, &inside, 0)?;
            launch(&function, stream, &inside, &out, 0)
        })
        .expect("captured")
    };
    assert_eq!(graph.nodes(), 3);
    assert_eq!(out.to_vec().expect("copies"), vec![0; 1000], "capturing runs nothing");
    graph.launch(&stream).expect("queued");
    assert_eq!(out.to_vec().expect("copies"), counted(1000, 3));
    input.copy_from_slice(&counted(1000, 500)).expect("as many");
    graph.launch(&device.default_stream()).expect("queued");
    graph.launch(&stream).expect("queued");
    drop(graph);
    assert_eq!(out.to_vec().expect("copies"), counted(1000, 503));
}

#[test]
fn captures_refuse_what_they_cannot_hold() {
    let Some(device) = gpu() else { return };
    let unsupported = |result: Result<Graph>, text: &str| {
        let error = result.expect_err(text).to_string();
        assert!(error.contains(text), "{error}");
    };
    unsupported(Graph::capture(&device.default_stream(), |_| Ok(())), "new_stream()");
    let stream = device.new_stream().expect("a stream");
    unsupported(Graph::capture(&stream, |_| Ok(())), "without any work");
    unsupported(Graph::capture(&stream, |stream| stream.synchronize()), "synchronize()");
    unsupported(Graph::capture(&stream, |stream| stream.record().map(drop)), "record()");
    let panicked = std::panic::catch_unwind(|| Graph::capture(&stream, |_| panic!("in the closure")));
    assert!(panicked.is_err());
    // The stream still works after each of them.
    let (input, out) = (iota(&device, 10), DeviceTensor::zeros(&device, &[10]).expect("fits"));
    launch(&add_one(&device), &stream, &input, &out, 0).expect("queued");
    assert_eq!(out.to_vec().expect("copies"), counted(10, 1));
}

#[test]
fn refused_ptx_says_why() {
    let Some(device) = gpu() else { return };
    let newer = ADD_ONE.replace(".version 7.0", ".version 19.9");
    let error = Module::load_ptx(&device, &newer, "add_one").expect_err("no driver loads it").to_string();
    for part in ["add_one", ".version 19.9", ".target sm_80", "update the NVIDIA driver"] {
        assert!(error.contains(part), "{part:?} is missing: {error}");
    }
    let faulty = ADD_ONE.replace("add.u32 %r8, %r7, 1;", "add.u32 %r8, %r77, 1;");
    let error = Module::load_ptx(&device, &faulty, "add_one").expect_err("an unknown register").to_string();
    assert!(error.contains("%r77"), "the assembler's log is missing: {error}");
    assert!(Module::load_cubin(&device, b"not a cubin", "add_one").is_err());
    let module = Module::load_ptx(&device, ADD_ONE, "add_one").expect("valid PTX");
    let error = module.function("absent").expect_err("no such entry").to_string();
    assert!(error.contains("absent"), "{error}");
}

#[test]
fn too_much_shared_memory_is_refused_before_the_launch() {
    let Some(device) = gpu() else { return };
    let function = add_one(&device);
    let stream = device.default_stream();
    // SAFETY: refused before the parameters are read.
    let refused = unsafe { function.launch(&stream, [1, 1, 1], 32, 1 << 20, &mut []) };
    assert!(matches!(refused, Err(Error::SharedMemory { needed: 1_048_576, .. })), "{refused:?}");
    // SAFETY: a grid with a zero launches nothing.
    unsafe { function.launch(&stream, [1, 0, 1], 32, 0, &mut []) }.expect("nothing to do");
}

#[test]
fn cudarc_slices_are_used_in_place() {
    let Some(device) = gpu() else { return };
    let function = add_one(&device);
    let context = CudaContext::new(0).expect("the GPU is there");
    let theirs = context.default_stream();
    let stream = device.new_stream().expect("a stream");
    let out = DeviceTensor::zeros(&device, &[1000]).expect("fits");

    let shared = Arc::new(theirs.clone_htod(&counted(1000, 0)).expect("fits"));
    let address = shared.device_ptr(&theirs).0;
    let tensor = DeviceTensor::from_shared_cuda_slice(shared.clone(), &[1000]).expect("one element each");
    assert_eq!(tensor.storage().device_address(), Some(address));
    launch(&function, &stream, &tensor, &out, LONG).expect("queued");
    assert!(matches!(tensor.fill(0), Err(Error::ReadOnly { .. })));
    assert!(matches!(launch(&function, &stream, &out, &tensor, 0), Err(Error::ReadOnly { .. })));
    drop((tensor, shared));
    assert_eq!(out.to_vec().expect("copies"), counted(1000, 1));

    let mut slice = theirs.clone_htod(&counted(1000, 5)).expect("fits");
    let borrowed = DeviceTensor::borrow_cuda_slice(&slice, &[10, 100]).expect("one element each");
    assert_eq!(borrowed.select(0, 3).and_then(|row| row.to_vec()).expect("copies"), counted(100, 305));
    drop(borrowed);
    DeviceTensor::borrow_cuda_slice_mut(&mut slice, &[1000]).and_then(|mut t| t.fill(4)).expect("writable");
    assert_eq!(theirs.clone_dtoh(&slice).expect("copies"), vec![4; 1000]);
    assert!(DeviceTensor::borrow_cuda_slice(&slice, &[999]).is_err());

    let owned = DeviceTensor::from_cuda_slice(slice, &[1000]).expect("one element each");
    launch(&function, &stream, &out, &owned, LONG).expect("queued");
    assert_eq!(owned.to_vec().expect("copies"), counted(1000, 2));
}

#[test]
fn any_thread_may_use_and_drop_anything() {
    let Some(device) = gpu() else { return };
    let function = add_one(&device);
    let input = iota(&device, 5000);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let stream = device.new_stream().expect("a stream");
                for _ in 0..20 {
                    let out = DeviceTensor::zeros(&device, &[5000]).expect("fits");
                    launch(&function, &stream, &input, &out, 100).expect("queued");
                    assert_eq!(out.to_vec().expect("copies"), counted(5000, 1));
                }
            });
        }
    });
    std::thread::spawn(move || drop((input, function))).join().expect("drops never panic");
    device.synchronize().expect("runs");
}
