//! Block sizes: how the kernels cut a problem, by element type and shape.

mod point;

use tile_runtime::{Element, Target};

use crate::error::{Error, Result};
use crate::problem::Shape;

/// The constants of the three kernels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Plan {
    /// Tokens in a chunk.
    pub(crate) chunk: usize,
    /// Heads in a tile of `chunk_cumsum`.
    pub(crate) block_heads: usize,
    /// Tokens in one product of `fwd_pass_state`.
    pub(crate) state_tokens: usize,
    /// Head dimensions in a tile of `fwd_pass_state`.
    pub(crate) state_head_dim: usize,
    /// States in a tile of `fwd_pass_state`.
    pub(crate) state_state: usize,
    /// Rows and columns in a block of `compute_out`.
    pub(crate) out_tokens: usize,
    /// Head dimensions in a tile of `compute_out`.
    pub(crate) out_head_dim: usize,
    /// States in one product of `compute_out`.
    pub(crate) out_state: usize,
    /// Blocks of `fwd_pass_state` that share a multiprocessor.
    pub(crate) state_occupancy: usize,
    /// Warps that compute in a block of `fwd_pass_state`; 0 leaves it to the compiler.
    pub(crate) state_warps: usize,
    /// Stages of the loads in the loop of `fwd_pass_state`; 0 leaves them to the compiler.
    pub(crate) state_stages: usize,
    /// 1 keeps `fwd_pass_state` from bulk copies into shared memory, 0 does not.
    pub(crate) state_plain: usize,
    /// Blocks of `compute_out` that share a multiprocessor.
    pub(crate) out_occupancy: usize,
    /// Warps that compute in a block of `compute_out`; 0 leaves it to the compiler.
    pub(crate) out_warps: usize,
    /// As `state_stages`.
    pub(crate) out_stages: usize,
    /// As `state_plain`.
    pub(crate) out_plain: usize,
}

/// The chunk length when none is asked for.
pub fn default_chunk(shape: Shape) -> usize {
    // A chunk longer than the sequence would only be padding.
    shape.tokens.next_power_of_two().clamp(16, 128)
}

/// Blocks of `fwd_pass_state` from which on larger tiles are faster, on the 132 multiprocessors of an H200.
const BUSY: usize = 80;

/// Warps of blocks with masks, where warpgroups do not multiply.
const MASKED_WARPS: usize = 8;

/// Tiles of an axis: the next power of two, within what tensor cores take and what fits on chip.
pub(crate) fn tile(size: usize, most: usize) -> usize {
    size.next_power_of_two().clamp(16, most)
}

impl Plan {
    /// The block sizes for elements of type `T`.
    ///
    /// # Errors
    /// If the chunk is not a power of two from 16 to 256.
    pub(crate) fn new<T: Element>(
        shape: Shape,
        chunk: Option<usize>,
        target: Option<Target>,
    ) -> Result<Plan> {
        let chunk = chunk.unwrap_or_else(|| default_chunk(shape));
        Self::check_chunk(chunk)?;
        // f32 operands take twice the shared memory. The sizes were the fastest of those tried on an H200 for the
        // published layer sizes.
        let wide = T::TYPE.bytes() == 4;
        let warpgroups = !wide && target.is_some_and(|target| target.warpgroups);
        let plan = Plan {
            chunk,
            block_heads: shape.heads.next_power_of_two().clamp(1, 8),
            state_tokens: if wide || chunk > 128 { chunk.min(64) } else { chunk },
            state_head_dim: tile(shape.head_dim, 64),
            state_state: tile(shape.state, 32),
            out_tokens: chunk.min(if shape.state > 128 { 32 } else { 64 }),
            out_head_dim: tile(shape.head_dim, 64),
            out_state: tile(shape.state, if wide { 32 } else { 128 }),
            state_occupancy: 1,
            state_warps: 0,
            state_stages: 0,
            state_plain: 0,
            out_occupancy: 1,
            out_warps: 0,
            out_stages: 0,
            out_plain: 0,
        };
        Ok(if warpgroups { plan.for_warpgroups(shape) } else { plan })
    }

    /// Whether a chunk may have so many tokens.
    pub(crate) fn check_chunk(chunk: usize) -> Result<()> {
        if chunk.is_power_of_two() && (16..=256).contains(&chunk) {
            return Ok(());
        }
        Err(Error::Argument {
            argument: "chunk",
            found: format!("is {chunk}"),
            expected: "a power of two from 16 to 256".into(),
        })
    }

    /// For packed sequences, whose sums of decays are taken one head at a time, and whose masks take registers: smaller tiles, or more
    /// threads where their accumulators are in the way of everything else.
    pub(crate) fn masked(self, target: Option<Target>) -> Plan {
        let warpgroups = target.is_some_and(|target| target.warpgroups);
        // Masks of all parts of a long chunk are there together.
        let long = self.chunk > 128;
        let warps = |warps: usize| if warps == 0 && !warpgroups { MASKED_WARPS } else { warps };
        Plan {
            block_heads: 1,
            // Two products a chunk, or one.
            state_tokens: if long { self.chunk / 2 } else { self.state_tokens.min(64) },
            state_state: self.state_state.min(64),
            state_head_dim: if long { self.state_head_dim.min(32) } else { self.state_head_dim },
            state_warps: warps(self.state_warps),
            out_occupancy: if long { 1 } else { self.out_occupancy },
            out_warps: warps(self.out_warps),
            ..self
        }
    }

    /// A warpgroup multiplies 64 rows at least, and tiles come through shared memory.
    fn for_warpgroups(self, shape: Shape) -> Plan {
        let blocks = |state: usize, head_dim: usize| {
            shape.batch * shape.heads * shape.state.div_ceil(state) * shape.head_dim.div_ceil(head_dim)
        };
        // Chunks follow each other, so that blocks are few: the largest tiles that still keep the GPU busy.
        let tiles = [(128, 64), (64, 64), (64, 32)]
            .map(|(state, head_dim)| (tile(shape.state, state).max(64), tile(shape.head_dim, head_dim)));
        let busy = tiles.into_iter().find(|&(state, head_dim)| blocks(state, head_dim) >= BUSY);
        let (state_state, state_head_dim) = busy.unwrap_or(tiles[2]);
        Plan { state_state, state_head_dim, out_tokens: self.chunk.min(64), out_occupancy: 2, ..self }
    }
}
