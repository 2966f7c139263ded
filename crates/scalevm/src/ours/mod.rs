//! scalevm's own VM as a system that workloads run on, and its hosted machine: threads
//! of this process.
//!
//! Each task is a thread and a CPU of a hosted machine. As processes, tasks have an
//! address space each, in one physical memory; as threads, they share one.

mod process;
mod stores;
mod system;

use crate::harness::{Failure, Mode, Plan, Running, Target};
use crate::tasks::{Affinity, Area, Gate, places, threads};
use baselines::selected::{Preset, Selected};
use hosted::Hosted;
use machine::PAGE_SIZE;
pub use process::Process;
use std::sync::Arc;
pub use stores::swap_space;
pub use system::Task;
use vm::{Best, Options, Policies, Vm};
use workloads::{Feature, Workload};

/// Physical memory for each task beside what its workload touches: page tables, and what
/// lies in the CPUs' caches. Only what is used costs anything.
const MEMORY_PER_TASK: usize = 32 << 20;

/// Physical memory for so many tasks that run `workload`. What is mapped from files may
/// be there twice.
pub fn memory(workload: &Workload, tasks: usize) -> usize {
    let copies = if workload.needs.files { 2 } else { 1 };
    tasks * (copies * workload.needs.memory + MEMORY_PER_TASK)
}

/// Swap space for each task, in pages: several of the workloads' mappings.
pub const SWAP_PER_TASK: u64 = 4 * (workloads::SIZE / PAGE_SIZE) as u64;

/// What our VM has beyond memory.
const FEATURES: &[Feature] = &[
    Feature::Remap,
    Feature::PageOut,
    Feature::Fork,
    Feature::Exec,
];

/// Our VM as a target.
pub struct Ours {
    /// How the VM is built.
    pub preset: Preset,
    /// Where tasks run.
    pub affinity: Affinity,
}

/// The workload, if our VM has all that it needs.
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

impl Target for Ours {
    fn start(&self, plan: &Plan) -> Result<Box<dyn Running>, Failure> {
        can_run(plan)?;
        let swap_pages = Some(SWAP_PER_TASK * plan.tasks as u64);
        match self.preset {
            // Our own design as an embedder gets it: chosen at compile time.
            Preset::Scalevm => self.start_with::<Best>(
                plan,
                Options {
                    swap_pages,
                    ..Options::default()
                },
            ),
            preset => self.start_with::<Selected>(
                plan,
                Options {
                    invalidation: preset.design(),
                    swap: preset.account(),
                    swap_pages,
                    ..Options::default()
                },
            ),
        }
    }
}

impl Ours {
    fn start_with<P: Policies<Hosted>>(
        &self,
        plan: &Plan,
        mut options: Options<Hosted, P>,
    ) -> Result<Box<dyn Running>, Failure> {
        if plan.tasks > machine::MAX_CPUS {
            return Err(Failure::Unavailable(format!(
                "{} tasks: a machine has at most {} CPUs, and each task is one",
                plan.tasks,
                machine::MAX_CPUS
            )));
        }
        let places = places::places(self.affinity).map_err(Failure::start("CPU affinity"))?;
        let workload = plan.workload.known()?;
        let memory = memory(workload, plan.tasks);
        let machine =
            Hosted::with_memory(plan.tasks, memory).map_err(Failure::start("physical memory"))?;
        let swap = swap_space(&machine, workload, plan.tasks);
        options.swap_space = swap.map_err(Failure::start("swap space"))?;
        let vm = Vm::with_options(machine, options);
        let area = Area::new(plan.tasks).map_err(Failure::start("shared memory"))?;
        let gate = Gate::new().map_err(Failure::start("pipe"))?;
        let shared = match plan.mode {
            Mode::Processes => None,
            // Made by a CPU of the machine; the tasks hold it, so that the last of them
            // takes it apart.
            Mode::Threads => {
                let process = vm.machine().on_cpu(0, || Process::new(&vm));
                Some(Arc::new(process.map_err(|error| Failure::Task {
                    workload: plan.workload.name(),
                    task: 0,
                    error,
                })?))
            }
        };
        let enter = move |task: usize| {
            vm.machine().attach(task);
            let process = match &shared {
                Some(process) => Arc::clone(process),
                None => Arc::new(Process::new(&vm)?),
            };
            Ok(Task::new(process))
        };
        Ok(Box::new(threads::start(plan, &places, area, gate, enter)?))
    }
}
