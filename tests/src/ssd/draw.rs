//! Random problems over a grid of all options, each from its number alone.

use mamba2::case::{Case, Dtype, Skip};
use mamba2::problem::Shape;
use mamba2::resident::run;
use mamba2::{Options, StateType};

use super::bench::Bench;
use super::bound;

/// Multiply-adds of the recurrence in most problems, and in one of sixteen.
const WORK: [usize; 2] = [1 << 16, 1 << 21];

/// A generator of numbers: splitmix64.
struct Random(u64);

impl Random {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number from `low` to `high`.
    fn size(&mut self, low: usize, high: usize) -> usize {
        low + (self.word() % (high - low + 1) as u64) as usize
    }

    fn chance(&mut self, one_in: u64) -> bool {
        self.word().is_multiple_of(one_in)
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.size(0, choices.len() - 1)]
    }

    /// From 0 to 1.
    fn fraction(&mut self) -> f32 {
        (self.word() >> 40) as f32 / (1 << 24) as f32
    }

    /// Nearly normal: the sum of four uniform numbers, with variance 1.
    fn normal(&mut self) -> f32 {
        ((0..4).map(|_| self.fraction()).sum::<f32>() - 2.0) * 3.0_f32.sqrt()
    }

    fn normals(&mut self, count: usize, round: impl Fn(f32) -> f32) -> Vec<f32> {
        (0..count).map(|_| round(self.normal())).collect()
    }

    /// 1 to 256: mostly small, or beside a power of two.
    fn extent(&mut self) -> usize {
        match self.size(0, 3) {
            0 => self.size(1, 16),
            1 => self.one_of(&[1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 80, 96, 127, 128, 129, 255, 256]),
            2 => self.size(1, 64),
            _ => self.size(1, 256),
        }
    }

    /// A token on, before or after the edge of a chunk, or any.
    fn boundary(&mut self, tokens: usize, chunk: usize) -> usize {
        let edge = chunk * self.size(0, tokens / chunk + 1);
        let token = match self.size(0, 3) {
            0 => edge,
            1 => edge.saturating_sub(1),
            2 => edge + 1,
            _ => self.size(0, tokens),
        };
        token.min(tokens)
    }
}

/// One problem, and how it is run.
#[derive(Clone, Debug)]
pub struct Draw {
    /// The problem.
    pub case: Case,
    /// How states between chunks are stored.
    pub state_type: StateType,
}

impl Draw {
    /// Problem number `number`.
    pub fn new(number: u64) -> Self {
        let random = &mut Random(number.wrapping_mul(0x2545_f491_4f6c_dd1d));
        let chunk = random.one_of(&[16, 16, 16, 32, 32, 64, 64, 128, 256]);
        let step = random.chance(10);
        let packing = if step { 0 } else { random.size(0, 3) };
        let shape = sizes(random, chunk, step, packing == 1);
        let dtype = random.one_of(&[Dtype::F32, Dtype::F16, Dtype::BF16]);
        let dt_dtype = random.one_of(&[Dtype::F32, dtype]);
        let offsets = (packing == 1).then(|| offsets(random, shape.tokens, chunk));
        let seq_idx = (packing == 2).then(|| index(random, shape, chunk));
        let rows = offsets.as_ref().map_or(shape.batch, |offsets| offsets.len() - 1);
        let dt_softplus = random.chance(2);
        let Shape { heads, head_dim, state, .. } = shape;
        let initial_states =
            random.chance(2).then(|| random.normals(rows * heads * head_dim * state, |value| value));
        let d = match random.size(0, 2) {
            0 => None,
            1 => Some(Skip::PerHead(random.normals(heads, |value| value))),
            _ => Some(Skip::PerDim(random.normals(heads * head_dim, |value| value))),
        };
        let case = Case {
            shape,
            dtype,
            dt_dtype,
            step,
            chunk: (!random.chance(8)).then_some(chunk),
            x: random.normals(shape.x_len(), |value| dtype.round(value)),
            dt: steps(random, shape.dt_len(), dt_softplus, dt_dtype),
            a: decays(random, heads),
            b: random.normals(shape.b_len(), |value| dtype.round(value)),
            c: random.normals(shape.b_len(), |value| dtype.round(value)),
            d,
            z: random.chance(2).then(|| random.normals(shape.x_len(), |value| dtype.round(2.0 * value))),
            dt_bias: random.chance(2).then(|| random.normals(heads, |value| value)),
            dt_softplus,
            dt_limit: random.one_of(&[
                (0.0, f64::INFINITY),
                (0.0, f64::INFINITY),
                (1.0 / 1024.0, 0.125),
                (0.0, 0.5),
                (0.03125, f64::INFINITY),
            ]),
            initial_states,
            seq_idx,
            cu_seqlens: offsets,
        };
        Self { case, state_type: random.one_of(&[StateType::AsX, StateType::AsX, StateType::F32]) }
    }

    /// What is wrong with the result, in words; none if all is well.
    pub fn fault(&self, bench: &Bench) -> Option<String> {
        let case = &self.case;
        let options = Options { state_type: self.state_type, ..bench.options(None) };
        let chunk = case.chunk.unwrap_or_else(|| mamba2::default_chunk(case.shape));
        match run(&bench.device, case, &options) {
            Ok(found) => bound::fault(case, chunk, &found),
            Err(error) => Some(error.to_string()),
        }
    }
}

/// What matters of a problem, without its values.
impl std::fmt::Display for Draw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Case { shape, dtype, dt_dtype, step, chunk, dt_softplus, dt_limit, .. } = &self.case;
        write!(f, "{shape}, {dtype}, dt {dt_dtype} softplus {dt_softplus} limit {dt_limit:?}, ")?;
        write!(f, "chunk {chunk:?}, step {step}, states {:?}", self.state_type)?;
        let d = self.case.d.as_ref().map(|d| match d {
            Skip::PerHead(_) => "d a head",
            Skip::PerDim(_) => "d a channel",
        });
        let present = [
            d,
            self.case.z.as_ref().map(|_| "z"),
            self.case.dt_bias.as_ref().map(|_| "dt_bias"),
            self.case.initial_states.as_ref().map(|_| "initial_states"),
            self.case.seq_idx.as_ref().map(|_| "seq_idx"),
        ];
        for name in present.into_iter().flatten() {
            write!(f, ", {name}")?;
        }
        match &self.case.cu_seqlens {
            Some(offsets) => write!(f, ", cu_seqlens {offsets:?}"),
            None => Ok(()),
        }
    }
}

/// Sizes whose recurrence is not too much work.
fn sizes(random: &mut Random, chunk: usize, step: bool, single: bool) -> Shape {
    let groups = random.size(1, 3);
    let tokens = match random.size(0, 2) {
        _ if step => random.size(1, 4),
        0 => random.boundary(5 * chunk, chunk).max(1),
        _ => random.size(1, 5 * chunk + 37),
    };
    let mut shape = Shape {
        batch: if single { 1 } else { random.size(1, 3) },
        tokens,
        groups,
        heads: groups * random.size(1, 3),
        head_dim: random.extent(),
        state: random.extent(),
    };
    let most = WORK[usize::from(random.chance(16))];
    let half = |size: &mut usize| *size = size.div_ceil(2);
    while shape.x_len() * shape.state > most {
        match random.size(0, 4) {
            0 => half(&mut shape.batch),
            1 => shape.heads = groups,
            2 => half(&mut shape.head_dim),
            3 => half(&mut shape.state),
            _ => half(&mut shape.tokens),
        }
    }
    shape
}

/// Offsets of up to 6 sequences, some of them empty.
fn offsets(random: &mut Random, tokens: usize, chunk: usize) -> Vec<i32> {
    let mut offsets: Vec<i32> =
        (0..random.size(0, 5)).map(|_| random.boundary(tokens, chunk) as i32).collect();
    if !offsets.is_empty() && random.chance(3) {
        offsets.push(offsets[0]);
    }
    offsets.extend([0, tokens as i32]);
    offsets.sort_unstable();
    offsets
}

/// An index a token with up to 4 boundaries a batch element.
fn index(random: &mut Random, shape: Shape, chunk: usize) -> Vec<i32> {
    let mut index = Vec::new();
    for _ in 0..shape.batch {
        let starts: Vec<usize> =
            (0..random.size(0, 4)).map(|_| random.boundary(shape.tokens, chunk)).collect();
        let first = random.size(0, 9) as i32;
        let number = |token| starts.iter().filter(|&&start| start <= token).count() as i32;
        index.extend((0..shape.tokens).map(|token| first + number(token) % 3));
    }
    index
}

/// Raw step sizes: weak, moderate, or now and then strong; negative ones too.
fn steps(random: &mut Random, count: usize, softplus: bool, dtype: Dtype) -> Vec<f32> {
    let scale = random.one_of(&[0.01, 0.05, 0.05, 0.3, 0.3, 3.0]);
    let mut step = || match softplus {
        true => 1.5 * random.normal() - 3.0,
        false => scale * (random.normal() + 1.0),
    };
    (0..count).map(|_| dtype.round(step())).collect()
}

/// -16 to 0, one sign in 32 positive, which counts as 0.
fn decays(random: &mut Random, heads: usize) -> Vec<f32> {
    let strength = random.one_of(&[0.1, 1.0, 1.0, 4.0, 16.0]);
    (0..heads).map(|_| -strength * if random.chance(32) { -1.0 } else { random.fraction() }).collect()
}

/// Runs the problems of these numbers, each on the bench that `choose` gives, and fails with a list of those that are outside of
/// their bounds.
///
/// # Panics
/// If there are any.
pub fn check(numbers: std::ops::Range<u64>, choose: impl Fn(u64) -> Bench) {
    let mut faults = Vec::new();
    for number in numbers.clone() {
        let draw = Draw::new(number);
        if let Some(fault) = draw.fault(&choose(number)) {
            println!("FAILED {number}: {draw}: {fault}");
            faults.push(number);
        }
    }
    assert!(faults.is_empty(), "{} of {} problems: {faults:?}", faults.len(), numbers.end - numbers.start);
}
