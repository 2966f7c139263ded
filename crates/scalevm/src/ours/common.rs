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
use workloads::{Error, Feature};

/// What the tasks of a run have in common.
pub struct Common<M: Kernel, P: Design<M>> {
    /// Their process, if they are threads.
    process: Option<Arc<Process<M, P>>>,
    /// The files of a build, if they build.
    inputs: Option<Inputs<M, P>>,
    services: Arc<Services<M, P>>,
}

impl<M: Kernel, P: Design<M>> Common<M, P> {
    /// Made on a CPU of the machine, for the tasks of `plan`.
    pub fn new(vm: &Arc<Vm<M, P>>, plan: &Plan, preset: Preset) -> Result<Self, Error> {
        let process = match plan.mode {
            Mode::Processes => None,
            Mode::Threads => Some(Arc::new(Process::new(vm)?)),
        };
        let inputs = match plan.workload.uses(Feature::Compiler) {
            true => Some(inputs(vm)?),
            false => None,
        };
        let services = Arc::new(Services::new(vm, plan, preset)?);
        Ok(Common {
            process,
            inputs,
            services,
        })
    }

    /// The task on the calling CPU.
    pub fn task(&self, vm: &Arc<Vm<M, P>>, account: Account) -> Result<Task<M, P>, Error> {
        let process = match &self.process {
            Some(process) => process.clone(),
            None => Arc::new(Process::new(vm)?),
        };
        let services = self.services.clone();
        Ok(Task::new(process, account, services, self.inputs.clone()))
    }
}

impl<M: Kernel, P: Design<M>> Clone for Common<M, P> {
    fn clone(&self) -> Self {
        Common {
            process: self.process.clone(),
            inputs: self.inputs.clone(),
            services: self.services.clone(),
        }
    }
}
