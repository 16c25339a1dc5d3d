//! The folder of linked code: damage of every kind, limits, and many threads and processes at once. No GPU is needed.

use std::convert::Infallible;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tile_runtime::cache::{self, DiskCache, Key, Origin};

/// Bytes before the content, as documented.
const HEADER: usize = 84;

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn key(number: u32) -> Key {
    Key::of(&[&number.to_le_bytes()])
}

/// The one file of an entry.
fn file(folder: &Path, key: &Key) -> PathBuf {
    folder.join(format!("{key}.tile"))
}

fn ask(cache: &DiskCache, key: &Key, content: &[u8]) -> (Vec<u8>, Origin) {
    cache.get_or_insert_with(key, || Ok::<_, Infallible>(content.to_vec())).expect("building cannot fail")
}

/// Asserts that `content` had to be built, and is there afterwards.
fn rebuilds(cache: &DiskCache, key: &Key, content: &[u8], what: &str) {
    assert_eq!(ask(cache, key, content), (content.to_vec(), Origin::Built), "{what}");
    assert_eq!(ask(cache, key, b"not asked for"), (content.to_vec(), Origin::Stored), "{what}");
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .expect("a folder")
        .map(|file| file.expect("a file").file_name().into_string().expect("a plain name"))
        .collect();
    names.sort();
    names
}

/// A file made by the documented layout alone.
fn documented(magic: &[u8], format: u32, key: &[u8], length: u64, content: &[u8]) -> Vec<u8> {
    let covered = [magic, &format.to_le_bytes(), key, &length.to_le_bytes()].concat();
    let sum = Sha256::new().chain_update(&covered).chain_update(content).finalize();
    [&covered[..], &sum[..], content].concat()
}

#[test]
fn what_was_built_once_is_found_again() {
    let folder = folder();
    let nested = folder.path().join("made/when/needed");
    let cache = DiskCache::new(&nested, 1 << 20);
    assert_eq!(cache.get(&key(1)), None);
    for (number, content) in [(1, vec![]), (2, vec![7]), (3, (0..=255).cycle().take(100_000).collect())] {
        rebuilds(&cache, &key(number), &content, "the first time");
        // Another process sees the same folder through another value.
        let other = DiskCache::new(&nested, 1 << 20);
        assert_eq!(other.get(&key(number)), Some(content));
    }
    assert_eq!(names(&nested).len(), 3);
    cache.insert(&key(2), b"newer");
    assert_eq!(cache.get(&key(2)).as_deref(), Some(&b"newer"[..]));
    cache.remove(&key(2));
    cache.remove(&key(2));
    assert_eq!((cache.get(&key(2)), names(&nested).len()), (None, 2));
}

#[test]
fn a_failure_to_build_is_passed_on_and_nothing_kept() {
    let folder = folder();
    let cache = DiskCache::new(folder.path(), 1 << 20);
    assert_eq!(cache.get_or_insert_with(&key(1), || Err("no linker")), Err("no linker"));
    assert!(names(folder.path()).is_empty());
    rebuilds(&cache, &key(1), b"code", "after a failure");
}

#[test]
fn keys_tell_their_parts_apart() {
    let keys = [
        Key::of(&[]),
        Key::of(&[b""]),
        Key::of(&[b"", b""]),
        Key::of(&[b"ab", b"c"]),
        Key::of(&[b"a", b"bc"]),
        Key::of(&[b"abc"]),
        Key::of(&[b"abc", b""]),
        Key::of(&[b"sm_90"]),
        Key::of(&[b"sm_90a"]),
    ];
    for (i, a) in keys.iter().enumerate() {
        assert_eq!(keys.iter().filter(|b| *b == a).count(), 1, "key {i} is not unique");
    }
    // The format, then each part after its length, all little-endian.
    let bytes = [&1_u32.to_le_bytes()[..], &2_u64.to_le_bytes(), b"ab", &1_u64.to_le_bytes(), b"c"].concat();
    assert_eq!(keys[3].as_bytes()[..], Sha256::digest(bytes)[..]);
    let digits: String = keys[3].as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(keys[3].to_string(), digits);
}

#[test]
fn files_have_the_documented_layout() {
    let folder = folder();
    let cache = DiskCache::new(folder.path(), 1 << 20);
    let (key, content) = (key(5), b"some linked code");
    cache.insert(&key, content);
    let good = documented(b"TILELINK", 1, key.as_bytes(), 16, content);
    assert_eq!(fs::read(file(folder.path(), &key)).expect("an entry"), good);
    // Whole files with a right checksum that are nevertheless not this entry.
    for (what, bytes) in [
        ("another magic", documented(b"TILELINX", 1, key.as_bytes(), 16, content)),
        ("another format", documented(b"TILELINK", 2, key.as_bytes(), 16, content)),
        ("another key", documented(b"TILELINK", 1, &[9; 32], 16, content)),
        ("a smaller length", documented(b"TILELINK", 1, key.as_bytes(), 15, content)),
        ("a huge length", documented(b"TILELINK", 1, key.as_bytes(), u64::MAX, content)),
    ] {
        fs::write(file(folder.path(), &key), bytes).expect("written");
        rebuilds(&cache, &key, content, what);
    }
}

#[test]
fn truncation_at_every_length_is_noticed() {
    let folder = folder();
    let cache = DiskCache::new(folder.path(), 1 << 20);
    let content: Vec<u8> = (0..200).collect();
    cache.insert(&key(1), &content);
    let path = file(folder.path(), &key(1));
    let whole = fs::read(&path).expect("an entry");
    assert_eq!(whole.len(), HEADER + content.len());
    for length in 0..whole.len() {
        fs::write(&path, &whole[..length]).expect("written");
        assert_eq!(cache.get(&key(1)), None, "{length} bytes");
        assert!(!path.exists(), "{length} bytes: the file is dropped");
    }
    for more in [&b"\0"[..], b"trailing bytes"] {
        fs::write(&path, [&whole, more].concat()).expect("written");
        assert_eq!(cache.get(&key(1)), None);
    }
    // Blocks that a crash left without content.
    fs::write(&path, vec![0; whole.len()]).expect("written");
    rebuilds(&cache, &key(1), &content, "zeros");
}

#[test]
fn every_flipped_bit_is_noticed() {
    let folder = folder();
    let cache = DiskCache::new(folder.path(), 1 << 20);
    let content = b"a little code, every bit of which counts";
    cache.insert(&key(1), content);
    let path = file(folder.path(), &key(1));
    let whole = fs::read(&path).expect("an entry");
    for bit in 0..8 * whole.len() {
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, damaged).expect("written");
        assert_eq!(cache.get(&key(1)), None, "bit {bit}");
    }
    fs::write(&path, whole).expect("written");
    assert_eq!(cache.get(&key(1)).as_deref(), Some(&content[..]), "undamaged");
}

#[test]
fn the_file_of_another_key_is_not_taken() {
    let folder = folder();
    let cache = DiskCache::new(folder.path(), 1 << 20);
    cache.insert(&key(1), b"for one GPU");
    fs::copy(file(folder.path(), &key(1)), file(folder.path(), &key(2))).expect("copied");
    rebuilds(&cache, &key(2), b"for another GPU", "copied");
    assert_eq!(cache.get(&key(1)).as_deref(), Some(&b"for one GPU"[..]));
}

#[test]
fn the_least_recently_used_go_first() {
    let folder = folder();
    let size = (HEADER + 100) as u64;
    let cache = DiskCache::new(folder.path(), 4 * size);
    let content = |number: u32| vec![number as u8; 100];
    let hours_ago = |hours: u64| SystemTime::now() - Duration::from_secs(3600 * hours);
    for number in 1..=4 {
        cache.insert(&key(number), &content(number));
        let file = File::options().write(true).open(file(folder.path(), &key(number))).expect("an entry");
        file.set_modified(hours_ago(10 - u64::from(number))).expect("owned");
    }
    let held = || (1..=9).filter(|&n| file(folder.path(), &key(n)).exists()).collect::<Vec<_>>();
    assert_eq!(held(), [1, 2, 3, 4], "exactly the limit fits");
    // A hit makes the oldest the newest.
    assert_eq!(cache.get(&key(1)), Some(content(1)));
    cache.insert(&key(5), &content(5));
    assert_eq!(held(), [1, 3, 4, 5]);
    cache.insert(&key(6), &content(6));
    assert_eq!(held(), [1, 4, 5, 6]);
    // One of three times the size needs the place of three.
    cache.insert(&key(7), &vec![7; 3 * 100 + 2 * HEADER]);
    assert_eq!(held(), [6, 7]);
    // What is larger than the limit is not kept, and drives nothing out.
    let huge = vec![8; 4 * size as usize - HEADER + 1];
    assert_eq!(ask(&cache, &key(8), &huge).1, Origin::Built);
    assert_eq!(ask(&cache, &key(8), &huge).1, Origin::Built);
    assert_eq!(held(), [6, 7]);
    // A smaller limit, in another process, takes effect with the next write.
    DiskCache::new(folder.path(), size).insert(&key(9), &content(9));
    assert_eq!(held(), [9]);
    assert_eq!(ask(&DiskCache::new(folder.path(), 0), &key(9), b"x"), (b"x".to_vec(), Origin::Built));
}

#[test]
fn files_of_others_are_left_alone() {
    let folder = folder();
    let cache = DiskCache::new(folder.path(), 300);
    let foreign = ["thesis.txt", "abc.tile", &format!("{}.tiles", key(1)), &format!("{}.tmp", key(1))];
    for name in foreign {
        fs::write(folder.path().join(name), vec![0; 1000]).expect("written");
    }
    let [fresh, abandoned] = [3, 4].map(|process| folder.path().join(format!("{}-{process}-0.tmp", key(1))));
    fs::write(&fresh, b"being written").expect("written");
    let file = File::create(&abandoned).expect("written");
    file.set_modified(SystemTime::now() - Duration::from_secs(2 * 3600)).expect("owned");
    for number in 0..10 {
        cache.insert(&key(number), &[0; 100]);
    }
    assert!(fresh.exists() && !abandoned.exists());
    assert_eq!(names(folder.path()).len(), foreign.len() + 2);
    assert_eq!(cache.clear().expect("all can be removed"), 2);
    let mut expected = foreign.map(str::to_owned);
    expected.sort();
    assert_eq!(names(folder.path()), expected);
    assert_eq!(DiskCache::new(folder.path().join("absent"), 300).clear().expect("nothing to do"), 0);
}

#[test]
fn a_folder_that_cannot_be_used_is_as_good_as_none() {
    let folder = folder();
    let plain = folder.path().join("a file");
    fs::write(&plain, b"text").expect("written");
    for unusable in [plain.clone(), plain.join("below")] {
        let cache = DiskCache::new(&unusable, 1 << 20);
        for _ in 0..2 {
            assert_eq!(ask(&cache, &key(1), b"code"), (b"code".to_vec(), Origin::Built));
        }
        cache.remove(&key(1));
        assert!(cache.clear().is_err(), "{unusable:?} is no folder");
    }
    assert_eq!(fs::read(&plain).expect("still there"), b"text");
}

#[test]
fn an_entry_that_is_no_file_is_built_each_time() {
    let folder = folder();
    let cache = DiskCache::new(folder.path(), 1 << 20);
    fs::create_dir(file(folder.path(), &key(1))).expect("made");
    for _ in 0..2 {
        assert_eq!(ask(&cache, &key(1), b"code"), (b"code".to_vec(), Origin::Built));
    }
    assert_eq!(names(folder.path()).len(), 1, "nothing half written stays");
    // Too large to be read; replaced.
    File::create(file(folder.path(), &key(2))).and_then(|file| file.set_len(1 << 40)).expect("a sparse file");
    rebuilds(&cache, &key(2), b"code", "a sparse file");
}

#[cfg(unix)]
#[test]
fn links_and_pipes_in_place_of_entries_are_replaced() {
    let folder = folder();
    let cache = DiskCache::new(folder.path(), 1 << 20);
    std::os::unix::fs::symlink("/dev/zero", file(folder.path(), &key(1))).expect("linked");
    rebuilds(&cache, &key(1), b"code", "a link");
    let pipe = Command::new("mkfifo").arg(file(folder.path(), &key(2))).status();
    if pipe.is_ok_and(|status| status.success()) {
        rebuilds(&cache, &key(2), b"code", "a pipe");
    }
}

#[cfg(unix)]
#[test]
fn a_read_only_folder_still_serves_what_it_has() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder();
    let cache = DiskCache::new(folder.path(), 1 << 20);
    cache.insert(&key(1), b"kept");
    cache.insert(&key(2), b"damaged");
    fs::write(file(folder.path(), &key(2)), b"gone").expect("written");
    cache.insert(&key(3), b"secret");
    let mode =
        |path: &Path, bits| fs::set_permissions(path, fs::Permissions::from_mode(bits)).expect("owned");
    mode(&file(folder.path(), &key(3)), 0o000);
    mode(folder.path(), 0o500);
    let enforced = File::create(folder.path().join("probe")).is_err();
    assert_eq!(ask(&cache, &key(1), b"x"), (b"kept".to_vec(), Origin::Stored));
    for _ in 0..2 {
        let (bytes, origin) = ask(&cache, &key(2), b"made");
        assert_eq!(bytes, b"made");
        // Permissions do not bind the superuser.
        assert!(origin == Origin::Built || !enforced);
    }
    let (bytes, _) = ask(&cache, &key(3), b"secret");
    assert_eq!(bytes, b"secret");
    mode(folder.path(), 0o700);
}

/// The content that everyone agrees on for a number: up to 20 kB.
fn agreed(number: u32) -> Vec<u8> {
    (0..(number * 7919) % 20_000).map(|i| (i.wrapping_mul(31) ^ number) as u8).collect()
}

const SHARED_KEYS: u32 = 24;
/// About half of what all keys together take, so that entries are evicted all the time.
const SHARED_LIMIT: u64 = 120_000;

/// Uses, removes and damages entries of a shared folder. Whatever others do, the bytes are right.
fn hammer(folder: &Path, seed: u32, rounds: u32) {
    let cache = DiskCache::new(folder, SHARED_LIMIT);
    let mut state = seed.wrapping_mul(2_654_435_761) | 1;
    for round in 0..rounds {
        // xorshift32.
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        let number = (state >> 8) % SHARED_KEYS;
        match state % 16 {
            0 => cache.remove(&key(number)),
            // Damage as of a disk: the end is lost, or a byte is another.
            1 => {
                if let Ok(file) = File::options().write(true).open(file(folder, &key(number))) {
                    let _ = file.set_len(u64::from(round) * 13 % 5000);
                }
            }
            2 => {
                if let Ok(mut file) = File::options().write(true).open(file(folder, &key(number))) {
                    let _ = file.write_all(b"X");
                }
            }
            3 if round % 64 == 0 => {
                cache.clear().expect("the folder can be listed");
            }
            _ => {
                let (bytes, _) = ask(&cache, &key(number), &agreed(number));
                assert!(bytes == agreed(number), "key {number}, round {round}, seed {seed}");
            }
        }
    }
}

/// After the storm: the limit holds, nothing half written is left by those who finished, and every entry is right.
fn check_shared(folder: &Path, abandoned: usize) {
    let cache = DiskCache::new(folder, SHARED_LIMIT);
    cache.insert(&key(SHARED_KEYS), b"one more, which evicts");
    let sizes = names(folder)
        .iter()
        .filter(|name| name.ends_with(".tile"))
        .map(|name| fs::metadata(folder.join(name)).expect("no one else is left").len())
        .sum::<u64>();
    assert!(sizes <= SHARED_LIMIT, "{sizes} bytes");
    let temporary = names(folder).iter().filter(|name| name.ends_with(".tmp")).count();
    assert!(temporary <= abandoned, "{temporary} files are half written");
    for number in 0..SHARED_KEYS {
        assert_eq!(ask(&cache, &key(number), &agreed(number)).0, agreed(number));
        assert_eq!(ask(&cache, &key(number), b"").1, Origin::Stored);
    }
}

#[test]
fn sixteen_threads_share_a_folder() {
    let folder = folder();
    std::thread::scope(|scope| {
        for seed in 0..16 {
            let path = folder.path();
            scope.spawn(move || hammer(path, seed + 1, 300));
        }
    });
    check_shared(folder.path(), 0);
}

/// This very test, run again by itself in another process with one more variable.
fn again(test: &str, variable: &str, value: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(variable, value);
    command
}

#[test]
fn sixteen_processes_share_a_folder() {
    const CHILD: &str = "TILE_TEST_HAMMER";
    if let Ok(child) = std::env::var(CHILD) {
        let (seed, folder) = child.split_once(' ').expect("a seed and a folder");
        hammer(Path::new(folder), seed.parse().expect("a number"), 200);
        return;
    }
    let folder = folder();
    let start = |seed: u32| {
        let child = format!("{seed} {}", folder.path().display());
        again("sixteen_processes_share_a_folder", CHILD, &child)
            .stdout(Stdio::null())
            .spawn()
            .expect("this program runs")
    };
    let mut victims: Vec<_> = (101..105).map(start).collect();
    let children: Vec<_> = (1..17).map(start).collect();
    // Some end in the middle of whatever they do.
    for victim in &mut victims {
        std::thread::sleep(Duration::from_millis(20));
        victim.kill().expect("a child");
        victim.wait().expect("a child");
    }
    for mut child in children {
        assert!(child.wait().expect("a child").success());
    }
    check_shared(folder.path(), victims.len());
}

#[test]
fn the_environment_chooses_the_folder_of_a_process() {
    const CHILD: &str = "TILE_TEST_DIR";
    if std::env::var_os(CHILD).is_some() {
        let removed = cache::clear().expect("the folder can be listed");
        println!("dir {:?} removed {removed}", cache::dir());
        return;
    }
    let folder = folder();
    let entries = DiskCache::new(folder.path(), 1 << 20);
    let run = |settings: &[(&str, &Path)]| {
        for number in 0..3 {
            entries.insert(&key(number), b"code");
        }
        let mut command = again("the_environment_chooses_the_folder_of_a_process", CHILD, "");
        for name in ["TILE_CACHE", "TILE_CACHE_DIR", "TILE_CACHE_MAX_MIB"] {
            command.env_remove(name);
        }
        let output = command.envs(settings.iter().copied()).output().expect("this program runs");
        assert!(output.status.success());
        String::from_utf8(output.stdout).expect("text")
    };
    let named = ("TILE_CACHE_DIR", folder.path());
    let expected = format!("dir Some({:?}) removed 3", folder.path());
    let text = run(&[named]);
    assert!(text.contains(&expected), "{text}");
    let text = run(&[named, ("TILE_CACHE", Path::new("off"))]);
    assert!(text.contains("dir None removed 0"), "{text}");
    assert_eq!(names(folder.path()).len(), 3, "what another process keeps stays");
    if cfg!(target_os = "linux") {
        let text = run(&[("XDG_CACHE_HOME", folder.path())]);
        let expected = format!("dir Some({:?}) removed 0", folder.path().join("tile-runtime"));
        assert!(text.contains(&expected), "{text}");
    }
}
