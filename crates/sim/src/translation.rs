//! Address translation: TLBs, walks, interrupts that flush.
//!
//! # Protocol
//! A shootdown is sent in turn. Each target has it in its inbox with the time at which
//! the interrupt arrives, which is later than anybody may have run ahead; from then on
//! the target translates with nothing that was to be flushed, and has lost the handler's
//! time. The sender waits for the last acknowledgement.

use crate::Sim;
use crate::engine::agenda::NEVER;
use crate::engine::cpu::Doing;
use crate::engine::{self, Engine, Kind, Shared, Time};
use core::sync::atomic::{AtomicU64, Ordering};
use machine::soft::{Entry, SETS, Tlb, walk};
use machine::{
    Access, Asid, CpuSet, Flush, Frame, Memory, Mmu, PAGE_SHIFT, PAGE_SIZE, PageFault, pte,
};
use std::collections::VecDeque;

/// A request to flush, on its way or arrived.
struct Interrupt {
    at: Time,
    asid: Asid,
    what: Flush,
}

/// One CPU's translation hardware.
pub(crate) struct Translation {
    /// The tables in use, and the tag of their entries.
    active: Option<(Frame, Asid)>,
    tlb: Tlb,
    inbox: VecDeque<Interrupt>,
    /// When the first of the inbox arrives.
    next: Time,
    /// When the last handler ends.
    handled: Time,
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
            handled: 0,
            taken: 0,
        }
    }

    /// Whether an interrupt has arrived by `now`.
    #[inline]
    pub(crate) fn is_interrupted(&self, now: Time) -> bool {
        self.next <= now
    }

    /// Takes what has arrived by `now`; how many requests.
    fn take(&mut self, now: Time) -> u64 {
        let mut taken = 0;
        while let Some(interrupt) = self.inbox.front()
            && interrupt.at <= now
        {
            self.tlb.flush(interrupt.asid, interrupt.what);
            self.inbox.pop_front();
            taken += 1;
        }
        self.next = self.inbox.front().map_or(NEVER, |interrupt| interrupt.at);
        self.taken += taken;
        taken
    }

    /// The CPU was idle until `now`: what arrived meanwhile took it no time.
    pub(crate) fn rest(&mut self, now: Time) {
        self.take(now);
    }

    /// An interrupt that would arrive at `at`, after those before it; when it is handled.
    fn post(&mut self, at: Time, handler: Time, asid: Asid, what: Flush) -> Time {
        let at = at.max(self.handled);
        self.handled = at + handler;
        self.next = self.next.min(at);
        self.inbox.push_back(Interrupt { at, asid, what });
        self.handled
    }
}

impl Engine {
    /// The running CPU handles the interrupts that have arrived.
    #[inline]
    pub(crate) fn take_interrupts(&mut self) {
        let handler = self.profile.ipi.handler;
        let cpu = self.cpu();
        if cpu.translation.is_interrupted(cpu.clock) {
            cpu.clock += cpu.translation.take(cpu.clock) * handler;
        }
    }

    /// When the last of `targets` has acknowledged a flush sent by the running CPU.
    fn interrupt(&mut self, targets: &CpuSet, asid: Asid, what: Flush) -> Time {
        let ipi = self.profile.ipi.clone();
        let sent = self.cpu().clock + ipi.send;
        let mut done = sent;
        for (index, target) in targets.iter().enumerate() {
            let arrives = sent + index as Time * ipi.per_target + ipi.deliver;
            let cpu = &mut self.cpus[target];
            let handler = if cpu.doing == Doing::Nothing {
                0
            } else {
                ipi.handler
            };
            let handled = cpu.translation.post(arrives, handler, asid, what);
            done = done.max(handled + ipi.acknowledge);
        }
        done
    }
}

impl Sim {
    /// Translates `address` for the calling CPU, as hardware does.
    fn translate(&self, address: usize, access: Access) -> Result<Frame, PageFault> {
        let fault = |present| PageFault {
            address,
            access,
            present,
        };
        let engine = self.running();
        // SAFETY: the calling CPU's engine, here and below; no reference outlives a call
        // that may suspend.
        let (cpu, active) = unsafe {
            (*engine).take_interrupts();
            ((*engine).running, (*engine).cpu().translation.active)
        };
        let (root, asid) = active.ok_or(fault(false))?;
        let page = address >> PAGE_SHIFT;
        let in_reach = address < pte::USER_END;
        let cached = if in_reach {
            unsafe { (*engine).cpu().translation.tlb.lookup(asid, page) }
        } else {
            None
        };
        if let Some(entry) = cached {
            if access == Access::Read || (entry.writable && entry.dirty) {
                unsafe { (*engine).oracle.used(entry.frame, entry.note, address, cpu) };
                return Ok(entry.frame);
            }
            if !entry.writable {
                unsafe { (*engine).cpu().translation.tlb.remove(asid, page) };
                return Err(fault(true));
            }
        }
        engine::advance(unsafe { (*engine).profile.memory.walk });
        let walked = walk(self, root, address, access);
        // What has arrived during the walk comes before what it has found.
        let (oracle, translation) = unsafe {
            (*engine).take_interrupts();
            (
                &(*engine).oracle,
                &mut (&mut (*engine).cpus)[cpu].translation,
            )
        };
        match walked {
            Ok(entry) => {
                let entry = Entry {
                    note: oracle.note(entry.frame),
                    ..entry
                };
                translation.tlb.insert(asid, page, entry);
                Ok(entry.frame)
            }
            Err(fault) => {
                translation.tlb.remove(asid, page);
                Err(fault)
            }
        }
    }

    /// One access of a task: `op` on its word. An interrupt that arrives before the access
    /// is performed comes first, and the access is translated anew.
    fn perform<R>(
        &self,
        address: usize,
        access: Access,
        op: impl FnOnce(&AtomicU64) -> R,
    ) -> Result<R, PageFault> {
        debug_assert!(address.is_multiple_of(8), "{address:#x} is not aligned");
        let engine = self.running();
        let kind = match access {
            Access::Read => Kind::Load,
            Access::Write => Kind::Store,
        };
        loop {
            let frame = match self.translate(address, access) {
                Ok(frame) => frame,
                Err(fault) => {
                    // SAFETY: the calling CPU's engine, here and below.
                    engine::advance(unsafe { (*engine).profile.kernel.fault });
                    return Err(fault);
                }
            };
            let before = unsafe { (*engine).cpu().translation.taken };
            let word = self.word(frame, (address % PAGE_SIZE) / 8).raw();
            engine::touch(Shared::of(word), kind);
            // SAFETY: as above.
            let taken = unsafe {
                (*engine).take_interrupts();
                (*engine).cpu().translation.taken
            };
            if taken == before {
                return Ok(op(word));
            }
        }
    }

    fn flush_own(&self, asid: Asid, what: Flush) {
        let engine = self.running();
        // SAFETY: the calling CPU's engine.
        let engine = unsafe { &mut *engine };
        let memory = &engine.profile.memory;
        let cost = match what {
            Flush::Range(range) => {
                (range.pages() as Time * memory.tlb_flush_page).min(memory.tlb_flush_all)
            }
            Flush::All => memory.tlb_flush_all,
        };
        engine.cpu().translation.tlb.flush(asid, what);
        engine::advance(cost);
    }
}

/// The caller must run on a CPU of the machine; every operation panics otherwise.
///
/// An access costs a walk or nothing for its translation, then what its line costs.
impl Mmu for Sim {
    fn activate(&self, root: Frame, asid: Asid) {
        // SAFETY: the calling CPU's engine, here and below.
        unsafe { (*self.running()).cpu().translation.active = Some((root, asid)) };
    }

    fn deactivate(&self) {
        // SAFETY: as in `activate`.
        unsafe { (*self.running()).cpu().translation.active = None };
    }

    fn flush_local(&self, asid: Asid, what: Flush) {
        self.flush_own(asid, what);
    }

    fn shootdown(&self, targets: &CpuSet, asid: Asid, what: Flush) {
        let engine = self.running();
        engine::in_turn();
        // SAFETY: as in `activate`.
        let me = unsafe { (*engine).running };
        if targets.contains(me) {
            self.flush_own(asid, what);
            engine::in_turn();
        }
        let mut others = *targets;
        others.remove(me);
        if others.is_empty() {
            return;
        }
        // SAFETY: as in `activate`.
        let engine = unsafe { &mut *engine };
        let done = engine.interrupt(&others, asid, what);
        let cpu = engine.cpu();
        cpu.clock = cpu.clock.max(done);
    }

    fn load(&self, address: usize) -> Result<u64, PageFault> {
        self.perform(address, Access::Read, |word| word.load(Ordering::Acquire))
    }

    fn store(&self, address: usize, value: u64) -> Result<(), PageFault> {
        self.perform(address, Access::Write, |word| {
            word.store(value, Ordering::Release)
        })
    }
}
