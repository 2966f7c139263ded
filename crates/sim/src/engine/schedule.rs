//! The scheduler: which actor's turn it is.

use super::access::Room;
use super::agenda::NEVER;
use super::cpu::{Cpu, Doing, Ending};
use super::{CURRENT, Engine, Running, Time, describe};
use crate::arena::global;
use crate::engine::stack::CpuStack;
use core::ptr::{from_ref, null, null_mut};
use corosensei::{Coroutine, CoroutineResult};
use machine::{Job, Locals};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Futile looks, per spinning CPU, after which no change can be expected any more.
const HOPE: u64 = 2_000;

/// How a run went.
pub(crate) enum Outcome {
    /// All jobs have ended.
    Finished,
    /// All CPUs reached the time limit.
    Reached,
    /// No CPU can go on; a line for each waiting CPU says why.
    Stuck(String),
    /// A job has panicked.
    Panicked(Box<dyn Any + Send>),
}

impl Engine {
    /// Gives CPU `cpu`, which is idle, a job that starts at `start`.
    pub(crate) fn begin(&mut self, cpu: usize, start: Time, job: Job) {
        let stack = CpuStack::new(&self.arena, cpu);
        let body = Coroutine::with_stack(stack, move |yielder, ()| -> Ending {
            let running = Running::current().expect("jobs run on CPUs");
            let locals = Locals::ZERO;
            // Both are valid while the coroutine lives, and not used afterwards.
            running.with(|engine| {
                engine.cpu().yielder = from_ref(yielder);
                engine.cpu().locals = from_ref(&locals);
            });
            let ended = catch_unwind(AssertUnwindSafe(job));
            let left = catch_unwind(AssertUnwindSafe(|| drop(locals)));
            running.with(|engine| engine.cpu().locals = null());
            running.drain(Room::All);
            ended.and(left)
        });
        let it = &mut self.cpus[cpu];
        debug_assert_eq!(it.doing, Doing::Nothing, "CPU {cpu} has a job");
        it.body = Some(body);
        it.doing = Doing::Computing;
        it.clock = start;
        it.permit = false;
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
        }
    }

    /// No actor is due: all jobs have ended, or all remaining ones wait for each other.
    fn rest(&mut self) -> Outcome {
        let latest = self.cpus.iter().map(|cpu| cpu.clock).max();
        self.time = latest.map_or(self.time, |latest| latest.max(self.time));
        let waiting = self.cpus.iter().enumerate();
        let waiting = waiting.filter(|(_, cpu)| cpu.doing != Doing::Nothing);
        let lines: Vec<String> = waiting
            .map(|(index, cpu)| {
                format!(
                    "CPU {index} {} since {} ns",
                    describe(cpu.doing),
                    cpu.clock / 1000
                )
            })
            .collect();
        match lines.is_empty() {
            true => Outcome::Finished,
            false => Outcome::Stuck(lines.join("; ")),
        }
    }

    fn spinning(&self) -> u64 {
        let spinning = self.cpus.iter().filter(|cpu| cpu.doing == Doing::Spinning);
        spinning.count().max(1) as u64
    }

    /// The event that `cpu` waited for has happened.
    fn rise(&mut self, cpu: usize, time: Time) {
        let it = &mut self.cpus[cpu];
        let passed = time - it.clock.min(time);
        let mut idle = 0;
        match it.doing {
            Doing::Fetching => {
                it.times.fetching += passed;
                self.counts.transfers += 1;
                self.directory.arrived(cpu, time, &mut self.agenda);
            }
            Doing::Spinning => {
                it.times.spinning += passed;
                self.directory.charge_spin(cpu, passed);
                let in_vain = self.directory.spinners.is_asleep(cpu);
                idle = if in_vain { self.idle + 1 } else { 0 };
                it.vain = if in_vain { it.vain + 1 } else { 0 };
                self.directory.spinners.rise(cpu);
            }
            Doing::Parked => {
                it.times.parked += passed;
                it.translation.rest(time);
            }
            Doing::Draining(_) => it.times.fetching += passed,
            Doing::Nothing | Doing::Computing => {}
        }
        self.idle = idle;
        let it = &mut self.cpus[cpu];
        it.clock = it.clock.max(time);
        it.doing = Doing::Computing;
    }

    /// Runs `cpu` until it waits; returns its job's result once it has ended.
    ///
    /// # Safety
    /// See [`Engine::run`].
    unsafe fn resume(this: *mut Engine, cpu: usize) -> Option<Ending> {
        // SAFETY: the caller passes a valid engine that only this call uses; the references end
        // before the CPU runs.
        let (heap, body) = unsafe {
            let engine = &mut *this;
            engine.agenda.set(cpu, NEVER);
            engine.running = cpu;
            engine.set_limits(cpu);
            engine.counts.switches += 1;
            (*engine.heap).switch(Some(cpu));
            let body: *mut _ = engine.cpus[cpu]
                .body
                .as_mut()
                .expect("a CPU that is due has a job");
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
                engine.cpus[cpu].doing = Doing::Nothing;
                engine.cpus[cpu].body = None;
                engine.cpus[cpu].yielder = null();
                // SAFETY: the heap lives as long as the engine.
                unsafe { (*engine.heap).switch(None) };
                Some(ending)
            }
        }
    }

    /// The oldest store in `cpu`'s buffer is due, with the following ones that need no line.
    fn perform_stores(&mut self, cpu: usize, time: Time) {
        let actor = cpu + self.cpus.len();
        if self.cpus[cpu].stores.requested {
            self.directory.arrived(actor, time, &mut self.agenda);
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
                self.directory
                    .request(actor, store.line, true, time, &mut self.agenda);
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

    /// Drops all jobs, wherever they stand, without dropping the values on their stacks.
    pub(crate) fn abandon(&mut self) {
        for cpu in &mut self.cpus {
            if let Some(body) = &mut cpu.body {
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
        debug_assert!(
            CURRENT.get() != from_ref(self).cast_mut(),
            "a machine is dropped on one of its own CPUs"
        );
        self.heap = null_mut();
    }
}
