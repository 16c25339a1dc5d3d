//! Attributes: the typed constants of an operation, printed by name.

use crate::diag::{Code, OpError};
use crate::ir::Elem;
use crate::layout::SharedLayout;

/// A literal value, exact: floats are kept as f64 bits and rounded once to the element type that uses them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Literal {
    /// The bits of an f64.
    Float(u64),
    /// An integer.
    Int(i64),
    /// A truth value.
    Bool(bool),
}

impl Literal {
    /// A float literal.
    pub fn float(x: f64) -> Literal {
        Literal::Float(x.to_bits())
    }

    /// The value as f64.
    pub fn as_f64(self) -> f64 {
        match self {
            Literal::Float(bits) => f64::from_bits(bits),
            Literal::Int(i) => i as f64,
            Literal::Bool(b) => f64::from(u8::from(b)),
        }
    }

    /// Checks that the literal can be a constant of this element type: integers in range, no floats for integers.
    pub fn check(self, elem: Elem) -> Result<(), OpError> {
        let fits = match (self, elem) {
            (Literal::Float(_) | Literal::Int(_), _) if elem.is_float() => true,
            (Literal::Int(i), Elem::I32) => i32::try_from(i).is_ok(),
            (Literal::Int(i), Elem::U32) => u32::try_from(i).is_ok(),
            (Literal::Int(_), Elem::I64) | (Literal::Bool(_), Elem::Bool) => true,
            (Literal::Float(_) | Literal::Int(_) | Literal::Bool(_), _) => false,
        };
        if fits {
            return Ok(());
        }
        let shown = match self {
            Literal::Float(bits) => format!("{:?}", f64::from_bits(bits)),
            Literal::Int(i) => i.to_string(),
            Literal::Bool(b) => b.to_string(),
        };
        Err(OpError::new(Code::Literal, format!("the literal `{shown}` is no value of `{elem}`"))
            .help(format!("write a literal within the range of `{elem}`, or cast the other side")))
    }
}

/// The value of one attribute.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Attr {
    /// A number.
    Int(i64),
    /// A list of numbers: a shape, axes, an index.
    Ints(Vec<i64>),
    /// A flag.
    Bool(bool),
    /// A literal.
    Literal(Literal),
    /// An element type.
    Elem(Elem),
    /// A word out of a closed set.
    Word(&'static str),
    /// A shared-memory layout.
    Shared(SharedLayout),
}

/// Helpers to make attributes.
impl Attr {
    /// A shape, axes or a static index.
    pub fn list(values: &[usize]) -> Attr {
        Attr::Ints(values.iter().map(|&v| v as i64).collect())
    }

    /// What operations on the stages of a channel or ring have in common.
    pub fn stage(
        channel: usize,
        elem: Elem,
        layout: &SharedLayout,
        stages: usize,
    ) -> Vec<(&'static str, Attr)> {
        vec![
            ("channel", Attr::Int(channel as i64)),
            ("elem", Attr::Elem(elem)),
            ("layout", Attr::Shared(layout.clone())),
            ("stages", Attr::Int(stages as i64)),
        ]
    }
}

/// An attribute as read from text: words are not interned yet.
#[derive(Clone, PartialEq, Debug)]
pub enum Parsed {
    /// See [`Attr`].
    Int(i64),
    /// See [`Attr`].
    Ints(Vec<i64>),
    /// See [`Attr`].
    Bool(bool),
    /// A float literal.
    Float(f64),
    /// A word or an element type.
    Word(String),
    /// See [`Attr`].
    Shared(SharedLayout),
}

/// Reads attributes by name; the parser checks that all were taken.
#[derive(Clone, Debug, Default)]
pub struct AttrReader {
    /// What is left, in text order.
    pub left: Vec<(String, Parsed)>,
}

impl AttrReader {
    fn take(&mut self, name: &str) -> Result<Parsed, OpError> {
        match self.left.iter().position(|(n, _)| n == name) {
            Some(at) => Ok(self.left.remove(at).1),
            None => Err(OpError::new(Code::Parse, format!("the attribute `{name}` is missing"))),
        }
    }

    fn wrong<T>(name: &str, expected: &str) -> Result<T, OpError> {
        Err(OpError::new(Code::Parse, format!("the attribute `{name}` must be {expected}")))
    }

    /// Whether there is such an attribute, for those that may be left out.
    pub fn has(&self, name: &str) -> bool {
        self.left.iter().any(|(n, _)| n == name)
    }
    /// A number that is an axis, a length or a count.
    pub fn index(&mut self, name: &str) -> Result<usize, OpError> {
        match self.take(name)? {
            Parsed::Int(i) if i >= 0 => Ok(i as usize),
            _ => Self::wrong(name, "a number that is not negative"),
        }
    }
    /// A list of such numbers.
    pub fn indices(&mut self, name: &str) -> Result<Vec<usize>, OpError> {
        match self.take(name)? {
            Parsed::Ints(list) if list.iter().all(|&i| i >= 0) => {
                Ok(list.iter().map(|&i| i as usize).collect())
            }
            _ => Self::wrong(name, "a list of numbers that are not negative"),
        }
    }
    /// A flag.
    pub fn flag(&mut self, name: &str) -> Result<bool, OpError> {
        match self.take(name)? {
            Parsed::Bool(b) => Ok(b),
            _ => Self::wrong(name, "`true` or `false`"),
        }
    }
    /// An element type.
    pub fn elem(&mut self, name: &str) -> Result<Elem, OpError> {
        match self.take(name)? {
            Parsed::Word(w) => match Elem::from_name(&w) {
                Some(elem) => Ok(elem),
                None => Self::wrong(name, "an element type"),
            },
            _ => Self::wrong(name, "an element type"),
        }
    }
    /// A literal.
    pub fn literal(&mut self, name: &str) -> Result<Literal, OpError> {
        match self.take(name)? {
            Parsed::Int(i) => Ok(Literal::Int(i)),
            Parsed::Float(x) => Ok(Literal::float(x)),
            Parsed::Bool(b) => Ok(Literal::Bool(b)),
            _ => Self::wrong(name, "a literal"),
        }
    }
    /// One word of a closed set.
    pub fn word(&mut self, name: &str) -> Result<String, OpError> {
        match self.take(name)? {
            Parsed::Word(w) => Ok(w),
            _ => Self::wrong(name, "a word"),
        }
    }
    /// A shared-memory layout.
    pub fn shared(&mut self, name: &str) -> Result<SharedLayout, OpError> {
        match self.take(name)? {
            Parsed::Shared(layout) => Ok(layout),
            _ => Self::wrong(name, "a shared-memory layout"),
        }
    }
    /// The attributes of [`Attr::stage`], in its order.
    pub fn stage(&mut self) -> Result<(usize, Elem, SharedLayout, usize), OpError> {
        Ok((self.index("channel")?, self.elem("elem")?, self.shared("layout")?, self.index("stages")?))
    }
}
