//! Linux's lists of pages: batches, charges, and pages that are used again before a batch is emptied.

use baselines::linux::Lruvecs;
use hosted::Hosted;
use machine::{Execute, Frame, Job, Topology};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use vm::policy::PageQueues;

fn frames(range: std::ops::Range<u32>) -> Vec<Frame> {
    range.map(Frame).collect()
}

#[test]
fn pages_come_and_go_by_31() {
    let machine = Hosted::new(1);
    machine.attach(0);
    let lists = Lruvecs::<Hosted>::new(&(), machine.cpus(), 100).expect("room");
    let map = |range| {
        frames(range)
            .into_iter()
            .for_each(|frame| lists.activate(frame))
    };
    let free = |range| {
        frames(range)
            .into_iter()
            .for_each(|frame| lists.remove(frame))
    };
    map(0..30);
    map(0..30);
    assert_eq!((lists.listed(), lists.charged()), (vec![], 64));
    map(30..40);
    assert_eq!(lists.listed(), frames(0..31));
    map(40..65);
    assert_eq!((lists.listed(), lists.charged()), (frames(0..62), 128));
    // One that is still in the batch, and 29 of the list; then one is used again, and one more goes.
    free(64..65);
    free(0..29);
    map(5..6);
    free(29..30);
    let expected: Vec<Frame> = [5].into_iter().chain(30..62).map(Frame).collect();
    let mut listed = lists.listed();
    listed.sort();
    assert_eq!(listed, expected);
    assert_eq!(lists.charged(), 128 - 31);
    // Never mapped.
    free(90..100);
    assert_eq!(lists.charged(), 128 - 31);
}

/// Many CPUs map and free the same pages.
#[test]
fn each_page_is_in_one_list_once() {
    const CPUS: usize = 4;
    const FRAMES: usize = 70;
    let machine = Hosted::new(CPUS);
    let lists = Arc::new(Lruvecs::<Hosted>::new(&(), machine.cpus(), FRAMES).expect("room"));
    let used: Arc<Vec<AtomicBool>> =
        Arc::new((0..FRAMES).map(|_| AtomicBool::new(false)).collect());
    let job = |cpu: usize| {
        let (lists, used) = (lists.clone(), used.clone());
        Box::new(move || {
            let mut dice = cpu as u64 + 1;
            let mut mine: Vec<usize> = Vec::new();
            for _ in 0..30_000 {
                dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let frame = (dice >> 33) as usize % FRAMES;
                if mine.len() < 12 && !used[frame].swap(true, Ordering::AcqRel) {
                    lists.activate(Frame(frame as u32));
                    mine.push(frame);
                } else if let Some(frame) = mine.pop() {
                    lists.remove(Frame(frame as u32));
                    used[frame].store(false, Ordering::Release);
                }
            }
        }) as Job
    };
    machine.execute((0..CPUS).map(job).collect());
    machine.on_cpu(0, || {
        let listed = lists.listed();
        let once: HashSet<Frame> = listed.iter().copied().collect();
        assert_eq!(once.len(), listed.len());
        // What is in use and not listed is in a batch, as is what is listed and not in use.
        let in_use = |frame: &Frame| used[frame.index()].load(Ordering::Acquire);
        let waiting = once.iter().filter(|frame| !in_use(frame)).count();
        assert!(waiting <= CPUS * 30, "{waiting}");
    });
}
