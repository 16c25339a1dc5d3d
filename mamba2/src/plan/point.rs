//! A plan as a point of a search, and back: values from anywhere are checked, so that none leads to a wrong result.

use tile_runtime::tune::Point;

use super::Plan;

/// Warps that a block may have, and 0 for the compiler's choice.
const WARPS: [usize; 6] = [0, 1, 2, 4, 8, 16];

/// The most stages that a plan may ask for.
const STAGES: usize = 8;

impl Plan {
    /// What tuning varies, by name.
    fn tuned(&mut self) -> [(&'static str, &mut usize); 15] {
        [
            ("chunk", &mut self.chunk),
            ("state_tokens", &mut self.state_tokens),
            ("state_head_dim", &mut self.state_head_dim),
            ("state_state", &mut self.state_state),
            ("state_occupancy", &mut self.state_occupancy),
            ("state_warps", &mut self.state_warps),
            ("state_stages", &mut self.state_stages),
            ("state_plain", &mut self.state_plain),
            ("out_tokens", &mut self.out_tokens),
            ("out_head_dim", &mut self.out_head_dim),
            ("out_state", &mut self.out_state),
            ("out_occupancy", &mut self.out_occupancy),
            ("out_warps", &mut self.out_warps),
            ("out_stages", &mut self.out_stages),
            ("out_plain", &mut self.out_plain),
        ]
    }

    /// What tuning varies, as a point.
    pub(crate) fn point(mut self) -> Point {
        let values = self.tuned().map(|(name, value)| (name, *value as u64));
        values.into_iter().fold(Point::new(), |point, (name, value)| point.with(name, value))
    }

    /// The value of a name, 0 for one that tuning does not vary.
    pub(crate) fn value(mut self, name: &str) -> u64 {
        self.tuned().iter().find(|(known, _)| *known == name).map_or(0, |(_, value)| **value as u64)
    }

    /// This plan with the values that a point has.
    ///
    /// # Errors
    /// For a name that tuning does not vary, and for values that the kernels do not take.
    pub(crate) fn at(mut self, point: &Point) -> Result<Plan, String> {
        for (name, value) in point.iter() {
            let mut tuned = self.tuned();
            let place = tuned.iter_mut().find(|(known, _)| *known == name);
            let (_, place) = place.ok_or_else(|| format!("{name} is not part of a plan"))?;
            **place = usize::try_from(value).map_err(|_| format!("{name} is {value}"))?;
        }
        self.check()?;
        Ok(self)
    }

    /// The plan of a point that must have every value that tuning varies; the rest is of this plan.
    ///
    /// # Errors
    /// As [`Plan::at`], and for a value that is missing.
    pub(crate) fn all_of(mut self, point: &Point) -> Result<Plan, String> {
        match self.tuned().iter().find(|(name, _)| point.get(name).is_none()) {
            Some((name, _)) => Err(format!("{name} is missing")),
            None => self.at(point),
        }
    }

    /// Whether the kernels take these values: powers of two that divide each other, in range.
    fn check(&self) -> Result<(), String> {
        let tile = |name: &str, value: usize, most: usize| {
            let fits = value.is_power_of_two() && (16..=most).contains(&value);
            if fits {
                Ok(())
            } else {
                Err(format!("{name} is {value}, not a power of two from 16 to {most}"))
            }
        };
        tile("chunk", self.chunk, 256)?;
        tile("state_tokens", self.state_tokens, self.chunk)?;
        tile("state_head_dim", self.state_head_dim, 256)?;
        tile("state_state", self.state_state, 256)?;
        tile("out_tokens", self.out_tokens, self.chunk)?;
        tile("out_head_dim", self.out_head_dim, 256)?;
        tile("out_state", self.out_state, 256)?;
        for (name, value) in
            [("state_occupancy", self.state_occupancy), ("out_occupancy", self.out_occupancy)]
        {
            if !(1..=32).contains(&value) {
                return Err(format!("{name} is {value}, not 1 to 32"));
            }
        }
        for (name, value) in [("state_warps", self.state_warps), ("out_warps", self.out_warps)] {
            if !WARPS.contains(&value) {
                return Err(format!("{name} is {value}, not one of {WARPS:?}"));
            }
        }
        for (name, value, most) in [
            ("state_stages", self.state_stages, STAGES),
            ("state_plain", self.state_plain, 1),
            ("out_stages", self.out_stages, STAGES),
            ("out_plain", self.out_plain, 1),
        ] {
            if value > most {
                return Err(format!("{name} is {value}, not 0 to {most}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::named;

    fn plan() -> Plan {
        Plan::new::<f32>(named("seed").unwrap(), None, None).unwrap()
    }

    #[test]
    fn a_plan_and_its_point_are_the_same() {
        let other = Plan { chunk: 64, state_tokens: 32, out_tokens: 16, out_warps: 8, ..plan() };
        assert_eq!(plan().all_of(&other.point()), Ok(other));
        assert_eq!(plan().at(&Point::new()), Ok(plan()));
        assert_eq!((other.value("out_warps"), other.value("block_heads")), (8, 0));
    }

    #[test]
    fn values_that_the_kernels_do_not_take_are_refused() {
        for (name, value) in [
            ("chunk", 0),
            ("chunk", 8),
            ("chunk", 48),
            ("chunk", 512),
            // Shorter than the tiles of tokens.
            ("chunk", 16),
            ("chunk", u64::MAX),
            ("state_tokens", 256),
            ("out_tokens", 256),
            ("state_head_dim", 8),
            ("state_state", 0),
            ("out_state", 100),
            ("out_head_dim", 1 << 40),
            ("state_occupancy", 0),
            ("out_occupancy", 33),
            ("out_occupancy", 1 << 33),
            ("state_warps", 3),
            ("out_warps", 32),
            ("state_stages", 9),
            ("out_plain", 2),
            ("block_heads", 3),
            ("anything", 1),
        ] {
            assert!(plan().at(&plan().point().with(name, value)).is_err(), "{name} {value}");
        }
        let error = plan().all_of(&Point::new().with("chunk", 128)).unwrap_err();
        assert_eq!(error, "state_tokens is missing");
    }
}
