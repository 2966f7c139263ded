//! What entries may refer to, since earlier ones defined it.

use super::entry::Entry;
use super::wire::Flaw;
use crate::{Call, Event, Place, What};
use std::collections::BTreeMap;

/// Numbers of mappings are below: so there are numbers for the mappings of two recordings in one.
const MAPPINGS: u32 = 1 << 31;

/// What is defined so far.
#[derive(Default)]
pub struct Known {
    processes: u32,
    threads: u32,
    files: u32,
    mappings: Numbers,
    /// The time of the last event.
    pub at: u64,
}

impl Known {
    /// Adds what the entry defines; an error if it refers to what is not defined, or to the past.
    pub fn admit(&mut self, entry: &Entry) -> Result<(), Flaw> {
        match entry {
            Entry::Process(number, _) => define("process", *number, &mut self.processes),
            Entry::Thread(number, thread) => {
                refer("process", thread.process, self.processes)?;
                define("thread", *number, &mut self.threads)
            }
            Entry::File(number, _) => define("file", *number, &mut self.files),
            Entry::Event(event) => self.event(event),
            Entry::End(nanoseconds) => self.passes(*nanoseconds),
            Entry::Head(..) | Entry::Toll(..) => Ok(()),
        }
    }

    fn event(&mut self, event: &Event) -> Result<(), Flaw> {
        self.thread(event.thread)?;
        self.passes(event.at)?;
        match &event.what {
            What::Unknown | What::Exec | What::Exit => {}
            What::Call { call, parts, .. } => {
                parts.iter().try_for_each(|(at, _)| self.place(*at))?;
                self.call(call)?;
            }
            What::Given { call } => self.call(call)?,
            What::Fault { at, .. } => self.place(*at)?,
            What::Start { thread } | What::Fork { thread, .. } | What::Wake { thread } => {
                self.thread(*thread)?;
            }
            What::Wait { by, .. } => by.map_or(Ok(()), |(thread, _)| self.thread(thread))?,
            What::Hold { process, .. } => refer("process", *process, self.processes)?,
        }
        self.at = event.at;
        Ok(())
    }

    fn call(&mut self, call: &Call) -> Result<(), Flaw> {
        call.at().map_or(Ok(()), |at| self.place(at))?;
        if let Call::Map {
            file: Some((file, _)),
            ..
        } = call
        {
            refer("file", *file, self.files)?;
        }
        if let Some(made) = call.made() {
            if made >= MAPPINGS {
                return Err(format!("mapping {made}: numbers are below {MAPPINGS}"));
            }
            self.mappings.insert(made);
        }
        Ok(())
    }

    fn thread(&self, thread: u32) -> Result<(), Flaw> {
        refer("thread", thread, self.threads)
    }

    fn place(&self, place: Place) -> Result<(), Flaw> {
        match self.mappings.has(place.mapping) {
            true => Ok(()),
            false => Err(format!("mapping {} is not defined", place.mapping)),
        }
    }

    fn passes(&self, at: u64) -> Result<(), Flaw> {
        match at >= self.at {
            true => Ok(()),
            false => Err(format!("{at} ns comes after {} ns", self.at)),
        }
    }
}

/// Numbers are defined in their order, and then as often as their definition changes.
fn define(what: &str, number: u32, count: &mut u32) -> Result<(), Flaw> {
    if number > *count {
        return Err(format!("{what} {number} is defined, but not {count}"));
    }
    // The largest number of all cannot be the next.
    *count = (*count).max(number.saturating_add(1));
    Ok(())
}

fn refer(what: &str, number: u32, count: u32) -> Result<(), Flaw> {
    match number < count {
        true => Ok(()),
        false => Err(format!("{what} {number} is not defined")),
    }
}

/// A set of numbers, as ranges: those of mappings follow each other.
#[derive(Default)]
struct Numbers(BTreeMap<u32, u32>);

impl Numbers {
    fn has(&self, number: u32) -> bool {
        let range = self.0.range(..=number).next_back();
        range.is_some_and(|(_, last)| number <= *last)
    }

    fn insert(&mut self, number: u32) {
        if self.has(number) {
            return;
        }
        let (mut first, mut last) = (number, number);
        if let Some((&before, &end)) = self.0.range(..number).next_back()
            && end + 1 == number
        {
            first = before;
        }
        if let Some(end) = number.checked_add(1).and_then(|next| self.0.remove(&next)) {
            last = end;
        }
        self.0.insert(first, last);
    }
}

#[cfg(test)]
mod tests {
    use super::Numbers;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn ranges_hold_what_a_set_holds(numbers in proptest::collection::vec(0..40_u32, 0..40)) {
            let (mut ranges, mut set) = (Numbers::default(), BTreeSet::new());
            for number in numbers {
                // Both ends of the numbers.
                for number in [number, u32::MAX - number] {
                    ranges.insert(number);
                    set.insert(number);
                }
            }
            for number in 0..50 {
                for number in [number, u32::MAX - number] {
                    prop_assert_eq!(ranges.has(number), set.contains(&number));
                }
            }
            let parts = set.iter().filter(|&&one| one == 0 || !set.contains(&(one - 1)));
            prop_assert_eq!(ranges.0.len(), parts.count());
        }
    }
}
