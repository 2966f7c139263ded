//! The parts of the system that all others use: the VM, the scheduler, and the sleep queues.

use crate::affinity::Affinity;
use crate::disturbed::Disturbed;
use crate::single::Single;
use alloc::sync::Arc;
use baselines::selected::Selected;
use ipc::Futexes;
use metal::Metal;
use sched::{Best, Sched};
use sync::adaptive::Adaptive;

/// The VM, with the policies of a preset.
pub type Vm = vm::Vm<Selected<Metal>>;
/// An address space.
pub type Space = vm::Space<Selected<Metal>>;
/// Memory that spaces map: a file's content.
pub type ObjectRef = vm::object::ObjectRef<Selected<Metal>>;
/// A mapping's request.
pub type Request<'a> = vm::Request<'a, Selected<Metal>>;
/// The scheduler's policy.
pub type Policy = Best<Metal, Affinity>;
/// A lock under which a task may sleep.
pub type Lock<T> = sync::Mutex<Metal, Adaptive<Metal>, T>;

/// The parts of the system that all others use.
pub struct System {
    /// Memory.
    pub vm: Arc<Vm>,
    /// How tasks enter the kernel and sleep there.
    pub kernel: Disturbed,
    /// Words of memory that threads wait at.
    pub futexes: Futexes<Metal>,
    /// The scheduler.
    pub scheduler: Sched<Metal, Policy>,
    /// True if missing calls are named on the console.
    pub is_strict: bool,
}

/// The system, which is created before all other single objects.
pub static SYSTEM: Single<System> = Single::new();

/// The system's parts. Tasks may call it.
pub fn system() -> &'static System {
    &SYSTEM
}

/// Returns true if the calling task is a thread that has a signal to take, or whose process ends.
pub fn is_disturbed() -> bool {
    system().kernel.caller.is_disturbed()
}
