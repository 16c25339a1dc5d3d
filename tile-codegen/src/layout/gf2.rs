//! Linear algebra over GF(2) on `u32` bit vectors: spans, independence, solving.

/// A linear span that is built vector by vector and remembers how each member is a sum of the vectors pushed.
#[derive(Clone, Debug, Default)]
pub(super) struct Span {
    /// Reduced vectors, each with a leading bit that no later row has, and which pushed vectors sum to it.
    rows: Vec<(u32, u64)>,
    pushed: u32,
}

impl Span {
    /// The span of `vectors`.
    pub(super) fn of(vectors: impl IntoIterator<Item = u32>) -> Span {
        let mut span = Span::default();
        for vector in vectors {
            span.push(vector);
        }
        span
    }

    /// Adds a vector; true if it is independent of the earlier ones. Dependent vectors are counted (they keep their
    /// index) but never used in solutions.
    pub(super) fn push(&mut self, vector: u32) -> bool {
        let index = self.pushed;
        self.pushed += 1;
        let (rest, sum) = self.reduce(vector);
        if rest != 0 {
            self.rows.push((rest, sum ^ (1u64 << index)));
        }
        rest != 0
    }

    /// Number of independent vectors.
    pub(super) fn rank(&self) -> usize {
        self.rows.len()
    }

    /// The pushed vectors (bit i = i-th pushed) that sum to `vector`, if it is in the span.
    pub(super) fn solve(&self, vector: u32) -> Option<u64> {
        let (rest, sum) = self.reduce(vector);
        (rest == 0).then_some(sum)
    }

    fn reduce(&self, mut vector: u32) -> (u32, u64) {
        let mut sum = 0;
        for &(row, parts) in &self.rows {
            if vector & leading(row) != 0 {
                vector ^= row;
                sum ^= parts;
            }
        }
        (vector, sum)
    }
}

fn leading(row: u32) -> u32 {
    1 << (31 - row.leading_zeros())
}

/// XOR of `bases[i]` over the set bits i of `index`.
pub(super) fn combine(bases: &[u32], index: usize) -> u32 {
    bases.iter().enumerate().filter(|(bit, _)| index >> bit & 1 == 1).fold(0, |sum, (_, base)| sum ^ base)
}

/// Gathers the bits of `value` under `mask` into the low bits.
pub(super) fn compress(value: u32, mask: u32) -> u32 {
    let positions = (0..32).filter(|bit| mask >> bit & 1 == 1);
    positions.enumerate().fold(0, |out, (to, from)| out | (value >> from & 1) << to)
}

/// Scatters the low bits of `value` to the positions of `mask`, the inverse of [`compress`].
pub(super) fn deposit(value: u32, mask: u32) -> u32 {
    let positions = (0..32).filter(|bit| mask >> bit & 1 == 1);
    positions.enumerate().fold(0, |out, (from, to)| out | (value >> from & 1) << to)
}
