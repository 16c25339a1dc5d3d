//! Shared memory of a probe as a whole: filled from the host, shown word by word, and described for products.

use tile_codegen::ptx::{Addr, Cmp, Hopper, IntOp, Operand, Reg, Shared, Space, Ty};
use tile_codegen::simt::TensorSwizzle;

use super::builder::Builder;

/// Where operands and boxes may begin: behind the mbarriers, where every swizzle's pattern begins.
pub(super) const DATA: i64 = 1024;

/// Every swizzle.
pub(super) const SWIZZLES: [TensorSwizzle; 4] =
    [TensorSwizzle::None, TensorSwizzle::B32, TensorSwizzle::B64, TensorSwizzle::B128];

/// Bytes of a row of a swizzle's pattern, 16 without one.
pub(super) fn span(swizzle: TensorSwizzle) -> u64 {
    swizzle.span().unwrap_or(16)
}

/// What the name of a probe says of a swizzle.
pub(super) fn swizzle_name(swizzle: TensorSwizzle) -> String {
    swizzle.span().map_or("no swizzle".to_string(), |span| format!("swizzle {span}"))
}

impl Builder {
    /// Gives the kernel `bytes` bytes of shared memory at a multiple of 1024.
    pub(super) fn aligned_shared(&mut self, bytes: i64) {
        self.f.kernel_mut().shared = Shared::Static { bytes: bytes as u32, align: 1024 };
    }

    /// Copies `bytes` to byte `at` of shared memory, `threads` threads 16 bytes each at a time. The rest of the last round is
    /// zero.
    pub(super) fn fill(&mut self, at: i64, bytes: &[u8], threads: u32) {
        let round = 16 * threads as usize;
        let mut all = bytes.to_vec();
        all.resize(bytes.len().next_multiple_of(round), 0);
        let from = self.bytes(&all);
        let index = self.index;
        let from = self.element(from, index, 16);
        let base = self.f.shared_addr();
        let to = self.f.mad_lo_s32(index, 16u32, base).reg().expect("not a literal");
        for offset in (0..all.len() as i64).step_by(round) {
            let words = self.f.ld_vec(Space::Global, Ty::B32, 4, None, Addr::reg(from, offset));
            let words: Vec<Operand> = words.into_iter().map(Operand::from).collect();
            self.f.st(Space::Shared, Ty::B32, Addr::reg(to, at + offset), &words);
        }
    }

    /// A form for each `threads` words from byte `at` of shared memory on, `bytes` in all.
    pub(super) fn show_shared(&mut self, name: &str, at: i64, bytes: i64, threads: u32) {
        let base = self.f.shared_addr();
        let index = self.index;
        let own = self.f.mad_lo_s32(index, 4u32, base).reg().expect("not a literal");
        let round = 4 * i64::from(threads);
        for offset in (0..bytes).step_by(round as usize) {
            let word = self.f.ld(Space::Shared, Ty::B32, Addr::reg(own, at + offset));
            self.out(format!("{name}, words {}..", offset / 4), word);
        }
    }

    /// Makes what was written to shared memory visible to copies and products of all threads.
    pub(super) fn publish(&mut self) {
        self.f.fence_proxy_async_shared();
        self.f.bar_sync();
    }

    /// A predicate that holds in thread 0.
    pub(super) fn first(&mut self) -> Reg {
        let index = self.index;
        self.f.setp(Cmp::Eq, Ty::U32, index, 0u32)
    }

    /// Thread 0 initialises the mbarrier at byte `at` for `count` arrivals; then all threads meet.
    pub(super) fn mbarrier(&mut self, first: Reg, at: i64, count: u32) {
        let init = Hopper::MbarrierInit { addr: Addr::shared(at), count: count.into() };
        self.f.emit_if(first, init.into());
        self.f.emit_if(first, Hopper::FenceMbarrierInit.into());
        self.f.bar_sync();
    }

    /// Thread 0 arrives at the mbarrier at byte `at` and expects bytes.
    pub(super) fn expect(&mut self, first: Reg, at: i64, bytes: i64) {
        let bytes = Operand::Imm(bytes);
        self.f.emit_if(first, Hopper::MbarrierArriveExpectTx { addr: Addr::shared(at), bytes }.into());
    }
}

/// The descriptor of an operand of a product, apart from its address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields {
    pub(super) swizzle: TensorSwizzle,
    /// Whether it is M- or N-major rather than K-major.
    pub(super) trans: bool,
    /// The leading and the stride byte offset.
    pub(super) leading: u64,
    pub(super) stride: u64,
}

impl Fields {
    /// The descriptor of the operand at byte `at` of shared memory.
    pub(super) fn descriptor(self, p: &mut Builder, at: i64) -> Reg {
        let mode = match self.swizzle {
            TensorSwizzle::None => 0u64,
            TensorSwizzle::B128 => 1,
            TensorSwizzle::B64 => 2,
            TensorSwizzle::B32 => 3,
        };
        let fixed = (self.leading >> 4) << 16 | (self.stride >> 4) << 32 | mode << 62;
        let start = p.f.shared_addr();
        let start = p.f.add_s32(start, at);
        let start = p.f.shr_u32(start, 4u32);
        let start = p.f.cvt(Ty::U64, Ty::U32, start);
        let desc = p.f.int(IntOp::Or, Ty::B64, start, fixed.cast_signed());
        p.f.materialize(Ty::B64, desc)
    }
}

/// A K-major operand as copies of boxes leave it in shared memory: rows of one span, one box behind the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tile {
    pub(super) ty: Ty,
    pub(super) swizzle: TensorSwizzle,
    /// Rows along M or N.
    pub(super) rows: u64,
    /// Columns along K.
    pub(super) depth: u64,
}

impl Tile {
    fn size(self) -> u64 {
        u64::from(self.ty.bytes())
    }

    pub(super) fn bytes(self) -> u64 {
        self.rows * self.depth * self.size()
    }

    /// Its bytes; it begins where the swizzle's pattern does. `element(row, k)` gives the bits of an element.
    pub(super) fn image(self, element: impl Fn(u64, u64) -> u64) -> Vec<u8> {
        let (size, span) = (self.size(), span(self.swizzle));
        let width = span / size;
        let mut image = vec![0; self.bytes() as usize];
        for (row, k) in (0..self.rows).flat_map(|row| (0..self.depth).map(move |k| (row, k))) {
            let at = k / width * self.rows * span + row * span + k % width * size;
            let at = self.swizzle.apply(at) as usize;
            image[at..at + size as usize].copy_from_slice(&element(row, k).to_le_bytes()[..size as usize]);
        }
        image
    }

    /// The descriptor of step `step` of 32 bytes of depth, of the tile at byte `at` of shared memory.
    pub(super) fn descriptor(self, p: &mut Builder, at: i64, step: u64) -> Reg {
        let (swizzle, span) = (self.swizzle, span(self.swizzle));
        let (leading, stride, from) = match swizzle {
            TensorSwizzle::None => (self.rows * 16, 128, step * 2 * self.rows * 16),
            _ => (16, 8 * span, step * 32 / span * self.rows * span + step * 32 % span),
        };
        Fields { swizzle, trans: false, leading, stride }.descriptor(p, at + from as i64)
    }
}
