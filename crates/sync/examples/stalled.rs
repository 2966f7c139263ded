//! What is held while one reader sleeps in a section:
//! `cargo run --release -p scalevm-sync --example stalled`.
//!
//! One thread reads an object and sleeps; another replaces objects of 64 bytes. The table is that
//! of this crate's README: bytes as the allocator counts them.

use hosted::Hosted;
use machine::Topology;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Barrier;
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use sync::{epoch, hazard};

/// The object's value; with its node it has 64 bytes.
type Value = [u64; 6];

/// The allocator, and the bytes that are allocated.
struct Counting(AtomicIsize);

#[global_allocator]
static HEAP: Counting = Counting(AtomicIsize::new(0));

// SAFETY: all calls go to the system's allocator as they are.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.0.fetch_add(layout.size() as isize, Relaxed);
        // SAFETY: so says the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        self.0.fetch_sub(layout.size() as isize, Relaxed);
        // SAFETY: so says the caller.
        unsafe { System.dealloc(place, layout) }
    }
}

fn main() {
    println!("| retired | reclamation | held | bytes | time of one, ns |");
    println!("|---:|---|---:|---:|---:|");
    for retired in [1_000, 100_000, 1_000_000] {
        row(retired, "`sync::epoch`, no limit", |machine, retired| {
            epochs(machine, retired, usize::MAX)
        });
        row(retired, "`sync::epoch`, `try_defer_drop`", |m, retired| {
            epochs(m, retired, epoch::Options::default().limit)
        });
        row(retired, "`sync::hazard`", hazards);
    }
}

/// What is held in the end.
struct Held {
    objects: usize,
    bytes: isize,
    took: Duration,
    /// Objects that were refused.
    refused: usize,
}

fn row(retired: usize, name: &str, run: impl FnOnce(&Hosted, usize) -> Held) {
    let held = run(&Hosted::new(2), retired);
    let each = held.took.as_nanos() as usize / retired;
    let refused = match held.refused {
        0 => String::new(),
        refused => format!(", {refused} refused"),
    };
    let (objects, bytes) = (held.objects, held.bytes);
    println!("| {retired} | {name} | {objects}{refused} | {bytes} | {each} |");
}

/// Lets CPU 0 run `read`, which calls its argument to sleep, while CPU 1 runs `write`.
fn asleep<R: Send>(
    machine: &Hosted,
    read: impl FnOnce(&dyn Fn()) + Send,
    write: impl FnOnce() -> R + Send,
) -> R {
    let (begun, over) = (Barrier::new(2), Barrier::new(2));
    let sleep = || {
        begun.wait();
        over.wait();
    };
    std::thread::scope(|scope| {
        scope.spawn(|| machine.on_cpu(0, || read(&sleep)));
        let writer = scope.spawn(|| {
            begun.wait();
            let result = machine.on_cpu(1, write);
            over.wait();
            result
        });
        writer.join().expect("the writer ends")
    })
}

/// Times `job`, and counts the bytes that it leaves.
fn timed(job: impl FnOnce()) -> (isize, Duration) {
    let (before, begin) = (HEAP.0.load(Relaxed), Instant::now());
    job();
    let took = begin.elapsed();
    (HEAP.0.load(Relaxed) - before, took)
}

fn epochs(machine: &Hosted, retired: usize, limit: usize) -> Held {
    let options = epoch::Options {
        limit,
        on_stall: None,
    };
    let domain = epoch::Domain::<Hosted>::with_options(machine.cpus(), options);
    let read = |sleep: &dyn Fn()| {
        let _section = domain.enter();
        sleep();
    };
    asleep(machine, read, || {
        let mut refused = 0;
        let (bytes, took) = timed(|| {
            for number in 0..retired {
                let value: Box<Value> = Box::new([number as u64; 6]);
                refused += usize::from(domain.try_defer_drop(value).is_err());
            }
        });
        let objects = domain.pending(1);
        Held {
            objects,
            bytes,
            took,
            refused,
        }
    })
}

fn hazards(machine: &Hosted, retired: usize) -> Held {
    let domain = hazard::Domain::<Hosted>::new(machine.cpus());
    let shared = hazard::Shared::<Hosted, Value>::new(&domain, Some([0; 6]));
    let read = |sleep: &dyn Fn()| {
        let section = domain.enter();
        let object = section.protect(&shared).expect("an object");
        sleep();
        assert_eq!(*object, [0; 6]);
    };
    asleep(machine, read, || {
        let (bytes, took) = timed(|| {
            for number in 0..retired {
                shared.replace(&domain, Some([number as u64; 6]));
            }
        });
        let objects = domain.pending(1);
        let batch = domain.batch();
        assert!(objects < batch && bytes <= 64 * batch as isize);
        Held {
            objects,
            bytes,
            took,
            refused: 0,
        }
    })
}
