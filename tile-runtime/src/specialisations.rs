//! The specialised kernels of the process, found by what they were specialised by.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use crate::args::Words;
use crate::error::Result;
use crate::specialize::Specialised;

static CACHE: LazyLock<RwLock<HashMap<Words, Arc<Specialised>>>> = LazyLock::new(RwLock::default);

/// How many are kept. A program that makes more passes as constants what it should pass as scalars; it gets slow, but
/// its memory stays bounded.
const CAPACITY: usize = 4096;

/// The specialisation of this key. A new one is made outside of any lock, since that runs the user's code; if two
/// threads make the same, the first to finish is kept. Faulty ones are not kept.
pub(crate) fn get(key: &Words, make: impl FnOnce() -> Result<Arc<Specialised>>) -> Result<Arc<Specialised>> {
    if let Some(known) = CACHE.read().unwrap_or_else(PoisonError::into_inner).get(&key[..]) {
        return Ok(known.clone());
    }
    let made = make()?;
    let mut cache = CACHE.write().unwrap_or_else(PoisonError::into_inner);
    if cache.len() >= CAPACITY {
        tracing::warn!(
            "{CAPACITY} kernels were specialised; all are dropped. Pass varying numbers as Scalar<T>"
        );
        cache.clear();
    }
    Ok(cache.entry(key.clone()).or_insert(made).clone())
}
