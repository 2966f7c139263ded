//! A build does the work of compilers, notices errors in it, and leaves nothing behind.

use super::memory::{ENOMEM, Flaw, Memory, PAGE};
use super::plain::Plain;
use workloads::{Call, Counter, Error, Feature, Needs, Workload};

fn build() -> &'static Workload {
    workloads::find("build").expect("a known workload")
}

/// How `jobs` jobs end, and the calls they made.
fn run(jobs: u64, fail_at: Option<usize>, flaw: Option<Flaw>) -> (Result<(), Error>, Memory) {
    let mut make = Memory::new();
    make.spoil(fail_at, flaw);
    let outcome = make.run(build(), jobs);
    (outcome, make)
}

#[test]
fn a_job_is_a_twentieth_of_a_compilers() {
    const JOBS: usize = 10;
    let (outcome, make) = run(JOBS as u64, None, None);
    assert_eq!(outcome, Ok(()));
    assert!(make.pages.is_empty(), "make has left memory");
    let kernel = make.kernel.borrow();
    let calls = |name: &str| kernel.calls[name];
    assert_eq!(calls("fork"), JOBS);
    assert_eq!(calls("wait"), JOBS);
    assert_eq!(calls("file"), JOBS);
    // Program, stack, libraries, sources, arenas, output; and make's check of the output.
    assert_eq!(calls("map"), 1 + JOBS * (2 + 1 + 2 * 8 + 8 + 8 + 1 + 1));
    assert_eq!(calls("unmap"), 1 + JOBS * (8 + 6 + 1 + 1));
    assert_eq!(calls("brk"), JOBS * 16);
    assert_eq!(calls("protect"), JOBS * 8);
    let faults = kernel.faults / JOBS;
    assert!((700..900).contains(&faults), "{faults} faults a job");
    let computed = kernel.computed / JOBS as u64;
    assert!((7_000_000..9_000_000).contains(&computed), "{computed} ns");
}

#[test]
fn no_unit_is_compiled_twice_and_no_two_take_equally_long() {
    let (_, make) = run(5, None, None);
    let kernel = make.kernel.borrow();
    let first = 3 << 32; // it is task 3
    assert_eq!(kernel.units, (first..first + 5).collect::<Vec<u64>>());
    let computed = |jobs| run(jobs, None, None).1.kernel.borrow().computed;
    assert_ne!(computed(1), computed(2) - computed(1));
}

#[test]
fn needs_say_what_is_called() {
    let needs = Needs {
        files: true,
        brk: true,
        protect: true,
        features: &[Feature::Compiler],
        memory: build().needs.memory,
        ..Needs::NOTHING
    };
    assert_eq!(build().needs, needs);
    let (_, make) = run(1, None, None);
    let touched = make.kernel.borrow().faults * PAGE;
    assert!(needs.memory >= touched && needs.memory <= 4 * touched);
}

#[test]
fn the_first_failure_ends_the_build() {
    let (outcome, make) = run(1, None, None);
    assert_eq!(outcome, Ok(()));
    let count = make.kernel.borrow().count;
    for number in 0..count {
        let (outcome, make) = run(1, Some(number), None);
        assert!(
            matches!(outcome, Err(Error::Failed(_, ENOMEM))),
            "call {number}: {outcome:?}"
        );
        // Unmapping may itself have failed.
        let kernel = make.kernel.borrow();
        let excused = matches!(outcome, Err(Error::Failed(Call::Unmap, _)));
        assert!(excused || make.pages.is_empty(), "call {number}");
        assert!(kernel.units.len() <= 1);
    }
}

#[test]
fn work_that_is_wrong_is_noticed() {
    let wrong = |flaw| run(2, None, Some(flaw)).0.expect_err("a flaw");
    assert!(matches!(wrong(Flaw::LeakyCopies), Error::Wrong { .. }));
    assert!(matches!(wrong(Flaw::WrongUnit), Error::Wrong { .. }));
    assert!(matches!(wrong(Flaw::SharedFork), Error::Wrong { .. }));
    let crash = Error::Answer {
        call: Call::Exec,
        found: 139,
        expected: 0,
    };
    assert_eq!(wrong(Flaw::Crash), crash);
}

#[test]
fn writes_that_are_lost_are_noticed() {
    let (_, make) = run(1, None, None);
    let writes = make.kernel.borrow().writes;
    let noticed = |number| run(1, None, Some(Flaw::LostWrite(number))).0.is_err();
    let noticed = (0..writes).filter(|&number| noticed(number)).count();
    // All but those to pages that are not read again: the rest of make's own, private copies and
    // the stack.
    let unread = (64 - 16) + 16 + 24 + 8 * 4 + 4;
    assert_eq!(writes - noticed, unread);
}

#[test]
fn a_system_without_a_compiler_says_so() {
    let outcome = build().run(&mut Plain, &Counter::new());
    assert_eq!(outcome, Err(Error::Unsupported(Call::Exec)));
}
