//! A store of pages that watches its user: no two calls may concern one page at once.

use hosted::Hosted;
use machine::{Frame, Memory, Ordering, PAGE_SIZE, Pager, PagerError, Truncate};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard};
use sync::spin::TestAndSet;
use sync::watch::Watched;
use vm::object::Slots;

/// A call, with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    Read(Range<u64>),
    /// The pages, and how many bytes.
    Write(Range<u64>, usize),
    Truncate(u64),
}

sync::lock_class!(
    /// A store sleeps, so no slot may be locked where it is called.
    Device = "device of the test", rank 29
);

#[derive(Default)]
pub struct TestStore {
    pages: Mutex<BTreeMap<u64, Vec<u8>>>,
    under_way: Mutex<BTreeSet<u64>>,
    calls: Mutex<Vec<Call>>,
    /// Calls until the one that fails; 0 means none does.
    fail_in: AtomicU64,
    /// A page that cannot be read.
    bad: Mutex<Option<u64>>,
    slots: AtomicU64,
}

const EIO: PagerError = PagerError { errno: 5 };

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap()
}

impl TestStore {
    /// A store of `pages` pages, page n filled with words `tag + n`.
    pub fn with(pages: u64, tag: u64) -> Self {
        let store = TestStore::default();
        for page in 0..pages {
            let bytes = (tag + page).to_le_bytes().repeat(PAGE_SIZE / 8);
            lock(&store.pages).insert(page, bytes);
        }
        store
    }

    pub fn fail_after(&self, nth: u64) {
        self.fail_in.store(nth, Ordering::Relaxed);
    }

    pub fn set_bad(&self, page: Option<u64>) {
        *lock(&self.bad) = page;
    }

    /// The calls since this was last asked.
    pub fn calls(&self) -> Vec<Call> {
        std::mem::take(&mut lock(&self.calls))
    }

    /// The first word of a page, if the store has it.
    pub fn first_word(&self, page: u64) -> Option<u64> {
        let pages = lock(&self.pages);
        pages.get(&page).map(|bytes| word(bytes, 0))
    }

    /// Bytes of a page, zero where the store has none.
    pub fn bytes(&self, page: u64) -> Vec<u8> {
        let pages = lock(&self.pages);
        pages.get(&page).cloned().unwrap_or(vec![0; PAGE_SIZE])
    }

    /// Slots that were given out and not freed.
    pub fn slots_used(&self) -> usize {
        lock(&self.pages).len()
    }

    /// Keeps a frame's content in a new slot, as swapping out does.
    pub fn slot(&self, machine: &Hosted, frame: Frame) -> u32 {
        let slot = self.slots.fetch_add(1, Ordering::Relaxed);
        lock(&self.pages).insert(slot, copy_of(machine, frame));
        slot as u32
    }

    fn begin(&self, call: Call, pages: Range<u64>) -> Result<(), PagerError> {
        // The checker of lock orders sees it.
        let device: sync::Mutex<Hosted, Watched<Hosted, TestAndSet<Hosted>, Device>, ()> =
            sync::Mutex::new(());
        drop(device.lock());
        {
            let mut under_way = lock(&self.under_way);
            for page in pages {
                assert!(
                    under_way.insert(page),
                    "two calls for page {page}: {call:?}"
                );
            }
        }
        lock(&self.calls).push(call);
        std::thread::yield_now();
        let left = self
            .fail_in
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
        if left == Ok(1) { Err(EIO) } else { Ok(()) }
    }

    fn end(&self, pages: Range<u64>) {
        let mut under_way = lock(&self.under_way);
        pages.for_each(|page| assert!(under_way.remove(&page)));
    }
}

fn word(bytes: &[u8], index: usize) -> u64 {
    u64::from_le_bytes(bytes[index * 8..][..8].try_into().unwrap())
}

/// A frame's bytes.
pub fn copy_of(machine: &Hosted, frame: Frame) -> Vec<u8> {
    // SAFETY: so says the caller.
    let words = (0..PAGE_SIZE / 8)
        .map(|index| unsafe { machine.word(frame, index) }.load(Ordering::Relaxed));
    words.flat_map(u64::to_le_bytes).collect()
}

fn fill(machine: &Hosted, frame: Frame, bytes: &[u8]) {
    for index in 0..PAGE_SIZE / 8 {
        let word = word(bytes, index);
        // SAFETY: so says the caller.
        unsafe { machine.word(frame, index) }.store(word, Ordering::Relaxed);
    }
}

impl Pager<Hosted> for TestStore {
    unsafe fn read(
        &self,
        machine: &Hosted,
        first: u64,
        frames: &[Frame],
    ) -> Result<(), PagerError> {
        let range = first..first + frames.len() as u64;
        let mut result = self.begin(Call::Read(range.clone()), range.clone());
        for (&frame, page) in frames.iter().zip(range.clone()) {
            // Garbage where it failed: no task may see it.
            let bytes = match result {
                Ok(()) => self.bytes(page),
                Err(_) => vec![0xee; PAGE_SIZE],
            };
            fill(machine, frame, &bytes);
        }
        if lock(&self.bad).is_some_and(|bad| range.contains(&bad)) {
            result = Err(EIO);
        }
        self.end(range);
        result
    }

    unsafe fn write(
        &self,
        machine: &Hosted,
        first: u64,
        frames: &[Frame],
        bytes: usize,
    ) -> Result<(), PagerError> {
        assert!((1..=32).contains(&frames.len()), "{} frames", frames.len());
        assert_eq!(bytes.div_ceil(PAGE_SIZE), frames.len(), "all frames");
        let range = first..first + frames.len() as u64;
        let result = self.begin(Call::Write(range.clone(), bytes), range.clone());
        for (place, (&frame, page)) in frames.iter().zip(range.clone()).enumerate() {
            let count = (bytes - place * PAGE_SIZE).min(PAGE_SIZE);
            let new = match result {
                Ok(()) => copy_of(machine, frame),
                Err(_) => vec![0xee; PAGE_SIZE],
            };
            let mut pages = lock(&self.pages);
            let kept = pages.entry(page).or_insert(vec![0; PAGE_SIZE]);
            kept[..count].copy_from_slice(&new[..count]);
        }
        self.end(range);
        result
    }
}

impl Truncate<Hosted> for TestStore {
    fn truncate(&self, _: &Hosted, bytes: u64) -> Result<(), PagerError> {
        let (whole, rest) = (bytes / PAGE_SIZE as u64, bytes as usize % PAGE_SIZE);
        let behind = bytes.div_ceil(PAGE_SIZE as u64);
        let under_way = lock(&self.under_way).last().copied();
        assert!(
            under_way.is_none_or(|page| page < behind),
            "cut off while used"
        );
        self.begin(Call::Truncate(bytes), 0..0)?;
        let mut pages = lock(&self.pages);
        pages.retain(|&page, _| page < behind);
        if rest > 0
            && let Some(last) = pages.get_mut(&whole)
        {
            last[rest..].fill(0);
        }
        Ok(())
    }
}

impl Slots<Hosted> for TestStore {
    unsafe fn read(&self, machine: &Hosted, slot: u32, frame: Frame) -> Result<(), PagerError> {
        let page = u64::from(slot);
        assert!(lock(&self.pages).contains_key(&page), "slot {slot} is free");
        // SAFETY: so says the caller.
        unsafe { Pager::read(self, machine, page, &[frame]) }
    }

    unsafe fn free(&self, slot: u32) {
        let freed = lock(&self.pages).remove(&u64::from(slot));
        assert!(freed.is_some(), "slot {slot} freed twice");
    }
}
