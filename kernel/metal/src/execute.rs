//! The CPUs' work before there is a scheduler, one job each; and the start of a scheduler.

use crate::cpu::Cpu;
use crate::{Metal, context};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use machine::{Contexts, CpuId, Execute, Job, NativeCell, Scheduler, SharedCell, Topology};

/// The scheduler. Written once, before `SCHEDULED`.
static SCHEDULER: NativeCell<Option<&'static dyn Scheduler>> = NativeCell::holding(None);
static SCHEDULED: AtomicBool = AtomicBool::new(false);
/// True if the other CPUs may begin, because the machine knows their number.
static GO: AtomicBool = AtomicBool::new(false);
/// The number of jobs of the running `execute` that have not ended.
static JOBS: AtomicUsize = AtomicUsize::new(0);

/// The scheduler, if there is one.
#[inline]
pub(crate) fn scheduler() -> Option<&'static dyn Scheduler> {
    // Acquire: pairs with the release in `schedule`.
    if !SCHEDULED.load(Ordering::Acquire) {
        return None;
    }
    // SAFETY: written before the flag, and not again.
    unsafe { *SCHEDULER.read() }
}

/// Gives all CPUs to a scheduler, which starts `first` on the calling one, CPU 0. Called once.
pub fn schedule(scheduler: &'static dyn Scheduler, first: Job) -> ! {
    // SAFETY: it is not read before the flag is set.
    unsafe { *SCHEDULER.write() = Some(scheduler) };
    let cpu = Cpu::this();
    give_job(cpu, first);
    // Release: pairs with the acquire in `scheduler`.
    SCHEDULED.store(true, Ordering::Release);
    (0..Metal.cpus().len()).for_each(Metal::kick);
    run(cpu, scheduler)
}

/// The other CPUs may begin.
pub(crate) fn go() {
    GO.store(true, Ordering::Release);
}

/// A CPU's work from its start on.
pub(crate) fn work(cpu: &'static Cpu) -> ! {
    while !GO.load(Ordering::Acquire) {
        core::hint::spin_loop();
    }
    loop {
        context::wait(cpu);
        if let Some(scheduler) = scheduler() {
            run(cpu, scheduler);
        }
        cpu.pending.store(false, Ordering::Relaxed);
        if let Some(job) = take_job(cpu) {
            perform(cpu, job);
        }
    }
}

fn run(cpu: &'static Cpu, scheduler: &'static dyn Scheduler) -> ! {
    cpu.id.set(Metal.cpus().cpu(cpu.index.get()));
    scheduler.run()
}

/// Runs a job of [`Execute::execute`].
fn perform(cpu: &Cpu, job: Job) {
    cpu.id.set(Metal.cpus().cpu(cpu.index.get()));
    // Each job has a name of its own.
    cpu.serial.fetch_add(1, Ordering::Relaxed);
    job();
    Metal::context().drop_locals();
    cpu.id.set(CpuId::NONE);
    // Release: the thread that waits for the job sees all its writes.
    JOBS.fetch_sub(1, Ordering::Release);
}

fn give_job(cpu: &Cpu, job: Job) {
    // Release: pairs with the acquire in `take_job`.
    let before = cpu
        .job
        .swap(Box::into_raw(Box::new(job)), Ordering::Release);
    assert!(before.is_null(), "a CPU has a job already");
}

/// The job that waits for the CPU, if there is one.
pub(crate) fn take_job(cpu: &Cpu) -> Option<Job> {
    let job = cpu.job.swap(null_mut(), Ordering::Acquire);
    // SAFETY: `give_job` made it from a box, and the exchange hands it to one caller only.
    (!job.is_null()).then(|| *unsafe { Box::from_raw(job) })
}

/// Called on CPU 0, outside of jobs, before there is a scheduler. A panic of a job ends the
/// machine.
impl Execute for Metal {
    fn execute(&self, jobs: Vec<Job>) {
        let cpus = self.cpus().len();
        assert!(jobs.len() <= cpus, "{} jobs on {cpus} CPUs", jobs.len());
        let me = Cpu::this();
        assert!(
            me.id.get() == CpuId::NONE,
            "CPU {} is in use",
            me.index.get()
        );
        JOBS.store(jobs.len(), Ordering::Relaxed);
        let mut jobs = jobs.into_iter();
        let own = jobs.next();
        for (index, job) in (1..).zip(jobs) {
            give_job(Cpu::of(index), job);
            Metal::kick(index);
        }
        own.into_iter().for_each(|job| perform(me, job));
        // Acquire: pairs with the release in `perform`.
        while JOBS.load(Ordering::Acquire) > 0 {
            core::hint::spin_loop();
        }
    }
}
