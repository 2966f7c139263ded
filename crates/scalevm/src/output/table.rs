//! Curves and locks as tables.

use super::short;
use calibration::calibrate::Figure;
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{CellAlignment, LineStyle, Row, Table};
use lockbench::Figures;
use sim::profile::MachineProfile;
use std::ops::RangeBounds;

/// One class of locks in one build.
pub struct LockUse {
    pub build: &'static str,
    pub class: &'static str,
    /// The lock's owner.
    pub shared_by: &'static str,
    /// Acquisitions in each iteration.
    pub per_iteration: f64,
    /// The share of acquisitions that had to wait.
    pub contended: f64,
}

/// A table without rows, in the style of all of them.
pub fn with_header(header: impl Into<Row>) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none()));
    table.set_header(header);
    table
}

/// Aligns `columns` as numbers are.
pub fn align_right(table: &mut Table, columns: impl RangeBounds<usize>) {
    let all = table.column_iter_mut().enumerate();
    for (_, column) in all.filter(|(index, _)| columns.contains(index)) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

/// A row for each lock, groups apart; of fairness and slow paths, those with the most
/// threads.
pub fn locks(figures: &[Figures], counts: &[usize]) -> Table {
    let mut header = vec!["lock".to_owned(), "by".into(), "bytes".into(), "ns".into()];
    header.extend(counts.iter().map(|threads| format!("×{threads}")));
    header.extend(["slowest/fastest".into(), "slow lock/unlock".into()]);
    let columns = header.len();
    let mut table = with_header(header);
    let mut group = None;
    for one in figures {
        let row = one.row;
        if group.replace(row.group) != Some(row.group) {
            let mut title = vec![row.group.name().to_owned()];
            title.resize(columns, String::new());
            table.add_row(title);
        }
        let none = || "–".to_owned();
        let by = if row.ours { "scalevm" } else { "" };
        let mut cells = vec![
            format!("  {}", row.name),
            by.to_owned(),
            row.bytes.map_or_else(none, |bytes| bytes.to_string()),
            one.alone.map_or_else(none, |ns| format!("{ns:.2}")),
        ];
        let at = |threads: &usize| one.contended.iter().find(|c| c.threads == *threads);
        cells.extend(
            counts
                .iter()
                .map(|threads| at(threads).map_or_else(none, |c| short(c.rate))),
        );
        let last = one.contended.last();
        cells.push(last.map_or_else(none, |c| {
            format!("{:.2}", if c.max > 0.0 { c.min / c.max } else { 0.0 })
        }));
        let slow = last.and_then(|c| c.slow_paths);
        cells.push(slow.map_or_else(none, |slow| {
            format!("{}/{}", slow.slow_lock, slow.slow_unlock)
        }));
        table.add_row(cells);
    }
    align_right(&mut table, 2..);
    table
}

/// A row for each number of a calibrated profile: those measured, then `base`'s.
pub fn profile(profile: &MachineProfile, figures: &[Figure], base: &str) -> Table {
    let mut table = with_header(["number", "value (ns)", "quartiles", "from"]);
    for figure in figures {
        let reading = &figure.reading;
        table.add_row([
            figure.key.to_owned(),
            format!("{:.1}", reading.median),
            format!("{:.1}–{:.1}", reading.low, reading.high),
            figure.how.to_owned(),
        ]);
    }
    for entry in profile.entries() {
        if entry.source.starts_with(base) {
            table.add_row([
                entry.key.to_owned(),
                entry.value,
                "–".into(),
                base.to_owned(),
            ]);
        }
    }
    align_right(&mut table, 1..3);
    table
}

/// A row for each class of locks in each build.
pub fn shared_locks(rows: &[LockUse]) -> Table {
    let mut table = with_header(["on", "lock", "shared by", "taken", "contended"]);
    for row in rows {
        table.add_row([
            row.build.to_owned(),
            row.class.to_owned(),
            row.shared_by.to_owned(),
            format!("{:.1}", row.per_iteration),
            format!("{:.1} %", 100.0 * row.contended),
        ]);
    }
    align_right(&mut table, 3..);
    table
}
