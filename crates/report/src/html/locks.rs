//! The locks that tasks waited for.

use super::heat;
use super::text::grouped;
use super::{percent, seconds};
use crate::page::described;
use maud::{Markup, html};
use profile::{Holder, Lock, Profile, Spread, Times};

/// Rows of a table; the rest is summed up.
const MOST: usize = 40;

pub fn section(profiles: &[&Profile]) -> Markup {
    let locks = profiles.iter().filter(|one| !one.locks.is_empty());
    html! {
        section #locks aria-labelledby="locks-title" {
            h2 #locks-title { "Locks" }
            p.note { "Two columns, because no method sees both: "
                span.together { span.swatch.traced {} "waits" }
                " traced from beginning to end, and "
                span.together { span.swatch.spun {} "samples" }
                " of tasks that spun before such a wait began. Shares refer to the tasks' active \
                 time: all but that in which they had nothing to do. A task that is woken for a \
                 lock may still wait for a CPU, which is part of the wait: the columns of CPUs \
                 tell for how long, where wake-ups were recorded." }
            @for profile in locks {
                (table(profile))
                @if !profile.holders.is_empty() { (holders(profile)) }
                @if let Some(timeline) = &profile.timeline { (heat::map(profile, timeline)) }
            }
        }
    }
}

fn table(profile: &Profile) -> Markup {
    let shown = &profile.locks[..profile.locks.len().min(MOST)];
    let rest = &profile.locks[shown.len()..];
    let title = described(&profile.subject);
    html! {
        div.scroll role="region" tabindex="0" aria-label={ "Locks of " (title) } {
            table.sortable {
                caption { (title) ", the costliest first" }
                thead { tr {
                    th scope="col" { "Lock" } th scope="col" { "Kind" } th scope="col" { "Caller" }
                    th.number scope="col" aria-sort="descending" { "Share" }
                    @for name in FIGURES {
                        th.number scope="col" { (name) }
                    }
                } }
                tbody { @for lock in shown { (row(lock, profile.active_seconds())) } }
            }
        }
        @if !rest.is_empty() {
            p.note { (rest.len()) " more locks took "
                (percent(rest.iter().map(|lock| lock.share).sum())) " in total." }
        }
    }
}

const FIGURES: [&str; 12] = [
    "Traced share",
    "Spin share",
    "Waits",
    "Traced wait",
    "Mean",
    "p50",
    "p99",
    "Worst",
    "CPU wait",
    "CPU p50",
    "CPU p99",
    "CPU p99.9",
];

fn row(lock: &Lock, active_seconds: f64) -> Markup {
    let (traced, spin) = (lock.wait / active_seconds, lock.spin / active_seconds);
    let waits = |of: fn(&Spread) -> f64| lock.spread.as_ref().map_or(0.0, of);
    let queued = |of: fn(&Spread) -> f64| lock.queued.as_ref().map_or(0.0, of);
    let times = [
        lock.mean,
        waits(|of| of.p50),
        waits(|of| of.p99),
        lock.worst,
        queued(|of| of.total),
        queued(|of| of.p50),
        queued(|of| of.p99),
        queued(|of| of.p999),
    ];
    html! {
        tr {
            th scope="row" { (lock.name) }
            td { (lock.kind.name()) }
            td.code { (lock.caller) }
            td.number.share data-v=(lock.share) {
                (bar(traced, spin)) span { (percent(lock.share)) }
            }
            @for share in [traced, spin] { td.number data-v=(share) { (percent(share)) } }
            td.number data-v=(lock.contentions)
                title=[lock.acquisitions.map(|all| format!("of {} acquisitions", grouped(all)))] {
                (grouped(lock.contentions))
            }
            td.number data-v=(lock.wait) { (seconds(lock.wait)) }
            // Every wait takes time, so zero means that none was measured.
            @for time in times {
                td.number data-v=(time) { @if time > 0.0 { (seconds(time)) } @else { "–" } }
            }
        }
    }
}

/// The functions that held a lock while tasks waited for it.
fn holders(profile: &Profile) -> Markup {
    let title = described(&profile.subject);
    html! {
        div.scroll role="region" tabindex="0" aria-label={ "Holders of locks of " (title) } {
            table.sortable {
                caption { (title) ", holders of the locks, the one most waited for first" }
                thead { tr {
                    th scope="col" { "Holder" } th scope="col" { "Process" }
                    th scope="col" { "Lock" } th scope="col" { "Held as" }
                    th.number scope="col" aria-sort="descending" { "Part of waiting" }
                    @for name in ["Holds", "Total", "Mean", "p99", "Worst"] {
                        th.number scope="col" { (name) }
                    }
                } }
                tbody { @for holder in profile.holders.iter().take(MOST) { (held(holder)) } }
            }
        }
    }
}

fn held(holder: &Holder) -> Markup {
    html! {
        tr {
            th.code scope="row" { (holder.function) }
            td { (holder.place()) @if !holder.watched { " (not watched)" } }
            td { (holder.lock) }
            td { (holder.kind.name()) }
            td.number data-v=(holder.share) { (percent(holder.share)) }
            td.number data-v=(holder.holds) { (grouped(holder.holds)) }
            @match holder.times {
                Some(Times { total, mean, p99, worst }) => {
                    @for time in [total, mean, p99, worst] {
                        td.number data-v=(time) { (seconds(time)) }
                    }
                }
                None => { @for _ in 0..4 { td.number { "–" } } }
            }
        }
    }
}

/// Traced and spun shares side by side, on a bar that stands for all task time.
fn bar(traced: f64, spin: f64) -> Markup {
    let width = |part: f64| format!("{:.1}%", 100.0 * part.clamp(0.0, 1.0));
    html! {
        svg.bar aria-hidden="true" width="64" height="8" {
            rect.whole width="100%" height="8" {}
            rect.traced width=(width(traced)) height="8" {}
            rect.spun x=(width(traced)) width=(width(spin.min(1.0 - traced.min(1.0)))) height="8" {}
        }
    }
}
