//! Objects that processes find by a number or a key (System V): segments, sets of semaphores,
//! queues of messages.
//!
//! A number consists of the object's place and, above it, a count of the objects so far, so the
//! number of a removed object is not soon reused.

use crate::errno::Errno;
use crate::fs::now;
use crate::system::system;
use alloc::vec::Vec;

/// The most objects of a kind.
const PLACES: usize = 1 << 15;
/// The number of successive objects with different numbers.
const ROUND: usize = 1 << 16;
/// The permission bits of a mode.
const MODE: u32 = 0o777;

/// An object that has a key.
pub trait Keyed {
    /// The key; 0 for none.
    fn key(&self) -> i32;
}

/// The objects of a kind.
pub struct Numbered<T> {
    places: Vec<Option<(i32, T)>>,
    /// The number of objects so far, modulo [`ROUND`].
    made: usize,
    /// The most objects.
    most: usize,
}

/// The owner of an object, and the permissions.
#[derive(Clone, Copy)]
pub struct Rights {
    /// The permission bits.
    pub mode: u32,
    /// Its owner: user and group.
    owner: (u32, u32),
    /// Who has made it.
    maker: (u32, u32),
}

impl<T: Keyed> Numbered<T> {
    /// No objects; there are never more than `most`.
    pub fn new(most: usize) -> Self {
        assert!(most <= PLACES);
        Numbered {
            places: Vec::new(),
            made: 0,
            most,
        }
    }

    /// The object with a number.
    pub fn get(&mut self, number: i32) -> Result<&mut T, Errno> {
        match self.places.get_mut(number as usize % PLACES) {
            Some(Some((its, it))) if *its == number => Ok(it),
            _ => Err(Errno::INVAL),
        }
    }

    /// The object at a place, and its number.
    pub fn at(&mut self, place: usize) -> Result<(i32, &mut T), Errno> {
        match self.places.get_mut(place) {
            Some(Some((number, it))) => Ok((*number, it)),
            _ => Err(Errno::INVAL),
        }
    }

    /// The object with a key, and its number.
    pub fn find(&mut self, key: i32) -> Option<(i32, &mut T)> {
        let mut all = self.places.iter_mut().flatten();
        let found = all.find(|(_, it)| key != 0 && it.key() == key);
        found.map(|(number, it)| (*number, it))
    }

    /// Adds what `make` makes with its number; returns that.
    pub fn add(&mut self, make: impl FnOnce(i32) -> Result<T, Errno>) -> Result<i32, Errno> {
        let free = self.places.iter().position(Option::is_none);
        let place = free.unwrap_or(self.places.len());
        if place >= self.most {
            return Err(Errno::NOSPC);
        }
        self.places.try_reserve(1).map_err(|_| Errno::NOMEM)?;
        let number = (self.made * PLACES + place) as i32;
        let it = Some((number, make(number)?));
        match self.places.get_mut(place) {
            Some(free) => *free = it,
            None => self.places.push(it),
        }
        self.made = (self.made + 1) % ROUND;
        Ok(number)
    }

    /// Removes an object.
    pub fn remove(&mut self, number: i32) -> Result<T, Errno> {
        self.get(number)?;
        let taken = self.places[number as usize % PLACES].take();
        taken.map(|(_, it)| it).ok_or(Errno::INVAL)
    }

    /// Removes all objects for which `stays` returns false.
    pub fn retain(&mut self, stays: impl Fn(&T) -> bool) {
        for place in &mut self.places {
            if place.as_ref().is_some_and(|(_, it)| !stays(it)) {
                *place = None;
            }
        }
    }

    /// All objects.
    pub fn all(&mut self) -> impl Iterator<Item = &mut T> {
        self.places.iter_mut().flatten().map(|(_, it)| it)
    }

    /// The last place that is taken; 0 if none is.
    pub fn last_place(&self) -> usize {
        self.places.iter().rposition(Option::is_some).unwrap_or(0)
    }
}

impl Rights {
    /// The rights of an object that the calling task makes, with the permissions of a mode.
    pub fn new(mode: u32) -> Self {
        let maker = system().kernel.caller.identity();
        let maker = (maker.user, maker.group);
        Rights {
            mode: mode & MODE,
            owner: maker,
            maker,
        }
    }

    /// Sets the rights by the first words of `ipc64_perm`.
    pub fn set(&mut self, [owner, group, mode]: [usize; 3]) {
        self.owner = ((owner >> 32) as u32, group as u32);
        self.mode = (mode >> 32) as u32 & MODE;
    }

    /// `ipc64_perm`, in words.
    pub fn words(&self, key: i32) -> [u64; 6] {
        let (user, group) = self.owner;
        let (maker, its_group) = self.maker;
        let pairs = [(key as u32, user), (group, maker), (its_group, self.mode)];
        let [key, group, maker] = pairs.map(two);
        [key, group, maker, 0, 0, 0]
    }
}

/// A word of two numbers.
pub fn two((low, high): (u32, u32)) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// Seconds since 1970.
pub fn seconds() -> u64 {
    const SECOND: u64 = 1_000_000_000;
    now() / SECOND
}
