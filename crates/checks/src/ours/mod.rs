//! scalevm's own VM as a system that performs sequences.
//!
//! Each process is a space. Steps run one at a time, on the CPUs in turn, so
//! each CPU must flush the others' TLBs.

mod calls;
mod crew;
mod files;
mod map;
mod scarcity;
#[cfg(test)]
mod simulated;

use calls::{Said, Space};
pub use crew::quieten;

use crew::{Crew, Threads};
use files::Files;
use machine::{PAGE_SIZE, Topology};
use oracle::outcome::Outcome;
use oracle::places::Places;
use oracle::step::Scarcity;
use oracle::{Broken, Call, Halfway, Step, System};
use scarcity::{Promised, Store, Supplies};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vm::swap::SwapSpace;
use vm::{Best, HEAP_START, Options, Overcommit, Vm};

/// Bytes of memory: more than any sequence needs.
const MEMORY: usize = 256 << 20;
/// Bytes of memory of a machine on which memory is to be scarce.
const LITTLE: usize = 16 << 20;
/// Pages that may be committed, however little memory there is.
const COMMITTED: u64 = 2 * (MEMORY / PAGE_SIZE) as u64;
/// The time that the beginning and the end of a sequence may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Pages of swap space.
const SWAP: u32 = 1 << 14;

/// The VM, its machine, and the objects of a sequence.
pub struct Ours<C: Crew> {
    cpus: usize,
    /// `None` if it broke; then the next sequence makes another one.
    running: Option<Running<C>>,
    processes: BTreeMap<u8, Arc<Space<C::Machine>>>,
    places: Places,
    /// Steps since the sequence began.
    steps: usize,
    /// True if supplies may be scarce; `scarce` says which one fails in the next step.
    may_be_scarce: bool,
    scarce: Option<Scarcity>,
    /// True if frames are withheld.
    is_short: bool,
    /// The time that a sequence may take; it ends at `deadline`.
    limit: Duration,
    deadline: Instant,
}

/// A machine with a VM on it.
struct Running<C: Crew> {
    vm: Arc<Vm<Best<C::Machine>>>,
    files: Arc<Files<C::Machine>>,
    supplies: Arc<Supplies<C::Machine>>,
    /// The last to be dropped: the rest may lie in its memory.
    crew: C,
}

impl Ours<Threads> {
    /// A VM on a machine of `cpus` CPUs, which gives up sequences that take longer than `limit`.
    pub fn new(cpus: usize, limit: Duration) -> Self {
        Ours::of(cpus, limit)
    }

    /// A VM whose supplies can be made scarce.
    pub fn scarce(cpus: usize, limit: Duration) -> Self {
        let mut ours = Ours::new(cpus, limit);
        ours.may_be_scarce = true;
        ours
    }
}

impl<C: Crew> Ours<C> {
    /// A VM on the machine of such a crew.
    fn of(cpus: usize, limit: Duration) -> Self {
        Ours {
            cpus,
            running: None,
            processes: BTreeMap::new(),
            places: Places::default(),
            steps: 0,
            may_be_scarce: false,
            scarce: None,
            is_short: false,
            limit,
            deadline: Instant::now() + PATIENCE,
        }
    }

    /// Runs a job on the CPU whose turn it is. If it fails, the VM is no longer used, because its
    /// locks may be held.
    fn on_cpu<R: Clone + Send + 'static>(
        &mut self,
        job: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, Outcome> {
        let Some(running) = &self.running else {
            return Err(Outcome::Crashed("it has crashed before".into()));
        };
        // No CPU twice in a row, and not always in the same order.
        let cpu = (self.steps + self.steps / 3) % self.cpus;
        let scarce = self.scarce.take();
        let failing = scarce.map(|scarcity| (running.supplies.clone(), scarcity));
        let job = move || {
            let _failing = failing.map(|(supplies, scarcity)| supplies.fail(scarcity));
            job()
        };
        let done = running.crew.run(cpu, self.deadline, job);
        done.inspect_err(|_| self.abandon())
    }

    fn abandon(&mut self) {
        let processes = std::mem::take(&mut self.processes);
        processes.into_values().for_each(std::mem::forget);
        if let Some(running) = self.running.take() {
            std::mem::forget((running.vm, running.files, running.supplies));
        }
    }

    fn step(&mut self, step: &Step) -> Result<Outcome, Outcome> {
        let id = step.process;
        match step.call {
            Call::Fork(child) => {
                let parent = self.processes[&id].clone();
                let forked = self.on_cpu(move || {
                    parent.activate();
                    parent.fork().map(Arc::new)
                })?;
                self.places.fork(id, child);
                let forked = forked.map_err(calls::said)?;
                self.processes.insert(child, forked);
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

    /// Makes a supply scarce from now on, or in the next step.
    fn make_scarce(&mut self, scarcity: Scarcity) -> Result<Outcome, Outcome> {
        let Scarcity::Left(left) = scarcity else {
            self.scarce = Some(scarcity);
            return Ok(Outcome::Done);
        };
        let supplies = self
            .running
            .as_ref()
            .map(|running| running.supplies.clone());
        self.is_short = true;
        self.on_cpu(move || supplies.map(|supplies| supplies.leave(left as usize)))?;
        Ok(Outcome::Done)
    }

    /// Performs a step, which is refused only if something is scarce, and then changes nothing.
    fn step_in_need(&mut self, step: &Step) -> Result<Outcome, Outcome> {
        let scarce = self.scarce.take();
        let space = self.processes[&step.process].clone();
        let promised = move || Promised::by(&space);
        let before = self.on_cpu(promised.clone())?;
        self.scarce = scarce;
        let outcome = self.step(step).unwrap_or_else(|outcome| outcome);
        self.scarce = None;
        if !matches!(outcome, Outcome::Refused(_)) {
            return Ok(outcome);
        }
        let after = self.on_cpu(promised)?;
        let crashed = |how: &str| Outcome::Crashed(format!("{outcome}, {how}"));
        if scarce.is_none() && !self.is_short {
            return Err(crashed("though memory is not short"));
        }
        if after == before || scarcity::may_change(&step.call) {
            Ok(outcome)
        } else {
            Err(crashed("but something has changed"))
        }
    }

    /// Returns true if the step's effect is undefined when memory is short.
    fn makes_copies(&self, step: &Step) -> bool {
        let space = self.processes.get(&step.process).cloned();
        let Some((space, running)) = space.zip(self.running.as_ref()) else {
            return false;
        };
        let call = match step.call {
            Call::Lock(range) | Call::Protect(range, _) | Call::Advise(range, _) => {
                if !self.places.knows(step.process, range.start) {
                    return false;
                }
                self.places.resolved(step.process, &step.call)
            }
            call => call,
        };
        let copies = move || scarcity::makes_copies(&space, &call);
        let copied = running.crew.run(0, self.deadline, copies);
        copied.unwrap_or(false)
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

    fn start(&self) -> Result<Running<C>, Broken> {
        let memory = if self.may_be_scarce { LITTLE } else { MEMORY };
        let crew = C::new(self.cpus, memory).map_err(Broken::host("memory of a machine"))?;
        let machine = crew.machine().clone();
        let cpus = machine.cpus();
        let made = crew.run(0, self.deadline, move || {
            let store = Store::default();
            let swap = SwapSpace::new(cpus, Box::new(store.clone()), SWAP)?;
            let options = Options {
                swap_space: Some(swap),
                swap_pages: Some(COMMITTED),
                // The default of kernels, with which MAP_NORESERVE makes a difference.
                overcommit: Overcommit::Heuristic,
                ..Options::default()
            };
            let vm = Vm::with_options(machine, options).expect("memory for the VM");
            let files = Files::new(&vm)?;
            let supplies = Supplies {
                vm: vm.clone(),
                files: files.stores().to_vec(),
                swap: store,
                withheld: Arc::default(),
            };
            Ok((vm, Arc::new(files), Arc::new(supplies)))
        });
        let made = made.map_err(|how| Broken::Own(how.to_string()))?;
        let failed = |error: vm::Error| Broken::Own(format!("the VM does not start: {error}"));
        let (vm, files, supplies) = made.map_err(failed)?;
        Ok(Running {
            vm,
            files,
            supplies,
            crew,
        })
    }
}

impl<C: Crew> System for Ours<C> {
    fn name(&self) -> &str {
        "scalevm"
    }

    fn supports(&self, step: &Step) -> bool {
        match step.call {
            Call::Scarce(_) => self.may_be_scarce,
            // Reclaiming may take any page.
            Call::InCore(_) => !self.may_be_scarce,
            _ => !self.may_be_scarce || !self.makes_copies(step),
        }
    }

    fn may_refuse(&self) -> bool {
        self.may_be_scarce
    }

    fn halfway(&self) -> Halfway {
        Halfway::Undone
    }

    fn reset(&mut self) -> Result<(), Broken> {
        self.deadline = Instant::now() + PATIENCE;
        // Leftovers were examined when the last sequence ended, unless that was cut short.
        if self.finish()?.is_some() {
            self.abandon();
        }
        if self.running.is_none() {
            self.running = Some(self.start()?);
        }
        self.places = Places::new(HEAP_START as u64);
        self.steps = 0;
        (self.scarce, self.is_short) = (None, false);
        let vm = self.running.as_ref().map(|running| running.vm.clone());
        let space = self.on_cpu(move || vm.map(|vm| Space::new(&vm).map(Arc::new)));
        match space {
            Ok(Some(Ok(space))) => {
                self.processes.insert(0, space);
                self.deadline = Instant::now() + self.limit;
                Ok(())
            }
            Ok(Some(Err(error))) => Err(Broken::Own(format!("no space: {error}"))),
            Ok(None) => Err(Broken::Own("no VM".into())),
            Err(outcome) => Err(Broken::Own(outcome.to_string())),
        }
    }

    fn perform(&mut self, step: &Step) -> Result<Outcome, Broken> {
        self.steps += 1;
        let outcome = match step.call {
            Call::Scarce(scarcity) => self.make_scarce(scarcity),
            // The end of a space is never refused, and no other reference may keep the space.
            _ if self.may_be_scarce && step.call != Call::Exit => self.step_in_need(step),
            _ => self.step(step),
        };
        Ok(outcome.unwrap_or_else(|outcome| outcome))
    }

    /// Frames and swap space must be free when all processes have ended and the files are
    /// empty.
    fn finish(&mut self) -> Result<Option<String>, Broken> {
        let Some(running) = &self.running else {
            return Ok(None);
        };
        let (vm, files) = (running.vm.clone(), running.files.clone());
        let supplies = running.supplies.clone();
        let processes = std::mem::take(&mut self.processes);
        self.scarce = None;
        let wrong = self.on_cpu(move || {
            supplies.leave(usize::MAX);
            drop(processes);
            files.clear()?;
            let frames = vm.frames();
            let leaked = frames.total() - frames.free_count();
            let reserved = vm.committed();
            let slots = vm.swap_slots().map_or(0, |slots| slots.used);
            let lost = leaked > 0 || reserved > 0 || slots > 0;
            Ok(lost.then(|| {
                format!(
                    "{leaked} frames, {reserved} reserved pages of swap space and {slots} slots \
                     of it are lost"
                )
            }))
        });
        match wrong {
            Ok(Ok(wrong)) => Ok(wrong),
            Ok(Err(error)) => Ok(Some(vm::Error::to_string(&error))),
            Err(outcome) => Ok(Some(outcome.to_string())),
        }
    }
}

/// Spaces and files must be dropped on a CPU, and this thread is none.
impl<C: Crew> Drop for Ours<C> {
    fn drop(&mut self) {
        self.deadline = Instant::now() + PATIENCE;
        if !matches!(self.finish(), Ok(None)) {
            self.abandon();
        }
        if let Some(Running {
            vm,
            files,
            supplies,
            crew,
        }) = self.running.take()
        {
            let _ = crew.run(0, self.deadline, move || drop((files, supplies, vm)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oracle::text;

    /// A sequence in which a difference is found is not played to its end.
    #[test]
    fn it_can_be_dropped_in_the_midst_of_a_sequence() {
        let steps = "0: map fixed w10 2p rw- private anonymous
            0: map anywhere 1p rw- shared file 0 @0 as h1
            0: store word w10 0x1
            0: fork 1";
        let mut ours = Ours::new(2, PATIENCE);
        ours.reset().expect("it begins");
        for step in text::parse(steps).expect("steps") {
            let outcome = ours.perform(&step).expect("it goes on");
            assert!(!matches!(outcome, Outcome::Crashed(_)), "{outcome}");
        }
        drop(ours);
    }
}
