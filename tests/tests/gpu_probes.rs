//! Runs the probes on a GPU, and holds the executor against it. It says "skipped: no device" where there is none.
//!
//! With PROBES_OUT=DIR it writes the outputs to `DIR/probes.safetensors`: one tensor of bytes a probe, named
//! [`Probe::key`]. Each family runs in a process of its own, so that a kernel that the GPU refuses or that never ends takes
//! nothing else with it.

use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use tile_codegen::ptx::print_module;
use tile_runtime::cuda::Module;
use tile_runtime::{Access, Device, DeviceTensor, Use};
use tile_tests::probes::{ENTRY, FAMILIES, Probe};

/// The family that a process runs alone, and where it writes to.
const FAMILY: &str = "PROBES_FAMILY";
const PART: &str = "PROBES_PART";
/// The longest that a family may take.
const LIMIT: Duration = Duration::from_secs(90);

fn words(bytes: &[u8]) -> Vec<u32> {
    let word = |chunk: &[u8]| chunk.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte));
    bytes.chunks(4).map(word).collect()
}

/// The probe's output on a GPU.
fn run(device: &Device, probe: &Probe) -> tile_runtime::Result<Vec<u8>> {
    let module = Module::load_ptx(device, &print_module(&probe.module).text, &probe.name)?;
    let function = module.function(ENTRY)?;
    let input = words(&probe.input);
    let input = DeviceTensor::from_slice(device, &[input.len()], &input)?;
    let output = DeviceTensor::<u32>::zeros(device, &[probe.output.div_ceil(4)])?;
    let uses = [
        Use { storage: input.storage(), access: Access::Read },
        Use { storage: output.storage(), access: Access::Write },
    ];
    let stream = device.default_stream();
    let kernel = &probe.module.kernels[0];
    stream.submit(&uses, || {
        let mut addresses =
            [&input, &output].map(|tensor| tensor.as_any().device_address().expect("on the GPU"));
        let mut parameters: Vec<*mut c_void> =
            addresses.iter_mut().map(|address| std::ptr::from_mut(address).cast()).collect();
        // SAFETY: a probe takes its input and its output, and the uses name both.
        unsafe { function.launch(&stream, [probe.blocks, 1, 1], kernel.reqntid, 0, &mut parameters) }
    })?;
    let words = output.to_vec()?;
    Ok(words.iter().flat_map(|word| word.to_le_bytes()).take(probe.output).collect())
}

fn write(path: &Path, outputs: &[(String, Vec<u8>)]) {
    let view =
        |bytes| TensorView::new(Dtype::U8, vec![<[u8]>::len(bytes)], bytes).expect("bytes of a known length");
    let tensors = outputs.iter().map(|(key, bytes)| (key, view(bytes)));
    let file = safetensors::serialize(tensors, None).expect("names are unique");
    std::fs::write(path, file).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

fn read(path: &Path) -> Vec<(String, Vec<u8>)> {
    let Ok(file) = std::fs::read(path) else { return Vec::new() };
    let tensors = SafeTensors::deserialize(&file).expect("a family wrote it");
    tensors.tensors().into_iter().map(|(name, tensor)| (name, tensor.data().to_vec())).collect()
}

/// What happened to a family's probes.
#[derive(Default)]
struct Tally {
    failed: Vec<String>,
    differing: usize,
}

/// Runs one family, prints what differs from the executor, and writes the outputs to `part`.
fn run_family(device: &Device, probes: &[Probe], part: Option<&Path>) -> Tally {
    let capability = device.compute_capability().expect("a GPU");
    let mut tally = Tally::default();
    let mut outputs = Vec::new();
    for probe in probes {
        let target = probe.module.target;
        if capability < (target.number / 10, target.number % 10) || (target.specific && capability != (9, 0))
        {
            println!("{}: not run, needs {target}", probe.name);
            continue;
        }
        let chip = match run(device, probe) {
            Ok(chip) => chip,
            Err(error) => {
                println!("{}: FAILED on the GPU: {error}", probe.name);
                tally.failed.push(probe.name.clone());
                continue;
            }
        };
        match probe.execute(0) {
            Err(report) => {
                println!("{}: the executor reports {report}", probe.name);
                tally.differing += 1;
            }
            Ok(ours) => {
                let differences = probe.differences(&ours, &chip);
                differences.iter().for_each(|difference| println!("{}: {difference}", probe.name));
                tally.differing += usize::from(!differences.is_empty());
            }
        }
        outputs.push((probe.key(), chip));
    }
    if let Some(part) = part {
        write(part, &outputs);
    }
    tally
}

/// Starts this program again for one family; false if it fails or takes too long.
fn spawn(family: &str, part: &Path) -> bool {
    let program = std::env::current_exe().expect("this program has a path");
    let mut command = Command::new(program);
    command.args(["--exact", "the_executor_gives_what_this_gpu_gives", "--nocapture"]);
    let mut child = command.env(FAMILY, family).env(PART, part).spawn().expect("this program starts again");
    let start = Instant::now();
    while start.elapsed() < LIMIT {
        if let Some(status) = child.try_wait().expect("a child of this process") {
            return status.success();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    println!("{family}: took more than {LIMIT:?}");
    child.kill().expect("a child of this process");
    child.wait().expect("a child of this process");
    false
}

#[test]
fn the_executor_gives_what_this_gpu_gives() {
    let only = std::env::var(FAMILY).ok();
    let out = std::env::var_os("PROBES_OUT").map(PathBuf::from);
    if let (None, Some(out)) = (&only, &out) {
        let mut failed = Vec::new();
        let mut outputs = Vec::new();
        if let Err(error) = Device::cuda(0) {
            println!("skipped: no device ({error})");
            return;
        }
        std::fs::create_dir_all(out).expect("PROBES_OUT names a folder");
        for (family, _) in FAMILIES {
            let part = out.join(format!("{family}.part"));
            if !spawn(family, &part) {
                failed.push(*family);
            }
            outputs.extend(read(&part));
            if part.exists() {
                std::fs::remove_file(&part).expect("a family wrote it");
            }
        }
        write(&out.join("probes.safetensors"), &outputs);
        let bytes: usize = outputs.iter().map(|(_, bytes)| bytes.len()).sum();
        println!("{} probes, {bytes} bytes of output; families with failures: {failed:?}", outputs.len());
        return;
    }
    let device = match Device::cuda(0) {
        Ok(device) => device,
        Err(error) => {
            println!("skipped: no device ({error})");
            return;
        }
    };
    let part = std::env::var_os(PART).map(PathBuf::from);
    let mut all = Tally::default();
    for (family, probes) in
        FAMILIES.iter().filter(|(family, _)| only.as_deref().is_none_or(|only| only == *family))
    {
        let (start, probes) = (Instant::now(), probes());
        let tally = run_family(&device, &probes, part.as_deref());
        let forms: usize = probes.iter().map(|probe| probe.forms.len()).sum();
        println!(
            "{family}: {} probes with {forms} forms in {:.1} s, {} failed, {} differ",
            probes.len(),
            start.elapsed().as_secs_f64(),
            tally.failed.len(),
            tally.differing
        );
        all.failed.extend(tally.failed);
        all.differing += tally.differing;
    }
    assert!(all.failed.is_empty(), "failed on the GPU: {:?}", all.failed);
    assert!(part.is_some() || all.differing == 0, "{} probes differ from the executor", all.differing);
}
