//! Reads IR text, as `print` writes it. A value may be named before its definition, so that text can hold kernels that
//! the verifier refuses; whatever the text, the result is a kernel or a diagnostic.

use std::collections::HashMap;

use super::elem::Elem;
use super::kernel::{Kernel, OpId, ParamKind, Region, RegionId, Stage, TensorFacts, ValueId};
use super::lex::{Spanned, Token, tokens};
use super::loc::LocId;
use super::print::stage_name;
use super::types::{SharedType, TensorType, Type};
use crate::diag::{Diagnostic, Diagnostics};
use crate::layout::{Layout, SharedLayout};
use crate::ops::attr::Parsed;
use crate::ops::{AttrReader, OpKind, TileOp};

mod cursor;
mod layouts;
mod words;

use words::{decimal, literal, place, tile_type};

/// Regions inside regions, at most; deeper text is refused rather than risking the stack.
const MAX_DEPTH: usize = 64;

type Result<T> = std::result::Result<T, Diagnostic>;

/// Reads one kernel. Operations have the places that the text gives them with `@`, or none.
///
/// # Errors
/// One diagnostic with line and column in the file `<text>`, or one for each value that is never defined.
pub fn parse(text: &str) -> std::result::Result<Kernel, Diagnostics> {
    run("<text>", text, false)
}

/// Reads one kernel from a file's text. Operations without a place of their own are placed in that file.
///
/// # Errors
/// As for [`parse`], with places in `file`.
pub fn parse_file(file: &str, text: &str) -> std::result::Result<Kernel, Diagnostics> {
    run(file, text, true)
}

fn run(file: &str, text: &str, own_places: bool) -> std::result::Result<Kernel, Diagnostics> {
    let mut diagnostics = Diagnostics::default();
    let parsed = tokens(file, text).and_then(|tokens| {
        let mut parser = Parser {
            file,
            tokens,
            at: 0,
            own_places,
            depth: 0,
            kernel: Kernel::new(""),
            values: HashMap::new(),
            layouts: HashMap::new(),
            shared: HashMap::new(),
        };
        parser.file()?;
        Ok(parser)
    });
    match parsed {
        Ok(parser) => {
            parser.undefined(&mut diagnostics);
            diagnostics.into_result()?;
            Ok(parser.kernel)
        }
        Err(fault) => {
            diagnostics.push(fault);
            Err(diagnostics)
        }
    }
}

/// A named value: its id, the token that named it first, whether its definition has been read.
struct Named {
    id: ValueId,
    first: usize,
    defined: bool,
}

struct Parser<'t> {
    file: &'t str,
    tokens: Vec<Spanned>,
    at: usize,
    own_places: bool,
    depth: usize,
    kernel: Kernel,
    values: HashMap<String, Named>,
    layouts: HashMap<String, Layout>,
    shared: HashMap<String, SharedLayout>,
}

/// Values and types.
impl Parser<'_> {
    fn value_name(&mut self) -> Result<(String, usize)> {
        match self.peek().clone() {
            Token::Value(name) => {
                self.next();
                Ok((name, self.at - 1))
            }
            _ => Err(self.expected("a value, as `%0`")),
        }
    }

    fn operand(&mut self) -> Result<ValueId> {
        let (name, first) = self.value_name()?;
        if let Some(named) = self.values.get(&name) {
            return Ok(named.id);
        }
        let id = self.kernel.new_value(Type::Error);
        self.values.insert(name, Named { id, first, defined: false });
        Ok(id)
    }

    fn define(&mut self, name: String, at: usize, (ty, layout): (Type, Option<Layout>)) -> Result<ValueId> {
        let id = match self.values.get_mut(&name) {
            Some(named) if named.defined => {
                return Err(self.fault(at, format!("`%{name}` is defined twice")));
            }
            Some(named) => {
                named.defined = true;
                named.id
            }
            None => {
                let id = self.kernel.new_value(Type::Error);
                self.values.insert(name, Named { id, first: at, defined: true });
                id
            }
        };
        self.kernel.values[id].ty = ty;
        self.kernel.values[id].layout = layout;
        Ok(id)
    }

    /// A diagnostic for each value that is used but never defined, in text order.
    fn undefined(&self, out: &mut Diagnostics) {
        let mut list: Vec<_> = self.values.iter().filter(|(_, v)| !v.defined).collect();
        list.sort_by_key(|(_, v)| v.first);
        for (name, named) in list {
            out.push(self.fault(named.first, format!("`%{name}` is never defined")));
        }
    }

    /// `%name: type`, a definition.
    fn typed(&mut self) -> Result<ValueId> {
        let (name, at) = self.value_name()?;
        self.expect(':')?;
        let ty = self.value_type()?;
        self.define(name, at, ty)
    }

    fn value_type(&mut self) -> Result<(Type, Option<Layout>)> {
        let ty = self.ty()?;
        let Token::Layout(name) = self.peek().clone() else { return Ok((ty, None)) };
        let Some(layout) = self.layouts.get(&name).cloned() else {
            return Err(self.fault(self.at, format!("there is no layout `#{name}`")));
        };
        self.next();
        Ok((ty, Some(layout)))
    }

    fn ty(&mut self) -> Result<Type> {
        let at = self.at;
        let word = self.word("a type")?;
        match word.as_str() {
            "error" => Ok(Type::Error),
            "tensor" | "tensor_mut" => {
                self.expect('<')?;
                let elem = self.elem()?;
                self.expect(',')?;
                let rank = self.number("a rank")?;
                self.expect('>')?;
                Ok(Type::Tensor(TensorType { elem, rank, mutable: word == "tensor_mut" }))
            }
            "shared" => {
                self.expect('<')?;
                let elem = self.elem()?;
                self.expect(',')?;
                let layout = self.shared_name()?;
                self.expect('>')?;
                Ok(Type::Shared(SharedType { elem, layout }))
            }
            tile => tile_type(tile).map(Type::Tile).ok_or_else(|| {
                self.fault(
                    at,
                    format!("expected a type as `64x32xf32`, `i32` or `tensor<f32, 2>`, found `{tile}`"),
                )
            }),
        }
    }

    fn elem(&mut self) -> Result<Elem> {
        let at = self.at;
        let word = self.word("an element type")?;
        Elem::from_name(&word)
            .ok_or_else(|| self.fault(at, format!("expected an element type, found `{word}`")))
    }

    fn number(&mut self, what: &str) -> Result<usize> {
        let at = self.at;
        let word = self.word(what)?;
        decimal(&word).ok_or_else(|| self.fault(at, format!("expected {what}, found `{word}`")))
    }

    fn shared_name(&mut self) -> Result<SharedLayout> {
        let Token::Layout(name) = self.peek().clone() else {
            return Err(self.expected("a shared layout, as `#s0`"));
        };
        let Some(layout) = self.shared.get(&name).cloned() else {
            return Err(self.fault(self.at, format!("there is no shared layout `#{name}`")));
        };
        self.next();
        Ok(layout)
    }
}

/// Attributes.
impl Parser<'_> {
    /// `{ name = value, .. }` if one follows; a region's `{` is not followed by `name =`.
    fn attrs(&mut self) -> Result<AttrReader> {
        let mut attrs = AttrReader::default();
        let equals = self.tokens.get(self.at + 2).is_some_and(|t| t.token == Token::Punct('='));
        if *self.peek() != Token::Punct('{') || !matches!(self.second(), Token::Word(_)) || !equals {
            return Ok(attrs);
        }
        self.next();
        attrs.left = self.list('}', |p| {
            let name = p.word("the name of an attribute")?;
            p.expect('=')?;
            Ok((name, p.attr()?))
        })?;
        Ok(attrs)
    }

    fn attr(&mut self) -> Result<Parsed> {
        if self.eat('[') {
            return Ok(Parsed::Ints(self.list(']', Self::int)?));
        }
        if matches!(self.peek(), Token::Layout(_)) {
            return Ok(Parsed::Shared(self.shared_name()?));
        }
        let at = self.at;
        let word = self.word("the value of an attribute")?;
        if let Some(value) = literal(&word) {
            return Ok(value);
        }
        if word.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            return Ok(Parsed::Word(word));
        }
        Err(self.fault(at, format!("expected a number or a word, found `{word}`")))
    }

    fn int(&mut self) -> Result<i64> {
        let at = self.at;
        let word = self.word("a number")?;
        word.parse().map_err(|_| self.fault(at, format!("expected a number, found `{word}`")))
    }

    /// Runs a reader of attributes that belong to the token `at`, and checks that it takes all of them.
    fn read<T>(
        &self,
        at: usize,
        attrs: &mut AttrReader,
        read: impl FnOnce(&mut AttrReader) -> std::result::Result<T, crate::diag::OpError>,
    ) -> Result<T> {
        let place = Some(self.tokens[at].loc(self.file));
        let value = read(attrs).map_err(|error| Diagnostic::from_op(error, place))?;
        match attrs.left.first() {
            None => Ok(value),
            Some((name, _)) => Err(self.fault(at, format!("there is no attribute `{name}` here"))),
        }
    }
}

/// Kernels, regions, operations.
impl Parser<'_> {
    fn file(&mut self) -> Result<()> {
        while let Token::Layout(name) = self.peek().clone() {
            self.layout(name)?;
        }
        self.keyword("kernel")?;
        let Token::Symbol(name) = self.peek().clone() else {
            return Err(self.expected("the name of the kernel, as `@name`"));
        };
        self.next();
        self.kernel.name = name;
        self.expect('(')?;
        self.list(')', Self::param)?;
        let at = self.at;
        let mut attrs = self.attrs()?;
        let (warps, stage) = self.read(at, &mut attrs, |attrs| {
            let warps =
                attrs.left.iter().any(|(n, _)| n == "warps").then(|| attrs.index("warps")).transpose()?;
            Ok((warps, attrs.word("stage")?))
        })?;
        self.kernel.num_warps = warps;
        self.kernel.stage = [Stage::Tile, Stage::LaidOut]
            .into_iter()
            .find(|&s| stage_name(s) == stage)
            .ok_or_else(|| self.fault(at, format!("the stage is `tile` or `laid_out`, found `{stage}`")))?;
        let body = self.kernel.body;
        self.region_into(body)?;
        if *self.peek() == Token::End { Ok(()) } else { Err(self.expected("the end of the text")) }
    }

    /// `#0 = layout { .. }` or `#s0 = shared { .. }`.
    fn layout(&mut self, name: String) -> Result<()> {
        let at = self.at;
        self.next();
        self.expect('=')?;
        let kind = self.word("`layout` or `shared`")?;
        let mut attrs = self.attrs()?;
        let fault = |why: String| self.fault(at, format!("`#{name}` is no layout: {why}"));
        let fresh = match kind.as_str() {
            "layout" => {
                let layout = self.read(at, &mut attrs, layouts::register)?.map_err(fault)?;
                self.layouts.insert(name.clone(), layout).is_none()
            }
            "shared" => {
                let layout = self.read(at, &mut attrs, layouts::shared)?.map_err(fault)?;
                self.shared.insert(name.clone(), layout).is_none()
            }
            _ => return Err(self.fault(at + 2, format!("expected `layout` or `shared`, found `{kind}`"))),
        };
        if fresh { Ok(()) } else { Err(self.fault(at, format!("`#{name}` is defined twice"))) }
    }

    fn param(&mut self) -> Result<()> {
        let name = match self.peek() {
            Token::Value(name) => name.clone(),
            _ => return Err(self.expected("a parameter, as `%x: i32`")),
        };
        let at = self.at;
        let value = self.typed()?;
        let mut attrs = self.attrs()?;
        let kind = match self.kernel.ty(value).clone() {
            Type::Tensor(t) if attrs.left.is_empty() => {
                ParamKind::Tensor(TensorFacts::contiguous(t.rank.min(5), t.elem.bytes()))
            }
            Type::Tensor(_) => self.read(at, &mut attrs, layouts::facts)?,
            Type::Tile(_) | Type::Shared(_) | Type::Error => {
                self.read(at, &mut attrs, |_| Ok(ParamKind::Scalar))?
            }
        };
        self.kernel.params.push(super::kernel::Param { name, value, kind });
        Ok(())
    }

    /// `(%a: i32, ..) { operations }` into a region that is there.
    fn region_into(&mut self, region: RegionId) -> Result<()> {
        if self.depth == MAX_DEPTH {
            return Err(self.fault(self.at, format!("regions are nested more than {MAX_DEPTH} deep")));
        }
        self.depth += 1;
        if self.eat('(') {
            self.kernel.regions[region].args = self.list(')', Self::typed)?;
        }
        self.expect('{')?;
        while !self.eat('}') {
            let op = self.op()?;
            self.kernel.regions[region].ops.push(op);
        }
        self.depth -= 1;
        Ok(())
    }

    fn op(&mut self) -> Result<OpId> {
        let mut results = Vec::new();
        if matches!(self.peek(), Token::Value(_)) {
            results = self.items(Self::value_name)?;
            self.expect('=')?;
        }
        let at = self.at;
        let name = self.word("an operation or `}`")?;
        let mut operands = Vec::new();
        if self.same_line() && matches!(self.peek(), Token::Value(_)) {
            operands = self.items(Self::operand)?;
        }
        let mut attrs = self.attrs()?;
        let kind = match OpKind::parse(&name, &mut attrs) {
            Some(kind) => self.read(at, &mut attrs, |_| kind)?,
            None => return Err(self.fault(at, format!("there is no operation `{name}`"))),
        };
        let mut regions = Vec::new();
        while matches!(self.peek(), Token::Punct('(' | '{')) {
            let region = self.kernel.regions.push(Region::default());
            self.region_into(region)?;
            regions.push(region);
        }
        let types = if self.eat(':') { self.items(Self::value_type)? } else { Vec::new() };
        if types.len() != results.len() {
            let message = format!("`{name}` has {} results and {} result types", results.len(), types.len());
            return Err(self.fault(at, message));
        }
        let loc = self.place(at)?;
        let op = self.kernel.new_op(kind, operands, Vec::new(), loc);
        self.kernel.ops[op].regions = regions;
        for ((name, at), ty) in results.into_iter().zip(types) {
            let value = self.define(name, at, ty)?;
            self.kernel.ops[op].results.push(value);
        }
        Ok(op)
    }

    fn place(&mut self, op: usize) -> Result<LocId> {
        let loc = match self.peek().clone() {
            Token::Place(text) => {
                let loc = place(&text)
                    .ok_or_else(|| self.expected("a place, as `@ file:line:column-line:column`"))?;
                self.next();
                loc
            }
            _ if self.own_places => {
                let mut loc = self.tokens[op].loc(self.file);
                let last = &self.tokens[self.at - 1];
                if last.line == loc.line {
                    loc.end_column = last.end_column;
                }
                loc
            }
            _ => return Ok(LocId::default()),
        };
        Ok(self.kernel.locs.intern(loc))
    }
}
