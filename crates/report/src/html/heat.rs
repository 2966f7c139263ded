//! What the tasks waited for when, as a heat map.

use super::seconds;
use crate::page::described;
use maud::{Markup, html};
use profile::{Profile, Row, Timeline};

/// Columns at most: a screen shows no more.
const COLUMNS: usize = 120;
/// The width of a column and the height of a row.
const CELL: (usize, usize) = (6, 16);

/// A row for each lock and kind of waiting, a column for each slice of time. A cell is the darker
/// the more tasks waited at a time; it is darkest where the row has its most.
pub fn map(profile: &Profile, timeline: &Timeline) -> Markup {
    let count = (profile.seconds / timeline.slice).ceil().max(1.0) as usize;
    let merged = count.div_ceil(COLUMNS);
    let slice = timeline.slice * merged as f64;
    let title = described(&profile.subject);
    let rows = timeline.rows.iter().filter(|row| row.total() > 0.0);
    html! {
        div.scroll role="region" tabindex="0" aria-label={ "Waits over time of " (title) } {
            table.heat {
                caption { (title) ", waits over time; a column is " (seconds(slice)) }
                thead { tr {
                    th scope="col" { "Waits for" } th scope="col" { "When" }
                    th.number scope="col" { "Tasks" } th.number scope="col" { "Most at a time" }
                } }
                tbody { @for row in rows { (line(row, slice, merged, profile.seconds)) } }
            }
        }
    }
}

fn line(row: &Row, slice: f64, merged: usize, all: f64) -> Markup {
    let columns = row.seconds.chunks(merged);
    let columns: Vec<f64> = columns
        .map(|part| part.iter().sum::<f64>() / slice)
        .collect();
    let most = columns.iter().copied().fold(0.0, f64::max);
    let (width, height) = CELL;
    let seen = (all / slice).ceil() as usize;
    html! {
        tr {
            th scope="row" { (row.name) }
            td {
                svg.heat role="img" aria-label={ "at most " (tasks(most)) " tasks at a time" }
                    width=(width * seen.max(columns.len())) height=(height) {
                    @for (at, &waiting) in columns.iter().enumerate() {
                        @if waiting > 0.0 {
                            rect x=(width * at) width=(width) height=(height)
                                fill-opacity=(format!("{:.2}", waiting / most)) {
                                title {
                                    (seconds(slice * at as f64)) ": " (tasks(waiting)) " tasks"
                                }
                            }
                        }
                    }
                }
            }
            td.number { (tasks(row.total() / all)) }
            td.number { (tasks(most)) }
        }
    }
}

fn tasks(count: f64) -> String {
    format!("{count:.2}")
}
