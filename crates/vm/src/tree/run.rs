//! The search for the next mapping.

use super::extent::{Extent, Mapped};
use super::state::State;
use super::{ALL, Tree};
use crate::system::System;
use machine::VaRange;

impl<S: System> Tree<S> {
    /// The first mapping that overlaps `range`, from the range's start on, and beyond its end as
    /// far as the attributes stay the same; as of a moment ago. Holds one lock at a time, and none
    /// of an empty slot; needs no memory.
    pub(crate) fn first_run(&self, range: VaRange) -> Option<Extent<S>> {
        let mut run: Option<Extent<S>> = None;
        let upwards = VaRange {
            start: range.start,
            end: ALL.end,
        };
        for place in self.places(upwards) {
            let is_empty = place.slot.state() == State::Empty;
            if run.is_some() && is_empty {
                break;
            }
            let mut is_over = false;
            if !is_empty {
                for part in self.at(place, place.range).lock_whole().parts() {
                    part.for_each(|mapped| is_over |= !extend(&mut run, range, &mapped));
                }
            }
            let to = place.range.end;
            let goes_on = match &run {
                Some(run) => run.range.end == to,
                None => to < range.end,
            };
            if is_over || !goes_on {
                break;
            }
        }
        run
    }
}

/// Lets `mapped` begin the run in `range`, or continue it. Returns false if it ends the run; then
/// the caller passes no later mapping.
fn extend<S: System>(run: &mut Option<Extent<S>>, range: VaRange, mapped: &Mapped<'_, S>) -> bool {
    match run {
        _ if mapped.range.end <= range.start => true,
        None if mapped.range.start < range.end => {
            let start = mapped.range.start.max(range.start);
            *run = Some(Extent {
                range: VaRange {
                    start,
                    end: mapped.range.end,
                },
                attributes: mapped.attributes(),
            });
            true
        }
        Some(run) if run.range.end == mapped.range.start => {
            let alike = run.attributes == mapped.attributes();
            if alike {
                run.range.end = mapped.range.end;
            }
            alike
        }
        _ => false,
    }
}
