//! `Debug` for types that CPUs share: prints only the name.

use crate::best::{self, Best, Bounds, idle};
use crate::openbsd::{self, MpLock, OpenBsd, SchedulerLock};
use crate::{NewTask, Policy, Sched, Task, TaskRef, freebsd, linux, state};
use machine::{Contexts, Machine, opaque_debug};
use sync::watch::{LockClass, Observer};

opaque_debug! {
    [M: Contexts, B: Bounds] Best<M, B>;
    [M: Contexts, B: Bounds] best::Entry<M, B>;
    [M: Contexts] freebsd::Entry<M>;
    [M: Contexts] freebsd::Ule<M>;
    [M: Machine] idle::Idle<M>;
    [M: Machine] idle::Waiting<M>;
    [M: Contexts] linux::Cfs<M>;
    [M: Contexts] linux::Entry<M>;
    [M: Machine, C: LockClass, O: Observer<M>] MpLock<M, C, O>;
    [M: Contexts] OpenBsd<M>;
    [M: Contexts] openbsd::Entry<M>;
    [M: Contexts, P: Policy<M>] NewTask<M, P>;
    [M: Contexts, P: Policy<M>] Sched<M, P>;
    [M: Machine] SchedulerLock<M>;
    [M: Machine] state::State<M>;
    [M: Contexts, P: Policy<M>] Task<M, P>;
    [M: Contexts, P: Policy<M>] TaskRef<M, P>;
}
