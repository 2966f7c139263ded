//! A system on which workloads run.

use crate::harness::{Plan, Target};
use crate::kernel::GuestKernel;
use crate::on::{On, subject};
use crate::os::Os;
use crate::ours::Ours;
use crate::simulated::Simulated;
use stats::record::Subject;

/// A system, ready to run workloads.
#[derive(Clone)]
pub enum System {
    /// The kernel of this computer.
    Os(Os),
    /// scalevm's VM on threads.
    Hosted(Ours),
    /// scalevm's VM on a simulated machine.
    Sim(Box<Simulated>),
    /// scalevm's kernel in a guest.
    Kernel(GuestKernel),
}

impl System {
    /// Its kind.
    pub fn on(&self) -> On {
        match self {
            System::Os(_) => On::Os,
            System::Hosted(_) => On::Hosted,
            System::Sim(_) => On::Sim,
            System::Kernel(_) => On::Kernel,
        }
    }

    /// Its target, which starts tasks.
    pub fn target(&self) -> &dyn Target {
        match self {
            System::Os(target) => target,
            System::Hosted(target) => target,
            System::Sim(target) => &**target,
            System::Kernel(target) => target,
        }
    }

    /// The simulated machine, if it is one.
    pub fn simulated(&self) -> Option<&Simulated> {
        match self {
            System::Sim(target) => Some(target),
            System::Os(_) | System::Hosted(_) | System::Kernel(_) => None,
        }
    }

    /// Describes `plan` on it.
    pub fn subject(&self, plan: &Plan) -> Subject {
        match self {
            System::Os(_) => subject(plan, On::Os, None),
            System::Hosted(target) => target.subject(plan),
            System::Sim(target) => target.subject(plan),
            System::Kernel(target) => target.subject(plan),
        }
    }
}
