//! The tasks' time, broken down.

use super::{Recording, seconds};
use crate::account::StackId;
use crate::locks::{Off, own_function};
use crate::symbols::{Named, plain};
use crate::unwind::Word;
use profile::{By, Kind, Part, Parts};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// How a time was spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spent {
    Busy,
    Waiting,
    Idle,
}

/// The rows of a breakdown, by name.
type Rows = BTreeMap<String, Part>;

impl Recording {
    /// Breaks the tasks' time down in each way there is.
    pub fn parts(&self) -> Parts {
        let mut rows: BTreeMap<By, Rows> = BTreeMap::new();
        let mut add = |by: By, name: String, spent: Spent, time: f64| {
            let row = rows.entry(by).or_default().entry(name).or_default();
            match spent {
                Spent::Busy => row.busy += time,
                Spent::Waiting => row.waits += time,
                Spent::Idle => row.idle += time,
            }
        };
        let words = self.main_words();
        for (id, spent, time) in self.times() {
            let stack = &self.seen.stacks[id as usize];
            let wanted = self.off.get(&id).and_then(Off::wanted);
            let futex = wanted.filter(|wanted| wanted.kind == Kind::Futex && spent != Spent::Busy);
            let call = match futex {
                Some(wanted) => {
                    let name = self.named(wanted, words.get(&id).copied());
                    on_behalf(&name, stack)
                }
                None => call(stack, spent),
            };
            add(By::Call, call, spent, time);
            for function in functions(stack) {
                add(By::Function, function.to_owned(), spent, time);
            }
            add(
                By::Thread,
                thread(&stack.process, stack.thread.as_deref()),
                spent,
                time,
            );
            add(By::Process, stack.process.clone(), spent, time);
        }
        for (sleep, &time) in &self.seen.totals.early {
            let spent = if self.is_idle(sleep) {
                Spent::Idle
            } else {
                Spent::Waiting
            };
            let time = seconds(time);
            let function = match plain(&sleep.function) {
                "" => "[kernel]",
                function => function,
            };
            let call = format!("{function} since before the recording");
            add(By::Call, call, spent, time);
            add(
                By::Thread,
                thread(&sleep.process, Some(&sleep.thread)),
                spent,
                time,
            );
            add(By::Process, sleep.process.clone(), spent, time);
        }
        let weight = self.weight();
        for (&cpu, &samples) in &self.seen.totals.cpus {
            let time = samples as f64 * weight;
            add(By::Cpu, format!("CPU {cpu}"), Spent::Busy, time);
        }
        rows.into_iter()
            .map(|(by, rows)| (by, sorted(rows)))
            .collect()
    }

    /// The word of memory at which each stack slept longest.
    fn main_words(&self) -> HashMap<StackId, Word> {
        let mut longest: HashMap<StackId, (u64, Word)> = HashMap::new();
        for (&(stack, word), tally) in &self.seen.totals.words {
            let most = longest.entry(stack).or_insert((0, word));
            *most = (*most).max((tally.total, word));
        }
        let words = longest.into_iter();
        words.map(|(stack, (_, word))| (stack, word)).collect()
    }

    /// The time of each stack that was seen.
    fn times(&self) -> impl Iterator<Item = (StackId, Spent, f64)> {
        let totals = &self.seen.totals;
        let weight = self.weight();
        let busy = totals.samples.iter();
        let busy = busy.map(move |(&stack, &count)| (stack, Spent::Busy, count as f64 * weight));
        let asleep = totals.asleep.iter().map(|(&stack, tally)| {
            let spent = match self.off[&stack].is_idle() {
                true => Spent::Idle,
                false => Spent::Waiting,
            };
            (stack, spent, seconds(tally.total))
        });
        let queued = totals.preempted.iter();
        let queued = queued.map(|(&stack, tally)| (stack, Spent::Waiting, seconds(tally.total)));
        busy.chain(asleep).chain(queued)
    }
}

fn sorted(rows: Rows) -> Vec<Part> {
    let named = |(name, row): (String, Part)| Part { name, ..row };
    let mut rows: Vec<Part> = rows.into_iter().map(named).collect();
    let cost = |part: &Part| (part.active(), part.idle);
    rows.sort_by(|a, b| {
        cost(b)
            .partial_cmp(&cost(a))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    rows
}

fn thread(process: &str, thread: Option<&str>) -> String {
    format!("{process}/{}", thread.unwrap_or(process))
}

/// The distinct user functions of a stack.
fn functions(stack: &Named) -> BTreeSet<&str> {
    let names = stack.user.iter().map(|function| function.name.as_str());
    names.collect()
}

/// `munmap from f`: why a stack was in the kernel, and the program's function that it was there
/// for. A program that is interrupted and then waits for a CPU was not in the kernel.
fn call(stack: &Named, spent: Spent) -> String {
    let entry = stack.kernel.iter().rev().find_map(|frame| entry(frame));
    let is_interrupted = matches!(spent, Spent::Waiting) && !stack.user.is_empty();
    let what = match entry {
        None | Some(INTERRUPTS) if stack.kernel.is_empty() || is_interrupted => "user code",
        // The function of the call itself may be inlined, or left for another.
        None => outermost(&stack.kernel),
        Some(what) => what,
    };
    on_behalf(what, stack)
}

/// `what` with the program's function that it is for.
fn on_behalf(what: &str, stack: &Named) -> String {
    match own_function(&stack.user) {
        Some(function) => format!("{what} from {function}"),
        None => what.to_owned(),
    }
}

/// The outermost function of the kernel that does not just enter it.
fn outermost(frames: &[String]) -> &str {
    const ENTRIES: [&str; 4] = ["entry_", "do_syscall_", "x64_sys_call", "__do_fast_syscall"];
    let enters = |frame: &&String| ENTRIES.iter().any(|entry| frame.starts_with(entry));
    let inner = frames.iter().rev().find(|frame| !enters(frame));
    inner.map_or("the kernel", String::as_str)
}

const INTERRUPTS: &str = "interrupts";

/// The call or fault that enters the kernel in this function.
fn entry(function: &str) -> Option<&str> {
    const CALLS: [&str; 7] = [
        "__x64_sys_",
        "__ia32_sys_",
        "__arm64_sys_",
        "__riscv_sys_",
        "__do_sys_",
        "__se_sys_",
        "ksys_",
    ];
    const OTHERS: [(&str, &str); 8] = [
        ("asm_exc_page_fault", "page faults"),
        ("exc_page_fault", "page faults"),
        ("do_user_addr_fault", "page faults"),
        ("do_page_fault", "page faults"),
        ("do_mem_abort", "page faults"),
        ("asm_sysvec_", INTERRUPTS),
        ("asm_common_interrupt", INTERRUPTS),
        ("ret_from_fork", "the kernel"),
    ];
    let call = CALLS
        .iter()
        .find_map(|prefix| function.strip_prefix(prefix));
    call.or_else(|| {
        let other = OTHERS
            .iter()
            .find(|(prefix, _)| function.starts_with(prefix));
        other.map(|&(_, what)| what)
    })
}
