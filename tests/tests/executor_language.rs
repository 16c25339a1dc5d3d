//! Cases of the language run on the PTX executor, without a report, as on the CPU: of the long lists every third one.

use tile_tests::language;

macro_rules! groups {
    ($($group:ident: $step:literal,)*) => {$(
        #[test]
        fn $group() {
            let cases = language::$group();
            let report = cases.execute($step);
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
}
