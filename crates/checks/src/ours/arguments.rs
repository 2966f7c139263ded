//! A kernel's treatment of the arguments of system calls before it asks the VM: lengths that
//! are zero, wrap around or reach beyond the addresses of tasks.

use machine::{PAGE_SIZE, VaRange};
use oracle::address::USER_END;
use oracle::outcome::Outcome;
use vm::LOWEST;

/// The outcome of the call without asking the VM.
pub type Early<T> = Result<T, Outcome>;

/// The failure of a call with `errno`.
pub fn fails<T>(errno: i32) -> Early<T> {
    Err(Outcome::Errno(errno))
}

/// The errors of a call that takes a range.
pub struct Errors {
    /// If the length wraps around.
    pub wraps: i32,
    /// If the range extends beyond the addresses that tasks may map.
    pub beyond: i32,
    /// If the range begins below the lowest address at which anything can be mapped.
    pub below: Outcome,
}

/// The pages of `bytes` from `start` on. An empty range is a success.
pub fn range(start: u64, bytes: u64, errors: &Errors) -> Early<VaRange> {
    let page = PAGE_SIZE as u64;
    if !start.is_multiple_of(page) {
        return fails(libc::EINVAL);
    }
    if bytes == 0 {
        return Err(Outcome::Done);
    }
    let whole = bytes.checked_next_multiple_of(page);
    let Some(end) = whole.and_then(|whole| start.checked_add(whole)) else {
        return fails(errors.wraps);
    };
    if end > USER_END {
        return fails(errors.beyond);
    }
    if start < LOWEST as u64 {
        return Err(errors.below.clone());
    }
    Ok(VaRange {
        start: start as usize,
        end: end as usize,
    })
}
