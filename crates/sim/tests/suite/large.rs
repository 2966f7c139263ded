//! The largest possible machine.

use crate::support;

use machine::{Atomic, AtomicInt, Job, MAX_CPUS, Ordering};
use support::{Line, finish, machine, profile, shared};

/// Bytes of the process that are in memory.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages = text.split_whitespace().nth(1).and_then(|n| n.parse().ok());
    let pages: usize = pages.expect("a number of pages");
    pages * 4096
}

#[test]
fn a_thousand_cpus_count_to_a_hundred_thousand() {
    const EACH: u64 = 100;
    let before = resident();
    let profile = profile("xeon-8s")
        .with_topology(8, 64, 2)
        .expect("possible");
    assert_eq!(profile.cpus(), MAX_CPUS);
    let sim = machine(&profile, 0);
    let line = shared::<Line>(&sim);
    let job = |cpu: usize| {
        let line = line.clone();
        let job = move || {
            for _ in 0..EACH {
                line.0.fetch_add(1, Ordering::Relaxed);
            }
        };
        (cpu, Box::new(job) as Job)
    };
    let took = finish(&sim, (0..MAX_CPUS).map(job).collect());
    let each = (resident() - before) / MAX_CPUS;
    println!("{MAX_CPUS} CPUs: {took} ns, {each} bytes of host memory a CPU");
    assert!(each < 1 << 20, "{each} bytes a CPU");
    let total = sim.on_cpu(0, move || line.0.load(Ordering::Relaxed));
    assert_eq!(total, EACH * MAX_CPUS as u64);
}
