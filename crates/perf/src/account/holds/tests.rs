//! Hand-made holds.

use super::*;

/// Two address spaces, and how far their locks lie behind them.
const SPACE_A: u64 = 0x10000;
const SPACE_B: u64 = 0x10800;
const DISTANCE: u64 = 0x90;
const LOCK_A: u64 = SPACE_A + DISTANCE;
const LOCK_B: u64 = SPACE_B + DISTANCE;

fn wait(tid: u32, lock: u64) -> Step {
    Step::Wait { tid, lock }
}

fn waited(tid: u32, lock: u64) -> Step {
    Step::Waited { tid, lock }
}

fn acquire(tid: u32, space: u64, write: bool) -> Step {
    Step::Acquire {
        thread: Thread { pid: tid, tid },
        space,
        write,
        is_watched: false,
        addresses: [u64::from(tid)].into(),
    }
}

fn release(tid: u32, space: u64) -> Step {
    Step::Release { tid, space }
}

fn stack(tid: u32, address: u64) -> Step {
    let addresses = [address].into();
    Step::Stack { tid, addresses }
}

/// Holds whose distance is known: thread 1 has waited 1 ns for a lock.
fn holds() -> Holds {
    let mut holds = Holds::default();
    let steps = [
        wait(1, LOCK_A),
        waited(1, LOCK_A),
        acquire(1, SPACE_A, true),
        release(1, SPACE_A),
    ];
    for (time, step) in steps.into_iter().enumerate() {
        assert_eq!(holds.take(time as u64, step), []);
    }
    assert_eq!(holds.distance, Some(DISTANCE));
    holds
}

/// Thread, mode, length and waiting of each hold that ends by `steps` at 10, 20, 30, …
fn ended<const N: usize>(holds: &mut Holds, steps: [Step; N]) -> Vec<(u32, bool, u64, u64)> {
    let times = (10..).step_by(10);
    let ended = steps.into_iter().zip(times);
    ended
        .flat_map(|(step, time)| holds.take(time, step))
        .map(|hold| (hold.thread.tid, hold.write, hold.span.whole, hold.waited))
        .collect()
}

#[test]
fn waiting_is_due_to_the_hold_that_it_overlaps() {
    let mut holds = holds();
    let steps = [
        acquire(7, SPACE_A, false),
        wait(1, LOCK_A),
        release(7, SPACE_A),
        acquire(8, SPACE_A, true),
        release(8, SPACE_A),
        waited(1, LOCK_A),
        acquire(1, SPACE_A, true),
        release(1, SPACE_A),
    ];
    assert_eq!(
        ended(&mut holds, steps),
        [(7, false, 20, 10), (8, true, 10, 10)]
    );
    assert_eq!(holds.waited, 1 + 40);
}

#[test]
fn other_address_spaces_make_nobody_wait() {
    let steps = [
        acquire(7, SPACE_B, true),
        acquire(8, SPACE_A, true),
        wait(1, LOCK_A),
        release(7, SPACE_B),
        release(8, SPACE_A),
        wait(2, LOCK_B),
    ];
    assert_eq!(ended(&mut holds(), steps), [(8, true, 30, 20)]);
}

#[test]
fn a_thread_holds_two_locks_at_a_time() {
    // As a fork does.
    let steps = [
        acquire(7, SPACE_A, true),
        acquire(7, SPACE_B, true),
        wait(1, LOCK_A),
        release(7, SPACE_B),
        release(7, SPACE_A),
    ];
    assert_eq!(ended(&mut holds(), steps), [(7, true, 40, 20)]);
}

#[test]
fn readers_hold_it_together_and_outlast_a_wait() {
    let steps = [
        acquire(7, SPACE_A, false),
        acquire(8, SPACE_A, false),
        wait(1, LOCK_A),
        wait(2, LOCK_A),
        waited(1, LOCK_A),
        release(7, SPACE_A),
        release(8, SPACE_A),
    ];
    let expected = [(7, false, 50, 20 + 20), (8, false, 50, 20 + 30)];
    assert_eq!(ended(&mut holds(), steps), expected);
}

#[test]
fn a_downgrade_ends_a_hold_for_writing() {
    let steps = [
        acquire(7, SPACE_A, true),
        wait(1, LOCK_A),
        acquire(7, SPACE_A, false),
        release(7, SPACE_A),
    ];
    let expected = [(7, true, 20, 10), (7, false, 10, 10)];
    assert_eq!(ended(&mut holds(), steps), expected);
}

#[test]
fn the_first_wait_counts_although_only_its_end_shows_the_distance() {
    let steps = [
        acquire(7, SPACE_A, false),
        wait(1, LOCK_A),
        stack(7, 0x77),
        release(7, SPACE_A),
        waited(1, LOCK_A),
        acquire(1, SPACE_A, true),
    ];
    let mut holds = Holds::default();
    let times = (10..).step_by(10);
    let ended = steps.into_iter().zip(times);
    let ended: Vec<Hold> = ended
        .flat_map(|(step, time)| holds.take(time, step))
        .collect();
    assert_eq!(ended.len(), 1, "{ended:?}");
    assert_eq!((ended[0].span.whole, ended[0].waited), (30, 20));
    assert_eq!(ended[0].stacks, [[0x77].into()]);
}

#[test]
fn a_lock_far_from_the_address_space_is_another() {
    let mut holds = Holds::default();
    let steps = [
        wait(1, 0x900),
        waited(1, 0x900),
        acquire(1, SPACE_A, true),
        wait(1, SPACE_A + SPACE),
        waited(1, SPACE_A + SPACE),
        acquire(1, SPACE_A, true),
    ];
    assert_eq!(ended(&mut holds, steps), []);
    assert_eq!(holds.distance, None);
}

#[test]
fn samples_belong_to_the_holds_of_their_thread() {
    let mut holds = holds();
    let steps = [
        stack(7, 0x1),
        acquire(7, SPACE_A, false),
        stack(7, 0x2),
        stack(8, 0x3),
        wait(1, LOCK_A),
    ];
    assert_eq!(ended(&mut holds, steps), []);
    let hold = holds.take(100, release(7, SPACE_A)).remove(0);
    assert_eq!(hold.stacks, [[0x2].into()]);
}

#[test]
fn what_is_open_at_the_end_lasts_until_then() {
    let mut holds = holds();
    let steps = [
        acquire(7, SPACE_A, false),
        wait(1, LOCK_A),
        acquire(8, SPACE_B, false),
    ];
    assert_eq!(ended(&mut holds, steps), []);
    let open = holds.cut(100, true);
    assert_eq!(open.len(), 1, "{open:?}");
    assert_eq!((open[0].span.whole, open[0].waited), (90, 80));
}

#[test]
fn what_was_forgotten_or_is_gone_blames_nobody() {
    let mut holds = holds();
    let steps = [acquire(7, SPACE_A, false), wait(1, LOCK_A)];
    assert_eq!(ended(&mut holds, steps), []);
    holds.forget();
    assert_eq!(holds.take(50, release(7, SPACE_A)), []);
    assert_eq!(holds.take(60, acquire(7, SPACE_A, false)), []);
    assert_eq!(holds.take(70, waited(1, LOCK_A)), []);
    assert_eq!(holds.take(80, wait(1, LOCK_A)), []);
    holds.exit(1);
    assert_eq!(holds.take(90, release(7, SPACE_A)), []);
    assert_eq!(holds.waited, 1);
}
