//! Compares the default design with a case study's "after", on more CPUs than its authors had.

use super::{Aim, Lab, Outcome, Row, Work};
use baselines::Preset;
use sim::profile::{MachineProfile, ProfileError};

/// A workload on which the default design is compared with the case study's final one.
#[derive(Clone, Copy, Debug)]
pub struct Beyond {
    /// The workload on that; the number of tasks is none of its own.
    pub after: Work,
    /// Why the default design does less, where it does.
    pub why: Option<&'static str>,
}

/// Numbers of tasks.
pub const COUNTS: [usize; 3] = [16, 96, 384];
const AIM: &str = "aim: the default design does no less than the case study's \"after\"";
const AIM_SYS: &str =
    "aim: the default design takes no more of the kernel's time than the case study's \"after\"";
/// From this ratio on a rate counts as no less.
const LEVEL: f64 = 0.9;
const NO_DIFFERENCE: &str = "less than a tenth apart is no difference";
/// Its costs are the machines'.
const COSTS: &str = "freebsd-96";

/// The machines, each with the numbers of tasks it is for; only the first if it is to be `quick`.
pub fn machines(quick: bool) -> Result<Vec<(MachineProfile, &'static [usize])>, ProfileError> {
    let machine = MachineProfile::named(COSTS)?;
    let (small, large) = COUNTS.split_at(2);
    let eight = machine.with_topology(8, 24, 2)?;
    let mut machines = vec![(machine, small), (eight, large)];
    machines.truncate(if quick { 1 } else { 2 });
    Ok(machines)
}

impl Beyond {
    /// Both sides with `tasks` tasks, watched: the default design, and the case study's "after".
    fn sides(&self, tasks: usize) -> [Work; 2] {
        let theirs = Work {
            tasks,
            cpus: tasks,
            ..self.after.watched()
        };
        let preset = Preset::SCALEVM;
        [Work { preset, ..theirs }, theirs]
    }

    /// Rows for each number of tasks that the machine has CPUs for: the rate, and if both sides
    /// run to an end, the kernel's time.
    pub fn rows(&self, lab: &Lab, counts: &[usize]) -> Vec<Row> {
        let rows = |&tasks| [self.rate(lab, tasks), self.sys(lab, tasks)];
        counts.iter().flat_map(rows).flatten().collect()
    }

    fn sys(&self, lab: &Lab, tasks: usize) -> Option<Row> {
        let [ours, theirs] = self.sides(tasks);
        let what = format!(
            "{}, {}: sys, scalevm over {}",
            ours.workload,
            ours.mode.count(tasks),
            theirs.preset
        );
        let row = Row::new(lab, what, Aim::AtMost(1.0, AIM_SYS), |world| {
            world.ratio_of(ours, theirs, Outcome::sys)
        });
        row.map(|row| self.reason(row, |ours| ours <= 1.0 / LEVEL))
    }

    /// Says why `row` misses, if it does; `is_level` says of its figure that it is no difference.
    fn reason(&self, row: Row, is_level: impl Fn(f64) -> bool) -> Row {
        let why = if is_level(row.ours.median) {
            Some(NO_DIFFERENCE)
        } else {
            self.why
        };
        match why {
            Some(why) => row.why(why),
            None => row,
        }
    }

    fn rate(&self, lab: &Lab, tasks: usize) -> Option<Row> {
        let [ours, theirs] = self.sides(tasks);
        let what = format!(
            "{}, {}: scalevm over {}",
            ours.workload,
            ours.mode.count(tasks),
            theirs.preset
        );
        let row = Row::new(lab, what, Aim::AtLeast(1.0, AIM), |world| {
            world.ratio(ours, theirs)
        })?;
        let row = self.reason(row, |ours| ours >= LEVEL);
        let said = |work: Work| {
            let sentence = lab.first(work).and_then(Outcome::bottleneck)?;
            Some(format!("{} is held up by {sentence}", work.preset))
        };
        Some(row.note(format!("{}; {}", said(ours)?, said(theirs)?)))
    }
}
