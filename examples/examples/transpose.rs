//! Transposition of a matrix: each block moves one tile, reading and writing whole rows of it.

use std::process::ExitCode;

use clap::Parser;
use examples::{Check, DeviceOption, Result, Value, compare, normal};
use tile_runtime::prelude::*;

/// `out[j, i] = x[i, j]`: `x` is `[rows, columns]`, `out` `[columns, rows]`. Grid: tiles of columns, tiles of rows.
#[tile_kernel]
pub fn transpose_matrix<T: Storable>(x: Tensor<T, 2>, out: TensorMut<T, 2>, block: Const<usize>) {
    let (column, row) = (bid(0), bid(1));
    store(out, (column, row), load(x, (row, column), (block, block)).transpose());
}

/// Rows and columns of a tile.
pub const BLOCK: usize = 64;

/// Transposes a random matrix. Nothing is rounded.
pub fn check<T: Value>(device: &Device, rows: usize, columns: usize) -> Result<Check> {
    let host = normal::<T>(1, rows * columns);
    let x = DeviceTensor::from_slice(device, &[rows, columns], &host)?;
    let mut out = DeviceTensor::<T>::zeros(device, &[columns, rows])?;
    let grid = (columns.div_ceil(BLOCK), rows.div_ceil(BLOCK));
    transpose_matrix(&x, &mut out, BLOCK).launch(grid)?;

    let want: Vec<f64> = (0..columns)
        .flat_map(|j| (0..rows).map(move |i| (i, j)))
        .map(|(i, j)| host[i * columns + j].to_f64())
        .collect();
    Ok(compare(format!("{rows}x{columns} {}", T::NAME), &out.to_vec()?, &want, |_| 1.0, 0.0))
}

/// Transposes a matrix and checks every element.
#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    device: DeviceOption,
    /// Rows of the matrix
    #[arg(long, default_value_t = 1000)]
    rows: usize,
    /// Columns of the matrix
    #[arg(long, default_value_t = 777)]
    columns: usize,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    examples::run("transpose", &cli.device, |device| {
        Ok(vec![check::<f32>(device, cli.rows, cli.columns)?, check::<bf16>(device, cli.rows, cli.columns)?])
    })
}
