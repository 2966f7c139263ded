//! The services of a run's kernel other than memory.

use super::kernel::SystemCalls;
use super::parts::Steps;
use super::process::failed;
use crate::harness::Plan;
use baselines::Preset;
use baselines::selected::AnyKernel;
use ipc::{Futexes, Pipe};
use machine::{PAGE_SIZE, Topology};
use std::sync::Arc;
use vm::object::{Object, ObjectRef};
use vm::{System, Vm};
use workloads::{Call, Error, Feature, Workload};

/// The kernel's services for all tasks of a run.
pub struct Services<S: System<Machine: SystemCalls>> {
    /// The way in which tasks enter the kernel and sleep there.
    pub kernel: AnyKernel<S::Machine>,
    /// Waiters at words of memory; none if the workload has no futexes.
    pub futexes: Option<Futexes<S::Machine>>,
    /// The tasks' pipes, by task, if they are neighbours.
    pub pipes: Vec<Arc<Pipe<S::Machine>>>,
    /// A page for each task, if they are.
    pub memory: Option<ObjectRef<S>>,
    /// The steps of recorded programs, if the workload is one.
    pub steps: Option<Steps>,
    /// The number of tasks, and the number of them that are threads of one process.
    pub tasks: usize,
    pub companions: usize,
}

impl<S: System<Machine: SystemCalls>> Services<S> {
    /// Makes the services for the tasks of `plan`, on a CPU of the machine.
    pub fn new(vm: &Arc<Vm<S>>, plan: &Plan, preset: Preset) -> Result<Self, Error> {
        let kernel = preset.kernel();
        let futexes = plan
            .workload
            .uses(Feature::Futexes)
            .then(|| Futexes::new(&kernel, vm.machine().cpus()));
        let (pipes, memory) = if plan.workload.uses(Feature::Neighbours) {
            let bytes = (plan.tasks * PAGE_SIZE) as u64;
            let memory = Object::anonymous(vm, bytes).map_err(failed(Call::Common))?;
            let pipe = || Arc::new(Pipe::new());
            ((0..plan.tasks).map(|_| pipe()).collect(), Some(memory))
        } else {
            (Vec::new(), None)
        };
        let replay = plan.workload.known().ok().and_then(Workload::replay);
        let services = Services {
            kernel,
            steps: replay.map(|replay| Steps::new(plan.tasks, replay)),
            futexes,
            pipes,
            memory,
            tasks: plan.tasks,
            companions: plan.mode.companions(plan.tasks),
        };
        services.label();
        Ok(services)
    }

    /// Names the objects' memory, for machines that account for lines by name.
    fn label(&self) {
        self.futexes.iter().for_each(Futexes::label);
        self.pipes.iter().for_each(|pipe| pipe.label());
    }
}
