//! Panics of host code inside a kernel become errors of the kernel, without the noise of a crash.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::sync::Once;

use super::source::Place;

/// A caught panic.
pub(crate) struct HostPanic {
    /// Its text.
    pub(crate) message: String,
    /// Where.
    pub(crate) at: Option<Place>,
}

thread_local! {
    static QUIET: Cell<usize> = const { Cell::new(0) };
    static LAST: RefCell<Option<Place>> = const { RefCell::new(None) };
}

/// Runs `work` so that panics in it print nothing.
///
/// The process has one panic hook. Ours is put before the one found, once, and only acts on threads that are staging.
pub(crate) fn quietly<R>(work: impl FnOnce() -> R) -> R {
    static HOOK: Once = Once::new();
    if !std::thread::panicking() {
        HOOK.call_once(|| {
            let inner = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |info| {
                if QUIET.get() == 0 {
                    return inner(info);
                }
                LAST.set(info.location().map(Place::from));
            }));
        });
    }
    QUIET.set(QUIET.get() + 1);
    let result = work();
    QUIET.set(QUIET.get() - 1);
    result
}

/// What a caught panic said. To be called on the thread that caught it, before the next panic.
pub(crate) fn describe(payload: Box<dyn Any + Send>) -> HostPanic {
    let message = match payload.downcast::<String>() {
        Ok(text) => *text,
        Err(payload) => match payload.downcast::<&'static str>() {
            Ok(text) => text.to_string(),
            Err(_) => "no message".to_string(),
        },
    };
    HostPanic { message, at: LAST.take() }
}
