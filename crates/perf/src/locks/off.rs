//! What threads off CPU wait for: a lock, work, or something else.

use super::futex::{futex, is_condition};
use super::kinds::sleeping;
use super::{Wanted, matches, wanted};
use crate::symbols::Named;

/// Functions of the kernel in which a thread sleeps until there is something to do: an event, a
/// message, a time, a child's end.
const WAITS_FOR_WORK: &[&str] = &[
    "ep_poll",
    "do_epoll_wait",
    "do_epoll_pwait*",
    "do_poll*",
    "do_sys_poll",
    "poll_schedule_timeout*",
    "do_select",
    "do_nanosleep",
    "hrtimer_nanosleep",
    "common_nsleep*",
    "do_wait",
    "kernel_wait4",
    "do_sigtimedwait*",
    "sigsuspend",
    "__do_sys_pause",
    "__x64_sys_pause",
    "signalfd_*",
    "eventfd_read",
    "timerfd_read*",
    "inotify_read",
    "fanotify_read",
    "pipe_read",
    "anon_pipe_read",
    "fifo_pipe_read",
    "wait_for_partner",
    "n_tty_read",
    "tty_read",
    "inet_csk_accept",
    "unix_accept",
    "sk_wait_data",
    "tcp_recvmsg*",
    "unix_stream_read_generic",
    "unix_stream_data_wait",
    "__skb_wait_for_more_packets",
    "do_msgrcv",
    "do_mq_timedreceive",
    "io_cqring_wait*",
    "io_wq_worker",
    "io_sq_thread",
    // Threads of the kernel.
    "worker_thread",
    "rescuer_thread",
    "smpboot_thread_fn",
    "kthread_worker_fn",
    "kthreadd",
    "kswapd",
    "kcompactd",
    "khugepaged",
    "oom_reaper",
    "rcu_gp_kthread",
    "rcu_nocb_*",
    "rcu_tasks_*",
    "kauditd_thread",
    "devtmpfsd",
    "kjournald2",
    "khungtaskd",
    "watchdog",
    "irq_thread",
    "psi_rtpoll_worker",
];

/// What a thread off CPU waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Off {
    Lock(Wanted),
    /// Something to do, perhaps at a condition.
    Work(Option<Wanted>),
    /// A device, memory, or anything else that it needs to go on.
    Other,
}

impl Off {
    /// Returns true if the thread has nothing to do.
    pub fn is_idle(&self) -> bool {
        matches!(self, Off::Work(_))
    }

    /// The lock or condition.
    pub fn wanted(&self) -> Option<&Wanted> {
        match self {
            Off::Lock(wanted) => Some(wanted),
            Off::Work(wanted) => wanted.as_ref(),
            Off::Other => None,
        }
    }
}

/// What a stack off CPU waits for.
pub(crate) fn off(stack: &Named) -> Off {
    if let Some(kind) = sleeping(&stack.kernel) {
        // The scheduler takes a lock too, but not for this thread.
        let is_scheduler = |frame: &&String| matches("__schedule*", frame);
        let scheduler = stack.kernel.iter().take_while(is_scheduler).count();
        return Off::Lock(wanted(kind, &stack.kernel[scheduler..]));
    }
    match futex(stack) {
        Some(wanted) if is_condition(&wanted) => Off::Work(Some(wanted)),
        Some(wanted) => Off::Lock(wanted),
        None if stack.kernel.iter().any(|frame| is_for_work(frame)) => Off::Work(None),
        None => Off::Other,
    }
}

/// Returns true if a thread that sleeps in this function of the kernel waits for work.
pub(crate) fn is_for_work(function: &str) -> bool {
    let is = |pattern: &&str| matches(pattern, function);
    WAITS_FOR_WORK.iter().any(is)
}
