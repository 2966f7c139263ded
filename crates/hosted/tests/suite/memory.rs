//! The hosted machine's additions to the contract: errors, probes, figures.

use hosted::{Hosted, Options, Probe};
use machine::{Asid, CpuSet, Flush, Frame, Memory, Mmu, Ordering, PAGE_SIZE, VaRange, pte};
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
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
fn bad_options_are_errors() {
    let kind = |change: fn(&mut Options)| {
        let mut options = Options::new(1, 8 * PAGE_SIZE);
        change(&mut options);
        Hosted::with_options(options).err().map(|e| e.kind())
    };
    assert_eq!(kind(|_| ()), None);
    assert_eq!(kind(|it| it.asids = 1 << 16), None);
    let wrong: [fn(&mut Options); 5] = [
        |it| it.asids = 0,
        |it| it.asids = (1 << 16) + 1,
        |it| it.reserved = [3..3, 4..5].into(),
        |it| it.reserved = [2..4, 7..9].into(),
        |it| it.memory = usize::MAX,
    ];
    for change in wrong {
        assert_eq!(kind(change), Some(ErrorKind::InvalidInput));
    }
}

#[test]
fn what_is_reserved_is_not_handed_over() {
    let machine = Hosted::with_options(Options {
        reserved: [6..7, 0..2, 1..3].into(),
        kernel_half: true,
        ..Options::new(1, 8 * PAGE_SIZE)
    });
    let machine = machine.expect("eight frames and the kernel's");
    let mut ranges = Vec::new();
    machine.usable(&mut |range| ranges.push(range));
    assert_eq!((ranges, machine.frame_end()), (vec![3..6, 7..8], 8));
    let allocated = |frame| {
        let told = catch_unwind(AssertUnwindSafe(|| machine.allocated(Frame(frame))));
        told.is_ok()
    };
    let fine: Vec<_> = (0..9).filter(|&frame| allocated(frame)).collect();
    assert_eq!(fine, [3, 4, 5, 7]);
}

/// Maps the page at 0 to frame 4 with tables in frames 0 to 3, reads it, frees the frame, runs
/// `between`, reads again; returns true if the machine has panicked.
fn is_stale(between: impl Fn(&Hosted) + Sync) -> bool {
    let machine = Hosted::with_memory(1, 8 * PAGE_SIZE).expect("memory");
    for table in 0..4 {
        let entry = Frame(table + 1).address() | pte::PRESENT | pte::USER;
        // SAFETY: the frame is the test's.
        unsafe { machine.word(Frame(table), 0) }.store(entry, Ordering::Relaxed);
    }
    machine.allocated(Frame(4));
    let run = || {
        machine.on_cpu(0, || {
            // SAFETY: the frame is a root table.
            unsafe { machine.activate(Frame(0), Asid(1)) };
            // SAFETY: the CPU translates by tables that stay during the call.
            assert_eq!(unsafe { machine.load(0) }, Ok(0));
            between(&machine);
            // SAFETY: the CPU translates by tables that stay during the call.
            assert_eq!(unsafe { machine.load(0) }, Ok(0));
        });
    };
    let ended = catch_unwind(AssertUnwindSafe(run));
    ended.is_err_and(|panic| {
        let text = panic.downcast_ref::<String>().expect("a formatted message");
        text.starts_with("CPU 0 uses a stale translation of 0x0 to Frame(4), which has been freed")
    })
}

#[test]
fn a_translation_to_a_frame_that_was_freed_is_not_used() {
    let flush = |machine: &Hosted| {
        machine.flush_local(Asid(1), Flush::Range(VaRange::sized(0, PAGE_SIZE)));
    };
    let (free, take) = (
        |machine: &Hosted| machine.freed(Frame(4)),
        |machine: &Hosted| machine.allocated(Frame(4)),
    );
    assert!(!is_stale(|_| ()));
    assert!(is_stale(free));
    assert!(
        is_stale(|machine| (free(machine), flush(machine)).0),
        "free"
    );
    assert!(
        is_stale(|machine| (free(machine), take(machine)).0),
        "another's"
    );
    assert!(!is_stale(|machine| {
        flush(machine);
        free(machine);
        take(machine);
    }));
}

#[test]
fn a_root_without_the_kernel_is_not_activated() {
    let machine = Hosted::with_options(Options {
        kernel_half: true,
        ..Options::new(1, 8 * PAGE_SIZE)
    });
    let machine = machine.expect("memory");
    let kernel = machine.kernel_entries().expect("a kernel half");
    assert_eq!(kernel.places, 256..512);
    let activated = |machine: &Hosted| {
        // SAFETY: the frame is a root table.
        let activate = || machine.on_cpu(0, || unsafe { machine.activate(Frame(0), Asid(1)) });
        catch_unwind(AssertUnwindSafe(activate)).is_ok()
    };
    assert!(!activated(&machine));
    // SAFETY: the frame is the test's.
    unsafe { machine.copy(kernel.root, Frame(0)) };
    assert!(activated(&machine));
    // SAFETY: the frame is the test's.
    unsafe { machine.word(Frame(0), 511) }.store(0, Ordering::Relaxed);
    assert!(!activated(&machine));
}

#[test]
fn a_part_of_a_frame_is_a_frame() {
    let machine = Hosted::with_memory(1, PAGE_SIZE + 1).expect("two frames");
    assert_eq!(machine.frame_end(), 2);
    assert_eq!(Hosted::new(1).frame_end(), 0);
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
        // SAFETY: the frame is a root table.
        unsafe { machine.activate(Frame(0), Asid(1)) };
        // SAFETY: the CPU translates by tables that stay during the call.
        assert!(unsafe { machine.load(0) }.is_err());
    });
    let [zero, one, two] = machine.stats().try_into().expect("three CPUs");
    assert_eq!(
        (zero.shootdowns, zero.requests, zero.deferred),
        (20, 40, 40)
    );
    // 20 requests do not fit: one order to drop everything.
    assert_eq!((one.served, one.overflows), (1, 1));
    assert_eq!((one.walks, one.hits, one.faults), (1, 0, 1));
    assert_eq!(two, hosted::Stats::default());
    assert_eq!(
        [zero, one, two].into_iter().sum::<hosted::Stats>().requests,
        40
    );
}
