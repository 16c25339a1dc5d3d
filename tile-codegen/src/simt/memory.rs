//! Global memory: regions of bytes at addresses, with gaps between them that belong to nobody.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};

/// The address of the first region.
const FIRST_BASE: u64 = 0x7f00_0000_0000;
/// Bytes between regions at least, so that an access a little outside hits nothing.
const GAP: u64 = 1 << 20;
/// Every region begins at a multiple of this, as allocations on a GPU do.
const ALIGN: u64 = 256;

/// What a kernel may do with a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Loads alone. Such regions need no tracking of races, which makes runs faster.
    Read,
    /// Loads and stores.
    Write,
}

/// One buffer.
#[derive(Debug)]
pub(super) struct Region {
    pub(super) name: String,
    pub(super) base: u64,
    pub(super) len: u64,
    pub(super) access: Access,
    /// The bytes, little-endian in words, so that threads with their own ranges of blocks can share them.
    words: Vec<AtomicU32>,
    /// For each byte whether it was written; `None` if all are.
    defined: Option<Vec<AtomicU8>>,
}

/// The global memory of a run. Several runs of disjoint ranges of blocks may use it at the same time.
#[derive(Debug, Default)]
pub struct Memory {
    regions: Vec<Region>,
    /// Held by atomics, so that they are atomic between threads that run other blocks.
    pub(super) atomics: Mutex<()>,
}

impl Memory {
    /// Memory without regions: every access is out of bounds.
    pub fn new() -> Memory {
        Memory::default()
    }

    /// Adds a region with these bytes and returns its address, a multiple of 256. `name` is for messages.
    pub fn add(&mut self, name: impl Into<String>, bytes: &[u8], access: Access) -> u64 {
        let words = bytes.chunks(4).map(|chunk| {
            let mut word = [0; 4];
            word[..chunk.len()].copy_from_slice(chunk);
            AtomicU32::new(u32::from_le_bytes(word))
        });
        self.push(name.into(), bytes.len() as u64, words.collect(), access, None)
    }

    /// Adds a writable region of `len` bytes that nobody has written yet: reading them first is reported.
    pub fn add_uninit(&mut self, name: impl Into<String>, len: usize) -> u64 {
        let words = (0..len.div_ceil(4)).map(|_| AtomicU32::new(0)).collect();
        let defined = (0..len).map(|_| AtomicU8::new(0)).collect();
        self.push(name.into(), len as u64, words, Access::Write, Some(defined))
    }

    /// As [`Memory::add`], where only the bytes that `written` says were written: reading others first is reported.
    pub fn add_partly(
        &mut self,
        name: impl Into<String>,
        bytes: &[u8],
        access: Access,
        written: &[bool],
    ) -> u64 {
        let base = self.add(name, bytes, access);
        let region = self.regions.last_mut().expect("one was added");
        let padded = written.iter().copied().chain(std::iter::repeat(false)).take(bytes.len());
        region.defined = Some(padded.map(|byte| AtomicU8::new(byte.into())).collect());
        base
    }

    fn push(
        &mut self,
        name: String,
        len: u64,
        words: Vec<AtomicU32>,
        access: Access,
        defined: Option<Vec<AtomicU8>>,
    ) -> u64 {
        let end = self.regions.last().map_or(FIRST_BASE - GAP, |last| last.base + last.len);
        let base = (end + GAP).next_multiple_of(ALIGN);
        self.regions.push(Region { name, base, len, access, words, defined });
        base
    }

    /// Changes what the next kernel may do with the region that begins at `base`; `false` if there is none.
    pub fn set_access(&mut self, base: u64, access: Access) -> bool {
        let region = self.regions.iter_mut().find(|region| region.base == base);
        region.map(|region| region.access = access).is_some()
    }

    /// The bytes of the region that begins at `base`, or `None` if there is no such region.
    pub fn bytes(&self, base: u64) -> Option<Vec<u8>> {
        let region = self.regions.iter().find(|region| region.base == base)?;
        let bytes = region.words.iter().flat_map(|word| word.load(Relaxed).to_le_bytes());
        Some(bytes.take(region.len as usize).collect())
    }

    /// For each byte of the region that begins at `base` whether it was given or written; `None` if all were, or if there is
    /// no such region.
    pub fn written(&self, base: u64) -> Option<Vec<bool>> {
        let region = self.regions.iter().find(|region| region.base == base)?;
        let defined = region.defined.as_ref()?;
        Some(defined.iter().map(|byte| byte.load(Relaxed) != 0).collect())
    }

    /// The region that holds `size` bytes at `address`, by its index.
    pub(super) fn find(&self, address: u64, size: u64) -> Option<usize> {
        let after = self.regions.partition_point(|region| region.base <= address);
        let region = &self.regions[after.checked_sub(1)?];
        let offset = address - region.base;
        (offset < region.len && size <= region.len - offset).then_some(after - 1)
    }

    pub(super) fn region(&self, index: usize) -> &Region {
        &self.regions[index]
    }

    pub(super) fn len(&self) -> usize {
        self.regions.len()
    }

    /// What lies near an address, for messages.
    pub(super) fn describe(&self, address: u64) -> String {
        let nearest = self.regions.iter().min_by_key(|region| {
            region.base.saturating_sub(address).max(address.saturating_sub(region.base + region.len))
        });
        match nearest {
            None => "no memory was given".to_string(),
            Some(region) => format!(
                "the nearest buffer is `{}` with {} bytes; this is byte {} of it",
                region.name,
                region.len,
                i128::from(address) - i128::from(region.base)
            ),
        }
    }
}

impl Region {
    /// Reads bytes at an offset; the caller has checked the bounds.
    pub(super) fn read(&self, offset: u64, out: &mut [u8]) {
        let at = offset as usize;
        if at.is_multiple_of(4) && out.len().is_multiple_of(4) {
            for (chunk, word) in out.chunks_exact_mut(4).zip(&self.words[at / 4..]) {
                chunk.copy_from_slice(&word.load(Relaxed).to_le_bytes());
            }
            return;
        }
        for (i, byte) in out.iter_mut().enumerate() {
            *byte = self.words[(at + i) / 4].load(Relaxed).to_le_bytes()[(at + i) % 4];
        }
    }

    /// Writes bytes at an offset; the caller has checked the bounds.
    pub(super) fn write(&self, offset: u64, data: &[u8]) {
        let at = offset as usize;
        if let Some(defined) = &self.defined {
            defined[at..at + data.len()].iter().for_each(|byte| byte.store(1, Relaxed));
        }
        if at.is_multiple_of(4) && data.len().is_multiple_of(4) {
            for (chunk, word) in data.chunks_exact(4).zip(&self.words[at / 4..]) {
                word.store(u32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]), Relaxed);
            }
            return;
        }
        for (i, &byte) in data.iter().enumerate() {
            let (word, shift) = (&self.words[(at + i) / 4], (at + i) % 4 * 8);
            let put = |old: u32| Some(old & !(0xff << shift) | u32::from(byte) << shift);
            word.fetch_update(Relaxed, Relaxed, put).expect("the update always gives a value");
        }
    }

    /// Whether every one of these bytes was given or written.
    pub(super) fn is_defined(&self, offset: u64, size: u64) -> bool {
        let range = offset as usize..(offset + size) as usize;
        self.defined.as_ref().is_none_or(|defined| defined[range].iter().all(|byte| byte.load(Relaxed) != 0))
    }
}
