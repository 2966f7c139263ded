//! What the calling task may do with inodes.

use super::Inode;
use crate::errno::Errno;
use crate::system::system;
use crate::users::{Owned, RUN, Users, WRITE};
use core::sync::atomic::Ordering;

/// The bit of a directory's mode that lets only owners remove names.
const STICKY: u32 = 0o1000;
/// The bit of a directory's mode that gives new files its group.
pub const OF_GROUP: u32 = 0o2000;

/// Who the calling task is; root, if it is no thread.
pub fn caller() -> Users {
    system().kernel.caller.users()
}

impl Inode {
    /// Its owner and its mode.
    pub fn owned(&self) -> Owned {
        let attributes = &self.attributes;
        Owned {
            user: attributes.user.load(Ordering::Relaxed),
            group: attributes.group.load(Ordering::Relaxed),
            mode: self.mode.load(Ordering::Relaxed),
            is_directory: self.directory().is_ok(),
        }
    }

    /// Gets the owner of a directory whose entries the kernel makes.
    pub fn belong_to(&self, directory: &Inode) {
        let owned = directory.owned();
        self.attributes.user.store(owned.user, Ordering::Relaxed);
        self.attributes.group.store(owned.group, Ordering::Relaxed);
    }

    /// Gets the group of a directory, and a directory passes it on.
    pub fn join_group_of(&self, directory: &Inode) {
        let group = directory.attributes.group.load(Ordering::Relaxed);
        self.attributes.group.store(group, Ordering::Relaxed);
        if self.directory().is_ok() {
            self.mode.fetch_or(OF_GROUP, Ordering::Relaxed);
        }
    }

    /// Fails unless the calling task may use the inode in all of the `wanted` ways.
    pub fn refuse(&self, wanted: u32) -> Result<(), Errno> {
        match caller().may(self.owned(), wanted) {
            true => Ok(()),
            false => Err(Errno::ACCES),
        }
    }

    /// A program no longer gets its owner's rights. `mode` is its mode.
    pub fn drop_rights(&self, mode: u32) {
        // Without the right to run, the group's bit means something else.
        let bits = if mode & 0o010 != 0 { 0o6000 } else { 0o4000 };
        self.mode.fetch_and(!bits, Ordering::Relaxed);
    }

    /// Fails unless the calling task may act as its owner.
    pub fn refuse_others(&self) -> Result<(), Errno> {
        match caller().owns(self.owned()) {
            true => Ok(()),
            false => Err(Errno::PERM),
        }
    }

    /// Fails unless the calling task may add names to this directory.
    pub fn refuse_adding(&self) -> Result<(), Errno> {
        self.refuse(WRITE | RUN)
    }

    /// Fails unless the calling task may remove the name that `inode` has in this directory.
    pub fn refuse_removing(&self, inode: &Inode) -> Result<(), Errno> {
        self.refuse_adding()?;
        let own = self.owned();
        let caller = caller();
        match own.mode & STICKY == 0 || caller.owns(own) || caller.owns(inode.owned()) {
            true => Ok(()),
            false => Err(Errno::PERM),
        }
    }
}
