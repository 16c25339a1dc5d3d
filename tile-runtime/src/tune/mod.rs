//! Tuning: an exhaustive search over a declared space, and its results on disk.
//!
//! ```
//! use tile_runtime::timing::{Time, measure};
//! use tile_runtime::tune::{Point, Space, Trial, search};
//! use tile_runtime::prelude::*;
//!
//! #[tile_kernel]
//! fn double(x: Tensor<f32, 1>, y: TensorMut<f32, 1>, block: Const<usize>) {
//!     store(y, (bid(0),), load(x, (bid(0),), (block,)) * 2.0);
//! }
//!
//! struct Double { x: DeviceTensor<f32>, y: DeviceTensor<f32> }
//!
//! impl Double {
//!     fn queue(&mut self, point: &Point, stream: &Stream) -> Result<()> {
//!         let block = point.get("block").unwrap_or(256) as usize;
//!         double(&self.x, &mut self.y, block).on(stream).launch(self.x.numel().div_ceil(block))
//!     }
//! }
//!
//! impl Trial for Double {
//!     type Output = Vec<f32>;
//!     type Error = Error;
//!     fn run(&mut self, point: &Point) -> Result<Vec<f32>> {
//!         self.queue(point, &self.x.device().default_stream())?;
//!         self.y.to_vec()
//!     }
//!     fn compare(&self, first: &Vec<f32>, other: &Vec<f32>) -> std::result::Result<(), String> {
//!         if first == other { Ok(()) } else { Err("the values differ".to_owned()) }
//!     }
//!     fn time(&mut self, point: &Point) -> Result<Time> {
//!         let device = self.x.device().clone();
//!         measure(&device, &mut |stream| self.queue(point, stream))
//!     }
//! }
//!
//! # fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
//! let x = DeviceTensor::full(&Device::cpu(), &[1000], 1.5f32)?;
//! let mut trial = Double { y: DeviceTensor::zeros(&Device::cpu(), &[1000])?, x };
//! let space = Space::new().axis("block", [64, 128, 256]).first(Point::new().with("block", 256));
//! let search = search(&space, &mut trial, &mut |_, _| {})?;
//! println!("{} takes {:?}", search.winner().point, search.time().median);
//! # Ok(())
//! # }
//! ```
//!
//! [`Store`] keeps what was found. Nothing needs it: without results, and with `TILE_TUNED=off`, programs take their defaults.
//!
//! | environment variable | meaning |
//! |---|---|
//! | `TILE_TUNED=off` | no results are read or kept |
//! | `TILE_TUNED_DIR` | the folder, in place of `tuned` in the folder of the linked code (see [`cache`](crate::cache)) |
//!
//! They are read once a process.

mod resources;
mod search;
mod space;
mod store;

pub use resources::fits;
pub use search::{NoWinner, Outcome, Search, Trial, Tried, search};
pub use space::{Point, Space};
pub use store::{Answer, Question, Store, generation, kernels};
