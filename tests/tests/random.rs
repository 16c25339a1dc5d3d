//! Random small kernels: on the CPU they give what plain Rust gives, exactly, and they compile for `sm_80` and `sm_90a`.
//!
//! Values are whole numbers that every step keeps small, so that each sum and product is exact in any order.

use proptest::prelude::*;
use tile_runtime::prelude::*;
use tile_runtime::{ConstKey, ConstParam};

/// Bounds of all values between steps: products of two and sums of thousands are exact in f32.
const BOUND: f32 = 64.0;

/// One step of a kernel, on its current tile of rank 2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Negate,
    Abs,
    /// Adds the number of the column.
    AddColumns,
    /// Multiplies by the number of the row, modulo 4.
    TimesRows,
    /// Elements above 1 stay, others become the maximum of their column.
    Select,
    Transpose,
    /// Twice the rows, half the columns, or the other way round.
    Reshape(bool),
    /// The half of the columns, the first or the second.
    Half(bool),
    /// Takes the sum along an axis away.
    LessSum(usize),
    /// Adds the minimum of the whole tile.
    AddMinimum,
    Cumsum(usize, bool),
    /// The product with its own transpose, in bf16 or f32.
    Square(bool),
    /// Through i32, with bit operations.
    Bits,
    /// Through bf16, f16, or both.
    Halves(bool),
    /// A loop of two iterations that adds the transpose of a transposed copy.
    Loop,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        Just(Step::Negate),
        Just(Step::Abs),
        Just(Step::AddColumns),
        Just(Step::TimesRows),
        Just(Step::Select),
        Just(Step::Transpose),
        any::<bool>().prop_map(Step::Reshape),
        any::<bool>().prop_map(Step::Half),
        (0..2_usize).prop_map(Step::LessSum),
        Just(Step::AddMinimum),
        (0..2_usize, any::<bool>()).prop_map(|(axis, reverse)| Step::Cumsum(axis, reverse)),
        any::<bool>().prop_map(Step::Square),
        Just(Step::Bits),
        any::<bool>().prop_map(Step::Halves),
        Just(Step::Loop),
    ]
}

/// The steps of a kernel and the shape of the tile that it begins with.
#[derive(Clone, Debug)]
struct Recipe {
    shape: [usize; 2],
    steps: Vec<Step>,
}

impl ConstParam for Recipe {
    fn key(&self, key: &mut ConstKey<'_>) {
        // One character after the other tells any two apart.
        let text = format!("{self:?}");
        key.word(text.len() as u64);
        text.bytes().for_each(|byte| key.word(byte.into()));
    }
}

fn recipe() -> impl Strategy<Value = Recipe> {
    (0..7_u32, 0..7_u32, prop::collection::vec(step(), 1..7))
        .prop_map(|(rows, columns, steps)| Recipe { shape: [1 << rows, 1 << columns], steps })
}

// ---- as a kernel

#[tile_kernel]
fn kernel(x: Tensor<f32, 2>, out: TensorMut<f32, 2>, recipe: Recipe, twice: Scalar<i32>) {
    let mut t = load(x, (bid(0), 0), recipe.shape);
    for step in unroll(recipe.steps) {
        t = apply(t, step, twice);
        t = t.minimum(BOUND).maximum(-BOUND);
    }
    store(out, (bid(0), 0), t);
}

#[tile_fn]
fn apply(t: Tile<f32>, step: Step, twice: Scalar<i32>) -> Tile<f32> {
    let [rows, columns] = [t.shape()[0], t.shape()[1]];
    match step {
        Step::Negate => -t,
        Step::Abs => t.abs(),
        Step::AddColumns => t + arange::<i32>(columns).cast::<f32>(),
        Step::TimesRows => t * (arange::<i32>(rows) % 4).cast::<f32>().expand_dims(1),
        Step::Select => where_(t > 1.0, t, t.max_keepdims(0)),
        Step::Transpose => t.transpose(),
        Step::Reshape(true) if columns > 1 => t.reshape((rows * 2, columns / 2)),
        Step::Reshape(false) if rows > 1 => t.reshape((rows / 2, columns * 2)),
        Step::Half(second) if columns > 1 => t.extract((0, usize::from(second)), (rows, columns / 2)),
        Step::LessSum(axis) => t - t.sum_keepdims(axis),
        Step::AddMinimum => t + t.min(ALL).item(),
        Step::Cumsum(axis, false) => t.cumsum(axis),
        Step::Cumsum(axis, true) => t.cumsum_reverse(axis),
        Step::Square(half) if rows >= 16 && columns >= 16 => {
            let acc = ones((rows, rows));
            if half {
                let t = t.cast::<bf16>();
                mma(t, t.transpose(), acc)
            } else {
                mma(t, t.transpose(), acc)
            }
        }
        Step::Bits => (((t.cast::<i32>() << 1) ^ 5) & 63).cast::<f32>(),
        Step::Halves(true) => (t.cast::<bf16>() + 1.0).cast::<f32>(),
        Step::Halves(false) => (t.cast::<f16>() * 2.0).cast::<bf16>().cast::<f32>(),
        Step::Loop => {
            let mut sum = t;
            let mut other = t.transpose();
            for _ in 0..twice {
                sum = sum + other.transpose();
                other = -other;
            }
            sum
        }
        _ => t,
    }
}

// ---- in plain Rust

/// A matrix of whole numbers.
#[derive(Clone, Debug)]
struct Matrix {
    rows: usize,
    columns: usize,
    data: Vec<i64>,
}

impl Matrix {
    fn new(rows: usize, columns: usize, at: impl Fn(usize, usize) -> i64) -> Self {
        let data = (0..rows * columns).map(|i| at(i / columns, i % columns)).collect();
        Self { rows, columns, data }
    }

    fn at(&self, row: usize, column: usize) -> i64 {
        self.data[row * self.columns + column]
    }

    fn map(&self, f: impl Fn(usize, usize, i64) -> i64) -> Self {
        Self::new(self.rows, self.columns, |i, j| f(i, j, self.at(i, j)))
    }

    fn apply(&self, step: Step) -> Self {
        let (rows, columns) = (self.rows, self.columns);
        match step {
            Step::Negate => self.map(|_, _, x| -x),
            Step::Abs => self.map(|_, _, x| x.abs()),
            Step::AddColumns => self.map(|_, j, x| x + j as i64),
            Step::TimesRows => self.map(|i, _, x| x * (i % 4) as i64),
            Step::Select => {
                let most = |j| (0..rows).map(|i| self.at(i, j)).max().expect("a row");
                self.map(|_, j, x| if x > 1 { x } else { most(j) })
            }
            Step::Transpose => Self::new(columns, rows, |i, j| self.at(j, i)),
            Step::Reshape(true) if columns > 1 => {
                Self { rows: rows * 2, columns: columns / 2, data: self.data.clone() }
            }
            Step::Reshape(false) if rows > 1 => {
                Self { rows: rows / 2, columns: columns * 2, data: self.data.clone() }
            }
            Step::Half(second) if columns > 1 => {
                let from = if second { columns / 2 } else { 0 };
                Self::new(rows, columns / 2, |i, j| self.at(i, from + j))
            }
            Step::LessSum(0) => self.map(|_, j, x| x - (0..rows).map(|i| self.at(i, j)).sum::<i64>()),
            Step::LessSum(_) => self.map(|i, _, x| x - (0..columns).map(|j| self.at(i, j)).sum::<i64>()),
            Step::AddMinimum => {
                let least = *self.data.iter().min().expect("an element");
                self.map(|_, _, x| x + least)
            }
            Step::Cumsum(0, false) => self.map(|i, j, _| (0..=i).map(|i| self.at(i, j)).sum()),
            Step::Cumsum(0, true) => self.map(|i, j, _| (i..rows).map(|i| self.at(i, j)).sum()),
            Step::Cumsum(_, false) => self.map(|i, j, _| (0..=j).map(|j| self.at(i, j)).sum()),
            Step::Cumsum(_, true) => self.map(|i, j, _| (j..columns).map(|j| self.at(i, j)).sum()),
            Step::Square(_) if rows >= 16 && columns >= 16 => Self::new(rows, rows, |i, j| {
                1 + (0..columns).map(|k| self.at(i, k) * self.at(j, k)).sum::<i64>()
            }),
            Step::Bits => self.map(|_, _, x| ((x << 1) ^ 5) & 63),
            Step::Halves(true) => self.map(|_, _, x| x + 1),
            Step::Halves(false) => self.map(|_, _, x| x * 2),
            // Two iterations: the transpose once added, once taken away.
            Step::Loop | Step::Reshape(_) | Step::Half(_) | Step::Square(_) => self.clone(),
        }
    }
}

fn run(recipe: &Recipe, seed: i64) -> Result<(), TestCaseError> {
    let [rows, columns] = recipe.shape;
    // The last row of the second block lies outside the tensor: it counts as zeros.
    let given = 2 * rows - 1;
    let value = |i: usize, j: usize| if i < given { ((i * 7 + j * 3) as i64 * 5 + seed) % 9 - 4 } else { 0 };
    let mut expected = Vec::new();
    let mut shape = recipe.shape;
    for block in 0..2 {
        let mut tile = Matrix::new(rows, columns, |i, j| value(block * rows + i, j));
        for &step in &recipe.steps {
            tile = tile.apply(step).map(|_, _, x| x.clamp(-BOUND as i64, BOUND as i64));
        }
        shape = [tile.rows, tile.columns];
        expected.extend(tile.data.iter().map(|&x| x as f32));
    }
    let device = Device::cpu();
    let input: Vec<f32> = (0..given * columns).map(|i| value(i / columns, i % columns) as f32).collect();
    let x = DeviceTensor::from_slice(&device, &[given, columns], &input).expect("one value an element");
    let mut out = DeviceTensor::zeros(&device, &[2 * shape[0], shape[1]]).expect("fits");
    let launch = kernel(&x, &mut out, recipe.clone(), 2);
    launch.launch(2).map_err(|error| TestCaseError::fail(error.to_string()))?;
    drop(launch);
    let found = out.to_vec().expect("host memory");
    // -0 and 0 are one number here.
    prop_assert_eq!(found.iter().map(|x| x + 0.0).collect::<Vec<_>>(), expected);
    for warps in [1, 2, 4, 8] {
        let config = Config { num_warps: Some(warps), ..Config::default() };
        let launch = kernel(&x, &mut out, recipe.clone(), 2).config(config);
        for target in [Target::SM_80, Target::SM_90A] {
            launch
                .compile(&target)
                .map_err(|error| TestCaseError::fail(format!("{warps} warps, {}: {error}", target.name)))?;
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_kernels(recipe in recipe(), seed in 0..9_i64) {
        run(&recipe, seed)?;
    }
}

/// Every step by itself, so that none is missing by chance.
#[test]
fn every_step() {
    let steps = [
        Step::Negate,
        Step::Abs,
        Step::AddColumns,
        Step::TimesRows,
        Step::Select,
        Step::Transpose,
        Step::Reshape(true),
        Step::Reshape(false),
        Step::Half(true),
        Step::LessSum(0),
        Step::LessSum(1),
        Step::AddMinimum,
        Step::Cumsum(0, false),
        Step::Cumsum(1, true),
        Step::Square(true),
        Step::Square(false),
        Step::Bits,
        Step::Halves(true),
        Step::Halves(false),
        Step::Loop,
    ];
    for step in steps {
        run(&Recipe { shape: [32, 16], steps: vec![step] }, 3)
            .unwrap_or_else(|fault| panic!("{step:?}: {fault}"));
    }
}
