//! Events.

use super::expected::{Expected, OfMapping};
use super::wire::{Flaw, Wire, held};
use crate::{Advice, Call, Event, FaultKind, Place, Prot, Sharing, WaitFor, What};

/// The bits of an entry's first byte that are its kind.
const KIND: u8 = 0x3f;

/// The event has a thread; without it, it is of the thread of the event before.
const OTHER_THREAD: u8 = 0x80;

/// The call has an error, or parts.
const MORE: u8 = 0x40;

/// The kind of what is given; its call's kind follows.
const GIVEN: u8 = 7;
/// The kinds of calls are from here on.
const CALLS: u8 = 8;
const FAULT: u8 = CALLS + 11;

const ADVICE: [Advice; 9] = [
    Advice::Discard,
    Advice::Free,
    Advice::PageOut,
    Advice::Cold,
    Advice::Remove,
    Advice::PopulateRead,
    Advice::PopulateWrite,
    Advice::Huge,
    Advice::NoHuge,
];

/// The number of the kind.
pub fn kind(what: &What) -> u8 {
    match what {
        What::Unknown => 6,
        What::Given { .. } => GIVEN,
        What::Call { call, .. } => kind_of_call(call),
        What::Fault { .. } => FAULT,
        What::Start { .. } => 20,
        What::Fork { .. } => 21,
        What::Exec => 22,
        What::Exit => 23,
        What::Wait { .. } => 24,
        What::Wake { .. } => 25,
        What::Hold { .. } => 26,
    }
}

fn kind_of_call(call: &Call) -> u8 {
    CALLS
        + match call {
            Call::Map { .. } => 0,
            Call::Unmap { .. } => 1,
            Call::Protect { .. } => 2,
            Call::Advise { .. } => 3,
            Call::Remap { .. } => 4,
            Call::Break { .. } => 5,
            Call::Lock { .. } => 6,
            Call::Unlock { .. } => 7,
            Call::Sync { .. } => 8,
            Call::InCore { .. } => 9,
            Call::Other { .. } => 10,
        }
}

/// What an event with this first byte is, to be filled; none if none begins so.
pub fn blank(head: u8) -> Option<What> {
    let kind = head & KIND;
    let is_call = (CALLS..FAULT).contains(&kind);
    if head & MORE != 0 && !is_call {
        return None;
    }
    Some(match kind {
        6 => What::Unknown,
        GIVEN => What::Given {
            call: Call::Other { number: 0 },
        },
        CALLS..FAULT => What::Call {
            call: blank_call(kind)?,
            error: 0,
            parts: Vec::new(),
        },
        FAULT => What::Fault {
            at: Place::default(),
            pages: 0,
            write: false,
            kind: FaultKind::Missing,
            in_kernel: false,
        },
        20 => What::Start { thread: 0 },
        21 => What::Fork {
            thread: 0,
            borrows: false,
        },
        22 => What::Exec,
        23 => What::Exit,
        24 => What::Wait {
            on: WaitFor::Other,
            nanoseconds: 0,
            by: None,
        },
        25 => What::Wake { thread: 0 },
        26 => What::Hold {
            process: 0,
            write: false,
            nanoseconds: 0,
        },
        _ => return None,
    })
}

fn blank_call(kind: u8) -> Option<Call> {
    let (at, length, prot) = (Place::default(), 0, Prot::default());
    Some(match kind.checked_sub(CALLS)? {
        0 => Call::Map {
            mapping: 0,
            length,
            prot,
            sharing: Sharing::Private,
            file: None,
            over: None,
            populate: false,
            no_reserve: false,
            huge: false,
        },
        1 => Call::Unmap { at, length },
        2 => Call::Protect { at, length, prot },
        3 => Call::Advise {
            at,
            length,
            advice: Advice::Other(0),
        },
        4 => Call::Remap {
            at,
            length,
            new_length: 0,
            to: None,
        },
        5 => Call::Break { mapping: 0, length },
        6 => Call::Lock { at, length },
        7 => Call::Unlock { at, length },
        8 => Call::Sync { at, length },
        9 => Call::InCore { at, length },
        10 => Call::Other { number: 0 },
        _ => return None,
    })
}

/// The flags that the first byte of an event has.
pub fn flags(event: &Event, expected: &Expected) -> u8 {
    let other = event.thread != expected.thread;
    let more = match &event.what {
        What::Call { error, parts, .. } => *error != 0 || !parts.is_empty(),
        _ => false,
    };
    (u8::from(other) * OTHER_THREAD) | (u8::from(more) * MORE)
}

/// An event with this first byte.
pub fn event(
    wire: &mut impl Wire,
    expected: &mut Expected,
    head: u8,
    event: &mut Event,
) -> Result<(), Flaw> {
    if head & OTHER_THREAD == 0 {
        event.thread = expected.thread;
    } else {
        wire.small(&mut event.thread)?;
        expected.turn_to(event.thread);
    }
    wire.at_least(&mut event.at, expected.at)?;
    expected.at = event.at;
    let kind = usize::from(head & KIND);
    let computed = expected.own.computed[kind];
    wire.near(&mut event.computed, computed)?;
    expected.own.computed[kind] = event.computed;
    what(wire, expected, head, &mut event.what)
}

fn what(
    wire: &mut impl Wire,
    expected: &mut Expected,
    head: u8,
    what: &mut What,
) -> Result<(), Flaw> {
    match what {
        What::Unknown | What::Exec | What::Exit => Ok(()),
        What::Given { call } => given(wire, expected, call),
        What::Call { call, error, parts } => {
            self::call(wire, expected, call)?;
            if head & MORE == 0 {
                return Ok(());
            }
            wire.small(error)?;
            wire.each(parts, |wire, (at, length)| {
                range(wire, expected, at, length)
            })
        }
        What::Fault {
            at,
            pages,
            write,
            kind,
            in_kernel,
        } => {
            place(wire, expected, at)?;
            let mut protected = *kind == FaultKind::Protected;
            let mut coded = u64::from(*pages) << 3
                | u64::from(*in_kernel) << 2
                | u64::from(protected) << 1
                | u64::from(*write);
            wire.number(&mut coded)?;
            *pages = u32::try_from(coded >> 3).map_err(|_| "a fault has too many pages")?;
            [*write, protected, *in_kernel] = [0, 1, 2].map(|bit| coded >> bit & 1 == 1);
            *kind = match protected {
                true => FaultKind::Protected,
                false => FaultKind::Missing,
            };
            let bytes = u64::from(*pages) * expected.page;
            expected.of_mapping(at.mapping).offset = at.offset.wrapping_add(bytes);
            Ok(())
        }
        What::Start { thread } | What::Wake { thread } => wire.small(thread),
        What::Fork { thread, borrows } => {
            wire.small(thread)?;
            wire.flags([borrows])
        }
        What::Wait {
            on,
            nanoseconds,
            by,
        } => {
            wire.one_of(on, &WaitFor::ALL)?;
            wire.number(nanoseconds)?;
            let mut is_woken = by.is_some();
            wire.flags([&mut is_woken])?;
            let Some((thread, number)) = held(by, is_woken) else {
                return Ok(());
            };
            wire.small(thread)?;
            let next = expected.wake(*thread);
            wire.small_near(number, *next)?;
            *next = number.wrapping_add(1);
            Ok(())
        }
        What::Hold {
            process,
            write,
            nanoseconds,
        } => {
            wire.small(process)?;
            wire.flags([write])?;
            wire.number(nanoseconds)
        }
    }
}

fn given(wire: &mut impl Wire, expected: &mut Expected, call: &mut Call) -> Result<(), Flaw> {
    let written = kind_of_call(call);
    let mut kind = written;
    wire.byte(&mut kind)?;
    if kind != written {
        *call = blank_call(kind).ok_or_else(|| format!("no call has the kind {kind}"))?;
    }
    self::call(wire, expected, call)
}

fn call(wire: &mut impl Wire, expected: &mut Expected, call: &mut Call) -> Result<(), Flaw> {
    match call {
        Call::Map { .. } => map(wire, expected, call),
        Call::Unmap { at, length }
        | Call::Lock { at, length }
        | Call::Unlock { at, length }
        | Call::Sync { at, length }
        | Call::InCore { at, length } => range(wire, expected, at, length),
        Call::Protect { at, length, prot } => {
            range(wire, expected, at, length)?;
            wire.flags([&mut prot.read, &mut prot.write, &mut prot.execute])
        }
        Call::Advise { at, length, advice } => {
            range(wire, expected, at, length)?;
            self::advice(wire, advice)
        }
        Call::Remap {
            at,
            length,
            new_length,
            to,
        } => {
            range(wire, expected, at, length)?;
            wire.size(new_length, *length, expected.page)?;
            let mut moves = to.is_some();
            wire.flags([&mut moves])?;
            match held(to, moves) {
                Some(to) => made(wire, expected, to, *new_length),
                None => {
                    expected.of_mapping(at.mapping).length = *new_length;
                    Ok(())
                }
            }
        }
        Call::Break { mapping, length } => {
            wire.small_near(mapping, expected.own.mapping)?;
            expected.own.mapping = *mapping;
            let before = expected.of_mapping(*mapping).length;
            wire.size(length, before, expected.page)?;
            expected.of_mapping(*mapping).length = *length;
            Ok(())
        }
        Call::Other { number } => wire.small(number),
    }
}

fn map(wire: &mut impl Wire, expected: &mut Expected, call: &mut Call) -> Result<(), Flaw> {
    let Call::Map {
        mapping,
        length,
        prot,
        sharing,
        file,
        over,
        populate,
        no_reserve,
        huge,
    } = call
    else {
        return Ok(());
    };
    let mut is_shared = *sharing == Sharing::Shared;
    let (mut has_file, mut is_over) = (file.is_some(), over.is_some());
    wire.flags([
        &mut prot.read,
        &mut prot.write,
        &mut prot.execute,
        &mut is_shared,
        &mut has_file,
        no_reserve,
        populate,
        &mut is_over,
        huge,
    ])?;
    *sharing = match is_shared {
        true => Sharing::Shared,
        false => Sharing::Private,
    };
    let before = expected.own.length;
    wire.size(length, before, expected.page)?;
    expected.own.length = *length;
    if let Some((number, offset)) = held(file, has_file) {
        wire.small(number)?;
        wire.size(offset, 0, expected.page)?;
    }
    if let Some(over) = held(over, is_over) {
        place(wire, expected, over)?;
    }
    made(wire, expected, mapping, *length)
}

/// A mapping that is made, by the number that is next.
fn made(
    wire: &mut impl Wire,
    expected: &mut Expected,
    mapping: &mut u32,
    length: u64,
) -> Result<(), Flaw> {
    wire.small_near(mapping, expected.made)?;
    expected.made = mapping.wrapping_add(1);
    expected.own.mapping = *mapping;
    *expected.of_mapping(*mapping) = OfMapping { offset: 0, length };
    Ok(())
}

/// A place, by the thread's last mapping and the end of the last work on the mapping.
fn place(wire: &mut impl Wire, expected: &mut Expected, at: &mut Place) -> Result<(), Flaw> {
    wire.small_near(&mut at.mapping, expected.own.mapping)?;
    expected.own.mapping = at.mapping;
    let before = expected.of_mapping(at.mapping).offset;
    wire.size(&mut at.offset, before, expected.page)?;
    expected.of_mapping(at.mapping).offset = at.offset;
    Ok(())
}

/// A place, and a length by the mapping's.
fn range(
    wire: &mut impl Wire,
    expected: &mut Expected,
    at: &mut Place,
    length: &mut u64,
) -> Result<(), Flaw> {
    place(wire, expected, at)?;
    let before = expected.of_mapping(at.mapping).length;
    wire.size(length, before, expected.page)?;
    expected.of_mapping(at.mapping).length = *length;
    Ok(())
}

fn advice(wire: &mut impl Wire, advice: &mut Advice) -> Result<(), Flaw> {
    let index = ADVICE.iter().position(|one| one == advice);
    let mut coded = index.unwrap_or(ADVICE.len()) as u8;
    wire.byte(&mut coded)?;
    *advice = match (ADVICE.get(usize::from(coded)), *advice) {
        (Some(known), _) => *known,
        (None, Advice::Other(mut number)) if usize::from(coded) == ADVICE.len() => {
            wire.small(&mut number)?;
            Advice::Other(number)
        }
        _ => return Err(format!("an advice is {coded}")),
    };
    Ok(())
}
