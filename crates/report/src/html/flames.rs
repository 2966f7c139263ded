//! Flame graphs of each profile, and of the change between two profiles of one workload.

use super::percent;
use crate::flame::{Frame, Shows, differences, frames, functions, svg};
use crate::page::{described, pairs};
use maud::{Markup, html};
use profile::{Profile, Stacks};
use std::collections::BTreeMap;

/// Rows of a table of functions.
const FUNCTIONS: usize = 20;

pub fn section(profiles: &[&Profile]) -> Markup {
    let pairs = pairs(profiles);
    let mut graphs = Vec::new();
    for profile in profiles {
        graphs.push(of_time(profile, "Busy", &profile.busy));
        graphs.push(of_time(profile, "Waiting", &profile.waits));
    }
    for (before, after) in pairs {
        graphs.push(of_change(before, after));
    }
    html! {
        section #flames aria-labelledby="flames-title" {
            h2 #flames-title { "Flame graphs" }
            p.note { "Callers stand above callees; the width is the time. "
                span.swatch.lock {} "locking " span.swatch.kernel {} "kernel "
                span.swatch.user {} "program" }
            p.note.scripted hidden { "Click a frame, or press Enter on it, to zoom; arrow keys \
                                      move to callers, callees and neighbours; Escape shows \
                                      everything again." }
            @for graph in graphs.into_iter().flatten() { (graph) }
        }
    }
}

fn of_time(profile: &Profile, what: &str, stacks: &Stacks) -> Option<Markup> {
    let frames = frames(stacks, profile.task_seconds());
    let whole = frames.first()?.share;
    let subject = described(&profile.subject);
    let title = format!("{what}: {subject}");
    let about = match what {
        "Busy" => format!("{} of task time, by {}", percent(whole), profile.clock),
        _ => format!(
            "{} of task time, blocked or waiting for a lock",
            percent(whole)
        ),
    };
    let table = functions_table(profile, stacks, &title);
    Some(graph(&title, &about, &frames, Shows::Time, table))
}

fn of_change(before: &Profile, after: &Profile) -> Option<Markup> {
    let merged = |profile: &Profile| {
        let mut all = Stacks::default();
        for (stack, seconds) in profile.busy.iter().chain(profile.waits.iter()) {
            all.add(stack.split(';'), seconds);
        }
        all
    };
    let (old, new) = (merged(before), merged(after));
    let (old, new) = ((&old, before.task_seconds()), (&new, after.task_seconds()));
    let frames = differences(old, new);
    frames.first()?;
    let title = format!(
        "Change: {} → {}",
        described(&before.subject),
        described(&after.subject)
    );
    let about = "widths show after; red frames take a larger share of task time than before, blue \
                 ones a smaller";
    let table = changes_table(old, new, &title);
    Some(graph(&title, about, &frames, Shows::Change, table))
}

fn graph(title: &str, about: &str, frames: &[Frame], shows: Shows, table: Markup) -> Markup {
    html! {
        figure.flame {
            figcaption { h3 { (title) } p { (about) "." } }
            div.tools.scripted hidden {
                label { "Search "
                    input type="search" size="18" spellcheck="false" autocomplete="off"
                        placeholder="function, or pattern"; }
                output aria-live="polite" {}
                button type="button" { "Show all" }
            }
            (svg(frames, shows, title))
            p.info.scripted hidden { "\u{a0}" }
            (table)
        }
    }
}

fn functions_table(profile: &Profile, stacks: &Stacks, title: &str) -> Markup {
    let heads = html! {
        th.number scope="col" aria-sort="descending" { "Itself" }
        th.number scope="col" { "With callees" }
    };
    let rows = html! {
        @for one in functions(stacks, profile.task_seconds(), FUNCTIONS) {
            tr {
                th.code scope="row" { (one.name) }
                td.number data-v=(one.own) { (percent(one.own)) }
                td.number data-v=(one.total) { (percent(one.total)) }
            }
        }
    };
    let caption = "The functions that took the most task time";
    table(title, caption, heads, rows)
}

fn changes_table(old: (&Stacks, f64), new: (&Stacks, f64), title: &str) -> Markup {
    let mut sums: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for (name, seconds) in old.0.leaves(&[]) {
        sums.entry(name).or_default().0 = seconds / old.1;
    }
    for (name, seconds) in new.0.leaves(&[]) {
        sums.entry(name).or_default().1 = seconds / new.1;
    }
    let row = |(name, (before, after))| (name, before, after);
    let mut sums: Vec<(&str, f64, f64)> = sums.into_iter().map(row).collect();
    sums.sort_by(|a, b| (b.2 - b.1).abs().total_cmp(&(a.2 - a.1).abs()));
    let heads = html! {
        @for head in ["Before", "After", "Change"] { th.number scope="col" { (head) } }
    };
    let rows = html! {
        @for (name, before, after) in sums.into_iter().take(FUNCTIONS) {
            tr {
                th.code scope="row" { (name) }
                td.number data-v=(before) { (percent(before)) }
                td.number data-v=(after) { (percent(after)) }
                td.number data-v=(after - before) {
                    (format!("{:+.1} %", 100.0 * (after - before)))
                }
            }
        }
    };
    let caption = "The functions whose own share of task time changed most";
    table(title, caption, heads, rows)
}

fn table(title: &str, caption: &str, heads: Markup, rows: Markup) -> Markup {
    html! {
        details {
            summary { "As a table" }
            div.scroll role="region" tabindex="0" aria-label={ "Functions of " (title) } {
                table.sortable {
                    caption { (caption) }
                    thead { tr { th scope="col" { "Function" } (heads) } }
                    tbody { (rows) }
                }
            }
        }
    }
}
