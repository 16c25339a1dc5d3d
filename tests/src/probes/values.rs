//! Operands: the values at which instructions differ from what one expects, and random ones.

use tile_codegen::ptx::{Ty, TyKind};

/// A sequence of random numbers (SplitMix64).
pub(super) struct Random(pub(super) u64);

impl Random {
    /// 64 random bits.
    pub(super) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number in 0..n.
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.bits() % n
    }

    /// A number in -1..1.
    pub(super) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

fn mask(ty: Ty) -> u64 {
    u64::MAX >> (64 - ty.bits())
}

/// Random bits of a type.
pub(super) fn random(ty: Ty, count: usize, seed: u64) -> Vec<u64> {
    let mut random = Random(seed);
    (0..count).map(|_| random.bits() & mask(ty)).collect()
}

/// Edge values of an integer or bit type, without repetition.
pub(super) fn integers(ty: Ty) -> Vec<u64> {
    let top = 1u64 << (ty.bits() - 1);
    let list = [
        0,
        1,
        2,
        3,
        7,
        10,
        31,
        100,
        top - 1,
        top,
        top + 1,
        top / 2,
        u64::MAX,
        u64::MAX - 1,
        0u64.wrapping_sub(3),
        0u64.wrapping_sub(7),
        0x5555_5555_5555_5555,
        0xaaaa_aaaa_aaaa_aaaa,
        0x0123_4567_89ab_cdef,
        0x8000,
    ];
    distinct(list.iter().map(|value| value & mask(ty)))
}

fn distinct(values: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut out = Vec::new();
    for value in values {
        if !out.contains(&value) {
            out.push(value);
        }
    }
    out
}

/// Amounts of a shift.
pub(super) fn amounts() -> Vec<u64> {
    vec![
        0,
        1,
        2,
        7,
        8,
        15,
        16,
        17,
        31,
        32,
        33,
        48,
        63,
        64,
        65,
        100,
        127,
        128,
        255,
        256,
        257,
        1 << 16,
        1 << 31,
        0xffff_ffff,
    ]
}

/// Edge values of a float type.
pub(super) fn floats(ty: Ty) -> Vec<u64> {
    let (eb, mb) = match ty {
        Ty::F16 => (5, 10),
        Ty::BF16 => (8, 7),
        Ty::F64 => (11, 52),
        _ => (8, 23),
    };
    let (bias, inf) = ((1u64 << (eb - 1)) - 1, ((1u64 << eb) - 1) << mb);
    let one = bias << mb;
    let half_ulp_one = one + (1 << mb) * (mb + 1);
    let positive = [
        0,
        1,
        2,
        (1 << mb) - 1,
        1 << (mb - 1),
        1 << mb,
        (1 << mb) + 1,
        one,
        one + 1,
        one - 1,
        one | 1 << (mb - 1),
        one + (1 << mb),
        one - (1 << mb),
        one + 3 * (1 << mb) / 2,
        one + (0x492 << mb >> 10),
        half_ulp_one,
        half_ulp_one | 1 << (mb - 1),
        inf - 1,
        inf - (1 << mb),
        inf,
        inf | 1 << (mb - 1),
        inf | 1,
        (bias / 2) << mb | 5,
        (bias + bias / 2) << mb | 3,
    ];
    let sign = 1u64 << (eb + mb);
    positive.iter().flat_map(|&value| [value, value | sign]).collect()
}

/// Edge values and then random bits of any type.
pub(super) fn edges(ty: Ty, more: usize) -> Vec<u64> {
    let mut values = match ty.kind() {
        TyKind::Float | TyKind::SmallFloat => floats(ty),
        _ => integers(ty),
    };
    values.extend(random(ty, more, u64::from(ty.bits())));
    values
}

/// Every pair of an element of `a` and one of `b`, as two columns.
pub(super) fn pairs(a: &[u64], b: &[u64]) -> (Vec<u64>, Vec<u64>) {
    a.iter().flat_map(|&a| b.iter().map(move |&b| (a, b))).unzip()
}

/// Every triple, as three columns.
pub(super) fn triples(a: &[u64], b: &[u64], c: &[u64]) -> [Vec<u64>; 3] {
    let (ab, last) = pairs(&(0..(a.len() * b.len()) as u64).collect::<Vec<_>>(), c);
    let pick = |list: &[u64], index: u64| list[index as usize];
    let n = b.len() as u64;
    [ab.iter().map(|i| pick(a, i / n)).collect(), ab.iter().map(|i| pick(b, i % n)).collect(), last]
}

/// The bits of an f32.
pub(super) fn f32_bits(value: f64) -> u64 {
    u64::from((value as f32).to_bits())
}
