//! The computer that QEMU emulates.

/// The emulated computer's equipment.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The number of CPUs.
    pub cpus: u32,
    /// Bytes of memory.
    pub memory: u64,
    /// Bytes of a disk for swap space.
    pub swap: Option<u64>,
    /// True if time is counted in instructions: the time-stamp counter then counts the guest's
    /// instructions, and each run takes the same ones. The CPUs take turns.
    pub counted: bool,
    /// True if the CPUs wait for gdb, at port 1234.
    pub gdb: bool,
}

impl Default for Machine {
    fn default() -> Self {
        Machine {
            cpus: 1,
            memory: 512 << 20,
            swap: None,
            counted: false,
            gdb: false,
        }
    }
}
