//! The executor gives what a GPU gave: probes of every instruction form, against the outputs that are kept as data. All of
//! them are compared, bit for bit where the instruction is exact, and within the bounds of `tests/src/probes/bounds.rs` where
//! it is not. Where the GPU and the PTX manual differ is in `tests/data/probes/README.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use safetensors::SafeTensors;
use tile_tests::probes;

fn data() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("data/probes/h200.safetensors")
}

const HOW: &str = "the data file holds the output of each probe on one NVIDIA H200, by the probe's key";

fn outputs(file: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let tensors = SafeTensors::deserialize(file).expect("a file in safetensors format");
    tensors.tensors().into_iter().map(|(name, tensor)| (name, tensor.data().to_vec())).collect()
}

#[test]
fn the_executor_gives_what_the_chip_gave() {
    let path = data();
    let file = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}. {HOW}", path.display()));
    let mut chip = outputs(&file);
    let mut failed = Vec::new();
    for probe in probes::all() {
        let Some(theirs) = chip.remove(&probe.key()) else {
            failed.push(format!("{}: no data for this probe, or data of other inputs. {HOW}", probe.name));
            continue;
        };
        for seed in [0, 1] {
            match probe.execute(seed) {
                Err(report) => failed.push(format!("{}, schedule {seed}: {report}", probe.name)),
                Ok(ours) => {
                    let differences = probe.differences(&ours, &theirs);
                    failed
                        .extend(differences.iter().map(|d| format!("{}, schedule {seed}: {d}", probe.name)));
                }
            }
        }
    }
    failed.extend(chip.keys().map(|key| format!("{key}: data without a probe")));
    assert!(failed.is_empty(), "{} differences:\n{}", failed.len(), failed.join("\n"));
}

/// The instructions without a probe: `trap` takes the device's context with it. `Hopper` is a group, whose members count.
const UNPROBED: &[&str] = &["Trap"];
const GROUP: &str = "Hopper";

/// Every variant of an enum, from its source.
fn variants(source: &'static str, name: &str) -> Vec<&'static str> {
    let body = source.split_once(&format!("pub enum {name} {{")).expect("the enum").1;
    let body = body.split_once("\n}").expect("its end").0;
    let lines = body.lines().filter_map(|line| line.strip_prefix("    "));
    let names = lines.filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase()));
    names.map(|line| line.split([' ', '(', ',']).next().expect("a name")).collect()
}

#[test]
fn every_instruction_has_a_probe() {
    let mut seen = BTreeSet::new();
    for probe in probes::all() {
        for line in &probe.module.kernels[0].lines {
            let text = format!("{:?}", line.inst);
            let text = text.strip_prefix(GROUP).map_or(text.as_str(), |rest| &rest[1..]);
            seen.insert(text.split([' ', '(', ')']).next().expect("a name").to_string());
        }
    }
    let plain = variants(include_str!("../../tile-codegen/src/ptx/inst.rs"), "Inst");
    let group = variants(include_str!("../../tile-codegen/src/ptx/hopper.rs"), GROUP);
    assert!(plain.len() > 40 && group.len() > 25, "{plain:?} {group:?}");
    let all = plain.into_iter().filter(|&name| name != GROUP).chain(group);
    let missing: Vec<_> = all.filter(|name| !seen.contains(*name) && !UNPROBED.contains(name)).collect();
    assert!(missing.is_empty(), "no probe for {missing:?}");
}

#[test]
fn names_are_unique() {
    let all = probes::all();
    let names: BTreeSet<_> = all.iter().map(|probe| &probe.name).collect();
    assert_eq!(names.len(), all.len());
}

#[test]
fn another_bit_is_a_difference() {
    for probe in probes::all() {
        let ours = vec![0x11; probe.output];
        assert!(probe.differences(&ours, &ours).is_empty(), "{}", probe.name);
        let mut chip = ours.clone();
        for form in &probe.forms {
            chip[form.offset + form.ty.bytes() as usize - 1] ^= 0x40;
        }
        let found = probe.differences(&ours, &chip);
        assert!(
            found.iter().map(|difference| &difference.form).eq(probe.forms.iter().map(|form| &form.name))
        );
    }
}
