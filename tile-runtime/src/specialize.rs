//! One kernel for one combination of facts and constants: staged and verified, then prepared for devices on demand.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use tile_codegen::compile::{Compiled, compile};
use tile_codegen::config::Config;
use tile_codegen::cpu::Program;
use tile_codegen::diag::{self, Diagnostics};
use tile_codegen::dsl::{SourceText, Staged, private};
use tile_codegen::ir;
use tile_codegen::passes::{PassCx, canonicalize};
use tile_codegen::simt;
use tile_codegen::target::Target;

use crate::args::{Arg, KernelInfo, StageArgs};
use crate::cuda::{Function, Module, RecentMaps};
use crate::device::Device;
use crate::error::{Error, KernelError, Result};

/// A specialised kernel. What is made of it for devices stays with it.
pub(crate) struct Specialised {
    /// The kernel's name as the user wrote it.
    name: &'static str,
    staged: Staged,
    program: OnceLock<Result<Program>>,
    compiled: Mutex<Vec<Executable>>,
    loaded: RwLock<Vec<Loaded>>,
    /// Held while a module is loaded, so that threads that launch at the same time load it once.
    loading: Mutex<()>,
}

/// The kernel as PTX for one target and configuration, and prepared for the PTX executor once that needs it.
#[derive(Clone)]
struct Executable {
    target: Target,
    config: Config,
    compiled: Arc<Compiled>,
    program: Arc<OnceLock<Result<simt::Program>>>,
}

/// The kernel in the memory of one GPU.
#[derive(Clone)]
pub(crate) struct Loaded {
    pub(crate) device: Device,
    target: Target,
    config: Config,
    pub(crate) function: Arc<Function>,
    pub(crate) compiled: Arc<Compiled>,
    pub(crate) maps: Arc<RecentMaps>,
}

impl Specialised {
    /// Runs the kernel's function on the host, which makes its tile IR, and verifies that.
    ///
    /// # Errors
    /// [`Error::Kernel`] with every fault, also for a panic in the function.
    pub(crate) fn stage(
        info: &KernelInfo,
        args: &[Arg<'_>],
        body: fn(&mut StageArgs<'_>),
    ) -> Result<Arc<Self>> {
        let staged = private::stage(&entry_name(info.name), info.source, |params| {
            body(&mut StageArgs::new(params, args))
        })
        .map_err(|error| kernel_error(info.name, "staged", error.diagnostics, &error.sources))?;
        ir::verify(&staged.kernel)
            .map_err(|faults| kernel_error(info.name, "verified", faults, &staged.sources))?;
        Ok(Arc::new(Self {
            name: info.name,
            staged,
            program: OnceLock::new(),
            compiled: Mutex::default(),
            loaded: RwLock::default(),
            loading: Mutex::default(),
        }))
    }

    pub(crate) fn staged(&self) -> &Staged {
        &self.staged
    }

    /// The kernel prepared for the CPU.
    pub(crate) fn program(&self) -> Result<&Program> {
        let made = self.program.get_or_init(|| {
            let mut kernel = self.staged.kernel.clone();
            // Smaller kernels run faster; this pass asks nothing of the target.
            let config = Config::default();
            let cx = PassCx::new(&Target::SM_80, &config);
            canonicalize::run(&mut kernel, &cx)
                .map_err(|faults| kernel_error(self.name, "simplified", faults, &self.staged.sources))?;
            Program::new(&kernel).map_err(|error| KernelError::plain(self.name, "run on the CPU", &error))
        });
        made.as_ref().map_err(Clone::clone)
    }

    /// The kernel as PTX.
    ///
    /// # Errors
    /// [`Error::Kernel`] if it does not fit the target or the configuration.
    pub(crate) fn compile(&self, target: &Target, config: &Config) -> Result<Arc<Compiled>> {
        Ok(self.executable(target, config)?.compiled)
    }

    /// The kernel as PTX and as a program of the PTX executor, each made the first time.
    ///
    /// # Errors
    /// As [`Specialised::compile`]; [`Error::Kernel`] if the executor does not take it.
    pub(crate) fn execute<T>(
        &self,
        target: &Target,
        config: &Config,
        run: impl FnOnce(&Compiled, &simt::Program) -> Result<T>,
    ) -> Result<T> {
        let Executable { compiled, program, .. } = self.executable(target, config)?;
        let program = program.get_or_init(|| {
            simt::Program::of(&compiled)
                .map_err(|error| KernelError::plain(self.name, "run on the PTX executor", &error))
        });
        run(&compiled, program.as_ref().map_err(Clone::clone)?)
    }

    fn executable(&self, target: &Target, config: &Config) -> Result<Executable> {
        let mut list = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = list.iter().find(|e| e.target == *target && e.config == *config) {
            return Ok(known.clone());
        }
        let Staged { kernel, sources } = &self.staged;
        let compiled = compile(kernel, target, config).map_err(|faults| {
            let phase = format!("compiled for {}{}", target.name, describe(config));
            kernel_error(self.name, &phase, faults, sources)
        })?;
        let (compiled, program) = (Arc::new(compiled), Arc::default());
        let made = Executable { target: *target, config: *config, compiled, program };
        list.push(made.clone());
        Ok(made)
    }

    /// The kernel in the memory of a GPU, loaded the first time.
    ///
    /// # Errors
    /// As [`Specialised::compile`] and [`Module::load_ptx`].
    pub(crate) fn load(&self, device: &Device, target: &Target, config: &Config) -> Result<Loaded> {
        let find = || {
            let list = self.loaded.read().unwrap_or_else(PoisonError::into_inner);
            list.iter().find(|l| l.device == *device && l.target == *target && l.config == *config).cloned()
        };
        if let Some(known) = find() {
            return Ok(known);
        }
        let _one_at_a_time = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = find() {
            return Ok(known);
        }
        let compiled = self.compile(target, config)?;
        let name =
            format!("{} for {}, {} threads{}", self.name, target.name, compiled.threads, describe(config));
        let function = Module::load_ptx(device, &compiled.ptx, &name)?.function(&compiled.entry)?;
        let maps = Arc::new(RecentMaps::new(compiled.maps.len()));
        let device = device.clone();
        let loaded = Loaded { device, target: *target, config: *config, function, compiled, maps };
        self.loaded.write().unwrap_or_else(PoisonError::into_inner).push(loaded.clone());
        Ok(loaded)
    }
}

/// The name of the PTX entry: PTX has ASCII letters only, and keeps one word for itself.
fn entry_name(name: &str) -> String {
    let ascii = name.chars().map(|c| if c.is_ascii() { c.into() } else { format!("_u{:x}", u32::from(c)) });
    let ascii: String = ascii.collect();
    if ascii == "WARP_SZ" { "WARP_SZ_".to_owned() } else { ascii }
}

/// What a configuration asks for, as messages show it; nothing for the default one.
fn describe(config: &Config) -> String {
    match config.num_warps {
        Some(warps) => format!(" with {warps} warps"),
        None => String::new(),
    }
}

/// The lines around a place, as diagnostics show them.
pub(crate) fn source_of<'a>(loc: Option<&ir::Loc>, sources: &'a [SourceText]) -> Option<diag::Source<'a>> {
    let text = loc.and_then(|loc| sources.iter().find(|source| source.contains(loc)))?;
    Some((text.first_line, text.text.as_str()))
}

fn kernel_error(name: &str, phase: &str, faults: Diagnostics, sources: &[SourceText]) -> Error {
    let rendered: Vec<_> = faults
        .iter()
        .map(|fault| {
            let lines = source_of(fault.loc.as_ref(), sources);
            let mut one = Diagnostics::default();
            one.push(fault.clone());
            diag::render(&one, |_| lines)
        })
        .collect();
    Error::Kernel(Box::new(KernelError {
        kernel: name.to_owned(),
        phase: phase.to_owned(),
        text: rendered.join("\n\n"),
        diagnostics: faults,
    }))
}
