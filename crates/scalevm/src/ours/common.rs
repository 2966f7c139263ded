//! What the tasks of a run have in common.

use super::kernel::{Account, Kernel};
use super::process::Process;
use super::services::{Design, Services};
use super::stores::{Inputs, inputs};
use super::system::Task;
use crate::harness::{Mode, Plan};
use baselines::selected::Preset;
use std::sync::Arc;
use vm::Vm;
use workloads::{Daemon, Error, Feature};

/// What the tasks of a run have in common.
pub struct Common<M: Kernel, P: Design<M>> {
    descent: Descent<M, P>,
    given: Given<M, P>,
}

/// Where the tasks' processes come from.
enum Descent<M: Kernel, P: Design<M>> {
    /// Each is new.
    New,
    /// All are this one: the tasks are its threads.
    One(Arc<Process<M, P>>),
    /// Each is a copy of this one.
    Copies(Arc<Process<M, P>>),
}

/// What tasks find when they begin, and their children.
pub struct Given<M: Kernel, P: Design<M>> {
    /// The files of programs, if the workload starts any.
    pub inputs: Option<Inputs<M, P>>,
    /// The mail server, if there is one.
    pub daemon: Option<Daemon>,
    /// What the kernel offers beside memory.
    pub services: Arc<Services<M, P>>,
}

impl<M: Kernel, P: Design<M>> Common<M, P> {
    /// Made on a CPU of the machine, for the tasks of `plan`.
    pub fn new(vm: &Arc<Vm<M, P>>, plan: &Plan, preset: Preset) -> Result<Self, Error> {
        let family = plan.workload.uses(Feature::Family);
        let first = || Process::new(vm).map(Arc::new);
        let descent = match plan.mode {
            Mode::Threads => Descent::One(first()?),
            Mode::Processes if family => Descent::Copies(first()?),
            Mode::Processes => Descent::New,
        };
        let mut given = Given {
            inputs: None,
            daemon: None,
            services: Arc::new(Services::new(vm, plan, preset)?),
        };
        if family || plan.workload.uses(Feature::Compiler) {
            given.inputs = Some(inputs(vm)?);
        }
        if let (true, Some(inputs), Some(process)) = (family, &given.inputs, descent.process()) {
            let mut task = Task::new(process.clone(), Account::nobody(), Given::clone(&given));
            given.daemon = Some(Daemon::start(&mut task, inputs)?);
        }
        Ok(Common { descent, given })
    }

    /// The task on the calling CPU.
    pub fn task(&self, vm: &Arc<Vm<M, P>>, account: Account) -> Result<Task<M, P>, Error> {
        let process = match &self.descent {
            Descent::New => Arc::new(Process::new(vm)?),
            Descent::One(process) => process.clone(),
            Descent::Copies(process) => Arc::new(process.copy()?),
        };
        Ok(Task::new(process, account, self.given.clone()))
    }
}

impl<M: Kernel, P: Design<M>> Descent<M, P> {
    /// The one that they come from.
    fn process(&self) -> Option<&Arc<Process<M, P>>> {
        match self {
            Descent::New => None,
            Descent::One(process) | Descent::Copies(process) => Some(process),
        }
    }
}

impl<M: Kernel, P: Design<M>> Clone for Common<M, P> {
    fn clone(&self) -> Self {
        Common {
            descent: match &self.descent {
                Descent::New => Descent::New,
                Descent::One(process) => Descent::One(process.clone()),
                Descent::Copies(process) => Descent::Copies(process.clone()),
            },
            given: self.given.clone(),
        }
    }
}

impl<M: Kernel, P: Design<M>> Clone for Given<M, P> {
    fn clone(&self) -> Self {
        Given {
            inputs: self.inputs.clone(),
            daemon: self.daemon,
            services: self.services.clone(),
        }
    }
}
