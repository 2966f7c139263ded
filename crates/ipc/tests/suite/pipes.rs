//! Pipes and poll, on threads and on a simulated machine.

use crate::on;

use ipc::pipe::{ATOMIC, Broken, CAPACITY, Unresized};
use ipc::{End, Kernel, Own, Pipe, poll, poll_changes, poll_while};
use machine::{Execute, Job, Machine};
use std::iter;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

struct World<M: Machine> {
    kernel: Own<M>,
    pipes: Vec<Pipe<M>>,
}

impl<M: Machine> World<M> {
    fn with_pipes(count: usize) -> Arc<Self> {
        Arc::new(World {
            kernel: Own::new(),
            pipes: (0..count).map(|_| Pipe::new()).collect(),
        })
    }
}

fn job<W: Send + Sync + 'static>(world: &Arc<W>, work: impl FnOnce(&W) + Send + 'static) -> Job {
    let world = world.clone();
    Box::new(move || work(&world))
}

/// Everything that several tasks write arrives at one reader, in each writer's order, and then the
/// end.
fn bytes_arrive<M: Execute>(machine: &M) {
    const EACH: usize = 40_000;
    let world = World::<M>::with_pipes(1);
    let left = Arc::new(AtomicUsize::new(2));
    let writer = |name: u8| {
        let left = left.clone();
        job(&world, move |w: &World<M>| {
            for n in 0..EACH / 2 {
                let bytes = [name, (n % 251) as u8];
                w.pipes[0].write(&w.kernel, &bytes).expect("a reader");
            }
            if left.fetch_sub(1, Relaxed) == 1 {
                w.pipes[0].close(&w.kernel, End::Writing);
            }
        })
    };
    let writers = [writer(0), writer(1)];
    let reader = job(&world, |w: &World<M>| {
        let (mut buffer, mut pending, mut next) = ([0; 777], Vec::new(), [0usize; 2]);
        loop {
            let count = w.pipes[0].read(&w.kernel, &mut buffer);
            if count == 0 {
                break;
            }
            pending.extend_from_slice(&buffer[..count]);
            let whole = pending.len() / 2 * 2;
            for pair in pending.drain(..whole).collect::<Vec<u8>>().chunks(2) {
                let n = &mut next[usize::from(pair[0])];
                assert_eq!(usize::from(pair[1]), *n % 251);
                *n += 1;
            }
        }
        assert_eq!(next, [EACH / 2; 2]);
    });
    let jobs = writers.into_iter().chain([reader]);
    on::together(machine, jobs.collect());
}

/// A writer waits for room, and learns when the last reader is gone.
fn full_and_broken<M: Execute>(machine: &M) {
    let world = World::<M>::with_pipes(1);
    let writer = job(&world, |w: &World<M>| {
        let bytes = vec![7; CAPACITY + 1];
        assert_eq!(w.pipes[0].room(End::Reading), (0, false));
        assert_eq!(w.pipes[0].room(End::Writing), (CAPACITY, false));
        assert_eq!(w.pipes[0].write(&w.kernel, &bytes), Ok(()));
        // The reader may have taken some of these as well.
        let then = (0..2).find_map(|_| w.pipes[0].write(&w.kernel, &bytes).err());
        assert_eq!(then, Some(Broken));
        let ready = poll(&w.kernel, &[(&w.pipes[0], End::Writing)], true);
        assert_eq!(ready, 1, "a broken pipe is ready to say so");
        assert!(w.pipes[0].room(End::Writing).1, "its writer is alone");
    });
    let reader = job(&world, |w: &World<M>| {
        let (mut buffer, mut got) = (vec![0; 5000], 0);
        while got < CAPACITY + 1 {
            got += w.pipes[0].read(&w.kernel, &mut buffer);
        }
        w.pipes[0].close(&w.kernel, End::Reading);
    });
    on::together(machine, vec![writer, reader]);
}

/// A poller learns of each byte on any of its pipes, and sleeps while there is none.
fn pollers_are_told<M: Execute>(machine: &M) {
    const EACH: usize = 2_000;
    let world = World::<M>::with_pipes(3);
    let slept = Arc::new(AtomicBool::new(false));
    let did_sleep = slept.clone();
    let poller = job(&world, move |w: &World<M>| {
        let ends = [0, 1, 2].map(|pipe| (&w.pipes[pipe], End::Reading));
        assert_eq!(poll(&w.kernel, &ends[2..], false), 0);
        let before = sync::sleepq::slept::<M>();
        let mut got = [0; 2];
        while got != [EACH; 2] {
            let ready = poll(&w.kernel, &ends, true);
            assert!(ready != 0 && ready & 4 == 0, "{ready:b}");
            for (place, (got, pipe)) in got.iter_mut().zip(&w.pipes).enumerate() {
                if ready >> place & 1 == 1 {
                    *got += pipe.read(&w.kernel, &mut [0; 3]);
                }
            }
        }
        did_sleep.store(sync::sleepq::slept::<M>() != before, Relaxed);
    });
    let writer = |pipe: usize| {
        job(&world, move |w: &World<M>| {
            for _ in 0..EACH {
                w.pipes[pipe].write(&w.kernel, &[1]).expect("a reader");
                M::sleep_until(M::now() + 1_000);
            }
        })
    };
    on::together(machine, vec![poller, writer(0), writer(1)]);
    assert!(slept.load(Relaxed), "the poller never slept");
}

/// A poller of changes learns of each, though the end stays ready; also of one that moves no byte.
fn pollers_of_changes_are_told<M: Execute>(machine: &M) {
    const ROUNDS: u64 = 1_000;
    let world = World::<M>::with_pipes(2);
    let poller = job(&world, |w: &World<M>| {
        let (pipe, answers) = (&w.pipes[0], &w.pipes[1]);
        let end = |seen| iter::once((pipe, End::Reading, seen));
        for round in 0..ROUNDS {
            assert!(poll_changes(&w.kernel, end(round), || true));
            assert_eq!(pipe.changes(End::Reading), round + 1);
            assert!(!poll_changes(&w.kernel, end(round + 1), || false));
            answers.write(&w.kernel, &[1]).expect("a reader");
        }
    });
    let writer = job(&world, |w: &World<M>| {
        let (pipe, answers) = (&w.pipes[0], &w.pipes[1]);
        for round in 0..ROUNDS {
            match round % 2 {
                0 => pipe.write(&w.kernel, &[1]).expect("a reader"),
                _ => pipe.touch(&w.kernel, End::Writing),
            }
            assert_eq!(answers.read(&w.kernel, &mut [0]), 1);
        }
    });
    on::together(machine, vec![poller, writer]);
}

/// A poller sees a change that comes between its check and its sleep.
fn no_wake_up_is_lost<M: Execute>(machine: &M) {
    const ROUNDS: usize = 3_000;
    let world = World::<M>::with_pipes(2);
    let player = |mine: usize| {
        job(&world, move |w: &World<M>| {
            let (own, other) = (&w.pipes[mine], &w.pipes[1 - mine]);
            for _ in 0..ROUNDS {
                other.write(&w.kernel, &[0]).expect("a reader");
                assert_eq!(poll(&w.kernel, &[(own, End::Reading)], true), 1);
                assert_eq!(own.read(&w.kernel, &mut [0]), 1);
            }
        })
    };
    on::together(machine, vec![player(0), player(1)]);
}

/// Pollers are told through the kernel, which may take any number of locks for that.
fn pollers_are_told_by_the_kernel<M: Execute>(machine: &M) {
    struct Counting<M: Machine>(Own<M>, AtomicUsize);
    impl<M: Machine> Kernel<M> for Counting<M> {
        fn sleep(&self, key: *const (), still: impl FnOnce() -> bool) -> bool {
            self.0.sleep(key, still)
        }
        fn wake(&self, key: *const (), count: usize) -> usize {
            self.0.wake(key, count)
        }
        fn select_wakeup(&self, tell: impl FnOnce()) {
            self.1.fetch_add(1, Relaxed);
            tell();
        }
    }
    let world = Arc::new((Counting(Own::<M>::new(), AtomicUsize::new(0)), Pipe::new()));
    let only = job(&world, |(kernel, pipe)| {
        pipe.write(kernel, &[1]).expect("a reader");
        assert_eq!(pipe.read(kernel, &mut [0]), 1);
        assert_eq!(kernel.1.load(Relaxed), 2);
    });
    on::together(machine, vec![only]);
}

/// A task that is not to wait any longer comes back with what it has done so far.
fn waits_end<M: Execute>(machine: &M) {
    let world = World::<M>::with_pipes(1);
    let only = job(&world, |w: &World<M>| {
        let (pipe, kernel) = (&w.pipes[0], &w.kernel);
        assert_eq!(pipe.read_while(kernel, &mut [0], || false), None);
        assert_eq!(poll_while(kernel, &[(pipe, End::Reading)], || false), 0);
        let more = vec![1; CAPACITY + 5];
        assert_eq!(pipe.write_while(kernel, &more, || false), Ok(CAPACITY));
        assert_eq!(pipe.write_while(kernel, &[1], || false), Ok(0));
        let mut all = vec![0; CAPACITY + 5];
        assert_eq!(pipe.read_while(kernel, &mut all, || false), Some(CAPACITY));
        pipe.close(kernel, End::Writing);
        assert_eq!(pipe.read_while(kernel, &mut all, || false), Some(0));
    });
    machine.execute(vec![only]);
}

/// An end that is opened again is waited for again.
fn ends_open_again<M: Execute>(machine: &M) {
    let world = World::<M>::with_pipes(1);
    let only = job(&world, |w: &World<M>| {
        let (pipe, kernel) = (&w.pipes[0], &w.kernel);
        pipe.close(kernel, End::Writing);
        assert_eq!(pipe.read_while(kernel, &mut [0], || false), Some(0));
        pipe.open(kernel, End::Writing);
        assert_eq!(pipe.read_while(kernel, &mut [0], || false), None);
        pipe.close(kernel, End::Reading);
        assert_eq!(pipe.write_while(kernel, &[1], || false), Err(Broken));
        pipe.open(kernel, End::Reading);
        assert_eq!(pipe.write_while(kernel, &[1], || false), Ok(1));
        assert_eq!(pipe.room(End::Reading), (1, false));
    });
    machine.execute(vec![only]);
}

/// A pipe that gets another capacity keeps its bytes, wherever they are in the ring.
fn capacities_change<M: Execute>(machine: &M) {
    let world = World::<M>::with_pipes(1);
    let only = job(&world, |w: &World<M>| {
        let (pipe, kernel) = (&w.pipes[0], &w.kernel);
        let put = |bytes: &[u8]| pipe.write_while(kernel, bytes, || false);
        let takes = |bytes: &[u8]| {
            let mut buffer = vec![0; bytes.len()];
            assert_eq!(pipe.read(kernel, &mut buffer), bytes.len());
            assert!(buffer == bytes);
        };
        let bytes: Vec<u8> = (0..CAPACITY).map(|n| (n % 251) as u8).collect();
        // The bytes stand across the ring's end, and begin and end within a line.
        let skipped = CAPACITY - 100;
        assert_eq!(put(&bytes[..skipped]), Ok(skipped));
        takes(&bytes[..skipped]);
        assert_eq!(put(&bytes[..ATOMIC]), Ok(ATOMIC));
        assert_eq!(pipe.resize(kernel, ATOMIC), Ok(()));
        assert_eq!((pipe.capacity(), put(&[1])), (ATOMIC, Ok(0)));
        takes(&bytes[..10]);
        assert_eq!(put(&bytes[..10]), Ok(10));
        assert_eq!(pipe.resize(kernel, 2 * ATOMIC), Ok(()));
        assert_eq!(put(&bytes), Ok(ATOMIC));
        assert_eq!(pipe.resize(kernel, ATOMIC), Err(Unresized::Full));
        assert_eq!(pipe.capacity(), 2 * ATOMIC);
        takes(&bytes[10..ATOMIC]);
        takes(&bytes[..10]);
        takes(&bytes[..ATOMIC]);
        assert_eq!(pipe.room(End::Reading), (0, false));
    });
    machine.execute(vec![only]);
}

/// Bytes that a reader refuses stay in the pipe, with those of their page that it took before.
fn refused_bytes_stay<M: Execute>(machine: &M) {
    let world = World::<M>::with_pipes(1);
    let task = job(&world, |w: &World<M>| {
        let (pipe, kernel) = (&w.pipes[0], &w.kernel);
        let bytes: Vec<u8> = (0..ATOMIC + 900).map(|n| (n % 251) as u8).collect();
        pipe.write(kernel, &bytes).expect("a reader");
        let take = |room: usize| {
            let mut taken = 0;
            pipe.read_with(
                kernel,
                usize::MAX,
                || false,
                |part| {
                    let fits = taken + part.len() <= room;
                    taken += if fits { part.len() } else { 0 };
                    fits
                },
            )
        };
        assert_eq!(take(0), Some(0));
        assert_eq!(take(ATOMIC - 1), Some(0));
        assert_eq!(take(ATOMIC + 899), Some(ATOMIC));
        let mut rest = [0; 1000];
        assert_eq!(pipe.read(kernel, &mut rest), 900);
        assert_eq!(rest[..900], bytes[ATOMIC..]);
        assert_eq!(take(1), None);
    });
    on::together(machine, vec![task]);
}

/// A writer that waits for room goes on when the pipe gets it.
fn room_is_made<M: Execute>(machine: &M) {
    let world = World::<M>::with_pipes(2);
    let writer = job(&world, |w: &World<M>| {
        let [pipe, told] = &w.pipes[..] else {
            unreachable!("two pipes")
        };
        pipe.resize(&w.kernel, ATOMIC).expect("memory");
        pipe.write(&w.kernel, &[1; ATOMIC]).expect("a reader");
        told.write(&w.kernel, &[1]).expect("a reader");
        pipe.write(&w.kernel, &[2; ATOMIC]).expect("a reader");
        told.write(&w.kernel, &[2]).expect("a reader");
    });
    let other = job(&world, |w: &World<M>| {
        let [pipe, told] = &w.pipes[..] else {
            unreachable!("two pipes")
        };
        assert_eq!(told.read(&w.kernel, &mut [0]), 1);
        pipe.resize(&w.kernel, 2 * ATOMIC).expect("memory");
        assert_eq!(told.read(&w.kernel, &mut [0]), 1);
    });
    on::together(machine, vec![writer, other]);
}

#[test]
fn on_threads() {
    bytes_arrive(&on::hosted(3));
    full_and_broken(&on::hosted(2));
    pollers_are_told(&on::hosted(3));
    pollers_of_changes_are_told(&on::hosted(2));
    no_wake_up_is_lost(&on::hosted(2));
    pollers_are_told_by_the_kernel(&on::hosted(1));
    refused_bytes_stay(&on::hosted(1));
    waits_end(&on::hosted(1));
    ends_open_again(&on::hosted(1));
    capacities_change(&on::hosted(1));
    room_is_made(&on::hosted(2));
}

#[test]
fn on_a_simulated_machine() {
    for seed in 0..20 {
        bytes_arrive(&on::sim(seed));
        full_and_broken(&on::sim(seed));
        pollers_are_told(&on::sim(seed));
        pollers_of_changes_are_told(&on::sim(seed));
        no_wake_up_is_lost(&on::sim(seed));
        pollers_are_told_by_the_kernel(&on::sim(seed));
        waits_end(&on::sim(seed));
        ends_open_again(&on::sim(seed));
        capacities_change(&on::sim(seed));
        room_is_made(&on::sim(seed));
    }
}
