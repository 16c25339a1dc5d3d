//! The linked code of kernels on disk, so that a kernel is assembled once a machine and not once a process.
//!
//! The driver takes a good part of a second to assemble and link a large kernel; the linked code loads in a fraction of a
//! millisecond. So the first process that launches a kernel keeps the code, and later ones load it. An entry is found by
//! the PTX text, the linker's options, the GPU's model and the driver: whatever changes, an older entry is not found, and
//! ages out.
//!
//! Nothing about the cache is ever an error of a launch. An entry that is damaged, or that the driver refuses, is dropped
//! and made again; a folder that cannot be read or written is as good as none. Both are reported through [`tracing`].
//! Any number of processes may share a folder.
//!
//! | environment variable | meaning |
//! |---|---|
//! | `TILE_CACHE_DIR` | the folder, in place of `tile-runtime` in the user's cache folder (`~/.cache` on Linux) |
//! | `TILE_CACHE=off` | nothing is read or kept |
//! | `TILE_CACHE_MAX_MIB` | most MiB of all entries together, 1024 unless given; the least recently used ones go first |
//!
//! They are read once a process, when the first module is loaded. Whoever can write to the folder chooses what code runs
//! on the GPU in its users' name, so the default folder is the user's own.

mod disk;
mod entry;
mod key;
pub(crate) mod whole;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::LazyLock;

use etcetera::base_strategy::{BaseStrategy, choose_native_strategy};

pub use disk::{DiskCache, Origin};
pub use key::Key;

/// Most MiB of all entries together, unless `TILE_CACHE_MAX_MIB` says otherwise.
const DEFAULT_MAX_MIB: u64 = 1024;

/// The folder in which linked code is kept; none if the cache is off, or if the system names no cache folder. It need not
/// exist yet.
pub fn dir() -> Option<PathBuf> {
    of_process().map(|cache| cache.folder().to_owned())
}

/// Removes all linked code from [`dir`], and returns the number of files removed. Files that are not the cache's stay.
/// Processes that use the cache meanwhile are not disturbed.
///
/// # Errors
/// The first failure to list the folder or to remove a file. No folder, or no cache, is no error.
///
/// ```no_run
/// let removed = tile_runtime::cache::clear()?;
/// println!("{removed} kernels forgotten");
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn clear() -> io::Result<usize> {
    of_process().map_or(Ok(0), DiskCache::clear)
}

/// The cache of this process, as the environment asks.
pub(crate) fn of_process() -> Option<&'static DiskCache> {
    static CACHE: LazyLock<Option<DiskCache>> =
        LazyLock::new(|| chosen(|name| std::env::var_os(name), system_folder));
    CACHE.as_ref()
}

/// The user's cache folder, if the system names one.
pub(crate) fn system_folder() -> Option<PathBuf> {
    choose_native_strategy().ok().map(|strategy| strategy.cache_dir())
}

/// The folder that an environment asks for, without empty `variable`s; `system` gives the user's cache folder.
pub(crate) fn chosen_folder(
    variable: impl Fn(&str) -> Option<OsString>,
    system: impl FnOnce() -> Option<PathBuf>,
) -> Option<PathBuf> {
    match variable("TILE_CACHE_DIR") {
        // Another current folder later on must not mean another cache.
        Some(folder) => std::path::absolute(folder).ok(),
        None => system().map(|folder| folder.join("tile-runtime")),
    }
}

/// What an environment asks for, where `system` gives the user's cache folder.
fn chosen(
    variable: impl Fn(&str) -> Option<OsString>,
    system: impl FnOnce() -> Option<PathBuf>,
) -> Option<DiskCache> {
    let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
    match variable("TILE_CACHE") {
        Some(value) if value == "off" => return None,
        Some(value) if value != "on" => {
            tracing::warn!("TILE_CACHE is {value:?}, which means nothing; write off to keep no linked code");
        }
        _ => {}
    }
    let Some(folder) = chosen_folder(variable, system) else {
        tracing::info!("no cache folder is known, so linked code is not kept; set TILE_CACHE_DIR to keep it");
        return None;
    };
    let max_mib = variable("TILE_CACHE_MAX_MIB").map_or(DEFAULT_MAX_MIB, |value| {
        value.to_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| {
            tracing::warn!(
                "TILE_CACHE_MAX_MIB is {value:?}, not a number of MiB; {DEFAULT_MAX_MIB} is taken"
            );
            DEFAULT_MAX_MIB
        })
    });
    Some(DiskCache::new(folder, max_mib.saturating_mul(1 << 20)))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// The folder and the limit for these variables, with the system's folder `/c`.
    fn chosen_for(variables: &[(&str, &str)]) -> Option<(PathBuf, u64)> {
        let find = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| value.into());
        let cache = chosen(find, || Some(PathBuf::from("/c")))?;
        Some((cache.folder().to_owned(), cache.max_bytes()))
    }

    #[test]
    fn the_default_is_a_gibibyte_in_the_users_cache_folder() {
        let default = Some((PathBuf::from("/c/tile-runtime"), 1 << 30));
        assert_eq!(chosen_for(&[]), default);
        for ignored in [("TILE_CACHE", ""), ("TILE_CACHE", "on"), ("TILE_CACHE", "maybe")] {
            assert_eq!(chosen_for(&[ignored]), default, "{ignored:?}");
        }
        for ignored in ["", "many", "-1", "1.5"] {
            assert_eq!(chosen_for(&[("TILE_CACHE_MAX_MIB", ignored)]), default, "{ignored:?}");
        }
        assert_eq!(chosen_for(&[("TILE_CACHE_DIR", "")]), default);
    }

    #[test]
    fn the_environment_moves_limits_and_disables_it() {
        let variables = [("TILE_CACHE_DIR", "/elsewhere"), ("TILE_CACHE_MAX_MIB", "3")];
        assert_eq!(chosen_for(&variables), Some((PathBuf::from("/elsewhere"), 3 << 20)));
        let (relative, _) = chosen_for(&[("TILE_CACHE_DIR", "here")]).expect("a folder");
        assert!(relative.is_absolute() && relative.ends_with("here"), "{relative:?}");
        let huge = chosen_for(&[("TILE_CACHE_MAX_MIB", "18446744073709551615")]).expect("a folder");
        assert_eq!(huge.1, u64::MAX);
        assert_eq!(chosen_for(&[("TILE_CACHE", "off"), ("TILE_CACHE_DIR", "/elsewhere")]), None);
    }

    #[test]
    fn without_a_users_folder_only_a_named_one_counts() {
        assert!(chosen(|_| None, || None).is_none());
        let named = chosen(|name| (name == "TILE_CACHE_DIR").then(|| "/elsewhere".into()), || None);
        assert_eq!(named.as_ref().map(DiskCache::folder), Some(Path::new("/elsewhere")));
    }
}
