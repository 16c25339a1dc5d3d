//! Grids: how many blocks a launch has along each axis.

use crate::error::{Error, Result};

/// Blocks along up to three axes; axes not given have one block.
///
/// Made from a number, or a tuple or an array of up to three, of any integer type: `launch(n)`, `launch((x, y))`,
/// `launch([x, y, z])`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid([i64; 3]);

/// The most blocks of a launch.
const MAX_BLOCKS: i64 = i32::MAX as i64;

impl Grid {
    /// The blocks along each axis; none if there are no blocks.
    pub(crate) fn checked(self, kernel: &str) -> Result<Option<[u32; 3]>> {
        let wrong = |found: String| {
            let what = format!("grid of kernel `{kernel}`");
            Err(Error::Shape { what, found, expected: format!("0 to {MAX_BLOCKS} blocks in all") })
        };
        let [x, y, z] = self.0;
        if self.0.iter().any(|&n| n < 0) {
            return wrong(format!("{:?}", self.0));
        }
        if self.0.contains(&0) {
            return Ok(None);
        }
        match x.checked_mul(y).and_then(|n| n.checked_mul(z)) {
            Some(total) if total <= MAX_BLOCKS => Ok(Some(self.0.map(|n| n as u32))),
            _ => wrong(format!("{:?}", self.0)),
        }
    }
}

/// An integer that counts blocks.
pub trait GridAxis: sealed::Sealed {
    #[doc(hidden)]
    fn blocks(self) -> i64;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! grid_axes {
    ($($ty:ty)*) => {$(
        impl sealed::Sealed for $ty {}
        impl GridAxis for $ty {
            fn blocks(self) -> i64 {
                i64::try_from(self).unwrap_or(i64::MAX)
            }
        }
        impl From<$ty> for Grid {
            fn from(x: $ty) -> Self {
                Self([x.blocks(), 1, 1])
            }
        }
    )*};
}
grid_axes! { usize i32 u32 i64 u64 }

impl<X: GridAxis> From<(X,)> for Grid {
    fn from((x,): (X,)) -> Self {
        Self([x.blocks(), 1, 1])
    }
}
impl<X: GridAxis, Y: GridAxis> From<(X, Y)> for Grid {
    fn from((x, y): (X, Y)) -> Self {
        Self([x.blocks(), y.blocks(), 1])
    }
}
impl<X: GridAxis, Y: GridAxis, Z: GridAxis> From<(X, Y, Z)> for Grid {
    fn from((x, y, z): (X, Y, Z)) -> Self {
        Self([x.blocks(), y.blocks(), z.blocks()])
    }
}
impl<N: GridAxis> From<[N; 1]> for Grid {
    fn from([x]: [N; 1]) -> Self {
        (x,).into()
    }
}
impl<N: GridAxis> From<[N; 2]> for Grid {
    fn from([x, y]: [N; 2]) -> Self {
        (x, y).into()
    }
}
impl<N: GridAxis> From<[N; 3]> for Grid {
    fn from([x, y, z]: [N; 3]) -> Self {
        (x, y, z).into()
    }
}
