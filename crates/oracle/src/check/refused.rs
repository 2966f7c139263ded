//! Steps that a system has refused for want of memory, or done in part.
//!
//! A step that is refused has changed nothing, with a few exceptions: what Linux has done by then,
//! too. The model does what was done instead.

use crate::address::Range;
use crate::model::Model;
use crate::outcome::Outcome;
use crate::step::{Call, Remap, Step, Transfer, Width};

/// The model, which was `before`, as the systems are if one of them has refused `step`, or done a
/// part of it as it may.
pub fn instead(mut before: Model, step: &Step, outcomes: &[(String, Outcome)]) -> Option<Model> {
    let mut outcomes = outcomes.iter();
    let refused = outcomes.find_map(|(_, outcome)| Some((done(&step.call, outcome)?, outcome)));
    let (calls, outcome) = refused?;
    let process = step.process;
    for call in calls {
        // What is not defined has not been done either.
        let judged = before.judge(&Step { process, call });
        let part = judged.unwrap_or(Outcome::Done);
        if !matches!(outcome, Outcome::Refused(_)) && !part.agrees(outcome) {
            return None;
        }
    }
    Some(before)
}

/// What was done of a call with this outcome; `None` if it was neither refused nor cut short.
fn done(call: &Call, outcome: &Outcome) -> Option<Vec<Call>> {
    match (*call, outcome) {
        // It is locked, though not all of it is in memory.
        (Call::Lock(_), Outcome::Refused(_)) => Some(vec![*call]),
        // What is seen of it is that a stack has grown.
        (Call::Load(at, _) | Call::Store(at, ..), Outcome::Refused(_)) => {
            Some(vec![Call::Load(at, Width::Byte)])
        }
        (Call::Dump(_), Outcome::Refused(_)) => Some(vec![*call]),
        (Call::Remap(remap), Outcome::Refused(_)) => Some(cleared(remap)),
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

/// What a move that was refused has done: what becomes shorter is cut, and its place cleared.
fn cleared(remap: Remap) -> Vec<Call> {
    let Some(start) = remap.fixed else {
        return vec![];
    };
    let bytes = remap.bytes;
    let place = Call::Unmap(Range { start, bytes });
    let rest = remap.old.bytes.checked_sub(bytes).filter(|&rest| rest > 0);
    let rest = rest.map(|rest| {
        let start = remap.old.start.plus(bytes);
        Call::Unmap(Range { start, bytes: rest })
    });
    rest.into_iter().chain([place]).collect()
}
