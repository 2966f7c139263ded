//! Costs. All times in picoseconds.

use super::Class;
use super::fields::in_range;

/// The cost of moving a cache line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transfer {
    /// One way, between the threads of a core.
    pub sibling: u64,
    /// One way, between cores that share a last-level slice.
    pub cluster: u64,
    /// One way, between clusters of a socket.
    pub socket: u64,
    /// One way, between sockets that are 1, 2, … hops apart.
    pub hops: Vec<u64>,
    /// The shares of a transfer's legs (request, snoop and data); the sum is 1. The owner can use
    /// its line until the snoop arrives.
    pub legs: [f64; 3],
    /// The order in which a contended line serves its requests.
    pub arbitration: Arbitration,
    /// By how much serving one reader delays the next, by the reader's distance.
    pub read_occupancy: PerClass,
    /// The cost of a write for each sharer it invalidates, beyond the transfer.
    pub invalidate_per_sharer: u64,
}

/// A time for each distance between CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PerClass {
    /// The other thread of the core.
    pub sibling: u64,
    /// Another core of the cluster.
    pub cluster: u64,
    /// Another cluster of the socket.
    pub socket: u64,
    /// A socket 1, 2, … hops away.
    pub hops: Vec<u64>,
}

impl PerClass {
    /// The time for a distance; 0 for the same CPU.
    ///
    /// # Panics
    /// If no machine of this profile has such a distance.
    pub fn at(&self, class: Class) -> u64 {
        match class {
            Class::SameThread => 0,
            Class::Sibling => self.sibling,
            Class::Cluster => self.cluster,
            Class::Socket => self.socket,
            Class::Hops(hops) => self.hops[usize::from(hops) - 1],
        }
    }
}

/// The order in which a contended line serves its requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arbitration {
    /// First come, first served.
    #[default]
    FirstCome,
    /// The request nearest to the owner first.
    Nearest {
        /// How often a request may be passed over before it is served.
        bypasses: u32,
    },
}

/// The costs of a core by itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Core {
    /// An access to a line that the core owns.
    pub hit: u64,
    /// A locked instruction, beyond the access.
    pub rmw: u64,
    /// A full fence with nothing to wait for.
    pub fence: u64,
    /// A spin-wait hint.
    pub pause: u64,
    /// Entries of the store buffer.
    pub store_buffer: usize,
    /// The speed of each thread of a core when all of them run, from 0.5 to 1.
    pub smt: f64,
    /// The private instructions between two modelled accesses.
    pub instruction: u64,
    /// The clocks of cores, by the number of busy cores in their socket.
    pub clocks: Clocks,
}

/// The clock of a socket's cores by the number of busy ones: rows of busy cores and GHz, the fewest
/// first, with linear interpolation between rows. Empty if the clock is always the same.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Clocks(pub Vec<(usize, f64)>);

impl Clocks {
    /// The error in the rows.
    ///
    /// # Errors
    /// If a clock is out of its range, or the rows are not in order.
    pub fn check(&self) -> Result<(), String> {
        let mut clocks = self.0.iter().map(|&(_, clock)| clock);
        clocks.try_for_each(|clock| in_range(clock, 0.1, 100.0))?;
        if self.0.is_sorted_by(|one, next| one.0 < next.0) {
            Ok(())
        } else {
            Err("the rows are not sorted by busy cores".to_owned())
        }
    }

    /// The speed of a core while `busy` cores of its socket are busy, as a share of the speed in
    /// the last row: a profile's times hold with all cores busy.
    pub fn speed(&self, busy: usize) -> f64 {
        let Some(&(_, slowest)) = self.0.last() else {
            return 1.0;
        };
        let after = self.0.partition_point(|&(cores, _)| cores < busy);
        let clock = match (after.checked_sub(1).map(|at| self.0[at]), self.0.get(after)) {
            (Some((few, fast)), Some(&(many, slow))) => {
                fast + (slow - fast) * (busy - few) as f64 / (many - few) as f64
            }
            (None, Some(&(_, clock))) => clock,
            _ => slowest,
        };
        clock / slowest
    }
}

/// The costs of its kernel: entry and exit, not the work, which is simulated.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelCosts {
    /// Entering and leaving by a system call.
    pub syscall: u64,
    /// Entering and leaving by a page fault.
    pub fault: u64,
    /// Going to sleep: queueing and switching away.
    pub block: u64,
    /// Waking: from the waker's call until the sleeper runs.
    pub wake: u64,
    /// Taking a small object from the kernel's allocator.
    pub allocate: u64,
    /// Yielding the CPU when no other task is ready.
    pub yield_now: u64,
    /// Switching from one task to another, without the scheduler's own work, which is simulated.
    pub switch: u64,
    /// From an interrupt to an idle CPU until it executes.
    pub idle_exit: u64,
}

/// The costs of interrupting other CPUs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ipi {
    /// Preparing and sending, once.
    pub send: u64,
    /// Per target, to the sender.
    pub per_target: u64,
    /// From sending until the handler of a target in the sender's socket begins.
    pub deliver: u64,
    /// Entering and leaving the handler.
    pub handler: u64,
    /// Acknowledging to the sender, in addition to the transfer of the line that the sender reads.
    pub acknowledge: u64,
    /// Flushing all CPUs' TLBs by an instruction that interrupts none (AMD's INVLPGB and TLBSYNC,
    /// Arm's TLBI and DSB), in nanoseconds; 0 if there is no such instruction, or it is not used.
    pub broadcast: f64,
}

/// The costs of pages and translations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemoryCosts {
    /// Zeroing a 4 KiB page, with no other CPU doing so.
    pub zero_page: u64,
    /// The rate at which all CPUs of a socket together can zero, in GB/s (10⁹ bytes).
    pub zero_socket_gbps: f64,
    /// Copying a 4 KiB page, with no other CPU doing so.
    pub copy_page: u64,
    /// Walking the page tables after a TLB miss.
    pub walk: u64,
    /// Flushing one page from this CPU's TLB.
    pub tlb_flush_page: u64,
    /// Flushing this CPU's whole TLB, without refilling it.
    pub tlb_flush_all: u64,
}
