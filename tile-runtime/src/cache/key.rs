//! What an entry of the cache is found by: a hash of everything that its content depends on.

use sha2::{Digest, Sha256};

use super::entry;

/// Identifies an entry of a [`DiskCache`](super::DiskCache): the SHA-256 of its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key([u8; Self::BYTES]);

impl Key {
    /// Bytes of a key.
    pub(super) const BYTES: usize = 32;

    /// The key of these parts and the cache's format. Each part counts with its length, so that text which moves from one
    /// part to the next gives another key.
    pub fn of(parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        hash.update(entry::FORMAT.to_le_bytes());
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }

    /// The 32 bytes.
    pub fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }
}

impl std::fmt::Display for Key {
    /// 64 hexadecimal digits.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
