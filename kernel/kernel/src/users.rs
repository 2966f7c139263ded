//! Users and groups: who a process is, and what it may do.
//!
//! User 0, root, may do everything. Others are bound by the owners and modes of files.

use alloc::sync::Arc;

/// The user or the group of a process, in its four parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ids {
    /// Who has started it.
    pub real: u32,
    /// Who it acts as.
    pub effective: u32,
    /// Who it may act as again.
    pub saved: u32,
    /// Who it is for files: mostly who it acts as.
    pub of_files: u32,
}

/// Who a process is. The default is root.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Users {
    pub user: Ids,
    pub group: Ids,
    /// The further groups.
    pub groups: Arc<[u32]>,
}

/// The bits of a mode that let others use a file: to read, to write, to run it or to look up names.
pub const READ: u32 = 4;
pub const WRITE: u32 = 2;
pub const RUN: u32 = 1;

/// The owner of a file, and its mode.
#[derive(Clone, Copy, Debug)]
pub struct Owned {
    pub user: u32,
    pub group: u32,
    pub mode: u32,
    pub is_directory: bool,
}

impl Ids {
    /// Returns true if `id` is the real, effective or saved one.
    pub fn has(&self, id: u32) -> bool {
        [self.real, self.effective, self.saved].contains(&id)
    }

    /// Becomes the effective one as a new program does that its owner's rights are given to.
    pub fn become_(&mut self, id: u32) {
        self.effective = id;
        self.saved = id;
        self.of_files = id;
    }
}

impl Users {
    /// Returns true if the process acts as root.
    pub fn is_root(&self) -> bool {
        self.user.effective == 0
    }

    /// Returns true if a file of this group is used as one's group's.
    pub fn has_group(&self, group: u32) -> bool {
        self.group.of_files == group || self.groups.contains(&group)
    }

    /// Returns true if the process may use a file in all of the `wanted` ways.
    pub fn may(&self, file: Owned, wanted: u32) -> bool {
        if self.user.of_files == 0 {
            return wanted & RUN == 0 || file.is_directory || file.mode & 0o111 != 0;
        }
        let shift = match () {
            () if file.user == self.user.of_files => 6,
            () if self.has_group(file.group) => 3,
            () => 0,
        };
        file.mode >> shift & wanted == wanted
    }

    /// Returns true if the process may act on a file as its owner.
    pub fn owns(&self, file: Owned) -> bool {
        self.user.of_files == 0 || self.user.of_files == file.user
    }

    /// Returns true if the process may send signals to `other`.
    pub fn may_signal(&self, other: &Users) -> bool {
        let targets = [other.user.real, other.user.saved];
        self.is_root()
            || targets.contains(&self.user.real)
            || targets.contains(&self.user.effective)
    }

    /// Returns true if the process may change the limits and the CPUs of `other`.
    pub fn controls(&self, other: &Users) -> bool {
        let is = |mine: u32, its: &Ids| [its.real, its.effective, its.saved] == [mine; 3];
        self.is_root() || is(self.user.real, &other.user) && is(self.group.real, &other.group)
    }
}
