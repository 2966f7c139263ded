//! A run's reports: cache lines and the CPUs that used them.

use crate::Sim;
use crate::arena::Arena;
use crate::coherence::LineId;
use crate::engine::sampler::{Place, Spent};
use crate::engine::{Engine, Running};
use core::iter;

/// Bytes in a cache line.
const LINE: usize = 64;

/// One line's cost since the accounts were cleared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineUse {
    /// The object in the line: a label, or the place in the machine's memory.
    pub what: String,
    /// The label without the line's place in it, or the part of the machine's memory.
    pub object: &'static str,
    /// How often the line moved between CPUs.
    pub transfers: u64,
    /// Nanoseconds that requests waited for others, summed over CPUs.
    pub waited: u64,
    /// Nanoseconds that the transfers themselves took.
    pub moved: u64,
    /// Nanoseconds that CPUs spun after they had last read the line.
    pub spun: u64,
}

/// How one CPU has used a line while traced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The line's number; the same for all CPUs of a trace.
    pub line: usize,
    /// The object in the line.
    pub what: String,
    /// How often the line was read.
    pub reads: u64,
    /// How often the line was written.
    pub writes: u64,
    /// The call stack, nearest caller first, of the first write, or otherwise of the first read.
    pub sites: Vec<usize>,
}

/// The places where CPUs spent time while sampled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// How the time was spent.
    pub spent: Spent,
    /// The object in the awaited line.
    pub line: Option<String>,
    /// Return addresses, the nearest caller first.
    pub stack: Vec<usize>,
    /// Nanoseconds, summed over CPUs.
    pub nanoseconds: u64,
}

/// The content of the heap of a machine's CPUs at one moment.
pub struct HeapImage(Vec<u8>);

/// A function and its place in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteName {
    /// The function's path.
    pub function: String,
    /// `file:line`, if the program knows.
    pub place: String,
}

impl SiteName {
    /// The functions at a return address, inlined ones first.
    pub fn resolve(address: usize) -> Vec<SiteName> {
        let mut names = Vec::new();
        // A return address comes after its call, so the address before it is in the call; 0 is
        // none.
        backtrace::resolve(address.saturating_sub(1) as *mut _, |symbol| {
            let function = symbol
                .name()
                .map(|name| format!("{name:#}"))
                .unwrap_or_default();
            let file = symbol.filename().map(|file| file.display().to_string());
            let place = match (file, symbol.lineno()) {
                (Some(file), Some(line)) => format!("{file}:{line}"),
                _ => String::new(),
            };
            names.push(SiteName { function, place });
        });
        names
    }
}

impl Engine {
    /// The object that a line is a part of: its label, or the part of the machine's memory.
    pub(crate) fn object(&self, line: LineId) -> &'static str {
        let Some(offset) = self.directory.offset_of(line) else {
            return "outside the machine";
        };
        let label = self.labels.of_line(offset);
        label.map_or_else(|| Arena::part(offset), |(what, _)| what)
    }

    fn name(&self, line: LineId) -> String {
        match self.directory.offset_of(line) {
            None => "outside the machine".into(),
            Some(offset) => match self.labels.of_line(offset) {
                Some((what, inside)) if inside < 64 => what.into(),
                Some((what, inside)) => format!("{what} + {inside}"),
                None => self.arena.describe(offset),
            },
        }
    }
}

impl Sim {
    /// The cost of each line, the most expensive first.
    pub fn lines(&self) -> Vec<LineUse> {
        self.with_engine(|engine| {
            let rows = engine
                .directory
                .accounts
                .rows()
                .iter()
                .filter(|row| row.transfers > 0 || row.spun > 0);
            let mut lines: Vec<LineUse> = rows
                .map(|row| LineUse {
                    what: engine.name(row.line),
                    object: engine.object(row.line),
                    transfers: row.transfers,
                    waited: row.waited / 1000,
                    moved: row.moved / 1000,
                    spun: row.spun / 1000,
                })
                .collect();
            lines.sort_by_key(|line| std::cmp::Reverse(line.waited + line.moved + line.spun));
            lines
        })
    }

    /// Resets the accounts of lines and CPUs.
    pub fn clear_accounts(&self) {
        self.with_engine(|engine| {
            engine.directory.accounts.clear();
            engine.clear_off();
            engine
                .cpus
                .iter_mut()
                .for_each(|cpu| cpu.times = Default::default());
        });
    }

    /// Starts to sample where CPUs spend time: a stack for each `period`, in nanoseconds, that a
    /// CPU has spent in one way.
    pub fn sample(&self, period: u64) {
        self.with_engine(|engine| engine.sample(1000 * period));
    }

    /// Ends the sampling; returns the time by stack.
    pub fn sampled(&self) -> Vec<Sample> {
        self.with_engine(|engine| {
            let samples = engine.sampled();
            let sample = |((spent, line, stack), time): (Place, u64)| Sample {
                spent,
                line: line.map(|line| engine.name(line)),
                stack,
                nanoseconds: time / 1000,
            };
            samples.into_iter().map(sample).collect()
        })
    }

    /// Starts to trace which lines each CPU touches.
    pub fn trace(&self) {
        self.with_engine(|engine| engine.watch.trace(engine.cpus.len()));
    }

    /// Ends the trace; returns the lines that each CPU has touched.
    pub fn traced(&self) -> Vec<Vec<Access>> {
        self.with_engine(|engine| {
            let uses = engine.watch.traced();
            let access =
                |engine: &Engine, (line, used): (LineId, crate::engine::watch::Use)| Access {
                    line,
                    what: engine.name(line),
                    reads: used.reads,
                    writes: used.writes,
                    sites: used.site,
                };
            let cpu = |uses: std::collections::BTreeMap<_, _>| {
                uses.into_iter().map(|one| access(engine, one)).collect()
            };
            uses.into_iter().map(cpu).collect()
        })
    }

    /// A copy of the heap that the machine's CPUs allocate from.
    ///
    /// # Panics
    /// If called on a CPU of the machine.
    pub fn heap_image(&self) -> HeapImage {
        assert!(
            Running::current().is_none(),
            "an image is taken while no CPU runs"
        );
        // SAFETY: `with_engine` has claimed the machine, whose CPUs run only on the claiming
        // thread.
        self.with_engine(|engine| HeapImage(unsafe { engine.arena.heap_image() }))
    }

    /// The lines of the heap that differ between two images, each as one write, including writes
    /// that bypass the machine (an `Arc`'s counts), which no trace shows.
    pub fn changed(&self, before: &HeapImage, after: &HeapImage) -> Vec<Access> {
        let old = before.0.chunks(LINE).chain(iter::repeat(&[0; LINE][..]));
        let lines = old.zip(after.0.chunks(LINE)).enumerate();
        let changed = lines.filter(|(_, (old, new))| old[..new.len()] != **new);
        self.with_engine(|engine| {
            let access = |(index, _)| {
                let line = engine.directory.line_of(engine.arena.base() + index * LINE);
                Access {
                    line,
                    what: engine.name(line),
                    reads: 0,
                    writes: 1,
                    sites: Vec::new(),
                }
            };
            changed.map(access).collect()
        })
    }
}
