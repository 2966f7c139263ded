//! From paths to inodes.
//!
//! A walk goes from name to name. The text of a symbolic link replaces the link's name, so a walk
//! has one path at a time, even if links lead to links.

use super::access::OF_GROUP;
use super::{Inode, Kind, ROOT};
use crate::errno::Errno;
use crate::users::RUN;
use alloc::borrow::Cow;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::Ordering;
use linux_raw_sys::general::{IN_CREATE, IN_DELETE};

/// A path, and the directory at which it begins unless it begins with `/`.
pub struct Path<'a> {
    /// The directory at which it begins.
    pub from: Arc<Inode>,
    /// The names, with `/` between.
    pub names: &'a [u8],
}

/// The last name of a path, in its directory. The name need not exist.
pub struct Place<'a> {
    directory: Arc<Inode>,
    names: Cow<'a, [u8]>,
    /// The range of the last one in `names`; empty for the root.
    last: Range<usize>,
    /// The number of symbolic links that may still be followed.
    links: usize,
}

/// The last name of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Last<'a> {
    /// No name: the root.
    Root,
    /// `.`
    Here,
    /// `..`
    Above,
    /// Any other name.
    Name(&'a [u8]),
}

/// The most bytes of a name.
const NAME: usize = 255;
/// The most symbolic links in one walk.
const LINKS: usize = 40;

/// The inode at a path; follows a link at its end if `follow` says so.
pub fn find(path: &Path, follow: bool) -> Result<Arc<Inode>, Errno> {
    let mut place = Place::of(path)?;
    loop {
        let found = place.entry()?;
        let is_directory = place.has_slash();
        match &found.kind {
            Kind::Link(to) if follow || is_directory => place = place.through(to)?,
            Kind::Jump(jump) if follow || is_directory => {
                return place.checked(jump.to.clone());
            }
            _ => return place.checked(found),
        }
    }
}

impl<'a> Place<'a> {
    /// Walks to the last name of a path.
    ///
    /// # Errors
    /// If one of the names before it leads to no directory or to one that may not be searched, the
    /// path is empty, a name is too long, or more than 40 links are on the way.
    pub fn of(path: &Path<'a>) -> Result<Self, Errno> {
        if path.names.is_empty() {
            return Err(Errno::NOENT);
        }
        let place = Place {
            directory: start(&path.from, path.names),
            names: Cow::Borrowed(path.names),
            last: 0..0,
            links: LINKS,
        };
        place.walk()
    }

    /// Walks on from the start of the names.
    fn walk(mut self) -> Result<Self, Errno> {
        let mut at = 0;
        loop {
            self.directory.directory()?;
            self.directory.refuse(RUN)?;
            let name = next_name(&self.names, at);
            if name.len() > NAME {
                return Err(Errno::NAMETOOLONG);
            }
            at = name.end;
            self.last = name;
            if self.names[at..].iter().all(|&byte| byte == b'/') {
                return Ok(self);
            }
            let next = self.entry()?;
            match &next.kind {
                Kind::Link(to) => {
                    self.enter(to)?;
                    at = 0;
                }
                Kind::Jump(jump) => self.directory = jump.to.clone(),
                _ => self.directory = next,
            }
        }
    }

    /// Replaces the last name walked to by the text of a link.
    fn enter(&mut self, link: &[u8]) -> Result<(), Errno> {
        self.links = self.links.checked_sub(1).ok_or(Errno::LOOP)?;
        let rest = &self.names[self.last.end..];
        let mut names = Vec::new();
        let bytes = link.len() + rest.len();
        names.try_reserve_exact(bytes).map_err(|_| Errno::NOMEM)?;
        names.extend_from_slice(link);
        names.extend_from_slice(rest);
        self.directory = start(&self.directory, link);
        self.names = Cow::Owned(names);
        Ok(())
    }

    /// Walks on through `link`, the text of the link with the last name.
    pub fn through(mut self, link: &[u8]) -> Result<Self, Errno> {
        self.enter(link)?;
        self.walk()
    }

    /// The directory that contains the last name, or may get it.
    pub fn directory(&self) -> &Arc<Inode> {
        &self.directory
    }

    /// The last name.
    pub fn last(&self) -> Last<'_> {
        match &self.names[self.last.clone()] {
            b"" => Last::Root,
            b"." => Last::Here,
            b".." => Last::Above,
            name => Last::Name(name),
        }
    }

    /// Returns true if slashes follow the last name, which then must name a directory.
    pub fn has_slash(&self) -> bool {
        self.last.end < self.names.len()
    }

    /// The inode that has the last name; a link is not followed.
    pub fn entry(&self) -> Result<Arc<Inode>, Errno> {
        let directory = self.directory.directory()?;
        match self.last() {
            Last::Root | Last::Here => Ok(self.directory.clone()),
            Last::Above => directory.parent().ok_or(Errno::NOENT),
            Last::Name(name) => directory.get(&self.directory, name),
        }
    }

    /// `found`, which must be a directory if slashes follow the name.
    fn checked(&self, found: Arc<Inode>) -> Result<Arc<Inode>, Errno> {
        if self.has_slash() {
            found.directory()?;
        }
        Ok(found)
    }

    /// Gives the last name, which is free, to the inode that `make` makes. A name with slashes can
    /// only name a directory.
    pub fn add(
        &self,
        is_directory: bool,
        make: impl FnOnce() -> Result<Arc<Inode>, Errno>,
    ) -> Result<Arc<Inode>, Errno> {
        let Last::Name(name) = self.last() else {
            return Err(Errno::EXIST);
        };
        let directory = self.directory.directory()?;
        // As on Linux, a new name does not exist where the kernel makes the entries.
        if self.has_slash() && !is_directory || !directory.is_stored() {
            directory.get(&self.directory, name)?;
            return Err(Errno::EXIST);
        }
        let added = directory.add(name, || {
            self.directory.refuse_adding()?;
            let made = make()?;
            let links = made.attributes.links.load(Ordering::Relaxed);
            if self.directory.mode.load(Ordering::Relaxed) & OF_GROUP != 0 && links == 0 {
                made.join_group_of(&self.directory);
            }
            Ok(made)
        })?;
        self.directory.attributes.modify();
        self.directory.happened_to_name(IN_CREATE, name, &added);
        Ok(added)
    }
}

impl Place<'_> {
    /// Removes the last name, if `may` allows it for the named inode. A directory must be empty.
    pub fn remove(
        &self,
        name: &[u8],
        may: impl FnOnce(&Inode) -> Result<(), Errno>,
    ) -> Result<Arc<Inode>, Errno> {
        let directory = self.directory.directory()?;
        let removed = directory.remove(&self.directory, name, |inode| {
            self.directory.refuse_removing(inode)?;
            may(inode)
        })?;
        self.directory.attributes.modify();
        self.directory.happened_to_name(IN_DELETE, name, &removed);
        Ok(removed)
    }
}

/// The directory at which a path begins.
fn start(from: &Arc<Inode>, names: &[u8]) -> Arc<Inode> {
    match names.first() {
        Some(b'/') => ROOT.clone(),
        _ => from.clone(),
    }
}

/// The range of the first name from `at` on.
fn next_name(names: &[u8], at: usize) -> Range<usize> {
    let begins = names[at..].iter().position(|&byte| byte != b'/');
    let start = begins.map_or(names.len(), |skipped| at + skipped);
    let ends = names[start..].iter().position(|&byte| byte == b'/');
    // After the last name only slashes are left.
    if start == names.len() {
        at..at
    } else {
        start..ends.map_or(names.len(), |length| start + length)
    }
}
