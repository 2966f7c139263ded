//! Compares `sync` in user space with locks and epochs from other crates:
//! `cargo run --release -p scalevm-sync --example beside`.
//!
//! Threads of `hosted` are the CPUs. The rows of a column are measured in turn, window by window,
//! so that they see the same interference; a figure is the median of its windows. The tables are
//! those of this crate's README.

use hosted::Hosted;
use machine::Topology;
use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use sync::Padded;
use sync::epoch::Domain;
use sync::obm::Threads;

/// The most threads of a column.
const THREADS: usize = 8;

fn main() {
    let machine = Hosted::new(THREADS);
    mutexes(&machine);
    println!();
    machine.on_cpu(0, || epochs(&machine));
}

/// Runs this many operations on the calling thread, which is a CPU.
type Operate<'a> = Box<dyn Fn(u64) + 'a>;

/// Runs this many operations on any thread that is a CPU.
type Shared<'a> = Box<dyn Fn(u64) + Sync + 'a>;

fn mutexes(machine: &Hosted) {
    // Each value has cache lines of its own, wherever the stack begins.
    let ours = Padded(lock_api::Mutex::<Threads<Hosted>, u64>::new(0));
    let parking_lot = Padded(parking_lot::Mutex::new(0u64));
    let std = Padded(std::sync::Mutex::new(0u64));
    let add = |n: &mut u64| *n = black_box(*n + 1);
    let rows: [(&str, usize, Shared<'_>); 3] = [
        (
            "`sync::obm::Threads`",
            size_of::<Threads<Hosted>>(),
            Box::new(repeat(|| add(&mut ours.lock()))),
        ),
        (
            "`parking_lot::Mutex`",
            size_of::<parking_lot::RawMutex>(),
            Box::new(repeat(|| add(&mut parking_lot.lock()))),
        ),
        (
            "`std::sync::Mutex`",
            size_of::<std::sync::Mutex<()>>(),
            Box::new(repeat(|| add(&mut std.lock().expect("no panic")))),
        ),
    ];
    let operations: Vec<_> = rows.iter().map(|row| &row.2).collect();
    let one = machine.on_cpu(0, || medians(&operations, 1001, |operate| alone(operate)));
    let [two, many] = [2, THREADS].map(|threads| {
        let rate = |operate: &&Shared<'_>| rate(machine, threads, operate);
        medians(&operations, 101, rate)
    });
    println!("| mutex | bytes | alone, ns | 2 threads, M/s | {THREADS} threads, M/s |");
    println!("|---|---|---|---|---|");
    for (row, (name, bytes, _)) in rows.iter().enumerate() {
        let (one, two, many) = (one[row], two[row], many[row]);
        println!("| {name} | {bytes} | {one:.2} | {two:.1} | {many:.1} |");
    }
}

fn epochs(machine: &Hosted) {
    let ours = Domain::<Hosted>::new(machine.cpus());
    let handle = crossbeam_epoch::default_collector().register();
    let rows: [(&str, Operate<'_>); 3] = [
        (
            "`sync::epoch`, `enter`",
            Box::new(repeat(|| within(ours.enter()))),
        ),
        (
            "`crossbeam-epoch`, a handle's `pin`",
            Box::new(repeat(|| within(handle.pin()))),
        ),
        (
            "`crossbeam-epoch`, `pin`",
            Box::new(repeat(|| within(crossbeam_epoch::pin()))),
        ),
    ];
    let operations: Vec<_> = rows.iter().map(|row| &row.1).collect();
    let times = medians(&operations, 1001, |operate| alone(operate));
    println!("| entering and leaving a section | ns |");
    println!("|---|---|");
    for ((name, _), time) in rows.iter().zip(times) {
        println!("| {name} | {time:.2} |");
    }
}

fn repeat<F: Fn()>(operation: F) -> impl Fn(u64) + use<F> {
    move |count| (0..count).for_each(|_| operation())
}

/// A section without content.
#[inline(always)]
fn within<G>(guard: G) {
    black_box(());
    drop(guard);
}

/// The median of each row's `windows` figures.
fn medians<T>(rows: &[T], windows: usize, measure: impl Fn(&T) -> f64) -> Vec<f64> {
    let mut figures = vec![Vec::with_capacity(windows); rows.len()];
    for _ in 0..windows {
        for (row, figures) in rows.iter().zip(&mut figures) {
            figures.push(measure(row));
        }
    }
    for figures in &mut figures {
        figures.sort_by(f64::total_cmp);
    }
    figures.iter().map(|sorted| sorted[windows / 2]).collect()
}

/// Nanoseconds of an operation on the calling thread. The window is so short that few are
/// interrupted.
fn alone(operate: &dyn Fn(u64)) -> f64 {
    const COUNT: u64 = 4_000;
    let begin = Instant::now();
    operate(COUNT);
    begin.elapsed().as_nanos() as f64 / COUNT as f64
}

/// Millions of operations per second of this many threads together.
fn rate(machine: &Hosted, threads: usize, operate: &(dyn Fn(u64) + Sync)) -> f64 {
    const WINDOW: Duration = Duration::from_millis(40);
    let (stop, sum) = (AtomicBool::new(false), AtomicU64::new(0));
    let begin = Barrier::new(threads + 1);
    let work = |cpu| {
        machine.attach(cpu);
        begin.wait();
        let mut count = 0;
        while !stop.load(Relaxed) {
            operate(64);
            count += 64;
        }
        sum.fetch_add(count, Relaxed);
    };
    let time = std::thread::scope(|scope| {
        for cpu in 0..threads {
            let work = &work;
            scope.spawn(move || work(cpu));
        }
        begin.wait();
        let begin = Instant::now();
        std::thread::sleep(WINDOW);
        stop.store(true, Relaxed);
        begin.elapsed()
    });
    sum.load(Relaxed) as f64 / time.as_secs_f64() / 1e6
}
