//! Every case of the language runs on the CPU and compiles for `sm_80` with several numbers of warps.

use tile_tests::language;

macro_rules! groups {
    ($($group:ident)*) => {$(
        #[test]
        fn $group() {
            let cases = language::$group();
            assert!(!cases.is_empty());
            cases.run_on_cpu().assert_clean();
            let compiled = cases.compile(false);
            println!("{}: {} cases, compiled {} times", stringify!($group), cases.len(), compiled.runs);
            compiled.assert_clean();
        }
    )*};
}
groups! { elementwise conversions movement reductions scans products chains control windows indexed atomics }
