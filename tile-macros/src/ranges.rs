//! Source ranges: from the place that `Location::caller` reports to the whole construct, and the function's text.

use std::collections::BTreeMap;

use proc_macro2::{Delimiter, LineColumn, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote_spanned};

use crate::args::Krate;

/// `[start line, start column, end line, end column]`, 1-based, the end exclusive.
type Range = [usize; 4];

/// The table of one function. Stable Rust cannot join spans, so a run-time location is one point; this gives it back
/// its extent.
#[derive(Default)]
pub(crate) struct Ranges(BTreeMap<[usize; 2], Range>);

impl Ranges {
    /// Whatever is located at the start of `key` stands for all of `whole`. The first note for a key stays.
    pub(crate) fn note(&mut self, key: Span, whole: &impl ToTokens) {
        let (first, last) = ends(whole.to_token_stream(), key);
        self.note_between(key, first, last);
    }

    /// As [`note`](Self::note), for everything from the start of `first` to the end of `last`.
    pub(crate) fn note_between(&mut self, key: Span, first: Span, last: Span) {
        let (key, start, end) = (key.start(), first.start(), last.end());
        self.0.entry([key.line, key.column + 1]).or_insert([
            start.line,
            start.column + 1,
            end.line,
            end.column + 1,
        ]);
    }

    /// `static __TILE_SOURCE: KernelSource = ..;`
    pub(crate) fn to_static(&self, krate: &Krate, at: Span, item: TokenStream) -> TokenStream {
        let ty = krate.private(at, "KernelSource");
        let (file, (first_line, text)) = (at.file(), text(item));
        let first_line = literal(first_line);
        let rows = self.0.iter().map(|(key, range)| {
            let row = key.iter().chain(range).map(|n| literal(*n));
            quote_spanned!(at=> [#(#row),*])
        });
        quote_spanned!(at=>
            static __TILE_SOURCE: #ty = #ty { file: #file, first_line: #first_line, text: #text, ranges: &[#(#rows),*] };
        )
    }
}

fn literal(n: usize) -> proc_macro2::Literal {
    proc_macro2::Literal::usize_unsuffixed(n)
}

/// The first and the last token's spans.
pub(crate) fn ends(tokens: TokenStream, default: Span) -> (Span, Span) {
    let mut trees = tokens.into_iter();
    let Some(first) = trees.next() else { return (default, default) };
    let last = match trees.last().unwrap_or_else(|| first.clone()) {
        TokenTree::Group(g) if g.delimiter() == Delimiter::None => ends(g.stream(), g.span()).1,
        TokenTree::Group(g) => g.span_close(),
        leaf => leaf.span(),
    };
    let first = match first {
        TokenTree::Group(g) if g.delimiter() == Delimiter::None => ends(g.stream(), g.span()).0,
        TokenTree::Group(g) => g.span_open(),
        leaf => leaf.span(),
    };
    (first, last)
}

/// The function's lines from column 1 on, and the first one's number. Attributes are left out, comments of the signature
/// become blanks, as does what stands before it; the body is exact. Empty where the tokens have no text or stand in no
/// order (functions made by other macros). Needs the tokens as they came: printed again, a group has one span.
fn text(item: TokenStream) -> (usize, String) {
    let mut trees: Vec<TokenTree> = item.into_iter().collect();
    while let [TokenTree::Punct(hash), TokenTree::Group(_), ..] = &trees[..]
        && hash.as_char() == '#'
    {
        trees.drain(..2);
    }
    let Some(body) = trees.pop() else { return (1, String::new()) };
    let mut writer = Writer::default();
    let done = writer.tokens(trees.into_iter().collect()).and_then(|()| writer.put(body.span()));
    match (writer.first, done) {
        (Some(first), Some(())) => (first, writer.text),
        (first, _) => (first.unwrap_or(1), String::new()),
    }
}

#[derive(Default)]
struct Writer {
    text: String,
    first: Option<usize>,
    at: (usize, usize),
}

impl Writer {
    fn tokens(&mut self, tokens: TokenStream) -> Option<()> {
        for tree in tokens {
            match tree {
                TokenTree::Group(g) if g.delimiter() == Delimiter::None => self.tokens(g.stream())?,
                TokenTree::Group(g) => {
                    self.put(g.span_open())?;
                    self.tokens(g.stream())?;
                    self.put(g.span_close())?;
                }
                leaf => self.put(leaf.span())?,
            }
        }
        Some(())
    }

    fn put(&mut self, span: Span) -> Option<()> {
        let (text, start, end) = (span.source_text()?, span.start(), span.end());
        if self.first.is_none() {
            self.first = Some(start.line);
            self.at = (start.line, 0);
        }
        if self.at == (end.line, end.column) {
            return Some(()); // the second half of a split token such as `>>`
        }
        self.move_to(start)?;
        self.text.push_str(&text);
        self.at = (end.line, end.column);
        Some(())
    }

    fn move_to(&mut self, to: LineColumn) -> Option<()> {
        if (to.line, to.column) < self.at {
            return None;
        }
        while self.at.0 < to.line {
            self.text.push('\n');
            self.at = (self.at.0 + 1, 0);
        }
        self.text.extend(std::iter::repeat_n(' ', to.column - self.at.1));
        self.at.1 = to.column;
        Some(())
    }
}
