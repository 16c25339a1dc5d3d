//! Products of warpgroups: every warp multiplies its 16 rows, at some time between issue and wait.
//!
//! Warp w of a warpgroup has rows 16 w..16 w + 16 of A and D. With g = lane / 4 and t = lane % 4, accumulator i holds row
//! g + 8 (i / 2 % 2) and column 8 (i / 4) + 2t + i % 2 of these; A in registers is laid out as for `mma.sync`. Sums are
//! rounded as those of `mma.sync` here: k upwards, one by one.

use std::collections::VecDeque;

use super::clock::MANY;
use super::descriptor::Descriptor;
use super::number::{bits_f32, widen};
use super::regs::Lanes;
use super::report::ReportKind;
use super::step::{Step, who};
use crate::ptx::{Operand, Reg, Ty, Wgmma, WgmmaA};

/// Registers of A in flight, and pieces of shared memory.
#[derive(Debug)]
enum Left {
    Regs([Reg; 4]),
    Pieces(Vec<usize>),
}

/// A product that was issued.
#[derive(Debug)]
struct Product {
    form: Wgmma,
    adds: bool,
    a: Left,
    b: Vec<usize>,
    done: bool,
}

/// What a warp knows of its products.
#[derive(Debug, Default)]
pub(super) struct Products {
    open: Vec<Product>,
    groups: VecDeque<Vec<Product>>,
    /// For each register: by how many products in flight it is an accumulator, or is read.
    accumulates: Vec<u16>,
    feeds: Vec<u16>,
    /// For each register whether it was read or written since the last `wgmma.fence`.
    read: Vec<bool>,
    written: Vec<bool>,
    fenced: bool,
    pub(super) issued: usize,
    in_flight: usize,
}

impl Products {
    pub(super) fn new(registers: usize) -> Products {
        Products {
            accumulates: vec![0; registers],
            feeds: vec![0; registers],
            read: vec![false; registers],
            written: vec![false; registers],
            ..Products::default()
        }
    }
}

/// The pieces of a shared operand: `count` rows from `first` on, `k` deep.
fn pieces(desc: Descriptor, trans: bool, first: u64, count: u64) -> Vec<u64> {
    if trans {
        let along = first / 8..(first + count) / 8;
        return along.flat_map(|i| (0..16).map(move |k| desc.mn_major(i, k))).collect();
    }
    (first..first + count).flat_map(|i| (0..2).map(move |k| desc.k_major(i, k))).collect()
}

/// An element as f32.
fn value(ty: Ty, bytes: &[u8]) -> f32 {
    match ty {
        Ty::TF32 => {
            f32::from_bits(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) & 0xffff_e000)
        }
        _ => widen(ty, u64::from(bytes[0]) | u64::from(bytes[1]) << 8),
    }
}

impl Step<'_, '_> {
    fn number(&self, reg: Reg) -> usize {
        self.engine.program.first[reg.class as usize] + reg.id as usize
    }

    /// Reports uses of registers that products in flight need, and notes uses for the next `wgmma.fence`.
    pub(super) fn watch_registers(&mut self, uses: &[u32], defs: &[u32]) {
        let products = &mut self.warp.products;
        uses.iter().for_each(|&reg| products.read[reg as usize] = true);
        defs.iter().for_each(|&reg| products.written[reg as usize] = true);
        if products.in_flight == 0 {
            return;
        }
        let accumulates = |&reg: &u32| products.accumulates[reg as usize] > 0;
        let feeds = |&reg: &u32| products.feeds[reg as usize] > 0;
        let (read, written) = (uses.iter().any(accumulates), defs.iter().any(accumulates));
        let spoilt = defs.iter().any(feeds);
        let what = match (read, written, spoilt) {
            (true, ..) => "reads an accumulator",
            (_, true, _) => "writes an accumulator",
            (.., true) => "writes a register of A",
            _ => return,
        };
        self.report(ReportKind::RegisterInFlight, None, || {
            format!("{what} of a product in flight; use wgmma.wait_group before")
        });
    }

    pub(super) fn wgmma_fence(&mut self) {
        self.need_32_lanes();
        let products = &mut self.warp.products;
        products.fenced = true;
        products.read.fill(false);
        products.written.fill(false);
    }

    pub(super) fn wgmma_commit(&mut self) {
        self.need_32_lanes();
        let group = std::mem::take(&mut self.warp.products.open);
        self.warp.products.groups.push_back(group);
    }

    /// Until at most `pending` groups of products are pending.
    pub(super) fn wgmma_wait(&mut self, pending: usize) {
        self.need_32_lanes();
        while self.warp.products.groups.len() > pending {
            let group = self.warp.products.groups.pop_front().expect("there are more than may be pending");
            for mut product in group {
                self.multiply(&mut product);
                self.release(&product);
            }
        }
        self.warp.clock.tick(self.warp.index);
    }

    /// Lets the oldest products of the warp be done early.
    pub(super) fn multiply_some(&mut self) {
        if self.engine.random.is_plain() || self.warp.products.in_flight == 0 {
            return;
        }
        let mut groups = std::mem::take(&mut self.warp.products.groups);
        let mut open = std::mem::take(&mut self.warp.products.open);
        for product in groups.iter_mut().flatten().chain(&mut open) {
            if self.engine.random.below(3) == 0 {
                break;
            }
            self.multiply(product);
        }
        self.warp.products.groups = groups;
        self.warp.products.open = open;
    }

    fn misuse(&mut self, message: String) {
        self.report(ReportKind::WarpgroupMisuse, None, || message);
    }

    /// The value of a register that all lanes of a warpgroup must agree about.
    fn uniform(&mut self, name: &str, values: &Lanes) -> u64 {
        if values.iter().any(|&value| value != values[0]) {
            self.misuse(format!("{name} differs between the lanes"));
        }
        values[0]
    }

    /// `wgmma.mma_async`.
    pub(super) fn wgmma(&mut self, form: &Wgmma) {
        self.need_32_lanes();
        self.join_warpgroup();
        let adds = match form.scale_d {
            Operand::Reg(pred) => {
                let bits = self.warp.regs.pred(pred);
                if bits != 0 && bits != u32::MAX {
                    self.misuse("scale-d differs between the lanes".to_string());
                }
                bits != 0
            }
            other => other.imm() == Some(1),
        };
        self.check_registers(form, adds);
        let a = match &form.a {
            WgmmaA::Regs(regs) => Left::Regs([regs[0], regs[1], regs[2], regs[3]]),
            WgmmaA::Desc(desc) => {
                let rows = self.warp.index as u64 % 4 * 16;
                Left::Pieces(self.shared_operand("A", *desc, form.trans_a, rows, 16))
            }
        };
        let b = self.shared_operand("B", form.b, form.trans_b, 0, form.n.into());
        for &d in &form.d {
            let number = self.number(d);
            self.warp.products.accumulates[number] += 1;
        }
        if let Left::Regs(regs) = &a {
            for &reg in regs {
                let number = self.number(reg);
                self.warp.products.feeds[number] += 1;
            }
        }
        self.warp.products.in_flight += 1;
        self.warp.products.issued += 1;
        self.engine.counts.matrix_flops += 2 * 16 * u64::from(form.n) * u64::from(form.k());
        self.warp.products.open.push(Product { form: form.clone(), adds, a, b, done: false });
    }

    /// All warps of a warpgroup issue the same products.
    fn join_warpgroup(&mut self) {
        let (group, nth, pc) = (self.warp.index / 4, self.warp.products.issued, self.pc);
        if self.block.wake.len() < 4 * group + 4 {
            self.misuse("the warpgroup has fewer than four warps".to_string());
        }
        let log = &mut self.block.issued[group];
        match log.get(nth) {
            None => log.push(pc),
            Some(&other) if other != pc => {
                let line = self.engine.program.line_name(other);
                self.misuse(format!("other warps of the warpgroup issue {line} here"));
            }
            Some(_) => {}
        }
    }

    /// Registers that a product uses: fenced, written, and in flight only as the same accumulators.
    fn check_registers(&mut self, form: &Wgmma, adds: bool) {
        let numbers: Vec<usize> = form.d.iter().map(|&d| self.number(d)).collect();
        let left: Vec<usize> = match &form.a {
            WgmmaA::Regs(regs) => regs.iter().map(|&reg| self.number(reg)).collect(),
            WgmmaA::Desc(_) => Vec::new(),
        };
        let products = &self.warp.products;
        let touched = numbers.iter().any(|&reg| products.read[reg] || products.written[reg])
            || left.iter().any(|&reg| products.written[reg]);
        if touched || !products.fenced {
            let message = || {
                if touched {
                    "its registers were used since the last wgmma.fence".to_string()
                } else {
                    "no wgmma.fence comes before the first product".to_string()
                }
            };
            self.report(ReportKind::MissingFence, None, message);
        }
        let products = &self.warp.products;
        let others = products.groups.iter().flatten().chain(&products.open);
        let mut overlaps =
            others.filter(|other| other.form.d != form.d && other.form.d.iter().any(|d| form.d.contains(d)));
        let overlaps = overlaps.next().is_some();
        let unready = left.iter().any(|&reg| products.accumulates[reg] > 0);
        let spoils = numbers.iter().any(|&reg| products.feeds[reg] > 0);
        if overlaps || unready || spoils {
            let message = || "uses registers of a product in flight in another way; wait first".to_string();
            self.report(ReportKind::RegisterInFlight, None, message);
        }
        let undefined = numbers.iter().find(|&&reg| self.warp.regs.defined[reg] != u32::MAX);
        if let (true, Some(&reg)) = (adds, undefined) {
            let lane = (!self.warp.regs.defined[reg]).trailing_zeros() as usize;
            let message = || "adds to accumulators that were not written".to_string();
            self.report(ReportKind::UninitialisedRegister, Some(lane), message);
        }
    }

    /// The offsets of an operand's pieces in shared memory, which are read from now on.
    fn shared_operand(&mut self, name: &str, desc: Reg, trans: bool, first: u64, count: u64) -> Vec<usize> {
        let values = *self.warp.regs.plane(desc);
        let desc = Descriptor::of(self.uniform(&format!("the descriptor of {name}"), &values));
        if let Some(fault) = desc.fault() {
            self.misuse(format!("the descriptor of {name} has {fault}"));
        }
        let mut offsets = Vec::new();
        for address in pieces(desc, trans, first, count) {
            let Some(at) = self.shared_offset(0, address, 16) else { return Vec::new() };
            self.async_read(0, MANY, at, 16);
            offsets.push(at);
        }
        offsets
    }

    /// A shared operand as rows of `k` values.
    fn read_operand(&self, ty: Ty, trans: bool, offsets: &[usize], rows: usize) -> Vec<f32> {
        let (k, size) = if ty == Ty::TF32 { (8, 4) } else { (16, 2) };
        let mut out = vec![0.0; rows * k];
        for (index, &at) in offsets.iter().enumerate() {
            let mut bytes = [0; 16];
            self.block.shared.peek(at, &mut bytes);
            for (i, element) in bytes.chunks(size).enumerate() {
                let place = if trans {
                    (index / 16 * 8 + i) * k + index % 16
                } else {
                    index / 2 * k + index % 2 * (16 / size) + i
                };
                out[place] = value(ty, element);
            }
        }
        out
    }

    /// A in registers as 16 rows of `k` values.
    fn read_registers(&self, ty: Ty, regs: &[Reg; 4]) -> Vec<f32> {
        let (k, pack, step) = if ty == Ty::TF32 { (8, 1, 4) } else { (16, 2, 8) };
        let mut out = vec![0.0; 16 * k];
        for (r, &reg) in regs.iter().enumerate() {
            for (lane, &bits) in self.warp.regs.plane(reg).iter().enumerate() {
                for half in 0..pack {
                    let (row, column) = (lane / 4 + 8 * (r % 2), pack * (lane % 4) + step * (r / 2) + half);
                    let bytes = ((bits >> (16 * half)) as u32).to_le_bytes();
                    out[row * k + column] = value(ty, &bytes);
                }
            }
        }
        out
    }

    /// Reads the operands and writes the accumulators.
    fn multiply(&mut self, product: &mut Product) {
        if std::mem::replace(&mut product.done, true) {
            return;
        }
        let Wgmma { n, ty, neg_a, neg_b, trans_a, trans_b, .. } = product.form;
        let (k, columns) = (product.form.k() as usize, n as usize);
        let mut a = match &product.a {
            Left::Regs(regs) => self.read_registers(ty, regs),
            Left::Pieces(pieces) => self.read_operand(ty, trans_a, pieces, 16),
        };
        if neg_a != neg_b {
            a.iter_mut().for_each(|a| *a = -*a);
        }
        let b = self.read_operand(ty, trans_b, &product.b, columns);
        for (i, &d) in product.form.d.iter().enumerate() {
            let old = *self.warp.regs.plane(d);
            let values: Lanes = std::array::from_fn(|lane| {
                let (row, column) = (lane / 4 + 8 * (i / 2 % 2), 8 * (i / 4) + 2 * (lane % 4) + i % 2);
                let start = if product.adds { f32::from_bits(old[lane] as u32) } else { 0.0 };
                let (a, b) = (&a[row * k..(row + 1) * k], &b[column * k..(column + 1) * k]);
                bits_f32(a.iter().zip(b).fold(start, |sum, (a, b)| sum + a * b))
            });
            self.warp.regs.set(d, u32::MAX, &values);
        }
    }

    /// The warp has waited for a product: its registers and operands are free.
    fn release(&mut self, product: &Product) {
        for &d in &product.form.d {
            let number = self.number(d);
            self.warp.products.accumulates[number] -= 1;
        }
        let stamp = who(self.warp, self.block.index, MANY, false, self.pc).stamp;
        let pieces = match &product.a {
            Left::Regs(regs) => {
                for &reg in regs {
                    let number = self.number(reg);
                    self.warp.products.feeds[number] -= 1;
                }
                &[][..]
            }
            Left::Pieces(pieces) => pieces,
        };
        for &at in pieces.iter().chain(&product.b) {
            self.block.shared.end_async_read(at, 16, stamp);
        }
        self.warp.products.in_flight -= 1;
    }
}
