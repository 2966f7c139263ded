//! Threads that have slept since before the recording began.

use crate::event::Event;
use std::collections::HashMap;

/// Sleep that began before the recording: no event says where, but /proc did.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Sleep {
    /// The process's command.
    pub process: String,
    /// The thread's name.
    pub thread: String,
    /// The function of the kernel; empty if that is not known.
    pub function: String,
    /// True if it lasted to the end of the recording.
    pub throughout: bool,
}

/// The threads that have not been seen to run, with their process and the function of the kernel.
#[derive(Debug, Default)]
pub(crate) struct Still(HashMap<u32, Sleep>);

impl Still {
    /// The threads `asleep`.
    pub fn of(asleep: impl Iterator<Item = (u32, [String; 3])>) -> Still {
        let sleep = |(tid, [process, thread, function]): (u32, [String; 3])| {
            let throughout = false;
            (
                tid,
                Sleep {
                    process,
                    thread,
                    function,
                    throughout,
                },
            )
        };
        Still(asleep.map(sleep).collect())
    }

    /// Returns true if the thread `tid` has not been seen to run.
    pub fn has(&self, tid: u32) -> bool {
        self.0.contains_key(&tid)
    }

    /// The sleep that `event` ends, and its thread.
    pub fn ended_by(&mut self, event: &Event) -> Option<(u32, Sleep)> {
        match event {
            Event::Sample { thread, .. }
            | Event::Begin { thread, .. }
            | Event::End { thread, .. }
            | Event::Leave { thread, .. }
            | Event::Off { thread, .. }
            | Event::Resume { thread }
            | Event::Exit { thread } => self.0.remove_entry(&thread.tid),
            _ => None,
        }
    }

    /// Forgets all: events that would have ended their sleep are lost.
    pub fn forget(&mut self) {
        self.0.clear();
    }

    /// The threads that slept throughout.
    pub fn throughout(&self) -> Vec<(u32, Sleep)> {
        let throughout = |(&tid, sleep): (&u32, &Sleep)| {
            let throughout = true;
            let sleep = sleep.clone();
            (
                tid,
                Sleep {
                    throughout,
                    ..sleep
                },
            )
        };
        self.0.iter().map(throughout).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Account;
    use super::*;
    use crate::event::{Stamped, Thread};
    use crate::tasks::{Family, Image, Process};
    use std::collections::HashMap;

    const WAKES: u32 = 10;
    const SLEEPS: u32 = 11;

    /// An account from 100 to 1000 of two threads that were found asleep, and these events.
    fn after(events: &[(u64, Event)]) -> HashMap<Sleep, u64> {
        let mut family = Family::default();
        let (name, image) = ("server".into(), Image::new());
        family.add(10, Process { name, image }, &[WAKES, SLEEPS]);
        let mut account = Account::new(family, Default::default(), 100);
        account.sees_switches = true;
        let asleep =
            [WAKES, SLEEPS].map(|tid| (tid, ["server", "pool", "ep_poll"].map(str::to_owned)));
        account.still = Still::of(asleep.into_iter());
        for (time, event) in events.iter().cloned() {
            account.take(Stamped { time, event });
        }
        account.close(1000);
        assert!(account.totals.preempted.is_empty());
        account.totals.early
    }

    fn numbered(tid: u32) -> Thread {
        Thread { pid: 10, tid }
    }

    fn sleep(throughout: bool) -> Sleep {
        let (process, function) = ("server".into(), "ep_poll".into());
        Sleep {
            process,
            thread: "pool".into(),
            function,
            throughout,
        }
    }

    #[test]
    fn sleep_lasts_until_a_thread_is_seen_to_run() {
        let resume = Event::Resume {
            thread: numbered(WAKES),
        };
        let exit = Event::Exit {
            thread: numbered(WAKES),
        };
        let expected = HashMap::from([(sleep(false), 300), (sleep(true), 900)]);
        assert_eq!(after(&[(400, resume), (500, exit)]), expected);
    }

    #[test]
    fn a_birth_that_is_read_late_is_no_second_wait() {
        let birth = Event::Fork {
            child: numbered(SLEEPS),
            parent: numbered(WAKES),
        };
        let expected = HashMap::from([(sleep(true), 1800)]);
        assert_eq!(after(&[(90, birth)]), expected);
    }

    #[test]
    fn what_may_have_been_lost_is_not_said_to_sleep() {
        assert_eq!(after(&[(400, Event::Lost(1))]), HashMap::new());
    }
}
