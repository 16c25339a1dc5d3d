//! What counts as the same result, and where two outputs differ.

use tile_codegen::ptx::Ty;

use super::{Form, Probe};

/// Differences that are listed of a form.
const LISTED: usize = 4;

/// What counts as the same result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Compare {
    /// The same bits.
    Bits,
    /// Floats no more than `count` steps apart, of one sign; the same bits if either is infinite or NaN. With `ftz` zero and
    /// the least normal number count as neighbours: the true result is below that number, and rounds to it on one side.
    Ulps {
        /// Steps between neighbouring floats.
        count: u64,
        /// Whether the instruction flushes subnormal numbers.
        ftz: bool,
        /// What the PTX manual says.
        why: &'static str,
    },
    /// Floats no further apart than the larger of `rel` times the GPU's and `abs`; the same bits if both are zero, or either
    /// is infinite or NaN.
    Within {
        /// Relative to the GPU's result.
        rel: f64,
        /// Absolute.
        abs: f64,
        /// What the PTX manual says.
        why: &'static str,
    },
    /// Kept, but not compared: the PTX manual leaves it open.
    Open {
        /// What the manual says.
        why: &'static str,
    },
}

/// The elements of one form that differ.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The form.
    pub form: String,
    /// How many elements differ.
    pub count: usize,
    /// The first of them, in words.
    pub first: Vec<String>,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {} differ", self.form, self.count)?;
        self.first.iter().try_for_each(|line| write!(f, "\n    {line}"))
    }
}

fn element(ty: Ty, bytes: &[u8], index: usize) -> u64 {
    let size = ty.bytes() as usize;
    let mut word = [0; 8];
    word[..size].copy_from_slice(&bytes[index * size..(index + 1) * size]);
    u64::from_le_bytes(word)
}

fn float(ty: Ty, bits: u64) -> f64 {
    if ty == Ty::F64 { f64::from_bits(bits) } else { f64::from(f32::from_bits(bits as u32)) }
}

/// The bits of an f32 that is no subnormal number, numbered such that zero is next to the least normal number.
fn above_subnormals(bits: u64, sign: u64) -> u64 {
    let size = bits & (sign - 1);
    bits & sign | size.saturating_sub((1 << 23) - 1)
}

impl Compare {
    fn same(self, ty: Ty, ours: u64, chip: u64) -> bool {
        let (a, b) = (float(ty, ours), float(ty, chip));
        match self {
            _ if ours == chip => true,
            Compare::Bits => false,
            Compare::Open { .. } => true,
            _ if !a.is_finite() || !b.is_finite() || (a == 0.0 && b == 0.0) => false,
            Compare::Ulps { count, ftz, .. } => {
                let sign = 1 << (ty.bits() - 1);
                let [ours, chip] =
                    [ours, chip].map(|bits| if ftz { above_subnormals(bits, sign) } else { bits });
                (ours ^ chip) & sign == 0 && ours.abs_diff(chip) <= count
            }
            Compare::Within { rel, abs, .. } => (a - b).abs() <= (rel * b.abs()).max(abs),
        }
    }
}

impl Probe {
    /// Where the output of the executor differs from the chip's. Both have [`Probe::output`] bytes.
    pub fn differences(&self, ours: &[u8], chip: &[u8]) -> Vec<Difference> {
        self.forms.iter().filter_map(|form| self.difference(form, ours, chip)).collect()
    }

    fn difference(&self, form: &Form, ours: &[u8], chip: &[u8]) -> Option<Difference> {
        let [ours, chip] = [ours, chip].map(|bytes| &bytes[form.offset..]);
        let (mut count, mut first) = (0, Vec::new());
        for i in 0..self.count {
            let (a, b) = (element(form.ty, ours, i), element(form.ty, chip, i));
            if form.compare.same(form.ty, a, b) {
                continue;
            }
            count += 1;
            if first.len() < LISTED {
                let operands: Vec<_> =
                    self.columns.iter().map(|column| format!("{:#x}", column[i])).collect();
                first.push(format!("thread {i} ({}): executor {a:#x}, chip {b:#x}", operands.join(", ")));
            }
        }
        (count > 0).then(|| Difference { form: form.name.clone(), count, first })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(compare: Compare, ours: f32, chip: f32) -> bool {
        compare.same(Ty::F32, ours.to_bits().into(), chip.to_bits().into())
    }

    #[test]
    fn steps_are_counted_and_flushing_is_one() {
        let [kept, flushed] = [false, true].map(|ftz| Compare::Ulps { count: 1, ftz, why: "" });
        let (least, step) = (f32::MIN_POSITIVE, f32::EPSILON);
        for compare in [kept, flushed] {
            assert!(same(compare, 1.0, 1.0 + step) && !same(compare, 1.0, 1.0 + 2.0 * step));
            assert!(!same(compare, 0.0, -0.0) && !same(compare, least, -least));
            assert!(!same(compare, f32::MAX, f32::INFINITY) && !same(compare, f32::NAN, -f32::NAN));
        }
        assert!(same(flushed, 0.0, least) && !same(flushed, 0.0, least * (1.0 + step)));
        assert!(!same(kept, 0.0, least) && same(kept, 0.0, f32::from_bits(1)));
    }

    #[test]
    fn errors_are_relative_or_absolute_and_zeros_have_signs() {
        let compare = Compare::Within { rel: 0.01, abs: 0.5, why: "" };
        assert!(same(compare, 101.0, 100.0) && !same(compare, 101.5, 100.0));
        assert!(same(compare, 1.5, 1.0) && !same(compare, 1.6, 1.0));
        assert!(!same(compare, 0.0, -0.0));
    }
}
