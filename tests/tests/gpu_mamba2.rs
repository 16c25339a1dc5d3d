//! Every case of the Mamba-2 forward pass and decode step on a GPU, through the code for `sm_80` and that for the GPU itself.
//! Each test says "skipped: no device" where there is none.

use tile_runtime::{Device, Target, target_of};
use tile_tests::for_each_ssd_case;
use tile_tests::ssd::{self, bench::Bench};

fn on_gpu(case: fn(&Bench)) {
    let device = match Device::cuda(0) {
        Ok(device) => device,
        Err(error) => {
            println!("skipped: no device ({error})");
            return;
        }
    };
    let own = target_of(&device).filter(|own| *own != Target::SM_80);
    for target in [Some(Target::SM_80), own].into_iter().flatten() {
        println!("for {}", target.name);
        case(&Bench { device: device.clone(), target: Some(target) });
    }
}

macro_rules! tests {
    ($($module:ident: $($case:ident)+;)+) => {$(
        mod $module {
            use super::*;
            $(
                #[test]
                fn $case() {
                    on_gpu(ssd::$module::$case);
                }
            )+
        }
    )+};
}
for_each_ssd_case!(tests);

/// The first launch of all on the second GPU, and then one on the first: each has code for its own.
#[test]
fn the_second_gpu_may_come_first() {
    let Ok(second) = Device::cuda(1) else {
        println!("skipped: one GPU");
        return;
    };
    for device in [second, Device::cuda(0).expect("there are two")] {
        ssd::numerics::dead_rows_of_the_last_chunk_are_never_read(&Bench { device, target: None });
    }
}
