//! The engine's scheduler, which chooses the actor whose turn it is.

use super::agenda::NEVER;
use super::context::{Context, Ending};
use super::cpu::{Cpu, Doing, Times};
use super::{CURRENT, Engine, Time, describe};
use crate::arena::global;
use core::ptr::{from_ref, null_mut};
use corosensei::CoroutineResult;
use machine::Job;
use std::any::Any;

/// Futile looks, per spinning CPU, after which no change can be expected any more.
const HOPE: u64 = 2_000;

/// How a run went.
pub(crate) enum Outcome {
    /// All jobs have ended.
    Finished,
    /// All CPUs reached the time limit.
    Reached,
    /// No CPU can go on; the text has a line with the reason for each waiting CPU.
    Stuck(String),
    /// A job has panicked.
    Panicked(Box<dyn Any + Send>),
}

impl Engine {
    /// Gives CPU `cpu`, which has no job, one that starts at `start`.
    pub(crate) fn begin(&mut self, cpu: usize, start: Time, job: Job) {
        debug_assert_eq!(self.cpus[cpu].doing, Doing::Nothing, "CPU {cpu} has a job");
        self.fill(cpu, job, None);
        self.contexts[cpu].on = true;
        let it = &mut self.cpus[cpu];
        it.doing = Doing::Computing;
        it.clock = start;
        it.permit = false;
        self.set_terms(cpu, cpu);
        let it = &mut self.cpus[cpu];
        it.task += 1;
        it.vain = 0;
        self.agenda.set(cpu, start);
    }

    /// Runs until all jobs have ended, or nothing is left to do before `until`.
    ///
    /// # Safety
    /// `this` is valid, and only this call uses it meanwhile.
    pub(crate) unsafe fn run(this: *mut Engine, until: Time) -> Outcome {
        // SAFETY: the caller passes a valid engine that only this call uses; no reference is held
        // while a CPU runs.
        unsafe { (*this).until = until.min(NEVER) };
        loop {
            // SAFETY: the caller passes a valid engine that only this call uses; no reference is
            // held while a CPU runs.
            let engine = unsafe { &mut *this };
            let Some((time, actor)) = engine.agenda.next() else {
                return engine.rest();
            };
            if time >= engine.until {
                engine.time = engine.until;
                return Outcome::Reached;
            }
            engine.time = time;
            if let Some(cpu) = actor.checked_sub(engine.cpus.len()) {
                engine.perform_stores(cpu, time);
                continue;
            }
            engine.rise(actor, time);
            if engine.idle > HOPE && engine.idle > HOPE * engine.spinning() {
                return engine.rest();
            }
            // SAFETY: the caller passes a valid engine that only this call uses, and no reference
            // to it is held here.
            if let Some(Err(panic)) = unsafe { Engine::resume(this, actor) } {
                return Outcome::Panicked(panic);
            }
            // SAFETY: the CPU has given the engine back, which only this call uses.
            let engine = unsafe { &mut *this };
            if engine.is_over() {
                return Outcome::Finished;
            }
        }
    }

    /// The outcome if no actor is due: all jobs have ended, or all remaining ones wait for each
    /// other.
    fn rest(&mut self) -> Outcome {
        let latest = self.cpus.iter().map(|cpu| cpu.clock).max();
        self.time = latest.map_or(self.time, |latest| latest.max(self.time));
        let stuck = self.doing();
        if stuck.is_empty() || self.is_over() {
            Outcome::Finished
        } else {
            Outcome::Stuck(stuck)
        }
    }

    /// The activities of CPUs that have a job, and of tasks that have no CPU.
    pub(crate) fn doing(&self) -> String {
        let cpus = self.cpus.iter().enumerate();
        let cpus = cpus.filter(|(_, cpu)| cpu.doing != Doing::Nothing);
        let cpus = cpus.map(|(index, cpu)| {
            let doing = describe(cpu.doing);
            format!("CPU {index} {doing} since {} ns", cpu.clock / 1000)
        });
        cpus.chain(self.off_tasks()).collect::<Vec<_>>().join("; ")
    }

    /// How each CPU has spent its time, waits under way included.
    pub(crate) fn times(&self) -> Vec<Times> {
        let times = |cpu: &Cpu| {
            let mut times = cpu.times;
            if !cpu.is_refunded {
                times.add(cpu.doing, cpu.waits_since(self.cleared, self.time));
            }
            times
        };
        self.cpus.iter().map(times).collect()
    }

    fn spinning(&self) -> u64 {
        let spinning = self.cpus.iter().filter(|cpu| cpu.doing == Doing::Spinning);
        spinning.count().max(1) as u64
    }

    /// Ends the wait of `cpu`, whose event has happened.
    fn rise(&mut self, cpu: usize, time: Time) {
        let it = &mut self.cpus[cpu];
        let passed = it.waits_since(self.cleared, time);
        let counts = !it.is_refunded;
        if counts {
            it.times.add(it.doing, passed);
        }
        let mut idle = 0;
        match it.doing {
            Doing::Fetching => {
                self.counts.transfers += 1;
                it.credit -= self.directory.paid(cpu);
                self.directory.arrived(cpu, time, counts, &mut self.agenda);
            }
            Doing::Spinning => {
                if counts {
                    self.directory.charge_spin(cpu, passed);
                }
                let in_vain = self.directory.spinners.is_asleep(cpu);
                idle = if in_vain { self.idle + 1 } else { 0 };
                it.vain = if in_vain { it.vain + 1 } else { 0 };
                self.directory.spinners.rise(cpu);
            }
            Doing::Parked | Doing::Idle => it.translation.rest(time),
            Doing::Draining(_) | Doing::Nothing | Doing::Computing | Doing::Busy => {}
        }
        self.idle = idle;
        let it = &mut self.cpus[cpu];
        it.clock = it.clock.max(time);
        it.doing = Doing::Computing;
    }

    /// Runs `cpu` until it waits; returns its job's result once it has ended.
    ///
    /// # Safety
    /// `this` is valid, and only this call uses it meanwhile.
    unsafe fn resume(this: *mut Engine, cpu: usize) -> Option<Ending> {
        // SAFETY: the caller passes a valid engine that only this call uses; the references end
        // before the CPU runs.
        let (heap, body) = unsafe {
            let engine = &mut *this;
            engine.agenda.set(cpu, NEVER);
            engine.running = cpu;
            engine.current = engine.cpus[cpu].context;
            engine.set_limits(cpu);
            engine.counts.switches += 1;
            (*engine.heap).switch(Some(cpu));
            let context = &mut engine.contexts[engine.current];
            let body: *mut _ = context.body.as_mut().expect("a CPU that is due has a job");
            (engine.heap, body)
        };
        let outer = CURRENT.replace(this);
        let outer_heap = global::switch(heap);
        // SAFETY: the body stays in place while it runs; the CPU changes all of the engine except
        // it.
        let result = unsafe { (*body).resume(()) };
        global::switch(outer_heap);
        CURRENT.set(outer);
        // SAFETY: the CPU has stopped, so only this call uses the engine.
        let engine = unsafe { &mut *this };
        match result {
            CoroutineResult::Yield(()) => None,
            CoroutineResult::Return(ending) => {
                let ended = engine.current;
                *engine.contexts[ended] = Context::new();
                match ending {
                    Ok(Some(next)) => {
                        engine.unused.push(ended);
                        engine.go_on_after(cpu, next);
                    }
                    _ => engine.cpus[cpu].doing = Doing::Nothing,
                }
                // SAFETY: the heap lives as long as the engine.
                unsafe { (*engine.heap).switch(None) };
                Some(ending)
            }
        }
    }

    /// Performs the oldest store in `cpu`'s buffer, which is due, and the following ones that need
    /// no line.
    fn perform_stores(&mut self, cpu: usize, time: Time) {
        let actor = cpu + self.cpus.len();
        if self.cpus[cpu].stores.requested {
            self.directory.arrived(actor, time, true, &mut self.agenda);
            self.counts.transfers += 1;
            self.idle = 0;
            // SAFETY: freeing memory and returning from a job wait for the buffer, so the address
            // is still the atomic's.
            unsafe { self.cpus[cpu].stores.perform() };
        }
        self.agenda.set(actor, NEVER);
        while let Some(store) = self.cpus[cpu].stores.oldest() {
            if store.made > time {
                self.agenda.set(actor, store.made);
                break;
            }
            if !self.directory.allows(store.line, cpu, time, true) {
                self.cpus[cpu].stores.requested = true;
                let terms = self.terms(store.line, store.terms);
                self.directory
                    .request(actor, store.line, true, time, terms, &mut self.agenda);
                break;
            }
            // SAFETY: freeing memory and returning from a job wait for the buffer, so the address
            // is still the atomic's.
            unsafe { self.cpus[cpu].stores.perform() };
        }
        let Cpu {
            doing,
            stores,
            clock,
            ..
        } = &self.cpus[cpu];
        let enough = match doing {
            Doing::Draining(room) => stores.has_room(*room),
            _ => false,
        };
        if enough {
            self.agenda.set(cpu, time.max(*clock));
        }
    }

    /// Drops all jobs, wherever they are, without dropping the values on their stacks.
    pub(crate) fn abandon(&mut self) {
        for context in &mut self.contexts {
            if let Some(body) = &mut context.body {
                // SAFETY: nothing outside the machine borrows from the stack: jobs are 'static, and
                // the machine is not used again.
                unsafe { body.force_reset() };
            }
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.abandon();
        // The scheduler lies in the machine's memory, which is freed as a whole.
        core::mem::forget(self.scheduler.take());
        debug_assert!(
            CURRENT.get() != from_ref(self).cast_mut(),
            "a machine is dropped on one of its own CPUs"
        );
        self.heap = null_mut();
    }
}
