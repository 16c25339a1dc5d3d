//! Two thousand random problems of the Mamba-2 forward pass and decode step on the CPU, each element within the errors that its
//! roundings may have.

use tile_tests::ssd::bench::Bench;
use tile_tests::ssd::draw::check;

macro_rules! tests {
    ($($name:ident: $numbers:expr;)*) => {$(
        #[test]
        fn $name() {
            check($numbers, |_| Bench::cpu());
        }
    )*};
}
tests! {
    the_first_quarter: 0..500;
    the_second_quarter: 500..1000;
    the_third_quarter: 1000..1500;
    the_fourth_quarter: 1500..2000;
}
