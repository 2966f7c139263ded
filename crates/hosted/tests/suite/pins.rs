//! With debug assertions threads count pins, and a task that sleeps with one panics.
#![cfg(debug_assertions)]

use hosted::Hosted;
use machine::{Clock, Cpus, Tasks};
use std::panic::catch_unwind;

fn pinned(sleep: fn()) -> String {
    let found = catch_unwind(|| {
        Hosted::new(1).on_cpu(0, || {
            let _pin = Hosted::pin();
            sleep();
        });
    });
    let panic = found.expect_err("a pinned task slept");
    panic.downcast_ref::<&str>().expect("a message").to_string()
}

#[test]
fn a_task_that_sleeps_pinned_panics() {
    let expected = "a task sleeps while it is pinned";
    assert_eq!(pinned(Hosted::park), expected);
    assert_eq!(pinned(Hosted::yield_now), expected);
    assert_eq!(pinned(|| Hosted::sleep_until(0)), expected);
}
