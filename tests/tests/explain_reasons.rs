//! Every reason why a faster path is not taken, each from a kernel made for it.

use tile_runtime::Compiled;
use tile_runtime::codegen::explain::{Explanation, Path, Product, Reason};
use tile_runtime::codegen::ops::OpKind;
use tile_runtime::codegen::passes::assign_roles::bulk_plan;
use tile_runtime::prelude::*;

fn meta<T: HostElement>(shape: &[usize]) -> DeviceTensor<T> {
    DeviceTensor::meta(shape).expect("a small shape")
}

fn wide() -> DeviceTensor<bf16> {
    meta(&[4096, 4096])
}

/// `out = x y`: tiles of (m, k), (k, n) and (m, n).
#[tile_kernel]
fn gemm<T: MmaOperand + Storable>(
    x: Tensor<T, 2>,
    y: Tensor<T, 2>,
    out: TensorMut<f32, 2>,
    tile: Const<[usize; 3]>,
) {
    let [m, n, k] = tile;
    let mut acc = zeros::<f32>((m, n));
    for step in 0..cdiv(x.dim(1), k) {
        acc = mma(load(x, (bid(1), step), (m, k)), load(y, (step, bid(0)), (k, n)), acc);
    }
    store(out, (bid(1), bid(0)), acc);
}

/// The same with hints: the latency of x, and whether y may be copied in bulk.
#[tile_kernel]
fn hinted(
    x: Tensor<bf16, 2>,
    y: Tensor<bf16, 2>,
    out: TensorMut<f32, 2>,
    latency: Const<usize>,
    bulk: Const<bool>,
) {
    let mut acc = zeros::<f32>((64, 64));
    for step in 0..cdiv(x.dim(1), 64) {
        let x = load_hinted(x, (bid(1), step), (64, 64), Hints::new().latency(latency));
        let y = load_with_hinted(y, (step, bid(0)), (64, 64), 0.0, Hints::new().allow_tma(bulk));
        acc = mma(x, y, acc);
    }
    store(out, (bid(1), bid(0)), acc);
}

/// A product whose partial sums meet their transpose.
#[tile_kernel]
fn turning(x: Tensor<bf16, 2>, y: Tensor<bf16, 2>, out: TensorMut<f32, 2>, k: Const<usize>) {
    let mut total = zeros::<f32>((128, 128));
    for step in 0..cdiv(x.dim(1), k) {
        let (x, y) = (load(x, (bid(1), step), (128, k)), load(y, (step, bid(0)), (k, 128)));
        let sums = mma(x, y, zeros::<f32>((128, 128)));
        total = total + sums * sums.transpose();
    }
    store(out, (bid(1), bid(0)), total);
}

/// A product whose left operand is padded with ones.
#[tile_kernel]
fn filled(x: Tensor<bf16, 2>, y: Tensor<bf16, 2>, out: TensorMut<f32, 2>) {
    let mut acc = zeros::<f32>((64, 64));
    for step in 0..cdiv(x.dim(1), 64) {
        let x = load_with(x, (bid(1), step), (64, 64), 1.0);
        acc = mma(x, load(y, (step, bid(0)), (64, 64)), acc);
    }
    store(out, (bid(1), bid(0)), acc);
}

/// A product whose right operand is where a table says.
#[tile_kernel]
fn paged(x: Tensor<bf16, 2>, y: Tensor<bf16, 2>, table: Tensor<i32, 1>, out: TensorMut<f32, 2>) {
    let mut acc = zeros::<f32>((64, 64));
    for step in 0..cdiv(x.dim(1), 64) {
        let page = load(table, (step,), (16,)).max(ALL).item();
        acc = mma(load(x, (bid(1), step), (64, 64)), load(y, (page, bid(0)), (64, 64)), acc);
    }
    store(out, (bid(1), bid(0)), acc);
}

/// A product, and loads and stores of every other kind around it.
#[tile_kernel]
fn mixed(
    x: Tensor<bf16, 2>,
    mask: Tensor<bool, 2>,
    steps: Tensor<i32, 1>,
    few: Tensor<f32, 2>,
    out: TensorMut<f32, 2>,
    sums: TensorMut<f32, 2>,
    last: TensorMut<f32, 2>,
) {
    let mut acc = load(out, (bid(0), 0), (64, 64));
    for i in 0..cdiv(x.dim(1), 64) {
        let a = load(x, (bid(0), i), (64, 64));
        let plain = Hints::new().allow_tma(false);
        let b = load_with_hinted(x, (load_scalar(steps, (i,)), 0), (64, 64), 1.0, plain);
        acc = mma(a, where_(load(mask, (0, 0), (64, 64)), b, 0.0), acc);
        acc = acc + load(few, (i, 0), (64, 2)).sum_keepdims(1) + load(out, (i, 1), (64, 64));
        store(last, (bid(0), 0), acc);
    }
    store(out, (bid(0), 0), acc);
    store(sums, (bid(0), 0), acc.sum_keepdims(1));
}

/// A product of tf32, and one of a batch of bf16.
#[tile_kernel]
fn others(x: Tensor<f32, 2>, batch: Tensor<bf16, 3>, out: TensorMut<f32, 2>) {
    let t = load(x, (0, 0), (64, 64)).cast::<tf32>();
    let b = load(batch, (0, 0, 0), (4, 64, 64));
    let p = mma(b, b, zeros::<f32>((4, 64, 64))).sum(0);
    store(out, (0, 0), mma(t, t, p));
}

/// Operands that are computed and that `wgmma` cannot read as they lie: rows of 16 bytes.
#[tile_kernel]
fn narrow(x: Tensor<f32, 2>, y: Tensor<bf16, 2>, out: TensorMut<f32, 2>) {
    let a = load_hinted(x, (0, 0), (64, 64), Hints::new().allow_tma(false)).cast::<bf16>();
    store(out, (0, 0), mma(a, load(y, (0, 0), (64, 8)), zeros::<f32>((64, 8))));
}

/// A product of a window that begins anywhere, and a count that orders nothing or all.
#[tile_kernel]
fn shifted(
    x: Tensor<bf16, 2>,
    y: Tensor<bf16, 2>,
    out: TensorMut<f32, 2>,
    count: TensorMut<i32, 1>,
    by: Scalar<i32>,
    order: Const<usize>,
) {
    let mut acc = zeros::<f32>((64, 64));
    for step in 0..cdiv(x.dim(1), 64) {
        let x = load_at(x, (bid(1) * 64 + by, step * 64 + 4), (64, 64));
        acc = mma(x, load(y, (step, bid(0)), (64, 64)), acc);
    }
    store_at(out, (bid(1) * 64, bid(0) * 64 + by), acc);
    let order = [MemoryOrder::Relaxed, MemoryOrder::Release][order];
    atomic_add_with(count, (0,), 1, Atomically::new().order(order));
}

fn compiled(launch: Launch<'_>, target: &Target) -> std::sync::Arc<Compiled> {
    launch.compile(target).unwrap_or_else(|error| panic!("{error}"))
}

/// Why the operations whose title starts so do not take faster paths.
fn why(explanation: &Explanation, title: &str) -> Vec<(&'static str, Reason)> {
    let items = explanation.items.iter().filter(|item| item.title.starts_with(title));
    let why: Vec<_> = items.flat_map(|item| item.why.clone()).collect();
    assert!(explanation.items.iter().any(|item| item.title.starts_with(title)), "no {title}: {explanation}");
    why
}

fn path(explanation: &Explanation, title: &str) -> Path {
    let item = explanation.items.iter().find(|item| item.title.starts_with(title));
    item.unwrap_or_else(|| panic!("no {title}: {explanation}")).paths[0].clone()
}

/// Asserts that each is among the reasons.
#[track_caller]
fn says(explanation: &Explanation, expected: &[(&str, &'static str, Reason)]) {
    for (title, slower, reason) in expected {
        let found = why(explanation, title);
        assert!(found.contains(&(slower, *reason)), "{title}: {found:?}, expected {reason:?}: {explanation}");
    }
}

fn gemm_of(tile: [usize; 3], config: Config) -> Explanation {
    let (x, y, mut out) = (wide(), wide(), meta(&[4096, 4096]));
    compiled(gemm(&x, &y, &mut out, tile).config(config), &Target::SM_90A).explanation.clone()
}

#[test]
fn nothing_is_said_against_the_fastest_paths() {
    let explanation = gemm_of([64, 64, 64], Config::default());
    for title in ["load x", "load y", "mma", "store out"] {
        assert_eq!(why(&explanation, title), [], "{explanation}");
    }
    assert!(matches!(
        path(&explanation, "mma"),
        Path::Product(Product::Warpgroups { groups: 1, rows: 64, columns: 64, .. })
    ));
    assert!(matches!(path(&explanation, "load x"), Path::Channel { bytes: 8192, swizzle: 128, .. }));
    // One warp more than those that compute; the register file has 65536, and no thread more than 255.
    assert_eq!((explanation.threads, explanation.registers), (160, 255));
}

#[test]
fn targets_configurations_and_hints() {
    let (x, y, mut out) = (wide(), wide(), meta(&[4096, 4096]));
    let old = compiled(gemm(&x, &y, &mut out, [64, 64, 64]), &Target::SM_80).explanation.clone();
    assert_eq!(old.no_roles, Some(Reason::TargetWithoutBulk("sm_80")));
    says(
        &old,
        &[
            ("load x", "no channel", Reason::TargetWithoutBulk("sm_80")),
            ("mma", "no wgmma", Reason::TargetWithoutWarpgroups("sm_80")),
            ("store out", "no bulk copies", Reason::TargetWithoutBulk("sm_80")),
        ],
    );
    let ring = Path::Ring { ring: 0, stages: 3, bytes: 8192, swizzle: 128 };
    assert_eq!(path(&old, "load x"), ring, "{old}");
    let one = Config { stages: Some(1), ..Config::default() };
    let launch = gemm(&x, &y, &mut out, [64, 64, 64]).config(one);
    let one = compiled(launch, &Target::SM_80).explanation.clone();
    says(&one, &[("load x", "no cp.async", Reason::OneStage)]);
    assert_eq!(path(&one, "load x"), Path::Plain { width: 8, bytes: 16, ahead: true });
    let off = gemm_of([64, 64, 64], Config { allow_tma: Some(false), ..Config::default() });
    says(
        &off,
        &[
            ("load x", "no channel", Reason::ConfigForbids),
            ("mma", "no wgmma", Reason::NoChannel),
            ("store out", "no bulk copies", Reason::Undivided),
        ],
    );
    let two = gemm_of([64, 64, 64], Config { num_warps: Some(2), ..Config::default() });
    says(
        &two,
        &[("load y", "no channel", Reason::NotWarpgroups(2)), ("mma", "no wgmma", Reason::NotWarpgroups(2))],
    );
    let launch = hinted(&x, &y, &mut out, 1, false);
    let hints = compiled(launch, &Target::SM_90A).explanation.clone();
    says(&hints, &[("load y", "no channel", Reason::HintForbids)]);
    assert!(matches!(path(&hints, "load x"), Path::Channel { stages: 1, .. }), "{hints}");
    let hints = compiled(hinted(&x, &y, &mut out, 1, true), &Target::SM_80).explanation.clone();
    says(
        &hints,
        &[("load x", "no cp.async", Reason::LatencyOne), ("load x", "not ahead", Reason::LatencyOne)],
    );
    assert!(matches!(path(&hints, "load y"), Path::Ring { stages: 3, .. }), "{hints}");
}

#[test]
fn only_loads_whose_index_is_computed_of_tiles_have_no_channel() {
    let (x, y, mut out) = (wide(), wide(), meta(&[4096, 4096]));
    let table = meta(&[1024]);
    let launch = paged(&x, &y, &table, &mut out);
    let explanation = compiled(launch, &Target::SM_90A).explanation.clone();
    says(&explanation, &[("load y", "no channel", Reason::DataPath)]);
    for title in ["load x", "load table"] {
        assert!(matches!(path(&explanation, title), Path::Channel { .. }), "{explanation}");
        assert_eq!(why(&explanation, title), [], "{explanation}");
    }
    assert_eq!((explanation.no_roles, explanation.roles.len()), (None, 2));
}

#[test]
fn padding_of_bulk_copies_is_a_mask() {
    let (x, y, mut out) = (wide(), wide(), meta(&[4096, 4096]));
    let explanation = compiled(filled(&x, &y, &mut out), &Target::SM_90A).explanation.clone();
    assert!(matches!(path(&explanation, "load x"), Path::Channel { masked: true, .. }), "{explanation}");
    assert!(matches!(path(&explanation, "load y"), Path::Channel { masked: false, .. }), "{explanation}");
    let line =
        "through channel 0: 4 stages of 8192 bytes, boxes (64, 64) swizzled by 128 bytes, padding by a mask";
    assert!(explanation.to_string().contains(line), "{explanation}");
}

#[test]
fn a_latency_is_the_number_of_stages_of_its_channel_alone() {
    let (x, y, mut out) = (wide(), wide(), meta(&[4096, 4096]));
    for (latency, stages) in [(2, None), (3, Some(2)), (10, None)] {
        let config = Config { stages, ..Config::default() };
        let launch = hinted(&x, &y, &mut out, latency, true).config(config);
        let explanation = compiled(launch, &Target::SM_90A).explanation.clone();
        let of = |title| match path(&explanation, title) {
            Path::Channel { stages, .. } => stages,
            other => panic!("{other}"),
        };
        assert_eq!((of("load x"), of("load y")), (latency, stages.unwrap_or(4)));
    }
    // Copies of a loop land in order: the fewest stages are those of all.
    for (latency, stages, expected) in
        [(2, None, 2), (5, None, 3), (5, Some(4), 4), (4, Some(1), 4), (2, Some(1000), 2)]
    {
        let config = Config { stages, ..Config::default() };
        let launch = hinted(&x, &y, &mut out, latency, true).config(config);
        let explanation = compiled(launch, &Target::SM_80).explanation.clone();
        let ring =
            |title| matches!(path(&explanation, title), Path::Ring { stages, .. } if stages == expected);
        assert!(ring("load x") && (ring("load y") || stages == Some(1)), "{explanation}");
    }
    let error = hinted(&x, &y, &mut out, 11, true).stage().expect_err("no such latency").to_string();
    assert!(error.contains("E0114") && error.contains("latency of 11: it is 1 to 10"), "{error}");
    assert!(error.contains("explain_reasons.rs"), "{error}");
}

#[test]
fn tensors_that_bulk_copies_cannot_address() {
    let (y, mut out) = (wide(), meta(&[4096, 4096]));
    let mut loaded = |x: &DeviceTensor<bf16>| {
        compiled(gemm(x, &y, &mut out, [64, 64, 64]), &Target::SM_90A).explanation.clone()
    };
    let strided = |strides: &[i64]| DeviceTensor::meta_strided(&[4096, 4096], strides).expect("fits");
    let offset = wide().slice(1, 4..4092).expect("inside");
    says(
        &loaded(&offset),
        &[("load x", "no channel", Reason::Pointer(8)), ("load x", "no 16 bytes", Reason::Pointer(8))],
    );
    let odd = loaded(&strided(&[4100, 1]));
    says(
        &odd,
        &[
            ("load x", "no channel", Reason::Stride { axis: 0, bytes: 8 }),
            ("load x", "no 16 bytes", Reason::Stride { axis: 0, bytes: 8 }),
        ],
    );
    assert!(matches!(path(&odd, "load x"), Path::Plain { width: 4, bytes: 8, .. }), "{odd}");
    says(
        &loaded(&strided(&[8192, 2])),
        &[("load x", "no channel", Reason::NoUnitAxis), ("load x", "no 16 bytes", Reason::NoUnitAxis)],
    );
    let (x, y) = (DeviceTensor::meta_strided(&[4096, 4098], &[4104, 1]).expect("fits"), wide());
    let mut ragged = DeviceTensor::meta_strided(&[4096, 4097], &[4104, 1]).expect("fits");
    let explanation = compiled(gemm(&x, &y, &mut ragged, [64, 64, 64]), &Target::SM_80).explanation.clone();
    // Copies of 16 bytes may reach beyond the end.
    assert!(matches!(path(&explanation, "load x"), Path::Ring { .. }), "{explanation}");
    let launch =
        gemm(&x, &y, &mut ragged, [64, 64, 64]).config(Config { stages: Some(1), ..Config::default() });
    says(&compiled(launch, &Target::SM_80).explanation, &[("load x", "no 16 bytes", Reason::Extent(2))]);
    let explanation = compiled(gemm(&x, &y, &mut ragged, [64, 64, 64]), &Target::SM_90A).explanation.clone();
    says(&explanation, &[("store out", "no bulk copies", Reason::Extent(1))]);
}

#[test]
fn sizes_and_types_of_products() {
    says(
        &gemm_of([32, 32, 32], Config::default()),
        &[
            ("mma", "no wgmma", Reason::Rows { rows: 32, groups: 1 }),
            ("load x", "no channel", Reason::NoWideProduct),
        ],
    );
    says(
        &gemm_of([64, 64, 64], Config::warpgroups(2)),
        &[("mma", "no wgmma", Reason::Rows { rows: 64, groups: 2 })],
    );
    says(
        &gemm_of([64, 4, 16], Config::warpgroups(1)),
        &[
            ("mma", "no wgmma", Reason::Columns(4)),
            ("mma", "no mma.sync", Reason::SmallProduct { m: 64, n: 4 }),
        ],
    );
    says(
        &gemm_of([64, 64, 8], Config::warpgroups(1)),
        &[
            ("mma", "no wgmma", Reason::Depth { k: 8, least: 16 }),
            ("mma", "no mma.sync", Reason::Depth { k: 8, least: 16 }),
        ],
    );
    let (x, y, mut out) = (meta::<f32>(&[64, 64]), meta(&[64, 64]), meta(&[64, 64]));
    let exact = compiled(gemm(&x, &y, &mut out, [64, 64, 64]), &Target::SM_90A).explanation.clone();
    says(&exact, &[("mma", "no wgmma", Reason::Exact), ("mma", "no mma.sync", Reason::Exact)]);
    assert_eq!(
        path(&exact, "mma"),
        Path::Product(Product::Fma { slower: Reason::Exact, slow: Reason::Exact })
    );
    let explanation =
        compiled(others(&x, &meta(&[4, 64, 64]), &mut out), &Target::SM_90A).explanation.clone();
    for product in ["mma (64, 64) tf32", "mma (4, 64, 64) bf16"] {
        let wide = matches!(path(&explanation, product), Path::Product(Product::Warpgroups { .. }));
        assert!(wide, "{product}: {explanation}");
    }
    let explanation = compiled(narrow(&x, &meta(&[64, 8]), &mut out), &Target::SM_90A).explanation.clone();
    assert_eq!((explanation.no_roles, explanation.threads), (Some(Reason::LoadedOnce), 128));
    says(
        &explanation,
        &[("mma", "no wgmma", Reason::Unreadable), ("store out", "no bulk copies", Reason::Small(512))],
    );
}

#[test]
fn loads_and_stores_of_every_other_kind() {
    let (x, mask, steps, few) = (wide(), meta(&[64, 64]), meta(&[64]), meta(&[4096, 2]));
    let (mut out, mut sums, mut last) = (meta(&[4096, 4096]), meta(&[4096, 1]), meta(&[4096, 64]));
    let config = Config::warpgroups(1);
    let launch = mixed(&x, &mask, &steps, &few, &mut out, &mut sums, &mut last).config(config);
    let explanation = compiled(launch, &Target::SM_90A).explanation.clone();
    says(
        &explanation,
        &[
            ("load mask", "no channel", Reason::Truth),
            ("load mask", "no 16 bytes", Reason::Truth),
            ("load x", "no channel", Reason::HintForbids),
            ("load x", "not ahead", Reason::Address),
            ("load steps", "no channel", Reason::FewElements(1)),
            ("load few", "no channel", Reason::ShortRow(8)),
            ("load few", "not ahead", Reason::Small(128)),
            ("load out", "no channel", Reason::Written),
            ("load out", "not ahead", Reason::Written),
            ("load out", "not ahead", Reason::NoLoop),
            ("store out", "no bulk copies", Reason::Accesses(3)),
            ("store last", "no bulk copies", Reason::SameTile),
            ("store sums", "no 16 bytes", Reason::FewPerThread(2)),
            ("store sums", "no bulk copies", Reason::Small(64)),
        ],
    );
    // 4 warps hold 192 bytes a thread: 24576, and one tile of 16384 bytes.
    let (y, config) = (wide(), Config { allow_tma: Some(false), stages: Some(1), ..Config::warpgroups(1) });
    let launch = gemm(&x, &y, &mut out, [128, 128, 64]).config(config);
    let explanation = compiled(launch, &Target::SM_90A).explanation.clone();
    says(&explanation, &[("load y", "not ahead", Reason::Budget(16384))]);
}

#[test]
fn windows_at_elements_and_atomics() {
    let (x, y, mut out, mut count) = (wide(), wide(), meta(&[4096, 4096]), meta(&[1]));
    let mut explained = |order, target: &Target| {
        compiled(shifted(&x, &y, &mut out, &mut count, 3, order), target).explanation.clone()
    };
    let explanation = explained(0, &Target::SM_90A);
    says(
        &explanation,
        &[
            ("load x", "no channel", Reason::Steps),
            ("load x", "no 16 bytes", Reason::Start(4)),
            ("store out", "no bulk copies", Reason::Steps),
            ("store out", "no 16 bytes", Reason::Start(1)),
        ],
    );
    assert!(matches!(path(&explanation, "load y"), Path::Channel { .. }), "{explanation}");
    says(&explained(0, &Target::SM_80), &[("load x", "not ahead", Reason::Steps)]);
    assert_eq!(explained(1, &Target::SM_90A).no_roles, Some(Reason::Atomics));
}

#[test]
fn loads_that_rings_cannot_take() {
    let (x, mask, steps, few) = (wide(), meta(&[64, 64]), meta(&[64]), meta(&[4096, 2]));
    let (mut out, mut sums, mut last) = (meta(&[4096, 4096]), meta(&[4096, 1]), meta(&[4096, 64]));
    let launch = mixed(&x, &mask, &steps, &few, &mut out, &mut sums, &mut last);
    says(
        &compiled(launch, &Target::SM_80).explanation,
        &[
            ("load mask", "no cp.async", Reason::Truth),
            ("load x", "no cp.async", Reason::Padding),
            ("load steps", "no cp.async", Reason::FewElements(1)),
            ("load few", "no cp.async", Reason::ShortRow(8)),
            ("load out", "no cp.async", Reason::Written),
        ],
    );
    let exact = |x: &DeviceTensor<f32>, tile: [usize; 3]| {
        let (y, mut out) = (meta(&[512, 512]), meta(&[512, 512]));
        compiled(gemm(x, &y, &mut out, tile), &Target::SM_80).explanation.clone()
    };
    // FMAs read neighbours of a down its columns, and of b along its rows.
    let explanation = exact(&meta(&[512, 512]), [64, 64, 32]);
    says(&explanation, &[("load x", "no cp.async", Reason::FmaOrder)]);
    assert_eq!(path(&explanation, "load y"), Path::Ring { ring: 0, stages: 3, bytes: 8192, swizzle: 0 });
    let turned = DeviceTensor::meta_strided(&[512, 512], &[1, 512]).expect("fits");
    assert!(matches!(path(&exact(&turned, [64, 64, 32]), "load x"), Path::Ring { .. }));
    // Two stages of tiles of 64 and 32 KiB.
    let reason = Reason::NoRoom { bytes: (2 * 96) << 10, most: 99 << 10 };
    says(&exact(&turned, [128, 64, 128]), &[("load x", "no cp.async", reason)]);
}

#[test]
fn only_loads_have_a_plan_of_bulk_copies() {
    let (x, y, mut out) = (wide(), wide(), meta(&[4096, 4096]));
    let kernel = gemm(&x, &y, &mut out, [64, 64, 64]).stage().expect("valid").kernel;
    let mut stores = 0;
    kernel.walk(|id, op| {
        if let OpKind::Store(_) = op.kind {
            stores += 1;
            assert_eq!(bulk_plan(&kernel, id), Err(Reason::Computed));
        }
    });
    assert_eq!(stores, 1);
}

#[test]
fn a_configuration_for_each_target() {
    let (x, y, mut out) = (wide(), wide(), meta(&[4096, 4096]));
    let config = ByTarget::new(Config { num_warps: Some(2), ..Config::default() })
        .on(&Target::SM_90A, Config::warpgroups(2))
        .on(&Target::SM_90A, Config::warpgroups(1));
    let launch = gemm(&x, &y, &mut out, [64, 64, 64]).config(config);
    assert_eq!(launch.compile(&Target::SM_80).expect("valid").threads, 64);
    assert_eq!(launch.compile(&Target::SM_90A).expect("valid").threads, 160);
}

#[test]
fn numbers_that_there_cannot_be_are_refused() {
    let (x, y, mut out) = (wide(), wide(), meta(&[4096, 4096]));
    let none = Config::default();
    for (config, words) in [
        (Config { stages: Some(0), ..none }, "with 0 stages: a channel has at least 1"),
        (Config { occupancy: Some(0), ..none }, "an occupancy of 0: a multiprocessor holds 1 to 32 blocks"),
        (Config { num_warps: Some(3), ..none }, "with 3 warps: a block has 1, 2, 4, 8 or 16"),
        (Config::warpgroups(3), "with 12 warps: a block has 1, 2, 4, 8 or 16"),
    ] {
        for target in [Target::SM_80, Target::SM_90A] {
            let launch = gemm(&x, &y, &mut out, [64, 64, 64]).config(config);
            let error = launch.compile(&target).expect_err("no such configuration").to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}

#[test]
fn channels_that_do_not_fit_have_fewer_stages_or_are_left_out() {
    // 1000 stages of two tiles of 8192 bytes, and two mbarriers of 8 bytes for each stage.
    let config = Config { stages: Some(1000), ..Config::default() };
    let explanation = gemm_of([64, 64, 64], config);
    let reason = Reason::NoRoom { bytes: 1000 * 2 * (8192 + 16), most: 232_448 };
    assert_eq!(explanation.no_roles, Some(reason), "{explanation}");
    says(&explanation, &[("load x", "no channel", reason), ("load y", "no channel", reason)]);
    // Rings have 10 at most, which fit here, but not on other GPUs.
    assert!(matches!(path(&explanation, "load x"), Path::Ring { stages: 10, .. }), "{explanation}");
    let (x, y, mut out) = (wide(), wide(), meta(&[4096, 4096]));
    let launch = gemm(&x, &y, &mut out, [64, 64, 64]).config(config);
    let explanation = compiled(launch, &Target::SM_80).explanation.clone();
    let reason = Reason::NoRoom { bytes: 10 * 2 * 8192, most: 99 << 10 };
    says(&explanation, &[("load x", "no cp.async", reason)]);
    assert!(matches!(path(&explanation, "load x"), Path::Plain { ahead: true, .. }), "{explanation}");
    // Three stages of 65536 bytes leave 24 KiB and more, but not for the sums that are transposed in the loop.
    let (x, y, mut out) = (wide(), wide(), meta(&[4096, 4096]));
    let explanation = compiled(turning(&x, &y, &mut out, 128), &Target::SM_90A).explanation.clone();
    for title in ["load x", "load y"] {
        assert!(matches!(path(&explanation, title), Path::Channel { stages: 2, .. }), "{explanation}");
    }
}

#[test]
fn explanations_show_the_lines_of_the_source() {
    let (x, y, mut out) = (wide(), wide(), meta(&[4096, 4096]));
    let text = gemm(&x, &y, &mut out, [64, 64, 64]).explain(&Target::SM_80).expect("valid");
    for line in [
        "kernel `gemm` for sm_80",
        "store(out, (bid(1), bid(0)), acc);",
        "  load y (64, 64) bf16: cp.async through ring 1: 3 stages of 8192 bytes, swizzled by 128 bytes",
        "    no channel: sm_80 has no bulk tensor copies",
    ] {
        assert!(text.lines().any(|l| l == line || l.ends_with(&format!(": {line}"))), "{line}: {text}");
    }
}
