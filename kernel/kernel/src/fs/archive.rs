//! The initial file system: a cpio archive, unpacked into the root.

use super::{Device, Directory, Inode, Kind, Last, Path, Place, ROOT};
use crate::errno::Errno;
use alloc::sync::Arc;
use linux_raw_sys::general::{S_IFCHR, S_IFDIR, S_IFLNK, S_IFMT, S_IFREG};

/// Unpacks an archive. Entries of kinds that do not exist here, such as disks, are left out.
pub fn unpack(archive: &[u8]) -> Result<(), Errno> {
    for entry in cpio_reader::iter_files(archive) {
        let name = entry.name().trim_start_matches("./").trim_matches('/');
        if name.is_empty() || name == "." {
            continue;
        }
        let path = Path {
            from: ROOT.clone(),
            names: name.as_bytes(),
        };
        let place = Place::of(&path)?;
        let Last::Name(last) = place.last() else {
            continue;
        };
        let parent = place.directory();
        let mode = entry.mode().bits();
        let kind = match mode & S_IFMT {
            S_IFDIR => Kind::Directory(Directory::new(Arc::downgrade(parent))),
            S_IFLNK => Kind::Link(entry.file().to_vec()),
            S_IFCHR => {
                let [major, minor] =
                    [entry.rdevmajor(), entry.rdevminor()].map(Option::unwrap_or_default);
                match Device::of(major, minor) {
                    Some(device) => Kind::Device(device),
                    None => continue,
                }
            }
            S_IFREG => {
                let inode = Inode::file(mode)?;
                if let Kind::File(object) = &inode.kind {
                    object.write(0, entry.file())?;
                }
                parent.directory()?.put(last, inode)?;
                continue;
            }
            _ => continue,
        };
        parent.directory()?.put(last, Inode::new(kind, mode))?;
    }
    Ok(())
}
