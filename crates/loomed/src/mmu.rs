//! Translation: a TLB that drops nothing by itself, a page walk, and shootdown.
//!
//! A CPU's state word is odd while it performs an access. An access makes it odd and fences,
//! carries out the requests if its doorbell has rung since the last check, translates, accesses,
//! and makes the state even. A shootdown notes the request, rings the targets' doorbells, fences,
//! and waits for each target whose state is odd to change it. The hosted machine's `shootdown`
//! module explains why that is enough; here the checker looks for a counterexample.

use crate::memory::lock;
use crate::{Loomed, U64};
use machine::{
    Access, Asid, Atomic, AtomicInt, Atomics, CpuSet, Cpus, Flush, Frame, KernelEntries, Mmu,
    Ordering, PAGE_SHIFT, PAGE_SIZE, PageFault, Pinned, VaRange, pte,
};
use std::sync::Mutex;

/// The translation hardware of one CPU.
pub(crate) struct CpuMmu {
    /// Odd while the CPU performs an access.
    state: U64,
    /// Grows with each request.
    doorbell: U64,
    /// Requests not yet carried out. Not part of the model: a CPU that has heard one ring may see
    /// requests whose ring is still to come, and flushes more.
    requests: Mutex<Vec<(Asid, Flush)>>,
    /// Only the owner uses it.
    own: Mutex<Own>,
}

#[derive(Default)]
struct Own {
    active: Option<(Frame, Asid)>,
    tlb: Vec<Entry>,
    heard: u64,
}

/// A translation of 4 KiB or 2 MiB.
#[derive(Clone, Copy)]
struct Entry {
    asid: Asid,
    /// The range it translates, and its first frame.
    range: VaRange,
    frame: Frame,
    rights: Rights,
    dirty: bool,
}

/// The rights that all entries on the way to a page allow.
#[derive(Clone, Copy)]
struct Rights {
    write: bool,
    execute: bool,
}

impl Rights {
    const ALL: Rights = Rights {
        write: true,
        execute: true,
    };

    /// The rights left after one more entry.
    fn behind(self, entry: u64) -> Rights {
        Rights {
            write: self.write && entry & pte::WRITABLE != 0,
            execute: self.execute && entry & pte::NO_EXECUTE == 0,
        }
    }

    fn allow(self, access: Access) -> bool {
        match access {
            Access::Read => true,
            Access::Write => self.write,
            Access::Execute => self.execute,
        }
    }
}

impl Entry {
    /// The frame at `address`.
    fn frame(&self, address: usize) -> Frame {
        let inside = (address - self.range.start) >> PAGE_SHIFT;
        Frame(self.frame.0 + inside as u32)
    }
}

impl CpuMmu {
    pub(crate) fn new() -> Self {
        CpuMmu {
            state: U64::new(0),
            doorbell: U64::new(0),
            requests: Mutex::default(),
            own: Mutex::default(),
        }
    }

    fn flush(&self, asid: Asid, what: Flush) {
        let range = match what {
            Flush::All => VaRange {
                start: 0,
                end: pte::USER_END,
            },
            Flush::Range(range) => range,
        };
        let doomed =
            |e: &Entry| e.asid == asid && e.range.start < range.end && range.start < e.range.end;
        lock(&self.own).tlb.retain(|entry| !doomed(entry));
    }

    fn serve(&self) {
        // Acquire: pairs with the release of the ring, so the CPU sees the changed tables.
        let rung = self.doorbell.load(Ordering::Acquire);
        if rung != core::mem::replace(&mut lock(&self.own).heard, rung) {
            let requests = core::mem::take(&mut *lock(&self.requests));
            for (asid, what) in requests {
                self.flush(asid, what);
            }
        }
    }
}

impl Loomed {
    fn mmu(&self) -> &CpuMmu {
        let index = self.cpus.index_of(Loomed::pin().cpu());
        let mmu = self.inner.mmus.get(index);
        mmu.expect("translation on no CPU of this machine, or on a machine without memory")
    }

    fn perform<R>(
        &self,
        address: usize,
        access: Access,
        op: impl FnOnce(&U64) -> R,
    ) -> Result<R, PageFault> {
        let mmu = self.mmu();
        let before = mmu.state.load(Ordering::Relaxed);
        // Pairs with the fence in `shootdown`.
        mmu.state.publish(before + 1);
        mmu.serve();
        let frame = self.translate(mmu, address, access);
        let result =
            frame.map(|frame| op(self.inner.frames.word(frame, (address % PAGE_SIZE) / 8)));
        // Release: pairs with the acquire in `shootdown`; the access is performed.
        mmu.state.store(before + 2, Ordering::Release);
        result
    }

    fn translate(&self, mmu: &CpuMmu, address: usize, access: Access) -> Result<Frame, PageFault> {
        let fault = |present| PageFault {
            address,
            access,
            present,
        };
        let (root, asid) = lock(&mmu.own).active.ok_or(fault(false))?;
        let is_it = |entry: &Entry| entry.asid == asid && entry.range.contains(address);
        let cached = lock(&mmu.own).tlb.iter().copied().find(is_it);
        if let Some(entry) = cached
            && entry.rights.allow(access)
            && (access != Access::Write || entry.dirty)
        {
            return Ok(entry.frame(address));
        }
        lock(&mmu.own).tlb.retain(|entry| !is_it(entry));
        if cached.is_some_and(|entry| !entry.rights.allow(access)) {
            return Err(fault(true));
        }
        let (leaf, level, rights) = self.walk(root, address, access).map_err(fault)?;
        let span = pte::span(level);
        let entry = Entry {
            asid,
            range: VaRange::sized(address & !(span - 1), span),
            frame: pte::frame(leaf),
            rights,
            dirty: leaf & pte::DIRTY != 0,
        };
        lock(&mmu.own).tlb.push(entry);
        Ok(entry.frame(address))
    }

    /// Returns the mapping entry as the walk leaves it, its level, and the rights; otherwise true
    /// if a present entry forbids the access.
    fn walk(
        &self,
        root: Frame,
        address: usize,
        access: Access,
    ) -> Result<(u64, u32, Rights), bool> {
        if address >= pte::USER_END {
            return Err(false);
        }
        let mut entry = pte::PRESENT | pte::WRITABLE | pte::USER | root.address();
        let mut rights = Rights::ALL;
        let mut level = pte::LEVELS;
        loop {
            level -= 1;
            let word = self
                .inner
                .frames
                .word(pte::frame(entry), pte::index(address, level));
            // Acquire (here and below): pairs with the release of the CPU that linked the entry.
            let mut found = word.load(Ordering::Acquire);
            loop {
                if found & pte::PRESENT == 0 {
                    return Err(false);
                }
                if found & pte::USER == 0 || !rights.behind(found).allow(access) {
                    return Err(true);
                }
                let dirties = maps(level, found) && access == Access::Write;
                entry = found | pte::ACCESSED | if dirties { pte::DIRTY } else { 0 };
                if entry == found {
                    break;
                }
                // Release: a CPU that clears the entry sees the bits set.
                match word.compare_exchange(found, entry, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) => break,
                    Err(changed) => found = changed,
                }
            }
            rights = rights.behind(entry);
            if maps(level, entry) {
                return Ok((entry, level, rights));
            }
        }
    }
}

/// Returns true if an entry at `level` maps a page, of 4 KiB or 2 MiB.
fn maps(level: u32, entry: u64) -> bool {
    level == 0 || (level == 1 && entry & pte::HUGE != 0)
}

/// The calling thread must be a CPU of the machine, and the machine have memory;
/// every operation panics otherwise.
// SAFETY: `translate` follows the tables or an entry that was cached and not flushed, and sets bits
// by compare-exchange on the value it judged. By the module's protocol a shootdown ends only after
// all accesses through flushed entries; the checker looks for a schedule where it does not.
unsafe impl Mmu for Loomed {
    fn asids(&self) -> usize {
        1 << u16::BITS
    }

    fn kernel_entries(&self) -> Option<KernelEntries> {
        None
    }

    unsafe fn activate(&self, root: Frame, asid: Asid) {
        lock(&self.mmu().own).active = Some((root, asid));
    }

    fn deactivate(&self) {
        lock(&self.mmu().own).active = None;
    }

    fn flush_local(&self, asid: Asid, what: Flush) {
        self.mmu().flush(asid, what);
    }

    fn shootdown(&self, targets: &CpuSet, asid: Asid, what: Flush) {
        let me = self.cpus.index_of(Loomed::pin().cpu());
        let others = || targets.iter().filter(|&cpu| cpu != me);
        if targets.contains(me) {
            self.mmu().flush(asid, what);
        }
        for target in others().map(|cpu| &self.inner.mmus[cpu]) {
            lock(&target.requests).push((asid, what));
            // Release: pairs with the acquire in `serve`.
            target.doorbell.fetch_add(1, Ordering::Release);
        }
        // Pairs with the publication of the state in `perform`.
        Loomed::fence(Ordering::SeqCst);
        for target in others().map(|cpu| &self.inner.mmus[cpu]) {
            // Acquire (both): pairs with the release that ends an access.
            let seen = target.state.load(Ordering::Acquire);
            if seen % 2 == 1 {
                Loomed::spin_until(|| target.state.load(Ordering::Acquire) != seen);
            }
        }
    }

    unsafe fn load(&self, address: usize) -> Result<u64, PageFault> {
        self.perform(address, Access::Read, |word| word.load(Ordering::Acquire))
    }

    unsafe fn store(&self, address: usize, value: u64) -> Result<(), PageFault> {
        self.perform(address, Access::Write, |word| {
            word.store(value, Ordering::Release);
        })
    }

    unsafe fn fetch(&self, address: usize) -> Result<u64, PageFault> {
        self.perform(address, Access::Execute, |word| {
            word.load(Ordering::Acquire)
        })
    }
}
