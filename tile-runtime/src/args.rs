//! The arguments of one launch: the list that the host function fills, and what staging reads back from it.

use std::any::Any;
use std::borrow::Cow;

use smallvec::SmallVec;
use tile_codegen::dsl::private::{KernelSource, Params};
use tile_codegen::ir::{Elem, TensorFacts};

use crate::cpu_buffer::CpuBuffer;
use crate::facts::{self, PackedFacts};
use crate::tensor_any::AnyTensor;

/// What a kernel is called and where it stands in the source.
#[derive(Debug, Clone, Copy)]
pub struct KernelInfo {
    /// Its name.
    pub name: &'static str,
    /// The module that defines it.
    pub module: &'static str,
    /// Its source.
    pub source: &'static KernelSource,
}

/// The words that tell specialisations of one kernel apart.
pub(crate) type Words = SmallVec<[u64; 36]>;

/// Collects what tells the values of a constant apart; see [`ConstParam::key`](crate::ConstParam::key).
#[derive(Debug)]
pub struct ConstKey<'a>(&'a mut Words);

impl ConstKey<'_> {
    /// Adds 64 bits.
    pub fn word(&mut self, word: u64) {
        self.0.push(word);
    }
}

/// One argument.
pub(crate) struct Arg<'a> {
    /// The parameter's name.
    pub(crate) name: &'static str,
    pub(crate) value: ArgValue<'a>,
}

pub(crate) enum ArgValue<'a> {
    Tensor(TensorArg<'a>),
    /// The bits of a number, in the lowest bytes.
    Scalar {
        elem: Elem,
        bits: u64,
    },
    Const(Box<dyn Any + Send + Sync>),
    /// Whether the argument of an `Option` parameter is there; the argument itself follows.
    Presence(bool),
}

/// A tensor argument.
#[derive(Clone, Copy)]
pub(crate) struct TensorArg<'a> {
    pub(crate) tensor: &'a AnyTensor,
    /// Whether the kernel may write to it.
    pub(crate) mutable: bool,
    /// The rank that the parameter declares.
    pub(crate) rank: usize,
    facts: PackedFacts,
}

impl<'a> TensorArg<'a> {
    /// The tensor's memory, for launches that run in this process.
    pub(crate) fn host(&self) -> &'a CpuBuffer {
        self.tensor.storage().cpu().expect("the arguments are in the CPU's memory")
    }
}

/// The arguments of a launch, in the order of the parameters.
pub struct ArgList<'a> {
    pub(crate) args: SmallVec<[Arg<'a>; 24]>,
    /// What the kernel is specialised by: two words for the kernel, then those of each argument.
    pub(crate) words: Words,
}

impl<'a> ArgList<'a> {
    /// No arguments.
    #[expect(clippy::new_without_default, reason = "the attribute calls `new`")]
    pub fn new() -> Self {
        // Room for the kernel itself.
        Self { args: SmallVec::new(), words: SmallVec::from_slice(&[0, 0]) }
    }

    /// Adds a tensor. One of the wrong rank is reported by the launch.
    pub(crate) fn tensor(&mut self, name: &'static str, tensor: &'a AnyTensor, mutable: bool, rank: usize) {
        let fits = tensor.view().rank() <= facts::MAX_RANK;
        let facts = if fits { PackedFacts::of(tensor) } else { PackedFacts(0) };
        let kind = (tensor.elem() as u64) << 1 | u64::from(mutable);
        self.words.push(facts.0 | kind << facts::BITS);
        self.push(name, ArgValue::Tensor(TensorArg { tensor, mutable, rank, facts }));
    }

    /// Adds a number that the kernel gets at run time.
    pub(crate) fn scalar(&mut self, name: &'static str, elem: Elem, bits: u64) {
        self.words.push(elem as u64);
        self.push(name, ArgValue::Scalar { elem, bits });
    }

    /// Adds a constant, whose `key` tells its values apart.
    pub(crate) fn constant<T: Any + Send + Sync>(
        &mut self,
        name: &'static str,
        value: T,
        key: impl FnOnce(&T, &mut ConstKey<'_>),
    ) {
        key(&value, &mut ConstKey(&mut self.words));
        self.push(name, ArgValue::Const(Box::new(value)));
    }

    /// Says whether an optional argument follows.
    pub(crate) fn presence(&mut self, name: &'static str, present: bool) {
        self.words.push(u64::from(present));
        self.push(name, ArgValue::Presence(present));
    }

    fn push(&mut self, name: &'static str, value: ArgValue<'a>) {
        self.args.push(Arg { name, value });
    }

    /// The tensors with their parameters' names.
    pub(crate) fn tensors(&self) -> impl Iterator<Item = (&'static str, TensorArg<'a>)> + Clone + '_ {
        self.args.iter().filter_map(|arg| match &arg.value {
            ArgValue::Tensor(tensor) => Some((arg.name, *tensor)),
            ArgValue::Scalar { .. } | ArgValue::Const(_) | ArgValue::Presence(_) => None,
        })
    }

    /// The arguments that are parameters of the compiled kernel: tensors and scalars.
    pub(crate) fn runtime(&self) -> impl Iterator<Item = &Arg<'a>> {
        self.args.iter().filter(|arg| arg.is_runtime())
    }
}

impl std::fmt::Debug for ArgList<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.args.iter().map(|arg| arg.name)).finish()
    }
}

/// What a kernel's parameters are made of while it is staged, in their order.
pub struct StageArgs<'a> {
    params: &'a mut Params,
    args: &'a [Arg<'a>],
    staged: usize,
}

impl<'a> StageArgs<'a> {
    pub(crate) fn new(params: &'a mut Params, args: &'a [Arg<'a>]) -> Self {
        Self { params, args, staged: 0 }
    }

    /// A tensor parameter: its name and facts, and where to add it.
    pub(crate) fn tensor(&mut self) -> (&mut Params, Cow<'static, str>, TensorFacts) {
        match self.next() {
            Arg { name, value: ArgValue::Tensor(tensor) } => {
                let name = self.distinct(name);
                (self.params, name, tensor.facts.unpack())
            }
            arg => arg.mixed_up(),
        }
    }

    pub(crate) fn scalar(&mut self) -> (&mut Params, Cow<'static, str>) {
        match self.next() {
            Arg { name, value: ArgValue::Scalar { .. } } => {
                let name = self.distinct(name);
                (self.params, name)
            }
            arg => arg.mixed_up(),
        }
    }

    pub(crate) fn constant<T: Any + Clone>(&mut self) -> T {
        let arg = self.next();
        match &arg.value {
            ArgValue::Const(value) => value.downcast_ref().cloned().unwrap_or_else(|| arg.mixed_up()),
            ArgValue::Tensor(_) | ArgValue::Scalar { .. } | ArgValue::Presence(_) => arg.mixed_up(),
        }
    }

    pub(crate) fn presence(&mut self) -> bool {
        match self.next() {
            Arg { value: ArgValue::Presence(present), .. } => *present,
            arg => arg.mixed_up(),
        }
    }

    fn next(&mut self) -> &'a Arg<'a> {
        self.staged += 1;
        self.args
            .get(self.staged - 1)
            .expect("the attribute binds one argument for each parameter that it stages")
    }

    /// The name of the argument read last; with its number, if an earlier one has it too, as `_` may.
    fn distinct(&self, name: &'static str) -> Cow<'static, str> {
        let index = self.staged - 1;
        let taken = self.args[..index].iter().any(|arg| arg.name == name && arg.is_runtime());
        if taken { format!("{name}{index}").into() } else { name.into() }
    }
}

impl std::fmt::Debug for StageArgs<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.args.iter().map(|arg| arg.name)).finish()
    }
}

impl Arg<'_> {
    /// Whether it is a parameter of the compiled kernel.
    fn is_runtime(&self) -> bool {
        matches!(self.value, ArgValue::Tensor(_) | ArgValue::Scalar { .. })
    }

    fn mixed_up(&self) -> ! {
        unreachable!("parameter `{}` is bound and staged by one type", self.name)
    }
}
