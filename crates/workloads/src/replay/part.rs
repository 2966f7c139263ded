//! One thread of a replayed program.

use super::{Act, Content, Replay, Spot, Start, Step};
use crate::{Backing, Call, Child, Counter, Error, System};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The number of operations that a part counts at a time: parts share a counter.
const BATCH: u64 = 32;

/// The addresses of a process's mappings, by number. A part reads what another has written only
/// behind an [`Act::After`], or if the other has started it; so relaxed.
#[derive(Debug)]
pub struct Addresses(Arc<[AtomicUsize]>);

impl Addresses {
    fn new(mappings: usize) -> Self {
        Addresses((0..mappings).map(|_| AtomicUsize::new(0)).collect())
    }

    /// Those of a copy of the process.
    fn copy(&self) -> Self {
        let each = self.0.iter();
        Addresses(
            each.map(|one| AtomicUsize::new(one.load(Relaxed)))
                .collect(),
        )
    }

    /// Those of the same process.
    fn share(&self) -> Self {
        Addresses(self.0.clone())
    }

    fn at(&self, spot: Spot) -> usize {
        self.0[spot.mapping as usize]
            .load(Relaxed)
            .wrapping_add(spot.offset)
    }

    fn set(&self, mapping: u32, address: usize) {
        self.0[mapping as usize].store(address, Relaxed);
    }
}

/// The counter of a program's operations.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tick(NonNull<Counter>);

// SAFETY: a counter may be used by all threads.
unsafe impl Send for Tick {}
// SAFETY: likewise.
unsafe impl Sync for Tick {}

impl Tick {
    /// # Safety
    /// The counter outlives this and its copies, and lies at the same address in each process that
    /// has them.
    pub unsafe fn new(counter: &Counter) -> Self {
        Tick(NonNull::from(counter))
    }

    /// Stops the program.
    fn stop(self) {
        // SAFETY: the promise of `new`.
        unsafe { self.0.as_ref() }.stop();
    }

    /// Counts `operations`. Returns true if the program is to go on.
    fn add(self, operations: u64) -> bool {
        // SAFETY: the promise of `new`.
        unsafe { self.0.as_ref() }.add_shared(operations)
    }
}

/// One thread of a replayed program, before it has begun. `F` is the system's file.
#[derive(Debug)]
pub struct Part<F> {
    replay: &'static Replay,
    number: u32,
    addresses: Addresses,
    files: Arc<[F]>,
    tick: Tick,
}

impl<F> Part<F> {
    /// The program's first thread.
    pub(super) fn first(replay: &'static Replay, files: Arc<[F]>, tick: Tick) -> Self {
        Part {
            replay,
            number: 0,
            addresses: Addresses::new(replay.mappings),
            files,
            tick,
        }
    }

    /// A part that this one starts.
    fn other(&self, number: u32, start: Start) -> Self {
        Part {
            number,
            addresses: match start {
                Start::Thread => self.addresses.share(),
                Start::Copy => self.addresses.copy(),
                Start::Fresh => Addresses::new(self.replay.mappings),
            },
            files: self.files.clone(),
            ..*self
        }
    }

    /// Takes the steps, and waits for the parts that it has started.
    ///
    /// # Errors
    /// The first step that fails, which stops the program.
    pub fn run<S: System<File = F>>(self, system: &mut S) -> Result<(), Error> {
        let mut children = Vec::new();
        let mut taken = 0;
        let result = self.take_steps(system, &mut taken, &mut children);
        if result.is_err() {
            self.tick.stop();
        }
        self.end(system, self.number, taken);
        for child in children {
            expect_success(system, child)?;
        }
        result
    }

    /// Lets nobody wait for a part that takes no more steps than it has `taken`, nor for those that
    /// it has not started.
    fn end<S: System>(&self, system: &mut S, part: u32, taken: usize) {
        system.end_steps(part);
        for step in &self.replay.parts[part as usize][taken..] {
            if let Act::Begin { part, .. } = step.act {
                self.end(system, part, 0);
            }
        }
    }

    fn take_steps<S: System<File = F>>(
        &self,
        system: &mut S,
        taken: &mut usize,
        children: &mut Vec<Child>,
    ) -> Result<(), Error> {
        let mut operations = 0;
        let steps: &[Step] = &self.replay.parts[self.number as usize];
        for (number, step) in (1..).zip(steps) {
            children.extend(self.take(step.act, system)?);
            *taken += 1;
            // A part that has stopped may have left out what this one needs.
            if matches!(step.act, Act::After { .. }) && !self.tick.add(0) {
                return Ok(());
            }
            if step.is_awaited {
                system.announce_steps(self.number, number);
            }
            operations += u64::from(step.counts);
            if operations == BATCH {
                operations = 0;
                if !self.tick.add(BATCH) {
                    return Ok(());
                }
            }
        }
        // At the end anyway.
        let _ = self.tick.add(operations);
        Ok(())
    }

    /// Takes a step; returns the child that it starts.
    fn take<S: System<File = F>>(&self, act: Act, system: &mut S) -> Result<Option<Child>, Error> {
        let at = |spot| self.addresses.at(spot);
        match act {
            Act::Compute(nanoseconds) => system.spend(nanoseconds),
            Act::Sleep(nanoseconds) => {
                let now = system.now()?;
                system.sleep_until(now + nanoseconds)?;
            }
            Act::After { part, steps } => system.await_steps(part, steps)?,
            Act::Begin { part, start } => {
                return system.begin(self.other(part, start), start).map(Some);
            }
            Act::Map {
                mapping,
                length,
                prot,
                content,
                over,
            } => {
                let backing = match content {
                    Content::Anonymous => Backing::Anonymous,
                    Content::SharedAnonymous => Backing::SharedAnonymous,
                    Content::PrivateFile(file) => Backing::PrivateFile(&self.files[file as usize]),
                    Content::SharedFile(file) => Backing::SharedFile(&self.files[file as usize]),
                };
                let address = match over {
                    None => system.map(length, prot, backing)?,
                    Some(spot) => {
                        system.map_over(at(spot), length, prot, backing)?;
                        at(spot)
                    }
                };
                self.addresses.set(mapping, address);
            }
            Act::Unmap { at: spot, length } => system.unmap(at(spot), length)?,
            Act::Protect {
                at: spot,
                length,
                prot,
            } => system.protect(at(spot), length, prot)?,
            Act::Treat {
                at: spot,
                length,
                how,
            } => system.treat(at(spot), length, how)?,
            Act::Remap {
                at: spot,
                length,
                new_length,
                to,
            } => {
                let address = system.remap(at(spot), length, new_length)?;
                let base = address.wrapping_sub(to.offset);
                self.addresses.set(to.mapping, base);
            }
            Act::Break { mapping, length } => {
                let mut start = at(Spot { mapping, offset: 0 });
                if start == 0 {
                    start = system.program_break()?;
                    self.addresses.set(mapping, start);
                }
                system.set_program_break(start + length)?;
            }
            Act::Touch {
                at: spot,
                pages,
                write,
            } => touch(system, at(spot), pages, write)?,
            Act::Scan => {
                if !system.scan()? {
                    system.scan()?;
                }
            }
        }
        Ok(None)
    }
}

fn touch<S: System>(system: &mut S, start: usize, pages: u32, write: bool) -> Result<(), Error> {
    for page in 0..pages as usize {
        let address = start + page * system.page_size();
        if write {
            system.write(address, 1)?;
        } else {
            system.read(address)?;
        }
    }
    Ok(())
}

/// Waits for a child, which must succeed.
pub(super) fn expect_success<S: System>(system: &mut S, child: Child) -> Result<(), Error> {
    match system.wait(child)? {
        0 => Ok(()),
        code => Err(Error::Failed(Call::Replay, code.into())),
    }
}
