//! The function that runs with a lock, or gives it back.

use super::{caller, is_machinery, matches};
use profile::Kind;

/// Functions that wake a thread.
const WAKING: &[&str] = &["try_to_wake_up", "wake_up_process", "wake_up_state"];

/// The function that ran with a lock at the time of a sample, by the kernel frames that acquired it
/// and those of the sample, each from the leaf: the one that acquired it or, if that has returned,
/// the one that its caller called next.
pub(crate) fn runs_with<'a>(acquired: &[String], sampled: &'a [String]) -> Option<&'a str> {
    let mut callers = acquired.iter().skip_while(|frame| is_machinery(frame));
    let at = |frame: &String| sampled.iter().position(|other| other == frame);
    let taker = callers.next()?;
    let found = at(taker).or_else(|| Some(callers.find_map(at)?.saturating_sub(1)))?;
    Some(&sampled[found])
}

/// The function that gave a lock back, by the kernel frames that woke a thread, from the leaf.
pub(crate) fn woke_by(frames: &[String]) -> &str {
    let wakes = |frame: &&String| WAKING.contains(&frame.as_str());
    let wakers = frames.iter().take_while(wakes).count();
    caller(&frames[wakers..])
}

/// How a thread held the lock that it gave back when it woke one that waits for `wanted`, by the
/// kernel frames that woke it, from the leaf.
pub(crate) fn held_as(wanted: Kind, frames: &[String]) -> Kind {
    const GIVES_BACK: &[(&str, Kind)] = &[
        ("up_read*", Kind::RwsemRead),
        ("up_write*", Kind::RwsemWrite),
        ("downgrade_write*", Kind::RwsemWrite),
    ];
    let says = |frame: &String| {
        let row = GIVES_BACK
            .iter()
            .find(|(pattern, _)| matches(pattern, frame));
        row.map(|&(_, kind)| kind)
    };
    frames.iter().find_map(says).unwrap_or(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(names: &str) -> Vec<String> {
        names.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_function_that_keeps_the_lock_runs_with_it() {
        let acquired = frames("__mmap_lock_do_trace_acquire_returned __vm_munmap sys_munmap");
        let sampled = frames("zap_pte_range unmap_region __vm_munmap sys_munmap");
        assert_eq!(runs_with(&acquired, &sampled), Some("__vm_munmap"));
    }

    #[test]
    fn a_function_that_returns_with_the_lock_does_not() {
        let acquired = frames("down_read m_start seq_read_iter vfs_read");
        let sampled = frames("smaps_pte_range smap_gather_stats show_smap seq_read_iter vfs_read");
        assert_eq!(runs_with(&acquired, &sampled), Some("show_smap"));
        let between = frames("seq_read_iter vfs_read");
        assert_eq!(runs_with(&acquired, &between), Some("seq_read_iter"));
    }

    #[test]
    fn other_stacks_say_nothing() {
        let acquired = frames("down_read m_start");
        assert_eq!(runs_with(&acquired, &frames("irq")), None);
        assert_eq!(runs_with(&acquired, &[]), None);
        assert_eq!(runs_with(&[], &frames("irq")), None);
    }

    #[test]
    fn who_gives_a_lock_back_is_behind_its_machinery() {
        let frames = frames("try_to_wake_up wake_up_q rwsem_wake up_write dup_mmap copy_process");
        assert_eq!(woke_by(&frames), "dup_mmap");
        assert_eq!(held_as(Kind::RwsemRead, &frames), Kind::RwsemWrite);
        assert_eq!(woke_by(&[]), "[kernel]");
        assert_eq!(held_as(Kind::Mutex, &[]), Kind::Mutex);
    }
}
