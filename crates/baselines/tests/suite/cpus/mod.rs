//! CPUs that follow a script, one step at a time.

use hosted::Hosted;
use machine::{CpuRange, Frame, Topology};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use vm::system::Invalidation;

/// Long enough for a wait that should return to have returned.
const SOON: Duration = Duration::from_secs(20);
/// Long enough for a wait that should not return to have done so.
const A_WHILE: Duration = Duration::from_millis(15);

enum Step {
    Begin,
    Note(Frame),
    Wait(Frame),
    End,
}

/// One CPU of the script.
pub struct Cpu {
    steps: Sender<Step>,
    done: Receiver<()>,
}

impl Cpu {
    fn tell(&self, step: Step) {
        self.steps.send(step).expect("the CPU runs");
    }

    fn do_now(&self, step: Step) {
        self.tell(step);
        self.done.recv_timeout(SOON).expect("the step ends");
    }

    pub fn begin(&self) {
        self.do_now(Step::Begin);
    }

    pub fn note(&self, page: Frame) {
        self.do_now(Step::Note(page));
    }

    pub fn end(&self) {
        self.do_now(Step::End);
    }

    pub fn start_wait(&self, page: Frame) {
        self.tell(Step::Wait(page));
    }

    pub fn still_waits(&self, when: &str) -> Result<(), String> {
        match self.done.recv_timeout(A_WHILE) {
            Err(RecvTimeoutError::Timeout) => Ok(()),
            _ => Err(format!("returned {when}")),
        }
    }

    pub fn returns(&self, when: &str) -> Result<(), String> {
        let returned = self.done.recv_timeout(SOON);
        returned.map_err(|_| format!("did not return {when}"))
    }
}

thread_local! {
    static MACHINE: RefCell<Option<Hosted>> = const { RefCell::new(None) };
}

/// A new machine of five CPUs, for the calling test's next script.
pub fn machine() -> CpuRange {
    let machine = Hosted::new(5);
    let cpus = machine.cpus();
    MACHINE.set(Some(machine));
    cpus
}

/// Runs `script` with the first `N` CPUs of the machine last made by [`machine`].
pub fn with_cpus<I, const N: usize, F>(policy: &I, script: F) -> Result<(), String>
where
    I: Invalidation<Hosted>,
    F: FnOnce([Cpu; N]) -> Result<(), String>,
{
    let machine = MACHINE.take().expect("a machine was made for this script");
    // The pages' states, made when a page is first named; one step runs at a time, and a wait comes
    // after the notes that it waits for, as under the pages' locks.
    let pages = Pages::<I>::default();
    let pages = &pages;
    thread::scope(|scope| {
        let cpus = std::array::from_fn(|index| {
            let (steps, todo) = channel();
            let (finished, done) = channel();
            let machine = machine.clone();
            scope.spawn(move || {
                machine.attach(index);
                obey(policy, pages, todo, finished);
            });
            Cpu { steps, done }
        });
        script(cpus)
    })
}

/// The state of each page that has been named.
struct Pages<I: Invalidation<Hosted>>(Mutex<HashMap<Frame, Arc<I::Page>>>);

impl<I: Invalidation<Hosted>> Default for Pages<I> {
    fn default() -> Self {
        Pages(Mutex::default())
    }
}

impl<I: Invalidation<Hosted>> Pages<I> {
    fn of(&self, frame: Frame) -> Arc<I::Page> {
        let mut pages = self.0.lock().unwrap();
        Arc::clone(
            pages
                .entry(frame)
                .or_insert_with(|| Arc::new(I::Page::default())),
        )
    }
}

fn obey<I: Invalidation<Hosted>>(
    policy: &I,
    pages: &Pages<I>,
    todo: Receiver<Step>,
    finished: Sender<()>,
) {
    let mut block = None;
    for step in todo {
        match step {
            Step::Begin => block = Some(policy.begin()),
            Step::Note(frame) => {
                policy.note(block.as_ref().expect("open"), frame, &pages.of(frame));
            }
            Step::End => block = None,
            Step::Wait(frame) => {
                let reverse = policy.reverse();
                policy.wait(&reverse, frame, &pages.of(frame));
            }
        }
        // The script may have ended with an error.
        let _ = finished.send(());
    }
}
