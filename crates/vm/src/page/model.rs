//! The real descriptor of a page and its list, under all interleavings: a page that only its
//! mapping has ends, and another one begins in its frame, while a task comes by an old hint; and a
//! store through a mapping that is removed while a task writes the page out.

extern crate std;

use super::{Page, PvList};
use crate::best::Best;
use crate::system::PvBytes;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use loomed::Loomed;
use loomed::flaw::{Flaw, Site, must_be_found};
use loomed::loom::model::Builder;
use machine::{Atomic, Atomics, Execute, Frame, Ordering};
use std::panic::{AssertUnwindSafe, catch_unwind};
use sync::turnstile::Turnstiles;

type TestPage = Page<Best<Loomed>>;
type TestList<'a> = PvList<'a, Best<Loomed>>;

/// `end` drops the mapping's reference, the last. Returns true if the frame is the caller's.
fn model(end: fn(&TestPage) -> bool) -> impl FnOnce() {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(3);
    move || {
        builder.check(move || {
            let machine = Loomed::with_memory(2, 1);
            Turnstiles::<Loomed>::global();
            let page = Arc::new(TestPage::new());
            page.begin();
            let hinted = page.clone();
            let owner = move || {
                if end(&page) {
                    page.begin();
                }
            };
            let comer = move || {
                if hinted.try_retain() {
                    let list = TestList::lock(&PvBytes, Frame(0), &hinted);
                    assert!(list.first().is_none(), "an entry of the last page's");
                    drop(list);
                    let _ = hinted.release();
                }
            };
            machine.execute(vec![Box::new(owner), Box::new(comer)]);
        });
    }
}

fn freeze(page: &TestPage) -> bool {
    page.freeze(1)
}

#[test]
fn a_page_ends_and_another_begins_beside_an_old_hint() {
    model(freeze)();
}

#[test]
fn an_end_that_only_looks_at_the_count_is_found() {
    let look = |page: &TestPage| {
        let is_alone = page.references() == 1;
        if is_alone {
            let _ = page.release();
        }
        is_alone
    };
    let found = catch_unwind(AssertUnwindSafe(model(look))).is_err();
    assert!(found, "a task that came meanwhile is overlooked");
}

const PAGE: &str = include_str!("mod.rs");

#[test]
fn a_freeze_that_does_not_acquire_is_found() {
    let freezes = Site::after("page/mod.rs", PAGE, "AcqRel: as in `release`");
    must_be_found(Flaw::Relaxed, freezes, model(freeze));
}

#[test]
fn a_beginning_that_does_not_release_is_found() {
    let begins = "Release: a task that retains the page through an old hint";
    let begins = Site::after("page/mod.rs", PAGE, begins);
    must_be_found(Flaw::Relaxed, begins, model(freeze));
}

/// The page is marked as written. A task stores to it and flushes the mapping; another takes the
/// mark and then reads the page, to write it out.
fn store_beside_a_write() -> impl FnOnce() {
    || {
        Builder::new().check(|| {
            let machine = Loomed::with_memory(2, 1);
            Turnstiles::<Loomed>::global();
            let page = Arc::new(TestPage::new());
            page.begin();
            page.add_flags(TestPage::DIRTY);
            // The page's content, and what has been written out of it.
            let words: Arc<[<Loomed as Atomics>::AtomicU64; 2]> = Arc::new([0, 0].map(Atomic::new));
            let (by_writer, out) = (page.clone(), words.clone());
            let stores = move || {
                words[0].store(1, Ordering::Relaxed);
                if page.lacks_after_stores(TestPage::DIRTY) {
                    TestList::lock(&PvBytes, Frame(0), &page).set_flags(TestPage::DIRTY);
                }
            };
            let writes_out = move || {
                let taken =
                    TestList::lock(&PvBytes, Frame(0), &by_writer).take_flags(TestPage::DIRTY);
                assert_eq!(taken, TestPage::DIRTY);
                out[1].store(out[0].load(Ordering::Relaxed), Ordering::Relaxed);
                (by_writer, out)
            };
            let end = Arc::new(std::sync::Mutex::new(None));
            let ended = end.clone();
            let writes_out = move || *ended.lock().unwrap() = Some(writes_out());
            machine.execute(vec![Box::new(stores), Box::new(writes_out)]);
            let (page, words) = end.lock().unwrap().take().expect("it has ended");
            let is_out = words[1].load(Ordering::Relaxed) == 1;
            assert!(is_out || !page.lacks(TestPage::DIRTY), "a store is lost");
        });
    }
}

#[test]
fn a_store_is_written_out_or_the_page_stays_dirty() {
    store_beside_a_write()();
}

#[test]
fn a_mark_without_its_fences_is_found() {
    let list = "// Pairs with the fence in `Page::lacks_after_stores`.";
    let sites = [
        Site::after("page/list.rs", include_str!("list.rs"), list),
        Site::after(
            "page/mod.rs",
            PAGE,
            "// Pairs with the fence in `PvList::take_flags`",
        ),
    ];
    for site in sites {
        must_be_found(Flaw::Relaxed, site, store_beside_a_write());
    }
}
