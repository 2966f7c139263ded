//! Several threads at one lock.

use super::subject::{Line, Subject, wrong};
use bench::tasks::places::{Mask, born_at};
use bench::{Failure, interrupt};
use hosted::Hosted;
use machine::Topology;
use std::hint::black_box;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

/// Steps between two operations of a thread; about 5 ns.
const THINK: u32 = 8;

/// The results of several threads together.
pub struct Sums {
    /// The length in time.
    pub seconds: f64,
    /// Each thread's operations.
    pub operations: Vec<u64>,
}

impl Sums {
    /// Operations a second, of all threads.
    pub fn rate(&self) -> f64 {
        self.operations.iter().sum::<u64>() as f64 / self.seconds
    }
}

/// Where threads run.
pub struct Stage<'a> {
    /// A machine with a CPU for each thread.
    pub machine: &'a Hosted,
    /// Where the host lets the threads run, in turn.
    pub places: &'a [Mask],
    /// The number of threads.
    pub threads: usize,
    /// The length in time.
    pub span: Duration,
}

/// Lets the threads operate on a new subject, that of the row `name`.
pub fn contended<S: Subject>(name: &'static str, stage: &Stage<'_>) -> Result<Sums, Failure> {
    let subject = S::new(stage.machine.cpus());
    let line = Line::default();
    let sums = meet(stage, &|stop| operate(&subject, &line, stop))?;
    let operations = sums.operations.iter().sum();
    let exclusive = if S::EXCLUSIVE {
        line.verify(operations)
    } else {
        Ok(())
    };
    exclusive
        .and_then(|()| subject.verify(operations))
        .map_err(|why| wrong(name, stage.threads, why))?;
    Ok(sums)
}

/// Lets the threads begin `operate` together; each counts until it is told to stop.
fn meet(stage: &Stage<'_>, operate: &(dyn Fn(&AtomicBool) -> u64 + Sync)) -> Result<Sums, Failure> {
    let stop = AtomicBool::new(false);
    // Opens when the writer's guard is dropped; until then threads wait to read.
    let gate = RwLock::new(());
    let ready = AtomicUsize::new(0);
    let work = |index: usize| {
        stage.machine.attach(index);
        ready.fetch_add(1, Relaxed);
        drop(gate.read());
        operate(&stop)
    };
    thread::scope(|scope| {
        let closed = gate.write();
        let mut threads = Vec::with_capacity(stage.threads);
        for index in 0..stage.threads {
            let work = &work;
            let spawn = || Builder::new().spawn_scoped(scope, move || work(index));
            let thread = born_at(stage.places, index, spawn).inspect_err(|_| {
                // Threads that have started end as soon as the gate opens.
                stop.store(true, Relaxed);
            });
            threads.push(thread.map_err(Failure::start("thread"))?);
        }
        while ready.load(Relaxed) < stage.threads {
            thread::yield_now();
        }
        let begin = Instant::now();
        drop(closed);
        interrupt::sleep(stage.span);
        let seconds = begin.elapsed().as_secs_f64();
        stop.store(true, Relaxed);
        let operations = threads.into_iter().map(|thread| match thread.join() {
            Ok(operations) => operations,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        let operations = operations.collect();
        Ok::<_, Failure>(Sums {
            seconds,
            operations,
        })
    })
}

/// One thread's loop; returns the number of iterations.
fn operate<S: Subject>(subject: &S, line: &Line, stop: &AtomicBool) -> u64 {
    let mut own = subject.own();
    let mut operations = 0;
    while !stop.load(Relaxed) {
        subject.operate(&mut own, || {
            if S::EXCLUSIVE {
                line.write()
            } else {
                line.read()
            }
        });
        operations += 1;
        for step in 0..THINK {
            black_box(step);
        }
    }
    operations
}
