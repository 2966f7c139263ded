//! The limited counter against a plain one, and on threads.

use hosted::Hosted;
use machine::{Execute, Job, Topology};
use proptest::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use sync::counter::Limited;

/// A request to one CPU to change a counter; the answer is true if it was granted.
#[derive(Clone, Copy, Debug)]
enum Op {
    Reserve(u64),
    Release(u64),
}

type Step = (Arc<Limited<Hosted>>, Op);

/// CPUs that take their steps one at a time.
struct Cpus {
    machine: Hosted,
    ask: Vec<Sender<Step>>,
    answer: Receiver<bool>,
}

impl Cpus {
    fn new(count: usize) -> Self {
        let machine = Hosted::new(count);
        let (reply, answer) = channel();
        let start = |cpu| {
            let (ask, steps) = channel::<Step>();
            let (machine, reply) = (machine.clone(), reply.clone());
            thread::spawn(move || {
                machine.attach(cpu);
                for (counter, op) in steps {
                    let done = match op {
                        Op::Reserve(n) => counter.reserve(n),
                        Op::Release(n) => {
                            counter.release(n);
                            true
                        }
                    };
                    let _ = reply.send(done);
                }
            });
            ask
        };
        let ask = (0..count).map(start).collect();
        Cpus {
            machine,
            ask,
            answer,
        }
    }

    fn run(&self, cpu: usize, counter: &Arc<Limited<Hosted>>, op: Op) -> bool {
        self.ask[cpu].send((counter.clone(), op)).expect("it runs");
        self.answer.recv().expect("steps do not panic")
    }
}

fn step() -> impl Strategy<Value = (usize, Op)> {
    let op = prop_oneof![
        3 => (0u64..40).prop_map(Op::Reserve),
        2 => (0u64..40).prop_map(Op::Release),
    ];
    (0usize..3, op)
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(200)
    })]
    /// Whatever the stocks hold, the answers are those of one plain counter.
    #[test]
    fn answers_as_a_plain_counter(
        limit in 0u64..100,
        cap in 0u64..50,
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let cpus = Cpus::new(3);
        let counter = Arc::new(Limited::with_stock(cpus.machine.cpus(), limit, cap));
        let mut used = 0;
        for (cpu, op) in steps {
            match op {
                Op::Reserve(n) => {
                    let fits = n <= limit - used;
                    prop_assert_eq!(cpus.run(cpu, &counter, op), fits);
                    used += if fits { n } else { 0 };
                }
                Op::Release(n) => {
                    let n = n.min(used);
                    cpus.run(cpu, &counter, Op::Release(n));
                    used -= n;
                }
            }
            prop_assert_eq!(counter.used(), used);
        }
    }
}

/// Each CPU reserves and releases amounts of its own; never is more than the limit
/// out, and at the end nothing.
#[test]
fn never_more_than_the_limit() {
    const LIMIT: u64 = 50;
    for cap in [0, 3, 25] {
        let machine = Hosted::new(4);
        let counter = Arc::new(Limited::<Hosted>::with_stock(machine.cpus(), LIMIT, cap));
        let out = Arc::new(AtomicI64::new(0));
        let refused = Arc::new(AtomicUsize::new(0));
        let job = |cpu: u64| {
            let (counter, out, refused) = (counter.clone(), out.clone(), refused.clone());
            Box::new(move || {
                // All go on until the limit was met, in whatever order the host lets them run.
                let met = || refused.load(Ordering::Relaxed) > 0;
                for round in (0u64..).take_while(|&round| round < 20_000 || !met()) {
                    let n = (round * 7 + cpu * 13) % 24;
                    if counter.reserve(n) {
                        // Counted after the reservation and until before the release.
                        let now = out.fetch_add(n as i64, Ordering::SeqCst) + n as i64;
                        assert!(now <= LIMIT as i64, "{now} units out");
                        if round.is_multiple_of(64) {
                            thread::yield_now();
                        }
                        out.fetch_sub(n as i64, Ordering::SeqCst);
                        counter.release(n);
                    } else {
                        refused.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }) as Job
        };
        machine.execute((0..4).map(job).collect());
        machine.on_cpu(0, || {
            assert_eq!(counter.used(), 0);
            assert!(counter.reserve(LIMIT) && !counter.reserve(1));
        });
    }
}

/// There are as many units as CPUs that request one each: no request is ever refused, wherever the
/// units are.
#[test]
fn never_refused_while_room_is_left() {
    for cap in [0, 1, 4] {
        let machine = Hosted::new(4);
        let counter = Arc::new(Limited::<Hosted>::with_stock(machine.cpus(), 4, cap));
        let job = || {
            let counter = counter.clone();
            Box::new(move || {
                for _ in 0..20_000 {
                    assert!(counter.reserve(1), "a unit was free");
                    counter.release(1);
                }
            }) as Job
        };
        machine.execute((0..4).map(|_| job()).collect());
    }
}

#[test]
fn odd_amounts() {
    let machine = Hosted::new(2);
    let counter = Limited::<Hosted>::new(machine.cpus(), u64::MAX);
    machine.on_cpu(0, || {
        assert!(counter.limit() < u64::MAX && !counter.reserve(u64::MAX));
        assert!(counter.reserve(counter.limit()) && counter.reserve(0) && !counter.reserve(1));
        counter.release(counter.limit());
        assert_eq!(counter.used(), 0);
    });
    let nothing = Limited::<Hosted>::new(machine.cpus(), 0);
    machine.on_cpu(0, || assert!(nothing.reserve(0) && !nothing.reserve(1)));
}

/// Use above the limit stays; nothing is granted until it fits, and then all that fits.
#[test]
fn above_the_limit_from_the_beginning() {
    let machine = Hosted::new(2);
    let counter = Limited::<Hosted>::try_with_used(machine.cpus(), 10, 13).expect("a counter");
    machine.on_cpu(0, || {
        assert_eq!(counter.used(), 13);
        assert!(!counter.reserve(1));
        counter.release(3);
        assert!(!counter.reserve(1) && counter.reserve(0));
        counter.release(2);
        assert!(!counter.reserve(3) && counter.reserve(2) && !counter.reserve(1));
        counter.release(10);
        assert_eq!(counter.used(), 0);
    });
    let below = Limited::<Hosted>::try_with_used(machine.cpus(), 10, 4).expect("a counter");
    machine.on_cpu(1, || {
        assert!(below.used() == 4 && !below.reserve(7) && below.reserve(6))
    });
}

/// A release of more than is reserved changes nothing, so that the limit holds afterwards.
#[test]
fn releasing_too_much_is_refused() {
    for cap in [0, 20] {
        let machine = Hosted::new(1);
        let counter = Limited::<Hosted>::with_stock(machine.cpus(), 100, cap);
        machine.on_cpu(0, || {
            assert!(counter.reserve(50));
            let released = catch_unwind(AssertUnwindSafe(|| counter.release(60)));
            let panic = released.expect_err("more than is reserved");
            let text = panic.downcast_ref::<&str>().expect("a text");
            assert!(text.contains("more released than was reserved"), "{text}");
            assert_eq!(counter.used(), 50);
            assert!(!counter.reserve(51) && counter.reserve(50), "the limit");
        });
    }
}
