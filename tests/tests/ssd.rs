//! Every case of the Mamba-2 forward pass and decode step on the CPU.

use tile_tests::for_each_ssd_case;
use tile_tests::ssd::{self, bench::Bench};

macro_rules! tests {
    ($($module:ident: $($case:ident)+;)+) => {$(
        mod $module {
            use super::*;
            $(
                #[test]
                fn $case() {
                    ssd::$module::$case(&Bench::cpu());
                }
            )+
        }
    )+};
}
for_each_ssd_case!(tests);
