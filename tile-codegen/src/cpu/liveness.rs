//! Which values are still needed where: marks last uses, drops values that a branch leaves unused, and forgets results
//! that nobody reads.

use super::program::{Instr, Step, Use};

/// A set of slots.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SlotSet {
    words: Vec<u64>,
}

impl SlotSet {
    fn new(slots: usize) -> Self {
        Self { words: vec![0; slots.div_ceil(64)] }
    }
    pub(crate) fn contains(&self, slot: usize) -> bool {
        self.words[slot / 64] >> (slot % 64) & 1 == 1
    }
    fn insert(&mut self, slot: u32) {
        self.words[slot as usize / 64] |= 1 << (slot % 64);
    }
    fn remove(&mut self, slot: u32) {
        self.words[slot as usize / 64] &= !(1 << (slot % 64));
    }
    fn add_all(&mut self, other: &SlotSet) {
        self.words.iter_mut().zip(&other.words).for_each(|(a, b)| *a |= b);
    }
    /// Slots of this set that are not in `other`.
    fn without(&self, other: &SlotSet) -> impl Iterator<Item = u32> {
        self.words.iter().zip(&other.words).enumerate().flat_map(|(at, (a, b))| {
            let bits = a & !b;
            (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| at as u32 * 64 + bit)
        })
    }
}

fn reads(step: &mut Step) -> &mut [Use] {
    match step {
        Step::Eval { operands, .. } => operands,
        Step::Jump { from, .. } => from,
        Step::Branch { condition, .. } => std::slice::from_mut(condition),
        Step::ForInit { bounds, .. } => bounds,
        Step::ForNext { .. } | Step::Halt => &mut [],
    }
}

fn writes(step: &Step) -> &[u32] {
    match step {
        Step::Eval { result, .. } => result.as_slice(),
        Step::Jump { to, .. } => to,
        Step::ForNext { index, .. } => std::slice::from_ref(index),
        Step::Branch { .. } | Step::ForInit { .. } | Step::Halt => &[],
    }
}

/// Where execution goes from the instruction at `at`.
fn successors(step: &Step, at: usize) -> [Option<usize>; 2] {
    match step {
        Step::Eval { .. } | Step::ForInit { .. } => [Some(at + 1), None],
        Step::Jump { target, .. } => [Some(*target as usize), None],
        Step::Branch { otherwise: other, .. } | Step::ForNext { exit: other, .. } => {
            [Some(at + 1), Some(*other as usize)]
        }
        Step::Halt => [None, None],
    }
}

/// Marks last uses and drops in `code`; returns the slots that must be filled before the first instruction.
pub(crate) fn mark(code: &mut [Instr], slots: usize) -> SlotSet {
    let live_in = solve(code, slots);
    let out = |code: &[Instr], at: usize| {
        let mut live = SlotSet::new(slots);
        successors(&code[at].step, at).into_iter().flatten().for_each(|next| live.add_all(&live_in[next]));
        live
    };
    for at in 0..code.len() {
        let live_out = out(code, at);
        let mut later = live_out.clone();
        // Of several reads of one dying value, the last moves it out.
        for read in reads(&mut code[at].step).iter_mut().rev() {
            read.last = !later.contains(read.slot as usize);
            later.insert(read.slot);
        }
        if let [Some(a), Some(b)] = successors(&code[at].step, at) {
            for next in [a, b] {
                let unused: Vec<u32> = live_out.without(&live_in[next]).collect();
                let drops = &mut code[next].drops;
                unused.into_iter().for_each(|slot| {
                    if !drops.contains(&slot) {
                        drops.push(slot);
                    }
                });
            }
        }
        if let Step::Eval { result, .. } = &mut code[at].step
            && result.is_some_and(|slot| !live_out.contains(slot as usize))
        {
            *result = None;
        }
    }
    live_in[0].clone()
}

/// The slots needed before each instruction: the smallest solution of the usual backward equations.
fn solve(code: &mut [Instr], slots: usize) -> Vec<SlotSet> {
    let mut live_in = vec![SlotSet::new(slots); code.len()];
    loop {
        let mut changed = false;
        for at in (0..code.len()).rev() {
            let step = &mut code[at].step;
            let mut live = SlotSet::new(slots);
            successors(step, at).into_iter().flatten().for_each(|next| live.add_all(&live_in[next]));
            writes(step).iter().for_each(|&slot| live.remove(slot));
            reads(step).iter().for_each(|read| live.insert(read.slot));
            if live != live_in[at] {
                live_in[at] = live;
                changed = true;
            }
        }
        if !changed {
            return live_in;
        }
    }
}
