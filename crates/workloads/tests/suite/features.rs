//! The workloads that need more than memory make the right calls, notice wrong answers, and leave
//! nothing behind.

use crate::plain;
use crate::script;

use plain::Plain;
use script::Script;
use workloads::{Call, Counter, Error, Feature, Workload};

fn find(name: &str) -> &'static Workload {
    workloads::find(name).expect("a known workload")
}

/// The workloads of this file; programs and tasks.rs have the others.
fn all() -> impl Iterator<Item = &'static Workload> {
    let others = [Feature::Compiler, Feature::Family, Feature::Neighbours];
    let all = workloads::all().iter();
    let all = all.filter(|workload| !workload.needs.features.is_empty());
    all.filter(move |workload| {
        !others
            .iter()
            .any(|one| workload.needs.features.contains(one))
    })
}

fn calls(name: &str, count: u64) -> Vec<String> {
    let mut system = Script::default();
    let tick = Counter::with_limit(count);
    find(name).run(&mut system, &tick).expect("no call fails");
    assert_eq!(tick.get(), count);
    system.assert_nothing_left(name);
    system.calls
}

/// Twice `round` between `before` and `after`.
fn assert_calls(name: &str, count: u64, before: &[&str], rounds: [&[&str]; 2], after: &[&str]) {
    let expected = [before, rounds[0], rounds[1], after].concat();
    assert_eq!(calls(name, count), expected, "{name}");
}

#[test]
fn each_loop_does_what_it_should() {
    let wake = ["write 0 at 0x1000", "futex_wake 0x1000 1"];
    let after = ["unmap 4096 at 0x1000"];
    assert_calls("futex1", 2, &["map 4096"], [&wake; 2], &after);
    assert_calls("poll1", 2, &["file 0", "descriptor"], [&["poll 0"]; 2], &[]);
    let locks = ["lock 0", "unlock 0"];
    assert_calls("lock1", 4, &["file 0", "descriptor"], [&locks; 2], &[]);
    assert_calls(
        "open1",
        2,
        &[],
        [&["open", "close 1"], &["open", "close 2"]],
        &[],
    );
    let rounds: [&[&str]; 2] = [&["write 1 to 2", "read 1"], &["write 2 to 2", "read 1"]];
    assert_calls("pipe1", 2, &["pipe"], rounds, &["close 1", "close 2"]);
    assert_calls(
        "unix1",
        2,
        &["socket_pair"],
        rounds,
        &["close 1", "close 2"],
    );
    let round = ["raise", "signals"];
    assert_calls(
        "signal1",
        2,
        &["handle_signals", "signals"],
        [&round; 2],
        &[],
    );
    let rounds: [&[&str]; 2] = [&["fork Exits(7)", "wait 1"], &["fork Exits(7)", "wait 2"]];
    assert_calls("fork1", 2, &[], rounds, &[]);
    let rounds: [&[&str]; 2] = [&["fork Execs", "wait 1"], &["fork Execs", "wait 2"]];
    assert_calls("exec1", 2, &[], rounds, &[]);
}

#[test]
fn mremap1_moves_all_it_has_written_and_looks_at_a_page_each_time() {
    let mut expected = vec![
        "map 2097152".into(),
        "protect 1048576 at 0x101000 None".into(),
    ];
    let value = |page: usize| (page % 255) as u8 + 1;
    let write = |page| format!("write {} at {:#x}", value(page), 0x1000 + page * 4096);
    expected.extend((0..256).map(write));
    let mut at = 0x1000;
    for page in 0..3 {
        let to = at + 0x20_1000; // behind the mappings, and a page
        expected.push(format!("remap 1048576 at {at:#x} to 2097152"));
        expected.push(format!("unmap 1048576 at {:#x}", at + (1 << 20)));
        expected.push(format!("protect 1048576 at {:#x} None", to + (1 << 20)));
        expected.push(format!("read at {:#x}", to + page * 4096));
        at = to;
    }
    expected.push(format!("unmap 2097152 at {at:#x}"));
    assert_eq!(calls("mremap1", 3), expected);
}

#[test]
fn reclaim1_finds_what_it_has_sent_away() {
    let pages = workloads::SIZE / 4096;
    let calls = calls("reclaim1", pages as u64 + 1);
    let at = |page: usize| 0x1000 + page * 4096;
    let mut expected = vec![format!("map {}", workloads::SIZE)];
    for page in 0..pages {
        expected.push(format!("write 1 at {:#x}", at(page)));
        expected.push(format!("page_out 4096 at {:#x}", at(page)));
    }
    expected.extend(["read at 0x1000", "write 2 at 0x1000"].map(Into::into));
    expected.push("page_out 4096 at 0x1000".into());
    expected.push(format!("unmap {} at 0x1000", workloads::SIZE));
    assert!(calls == expected, "{:?}", calls.last_chunk::<8>());
}

#[test]
fn smaps1_has_a_monitor_in_the_last_of_several_threads() {
    let mut expected = vec!["map 2097152".to_owned()];
    expected.extend((0..512).map(|page| format!("write 1 at {:#x}", 0x1000 + page * 4096)));
    for at in [0x20_2000, 0x21_3000] {
        expected.push("map 65536".into());
        expected.push(format!("write 1 at {at:#x}"));
        expected.push(format!("unmap 65536 at {at:#x}"));
    }
    expected.push("unmap 2097152 at 0x1000".into());
    assert_eq!(calls("smaps1", 2), expected);
    let mut monitor = Script::last_of(3);
    let tick = Counter::with_limit(2);
    find("smaps1")
        .run(&mut monitor, &tick)
        .expect("no call fails");
    assert_eq!(monitor.calls, ["scan"; 8]);
    let mut alone = Script::last_of(1);
    let tick = Counter::with_limit(2);
    find("smaps1")
        .run(&mut alone, &tick)
        .expect("no call fails");
    assert_eq!(alone.calls, expected);
}

#[test]
fn fragment_makes_a_region_of_four_pages_in_every_eight() {
    let mut expected = vec![format!("map {}", 512 * 8 * 4096)];
    for region in 0..512 {
        let at = 0x1000 + region * 8 * 4096;
        expected.push(format!("write 1 at {at:#x}"));
        expected.push(format!("unmap {} at {:#x}", 4 * 4096, at + 4 * 4096));
    }
    expected.extend(["page_out 4096 at 0x1000", "read at 0x1000"].map(Into::into));
    expected.push(format!("unmap {} at 0x1000", 512 * 8 * 4096));
    assert_eq!(calls("fragment", 1), expected);
}

#[test]
fn pages_that_are_lost_on_the_way_are_noticed() {
    for (name, lie, expected) in [
        ("mremap1", Call::Touch, 1),
        ("reclaim1", Call::PageOut, 1),
        ("reclaim1", Call::Touch, 1),
        ("fragment", Call::PageOut, 1),
        ("fragment", Call::Touch, 1),
    ] {
        let mut system = Script::lying(lie);
        let error = find(name).run(&mut system, &Counter::new()).unwrap_err();
        let lost =
            |error| matches!(error, Error::Wrong { found: 0, expected: e, .. } if e == expected);
        assert!(lost(error), "{name} {lie:?}: {error}");
        system.assert_nothing_left(name);
    }
}

#[test]
fn context_switch1_counts_both_ways_and_sends_its_partner_away() {
    assert_calls(
        "context_switch1",
        4,
        &["pipe", "pipe", "start_echo 1 4"],
        [&["write 1 to 2", "read 3"], &["write 2 to 2", "read 3"]],
        &["write 0 to 2", "close 2", "wait 1", "close 3"],
    );
    // The byte that ends the partner is never sent before.
    let calls = calls("context_switch1", 2 * 600);
    assert_eq!(
        calls.iter().filter(|call| *call == "write 0 to 2").count(),
        1
    );
}

#[test]
fn a_failing_call_ends_the_loop_and_leaves_nothing_behind() {
    let mut failures = Vec::new();
    for workload in all() {
        let mut complete = Script::default();
        let ran = workload.run(&mut complete, &Counter::with_limit(2));
        ran.expect("no call fails");
        for number in 0..complete.calls.len() {
            let mut system = Script::failing_at(number);
            let error = workload.run(&mut system, &Counter::with_limit(2));
            let Err(Error::Failed(call, 12)) = error else {
                panic!("{}: {error:?} at {}", workload.name, complete.calls[number]);
            };
            system.assert_nothing_left(workload.name);
            failures.push(call);
        }
    }
    for call in [
        Call::Open,
        Call::Close,
        Call::Lock,
        Call::Poll,
        Call::Pipe,
        Call::SocketPair,
        Call::Write,
        Call::Read,
        Call::FutexWake,
        Call::Handle,
        Call::Raise,
        Call::Fork,
        Call::Wait,
        Call::Partner,
        Call::Map,
        Call::Unmap,
        Call::Protect,
        Call::Remap,
        Call::PageOut,
        Call::Touch,
        Call::File,
    ] {
        assert!(failures.contains(&call), "{call:?} never failed");
    }
}

#[test]
fn wrong_answers_are_noticed() {
    for (name, lies) in [
        ("futex1", &[(Call::FutexWake, 1, 0)][..]),
        ("mremap1", &[(Call::Remap, 1, 0)]),
        ("poll1", &[(Call::Poll, 0, 1)]),
        ("pipe1", &[(Call::Write, 0, 1), (Call::Read, 129, 1)]),
        ("unix1", &[(Call::Write, 0, 1), (Call::Read, 129, 1)]),
        ("signal1", &[(Call::Raise, 0, 1)]),
        ("fork1", &[(Call::Wait, 9, 7)]),
        (
            "context_switch1",
            &[(Call::Read, 129, 1), (Call::Wait, 2, 0)],
        ),
    ] {
        for &(lie, found, expected) in lies {
            let mut system = Script::lying(lie);
            let error = find(name).run(&mut system, &Counter::with_limit(2));
            let call = match (name, lie) {
                ("context_switch1", Call::Wait) => Call::Partner,
                _ => lie,
            };
            let answer = Error::Answer {
                call,
                found,
                expected,
            };
            assert_eq!(error, Err(answer), "{name} {lie:?}");
            system.assert_nothing_left(name);
        }
    }
    let mut system = Script::lying(Call::Wait);
    let error = find("exec1").run(&mut system, &Counter::new()).unwrap_err();
    assert_eq!(error.to_string(), "exec: 2 instead of 0");
}

#[test]
fn features_say_what_is_called() {
    for workload in all() {
        let calls = calls(workload.name, 4);
        let called = |name: &str| calls.iter().any(|call| call.starts_with(name));
        let used = [
            (Feature::Remap, called("remap")),
            (Feature::PageOut, called("page_out")),
            (Feature::Futexes, called("futex_wake")),
            (Feature::Poll, called("poll")),
            (Feature::Pipes, called("pipe")),
            (Feature::Sockets, called("socket_pair")),
            (Feature::RecordLocks, called("lock")),
            (Feature::Names, called("open")),
            (Feature::Signals, called("raise")),
            (Feature::Fork, called("fork")),
            (Feature::Exec, called("fork Execs")),
            (Feature::Partners, called("start_echo")),
        ];
        let used = used.into_iter().filter(|(_, used)| *used);
        let used: Vec<Feature> = used.map(|(feature, _)| feature).collect();
        assert_eq!(workload.needs.features, used, "{}", workload.name);
        assert_eq!(workload.needs.files, called("file"), "{}", workload.name);
        assert_eq!(
            workload.needs.protect,
            called("protect"),
            "{}",
            workload.name
        );
    }
}

#[test]
fn what_a_system_lacks_is_unsupported() {
    let mut lacking = Vec::new();
    for workload in all() {
        let error = workload.run(&mut Plain, &Counter::new()).unwrap_err();
        let Error::Unsupported(call) = error else {
            panic!("{}: {error}", workload.name);
        };
        lacking.push((workload.name, call));
    }
    let expected = [
        ("context_switch1", Call::Pipe),
        ("exec1", Call::Fork),
        ("fork1", Call::Fork),
        ("fragment", Call::PageOut),
        ("futex1", Call::FutexWake),
        ("lock1", Call::File),
        ("mremap1", Call::Remap),
        ("open1", Call::Open),
        ("pipe1", Call::Pipe),
        ("poll1", Call::File),
        ("reclaim1", Call::PageOut),
        ("signal1", Call::Handle),
        ("unix1", Call::SocketPair),
    ];
    assert_eq!(lacking, expected);
}
