//! The two patterns on which all protocols here rest.

use super::{Attendance, Meeting, two};
use crate::{Atomic, Atomics, Execute, Ordering, SharedCell};
use alloc::{sync::Arc, vec::Vec};

/// A CPU that acquires a released value sees everything written before the release.
pub fn message_passing<M: Execute>(m: &M, rounds: usize) {
    struct Round<M: Execute> {
        data: M::Cell<u64>,
        flag: M::AtomicU32,
    }
    struct Shared<M: Execute> {
        meeting: Meeting<M>,
        rounds: Vec<Round<M>>,
    }
    let round = |_| Round {
        data: M::Cell::new(0),
        flag: M::AtomicU32::new(0),
    };
    let shared = Arc::new(Shared::<M> {
        meeting: Meeting::new(),
        rounds: (0..rounds).map(round).collect(),
    });
    let send = |shared: &Shared<M>| {
        let meeting = shared.meeting.attend();
        for (i, round) in shared.rounds.iter().enumerate() {
            start(&meeting, i);
            // SAFETY: the other CPU reads only after it has seen the flag.
            unsafe { *round.data.write() = 42 };
            round.flag.store(1, Ordering::Release);
        }
    };
    let receive = |shared: &Shared<M>| {
        let meeting = shared.meeting.attend();
        for (i, round) in shared.rounds.iter().enumerate() {
            start(&meeting, i);
            if round.flag.load(Ordering::Acquire) == 1 {
                // SAFETY: the writer has released the data with the flag.
                assert_eq!(unsafe { *round.data.read() }, 42, "message passing");
            }
        }
    };
    two(m, &shared, send, receive);
}

/// Of two CPUs that each publish and then look at the other's variable, at least one
/// sees the other (Dekker): publish against publish, publish against store and
/// fence, and a light fence against a heavy one.
pub fn store_buffer<M: Execute>(m: &M, rounds: usize) {
    let publish: Side<M> = |mine, other| {
        mine.publish(1);
        other.load(Ordering::Relaxed)
    };
    let fenced: Side<M> = |mine, other| {
        mine.store(1, Ordering::Relaxed);
        M::fence(Ordering::SeqCst);
        other.load(Ordering::Relaxed)
    };
    dekker(m, rounds, [publish, fenced]);
    dekker(m, rounds, [publish, publish]);
    asymmetric_store_buffer(m, rounds);
}

/// The part of [`store_buffer`] that checks a light fence against a heavy one.
pub fn asymmetric_store_buffer<M: Execute>(m: &M, rounds: usize) {
    let light: Side<M> = |mine, other| {
        mine.store(1, Ordering::Relaxed);
        M::light_fence();
        other.load(Ordering::Relaxed)
    };
    let heavy: Side<M> = |mine, other| {
        mine.store(1, Ordering::Relaxed);
        M::heavy_fence();
        other.load(Ordering::Relaxed)
    };
    dekker(m, rounds, [light, heavy]);
}

/// Runs one CPU's side of Dekker's pattern; the first variable is its own.
type Side<M> = fn(&<M as Atomics>::AtomicU64, &<M as Atomics>::AtomicU64) -> u64;

/// A variable on lines of its own: a store does not make a look at the other wait.
#[repr(align(128))]
struct Apart<T>(T);

/// Runs the sides of CPU 0 and of CPU 1 against each other.
fn dekker<M: Execute>(m: &M, rounds: usize, [zero, one]: [Side<M>; 2]) {
    struct Shared<M: Execute> {
        meeting: Meeting<M>,
        /// Each round's variables, CPU 0's first.
        flags: Vec<[Apart<M::AtomicU64>; 2]>,
        /// The values that each CPU saw.
        seen: Vec<[M::AtomicU64; 2]>,
    }
    fn run<M: Execute>(shared: &Shared<M>, me: usize, side: Side<M>) {
        let meeting = shared.meeting.attend();
        for (i, (flags, seen)) in shared.flags.iter().zip(&shared.seen).enumerate() {
            let [mine, other] = [&flags[me].0, &flags[1 - me].0];
            // With the line at hand, the look is early and the store late.
            other.load(Ordering::Relaxed);
            start(&meeting, i);
            let saw = side(mine, other);
            seen[me].store(saw, Ordering::Relaxed);
        }
    }
    let clear = || M::AtomicU64::new(0);
    let shared = Arc::new(Shared::<M> {
        meeting: Meeting::new(),
        flags: (0..rounds)
            .map(|_| [Apart(clear()), Apart(clear())])
            .collect(),
        seen: (0..rounds).map(|_| [clear(), clear()]).collect(),
    });
    two(
        m,
        &shared,
        move |shared| run(shared, 0, zero),
        move |shared| run(shared, 1, one),
    );
    for seen in &shared.seen {
        let [zero, one] = seen.each_ref().map(|s| s.load(Ordering::Relaxed));
        assert!(
            zero == 1 || one == 1,
            "both CPUs looked before they published"
        );
    }
}

/// Begins a round on both CPUs at once; the first begins with the jobs.
fn start<M: Execute>(meeting: &Attendance<'_, M>, round: usize) {
    if round > 0 {
        meeting.meet();
    }
}
