//! Cases of the language run on the PTX executor, without a report, as on the CPU: of the long lists every third one. For
//! `sm_90a` those that its passes may change: with products and loops.

use tile_runtime::prelude::*;
use tile_tests::language;

macro_rules! groups {
    ($($group:ident: $step:literal,)*) => {$(
        #[test]
        fn $group() {
            let cases = language::$group();
            let report = cases.execute(&Target::SM_80, $step);
            assert_eq!(report.runs, cases.len().div_ceil($step));
            report.assert_clean();
        }
    )*};
}
groups! {
    elementwise: 1,
    conversions: 1,
    movement: 3,
    reductions: 1,
    scans: 3,
    products: 1,
    chains: 3,
    control: 1,
    windows: 1,
    indexed: 1,
    atomics: 1,
}

macro_rules! hopper {
    ($($name:ident: $group:ident $step:literal,)*) => {$(
        #[test]
        fn $name() {
            let cases = language::$group();
            let report = cases.execute(&Target::SM_90A, $step);
            assert_eq!(report.runs, cases.len().div_ceil($step));
            report.assert_clean();
        }
    )*};
}
hopper! {
    products_on_hopper: products 1,
    chains_on_hopper: chains 5,
    control_on_hopper: control 3,
    reductions_on_hopper: reductions 11,
    windows_on_hopper: windows 5,
    indexed_on_hopper: indexed 7,
    atomics_on_hopper: atomics 1,
}
