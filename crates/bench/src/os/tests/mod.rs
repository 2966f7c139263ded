//! The kernel does the work that is counted.

mod leftovers;

use super::Os;
use super::system::{Linux, Prepared};
use crate::harness::{Failure, Mode, Plan, Running, Target};
use crate::tasks::Affinity;
use std::time::{Duration, Instant};
use workloads::{Backing, Call, Counter, Error, Feature, Prot, System, Workload};

fn linux() -> Linux {
    Linux::new(std::env::temp_dir(), Mode::Processes, Prepared::default())
}

/// Page faults of this thread so far, with and without disk.
fn faults() -> i64 {
    // SAFETY: a zeroed rusage is valid and is filled by the call.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, &mut usage), 0);
        usage
    };
    usage.ru_minflt + usage.ru_majflt
}

#[test]
fn each_iteration_takes_the_faults_it_should() {
    // One fault a page, whatever this computer does with huge pages.
    // SAFETY: changes nothing but how this process's faults are served.
    let disabled = unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
    assert_eq!(disabled, 0);
    const ITERATIONS: u64 = 2000;
    const STRAY: i64 = 200; // libc, the stack, the counter
    for (name, per_iteration) in [
        ("brk1", 0),
        ("madvise1", 1),
        ("malloc1", 1),
        ("mmap1", 0),
        ("mmap2", 0),
        ("page_fault1", 1),
        ("page_fault2", 1),
        ("page_fault3", 1),
        ("reclaim1", 1), // in the first lap
        ("tlb_flush1", 2),
        ("tlb_flush2", 2),
    ] {
        let workload = workloads::find(name).expect("a known workload");
        let tick = Counter::with_limit(ITERATIONS);
        let mut system = linux();
        let before = faults();
        assert_eq!(workload.run(&mut system, &tick), Ok(()), "{name}");
        let taken = faults() - before;
        let expected = per_iteration * ITERATIONS as i64;
        assert!(
            (expected..=expected + STRAY).contains(&taken),
            "{name}: {taken} faults, not about {expected}"
        );
    }
}

#[test]
fn a_scan_shows_all_mappings_piece_by_piece_and_again() {
    let mut system = linux();
    let mappings = std::fs::read_to_string("/proc/self/maps").expect("a list");
    let pieces = mappings.lines().count() / 20;
    for round in 0..2 {
        let mut seen = 0;
        while system.scan().expect("a list") {
            seen += 1;
        }
        assert!(seen > pieces, "round {round}: {seen} pieces");
    }
}

#[test]
fn rights_and_files_are_the_kernels() {
    let mut system = linux();
    let page = system.page_size();
    let file = system.file(2 * page).expect("a file");
    let shared = system.map(2 * page, Prot::ReadWrite, Backing::SharedFile(&file));
    let private = system.map(2 * page, Prot::ReadWrite, Backing::PrivateFile(&file));
    let (shared, private) = (shared.expect("shared"), private.expect("private"));
    system.write(shared + page, 7).expect("mapped");
    assert_eq!(system.read(private + page), Ok(7));
    system.write(private + page, 9).expect("mapped");
    assert_eq!(system.read(shared + page), Ok(7));
    system.discard(private + page, page).expect("mapped");
    assert_eq!(system.read(private + page), Ok(7));
    for prot in [Prot::Read, Prot::None, Prot::ReadWrite] {
        system.protect(private, page, prot).expect("mapped");
    }
    system.unmap(private, 2 * page).expect("mapped");
    system.unmap(shared, 2 * page).expect("mapped");
    let error = system.protect(shared, page, Prot::Read);
    assert_eq!(error, Err(Error::Failed(Call::Protect, libc::ENOMEM)));
    let error = system.unmap(1, page);
    assert_eq!(error, Err(Error::Failed(Call::Unmap, libc::EINVAL)));
}

#[test]
fn mappings_grow_where_there_is_room_and_keep_what_is_paged_out() {
    let mut system = linux();
    let page = system.page_size();
    let start = system.map(4 * page, Prot::ReadWrite, Backing::Anonymous);
    let start = start.expect("four pages");
    system.write(start, 5).expect("mapped");
    system.write(start + page, 6).expect("mapped");
    // No room: the page behind has other rights.
    system
        .protect(start + 2 * page, page, Prot::None)
        .expect("mapped");
    let moved = system.remap(start, 2 * page, 3 * page).expect("a place");
    assert_ne!(moved, start);
    assert_eq!(
        [system.read(moved), system.read(moved + page)],
        [Ok(5), Ok(6)]
    );
    system.write(moved + 2 * page, 7).expect("grown");
    let gone = system.protect(start, page, Prot::Read);
    assert_eq!(gone, Err(Error::Failed(Call::Protect, libc::ENOMEM)));
    system.page_out(moved, 3 * page).expect("mapped");
    let bytes = [0, 1, 2].map(|number| system.read(moved + number * page));
    assert_eq!(bytes, [Ok(5), Ok(6), Ok(7)]);
    assert_eq!(system.remap(moved, 3 * page, page), Ok(moved), "shorter");
    let gone = system.page_out(moved + page, page);
    assert_eq!(gone, Err(Error::Failed(Call::PageOut, libc::ENOMEM)));
    let error = system.remap(moved + 1, page, page);
    assert_eq!(error, Err(Error::Failed(Call::Remap, libc::EINVAL)));
    system.unmap(moved, page).expect("mapped");
    system.unmap(start + 2 * page, 2 * page).expect("mapped");
}

#[test]
fn the_moving_break_leaves_the_heap_of_libc_alone() {
    /// Grows the heap as malloc does, a page at a time, while the break moves; then
    /// checks that each page still holds its value.
    fn heap_survives() -> Result<bool, Error> {
        const PAGES: usize = 200;
        let mut system = linux();
        let (low, page) = (system.program_break()?, system.page_size());
        let mut heap = [std::ptr::null_mut::<u8>(); PAGES];
        for (number, start) in heap.iter_mut().enumerate() {
            system.set_program_break(low + page)?;
            // SAFETY: the heap grows by a page, which is this function's alone.
            unsafe {
                *start = libc::sbrk(page as libc::intptr_t).cast();
                start.write_volatile(number as u8);
            }
            system.set_program_break(low)?;
        }
        let kept = |(number, start): (usize, &*mut u8)| {
            // SAFETY: written above.
            unsafe { start.read_volatile() == number as u8 }
        };
        Ok(heap.iter().enumerate().all(kept))
    }
    // In a child: it has one thread, so no other code grows the heap meanwhile.
    // SAFETY: the child allocates only by `sbrk`, and ends in `_exit`; the
    // parent waits for a child of its own.
    let status = unsafe {
        let pid = libc::fork();
        if pid == 0 {
            libc::_exit(i32::from(heap_survives() != Ok(true)));
        }
        let mut status = 0;
        assert!(pid > 0 && libc::waitpid(pid, &mut status, 0) == pid);
        status
    };
    assert_eq!(status, 0, "a page of the heap is gone or was cleared");
}

/// The workloads but for the one whose tasks start this program as a compiler: that is a test here.
fn runnable() -> impl Iterator<Item = &'static Workload> {
    let needs_compiler = |one: &&Workload| one.needs.features.contains(&Feature::Compiler);
    workloads::all()
        .iter()
        .filter(move |one| !needs_compiler(one))
}

/// Waits until each task has counted.
fn all_counted(running: &dyn Running, tasks: usize) -> bool {
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut counts = vec![0; tasks];
    while Instant::now() < deadline {
        running.counts(&mut counts);
        if counts.iter().all(|&count| count > 0) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    false
}

#[test]
fn every_workload_runs_in_both_modes_with_every_affinity() {
    for (index, workload) in runnable().enumerate() {
        for mode in [Mode::Processes, Mode::Threads] {
            let affinity = [Affinity::Cores, Affinity::Cpus, Affinity::None][index % 3];
            let tasks = 3;
            let plan = Plan {
                workload: workload.into(),
                tasks,
                mode,
                count: None,
            };
            let mut running = Os { affinity }.start(&plan).expect("started");
            assert!(all_counted(&*running, tasks), "{} {mode:?}", workload.name);
            running.check().expect("all at work");
            let (own, pids) = (std::process::id(), running.pids());
            let processes = match mode {
                Mode::Processes => tasks,
                Mode::Threads => 1,
            };
            assert!(pids.len() == processes && !pids.contains(&own), "{pids:?}");
            running.stop().expect("all at work until the end");
        }
    }
}

#[test]
fn a_file_that_can_not_be_made_is_reported_by_both_modes() {
    let workload = workloads::find("page_fault3").expect("a known workload");
    for mode in [Mode::Processes, Mode::Threads] {
        let plan = Plan {
            workload: workload.into(),
            tasks: 2,
            mode,
            count: None,
        };
        let os = Os {
            affinity: Affinity::Cores,
        };
        let nowhere = "/nonexistent".into();
        let mut running = os.tasks(&plan, nowhere).expect("started");
        let failure = loop {
            match running.check() {
                Ok(()) => std::thread::sleep(Duration::from_millis(1)),
                Err(failure) => break failure,
            }
        };
        let expected = Error::Failed(Call::File, libc::ENOENT);
        assert!(
            matches!(failure, Failure::Task { error, .. } if error == expected),
            "{failure}"
        );
    }
}
