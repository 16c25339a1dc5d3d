//! The search: every point is tried, and what became of each is kept, failures too.

use std::fmt::{self, Display};

use super::space::{Point, Space};
use crate::timing::Time;

/// What is tuned: how a point is judged, run, compared and timed.
pub trait Trial {
    /// What a run computes.
    type Output;
    /// Why a run or a timing fails.
    type Error: Display;

    /// Whether the point can run at all, found out without running it: compile it, and ask [`fits`](super::fits()).
    ///
    /// # Errors
    /// The reason why not.
    fn fits(&mut self, point: &Point) -> Result<(), String> {
        let _ = point;
        Ok(())
    }

    /// Runs the point once, from nothing that an earlier one left.
    ///
    /// # Errors
    /// If it cannot run.
    fn run(&mut self, point: &Point) -> Result<Self::Output, Self::Error>;

    /// Whether an output agrees with that of the first point that ran, within a tolerance that the caller knows.
    ///
    /// # Errors
    /// How they differ.
    fn compare(&self, first: &Self::Output, other: &Self::Output) -> Result<(), String>;

    /// Takes the time of the point; see [`measure`](crate::timing::measure).
    ///
    /// # Errors
    /// If it cannot run.
    fn time(&mut self, point: &Point) -> Result<Time, Self::Error>;
}

/// What became of a point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It ran, agreed with the first, and took this time.
    Time(Time),
    /// It ran, and its output differs from the first one's in this way.
    Wrong(String),
    /// It did not run, for this reason.
    Failed(String),
    /// It was not run, for this reason.
    Pruned(String),
}

impl Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(time) => write!(f, "{:?}, spread {:?}", time.median, time.spread),
            Self::Wrong(how) => write!(f, "wrong: {how}"),
            Self::Failed(why) => write!(f, "failed: {why}"),
            Self::Pruned(why) => write!(f, "pruned: {why}"),
        }
    }
}

/// A point and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// The point.
    pub point: Point,
    /// What became of it.
    pub outcome: Outcome,
}

impl Tried {
    /// Its time, if it has one.
    pub fn time(&self) -> Option<Time> {
        match &self.outcome {
            Outcome::Time(time) => Some(*time),
            Outcome::Wrong(_) | Outcome::Failed(_) | Outcome::Pruned(_) => None,
        }
    }
}

/// A search that found a winner.
#[derive(Debug, Clone)]
pub struct Search {
    tried: Vec<Tried>,
    winner: usize,
    time: Time,
}

impl Search {
    /// All points, in the order of the space.
    pub fn tried(&self) -> &[Tried] {
        &self.tried
    }

    /// The point with the least median; of equal ones the first. The first point of the space wins also where the least median is
    /// not below its own by more than half the larger of their spreads: a difference that may be chance changes nothing.
    pub fn winner(&self) -> &Tried {
        &self.tried[self.winner]
    }

    /// The winner's place among [`tried`](Self::tried).
    pub fn winner_index(&self) -> usize {
        self.winner
    }

    /// The time of the winner.
    pub fn time(&self) -> Time {
        self.time
    }
}

/// No point ran and was right; `Display` lists them all.
#[derive(Debug, Clone, thiserror::Error)]
#[error("nothing that was tried has a time{}", list(.tried))]
pub struct NoWinner {
    /// All points, in the order of the space.
    pub tried: Vec<Tried>,
}

fn list(tried: &[Tried]) -> String {
    if tried.is_empty() {
        return ": the space has no points".to_owned();
    }
    tried.iter().map(|Tried { point, outcome }| format!("\n  {point}: {outcome}")).collect()
}

/// Tries every point of the space. The first one that runs is what the outputs of the others are compared with, so it should be
/// known to be right. After each point `watch` gets it, with the number of points that are still to come.
///
/// A point that breaks the device, as an illegal address does a GPU, makes all later ones fail too.
///
/// # Errors
/// If no point has a time, with what became of each.
pub fn search<T: Trial>(
    space: &Space<'_>,
    trial: &mut T,
    watch: &mut dyn FnMut(&Tried, usize),
) -> Result<Search, NoWinner> {
    let points = space.points();
    let (count, mut first) = (points.len(), None);
    let mut tried = Vec::with_capacity(count);
    for (index, point) in points.into_iter().enumerate() {
        let outcome = attempt(space, trial, &point, &mut first);
        tried.push(Tried { point, outcome });
        watch(&tried[index], count - 1 - index);
    }
    let Some((winner, time)) = fastest(&tried) else { return Err(NoWinner { tried }) };
    Ok(Search { winner, time, tried })
}

fn fastest(tried: &[Tried]) -> Option<(usize, Time)> {
    let times = tried.iter().enumerate().filter_map(|(index, tried)| Some((index, tried.time()?)));
    let (index, time) = times.min_by_key(|(_, time)| time.median)?;
    match tried[0].time() {
        Some(first) if first.median - time.median <= first.spread.max(time.spread) / 2 => Some((0, first)),
        _ => Some((index, time)),
    }
}

fn attempt<T: Trial>(
    space: &Space<'_>,
    trial: &mut T,
    point: &Point,
    first: &mut Option<T::Output>,
) -> Outcome {
    if let Err(reason) = space.allows(point).and_then(|()| trial.fits(point)) {
        return Outcome::Pruned(reason);
    }
    let output = match trial.run(point) {
        Ok(output) => output,
        Err(error) => return Outcome::Failed(error.to_string()),
    };
    match first {
        Some(first) => {
            if let Err(difference) = trial.compare(first, &output) {
                return Outcome::Wrong(difference);
            }
        }
        None => *first = Some(output),
    }
    match trial.time(point) {
        Ok(time) => Outcome::Time(time),
        Err(error) => Outcome::Failed(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// What a point computes, or why it fails, and its time in microseconds, or why it has none.
    type Known = (Result<f64, &'static str>, Result<u64, &'static str>);

    /// A runner whose points are known.
    struct Fake {
        known: Vec<Known>,
        unfit: Vec<u64>,
        ran: Vec<u64>,
    }

    impl Fake {
        fn new(known: &[Known]) -> Self {
            Self { known: known.to_vec(), unfit: Vec::new(), ran: Vec::new() }
        }

        fn space(&self) -> Space<'static> {
            Space::new().axis("i", 0..self.known.len() as u64)
        }

        fn outcomes(&mut self) -> (Vec<Outcome>, Option<u64>) {
            let space = self.space();
            match search(&space, self, &mut |_, _| {}) {
                Ok(search) => {
                    let winner = search.winner().point.get("i");
                    (search.tried().iter().map(|tried| tried.outcome.clone()).collect(), winner)
                }
                Err(none) => (none.tried.into_iter().map(|tried| tried.outcome).collect(), None),
            }
        }
    }

    fn of(point: &Point) -> u64 {
        point.get("i").expect("the only axis")
    }

    impl Trial for Fake {
        type Output = f64;
        type Error = &'static str;

        fn fits(&mut self, point: &Point) -> Result<(), String> {
            if self.unfit.contains(&of(point)) { Err("too large".to_owned()) } else { Ok(()) }
        }

        fn run(&mut self, point: &Point) -> Result<f64, &'static str> {
            self.ran.push(of(point));
            self.known[of(point) as usize].0
        }

        fn compare(&self, first: &f64, other: &f64) -> Result<(), String> {
            // Not `>`, so that NaN differs.
            if (first - other).abs() <= 0.5 { Ok(()) } else { Err(format!("{other} is not {first}")) }
        }

        fn time(&mut self, point: &Point) -> Result<Time, &'static str> {
            let us = self.known[of(point) as usize].1?;
            Ok(Time { median: Duration::from_micros(us), spread: Duration::ZERO })
        }
    }

    fn us(us: u64) -> Outcome {
        Outcome::Time(Time { median: Duration::from_micros(us), spread: Duration::ZERO })
    }

    #[test]
    fn the_fastest_right_point_wins() {
        let mut fake = Fake::new(&[
            (Ok(1.0), Ok(50)),
            (Ok(2.0), Ok(1)),
            (Ok(1.25), Ok(30)),
            (Err("no memory"), Ok(1)),
            (Ok(f64::NAN), Ok(1)),
            (Ok(1.0), Err("lost")),
            (Ok(1.0), Ok(30)),
        ]);
        let expected = [
            us(50),
            Outcome::Wrong("2 is not 1".to_owned()),
            us(30),
            Outcome::Failed("no memory".to_owned()),
            Outcome::Wrong("NaN is not 1".to_owned()),
            Outcome::Failed("lost".to_owned()),
            us(30),
        ];
        assert_eq!(fake.outcomes(), (expected.to_vec(), Some(2)));
    }

    #[test]
    fn pruned_points_never_run() {
        let mut fake = Fake::new(&[(Ok(1.0), Ok(9)), (Ok(1.0), Ok(1)), (Ok(1.0), Ok(5))]);
        fake.unfit = vec![1];
        let space = fake.space().rule(|point| match of(point) {
            2 => Err("not two".to_owned()),
            _ => Ok(()),
        });
        let found = search(&space, &mut fake, &mut |_, _| {}).expect("one point is left");
        assert_eq!(fake.ran, [0]);
        assert_eq!(found.winner().point.get("i"), Some(0));
        assert_eq!(found.tried()[1].outcome, Outcome::Pruned("too large".to_owned()));
        assert_eq!(found.tried()[2].outcome, Outcome::Pruned("not two".to_owned()));
    }

    #[test]
    fn without_the_first_the_next_is_compared_with() {
        let mut fake = Fake::new(&[(Err("refused"), Ok(1)), (Ok(7.0), Ok(20)), (Ok(1.0), Ok(10))]);
        let expected =
            [Outcome::Failed("refused".to_owned()), us(20), Outcome::Wrong("1 is not 7".to_owned())];
        assert_eq!(fake.outcomes(), (expected.to_vec(), Some(1)));
    }

    #[test]
    fn all_failing_is_an_error_with_a_list() {
        let mut fake = Fake::new(&[(Err("refused"), Ok(1)), (Ok(1.0), Err("lost"))]);
        let space = fake.space();
        let error = search(&space, &mut fake, &mut |_, _| {}).expect_err("nothing has a time");
        let expected = "nothing that was tried has a time\n  i=0: failed: refused\n  i=1: failed: lost";
        assert_eq!(error.to_string(), expected);
        let empty = search(&Space::new(), &mut fake, &mut |_, _| {}).expect_err("nothing to try");
        assert_eq!(empty.to_string(), "nothing that was tried has a time: the space has no points");
    }

    #[test]
    fn what_may_be_chance_leaves_the_first() {
        let timed = |index: u64, median: u64, spread: u64| {
            let (median, spread) = (Duration::from_micros(median), Duration::from_micros(spread));
            Tried { point: Point::new().with("i", index), outcome: Outcome::Time(Time { median, spread }) }
        };
        let winner = |times: &[(u64, u64)]| {
            let tried: Vec<_> = times.iter().map(|&(median, spread)| timed(0, median, spread)).collect();
            fastest(&tried).expect("all have times").0
        };
        assert_eq!(winner(&[(100, 8), (96, 2)]), 0);
        assert_eq!(winner(&[(100, 2), (96, 8)]), 0);
        assert_eq!(winner(&[(100, 7), (96, 2), (98, 0)]), 1);
        assert_eq!(winner(&[(100, 0), (100, 0)]), 0);
        let pruned = Tried { outcome: Outcome::Pruned(String::new()), ..timed(0, 0, 0) };
        assert_eq!(fastest(&[pruned, timed(1, 100, 8), timed(2, 96, 2)]).expect("two have times").0, 2);
    }

    #[test]
    fn who_watches_sees_every_point() {
        let mut fake = Fake::new(&[(Ok(1.0), Ok(9)), (Ok(3.0), Ok(1))]);
        let (space, mut seen) = (fake.space(), Vec::new());
        search(&space, &mut fake, &mut |tried, left| seen.push((tried.time().is_some(), left)))
            .expect("the first has a time");
        assert_eq!(seen, [(true, 1), (false, 0)]);
    }
}
