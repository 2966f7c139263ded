//! The mail server does the work of the real one, notices errors in it, and leaves nothing behind.

use super::memory::{ENOMEM, Flaw, Memory, PAGE};
use super::plain::Plain;
use workloads::{Call, Counter, Error, Feature, Needs, System, Workload};

fn exim() -> &'static Workload {
    workloads::find("exim").expect("a known workload")
}

/// How `messages` messages end, and the calls they made.
fn run(messages: u64, fail_at: Option<usize>, flaw: Option<Flaw>) -> (Result<(), Error>, Memory) {
    let mut server = Memory::family();
    server.spoil(fail_at, flaw);
    let outcome = server.run(exim(), messages);
    (outcome, server)
}

#[test]
fn a_message_makes_the_calls_that_it_makes_in_the_real_server() {
    const MESSAGES: usize = 20;
    const CONNECTIONS: usize = MESSAGES / 10;
    let (outcome, server) = run(MESSAGES as u64, None, None);
    assert_eq!(outcome, Ok(()));
    let kernel = server.kernel.borrow();
    let calls = |name: &str| kernel.calls[name];
    assert_eq!(calls("fork"), CONNECTIONS + 2 * MESSAGES);
    assert_eq!(calls("wait"), calls("fork"));
    assert_eq!(calls("file"), 1 + MESSAGES);
    assert_eq!(calls("map"), MESSAGES);
    assert_eq!(calls("unmap"), MESSAGES);
    assert_eq!(calls("brk"), CONNECTIONS + MESSAGES);
    assert_eq!(calls("write_file"), 2 * MESSAGES);
    assert_eq!(calls("read_file"), CONNECTIONS + 2 * MESSAGES);
    let faults = kernel.faults / MESSAGES;
    assert_eq!(faults, 114, "a message");
    let computed = kernel.computed / MESSAGES as u64;
    assert!((130_000..160_000).contains(&computed), "{computed} ns");
}

#[test]
fn a_connection_ends_when_the_task_shall() {
    let (outcome, server) = run(13, None, None);
    assert_eq!(outcome, Ok(()));
    assert_eq!(server.kernel.borrow().calls["fork"], 2 + 2 * 13);
}

#[test]
fn no_two_messages_take_equally_long() {
    let computed = |messages| run(messages, None, None).1.kernel.borrow().computed;
    assert_ne!(computed(1), computed(2) - computed(1));
}

#[test]
fn the_server_stops_and_leaves_nothing() {
    let (_, mut server) = run(11, None, None);
    let daemon = server.daemon().expect("it has been started");
    assert_eq!(daemon.stop(&mut server), Ok(()));
    assert!(server.pages.is_empty());
}

#[test]
fn needs_say_what_is_called() {
    let needs = Needs {
        files: true,
        brk: true,
        protect: true,
        features: &[Feature::Family],
        memory: exim().needs.memory,
        ..Needs::NOTHING
    };
    assert_eq!(exim().needs, needs);
    let daemon = Memory::family();
    let own = daemon.pages.values().filter(|page| page.is_own()).count();
    let (_, server) = run(1, None, None);
    let touched = (own + server.kernel.borrow().faults) * PAGE;
    assert!(
        needs.memory >= touched && needs.memory <= 4 * touched,
        "{touched}"
    );
}

#[test]
fn the_first_failure_ends_the_work() {
    let before = Memory::family().pages.len();
    let count = run(1, None, None).1.kernel.borrow().count;
    for number in 0..count {
        let (outcome, server) = run(1, Some(number), None);
        assert!(
            matches!(outcome, Err(Error::Failed(_, ENOMEM))),
            "call {number}: {outcome:?}"
        );
        assert_eq!(server.pages.len(), before, "call {number}");
    }
}

#[test]
fn work_that_is_wrong_is_noticed() {
    let wrong = |flaw| run(2, None, Some(flaw)).0.expect_err("a flaw");
    assert!(matches!(wrong(Flaw::SharedFork), Error::Wrong { .. }));
    let crash = Error::Answer {
        call: Call::Wait,
        found: 139,
        expected: 0,
    };
    assert_eq!(wrong(Flaw::Crash), crash);
}

#[test]
fn writes_that_are_lost_are_noticed() {
    let writes = run(1, None, None).1.kernel.borrow().writes;
    let noticed = |number| run(1, None, Some(Flaw::LostWrite(number))).0.is_err();
    let noticed = (0..writes).filter(|&number| noticed(number)).count();
    // All but those to pages that are not read again: the transport's, the earlier processes'
    // writes beyond its pages, and the grown heap.
    let unread = 30 + 3 + (3 + 1);
    assert_eq!(writes - noticed, unread);
}

#[test]
fn a_system_without_families_says_so() {
    let outcome = exim().run(&mut Plain, &Counter::new());
    assert_eq!(outcome, Err(Error::Unsupported(Call::Fork)));
}
