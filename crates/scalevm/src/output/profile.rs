//! A profile, and the difference of two, as tables.

mod parts;

use super::table::{align_right, with_header};
use super::{format, percent, short, time};
use comfy_table::Table;
use profile::{By, Change, Difference, Holder, Lock, Profile, Spread, Stacks, Times};
use stats::printable;

/// Locks that cost less than this part of the tasks' time are counted, not shown.
const SHOWN: f64 = 0.001;
/// Holders during which less than this part of the waiting passed are not shown.
const HOLDS: f64 = 0.01;
/// The most rows of a difference.
const ROWS: usize = 15;

/// What is shown of a profile.
#[derive(Clone, Debug)]
pub struct View {
    /// The breakdowns of the tasks' time.
    pub by: Vec<By>,
    /// The most rows of each table; with none, there is no limit, and nothing is too small to show.
    pub rows: Option<usize>,
}

impl View {
    /// The first rows of those that are not too small, by `share`.
    fn shown<'a, T>(&self, rows: &'a [T], least: f64, share: impl Fn(&T) -> f64) -> Vec<&'a T> {
        let all = rows.iter();
        match self.rows {
            Some(most) => all.filter(|row| share(row) >= least).take(most).collect(),
            None => all.collect(),
        }
    }
}

/// Prints a profile below `heading`.
pub fn print(heading: &str, profile: &Profile, view: &View) {
    println!("{heading}");
    match (profile.rate, profile.rate_unwatched) {
        (Some(rate), Some(unwatched)) => println!(
            "{} a second unwatched, {} watched: {}",
            short(unwatched),
            short(rate),
            price(profile.cost_interval)
        ),
        (Some(rate), None) => println!("{} a second", short(rate)),
        (None, _) => {}
    }
    let all = profile.task_seconds();
    println!(
        "of {} of task time {} ({})",
        time(all),
        spent(profile, all),
        profile.clock
    );
    if let Some(queued) = &profile.queued {
        let (count, times, worst) = (queued.count, quantiles(queued), time(queued.worst));
        println!("waited {count} times for a CPU: {times}, worst {worst}");
    }
    parts::print(profile, view);
    let shown = view.shown(&profile.locks, SHOWN, |lock| lock.share);
    if !shown.is_empty() {
        format::print(&locks(&shown, profile.seconds));
        if let Some(line) = shown.first().and_then(|lock| for_a_cpu(lock)) {
            println!("{line}");
        }
    }
    let others = profile.locks.len() - shown.len();
    if others > 0 {
        let share: f64 = profile.locks.iter().map(|lock| lock.share).sum::<f64>()
            - shown.iter().map(|lock| lock.share).sum::<f64>();
        let noun = if others == 1 {
            "other row"
        } else {
            "other rows"
        };
        println!("{others} {noun}: {}", percent(share));
    }
    let shown = view.shown(&profile.holders, HOLDS, |holder| holder.share);
    if !shown.is_empty() {
        format::print(&holders(&shown));
    }
    println!("bottleneck: {}", profile.bottleneck);
}

/// A sentence on how the tasks spent their time of `all` seconds, as far as it was seen.
fn spent(profile: &Profile, all: f64) -> String {
    /// What would be shown as 0.
    const NOTHING: f64 = 0.0005;
    if let Some(spent) = profile.spent {
        let part = |(what, seconds): (_, f64)| format!("{} {what}", percent(seconds / all));
        let parts: Vec<String> = spent.parts(NOTHING * all).map(part).collect();
        return parts.join(", ");
    }
    let part = |stacks: &Stacks| format!("{:.0} %", 100.0 * stacks.total() / all);
    let (busy, waits) = (part(&profile.busy), part(&profile.waits));
    match (profile.hidden.kernel, profile.hidden.waits) {
        (false, false) => format!("{busy} is busy, {waits} waits"),
        (false, true) => format!("{busy} is busy; waits are not known"),
        (true, _) => format!(
            "{busy} is busy outside of the kernel; time in the kernel, and waits, are not known"
        ),
    }
}

/// A line on the part of the wait for a lock in which a task had been woken and waited for a CPU;
/// none if that was not seen.
fn for_a_cpu(lock: &Lock) -> Option<String> {
    let queued = lock.queued.as_ref()?;
    let mean = queued.total / queued.count.max(1) as f64;
    let (part, name, times) = (percent(mean / lock.mean), &lock.name, quantiles(queued));
    Some(format!(
        "{part} of the wait for {name} is for a CPU: {times}"
    ))
}

fn quantiles(of: &Spread) -> String {
    let [p50, p99, p999] = [of.p50, of.p99, of.p999].map(time);
    format!("p50 {p50}, p99 {p99}, p99.9 {p999}")
}

/// The cost of watching. Nothing runs faster for being watched: if it did, other things differed
/// more.
fn price(interval: Option<[f64; 2]>) -> String {
    let percent = |part: f64| format!("{:.0}", 100.0 * part);
    match interval {
        Some([low, high]) if low > 0.0 => {
            format!("watching costs {} to {} %", percent(low), percent(high))
        }
        Some([_, high]) if high > 0.0 => format!("watching costs at most {} %", percent(high)),
        _ => "what watching costs is not known: the machine was not quiet, or there are too few \
              samples"
            .to_owned(),
    }
}

/// Doubts and gaps, on stderr: they are not data.
pub fn notes(notes: &[String]) {
    notes
        .iter()
        .for_each(|note| eprintln!("scalevm: note: {note}"));
}

/// A row for each lock and caller; waits that were seen and spinning apart.
fn locks(locks: &[&Lock], seconds: f64) -> Table {
    let mut table = with_header([
        "lock",
        "kind",
        "caller",
        "waits",
        "mean",
        "p50",
        "p99",
        "p99.9",
        "worst",
        "waiting",
        "spinning",
        "of active time",
        "tasks waiting",
    ]);
    for lock in locks {
        let all = lock.wait + lock.spin;
        let part = |seconds: f64| percent(lock.share * seconds / all.max(f64::MIN_POSITIVE));
        let spread = lock.spread.as_ref();
        let quantile =
            |which: fn(&Spread) -> f64| spread.map_or("–".into(), |of| time(which(of)));
        table.add_row([
            lock.name.clone(),
            lock.kind.name().to_owned(),
            lock.caller.clone(),
            lock.contentions.to_string(),
            known(lock.mean),
            quantile(|spread| spread.p50),
            quantile(|spread| spread.p99),
            quantile(|spread| spread.p999),
            known(lock.worst),
            part(lock.wait),
            part(lock.spin),
            percent(lock.share),
            format!("{:.2}", all / seconds),
        ]);
    }
    align_right(&mut table, 3..);
    table
}

/// A row for each function that held a lock while tasks waited for it.
fn holders(holders: &[&Holder]) -> Table {
    let mut table = with_header([
        "holder",
        "process",
        "lock",
        "held as",
        "holds",
        "total",
        "mean",
        "p99",
        "worst",
        "of waiting",
    ]);
    for holder in holders {
        let watched = if holder.watched { "" } else { " (not watched)" };
        let held = |which: fn(Times) -> f64| holder.times.map(which).map_or("–".into(), time);
        table.add_row([
            holder.function.clone(),
            format!("{}{watched}", printable(&holder.place())),
            holder.lock.clone(),
            holder.kind.name().to_owned(),
            holder.holds.to_string(),
            held(|times| times.total),
            held(|times| times.mean),
            held(|times| times.p99),
            held(|times| times.worst),
            percent(holder.share),
        ]);
    }
    align_right(&mut table, 4..);
    table
}

/// Prints the changes from one profile to another.
pub fn print_difference(difference: &Difference) {
    let mut table = with_header([
        "lock",
        "kind",
        "caller",
        "before",
        "after",
        "change",
        "waits/s before",
        "waits/s after",
    ]);
    let changed = |change: &&Change| change.before.max(change.after) >= SHOWN;
    for change in difference.changes.iter().filter(changed).take(ROWS) {
        table.add_row([
            change.name.clone(),
            change.kind.name().to_owned(),
            change.caller.clone(),
            percent(change.before),
            percent(change.after),
            format!("{:+.1}", 100.0 * change.more()),
            short(change.contentions_before),
            short(change.contentions_after),
        ]);
    }
    if table.row_count() > 0 {
        align_right(&mut table, 3..);
        format::print(&table);
    }
    println!("{}", difference.sentence);
}

/// Nothing takes no time at all: it was not measured.
fn known(seconds: f64) -> String {
    if seconds > 0.0 {
        time(seconds)
    } else {
        "–".into()
    }
}

#[cfg(test)]
mod tests {
    use super::price;

    #[test]
    fn watching_never_costs_less_than_nothing() {
        assert_eq!(price(Some([0.171, 0.208])), "watching costs 17 to 21 %");
        assert_eq!(price(Some([-0.02, 0.03])), "watching costs at most 3 %");
        for unknown in [Some([-1.8, -0.1]), None] {
            let said = price(unknown);
            assert!(said.contains("not known") && !said.contains('%'), "{said}");
        }
    }
}
