//! The CPUs that may have to be watched.
//!
//! No list is trusted alone: a container may show fewer CPUs than its tasks use (lxcfs), and
//! another may name CPUs that do not exist. So all lists and the tasks' own affinity are put
//! together, and the kernel says which of them there are: it opens no event on any other.

use stats::environment::listed_cpus;
use std::io;

/// The numbers of CPUs end below this on every kernel there is.
const END: u32 = 8192;

/// The CPUs that are in any list, and those that the threads `tids` may use; ascending, with all in
/// between.
pub(crate) fn candidates(tids: &[u32]) -> io::Result<Vec<u32>> {
    let lists = ["online", "present", "possible"].map(|name| {
        let path = format!("/sys/devices/system/cpu/{name}");
        let text = std::fs::read_to_string(path).ok()?;
        listed_cpus(&text)
    });
    let own = affinity(0)?;
    let theirs = tids.iter().filter_map(|&tid| affinity(tid).ok()).flatten();
    let all = lists
        .into_iter()
        .flatten()
        .flatten()
        .chain(own)
        .chain(theirs);
    // The calling thread may use one at least.
    Ok((0..=all.max().unwrap_or(0)).collect())
}

/// The last CPU that a thread may use; 0 is the calling thread.
fn affinity(tid: u32) -> io::Result<Option<u32>> {
    let mut mask = [0_u64; END as usize / 64];
    // SAFETY: the buffer has the size given.
    let result = unsafe {
        libc::sched_getaffinity(tid as i32, size_of_val(&mask), mask.as_mut_ptr().cast())
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    let set = mask.iter().zip(0..).filter(|(word, _)| **word != 0);
    Ok(set.map(|(word, index)| 64 * index + word.ilog2()).max())
}

/// Returns true if an event was refused because there is no such CPU.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENODEV | libc::EINVAL))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_that_a_thread_may_use_is_a_candidate() {
        let allowed = affinity(0).expect("of this thread").expect("a CPU");
        let found = candidates(&[std::process::id()]).expect("candidates");
        assert!(found.contains(&allowed), "{found:?}");
        assert_eq!(found[0], 0);
        assert!(affinity(u32::MAX).is_err());
    }
}
