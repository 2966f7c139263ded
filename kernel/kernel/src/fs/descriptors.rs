//! A process's descriptors.

use super::OpenFile;
use crate::errno::Errno;
use crate::heap;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The most descriptors of a process, with any limit.
pub const MOST: usize = 1 << 20;
/// The initial limit.
const FIRST: usize = 1024;

/// A descriptor.
#[derive(Clone)]
pub struct Descriptor {
    /// Its open file.
    pub file: Arc<OpenFile>,
    /// True if a new program does not inherit it.
    pub close_on_exec: bool,
}

/// The descriptors of a process, by number.
#[derive(Clone)]
pub struct Descriptors {
    places: Vec<Option<Descriptor>>,
    /// Numbers from this one on are not given.
    limit: usize,
    /// All numbers below this one are taken.
    taken: usize,
}

impl Default for Descriptors {
    fn default() -> Self {
        Descriptors {
            places: Vec::new(),
            limit: FIRST,
            taken: 0,
        }
    }
}

impl Descriptors {
    /// Sets the limit: numbers from it on are not given; existing descriptors stay.
    pub fn limit(&mut self, limit: usize) {
        self.limit = limit.min(MOST);
    }

    /// The descriptor with this number.
    pub fn get(&mut self, number: usize) -> Result<&mut Descriptor, Errno> {
        let place = self.places.get_mut(number).and_then(Option::as_mut);
        place.ok_or(Errno::BADF)
    }

    /// The room for descriptors at present, as Linux has it: 64, or a power of two above.
    pub fn size(&self) -> usize {
        self.places.len().next_power_of_two().max(64)
    }

    /// Gives the file the lowest free number from `least` on.
    pub fn add(
        &mut self,
        file: Arc<OpenFile>,
        close_on_exec: bool,
        least: usize,
    ) -> Result<usize, Errno> {
        if least > 0 && least >= self.limit {
            return Err(Errno::INVAL);
        }
        if heap::is_short() {
            return Err(Errno::NFILE);
        }
        let is_free = |number: &usize| self.places.get(*number).is_none_or(Option::is_none);
        let free = (least.max(self.taken)..self.limit).find(is_free);
        let number = free.ok_or(Errno::MFILE)?;
        self.put(number, file, close_on_exec)?;
        if least <= self.taken {
            self.taken = number + 1;
        }
        Ok(number)
    }

    /// Gives the file a number; returns the descriptor that had it.
    pub fn put(
        &mut self,
        number: usize,
        file: Arc<OpenFile>,
        close_on_exec: bool,
    ) -> Result<Option<Descriptor>, Errno> {
        if number >= self.limit {
            return Err(Errno::BADF);
        }
        if self.places.len() <= number {
            let more = number + 1 - self.places.len();
            self.places.try_reserve(more).map_err(|_| Errno::NOMEM)?;
            self.places.resize(number + 1, None);
        }
        let descriptor = Descriptor {
            file,
            close_on_exec,
        };
        Ok(self.places[number].replace(descriptor))
    }

    /// Removes a descriptor.
    pub fn take(&mut self, number: usize) -> Result<Descriptor, Errno> {
        let place = self.places.get_mut(number).and_then(Option::take);
        self.taken = self.taken.min(number);
        place.ok_or(Errno::BADF)
    }

    /// The lowest number of a descriptor from `least` on.
    pub fn from(&self, least: usize) -> Option<usize> {
        let places = self.places.get(least..)?;
        let place = places.iter().position(Option::is_some)?;
        Some(least + place)
    }

    /// The open files.
    pub fn all(&self) -> impl Iterator<Item = &Arc<OpenFile>> {
        self.places.iter().flatten().map(|one| &one.file)
    }

    /// Removes the first descriptor from number `from` on that a new program does not inherit;
    /// returns its number, and the descriptor, to be dropped where nothing is locked.
    pub fn take_private(&mut self, from: usize) -> Option<(usize, Descriptor)> {
        let mut places = self.places.iter_mut().enumerate().skip(from);
        let found =
            places.find_map(|(number, one)| Some((number, one.take_if(|it| it.close_on_exec)?)));
        self.taken = self
            .taken
            .min(found.as_ref().map_or(usize::MAX, |(number, _)| *number));
        found
    }
}
