//! The attributes passed to `perf_event_open`.

use super::{REGISTERS, Source, TOP, TOP_OF_SAMPLE};
use crate::Clock;
use perf_event_open_sys::bindings as sys;

/// Addresses of a traced stack at most; the kernel allows 127.
pub(super) const TRACED_DEPTH: u16 = 64;
/// Addresses of a holder's stack at most: the function that acquires and a few of its callers.
const HOLDER_DEPTH: u16 = 8;

/// Addresses of a sampled stack at most, as the kernel is set.
pub(crate) fn sampled_depth() -> usize {
    /// `PERF_MAX_STACK_DEPTH`.
    const USUAL: usize = 127;
    let set = std::fs::read_to_string("/proc/sys/kernel/perf_event_max_stack");
    let set = set.ok().and_then(|text| text.trim().parse().ok());
    set.unwrap_or(USUAL)
}

/// Which part of a stack may be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Kernel and user.
    All,
    /// User only.
    User,
}

/// An event's description, disabled.
#[derive(Clone, Copy)]
pub(crate) struct Attributes(sys::perf_event_attr);

impl Attributes {
    /// Samples of a clock, `frequency` a second.
    pub fn clock(clock: Clock, frequency: u32, scope: Scope) -> Self {
        let mut attr = stamped();
        (attr.type_, attr.config) = match clock {
            Clock::Cycles => (
                sys::PERF_TYPE_HARDWARE,
                u64::from(sys::PERF_COUNT_HW_CPU_CYCLES),
            ),
            Clock::CpuClock => (
                sys::PERF_TYPE_SOFTWARE,
                u64::from(sys::PERF_COUNT_SW_CPU_CLOCK),
            ),
        };
        attr.set_freq(1);
        attr.sample_freq = u64::from(frequency);
        with_stack(&mut attr, TOP_OF_SAMPLE);
        attr.set_exclude_idle(1);
        attr.set_exclude_kernel(u64::from(scope == Scope::User));
        attr.set_exclude_hv(u64::from(scope == Scope::User));
        Attributes(attr)
    }

    /// Every hit of the tracepoint `id`, with the stack that its source has.
    pub fn tracepoint(id: u64, source: Source) -> Self {
        let hits = Attributes::hits(id);
        match source {
            Source::End | Source::Release => hits,
            Source::Acquire => hits.with_kernel_stack(HOLDER_DEPTH),
            _ => {
                let mut attr = hits.0;
                with_stack(&mut attr, TOP);
                attr.sample_max_stack = TRACED_DEPTH;
                Attributes(attr)
            }
        }
    }

    /// Every hit of the tracepoint `id`, without a stack.
    pub fn hits(id: u64) -> Self {
        let mut attr = stamped();
        (attr.type_, attr.config) = (sys::PERF_TYPE_TRACEPOINT, id);
        attr.sample_period = 1;
        attr.sample_type |= u64::from(sys::PERF_SAMPLE_RAW);
        Attributes(attr)
    }

    /// Every fault that the kernel has resolved; with I/O if `major`.
    pub fn resolved(major: bool) -> Self {
        let mut attr = stamped();
        attr.type_ = sys::PERF_TYPE_SOFTWARE;
        attr.config = u64::from(match major {
            true => sys::PERF_COUNT_SW_PAGE_FAULTS_MAJ,
            false => sys::PERF_COUNT_SW_PAGE_FAULTS_MIN,
        });
        attr.sample_period = 1;
        Attributes(attr)
    }

    /// Adds the kernel's part of the stack, `depth` addresses at most.
    pub fn with_kernel_stack(mut self, depth: u16) -> Self {
        self.0.sample_type |= u64::from(sys::PERF_SAMPLE_CALLCHAIN);
        self.0.set_exclude_callchain_user(1);
        self.0.sample_max_stack = depth;
        self
    }

    /// Makes the event also report mappings that cannot be executed.
    pub fn with_data(mut self) -> Self {
        self.0.set_mmap_data(1);
        self
    }

    /// Births, deaths, names and mappings only.
    pub fn tasks() -> Self {
        let mut attr = stamped();
        (attr.type_, attr.config) = (sys::PERF_TYPE_SOFTWARE, u64::from(sys::PERF_COUNT_SW_DUMMY));
        // Nothing of the kernel is sampled, so this event needs no privilege.
        attr.set_exclude_kernel(1);
        Attributes(attr).with_tasks()
    }

    /// Makes the event also report births, deaths, names and mappings.
    pub fn with_tasks(mut self) -> Self {
        self.0.set_task(1);
        self.0.set_comm(1);
        self.0.set_comm_exec(1);
        self.0.set_mmap(1);
        self.0.set_mmap2(1);
        self
    }

    /// Makes the event also report each thread that goes off a CPU or comes onto one. Linux leaves
    /// the tracepoint of some switches from an idle CPU out of its records, but none of these.
    pub fn with_switches(mut self) -> Self {
        self.0.set_context_switch(1);
        self
    }

    /// Makes the event wake its ring's reader when the ring holds `bytes`.
    pub fn waking_at(mut self, bytes: u32) -> Self {
        self.0.set_watermark(1);
        self.0.wakeup_watermark = bytes;
        self
    }

    /// The kernel's structure.
    pub fn raw(&self) -> sys::perf_event_attr {
        self.0
    }
}

/// Asks for stacks, and for all that unwinding user functions without a frame pointer needs:
/// registers, and `words` from the top of the stack.
fn with_stack(attr: &mut sys::perf_event_attr, words: usize) {
    attr.sample_type |= u64::from(
        sys::PERF_SAMPLE_CALLCHAIN | sys::PERF_SAMPLE_REGS_USER | sys::PERF_SAMPLE_STACK_USER,
    );
    attr.sample_regs_user = REGISTERS.iter().fold(0, |all, number| all | 1 << number);
    attr.sample_stack_user = 8 * words as u32;
}

/// Every record carries its thread, time, CPU and event. The clock is one that all CPUs agree on: a
/// wait may begin on one and end on another.
fn stamped() -> sys::perf_event_attr {
    let mut attr = sys::perf_event_attr {
        size: size_of::<sys::perf_event_attr>() as u32,
        clockid: libc::CLOCK_MONOTONIC,
        sample_type: u64::from(
            sys::PERF_SAMPLE_IDENTIFIER
                | sys::PERF_SAMPLE_TID
                | sys::PERF_SAMPLE_TIME
                | sys::PERF_SAMPLE_CPU,
        ),
        ..Default::default()
    };
    attr.set_disabled(1);
    attr.set_use_clockid(1);
    attr.set_sample_id_all(1);
    attr
}
