//! Tensor maps as the driver encodes them, from the description that the PTX executor reads.

use cudarc::driver::sys::{
    self, CUtensorMapDataType as DataType, CUtensorMapFloatOOBfill as Fill,
    CUtensorMapInterleave as Interleave, CUtensorMapL2promotion as Promotion, CUtensorMapSwizzle as Swizzle,
};
use tile_codegen::simt::{TensorMap, TensorSwizzle};

use crate::device::Device;
use crate::error::{Error, Result};

/// The bytes of L2 cache that a bulk copy brings in at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum L2Promotion {
    /// What it needs.
    #[default]
    None,
    /// 64 bytes.
    Bytes64,
    /// 128 bytes.
    Bytes128,
    /// 256 bytes.
    Bytes256,
}

/// A tensor and a box of it, on a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorMapSpec {
    /// What a copy moves; its address is one of this GPU. Elements are moved bit by bit, and those outside of the tensor are
    /// zero.
    pub map: TensorMap,
    /// How much of L2 a copy brings in at once.
    pub l2: L2Promotion,
}

/// A tensor map as a kernel takes it: a parameter `.param .align 64 .b8 NAME[128]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct EncodedTensorMap([u64; 16]);

impl EncodedTensorMap {
    /// Its words.
    pub fn words(&self) -> &[u64; 16] {
        &self.0
    }
}

impl TensorMapSpec {
    /// A map without promotion in L2.
    pub fn new(map: TensorMap) -> Self {
        Self { map, l2: L2Promotion::None }
    }

    /// Has the driver encode the map.
    ///
    /// # Errors
    /// [`Error::Shape`] if a field breaks a limit of the hardware ([`TensorMap::check`]); [`Error::Unsupported`] on a device
    /// that is no GPU of compute capability 9.0 or higher; [`Error::Driver`] if the driver refuses.
    pub fn encode(&self, device: &Device) -> Result<EncodedTensorMap> {
        let cuda = device.require_cuda("encoding a tensor map")?;
        self.map.check().map_err(|error| Error::shape("tensor map", &self.map, error.to_string()))?;
        if cuda.limits.compute_capability < (9, 0) {
            return Err(Error::Unsupported {
                what: format!("a tensor map on {}", cuda.name),
                instead: "bulk tensor copies need a GPU of compute capability 9.0 or higher".to_owned(),
            });
        }
        cuda.bind()?;
        let TensorMap { address, dims, strides, box_dims, .. } = &self.map;
        let ones = vec![1u32; dims.len()];
        let mut encoded = sys::CUtensorMap { opaque: [0; 16] };
        // SAFETY: the lists have as many entries as the rank says, strides one fewer, and outlive the call. The driver reads
        // nothing at the tensor's address. It wants a pointer to strides even where there are none.
        let status = unsafe {
            sys::cuTensorMapEncodeTiled(
                &mut encoded,
                self.data_type(),
                dims.len() as u32,
                std::ptr::without_provenance_mut(*address as usize),
                dims.as_ptr(),
                strides.as_ptr(),
                box_dims.as_ptr(),
                ones.as_ptr(),
                Interleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
                self.swizzle(),
                self.promotion(),
                Fill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
            )
        };
        let context = || format!("tensor map {:?}", self.map);
        status
            .result()
            .map_err(|error| Error::driver_in(context(), "cuTensorMapEncodeTiled", error))
            .map(|()| EncodedTensorMap(encoded.opaque))
    }

    /// An integer type of the element's size, which keeps every bit.
    fn data_type(&self) -> DataType {
        match self.map.element {
            1 => DataType::CU_TENSOR_MAP_DATA_TYPE_UINT8,
            2 => DataType::CU_TENSOR_MAP_DATA_TYPE_UINT16,
            4 => DataType::CU_TENSOR_MAP_DATA_TYPE_UINT32,
            _ => DataType::CU_TENSOR_MAP_DATA_TYPE_UINT64,
        }
    }

    fn swizzle(&self) -> Swizzle {
        match self.map.swizzle {
            TensorSwizzle::None => Swizzle::CU_TENSOR_MAP_SWIZZLE_NONE,
            TensorSwizzle::B32 => Swizzle::CU_TENSOR_MAP_SWIZZLE_32B,
            TensorSwizzle::B64 => Swizzle::CU_TENSOR_MAP_SWIZZLE_64B,
            TensorSwizzle::B128 => Swizzle::CU_TENSOR_MAP_SWIZZLE_128B,
        }
    }

    fn promotion(&self) -> Promotion {
        match self.l2 {
            L2Promotion::None => Promotion::CU_TENSOR_MAP_L2_PROMOTION_NONE,
            L2Promotion::Bytes64 => Promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_64B,
            L2Promotion::Bytes128 => Promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
            L2Promotion::Bytes256 => Promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_gpus_have_tensor_maps() {
        let map = TensorMap::dense(4096, 2, &[64, 64], &[64, 8], TensorSwizzle::B128);
        let error = TensorMapSpec::new(map).encode(&Device::cpu()).expect_err("no GPU");
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
        assert_eq!((size_of::<EncodedTensorMap>(), align_of::<EncodedTensorMap>()), (128, 64));
    }
}
