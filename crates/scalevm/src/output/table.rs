//! Curves as a table.

use super::short;
use crate::commands::sweep::Series;
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{CellAlignment, Table};

/// A row for each point.
pub fn curves(series: &[Series]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_HORIZONTAL_ONLY);
    table.set_header(["on", "tasks", "average", "stddev", "per task", "speedup"]);
    for one in series {
        let curve = one.curve();
        // Against one task's share of the first point, so 1, 2, 4 is linear.
        let base = curve.first().map(|&(tasks, rate)| rate / tasks as f64);
        for (point, &(tasks, rate)) in one.points.iter().zip(&curve) {
            let stddev = point.outcome.stddev();
            let speedup = base.filter(|&base| base > 0.0).map(|base| rate / base);
            table.add_row([
                one.label.clone(),
                tasks.to_string(),
                short(rate),
                stddev.map_or("–".into(), short),
                short(rate / tasks as f64),
                speedup.map_or("–".into(), |speedup| format!("{speedup:.2}")),
            ]);
        }
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
