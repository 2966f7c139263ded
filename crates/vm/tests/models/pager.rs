//! The store in memory: the suite for stores, failures, counting.

use hosted::Hosted;
use loomed::{Loomed, loom};
use machine::{Execute, Frame, Memory, Ordering, PAGE_SIZE, Pager, PagerError, conformance};
use std::sync::Arc;
use vm::pager::{MemoryPager, PagerCounts};

fn machine() -> Hosted {
    Hosted::with_memory(2, conformance::FRAMES * PAGE_SIZE).expect("memory")
}

#[test]
fn keeps_pages_on_hosted() {
    let pager = || Arc::new(MemoryPager::<Hosted>::new());
    conformance::pager(&machine(), pager());
    conformance::truncation(&machine(), pager());
}

/// Without preemptions: that the store works where memory is a checker's words.
#[test]
fn keeps_pages_on_checked() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(0);
    builder.max_branches = 20_000;
    builder.check(|| {
        let machine = Loomed::with_memory(2, conformance::FRAMES);
        conformance::pager(&machine, Arc::new(MemoryPager::<Loomed>::new()));
    });
}

/// Every word of a page comes back, not only those the suite tries.
#[test]
fn whole_pages() {
    let machine = machine();
    let pager = MemoryPager::new();
    machine.clone().on_cpu(0, || {
        let [from, to] = [Frame(0), Frame(1)];
        for (index, word) in (0..512).zip(1..) {
            let word = u64::wrapping_mul(word, 0x0101_0101_0101_0101);
            // SAFETY: the frame is the test's.
            unsafe { machine.word(from, index) }.store(word, Ordering::Relaxed);
        }
        // SAFETY: the frames are the test's.
        unsafe { pager.write(&machine, 7, &[from], PAGE_SIZE) }.expect("write");
        // SAFETY: the frames are the test's.
        unsafe { pager.read(&machine, 7, &[to]) }.expect("read");
        // SAFETY: the frame is the test's.
        let word = |frame, index| unsafe { machine.word(frame, index) }.load(Ordering::Relaxed);
        assert!((0..512).all(|index| word(from, index) == word(to, index)));
    });
}

#[test]
fn the_call_that_is_to_fail_fails() {
    let machine = machine();
    let pager = MemoryPager::new();
    machine.clone().on_cpu(0, || {
        let frame = Frame(0);
        let write = |value| {
            // SAFETY: the frame is the test's.
            unsafe { machine.word(frame, 0) }.store(value, Ordering::Relaxed);
            // SAFETY: the frames are the test's.
            unsafe { pager.write(&machine, 1, &[frame], PAGE_SIZE) }
        };
        let read = || {
            // SAFETY: the frames are the test's.
            let read = unsafe { pager.read(&machine, 1, &[frame]) };
            // SAFETY: the frame is the test's.
            read.map(|()| unsafe { machine.word(frame, 0) }.load(Ordering::Relaxed))
        };
        pager.fail_after(3);
        assert_eq!(write(5), Ok(()));
        assert_eq!(read(), Ok(5));
        assert_eq!(read(), Err(PagerError { errno: 5 }));
        assert_eq!(read(), Ok(5), "one call fails, not all");
        pager.fail_after(1);
        assert_eq!(write(6), Err(PagerError { errno: 5 }));
        assert_eq!(read(), Ok(0), "neither the old page nor the new one");
        pager.fail_after(1);
        pager.fail_after(0);
        assert_eq!(write(7), Ok(()));
    });
}

#[test]
fn calls_and_pages_are_counted() {
    let machine = machine();
    let pager = MemoryPager::new();
    machine.clone().on_cpu(0, || {
        let frames = [Frame(0), Frame(1), Frame(2)];
        // SAFETY: the frame is the test's.
        let one = |frame| unsafe { machine.word(frame, 1) }.store(1, Ordering::Relaxed);
        one(frames[0]);
        one(frames[1]);
        // SAFETY: the frames are the test's.
        unsafe { pager.write(&machine, 30, &frames, 2 * PAGE_SIZE + 1) }.expect("write");
        // SAFETY: the frames are the test's.
        unsafe { pager.read(&machine, 31, &frames[..2]) }.expect("read");
        pager.fail_after(1);
        // SAFETY: the frames are the test's.
        unsafe { pager.read(&machine, 0, &frames) }.expect_err("is to fail");
        let counts = PagerCounts {
            reads: 2,
            pages_read: 5,
            writes: 1,
            pages_written: 3,
        };
        assert_eq!(pager.counts(), counts);
        assert_eq!(pager.pages(), 2, "a page of zeroes takes memory");
    });
}

#[test]
fn pages_that_have_no_number_are_an_error() {
    let machine = machine();
    let pager = MemoryPager::new();
    machine.clone().on_cpu(0, || {
        let frames = [Frame(0), Frame(1)];
        let error = Err(PagerError { errno: 27 });
        assert_eq!(
            // SAFETY: the frames are the test's.
            unsafe { pager.write(&machine, u64::MAX, &frames, 5_000) },
            error
        );
        // SAFETY: the frames are the test's.
        assert_eq!(unsafe { pager.read(&machine, u64::MAX, &frames) }, error);
    });
}

/// CPUs that write a thousand pages at random places, each its own.
#[test]
fn many_pages_beside_each_other() {
    const CPUS: u64 = 4;
    let machine = Hosted::with_memory(CPUS as usize, 1 << 20).expect("memory");
    let pager = Arc::new(MemoryPager::new());
    let jobs = (0..CPUS).map(|cpu| {
        let (machine, pager) = (machine.clone(), pager.clone());
        Box::new(move || {
            // SAFETY: the frame is the test's.
            let word = unsafe { machine.word(Frame(cpu as u32), 9) };
            let page = |n: u64| n.wrapping_mul(0x9e37_79b9) % 100_000 * CPUS + cpu;
            for n in 0..1_000 {
                word.store(page(n) + 1, Ordering::Relaxed);
                let frames = [Frame(cpu as u32)];
                // SAFETY: the frames are the test's.
                unsafe { pager.write(&machine, page(n), &frames, PAGE_SIZE) }.expect("write");
            }
            for n in 0..1_000 {
                // SAFETY: the frames are the test's.
                unsafe { pager.read(&machine, page(n), &[Frame(cpu as u32)]) }.expect("read");
                assert_eq!(word.load(Ordering::Relaxed), page(n) + 1);
            }
        }) as machine::Job
    });
    machine.execute(jobs.collect());
}
