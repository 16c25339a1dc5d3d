//! `pipeline_loads`: in counted loops around a matrix product, tiles of later iterations are on their way while this one is
//! worked on, so that the product hides the latency of their loads.
//!
//! There are two forms. Where the whole block runs the loop, asynchronous copies fill a ring of shared stages (`rings`), several
//! iterations ahead. Loads that such copies cannot do, and those of roles, are issued one iteration ahead and held in registers
//! (`registers`), if they are large. For both the address must follow from the loop index and from values outside the loop by
//! pure operations, and the tensor must be read-only.

mod registers;
mod rings;
mod slice;

use super::allocate_shared::plan_shared;
use super::{Changed, PassCx, assign_layouts};
use crate::diag::Diagnostics;
use crate::explain::{Choice, Reason};
use crate::ir::{Kernel, OpId, RegionId};
use crate::ops::OpKind;
use rings::RingLoad;

/// Stages that help, the most first.
const STAGES: [usize; 2] = [3, 2];

/// Pipelines every loop that qualifies.
///
/// # Errors
/// None.
pub fn run(kernel: &mut Kernel, cx: &PassCx<'_>) -> Result<Changed, Diagnostics> {
    let before = kernel.ops.len();
    *kernel = pipelined(kernel, cx);
    Ok(if kernel.ops.len() == before { Changed::No } else { Changed::Yes })
}

fn pipelined(kernel: &Kernel, cx: &PassCx<'_>) -> Kernel {
    if is_divided(kernel) {
        return Rewrite::new(kernel, None).run();
    }
    let wanted = cx.config.stages.map(|stages| [stages]);
    let wanted = wanted.as_ref().map_or(&STAGES[..], |one| one).iter().filter(|&&stages| stages > 1);
    let mut why = Reason::OneStage;
    for &stages in wanted {
        match tried(kernel, cx, Stages { common: Ok(stages), hinted: true }) {
            Ok(pipelined) => return pipelined,
            Err(reason) => why = reason,
        }
    }
    // Loads with a latency of their own need no other number of stages.
    tried(kernel, cx, Stages { common: Err(why), hinted: true }).unwrap_or_else(|reason| {
        Rewrite::new(kernel, Some(Stages { common: Err(reason), hinted: false })).run()
    })
}

fn is_divided(kernel: &Kernel) -> bool {
    let mut divided = false;
    kernel.walk(|_, op| divided |= matches!(op.kind, OpKind::Roles(_)));
    divided
}

/// The kernel with rings of so many stages, if their shared memory and that of everything else is there, for as many blocks as
/// the configuration asks for.
fn tried(kernel: &Kernel, cx: &PassCx<'_>, stages: Stages) -> Result<Kernel, Reason> {
    let mut rewrite = Rewrite::new(kernel, Some(stages));
    let first = rewrite.rings;
    rewrite.region(kernel.body);
    let mut laid_out = rewrite.kernel.clone();
    // What is wrong with a kernel that has no layouts, the next pass will say.
    if rewrite.rings == first || assign_layouts::run(&mut laid_out, cx).is_err() {
        return Ok(rewrite.kernel);
    }
    let blocks = cx.config.occupancy.unwrap_or(1).max(1) as usize;
    let (bytes, most) = (plan_shared(&laid_out).bytes, cx.target.max_shared_bytes / blocks);
    if bytes as usize <= most { Ok(rewrite.kernel) } else { Err(Reason::NoRoom { bytes, most }) }
}

/// How many stages rings have.
#[derive(Clone, Copy)]
struct Stages {
    /// Those of loads without a latency of their own, or why these have no ring.
    common: Result<usize, Reason>,
    /// Whether a latency is a number of stages.
    hinted: bool,
}

impl Stages {
    /// The stages of a load with such a hint.
    fn of(self, latency: Option<usize>) -> Result<usize, Reason> {
        match latency {
            Some(1) => Err(Reason::LatencyOne),
            Some(latency) if self.hinted => Ok(latency),
            Some(_) | None => self.common,
        }
    }
}

struct Rewrite {
    kernel: Kernel,
    /// `None` where there are no rings, and that goes without saying.
    stages: Option<Stages>,
    /// The number of the next ring.
    rings: usize,
}

impl Rewrite {
    fn new(kernel: &Kernel, stages: Option<Stages>) -> Self {
        // Rings share their numbers with channels.
        let mut rings = 0;
        kernel.walk(|_, op| {
            if let OpKind::Receive(receive) = &op.kind {
                rings = rings.max(receive.channel + 1);
            }
        });
        Self { kernel: kernel.clone(), stages, rings }
    }

    /// The kernel with its loops pipelined.
    fn run(mut self) -> Kernel {
        self.region(self.kernel.body);
        self.kernel
    }

    fn region(&mut self, region: RegionId) {
        for id in self.kernel.regions[region].ops.clone() {
            for inner in self.kernel.ops[id].regions.clone() {
                self.region(inner);
            }
            if matches!(self.kernel.ops[id].kind, OpKind::For(_)) {
                self.counted_loop(region, id);
            }
        }
    }

    fn counted_loop(&mut self, parent: RegionId, id: OpId) {
        let body = self.kernel.ops[id].regions[0];
        let ops = self.kernel.regions[body].ops.clone();
        if !ops.iter().any(|&op| matches!(self.kernel.ops[op].kind, OpKind::Mma(_))) {
            return;
        }
        let loads = ops.into_iter().filter(|&op| matches!(self.kernel.ops[op].kind, OpKind::Load(_)));
        let (mut copied, mut others): (Vec<RingLoad>, Vec<OpId>) = (Vec::new(), Vec::new());
        for load in loads.collect::<Vec<_>>() {
            let Some(stages) = self.stages else {
                others.push(load);
                continue;
            };
            match rings::plan(&self.kernel, body, load, stages) {
                Ok(plan) => copied.push(plan),
                Err(reason) => {
                    let op = self.kernel.ops[load].clone();
                    self.kernel.note(&op, Choice::NoRing(reason));
                    others.push(load);
                }
            }
        }
        registers::prefetch(&mut self.kernel, parent, id, &others);
        if !copied.is_empty() {
            rings::pipeline(&mut self.kernel, parent, id, &copied, self.rings);
            self.rings += copied.len();
        }
    }
}
