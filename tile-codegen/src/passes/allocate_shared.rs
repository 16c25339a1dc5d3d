//! `allocate_shared`: gives every shared tile and every operation's scratch an offset, reusing memory that is dead.

use std::collections::BTreeMap;

use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::ir::{Kernel, OpId, RegionId, Type, ValueId};
use crate::ops::OpKind;
use crate::ops::lower::Lower;
use crate::target::Target;

/// Where shared memory is used.
#[derive(Clone, Debug, Default)]
pub struct SharedPlan {
    /// Byte offset of each shared tile.
    pub tiles: BTreeMap<ValueId, u32>,
    /// Byte offset of each operation's scratch.
    pub scratch: BTreeMap<OpId, u32>,
    /// Bytes in all.
    pub bytes: u32,
}

/// A buffer with the program positions between which it is in use, both inclusive.
struct Buffer {
    owner: Owner,
    bytes: u32,
    align: u32,
    first: usize,
    last: usize,
}

#[derive(Clone, Copy)]
enum Owner {
    Tile(ValueId),
    Scratch(OpId),
}

/// Assigns offsets by first fit, in program order.
///
/// # Errors
/// If the kernel needs more than the target has; the message lists every buffer.
pub fn allocate_shared(kernel: &Kernel, target: &Target) -> Result<SharedPlan, Diagnostics> {
    let mut live = Liveness { kernel, position: 0, buffers: Vec::new(), at: BTreeMap::new() };
    live.region(kernel.body, &mut Vec::new());
    let mut plan = SharedPlan::default();
    let mut placed: Vec<(u32, &Buffer)> = Vec::new();
    for buffer in &live.buffers {
        let mut offset = 0;
        let mut others: Vec<(u32, u32)> = placed
            .iter()
            .filter(|(_, b)| b.first <= buffer.last && buffer.first <= b.last)
            .map(|(o, b)| (*o, o + b.bytes))
            .collect();
        others.sort_unstable();
        for (start, end) in others {
            if offset + buffer.bytes <= start {
                break;
            }
            offset = offset.max(end.next_multiple_of(buffer.align));
        }
        match buffer.owner {
            Owner::Tile(value) => plan.tiles.insert(value, offset),
            Owner::Scratch(op) => plan.scratch.insert(op, offset),
        };
        plan.bytes = plan.bytes.max(offset + buffer.bytes);
        placed.push((offset, buffer));
    }
    if plan.bytes as usize > target.max_shared_bytes {
        return Err(too_much(kernel, target, &live.buffers, plan.bytes));
    }
    Ok(plan)
}

fn too_much(kernel: &Kernel, target: &Target, buffers: &[Buffer], bytes: u32) -> Diagnostics {
    let mut list: Vec<String> = Vec::new();
    for buffer in buffers {
        let what = match buffer.owner {
            Owner::Tile(value) => match kernel.ty(value) {
                Type::Shared(t) => {
                    format!("a tile of shape {} of {}", crate::ir::dim::show(&t.layout.shape), t.elem)
                }
                Type::Tile(_) | Type::Tensor(_) | Type::Error => "a tile".to_string(),
            },
            Owner::Scratch(_) => "scratch of a reduction or scan".to_string(),
        };
        let line = format!("{} bytes for {what}", buffer.bytes);
        if !list.contains(&line) {
            list.push(line);
        }
    }
    let mut diagnostic = Diagnostic::new(
        Code::SharedMemory,
        format!(
            "kernel `{}` needs {bytes} bytes of shared memory, and {} allows {}: {}",
            kernel.name,
            target.name,
            target.max_shared_bytes,
            list.join(", ")
        ),
    );
    diagnostic.help = Some("use smaller tiles, or 16-bit operands".into());
    let mut all = Diagnostics::default();
    all.push(diagnostic);
    all
}

struct Liveness<'k> {
    kernel: &'k Kernel,
    position: usize,
    buffers: Vec<Buffer>,
    /// For each shared tile: its buffer and how many loops are around its definition.
    at: BTreeMap<ValueId, (usize, usize)>,
}

impl Liveness<'_> {
    /// `loops` collects, for each loop around, the buffers that must live to its end.
    fn region(&mut self, region: RegionId, loops: &mut Vec<Vec<usize>>) {
        for &id in &self.kernel.regions[region].ops {
            self.position += 1;
            let op = &self.kernel.ops[id];
            for operand in &op.operands {
                if let Some(&(buffer, depth)) = self.at.get(operand) {
                    self.buffers[buffer].last = self.position;
                    for around in loops.iter_mut().skip(depth) {
                        around.push(buffer);
                    }
                }
            }
            for &result in &op.results {
                if let Type::Shared(t) = self.kernel.ty(result) {
                    self.at.insert(result, (self.buffers.len(), loops.len()));
                    self.add(Owner::Tile(result), t.layout.bytes, t.layout.align());
                }
            }
            let scratch = op.kind.scratch(self.kernel, op);
            if scratch > 0 {
                self.add(Owner::Scratch(id), scratch, 128);
            }
            let looped = matches!(op.kind, OpKind::For(_) | OpKind::Loop(_));
            if looped {
                loops.push(Vec::new());
            }
            for &inner in &op.regions {
                self.region(inner, loops);
            }
            if looped {
                for buffer in loops.pop().unwrap_or_default() {
                    self.buffers[buffer].last = self.position;
                }
            }
        }
    }

    fn add(&mut self, owner: Owner, bytes: u32, align: u32) {
        let first = self.position;
        self.buffers.push(Buffer { owner, bytes, align, first, last: first });
    }
}
