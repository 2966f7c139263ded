//! The thread that empties the rings.

use super::program::Program;
use super::store::Store;
use super::tracer::Tracer;
use super::{Signals, Summary};
use crate::Error;
use crate::session::{SETTLED, hurry, now};
use crate::tasks::Cgroup;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Milliseconds between rounds, unless a ring fills up earlier.
const ROUND: i32 = 50;
/// Nanoseconds between counts of switches.
const COUNTS: u64 = 500_000_000;
/// Nanoseconds between looks at who has joined a group.
const LOOKS: u64 = 100_000_000;

/// Reads until it is told to stop.
pub(super) struct Reader<W> {
    tracer: Tracer,
    program: Program,
    store: Store<W>,
    /// The group whose processes are recorded, and the time of the next look at it.
    group: Option<(Cgroup, u64)>,
    signals: Arc<Signals>,
    /// When the kernel's switches are counted next.
    count: u64,
}

impl<W: Write> Reader<W> {
    pub fn new(
        tracer: Tracer,
        program: Program,
        store: Store<W>,
        group: Option<Cgroup>,
        signals: Arc<Signals>,
    ) -> Reader<W> {
        Reader {
            tracer,
            program,
            store,
            group: group.map(|group| (group, 0)),
            signals,
            count: 0,
        }
    }

    /// Reads to the end.
    pub fn run(mut self) -> Result<Summary, Error> {
        hurry();
        // Acquire: pairs with the release store of `Underway::stop`.
        while !self.signals.stop.load(Ordering::Acquire) {
            self.wait();
            let round = self.tracer.read();
            self.follow(round.saturating_sub(SETTLED));
            self.store.put(&mut self.program.recording)?;
            self.look(round);
            if self.count <= round {
                self.count = round + COUNTS;
                self.program.count_switches(now);
            }
            // Relaxed: a hint.
            self.signals
                .over
                .store(self.program.is_over(), Ordering::Relaxed);
        }
        let end = now();
        // Cannot fail on this process's descriptors; later records are beyond the end anyway.
        let _ = self.tracer.disable();
        self.tracer.read();
        self.follow(end);
        self.program.end(end);
        let mut recording = self.program.recording;
        Ok(Summary {
            events: self.store.finish(&mut recording)?,
            processes: recording.processes.len(),
            threads: recording.threads.len(),
            span: Duration::from_nanos(recording.nanoseconds),
            lost: recording.lost,
            cost: recording.cost,
        })
    }

    fn follow(&mut self, horizon: u64) {
        for event in self.tracer.take_until(horizon) {
            self.program.take(event);
        }
    }

    /// Waits for the next round.
    fn wait(&self) {
        let poll = |&fd: &i32| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        let mut polled: Vec<libc::pollfd> = self.tracer.leaders.iter().map(poll).collect();
        // SAFETY: the array has `polled.len()` entries and lives through the call.
        unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as u64, ROUND) };
    }

    /// Records processes that have joined the group since the last look.
    fn look(&mut self, round: u64) {
        let Some((group, due)) = self.group.as_mut().filter(|(_, due)| *due <= round) else {
            return;
        };
        *due = round + LOOKS;
        let own = std::process::id();
        for pid in group.processes().unwrap_or_default() {
            if pid != own && !self.program.has(pid) {
                self.program.meet(pid, now);
            }
        }
    }
}
