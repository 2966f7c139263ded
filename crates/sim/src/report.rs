//! What a run says of itself: lines and who used them.

use crate::Sim;
use crate::coherence::LineId;
use crate::engine::Engine;
use crate::engine::sampler::{Place, Spent};

/// One line's cost since the accounts were cleared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineUse {
    /// What lies there: a label, or the place in the machine's memory.
    pub what: String,
    /// How often it moved between CPUs.
    pub transfers: u64,
    /// Nanoseconds that requests waited for others', summed over CPUs.
    pub waited: u64,
    /// Nanoseconds that the transfers themselves took.
    pub moved: u64,
    /// Nanoseconds that CPUs spun after they had read it last.
    pub spun: u64,
}

/// How one CPU has used a line while traced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The line's number; the same for all CPUs of a trace.
    pub line: usize,
    /// What lies there.
    pub what: String,
    /// How often it was read.
    pub reads: u64,
    /// How often it was written.
    pub writes: u64,
    /// Where from, the nearest caller first: of the first write, else of the first read.
    pub sites: Vec<usize>,
}

/// Where CPUs spent time while sampled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// How.
    pub spent: Spent,
    /// What lies in the line that was waited for.
    pub line: Option<String>,
    /// Return addresses, the nearest caller first.
    pub stack: Vec<usize>,
    /// Nanoseconds, summed over CPUs.
    pub nanoseconds: u64,
}

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
        // A return address is behind its call.
        backtrace::resolve((address - 1) as *mut _, |symbol| {
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
    fn name(&self, line: LineId) -> String {
        match self.directory.offset_of(line) {
            None => "outside of the machine".into(),
            Some(offset) => match self.labels.of_line(offset) {
                Some((what, inside)) if inside < 64 => what.into(),
                Some((what, inside)) => format!("{what} + {inside}"),
                None => self.arena.describe(offset),
            },
        }
    }
}

impl Sim {
    /// What each line has cost, the dearest first.
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

    /// Begins the accounts of lines and CPUs anew.
    pub fn clear_accounts(&self) {
        self.with_engine(|engine| {
            engine.directory.accounts.clear();
            engine
                .cpus
                .iter_mut()
                .for_each(|cpu| cpu.times = Default::default());
        });
    }

    /// Begins to sample where CPUs spend time: a stack for each `period`, in nanoseconds,
    /// that a CPU has spent in one way.
    pub fn sample(&self, period: u64) {
        self.with_engine(|engine| engine.sample(1000 * period));
    }

    /// Ends the sampling: the time by stack.
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

    /// Begins to trace which lines each CPU touches.
    pub fn trace(&self) {
        self.with_engine(|engine| engine.watch.trace(engine.cpus.len()));
    }

    /// Ends the trace: what each CPU has touched, by line.
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
}
