//! Names: paths, directories, the attributes of a file.

use super::{Answer, Arguments, Errno};
use crate::fs::{self, Device, Directory, Fifo, Inode, Kind, Last, Path, Place, find};
use crate::process::Thread;
use crate::users::RUN;
use alloc::sync::Arc;
use core::sync::atomic::Ordering;
use linux_raw_sys::general::*;

/// The current directory, as the argument in place of a directory's descriptor.
pub const HERE: usize = AT_FDCWD as isize as usize;
/// The flag for a link's own attributes, not its target's.
pub const LINK: usize = AT_SYMLINK_NOFOLLOW as usize;

impl Thread {
    /// A path that begins at an open directory.
    pub fn path_at<'a>(&self, directory: usize, names: &'a [u8]) -> Result<Path<'a>, Errno> {
        if names.is_empty() {
            return Err(Errno::NOENT);
        }
        if directory as i32 == AT_FDCWD || names.first() == Some(&b'/') {
            return Ok(self.process.path(names));
        }
        let from = self.file_or_place(directory)?.inode().clone();
        Ok(Path { from, names })
    }

    /// The inode at a path that begins at an open directory. By `flags` it may be a link's own
    /// (`AT_SYMLINK_NOFOLLOW`) or, without a name, the open file's (`AT_EMPTY_PATH`).
    pub fn inode_at(&self, at: usize, path: usize, flags: u32) -> Result<Arc<Inode>, Errno> {
        let names = self.read_path(path)?;
        if names.is_empty() && flags & AT_EMPTY_PATH != 0 {
            return match at as i32 {
                AT_FDCWD => Ok(self.process.directory.lock().clone()),
                _ => Ok(self.file_or_place(at)?.inode().clone()),
            };
        }
        let follow = flags & AT_SYMLINK_NOFOLLOW == 0;
        find(&self.path_at(at, &names)?, follow)
    }

    /// The permissions of a new inode.
    pub fn permissions(&self, mode: usize) -> u32 {
        mode as u32 & !self.process.umask.load(Ordering::Relaxed)
    }
}

pub fn mknod(thread: &mut Thread, [path, mode, device, ..]: Arguments) -> Answer {
    mknodat(thread, [HERE, path, mode, device, 0, 0])
}

/// Creates a file, a FIFO, or a device that exists here.
pub fn mknodat(thread: &mut Thread, [directory, path, mode, device, ..]: Arguments) -> Answer {
    let names = thread.read_path(path)?;
    let path = thread.path_at(directory, &names)?;
    let mode = mode as u32;
    if !matches!(
        mode & S_IFMT,
        0 | S_IFREG | S_IFIFO | S_IFCHR | S_IFBLK | S_IFSOCK | S_IFDIR
    ) {
        return Err(Errno::INVAL);
    }
    let permissions = thread.permissions(mode as usize);
    Place::of(&path)?.add(false, || match mode & S_IFMT {
        0 | S_IFREG => Inode::file(permissions),
        S_IFIFO => Ok(Inode::new(Kind::Fifo(Fifo::new()), permissions)),
        S_IFCHR if !fs::caller().is_root() => Err(Errno::PERM),
        S_IFCHR => {
            let (major, minor) = (device as u32 >> 8 & 0xfff, device as u32 & 0xff);
            let device = Device::of(major, minor).ok_or(Errno::PERM)?;
            Ok(Inode::new(Kind::Device(device), permissions))
        }
        _ => Err(Errno::PERM),
    })?;
    Ok(0)
}

/// The attributes of the file at a path.
fn stat_at(thread: &Thread, directory: usize, path: usize, to: usize, flags: u32) -> Answer {
    let inode = thread.inode_at(directory, path, flags)?;
    thread.write(to, fs::stat(&inode))?;
    Ok(0)
}

pub fn stat(thread: &mut Thread, [path, to, ..]: Arguments) -> Answer {
    stat_at(thread, HERE, path, to, 0)
}

pub fn lstat(thread: &mut Thread, [path, to, ..]: Arguments) -> Answer {
    stat_at(thread, HERE, path, to, AT_SYMLINK_NOFOLLOW)
}

pub fn newfstatat(thread: &mut Thread, [directory, path, to, flags, ..]: Arguments) -> Answer {
    let flags = flags as u32;
    if flags & !(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | AT_NO_AUTOMOUNT) != 0 {
        return Err(Errno::INVAL);
    }
    stat_at(thread, directory, path, to, flags)
}

pub fn access(thread: &mut Thread, [path, mode, ..]: Arguments) -> Answer {
    faccessat(thread, [HERE, path, mode, 0, 0, 0])
}

pub fn faccessat(thread: &mut Thread, [directory, path, mode, ..]: Arguments) -> Answer {
    faccessat2(thread, [directory, path, mode, 0, 0, 0])
}

/// Answers for the real user and group, or those for files (`AT_EACCESS`).
pub fn faccessat2(thread: &mut Thread, [directory, path, mode, flags, ..]: Arguments) -> Answer {
    let (mode, flags) = (mode as u32, flags as u32);
    if mode & !(R_OK | W_OK | X_OK) != 0
        || flags & !(AT_EACCESS | AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) != 0
    {
        return Err(Errno::INVAL);
    }
    let inode = thread.inode_at(directory, path, flags)?;
    let mut users = fs::caller();
    if flags & AT_EACCESS == 0 {
        users.user.of_files = users.user.real;
        users.group.of_files = users.group.real;
    }
    match users.may(inode.owned(), mode) {
        true => Ok(0),
        false => Err(Errno::ACCES),
    }
}

pub fn readlink(thread: &mut Thread, [path, to, bytes, ..]: Arguments) -> Answer {
    readlinkat(thread, [HERE, path, to, bytes, 0, 0])
}

/// Without a name, reads the open link itself.
pub fn readlinkat(thread: &mut Thread, [directory, path, to, bytes, ..]: Arguments) -> Answer {
    let bytes = usize::try_from(bytes as i32).map_err(|_| Errno::INVAL)?;
    if bytes == 0 {
        return Err(Errno::INVAL);
    }
    let names = thread.read_path(path)?;
    let inode = if names.is_empty() && directory as i32 != AT_FDCWD {
        thread.file_or_place(directory)?.inode().clone()
    } else {
        find(&thread.path_at(directory, &names)?, false)?
    };
    let text = match &inode.kind {
        Kind::Link(to) => to.clone(),
        Kind::Jump(jump) => jump.text(),
        _ if names.is_empty() => return Err(Errno::NOENT),
        _ => return Err(Errno::INVAL),
    };
    let count = text.len().min(bytes);
    thread.write_bytes(to, &text[..count])?;
    Ok(count)
}

pub fn mkdir(thread: &mut Thread, [path, mode, ..]: Arguments) -> Answer {
    mkdirat(thread, [HERE, path, mode, 0, 0, 0])
}

pub fn mkdirat(thread: &mut Thread, [directory, path, mode, ..]: Arguments) -> Answer {
    let names = thread.read_path(path)?;
    let place = Place::of(&thread.path_at(directory, &names)?)?;
    let mode = thread.permissions(mode);
    place.add(true, || {
        let new = Directory::new(Arc::downgrade(place.directory()));
        Ok(Inode::new(Kind::Directory(new), mode))
    })?;
    Ok(0)
}

pub fn rmdir(thread: &mut Thread, [path, ..]: Arguments) -> Answer {
    unlinkat(thread, [HERE, path, AT_REMOVEDIR as usize, 0, 0, 0])
}

pub fn unlink(thread: &mut Thread, [path, ..]: Arguments) -> Answer {
    unlinkat(thread, [HERE, path, 0, 0, 0, 0])
}

pub fn unlinkat(thread: &mut Thread, [directory, path, flags, ..]: Arguments) -> Answer {
    let flags = flags as u32;
    if flags & !AT_REMOVEDIR != 0 {
        return Err(Errno::INVAL);
    }
    let wants_directory = flags & AT_REMOVEDIR != 0;
    let names = thread.read_path(path)?;
    let place = Place::of(&thread.path_at(directory, &names)?)?;
    let name = match place.last() {
        Last::Name(name) => name,
        _ if !wants_directory => return Err(Errno::ISDIR),
        Last::Root => return Err(Errno::BUSY),
        Last::Here => return Err(Errno::INVAL),
        Last::Above => return Err(Errno::NOTEMPTY),
    };
    let removed = place.remove(name, |inode| match &inode.kind {
        Kind::Directory(_) if !wants_directory => Err(Errno::ISDIR),
        Kind::Directory(_) => Ok(()),
        _ if wants_directory || place.has_slash() => Err(Errno::NOTDIR),
        _ => Ok(()),
    })?;
    // Dropped after the lock is released.
    drop(removed);
    Ok(0)
}

pub fn symlink(thread: &mut Thread, [to, path, ..]: Arguments) -> Answer {
    symlinkat(thread, [to, HERE, path, 0, 0, 0])
}

pub fn symlinkat(thread: &mut Thread, [to, directory, path, ..]: Arguments) -> Answer {
    let to = thread.read_path(to)?;
    if to.is_empty() {
        return Err(Errno::NOENT);
    }
    let names = thread.read_path(path)?;
    let place = Place::of(&thread.path_at(directory, &names)?)?;
    place.add(false, || Ok(Inode::new(Kind::Link(to), 0o777)))?;
    Ok(0)
}

pub fn fchdir(thread: &mut Thread, [fd, ..]: Arguments) -> Answer {
    let inode = thread.file_or_place(fd)?.inode().clone();
    enter(thread, inode)
}

pub fn chdir(thread: &mut Thread, [path, ..]: Arguments) -> Answer {
    let names = thread.read_path(path)?;
    let inode = find(&thread.process.path(&names), true)?;
    enter(thread, inode)
}

/// Makes a directory the current one.
fn enter(thread: &Thread, inode: Arc<Inode>) -> Answer {
    inode.directory()?;
    inode.refuse(RUN)?;
    let before = core::mem::replace(&mut *thread.process.directory.lock(), inode);
    drop(before);
    Ok(0)
}

pub fn getcwd(thread: &mut Thread, [to, bytes, ..]: Arguments) -> Answer {
    let here = thread.process.directory.lock().clone();
    let mut path = fs::path_of(&here).ok_or(Errno::NOENT)?;
    path.try_reserve(1).map_err(|_| Errno::NOMEM)?;
    path.push(0);
    if path.len() > PATH_MAX as usize {
        return Err(Errno::NAMETOOLONG);
    }
    if path.len() > bytes {
        return Err(Errno::RANGE);
    }
    thread.write_bytes(to, &path)?;
    Ok(path.len())
}

pub fn umask(thread: &mut Thread, [mask, ..]: Arguments) -> Answer {
    let mask = mask as u32 & 0o777;
    Ok(thread.process.umask.swap(mask, Ordering::Relaxed) as usize)
}
