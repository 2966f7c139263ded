//! Text: one line for each row.

use super::{Size, Sort, View};
use crate::output::{percent, short, time};
use profile::{Interval, Lock};
use stats::printable;

/// The most rows of a table where no screen limits them.
const ROWS: usize = 15;
/// Letters of a name at most, so that those behind it are seen.
const LONGEST: usize = 60;
/// Lines of a screen that are no rows: the title, two headers, an empty line, the keys.
const OTHERS: usize = 5;

/// A column: its name, and true if its cells are numbers.
type Column = (&'static str, bool);

const LOCKS: [Column; 9] = [
    ("waiting", true),
    ("share", true),
    ("waits/s", true),
    ("mean", true),
    ("p99", true),
    ("lock", false),
    ("kind", false),
    ("caller", false),
    ("holder", false),
];

impl View {
    /// The lines of a screen; the last names the keys.
    pub fn screen(&self, size: Size) -> Vec<String> {
        let rows = size.height.saturating_sub(OTHERS);
        let mut lines = self.tables(|locks| {
            let locks = locks.min(rows / 2);
            (locks, rows - locks)
        });
        lines.truncate(size.height.saturating_sub(1));
        lines.resize(size.height.saturating_sub(1), String::new());
        lines.push(self.keys());
        let cut = |line: String| line.chars().take(size.width).collect();
        lines.into_iter().map(cut).collect()
    }

    /// The lines where there is no screen.
    pub fn plain(&self) -> Vec<String> {
        self.tables(|_| (ROWS, ROWS))
    }

    /// Both tables; `rows` says how many rows each may have, by the number of locks.
    fn tables(&self, rows: impl FnOnce(usize) -> (usize, usize)) -> Vec<String> {
        let Some(interval) = &self.shown else {
            return vec![format!("{}: the first interval has not ended", self.whom)];
        };
        let all = self.locks(interval);
        let (locks, tasks) = rows(all.len());
        let all = all.into_iter().take(locks);
        let mut lines = vec![self.title(interval)];
        lines.extend(table(
            &LOCKS,
            all.map(|lock| self.lock(lock, interval.seconds)).collect(),
        ));
        lines.push(String::new());
        lines.extend(self.task_table(interval, tasks));
        lines
    }

    fn title(&self, interval: &Interval) -> String {
        let mut title = format!(
            "{}: {:.1} s, {} threads, {:.2} CPUs busy",
            self.whom,
            interval.seconds,
            interval.threads.len(),
            interval.busy / interval.seconds
        );
        if self.frozen {
            title += ", frozen";
        }
        if let Some(words) = interval.hidden.words() {
            title += &format!(", {words} cannot be seen");
        }
        if interval.lost > 0 {
            title += &format!(", lost records: {}", interval.lost);
        }
        title
    }

    fn keys(&self) -> String {
        let sort = match self.sort {
            Sort::Share => "share",
            Sort::Waits => "waits",
            Sort::P99 => "p99",
            Sort::Name => "name",
        };
        let freeze = if self.frozen { "go on" } else { "freeze" };
        let other = if self.by_process {
            "threads"
        } else {
            "processes"
        };
        let sorts = "s share, w waits, p p99, n name";
        format!("sorted by {sort}: {sorts} | space {freeze} | t {other} | q quit")
    }

    fn lock(&self, lock: &Lock, seconds: f64) -> Vec<String> {
        vec![
            format!("{:.2}", (lock.wait + lock.spin) / seconds),
            percent(lock.share),
            short(lock.contentions as f64 / seconds),
            known(Some(lock.mean)),
            known(lock.p99()),
            lock.name.clone(),
            lock.kind.name().to_owned(),
            lock.caller.clone(),
            self.held.of(&lock.name).to_owned(),
        ]
    }

    fn task_table(&self, interval: &Interval, rows: usize) -> Vec<String> {
        let (id, name) = match self.by_process {
            true => ("pid", "process"),
            false => ("tid", "thread"),
        };
        let columns = [
            (id, true),
            ("CPU", true),
            ("waiting", true),
            (name, false),
            ("for", false),
        ];
        let tasks = self.tasks(interval).into_iter().take(rows).map(|task| {
            vec![
                task.id.to_string(),
                percent(task.busy / interval.seconds),
                percent(task.waited / interval.seconds),
                task.name,
                task.main,
            ]
        });
        table(&columns, tasks.collect())
    }
}

/// Nothing takes no time at all: it was not measured.
fn known(seconds: Option<f64>) -> String {
    let seconds = seconds.filter(|&seconds| seconds > 0.0);
    seconds.map_or("–".into(), time)
}

/// A header and a line for each row, in which nothing acts on a terminal.
fn table(columns: &[Column], rows: Vec<Vec<String>>) -> Vec<String> {
    let shown = |cell: String| {
        let cell = printable(&cell).replace(['\n', '\t'], " ");
        stats::shortened(&cell, LONGEST).into_owned()
    };
    let header = columns.iter().map(|(name, _)| (*name).to_owned()).collect();
    let rows = rows
        .into_iter()
        .map(|row| row.into_iter().map(shown).collect());
    let rows: Vec<Vec<String>> = std::iter::once(header).chain(rows).collect();
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max();
    let widths: Vec<usize> = (0..columns.len()).filter_map(width).collect();
    let line = |row: &Vec<String>| {
        let mut line = String::new();
        for ((cell, &width), (_, is_number)) in row.iter().zip(&widths).zip(columns) {
            line += &match is_number {
                true => format!("{cell:>width$}  "),
                false => format!("{cell:<width$}  "),
            };
        }
        line.trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}
