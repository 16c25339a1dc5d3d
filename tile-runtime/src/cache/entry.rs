//! The file of one entry: a header that tells whether the content is whole and the one asked for, then the content.
//!
//! | bytes | hold |
//! |---|---|
//! | 0..8 | `TILELINK` |
//! | 8..12 | [`FORMAT`], little-endian |
//! | 12..44 | the key |
//! | 44..52 | length of the content in bytes, little-endian |
//! | 52..84 | SHA-256 of bytes 0..52 and the content |
//! | 84.. | the content |

use sha2::{Digest, Sha256};

use super::Key;

const MAGIC: &[u8; 8] = b"TILELINK";

/// Number of this layout of files; part of every key.
pub(super) const FORMAT: u32 = 1;

/// Bytes before the checksum, all of which it covers.
const COVERED: usize = 52;

/// Bytes before the content.
pub(super) const HEADER: usize = COVERED + 32;

/// The header of a file that holds `content` under `key`.
pub(super) fn header(key: &Key, content: &[u8]) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&FORMAT.to_le_bytes());
    header[12..44].copy_from_slice(key.as_bytes());
    header[44..COVERED].copy_from_slice(&(content.len() as u64).to_le_bytes());
    let sum = checksum(&header[..COVERED], content);
    header[COVERED..].copy_from_slice(&sum);
    header
}

/// The content of a file that should hold `key`; otherwise what is wrong with the file.
pub(super) fn content(key: &Key, mut file: Vec<u8>) -> Result<Vec<u8>, &'static str> {
    if file.len() < HEADER {
        return Err("shorter than its header");
    }
    let content = file.split_off(HEADER);
    if file[..8] != MAGIC[..] {
        return Err("not a file of this cache");
    }
    if file[8..12] != FORMAT.to_le_bytes() {
        return Err("of another format");
    }
    if file[12..44] != key.as_bytes()[..] {
        return Err("the file of another key");
    }
    if file[44..COVERED] != (content.len() as u64).to_le_bytes() {
        return Err("truncated or extended");
    }
    if file[COVERED..] != checksum(&file[..COVERED], &content) {
        return Err("damaged: its checksum is wrong");
    }
    Ok(content)
}

fn checksum(covered: &[u8], content: &[u8]) -> [u8; 32] {
    Sha256::new().chain_update(covered).chain_update(content).finalize().into()
}
