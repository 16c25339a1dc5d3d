//! The specialised kernels of the process, found by what they were specialised by.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use crate::args::Words;
use crate::error::Result;
use crate::specialize::Specialised;

static CACHE: LazyLock<RwLock<HashMap<Words, Arc<Specialised>>>> = LazyLock::new(RwLock::default);

/// The specialisation of this key. A new one is made outside of any lock, since that runs the user's code; if two
/// threads make the same, the first to finish is kept. Faulty ones are not kept.
pub(crate) fn get(key: &Words, make: impl FnOnce() -> Result<Arc<Specialised>>) -> Result<Arc<Specialised>> {
    if let Some(known) = CACHE.read().unwrap_or_else(PoisonError::into_inner).get(&key[..]) {
        return Ok(known.clone());
    }
    let made = make()?;
    let mut cache = CACHE.write().unwrap_or_else(PoisonError::into_inner);
    Ok(cache.entry(key.clone()).or_insert(made).clone())
}
