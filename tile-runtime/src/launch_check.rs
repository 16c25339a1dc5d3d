//! What arguments must be, checked before anything runs.

use tile_codegen::ir::Elem;
use tile_codegen::target::Target;

use crate::args::{ArgList, TensorArg};
use crate::buffer::Access;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::facts::MAX_RANK;
use crate::stream::Stream;

/// Checks the arguments of kernel `kernel` and gives the device that all tensors are on: that of the stream if there
/// are none, else the CPU.
///
/// # Errors
/// [`Error::Argument`], [`Error::DeviceMismatch`], [`Error::ReadOnly`].
pub(crate) fn check(kernel: &str, args: &ArgList<'_>, stream: Option<&Stream>) -> Result<Device> {
    let first = args.tensors().next();
    for (name, arg) in args.tensors() {
        let fault = |problem: String, remedy: &str| argument(kernel, name, problem, remedy);
        rank(&arg, fault)?;
        extents(&arg, fault)?;
        if arg.mutable {
            writable(kernel, name, &arg)?;
        }
        if let Some((_, first)) = first
            && first.tensor.device() != arg.tensor.device()
        {
            return Err(Error::DeviceMismatch {
                what: format!("argument `{name}` of kernel `{kernel}`"),
                found: arg.tensor.device().to_string(),
                expected: first.tensor.device().to_string(),
            });
        }
    }
    disjoint(kernel, args)?;
    let device = first.map(|(_, arg)| arg.tensor.device());
    match (device, stream) {
        (Some(device), Some(stream)) if device != stream.device() && !device.is_meta() => {
            Err(Error::DeviceMismatch {
                what: format!("the arguments of kernel `{kernel}`, launched on a stream of another device"),
                found: device.to_string(),
                expected: stream.device().to_string(),
            })
        }
        (Some(device), _) => Ok(device.clone()),
        (None, Some(stream)) => Ok(stream.device().clone()),
        (None, None) => Ok(Device::cpu()),
    }
}

/// The target to compile for on a device that has one of its own: `asked`, if the device runs its code. Code for `sm_80`
/// runs on all, that for `sm_90a` on Hopper alone.
///
/// # Errors
/// [`Error::Target`].
pub(crate) fn target(kernel: &str, asked: Option<Target>, own: Target, device: &Device) -> Result<Target> {
    let Some(asked) = asked else { return Ok(own) };
    if asked == own || asked == Target::SM_80 {
        return Ok(asked);
    }
    let runs = if own == Target::SM_80 { own.name.to_owned() } else { format!("sm_80 and {}", own.name) };
    Err(Error::Target {
        kernel: kernel.to_owned(),
        target: asked.name.to_owned(),
        device: device.to_string(),
        runs,
    })
}

fn argument(kernel: &str, name: &str, problem: String, remedy: &str) -> Error {
    Error::Argument {
        kernel: kernel.to_owned(),
        argument: name.to_owned(),
        problem,
        remedy: remedy.to_owned(),
    }
}

fn rank(arg: &TensorArg<'_>, fault: impl Fn(String, &str) -> Error) -> Result<()> {
    let (found, expected) = (arg.tensor.view().rank(), arg.rank);
    if expected == 0 || expected > MAX_RANK {
        let problem = format!("{} has {expected} axes", declared(arg));
        return Err(fault(problem, "tensors of kernels have 1 to 5 axes; merge or select some"));
    }
    if found != expected {
        let shape = arg.tensor.shape();
        let problem = format!("found a tensor of rank {found} (shape {shape:?}), expected {}", declared(arg));
        return Err(fault(problem, "reshape() or select() it, or change the kernel's parameter"));
    }
    Ok(())
}

/// The parameter's type as the user wrote it.
fn declared(arg: &TensorArg<'_>) -> String {
    let kind = if arg.mutable { "TensorMut" } else { "Tensor" };
    let elem: Elem = arg.tensor.elem();
    format!("{kind}<{elem}, {}>", arg.rank)
}

fn extents(arg: &TensorArg<'_>, fault: impl Fn(String, &str) -> Error) -> Result<()> {
    let long = arg.tensor.shape().iter().position(|&extent| extent > i32::MAX as usize);
    long.map_or(Ok(()), |axis| {
        let extent = arg.tensor.shape()[axis];
        let problem = format!("axis {axis} has {extent} elements, more than {}", i32::MAX);
        Err(fault(problem, "reshape() the tensor to more axes, or pass slice()s of it to several launches"))
    })
}

fn writable(kernel: &str, name: &str, arg: &TensorArg<'_>) -> Result<()> {
    if !arg.tensor.view().is_contiguous() && arg.tensor.view().repeats_elements() {
        let (shape, strides) = (arg.tensor.shape(), arg.tensor.strides());
        let problem = format!(
            "the kernel writes to it, but two indices may name one element (shape {shape:?}, strides {strides:?})"
        );
        return Err(argument(
            kernel,
            name,
            problem,
            "pass a tensor that is no broadcast view, such as contiguous()",
        ));
    }
    if arg.tensor.storage().check_access("", Access::Write).is_err() {
        return Err(Error::ReadOnly { what: format!("argument `{name}` of kernel `{kernel}`") });
    }
    Ok(())
}

/// No tensor that is written shares elements with another argument.
fn disjoint(kernel: &str, args: &ArgList<'_>) -> Result<()> {
    for (i, (name, written)) in args.tensors().enumerate().filter(|(_, (_, arg))| arg.mutable) {
        for (j, (other_name, other)) in args.tensors().enumerate() {
            // Two that are both written are looked at once.
            let seen = other.mutable && j <= i;
            if i != j && !seen && written.tensor.overlaps(other.tensor) {
                let problem =
                    format!("the kernel writes to it, and it overlaps argument `{other_name}` in memory");
                let remedy = "blocks run in any order; write to another tensor, or pass a copy of the one that is read";
                return Err(argument(kernel, name, problem, remedy));
            }
        }
    }
    Ok(())
}
