//! More or fewer threads, and two programs at once.

use super::support::{Program, anonymous, pool};
use recording::{Birth, Call, Event, Recording, Role, What};

fn workers(recording: &Recording) -> Role {
    let roles = recording.roles();
    assert_eq!(roles[0].name, "worker");
    roles[0].clone()
}

fn of(recording: &Recording, thread: u32) -> Vec<&What> {
    let own = recording
        .events
        .iter()
        .filter(|event| event.thread == thread);
    own.map(|event| &event.what).collect()
}

#[test]
fn the_busiest_role_is_the_first() {
    let pool = pool();
    let role = workers(&pool);
    assert_eq!(role.threads, [1, 2]);
    assert_eq!(
        (role.process.as_str(), role.operations),
        ("program", 2 * (2 + 1 + 8 + 1 + 1))
    );
}

#[test]
fn added_threads_do_the_same_on_memory_of_their_own() {
    let pool = pool();
    let scaled = pool.with_threads(&workers(&pool), 5);
    assert_eq!(
        scaled.threads.len(),
        6,
        "the first thread, and five workers"
    );
    let (second, fourth) = (of(&scaled, 2), of(&scaled, 4));
    assert_eq!(second.len(), fourth.len());
    // Its stack and its mapping are others, what all use is the same.
    for (place, (one, other)) in second.iter().zip(&fourth).enumerate() {
        match (one, other) {
            (What::Fault { at: one, .. }, What::Fault { at: other, .. }) => {
                assert_eq!(
                    one.mapping == other.mapping,
                    one.mapping == 0,
                    "event {place}"
                );
                assert_eq!(one.offset, other.offset);
            }
            (What::Wait { by: one, .. }, What::Wait { by: other, .. }) => {
                assert_eq!(
                    (*one, *other),
                    (Some((1, 0)), Some((3, 0))),
                    "that of its own round"
                );
            }
            (
                What::Call {
                    call: Call::Map { .. },
                    ..
                },
                _,
            ) => assert_ne!(one, other),
            _ => assert_eq!(one, other),
        }
    }
    let first = of(&scaled, 0);
    let starts = first
        .iter()
        .filter(|what| matches!(what, What::Start { .. }))
        .count();
    let maps = first.iter().filter(|what| {
        let is_map = |call: &Call| matches!(call, Call::Map { .. });
        matches!(what, What::Call { call, .. } if is_map(call))
    });
    assert_eq!((starts, maps.count()), (5, 1 + 5), "a stack for each");
    assert!(scaled.events.is_sorted_by_key(|event| event.at));
    let again = pool.with_threads(&workers(&pool), 2);
    assert_eq!(again, pool);
}

#[test]
fn of_threads_that_are_gone_nobody_waits() {
    let pool = pool();
    let mut other = Program(pool.clone());
    other.map(2, 30, 4).fault(0, 30, 0, 1);
    let scaled = other.0.with_threads(&workers(&pool), 1);
    assert!(of(&scaled, 2).is_empty());
    let mut first = of(&scaled, 0).into_iter();
    let map = anonymous(30, 4, None);
    assert!(
        first.any(|what| matches!(what, What::Call { call, .. } if *call == map)),
        "memory that others use is still mapped"
    );
    let starts = |event: &&Event| matches!(event.what, What::Start { .. });
    assert_eq!(scaled.events.iter().filter(starts).count(), 1);
}

#[test]
fn two_programs_begin_together() {
    let (pool, mut other) = (pool(), Program::new());
    other.map(0, 3, 1).fault(0, 3, 0, 1);
    let child = other.process(Birth::Forked);
    other
        .add(
            0,
            What::Fork {
                thread: child,
                borrows: false,
            },
        )
        .fault(child, 3, 0, 1);
    let both = pool.clone().and(&other.0);
    assert_eq!((both.processes.len(), both.threads.len()), (3, 5));
    assert_eq!(both.threads[4].process, 2);
    for thread in 0..3 {
        assert_eq!(of(&both, thread), of(&pool, thread));
    }
    let mapping = pool.mappings() + 3;
    assert!(matches!(of(&both, 4)[0], What::Fault { at, .. } if at.mapping == mapping));
    assert!(matches!(of(&both, 3)[2], What::Fork { thread: 4, .. }));
    assert!(both.events.is_sorted_by_key(|event| event.at));
}
