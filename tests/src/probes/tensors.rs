//! Bulk copies of boxes of tensors: ranks 1 to 5, every swizzle and element size, boxes partly and wholly outside.
//!
//! The innermost coordinate is a multiple of 16 bytes everywhere, and stores begin at no negative ones: others are illegal
//! instructions on an H200, and its context is lost with them.
//!
//! The tensor counts its elements, and gaps between its rows hold other numbers; shared memory holds other bytes before.

use tile_codegen::ptx::{Addr, AddrBase, Coords, Hopper, Operand, Ty};
use tile_codegen::simt::{TensorMap, TensorSwizzle};

use super::builder::Builder;
use super::shared::{DATA, SWIZZLES, span, swizzle_name};
use super::{Probe, Side};

const THREADS: u32 = 32;
const BAR: Addr = Addr { base: AddrBase::Shared, offset: 0 };

pub(super) fn probes() -> Vec<Probe> {
    let mut all = Vec::new();
    for swizzle in SWIZZLES {
        for element in [1, 2, 4, 8] {
            let case = plane(swizzle, element);
            all.push(case.clone().load(DATA));
            all.push(case.clone().outside().load(DATA));
            if element == 2 || element == 4 || is_common(swizzle) {
                all.extend(plane_stores(swizzle, element).map(Case::store));
            }
        }
        for rank in [1, 3, 4, 5] {
            all.push(solid(swizzle, rank).load(DATA));
            if is_common(swizzle) {
                all.extend(solid_stores(swizzle, rank).map(Case::store));
            }
        }
        for shift in [128, 384] {
            all.push(plane(swizzle, 2).shifted(shift).load(DATA + shift));
        }
    }
    all.extend(largest_sides().map(|case| case.load(DATA)));
    all.push(far().load(DATA));
    all
}

fn is_common(swizzle: TensorSwizzle) -> bool {
    matches!(swizzle, TensorSwizzle::None | TensorSwizzle::B128)
}

/// A tensor, a box of it, and where boxes begin.
#[derive(Clone)]
struct Case {
    title: String,
    map: TensorMap,
    starts: Vec<Vec<i64>>,
    past_tensor: bool,
}

/// Elements in 16 bytes: what the innermost coordinate must be a multiple of.
fn unit(element: u32) -> i64 {
    i64::from(16 / element)
}

/// Two dimensions: boxes inside, at odd places, and over each edge.
fn plane(swizzle: TensorSwizzle, element: u32) -> Case {
    let bytes = swizzle.span().unwrap_or(48) as u32;
    let width = bytes / element;
    let (w, unit, dims) = (i64::from(width), unit(element), vec![u64::from(2 * width + 3), 20]);
    let starts =
        vec![vec![0, 0], vec![unit, 2], vec![-unit, -3], vec![2 * w, 12], vec![unit - w, 19], vec![w, 19]];
    Case::new("2d", element, dims, vec![width, 16], swizzle, starts)
}

/// What stores do to a plane, one fact a case. Rows are a multiple of 16 bytes, but for the last case.
fn plane_stores(swizzle: TensorSwizzle, element: u32) -> impl Iterator<Item = Case> {
    let width = swizzle.span().unwrap_or(48) as u32 / element;
    let (w, unit) = (i64::from(width), unit(element));
    let columns = u64::from(2 * width) + unit as u64;
    let case = move |what: &str, columns, starts: &[[i64; 2]]| {
        let starts = starts.iter().map(|start| start.to_vec()).collect();
        Case::new(&format!("2d {what}"), element, vec![columns, 20], vec![width, 16], swizzle, starts)
    };
    [
        case("inside", columns, &[[0, 0], [unit, 2], [w + unit, 4]]),
        case("over the last row", columns, &[[unit, 12], [0, 19]]),
        case("over the last column", columns, &[[2 * w, 2], [w + 2 * unit, 4]]),
        case("behind the last row", columns, &[[0, 20], [unit, 1 << 20]]),
        case("behind the last column", columns, &[[2 * w + unit, 0], [1 << 20, 2]]),
        case("over both", columns, &[[2 * w, 19]]),
        case("inside of rows that end within 16 bytes", columns - 1, &[[0, 0], [w, 2]]),
        case("over the end of rows within 16 bytes", columns - 1, &[[2 * w, 2], [w + unit, 12]])
            .past_tensor(),
        case("behind the end of rows within 16 bytes", columns - 1, &[[2 * w + unit, 2]]),
    ]
    .into_iter()
}

/// Any number of dimensions, elements of 2 bytes.
fn solid(swizzle: TensorSwizzle, rank: usize) -> Case {
    let width = swizzle.span().unwrap_or(32) as u32 / 2;
    let dims = [u64::from(width) + 5, 6, 4, 3, 3];
    let (w, unit) = (i64::from(width), unit(2));
    let starts =
        [[0, 0, 0, 0, 0], [unit, 1, 1, 1, 1], [-unit, -1, -1, -1, -1], [w, 4, 3, 2, 2], [unit, -3, 2, 0, -1]];
    let starts = starts.iter().map(|start| start[..rank].to_vec()).collect();
    let sides = [width, 4, 2, 2, 2][..rank].to_vec();
    Case::new(&format!("{rank}d"), 2, dims[..rank].to_vec(), sides, swizzle, starts)
}

/// What stores do to a tensor of any number of dimensions, elements of 2 bytes: one fact a case.
fn solid_stores(swizzle: TensorSwizzle, rank: usize) -> impl Iterator<Item = Case> {
    let width = swizzle.span().unwrap_or(32) as u32 / 2;
    let (w, unit) = (i64::from(width), unit(2));
    let sides = [width, 4, 2, 2, 2][..rank].to_vec();
    let case = move |what: &str, starts: &[[i64; 5]]| {
        let dims = [u64::from(width) + 8, 7, 4, 4, 4][..rank].to_vec();
        let starts = starts.iter().map(|start| start[..rank].to_vec()).collect();
        Case::new(&format!("{rank}d {what}"), 2, dims, sides.clone(), swizzle, starts)
    };
    [
        case("inside", &[[0, 0, 0, 0, 0], [unit, 3, 1, 1, 2]]),
        case("over the last of each", &[[w, 4, 3, 3, 3]]),
        case("behind the last", &[[w + unit, 1, 1, 1, 1], [w + 2 * unit, 7, 4, 4, 4]]),
    ]
    .into_iter()
}

/// Boxes at the furthest coordinates that the compiler limits them to.
fn far() -> Case {
    let (low, high) = (-(1 << 30), (1 << 31) - 1024);
    let starts =
        [[low, 0], [high, 0], [0, low], [0, high], [high, high]].map(|start| start.to_vec()).to_vec();
    Case::new("2d, far", 2, vec![64, 20], vec![64, 16], TensorSwizzle::B128, starts)
}

/// Boxes whose sides have 256 elements.
fn largest_sides() -> impl Iterator<Item = Case> {
    let tall =
        Case::new("2d, 256 rows", 4, vec![9, 300], vec![4, 256], TensorSwizzle::None, vec![vec![4, 60]]);
    let wide =
        Case::new("2d, 256 columns", 1, vec![300, 5], vec![256, 4], TensorSwizzle::None, vec![vec![64, 2]]);
    [tall, wide].into_iter()
}

impl Case {
    /// Rows have at least 16 bytes between them, and so on outwards.
    fn new(
        title: &str,
        element: u32,
        dims: Vec<u64>,
        box_dims: Vec<u32>,
        swizzle: TensorSwizzle,
        starts: Vec<Vec<i64>>,
    ) -> Case {
        let mut strides = Vec::new();
        let mut bytes = dims[0] * u64::from(element);
        for &dim in &dims[1..] {
            bytes = bytes.next_multiple_of(16) + 16;
            strides.push(bytes);
            bytes *= dim;
        }
        let title = format!("{title}, {element} bytes, {}", swizzle_name(swizzle));
        Case {
            title,
            map: TensorMap { address: 0, element, dims, strides, box_dims, swizzle },
            starts,
            past_tensor: false,
        }
    }

    /// The same tensor with boxes that have no element of it.
    fn outside(mut self) -> Case {
        let w = i64::from(self.map.box_dims[0]);
        self.title += ", outside";
        self.starts = vec![vec![3 * w, 0], vec![-w, 0], vec![0, -16], vec![0, 20], vec![w, 1 << 20]];
        self
    }

    /// The stores write behind the end of rows.
    fn past_tensor(mut self) -> Case {
        self.past_tensor = true;
        self
    }

    fn shifted(mut self, shift: i64) -> Case {
        self.title += &format!(", {shift} bytes past a pattern");
        self
    }

    /// Bytes that the tensor takes, gaps included.
    fn extent(&self) -> usize {
        let outer = self.map.dims.last().zip(self.map.strides.last()).map(|(dim, stride)| dim * stride);
        outer.unwrap_or(self.map.dims[0] * u64::from(self.map.element)).next_multiple_of(16) as usize
    }

    /// Bytes that number the elements, wherever they lie. No element is zero.
    fn tensor(&self) -> Vec<u8> {
        let element = self.map.element as usize;
        let number = |i: usize| match element {
            1 => vec![(i % 251) as u8 + 1],
            2 => (i as u16 + 1).to_le_bytes().to_vec(),
            4 => (i as u32 + 0x0103_0001).to_le_bytes().to_vec(),
            _ => (i as u64 + 0x0107_0000_0105_0001).to_le_bytes().to_vec(),
        };
        (0..self.extent().div_ceil(element)).flat_map(number).collect()
    }

    /// The coordinates of a box: literals, or registers for every other box.
    fn coords(&self, p: &mut Builder, number: usize) -> Coords {
        let mut coord = |&at: &i64| match number % 2 {
            0 => Operand::Imm(at),
            _ => p.f.mov_imm(Ty::B32, at).into(),
        };
        self.starts[number].iter().map(&mut coord).collect()
    }

    /// Loads each box to byte `at` of shared memory and shows it.
    fn load(mut self, at: i64) -> Probe {
        let mut p = Builder::new(format!("tensor/load {}", self.title), THREADS, &[]);
        self.map.address = p.data(&self.tensor()) as u64;
        let map = p.map(Side::Input, self.map.clone());
        let bytes = self.map.box_bytes() as i64;
        let shown = (bytes as u64).next_multiple_of(span(self.map.swizzle).max(128)) as i64;
        let filled = (shown as u64).next_multiple_of(512) as i64;
        p.aligned_shared(at + filled);
        p.fill(at, &vec![0xee; filled as usize], THREADS);
        p.publish();
        let first = p.first();
        p.mbarrier(first, 0, 1);
        p.f.emit_if(first, Hopper::PrefetchTensorMap { map }.into());
        for number in 0..self.starts.len() {
            let coords = self.coords(&mut p, number);
            p.expect(first, 0, bytes);
            p.f.emit_if(first, Hopper::TensorLoad { dst: Addr::shared(at), map, coords, mbar: BAR }.into());
            p.f.mbarrier_wait(BAR, number as u32 % 2);
            p.show_shared(&format!("box at {:?}", self.starts[number]), at, shown, THREADS);
            p.f.bar_sync();
        }
        p.finish()
    }

    /// Stores a box of numbered elements at each place of a tensor of its own.
    fn store(mut self) -> Probe {
        let mut p = Builder::new(format!("tensor/store {}", self.title), THREADS, &[]);
        let mut maps = Vec::new();
        for start in &self.starts {
            self.map.address = p.area(&format!("box at {start:?}"), self.extent()) as u64;
            maps.push(p.map(Side::Output, self.map.clone()));
        }
        let bytes = (self.map.box_bytes() as usize).next_multiple_of(512);
        p.aligned_shared(DATA + bytes as i64);
        let numbers: Vec<u8> = (0..bytes / 2).flat_map(|i| (i as u16 + 0x101).to_le_bytes()).collect();
        p.fill(DATA, &numbers, THREADS);
        p.publish();
        let first = p.first();
        for (number, &map) in maps.iter().enumerate() {
            let coords = self.coords(&mut p, number);
            p.f.emit_if(first, Hopper::TensorStore { map, coords, src: Addr::shared(DATA) }.into());
            p.f.emit_if(first, Hopper::BulkCommit.into());
        }
        p.f.emit_if(first, Hopper::BulkWait { pending: 0, read: false }.into());
        Probe { writes_past_tensor: self.past_tensor, ..p.finish() }
    }
}
