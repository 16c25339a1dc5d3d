//! IR as text: one generic form that knows no operation. `parse` reads it back; printing that gives the same text.
//!
//! ```text
//! kernel @scale(%x: tensor<f32, 1> { align = 16, .. }, %n: i32) { stage = tile } {
//!   %0 = bid { axis = 0 } : i32
//!   %1 = load %x, %0 { shape = [64], pad = 0.0 } : 64xf32
//!   %2 = for %0, %n, %0, %1 (%3: i32, %4: 64xf32) {
//!     yield %4
//!   } : 64xf32
//! }
//! ```
//!
//! * An operation is `results = name operands { attributes } (region arguments) { operations } : result types @ place`;
//!   parts that are empty are left out.
//! * Types are `64x64xf32`, `i32` (a scalar), `tensor<bf16, 4>`, `tensor_mut<bf16, 4>`, `shared<bf16, #s0>`, `error`.
//! * Parameters go by name, other values by number in the order of their definition.
//! * Layouts stand before the kernel, each once, as `#0 = layout { .. }` and `#s0 = shared { .. }`; a value that has a
//!   layout names it after its type: `64x64xf32 #0`.

use std::collections::HashMap;
use std::fmt::Write;

use super::kernel::{Kernel, OpId, ParamKind, RegionId, Stage, TensorFacts, ValueId};
use super::loc::{Loc, LocId};
use super::types::Type;
use crate::layout::{Layout, SharedLayout};
use crate::ops::{Attr, Literal, TileOp};

/// The text of a kernel, without places in the source.
pub fn print(kernel: &Kernel) -> String {
    Printer::new(kernel, false).kernel()
}

/// The text of a kernel, each operation with its place in the source where that is known.
pub fn print_with_locs(kernel: &Kernel) -> String {
    Printer::new(kernel, true).kernel()
}

/// The text of a type; a shared layout is spelled out.
pub fn show_type(ty: &Type) -> String {
    type_text(ty, shared_text)
}

/// What every value is called in text.
#[derive(Debug)]
pub struct Names {
    names: Vec<Option<String>>,
}

impl Names {
    /// Numbers the values of a kernel, whose regions must form a tree.
    pub fn new(kernel: &Kernel) -> Self {
        let mut names = Self { names: vec![None; kernel.values.len()] };
        for param in &kernel.params {
            names.set(param.value, name_text(&param.name));
        }
        for (number, value) in definitions(kernel).into_iter().enumerate() {
            names.set(value, number.to_string());
        }
        names
    }

    fn set(&mut self, value: ValueId, name: String) {
        if let Some(slot) = self.names.get_mut(value.index()) {
            slot.get_or_insert(name);
        }
    }

    /// The name with its `%`; values that nothing defines are `%undefined_N`.
    pub fn of(&self, value: ValueId) -> String {
        match self.names.get(value.index()) {
            Some(Some(name)) => format!("%{name}"),
            _ => format!("%undefined_{}", value.index()),
        }
    }

    /// Several names, separated by commas.
    pub fn list(&self, values: &[ValueId]) -> String {
        values.iter().map(|&v| self.of(v)).collect::<Vec<_>>().join(", ")
    }
}

/// Every value that an operation or a region defines, in print order.
fn definitions(kernel: &Kernel) -> Vec<ValueId> {
    fn region(kernel: &Kernel, id: RegionId, out: &mut Vec<ValueId>) {
        out.extend(&kernel.regions[id].args);
        for &op in &kernel.regions[id].ops {
            out.extend(&kernel.ops[op].results);
            for &inner in &kernel.ops[op].regions {
                region(kernel, inner, out);
            }
        }
    }
    let mut out = Vec::new();
    region(kernel, kernel.body, &mut out);
    out
}

/// The distinct elements of a list in order of first occurrence, with their positions.
struct Table<T> {
    list: Vec<T>,
    index: HashMap<T, usize>,
}

impl<T: Clone + Eq + std::hash::Hash> Table<T> {
    fn new(items: impl IntoIterator<Item = T>) -> Self {
        let mut table = Self { list: Vec::new(), index: HashMap::new() };
        for item in items {
            let list = &mut table.list;
            table.index.entry(item).or_insert_with_key(|item| {
                list.push(item.clone());
                list.len() - 1
            });
        }
        table
    }
}

struct Printer<'k> {
    kernel: &'k Kernel,
    names: Names,
    layouts: Table<&'k Layout>,
    shared: Table<SharedLayout>,
    with_locs: bool,
    out: String,
}

impl<'k> Printer<'k> {
    fn new(kernel: &'k Kernel, with_locs: bool) -> Self {
        let mut values: Vec<ValueId> = kernel.params.iter().map(|p| p.value).collect();
        values.extend(definitions(kernel));
        let mut shared = Vec::new();
        kernel.walk(|_, op| {
            shared.extend(op.kind.attrs().into_iter().filter_map(|(_, attr)| shared_attr(attr)))
        });
        let in_types = values.iter().filter_map(|&v| kernel.ty(v).as_shared().map(|s| s.layout.clone()));
        Self {
            kernel,
            names: Names::new(kernel),
            layouts: Table::new(values.iter().filter_map(|&v| kernel.values[v].layout.as_ref())),
            shared: Table::new(in_types.chain(shared)),
            with_locs,
            out: String::new(),
        }
    }

    fn kernel(mut self) -> String {
        for (i, layout) in self.layouts.list.iter().enumerate() {
            put(&mut self.out, format_args!("#{i} = {}\n", layout_text(layout)));
        }
        for (i, shared) in self.shared.list.iter().enumerate() {
            put(&mut self.out, format_args!("#s{i} = {}\n", shared_text(shared)));
        }
        let params = self.kernel.params.iter().map(|p| {
            let facts = match &p.kind {
                ParamKind::Tensor(facts) => format!(" {}", facts_text(facts)),
                ParamKind::Scalar => String::new(),
            };
            format!("{}: {}{facts}", self.names.of(p.value), self.value_type(p.value))
        });
        let params = params.collect::<Vec<_>>().join(", ");
        let warps = self.kernel.num_warps.map_or(String::new(), |n| format!("warps = {n}, "));
        let stage = stage_name(self.kernel.stage);
        let name = name_text(&self.kernel.name);
        put(&mut self.out, format_args!("kernel @{name}({params}) {{ {warps}stage = {stage} }}"));
        self.region(self.kernel.body, 0);
        self.out.push('\n');
        self.out
    }

    fn region(&mut self, id: RegionId, depth: usize) {
        let region = &self.kernel.regions[id];
        if !region.args.is_empty() {
            let args: Vec<_> = region.args.iter().map(|&v| self.typed(v)).collect();
            put(&mut self.out, format_args!(" ({})", args.join(", ")));
        }
        self.out.push_str(" {\n");
        for &op in &region.ops {
            self.op(op, depth + 1);
        }
        put(&mut self.out, format_args!("{}}}", "  ".repeat(depth)));
    }

    fn op(&mut self, id: OpId, depth: usize) {
        let op = &self.kernel.ops[id];
        self.out.push_str(&"  ".repeat(depth));
        if !op.results.is_empty() {
            put(&mut self.out, format_args!("{} = ", self.names.list(&op.results)));
        }
        self.out.push_str(op.kind.name());
        if !op.operands.is_empty() {
            put(&mut self.out, format_args!(" {}", self.names.list(&op.operands)));
        }
        let attrs = op.kind.attrs();
        if !attrs.is_empty() {
            let attrs: Vec<_> = attrs.iter().map(|(n, a)| format!("{n} = {}", self.attr(a))).collect();
            put(&mut self.out, format_args!(" {{ {} }}", attrs.join(", ")));
        }
        for &region in &op.regions {
            self.region(region, depth);
        }
        if !op.results.is_empty() {
            let types: Vec<_> = op.results.iter().map(|&v| self.value_type(v)).collect();
            put(&mut self.out, format_args!(" : {}", types.join(", ")));
        }
        self.place(op.loc);
        self.out.push('\n');
    }

    fn place(&mut self, loc: LocId) {
        if let Some(loc) = self.kernel.locs.get(loc).filter(|_| self.with_locs) {
            put(&mut self.out, format_args!(" @ {}", loc_text(loc)));
        }
    }

    fn typed(&self, value: ValueId) -> String {
        format!("{}: {}", self.names.of(value), self.value_type(value))
    }

    fn value_type(&self, value: ValueId) -> String {
        let value = &self.kernel.values[value];
        let ty = type_text(&value.ty, |shared| self.shared_name(shared));
        match &value.layout {
            Some(layout) => format!("{ty} #{}", self.layouts.index[layout]),
            None => ty,
        }
    }

    fn shared_name(&self, shared: &SharedLayout) -> String {
        format!("#s{}", self.shared.index[shared])
    }

    fn attr(&self, attr: &Attr) -> String {
        match attr {
            Attr::Int(i) => i.to_string(),
            Attr::Ints(list) => list_text(list),
            Attr::Bool(b) => b.to_string(),
            Attr::Literal(literal) => literal_text(*literal),
            Attr::Elem(elem) => elem.to_string(),
            Attr::Word(word) => (*word).to_string(),
            Attr::Shared(shared) => self.shared_name(shared),
        }
    }
}

/// Appends formatted text; a `String` takes any.
fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to a string succeeds");
}

fn shared_attr(attr: Attr) -> Option<SharedLayout> {
    match attr {
        Attr::Shared(layout) => Some(layout),
        Attr::Int(_) | Attr::Ints(_) | Attr::Bool(_) | Attr::Literal(_) | Attr::Elem(_) | Attr::Word(_) => {
            None
        }
    }
}

fn type_text(ty: &Type, shared: impl Fn(&SharedLayout) -> String) -> String {
    match ty {
        Type::Tile(tile) => tile.to_string(),
        Type::Tensor(t) => {
            format!("tensor{}<{}, {}>", if t.mutable { "_mut" } else { "" }, t.elem, t.rank)
        }
        Type::Shared(s) => format!("shared<{}, {}>", s.elem, shared(&s.layout)),
        Type::Error => "error".to_string(),
    }
}

fn facts_text(facts: &TensorFacts) -> String {
    let unit = facts.unit_axis.map_or(String::new(), |axis| format!("unit_axis = {axis}, "));
    format!(
        "{{ {unit}align = {}, stride_align = {}, extent_align = {}, small = {} }}",
        facts.align,
        list_text(&facts.stride_align),
        list_text(&facts.extent_align),
        facts.offsets_fit_i32
    )
}

fn layout_text(layout: &Layout) -> String {
    format!(
        "layout {{ shape = {}, reg = {}, lane = {}, warp = {} }}",
        list_text(layout.shape()),
        list_text(layout.reg()),
        list_text(layout.lane()),
        list_text(layout.warp())
    )
}

fn shared_text(shared: &SharedLayout) -> String {
    format!(
        "shared {{ shape = {}, elem_bytes = {}, bases = {}, bytes = {}, swizzle = {} }}",
        list_text(&shared.shape),
        shared.elem_bytes,
        list_text(&shared.bases),
        shared.bytes,
        shared.swizzle
    )
}

/// The word for a stage.
pub(super) fn stage_name(stage: Stage) -> &'static str {
    match stage {
        Stage::Tile => "tile",
        Stage::LaidOut => "laid_out",
    }
}

fn loc_text(loc: &Loc) -> String {
    let file = loc.file.replace(['\n', '\r'], " ");
    format!("{file}:{}:{}-{}:{}", loc.line, loc.column, loc.end_line, loc.end_column)
}

/// A literal, so that reading it gives the same bits: the shortest decimal that rounds to the float, `inf`, `-inf`,
/// `nan`, or `nan_0x..` with the bits of another NaN.
fn literal_text(literal: Literal) -> String {
    match literal {
        Literal::Int(i) => i.to_string(),
        Literal::Bool(b) => b.to_string(),
        Literal::Float(bits) => {
            let x = f64::from_bits(bits);
            match x.is_nan() {
                true if bits == f64::NAN.to_bits() => "nan".to_string(),
                true => format!("nan_{bits:#018x}"),
                false => format!("{x:?}"),
            }
        }
    }
}

/// A name as it stands, or in quotes if it is no identifier.
fn name_text(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    if plain {
        return name.to_string();
    }
    let mut quoted = String::from("\"");
    for c in name.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

fn list_text<T: std::fmt::Display>(list: &[T]) -> String {
    format!("[{}]", list.iter().map(T::to_string).collect::<Vec<_>>().join(", "))
}
