//! Frames as SVG. Positions are shares of the width, so the graph fits any screen, and each frame
//! clips its own name.

use super::Frame;
use crate::html::{percent, seconds};
use maud::{Markup, html};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Height of a frame.
const ROW: usize = 18;
/// A frame narrower than this share of the page has no readable name.
const READABLE: f64 = 0.03;
/// Shades of a colour.
const SHADES: u64 = 3;
/// Parts of the names of functions that acquire or wait for locks.
const LOCKING: &[&str] = &[
    "spin_lock",
    "mutex",
    "rwsem",
    "down_read",
    "down_write",
    "spin_on_owner",
    "osq_lock",
    "futex",
    "slowpath",
    "lock_slow",
];

/// A graph's content.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Shows {
    /// Where time went; colours tell kernel, program and locks apart.
    Time,
    /// The changes; colours tell more from less.
    Change,
}

/// The graph.
pub fn svg(frames: &[Frame], shows: Shows, label: &str) -> Markup {
    let rows = frames.iter().map(|frame| frame.depth + 1).max();
    let height = rows.unwrap_or(0) * ROW;
    html! {
        svg.frames role="group" aria-label=(label) width="100%" height=(height) {
            @for (index, frame) in frames.iter().enumerate() {
                (one(frame, shows, index == 0))
            }
        }
    }
}

fn one(frame: &Frame, shows: Shows, first: bool) -> Markup {
    let (x, width) = (short(100.0 * frame.start), short(100.0 * frame.width));
    let says = says(frame, shows);
    let narrow = frame.width < READABLE;
    html! {
        g.frame.narrow[narrow] role="button"
            tabindex=(if first { "0" } else { "-1" }) aria-label=(says)
            data-x=(x) data-w=(width) data-d=(frame.depth) {
            svg x={ (x) "%" } width={ (width) "%" } y=(frame.depth * ROW) height=(ROW) {
                rect class=(colour(frame, shows)) width="100%" height=(ROW - 1) {}
                text x="4" y="13" { (frame.name) }
            }
        }
    }
}

fn says(frame: &Frame, shows: Shows) -> String {
    let Frame { name, share, .. } = frame;
    let share = percent(*share);
    match shows {
        Shows::Time => format!("{name}: {share} of task time, {}", seconds(frame.seconds)),
        Shows::Change => format!("{name}: {} → {share} of task time", percent(frame.before)),
    }
}

fn colour(frame: &Frame, shows: Shows) -> String {
    if shows == Shows::Change {
        return changed(frame.share - frame.before).to_owned();
    }
    let kind = match frame {
        Frame { depth: 0, .. } => return "root".into(),
        Frame { name, .. } if LOCKING.iter().any(|part| name.contains(part)) => "lock",
        Frame { kernel: true, .. } => "kernel",
        _ => "user",
    };
    let mut hasher = DefaultHasher::new();
    frame.name.hash(&mut hasher);
    format!("{kind} shade{}", hasher.finish() % SHADES)
}

fn changed(more: f64) -> &'static str {
    match more {
        m if m >= 0.1 => "more3",
        m if m >= 0.03 => "more2",
        m if m >= 0.005 => "more1",
        m if m > -0.005 => "same",
        m if m > -0.03 => "less1",
        m if m > -0.1 => "less2",
        _ => "less3",
    }
}

/// Three decimals without trailing zeros: a graph contains thousands of these.
fn short(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
