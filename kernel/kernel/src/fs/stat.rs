//! The attributes of a file.

use super::{DEVICE, Inode, Kind};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use linux_raw_sys::general::{S_IFCHR, S_IFDIR, S_IFIFO, S_IFLNK, S_IFREG, S_IFSOCK, stat as Stat};
use machine::PAGE_SIZE;

/// The blocks of a page, which `st_blocks` counts.
const PAGE_BLOCKS: i64 = PAGE_SIZE as i64 / 512;

/// The kind of an inode, as the upper bits of its mode.
pub fn type_bits(inode: &Inode) -> u32 {
    match &inode.kind {
        Kind::Directory(_) => S_IFDIR,
        Kind::File(_) | Kind::Report(_) => S_IFREG,
        Kind::Link(_) | Kind::Jump(_) => S_IFLNK,
        Kind::Fifo(_) => S_IFIFO,
        Kind::Device(_) => S_IFCHR,
        Kind::Socket(_) | Kind::Bound(_) => S_IFSOCK,
        // These have no type, as on Linux.
        Kind::Event(_) | Kind::Ticker(_) | Kind::Special(_) | Kind::Epoll(_) => 0,
    }
}

/// Seconds and nanoseconds.
fn time<S: TryFrom<u64> + Default>(time: &AtomicU64) -> (S, S) {
    const SECOND: u64 = 1_000_000_000;
    let time = time.load(Ordering::Relaxed);
    [time / SECOND, time % SECOND]
        .map(|part| S::try_from(part).unwrap_or_default())
        .into()
}

/// The attributes of an inode.
pub fn stat(inode: &Inode) -> Stat {
    // SAFETY: all fields are numbers, and zero is a valid one.
    let mut stat: Stat = unsafe { core::mem::zeroed() };
    stat.st_blksize = PAGE_SIZE as _;
    stat.st_ino = inode.number;
    stat.st_dev = u64::from(DEVICE.0 << 8 | DEVICE.1);
    let attributes = &inode.attributes;
    let read = |value: &AtomicU32| value.load(Ordering::Relaxed);
    stat.st_nlink = match &inode.kind {
        // Its name, its `.`, and the `..` of each directory in it.
        Kind::Directory(directory) => 2 + directory.directories(),
        Kind::Fifo(fifo) if !fifo.is_named() => 1,
        Kind::File(_) | Kind::Fifo(_) | Kind::Bound(_) => read(&attributes.links),
        _ => 1,
    }
    .into();
    (stat.st_uid, stat.st_gid) = (read(&attributes.user), read(&attributes.group));
    (stat.st_atime, stat.st_atime_nsec) = time(&attributes.accessed);
    (stat.st_mtime, stat.st_mtime_nsec) = time(&attributes.modified);
    (stat.st_ctime, stat.st_ctime_nsec) = time(&attributes.changed);
    stat.st_mode = type_bits(inode) | inode.mode.load(Ordering::Relaxed);
    stat.st_size = match &inode.kind {
        Kind::File(object) => object.size() as _,
        Kind::Link(to) => to.len() as _,
        Kind::Directory(_) => PAGE_SIZE as _,
        _ => 0,
    };
    match &inode.kind {
        // Pages that were never written take no room.
        Kind::File(object) => stat.st_blocks = object.present_pages() as i64 * PAGE_BLOCKS,
        Kind::Device(device) => {
            let (major, minor) = device.numbers();
            stat.st_rdev = u64::from(major << 8 | minor);
        }
        _ => {}
    }
    stat
}
