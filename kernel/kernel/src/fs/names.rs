//! The names of the objects that processes map.

use super::{Device, Inode, Kind, Name, OpenFile};
use crate::system::system;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use vm::object::ObjectId;

/// The files of the file system at some moment, by their content.
pub struct Names(BTreeMap<ObjectId, (u64, String)>);

impl Names {
    /// Looks at all directories. O(files).
    pub fn now() -> Self {
        let mut names = BTreeMap::new();
        let mut left = vec![(system().root.clone(), Name::new())];
        while let Some((inode, path)) = left.pop() {
            let Kind::Directory(directory) = &inode.kind else {
                continue;
            };
            let mut last = None;
            while let Some((name, entry)) = directory.after(last.as_deref()) {
                let path = [&path, b"/".as_slice(), &name].concat();
                match &entry.kind {
                    Kind::Directory(_) => left.push((entry, path)),
                    Kind::File(object) => {
                        let text = String::from_utf8_lossy(&path).into_owned();
                        names.insert(object.id(), (entry.number, text));
                    }
                    _ => {}
                }
                last = Some(name);
            }
        }
        Names(names)
    }

    /// The name of an object.
    pub fn of(&self, object: ObjectId) -> Option<vm::proc::File<'_>> {
        let (inode, path) = self.0.get(&object)?;
        Some(vm::proc::File {
            device: super::DEVICE,
            inode: *inode,
            path,
        })
    }
}

/// Where a directory is, as long as it has a name.
pub fn path_of(directory: &Arc<Inode>) -> Option<Name> {
    let (mut here, mut path) = (directory.clone(), Name::new());
    loop {
        let parent = here.directory().ok()?.parent()?;
        if Arc::ptr_eq(&parent, &here) {
            break;
        }
        let name = parent.directory().ok()?.name_of(&here)?;
        path = [b"/".as_slice(), &name, &path].concat();
        here = parent;
    }
    if path.is_empty() {
        path.push(b'/');
    }
    Some(path)
}

/// The name of an open file, as far as it has one.
pub fn name_of(file: &OpenFile) -> Name {
    let Ok(inode) = file.inode() else {
        return b"pipe:[0]".to_vec();
    };
    let path = match &inode.kind {
        Kind::Directory(_) => path_of(inode),
        Kind::File(object) => {
            let names = Names::now();
            names.of(object.id()).map(|it| it.path.as_bytes().to_vec())
        }
        Kind::Device(Device::Console) => Some(b"/dev/console".to_vec()),
        Kind::Device(Device::Terminal) => Some(b"/dev/tty".to_vec()),
        Kind::Device(Device::Null) => Some(b"/dev/null".to_vec()),
        _ => None,
    };
    path.unwrap_or(b"(deleted)".to_vec())
}
