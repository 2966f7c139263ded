//! How large files are.

use super::file::written;
use super::made::{Made, map, touch, unmap};
use recording::Recording;

/// A generator of numbers that do not repeat soon.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        // Knuth's MMIX.
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// mmap1's loop in four threads, each with mappings of `pages` pages; times jitter.
fn mmap1(mut pages: impl FnMut(&mut Random) -> u64) -> Recording {
    let mut random = Random(1);
    let mut made = Made::new(&["t0", "t1", "t2", "t3"]);
    let mut mapped = [None; 4];
    for mapping in 0..50_000 {
        let thread = random.below(4) as u32;
        if let Some((mapping, pages)) = mapped[thread as usize].take() {
            made.call(0, thread, unmap(mapping, 0, pages));
        }
        let pages = pages(&mut random);
        made.call(0, thread, map(mapping, pages));
        made.event(0, thread, touch(mapping, 0, pages.min(4) as u32));
        mapped[thread as usize] = Some((mapping, pages));
    }
    let mut at = 0;
    for event in &mut made.0.events {
        event.computed = 150 + random.below(60);
        at += event.computed + random.below(3000);
        event.at = at;
    }
    made.0.nanoseconds = at;
    made.0
}

/// Bytes of the file for each event.
fn bytes_an_event(recording: &Recording) -> f64 {
    let bytes = written(recording);
    let (found, _) = Recording::read(&bytes[..]).expect("it can be read");
    assert!(found == *recording, "it does not come back");
    bytes.len() as f64 / recording.events.len() as f64
}

#[test]
fn an_event_takes_few_bytes() {
    let equal = bytes_an_event(&mmap1(|_| 32_768));
    let random = bytes_an_event(&mmap1(|random| 1 + random.below(100_000)));
    println!("{equal:.2} bytes an event of equal lengths, {random:.2} of random ones");
    assert!(equal < 8.0, "{equal}");
    assert!(random < 9.0, "{random}");
    assert!(equal < random, "{equal} and {random}");
}
