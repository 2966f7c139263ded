//! The objects that the tasks of a run share.

use super::kernel::{Account, SystemCalls};
use super::process::Process;
use super::services::Services;
use super::stores::{Inputs, inputs};
use super::system::Task;
use crate::harness::{Mode, Plan};
use baselines::Preset;
use std::sync::Arc;
use vm::{System, Vm};
use workloads::{Daemon, Error, Feature};

/// The objects that the tasks of a run share.
pub struct Common<S: System<Machine: SystemCalls>> {
    descent: Descent<S>,
    given: Given<S>,
}

/// The source of the tasks' processes.
enum Descent<S: System<Machine: SystemCalls>> {
    /// Each is new.
    New,
    /// All are this one: the tasks are its threads.
    One(Arc<Process<S>>),
    /// Each is a copy of the first, made before the tasks begin: many forks of one space at a time
    /// would wait for each other.
    Copies {
        first: Arc<Process<S>>,
        each: Copies<S>,
    },
}

/// By task.
type Copies<S> = Arc<[Arc<Process<S>>]>;

/// The objects that tasks, and their children, find when they begin.
pub struct Given<S: System<Machine: SystemCalls>> {
    /// The files of programs, if the workload starts any.
    pub inputs: Option<Inputs<S>>,
    /// The mail server, if there is one.
    pub daemon: Option<Daemon>,
    /// The kernel's services other than memory.
    pub services: Arc<Services<S>>,
}

impl<S: System<Machine: SystemCalls>> Common<S> {
    /// Makes the objects for the tasks of `plan`, on a CPU of the machine.
    pub fn new(vm: &Arc<Vm<S>>, plan: &Plan, preset: Preset) -> Result<Self, Error> {
        let family = plan.workload.uses(Feature::Family);
        let first = match plan.mode {
            Mode::Processes if !family => None,
            _ => Some(Arc::new(Process::new(vm)?)),
        };
        let mut given = Given {
            inputs: None,
            daemon: None,
            services: Arc::new(Services::new(vm, plan, preset)?),
        };
        if family || plan.workload.uses(Feature::Compiler) {
            given.inputs = Some(inputs(vm)?);
        }
        if let (true, Some(inputs), Some(process)) = (family, &given.inputs, &first) {
            let mut task = Task::new(process.clone(), Account::nobody(), Given::clone(&given));
            given.daemon = Some(Daemon::start(&mut task, inputs)?);
        }
        let descent = match (plan.mode, first) {
            (_, None) => Descent::New,
            (Mode::Threads, Some(process)) => Descent::One(process),
            (Mode::Processes, Some(first)) => {
                let copies = (0..plan.tasks).map(|_| first.copy().map(Arc::new));
                let each = copies.collect::<Result<_, Error>>()?;
                Descent::Copies { first, each }
            }
        };
        Ok(Common { descent, given })
    }

    /// The task on the calling CPU.
    pub fn task(&self, vm: &Arc<Vm<S>>, account: Account) -> Result<Task<S>, Error> {
        let process = match &self.descent {
            Descent::New => Arc::new(Process::new(vm)?),
            Descent::One(process) => process.clone(),
            Descent::Copies { each, .. } => each[account.task].clone(),
        };
        Ok(Task::new(process, account, self.given.clone()))
    }
}

impl<S: System<Machine: SystemCalls>> Clone for Common<S> {
    fn clone(&self) -> Self {
        Common {
            descent: match &self.descent {
                Descent::New => Descent::New,
                Descent::One(process) => Descent::One(process.clone()),
                Descent::Copies { first, each } => Descent::Copies {
                    first: first.clone(),
                    each: each.clone(),
                },
            },
            given: self.given.clone(),
        }
    }
}

impl<S: System<Machine: SystemCalls>> Clone for Given<S> {
    fn clone(&self) -> Self {
        Given {
            inputs: self.inputs.clone(),
            daemon: self.daemon,
            services: self.services.clone(),
        }
    }
}
