//! A task's descriptors, which it reads, writes and polls.

use ipc::{End, Kernel, Pipe};
use machine::{Atomic, AtomicInt, Machine, Ordering};
use std::sync::Arc;
use sync::Padded;
use workloads::{Call, Descriptor, Error};

/// The object behind a descriptor.
pub enum Open<M: Machine> {
    /// A file, which tasks only poll for writing: it is always writable. Holds the count of its
    /// references; the polling task has one.
    File(Padded<M::AtomicU32>),
    /// An end of a pipe of the task's own, closed with its descriptor.
    Own(Arc<Pipe<M>>, End),
    /// An end of a pipe that tasks have in common.
    Common(Arc<Pipe<M>>, End),
}

impl<M: Machine> Open<M> {
    /// A file that no task polls yet.
    pub fn new_file() -> Self {
        Open::File(Padded(Atomic::new(1)))
    }

    fn end(&self) -> Option<(&Pipe<M>, End)> {
        match self {
            Open::File(_) => None,
            Open::Own(pipe, end) | Open::Common(pipe, end) => Some((pipe, *end)),
        }
    }

    /// Closes an end of the task's own.
    pub fn close<K: Kernel<M>>(self, kernel: &K) {
        if let Open::Own(pipe, end) = self {
            pipe.close(kernel, end);
        }
    }
}

/// A task's descriptors, by number.
pub struct Descriptors<M: Machine>(Vec<Option<Open<M>>>);

impl<M: Machine> Descriptors<M> {
    /// No descriptors.
    pub fn new() -> Self {
        Descriptors(Vec::new())
    }

    /// The lowest free number, for `open`.
    pub fn add(&mut self, open: Open<M>) -> Descriptor {
        let free = self.0.iter().position(Option::is_none);
        let place = free.unwrap_or_else(|| {
            self.0.push(None);
            self.0.len() - 1
        });
        self.0[place] = Some(open);
        Descriptor(place as i32)
    }

    /// Adds both ends, and returns their numbers.
    pub fn add_ends(&mut self, of: impl Fn(End) -> Open<M>) -> [Descriptor; 2] {
        [End::Reading, End::Writing].map(|end| self.add(of(end)))
    }

    fn get(&self, descriptor: Descriptor, call: Call) -> Result<&Open<M>, Error> {
        let place = usize::try_from(descriptor.0).ok();
        let open = place.and_then(|place| self.0.get(place)?.as_ref());
        open.ok_or(Error::Failed(call, libc::EBADF))
    }

    /// The pipe whose end `end` the descriptor is.
    fn pipe(&self, descriptor: Descriptor, end: End, call: Call) -> Result<&Pipe<M>, Error> {
        match self.get(descriptor, call)?.end() {
            Some((pipe, which)) if which == end => Ok(pipe),
            _ => Err(Error::Failed(call, libc::EBADF)),
        }
    }

    /// Takes a number back; returns its object.
    pub fn remove(&mut self, which: Descriptor) -> Result<Open<M>, Error> {
        self.get(which, Call::Close)?;
        let open = self.0[which.0 as usize].take();
        open.ok_or(Error::Failed(Call::Close, libc::EBADF))
    }

    /// Reads from a pipe.
    pub fn read<K: Kernel<M>>(
        &self,
        kernel: &K,
        from: Descriptor,
        bytes: &mut [u8],
    ) -> Result<usize, Error> {
        let pipe = self.pipe(from, End::Reading, Call::Read)?;
        Ok(pipe.read(kernel, bytes))
    }

    /// Writes to a pipe.
    pub fn write<K: Kernel<M>>(
        &self,
        kernel: &K,
        to: Descriptor,
        bytes: &[u8],
    ) -> Result<usize, Error> {
        let pipe = self.pipe(to, End::Writing, Call::Write)?;
        let written = pipe.write(kernel, bytes);
        written.map_or(Err(Error::Failed(Call::Write, libc::EPIPE)), |()| {
            Ok(bytes.len())
        })
    }

    /// Returns true if a write would not wait now.
    pub fn is_writable<K: Kernel<M>>(&self, kernel: &K, to: Descriptor) -> Result<bool, Error> {
        Ok(match self.get(to, Call::Poll)? {
            Open::File(references) => {
                // Relaxed: no task frees it meanwhile.
                references.fetch_add(1, Ordering::Relaxed);
                references.fetch_sub(1, Ordering::Relaxed);
                true
            }
            Open::Own(pipe, end) | Open::Common(pipe, end) => {
                *end == End::Writing && ipc::poll(kernel, &[(pipe, *end)], false) != 0
            }
        })
    }

    /// Waits until one of the descriptors can be read from; returns which, as bits.
    pub fn poll<K: Kernel<M>>(&self, kernel: &K, from: &[Descriptor]) -> Result<u64, Error> {
        let end = |&one| Ok((self.pipe(one, End::Reading, Call::Poll)?, End::Reading));
        let ends: Vec<(&Pipe<M>, End)> = from.iter().map(end).collect::<Result<_, Error>>()?;
        Ok(ipc::poll(kernel, &ends, true))
    }
}
