//! Ends one interval of a recording and begins the next.

use super::stacks::Stack;
use super::{Account, Timeline, Totals};
use std::mem::take;

/// Stacks, and names of files, that are kept from one interval to the next at most.
const KEPT: usize = 1 << 14;

/// The totals of an interval, and what has been numbered since the last.
#[derive(Debug, Default)]
pub(crate) struct Cut {
    pub totals: Totals,
    /// The stacks that follow those of earlier intervals.
    pub stacks: Vec<Stack>,
    /// The names of files that follow those of earlier intervals.
    pub files: Vec<String>,
    /// True if both begin anew, with number 0.
    pub anew: bool,
}

/// What has been told by earlier cuts.
#[derive(Debug, Default)]
pub(super) struct Told {
    stacks: usize,
    files: usize,
}

impl Account {
    /// Ends the interval at `time`: what is open counts with its part so far, and goes on.
    pub fn cut(&mut self, time: u64) -> Cut {
        self.count(time, false);
        self.began = time;
        let cut = self.told();
        if self.told.stacks > KEPT || self.told.files > KEPT {
            self.number_anew();
        }
        cut
    }

    /// Ends the recording at `time`: such waits last until then.
    pub fn end(mut self, time: u64) -> Cut {
        self.close(time);
        self.told()
    }

    fn told(&mut self) -> Cut {
        self.name_threads();
        let (stacks, files) = (self.stacks.all(), self.files.names());
        let cut = Cut {
            totals: std::mem::replace(
                &mut self.totals,
                Totals {
                    timeline: Timeline::new(self.began),
                    ..Totals::default()
                },
            ),
            stacks: stacks[self.told.stacks..].to_vec(),
            files: files[self.told.files..].to_vec(),
            anew: self.told.stacks == 0,
        };
        self.told = Told {
            stacks: stacks.len(),
            files: files.len(),
        };
        cut
    }

    /// Forgets all stacks and files but those still in use, which get new numbers.
    fn number_anew(&mut self) {
        let names = take(&mut self.files);
        let stacks = take(&mut self.stacks);
        self.told = Told::default();
        let Account {
            files,
            family,
            stacks: kept,
            ..
        } = self;
        let mut file = |number: u32| files.number(&names.names()[number as usize]);
        family.renumber(&mut file);
        for open in self.blocked.open() {
            let place = &mut open.place;
            place.word = place.word.map(|word| word.in_file(&mut file));
            place.stack = kept.keep(&stacks.all()[place.stack as usize], &mut file);
            if let Some((waker, _)) = &mut open.woken {
                waker.stack = kept.keep(&stacks.all()[waker.stack as usize], &mut file);
            }
        }
        self.leaving.clear();
        for stack in self.waits.stacks() {
            *stack = kept.keep(&stacks.all()[*stack as usize], &mut file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cause, Frame, Tally};
    use super::*;
    use crate::event::{Chain, Event, Stamped, Thread};
    use crate::tasks::{Family, Files, Image, Process};
    use crate::unwind::Word;
    use perf_event_open_sys::bindings::{PERF_CONTEXT_KERNEL, PERF_CONTEXT_USER};

    const WRITE: u32 = 4;
    const LOCK: u64 = 0xa;
    const THREAD: Thread = Thread { pid: 10, tid: 11 };

    /// An account of one thread, which runs a program of one file, from 0 on.
    fn account() -> Account {
        let (mut family, mut files) = (Family::default(), Files::default());
        let mut image = Image::new();
        files.number("/gone");
        let mapping = crate::event::Mapping {
            start: 0x1000,
            end: 0x2000,
            offset: 0,
            path: "/program".into(),
        };
        image.map(&mapping, &mut files);
        let name = "p".into();
        family.add(10, Process { name, image }, &[11]);
        let mut account = Account::new(family, files, 0);
        account.by_thread = true;
        account
    }

    fn chain(frame: u64) -> Chain {
        [PERF_CONTEXT_KERNEL, frame, PERF_CONTEXT_USER, 0x1010].into()
    }

    fn take_all(account: &mut Account, events: impl IntoIterator<Item = (u64, Event)>) {
        for (time, event) in events {
            let off = match event {
                Event::Leave { thread, state, .. } => Some(Event::Off {
                    thread,
                    preempted: state == 0,
                }),
                _ => None,
            };
            for event in [event].into_iter().chain(off) {
                account.take(Stamped { time, event });
            }
        }
    }

    fn begin() -> Event {
        Event::Begin {
            thread: THREAD,
            lock: LOCK,
            flags: WRITE,
            chain: chain(1),
        }
    }

    fn off(state: i64) -> Event {
        Event::Leave {
            thread: THREAD,
            state,
            chain: chain(2),
        }
    }

    const BACK: Event = Event::Resume { thread: THREAD };
    const END: Event = Event::End {
        thread: THREAD,
        lock: LOCK,
    };

    /// Ended, open, total, mean, longest.
    fn figures(tally: &Tally) -> [u64; 5] {
        [
            tally.count,
            tally.open,
            tally.total,
            tally.mean(),
            tally.worst,
        ]
    }

    fn only<K, V>(map: &std::collections::HashMap<K, V>) -> &V {
        assert_eq!(map.len(), 1);
        map.values().next().expect("one")
    }

    #[test]
    fn a_wait_counts_in_each_interval_for_its_part() {
        let mut account = account();
        take_all(&mut account, [(10, begin()), (20, off(2))]);
        let cuts = [account.cut(100), account.cut(200)];
        take_all(&mut account, [(230, BACK), (240, END)]);
        let last = account.end(300);
        let waits = [&cuts[0], &cuts[1], &last].map(|cut| figures(only(&cut.totals.waits)));
        assert_eq!(
            waits,
            [
                [0, 1, 90, 90, 90],
                [0, 1, 100, 190, 190],
                [1, 0, 40, 230, 230]
            ]
        );
        let awake = [&cuts[0], &cuts[1], &last].map(|cut| *only(&cut.totals.spun));
        assert_eq!(awake, [10, 0, 10]);
        let off = [&cuts[0], &cuts[1], &last].map(|cut| figures(only(&cut.totals.asleep)));
        assert_eq!(
            off,
            [
                [0, 1, 80, 80, 80],
                [0, 1, 100, 180, 180],
                [1, 0, 30, 210, 210]
            ]
        );
        assert_eq!(
            [&cuts[0], &cuts[1], &last].map(|cut| cut.totals.lived),
            [100; 3]
        );
        let spent = only(&cuts[1].totals.threads);
        let lock = Cause::Lock(0, WRITE);
        assert_eq!((spent.pid, spent.off.get(&lock)), (10, Some(&100)));
        // The stacks of the first interval are those of all.
        assert_eq!((cuts[0].stacks.len(), cuts[1].stacks.len()), (2, 0));
        assert!(cuts[0].anew && !cuts[1].anew);
        assert_eq!(cuts[0].files, ["/gone", "/program"]);
    }

    #[test]
    fn the_wait_for_a_cpu_counts_in_each_interval_for_its_part() {
        let mut account = account();
        let waker = Thread { pid: 10, tid: 12 };
        let wake = Event::Wake {
            thread: waker,
            woken: THREAD.tid,
            chain: chain(3),
        };
        take_all(&mut account, [(10, off(2)), (70, wake)]);
        let first = account.cut(100);
        take_all(&mut account, [(130, BACK)]);
        let cuts = [first, account.end(200)];
        let queued = cuts.map(|cut| figures(&only(&cut.totals.woken).queued));
        assert_eq!(queued, [[0, 1, 30, 30, 30], [1, 0, 30, 60, 60]]);
    }

    #[test]
    fn a_hold_counts_in_each_interval_for_its_part() {
        let mut account = account();
        let (space, holder) = (LOCK - 4, Thread { pid: 7, tid: 7 });
        let acquire = |thread| Event::Acquire {
            thread,
            space,
            write: true,
            chain: chain(5),
        };
        let release = |thread| Event::Release { thread, space };
        // A wait shows where the lock is.
        take_all(&mut account, [(0, Event::Holds(true)), (1, begin())]);
        take_all(&mut account, [(2, END), (3, acquire(THREAD))]);
        take_all(&mut account, [(4, release(THREAD)), (10, acquire(holder))]);
        take_all(&mut account, [(40, begin())]);
        let first = account.cut(100);
        take_all(&mut account, [(130, release(holder)), (140, END)]);
        let last = account.end(200);
        let parts = [&first, &last].map(|cut| {
            let held = only(&cut.totals.holds);
            let waited = cut.totals.waited_for_holds;
            (figures(&held.times), held.waited, waited)
        });
        assert_eq!(
            parts,
            [([0, 1, 90, 90, 90], 60, 61), ([1, 0, 30, 120, 120], 30, 40)]
        );
        assert_eq!(
            [&first, &last].map(|cut| cut.totals.recorded_holds),
            [Some(100); 2]
        );
    }

    #[test]
    fn what_is_kept_has_a_bound_and_open_waits_keep_their_stacks() {
        let mut account = account();
        take_all(&mut account, [(0, begin()), (1, off(2))]);
        let mut anew = 0;
        let (mut stacks, mut files) = (Vec::new(), Vec::new());
        for time in 1..=6 {
            let samples = (0..KEPT as u64 / 2).map(|at| Event::Sample {
                cpu: 0,
                thread: Thread { pid: 10, tid: 11 },
                chain: chain((time << 32) + at),
            });
            take_all(&mut account, samples.map(|event| (10 * time, event)));
            let cut = account.cut(10 * time + 1);
            if cut.anew {
                anew += 1;
                (stacks, files) = (Vec::new(), Vec::new());
            }
            stacks.extend(cut.stacks);
            files.extend(cut.files);
            assert!(stacks.len() <= 2 * KEPT);
            let (&(stack, _), _) = cut.totals.waits.iter().next().expect("the wait");
            let frames = &stacks[stack as usize].frames;
            assert_eq!(frames[0], Frame::Kernel(1));
            let file = match frames[1] {
                Frame::User(place) => place.file as usize,
                other => panic!("{other:?}"),
            };
            assert_eq!(files[file], "/program");
        }
        assert!(anew >= 3, "{anew}");
        // The file that nothing maps is forgotten.
        assert_eq!(files, ["/program"]);
    }

    #[test]
    fn words_keep_their_files() {
        let word = Word::Variable {
            file: 1,
            address: 8,
        };
        let expected = Word::Variable {
            file: 3,
            address: 8,
        };
        assert_eq!(word.in_file(|file| file + 2), expected);
        assert_eq!(Word::At(8).in_file(|_| 9), Word::At(8));
    }

    #[test]
    fn a_thread_whose_return_was_lost_does_not_wait_for_ever() {
        let sample = || Event::Sample {
            thread: THREAD,
            cpu: 0,
            chain: chain(9),
        };
        let waits_on = |lost: Option<Event>| {
            let mut account = account();
            take_all(&mut account, [(10, off(1))]);
            take_all(&mut account, lost.map(|event| (20, event)));
            take_all(&mut account, [(30, sample())]);
            let cut = account.cut(100);
            cut.totals.asleep.len()
        };
        // A thread that goes off CPU may be sampled before it is gone.
        assert_eq!(waits_on(None), 1);
        assert_eq!(waits_on(Some(Event::Lost(1))), 0);
    }
}
