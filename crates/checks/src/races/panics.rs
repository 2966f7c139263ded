//! Panics of simulated CPUs, recorded with their places instead of printed.

use std::cell::RefCell;
use std::fmt::Write;
use std::panic;
use std::sync::Once;

/// Bytes of a message that are kept.
const KEPT: usize = 4096;

thread_local! {
    /// The first panic since the watch began, if there was one. Its memory is allocated from the
    /// host beforehand: the hook runs on a simulated CPU, whose memory may be freed with its
    /// machine.
    static FIRST: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `f`; returns the message and place of the first panic on this thread meanwhile, caught or
/// not, instead of printing them.
pub fn watched<R>(f: impl FnOnce() -> R) -> (R, Option<String>) {
    static HOOK: Once = Once::new();
    HOOK.call_once(install);
    FIRST.set(Some(String::with_capacity(KEPT)));
    let result = f();
    let first = FIRST.take().filter(|message| !message.is_empty());
    (result, first)
}

/// Returns true if a panic has happened on this thread since the watch began.
pub fn happened() -> bool {
    FIRST.with_borrow(|first| first.as_ref().is_some_and(|message| !message.is_empty()))
}

/// Installs the hook, which passes panics that are not watched to the previous hook.
fn install() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let watched = FIRST.with_borrow_mut(|first| {
            let Some(first) = first else { return false };
            if first.is_empty() {
                let message = info.payload_as_str().unwrap_or("a panic without a message");
                let _ = Bounded(first).write_str(message);
                if let Some(place) = info.location() {
                    let _ = write!(Bounded(first), " ({}:{})", place.file(), place.line());
                }
            }
            true
        });
        if !watched {
            before(info);
        }
    }));
}

/// Writes only as much as fits, so that nothing is allocated.
struct Bounded<'a>(&'a mut String);

impl Write for Bounded<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let mut room = text.len().min(self.0.capacity() - self.0.len());
        while !text.is_char_boundary(room) {
            room -= 1;
        }
        self.0.push_str(&text[..room]);
        Ok(())
    }
}
