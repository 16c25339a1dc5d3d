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
    /// Floats no further apart than the larger of `rel` times the GPU's and `abs`; the same bits if either is zero by
    /// `abs`, infinite or NaN.
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

impl Compare {
    fn same(self, ty: Ty, ours: u64, chip: u64) -> bool {
        let (a, b) = (float(ty, ours), float(ty, chip));
        match self {
            _ if ours == chip => true,
            Compare::Bits => false,
            Compare::Open { .. } => true,
            Compare::Within { rel, abs, .. } => {
                a.is_finite() && b.is_finite() && (a - b).abs() <= (rel * b.abs()).max(abs)
            }
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
