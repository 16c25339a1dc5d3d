//! Tuning of the forward pass: chunk length, block sizes, occupancy and warps, tried on the device that holds the inputs.
//!
//! For each chunk length `fwd_pass_state` and `compute_out` are searched through one by one, since neither depends on the other's block
//! sizes; then whole passes with the winners of each chunk length are compared, the default among them. Every candidate is
//! held against the default's results before it is timed. [`Tuning::save`] keeps the winner for [`forward`](crate::forward()).

mod space;
mod trial;

use std::path::PathBuf;

use tile_runtime::Device;
use tile_runtime::timing::{self, Time};
use tile_runtime::tune::{Answer, NoWinner, Point, Search, Space, Store, Tried, search};

use self::space::{chunks, kernel_space};
use self::trial::{KernelTrial, WholeTrial};
use crate::arguments::{FloatElement, Inputs, Options};
use crate::check::check;
use crate::error::Result;
use crate::plan::Plan;
use crate::resident::HostFloat;
use crate::tuned::{Kind, TUNED, question};

/// The candidates of one kernel at one chunk length, or whole passes, and what became of them.
#[derive(Debug, Clone)]
pub struct Round {
    /// Such as `compute_out, chunk 128`, or `forward`.
    pub name: String,
    /// What became of each; the first one is the default.
    pub tried: Vec<Tried>,
    /// The place of the winner, if any has a time.
    pub winner: Option<usize>,
}

impl Round {
    fn new(name: String, outcome: Result<&Search, NoWinner>) -> Self {
        match outcome {
            Ok(search) => Self { name, tried: search.tried().to_vec(), winner: Some(search.winner_index()) },
            Err(none) => Self { name, tried: none.tried, winner: None },
        }
    }

    fn point(&self) -> Result<&Point, String> {
        let winner = self.winner.ok_or_else(|| format!("{}: nothing has a time", self.name))?;
        Ok(&self.tried[winner].point)
    }
}

/// How far tuning is.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// The round.
    pub round: &'a str,
    /// What was tried last.
    pub tried: &'a Tried,
    /// Candidates tried so far.
    pub done: usize,
    /// Candidates of all rounds.
    pub total: usize,
}

/// The result of tuning for one kind of problem.
#[derive(Debug, Clone)]
pub struct Tuning {
    rounds: Vec<Round>,
    search: Search,
    bucket: String,
    device: Device,
    kernels: Option<tile_runtime::cache::Key>,
}

impl Tuning {
    /// All rounds, the last of whole passes.
    pub fn rounds(&self) -> &[Round] {
        &self.rounds
    }

    /// The fastest plan and the time of a whole pass.
    pub fn winner(&self) -> (&Point, Time) {
        (&self.search.winner().point, self.search.time())
    }

    /// The default plan, and the time of a whole pass unless that failed.
    pub fn default(&self) -> (&Point, Option<Time>) {
        let default = &self.search.tried()[0];
        (&default.point, default.time())
    }

    /// The kind of problem that it serves, in words.
    pub fn bucket(&self) -> &str {
        &self.bucket
    }

    /// Keeps the winner where [`forward`](crate::forward()) finds it, and returns the file; none if `TILE_TUNED=off`, or if no folder is
    /// known.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn save(&self) -> std::io::Result<Option<PathBuf>> {
        let Some((store, kernels)) = Store::of_process().zip(self.kernels.as_ref()) else { return Ok(None) };
        let (point, time) = self.winner();
        let answer = Answer { point: point.clone(), time };
        store.save(&question(&self.device, &self.bucket), kernels, &answer).map(Some)
    }
}

/// Tries every plan for these inputs and options, and calls `watch` after each. With a chunk length among the options, that one alone.
///
/// # Errors
/// As [`forward`](crate::forward()); on a PTX executor and the meta device, whose times mean nothing; [`Error::Tuning`](crate::Error::Tuning) if not even the
/// default has a time.
pub fn tune<T: HostFloat, Dt: FloatElement, D: FloatElement, Z: FloatElement, S: FloatElement>(
    inputs: &Inputs<'_, T, Dt, D, Z, S>,
    options: &Options,
    watch: &mut dyn FnMut(Progress<'_>),
) -> Result<Tuning> {
    let shape = check(inputs)?;
    let device = inputs.x.device();
    let target = options.target_on(device);
    timing::check(device)?;
    let default = Plan::new::<T>(shape, options.chunk, target)?;
    let mut plans = Vec::new();
    for chunk in chunks(&default, options.chunk, shape, target.is_some()) {
        plans.push(if chunk == default.chunk {
            default
        } else {
            Plan::new::<T>(shape, Some(chunk), target)?
        });
    }
    let spaces: Vec<_> =
        plans.iter().map(|plan| TUNED.map(|kernel| kernel_space(kernel, plan, shape, target))).collect();
    let total = spaces.iter().flatten().map(|space| space.points().len()).sum::<usize>() + plans.len() + 1;
    let (mut rounds, mut done) = (Vec::new(), 0);
    let mut best = Space::new().first(default.point());
    for (plan, spaces) in plans.iter().zip(&spaces) {
        let mut trial = KernelTrial::new(inputs, options, shape, *plan)?;
        let mut winner = Ok(*plan);
        // `fwd_pass_state` makes what `compute_out` reads: it comes last.
        for (kernel, space) in TUNED.into_iter().zip(spaces).rev() {
            let name = format!("{kernel}, chunk {}", plan.chunk);
            trial.of(kernel);
            let found = search(space, &mut trial, &mut |tried, _| {
                done += 1;
                watch(Progress { round: &name, tried, done, total });
            });
            let round = Round::new(name, found.as_ref().map_err(Clone::clone));
            winner = winner.and_then(|plan| plan.at(round.point()?));
            rounds.push(round);
        }
        // A chunk length at which a kernel does not run at all is out.
        if let Ok(winner) = winner {
            best = best.first(winner.point());
        }
    }
    let mut trial = WholeTrial::new(inputs, options, shape, default)?;
    let found = search(&best, &mut trial, &mut |tried, left| {
        done += 1;
        watch(Progress { round: "forward", tried, done, total: done + left });
    })?;
    rounds.push(Round::new("forward".into(), Ok(&found)));
    let kind = Kind::of(inputs, options, shape);
    Ok(Tuning {
        rounds,
        search: found,
        bucket: kind.bucket(),
        device: device.clone(),
        kernels: kind.kernels::<T, D, Z, S>(),
    })
}
