//! The choices of a schedule: a small generator, the same on every machine.

/// xorshift64*; seed 0 always answers 0, which is the plain round robin.
#[derive(Clone, Debug)]
pub(super) struct Random {
    state: u64,
}

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        // Neighbouring seeds are spread far apart; 0 stays 0.
        Random { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) }
    }

    pub(super) fn is_plain(&self) -> bool {
        self.state == 0
    }

    /// A number below `bound`; 0 in the plain schedule.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        if self.state == 0 {
            return 0;
        }
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        (self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % bound
    }
}
