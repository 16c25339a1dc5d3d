//! Behaviour without a GPU: explicit requests are errors that say what to do, everything else runs on the CPU.

use tile_runtime::cuda::driver_version;
use tile_runtime::{Device, DeviceKind, Error, Graph, Target};

#[test]
fn best_is_the_cpu_exactly_when_no_gpu_opens() {
    let best = Device::best();
    assert_eq!(best.is_cpu(), Device::cuda(0).is_err());
    assert_eq!(best, Device::best());
}

#[test]
fn a_missing_gpu_is_an_error_with_a_remedy() {
    // Whatever the machine has, it has no GPU of this number.
    let error = Device::cuda(4096).expect_err("no machine has 4097 GPUs");
    let text = error.to_string();
    match error {
        Error::NoDriver { .. } => {
            assert!(text.contains("install the NVIDIA driver"), "{text}");
            assert!(text.contains("Device::cpu()"), "{text}");
            assert!(driver_version().is_err());
        }
        Error::NoDevice { .. } => assert!(text.contains("CUDA_VISIBLE_DEVICES"), "{text}"),
        Error::DeviceIndex { index, count } => {
            assert_eq!(index, 4096);
            assert!(text.contains(&format!("{count} GPU(s)")), "{text}");
        }
        other => panic!("unexpected: {other}"),
    }
}

#[test]
fn asking_again_and_from_other_threads_gives_the_same_answer() {
    let first = Device::cuda(0).map_err(|error| error.to_string());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let again = scope.spawn(|| Device::cuda(0).map_err(|error| error.to_string()));
            assert_eq!(again.join().expect("opening a device never panics"), first);
        }
    });
}

#[test]
fn names_parse_and_print() {
    for (text, kind) in [
        ("cpu", DeviceKind::Cpu),
        ("meta", DeviceKind::Meta),
        ("ptx:sm_80", DeviceKind::PtxExecutor { target: Target::SM_80 }),
    ] {
        let device = Device::parse(text).expect("a device name");
        assert_eq!(device.kind(), kind);
        assert_eq!(device.to_string(), text);
    }
    for text in [
        "",
        "gpu",
        "CUDA",
        "cuda:",
        "cuda:-1",
        "cuda:+1",
        "cuda:x",
        "cuda: 0",
        "ptx",
        "ptx:",
        "ptx:sm_70",
        "cuda:99999999999999999999999",
    ] {
        let error = Device::parse(text).expect_err(text);
        assert!(matches!(error, Error::DeviceName { .. }), "{text}: {error}");
        assert!(error.to_string().contains("\"cuda:N\""));
    }
    assert_eq!(Device::parse("cuda").ok(), Device::cuda(0).ok());
}

#[test]
fn the_cpu_has_no_gpu_figures() {
    let cpu = Device::cpu();
    assert_eq!(cpu.compute_capability(), None);
    assert_eq!(cpu.max_shared_bytes_per_block(), None);
    assert_eq!(cpu.memory_info().expect("no driver call"), None);
    assert!(cpu.multiprocessors() >= 1);
    assert_ne!(cpu, Device::meta());
    cpu.synchronize().expect("nothing is ever pending");
}

#[test]
fn cpu_streams_and_events_work_at_once() {
    let stream = Device::cpu().new_stream().expect("CPU streams need nothing");
    let start = stream.record().expect("host clock");
    let mut ran = false;
    stream
        .submit(&[], || {
            std::thread::sleep(std::time::Duration::from_millis(5));
            ran = true;
            Ok(())
        })
        .expect("runs here");
    assert!(ran);
    let end = stream.record().expect("host clock");
    stream.wait(&end).expect("already reached");
    let ms = start.elapsed_ms(&end).expect("both of the host");
    assert!((5.0..5000.0).contains(&ms), "{ms}");
    assert_eq!(end.elapsed_ms(&start).expect("both of the host"), -ms);
}

#[test]
fn the_cpu_cannot_capture_graphs_and_says_so() {
    let stream = Device::cpu().default_stream();
    let error = Graph::capture(&stream, |_| Ok(())).expect_err("no graphs on the CPU");
    assert!(error.to_string().contains("on device cpu"), "{error}");
}
