//! Five hundred random problems of the Mamba-2 forward pass and decode step on a GPU, every second one through the code for
//! `sm_80`. It says "skipped: no device" where there is none.

use tile_runtime::{Device, Target};
use tile_tests::ssd::bench::Bench;
use tile_tests::ssd::draw::check;

/// Other problems than those of the CPU.
const FIRST: u64 = 10_000;

macro_rules! tests {
    ($($name:ident: $numbers:expr;)*) => {$(
        #[test]
        fn $name() {
            match Device::cuda(0) {
                Ok(device) => check($numbers, |number| {
                    let target = (number % 2 == 0).then_some(Target::SM_80);
                    Bench { device: device.clone(), target }
                }),
                Err(error) => println!("skipped: no device ({error})"),
            }
        }
    )*};
}
tests! {
    the_first_quarter: FIRST..FIRST + 125;
    the_second_quarter: FIRST + 125..FIRST + 250;
    the_third_quarter: FIRST + 250..FIRST + 375;
    the_fourth_quarter: FIRST + 375..FIRST + 500;
}
