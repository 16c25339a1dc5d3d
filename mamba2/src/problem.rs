//! The size of one Mamba-2 problem, the named sizes that are measured, and what each costs at least.

use std::fmt;

/// What is wrong with the inputs of a forward pass: found, expected, and what to pass instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ProblemError(pub String);

/// Sizes of one forward pass.
///
/// `x` is `[batch, tokens, heads, head_dim]`, `b` and `c` are `[batch, tokens, groups, state]`, and head `h` reads
/// group `h / (heads / groups)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Independent sequences (or rows of packed sequences).
    pub batch: usize,
    /// Tokens of each row.
    pub tokens: usize,
    /// Groups of heads that share `b` and `c`.
    pub groups: usize,
    /// Heads.
    pub heads: usize,
    /// Channels of one head.
    pub head_dim: usize,
    /// State values of one channel.
    pub state: usize,
}

/// A lower bound on the time of a forward pass on one H200, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Floor {
    /// Bytes that must move at least once, at the copy bandwidth.
    pub bytes_us: f64,
    /// Products that must be formed, at the bf16 matrix rate.
    pub flops_us: f64,
}

impl Floor {
    /// The larger of the two bounds, in microseconds.
    pub fn us(&self) -> f64 {
        self.bytes_us.max(self.flops_us)
    }
}

/// Copy bandwidth that the floor assumes, in GB/s.
pub const FLOOR_GB_PER_S: f64 = 4300.0;
/// Matrix rate that the floor assumes, in TFLOP/s.
pub const FLOOR_TFLOP_PER_S: f64 = 790.0;
/// Chunk length at which the floor and the CPU comparison count products.
pub const FLOOR_CHUNK: usize = 128;

impl Shape {
    /// Number of values of `x` and of `y`.
    pub fn x_len(&self) -> usize {
        self.batch * self.tokens * self.heads * self.head_dim
    }

    /// Number of values of `b` and of `c`.
    pub fn b_len(&self) -> usize {
        self.batch * self.tokens * self.groups * self.state
    }

    /// Number of values of `dt`.
    pub fn dt_len(&self) -> usize {
        self.batch * self.tokens * self.heads
    }

    /// Number of values of the states after the last token.
    pub fn state_len(&self) -> usize {
        self.batch * self.heads * self.head_dim * self.state
    }

    /// The group whose `b` and `c` head `head` reads. Heads of one group stand beside each other.
    pub fn group_of(&self, head: usize) -> usize {
        head / (self.heads / self.groups)
    }

    /// Checks that the heads divide evenly into groups, that a head has a size, and that sizes can be counted.
    ///
    /// # Errors
    /// Says which size was found and which would do. Zero tokens and zero batch are fine: they do nothing.
    pub fn check(&self) -> Result<(), ProblemError> {
        if self.groups == 0 || !self.heads.is_multiple_of(self.groups) {
            return Err(ProblemError(format!(
                "heads must be a multiple of groups, found {} heads and {} groups; pass b and c with a number of \
                 groups that divides {}",
                self.heads, self.groups, self.heads
            )));
        }
        for (name, size) in [("heads", self.heads), ("head_dim", self.head_dim), ("state", self.state)] {
            if size == 0 {
                return Err(ProblemError(format!("{name} is 0, expected at least 1")));
            }
        }
        let x = [self.batch, self.tokens, self.heads, self.head_dim];
        let b = [self.batch, self.tokens, self.groups, self.state];
        let states = [self.batch, self.heads, self.head_dim, self.state];
        for (name, sizes) in [("x", x), ("b", b), ("the states", states)] {
            // An axis of no elements does not bound the others.
            let bytes = sizes.iter().try_fold(4usize, |bytes, &size| bytes.checked_mul(size.max(1)));
            if bytes.is_none_or(|bytes| isize::try_from(bytes).is_err()) {
                return Err(ProblemError(format!(
                    "{name} would have the shape {sizes:?}, whose size in bytes does not fit {} bits",
                    isize::BITS - 1
                )));
            }
        }
        Ok(())
    }

    /// Lower bound on the time on one H200 with 16-bit `x`, `b`, `c` and `y`: each compulsory byte once, and `C·Bᵀ`
    /// once a group.
    pub fn floor(&self) -> Floor {
        let [batch, groups, heads, head_dim, state] =
            [self.batch, self.groups, self.heads, self.head_dim, self.state].map(|n| n as f64);
        let tokens = batch * self.tokens as f64;
        let bytes = tokens * heads * head_dim * 2.0 * 2.0
            + tokens * groups * state * 2.0 * 2.0
            + tokens * heads * 4.0
            + batch * heads * head_dim * state * 4.0;
        let chunk = FLOOR_CHUNK as f64;
        let flops = 2.0 * tokens * chunk * state * groups
            + heads * (2.0 * tokens * chunk * head_dim + 4.0 * tokens * head_dim * state);
        Floor { bytes_us: bytes / FLOOR_GB_PER_S / 1e3, flops_us: flops / FLOOR_TFLOP_PER_S / 1e6 }
    }

    /// Multiply-adds of the chunked algorithm with every head forming its own `C·Bᵀ`, whole square tiles counted.
    ///
    /// This is the work that the three kernels do; [`Shape::floor`] counts less, since heads of a group could share.
    pub fn multiply_adds(&self, chunk: usize) -> u64 {
        let [batch, tokens, heads, head_dim, state] =
            [self.batch, self.tokens, self.heads, self.head_dim, self.state].map(|n| n as u64);
        let chunk = chunk as u64;
        let scores = chunk * state;
        let within = chunk * head_dim;
        let across = 2 * head_dim * state;
        batch * tokens * heads * (scores + within + across)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shape { batch, tokens, groups, heads, head_dim, state } = self;
        write!(
            f,
            "batch {batch}, tokens {tokens}, groups {groups}, heads {heads}, head_dim {head_dim}, state {state}"
        )
    }
}

const fn shape(
    batch: usize,
    tokens: usize,
    groups: usize,
    heads: usize,
    head_dim: usize,
    state: usize,
) -> Shape {
    Shape { batch, tokens, groups, heads, head_dim, state }
}

/// The sizes that the benchmark times. `seed` is the headline configuration of the published cuTile kernels, the `t` and
/// `s` rows sweep its length and its state, and the others are layers of published models.
pub const NAMED: [(&str, Shape); 10] = [
    ("seed", shape(4, 16384, 1, 8, 64, 128)),
    ("t2k", shape(4, 2048, 1, 8, 64, 128)),
    ("t8k", shape(4, 8192, 1, 8, 64, 128)),
    ("t64k", shape(4, 65536, 1, 8, 64, 128)),
    ("s64", shape(4, 16384, 1, 8, 64, 64)),
    ("s256", shape(4, 16384, 1, 8, 64, 256)),
    ("m130m", shape(1, 2048, 1, 24, 64, 128)),
    ("m2.7b", shape(1, 8192, 1, 80, 64, 128)),
    ("m2.7b-b8", shape(8, 2048, 1, 80, 64, 128)),
    ("nemotron", shape(1, 8192, 8, 128, 64, 128)),
];

/// Further shapes, which only the figure of the benchmark needs: they close the gaps in the sweeps of the `t` and `s` rows.
const BETWEEN: [(&str, Shape); 5] = [
    ("t1k", shape(4, 1024, 1, 8, 64, 128)),
    ("t4k", shape(4, 4096, 1, 8, 64, 128)),
    ("t32k", shape(4, 32768, 1, 8, 64, 128)),
    ("s16", shape(4, 16384, 1, 8, 64, 16)),
    ("s32", shape(4, 16384, 1, 8, 64, 32)),
];

/// The shapes of the figure: `seed` with 1k to 64k tokens, and with state sizes from 16 to 256.
pub fn sweep() -> impl Iterator<Item = (&'static str, Shape)> {
    let of_sweep = |name: &&str| *name == "seed" || name.starts_with(['t', 's']);
    NAMED.into_iter().chain(BETWEEN).filter(move |(name, _)| of_sweep(name))
}

/// The named shape `name`: one of [`NAMED`], or of [`sweep`].
///
/// # Errors
/// Lists the known names when there is none.
pub fn named(name: &str) -> Result<Shape, ProblemError> {
    let all = || NAMED.into_iter().chain(BETWEEN);
    all().find(|(known, _)| *known == name).map(|(_, shape)| shape).ok_or_else(|| {
        let known: Vec<&str> = all().map(|(known, _)| known).collect();
        ProblemError(format!("no shape is called '{name}'; the named shapes are {}", known.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floors_match_the_published_table() {
        // Rounded to whole microseconds in the comparison table.
        let table = [40, 5, 20, 158, 36, 60, 3, 41, 86, 72];
        for ((name, shape), want) in NAMED.iter().zip(table) {
            assert_eq!(shape.floor().us().round() as i64, want, "{name}");
        }
    }

    #[test]
    fn the_sweep_doubles_from_end_to_end() {
        let seed = named("seed").unwrap();
        let shapes: Vec<Shape> = sweep().map(|(_, shape)| shape).collect();
        assert_eq!(shapes.len(), 11);
        for i in 10..=16 {
            assert!(shapes.contains(&Shape { tokens: 1 << i, ..seed }), "{i}");
        }
        for i in 4..=8 {
            assert!(shapes.contains(&Shape { state: 1 << i, ..seed }), "{i}");
        }
        for (name, shape) in sweep() {
            assert_eq!(named(name).unwrap(), shape);
        }
    }

    #[test]
    fn m130m_takes_four_gflop() {
        let flop = 2.0 * named("m130m").unwrap().multiply_adds(128) as f64;
        assert!((flop / 1e9 - 4.0).abs() < 0.05, "{flop}");
    }

    #[test]
    fn heads_of_a_group_stand_together() {
        let shape = shape(1, 1, 2, 4, 16, 16);
        assert_eq!([0, 1, 2, 3].map(|h| shape.group_of(h)), [0, 0, 1, 1]);
    }

    #[test]
    fn sizes_that_cannot_be_counted_are_refused() {
        const MAX: usize = usize::MAX;
        for size in [MAX, MAX / 2, MAX / 4, 1 << 62, 1 << 61, 1 << 60] {
            for wide in [
                shape(size, 4, 1, 1, 4, 4),
                shape(4, size, 1, 1, 4, 4),
                shape(0, size, 1, 1, 4, 4),
                shape(1, 4, size, size, 4, 4),
                shape(1, 4, 1, 1, size, 4),
                shape(1, 4, 1, 1, 4, size),
            ] {
                assert!(wide.check().unwrap_err().0.contains("does not fit"), "{wide}");
            }
        }
        assert_eq!(shape(0, 1 << 40, 1, 1, 4, 4).check(), Ok(()));
    }

    #[test]
    fn uneven_groups_are_refused() {
        let error = shape(1, 1, 3, 4, 16, 16).check().unwrap_err();
        assert!(error.0.contains("4 heads and 3 groups"), "{error}");
        assert!(named("huge").unwrap_err().0.contains("m130m"));
    }
}
