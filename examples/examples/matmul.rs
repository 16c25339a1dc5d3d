//! Matrix product: each block computes one tile of the result, with a loop over the inner dimension.

use std::process::ExitCode;

use clap::Parser;
use examples::{Bench, BenchOption, Check, DeviceOption, Result, Value, compare, normal, print_ptx};
use tile_runtime::prelude::*;
use tile_runtime::target_of;

/// `c[i, j] = sum_k a[i, k] b[k, j]`: `a` is `[m, k]`, `b` `[k, n]`, `c` `[m, n]`, of any sizes. Grid: as many
/// blocks as `c` has tiles.
///
/// Products are added in f32 and the sum is rounded to `T` once. f16 and bf16 run on tensor cores, f32 is exact f32.
/// Blocks that run at the same time share operands in the cache: they go down `group` rows of tiles before they go right.
#[tile_kernel]
pub fn matmul<T: MmaOperand + Storable>(
    a: Tensor<T, 2>,
    b: Tensor<T, 2>,
    c: TensorMut<T, 2>,
    block_m: Const<usize>,
    block_n: Const<usize>,
    block_k: Const<usize>,
    group: Const<usize>,
) {
    let (rows, columns) = (cdiv(c.dim(0), block_m), cdiv(c.dim(1), block_n));
    let first = bid(0) / (columns * group) * group;
    let height = minimum(rows - first, group);
    let rest = bid(0) % (columns * group);
    let (row, column) = (first + rest % height, rest / height);

    let mut sum = zeros::<f32>((block_m, block_n));
    for k in 0..cdiv(a.dim(1), block_k) {
        let a = load(a, (row, k), (block_m, block_k));
        let b = load(b, (k, column), (block_k, block_n));
        sum = mma(a, b, sum);
    }
    store(c, (row, column), sum.cast::<T>());
}

/// How a product is launched.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// Tile sizes m, n and k.
    pub tiles: [usize; 3],
    /// Rows of tiles that blocks go down before they go right.
    pub group: usize,
    /// Configuration of the code.
    pub config: Config,
    /// The target, if not the one that suits the device.
    pub target: Option<Target>,
}

/// Tiles for an element type and a target: 16-bit operands feed tensor cores from large tiles, f32 ones take more room
/// each. Two warpgroups of Hopper hold 64 rows of 256 sums each.
pub fn tuning<T: Value>(target: Option<Target>) -> Tuning {
    let (tiles, warps) = match (size_of::<T>(), target) {
        (2, Some(Target::SM_90A)) => ([128, 256, 64], 8),
        (2, _) => ([128, 128, 64], 4),
        _ => ([64, 64, 32], 4),
    };
    let config = Config { num_warps: Some(warps), ..Config::default() };
    Tuning { tiles, group: 16, config, target }
}

/// The launch of the product in these tiles, with its grid.
pub fn product<'a, T: Value>(
    a: &'a DeviceTensor<T>,
    b: &'a DeviceTensor<T>,
    c: &'a mut DeviceTensor<T>,
    Tuning { tiles: [m, n, k], group, config, target }: Tuning,
) -> (Launch<'a>, usize) {
    let grid = c.shape()[1].div_ceil(n) * c.shape()[0].div_ceil(m);
    let launch = matmul(a, b, c, m, n, k, group).config(config);
    (if let Some(target) = target { launch.target(&target) } else { launch }, grid)
}

/// A product of random matrices on a device.
struct Problem<T> {
    shape: [usize; 3],
    host: [Vec<T>; 2],
    a: DeviceTensor<T>,
    b: DeviceTensor<T>,
    c: DeviceTensor<T>,
}

impl<T: Value> Problem<T> {
    fn new(device: &Device, [m, n, k]: [usize; 3]) -> Result<Self> {
        let host = [normal::<T>(1, m * k), normal::<T>(2, k * n)];
        let a = DeviceTensor::from_slice(device, &[m, k], &host[0])?;
        let b = DeviceTensor::from_slice(device, &[k, n], &host[1])?;
        let c = DeviceTensor::zeros(device, &[m, n])?;
        Ok(Self { shape: [m, n, k], host, a, b, c })
    }

    fn queue(&self, stream: &Stream, tuning: Tuning) -> tile_runtime::Result<()> {
        let mut c = self.c.clone();
        let (launch, grid) = product(&self.a, &self.b, &mut c, tuning);
        launch.on(stream).launch(grid)
    }

    /// Checks every `step`-th row of the result.
    fn check(&self, step: usize) -> Result<Check> {
        let [m, n, k] = self.shape;
        let all = self.c.to_vec()?;
        let (mut got, mut want, mut scale) = (Vec::new(), Vec::new(), Vec::new());
        for i in (0..m).step_by(step) {
            got.extend_from_slice(&all[i * n..][..n]);
            let (mut row, mut magnitude) = (vec![0.0; n], vec![0.0; n]);
            for (l, a) in self.host[0][i * k..][..k].iter().map(|a| a.to_f64()).enumerate() {
                for (j, b) in self.host[1][l * n..][..n].iter().map(|b| b.to_f64()).enumerate() {
                    row[j] += a * b;
                    magnitude[j] += (a * b).abs();
                }
            }
            want.extend(row);
            scale.extend(magnitude);
        }
        // Relative to sum_k |a b|: each of k additions rounds once, on tensor cores towards zero, which errs twice as
        // much; the result is rounded to `T` once.
        let tolerance = T::ROUNDING + 2.0 * f32::ROUNDING * k as f64;
        Ok(compare(format!("{m}x{n}x{k} {}", T::NAME), &got, &want, |i| scale[i], tolerance))
    }
}

/// Multiplies random matrices `[m, k]` and `[k, n]`.
pub fn check<T: Value>(device: &Device, shape: [usize; 3]) -> Result<Check> {
    let problem = Problem::<T>::new(device, shape)?;
    problem.queue(&device.default_stream(), tuning::<T>(target_of(device)))?;
    problem.check(1)
}

/// Times the bf16 product of square matrices of size `n` on a GPU, and checks some rows.
fn bench(device: &Device, n: usize, tuning: Tuning) -> Result<Check> {
    let problem = Problem::<bf16>::new(device, [n; 3])?;
    let Tuning { tiles: [tm, tn, tk], group, config, .. } = tuning;
    let warps = config.num_warps.unwrap_or_default();
    let config = format!("{tm}x{tn}x{tk}, group {group}, {warps} warps");
    let shape = format!("{n}x{n}x{n} bf16");
    Bench::time(device, "matmul", shape, config, |stream| problem.queue(stream, tuning))?
        .print_flops(2.0 * (n as f64).powi(3));
    problem.check(509)
}

/// Multiplies two matrices and checks the product, for bf16, f16 and f32.
#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    device: DeviceOption,
    #[command(flatten)]
    bench: BenchOption,
    /// Rows of the result
    #[arg(short, long, default_value_t = 300)]
    m: usize,
    /// Columns of the result
    #[arg(short, long, default_value_t = 201)]
    n: usize,
    /// Terms of each sum
    #[arg(short, long, default_value_t = 500)]
    k: usize,
    /// Size of the matrices that --bench multiplies
    #[arg(long, default_value_t = 4096)]
    size: usize,
    /// Tile sizes for --bench: powers of two
    #[arg(long, num_args = 3, value_names = ["M", "N", "K"])]
    block: Option<Vec<usize>>,
    /// Target for --bench instead of the GPU's own: sm_80 or sm_90a
    #[arg(long)]
    target: Option<String>,
    /// Rows of tiles for --bench that blocks go down before they go right
    #[arg(long)]
    group: Option<usize>,
}

impl Cli {
    fn tuning(&self, target: Option<Target>) -> Tuning {
        let Tuning { tiles, group, config, target } = tuning::<bf16>(target);
        let tiles = self.block.as_deref().map_or(tiles, |b| [b[0], b[1], b[2]]);
        Tuning { tiles, group: self.group.unwrap_or(group), config: self.bench.config(config), target }
    }

    fn print_ptx(&self, target: &str) -> Result<()> {
        let tensor = || DeviceTensor::<bf16>::meta(&[self.size, self.size]);
        let (a, b, mut c) = (tensor()?, tensor()?, tensor()?);
        print_ptx(&product(&a, &b, &mut c, self.tuning(Target::by_name(target))).0, target)
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let shape = [cli.m, cli.n, cli.k];
    examples::run("matmul", &cli.device, |device| {
        if let Some(target) = &cli.bench.ptx {
            cli.print_ptx(target)?;
            return Ok(Vec::new());
        }
        if cli.bench.bench {
            let target = match cli.target.as_deref() {
                Some(name) => Some(
                    Target::by_name(name)
                        .ok_or_else(|| anyhow::anyhow!("no target `{name}`; write sm_80 or sm_90a"))?,
                ),
                None => target_of(device),
            };
            return Ok(vec![bench(device, cli.size, cli.tuning(target))?]);
        }
        Ok(vec![check::<bf16>(device, shape)?, check::<f16>(device, shape)?, check::<f32>(device, shape)?])
    })
}
