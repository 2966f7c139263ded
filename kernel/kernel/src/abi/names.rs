//! Names: paths, directories, the attributes of a file.

use super::{Answer, Arguments, Errno};
use crate::fs::{
    self, Device, Directory, Fifo, Inode, Kind, Open, OpenFile, Path, find, find_parent,
};
use crate::process::Thread;
use crate::system::system;
use alloc::sync::Arc;
use core::sync::atomic::Ordering;
use linux_raw_sys::general::*;

/// The current directory, as the argument in place of a directory's descriptor.
pub const HERE: usize = AT_FDCWD as isize as usize;
/// Of a link's attributes, not of its target's.
pub const LINK: usize = AT_SYMLINK_NOFOLLOW as usize;

impl Thread {
    /// A path that begins at a directory that is open.
    pub fn path_at<'a>(&self, directory: usize, names: &'a [u8]) -> Result<Path<'a>, Errno> {
        if directory as i32 == AT_FDCWD || names.first() == Some(&b'/') {
            return Ok(self.process.path(names));
        }
        let from = self.file(directory)?.inode()?.clone();
        Ok(Path { from, names })
    }
}

pub fn open(thread: &mut Thread, [path, flags, mode, ..]: Arguments) -> Answer {
    openat(thread, [HERE, path, flags, mode, 0, 0])
}

pub fn creat(thread: &mut Thread, [path, mode, ..]: Arguments) -> Answer {
    let flags = O_CREAT | O_WRONLY | O_TRUNC;
    openat(thread, [HERE, path, flags as usize, mode, 0, 0])
}

pub fn openat(thread: &mut Thread, [directory, path, flags, mode, ..]: Arguments) -> Answer {
    let flags = flags as u32;
    let has = |bits| flags & bits == bits;
    let names = thread.read_path(path)?;
    let path = thread.path_at(directory, &names)?;
    let inode = match find(&path, !has(O_NOFOLLOW)) {
        Ok(_) if has(O_CREAT | O_EXCL) => return Err(Errno::EXIST),
        Err(Errno::NOENT) if has(O_CREAT) => create(thread, &path, mode as u32)?,
        found => found?,
    };
    let inode = match &inode.kind {
        Kind::Opened(file) => match file.named() {
            Some(inode) => inode.clone(),
            // What has no inode is not opened again.
            None => return thread.add_file(file.clone(), has(O_CLOEXEC)),
        },
        _ => inode,
    };
    let writes = flags & O_ACCMODE != O_RDONLY;
    let process = &thread.process;
    match &inode.kind {
        Kind::Device(Device::Terminal) if !system().terminal.is_of(process) => {
            return Err(Errno::NXIO);
        }
        Kind::Device(Device::Console) if !has(O_NOCTTY) => {
            // If a session has it already, or the caller leads none, it is opened all the same.
            let _ = system().terminal.become_of(process);
        }
        Kind::Link(_) => return Err(Errno::LOOP),
        Kind::Directory(_) if writes => return Err(Errno::ISDIR),
        Kind::Directory(_) => {}
        _ if has(O_DIRECTORY) => return Err(Errno::NOTDIR),
        Kind::Fifo(fifo) => {
            let mode = flags & O_ACCMODE;
            let ends = [mode != O_WRONLY, mode != O_RDONLY];
            let end = fifo.open(&inode, ends, !has(O_NONBLOCK))?;
            let file = OpenFile::new(Open::Pipe(end), flags & (O_ACCMODE | O_NONBLOCK));
            return thread.add_file(file, has(O_CLOEXEC));
        }
        Kind::Report(_) if writes => return Err(Errno::ACCES),
        Kind::File(object) if has(O_TRUNC) && writes => object.set_size(0)?,
        _ => {}
    }
    let kept = O_ACCMODE | O_APPEND | O_NONBLOCK;
    let file = OpenFile::new(Open::Inode(inode), flags & kept);
    thread.add_file(file, has(O_CLOEXEC))
}

fn create(thread: &Thread, path: &Path, mode: u32) -> Result<Arc<Inode>, Errno> {
    let (parent, name) = find_parent(path)?;
    let mode = mode & !thread.process.umask.load(Ordering::Relaxed);
    let inode = Inode::file(mode)?;
    parent.directory()?.add(&name, inode.clone())?;
    Ok(inode)
}

pub fn mknod(thread: &mut Thread, [path, mode, device, ..]: Arguments) -> Answer {
    mknodat(thread, [HERE, path, mode, device, 0, 0])
}

/// Makes a file, a FIFO, or a device that there is.
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
    let (parent, name) = find_parent(&path)?;
    let permissions = mode & !thread.process.umask.load(Ordering::Relaxed);
    let inode = match mode & S_IFMT {
        0 | S_IFREG => Inode::file(permissions)?,
        S_IFIFO => Inode::new(Kind::Fifo(Fifo::new()), permissions),
        S_IFCHR => {
            let numbers = (device as u32 >> 8 & 0xfff, device as u32 & 0xff);
            let device = Device::of(numbers.0, numbers.1).ok_or(Errno::PERM)?;
            Inode::new(Kind::Device(device), permissions)
        }
        _ => return Err(Errno::PERM),
    };
    parent.directory()?.add(&name, inode)?;
    Ok(0)
}

/// The attributes of the file at a path.
fn stat_at(thread: &Thread, directory: usize, path: usize, to: usize, follow: bool) -> Answer {
    let names = thread.read_path(path)?;
    let inode = find(&thread.path_at(directory, &names)?, follow)?;
    let told = match &inode.kind {
        Kind::Opened(file) if follow => fs::stat(&file.what),
        _ => fs::stat(&Open::Inode(inode)),
    };
    thread.write(to, told)?;
    Ok(0)
}

pub fn stat(thread: &mut Thread, [path, to, ..]: Arguments) -> Answer {
    stat_at(thread, HERE, path, to, true)
}

pub fn lstat(thread: &mut Thread, [path, to, ..]: Arguments) -> Answer {
    stat_at(thread, HERE, path, to, false)
}

pub fn newfstatat(thread: &mut Thread, [directory, path, to, flags, ..]: Arguments) -> Answer {
    let flags = flags as u32;
    if flags & AT_EMPTY_PATH != 0 && thread.read_path(path)?.is_empty() {
        return super::file::fstat(thread, [directory, to, 0, 0, 0, 0]);
    }
    stat_at(
        thread,
        directory,
        path,
        to,
        flags & AT_SYMLINK_NOFOLLOW == 0,
    )
}

pub fn access(thread: &mut Thread, [path, mode, ..]: Arguments) -> Answer {
    faccessat(thread, [HERE, path, mode, 0, 0, 0])
}

/// Root may do everything, but execute only executable files.
pub fn faccessat(thread: &mut Thread, [directory, path, mode, ..]: Arguments) -> Answer {
    let names = thread.read_path(path)?;
    let inode = find(&thread.path_at(directory, &names)?, true)?;
    let is_executable = inode.mode.load(Ordering::Relaxed) & 0o111 != 0;
    match mode as u32 & X_OK != 0 && !is_executable {
        true => Err(Errno::ACCES),
        false => Ok(0),
    }
}

pub fn readlink(thread: &mut Thread, [path, to, bytes, ..]: Arguments) -> Answer {
    readlinkat(thread, [HERE, path, to, bytes, 0, 0])
}

pub fn readlinkat(thread: &mut Thread, [directory, path, to, bytes, ..]: Arguments) -> Answer {
    let names = thread.read_path(path)?;
    let text = match &find(&thread.path_at(directory, &names)?, false)?.kind {
        Kind::Link(to) => to.clone(),
        Kind::Opened(file) => fs::name_of(file),
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
    let (parent, name) = find_parent(&thread.path_at(directory, &names)?)?;
    let mode = mode as u32 & !thread.process.umask.load(Ordering::Relaxed);
    let new = Kind::Directory(Directory::new(Arc::downgrade(&parent)));
    parent.directory()?.add(&name, Inode::new(new, mode))?;
    Ok(0)
}

pub fn rmdir(thread: &mut Thread, [path, ..]: Arguments) -> Answer {
    unlinkat(thread, [HERE, path, AT_REMOVEDIR as usize, 0, 0, 0])
}

pub fn unlink(thread: &mut Thread, [path, ..]: Arguments) -> Answer {
    unlinkat(thread, [HERE, path, 0, 0, 0, 0])
}

pub fn unlinkat(thread: &mut Thread, [directory, path, flags, ..]: Arguments) -> Answer {
    let names = thread.read_path(path)?;
    let (parent, name) = find_parent(&thread.path_at(directory, &names)?)?;
    let wants_directory = flags as u32 & AT_REMOVEDIR != 0;
    let removed = parent
        .directory()?
        .remove(&name, |inode| match &inode.kind {
            Kind::Directory(_) if !wants_directory => Err(Errno::ISDIR),
            Kind::Directory(it) if !it.is_empty() => Err(Errno::NOTEMPTY),
            Kind::Directory(_) => Ok(()),
            _ if wants_directory => Err(Errno::NOTDIR),
            _ => Ok(()),
        })?;
    // Behind the lock.
    drop(removed);
    Ok(0)
}

pub fn symlink(thread: &mut Thread, [to, path, ..]: Arguments) -> Answer {
    symlinkat(thread, [to, HERE, path, 0, 0, 0])
}

pub fn symlinkat(thread: &mut Thread, [to, directory, path, ..]: Arguments) -> Answer {
    let to = thread.read_path(to)?;
    let names = thread.read_path(path)?;
    let (parent, name) = find_parent(&thread.path_at(directory, &names)?)?;
    parent
        .directory()?
        .add(&name, Inode::new(Kind::Link(to), 0o777))?;
    Ok(0)
}

pub fn chmod(thread: &mut Thread, [path, mode, ..]: Arguments) -> Answer {
    let names = thread.read_path(path)?;
    let inode = find(&thread.process.path(&names), true)?;
    inode.mode.store(mode as u32 & 0o7777, Ordering::Relaxed);
    Ok(0)
}

pub fn fchdir(thread: &mut Thread, [fd, ..]: Arguments) -> Answer {
    let inode = thread.file(fd)?.inode()?.clone();
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
    let before = core::mem::replace(&mut *thread.process.directory.lock(), inode);
    drop(before);
    Ok(0)
}

pub fn getcwd(thread: &mut Thread, [to, bytes, ..]: Arguments) -> Answer {
    let here = thread.process.directory.lock().clone();
    let mut path = fs::path_of(&here).ok_or(Errno::NOENT)?;
    path.push(0);
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
