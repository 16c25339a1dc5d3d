//! Linked code on disk, on a GPU: kept by one process, loaded by the next, made again when it is damaged. Each test says
//! "skipped: no device" where there is no GPU.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tile_runtime::cache::{self, DiskCache};
use tile_runtime::cuda::Module;
use tile_runtime::prelude::*;

/// Set for the processes that the tests start of themselves.
const CHILD: &str = "TILE_TEST_CACHE_CHILD";

/// `out[i] = 3 x[i] + y[i]`, `[n]`. Grid: `ceil(n / block)`.
#[tile_kernel]
fn triple_add(x: Tensor<f32, 1>, y: Tensor<f32, 1>, out: TensorMut<f32, 1>, block: Const<usize>) {
    let i = bid(0);
    store(out, (i,), load(x, (i,), (block,)) * 3.0 + load(y, (i,), (block,)));
}

const PTX: &str = "
.version 7.0
.target sm_80
.address_size 64
.visible .entry nothing()
{
    ret;
}
";

/// Launches the kernel and compares its result.
fn launch_and_check(device: &Device) {
    let n = 5000;
    let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let y: Vec<f32> = (0..n).map(|i| (n - i) as f32).collect();
    let expected: Vec<f32> = (0..n).map(|i| (3 * i + n - i) as f32).collect();
    let tensor = |values: &[f32]| DeviceTensor::from_slice(device, &[values.len()], values).expect("fits");
    let (x, y) = (tensor(&x), tensor(&y));
    let mut out = DeviceTensor::zeros(device, &[expected.len()]).expect("fits");
    triple_add(&x, &y, &mut out, 256).launch(expected.len().div_ceil(256)).expect("launched");
    assert_eq!(out.to_vec().expect("copies"), expected);
}

/// The GPU, or none with a word about it.
fn gpu() -> Option<Device> {
    match Device::cuda(0) {
        Ok(device) => Some(device),
        Err(error) => {
            println!("skipped: no device ({error})");
            None
        }
    }
}

/// The test of this name in another process, with these variables.
fn start(test: &str, variables: &[(&str, &Path)]) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", test, "--nocapture"]).env(CHILD, "1").env_remove("TILE_CACHE");
    // The driver's own cache would hide what is measured here.
    command.env("CUDA_CACHE_DISABLE", "1").envs(variables.iter().copied()).stdout(Stdio::null());
    command.spawn().expect("this program runs")
}

fn finish(mut child: Child) {
    assert!(child.wait().expect("a child").success());
}

/// The entries with their bytes, sorted.
fn entries(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let files = fs::read_dir(folder).expect("the folder of the cache");
    let mut entries: Vec<_> = files
        .map(|file| {
            let file = file.expect("listed");
            (file.file_name().into_string().expect("a plain name"), fs::read(file.path()).expect("an entry"))
        })
        .collect();
    entries.sort();
    entries
}

#[test]
fn a_second_process_loads_what_the_first_kept() {
    let Some(device) = gpu() else { return };
    if std::env::var_os(CHILD).is_some() {
        return launch_and_check(&device);
    }
    let test = "a_second_process_loads_what_the_first_kept";
    let folder = tempfile::tempdir().expect("a temporary folder");
    let named = [("TILE_CACHE_DIR", folder.path())];
    finish(start(test, &named));
    let kept = entries(folder.path());
    assert_eq!(kept.len(), 1, "one kernel, one entry");
    // The content after the header is what the driver linked.
    assert!(kept[0].1[84..].starts_with(b"\x7fELF"));
    let path = folder.path().join(&kept[0].0);
    let before = fs::metadata(&path).and_then(|file| file.modified()).expect("an entry");
    finish(start(test, &named));
    assert_eq!(entries(folder.path()), kept, "nothing was made again");
    let after = fs::metadata(&path).and_then(|file| file.modified()).expect("an entry");
    assert!(after > before, "the second process read the entry");
    // Damaged: launched all the same, and made again.
    fs::write(&path, &kept[0].1[..kept[0].1.len() / 2]).expect("written");
    finish(start(test, &named));
    let again = entries(folder.path());
    assert_eq!((again.len(), &again[0].0), (1, &kept[0].0));
    assert!(again[0].1[84..].starts_with(b"\x7fELF"));
    // Off: nothing is read or written.
    let _ = fs::remove_file(&path);
    finish(start(test, &[named[0], ("TILE_CACHE", Path::new("off"))]));
    assert!(entries(folder.path()).is_empty());
    // A folder that cannot be is no error.
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    finish(start(test, &[("TILE_CACHE_DIR", file.path())]));
}

#[test]
fn a_whole_entry_that_the_driver_refuses_is_made_again() {
    let Some(device) = gpu() else { return };
    let test = "a_whole_entry_that_the_driver_refuses_is_made_again";
    if std::env::var_os(CHILD).is_some() {
        return launch_and_check(&device);
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let named = [("TILE_CACHE_DIR", folder.path())];
    finish(start(test, &named));
    let kept = entries(folder.path());
    let key = kept[0].0.strip_suffix(".tile").expect("an entry").to_owned();
    // Content that is no code at all, and an ELF header for x86-64 without anything, each in a file that is whole.
    let mut header = [0; 64];
    header[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    (header[16], header[18], header[20], header[52]) = (2, 62, 1, 64);
    for content in [&b"not linked code"[..], &header] {
        replace_content(&folder.path().join(&kept[0].0), content);
        finish(start(test, &named));
        let again = entries(folder.path());
        assert_eq!(again.len(), 1);
        assert_eq!(again[0].0.strip_suffix(".tile"), Some(&key[..]));
        assert!(again[0].1[84..] != *content && again[0].1[84..].starts_with(b"\x7fELF"));
    }
}

/// Gives an entry another content, with the header that belongs to it.
fn replace_content(path: &Path, content: &[u8]) {
    use sha2::{Digest, Sha256};
    let old = fs::read(path).expect("an entry");
    let covered = [&old[..44], &(content.len() as u64).to_le_bytes()].concat();
    let sum = Sha256::new().chain_update(&covered).chain_update(content).finalize();
    fs::write(path, [&covered[..], &sum[..], content].concat()).expect("written");
}

#[test]
fn sixteen_processes_start_at_once() {
    let Some(device) = gpu() else { return };
    if std::env::var_os(CHILD).is_some() {
        return launch_and_check(&device);
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let named = [("TILE_CACHE_DIR", folder.path())];
    for round in 0..2 {
        let children: Vec<_> = (0..16).map(|_| start("sixteen_processes_start_at_once", &named)).collect();
        children.into_iter().for_each(finish);
        assert_eq!(entries(folder.path()).len(), 1, "round {round}");
    }
}

#[test]
fn linked_code_is_what_the_driver_would_have_loaded() {
    let Some(device) = gpu() else { return };
    let test = "linked_code_is_what_the_driver_would_have_loaded";
    if let Some(report) = std::env::var_os("TILE_TEST_REPORT") {
        let module = Module::load_ptx(&device, PTX, "nothing").expect("valid PTX");
        let attributes = module.function("nothing").expect("the entry is there").attributes();
        let kept = cache::dir().map_or(0, |folder| entries(&folder).len());
        fs::write(report, format!("{kept} {attributes:?}")).expect("written");
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let report = tempfile::NamedTempFile::new().expect("a temporary file");
    let run = |switch: &str| {
        let variables = [
            ("TILE_CACHE_DIR", folder.path()),
            ("TILE_CACHE", Path::new(switch)),
            ("TILE_TEST_REPORT", report.path()),
        ];
        finish(start(test, &variables));
        fs::read_to_string(report.path()).expect("the report of the child")
    };
    let (off, built, loaded) = (run("off"), run("on"), run("on"));
    let (none, attributes) = off.split_once(' ').expect("two parts");
    assert_eq!(none, "0");
    assert_eq!(built, format!("1 {attributes}"));
    assert_eq!(loaded, built);
    // The file is found through the public type too: nothing else is in the folder.
    assert_eq!(DiskCache::new(folder.path(), 1 << 20).clear().expect("removed"), 1);
}
