//! What it takes to move a tile from one layout to another.

use super::gf2::{Span, combine};
use super::ldmatrix::ldmatrix;
use super::linear::{Layout, LayoutError};
use super::shared::{SharedAccess, SharedLayout};

/// How a tile changes its layout.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Conversion {
    /// The layouts are equal.
    Identity,
    /// Every thread has what it needs: register `i` of the result is register `map[i]` of the operand.
    Registers(Vec<usize>),
    /// Values cross threads, through shared memory.
    Shared,
}

/// The cheapest way from one layout of a tile to another.
///
/// # Errors
/// If the two are not layouts of the same shape and number of warps.
pub fn conversion(from: &Layout, to: &Layout) -> Result<Conversion, LayoutError> {
    check_same(from, to)?;
    if from == to {
        return Ok(Conversion::Identity);
    }
    // A register map that is the same in all threads exists only if threads start from the same element.
    if from.lane() != to.lane() || from.warp() != to.warp() {
        return Ok(Conversion::Shared);
    }
    let held = Span::of(from.reg().iter().copied());
    let find = |reg| held.solve(combine(to.reg(), reg)).map(|source| source as usize);
    let map: Option<Vec<usize>> = (0..to.num_regs()).map(find).collect();
    Ok(map.map_or(Conversion::Shared, Conversion::Registers))
}

/// A shared memory placement for a conversion: the swizzled axis order with the fewest shared memory cycles for
/// writing from `from` and reading to `to` (row-major at equal cost).
///
/// # Errors
/// If the two are not layouts of the same shape and number of warps, or the element size is not a power of two.
pub fn scratch(from: &Layout, to: &Layout, elem_bytes: usize) -> Result<SharedLayout, LayoutError> {
    check_same(from, to)?;
    let rank = from.shape().len();
    let row_major: Vec<usize> = (0..rank).rev().collect();
    let mut best: Option<(usize, SharedLayout)> = None;
    for fastest in (0..rank.max(1)).rev() {
        let others = row_major.iter().copied().filter(|&axis| axis != fastest);
        let order: Vec<usize> = (fastest < rank).then_some(fastest).into_iter().chain(others).collect();
        let shared = SharedLayout::swizzled(from.shape(), &order, elem_bytes)?;
        let cost = cycles(from, &shared) + read_cycles(to, &shared);
        if best.as_ref().is_none_or(|(least, _)| cost < *least) {
            best = Some((cost, shared));
        }
    }
    Ok(best.expect("at least one order was tried").1)
}

/// Shared memory cycles of one warp to move all its registers.
fn cycles(layout: &Layout, shared: &SharedLayout) -> usize {
    let access = SharedAccess::new(layout, shared);
    access.vectors.len() * access.wavefronts().actual
}

/// The same for reading, by `ldmatrix` where the layout fits it.
fn read_cycles(layout: &Layout, shared: &SharedLayout) -> usize {
    match ldmatrix(layout, shared) {
        Some(plan) => plan.steps.len() * plan.wavefronts().actual,
        None => cycles(layout, shared),
    }
}

fn check_same(from: &Layout, to: &Layout) -> Result<(), LayoutError> {
    if from.shape() != to.shape() {
        return Err(LayoutError::Shape { from: from.shape().to_vec(), to: to.shape().to_vec() });
    }
    if from.num_warps() != to.num_warps() {
        return Err(LayoutError::Warps(to.num_warps()));
    }
    Ok(())
}
