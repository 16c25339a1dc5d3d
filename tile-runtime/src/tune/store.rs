//! Results on disk: one JSON file for each kernel, device, driver and kind of problem, which many processes share.

use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::space::Point;
use crate::cache::whole::{self, ABANDONED, TEMPORARY};
use crate::cache::{self, Key};
use crate::cuda;
use crate::device::{Device, DeviceKind};
use crate::timing::Time;

/// Number of this layout of files, part of every name.
const FORMAT: u32 = 1;
/// Ending of a result's name.
const ENDING: &str = ".json";
/// A longer file is none of ours.
const MAX_BYTES: u64 = 1 << 16;

/// Results, each in a file of one folder. As with linked code, files appear whole, what cannot be read counts as not there, and
/// processes need no agreement: of several that keep a result of one question, the last one's stays.
#[derive(Debug, Clone)]
pub struct Store {
    folder: PathBuf,
}

/// What a result is the answer to, beside the kernels.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// What was tuned, such as `mamba2::forward`.
    pub subject: &'a str,
    /// The device. Equal ones share results; the CPU's number of threads counts.
    pub device: &'a Device,
    /// The kind of problem: sizes, rounded so that near ones share a result, element types and options, in words.
    pub bucket: &'a str,
}

/// A result. Whoever uses it checks the values of the point first, since anyone may have edited the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The winner.
    pub point: Point,
    /// Its time.
    pub time: Time,
}

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct File {
    format: u32,
    subject: String,
    bucket: String,
    device: String,
    capability: String,
    driver: String,
    /// Hash of the kernels' tile IR.
    kernels: String,
    point: Point,
    median_us: f64,
    spread_us: f64,
}

/// The hash of kernels' tile IR as text, [`codegen::ir::print`](tile_codegen::ir::print()) of each.
pub fn kernels<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Key {
    let texts: Vec<T> = texts.into_iter().collect();
    Key::of(&texts.iter().map(|text| text.as_ref().as_bytes()).collect::<Vec<_>>())
}

/// How many results this process has kept so far: what was loaded before it last changed may be out of date.
pub fn generation() -> u64 {
    GENERATION.load(Ordering::Acquire)
}

static GENERATION: AtomicU64 = AtomicU64::new(0);

impl Store {
    /// The results in `folder`, which is made when the first one is kept.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The store of this process, as the environment asks; none if it is off, or if no folder is known.
    pub fn of_process() -> Option<&'static Self> {
        static STORE: LazyLock<Option<Store>> =
            LazyLock::new(|| chosen(|name| std::env::var_os(name), cache::system_folder));
        STORE.as_ref()
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The answer to a question, if there is one for the kernels whose hash `kernels` gives, which is asked for only if some
    /// answer to the question is there. A file that is damaged or answers something else is left alone and reported as a warning.
    pub fn load(&self, question: &Question<'_>, kernels: impl FnOnce() -> Option<Key>) -> Option<Answer> {
        let wanted = File::of(question)?;
        let stem = wanted.stem();
        if !self.any(&stem) {
            return None;
        }
        let kernels = kernels()?.to_string();
        let path = self.folder.join(format!("{stem}-{kernels}{ENDING}"));
        let text = match read(&path) {
            Ok(text) => text,
            Err(error) => {
                if error.kind() != ErrorKind::NotFound {
                    tracing::warn!("{} is ignored: {error}", path.display());
                }
                return None;
            }
        };
        match parse(&text, &File { kernels, ..wanted }) {
            Ok(answer) => Some(answer),
            Err(fault) => {
                tracing::warn!("{} is ignored: {fault}", path.display());
                None
            }
        }
    }

    /// Keeps an answer, in place of an earlier one, and returns its file.
    ///
    /// # Errors
    /// For a device that has no times, and if the folder cannot be written.
    pub fn save(&self, question: &Question<'_>, kernels: &Key, answer: &Answer) -> io::Result<PathBuf> {
        let Some(file) = File::of(question) else {
            let text = format!("results of device {} are not kept: its times mean nothing", question.device);
            return Err(io::Error::new(ErrorKind::Unsupported, text));
        };
        let us = |time: Duration| time.as_secs_f64() * 1e6;
        let file = File {
            kernels: kernels.to_string(),
            point: answer.point.clone(),
            median_us: us(answer.time.median),
            spread_us: us(answer.time.spread),
            ..file
        };
        let stem = format!("{}-{kernels}", file.stem());
        let text = serde_json::to_string_pretty(&file).map_err(io::Error::other)?;
        whole::write(&self.folder, &stem, ENDING, &[text.as_bytes(), b"\n"])?;
        GENERATION.fetch_add(1, Ordering::AcqRel);
        self.remove_abandoned();
        Ok(self.folder.join(format!("{stem}{ENDING}")))
    }

    /// Whether some file answers a question whose names start with `stem`.
    fn any(&self, stem: &str) -> bool {
        let Ok(files) = fs::read_dir(&self.folder) else { return false };
        files.flatten().any(|file| {
            let name = file.file_name();
            name.to_str().is_some_and(|name| name.starts_with(stem) && name.ends_with(ENDING))
        })
    }

    /// Removes what processes that ended left half written.
    fn remove_abandoned(&self) {
        let Ok(files) = fs::read_dir(&self.folder) else { return };
        let now = SystemTime::now();
        for file in files.flatten() {
            let half_written = file.file_name().to_str().is_some_and(|name| name.ends_with(TEMPORARY));
            let age = file.metadata().and_then(|metadata| metadata.modified()).ok();
            let age = age.and_then(|modified| now.duration_since(modified).ok());
            if half_written && age.is_some_and(|age| age > ABANDONED) {
                // Another process may have been faster.
                let _ = fs::remove_file(file.path());
            }
        }
    }
}

impl File {
    /// A file for a question, without a result yet; none for devices without times.
    fn of(question: &Question<'_>) -> Option<Self> {
        let device = question.device;
        let (capability, driver) = match device.kind() {
            DeviceKind::Cpu => {
                (format!("{}, {} threads", std::env::consts::ARCH, device.multiprocessors()), String::new())
            }
            DeviceKind::Cuda { .. } => {
                let (major, minor) = device.compute_capability()?;
                let version = cuda::driver_version().map(|version| version.to_string()).unwrap_or_default();
                (format!("{major}.{minor}"), format!("{version}, {}", cuda::driver_build()))
            }
            DeviceKind::PtxExecutor { .. } | DeviceKind::Meta => return None,
        };
        Some(Self {
            format: FORMAT,
            subject: question.subject.to_owned(),
            bucket: question.bucket.to_owned(),
            device: device.name().to_owned(),
            capability,
            driver,
            kernels: String::new(),
            point: Point::new(),
            median_us: 0.0,
            spread_us: 0.0,
        })
    }

    /// What the file's name starts with: a hash of all but the kernels and the result.
    fn stem(&self) -> String {
        let Self { format, subject, bucket, device, capability, driver, .. } = self;
        let format = format.to_le_bytes();
        let texts = [subject, bucket, device, capability, driver].map(|text| text.as_bytes());
        let parts: Vec<&[u8]> = [format.as_slice()].into_iter().chain(texts).collect();
        Key::of(&parts).to_string()
    }
}

/// The text of a regular file of a sensible size.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    // Asked before opening, which would wait for a writer if this were a pipe.
    let metadata = fs::symlink_metadata(path)?;
    if !metadata.is_file() || metadata.len() > MAX_BYTES {
        return Err(io::Error::other("it is no regular file, or far too large"));
    }
    fs::read(path)
}

/// The answer in a file's text, if the file is what its name says; otherwise what is wrong with it.
fn parse(text: &[u8], wanted: &File) -> Result<Answer, String> {
    let value: serde_json::Value = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    if value.get("format") != Some(&FORMAT.into()) {
        return Err(format!("its format is not {FORMAT}"));
    }
    let file: File = serde_json::from_value(value).map_err(|error| error.to_string())?;
    let time = |us: f64| {
        let time = Duration::try_from_secs_f64(us / 1e6);
        time.map_err(|_| format!("{us} us is no time"))
    };
    let time = Time { median: time(file.median_us)?, spread: time(file.spread_us)? };
    let point = file.point.clone();
    let File { median_us, spread_us, .. } = *wanted;
    if (File { point: wanted.point.clone(), median_us, spread_us, ..file }) != *wanted {
        return Err("it answers another question than its name says".to_owned());
    }
    Ok(Answer { point, time })
}

/// The store that an environment asks for, where `system` gives the user's cache folder.
fn chosen(
    variable: impl Fn(&str) -> Option<OsString>,
    system: impl FnOnce() -> Option<PathBuf>,
) -> Option<Store> {
    let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
    match variable("TILE_TUNED") {
        Some(value) if value == "off" => return None,
        Some(value) if value != "on" => {
            tracing::warn!("TILE_TUNED is {value:?}, which means nothing; write off to use no saved results");
        }
        _ => {}
    }
    let folder = match variable("TILE_TUNED_DIR") {
        Some(folder) => std::path::absolute(folder).ok(),
        None => cache::chosen_folder(variable, system).map(|folder| folder.join("tuned")),
    };
    folder.map(Store::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_beside_the_linked_code() {
        let folder_for = |variables: &[(&str, &str)]| {
            let find = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| value.into());
            chosen(find, || Some(PathBuf::from("/c"))).map(|store| store.folder)
        };
        assert_eq!(folder_for(&[]), Some("/c/tile-runtime/tuned".into()));
        assert_eq!(folder_for(&[("TILE_TUNED", "maybe")]), Some("/c/tile-runtime/tuned".into()));
        assert_eq!(folder_for(&[("TILE_CACHE_DIR", "/d")]), Some("/d/tuned".into()));
        assert_eq!(folder_for(&[("TILE_CACHE_DIR", "/d"), ("TILE_TUNED_DIR", "/e")]), Some("/e".into()));
        assert_eq!(folder_for(&[("TILE_CACHE", "off")]), Some("/c/tile-runtime/tuned".into()));
        assert_eq!(folder_for(&[("TILE_TUNED", "off"), ("TILE_TUNED_DIR", "/e")]), None);
        assert!(chosen(|_| None, || None).is_none());
    }
}
