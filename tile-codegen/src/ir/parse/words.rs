//! What single words of IR text mean: numbers, literals, tile types, places.

use crate::ir::{Elem, Loc, TileType};
use crate::ops::attr::Parsed;

/// Digits alone, without sign.
pub(super) fn decimal(word: &str) -> Option<usize> {
    word.bytes().all(|b| b.is_ascii_digit()).then(|| word.parse().ok())?
}

pub(super) fn tile_type(word: &str) -> Option<TileType> {
    let mut parts: Vec<&str> = word.split('x').collect();
    let elem = Elem::from_name(parts.pop()?)?;
    let shape: Option<Vec<usize>> = parts.into_iter().map(decimal).collect();
    Some(TileType::new(elem, shape?))
}

/// A number, a float as `literal_text` writes it, or a truth value.
pub(super) fn literal(word: &str) -> Option<Parsed> {
    match word {
        "true" => return Some(Parsed::Bool(true)),
        "false" => return Some(Parsed::Bool(false)),
        "inf" => return Some(Parsed::Float(f64::INFINITY)),
        "-inf" => return Some(Parsed::Float(f64::NEG_INFINITY)),
        "nan" => return Some(Parsed::Float(f64::NAN)),
        _ => {}
    }
    if let Some(bits) = word.strip_prefix("nan_0x") {
        let x = f64::from_bits(u64::from_str_radix(bits, 16).ok()?);
        return x.is_nan().then_some(Parsed::Float(x));
    }
    if !word.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if let Ok(i) = word.parse() {
        return Some(Parsed::Int(i));
    }
    // A whole number that is no i64 is not silently made a float.
    word.contains(['.', 'e', 'E']).then(|| word.parse().ok().map(Parsed::Float))?
}

pub(super) fn narrow(list: &[usize]) -> Option<Vec<u32>> {
    list.iter().map(|&n| u32::try_from(n).ok()).collect()
}

/// `file:line:column-line:column`, read from the right.
pub(super) fn place(text: &str) -> Option<Loc> {
    let mut parts = text.rsplitn(4, ':');
    let end_column = parts.next()?.parse().ok()?;
    let (column, end_line) = parts.next()?.split_once('-')?;
    let line = parts.next()?.parse().ok()?;
    let file = parts.next()?.to_string();
    Some(Loc { file, line, column: column.parse().ok()?, end_line: end_line.parse().ok()?, end_column })
}
