//! Laws of the algebra, by brute force over all registers, lanes and warps.

use super::super::{Layout, LayoutError};
use super::{flatten, layouts, places, unflatten};
use proptest::prelude::*;
use std::collections::BTreeSet;

#[test]
fn the_example_of_the_module_text() {
    let layout = Layout::new(vec![4, 8], vec![1], [2, 4, 8, 16, 0], vec![]).unwrap();
    assert_eq!(layout.flat(1, 3, 0), 7);
    assert_eq!(layout.coords(1, 3, 0), [0, 7]);
    assert_eq!(layout.replication(), (0b10000, 0));
    assert_eq!(layout.axis_bits(0), 0b11000);
    assert_eq!(
        (layout.reg_bits_on(1), layout.lane_bits_on(1), layout.lane_bits_on(0)),
        (1, 0b00011, 0b01100)
    );
    assert!(layout.is_permutation());
}

#[test]
fn faulty_layouts_are_errors() {
    let new = |shape: &[usize], reg: &[u32], lane| Layout::new(shape.to_vec(), reg.to_vec(), lane, vec![]);
    assert_eq!(new(&[3], &[], [0; 5]), Err(LayoutError::NotPowerOfTwo(vec![3])));
    assert_eq!(new(&[1 << 20, 1 << 20], &[], [0; 5]), Err(LayoutError::TooLarge(vec![1 << 20; 2])));
    assert_eq!(new(&[4], &[1, 3, 2], [0; 5]), Err(LayoutError::DuplicateRegisters(vec![1, 3, 2])));
    assert_eq!(new(&[4], &[1, 2, 0], [0; 5]), Err(LayoutError::DuplicateRegisters(vec![1, 2, 0])));
    assert_eq!(new(&[4], &[1], [1; 5]), Err(LayoutError::NotSurjective { rank: 1, numel: 4 }));
    assert_eq!(new(&[4], &[1, 4], [2; 5]), Err(LayoutError::OutOfRange { base: 4, numel: 4 }));
    assert_eq!(Layout::scalar(3), Err(LayoutError::Warps(3)));
    let layout = new(&[2, 4], &[1, 2], [4, 0, 0, 0, 0]).unwrap();
    assert!(layout.permute(&[0, 0]).is_err());
    assert!(layout.reshape(&[16]).is_err());
    assert!(layout.expand(&[4, 4]).is_err());
}

#[test]
fn xored_bases_are_not_a_permutation() {
    let layout = Layout::new(vec![4], vec![1], [3, 0, 0, 0, 0], vec![]).unwrap();
    assert!(!layout.is_permutation());
}

#[test]
fn scalars_are_everywhere() {
    let scalar = Layout::scalar(4).unwrap();
    assert_eq!((scalar.num_regs(), scalar.num_warps(), scalar.numel()), (1, 4, 1));
    assert_eq!(scalar.replication(), (31, 3));
    assert_eq!(scalar.coords(0, 17, 3), Vec::<usize>::new());
    assert_eq!(Layout::with_rank(2, 4).unwrap(), scalar.reshape(&[1, 1]).unwrap());
}

fn with_axes() -> impl Strategy<Value = (Layout, Vec<usize>, usize)> {
    layouts().prop_flat_map(|layout| {
        let axes: Vec<usize> = (0..layout.shape().len()).collect();
        let cut = 0..axes.len() + 1;
        (Just(layout), Just(axes).prop_shuffle(), cut)
    })
}

proptest! {
    #[test]
    fn flat_and_coords_agree(layout in layouts()) {
        for (r, l, w) in places(&layout) {
            prop_assert_eq!(layout.coords(r, l, w), unflatten(layout.shape(), layout.flat(r, l, w)));
        }
    }

    #[test]
    fn every_element_is_located(layout in layouts()) {
        let (lanes, warps) = layout.replication();
        for flat in 0..layout.numel() as u32 {
            let (r, l, w) = layout.locate(flat);
            prop_assert_eq!(layout.flat(r, l, w), flat);
            prop_assert_eq!((l as u32 & lanes, w as u32 & warps), (0, 0));
        }
    }

    #[test]
    fn one_owner_of_each_element(layout in layouts()) {
        let (lanes, warps) = layout.replication();
        let owners: Vec<u32> = places(&layout)
            .filter(|&(_, l, w)| l as u32 & lanes == 0 && w as u32 & warps == 0)
            .map(|(r, l, w)| layout.flat(r, l, w))
            .collect();
        prop_assert_eq!(owners.len(), layout.numel());
        prop_assert_eq!(owners.into_iter().collect::<BTreeSet<_>>().len(), layout.numel());
    }

    #[test]
    fn permute_moves_coordinates((layout, axes, _) in with_axes()) {
        let permuted = layout.permute(&axes).unwrap();
        for (r, l, w) in places(&layout) {
            let from = layout.coords(r, l, w);
            let expected: Vec<usize> = axes.iter().map(|&axis| from[axis]).collect();
            prop_assert_eq!(permuted.coords(r, l, w), expected);
        }
        prop_assert_eq!(permuted.inverse_permute(&axes).unwrap(), layout);
    }

    #[test]
    fn reshape_keeps_flat_indices(layout in layouts()) {
        let line = layout.reshape(&[layout.numel()]).unwrap();
        for (r, l, w) in places(&layout) {
            prop_assert_eq!(line.coords(r, l, w), vec![flatten(layout.shape(), &layout.coords(r, l, w)) as usize]);
        }
        prop_assert_eq!(line.reshape(layout.shape()).unwrap(), layout);
    }

    #[test]
    fn project_keeps_values_in_their_thread((layout, axes, cut) in with_axes()) {
        let axes = &axes[..cut];
        let projected = layout.project(axes);
        let bases = (projected.shape().to_vec(), projected.reg().to_vec(), *projected.lane(), projected.warp().to_vec());
        prop_assert_eq!(Layout::new(bases.0, bases.1, bases.2, bases.3), Ok(projected.clone()));
        let map = layout.project_map(axes);
        for (r, l, w) in places(&layout) {
            let mut expected = layout.coords(r, l, w);
            axes.iter().for_each(|&axis| expected[axis] = 0);
            prop_assert_eq!(projected.coords(map[r], l, w), expected);
        }
    }

    #[test]
    fn expand_copies_values_in_their_thread((layout, axes, cut) in with_axes()) {
        let axes = &axes[..cut];
        let narrow = layout.project(axes);
        let wide = narrow.expand(layout.shape()).unwrap();
        let bases = (wide.shape().to_vec(), wide.reg().to_vec(), *wide.lane(), wide.warp().to_vec());
        prop_assert_eq!(Layout::new(bases.0, bases.1, bases.2, bases.3), Ok(wide.clone()));
        for (r, l, w) in places(&wide) {
            let mut expected = wide.coords(r, l, w);
            axes.iter().for_each(|&axis| expected[axis] = 0);
            prop_assert_eq!(narrow.coords(r % narrow.num_regs(), l, w), expected);
        }
    }
}
