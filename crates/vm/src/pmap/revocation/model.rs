//! Two concurrent forks of pages that another CPU's TLB knows as writable, under all interleavings.

extern crate std;

use super::*;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use loomed::Loomed;
use loomed::flaw::{Flaw, Site, must_be_found};
use loomed::loom::model::Builder;
use machine::{Atomics, Execute, Job};

type Word = <Loomed as Atomics>::AtomicU64;

struct World {
    revocations: Revocations<Loomed>,
    entries: [Word; 2],
    /// The right that a TLB knows of each page.
    tlb: [Word; 2],
}

impl World {
    /// The TLB forgets the pages, and at once walks to them again.
    fn flush(&self) {
        Loomed::fence(Ordering::SeqCst);
        for (known, entry) in self.tlb.iter().zip(&self.entries) {
            let right = entry.load(Ordering::Relaxed) & pte::WRITABLE;
            known.store(right, Ordering::Relaxed);
        }
    }

    /// A fork that copies these pages: no TLB knows one of them as writable when it ends.
    fn fork(&self, pages: &[usize]) {
        let mut revoking = self.revocations.begin();
        for &page in pages {
            revoking.revoke(&self.entries[page]);
        }
        revoking.end(|| self.flush());
        for &page in pages {
            let known = self.tlb[page].load(Ordering::Relaxed);
            assert_eq!(known, 0, "page {page} is written behind a fork's back");
        }
    }
}

/// Two CPUs fork; each copies some of the pages.
fn forks(pages: [&'static [usize]; 2]) -> impl FnOnce() {
    move || {
        Builder::new().check(move || {
            let writable = || Atomic::new(pte::WRITABLE);
            let world = Arc::new(World {
                revocations: Revocations::new(),
                entries: [writable(), writable()],
                tlb: [writable(), writable()],
            });
            let jobs = pages.map(|pages| {
                let world = world.clone();
                Box::new(move || world.fork(pages)) as Job
            });
            Loomed::new(2).execute(vec::Vec::from(jobs));
            assert!(!world.revocations.are_pending());
        });
    }
}

/// The fork that comes second finds the page read-only.
fn of_one_page() -> impl FnOnce() {
    forks([&[0], &[0]])
}

/// Neither finds the other's page read-only; a flush may begin between the two.
fn of_two_pages() -> impl FnOnce() {
    forks([&[0], &[1]])
}

#[test]
fn forks_of_one_page_end_when_it_is_flushed() {
    of_one_page()();
}

#[test]
fn a_fork_is_not_content_with_a_flush_that_began_before_its_entry() {
    of_two_pages()();
}

#[test]
fn a_fork_that_finds_one_page_and_revokes_another_waits_for_both() {
    forks([&[0], &[0, 1]])();
}

fn site(comment: &str) -> Site {
    let text = include_str!("../revocation.rs");
    Site::after("pmap/revocation.rs", text, comment)
}

#[test]
fn a_fork_that_does_not_look_for_others_is_found() {
    let looks = site("// Acquire: pairs with the release of the fork that has flushed.");
    must_be_found(Flaw::Blind, looks, of_one_page());
}

#[test]
fn a_fork_that_takes_a_flush_under_way_for_one_to_come_is_found() {
    let looks = site("// Relaxed: behind the fence.");
    must_be_found(Flaw::Blind, looks, of_two_pages());
}

#[test]
fn missing_orders_are_found() {
    for comment in [
        "// Acquire: pairs with the release of the fork that has flushed.",
        "// Acquire: pairs with the release below, so that a fork",
        "// AcqRel: the walker may set accessed and dirty, as where",
        "// Release: an operation that finds no fork finds it flushed.",
    ] {
        must_be_found(Flaw::Relaxed, site(comment), of_one_page());
    }
    for comment in [
        "// Pairs with the fence of the flush",
        "// Acquire: pairs with the release below.",
        "// Release: a fork that finds the number finds the flush done.",
    ] {
        must_be_found(Flaw::Relaxed, site(comment), of_two_pages());
    }
}
