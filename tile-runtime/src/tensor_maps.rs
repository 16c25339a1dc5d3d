//! The tensor maps of a launch, described from its arguments.

use smallvec::SmallVec;
use tile_codegen::compile::Compiled;
use tile_codegen::lower::channels::MapPlan;
use tile_codegen::simt::TensorMap;

use crate::args::{ArgValue, TensorArg};
use crate::cuda::{EncodedTensorMap, L2Promotion, TensorMapSpec};
use crate::error::Result;
use crate::specialize::Loaded;

/// The encoded maps of a launch, in the order of the kernel's maps; those of recent launches are not encoded again.
///
/// # Errors
/// As [`TensorMapSpec::encode`].
pub(crate) fn encode(loaded: &Loaded, args: &[&ArgValue<'_>]) -> Result<SmallVec<[EncodedTensorMap; 8]>> {
    let mut maps = SmallVec::new();
    for (i, plan) in loaded.compiled.maps.iter().enumerate() {
        let tensor = argument(plan, args).tensor;
        let address = tensor.device_address().expect("the arguments are on a GPU");
        let mut numbers: SmallVec<[u64; 16]> = SmallVec::from_slice(&[address]);
        numbers.extend(tensor.shape().iter().map(|&extent| extent as u64));
        numbers.extend(tensor.strides().iter().map(|stride| stride.cast_unsigned()));
        maps.push(loaded.maps.get(i, &numbers, || {
            let map = describe(plan, args, address);
            TensorMapSpec { l2: L2Promotion::Bytes128, ..TensorMapSpec::new(map) }.encode(&loaded.device)
        })?);
    }
    Ok(maps)
}

fn argument<'a>(plan: &MapPlan, args: &[&ArgValue<'a>]) -> TensorArg<'a> {
    match args[plan.param] {
        ArgValue::Tensor(arg) => *arg,
        ArgValue::Scalar { .. } | ArgValue::Const(_) | ArgValue::Presence(_) => {
            unreachable!("parameter {} was staged as a tensor", plan.param)
        }
    }
}

/// The map that a kernel asks for, of its argument at an address.
fn describe(plan: &MapPlan, args: &[&ArgValue<'_>], address: u64) -> TensorMap {
    let tensor = argument(plan, args).tensor;
    let shape: SmallVec<[u64; 5]> = tensor.shape().iter().map(|&extent| extent as u64).collect();
    TensorMap::of(plan, address, &shape, tensor.strides())
}

/// Whether bulk tensor copies can address the arguments as the kernel wants: extents and strides are within the limits of
/// the hardware. Alignment is among the facts that the kernel was compiled for.
pub(crate) fn reachable(compiled: &Compiled, args: &[&ArgValue<'_>]) -> bool {
    // Coordinates are 32 bits wide, signed.
    let most = (1u64 << 31) - 1024;
    compiled.maps.iter().all(|plan| {
        let map = describe(plan, args, 0);
        map.check().is_ok() && map.dims.iter().all(|&dim| dim < most)
    })
}
