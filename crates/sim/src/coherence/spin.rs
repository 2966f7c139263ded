//! CPUs that wait for a line to change.
//!
//! A CPU's last reads are recorded with the version of each line. When it relaxes, it sleeps on
//! those lines; the next grant to another writer wakes it when the invalidation reaches it, and it
//! reads again, at the usual cost. So spinning needs no simulation, and ends when it would with it.

use super::LineId;
use super::table::Table;
use crate::engine::Time;
use crate::engine::agenda::{Agenda, NEVER};

/// Reads that are remembered; a CPU that reads more between two relaxations is not put to sleep.
const READS: usize = 8;

#[derive(Clone, Copy, Default)]
struct Read {
    line: LineId,
    version: u32,
    /// When the line is invalidated, if it is already granted to a writer; otherwise 0.
    doomed: Time,
}

/// What is recorded of one CPU's spinning.
#[derive(Clone, Default)]
struct Spinner {
    reads: [Read; READS],
    /// Reads since the last relaxation.
    count: usize,
    /// The line read last, for which the CPU waits if it spins.
    last: LineId,
    asleep: bool,
    /// When the CPU looks again because a line has changed; [`NEVER`] if none has.
    wakes: Time,
    /// The number of sleeps, by which outdated entries in lists are recognized.
    sleep: u32,
    /// When the CPU fell asleep.
    since: Time,
}

/// All spinners, and the lists of the lines they sleep on.
pub(crate) struct Spinners {
    cpus: Box<[Spinner]>,
    /// Lists of CPU and sleep; the first is never used, so that 0 can mean "none".
    lists: Vec<Vec<(u16, u32)>>,
    /// From the invalidation to the next look: half a pause.
    notice: Time,
}

impl Spinners {
    pub(super) fn new(cpus: usize, notice: Time) -> Self {
        Spinners {
            cpus: vec![Spinner::default(); cpus].into(),
            lists: vec![Vec::new()],
            notice,
        }
    }

    #[inline]
    pub(super) fn note(&mut self, cpu: usize, line: LineId, version: u32, doomed: Time) {
        let spinner = &mut self.cpus[cpu];
        spinner.reads[spinner.count % READS] = Read {
            line,
            version,
            doomed,
        };
        spinner.count += 1;
        spinner.last = line;
    }

    /// The line that `cpu` has read last.
    pub(super) fn last(&self, cpu: usize) -> LineId {
        self.cpus[cpu].last
    }

    /// Forgets the reads of `cpu`.
    pub(crate) fn forget(&mut self, cpu: usize) {
        self.cpus[cpu].count = 0;
    }

    /// Returns true if `cpu` has read anything since its last relaxation, and little enough to
    /// sleep on.
    pub(crate) fn can_sleep(&self, cpu: usize) -> bool {
        (1..=READS).contains(&self.cpus[cpu].count)
    }

    /// Puts `cpu` to sleep on the lines it has read; returns the wake-up time if one of them has
    /// changed or is about to.
    pub(super) fn sleep(&mut self, cpu: usize, now: Time, table: &mut Table) -> Option<Time> {
        let spinner = &mut self.cpus[cpu];
        let reads = &spinner.reads[..spinner.count.min(READS)];
        let gone = reads.iter().filter_map(|read| {
            let lost = table.get(read.line).lost(cpu as u16, read.version);
            lost.or((read.doomed > 0).then_some(read.doomed))
        });
        let looks = gone.min().map(|gone| gone.max(now) + self.notice);
        spinner.asleep = true;
        spinner.wakes = looks.unwrap_or(NEVER);
        spinner.since = now;
        spinner.sleep = spinner.sleep.wrapping_add(1);
        for read in reads {
            let list = &mut table.get_mut(read.line).spinners;
            if *list == 0 {
                *list = self.lists.len() as u32;
                self.lists.push(Vec::new());
            }
            self.lists[*list as usize].push((cpu as u16, spinner.sleep));
        }
        looks
    }

    /// Returns true if `cpu` sleeps, and nothing has changed yet.
    pub(crate) fn is_asleep(&self, cpu: usize) -> bool {
        self.cpus[cpu].asleep && self.cpus[cpu].wakes == NEVER
    }

    /// Marks `cpu` as awake, whatever woke it.
    pub(crate) fn rise(&mut self, cpu: usize) {
        self.cpus[cpu].asleep = false;
        self.cpus[cpu].count = 0;
    }

    /// Wakes all CPUs of a list but the writer: they look again soon after `lost`, or at once if
    /// it is `prompt`, or when another of their lines is invalidated, if that is earlier.
    pub(super) fn wake(
        &mut self,
        list: u32,
        writer: u16,
        lost: Time,
        prompt: bool,
        agenda: &mut Agenda,
    ) {
        let notice = if prompt { 0 } else { self.notice };
        if list == 0 {
            return;
        }
        for (cpu, sleep) in self.lists[list as usize].drain(..) {
            let spinner = &mut self.cpus[usize::from(cpu)];
            let looks = lost.max(spinner.since) + notice;
            let sleeps = spinner.asleep && spinner.sleep == sleep;
            if cpu != writer && sleeps && looks < spinner.wakes {
                spinner.wakes = looks;
                agenda.set(usize::from(cpu), looks);
            }
        }
    }
}
