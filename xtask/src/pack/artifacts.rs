//! Builds in release mode and learns from cargo's messages where the programs are.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::process::{cargo, output};

/// A program that cargo built.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Artifact {
    /// The folder of its package.
    pub(super) package: String,
    pub(super) name: String,
    /// `bin`, `example` or `test`.
    pub(super) kind: String,
    pub(super) executable: PathBuf,
}

impl Artifact {
    /// Whether it is a program, rather than a test.
    pub(super) fn is_program(&self) -> bool {
        self.kind == "bin" || self.kind == "example"
    }
}

/// Runs `cargo ARGS --release` and returns the programs that it made, sorted.
pub(super) fn build(args: &[&str]) -> Result<Vec<Artifact>> {
    let messages = output(cargo(args).args(["--release", "--message-format=json-render-diagnostics"]))?;
    let mut programs: Vec<Artifact> = messages.lines().filter_map(artifact).collect();
    programs.sort();
    Ok(programs)
}

/// The program that a message tells of, if it does. A message is one line of JSON without spaces.
fn artifact(message: &str) -> Option<Artifact> {
    if !message.starts_with(r#"{"reason":"compiler-artifact""#) {
        return None;
    }
    let executable = PathBuf::from(text_after(message, r#""executable":"#)?);
    let manifest = text_after(message, r#""manifest_path":"#)?;
    let package = Path::new(&manifest).parent()?.file_name()?.to_string_lossy().into_owned();
    let target = message.split_once(r#""target":{"#)?.1;
    let kind = text_after(target, r#""kind":["#)?;
    let name = text_after(target, r#""name":"#)?;
    Some(Artifact { package, name, kind, executable })
}

/// The JSON string right after `key`; none if something else stands there.
fn text_after(json: &str, key: &str) -> Option<String> {
    let mut chars = json.split_once(key)?.1.strip_prefix('"')?.chars();
    let mut text = String::new();
    loop {
        match chars.next()? {
            '"' => return Some(text),
            // Paths hold no other escapes than those of a quote and a backslash.
            '\\' => text.push(chars.next()?),
            c => text.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_cargo_are_read() {
        let message = r#"{"reason":"compiler-artifact","package_id":"path+file:///p/tests#tile-tests@0.1.0","manifest_path":"/p/tests/Cargo.toml","target":{"kind":["test"],"crate_types":["bin"],"name":"gpu","src_path":"/p/tests/tests/gpu.rs","edition":"2024","doc":false,"doctest":false,"test":true},"profile":{"opt_level":"3","debuginfo":0,"debug_assertions":false,"overflow_checks":false,"test":true},"features":[],"filenames":["/p/t/release/deps/gpu-1"],"executable":"/p/t/release/deps/gpu-1","fresh":false}"#;
        let expected = Artifact {
            package: "tests".into(),
            name: "gpu".into(),
            kind: "test".into(),
            executable: "/p/t/release/deps/gpu-1".into(),
        };
        assert_eq!(artifact(message), Some(expected));
        assert_eq!(
            artifact(&message.replace(r#""executable":"/p/t/release/deps/gpu-1""#, r#""executable":null"#)),
            None
        );
        assert_eq!(artifact(r#"{"reason":"build-finished","success":true}"#), None);
    }
}
