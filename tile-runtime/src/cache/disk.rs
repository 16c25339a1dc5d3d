//! A folder of entries, each bytes under a key, which many processes share and none has to trust.

use std::fs::{self, DirEntry, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::whole::{self, ABANDONED, TEMPORARY};
use super::{Key, entry};

/// Ending of an entry's name, after the key.
const ENTRY: &str = ".tile";

/// Bytes on disk, found by [`Key`]. Processes and threads may share a folder without any agreement:
///
/// * an entry appears whole, by being renamed, and its header and checksum are compared when it is read;
/// * what cannot be read, or is not whole, is built again, and what cannot be written is not kept: no fault of a file
///   or a disk is an error;
/// * the entries together stay within a limit; those go first that were not read or written for the longest time.
#[derive(Debug, Clone)]
pub struct DiskCache {
    folder: PathBuf,
    max_bytes: u64,
}

/// Where the bytes of an entry came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// They were in the folder.
    Stored,
    /// They were built just now.
    Built,
}

impl DiskCache {
    /// A cache in `folder`, made when the first entry is kept, whose files have `max_bytes` together.
    pub fn new(folder: impl Into<PathBuf>, max_bytes: u64) -> Self {
        Self { folder: folder.into(), max_bytes }
    }

    /// The folder. Entries lie in it side by side, each a file named after its key.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Most bytes of all files together, headers included. Others' writes may exceed it for a moment.
    pub fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    /// The bytes under `key`, from the folder or from `build`, whose result is kept.
    ///
    /// Processes that ask at the same time may each build.
    ///
    /// # Errors
    /// That of `build`, and no other.
    pub fn get_or_insert_with<E>(
        &self,
        key: &Key,
        build: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<(Vec<u8>, Origin), E> {
        if let Some(bytes) = self.get(key) {
            return Ok((bytes, Origin::Stored));
        }
        let bytes = build()?;
        self.insert(key, &bytes);
        Ok((bytes, Origin::Built))
    }

    /// The bytes under `key`, if they are there and whole. A file that is not whole is removed.
    pub fn get(&self, key: &Key) -> Option<Vec<u8>> {
        let path = self.path(key);
        match self.read(&path) {
            Ok(file) => match entry::content(key, file) {
                Ok(content) => Some(content),
                Err(fault) => {
                    tracing::warn!("{} is {fault}; it is dropped and made again", path.display());
                    self.remove(key);
                    None
                }
            },
            Err(error) => {
                if error.kind() != ErrorKind::NotFound {
                    tracing::info!("{} cannot be read and is made again: {error}", path.display());
                }
                None
            }
        }
    }

    /// Keeps `bytes` under `key` if the folder can be written and they fit, and removes what is over the limit.
    pub fn insert(&self, key: &Key, bytes: &[u8]) {
        let size = (entry::HEADER + bytes.len()) as u64;
        if size > self.max_bytes {
            tracing::info!("{size} bytes are not kept: the limit of the cache is {} bytes", self.max_bytes);
            return;
        }
        let outcome =
            whole::write(&self.folder, &key.to_string(), ENTRY, &[&entry::header(key, bytes), bytes])
                .and_then(|()| self.evict(&self.path(key)));
        if let Err(error) = outcome {
            tracing::info!("linked code is not kept in {}: {error}", self.folder.display());
        }
    }

    /// Removes the entry of `key`, if it is there and can be removed.
    pub fn remove(&self, key: &Key) {
        let path = self.path(key);
        if let Err(error) = remove(&path) {
            tracing::info!("{} cannot be removed: {error}", path.display());
        }
    }

    /// Removes every entry, and returns how many files were removed. Files that are not the cache's stay.
    ///
    /// # Errors
    /// The first failure to list the folder or to remove a file. A folder that does not exist holds nothing.
    pub fn clear(&self) -> io::Result<usize> {
        let listing = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
            listing => listing?,
        };
        let mut removed = 0;
        for file in listing {
            let file = file?;
            if kind(&file).is_some() {
                remove(&file.path())?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    fn path(&self, key: &Key) -> PathBuf {
        self.folder.join(format!("{key}{ENTRY}"))
    }

    /// The whole file, and notes that it was used.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        // Asked before opening, which would wait for a writer if this were a pipe.
        let metadata = fs::symlink_metadata(path)?;
        if !metadata.is_file() || metadata.len() > self.max_bytes {
            return Err(io::Error::other("it is no regular file, or larger than the whole cache may be"));
        }
        let mut file = File::open(path)?;
        let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0));
        Read::by_ref(&mut file).take(self.max_bytes).read_to_end(&mut bytes)?;
        // Where this is refused, as on a read-only disk, the entry only looks older than it is.
        let _ = file.set_modified(SystemTime::now());
        Ok(bytes)
    }

    /// Removes the least recently used entries until the rest is within the limit, but not `newest`, and files that
    /// were left half written.
    fn evict(&self, newest: &Path) -> io::Result<()> {
        let now = SystemTime::now();
        let mut entries = Vec::new();
        let mut total = 0_u64;
        for file in fs::read_dir(&self.folder)? {
            let file = file?;
            let Some(kind) = kind(&file) else { continue };
            // Other processes remove files too.
            let Ok(metadata) = file.metadata() else { continue };
            let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            match kind {
                Kind::Temporary => {
                    if now.duration_since(used).is_ok_and(|age| age > ABANDONED) {
                        let _ = remove(&file.path());
                    }
                }
                Kind::Entry => {
                    total = total.saturating_add(metadata.len());
                    entries.push((used, file.path(), metadata.len()));
                }
            }
        }
        entries.sort();
        let mut outcome = Ok(());
        for (_, path, size) in entries.iter().filter(|(_, path, _)| path != newest) {
            if total <= self.max_bytes {
                break;
            }
            match remove(path) {
                Ok(()) => total -= size,
                // Another one may go in its place.
                Err(error) => outcome = Err(error),
            }
        }
        outcome
    }
}

/// Files of the cache; all others are left alone.
#[derive(Clone, Copy)]
enum Kind {
    Entry,
    Temporary,
}

/// What a file of the folder is, by its name; none if it is not the cache's.
fn kind(file: &DirEntry) -> Option<Kind> {
    let name = file.file_name();
    let name = name.to_str()?;
    let key = name.get(..2 * Key::BYTES)?;
    if !key.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    match &name[key.len()..] {
        ENTRY => Some(Kind::Entry),
        rest if rest.starts_with('-') && rest.ends_with(TEMPORARY) => Some(Kind::Temporary),
        _ => None,
    }
}

/// Removes a file; one that is gone already is removed.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
