//! Stores of pages.

use super::owned::Owned;
use super::tables::frame;
use super::{alone, two};
use crate::{Atomic, Execute, Frame, Memory, Ordering, PAGE_SIZE, Pager, Platform, Truncate};
use alloc::sync::Arc;

/// The words of a page that are checked: the first two, one between, the last.
const TRIED: [usize; 4] = [0, 1, 100, 511];
/// A page far behind all others.
const FAR: u64 = 1 << 20;

/// A store keeps its data: whole pages and parts of pages, at different places, by
/// different CPUs; everything else is zero. The store must be empty, and the machine have
/// [`super::FRAMES`] frames.
pub fn pager<M: Execute + Platform + Clone>(m: &M, pager: Arc<dyn Pager<M>>) {
    let store = pager.clone();
    alone(m, move |m| {
        zeroes(m, &*store);
        pages(m, &*store);
        parts(m, &*store);
    });
    beside(m, pager);
}

/// A truncated store forgets everything behind the cut, within a page and within a word, and
/// nothing else; the forgotten part can be written again. It has the requirements of [`pager`].
pub fn truncation<M: Execute + Platform + Clone>(m: &M, store: Arc<dyn Truncate<M>>) {
    alone(m, move |m| {
        fill(m, frame(m, 0), 4);
        for page in [2, 3, 4, FAR] {
            m.keep_in(&*store, page, &[frame(m, 0)], PAGE_SIZE)
                .expect("write");
        }
        let far = (FAR + 1) * PAGE_SIZE as u64;
        let cuts = [
            far + 5,
            far,
            5 * PAGE_SIZE as u64,
            3 * PAGE_SIZE as u64 + 11,
        ];
        let page = |page| stored(m, &*store, page, frame(m, 1));
        for (cut, far) in cuts.into_iter().zip([4, 4, 0, 0]) {
            store.truncate(m, cut).expect("truncate");
            assert_eq!(page(FAR), filled(far), "truncated at {cut}");
            assert_eq!(page(2), filled(4), "truncated at {cut}");
        }
        let whole = filled(4);
        let mask = u64::from_ne_bytes([0xff, 0xff, 0xff, 0, 0, 0, 0, 0]);
        assert_eq!(page(3), [whole[0], whole[1] & mask, 0, 0]);
        assert_eq!(page(4), filled(0));
        m.keep_in(&*store, FAR, &[frame(m, 0)], 8).expect("write");
        assert_eq!(page(FAR), [whole[0], 0, 0, 0]);
        assert_eq!(page(4), filled(0), "it stays forgotten");
        store.truncate(m, 0).expect("truncate");
        assert_eq!([page(2), page(3), page(FAR)], [filled(0); 3]);
    });
}

/// The word at `index` of a page filled from `seed`; never 0.
fn word(seed: u64, index: usize) -> u64 {
    (seed << 32) + index as u64 + 1
}

/// Fills `frame` with content that differs for each seed.
fn fill<M: Memory>(m: &Owned<M>, frame: Frame, seed: u64) {
    m.zero(frame);
    for index in TRIED {
        let value = word(seed, index);
        m.word(frame, index).store(value, Ordering::Relaxed);
    }
}

/// The words that [`fill`] writes for `seed`; for 0, those of an empty page.
fn filled(seed: u64) -> [u64; 4] {
    TRIED.map(|index| match seed {
        0 => 0,
        _ => word(seed, index),
    })
}

fn words<M: Memory>(m: &Owned<M>, frame: Frame) -> [u64; 4] {
    TRIED.map(|index| m.word(frame, index).load(Ordering::Relaxed))
}

/// Reads `page` from the store.
fn stored<M: Platform>(m: &Owned<M>, pager: &dyn Pager<M>, page: u64, frame: Frame) -> [u64; 4] {
    fill(m, frame, 99);
    m.fill_from(pager, page, &[frame]).expect("read");
    words(m, frame)
}

fn zeroes<M: Platform>(m: &Owned<M>, pager: &dyn Pager<M>) {
    for page in [0, 3, FAR] {
        assert_eq!(
            stored(m, pager, page, frame(m, 0)),
            filled(0),
            "page {page}"
        );
    }
    m.fill_from(pager, 0, &[]).expect("reading nothing");
    m.keep_in(pager, 0, &[], 0).expect("writing nothing");
}

fn pages<M: Platform>(m: &Owned<M>, pager: &dyn Pager<M>) {
    let frames = [frame(m, 2), frame(m, 0), frame(m, 1)];
    (1..)
        .zip(frames)
        .for_each(|(seed, frame)| fill(m, frame, seed));
    m.keep_in(pager, 4, &frames, 3 * PAGE_SIZE).expect("write");
    fill(m, frame(m, 0), 9);
    m.keep_in(pager, FAR, &[frame(m, 0)], PAGE_SIZE)
        .expect("write");
    frames.iter().for_each(|&frame| fill(m, frame, 99));
    // From the page before to the third, in another order of frames.
    let others = [frame(m, 1), frame(m, 2), frame(m, 0)];
    m.fill_from(pager, 3, &others).expect("read");
    for (seed, frame) in (0..).zip(others) {
        assert_eq!(words(m, frame), filled(seed), "the page of seed {seed}");
    }
    for (page, seed) in [(6, 3), (7, 0), (FAR - 1, 0), (FAR, 9), (FAR + 1, 0)] {
        assert_eq!(
            stored(m, pager, page, frame(m, 1)),
            filled(seed),
            "page {page}"
        );
    }
    fill(m, frame(m, 0), 5);
    m.keep_in(pager, 5, &[frame(m, 0)], PAGE_SIZE)
        .expect("write");
    for (page, seed) in [(4, 1), (5, 5), (6, 3)] {
        assert_eq!(
            stored(m, pager, page, frame(m, 1)),
            filled(seed),
            "page {page}"
        );
    }
}

/// The end of a write within a page, and within a word.
fn parts<M: Platform>(m: &Owned<M>, pager: &dyn Pager<M>) {
    let frames = [frame(m, 0), frame(m, 1)];
    frames.iter().for_each(|&frame| fill(m, frame, 7));
    m.keep_in(pager, 5, &frames, PAGE_SIZE + 11).expect("write");
    assert_eq!(
        stored(m, pager, 5, frame(m, 2)),
        filled(7),
        "the whole page"
    );
    let (new, old) = (filled(7), filled(3));
    let mask = u64::from_ne_bytes([0xff, 0xff, 0xff, 0, 0, 0, 0, 0]);
    let mixed = new[1] & mask | old[1] & !mask;
    let part = [new[0], mixed, old[2], old[3]];
    assert_eq!(stored(m, pager, 6, frame(m, 2)), part, "the part of a page");
    m.keep_in(pager, 6, &[frame(m, 0)], 0).expect("write");
    assert_eq!(stored(m, pager, 6, frame(m, 2)), part, "no part of a page");
    // Past everything written so far.
    m.keep_in(pager, FAR + 7, &[frame(m, 0)], 8).expect("write");
    let first = [new[0], 0, 0, 0];
    assert_eq!(stored(m, pager, FAR + 7, frame(m, 2)), first, "a new part");
    m.zero(frame(m, 0));
    m.keep_in(pager, 5, &[frame(m, 0)], PAGE_SIZE)
        .expect("write");
    assert_eq!(stored(m, pager, 5, frame(m, 2)), filled(0), "zeroed");
}

/// Two CPUs use neighbouring pages.
fn beside<M: Execute + Platform + Clone>(m: &M, pager: Arc<dyn Pager<M>>) {
    const PAGES: u64 = 10;
    let owned = Owned::new(m);
    let job = |cpu: u64| {
        let m = owned.clone();
        move |pager: &Arc<dyn Pager<M>>| {
            let frame = frame(&m, cpu as u32);
            for page in (cpu..PAGES).step_by(2) {
                fill(&m, frame, page + 1);
                m.keep_in(&**pager, page, &[frame], PAGE_SIZE)
                    .expect("write");
            }
            for page in (cpu..PAGES).step_by(2) {
                let found = stored(&m, &**pager, page, frame);
                assert_eq!(found, filled(page + 1), "page {page}");
            }
        }
    };
    two(m, &Arc::new(pager), job(0), job(1));
}
