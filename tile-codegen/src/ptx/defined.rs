//! Registers that may be read before they are written, by a forward data-flow analysis.

use super::inst::Inst;
use super::module::Kernel;
use super::reg::{Reg, RegClass};

/// A set of registers as a bit vector over a dense numbering.
type Set = Vec<u64>;

struct Dense {
    first: [usize; RegClass::ALL.len()],
    total: usize,
}

impl Dense {
    fn of(kernel: &Kernel) -> Dense {
        let mut counts = [0usize; RegClass::ALL.len()];
        let mut see =
            |reg: Reg| counts[reg.class as usize] = counts[reg.class as usize].max(reg.id as usize + 1);
        for line in &kernel.lines {
            line.guard.iter().for_each(|&(reg, _)| see(reg));
            line.inst.for_each_def(&mut see);
            line.inst.for_each_use(&mut see);
        }
        let mut total = 0;
        let first = counts.map(|count| {
            total += count;
            total - count
        });
        Dense { first, total }
    }

    fn index(&self, reg: Reg) -> usize {
        self.first[reg.class as usize] + reg.id as usize
    }
}

/// Straight-line code: lines `start..end`, and the blocks that may follow.
struct Block {
    start: usize,
    end: usize,
    next: Vec<usize>,
}

fn blocks(kernel: &Kernel) -> Vec<Block> {
    let lines = &kernel.lines;
    let mut starts = vec![0];
    for (i, line) in lines.iter().enumerate() {
        let after_jump = i > 0 && lines[i - 1].inst.ends_block();
        if i > 0 && (after_jump || matches!(line.inst, Inst::Label(_))) {
            starts.push(i);
        }
    }
    let end_of = |b: usize| starts.get(b + 1).copied().unwrap_or(lines.len());
    let find = |label| {
        starts.iter().position(|&start| lines.get(start).is_some_and(|line| line.inst == Inst::Label(label)))
    };
    let successors = |b: usize| {
        let mut next = Vec::new();
        let last = end_of(b).checked_sub(1).map(|last| &lines[last]);
        if let Some(Inst::Bra { label, .. }) = last.map(|line| &line.inst) {
            next.extend(find(*label));
        }
        let falls = last.is_none_or(|line| line.guard.is_some() || !line.inst.ends_block());
        if falls && b + 1 < starts.len() {
            next.push(b + 1);
        }
        next
    };
    (0..starts.len()).map(|b| Block { start: starts[b], end: end_of(b), next: successors(b) }).collect()
}

/// The lines that may read a register before any line wrote it, with the register. A guarded write counts as one:
/// its readers are under the same guard, or a default was written before.
pub(super) fn undefined_uses(kernel: &Kernel) -> Vec<(usize, Reg)> {
    let dense = Dense::of(kernel);
    let blocks = blocks(kernel);
    let words = dense.total.div_ceil(64);
    let mut entry: Vec<Set> = vec![vec![u64::MAX; words]; blocks.len()];
    entry[0] = vec![0; words];
    let mut work = vec![0];
    let mut seen = vec![false; blocks.len()];
    while let Some(b) = work.pop() {
        seen[b] = true;
        let out = flow(kernel, &dense, &blocks[b], entry[b].clone(), &mut |_, _| {});
        for &next in &blocks[b].next {
            let mut changed = !seen[next];
            for (old, new) in entry[next].iter_mut().zip(&out) {
                changed |= *old & !new != 0;
                *old &= new;
            }
            if changed {
                work.push(next);
            }
        }
    }
    let mut found = Vec::new();
    for (b, block) in blocks.iter().enumerate().filter(|&(b, _)| seen[b]) {
        flow(kernel, &dense, block, entry[b].clone(), &mut |line, reg| found.push((line, reg)));
    }
    found
}

/// The registers written at the end of a block; reports reads of others.
fn flow(
    kernel: &Kernel,
    dense: &Dense,
    block: &Block,
    mut set: Set,
    report: &mut dyn FnMut(usize, Reg),
) -> Set {
    for (i, line) in kernel.lines.iter().enumerate().take(block.end).skip(block.start) {
        let mut read = |reg: Reg| {
            let index = dense.index(reg);
            if set[index / 64] >> (index % 64) & 1 == 0 {
                report(i, reg);
            }
        };
        line.guard.iter().for_each(|&(reg, _)| read(reg));
        line.inst.for_each_use(&mut read);
        line.inst.for_each_def(|reg| set[dense.index(reg) / 64] |= 1 << (dense.index(reg) % 64));
    }
    set
}
