//! The attributes of a file in Linux's newer structure.

use super::{Answer, Arguments, Errno};
use crate::fs;
use crate::process::Thread;
use linux_raw_sys::general::*;

const FLAGS: u32 = AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | AT_NO_AUTOMOUNT | AT_STATX_SYNC_TYPE;

/// It has the attributes that `stat` has, and no others.
pub fn statx(thread: &mut Thread, [directory, path, flags, mask, to, _]: Arguments) -> Answer {
    let (flags, mask) = (flags as u32, mask as u32);
    let is_both = flags & AT_STATX_SYNC_TYPE == AT_STATX_SYNC_TYPE;
    if flags & !FLAGS != 0 || is_both || mask & STATX__RESERVED != 0 {
        return Err(Errno::INVAL);
    }
    let inode = thread.inode_at(directory, path, flags)?;
    thread.write(to, converted(&fs::stat(&inode)))?;
    Ok(0)
}

fn converted(stat: &stat) -> statx {
    // SAFETY: all fields are numbers, and zero is a valid one.
    let mut to: statx = unsafe { core::mem::zeroed() };
    let time = |seconds: i64, nanoseconds: u64| statx_timestamp {
        tv_sec: seconds,
        tv_nsec: nanoseconds as u32,
        __reserved: 0,
    };
    let [device, special] = [stat.st_dev, stat.st_rdev].map(|it| (it >> 8, it & 0xff));
    to.stx_mask = STATX_BASIC_STATS;
    to.stx_blksize = stat.st_blksize as u32;
    to.stx_nlink = stat.st_nlink as u32;
    (to.stx_uid, to.stx_gid) = (stat.st_uid, stat.st_gid);
    to.stx_mode = stat.st_mode as u16;
    to.stx_ino = stat.st_ino;
    to.stx_size = stat.st_size as u64;
    to.stx_blocks = stat.st_blocks as u64;
    to.stx_atime = time(stat.st_atime as i64, stat.st_atime_nsec);
    to.stx_ctime = time(stat.st_ctime as i64, stat.st_ctime_nsec);
    to.stx_mtime = time(stat.st_mtime as i64, stat.st_mtime_nsec);
    (to.stx_rdev_major, to.stx_rdev_minor) = (special.0 as u32, special.1 as u32);
    (to.stx_dev_major, to.stx_dev_minor) = (device.0 as u32, device.1 as u32);
    to
}
