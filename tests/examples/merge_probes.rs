//! Puts what a GPU gave for probes into the data file: `cargo run -p tile-tests --example merge_probes -- FILE`.
//!
//! `FILE` is what `PROBES_OUT` wrote. Outputs of probes as they are now are taken; those of other inputs are named and left
//! out, also from the data file. At the end it says which probes still have no data.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use tile_tests::probes;

type Outputs = BTreeMap<String, Vec<u8>>;

fn load(path: &Path) -> Result<Outputs, String> {
    let name = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let file = std::fs::read(path).map_err(|error| name(&error))?;
    let tensors = SafeTensors::deserialize(&file).map_err(|error| name(&error))?;
    Ok(tensors.tensors().into_iter().map(|(key, tensor)| (key, tensor.data().to_vec())).collect())
}

fn save(path: &Path, outputs: &Outputs) -> Result<(), String> {
    let views = outputs.iter().map(|(key, bytes)| {
        (key, TensorView::new(Dtype::U8, vec![bytes.len()], bytes).expect("bytes of a known length"))
    });
    let file = safetensors::serialize(views, None).map_err(|error| error.to_string())?;
    std::fs::write(path, file).map_err(|error| format!("{}: {error}", path.display()))
}

fn main() -> Result<(), String> {
    let from = std::env::args().nth(1).ok_or("expected the file that PROBES_OUT wrote")?;
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("data/probes/h200.safetensors");
    let (mut held, mut new) = (load(&path)?, load(Path::new(&from))?);
    let (mut outputs, mut missing, mut changed) = (Outputs::new(), Vec::new(), 0);
    for probe in probes::all() {
        let key = probe.key();
        let (before, found) = (held.remove(&key), new.remove(&key));
        changed += usize::from(found.is_some() && found != before);
        match found.or(before) {
            Some(bytes) if bytes.len() == probe.output => drop(outputs.insert(key, bytes)),
            Some(bytes) => return Err(format!("{key}: {} bytes, expected {}", bytes.len(), probe.output)),
            None => missing.push(probe.name),
        }
    }
    save(&path, &outputs)?;
    new.keys().for_each(|key| println!("left out, no such probe: {key}"));
    held.keys().for_each(|key| println!("dropped from the data, no such probe: {key}"));
    missing.iter().for_each(|name| println!("still without data: {name}"));
    println!("{changed} new, {} in all, {} without data", outputs.len(), missing.len());
    Ok(())
}
