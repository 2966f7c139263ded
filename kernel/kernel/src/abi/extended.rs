//! Extended attributes: files have none, and get none.

use super::names::{HERE, LINK};
use super::{Answer, Arguments, Errno};
use crate::process::Thread;

/// The most bytes of a name, with its end.
const NAME: usize = 256;

/// Checks the length of an attribute's name.
fn named(thread: &Thread, name: usize) -> Result<(), Errno> {
    match thread.read_text(name, NAME) {
        Ok(name) if !name.is_empty() => Ok(()),
        Ok(_) | Err(Errno::NAMETOOLONG) => Err(Errno::RANGE),
        Err(errno) => Err(errno),
    }
}

/// `setxattr`, `getxattr`, `removexattr`.
pub fn one(thread: &mut Thread, [path, name, ..]: Arguments) -> Answer {
    thread.inode_at(HERE, path, 0)?;
    named(thread, name)?;
    Err(Errno::OPNOTSUPP)
}

/// `lsetxattr`, `lgetxattr`, `lremovexattr`: for a link itself.
pub fn one_of_link(thread: &mut Thread, [path, name, ..]: Arguments) -> Answer {
    thread.inode_at(HERE, path, LINK as u32)?;
    named(thread, name)?;
    Err(Errno::OPNOTSUPP)
}

/// `fsetxattr`, `fgetxattr`, `fremovexattr`: for an open file.
pub fn one_of_file(thread: &mut Thread, [fd, name, ..]: Arguments) -> Answer {
    thread.file(fd)?;
    named(thread, name)?;
    Err(Errno::OPNOTSUPP)
}

pub fn listxattr(thread: &mut Thread, [path, ..]: Arguments) -> Answer {
    thread.inode_at(HERE, path, 0)?;
    Ok(0)
}

pub fn llistxattr(thread: &mut Thread, [path, ..]: Arguments) -> Answer {
    thread.inode_at(HERE, path, LINK as u32)?;
    Ok(0)
}

pub fn flistxattr(thread: &mut Thread, [fd, ..]: Arguments) -> Answer {
    thread.file(fd)?;
    Ok(0)
}
