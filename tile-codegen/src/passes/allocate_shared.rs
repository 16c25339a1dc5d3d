//! `allocate_shared`: gives every shared tile and every operation's scratch an offset, reusing memory that is dead.

use std::collections::BTreeMap;

use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::ir::{Kernel, OpId, RegionId, Type, ValueId};
use crate::layout::SharedLayout;
use crate::ops::OpKind;
use crate::ops::lower::Lower;
use crate::target::Target;

/// Where shared memory is used.
#[derive(Clone, Debug, Default)]
pub struct SharedPlan {
    /// Byte offset of each shared tile; of the first stage, for what a channel carries.
    pub tiles: BTreeMap<ValueId, u32>,
    /// The shared tiles that channels carry or that copies bring into rings, and their views, with the number of the channel.
    pub carried: BTreeMap<ValueId, usize>,
    /// Byte offset of each operation's scratch.
    pub scratch: BTreeMap<OpId, u32>,
    /// The channels and rings, by number.
    pub channels: BTreeMap<usize, ChannelPlan>,
    /// Every buffer: its offset, its bytes and what it is for.
    pub buffers: Vec<(u32, u32, String)>,
    /// Bytes in all.
    pub bytes: u32,
}

/// Where a channel lies, or a ring of stages that asynchronous copies fill.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChannelPlan {
    /// Byte offset of the first stage.
    pub tiles: u32,
    /// Bytes from one stage to the next.
    pub stage: u32,
    /// Stages.
    pub stages: u32,
    /// Byte offset of the "full" mbarriers, one for each stage, which the "empty" ones follow; none for rings, whose copies
    /// each thread waits for by itself.
    pub barriers: Option<u32>,
    /// Arrivals that make a stage full: one of each warp that stores to it, or of the thread that starts copies.
    pub senders: u32,
    /// Arrivals that make it empty: one of each warp that receives from it. 0 where there are no roles: what is sent before
    /// anything else is sent once, and stages have no "empty" mbarriers.
    pub receivers: u32,
}

impl ChannelPlan {
    /// Bytes of all stages.
    pub fn bytes(&self) -> u32 {
        self.stage * self.stages
    }

    /// Whether it is filled once.
    pub fn once(&self) -> bool {
        self.receivers == 0
    }

    /// Bytes of the mbarriers.
    fn barrier_bytes(&self) -> u32 {
        self.stages * if self.once() { 8 } else { 16 }
    }
}

impl SharedPlan {
    /// The bytes that a shared tile occupies: those of all its stages, for what a channel carries.
    pub fn range(&self, kernel: &Kernel, value: ValueId) -> Option<(u32, u32)> {
        let Type::Shared(t) = kernel.ty(value) else { return None };
        let first = *self.tiles.get(&value)?;
        let channel = self.carried.get(&value).map(|channel| &self.channels[channel]);
        Some((first, first + channel.map_or(t.layout.bytes, ChannelPlan::bytes)))
    }

    /// The ring that a shared tile is a stage of.
    pub fn ring(&self, value: ValueId) -> Option<usize> {
        let channel = self.carried.get(&value).copied()?;
        self.channels[&channel].barriers.is_none().then_some(channel)
    }
}

/// A buffer with the program positions between which it is in use, both inclusive.
struct Buffer {
    owner: Owner,
    bytes: u32,
    align: u32,
    first: usize,
    last: usize,
    /// The role that uses it; `None` if several do. Roles run at the same time.
    role: Option<usize>,
}

impl Buffer {
    fn meets(&self, other: &Buffer) -> bool {
        let apart = self.last < other.first || other.last < self.first;
        self.role.is_none() || self.role != other.role || !apart
    }
}

#[derive(Clone, Copy)]
enum Owner {
    Tile(ValueId),
    Scratch(OpId),
    Channel(usize),
}

/// Assigns offsets by first fit, in program order.
///
/// # Errors
/// If the kernel needs more than the target has; the message lists every buffer.
pub fn allocate_shared(kernel: &Kernel, target: &Target) -> Result<SharedPlan, Diagnostics> {
    let plan = plan_shared(kernel);
    if plan.bytes as usize > target.max_shared_bytes {
        return Err(too_much(kernel, target, &plan));
    }
    Ok(plan)
}

/// As [`allocate_shared`], whatever the target has.
pub(crate) fn plan_shared(kernel: &Kernel) -> SharedPlan {
    let mut live = Liveness {
        kernel,
        position: 0,
        role: 0,
        warps: 0,
        buffers: Vec::new(),
        at: BTreeMap::new(),
        channels: BTreeMap::new(),
        senders: BTreeMap::new(),
        carried: BTreeMap::new(),
        rings: BTreeMap::new(),
    };
    live.region(kernel.body, &mut Vec::new());
    let mut plan = SharedPlan::default();
    let mut placed: Vec<(u32, &Buffer)> = Vec::new();
    for buffer in &live.buffers {
        let mut offset = 0;
        let mut others: Vec<(u32, u32)> =
            placed.iter().filter(|(_, b)| b.meets(buffer)).map(|(o, b)| (*o, o + b.bytes)).collect();
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
            Owner::Channel(channel) => {
                let (_, plan_of) = &live.channels[&channel];
                let senders = live.senders.get(&channel).copied().unwrap_or(1);
                plan.channels.insert(channel, ChannelPlan { tiles: offset, senders, ..*plan_of });
                None
            }
        };
        plan.bytes = plan.bytes.max(offset + buffer.bytes);
        placed.push((offset, buffer));
    }
    plan.carried = live.carried;
    for (&value, &(buffer, _)) in &live.at {
        if let Owner::Channel(channel) = live.buffers[buffer].owner {
            plan.tiles.insert(value, plan.channels[&channel].tiles);
        } else if let Owner::Tile(tile) = live.buffers[buffer].owner {
            plan.tiles.insert(value, plan.tiles[&tile]);
        }
    }
    for channel in plan.channels.values_mut().filter(|channel| channel.barriers.is_some()) {
        let at = plan.bytes.next_multiple_of(8);
        channel.barriers = Some(at);
        plan.bytes = at + channel.barrier_bytes();
    }
    let listed = placed.iter().map(|(offset, b)| (*offset, b.bytes, purpose(kernel, b.owner, &plan)));
    plan.buffers = listed.collect();
    plan
}

/// What a buffer is for.
fn purpose(kernel: &Kernel, owner: Owner, plan: &SharedPlan) -> String {
    match owner {
        Owner::Tile(value) => match kernel.ty(value) {
            Type::Shared(t) => {
                format!("a tile of shape {} of {}", crate::ir::dim::show(&t.layout.shape), t.elem)
            }
            Type::Tile(_) | Type::Tensor(_) | Type::Error => "a tile".to_string(),
        },
        Owner::Scratch(_) => "scratch of a reduction or scan".to_string(),
        Owner::Channel(channel) => {
            let plan = plan.channels[&channel];
            let name = if plan.barriers.is_some() { "channel" } else { "ring" };
            match plan.stages {
                1 => format!("the stage of {name} {channel}"),
                stages => format!("the {stages} stages of {name} {channel}"),
            }
        }
    }
}

fn too_much(kernel: &Kernel, target: &Target, plan: &SharedPlan) -> Diagnostics {
    let bytes = plan.bytes;
    let mut list: Vec<(String, usize)> = Vec::new();
    for (_, bytes, what) in &plan.buffers {
        let line = format!("{bytes} bytes for {what}");
        match list.iter_mut().find(|(known, _)| *known == line) {
            Some((_, count)) => *count += 1,
            None => list.push((line, 1)),
        }
    }
    let list =
        list.into_iter().map(|(line, count)| if count > 1 { format!("{count} x {line}") } else { line });
    let mut diagnostic = Diagnostic::new(
        Code::SharedMemory,
        format!(
            "kernel `{}` needs {bytes} bytes of shared memory, and {} allows {}: {}",
            kernel.name,
            target.name,
            target.max_shared_bytes,
            list.collect::<Vec<_>>().join(", ")
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
    /// The role around the current place, and how many of its warps arrive at mbarriers: none outside of roles.
    role: usize,
    warps: u32,
    buffers: Vec<Buffer>,
    /// For each shared tile: its buffer and how many loops are around its definition.
    at: BTreeMap<ValueId, (usize, usize)>,
    /// For each channel: its buffer, and its plan without a place.
    channels: BTreeMap<usize, (usize, ChannelPlan)>,
    /// Warps that store to each channel.
    senders: BTreeMap<usize, u32>,
    carried: BTreeMap<ValueId, usize>,
    /// For each ring: its buffer and how many loops are around its first copy.
    rings: BTreeMap<usize, (usize, usize)>,
}

impl Liveness<'_> {
    /// `loops` collects, for each loop around, the buffers that must live to its end.
    fn region(&mut self, region: RegionId, loops: &mut Vec<Vec<usize>>) {
        for &id in &self.kernel.regions[region].ops {
            self.position += 1;
            let op = &self.kernel.ops[id];
            for operand in &op.operands {
                if let Some(&(buffer, depth)) = self.at.get(operand) {
                    self.touch(buffer, depth, loops);
                }
            }
            if let OpKind::CopyAsync(copy) = &op.kind {
                self.ring(copy.channel, copy.stages, &copy.layout, loops);
            }
            for &result in &op.results {
                if let OpKind::ViewShared(_) = op.kind {
                    self.at.insert(result, self.at[&op.operands[0]]);
                    if let Some(&channel) = self.carried.get(&op.operands[0]) {
                        self.carried.insert(result, channel);
                    }
                } else if let OpKind::Receive(receive) = &op.kind {
                    let layout = &receive.layout;
                    let buffer = self.receive(receive.channel, receive.stages, layout.bytes, layout.align());
                    self.buffers[buffer].last = self.position;
                    self.at.insert(result, (buffer, 0));
                    self.carried.insert(result, receive.channel);
                } else if let OpKind::Copied(copied) = &op.kind {
                    let ring = self.ring(copied.channel, copied.stages, &copied.layout, loops);
                    self.at.insert(result, ring);
                    self.carried.insert(result, copied.channel);
                } else if let Type::Shared(t) = self.kernel.ty(result) {
                    self.at.insert(result, (self.buffers.len(), loops.len()));
                    self.add(Owner::Tile(result), t.layout.bytes, t.layout.align());
                }
            }
            if let OpKind::SendTile(send) = &op.kind {
                self.senders.insert(send.channel, self.warps);
            }
            let scratch = op.kind.scratch(self.kernel, op);
            if scratch > 0 {
                self.add(Owner::Scratch(id), scratch, 128);
            }
            let looped = matches!(op.kind, OpKind::For(_) | OpKind::Loop(_));
            if looped {
                loops.push(Vec::new());
            }
            for (i, &inner) in op.regions.iter().enumerate() {
                if let OpKind::Roles(roles) = &op.kind {
                    let warps = if roles.single[i] == 1 { 1 } else { roles.warps[i] as u32 };
                    (self.role, self.warps) = (i, warps);
                }
                self.region(inner, loops);
            }
            if looped {
                for buffer in loops.pop().unwrap_or_default() {
                    self.buffers[buffer].last = self.position;
                }
            }
        }
    }

    /// The buffer is in use here, and to the end of the loops around that it was not made in.
    fn touch(&mut self, buffer: usize, depth: usize, loops: &mut [Vec<usize>]) {
        self.buffers[buffer].last = self.position;
        for around in loops.iter_mut().skip(depth) {
            around.push(buffer);
        }
    }

    /// The buffer of a ring, which is in use here, and how many loops are around its first copy.
    fn ring(
        &mut self,
        channel: usize,
        stages: usize,
        layout: &SharedLayout,
        loops: &mut [Vec<usize>],
    ) -> (usize, usize) {
        if let Some(&(buffer, depth)) = self.rings.get(&channel) {
            self.touch(buffer, depth, loops);
            return (buffer, depth);
        }
        let stage = layout.bytes.next_multiple_of(layout.align());
        let stages = stages as u32;
        let plan = ChannelPlan { tiles: 0, stage, stages, barriers: None, senders: 0, receivers: 0 };
        let (buffer, depth) = (self.buffers.len(), loops.len());
        self.add(Owner::Channel(channel), stage.saturating_mul(stages), layout.align());
        self.channels.insert(channel, (buffer, plan));
        self.rings.insert(channel, (buffer, depth));
        (buffer, depth)
    }

    fn add(&mut self, owner: Owner, bytes: u32, align: u32) {
        let first = self.position;
        self.buffers.push(Buffer { owner, bytes, align, first, last: first, role: Some(self.role) });
    }

    /// The buffer of a channel that the current role receives from. It is filled from the start of the kernel on.
    fn receive(&mut self, channel: usize, stages: usize, bytes: u32, align: u32) -> usize {
        if let Some((buffer, plan)) = self.channels.get_mut(&channel) {
            if self.buffers[*buffer].role != Some(self.role) {
                self.buffers[*buffer].role = None;
                plan.receivers += self.warps;
            }
            return *buffer;
        }
        let stage = bytes.next_multiple_of(align);
        let stages = stages as u32;
        let (barriers, receivers) = (Some(0), self.warps);
        let plan = ChannelPlan { tiles: 0, stage, stages, barriers, senders: 1, receivers };
        let buffer = self.buffers.len();
        let (owner, bytes) = (Owner::Channel(channel), stage * stages);
        let role = Some(self.role);
        self.buffers.push(Buffer { owner, bytes, align, first: 0, last: self.position, role });
        self.channels.insert(channel, (buffer, plan));
        buffer
    }
}
