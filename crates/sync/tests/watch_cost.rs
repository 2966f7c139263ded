//! A watched lock without an observer takes exactly the lock's instructions, and a
//! profile that is not running a handful more.

// Instructions are those of optimised code.
#![cfg(not(debug_assertions))]

mod callgrind;

#[test]
fn off_costs_nothing_and_stopped_next_to_nothing() {
    let per_iteration = |case| callgrind::per_iteration("watch", case);
    let bare = per_iteration("bare");
    let off = per_iteration("off");
    let stopped = per_iteration("profile-stopped");
    let watched = ["profile", "order", "order-nested", "both"].map(per_iteration);
    assert_eq!(off, bare);
    assert!(stopped <= bare + 8, "{stopped} against {bare}");
    // A watched case executes more instructions, which shows that the cases are what their names
    // say.
    assert!(watched.iter().all(|&each| each > stopped), "{watched:?}");
}
