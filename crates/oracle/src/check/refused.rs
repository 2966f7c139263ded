//! Steps that a system refused for lack of memory, or did in part.
//!
//! A refused step changes nothing, with a few exceptions: effects that also have happened on Linux
//! by then. The model performs those effects instead of the step.

use crate::address::{PAGE, Range};
use crate::model::Model;
use crate::outcome::{Outcome, Region};
use crate::step::{Call, ProcessId, Remap, Step, Transfer, Width};

/// The model, starting from `before`, in the state of the systems if one of them refused `step` or
/// did only an allowed part of it.
pub fn instead(mut before: Model, step: &Step, outcomes: &[(String, Outcome)]) -> Option<Model> {
    let mut outcomes = outcomes.iter();
    let refused = outcomes.find_map(|(_, outcome)| {
        let calls = done(&mut before, step, outcome)?;
        Some((calls, outcome))
    });
    let (calls, outcome) = refused?;
    let process = step.process;
    for call in calls {
        // An undefined effect has not happened either.
        let judged = before.judge(&Step { process, call });
        let part = judged.unwrap_or(Outcome::Done);
        if !matches!(outcome, Outcome::Refused(_)) && !part.agrees(outcome) {
            return None;
        }
    }
    Some(before)
}

/// The effects of a step with this outcome; `None` if it was neither refused nor cut short.
fn done(before: &mut Model, step: &Step, outcome: &Outcome) -> Option<Vec<Call>> {
    let call = step.call;
    match (call, outcome) {
        // The range is locked, though not all of it is in memory.
        (Call::Lock(_), Outcome::Refused(_)) => Some(vec![call]),
        // The only visible effect is that a stack has grown.
        (Call::Load(at, _) | Call::Store(at, ..), Outcome::Refused(_)) => {
            Some(vec![Call::Load(at, Width::Byte)])
        }
        (Call::Dump(_), Outcome::Refused(_)) => Some(vec![call]),
        (Call::Remap(remap), Outcome::Refused(_)) => Some(cleared(before, step.process, remap)),
        (_, Outcome::Refused(_)) => Some(vec![]),
        (Call::Write(transfer, byte), &Outcome::Value(bytes)) if bytes < transfer.bytes => {
            Some(vec![Call::Write(Transfer { bytes, ..transfer }, byte)])
        }
        (Call::Read(transfer), Outcome::Bytes(read)) if (read.len() as u64) < transfer.bytes => {
            let bytes = read.len() as u64;
            Some(vec![Call::Read(Transfer { bytes, ..transfer })])
        }
        _ => None,
    }
}

/// The effects of a refused move: the end of a longer source is cut off, and the target is cleared;
/// but if the move keeps the length, the target keeps its mappings opposite holes of the source.
fn cleared(before: &mut Model, process: ProcessId, remap: Remap) -> Vec<Call> {
    let Some(start) = remap.fixed else {
        return vec![];
    };
    let bytes = remap.bytes;
    if bytes.div_ceil(PAGE) == remap.old.bytes.div_ceil(PAGE) {
        let call = Call::Regions(remap.old);
        let Ok(Outcome::Regions(regions)) = before.judge(&Step { process, call }) else {
            return vec![];
        };
        let from = remap.old.start.offset;
        let place = |region: &Region| {
            let start = start.plus(region.start.offset.wrapping_sub(from));
            Call::Unmap(Range::pages(start, region.pages))
        };
        return regions.iter().map(place).collect();
    }
    let place = Call::Unmap(Range { start, bytes });
    let rest = remap.old.bytes.checked_sub(bytes).filter(|&rest| rest > 0);
    let rest = rest.map(|rest| {
        let start = remap.old.start.plus(bytes);
        Call::Unmap(Range { start, bytes: rest })
    });
    rest.into_iter().chain([place]).collect()
}
