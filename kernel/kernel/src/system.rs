//! The system's single objects: the VM, the scheduler, the root of the file system.

use crate::fs::{Inode, Terminal, Waits};
use crate::messages::{self, Queue};
use crate::numbered::Numbered;
use crate::process::{Affinity, Disturbed, Table, Timers, relieve, stack_frame};
use crate::segments::{self, Segments};
use crate::semaphores::{self, Set};
use crate::swap;
use alloc::boxed::Box;
use alloc::sync::Arc;
use baselines::Preset;
use baselines::selected::Selected;
use core::sync::atomic::{AtomicPtr, Ordering};
use ipc::Futexes;
use machine::Topology;
use metal::Metal;
use sched::{Best, Sched};
use sync::adaptive::Adaptive;
use vm::Overcommit;

/// The VM, with the policies of a preset.
pub type Vm = vm::Vm<Selected<Metal>>;
/// An address space.
pub type Space = vm::Space<Selected<Metal>>;
/// Memory that spaces map: a file's content.
pub type ObjectRef = vm::object::ObjectRef<Selected<Metal>>;
/// A mapping's request.
pub type Request<'a> = vm::Request<'a, Selected<Metal>>;
/// Which task runs on which CPU.
pub type Policy = Best<Metal, Affinity>;
/// A lock under which a task may sleep.
pub type Lock<T> = sync::Mutex<Metal, Adaptive<Metal>, T>;

/// The system's single objects.
pub struct System {
    /// Memory.
    pub vm: Arc<Vm>,
    /// How tasks enter the kernel and sleep there.
    pub kernel: Disturbed,
    /// Words of memory that threads wait at.
    pub futexes: Futexes<Metal>,
    /// The scheduler.
    pub scheduler: Sched<Metal, Policy>,
    /// The root directory.
    pub root: Arc<Inode>,
    /// Held while a name goes from one directory to another.
    pub renames: Lock<()>,
    /// The processes that wait for locks on parts of files.
    pub waits: Lock<Waits>,
    /// The terminal.
    pub terminal: Terminal,
    /// Shared memory with numbers.
    pub segments: Lock<Segments>,
    /// Sets of semaphores with numbers.
    pub semaphores: Lock<Numbered<Arc<Set>>>,
    /// Queues of messages with numbers.
    pub messages: Lock<Numbered<Arc<Queue>>>,
    /// The processes.
    pub processes: Table,
    /// What is to happen at some time.
    pub timers: Timers,
    /// Held by a thread that starts, stops or reads the profile.
    pub profile: Lock<()>,
    /// Whether missing calls are named on the console.
    pub is_strict: bool,
}

/// Written once, before tasks run.
static SYSTEM: AtomicPtr<System> = AtomicPtr::new(core::ptr::null_mut());

/// The system's single objects. Tasks may call it.
pub fn system() -> &'static System {
    // Acquire: pairs with the release in `begin`.
    // SAFETY: tasks run only when `begin` has written it, and it stays.
    unsafe { &*SYSTEM.load(Ordering::Acquire) }
}

/// Makes the system, on the first CPU.
pub fn begin(machine: Metal, preset: Preset, is_strict: bool) -> &'static System {
    let mut options = preset.options();
    options.overcommit = Overcommit::Heuristic;
    let kernel = preset.kernel();
    options.swap_space = swap::space();
    options.out_of_memory = Some(Box::new(relieve));
    let vm = Vm::with_options(machine, options).expect("memory for the VM");
    let kernel = Disturbed(kernel);
    let system = Box::leak(Box::new(System {
        futexes: Futexes::new(&kernel, machine.cpus()),
        scheduler: Sched::new(machine.cpus()),
        root: Inode::root(),
        terminal: Terminal::new(),
        renames: Lock::new(()),
        waits: Lock::new(Waits::default()),
        segments: Lock::new(Numbered::new(segments::MOST)),
        semaphores: Lock::new(Numbered::new(semaphores::MOST)),
        messages: Lock::new(Numbered::new(messages::MOST)),
        processes: Table::new(),
        timers: Timers::new(),
        profile: Lock::new(()),
        vm,
        kernel,
        is_strict,
    }));
    SYSTEM.store(system, Ordering::Release);
    metal::take_frames_from(stack_frame);
    system
}
