//! The attribution of a simulated run's time.

use machine::Topology;
use sim::{LineUse, Sim};
use std::collections::BTreeMap;
use sync::watch::profile;

/// A part of the tasks' time.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    /// Its cause: a class of locks, a line, a call site.
    pub what: String,
    /// The part, from 0 to 1: waiting for a lock, or for a line.
    pub wait: f64,
    /// Of a lock, the part it was held after a wait; of a line, the part its own transfers took.
    pub hold: f64,
    /// Of a line, the part that tasks spun on it.
    pub spin: f64,
    /// The number of acquisitions, or of transfers.
    pub count: u64,
    /// Of a lock, the part of the acquisitions that had to wait.
    pub contended: f64,
}

impl Share {
    /// All of it.
    pub fn cost(&self) -> f64 {
        self.wait + self.hold + self.spin
    }
}

/// Where the tasks' time went.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribution {
    /// The time that shares are of, in seconds.
    pub whole: f64,
    /// Waiting for lines.
    pub lines_wait: f64,
    pub spinning: f64,
    /// In interrupts that flush translations: handling them, and waiting until others have.
    pub interrupts: f64,
    /// Waiting for the bandwidth of a socket's memory.
    pub memory: f64,
    pub blocked: f64,
    /// Ready, waiting for a CPU.
    pub queued: f64,
    /// On a CPU, waiting for nothing. A parent's wait and its child's work overlap, so that with a
    /// scheduler all these may add up to more than 1.
    pub own: f64,
    /// Classes of locks, the most waited for first.
    pub locks: Vec<Share>,
    /// Call sites of locks, the same.
    pub callers: Vec<Share>,
    /// Lines, the most waited for first.
    pub lines: Vec<Share>,
    /// All lines by the objects that they are a part of, the most waited for first.
    pub objects: Vec<Share>,
}

/// A wait below this part of the time is no bottleneck.
const BOTTLENECK: f64 = 0.1;
/// Rows of each kind that are kept.
const ROWS: usize = 8;

impl Attribution {
    /// Of a run over `span` nanoseconds, from the machine's accounts and the lock profile. Shares
    /// are of the time of `tasks` tasks, without waits that were refunded and not made up for;
    /// without a number, where tasks start others and wait for
    /// them, of the time for which tasks were active: on a CPU, waiting for one, or for a lock.
    pub fn of(machine: &Sim, rows: &[profile::Row], tasks: Option<usize>, span: u64) -> Self {
        let times = machine.times();
        let sum = |time: fn(&sim::Times) -> u64| {
            times
                .iter()
                .map(|one| time(one) as f64 / 1000.0)
                .sum::<f64>()
        };
        let on_cpus = machine.cpus().len() as f64 * span as f64 - sum(|times| times.parked);
        let off = machine.is_scheduled().then(|| machine.off());
        let [blocked, queued] = off.map_or([sum(|times| times.parked), 0.0], |off| {
            [off.blocked, off.queued].map(|time| time as f64 / 1000.0)
        });
        let (all, blocked) = match tasks {
            Some(tasks) => (tasks as f64 * span as f64, blocked),
            None => {
                // The rest of the time off CPUs is a sleep that is no lock's.
                let waits: f64 = rows.iter().map(|row| row.wait as f64).sum();
                let by_locks = (waits - sum(|times| times.spinning)).clamp(0.0, blocked);
                ((on_cpus + queued + by_locks).max(1.0), by_locks)
            }
        };
        let lost = machine.lost() as f64;
        let all = (all - lost).max(1.0);
        let part = |time: fn(&sim::Times) -> u64| sum(time) / all;
        let lock = |what: String, row: &profile::Row| Share {
            what,
            wait: row.wait as f64 / all,
            hold: row.hold as f64 / all,
            spin: 0.0,
            count: row.acquisitions,
            contended: row.contended as f64 / row.acquisitions.max(1) as f64,
        };
        let callers = rows.iter().map(|row| {
            let file = row
                .file
                .rsplit_once("crates/")
                .map_or(row.file, |(_, file)| file);
            lock(format!("{} at {file}:{}", row.class, row.line), row)
        });
        let (lines_wait, spinning) = (part(|times| times.fetching), part(|times| times.spinning));
        let (interrupts, memory) = (part(|times| times.interrupted), part(|times| times.memory));
        let present = match &off {
            Some(_) => (on_cpus - lost) / all,
            None => 1.0 - blocked / all,
        };
        let line = |what: &str, line: &LineUse| Share {
            what: what.to_owned(),
            wait: line.waited as f64 / all,
            hold: line.moved as f64 / all,
            spin: line.spun as f64 / all,
            count: line.transfers,
            contended: 0.0,
        };
        let used = machine.lines();
        Attribution {
            whole: all / 1e9,
            lines_wait,
            spinning,
            interrupts,
            memory,
            blocked: blocked / all,
            queued: queued / all,
            own: present - lines_wait - spinning - interrupts - memory,
            callers: worst(callers.collect()),
            locks: worst(by_class(rows.iter().map(|row| lock(row.class.into(), row)))),
            objects: sorted(by_class(used.iter().map(|one| line(one.object, one)))),
            lines: worst(by_class(used.iter().map(|one| line(&one.what, one)))),
        }
    }

    /// One sentence that names the bottleneck. A lock's line may say more than its waits.
    pub fn bottleneck(&self) -> String {
        let percent = |part: f64| format!("{:.0} %", 100.0 * part);
        let line = self.lines.first().filter(|line| line.cost() >= BOTTLENECK);
        let lock = self.locks.first().filter(|lock| lock.wait >= BOTTLENECK);
        let found = lock.map_or(0.0, |lock| lock.wait);
        let found = found.max(line.map_or(0.0, Share::cost));
        let hardware = [
            ("the interrupts that flush translations", self.interrupts),
            ("the bandwidth of memory", self.memory),
        ];
        let [one, other] = hardware;
        let (what, share) = if other.1 > one.1 { other } else { one };
        if share >= BOTTLENECK && share > found {
            return format!("{what}: {} of the tasks' time", percent(share));
        }
        match (lock, line) {
            (Some(lock), Some(line)) if line.cost() > lock.wait => format!(
                "the lock \"{}\"; {} of the tasks' time goes at the line of {}",
                lock.what,
                percent(line.cost()),
                line.what
            ),
            (Some(lock), _) => format!(
                "the lock \"{}\": waiting for it takes {} of the tasks' time",
                lock.what,
                percent(lock.wait)
            ),
            (None, Some(line)) => format!(
                "the line of {}: {} of the tasks' time goes there",
                line.what,
                percent(line.cost())
            ),
            (None, None) if self.queued >= BOTTLENECK => format!(
                "the CPUs: {} of the tasks' time waits for one, {} is its own work",
                percent(self.queued),
                percent(self.own)
            ),
            (None, None) if self.blocked >= BOTTLENECK => format!(
                "tasks that sleep: {} of the tasks' time is blocked, {} is its own work",
                percent(self.blocked),
                percent(self.own)
            ),
            (None, None) => format!(
                "nothing; {} of the tasks' time is its own work",
                percent(self.own)
            ),
        }
    }
}

/// Adds up shares of the same name.
fn by_class(shares: impl Iterator<Item = Share>) -> Vec<Share> {
    let mut sums: BTreeMap<String, Share> = BTreeMap::new();
    for share in shares {
        let Some(sum) = sums.get_mut(&share.what) else {
            sums.insert(share.what.clone(), share);
            continue;
        };
        let waited = sum.contended * sum.count as f64 + share.contended * share.count as f64;
        sum.wait += share.wait;
        sum.hold += share.hold;
        sum.spin += share.spin;
        sum.count += share.count;
        sum.contended = waited / sum.count.max(1) as f64;
    }
    sums.into_values().collect()
}

/// The worst few, the worst first.
fn worst(shares: Vec<Share>) -> Vec<Share> {
    let mut shares = sorted(shares);
    shares.truncate(ROWS);
    shares
}

/// All, the worst first.
fn sorted(mut shares: Vec<Share>) -> Vec<Share> {
    shares.sort_by(|a, b| b.cost().total_cmp(&a.cost()));
    shares
}
