//! Results of tuning on disk: kept and found again, whatever lies in the folder and whoever else writes to it.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;
use tile_runtime::cache::Key;
use tile_runtime::timing::Time;
use tile_runtime::tune::{Answer, Point, Question, Store, generation, kernels};
use tile_runtime::{Device, Target};

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn question<'a>(device: &'a Device, bucket: &'a str) -> Question<'a> {
    Question { subject: "a test", device, bucket }
}

fn answer(block: u64) -> Answer {
    let time = Time { median: Duration::from_micros(250), spread: Duration::from_micros(3) };
    Answer { point: Point::new().with("block", block).with("warps", 4), time }
}

fn hash() -> Key {
    kernels(["kernel @one", "kernel @two"])
}

fn load(store: &Store, bucket: &str) -> Option<Answer> {
    store.load(&question(&Device::cpu(), bucket), || Some(hash()))
}

fn save(store: &Store, bucket: &str, answer: &Answer) -> PathBuf {
    store.save(&question(&Device::cpu(), bucket), &hash(), answer).expect("the folder can be written")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").path()).collect()
}

#[test]
fn what_was_kept_is_found_by_all_that_it_depends_on() {
    let folder = folder();
    let store = Store::new(folder.path().join("not yet there"));
    assert_eq!(load(&store, "small"), None);
    let before = generation();
    let path = save(&store, "small", &answer(64));
    assert!(generation() > before);
    assert_eq!(load(&store, "small"), Some(answer(64)));
    assert_eq!(load(&Store::new(store.folder()), "small"), Some(answer(64)), "another process");
    assert_eq!(load(&store, "large"), None);
    let cpu = Device::cpu();
    let other = Question { subject: "another test", ..question(&cpu, "small") };
    assert_eq!(store.load(&other, || Some(hash())), None);
    let changed = || Some(kernels(["kernel @one", "kernel @three"]));
    assert_eq!(store.load(&question(&cpu, "small"), changed), None, "the kernels changed");
    let text = fs::read_to_string(path).expect("text");
    for part in [r#""format": 1"#, r#""block": 64"#, r#""median_us": 250.0"#, r#""bucket": "small""#] {
        assert!(text.contains(part), "{part}: {text}");
    }
    save(&store, "small", &answer(128));
    assert_eq!(load(&store, "small"), Some(answer(128)), "the last one stays");
    assert_eq!(files(store.folder()).len(), 1);
}

#[test]
fn kernels_are_hashed_only_where_an_answer_may_be() {
    let folder = folder();
    let store = Store::new(folder.path());
    save(&store, "small", &answer(64));
    let unasked = store.load(&question(&Device::cpu(), "large"), || unreachable!("nothing is there"));
    assert_eq!(unasked, None);
    assert_eq!(store.load(&question(&Device::cpu(), "small"), || None), None);
}

#[test]
fn parts_of_the_kernels_text_do_not_run_into_each_other() {
    assert_ne!(kernels(["ab", "c"]), kernels(["a", "bc"]));
    assert_eq!(kernels(["ab", "c"]), kernels(vec!["ab".to_owned(), "c".to_owned()]));
}

#[test]
fn damaged_and_foreign_files_are_ignored() {
    let folder = folder();
    let store = Store::new(folder.path());
    let path = save(&store, "small", &answer(64));
    let other = fs::read_to_string(save(&store, "large", &answer(32))).expect("text");
    let good = fs::read_to_string(&path).expect("text");
    let damaged = [
        String::new(),
        "{".to_owned(),
        "[]".to_owned(),
        good[..good.len() / 2].to_owned(),
        good.replace(r#""format": 1"#, r#""format": 2"#),
        good.replace(r#""format": 1"#, r#""format": "1""#),
        good.replace("250.0", "-250.0"),
        good.replace("250.0", "1e300"),
        good.replace("250.0", "null"),
        good.replace(r#""block": 64"#, r#""block": -64"#),
        good.replace(r#""block": 64"#, r#""block": "64""#),
        good.replace(r#""block": 64"#, r#""block": 64.5"#),
        good.replace("a test", "another test"),
        other,
        "x".repeat(1 << 17),
    ];
    for text in damaged {
        fs::write(&path, &text).expect("the file can be written");
        assert_eq!(load(&store, "small"), None, "{text}");
    }
    fs::write(&path, [0xff, 0xfe, 0]).expect("the file can be written");
    assert_eq!(load(&store, "small"), None);
    fs::remove_file(&path).expect("the file is there");
    fs::create_dir(&path).expect("a folder in its place");
    assert_eq!(load(&store, "small"), None);
    assert_eq!(load(&store, "large"), Some(answer(32)), "others are as they were");
    fs::write(folder.path().join("thesis.json"), "{}").expect("the folder can be written");
    fs::remove_dir(&path).expect("the folder is empty");
    save(&store, "small", &answer(16));
    assert_eq!(load(&store, "small"), Some(answer(16)), "and it is made again");
    assert!(folder.path().join("thesis.json").is_file());
}

#[test]
fn many_writers_leave_one_whole_answer() {
    const WRITERS: u64 = 8;
    let folder = folder();
    let store = Store::new(folder.path());
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let store = &store;
            scope.spawn(move || {
                for _ in 0..20 {
                    save(store, "small", &answer(writer));
                    let found = load(store, "small").expect("some writer's answer, whole");
                    assert!(found.point.get("block").is_some_and(|block| block < WRITERS));
                }
            });
        }
    });
    assert_eq!(files(folder.path()).len(), 1, "no file is left half written");
}

#[test]
fn a_folder_that_cannot_be_written_is_an_error_of_saving_alone() {
    let folder = folder();
    let file = folder.path().join("file");
    fs::write(&file, "").expect("the folder can be written");
    let store = Store::new(file.join("tuned"));
    assert_eq!(load(&store, "small"), None);
    assert!(store.save(&question(&Device::cpu(), "small"), &hash(), &answer(1)).is_err());
}

#[test]
fn devices_without_times_have_no_results() {
    let folder = folder();
    let store = Store::new(folder.path());
    for device in [Device::meta(), Device::ptx_executor(&Target::SM_80)] {
        assert!(store.save(&question(&device, "small"), &hash(), &answer(1)).is_err(), "{device}");
        assert_eq!(store.load(&question(&device, "small"), || unreachable!("no such device")), None);
    }
}
