//! near_fault1, pft: threads of one process write the pages of one fresh mapping.
//!
//! Unlike in page_fault1, all threads of a process write to one mapping. In pft each has a part of
//! it to itself, as in the test of that name. In near_fault1 they write neighbouring pages: of as
//! many as there are threads, each writes one, so all of them fault in the same 2 MiB, for which a
//! kernel has one leaf table. A process with one thread does what it does in page_fault1.
//!
//! The first thread, the *leader*, maps the memory and says where; when all have written their
//! pages it unmaps. Each tells by a byte of its own how far it has come, and wakes by a futex the
//! others that wait for that.

use crate::steps::fault_each_page;
use crate::{Backing, Counter, Error, Feature, Needs, Prot, SIZE, System, Workload};

const NEEDS: Needs = Needs {
    memory: SIZE,
    features: &[Feature::Futexes, Feature::Neighbours],
    ..Needs::NOTHING
};

pub(crate) const NEAR: Workload = Workload {
    name: "near_fault1",
    description: "Anonymous memory page fault next to other threads' pages",
    unit: "page faults",
    needs: NEEDS,
    size: SIZE,
    body: crate::Body::NearFault1,
};

pub(crate) const APART: Workload = Workload {
    name: "pft",
    description: "Anonymous memory page fault of threads in one mapping",
    unit: "page faults",
    needs: NEEDS,
    size: SIZE,
    body: crate::Body::Pft,
};

/// The pages of a mapping that a thread writes.
#[derive(Clone, Copy)]
pub(crate) enum Pages {
    /// One of as many as there are threads, from each row of them.
    Near,
    /// A part of the mapping.
    Apart,
}

/// The byte that says that a thread has stopped; rounds have lower numbers.
const GONE: u8 = u8::MAX;
/// Where the leader writes the address of the memory that it has mapped, behind its byte.
const PLACE: usize = 8;

pub(crate) fn run<S: System>(
    system: &mut S,
    tick: &Counter,
    size: usize,
    pages: Pages,
) -> Result<(), Error> {
    if system.companions() == 1 {
        return fault_each_page(system, tick, size, Backing::Anonymous);
    }
    let team = Team::new(system, size, pages)?;
    let done = team.work(system, tick);
    let told = team.tell(system, GONE);
    done?; // the first error is the cause
    told
}

/// A thread's view of its process's threads.
struct Team {
    /// Bytes of a page; each thread has a page in the common memory.
    page: usize,
    /// The address of the common memory, whose first page is the leader's.
    words: usize,
    number: usize,
    count: usize,
    /// Bytes that each thread touches in a round.
    size: usize,
    pages: Pages,
}

impl Team {
    fn new<S: System>(system: &mut S, size: usize, pages: Pages) -> Result<Self, Error> {
        Ok(Team {
            page: system.page_size(),
            words: system.common_memory()?,
            number: system.number(),
            count: system.companions(),
            size,
            pages,
        })
    }

    fn leads(&self) -> bool {
        self.number == 0
    }

    /// Repeats rounds until `tick` says to stop, or the leader has stopped.
    fn work<S: System>(&self, system: &mut S, tick: &Counter) -> Result<(), Error> {
        let mut round = 0;
        loop {
            round = round % (GONE - 1) + 1;
            let Some(start) = self.begin(system, round)? else {
                return Ok(());
            };
            let touched = self.touch(system, tick, start);
            let ended = if self.leads() {
                self.unmap(system, round, start)
            } else {
                Ok(())
            };
            let goes_on = touched?; // the first error is the cause
            ended?;
            if !goes_on {
                return Ok(());
            }
            if !self.leads() {
                self.tell(system, round)?;
            }
        }
    }

    /// Begins `round`: returns its memory, which the leader maps; none if the leader has stopped.
    fn begin<S: System>(&self, system: &mut S, round: u8) -> Result<Option<usize>, Error> {
        let place = self.words + PLACE;
        if !self.leads() {
            if self.wait(system, 0, round)? == GONE {
                return Ok(None);
            }
            let mut start = [0; size_of::<usize>()];
            for (at, byte) in start.iter_mut().enumerate() {
                *byte = system.read(place + at)?;
            }
            return Ok(Some(usize::from_le_bytes(start)));
        }
        let start = system.map(self.bytes(), Prot::ReadWrite, Backing::Anonymous)?;
        let mut said = (place..).zip(start.to_le_bytes());
        let said = said.try_for_each(|(at, byte)| system.write(at, byte));
        let told = said.and_then(|()| self.tell(system, round));
        if told.is_err() {
            // Threads that wait for the round stop waiting; those that have seen it are waited for.
            let ended = self.tell(system, GONE);
            ended.and_then(|()| self.unmap(system, round, start))?;
        }
        told.map(|()| Some(start))
    }

    /// Bytes of the memory of a round: as much for each thread as page_fault1 has.
    fn bytes(&self) -> usize {
        self.size * self.count
    }

    /// Writes this thread's pages. Returns true if it is to go on.
    fn touch<S: System>(
        &self,
        system: &mut S,
        tick: &Counter,
        start: usize,
    ) -> Result<bool, Error> {
        let own = self.size / self.page;
        for number in 0..own {
            let page = match self.pages {
                Pages::Near => number * self.count + self.number,
                Pages::Apart => self.number * own + number,
            };
            system.write(start + page * self.page, 0)?;
            if !tick.add(1) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Unmaps the memory of `round`, when all others have written their pages, or have stopped.
    fn unmap<S: System>(&self, system: &mut S, round: u8, start: usize) -> Result<(), Error> {
        (1..self.count).try_for_each(|other| self.wait(system, other, round).map(drop))?;
        system.unmap(start, self.bytes())
    }

    /// Tells the other threads that this one has come to `round`.
    fn tell<S: System>(&self, system: &mut S, round: u8) -> Result<(), Error> {
        let word = self.words + self.number * self.page;
        system.write(word, round)?;
        system.futex_wake(word, self.count as u32).map(drop)
    }

    /// Waits until thread `other` has come to `round`, or has stopped; returns which.
    fn wait<S: System>(&self, system: &mut S, other: usize, round: u8) -> Result<u8, Error> {
        let word = self.words + other * self.page;
        loop {
            match system.read(word)? {
                there if there == round || there == GONE => return Ok(there),
                before => system.futex_wait(word, before.into())?,
            };
        }
    }
}
