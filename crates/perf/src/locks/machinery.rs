//! Functions that implement locking, as opposed to callers that want a lock.

use super::matches;

/// Functions of locks and of their tracing. One kernel inlines functions that another does not.
const MACHINERY: &[&str] = &[
    // Tracing.
    "__traceiter_*",
    "trace_contention_*",
    "perf_trace_*",
    "do_perf_trace_*",
    "__bpf_trace_*",
    // Spin locks and rwlocks.
    "_raw_spin_*",
    "_raw_read_*",
    "_raw_write_*",
    "__raw_spin_*",
    "__raw_callee_save_*",
    "do_raw_spin_*",
    "queued_*",
    "native_queued_*",
    "__pv_queued_*",
    "pv_*",
    "resilient_queued_*",
    "osq_*",
    "lock_sock_nested",
    "raw_spin_rq_lock*",
    "_raw_spin_rq_lock*",
    "task_rq_lock",
    "__task_rq_lock",
    "folio_lruvec_lock*",
    "folio_lruvec_relock*",
    "__pte_offset_map_lock",
    "pte_offset_map_*",
    "lock_timer_base",
    "__lock_task_sighand",
    "futex_q_lock",
    "lockref_*",
    // Semaphores and mutexes.
    "rwsem_*",
    "down_*",
    "__down*",
    "up_*",
    "downgrade_write",
    "up",
    "__up*",
    "mutex_*",
    "__mutex*",
    "ww_mutex_*",
    "__ww_mutex_*",
    "rt_mutex_*",
    "__rt_mutex_*",
    "rt_spin_*",
    "__rt_spin_*",
    "rt_read_*",
    "rt_write_*",
    "rtlock_*",
    "rwbase_*",
    "__rwbase_*",
    "percpu_down_*",
    "percpu_up_*",
    "__percpu_down_*",
    "percpu_rwsem_*",
    "__percpu_rwsem_*",
    "mmap_write_lock*",
    "mmap_read_lock*",
    "mmap_write_unlock*",
    "mmap_read_unlock*",
    "__mmap_lock_*",
    // Sleeping.
    "schedule*",
    "__schedule*",
    "preempt_schedule*",
    "io_schedule*",
    "wake_q_*",
    "wake_up_q",
];

/// Returns true if `function` is part of locking.
pub(super) fn is_machinery(function: &str) -> bool {
    MACHINERY.iter().any(|pattern| matches(pattern, function))
}
