//! Sizes on the command line: a named shape, any of whose sizes may be replaced.

use clap::Args;
use mamba2::problem::{self, Shape};

use super::Result;

/// Which problem to generate.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ShapeArgs {
    /// Named shape to start from: seed, t1k to t64k, s16 to s256, m130m, m2.7b, m2.7b-b8, nemotron
    #[arg(long, value_name = "NAME")]
    shape: Option<String>,
    /// Number of independent rows
    #[arg(long, value_name = "N")]
    batch: Option<usize>,
    /// Tokens of each row
    #[arg(long, value_name = "N")]
    pub(super) tokens: Option<usize>,
    /// Groups of heads that share B and C
    #[arg(long, value_name = "N")]
    groups: Option<usize>,
    /// Heads
    #[arg(long, value_name = "N")]
    heads: Option<usize>,
    /// Channels of one head
    #[arg(long, value_name = "N")]
    head_dim: Option<usize>,
    /// State values of one channel
    #[arg(long, value_name = "N")]
    state: Option<usize>,
}

impl ShapeArgs {
    /// The name, or "custom" where a size was replaced, and the sizes.
    ///
    /// # Errors
    /// If the name is unknown or the sizes do not fit together.
    pub(crate) fn resolve(&self, default: &str) -> Result<(String, Shape)> {
        let name = self.shape.as_deref().unwrap_or(default);
        let base = problem::named(name)?;
        let shape = Shape {
            batch: self.batch.unwrap_or(base.batch),
            tokens: self.tokens.unwrap_or(base.tokens),
            groups: self.groups.unwrap_or(base.groups),
            heads: self.heads.unwrap_or(base.heads),
            head_dim: self.head_dim.unwrap_or(base.head_dim),
            state: self.state.unwrap_or(base.state),
        };
        shape.check()?;
        Ok((if shape == base { name } else { "custom" }.to_owned(), shape))
    }
}

/// Refuses sizes far beyond the machine, which would abort the program, by the largest tensor alone.
pub(crate) fn fits_memory(shape: &Shape) -> Result<()> {
    let largest = shape.x_len().max(shape.b_len()).max(shape.state_len());
    if Vec::<f32>::new().try_reserve_exact(largest).is_err() {
        let bytes = largest.saturating_mul(size_of::<f32>());
        return Err(format!("{shape}: one tensor takes {bytes} bytes, more than this machine gives").into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_replace_those_of_the_named_shape() {
        let args = ShapeArgs { tokens: Some(100), ..ShapeArgs::default() };
        let (name, shape) = args.resolve("m130m").unwrap();
        assert_eq!((name.as_str(), shape.tokens, shape.heads), ("custom", 100, 24));
        assert_eq!(ShapeArgs::default().resolve("seed").unwrap().0, "seed");
        let uneven = ShapeArgs { groups: Some(5), ..ShapeArgs::default() };
        assert!(uneven.resolve("m130m").is_err());
    }
}
