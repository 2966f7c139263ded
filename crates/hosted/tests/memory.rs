//! What the hosted machine adds to the contract: errors, probes, figures.

use hosted::{Hosted, Probe};
use machine::{Asid, CpuSet, Flush, Frame, Memory, Mmu, PAGE_SIZE};
use std::io::ErrorKind;
use std::sync::{Arc, Mutex};

#[test]
fn bad_sizes_are_errors() {
    let kind = |cpus, bytes| Hosted::with_memory(cpus, bytes).err().map(|e| e.kind());
    assert_eq!(kind(0, PAGE_SIZE), Some(ErrorKind::InvalidInput));
    assert_eq!(kind(1_025, PAGE_SIZE), Some(ErrorKind::InvalidInput));
    assert_eq!(kind(1, usize::MAX), Some(ErrorKind::InvalidInput));
    // Fits the frame numbers but no address space.
    assert!(kind(1, 1 << 43).is_none_or(|kind| kind == ErrorKind::OutOfMemory));
}

#[test]
fn a_part_of_a_frame_is_a_frame() {
    let machine = Hosted::with_memory(1, PAGE_SIZE + 1).expect("two frames");
    assert_eq!(machine.frame_count(), 2);
    assert_eq!(Hosted::new(1).frame_count(), 0);
}

#[test]
fn a_probe_stands_before_each_shootdown() {
    let machine = Hosted::with_memory(2, PAGE_SIZE).expect("a frame");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let hook = {
        let (machine, seen) = (machine.clone(), seen.clone());
        move |probe| {
            let requests = machine.stats()[1].requests;
            seen.lock().unwrap().push((probe, requests));
        }
    };
    machine.set_probe(Some(Arc::new(hook)));
    let mut target = CpuSet::EMPTY;
    target.insert(0);
    machine.on_cpu(1, || {
        machine.shootdown(&target, Asid(1), Flush::All);
        machine.shootdown(&target, Asid(1), Flush::All);
        machine.set_probe(None);
        machine.shootdown(&target, Asid(1), Flush::All);
    });
    let probe = Probe::BeforeShootdown { cpu: 1 };
    assert_eq!(*seen.lock().unwrap(), [(probe, 0), (probe, 1)]);
}

#[test]
fn figures_add_up() {
    let machine = Hosted::with_memory(3, PAGE_SIZE).expect("a frame");
    let all: CpuSet = (0..3).fold(CpuSet::EMPTY, |mut set, cpu| {
        set.insert(cpu);
        set
    });
    machine.on_cpu(0, || {
        (0..20).for_each(|_| machine.shootdown(&all, Asid(1), Flush::All))
    });
    machine.on_cpu(1, || {
        machine.activate(Frame(0), Asid(1));
        assert!(machine.load(0).is_err());
    });
    let [zero, one, two] = machine.stats().try_into().expect("three CPUs");
    assert_eq!(
        (zero.shootdowns, zero.requests, zero.deferred),
        (20, 40, 40)
    );
    // 20 requests do not fit: one order to forget everything.
    assert_eq!((one.served, one.overflows), (1, 1));
    assert_eq!((one.walks, one.hits, one.faults), (1, 0, 1));
    assert_eq!(two, hosted::Stats::default());
    assert_eq!(
        [zero, one, two].into_iter().sum::<hosted::Stats>().requests,
        40
    );
}
