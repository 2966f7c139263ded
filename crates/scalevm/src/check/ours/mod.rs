//! scalevm's own VM as a system that plays sequences.
//!
//! Each process is a space. Steps come one at a time, but on the CPUs in turn, so
//! that what one has in its TLB another must take away.

mod arguments;
mod calls;
mod crew;
mod files;
mod map;

use calls::{Said, Space};
use crew::Crew;
use files::Files;
use hosted::Hosted;
use machine::Topology;
use oracle::outcome::Outcome;
use oracle::places::Places;
use oracle::{Broken, Call, Halfway, Step, System};
use std::collections::BTreeMap;
use std::sync::Arc;
use vm::pager::MemoryPager;
use vm::policy::Reservation;
use vm::swap::SwapSpace;
use vm::{Best, HEAP_START, Options, Overcommit, Vm};

/// Bytes of memory: more than any sequence needs.
const MEMORY: usize = 256 << 20;
/// Pages of swap space.
const SWAP: u32 = 1 << 14;

/// The VM, its machine, and what a sequence has in it.
pub struct Ours {
    cpus: usize,
    /// Made anew if it broke.
    running: Option<Running>,
    processes: BTreeMap<u8, Arc<Space>>,
    places: Places,
    /// Steps since the sequence began.
    steps: usize,
}

/// A machine with a VM on it.
struct Running {
    crew: Crew,
    vm: Arc<Vm<Hosted, Best>>,
    files: Arc<Files>,
}

impl Ours {
    /// A VM on a machine of `cpus` CPUs.
    pub fn new(cpus: usize) -> Self {
        Ours {
            cpus,
            running: None,
            processes: BTreeMap::new(),
            places: Places::default(),
            steps: 0,
        }
    }

    /// Does something on the CPU whose turn it is. If that fails, nothing of the VM is
    /// touched any more: its locks may be held.
    fn on_cpu<R: Send + 'static>(
        &mut self,
        job: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, Outcome> {
        let Some(running) = &self.running else {
            return Err(Outcome::Crashed("it has crashed before".into()));
        };
        // No CPU twice in a row, and not always in the same order.
        let cpu = (self.steps + self.steps / 3) % self.cpus;
        running.crew.run(cpu, job).map_err(|how| {
            self.abandon();
            Outcome::Crashed(how)
        })
    }

    fn abandon(&mut self) {
        let processes = std::mem::take(&mut self.processes);
        processes.into_values().for_each(std::mem::forget);
        if let Some(running) = self.running.take() {
            std::mem::forget((running.vm, running.files));
        }
    }

    fn step(&mut self, step: &Step) -> Result<Outcome, Outcome> {
        let id = step.process;
        match step.call {
            Call::Fork(child) => {
                let parent = self.processes[&id].clone();
                let forked = self.on_cpu(move || {
                    parent.activate();
                    parent.fork()
                })?;
                self.places.fork(id, child);
                let forked = forked.map_err(|error| Outcome::Errno(error.errno()))?;
                self.processes.insert(child, Arc::new(forked));
                Ok(Outcome::Done)
            }
            Call::Exit => {
                let space = self.processes.remove(&id);
                self.places.forget(id);
                self.on_cpu(move || drop(space))?;
                Ok(Outcome::Done)
            }
            _ => self.call(step),
        }
    }

    fn call(&mut self, step: &Step) -> Result<Outcome, Outcome> {
        let space = self.processes[&step.process].clone();
        let Some(files) = self.running.as_ref().map(|running| running.files.clone()) else {
            return Err(Outcome::Crashed("it has crashed before".into()));
        };
        let call = self.places.resolved(step.process, &step.call);
        let said = self.on_cpu(move || {
            space.activate();
            calls::perform(&space, &files, &call)
        })?;
        Ok(match said {
            Said::At(address) => self.places.placed(step.process, &step.call, address),
            Said::Outcome(outcome) => self.places.named(&step.call, &call, outcome),
        })
    }

    fn start(&self) -> Result<Running, Broken> {
        let machine = Hosted::with_memory(self.cpus, MEMORY);
        let machine = machine.map_err(Broken::host("memory of a machine"))?;
        let crew = Crew::new(&machine, self.cpus);
        let cpus = machine.cpus();
        let made = crew.run(0, move || {
            let pager = Box::new(MemoryPager::new());
            let swap = SwapSpace::new(cpus, pager, SWAP)?;
            let options = Options {
                swap_space: Some(Arc::new(swap)),
                // As kernels are unless they are told: MAP_NORESERVE makes a difference.
                overcommit: Overcommit::Heuristic,
                ..Options::default()
            };
            let vm = Vm::with_options(machine, options);
            let files = Files::new(&vm)?;
            Ok((vm, Arc::new(files)))
        });
        let made = made.map_err(Broken::Own)?;
        let failed = |error: vm::Error| Broken::Own(format!("the VM does not start: {error}"));
        let (vm, files) = made.map_err(failed)?;
        Ok(Running { crew, vm, files })
    }
}

impl System for Ours {
    fn name(&self) -> &str {
        "scalevm"
    }

    fn halfway(&self) -> Halfway {
        Halfway::Undone
    }

    fn reset(&mut self) -> Result<(), Broken> {
        // What is left was looked at when the last sequence ended, unless that was cut short.
        if self.finish()?.is_some() {
            self.abandon();
        }
        if self.running.is_none() {
            self.running = Some(self.start()?);
        }
        self.places = Places::new(HEAP_START as u64);
        self.steps = 0;
        let vm = self.running.as_ref().map(|running| running.vm.clone());
        let space = self.on_cpu(move || vm.map(|vm| Space::new(&vm)));
        match space {
            Ok(Some(Ok(space))) => {
                self.processes.insert(0, Arc::new(space));
                Ok(())
            }
            Ok(Some(Err(error))) => Err(Broken::Own(format!("no space: {error}"))),
            Ok(None) => Err(Broken::Own("no VM".into())),
            Err(outcome) => Err(Broken::Own(outcome.to_string())),
        }
    }

    fn perform(&mut self, step: &Step) -> Result<Outcome, Broken> {
        self.steps += 1;
        Ok(self.step(step).unwrap_or_else(|outcome| outcome))
    }

    /// Frames and swap space must be free when all processes have ended and the files are
    /// empty.
    fn finish(&mut self) -> Result<Option<String>, Broken> {
        let Some(running) = &self.running else {
            return Ok(None);
        };
        let (vm, files) = (running.vm.clone(), running.files.clone());
        let processes = std::mem::take(&mut self.processes);
        let wrong = self.on_cpu(move || {
            drop(processes);
            files.clear()?;
            let frames = vm.frames();
            let leaked = frames.total() - frames.free_count();
            let reserved = vm.swap().reserved();
            Ok((leaked > 0 || reserved > 0)
                .then(|| format!("{leaked} frames and {reserved} pages of swap space are lost")))
        });
        match wrong {
            Ok(Ok(wrong)) => Ok(wrong),
            Ok(Err(error)) => Ok(Some(vm::Error::to_string(&error))),
            Err(outcome) => Ok(Some(outcome.to_string())),
        }
    }
}
