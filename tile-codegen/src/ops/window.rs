//! Windows: the part of a tensor that a load reads or a store writes, and what is known of where it begins.

use std::collections::BTreeMap;

use super::binary::BinaryOp;
use super::{Attr, AttrReader, Literal, OpKind};
use crate::diag::{Code, OpError};
use crate::ir::{Kernel, RegionId, ValueId};

/// What an index counts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Steps {
    /// Tiles of the window's shape, so that windows are the same or apart.
    #[default]
    Tiles,
    /// Elements, so that windows may begin anywhere and overlap.
    Elements,
}

impl Steps {
    /// As IR text has it, where it is not what it is everywhere else.
    pub(super) fn attr(self) -> Option<(&'static str, Attr)> {
        (self == Steps::Elements).then_some(("steps", Attr::Word("elements")))
    }

    pub(super) fn parse(attrs: &mut AttrReader) -> Result<Self, OpError> {
        if !attrs.has("steps") {
            return Ok(Steps::Tiles);
        }
        match attrs.word("steps")?.as_str() {
            "elements" => Ok(Steps::Elements),
            _ => Err(OpError::new(Code::Parse, "the attribute `steps` must be `elements`")),
        }
    }

    /// The elements from one index to the next, along an axis of which the window has `size` elements.
    pub fn stride(self, size: usize) -> usize {
        match self {
            Steps::Tiles => size,
            Steps::Elements => 1,
        }
    }
}

/// Where a window begins.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// The tensor.
    pub tensor: ValueId,
    /// One scalar for each axis.
    pub index: &'a [ValueId],
    /// What they count.
    pub steps: Steps,
}

impl Start<'_> {
    /// A power of two that divides the element at which the window begins along an axis; 0 stands for all of them, also
    /// where the window begins at a multiple of its own size.
    pub fn divisor(&self, kernel: &Kernel, axis: usize) -> u32 {
        match self.steps {
            Steps::Tiles => 0,
            Steps::Elements => {
                let mut known = BTreeMap::new();
                region(kernel, kernel.body, &mut known);
                known.get(&self.index[axis]).copied().unwrap_or(1)
            }
        }
    }
}

/// Powers of two that divide integer scalars; 0, which every number divides, is divided by all of them.
type Divisors = BTreeMap<ValueId, u32>;

/// Adds what is known of the scalars of a region. What is not listed may be odd.
fn region(kernel: &Kernel, id: RegionId, known: &mut Divisors) {
    for &op in &kernel.regions[id].ops {
        let op = &kernel.ops[op];
        let of = |at: usize| known.get(&op.operands[at]).copied().unwrap_or(1);
        let divisor = match &op.kind {
            OpKind::Constant(constant) => match constant.value {
                Literal::Int(value) => power(value),
                Literal::Float(_) | Literal::Bool(_) => continue,
            },
            OpKind::Cast(_) => of(0),
            OpKind::Binary(binary) => match binary.op {
                BinaryOp::Mul => product(of(0), of(1)),
                BinaryOp::Add | BinaryOp::Sub | BinaryOp::Minimum | BinaryOp::Maximum => common(of(0), of(1)),
                _ => continue,
            },
            OpKind::For(_) => {
                let divisor = common(of(0), of(2));
                known.insert(kernel.regions[op.regions[0]].args[0], divisor);
                region(kernel, op.regions[0], known);
                continue;
            }
            _ => {
                op.regions.iter().for_each(|&inner| region(kernel, inner, known));
                continue;
            }
        };
        if kernel.ty(op.results[0]).as_tile().is_some_and(|tile| tile.rank() == 0 && tile.elem.is_int()) {
            known.insert(op.results[0], divisor);
        }
    }
}

/// The largest divisors that matter: 16 bytes of the smallest elements, and room for products.
const MOST: u32 = 1 << 16;

fn power(value: i64) -> u32 {
    if value == 0 { 0 } else { 1 << value.trailing_zeros().min(MOST.ilog2()) }
}

/// What divides a product. Wrapping keeps powers of two.
fn product(a: u32, b: u32) -> u32 {
    if a == 0 || b == 0 { 0 } else { (u64::from(a) * u64::from(b)).min(u64::from(MOST)) as u32 }
}

/// What divides a sum or a difference.
fn common(a: u32, b: u32) -> u32 {
    match (a, b) {
        (0, other) | (other, 0) => other,
        (a, b) => a.min(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::parse;

    /// The divisor of the loads' index, in order.
    fn divisors(body: &str) -> Vec<u32> {
        let text = format!("kernel @k(%x: tensor<f32, 1>, %n: i32) {{ stage = tile }} {{\n{body}\n}}");
        let kernel = parse(&text).unwrap_or_else(|error| panic!("{error}"));
        let mut found = Vec::new();
        kernel.walk(|_, op| {
            if let OpKind::Load(load) = &op.kind {
                let start = Start { tensor: op.operands[0], index: &op.operands[1..], steps: load.steps };
                found.push(start.divisor(&kernel, 0));
            }
        });
        found
    }

    #[test]
    fn multiples_are_known() {
        let load = |index: &str, result: u32| {
            format!("%{result} = load %x, {index} {{ shape = [4], pad = 0.0, steps = elements }} : 4xf32\n")
        };
        let body = [
            "%0 = constant { value = 0, elem = i32 } : i32\n%1 = constant { value = -24, elem = i32 } : i32\n",
            "%2 = mul %n, %1 : i32\n%3 = constant { value = 4, elem = i32 } : i32\n%4 = add %2, %3 : i32\n",
            "%5 = cast %4 { elem = i64 } : i64\n%6 = sub %4, %n : i32\n",
            &load("%0", 7),
            &load("%1", 8),
            &load("%2", 9),
            &load("%5", 10),
            &load("%6", 11),
            &load("%n", 12),
        ];
        assert_eq!(divisors(&body.concat()), [0, 8, 8, 4, 1, 1]);
    }

    #[test]
    fn loops_count_in_steps() {
        let body = "%0 = constant { value = 0, elem = i32 } : i32
            %1 = constant { value = 96, elem = i32 } : i32
            %2 = constant { value = 12, elem = i32 } : i32
            for %0, %1, %2 (%3: i32) {
                %4 = load %x, %3 { shape = [4], pad = 0.0, steps = elements } : 4xf32
                yield
            }";
        assert_eq!(divisors(body), [4]);
    }

    #[test]
    fn zero_is_a_multiple_of_everything() {
        assert_eq!([power(0), power(12), power(i64::MIN), power(-1)], [0, 4, MOST, 1]);
        assert_eq!([product(0, 4), product(MOST, MOST), product(2, 4)], [0, MOST, 8]);
        assert_eq!([common(0, 4), common(8, 0), common(8, 2), common(0, 0)], [4, 8, 2, 0]);
    }
}
