//! A translation that is used after its frame was freed ends the run; so does one of 2 MiB,
//! whichever of its 512 frames was freed.

use crate::support;

use machine::{Asid, Atomic, Flush, Frame, Memory, Mmu, Ordering, PAGE_SIZE, VaRange, pte};
use sim::{Options, Sim};
use std::panic::{AssertUnwindSafe, catch_unwind};

const ASID: Asid = Asid(1);
const BITS: u64 = pte::PRESENT | pte::USER | pte::WRITABLE;
/// Frames of a large page, and the first of it.
const FRAMES: u32 = pte::ENTRIES as u32;

/// The tables, from the root.
const ROOT: Frame = Frame(0);
const THIRD: Frame = Frame(1);
const SECOND: Frame = Frame(2);
const LEAF: Frame = Frame(3);

/// A CPU that translates the first 2 MiB to frames 512 to 1023, by one entry or by 512.
fn machine(large: bool) -> Sim {
    let sim = Sim::new(Options {
        memory: 2 * pte::span(1),
        ..Options::new(support::profile("pc-16c32t"))
    })
    .expect("address space");
    let link = |table, index, to: Frame, bits| {
        let entry = to.address() | BITS | bits;
        // SAFETY: the frame is the test's.
        unsafe { sim.word(table, index) }.store(entry, Ordering::Relaxed);
    };
    link(ROOT, 0, THIRD, 0);
    link(THIRD, 0, SECOND, 0);
    if large {
        link(SECOND, 0, Frame(FRAMES), pte::HUGE)
    } else {
        link(SECOND, 0, LEAF, 0)
    }
    (0..FRAMES).for_each(|page| link(LEAF, page as usize, Frame(FRAMES + page), 0));
    (0..FRAMES).for_each(|page| sim.allocated(Frame(FRAMES + page)));
    sim
}

fn address(page: u32) -> usize {
    page as usize * PAGE_SIZE
}

/// Uses page `first`, frees the frame of page `freed`, runs `between`, uses page `then`; returns
/// the machine's panic.
fn use_free_use(large: bool, pages: [u32; 3], between: fn(&Sim, VaRange)) -> Result<(), String> {
    let [first, freed, then] = pages;
    let sim = machine(large);
    let task = sim.clone();
    let run = || {
        sim.on_cpu(0, move || {
            // SAFETY: the frame is a root table.
            unsafe { task.activate(ROOT, ASID) };
            // SAFETY: the CPU translates by tables that stay during the call.
            unsafe { task.store(address(first), 1) }.expect("mapped");
            task.freed(Frame(FRAMES + freed));
            between(&task, VaRange::sized(address(freed), PAGE_SIZE));
            // SAFETY: the CPU translates by tables that stay during the call.
            unsafe { task.load(address(then)) }.expect("mapped still");
        });
    };
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| {
        let text = panic.downcast_ref::<String>();
        text.expect("a formatted message").clone()
    })
}

#[test]
fn a_small_page_is_its_frames() {
    let stale = use_free_use(false, [7, 7, 7], |_, _| ()).unwrap_err();
    let expected = "CPU 0 uses a stale translation of 0x7000 to Frame(519), which has been freed";
    assert!(stale.starts_with(expected), "{stale}");
    assert_eq!(use_free_use(false, [7, 8, 7], |_, _| ()), Ok(()));
}

#[test]
fn a_large_page_is_all_of_its_frames() {
    for freed in 0..FRAMES {
        for pages in [[0, freed, freed], [freed, freed, 511 - freed]] {
            let stale = use_free_use(true, pages, |_, _| ()).expect_err("stale");
            let frame = Frame(FRAMES + pages[2]);
            let at = address(pages[2]);
            let expected = format!("stale translation of {at:#x} to {frame:?}, in 2 MiB");
            assert!(stale.contains(&expected), "{stale}");
        }
    }
}

#[test]
fn what_was_flushed_may_be_freed() {
    let flush = |sim: &Sim, page| sim.flush_local(ASID, Flush::Range(page));
    assert_eq!(use_free_use(true, [0, 100, 200], flush), Ok(()));
    assert_eq!(use_free_use(false, [7, 7, 7], flush), Ok(()));
}
