//! A CPU zeroes its free frames ahead while another, which has none, takes one, under all
//! interleavings.

extern crate std;

use super::{Content, Frames};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use loomed::Loomed;
use loomed::loom::model::Builder;
use machine::{Atomic, Execute, Job, Memory, Ordering};

/// Frames of the machine, all of them in the first CPU's cache.
const FRAMES: usize = 2;
/// The content that the last owner has left.
const LEFT: u64 = 99;

#[test]
fn a_frame_of_zeroes_is_zero_whoever_takes_it() {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let machine = Loomed::with_memory(2, FRAMES);
        let frames = Arc::new(Frames::new(&machine).expect("room"));
        let on = |work: fn(&Loomed, &Frames<Loomed>)| {
            let (machine, frames) = (machine.clone(), frames.clone());
            Box::new(move || work(&machine, &frames)) as Job
        };
        machine.execute(vec![on(|machine, frames| {
            // SAFETY: the frames are the machine's.
            let take = || unsafe { frames.allocate(machine, Content::Any) };
            let taken = [(); FRAMES].map(|()| take().expect("free"));
            for frame in taken {
                // SAFETY: the frame is the test's.
                unsafe { machine.word(frame, 0) }.store(LEFT, Ordering::Relaxed);
                // SAFETY: the frames were given out, and nothing uses them.
                unsafe { frames.free(machine, frame, Content::Any) };
            }
        })]);
        let zeroes = on(|machine, frames| {
            // SAFETY: the frames are the machine's.
            unsafe { frames.zero_ahead(machine, 1) };
        });
        let takes = on(|machine, frames| {
            // SAFETY: the frames are the machine's.
            let frame = unsafe { frames.allocate(machine, Content::Zeroed) }.expect("free");
            // SAFETY: the frame is the test's.
            assert_eq!(unsafe { machine.word(frame, 0) }.load(Ordering::Relaxed), 0);
        });
        machine.execute(vec![zeroes, takes]);
    });
}
