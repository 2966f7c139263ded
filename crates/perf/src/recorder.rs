//! Recording, from opening to the end.

use crate::Error;
use crate::account::Account;
use crate::recording::{Recording, Seen};
use crate::session::{Opened, Reader, Signals, now, own_thread};
use crate::support::{ALLOWS_ALL, remedy};
use crate::symbols;
use crate::tasks::{self, Cgroup, Family, Files, Used, Withheld};
use crate::whom::Whom;
use profile::Hidden;
use stats::record::Mode;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
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
    Running(Running),
    Ended,
}

struct Running {
    signals: Arc<Signals>,
    thread: JoinHandle<(Account, u64)>,
    began: u64,
    clock: crate::Clock,
    cpus: usize,
    sees_all: bool,
    sees_contention: bool,
    hidden: Hidden,
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
            threads.extend(found);
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
        if opened.sees_waits {
            account.count_sleepers();
        }
        let unwatched: Vec<u32> = self.left_out.iter().copied().chain([self.opener]).collect();
        let before = Before {
            used: Used::now(&self.roots, &unwatched),
            withheld: Withheld::now(&self.roots),
        };
        self.state = State::Running(run(*opened, account, self.whom.group(), began, before)?);
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

    /// Ends recording and resolves names; call it while the processes still live.
    ///
    /// # Errors
    /// [`Error::Unseen`] if what was recorded cannot be what the processes did.
    pub fn finish(mut self) -> Result<Recording, Error> {
        let State::Running(running) = std::mem::replace(&mut self.state, State::Ended) else {
            return Err(Error::Options("it has not been started"));
        };
        let used = running.before.used.since();
        let withheld = &running.before.withheld;
        let (stolen, throttled) = (withheld.stolen(), withheld.throttled());
        running.stop();
        let (account, end) = running.thread.join().map_err(|_| Error::Reader)?;
        let recording = Recording::new(Seen {
            clock: running.clock,
            span: Duration::from_nanos(end.saturating_sub(running.began)),
            sample_seconds: 1.0 / f64::from(self.options.frequency),
            cpus: running.cpus,
            sees_all: running.sees_all,
            sees_contention: running.sees_contention,
            used,
            stolen,
            throttled,
            hidden: running.hidden,
            missing: std::mem::take(&mut self.missing),
            stacks: symbols::resolve(account.stacks.into_stacks(), account.files.names()),
            words: symbols::words(
                account.totals.words.keys().map(|&(_, word)| word),
                account.files.names(),
            ),
            totals: account.totals,
        });
        if recording.is_of(used) {
            Ok(recording)
        } else {
            Err(Error::Unseen {
                recorded: recording.sampled().as_secs_f64(),
                used: used.as_secs_f64(),
            })
        }
    }
}

impl Running {
    fn stop(&self) {
        // Release: pairs with the reader's acquire load.
        self.signals.stop.store(true, Ordering::Release);
    }
}

impl Drop for Recorder {
    /// Dropping an unfinished recorder leaves no thread behind.
    fn drop(&mut self) {
        if let State::Running(running) = std::mem::replace(&mut self.state, State::Ended) {
            running.stop();
            let _ = running.thread.join();
        }
    }
}

fn run(
    opened: Opened,
    account: Account,
    group: Option<Cgroup>,
    began: u64,
    before: Before,
) -> Result<Running, Error> {
    let signals = Arc::new(Signals::default());
    let (clock, cpus, sees_all) = (opened.clock, opened.cpus.len(), opened.sees_all());
    let sees_contention = opened.sees_contention;
    let hidden = Hidden {
        kernel: !opened.sees_kernel(),
        waits: !opened.sees_waits,
    };
    let reader = Reader::new(opened, account, group, Arc::clone(&signals));
    let thread = std::thread::Builder::new()
        .name("scalevm-perf".to_owned())
        .spawn(move || reader.run())
        .map_err(Error::system("starting the reader"))?;
    Ok(Running {
        signals,
        thread,
        began,
        clock,
        cpus,
        sees_all,
        sees_contention,
        hidden,
        before,
    })
}
