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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prelude::*;

    #[tile_kernel]
    fn copy(x: Tensor<f32, 1>, y: TensorMut<f32, 1>) {
        store(y, (bid(0),), load(x, (bid(0),), (1024,)));
    }

    #[test]
    fn each_limit_has_its_reason() {
        let x = DeviceTensor::meta(&[4096]).expect("a small tensor");
        let mut y = DeviceTensor::meta(&[4096]).expect("a small tensor");
        let config = Config { num_warps: Some(8), ..Config::default() };
        let compiled = copy(&x, &mut y).config(config).compile(&Target::SM_90A).expect("it compiles");
        let compiled = Compiled { shared_bytes: 100 << 10, ..(*compiled).clone() };
        assert_eq!(compiled.threads, 256);
        let limits = Limits {
            compute_capability: (9, 0),
            multiprocessors: 132,
            max_shared_bytes_per_block: 227 << 10,
            max_shared_bytes_per_multiprocessor: 228 << 10,
            l2_bytes: 50 << 20,
        };
        let with = |blocks| Config { occupancy: Some(blocks), ..Config::default() };
        let reason = |compiled: &Compiled, blocks, limits| fits(compiled, &with(blocks), limits);
        assert_eq!(reason(&compiled, 2, Some(limits)), Ok(()));
        let text = reason(&compiled, 3, Some(limits)).expect_err("too much shared memory");
        assert_eq!(text, "310272 bytes of shared memory for 3 blocks, of 233472 a multiprocessor");
        let text = reason(&compiled, 9, Some(limits)).expect_err("too many threads");
        assert_eq!(text, "9 blocks of 256 threads, of 2048 threads a multiprocessor");
        let small = Limits { compute_capability: (8, 9), ..limits };
        let text = reason(&compiled, 8, Some(small)).expect_err("too many threads there");
        assert_eq!(text, "8 blocks of 256 threads, of 1536 threads a multiprocessor");
        let wide = Compiled { threads: 1024, shared_bytes: 0, ..compiled.clone() };
        assert_eq!(reason(&wide, 2, Some(limits)), Ok(()));
        let large = Compiled { shared_bytes: 228 << 10, ..compiled.clone() };
        let text = reason(&large, 1, None).expect_err("too much for the target");
        assert_eq!(text, "233472 bytes of shared memory, of 232448 for a block");
    }
}
