//! Independent points, several at the same time.
//!
//! A point is a run that does not depend on any other, as on a simulated machine. [`Workers`] begin
//! points in their order, and hand over what each tells in that order, too. So a command's output
//! does not depend on the number that run at once.

use crate::harness::interrupt;
use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::{env, thread};

/// The environment variable that says how many points a command runs at once. A process that runs
/// several commands tells each to run one.
pub const JOBS: &str = "SCALEVM_JOBS";

/// Threads that run points.
#[derive(Clone, Copy)]
pub struct Workers<'a> {
    /// The number of points that run at once. If it is one, they run on the caller's thread.
    pub at_once: usize,
    /// True if no further point is to begin.
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

impl Workers<'static> {
    /// One at a time, until a signal asks to finish.
    pub const ALONE: Self = Workers {
        at_once: 1,
        stop: &|| interrupt::pending().is_some(),
    };

    /// The number of workers that [`JOBS`] says, or else one for each CPU of this computer, up to
    /// `most`.
    pub fn here(most: usize) -> Self {
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        Workers {
            at_once: asked(env::var(JOBS).ok()).unwrap_or(cpus.min(most)),
            ..Self::ALONE
        }
    }
}

/// The number of points at once that the variable's value asks for, if that makes sense.
fn asked(value: Option<String>) -> Option<usize> {
    let number: NonZeroUsize = value?.parse().ok()?;
    Some(number.get())
}

impl Workers<'_> {
    /// Runs `points`, and takes the result of each in their order, on the caller's thread. Points
    /// that are under way when the workers are to stop go on to their end.
    ///
    /// # Errors
    /// The first error of `take`. No further point begins after it, and no other result is taken.
    pub fn run<P: Copy + Send, R: Send, E>(
        &self,
        points: impl IntoIterator<Item = P, IntoIter: Send>,
        run: impl Fn(P) -> R + Sync,
        take: impl FnMut(P, R) -> Result<(), E>,
    ) -> Result<(), E> {
        self.follow(points, |point, tell| tell(run(point)), take)
    }

    /// Runs points that tell of themselves while they run. Takes at once what the earliest of those
    /// under way tells, and keeps what the others tell until they are the earliest.
    ///
    /// # Errors
    /// The first error of `take`. No further point begins after it, and no other result is taken.
    pub fn follow<P: Copy + Send, M: Send, E>(
        &self,
        points: impl IntoIterator<Item = P, IntoIter: Send>,
        run: impl Fn(P, &dyn Fn(M)) + Sync,
        take: impl FnMut(P, M) -> Result<(), E>,
    ) -> Result<(), E> {
        let points = points.into_iter();
        if self.at_once == 1 {
            self.one_by_one(points, run, take)
        } else {
            self.together(points, run, take)
        }
    }

    fn one_by_one<P: Copy, M, E>(
        &self,
        points: impl Iterator<Item = P>,
        run: impl Fn(P, &dyn Fn(M)),
        take: impl FnMut(P, M) -> Result<(), E>,
    ) -> Result<(), E> {
        let taker = RefCell::new((take, Ok(())));
        for point in points.take_while(|_| !(self.stop)()) {
            run(point, &|message| {
                let (take, taken) = &mut *taker.borrow_mut();
                if taken.is_ok() {
                    *taken = take(point, message);
                }
            });
            if taker.borrow().1.is_err() {
                break;
            }
        }
        taker.into_inner().1
    }

    fn together<P: Copy + Send, M: Send, E>(
        &self,
        points: impl Iterator<Item = P> + Send,
        run: impl Fn(P, &dyn Fn(M)) + Sync,
        mut take: impl FnMut(P, M) -> Result<(), E>,
    ) -> Result<(), E> {
        let points = Mutex::new(points);
        let (line, begun) = channel();
        let begin = |line: &Sender<_>| {
            // Held until the point is in line: the line has the order of the points.
            let mut points = points.lock().unwrap_or_else(PoisonError::into_inner);
            let point = points.next().filter(|_| !(self.stop)())?;
            let (tell, told) = channel();
            line.send((point, told)).ok()?;
            Some((point, tell))
        };
        let work = |line: Sender<_>| {
            while let Some((point, tell)) = begin(&line) {
                // Nobody listens any more after an error.
                run(point, &|message| drop(tell.send(message)));
            }
        };
        thread::scope(|scope| {
            for _ in 0..self.at_once {
                let (work, line) = (&work, line.clone());
                scope.spawn(move || work(line));
            }
            // The line ends with the last worker.
            drop(line);
            for (point, told) in begun {
                told.iter().try_for_each(|message| take(point, message))?;
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::sync::mpsc::Receiver;

    fn workers(at_once: usize) -> Workers<'static> {
        Workers {
            at_once,
            stop: &|| false,
        }
    }

    fn told(from: &Mutex<Receiver<()>>) {
        from.lock().expect("no panic").recv().expect("a message")
    }

    #[test]
    fn results_come_in_the_order_of_the_points() {
        let (tell, later) = channel();
        let later = Mutex::new(later);
        // Each even point ends after the next one.
        let run = |point: usize| match point % 2 {
            0 => told(&later),
            _ => tell.send(()).expect("it listens"),
        };
        let mut taken = Vec::new();
        let ended = workers(2).run(0..10, run, |point, ()| {
            taken.push(point);
            Ok::<_, Infallible>(())
        });
        assert_eq!((ended, taken), (Ok(()), (0..10).collect()));
    }

    #[test]
    fn the_first_error_in_the_order_of_the_points_ends_the_run() {
        for at_once in [1, 4] {
            let begun = AtomicUsize::new(0);
            let mut taken = Vec::new();
            let run = |point| {
                begun.fetch_add(1, Relaxed);
                if point % 2 == 1 {
                    Err(point)
                } else {
                    Ok(point)
                }
            };
            let ended = workers(at_once).run(0..1_000_000, run, |_, result| {
                taken.push(result?);
                Ok(())
            });
            assert_eq!((ended, taken), (Err(1), vec![0]), "{at_once} at once");
            assert!(begun.into_inner() < 1_000_000, "{at_once} at once");
        }
    }

    #[test]
    fn errors_that_are_kept_lose_no_other_result() {
        for at_once in [1, 4] {
            let run = |point| {
                if point % 3 == 0 {
                    Err(point)
                } else {
                    Ok(point)
                }
            };
            let (mut good, mut bad) = (Vec::new(), Vec::new());
            let ended = workers(at_once).run(0..8, run, |_, result| {
                match result {
                    Ok(point) => good.push(point),
                    Err(point) => bad.push(point),
                }
                Ok::<_, Infallible>(())
            });
            assert_eq!(ended, Ok(()));
            assert_eq!((good, bad), (vec![1, 2, 4, 5, 7], vec![0, 3, 6]));
        }
    }

    #[test]
    fn points_under_way_end_when_the_others_are_not_to_begin() {
        for at_once in [1, 3] {
            let begun = AtomicUsize::new(0);
            let workers = Workers {
                at_once,
                stop: &|| begun.load(Relaxed) >= 5,
            };
            let mut taken = Vec::new();
            let run = |_| {
                begun.fetch_add(1, Relaxed);
            };
            let ended = workers.run(0..100, run, |point, ()| {
                taken.push(point);
                Ok::<_, Infallible>(())
            });
            let begun = begun.load(Relaxed);
            assert_eq!((ended, taken), (Ok(()), (0..begun).collect()));
            assert!((5..5 + at_once).contains(&begun), "{begun}");
        }
    }

    #[test]
    fn what_a_point_tells_is_taken_before_its_end() {
        for at_once in [1, 2] {
            let (seen, is_seen) = channel();
            let is_seen = Mutex::new(is_seen);
            let run = |point: usize, tell: &dyn Fn(usize)| {
                tell(10 * point);
                if point == 0 {
                    told(&is_seen);
                }
                tell(10 * point + 1);
            };
            let mut taken = Vec::new();
            let ended = workers(at_once).follow(0..3, run, |_, said| {
                taken.push(said);
                seen.send(()).expect("it listens");
                Ok::<_, Infallible>(())
            });
            assert_eq!((ended, taken), (Ok(()), vec![0, 1, 10, 11, 20, 21]));
        }
    }

    #[test]
    fn there_is_always_a_worker() {
        let asked = ["3", "0", "", "-1", "many"].map(|value| asked(Some(value.into())));
        assert_eq!(asked, [Some(3), None, None, None, None]);
        assert_eq!(super::asked(None), None);
        assert!((1..=2).contains(&Workers::here(2).at_once) || env::var(JOBS).is_ok());
    }

    #[test]
    fn one_at_a_time_stays_on_the_thread() {
        let here = thread::current().id();
        let run = |_| thread::current().id();
        let ended = Workers::ALONE.run(
            [1, 2],
            run,
            |_, at| {
                if at == here { Ok(()) } else { Err(at) }
            },
        );
        assert_eq!(ended, Ok(()));
    }

    #[test]
    #[should_panic(expected = "a scoped thread panicked")]
    fn a_panic_is_not_waited_for() {
        let run = |point: usize| assert!(point > 100, "a point panics");
        let _ = workers(2).run(0..100, run, |_, ()| Ok::<_, Infallible>(()));
    }
}
