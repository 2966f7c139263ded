//! scalevm's own VM as a system that workloads run on, and its hosted machine: threads
//! of this process.
//!
//! Each task is a thread and a CPU of a hosted machine; or there are fewer threads, and a scheduler
//! of the workspace decides which task runs on which. As processes, tasks have an address space
//! each, in one physical memory; as threads, they share one.

mod common;
mod descriptors;
mod family;
mod kernel;
mod parts;
mod process;
pub mod scheduler;
mod services;
mod stores;
mod system;

use crate::harness::{Failure, Film, Plan, Running, Target, Times};
use crate::on::{On, subject};
use crate::tasks::threads::{self, Threads};
use crate::tasks::{self, Affinity, Area, Gate, places};
use baselines::Preset;
use baselines::selected::Selected;
pub use common::Common;
use hosted::Hosted;
pub use kernel::{Account, Ledger, Ledgers, pass};
use machine::{PAGE_SIZE, Tasks};
pub use process::inside;
use stats::record::Subject;
use std::io;
use std::num::NonZero;
use std::thread;
use std::time::Instant;
pub use stores::swap_space;
use vm::{Options, Vm};
use workloads::{Feature, Workload};

/// Physical memory for each task in addition to that of its workload: page tables, and the pages in
/// the CPUs' caches. Only the used part costs anything.
const MEMORY_PER_TASK: usize = 32 << 20;

/// Physical memory for `tasks` tasks that run `workload`. Pages mapped from files may be in memory
/// twice.
pub fn memory(workload: &Workload, tasks: usize) -> usize {
    let copies = if workload.needs.files { 2 } else { 1 };
    tasks * (copies * workload.needs.memory + MEMORY_PER_TASK)
}

/// Swap space for each task, in pages: several of the workload's mappings, so that a CPU's share of
/// the account holds one of them and a page (malloc1), with half of the space in shares and shares
/// half full.
fn swap_per_task(workload: &Workload) -> u64 {
    5 * (workload.size.max(workloads::SIZE) / PAGE_SIZE) as u64
}

/// Swap space for a plan whose tasks have this many CPUs, in pages. A recorded program reserves
/// what it likes.
pub fn swap_pages(plan: &Plan, cpus: usize) -> u64 {
    let most = u64::from(u32::MAX);
    match plan.workload.known() {
        Ok(workload) if workload.replay().is_none() => {
            most.min(swap_per_task(workload) * cpus as u64)
        }
        _ => most,
    }
}

/// The features of scalevm's VM beyond memory.
const FEATURES: &[Feature] = &[
    Feature::Remap,
    Feature::PageOut,
    Feature::Fork,
    Feature::Exec,
    Feature::Compiler,
    Feature::Futexes,
    Feature::Poll,
    Feature::Pipes,
    Feature::Neighbours,
    Feature::Family,
    Feature::Scan,
    Feature::Recording,
];

/// Scalevm's VM as a target.
#[derive(Clone)]
pub struct Ours {
    /// How the VM is built.
    pub preset: Preset,
    /// Where tasks run.
    pub affinity: Affinity,
    /// The number of threads over which the scheduler of the preset's system deals more tasks than
    /// that; without it each task is a thread, and the host's scheduler deals them over its CPUs.
    pub cpus: Option<usize>,
}

/// The workload, if scalevm's VM has all that it needs.
pub fn can_run(plan: &Plan) -> Result<&'static Workload, Failure> {
    let workload = plan.workload.known()?;
    let mut features = workload.needs.features.iter();
    if let Some(lacking) = features.find(|one| !FEATURES.contains(one)) {
        return Err(Failure::Unavailable(format!(
            "{} needs {}, which scalevm's own VM does not have; use --on os",
            workload.name,
            lacking.name()
        )));
    }
    Ok(workload)
}

/// Spends a delay outside of the VM, in which the CPU answers the others.
fn spend(nanoseconds: u64) -> [u64; 2] {
    tasks::spend(nanoseconds, Hosted::safe_point)
}

impl Target for Ours {
    fn start(&self, plan: &Plan) -> Result<Box<dyn Running>, Failure> {
        Ok(Box::new(self.begin(plan, None)?))
    }

    fn complete(&self, plan: &Plan, _: u32) -> Result<Times, Failure> {
        let ledgers = Ledger::of_tasks(plan.tasks);
        let tasks = self.begin(plan, Some(ledgers.clone()))?;
        let began = Instant::now();
        tasks.join()?;
        Ok(Ledger::times(&ledgers, began.elapsed()))
    }

    fn play(&self, plan: &Plan, film: &'static Film) -> Result<(), Failure> {
        self.begin(plan, None)?.until(|| film.is_over())
    }
}

impl Ours {
    /// Describes `plan` on it.
    pub fn subject(&self, plan: &Plan) -> Subject {
        let scheduler = scheduler::of::<Hosted>(self.preset).name;
        let cpus = self.scheduled(plan);
        Subject {
            scheduler: cpus.map(|_| scheduler.to_owned()),
            cpus: self.cpus.or(cpus).and_then(|cpus| u32::try_from(cpus).ok()),
            ..subject(plan, On::Hosted, Some(self.preset))
        }
    }

    /// The number of threads over which a scheduler deals the tasks, if one does.
    fn scheduled(&self, plan: &Plan) -> Option<usize> {
        let cpus = match self.cpus {
            None if plan.needs_scheduler(plan.tasks) => {
                thread::available_parallelism().map_or(1, NonZero::get)
            }
            cpus => cpus?,
        };
        plan.needs_scheduler(cpus).then_some(cpus)
    }

    fn begin(&self, plan: &Plan, ledgers: Option<Ledgers>) -> Result<Threads, Failure> {
        can_run(plan)?;
        // All presets are chosen at run time, the default one too: it is compared with the others
        // at the same cost of dispatch.
        let mut options: Options<Selected<Hosted>> = Options {
            swap_pages: Some(swap_pages(plan, plan.tasks)),
            ..self.preset.options()
        };
        let scheduled = self.scheduled(plan);
        let cpus = scheduled.unwrap_or(plan.tasks);
        if cpus > machine::MAX_CPUS {
            return Err(Failure::Unavailable(format!(
                "{cpus} tasks: a machine has at most {} CPUs, one for each task",
                machine::MAX_CPUS
            )));
        }
        let places = places::places(self.affinity).map_err(Failure::start("CPU affinity"))?;
        let workload = plan.workload.known()?;
        let memory = memory(workload, plan.tasks);
        let machine = Hosted::with_options(hosted::Options {
            watched: false,
            ..hosted::Options::new(cpus, memory)
        });
        let machine = machine.map_err(Failure::start("physical memory"))?;
        if scheduled.is_some() {
            let scheduler = scheduler::of::<Hosted>(self.preset);
            (scheduler.install)(&machine).map_err(Failure::start("scheduler"))?;
        }
        let swap = swap_space(&machine, workload, plan.tasks);
        options.swap_space = swap.map_err(Failure::start("swap space"))?;
        let vm = Vm::with_options(machine, options)
            .map_err(io::Error::other)
            .map_err(Failure::start("the VM"))?;
        let area = Area::new(plan, spend).map_err(Failure::start("shared memory"))?;
        let gate = Gate::new().map_err(Failure::start("pipe"))?;
        // Made by a CPU of the machine; the tasks hold it, so that the last of them takes it apart.
        let common = vm
            .machine()
            .on_cpu(0, || Common::new(&vm, plan, self.preset));
        let common = common.map_err(|error| Failure::Task {
            workload: workload.name,
            task: 0,
            error,
        })?;
        let machine = vm.machine().clone();
        let is_scheduled = scheduled.is_some();
        let enter = move |task: usize| {
            if !is_scheduled {
                vm.machine().attach(task);
            }
            let account = Account {
                task,
                private: 0.0,
                ledgers: ledgers.clone(),
            };
            common.task(&vm, account)
        };
        if is_scheduled {
            threads::start_on(&machine, plan, &places, area, gate, enter)
        } else {
            threads::start(plan, &places, area, gate, enter)
        }
    }
}
