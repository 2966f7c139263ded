//! What the tasks of a run have in common.

use super::kernel::{Account, Kernel};
use super::process::Process;
use super::stores::{Inputs, inputs};
use super::system::Task;
use crate::harness::{Mode, Plan};
use std::sync::Arc;
use vm::{Policies, Vm};
use workloads::{Error, Feature};

/// What the tasks of a run have in common.
pub struct Common<M: Kernel, P: Policies<M>> {
    /// Their process, if they are threads.
    process: Option<Arc<Process<M, P>>>,
    /// The files of a build, if they build.
    inputs: Option<Inputs<M, P>>,
}

impl<M: Kernel, P: Policies<M>> Common<M, P> {
    /// Made on a CPU of the machine, for the tasks of `plan`.
    pub fn new(vm: &Arc<Vm<M, P>>, plan: &Plan) -> Result<Self, Error> {
        let process = match plan.mode {
            Mode::Processes => None,
            Mode::Threads => Some(Arc::new(Process::new(vm)?)),
        };
        let features = plan
            .workload
            .known()
            .map_or(&[][..], |one| one.needs.features);
        let inputs = match features.contains(&Feature::Compiler) {
            true => Some(inputs(vm)?),
            false => None,
        };
        Ok(Common { process, inputs })
    }

    /// The task on the calling CPU.
    pub fn task(&self, vm: &Arc<Vm<M, P>>, account: Account) -> Result<Task<M, P>, Error> {
        let process = match &self.process {
            Some(process) => process.clone(),
            None => Arc::new(Process::new(vm)?),
        };
        Ok(Task::new(process, account, self.inputs.clone()))
    }
}

impl<M: Kernel, P: Policies<M>> Clone for Common<M, P> {
    fn clone(&self) -> Self {
        Common {
            process: self.process.clone(),
            inputs: self.inputs.clone(),
        }
    }
}
