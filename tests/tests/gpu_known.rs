//! Cases that other tile compilers got wrong, on a GPU. It says "skipped: no device" where there is none.

use tile_runtime::Device;
use tile_tests::known;

#[test]
fn known_cases() {
    let device = match Device::cuda(0) {
        Ok(device) => device,
        Err(error) => {
            println!("skipped: no device ({error})");
            return;
        }
    };
    let failed = known::failures(&device);
    assert!(failed.is_empty(), "failed: {failed:?}");
}
