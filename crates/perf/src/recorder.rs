//! Recording, from opening to the end.

use crate::Error;
use crate::account::{Account, Cut};
use crate::recording::{Recording, Seen, Setting};
use crate::session::{Opened, Reader, Signals, now, own_thread};
use crate::support::{ALLOWS_ALL, remedy};
use crate::symbols::{self, Resolver};
use crate::tasks::{self, Cgroup, Family, Files, Used, Withheld};
use crate::whom::Whom;
use profile::Hidden;
use stats::record::Mode;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// The options of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Samples per second and CPU.
    pub frequency: u32,
    /// True if waits for kernel locks are traced.
    pub locks: bool,
    /// True if time off CPU is traced; without it there are no futex rows.
    pub off_cpu: bool,
    /// Pages of a CPU's ring, rounded up to a power of two.
    pub ring_pages: usize,
    /// True if threads are told apart, which [`Recording::threads`] needs.
    pub by_thread: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            // A prime, so that samples do not run in step with timers.
            frequency: 997,
            locks: true,
            off_cpu: true,
            // 2 MiB: some 2,000 samples with their stacks, or 10,000 waits.
            ring_pages: 512,
            by_thread: false,
        }
    }
}

/// Records processes and all their descendants. A thread of its own reads the kernel's events;
/// neither that thread nor the one that opened the recorder is watched.
pub struct Recorder {
    options: Options,
    whom: Whom,
    roots: Vec<u32>,
    opener: u32,
    left_out: Vec<u32>,
    missing: Vec<String>,
    state: State,
}

enum State {
    Opened(Box<Opened>),
    Running(Box<Running>),
    Ended,
}

struct Running {
    signals: Arc<Signals>,
    /// The reader; none once it has been waited for.
    thread: Option<JoinHandle<(Cut, u64)>>,
    cuts: Receiver<(Cut, u64)>,
    /// The begin of the interval.
    began: u64,
    resolver: Resolver,
    /// What is the same in all intervals.
    setting: Setting,
    /// The CPU time of all samples of earlier intervals.
    sampled: Duration,
    /// The processes' CPU time in earlier intervals.
    used: Duration,
    before: Before,
}

/// Accounts of the kernel when the recording began.
struct Before {
    /// The processes' CPU time, less that of the threads that are not watched.
    used: Used,
    withheld: Withheld,
}

impl Recorder {
    /// Opens everything that can be recorded here of the processes `pids`, with all their threads
    /// and descendants. [`missing`](Self::missing) lists the unavailable parts; it is an error only
    /// if not even user stacks of this user's processes can be sampled.
    pub fn open(options: &Options, pids: &[u32]) -> Result<Recorder, Error> {
        Recorder::of(options, Whom::Processes(pids.to_vec()))
    }

    /// As [`open`](Self::open), of any processes.
    pub fn of(options: &Options, whom: Whom) -> Result<Recorder, Error> {
        if options.frequency == 0 {
            return Err(Error::Options("the frequency must not be 0"));
        }
        if options.ring_pages == 0 || options.ring_pages > 1 << 18 {
            return Err(Error::Options(
                "the number of pages of a ring must be from 1 to 262144",
            ));
        }
        stats::environment::numbers_are_ours().map_err(Error::Proc)?;
        let roots = whom.roots()?;
        let mut threads = Vec::new();
        for &root in &roots {
            let found = tasks::threads(root).map_err(Error::Proc)?;
            if found.is_empty() && whom.is_given() {
                return Err(Error::NoProcess(root));
            }
            threads.extend(found.iter().map(|thread| thread.tid));
        }
        let opened = Opened::open(options, &threads)?;
        let mut missing = opened.missing.clone();
        missing.extend(symbols::missing().filter(|_| opened.sees_kernel()));
        Ok(Recorder {
            options: *options,
            whom,
            roots,
            opener: own_thread(),
            left_out: Vec::new(),
            missing,
            state: State::Opened(Box::new(opened)),
        })
    }

    /// The parts that are not recorded here, and how to allow them, one sentence each.
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// The processes to begin with, without their descendants.
    pub fn roots(&self) -> &[u32] {
        &self.roots
    }

    /// Returns true if no watched thread is alive any more.
    pub fn is_over(&self) -> bool {
        match &self.state {
            // Relaxed: a hint.
            State::Running(running) => running.signals.over.load(Ordering::Relaxed),
            State::Opened(_) | State::Ended => false,
        }
    }

    /// Excludes `threads`, but not the processes and threads that they start: they drive the
    /// workload.
    pub fn leave_out(&mut self, threads: &[u32]) {
        self.left_out.extend(threads);
    }

    /// Begins to record.
    pub fn start(&mut self) -> Result<(), Error> {
        let mut opened = match std::mem::replace(&mut self.state, State::Ended) {
            State::Opened(opened) => opened,
            other => {
                self.state = other;
                return Err(Error::Options("it has already been started"));
            }
        };
        // Births are reported before the living are counted, so that none is missed.
        opened
            .watch_tasks()
            .map_err(Error::system("watching tasks"))?;
        let mut files = Files::default();
        let mut family = Family::scan(&self.whom.family(&self.roots), &mut files);
        family.ignore(self.opener);
        self.add_processes(&mut family, &mut opened)?;
        // Only now: where threads are sampled one by one, this event is how new ones are learnt of.
        for &tid in &self.left_out {
            family.ignore(tid);
        }
        let began = now();
        opened
            .enable()
            .map_err(Error::system("starting to record"))?;
        let mut account = Account::new(family, files, began);
        account.sees_switches = opened.sees_waits;
        account.by_thread = self.options.by_thread;
        if opened.sees_waits {
            account.count_sleepers();
        }
        let unwatched: Vec<u32> = self.left_out.iter().copied().chain([self.opener]).collect();
        let before = Before {
            used: Used::now(&self.roots, &unwatched),
            withheld: Withheld::now(&self.roots),
        };
        let setting = Setting {
            clock: opened.clock,
            sample_seconds: 1.0 / f64::from(self.options.frequency),
            cpus: opened.cpus.len(),
            sees_all: opened.sees_all(),
            sees_contention: opened.sees_contention,
            hidden: Hidden {
                kernel: !opened.sees_kernel(),
                waits: !opened.sees_waits,
            },
        };
        let running = run(*opened, account, self.whom.group(), began, before, setting)?;
        self.state = State::Running(Box::new(running));
        Ok(())
    }

    /// Samples the processes of the family, where threads are sampled one by one, and takes out
    /// those that the kernel refuses. It is an error if it refuses one given by its number, or all.
    fn add_processes(&mut self, family: &mut Family, opened: &mut Opened) -> Result<(), Error> {
        let all: Vec<u32> = family.processes().collect();
        let mut refused = None;
        let mut count = 0;
        for &pid in &all {
            let source = match opened.add_process(&family.threads(pid), false) {
                Ok(()) => continue,
                // All its threads have ended.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => continue,
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => error,
                Err(error) => return Err(Error::system("sampling a process")(error)),
            };
            if self.whom.is_given() && self.roots.contains(&pid) {
                let whom = format!("process {pid}");
                return Err(Error::Denied { whom, source });
            }
            family.forget(pid);
            refused = Some(source);
            count += 1;
        }
        match refused {
            Some(source) if count == all.len() => {
                let whom = Mode::Processes.count(count);
                Err(Error::Denied { whom, source })
            }
            Some(source) => {
                let how = remedy(ALLOWS_ALL);
                self.missing.push(format!(
                    "processes of other users, {count} of {} ({source}); {how}",
                    all.len()
                ));
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Ends an interval and begins the next; returns the recording of the one that ended. A wait
    /// that goes on counts in each interval for its part. Nothing of an interval is kept.
    ///
    /// # Errors
    /// [`Error::Unseen`] if what was recorded so far cannot be what the processes did.
    pub fn cut(&mut self) -> Result<Recording, Error> {
        let State::Running(running) = &mut self.state else {
            return Err(Error::Options("it has not been started"));
        };
        // Release: pairs with the reader's acquire load.
        running.signals.cut.store(true, Ordering::Release);
        let used = running.before.used.since();
        let (cut, end) = running.cuts.recv().map_err(|_| Error::Reader)?;
        running.recording(cut, end, used, self.missing.clone())
    }

    /// Ends recording and resolves names; call it while the processes still live.
    ///
    /// # Errors
    /// [`Error::Unseen`] if what was recorded cannot be what the processes did.
    pub fn finish(mut self) -> Result<Recording, Error> {
        let State::Running(mut running) = std::mem::replace(&mut self.state, State::Ended) else {
            return Err(Error::Options("it has not been started"));
        };
        running.stop();
        let used = running.before.used.since();
        let thread = running.thread.take().ok_or(Error::Reader)?;
        let (cut, end) = thread.join().map_err(|_| Error::Reader)?;
        running.recording(cut, end, used, std::mem::take(&mut self.missing))
    }
}

impl Running {
    fn stop(&self) {
        // Release: pairs with the reader's acquire load.
        self.signals.stop.store(true, Ordering::Release);
    }

    /// The recording of the interval up to `end`, if what was recorded so far can be what the
    /// processes did. They had `used` CPU time when the interval was told to end: a slow computer
    /// accounts for long after that, and the processes run on.
    fn recording(
        &mut self,
        mut cut: Cut,
        end: u64,
        used: Duration,
        missing: Vec<String>,
    ) -> Result<Recording, Error> {
        let in_interval = used.saturating_sub(std::mem::replace(&mut self.used, used));
        let withheld = &mut self.before.withheld;
        let (stolen, throttled) = (withheld.stolen(), withheld.throttled());
        withheld.go_on();
        let (stacks, words) = self.resolver.take(&mut cut);
        let recording = Recording::new(Seen {
            setting: self.setting,
            used: in_interval,
            stolen,
            throttled,
            span: Duration::from_nanos(end.saturating_sub(self.began)),
            missing,
            stacks,
            words,
            totals: cut.totals,
        });
        self.began = end;
        self.sampled += recording.sampled();
        if self.setting.can_be_of(self.sampled, used) {
            Ok(recording)
        } else {
            Err(Error::Unseen {
                recorded: self.sampled.as_secs_f64(),
                used: used.as_secs_f64(),
            })
        }
    }
}

impl Drop for Recorder {
    /// Dropping an unfinished recorder leaves no thread behind.
    fn drop(&mut self) {
        if let State::Running(mut running) = std::mem::replace(&mut self.state, State::Ended) {
            running.stop();
            let _ = running.thread.take().map(JoinHandle::join);
        }
    }
}

fn run(
    opened: Opened,
    account: Account,
    group: Option<Cgroup>,
    began: u64,
    before: Before,
    setting: Setting,
) -> Result<Running, Error> {
    let signals = Arc::new(Signals::default());
    let (sender, cuts) = channel();
    let reader = Reader::new(opened, account, group, Arc::clone(&signals), sender);
    let thread = std::thread::Builder::new()
        .name("scalevm-perf".to_owned())
        .spawn(move || reader.run())
        .map_err(Error::system("starting the reader"))?;
    Ok(Running {
        signals,
        thread: Some(thread),
        cuts,
        began,
        resolver: Resolver::default(),
        setting,
        sampled: Duration::ZERO,
        used: Duration::ZERO,
        before,
    })
}
