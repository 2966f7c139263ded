//! Priorities: the task that has used less of the CPU recently comes first.
//!
//! Smaller numbers are better. The estimate `p_estcpu` grows while a task runs and decays as time
//! passes, the slower the more tasks there are: 90 % is forgotten in 5 × load average seconds.
//! (sys/kern/sched_bsd.c 1.70, October 2021; sys/sys/sched.h; sys/sys/param.h.)

/// The best priority of a task in user mode (`PUSER`).
pub(super) const PUSER: u32 = 50;
/// The worst priority (`MAXPRI`).
const MAXPRI: u32 = 127;
/// The priority of a task that was woken, until it is back in user mode: `PWAIT`. Sleeps in OpenBSD
/// name theirs, from `PSWP` (0) to `PUSER`; the machine's have none, and all of these are better
/// than a running task's.
pub(super) const PWAIT: u32 = 32;
/// Priorities of one queue (`SCHED_PPQ`).
pub(super) const PPQ: u32 = 4;
/// Queues (`SCHED_NQS`).
pub(super) const QUEUES: usize = 32;
/// The highest estimate: `ESTCPULIM`, `NICE_WEIGHT` (2) × `PRIO_MAX` (20) − `SCHED_PPQ`.
const ESTCPU_LIMIT: u32 = 2 * 20 - PPQ;

const _: () = assert!((MAXPRI + 1) / PPQ == QUEUES as u32);

/// Fixed-point numbers: 1.0 (`FSCALE`, 1 << `FSHIFT`).
const FSCALE: u64 = 1 << FSHIFT;
/// The bits of the fraction in a fixed-point number.
pub(super) const FSHIFT: u32 = 11;
/// e to the −5 s / 60 s: the share of a load average over one minute that is left after five
/// seconds (`cexp[0]`, sys/uvm/uvm_meter.c).
const CEXP: u64 = (0.920_044_414_629_323_1 * FSCALE as f64) as u64;

/// The queue of a priority.
pub(super) fn queue(priority: u32) -> usize {
    (priority / PPQ) as usize
}

/// The priority in user mode of a task with this estimate (`setpriority`; no task is nice).
pub(super) fn user(estcpu: u32) -> u32 {
    (PUSER + estcpu).min(MAXPRI)
}

/// The estimate after one more tick of `schedclock`.
pub(super) fn charged(estcpu: u32) -> u32 {
    (estcpu + 1).min(ESTCPU_LIMIT)
}

/// The estimate of a task whose child has ended with `child` (`scheduler_wait_hook`).
pub(super) fn inherited(estcpu: u32, child: u32) -> u32 {
    (estcpu + child).min(ESTCPU_LIMIT)
}

/// The estimate a second later (`decay_cpu`), at this load average.
pub(super) fn decayed(estcpu: u32, load: u64) -> u32 {
    let factor = 2 * load;
    (factor * u64::from(estcpu) / (factor + FSCALE)) as u32
}

/// The estimate of a task that wakes after `schedcpu` has found it asleep `seconds` times
/// (`p_slptime`): `schedcpu` decayed it the first time, `decay_aftersleep` makes up for the others.
pub(super) fn decayed_asleep(estcpu: u32, seconds: u64, load: u64) -> u32 {
    if seconds == 0 {
        return estcpu;
    }
    let first = decayed(estcpu, load);
    if seconds == 1 {
        return first;
    }
    // Compared with a number scaled by `FSCALE`, as in OpenBSD: only at a load near 0 is the
    // estimate forgotten at once.
    if seconds > 5 * 2 * load {
        return 0;
    }
    // An estimate below the factor stays above zero for good.
    let mut estcpu = first;
    for _ in 2..seconds {
        let next = decayed(estcpu, load);
        if next == estcpu {
            break;
        }
        estcpu = next;
    }
    estcpu
}

/// The load average five seconds later, if `runnable` tasks were ready or running (`uvm_loadav`).
pub(super) fn load_average(load: u64, runnable: u64) -> u64 {
    (CEXP * load + runnable * FSCALE * (FSCALE - CEXP)) >> FSHIFT
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: u64 = FSCALE;

    #[test]
    fn a_hog_ends_at_the_limit() {
        let estcpu = (0..1000).fold(0, |estcpu, _| charged(estcpu));
        assert_eq!(estcpu, 36);
        assert_eq!((user(0), user(estcpu)), (50, 86));
        assert_eq!(
            (queue(user(0)), queue(user(estcpu)), queue(PWAIT)),
            (12, 21, 8)
        );
    }

    /// 90 % are forgotten in five seconds at a load of one, in twice as many at a load of two.
    #[test]
    fn decay_follows_the_load() {
        let after = |load, seconds| (0..seconds).fold(10_000, |cpu, _| decayed(cpu, load));
        assert!((800..1400).contains(&after(ONE, 5)), "{}", after(ONE, 5));
        assert!((800..1800).contains(&after(2 * ONE, 10)));
        assert!(after(2 * ONE, 5) > 3000);
        assert_eq!(decayed(30, 0), 0);
    }

    #[test]
    fn sleep_forgets() {
        assert_eq!(decayed_asleep(36, 0, ONE), 36);
        assert_eq!(decayed_asleep(36, 1, ONE), 24);
        // The second whole second does not count: `schedcpu` and `decay_aftersleep` both skip it.
        assert_eq!(decayed_asleep(36, 2, ONE), 24);
        assert_eq!(decayed_asleep(36, 3, ONE), 16);
        assert_eq!(decayed_asleep(36, 1_000_000, ONE), 0);
        assert_eq!(decayed_asleep(36, u64::MAX, ONE), 0);
    }

    #[test]
    fn load_average_approaches_the_load() {
        let load = (0..60).fold(0, |load, _| load_average(load, 3));
        let third = load * 100 / ONE;
        assert!((280..=300).contains(&third), "{third}");
        let minute = (0..12).fold(0, |load, _| load_average(load, 1));
        assert!(
            (60..=65).contains(&(minute * 100 / ONE)),
            "1 - 1/e after a minute"
        );
    }
}
