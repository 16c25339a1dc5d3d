//! Packed sequences: which tokens of a batch element belong together, prepared once for any number of passes.

use tile_runtime::{Device, DeviceTensor};

use crate::error::{Error, Result};

/// Columns of the table of sequences that kernels read.
pub(crate) mod column {
    /// The batch element.
    pub(crate) const BATCH: usize = 0;
    /// The first token; 0 without tokens.
    pub(crate) const START: usize = 1;
    /// The token after the last; 0 without tokens.
    pub(crate) const END: usize = 2;
    /// The row of the initial states, or -1.
    pub(crate) const INITIAL: usize = 3;
    /// The row of the final states, or -1 where the batch element goes on.
    pub(crate) const FINAL: usize = 4;
    /// How many there are.
    pub(crate) const COUNT: usize = 5;
}

/// Which tokens of each batch element belong to one sequence. Nothing flows from one sequence to another.
///
/// Made on the host from offsets or from an index a token, checked, and copied to the device; then it serves any number of
/// passes over inputs of that batch and number of tokens, such as all layers of a model.
///
/// ```
/// # use mamba2::Sequences;
/// # use tile_runtime::Device;
/// # fn run() -> mamba2::Result<()> {
/// let cpu = Device::cpu();
/// // Tokens 0 and 1, none, and 2 to 6.
/// let by_offsets = Sequences::from_cu_seqlens(&cpu, &[0, 2, 2, 7])?;
/// assert_eq!((by_offsets.count(), by_offsets.tokens()), (3, 7));
/// // Runs of equal values: three sequences in one batch element.
/// let by_index = Sequences::from_seq_idx(&cpu, 1, 5, &[0, 0, 1, 0, 0])?;
/// assert_eq!(by_index.count(), 3);
/// # Ok(()) }
/// # run().unwrap();
/// ```
#[derive(Debug, Clone)]
pub struct Sequences {
    batch: usize,
    tokens: usize,
    count: usize,
    /// Whether each sequence has an initial and a final state of its own.
    own_states: bool,
    /// `[sequences, COUNT]`
    pub(crate) table: DeviceTensor<i32>,
    /// `[batch, tokens]`: the row of the table that a token belongs to.
    pub(crate) number: DeviceTensor<i32>,
}

/// One sequence, as tokens `start..end` of a batch element.
struct Sequence {
    batch: usize,
    start: usize,
    end: usize,
    initial: Option<usize>,
    last: bool,
}

impl Sequences {
    /// Sequence `i` is tokens `offsets[i]..offsets[i + 1]` of the only batch element; it may be empty. Initial states are one a
    /// sequence, `[sequences, heads, head_dim, state]`, and so are the states after them,
    /// [`Outputs::sequence_states`](crate::Outputs::sequence_states).
    ///
    /// # Errors
    /// Unless the offsets begin with 0 and do not decrease; if the device fails.
    pub fn from_cu_seqlens<I: Copy + Into<i64>>(device: &Device, offsets: &[I]) -> Result<Self> {
        let offsets: Vec<i64> = offsets.iter().map(|&offset| offset.into()).collect();
        let fault = |found: String, expected: &str| {
            Err(Error::Argument { argument: "cu_seqlens", found, expected: expected.into() })
        };
        match offsets.first() {
            None => {
                return fault(
                    "is empty".into(),
                    "one offset more than there are sequences, the first of them 0",
                );
            }
            Some(0) => {}
            Some(first) => return fault(format!("begins with {first}"), "0 first"),
        }
        if let Some(at) = offsets.windows(2).position(|pair| pair[0] > pair[1]) {
            let (this, next) = (offsets[at], offsets[at + 1]);
            return fault(format!("has {next} at {} after {this}", at + 1), "offsets that never decrease");
        }
        let tokens = offsets[offsets.len() - 1] as usize;
        let last = offsets.windows(2).rposition(|pair| pair[0] < pair[1]);
        let sequences = offsets.windows(2).enumerate().map(|(i, pair)| Sequence {
            batch: 0,
            start: pair[0] as usize,
            end: pair[1] as usize,
            initial: Some(i),
            last: last == Some(i),
        });
        Self::new(device, (1, tokens), true, sequences.collect())
    }

    /// `index` is `[batch, tokens]` in row-major order; a sequence is a run of tokens with equal values, so that
    /// `[0, 1, 0]` are three. Initial states are one a batch element, `[batch, heads, head_dim, state]`, and feed the
    /// sequence at token 0, whatever its value.
    ///
    /// # Errors
    /// Unless there is one value a token; if the device fails.
    pub fn from_seq_idx<I: Copy + PartialEq>(
        device: &Device,
        batch: usize,
        tokens: usize,
        index: &[I],
    ) -> Result<Self> {
        if batch.checked_mul(tokens) != Some(index.len()) {
            return Err(Error::Argument {
                argument: "seq_idx",
                found: format!("has {} values", index.len()),
                expected: format!("[{batch}, {tokens}], one value a token"),
            });
        }
        let mut sequences = Vec::new();
        if tokens == 0 {
            // Nobody else would write the states of these batch elements.
            let empty = |batch| Sequence { batch, start: 0, end: 0, initial: Some(batch), last: true };
            sequences.extend((0..batch).map(empty));
        }
        for (batch, row) in index.chunks(tokens.max(1)).enumerate() {
            let mut start = 0;
            for end in 1..=row.len() {
                if end == row.len() || row[end] != row[start] {
                    let initial = (start == 0).then_some(batch);
                    sequences.push(Sequence { batch, start, end, initial, last: end == row.len() });
                    start = end;
                }
            }
        }
        Self::new(device, (batch, tokens), false, sequences)
    }

    fn new(
        device: &Device,
        (batch, tokens): (usize, usize),
        own_states: bool,
        sequences: Vec<Sequence>,
    ) -> Result<Self> {
        // Kernels count tokens in i32.
        if i32::try_from(tokens).is_err() || i32::try_from(sequences.len()).is_err() {
            return Err(Error::Argument {
                argument: "sequences",
                found: format!("has {tokens} tokens and {} sequences", sequences.len()),
                expected: "less than 2^31 of each".into(),
            });
        }
        let mut table = Vec::with_capacity(sequences.len() * column::COUNT);
        let mut number = vec![-1; batch * tokens];
        for (i, sequence) in sequences.iter().enumerate() {
            let Sequence { batch, start, end, initial, last } = *sequence;
            let row = |row: Option<usize>| row.map_or(-1, |row| row as i32);
            let (from, to) = if start < end { (start as i32, end as i32) } else { (0, 0) };
            let mut columns = [0; column::COUNT];
            columns[column::BATCH] = batch as i32;
            columns[column::START] = from;
            columns[column::END] = to;
            columns[column::INITIAL] = row(initial);
            columns[column::FINAL] = row(last.then_some(batch));
            table.extend(columns);
            number[batch * tokens..][start..end].fill(i as i32);
        }
        Ok(Self {
            batch,
            tokens,
            count: sequences.len(),
            own_states,
            table: DeviceTensor::from_slice(device, &[sequences.len(), column::COUNT], &table)?,
            number: DeviceTensor::from_slice(device, &[batch, tokens], &number)?,
        })
    }

    /// Two sequences a batch element, on the meta device: to compile for, not to run.
    pub(crate) fn meta(batch: usize, tokens: usize, own_states: bool) -> Result<Self> {
        let count = batch.saturating_mul(2);
        Ok(Self {
            batch,
            tokens,
            count,
            own_states,
            table: DeviceTensor::meta(&[count, column::COUNT])?,
            number: DeviceTensor::meta(&[batch, tokens])?,
        })
    }

    /// How many sequences there are, empty ones included.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Batch elements.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// Tokens of a batch element.
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// Whether each sequence has an initial and a final state of its own: those by offsets do.
    pub fn own_states(&self) -> bool {
        self.own_states
    }

    /// Where the sequences are described.
    pub fn device(&self) -> &Device {
        self.table.device()
    }
}
