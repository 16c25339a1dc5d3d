//! `cargo xtask pack`: a folder that runs on a GPU machine with a driver and nothing else.

mod artifacts;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use self::artifacts::{Artifact, build};
use crate::process::{command, root, run as run_process};

/// What the GPU machine runs.
const RUN: &str = include_str!("run.sh");
/// The golden files.
const GOLDEN: &str = "tests/data/golden";
/// Most bytes of a pack: it travels with each run.
const MAX_BYTES: u64 = 128 << 20;
/// The newest version of glibc, as 2.N, that programs may ask for.
const MAX_GLIBC: u32 = 36;

/// Builds and packs into `dest`, a path from the root of the workspace.
pub(crate) fn run(dest: &Path) -> Result<()> {
    let dest = root().join(dest);
    let programs = build(&["build", "-p", "mamba2", "-p", "examples", "--bins", "--examples"])?;
    let packages = ["-p", "tile-runtime", "-p", "tile-tests", "-p", "mamba2", "-p", "examples"];
    let tests = build(&[&["test", "--no-run"], packages.as_slice(), &["--test", "gpu*"]].concat())?;

    empty(&dest)?;
    for program in programs.iter().filter(|p| p.is_program()) {
        let (folder, name) = if program.package == "examples" {
            ("examples", &program.name)
        } else if ["mamba2", "first_launch"].contains(&program.name.as_str()) {
            ("bin", &program.name)
        } else {
            continue;
        };
        add(program, &dest.join(folder).join(name))?;
    }
    for test in tests.iter().filter(|t| t.kind == "test") {
        add(test, &dest.join("tests").join(format!("{}-{}", test.package, test.name)))?;
    }
    copy_folder(&root().join(GOLDEN), &dest.join("golden"))?;
    let script = dest.join("run.sh");
    fs::write(&script, RUN)?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    summary(&dest)
}

/// Makes `dest` an empty folder; refuses to delete one that is no pack.
fn empty(dest: &Path) -> Result<()> {
    let occupied = dest.is_dir() && fs::read_dir(dest)?.next().is_some();
    if occupied && !dest.join("run.sh").is_file() {
        bail!("{} is neither empty nor an earlier pack; name another folder", dest.display());
    }
    if occupied {
        fs::remove_dir_all(dest).with_context(|| format!("could not empty {}", dest.display()))?;
    }
    fs::create_dir_all(dest).with_context(|| format!("could not make {}", dest.display()))
}

/// Copies one program without its symbols, and checks what it asks of the machine.
fn add(artifact: &Artifact, to: &Path) -> Result<()> {
    fs::create_dir_all(to.parent().expect("a file in the pack"))?;
    run_process(command("strip").arg("-s").arg("-o").arg(to).arg(&artifact.executable))?;
    let version = newest_glibc(&fs::read(to)?);
    if version > MAX_GLIBC {
        bail!("{} needs glibc 2.{version}; build on a system with 2.{MAX_GLIBC} or older", to.display());
    }
    Ok(())
}

/// The newest N of the names `GLIBC_2.N` in a program; 0 if there is none.
fn newest_glibc(program: &[u8]) -> u32 {
    const NAME: &[u8] = b"GLIBC_2.";
    let number = |at: usize| {
        let digits = program[at + NAME.len()..].iter().take_while(|b| b.is_ascii_digit());
        digits.fold(0u32, |n, b| n.saturating_mul(10).saturating_add(u32::from(b - b'0')))
    };
    let places = program.windows(NAME.len()).enumerate().filter(|(_, window)| *window == NAME);
    places.map(|(at, _)| number(at)).max().unwrap_or(0)
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

/// Lists what was packed, and fails if a part is missing or all is too large.
fn summary(dest: &Path) -> Result<()> {
    let mut total = fs::metadata(dest.join("run.sh"))?.len();
    for folder in ["bin", "examples", "tests", "golden"] {
        let mut files: Vec<PathBuf> = match fs::read_dir(dest.join(folder)) {
            Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?,
            Err(_) => bail!("nothing to pack for `{folder}`"),
        };
        files.sort();
        let mut bytes = 0;
        for file in &files {
            bytes += fs::metadata(file)?.len();
        }
        let names: Vec<_> = files.iter().filter_map(|f| f.file_name()).map(|n| n.to_string_lossy()).collect();
        println!("{folder:8}  {:>6.1} MiB  {}", bytes as f64 / (1 << 20) as f64, names.join(" "));
        total += bytes;
    }
    println!("{}: {:.1} MiB", dest.display(), total as f64 / (1 << 20) as f64);
    if total > MAX_BYTES {
        bail!("the pack is larger than {} MiB", MAX_BYTES >> 20);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_glibc_is_found() {
        assert_eq!(newest_glibc(b"x\0GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.4\0GLIBC_PRIVATE"), 34);
        assert_eq!(newest_glibc(b"nothing GLIBC_2"), 0);
    }

    #[test]
    fn a_folder_with_other_files_is_kept() {
        let folder = std::env::temp_dir().join(format!("xtask-pack-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a temporary folder");
        fs::write(folder.join("thesis.txt"), "years of work").expect("a file");
        let error = empty(&folder).expect_err("not a pack").to_string();
        assert!(error.contains("neither empty nor an earlier pack"), "{error}");
        assert!(folder.join("thesis.txt").is_file());
        fs::remove_dir_all(&folder).expect("the folder was made above");
    }
}
