//! Layouts and tensor facts, read from their attributes.

use super::words::narrow;
use crate::diag::{Code, OpError};
use crate::ir::{ParamKind, TensorFacts};
use crate::layout::{Layout, SharedLayout};
use crate::ops::AttrReader;

/// A value, or why the attributes do not make one.
pub(super) type Checked<T> = Result<T, String>;

/// Reads a register layout; the inner result says whether it is one.
pub(super) fn register(a: &mut AttrReader) -> Result<Checked<Layout>, OpError> {
    let (shape, reg, lane, warp) =
        (a.indices("shape")?, a.indices("reg")?, a.indices("lane")?, a.indices("warp")?);
    Ok(check_register(shape, &reg, &lane, &warp))
}

fn check_register(shape: Vec<usize>, reg: &[usize], lane: &[usize], warp: &[usize]) -> Checked<Layout> {
    let lane = narrow(lane).and_then(|l| <[u32; 5]>::try_from(l).ok());
    let (Some(reg), Some(lane), Some(warp)) = (narrow(reg), lane, narrow(warp)) else {
        return Err("it has five lane bases, and every base is below 2^32".into());
    };
    if reg.len() > 31 || warp.len() > 31 {
        return Err("there are more than 31 register or warp bits".into());
    }
    Layout::new(shape, reg, lane, warp).map_err(|e| e.to_string())
}

/// Reads what is known of a tensor.
pub(super) fn facts(attrs: &mut AttrReader) -> Result<ParamKind, OpError> {
    let wide = |name: &str| OpError::new(Code::Parse, format!("`{name}` is below 2^32"));
    let unit_axis = attrs.left.iter().any(|(n, _)| n == "unit_axis");
    let unit_axis = unit_axis.then(|| attrs.index("unit_axis")).transpose()?;
    Ok(ParamKind::Tensor(TensorFacts {
        unit_axis,
        align: u32::try_from(attrs.index("align")?).map_err(|_| wide("align"))?,
        stride_align: narrow(&attrs.indices("stride_align")?).ok_or_else(|| wide("stride_align"))?,
        extent_align: narrow(&attrs.indices("extent_align")?).ok_or_else(|| wide("extent_align"))?,
        offsets_fit_i32: attrs.flag("small")?,
    }))
}

/// Reads a shared layout; the inner result says whether it is one.
pub(super) fn shared(a: &mut AttrReader) -> Result<Checked<SharedLayout>, OpError> {
    let (shape, elem_bytes, bases) = (a.indices("shape")?, a.index("elem_bytes")?, a.indices("bases")?);
    let (bytes, swizzle) = (a.index("bytes")?, a.index("swizzle")?);
    Ok(check_shared(shape, elem_bytes, &bases, bytes, swizzle))
}

fn check_shared(
    shape: Vec<usize>,
    elem_bytes: usize,
    bases: &[usize],
    bytes: usize,
    swizzle: usize,
) -> Checked<SharedLayout> {
    let order: Vec<usize> = (0..shape.len()).rev().collect();
    let dense = SharedLayout::linear(&shape, &order, elem_bytes).map_err(|e| e.to_string())?;
    let bases = narrow(bases).filter(|b| b.len() == dense.bases.len() && b.iter().all(|&b| b < dense.bytes));
    let Some(bases) = bases else {
        return Err(format!("it needs {} bases, each below {}", dense.bases.len(), dense.bytes));
    };
    if bytes != dense.bytes as usize || !matches!(swizzle, 0 | 32 | 64 | 128) {
        return Err(format!("it has {} bytes, and a swizzle of 0, 32, 64 or 128", dense.bytes));
    }
    Ok(SharedLayout { shape, elem_bytes, bases, bytes: dense.bytes, swizzle: swizzle as u32 })
}
