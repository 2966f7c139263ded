//! The default policy: fair, quick to wake, and no CPU idle while a task waits.

use crate::support;

use machine::{Atomic, AtomicInt, Clock, Contexts, Job, Ordering, Tasks};
use sched::Best;
use sched::best::{BONUS, SLICE};
use sim::profile::{Clocks, MachineProfile};
use sim::{Options, Progress, Sim};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use support::{
    MICRO, MILLI, STEP, best, finish, machine, quiet, shared, spread, wait_for, words, work_until,
};

/// A task's words fill two lines.
const _: () = assert!(size_of::<sched::Task<Sim, Best<Sim>>>() == 128);

/// The nanoseconds of CPU that each of `count` equal tasks gets in `time`.
fn shares(cpus: usize, count: usize, time: u64, seed: u64) -> Vec<u64> {
    shares_of(quiet(cpus, seed), count, time)
}

/// The nanoseconds of CPU that each of `count` equal tasks gets in `time`, on a machine with these
/// options.
fn shares_of(mut options: Options, count: usize, time: u64) -> Vec<u64> {
    options.spread = 10 * MICRO;
    let sim = machine::<Best<Sim>>(options);
    let work = words(&sim, count);
    let end = sim.time() + time;
    spread(&sim, count, |me| {
        let work = work.clone();
        Box::new(move || work_until(end, &work[me]))
    });
    let steps = work.iter().map(|word| word.load(Ordering::Relaxed));
    steps.map(|steps| steps * STEP).collect()
}

fn range(shares: &[u64]) -> (u64, u64) {
    let least = shares.iter().min().expect("some");
    let most = shares.iter().max().expect("some");
    (*least, *most)
}

#[test]
fn equal_tasks_on_one_cpu_get_equal_time() {
    for count in [2, 3, 7] {
        let (least, most) = range(&shares(1, count, 200 * MILLI, 0));
        assert!(most - least <= 2 * SLICE, "{count}: {least} to {most}");
        assert!(most * count as u64 >= 195 * MILLI, "{count}: {most}");
    }
}

#[test]
fn equal_tasks_on_each_cpu_get_equal_time() {
    for seed in 0..8 {
        let shares = shares(4, 12, 300 * MILLI, seed);
        let (least, most) = range(&shares);
        assert!(most - least <= 5 * SLICE, "{shares:?}");
    }
}

/// Five tasks on four CPUs: the pair that shares a CPU is not always the same.
#[test]
fn tasks_take_turns_at_sharing_a_cpu() {
    let time = 2_000 * MILLI;
    for seed in 0..4 {
        let shares = shares(4, 5, time, seed);
        let (least, most) = range(&shares);
        let fair = time * 4 / 5;
        assert!(least > fair * 8 / 10, "{shares:?}");
        assert!(most < fair * 12 / 10, "{shares:?}");
    }
}

#[test]
fn a_core_runs_faster_while_others_are_idle() {
    let time = 20 * MILLI;
    for (count, speed) in [(1, 2.0), (2, 1.5), (3, 1.0)] {
        let mut options = quiet(4, 0);
        options.profile.core.clocks = Clocks(vec![(1, 4.0), (3, 2.0)]);
        for share in shares_of(options, count, time) {
            let found = share as f64 / time as f64;
            assert!((found / speed - 1.0).abs() < 0.05, "{count}: {found}");
        }
    }
}

/// Longest time from `wake` to running, of a task that sleeps while hogs compute.
#[test]
fn a_sleeper_preempts_a_task_that_computes() {
    let sim = best(1);
    let end = sim.time() + 100 * MILLI;
    let (work, late) = (words(&sim, 2), words(&sim, 1));
    let hog = |me: usize| -> (usize, Job) {
        let work = work.clone();
        (0, Box::new(move || work_until(end, &work[me])))
    };
    let worst = late.clone();
    let sleeper = move || {
        while Sim::now() < end {
            let wake = Sim::now() + MILLI;
            Sim::sleep_until(wake);
            let most = worst[0].load(Ordering::Relaxed).max(Sim::now() - wake);
            worst[0].store(most, Ordering::Relaxed);
        }
    };
    finish(&sim, vec![hog(0), hog(1), (0, Box::new(sleeper))]);
    let late = late[0].load(Ordering::Relaxed);
    assert!(late < 50 * MICRO, "{late} ns late");
}

/// Longest time from an unpark by a task that computes until the woken task runs.
#[test]
fn a_woken_task_preempts_its_waker() {
    let sim = best(1);
    let name = shared(&sim, || Mutex::new(None));
    let (told, late) = (words(&sim, 1), words(&sim, 1));
    let (worst, word, tell) = (late.clone(), told.clone(), name.clone());
    let waiter = move || {
        *tell.lock().expect("no panic") = Some(Sim::current_task());
        for round in 1..=10 {
            while word[0].load(Ordering::Acquire) >> 40 < round {
                Sim::park();
            }
            let sent = word[0].load(Ordering::Acquire) & ((1 << 40) - 1);
            let most = worst[0].load(Ordering::Relaxed).max(Sim::now() - sent);
            worst[0].store(most, Ordering::Relaxed);
        }
    };
    let waker = move || {
        for round in 1..=10 {
            sim::compute(8.0 * MILLI as f64);
            told[0].store(round << 40 | Sim::now(), Ordering::Release);
            let name = name.lock().expect("no panic").expect("it waits");
            Sim::unpark(name);
            sim::compute(2.0 * MILLI as f64);
        }
    };
    finish(&sim, vec![(0, Box::new(waiter)), (0, Box::new(waker))]);
    let late = late[0].load(Ordering::Relaxed);
    assert!(late > 0 && late < 50 * MICRO, "{late} ns late");
}

/// Making a task costs its maker nothing of its slice.
#[test]
fn a_new_task_does_not_preempt_its_maker() {
    let sim = best(1);
    let lost = words(&sim, 1);
    let count = lost.clone();
    let maker = move || {
        for _ in 0..20 {
            // Another part of a slice of 3 ms each time.
            sim::compute(1.3 * MILLI as f64);
            let before = Sim::now();
            sim::spawn(Box::new(|| ()));
            sim::compute(10.0 * MICRO as f64);
            count[0].fetch_add(u64::from(Sim::now() - before > MILLI), Ordering::Relaxed);
        }
    };
    let other = || sim::compute(100.0 * MILLI as f64);
    finish(&sim, vec![(0, Box::new(maker)), (0, Box::new(other))]);
    let lost = lost[0].load(Ordering::Relaxed);
    assert!(lost < 3, "the CPU was lost {lost} times of 20");
}

/// Kernels set a flag (`need_resched`), and ask on the way back to the program.
#[test]
fn a_cpu_that_interrupts_itself_pays_for_no_interrupt() {
    let sim = best(2);
    let ipi = MachineProfile::named("freebsd-96").expect("built in").ipi;
    let spent = words(&sim, 2);
    let costs = spent.clone();
    let job = move || {
        for cpu in 0..2 {
            let before = Sim::now();
            Sim::kick(cpu);
            Sim::safe_point();
            costs[cpu].store(Sim::now() - before, Ordering::Relaxed);
        }
    };
    finish(&sim, vec![(0, Box::new(job))]);
    let [own, other] = [0, 1].map(|cpu| 1000 * spent[cpu].load(Ordering::Relaxed));
    assert!(own < ipi.handler, "{own} ps");
    assert!(other >= ipi.send, "{other} ps");
}

/// Two tasks that have slept yield until a third one has run, which has run for long before.
#[test]
fn a_task_that_yields_goes_behind_all_others() {
    let sim = best(1);
    let (done, yields) = (words(&sim, 1), words(&sim, 2));
    let set = done.clone();
    let third = move || {
        sim::compute(20.0 * MILLI as f64);
        Sim::yield_now();
        set[0].store(1, Ordering::Release);
    };
    let yielder = |me: usize| -> (usize, Job) {
        let (done, yields) = (done.clone(), yields.clone());
        let job = move || {
            Sim::sleep_until(Sim::now() + 10 * MILLI);
            while done[0].load(Ordering::Acquire) == 0 {
                yields[me].fetch_add(1, Ordering::Relaxed);
                Sim::yield_now();
            }
        };
        (0, Box::new(job))
    };
    finish(&sim, vec![yielder(0), yielder(1), (0, Box::new(third))]);
    // The third one makes way twice in a slice at most.
    for count in yields.iter().map(|word| word.load(Ordering::Relaxed)) {
        assert!((1..50).contains(&count), "{count} yields");
    }
}

/// A task that has run for long does not get the CPU back by a short sleep.
#[test]
fn a_short_sleep_is_no_advantage() {
    let sim = best(1);
    let end = sim.time() + 300 * MILLI;
    let work = words(&sim, 2);
    let (hog, cheat) = (work.clone(), work.clone());
    let hog = move || work_until(end, &hog[0]);
    let cheat = move || {
        let mut steps = 0;
        while Sim::now() < end {
            for _ in 0..12 {
                sim::compute(STEP as f64);
                steps += 1;
            }
            Sim::sleep_until(Sim::now() + 2 * MICRO);
        }
        cheat[1].store(steps, Ordering::Relaxed);
    };
    finish(&sim, vec![(0, Box::new(hog)), (0, Box::new(cheat))]);
    let [hog, cheat] = [0, 1].map(|i| work[i].load(Ordering::Relaxed));
    assert!(cheat < hog * 11 / 10, "{cheat} steps against {hog}");
}

/// All tasks begin on CPU 0; as many CPUs compute them.
#[test]
fn no_task_waits_while_a_cpu_idles() {
    for (cpus, tasks) in [(2, 2), (8, 8), (48, 48)] {
        let sim = best(cpus);
        let job = |_| -> (usize, Job) { (0, Box::new(|| sim::compute(40.0 * MILLI as f64))) };
        let time = finish(&sim, (0..tasks).map(job).collect());
        assert!(time < 40 * MILLI + 2 * SLICE, "{cpus} CPUs: {time}");
    }
}

/// A tick looks at 128 CPUs, and at others the next time.
#[test]
fn no_task_waits_while_a_far_cpu_idles() {
    let sim = best(384);
    let job = |_| -> (usize, Job) { (0, Box::new(|| sim::compute(40.0 * MILLI as f64))) };
    let time = finish(&sim, (0..384).map(job).collect());
    assert!(time < 40 * MILLI + 12 * SLICE, "{time}");
}

/// Jobs of unequal lengths: a CPU that is done takes from others.
#[test]
fn a_cpu_that_is_done_helps_others() {
    let sim = best(4);
    // The long ones all begin on CPU 0.
    let job = |index: usize| -> (usize, Job) {
        let length = if index.is_multiple_of(4) { 10 } else { 1 } * MILLI;
        (index % 4, Box::new(move || sim::compute(length as f64)))
    };
    let time = finish(&sim, (0..32).map(job).collect());
    let work = 8 * (10 + 3) * MILLI / 4;
    assert!(time < work + 2 * SLICE + 10 * MILLI, "{time} for {work}");
}

/// An idle CPU takes a task at once, not only at the tick of the CPU that has too many.
#[test]
fn a_cpu_that_is_done_takes_a_task_at_once() {
    let sim = best(2);
    let ended = words(&sim, 1);
    let compute =
        |cpu: usize, time: f64| -> (usize, Job) { (cpu, Box::new(move || sim::compute(time))) };
    let end = ended.clone();
    let second = move || {
        sim::compute(500_000.0);
        end[0].store(Sim::now(), Ordering::Relaxed);
    };
    let begun = sim.time();
    let jobs = vec![
        compute(1, 500_000.0),
        compute(0, 9e6),
        (0, Box::new(second) as Job),
    ];
    finish(&sim, jobs);
    let time = ended[0].load(Ordering::Relaxed) - begun;
    assert!(time < 1_100 * MICRO, "{time}");
}

/// After a long sleep a task is ahead of the others, but not for long.
#[test]
fn a_long_sleep_is_not_worth_more_than_the_bonus() {
    let sim = best(1);
    let end = sim.time() + 300 * MILLI;
    let work = words(&sim, 2);
    let longest = words(&sim, 1);
    let (gap, other) = (longest.clone(), work.clone());
    let hog = move || {
        let mut last = Sim::now();
        while last < end {
            sim::compute(STEP as f64);
            let now = Sim::now();
            gap[0].store(
                gap[0].load(Ordering::Relaxed).max(now - last),
                Ordering::Relaxed,
            );
            last = now;
        }
    };
    let sleeper = move || {
        Sim::sleep_until(end - 100 * MILLI);
        work_until(end, &other[0]);
    };
    finish(&sim, vec![(0, Box::new(hog)), (0, Box::new(sleeper))]);
    let longest = longest[0].load(Ordering::Relaxed);
    assert!(longest >= BONUS, "{longest}: the sleeper has no advantage");
    assert!(longest <= BONUS + 2 * SLICE, "{longest}");
}

/// Two tasks that wake each other find two CPUs.
#[test]
fn a_woken_task_goes_to_an_idle_cpu() {
    let sim = best(4);
    let name = shared(&sim, || Mutex::new(None));
    let (told, tell) = (words(&sim, 2), name.clone());
    let word = told.clone();
    let helper = move || {
        *tell.lock().expect("no panic") = Some(Sim::current_task());
        for round in 1..=10 {
            wait_for(&word[0], round);
            sim::compute(MILLI as f64);
            word[1].store(round, Ordering::Release);
        }
    };
    let master = move || {
        Sim::sleep_until(Sim::now() + 100 * MICRO);
        for round in 1..=10 {
            told[0].store(round, Ordering::Release);
            let name = name.lock().expect("no panic").expect("it waits");
            Sim::unpark(name);
            sim::compute(MILLI as f64);
            while told[1].load(Ordering::Acquire) < round {
                sim::compute(MICRO as f64);
            }
        }
    };
    // Both begin on CPU 0.
    let time = finish(&sim, vec![(0, Box::new(helper)), (0, Box::new(master))]);
    assert!(time < 11 * MILLI, "{time}: they have shared a CPU");
}

/// A CPU that has begun to run is not taken for an idle one.
#[test]
fn a_woken_task_leaves_a_cpu_to_its_new_task() {
    let sim = best(2);
    let name = shared(&sim, || Mutex::new(None));
    let tell = name.clone();
    let waiter = move || {
        *tell.lock().expect("no panic") = Some(Sim::current_task());
        Sim::park();
        sim::compute(MILLI as f64);
    };
    sim.start_on(vec![(1, Box::new(waiter))]);
    assert_ne!(sim.run(sim.time() + MILLI), Progress::Finished);
    let new = move || {
        sim::compute(MILLI as f64);
        Sim::unpark(name.lock().expect("no panic").expect("it waits"));
        sim::compute(2.0 * MILLI as f64);
    };
    let time = finish(&sim, vec![(1, Box::new(new))]);
    assert!(time < 3_100 * MICRO, "{time}: CPU 0 was idle");
}

#[test]
fn sleepers_wake_in_time_and_in_order() {
    const TASKS: usize = 40;
    for cpus in [1, 4] {
        let sim = best(cpus);
        let order: Arc<Mutex<Vec<usize>>> = shared(&sim, Mutex::default);
        let late = words(&sim, 1);
        spread(&sim, TASKS, |me| {
            let (order, late) = (order.clone(), late.clone());
            Box::new(move || {
                // Not in the order in which they go to sleep.
                let wake = 2 * MILLI + (me * 7 % TASKS) as u64 * 100 * MICRO;
                Sim::sleep_until(wake);
                let now = Sim::now();
                assert!(now >= wake, "woken too early");
                late[0].store(
                    late[0].load(Ordering::Relaxed).max(now - wake),
                    Ordering::Relaxed,
                );
                order.lock().expect("no panic").push(me * 7 % TASKS);
            })
        });
        let late = late[0].load(Ordering::Relaxed);
        assert!(late < 20 * MICRO, "{cpus} CPUs: {late} ns late");
        let order = order.lock().expect("no panic").clone();
        assert!(order.iter().copied().eq(0..TASKS), "{cpus} CPUs: {order:?}");
    }
}

/// A task that computes alone needs no ticks, and the CPUs without a task do nothing.
#[test]
fn nothing_happens_while_nothing_is_to_be_decided() {
    let sim = machine::<Best<Sim>>(quiet(8, 0));
    let accesses = |time: u64| {
        let before = sim.counts().accesses;
        finish(&sim, vec![(3, Box::new(move || sim::compute(time as f64)))]);
        sim.counts().accesses - before
    };
    // The machine has had load before.
    spread(&sim, 20, |_| Box::new(|| sim::compute(20.0 * MILLI as f64)));
    accesses(MILLI);
    assert_eq!(accesses(MILLI), accesses(50 * MILLI));
}

/// The lines that one CPU has written and another one has touched, from 5 to 10 ms.
fn common_lines(sim: &Sim, jobs: Vec<(usize, Job)>) -> Vec<String> {
    sim.start_on(jobs);
    assert_eq!(sim.run(5 * MILLI), Progress::Running);
    sim.trace();
    assert_eq!(sim.run(10 * MILLI), Progress::Running);
    let cpus = sim.traced();
    assert_eq!(sim.run(1_000 * MILLI), Progress::Finished);
    let mut users: BTreeMap<usize, (usize, bool, String)> = BTreeMap::new();
    for access in cpus.iter().flatten() {
        let user = users.entry(access.line).or_default();
        user.0 += 1;
        user.1 |= access.writes > 0;
        user.2.clone_from(&access.what);
    }
    assert!(users.len() > 4 * cpus.len(), "too little was traced");
    let common = users.into_values().filter(|user| user.0 > 1 && user.1);
    common.map(|user| user.2).collect()
}

#[test]
fn tasks_that_sleep_on_different_cpus_write_no_common_line() {
    let sim = best(4);
    let job = |cpu| -> (usize, Job) {
        let job = || {
            while Sim::now() < 12 * MILLI {
                Sim::sleep_until(Sim::now() + 20 * MICRO);
                sim::compute(5_000.0);
            }
        };
        (cpu, Box::new(job))
    };
    assert_eq!(common_lines(&sim, (0..4).map(job).collect()), [""; 0]);
}

/// Two tasks on each CPU, which wake each other in turn.
#[test]
fn tasks_that_wake_each_other_on_different_cpus_write_no_common_line() {
    const CPUS: usize = 4;
    type Own = sync::Padded<(support::Word, Mutex<Option<sim::Task>>)>;
    let sim = best(CPUS);
    let pairs = shared(&sim, || {
        let own = |_| sync::Padded((support::Word::new(0), Mutex::new(None)));
        (0..2 * CPUS).map(own).collect::<Vec<Own>>()
    });
    let job = |me: usize| -> (usize, Job) {
        let pairs = pairs.clone();
        let (own, other) = (me, (me + CPUS) % (2 * CPUS));
        let job = move || {
            let (own, other) = (&pairs[own].0, &pairs[other].0);
            *own.1.lock().expect("no panic") = Some(Sim::current_task());
            let wake = |round| {
                other.0.store(round, Ordering::Release);
                let name = *other.1.lock().expect("no panic");
                name.into_iter().for_each(Sim::unpark);
            };
            for round in 1..4_000 {
                if me >= CPUS {
                    wait_for(&own.0, round);
                    sim::compute(500.0);
                }
                wake(round);
                if me < CPUS {
                    wait_for(&own.0, round);
                }
            }
        };
        (me % CPUS, Box::new(job))
    };
    let jobs = (0..2 * CPUS).map(job).collect();
    assert_eq!(common_lines(&sim, jobs), [""; 0]);
}
