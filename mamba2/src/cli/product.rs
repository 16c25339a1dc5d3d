//! One large f32 matrix product, as a yardstick for the CPU: the same multiply-adds in the simplest form.

use std::time::{Duration, Instant};

use ndarray::{Array2, linalg::general_mat_mul};
use rayon::prelude::*;

/// Columns and inner size of the product. The rows make up the rest of the multiply-adds.
const SIDE: usize = 1024;

/// A product of `[rows, 1024]` and `[1024, 1024]` with at least a given number of multiply-adds, cut into a block of rows
/// for each thread of the current pool.
pub(crate) struct Product {
    rows: usize,
    left: Vec<Array2<f32>>,
    right: Array2<f32>,
    results: Vec<Array2<f32>>,
}

impl Product {
    pub(crate) fn of(multiply_adds: u64) -> Product {
        let rows = multiply_adds.div_ceil((SIDE * SIDE) as u64).max(1) as usize;
        let threads = rayon::current_num_threads().min(rows);
        let block = |i: usize| rows * (i + 1) / threads - rows * i / threads;
        // Small whole numbers: no subnormal and no infinity slows the product down.
        let fill = |(i, j): (usize, usize)| ((i * 7 + j * 3) % 5) as f32 - 2.0;
        Product {
            rows,
            left: (0..threads).map(|i| Array2::from_shape_fn((block(i), SIDE), fill)).collect(),
            right: Array2::from_shape_fn((SIDE, SIDE), fill),
            results: (0..threads).map(|i| Array2::zeros((block(i), SIDE))).collect(),
        }
    }

    /// The sizes as rows x columns x inner.
    pub(crate) fn sizes(&self) -> String {
        format!("{} x {SIDE} x {SIDE}", self.rows)
    }

    /// Forms the product once.
    pub(crate) fn time_once(&mut self) -> Duration {
        let start = Instant::now();
        let right = &self.right;
        self.left.par_iter().zip(&mut self.results).for_each(|(left, result)| {
            general_mat_mul(1.0, left, right, 0.0, result);
        });
        start.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_blocks_make_up_the_whole() {
        let mut product = Product::of(5 * (1 << 20) + 1);
        assert_eq!(product.sizes(), "6 x 1024 x 1024");
        assert_eq!(product.left.iter().map(|block| block.nrows()).sum::<usize>(), 6);
        product.time_once();
        let (left, right) = (&product.left[0], &product.right);
        let expected: f32 = (0..SIDE).map(|k| left[(0, k)] * right[(k, 1)]).sum();
        assert_eq!(product.results[0][(0, 1)], expected);
    }
}
