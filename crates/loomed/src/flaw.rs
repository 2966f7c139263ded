//! Flaws planted in code under test, without a change of the code: at one source line, an atomic
//! operation orders nothing, or a load sees nothing.
//!
//! A model that passes with a flaw does not check what it should.

use machine::Ordering;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};

/// A line of source whose atomic operation may be flawed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Site {
    /// The end of the file's path.
    file: &'static str,
    line: u32,
}

/// A kind of flaw.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flaw {
    /// The operation is relaxed; a fence is removed.
    Relaxed,
    /// The load returns 0, or a null pointer.
    Blind,
}

// A model runs on its test's own thread, all of its CPUs too.
thread_local! {
    static PLANTED: Cell<Option<(Flaw, Site)>> = const { Cell::new(None) };
    /// True if an operation reached the planted flaw.
    static MET: Cell<bool> = const { Cell::new(false) };
}

impl Site {
    /// The first atomic operation after `comment` in a source file, given by its path (or the end
    /// of it) and its text.
    ///
    /// # Panics
    /// If the comment does not occur there exactly once, or no operation follows.
    pub fn after(file: &'static str, text: &str, comment: &str) -> Site {
        assert_eq!(text.matches(comment).count(), 1, "{file}: {comment:?}");
        let operation = |line: &(usize, &str)| {
            let code = line.1.split("//").next().unwrap_or_default();
            let calls = [".load(", ".store(", ".swap(", ".publish(", "fetch_"];
            let others = [".exchange(", ".subtract(", "compare_exchange", "fence("];
            calls.iter().chain(&others).any(|call| code.contains(call))
        };
        let at = text.find(comment).expect("counted above");
        let from = text[..at].matches('\n').count();
        let mut lines = text.lines().enumerate().skip(from);
        let found = lines.find(operation);
        let (index, _) = found.unwrap_or_else(|| panic!("{file}: no operation behind {comment:?}"));
        let line = index as u32 + 1;
        Site { file, line }
    }

    fn is_at(self, location: &Location<'_>) -> bool {
        location.line() == self.line && location.file().ends_with(self.file)
    }
}

/// Asserts that `model` reaches the flaw at `site`, and fails.
#[track_caller]
pub fn must_be_found(flaw: Flaw, site: Site, model: impl FnOnce()) {
    MET.set(false);
    PLANTED.set(Some((flaw, site)));
    let found = catch_unwind(AssertUnwindSafe(model)).is_err();
    PLANTED.set(None);
    assert!(MET.get(), "the model does not come to {site:?}");
    assert!(found, "{flaw:?} at {site:?} is not found");
}

/// Returns true if the caller's operation is the flawed one.
#[track_caller]
pub(crate) fn is_here() -> bool {
    planted(Location::caller()) == Some(Flaw::Relaxed)
}

/// Returns true if the caller's load sees nothing.
#[track_caller]
pub(crate) fn is_blind() -> bool {
    planted(Location::caller()) == Some(Flaw::Blind)
}

/// The order of the caller's operation.
#[track_caller]
pub(crate) fn weaken(order: Ordering) -> Ordering {
    match planted(Location::caller()) {
        Some(Flaw::Relaxed) => Ordering::Relaxed,
        _ => order,
    }
}

/// The flaw at a place.
fn planted(here: &Location<'_>) -> Option<Flaw> {
    let (flaw, site) = PLANTED.get()?;
    site.is_at(here).then(|| {
        MET.set(true);
        flaw
    })
}

/// The value of a load that sees nothing.
pub(crate) trait Zero {
    const ZERO: Self;
}

macro_rules! zero {
    ($($value:ty),*) => {
        $(impl Zero for $value {
            const ZERO: Self = 0;
        })*
    };
}
zero!(u8, u16, u32, u64, usize);

impl Zero for *mut () {
    const ZERO: Self = std::ptr::null_mut();
}
