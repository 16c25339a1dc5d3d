//! The tensor maps of a launch: described from its arguments, encoded by the driver, and kept for the next launch.

use std::sync::{Mutex, PoisonError};

use tile_codegen::compile::Compiled;
use tile_codegen::lower::channels::MapPlan;
use tile_codegen::simt::TensorMap;

use crate::args::ArgValue;
use crate::cuda::{EncodedTensorMap, TensorMapSpec};
use crate::device::Device;
use crate::error::Result;

/// Maps that are kept for one kernel. A launch with other tensors takes the place of the oldest.
const KEPT: usize = 64;

/// Encoded maps, the oldest first.
#[derive(Default)]
pub(crate) struct EncodedMaps {
    list: Mutex<Vec<(TensorMap, EncodedTensorMap)>>,
}

impl EncodedMaps {
    /// The map as the driver encodes it.
    ///
    /// # Errors
    /// As [`TensorMapSpec::encode`].
    pub(crate) fn encode(&self, device: &Device, map: TensorMap) -> Result<EncodedTensorMap> {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = list.iter().find(|(known, _)| *known == map) {
            return Ok(*known);
        }
        let spec = TensorMapSpec { l2: crate::cuda::L2Promotion::Bytes128, ..TensorMapSpec::new(map) };
        let encoded = spec.encode(device)?;
        if list.len() == KEPT {
            list.remove(0);
        }
        list.push((spec.map, encoded));
        Ok(encoded)
    }
}

/// The map that a kernel asks for, of its argument at an address.
pub(crate) fn describe(plan: &MapPlan, args: &[&ArgValue<'_>], address: u64) -> TensorMap {
    let ArgValue::Tensor(arg) = args[plan.param] else {
        unreachable!("parameter {} was staged as a tensor", plan.param)
    };
    let shape: Vec<u64> = arg.tensor.shape().iter().map(|&extent| extent as u64).collect();
    TensorMap::of(plan, address, &shape, arg.tensor.strides())
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
