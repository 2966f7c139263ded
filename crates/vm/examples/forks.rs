//! The cost of fork with tables shared and copied: `forks CASE shared|copied MIB ROUNDS`.
//!
//! Prints the microseconds of a round, the median; callgrind counts only instructions within
//! [`counted`]. `docs/results/by-hand.md` has the figures.

use hosted::Hosted;
use machine::PAGE_SIZE;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vm::system::ForkTables;
use vm::{Best, Options, Prot, Space, Vm};

const MIB: usize = 1 << 20;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| args.get(at).and_then(|n| n.parse().ok());
    let (Some(mib), Some(rounds)) = (number(2), number(3)) else {
        eprintln!("forks: CASE shared|copied MIB ROUNDS");
        std::process::exit(2);
    };
    let median = match args[1].as_str() {
        "shared" => run(ForkTables::default(), &args[0], mib, rounds),
        _ => run(ForkTables::Copied, &args[0], mib, rounds),
    };
    println!("{} {}: {} us", args[0], args[1], median.as_micros());
}

/// Runs the operation that callgrind counts.
#[inline(never)]
fn counted<R>(operation: impl FnOnce() -> R) -> (R, Duration) {
    let start = Instant::now();
    let result = black_box(operation());
    (result, start.elapsed())
}

fn run(fork_tables: ForkTables, case: &str, mib: usize, rounds: usize) -> Duration {
    let machine = Hosted::with_options(hosted::Options {
        watched: false,
        ..hosted::Options::new(1, (2 * mib + 64) * MIB)
    })
    .expect("memory");
    machine.attach(0);
    let options = Options {
        fork_tables,
        ..Options::default()
    };
    let vm: Arc<Vm<Best<Hosted>>> = Vm::with_options(machine, options).expect("memory for the VM");
    let parent = Space::new(&vm).expect("a space");
    let at = parent.map(mib * MIB, Prot::READ_WRITE).expect("map");
    let mut times: Vec<Duration> = (0..rounds)
        .map(|_| {
            write(&parent, at, mib);
            let fork = || parent.fork().expect("fork");
            match case {
                "fork" => counted(fork).1,
                "exit" => counted(|| drop(fork())).1,
                "exec" => {
                    counted(|| {
                        let child = fork();
                        child.exec();
                        child
                    })
                    .1
                }
                "child" => {
                    counted(|| {
                        let child = fork();
                        write(&child, at, mib);
                        child
                    })
                    .1
                }
                "parent" => {
                    counted(|| {
                        let child = fork();
                        write(&parent, at, mib);
                        child
                    })
                    .1
                }
                other => panic!("unknown case '{other}'"),
            }
        })
        .collect();
    times.sort();
    times[times.len() / 2]
}

/// Writes each page.
fn write(space: &Space<Best<Hosted>>, at: usize, mib: usize) {
    space.activate();
    for page in 0..mib * MIB / PAGE_SIZE {
        space
            .store(at + page * PAGE_SIZE, page as u64)
            .expect("store");
    }
}
