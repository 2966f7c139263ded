//! What to record.

/// What to record, and how finely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Samples a second and CPU.
    pub frequency: u32,
    /// Whether waits for kernel locks are traced.
    pub locks: bool,
    /// Whether time off CPU is traced; without it there are no futex rows.
    pub off_cpu: bool,
    /// Pages of a CPU's ring, rounded up to a power of two.
    pub ring_pages: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            // A prime, so that samples do not fall into step with timers.
            frequency: 997,
            locks: true,
            off_cpu: true,
            // 2 MiB: some 10,000 stacks, a tenth of a second of the busiest lock.
            ring_pages: 512,
        }
    }
}
