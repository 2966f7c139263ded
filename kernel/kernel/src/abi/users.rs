//! Users and groups.

use super::{Answer, Arguments, Errno};
use crate::heap;
use crate::process::{Process, Thread};
use crate::users::{Ids, Users};
use alloc::sync::Arc;
use core::sync::atomic::Ordering;

/// The number that leaves a user or a group as it is.
const SAME: u32 = u32::MAX;
/// The most further groups.
const GROUPS: usize = 65_536;

impl Thread {
    fn users(&self) -> Users {
        self.process.users.lock().clone()
    }

    /// Changes the users or the groups of the process, if `change` allows it; it is told if the
    /// process acts as root.
    fn change(
        &self,
        which: fn(&mut Users) -> &mut Ids,
        change: impl FnOnce(&mut Ids, bool) -> Result<(), Errno>,
    ) -> Answer {
        let mut users = self.process.users.lock();
        let before = (users.user.effective, users.group.effective);
        let is_root = users.is_root();
        let mut ids = *which(&mut users);
        change(&mut ids, is_root)?;
        *which(&mut users) = ids;
        if before != (users.user.effective, users.group.effective) {
            self.process.is_dumpable.store(false, Ordering::Relaxed);
        }
        Ok(0)
    }

    /// Fails unless the thread may change the limits and the CPUs of a process.
    pub fn refuse_control(&self, process: &Arc<Process>) -> Result<(), Errno> {
        if Arc::ptr_eq(process, &self.process) {
            return Ok(());
        }
        let its = process.users.lock().clone();
        match self.users().controls(&its) {
            true => Ok(()),
            false => Err(Errno::PERM),
        }
    }
}

fn user(users: &mut Users) -> &mut Ids {
    &mut users.user
}

fn group(users: &mut Users) -> &mut Ids {
    &mut users.group
}

pub fn getuid(thread: &mut Thread, _: Arguments) -> Answer {
    Ok(thread.users().user.real as usize)
}

pub fn geteuid(thread: &mut Thread, _: Arguments) -> Answer {
    Ok(thread.users().user.effective as usize)
}

pub fn getgid(thread: &mut Thread, _: Arguments) -> Answer {
    Ok(thread.users().group.real as usize)
}

pub fn getegid(thread: &mut Thread, _: Arguments) -> Answer {
    Ok(thread.users().group.effective as usize)
}

pub fn setuid(thread: &mut Thread, arguments: Arguments) -> Answer {
    set_one(thread, user, arguments)
}

pub fn setgid(thread: &mut Thread, arguments: Arguments) -> Answer {
    set_one(thread, group, arguments)
}

/// Root becomes another; others become who they were.
fn set_one(thread: &Thread, which: fn(&mut Users) -> &mut Ids, [id, ..]: Arguments) -> Answer {
    let id = id as u32;
    if id == SAME {
        return Err(Errno::INVAL);
    }
    thread.change(which, |ids, is_root| {
        if is_root {
            ids.real = id;
            ids.saved = id;
        } else if id != ids.real && id != ids.saved {
            return Err(Errno::PERM);
        }
        ids.effective = id;
        ids.of_files = id;
        Ok(())
    })
}

pub fn setreuid(thread: &mut Thread, arguments: Arguments) -> Answer {
    set_two(thread, user, arguments)
}

pub fn setregid(thread: &mut Thread, arguments: Arguments) -> Answer {
    set_two(thread, group, arguments)
}

fn set_two(
    thread: &Thread,
    which: fn(&mut Users) -> &mut Ids,
    [real, effective, ..]: Arguments,
) -> Answer {
    let (real, effective) = (real as u32, effective as u32);
    thread.change(which, |ids, is_root| {
        let before = *ids;
        let may_be_real = [SAME, before.real, before.effective].contains(&real);
        let may_be_effective = effective == SAME || before.has(effective);
        if !(is_root || may_be_real && may_be_effective) {
            return Err(Errno::PERM);
        }
        ids.real = or(real, before.real);
        ids.effective = or(effective, before.effective);
        if real != SAME || effective != SAME && effective != before.real {
            ids.saved = ids.effective;
        }
        ids.of_files = ids.effective;
        Ok(())
    })
}

/// `id`, unless that leaves it as it was.
fn or(id: u32, before: u32) -> u32 {
    if id == SAME { before } else { id }
}

pub fn setresuid(thread: &mut Thread, arguments: Arguments) -> Answer {
    set_three(thread, user, arguments)
}

pub fn setresgid(thread: &mut Thread, arguments: Arguments) -> Answer {
    set_three(thread, group, arguments)
}

fn set_three(
    thread: &Thread,
    which: fn(&mut Users) -> &mut Ids,
    [real, effective, saved, ..]: Arguments,
) -> Answer {
    let new = [real, effective, saved].map(|id| id as u32);
    thread.change(which, |ids, is_root| {
        let before = *ids;
        if !(is_root || new.iter().all(|&id| id == SAME || before.has(id))) {
            return Err(Errno::PERM);
        }
        let [real, effective, saved] = new;
        ids.real = or(real, before.real);
        ids.effective = or(effective, before.effective);
        ids.saved = or(saved, before.saved);
        ids.of_files = ids.effective;
        Ok(())
    })
}

pub fn getresuid(thread: &mut Thread, arguments: Arguments) -> Answer {
    get_three(thread, thread.users().user, arguments)
}

pub fn getresgid(thread: &mut Thread, arguments: Arguments) -> Answer {
    get_three(thread, thread.users().group, arguments)
}

fn get_three(thread: &Thread, ids: Ids, [real, effective, saved, ..]: Arguments) -> Answer {
    thread.write(real, ids.real)?;
    thread.write(effective, ids.effective)?;
    thread.write(saved, ids.saved)?;
    Ok(0)
}

pub fn setfsuid(thread: &mut Thread, arguments: Arguments) -> Answer {
    set_of_files(thread, user, arguments)
}

pub fn setfsgid(thread: &mut Thread, arguments: Arguments) -> Answer {
    set_of_files(thread, group, arguments)
}

/// Returns the old one, and does not fail.
fn set_of_files(thread: &Thread, which: fn(&mut Users) -> &mut Ids, [id, ..]: Arguments) -> Answer {
    let mut users = thread.process.users.lock();
    let is_root = users.is_root();
    let (ids, id) = (which(&mut users), id as u32);
    let before = ids.of_files;
    if id != SAME && (is_root || ids.has(id) || id == before) {
        ids.of_files = id;
    }
    Ok(before as usize)
}

pub fn getgroups(thread: &mut Thread, [most, to, ..]: Arguments) -> Answer {
    let most = usize::try_from(most as i32).map_err(|_| Errno::INVAL)?;
    let groups = thread.users().groups;
    if most == 0 {
        return Ok(groups.len());
    }
    if groups.len() > most {
        return Err(Errno::INVAL);
    }
    for (index, &group) in groups.iter().enumerate() {
        thread.write(to.wrapping_add(index * size_of::<u32>()), group)?;
    }
    Ok(groups.len())
}

pub fn setgroups(thread: &mut Thread, [count, from, ..]: Arguments) -> Answer {
    if !thread.users().is_root() {
        return Err(Errno::PERM);
    }
    let count = count as u32 as usize;
    if count > GROUPS {
        return Err(Errno::INVAL);
    }
    let at = |index| from.wrapping_add(index * size_of::<u32>());
    let groups = heap::collect((0..count).map(|index| thread.read(at(index))))?;
    let before = core::mem::replace(&mut thread.process.users.lock().groups, groups.into());
    drop(before);
    Ok(0)
}
