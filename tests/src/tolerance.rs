//! How far a GPU's result may be from the CPU's, and why.

use crate::held::Value;

/// A bound on |found - expected|.
#[derive(Clone, Copy, Debug)]
pub enum Tolerance {
    /// No difference: integers, truth values, data that is only moved, and floats whose every intermediate result is
    /// exact (whole numbers) or rounded as IEEE 754 says on both sides. Any NaN equals any NaN; 0 equals -0.
    Exact,
    /// `relative * |expected| + absolute`.
    Within {
        /// Of the expected value.
        relative: f64,
        /// Where the expected value may be near 0.
        absolute: f64,
    },
}

/// Relative error of f32 arithmetic whose last step may round differently: 2 units in the last place.
const TWO_ULP: f64 = 2.4e-7;

impl Tolerance {
    /// For an elementary function of f32, rounded to a type whose relative rounding is `rounding`: a value beside a tie
    /// may round the other way, which is one unit in the last place.
    ///
    /// | functions | relative error in f32 | why |
    /// |---|---|---|
    /// | `neg abs floor ceil` and `+ - *`, minimum, maximum | 0 | exact, or correctly rounded |
    /// | `sqrt` | 0 | `sqrt.rn` |
    /// | `div` | 2 ulp | `div.full` |
    /// | `exp` | 2e-6 | the language's promise |
    /// | `exp2 rsqrt` | 5e-7 | `ex2.approx`, `rsqrt.approx`: 2 ulp; results below 2^-126 flush to 0 |
    /// | `log log2` | 5e-7, 2e-7 absolute | polynomial; `lg2.approx` is 2^-22 absolute near 1 |
    /// | `sigmoid softplus tanh` | 3e-6 | made of `exp` and `log` |
    pub fn function(name: &str, rounding: f64) -> Tolerance {
        let (relative, absolute) = match name {
            "neg" | "abs" | "floor" | "ceil" | "sqrt" => return Tolerance::Exact,
            "div" => (TWO_ULP, 0.0),
            "exp" => (2e-6, 1.2e-38),
            "exp2" | "rsqrt" => (5e-7, 1.2e-38),
            "log" | "log2" => (5e-7, 3e-7),
            _ => (3e-6, 1.2e-38),
        };
        // Two roundings to f32 are part of the figures above.
        let rounding = if rounding > 1e-6 { 2.0 * rounding } else { 0.0 };
        Tolerance::Within { relative: relative + rounding, absolute }
    }

    /// For a sum of `terms` products of f32 in any order, each at most `largest`, rounded to a type at the end: rounding
    /// errors of f32 add up as `sqrt(terms)` at random and never exceed `terms`; half of that bound is ample.
    pub fn sum(terms: usize, largest: f64, rounding: f64) -> Tolerance {
        let absolute = terms as f64 * largest * 6e-8 * (terms as f64).sqrt().max(2.0);
        Tolerance::Within { relative: 2.0 * rounding.max(6e-8), absolute }
    }

    /// Whether the found value is near enough to the expected one.
    pub fn accepts(self, found: Value, expected: Value) -> bool {
        let (found, expected) = match (found, expected) {
            (Value::Float(found), Value::Float(expected)) => (found, expected),
            (found, expected) => return found == expected,
        };
        if found == expected || found.is_nan() && expected.is_nan() {
            return true;
        }
        match self {
            // The distance to an infinity is within any share of it.
            _ if found.is_infinite() || expected.is_infinite() => false,
            Tolerance::Exact => false,
            Tolerance::Within { relative, absolute } => {
                (found - expected).abs() <= relative * expected.abs() + absolute
            }
        }
    }
}
