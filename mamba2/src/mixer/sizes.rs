//! The sizes of a mixer, and how they follow from the shapes of its weights.

/// Sizes of one mixer layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Channels of the model: of the mixer's input and output.
    pub model: usize,
    /// Heads.
    pub heads: usize,
    /// Channels of one head.
    pub head_dim: usize,
    /// Groups of heads that share B and C.
    pub groups: usize,
    /// State values of one channel.
    pub state: usize,
    /// Tokens that the convolution sees.
    pub width: usize,
}

impl Sizes {
    /// Channels of all heads.
    pub fn inner(&self) -> usize {
        self.heads * self.head_dim
    }

    /// Channels that go through the convolution: x, B and C.
    pub fn channels(&self) -> usize {
        self.inner() + 2 * self.groups * self.state
    }

    /// Rows of the input projection: z, x, B, C and dt.
    pub fn in_rows(&self) -> usize {
        self.inner() + self.channels() + self.heads
    }

    /// Whether the kernels take these sizes.
    pub(super) fn check(&self) -> Result<(), String> {
        let Sizes { model, heads, head_dim, groups, state, width } = *self;
        if groups == 0 || !heads.is_multiple_of(groups) {
            return Err(format!(
                "there are {groups} groups, expected a number that divides the {heads} heads"
            ));
        }
        for (name, size, most) in [
            ("model", model, usize::MAX),
            ("heads", heads, usize::MAX),
            ("head_dim", head_dim, 256),
            ("state", state, 256),
            ("width", width, 16),
        ] {
            if !(1..=most).contains(&size) {
                let range = if most == usize::MAX { "at least 1".into() } else { format!("1 to {most}") };
                return Err(format!("{name} is {size}, expected {range}"));
            }
        }
        Ok(())
    }

    /// From the shapes of `in_proj.weight`, `conv1d.weight`, `A_log` and `out_proj.weight`.
    pub(super) fn of(
        in_proj: &[usize],
        conv: &[usize],
        a_log: &[usize],
        out_proj: &[usize],
        groups: usize,
    ) -> Result<Sizes, String> {
        let (&[rows, model], &[channels, 1, width], &[heads], &[_, inner]) = (in_proj, conv, a_log, out_proj)
        else {
            return Err(format!(
                "in_proj.weight, conv1d.weight, A_log and out_proj.weight have shapes {in_proj:?}, {conv:?}, {a_log:?} \
                 and {out_proj:?}, expected [rows, model], [channels, 1, width], [heads] and [model, inner]"
            ));
        };
        let divides = |a: usize, b: usize| a != 0 && b.is_multiple_of(a);
        if !divides(heads, inner) {
            return Err(format!(
                "A_log has {heads} heads, which do not divide the {inner} columns of out_proj.weight"
            ));
        }
        let shared = groups.checked_mul(2).unwrap_or(0);
        let rest =
            channels.checked_sub(inner).filter(|&rest| divides(shared, rest) && divides(groups, heads));
        let Some(rest) = rest else {
            return Err(format!(
                "conv1d.weight has {channels} channels, expected {inner} of x and 2 * {groups} * state of B and C, and groups \
                 that divide the {heads} heads; is the number of groups {groups}?"
            ));
        };
        let sizes = Sizes { model, heads, head_dim: inner / heads, groups, state: rest / shared, width };
        if rows != sizes.in_rows() {
            return Err(format!(
                "in_proj.weight has {rows} rows, expected {} for z, x, B, C and dt; layers with a part beside the state \
                 space model are not supported",
                sizes.in_rows()
            ));
        }
        sizes.check()?;
        Ok(sizes)
    }
}
