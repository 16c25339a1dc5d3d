//! The tensor maps that one kernel was last launched with, so that a repeated launch encodes none.

use std::sync::{PoisonError, RwLock};

use smallvec::SmallVec;

use super::tensor_map::EncodedTensorMap;
use crate::error::Result;

/// Maps that are remembered for each parameter: enough for outputs that alternate between a few allocations.
const RECENT: usize = 8;

/// What a launch changes in a tensor map: the address, then each extent and each stride.
type Key = SmallVec<[u64; 10]>;

/// The recent maps of each parameter of one loaded kernel that is a tensor map.
///
/// Element, rank, box, swizzle and promotion are those of the compiled kernel, the same in every launch, so a key holds the
/// address, extents and strides alone. A map is a function of these numbers: it stays right when the memory is freed, and
/// serves whatever tensor comes to lie there with the same shape.
pub struct RecentMaps<M = EncodedTensorMap> {
    parameters: Vec<RwLock<Recent<M>>>,
}

struct Recent<M> {
    maps: Vec<(Key, M)>,
    /// The one to be replaced next once there are [`RECENT`].
    oldest: usize,
}

impl<M: Clone> RecentMaps<M> {
    /// Of a kernel with so many tensor maps among its parameters.
    pub fn new(parameters: usize) -> Self {
        let recent = || RwLock::new(Recent { maps: Vec::new(), oldest: 0 });
        Self { parameters: (0..parameters).map(|_| recent()).collect() }
    }

    /// The map of tensor map `parameter`, counted from 0, for these numbers: the address, then each extent and each
    /// stride. It is encoded if it is not among the recent ones.
    ///
    /// # Errors
    /// That of `encode`; nothing is remembered then.
    pub fn get(&self, parameter: usize, numbers: &[u64], encode: impl FnOnce() -> Result<M>) -> Result<M> {
        let recent = &self.parameters[parameter];
        let find = |recent: &Recent<M>| {
            recent.maps.iter().find(|(key, _)| key[..] == *numbers).map(|(_, map)| map.clone())
        };
        if let Some(map) = find(&recent.read().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(map);
        }
        // Threads that miss together encode the same twice, which is cheaper than to wait for each other.
        let map = encode()?;
        let mut recent = recent.write().unwrap_or_else(PoisonError::into_inner);
        if find(&recent).is_none() {
            recent.add(numbers.into(), map.clone());
        }
        Ok(map)
    }
}

impl<M> Recent<M> {
    fn add(&mut self, key: Key, map: M) {
        if self.maps.len() < RECENT {
            self.maps.push((key, map));
        } else {
            self.maps[self.oldest] = (key, map);
            self.oldest = (self.oldest + 1) % RECENT;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::error::Error;

    /// Asks for the map of `numbers`; the map is their sum. Returns whether it was encoded.
    fn encoded(maps: &RecentMaps<u64>, parameter: usize, numbers: &[u64]) -> bool {
        let encoded = Cell::new(false);
        let map = maps.get(parameter, numbers, || {
            encoded.set(true);
            Ok(numbers.iter().sum())
        });
        assert_eq!(map.expect("encoding cannot fail"), numbers.iter().sum::<u64>());
        encoded.get()
    }

    #[test]
    fn a_repeated_launch_encodes_nothing() {
        let maps = RecentMaps::new(2);
        let tensor = [4096, 128, 64, 2];
        assert!(encoded(&maps, 0, &tensor) && !encoded(&maps, 0, &tensor));
        assert!(encoded(&maps, 1, &tensor), "another parameter has another box");
        for (place, other) in [(0, 8192), (1, 127), (2, 65), (3, 4)] {
            let mut numbers = tensor;
            numbers[place] = other;
            assert!(encoded(&maps, 0, &numbers), "number {place} counts");
            assert!(!encoded(&maps, 0, &numbers));
        }
        assert!(encoded(&maps, 0, &tensor[..3]), "the rank counts");
        assert!(!encoded(&maps, 0, &tensor), "the first is still known");
    }

    #[test]
    fn the_oldest_makes_room() {
        let maps = RecentMaps::new(1);
        for address in 0..RECENT as u64 {
            assert!(encoded(&maps, 0, &[address]));
        }
        for address in 0..RECENT as u64 {
            assert!(!encoded(&maps, 0, &[address]));
        }
        assert!(encoded(&maps, 0, &[100]) && encoded(&maps, 0, &[0]), "0 was the oldest");
        assert!(!encoded(&maps, 0, &[100]) && !encoded(&maps, 0, &[2]) && encoded(&maps, 0, &[1]));
    }

    #[test]
    fn a_failure_is_not_remembered() {
        let maps = RecentMaps::<u64>::new(1);
        let failure = || Err(Error::Mismatch("no".to_owned()));
        assert!(maps.get(0, &[1], failure).is_err());
        assert!(encoded(&maps, 0, &[1]));
    }

    #[test]
    fn threads_share_the_maps() {
        let maps = RecentMaps::new(1);
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let maps = &maps;
                scope.spawn(move || {
                    for step in 0..2000_u64 {
                        encoded(maps, 0, &[(step * 7 + thread) % 12, 5]);
                    }
                });
            }
        });
    }
}
