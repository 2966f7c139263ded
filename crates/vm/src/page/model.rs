//! A page that only its mapping has ends, and another one begins in its frame, beside a task that comes by an
//! old hint: the real descriptor and its list, under all interleavings.

extern crate std;

use super::{Page, PvList};
use crate::best::Best;
use crate::invalidation::Snapshots;
use crate::policy::PvBytes;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use checked::Checked;
use checked::flaw::{Flaw, Site, must_be_found};
use checked::loom::model::Builder;
use machine::{Execute, Frame};
use std::panic::{AssertUnwindSafe, catch_unwind};
use sync::turnstile::Turnstiles;

type TestPage = Page<Checked, Snapshots<Checked>>;
type TestList<'a> = PvList<'a, Checked, Best>;

/// `end` takes the mapping's reference away, the last; whether the frame is the caller's.
fn model(end: fn(&TestPage) -> bool) -> impl FnOnce() {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(3);
    move || {
        builder.check(move || {
            let machine = Checked::with_memory(2, 1);
            Turnstiles::<Checked>::global();
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
