//! Products on the PTX executor: sizes, control flow, memory, configurations; for `sm_90a`, and through rings for `sm_80`.

use tile_tests::hopper;

macro_rules! suites {
    ($($suite:ident: $step:literal, at least $runs:literal;)*) => {$(
        #[test]
        fn $suite() {
            let report = hopper::$suite($step);
            assert!(report.runs >= $runs, "{} runs", report.runs);
            report.assert_clean();
        }
    )*};
}
suites! {
    products: 97, at least 40;
    control: 13, at least 100;
    flow: 13, at least 100;
    memory: 5, at least 50;
    rings: 7, at least 100;
}

#[test]
fn named() {
    let report = hopper::named();
    assert!(report.runs >= 150, "{} runs", report.runs);
    report.assert_clean();
}

#[test]
fn padding() {
    let report = hopper::padding();
    assert!(report.runs >= 20, "{} runs", report.runs);
    report.assert_clean();
}

#[test]
fn once() {
    let report = hopper::once();
    assert!(report.runs >= 40, "{} runs", report.runs);
    report.assert_clean();
}
