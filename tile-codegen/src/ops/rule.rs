//! What the shape and type rules of several operations share.

use crate::diag::{Code, OpError};
use crate::ir::{Dim, Elem, TensorType, TileType, Type, dim};

/// Exactly `N` operands.
pub(crate) fn operands<'a, const N: usize>(op: &str, operands: &'a [Type]) -> Result<[&'a Type; N], OpError> {
    let found = operands.len();
    let list: Vec<&Type> = operands.iter().collect();
    list.try_into()
        .map_err(|_| OpError::new(Code::Structure, format!("`{op}` takes {N} operands, found {found}")))
}

/// No operands.
pub(crate) fn no_operands(op: &str, list: &[Type]) -> Result<(), OpError> {
    operands::<0>(op, list).map(|_| ())
}

/// A tile operand.
pub(crate) fn tile<'a>(op: &str, ty: &'a Type) -> Result<&'a TileType, OpError> {
    ty.as_tile().ok_or_else(|| OpError::new(Code::Structure, format!("`{op}` takes a tile here")))
}

/// A tensor operand.
pub(crate) fn tensor<'a>(op: &str, ty: &'a Type) -> Result<&'a TensorType, OpError> {
    ty.as_tensor().ok_or_else(|| OpError::new(Code::Structure, format!("`{op}` takes a tensor here")))
}

/// Dimensions are powers of two.
pub(crate) fn tile_shape<D: Dim>(shape: &[D]) -> Result<(), OpError> {
    match shape.iter().find(|d| d.breaks_power_of_two()) {
        None => Ok(()),
        Some(bad) => Err(OpError::new(
            Code::TileDimension,
            format!("a tile dimension must be a power of two, found {bad} in {}", dim::show(shape)),
        )
        .help("use the next power of two: loads outside the tensor are padded and stores outside it are dropped")),
    }
}

/// An axis in range.
pub(crate) fn axis(axis: usize, rank: usize) -> Result<(), OpError> {
    if axis < rank {
        return Ok(());
    }
    let axes = match rank {
        0 => "there is none".to_string(),
        1 => "the only axis is 0".to_string(),
        n => format!("axes are 0 to {}", n - 1),
    };
    Err(OpError::new(Code::Axis, format!("axis {axis} of a tile of rank {rank}: {axes}"))
        .help("negative axes count from the last"))
}

/// Axes in range, each at most once.
pub(crate) fn axes(list: &[usize], rank: usize) -> Result<(), OpError> {
    for (i, &a) in list.iter().enumerate() {
        axis(a, rank)?;
        if list[..i].contains(&a) {
            return Err(OpError::new(Code::Axis, format!("axis {a} is named twice")));
        }
    }
    Ok(())
}

/// Equal shapes.
pub(crate) fn same_shape(op: &str, a: &[usize], b: &[usize]) -> Result<(), OpError> {
    if a == b {
        return Ok(());
    }
    Err(OpError::new(Code::Broadcast, format!("`{op}` of the shapes {} and {}", dim::show(a), dim::show(b))))
}

/// Equal shapes and element types.
pub(crate) fn same(op: &str, a: &TileType, b: &TileType) -> Result<(), OpError> {
    if a.elem != b.elem {
        return Err(OpError::new(
            Code::ElementType,
            format!("`{op}` of `{}` and `{}`: element types never convert silently", a.elem, b.elem),
        )
        .help(format!("convert one side, for example `.cast::<{}>()`", a.elem)));
    }
    same_shape(op, &a.shape, &b.shape)
}

/// A tensor operand followed by its index scalars.
pub(crate) fn tensor_and_index<'a>(
    op: &str,
    list: &'a [Type],
) -> Result<(&'a TensorType, &'a [Type]), OpError> {
    match list.split_first() {
        Some((first, index)) => Ok((tensor(op, first)?, index)),
        None => Err(OpError::new(Code::Structure, format!("`{op}` takes a tensor and its indices"))),
    }
}

/// A tile shape and one integer index for each axis of a tensor.
pub(crate) fn tile_index(
    op: &str,
    tensor: &TensorType,
    shape: &[usize],
    index: &[Type],
) -> Result<(), OpError> {
    tile_shape(shape)?;
    if shape.len() != tensor.rank || index.len() != tensor.rank {
        return Err(OpError::new(
            Code::Rank,
            format!(
                "`{op}` on a tensor of rank {} needs as many indices and dimensions, found {} and {}",
                tensor.rank,
                index.len(),
                shape.len()
            ),
        )
        .help("use size 1 for axes of which the tile takes one element, then `reshape`"));
    }
    for ty in index {
        let scalar = tile(op, ty)?;
        if scalar.rank() != 0 || !matches!(scalar.elem, Elem::I32 | Elem::I64) {
            return Err(OpError::new(Code::Rank, format!("an index of `{op}` must be an i32 or i64 scalar"))
                .help("cast it: `.cast::<i32>()`"));
        }
    }
    Ok(())
}

/// The stage of a ring of so many: a scalar.
pub(crate) fn stage(op: &str, ty: &Type, stages: usize) -> Result<(), OpError> {
    if stages == 0 {
        return Err(OpError::new(Code::Structure, format!("`{op}`: a ring has at least one stage")));
    }
    match ty.as_tile() {
        Some(scalar) if scalar.rank() == 0 && scalar.elem == Elem::I32 => Ok(()),
        Some(_) | None => Err(OpError::new(Code::Structure, format!("the stage of `{op}` is an i32 scalar"))),
    }
}
