//! The systems on which workloads run, by name.

use crate::harness::Plan;
use baselines::Preset;
use stats::record::Subject;

/// The systems on which workloads run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// The kernel of this computer.
    Os,
    /// Scalevm's VM on threads.
    Hosted,
    /// Scalevm's VM on a simulated machine.
    Sim,
    /// Scalevm's kernel in a guest.
    Kernel,
}

impl On {
    /// All of them.
    pub const ALL: [On; 4] = [On::Os, On::Hosted, On::Sim, On::Kernel];

    /// Its name in results and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            On::Os => "os",
            On::Hosted => "hosted",
            On::Sim => "sim",
            On::Kernel => "kernel",
        }
    }

    /// One line on it.
    pub fn about(self) -> &'static str {
        match self {
            On::Os => "the kernel of this computer, through libc",
            On::Hosted => "scalevm's own VM on threads of this process",
            On::Sim => "scalevm's own VM on a simulated machine (--machine, --topology)",
            On::Kernel => "scalevm's own kernel in QEMU, the workloads as its programs",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|on| on.name() == name)
    }
}

/// Describes `plan`, without the simulated or hosted machine and its scheduler.
pub(crate) fn subject(plan: &Plan, on: On, preset: Option<Preset>) -> Subject {
    Subject {
        workload: plan.workload.name().to_owned(),
        on: on.name().to_owned(),
        vm: preset.map(|preset| preset.name.to_owned()),
        tasks: u32::try_from(plan.width()).unwrap_or(u32::MAX),
        mode: plan.mode,
        profile: None,
        topology: None,
        cpus: None,
        scheduler: None,
        seed: None,
        unit: plan.workload.rate_unit().to_owned(),
    }
}
