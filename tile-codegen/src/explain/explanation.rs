//! An explanation as data and as text.

use std::fmt::{self, Write as _};

use super::{Product, Reason, count};
use crate::dsl::SourceText;
use crate::ir::Loc;

/// What became of a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Explanation {
    /// The kernel's name.
    pub kernel: String,
    /// The name of the target.
    pub target: &'static str,
    /// Threads of a block.
    pub threads: u32,
    /// Registers that a thread starts with at most, as the launch bounds leave them.
    pub registers: u32,
    /// Blocks that fit on a multiprocessor at once as far as registers go, if the code asks for a number.
    pub min_blocks: Option<u32>,
    /// The roles of a block's warps; none if all threads run the same code.
    pub roles: Vec<RoleLine>,
    /// Why there are no roles.
    pub no_roles: Option<Reason>,
    /// Bytes of shared memory of a block.
    pub shared_bytes: u32,
    /// Its buffers: offset, bytes, purpose. Buffers that are not in use at the same time share bytes.
    pub buffers: Vec<(u32, u32, String)>,
    /// The loads, products and stores, in the order of the source.
    pub items: Vec<Item>,
}

/// A role.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RoleLine {
    /// Its warps.
    pub warps: usize,
    /// Whether one thread of them alone runs.
    pub single: bool,
    /// Registers of each of its threads; 0 for as many as the kernel starts with.
    pub registers: usize,
    /// What it does: `load`, `multiply`, `store`.
    pub does: Vec<&'static str>,
}

/// A load, product or store of the source, or several alike.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Item {
    /// Where the user wrote it.
    pub loc: Option<Loc>,
    /// What it is, such as `load x (64, 64) bf16`.
    pub title: String,
    /// The paths that it takes: one, but for operations alike of which some take another.
    pub paths: Vec<Path>,
    /// Why not faster ones: the path that is not taken, and the reason.
    pub why: Vec<(&'static str, Reason)>,
}

/// How an operation is done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Path {
    /// A load by bulk tensor copies through a channel.
    Channel {
        /// The channel.
        channel: usize,
        /// Its stages.
        stages: usize,
        /// Bytes of a stage.
        bytes: u32,
        /// The sides of a copy's box, as the tensor's axes from the innermost.
        box_dims: Vec<u32>,
        /// Bytes of a row of the swizzle, or 0.
        swizzle: u32,
        /// Whether the padding is put in by a mask, since it is not zero.
        masked: bool,
    },
    /// A load by asynchronous copies of all threads into a ring of stages.
    Ring {
        /// The ring.
        ring: usize,
        /// Its stages.
        stages: usize,
        /// Bytes of a stage.
        bytes: u32,
        /// Bytes of a row of the swizzle, or 0.
        swizzle: u32,
    },
    /// A load by all threads.
    Plain {
        /// Elements of an access.
        width: usize,
        /// Bytes of an access.
        bytes: usize,
        /// Whether it is issued one iteration ahead.
        ahead: bool,
    },
    /// A product.
    Product(Product),
    /// A store by bulk tensor copies out of shared memory.
    BulkStore {
        /// Bytes of the tile.
        bytes: u32,
        /// The sides of a copy's box, as the tensor's axes from the innermost.
        box_dims: Vec<u32>,
        /// Bytes of a row of the swizzle, or 0.
        swizzle: u32,
    },
    /// A store by all threads.
    Store {
        /// Elements of an access.
        width: usize,
        /// Bytes of an access.
        bytes: usize,
        /// Whether threads exchange the tile through shared memory first.
        exchanged: bool,
    },
}

fn boxes(f: &mut fmt::Formatter<'_>, sides: &[u32], swizzle: u32) -> fmt::Result {
    let sides: Vec<usize> = sides.iter().map(|&n| n as usize).collect();
    write!(f, "boxes {} ", crate::ir::dim::show(&sides))?;
    swizzled(f, swizzle)
}

fn swizzled(f: &mut fmt::Formatter<'_>, swizzle: u32) -> fmt::Result {
    match swizzle {
        0 => write!(f, "without swizzle"),
        bytes => write!(f, "swizzled by {bytes} bytes"),
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Channel { channel, stages, bytes, box_dims, swizzle, masked } => {
                let stages = count(*stages, "stage");
                write!(f, "bulk tensor copies through channel {channel}: {stages} of {bytes} bytes, ")?;
                boxes(f, box_dims, *swizzle)?;
                if *masked { write!(f, ", padding by a mask") } else { Ok(()) }
            }
            Path::BulkStore { bytes, box_dims, swizzle } => {
                write!(f, "bulk tensor copies of {bytes} bytes out of shared memory, ")?;
                boxes(f, box_dims, *swizzle)
            }
            Path::Ring { ring, stages, bytes, swizzle } => {
                let stages = count(*stages, "stage");
                write!(f, "cp.async through ring {ring}: {stages} of {bytes} bytes, ")?;
                swizzled(f, *swizzle)
            }
            Path::Plain { width, bytes, ahead } => {
                let ahead = if *ahead { ", issued one iteration ahead" } else { "" };
                write!(f, "{} of {bytes} bytes an access{ahead}", count(*width, "element"))
            }
            Path::Product(product) => product.fmt(f),
            Path::Store { width, bytes, exchanged } => {
                let exchanged = if *exchanged { ", after an exchange through shared memory" } else { "" };
                write!(f, "{} of {bytes} bytes an access{exchanged}", count(*width, "element"))
            }
        }
    }
}

impl Explanation {
    /// The text, each operation under its line of the source where that is known.
    pub fn render(&self, sources: &[SourceText]) -> String {
        let mut out = String::new();
        self.head(&mut out).and_then(|()| self.body(&mut out, sources)).expect("a string takes all");
        out
    }

    fn head(&self, f: &mut String) -> fmt::Result {
        writeln!(f, "kernel `{}` for {}", self.kernel, self.target)?;
        write!(
            f,
            "  {}; at most {} registers each at the start",
            count(self.threads as usize, "thread"),
            self.registers
        )?;
        match self.min_blocks {
            Some(blocks) => writeln!(f, ", for {} on a multiprocessor", count(blocks as usize, "block"))?,
            None => writeln!(f)?,
        }
        if let Some(reason) = self.no_roles {
            writeln!(f, "  no roles: {reason}")?;
        }
        for (i, role) in self.roles.iter().enumerate() {
            let who = match role.single {
                true => format!("1 thread of {}", count(role.warps, "warp")),
                false => count(role.warps, "warp"),
            };
            write!(f, "  role {i}: {who}: {}", role.does.join(", "))?;
            match role.registers {
                0 => writeln!(f)?,
                registers => writeln!(f, "; {registers} registers a thread")?,
            }
        }
        writeln!(f, "  {} bytes of shared memory", self.shared_bytes)?;
        for (offset, bytes, purpose) in &self.buffers {
            writeln!(f, "    at {offset}: {bytes} bytes for {purpose}")?;
        }
        Ok(())
    }

    fn body(&self, f: &mut String, sources: &[SourceText]) -> fmt::Result {
        let mut last = None;
        for item in &self.items {
            let line = item.loc.as_ref().map(|loc| (&loc.file, loc.line));
            if last != Some(line) {
                match &item.loc {
                    Some(loc) => {
                        let text = sources
                            .iter()
                            .find(|s| s.contains(loc))
                            .and_then(|s| s.text.lines().nth((loc.line - s.first_line) as usize));
                        let text = text.map_or(String::new(), |text| format!(": {}", text.trim()));
                        writeln!(f, "{}:{}{text}", loc.file, loc.line)?;
                    }
                    None => writeln!(f, "without a place in the source")?,
                }
                last = Some(line);
            }
            for path in &item.paths {
                writeln!(f, "  {}: {path}", item.title)?;
            }
            for (slower, reason) in &item.why {
                writeln!(f, "    {slower}: {reason}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(&[]))
    }
}
