//! Address translation: TLBs, walks of page tables, and interrupts that flush.
//!
//! # Protocol
//! A shootdown is sent in turn. It goes into the inbox of each target with the time at which the
//! interrupt arrives, which is later than any CPU may have run ahead. From then on the target uses
//! no flushed translation, and it spends the handler's time. The sender waits for the last
//! acknowledgement. An interrupt or an acknowledgement to another socket takes as much longer as a
//! transfer does.
//!
//! Requests are merged, as in kernels: one that arrives before a handler begins is served by that
//! handler, at no further cost to the target.
//!
//! On a machine that broadcasts, a shootdown interrupts no CPU: after the time of a broadcast all
//! of them have flushed.

use crate::Sim;
use crate::engine::agenda::NEVER;
use crate::engine::cpu::Doing;
use crate::engine::sampler::Spent;
use crate::engine::{self, Engine, Kind, Shared, Time};
use core::sync::atomic::{AtomicU64, Ordering};
use machine::soft::{Entry, SETS, Tlb, walk};
use machine::{
    Access, Asid, CpuSet, Cpus, Flush, Frame, KernelEntries, Memory, Mmu, PAGE_SHIFT, PAGE_SIZE,
    PageFault, pte,
};
use std::collections::VecDeque;

/// A request to flush, on its way or arrived.
struct Interrupt {
    at: Time,
    asid: Asid,
    what: Flush,
    /// True if a handler begins with this request. Otherwise the handler of the one before also
    /// serves it.
    begins: bool,
}

/// One CPU's translation hardware.
pub(crate) struct Translation {
    /// The tables in use, and the tag of their entries.
    active: Option<(Frame, Asid)>,
    tlb: Tlb,
    inbox: VecDeque<Interrupt>,
    /// When the first request of the inbox arrives.
    next: Time,
    /// When the last handler begins, and when it ends.
    handler: (Time, Time),
    /// Interrupts taken so far.
    taken: u64,
}

impl Translation {
    pub(crate) fn new() -> Self {
        Translation {
            active: None,
            tlb: Tlb::new(SETS),
            inbox: VecDeque::new(),
            next: NEVER,
            handler: (0, 0),
            taken: 0,
        }
    }

    /// Returns true if an interrupt has arrived by `now`.
    #[inline]
    pub(crate) fn is_interrupted(&self, now: Time) -> bool {
        self.next <= now
    }

    /// Takes the requests that have arrived by `now`; returns how many handlers that takes.
    fn take(&mut self, now: Time) -> u64 {
        let mut handlers = 0;
        while let Some(interrupt) = self.inbox.front()
            && interrupt.at <= now
        {
            self.tlb.flush(interrupt.asid, interrupt.what);
            self.taken += 1;
            handlers += u64::from(interrupt.begins);
            self.inbox.pop_front();
        }
        self.next = self.inbox.front().map_or(NEVER, |interrupt| interrupt.at);
        handlers
    }

    /// Takes the interrupts that arrived while the CPU was idle, until `now`; they cost it no time.
    pub(crate) fn rest(&mut self, now: Time) {
        self.take(now);
    }

    /// Posts an interrupt that would arrive at `at`; returns when it is handled: by a handler that
    /// has not begun by then, or by one of its own, after those before it.
    fn post(&mut self, at: Time, handler: Time, asid: Asid, what: Flush) -> Time {
        let (begin, end) = self.handler;
        let begins = at > begin;
        if begins {
            let at = at.max(end);
            self.handler = (at, at + handler);
        }
        let at = self.handler.0;
        self.next = self.next.min(at);
        self.inbox.push_back(Interrupt {
            at,
            asid,
            what,
            begins,
        });
        self.handler.1
    }

    /// Flushes at `at`, without an interrupt.
    fn flush_at(&mut self, at: Time, asid: Asid, what: Flush) {
        self.next = self.next.min(at);
        let behind = self.inbox.partition_point(|interrupt| interrupt.at <= at);
        let flush = Interrupt {
            at,
            asid,
            what,
            begins: false,
        };
        self.inbox.insert(behind, flush);
    }
}

impl Engine {
    /// Handles the interrupts that have arrived at the running CPU.
    #[inline]
    pub(crate) fn take_interrupts(&mut self) {
        let cpu = self.cpu();
        if cpu.translation.is_interrupted(cpu.clock) {
            self.handle_interrupts();
        }
    }

    #[cold]
    fn handle_interrupts(&mut self) {
        let handler = self.profile.ipi.handler;
        let cpu = self.cpu();
        let handled = cpu.translation.take(cpu.clock) * handler;
        self.spend_interrupted(handled);
    }

    /// Lets the running CPU spend `time` for a flush: on its own work, or waiting for others.
    pub(crate) fn spend_interrupted(&mut self, time: Time) {
        self.charge(Spent::Working, None);
        self.keep_from_refund(time);
        let cpu = self.cpu();
        cpu.clock += time;
        cpu.times.interrupted += time;
        self.charge(Spent::Interrupted, None);
    }

    /// Flushes the TLBs of `targets` for the running CPU; returns when the last one has done so.
    fn flush_others(&mut self, targets: &CpuSet, asid: Asid, what: Flush) -> Time {
        let broadcast = (self.profile.ipi.broadcast * 1000.0) as Time;
        if broadcast == 0 {
            return self.interrupt(targets, asid, what);
        }
        let done = self.cpu().clock + broadcast;
        for target in targets.iter() {
            self.cpus[target].translation.flush_at(done, asid, what);
        }
        done
    }

    /// Interrupts `targets` for a flush by the running CPU; returns when the last one has
    /// acknowledged it.
    pub(crate) fn interrupt(&mut self, targets: &CpuSet, asid: Asid, what: Flush) -> Time {
        let (ipi, me) = (self.profile.ipi.clone(), self.running);
        let sent = self.cpu().clock + ipi.send;
        let mut done = sent;
        for (index, target) in targets.iter().enumerate() {
            let near = self.profile.transfer.socket;
            let beyond = self.profile.latency(me, target).saturating_sub(near);
            let arrives = sent + index as Time * ipi.per_target + ipi.deliver + beyond;
            let cpu = &mut self.cpus[target];
            let handler = if cpu.doing == Doing::Nothing {
                0
            } else {
                ipi.handler
            };
            let handled = cpu.translation.post(arrives, handler, asid, what);
            done = done.max(handled + beyond + ipi.acknowledge);
        }
        done
    }
}

/// The source of a translation.
enum Found {
    /// The TLB.
    Cached(Frame),
    /// The tables, by a walk.
    Walk(Frame, Asid),
}

impl Engine {
    /// Looks `address` up in the running CPU's TLB.
    fn look_up(&mut self, address: usize, access: Access) -> Result<Found, PageFault> {
        let fault = |present| PageFault {
            address,
            access,
            present,
        };
        self.take_interrupts();
        let (cpu, page) = (self.running, address >> PAGE_SHIFT);
        let translation = &mut self.cpus[cpu].translation;
        let (root, asid) = translation.active.ok_or(fault(false))?;
        let in_reach = address < pte::USER_END;
        let cached = if in_reach {
            translation.tlb.lookup(asid, page)
        } else {
            None
        };
        match cached {
            Some(entry) if entry.allows(access) => {
                self.oracle.used(&entry, address, cpu);
                Ok(Found::Cached(entry.frame))
            }
            Some(entry) if entry.forbids(access) => {
                translation.tlb.remove(asid, page);
                Err(fault(true))
            }
            _ => {
                self.spend(self.profile.memory.walk);
                Ok(Found::Walk(root, asid))
            }
        }
    }

    /// Caches the result of a walk. Interrupts that arrived during the walk come first.
    fn keep(&mut self, asid: Asid, address: usize, walked: &Result<Entry, PageFault>) {
        self.take_interrupts();
        let page = address >> PAGE_SHIFT;
        let tlb = &mut self.cpus[self.running].translation.tlb;
        match walked {
            Ok(entry) => {
                let note = self.oracle.note(entry);
                tlb.insert(asid, page, Entry { note, ..*entry });
            }
            Err(_) => tlb.remove(asid, page),
        }
    }

    /// Flushes the running CPU's own TLB.
    fn flush_own(&mut self, asid: Asid, what: Flush) {
        let memory = &self.profile.memory;
        let all = memory.tlb_flush_all;
        let cost = match what {
            Flush::Range(range) => (range.pages() as Time * memory.tlb_flush_page).min(all),
            Flush::All => all,
        };
        self.cpu().translation.tlb.flush(asid, what);
        self.spend(cost);
    }

    /// Interrupts taken so far by the running CPU, with those that have just arrived.
    fn interrupts_taken(&mut self) -> u64 {
        self.take_interrupts();
        self.cpu().translation.taken
    }
}

impl Sim {
    /// Translates `address` for the calling CPU, as hardware does.
    ///
    /// # Safety
    /// As for [`Mmu::load`].
    unsafe fn translate(&self, address: usize, access: Access) -> Result<Frame, PageFault> {
        let running = self.running();
        let (root, asid) = match running.with(|engine| engine.look_up(address, access))? {
            Found::Cached(frame) => return Ok(frame),
            Found::Walk(root, asid) => (root, asid),
        };
        // SAFETY: so says the caller.
        let walked = unsafe { walk(self, root, address, access) };
        running.with(|engine| engine.keep(asid, address, &walked));
        walked.map(|entry| entry.frame)
    }

    /// Performs one access of a task: `op` on its word. A flush that arrives before the access is
    /// performed comes first, and the access is translated again. Until then the task keeps its
    /// CPU.
    ///
    /// # Safety
    /// As for [`Mmu::load`].
    unsafe fn perform<R>(
        &self,
        address: usize,
        access: Access,
        op: impl FnOnce(&AtomicU64) -> R,
    ) -> Result<R, PageFault> {
        debug_assert!(address.is_multiple_of(8), "{address:#x} is not aligned");
        let running = self.running();
        running.maybe_preempt();
        let _pin = Sim::pin();
        let kind = match access {
            Access::Read | Access::Execute => Kind::Load,
            Access::Write => Kind::Store,
        };
        loop {
            // SAFETY: so says the caller.
            let frame = unsafe { self.translate(address, access) };
            let frame = frame.inspect_err(|_| {
                running.with(|engine| engine.spend(engine.profile.kernel.fault));
            })?;
            let before = running.with(|engine| engine.cpu().translation.taken);
            // SAFETY: the tables give the frame to tasks.
            let word = unsafe { self.word(frame, (address % PAGE_SIZE) / 8) }.raw();
            engine::touch(Shared::of(word), kind);
            if running.with(Engine::interrupts_taken) == before {
                return Ok(op(word));
            }
        }
    }
}

/// The caller must run on a CPU of the machine; every operation panics otherwise.
///
/// An access costs a walk or nothing for its translation, then the cost of its cache line.
// SAFETY: `soft::walk` and the exact TLB keep the contract of accesses. A shootdown returns when
// the clock has passed the last acknowledgement, and a CPU handles the interrupts that have arrived
// by its own clock before it translates and again before the access is performed.
unsafe impl Mmu for Sim {
    fn asids(&self) -> usize {
        1 << u16::BITS
    }

    fn kernel_entries(&self) -> Option<KernelEntries> {
        None
    }

    unsafe fn activate(&self, root: Frame, asid: Asid) {
        let active = Some((root, asid));
        self.running()
            .with(|engine| engine.cpu().translation.active = active);
    }

    fn deactivate(&self) {
        self.running()
            .with(|engine| engine.cpu().translation.active = None);
    }

    fn flush_local(&self, asid: Asid, what: Flush) {
        self.running().with(|engine| engine.flush_own(asid, what));
    }

    fn shootdown(&self, targets: &CpuSet, asid: Asid, what: Flush) {
        let running = self.running();
        let me = running.with(|engine| engine.running);
        if targets.contains(me) {
            self.flush_local(asid, what);
        }
        let mut others = *targets;
        others.remove(me);
        if others.is_empty() {
            return;
        }
        engine::in_turn();
        running.with(|engine| {
            let done = engine.flush_others(&others, asid, what);
            let wait = done.saturating_sub(engine.cpu().clock);
            engine.spend_interrupted(wait);
        });
    }

    unsafe fn load(&self, address: usize) -> Result<u64, PageFault> {
        // SAFETY: so says the caller.
        unsafe { self.perform(address, Access::Read, |word| word.load(Ordering::Acquire)) }
    }

    unsafe fn store(&self, address: usize, value: u64) -> Result<(), PageFault> {
        let store = |word: &AtomicU64| word.store(value, Ordering::Release);
        // SAFETY: so says the caller.
        unsafe { self.perform(address, Access::Write, store) }
    }

    unsafe fn fetch(&self, address: usize) -> Result<u64, PageFault> {
        // SAFETY: so says the caller.
        unsafe {
            self.perform(address, Access::Execute, |word| {
                word.load(Ordering::Acquire)
            })
        }
    }
}
