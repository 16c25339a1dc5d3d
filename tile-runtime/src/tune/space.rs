//! What a search goes through: named axes of values, their combinations, and which of them make sense.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// One combination: a value for each name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Point(BTreeMap<String, u64>);

impl Point {
    /// A point without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same point with another value, or one more.
    #[must_use]
    pub fn with(mut self, name: &str, value: u64) -> Self {
        self.0.insert(name.to_owned(), value);
        self
    }

    /// The value of a name, if it has one.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
    }

    /// Names and values, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }
}

/// `block=64 warps=4`.
impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.iter().map(|(name, value)| format!("{name}={value}")).collect();
        f.pad(&parts.join(" "))
    }
}

type Rule<'a> = Box<dyn Fn(&Point) -> Result<(), String> + 'a>;

/// Named axes of values, whose combinations are tried in order, the last axis fastest.
#[derive(Default)]
pub struct Space<'a> {
    axes: Vec<(String, Vec<u64>)>,
    listed: Vec<Point>,
    rules: Vec<Rule<'a>>,
}

impl<'a> Space<'a> {
    /// A space without axes, and so without points.
    pub fn new() -> Self {
        Self::default()
    }

    /// One more axis. Values that come twice count once.
    #[must_use]
    pub fn axis(mut self, name: &str, values: impl IntoIterator<Item = u64>) -> Self {
        let mut different = Vec::new();
        for value in values {
            if !different.contains(&value) {
                different.push(value);
            }
        }
        self.axes.push((name.to_owned(), different));
        self
    }

    /// A point to try before all combinations, in the order in which such points are given. The first point of all is the one
    /// that the others are compared with: give the default here.
    #[must_use]
    pub fn first(mut self, point: Point) -> Self {
        self.listed.push(point);
        self
    }

    /// A rule: points that it returns a reason for are pruned.
    #[must_use]
    pub fn rule(mut self, rule: impl Fn(&Point) -> Result<(), String> + 'a) -> Self {
        self.rules.push(Box::new(rule));
        self
    }

    /// All points, each once, pruned ones too.
    pub fn points(&self) -> Vec<Point> {
        let mut product = Vec::from_iter((!self.axes.is_empty()).then(Point::new));
        for (name, values) in &self.axes {
            product = product
                .iter()
                .flat_map(|point| values.iter().map(|&value| point.clone().with(name, value)))
                .collect();
        }
        let mut points: Vec<Point> = Vec::new();
        for point in self.listed.iter().chain(&product) {
            // Products hold no point twice; those that were listed may come again.
            if !points.iter().take(self.listed.len()).any(|known| known == point) {
                points.push(point.clone());
            }
        }
        points
    }

    /// Why a point is not to be tried.
    ///
    /// # Errors
    /// The reason of the first rule that has one.
    pub fn allows(&self, point: &Point) -> Result<(), String> {
        self.rules.iter().try_for_each(|rule| rule(point))
    }
}

impl fmt::Debug for Space<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Space").field("axes", &self.axes).field("first", &self.listed).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_all_combinations_in_order() {
        let space = Space::new().axis("a", [1, 2, 1]).axis("b", [10, 20]);
        let texts: Vec<String> = space.points().iter().map(Point::to_string).collect();
        assert_eq!(texts, ["a=1 b=10", "a=1 b=20", "a=2 b=10", "a=2 b=20"]);
        assert!(Space::new().points().is_empty());
        assert!(Space::new().axis("a", [1]).axis("b", []).points().is_empty());
    }

    #[test]
    fn listed_points_come_first_and_once() {
        let default = Point::new().with("a", 2);
        let space = Space::new().axis("a", [1, 2, 3]).first(default.clone()).first(default.clone());
        let values: Vec<u64> = space.points().iter().filter_map(|point| point.get("a")).collect();
        assert_eq!(values, [2, 1, 3]);
        assert_eq!(Space::new().first(default.clone()).points(), [default]);
    }

    #[test]
    fn rules_give_reasons() {
        let odd = |point: &Point| match point.get("a") {
            Some(a) if a % 2 == 0 => Err(format!("{a} is even")),
            _ => Ok(()),
        };
        let space = Space::new().axis("a", [1, 2]).rule(odd);
        let verdicts: Vec<_> = space.points().iter().map(|point| space.allows(point)).collect();
        assert_eq!(verdicts, [Ok(()), Err("2 is even".to_owned())]);
    }
}
