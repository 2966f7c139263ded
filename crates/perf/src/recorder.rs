//! Recording, from opening to the end.

use crate::account::Account;
use crate::recording::{Recording, Seen};
use crate::session::{Opened, Reader, now, own_thread};
use crate::symbols;
use crate::tasks::{self, Family, Files};
use crate::{Error, Options};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Records some processes and all that descends from them. A thread of its own reads what
/// the kernel writes; neither it nor the thread that opened the recorder is watched.
pub struct Recorder {
    options: Options,
    roots: Vec<u32>,
    opener: u32,
    missing: Vec<String>,
    state: State,
}

enum State {
    Opened(Box<Opened>),
    Running(Running),
    Ended,
}

struct Running {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<(Account, u64)>,
    began: u64,
    clock: crate::Clock,
    cpus: usize,
    sees_all: bool,
}

impl Recorder {
    /// Opens what can be recorded here of the processes `roots` (numbers; all their threads
    /// and descendants are meant). What can not be had is in [`missing`](Self::missing); it
    /// is an error only if not even user stacks of own processes can be sampled.
    pub fn open(options: &Options, roots: &[u32]) -> Result<Recorder, Error> {
        if options.frequency == 0 {
            return Err(Error::Options("the frequency is 0"));
        }
        if options.ring_pages == 0 || options.ring_pages > 1 << 18 {
            return Err(Error::Options("a ring has from 1 to 262144 pages"));
        }
        if let Some(&gone) = roots.iter().find(|&&pid| tasks::threads(pid).is_empty()) {
            return Err(Error::NoProcess(gone));
        }
        let opened = Opened::open(options)?;
        let mut missing = opened.missing.clone();
        missing.extend(symbols::missing().filter(|_| opened.sees_kernel()));
        Ok(Recorder {
            options: *options,
            roots: roots.to_vec(),
            opener: own_thread(),
            missing,
            state: State::Opened(Box::new(opened)),
        })
    }

    /// What is not recorded here, and how to allow it: a sentence each.
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// Begins to record.
    pub fn start(&mut self) -> Result<(), Error> {
        let mut opened = match std::mem::replace(&mut self.state, State::Ended) {
            State::Opened(opened) => opened,
            other => {
                self.state = other;
                return Err(Error::Options("it was started before"));
            }
        };
        // First births are reported, then the living are counted: none falls between.
        opened
            .watch_tasks()
            .map_err(Error::system("watching tasks"))?;
        let mut files = Files::default();
        let mut family = Family::scan(&self.roots, &mut files);
        family.ignore(self.opener);
        for &root in &self.roots {
            opened
                .add_process(&family.threads(root))
                .map_err(Error::Refused)?;
        }
        for pid in family.processes().filter(|pid| !self.roots.contains(pid)) {
            // A descendant may have become another user's.
            let _ = opened.add_process(&family.threads(pid));
        }
        let began = now();
        opened
            .enable()
            .map_err(Error::system("starting to record"))?;
        self.state = State::Running(run(*opened, Account::new(family, files), began)?);
        Ok(())
    }

    /// Ends recording and finds names for what was seen: better while the processes are
    /// there still.
    pub fn finish(mut self) -> Result<Recording, Error> {
        let State::Running(running) = std::mem::replace(&mut self.state, State::Ended) else {
            return Err(Error::Options("it was not started"));
        };
        running.stop();
        let (account, end) = running.thread.join().map_err(|_| Error::Reader)?;
        Ok(Recording::new(Seen {
            clock: running.clock,
            span: Duration::from_nanos(end.saturating_sub(running.began)),
            sample_seconds: 1.0 / f64::from(self.options.frequency),
            cpus: running.cpus,
            sees_all: running.sees_all,
            missing: std::mem::take(&mut self.missing),
            stacks: symbols::resolve(account.stacks.into_stacks(), account.files.names()),
            totals: account.totals,
        }))
    }
}

impl Running {
    fn stop(&self) {
        // Release: pairs with the reader's acquire.
        self.stop.store(true, Ordering::Release);
    }
}

impl Drop for Recorder {
    /// Whoever gives up recording leaves no thread behind.
    fn drop(&mut self) {
        if let State::Running(running) = std::mem::replace(&mut self.state, State::Ended) {
            running.stop();
            let _ = running.thread.join();
        }
    }
}

fn run(opened: Opened, account: Account, began: u64) -> Result<Running, Error> {
    let stop = Arc::new(AtomicBool::new(false));
    let (clock, cpus, sees_all) = (opened.clock, opened.cpus.len(), opened.sees_all());
    let reader = Reader::new(opened, account, Arc::clone(&stop));
    let thread = std::thread::Builder::new()
        .name("scalevm-perf".to_owned())
        .spawn(move || reader.run())
        .map_err(Error::system("starting the reader"))?;
    Ok(Running {
        stop,
        thread,
        began,
        clock,
        cpus,
        sees_all,
    })
}
