//! A lock bare and watched, for counting instructions: `watch CASE ITERATIONS`.
//!
//! `tests/watch_cost.rs` runs the cases under callgrind.

#[allow(dead_code)]
#[path = "../tests/watched/mod.rs"]
mod watched;

use hosted::Hosted;
use machine::{Machine, Tasks};
use std::hint::black_box;
use sync::watch::{Both, LockProfile, Off, Order, Watched, profile};
use sync::{RawLock, lock_class};
use watched::Tas;

lock_class!(Measured = "measured");
lock_class!(Outer = "outer");

type Bare = Tas<Hosted>;
type On<O> = Watched<Hosted, Bare, Measured, O>;

fn main() {
    let mut args = std::env::args().skip(1);
    let case = args.next().unwrap_or_default();
    let iterations: u64 = args.next().and_then(|n| n.parse().ok()).unwrap_or(1);
    let profile = |on: bool| {
        if on && let Err(error) = profile::of(Hosted::anchor()).start(1) {
            eprintln!("watch: {error}");
            std::process::exit(1);
        }
    };
    match case.as_str() {
        "bare" => cycle::<Hosted, Bare>(iterations),
        "off" => cycle::<Hosted, On<Off>>(iterations),
        "profile-stopped" => cycle::<Hosted, On<LockProfile>>(iterations),
        "profile" => {
            profile(true);
            cycle::<Hosted, On<LockProfile>>(iterations);
        }
        "order" => cycle::<Hosted, On<Order>>(iterations),
        "order-nested" => {
            let outer = Watched::<Hosted, Bare, Outer, Order>::new();
            let held = outer.lock();
            cycle::<Hosted, On<Order>>(iterations);
            // SAFETY: locked above.
            unsafe { outer.unlock(held) };
        }
        "both" => {
            profile(true);
            cycle::<Hosted, On<Both<Order, LockProfile>>>(iterations);
        }
        other => {
            eprintln!("watch: unknown case '{other}'");
            std::process::exit(2);
        }
    }
}

#[inline(never)]
fn cycle<M: Machine, L: RawLock<M>>(iterations: u64) {
    let lock = black_box(L::new());
    let start = std::time::Instant::now();
    for _ in 0..iterations {
        let held = lock.lock();
        // SAFETY: locked above.
        unsafe { lock.unlock(held) };
    }
    let ns = start.elapsed().as_nanos() as f64 / iterations as f64;
    println!("{}: {ns:.1} ns", L::NAME);
}
