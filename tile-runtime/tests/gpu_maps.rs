//! Recent tensor maps on a GPU: the driver's maps, and what remembering them saves.

use std::time::Instant;

use tile_runtime::codegen::simt::{TensorMap, TensorSwizzle};
use tile_runtime::cuda::{RecentMaps, TensorMapSpec};
use tile_runtime::{Device, DeviceTensor};

#[test]
fn remembered_maps_are_those_of_the_driver() {
    let device = match Device::cuda(0) {
        Ok(device) if device.compute_capability() >= Some((9, 0)) => device,
        Ok(device) => return println!("skipped: {} has no tensor maps", device.name()),
        Err(error) => return println!("skipped: no device ({error})"),
    };
    let tensor = DeviceTensor::<half::bf16>::zeros(&device, &[512, 256]).expect("fits");
    let address = tensor.as_any().device_address().expect("on the GPU");
    let spec = |rows: u64| {
        TensorMapSpec::new(TensorMap::dense(address, 2, &[256, rows], &[64, 128], TensorSwizzle::B128))
    };
    let maps: RecentMaps = RecentMaps::new(1);
    let get = |rows: u64| {
        let map = maps.get(0, &[address, 256, rows, 512], || spec(rows).encode(&device));
        map.expect("within the limits of the hardware")
    };
    for rows in [512, 128, 512] {
        assert_eq!(get(rows), spec(rows).encode(&device).expect("within the limits of the hardware"));
    }
    assert_ne!(get(512), get(128));
    let time = |work: &dyn Fn()| {
        let start = Instant::now();
        (0..10_000).for_each(|_| work());
        start.elapsed() / 10_000
    };
    let encode = || {
        std::hint::black_box(spec(512).encode(&device)).expect("as before");
    };
    let recent = || {
        std::hint::black_box(get(512));
    };
    println!("encoded in {:?}, remembered in {:?}", time(&encode), time(&recent));
}
