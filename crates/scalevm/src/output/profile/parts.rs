//! The tasks' time, broken down, as tables.

use super::View;
use crate::output::table::{align_right, with_header};
use crate::output::{format, percent, time};
use comfy_table::Table;
use profile::{Part, Profile};

/// Parts that are less than this of active and of idle time are not shown.
const SHOWN: f64 = 0.01;

/// Prints the breakdowns that `view` asks for.
pub fn print(profile: &Profile, view: &View) {
    let active = profile.active_seconds();
    let idle = profile.task_seconds() - active;
    for by in &view.by {
        let Some(parts) = profile.parts.get(by) else {
            continue;
        };
        let share = |part: &Part| (part.active() / active).max(part.idle / idle);
        let shown = view.shown(parts, SHOWN, share);
        if !shown.is_empty() {
            format::print(&table(by.name(), &shown, profile));
        }
    }
}

fn table(by: &str, parts: &[&Part], profile: &Profile) -> Table {
    let mut table = with_header([
        by,
        "of active time",
        "busy",
        "waits",
        "idle",
        "tasks active",
        "tasks idle",
    ]);
    let active = profile.active_seconds();
    for part in parts {
        table.add_row([
            part.name.clone(),
            percent(part.active() / active),
            time(part.busy),
            time(part.waits),
            time(part.idle),
            format!("{:.2}", part.active() / profile.seconds),
            format!("{:.2}", part.idle / profile.seconds),
        ]);
    }
    align_right(&mut table, 1..);
    table
}
