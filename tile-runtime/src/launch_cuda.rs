//! Queues a launch on a GPU: the parameters of the compiled kernel, in order.

use std::ffi::c_void;

use smallvec::SmallVec;
use tile_codegen::lower::Slot;

use crate::args::{ArgList, ArgValue, TensorArg};
use crate::error::Result;
use crate::specialize::Loaded;
use crate::stream::Stream;
use crate::tensor_maps;

/// Queues the kernel on `stream`; to be called inside [`Stream::submit`] with the tensors among its uses.
///
/// # Errors
/// As [`Function::launch`](crate::cuda::Function::launch).
pub(crate) fn queue(loaded: &Loaded, args: &ArgList<'_>, grid: [u32; 3], stream: &Stream) -> Result<()> {
    let runtime: SmallVec<[&ArgValue<'_>; 16]> = args.runtime().map(|arg| &arg.value).collect();
    let compiled = &loaded.compiled;
    // CUDA hosts are little-endian: a parameter of fewer than 8 bytes is the beginning of its word.
    let mut words: SmallVec<[u64; 64]> =
        compiled.slots.iter().map(|&slot| word(slot, &runtime, grid)).collect();
    let mut maps = tensor_maps::encode(loaded, &runtime)?;
    let pointer = |(slot, word): (&Slot, &mut u64)| match *slot {
        Slot::Map { map } => std::ptr::from_mut(&mut maps[map]).cast(),
        Slot::Pointer { .. }
        | Slot::Extent { .. }
        | Slot::Stride { .. }
        | Slot::Scalar { .. }
        | Slot::Blocks { .. } => std::ptr::from_mut(word).cast(),
    };
    let mut pointers: SmallVec<[*mut c_void; 64]> =
        compiled.slots.iter().zip(words.iter_mut()).map(pointer).collect();
    let blocks: u32 = grid.iter().product();
    let (threads, shared) = (compiled.threads, compiled.shared_bytes);
    // SAFETY: there is one pointer for each parameter that the kernel was compiled with, to a value of at least its
    // size; addresses are those of tensors that the caller has submitted as uses, and the kernel keeps to the
    // extents and strides that it is given, which lie inside their storage.
    unsafe { loaded.function.launch(stream, [blocks, 1, 1], threads, shared, &mut pointers) }
}

/// The value of one parameter.
fn word(slot: Slot, args: &[&ArgValue<'_>], grid: [u32; 3]) -> u64 {
    match slot {
        Slot::Pointer { param } => address(args, param),
        Slot::Extent { param, axis } => tensor(args, param).tensor.shape()[axis] as u64,
        Slot::Stride { param, axis } => {
            let tensor = tensor(args, param).tensor;
            if tensor.shape()[axis] == 1 { 0 } else { tensor.strides()[axis].cast_unsigned() }
        }
        Slot::Scalar { param } => match args[param] {
            ArgValue::Scalar { bits, .. } => *bits,
            ArgValue::Tensor(_) | ArgValue::Const(_) | ArgValue::Presence(_) => {
                unreachable!("parameter {param} was staged as a scalar")
            }
        },
        Slot::Blocks { axis } => u64::from(grid[axis]),
        // It is passed in place.
        Slot::Map { .. } => 0,
    }
}

fn address(args: &[&ArgValue<'_>], param: usize) -> u64 {
    tensor(args, param).tensor.device_address().expect("the arguments are on a GPU")
}

fn tensor<'a>(args: &[&ArgValue<'a>], param: usize) -> TensorArg<'a> {
    match args[param] {
        ArgValue::Tensor(tensor) => *tensor,
        ArgValue::Scalar { .. } | ArgValue::Const(_) | ArgValue::Presence(_) => {
            unreachable!("parameter {param} was staged as a tensor")
        }
    }
}
