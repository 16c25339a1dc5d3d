//! Whether a compiled kernel can run on a GPU at all, and as many blocks of it as its configuration asks for.

use tile_codegen::compile::Compiled;
use tile_codegen::config::Config;

use crate::cuda::Limits;

/// Most threads of a multiprocessor of this compute capability.
fn most_threads(capability: (u32, u32)) -> u32 {
    match capability {
        (8, 6 | 7 | 9) | (12, _) => 1536,
        _ => 2048,
    }
}

/// Shared memory that the driver takes for itself, for each block.
const RESERVED_SHARED_BYTES: usize = 1024;

/// Whether the kernel fits a GPU with these limits: its threads, its shared memory, and where `config` asks for an occupancy, so many
/// blocks on one multiprocessor. Without limits, those of the target alone count. Registers need no rule: what the blocks leave to a
/// thread is a bound of the code, which may spill, and then loses on time.
///
/// # Errors
/// What is needed and what there is.
pub fn fits(compiled: &Compiled, config: &Config, limits: Option<Limits>) -> Result<(), String> {
    let Compiled { threads, shared_bytes, target, .. } = compiled;
    let shared = *shared_bytes as usize;
    let most = limits.map_or(target.max_shared_bytes, |limits| limits.max_shared_bytes_per_block);
    if shared > most {
        return Err(format!("{shared} bytes of shared memory, of {most} for a block"));
    }
    let blocks = config.occupancy.unwrap_or(1);
    let most = limits.map_or(2048, |limits| most_threads(limits.compute_capability));
    if threads.saturating_mul(blocks) > most {
        return Err(format!("{blocks} blocks of {threads} threads, of {most} threads a multiprocessor"));
    }
    let most = limits.map_or(usize::MAX, |limits| limits.max_shared_bytes_per_multiprocessor);
    let all = (shared + RESERVED_SHARED_BYTES).saturating_mul(blocks as usize);
    if blocks > 1 && all > most {
        return Err(format!("{all} bytes of shared memory for {blocks} blocks, of {most} a multiprocessor"));
    }
    Ok(())
}
