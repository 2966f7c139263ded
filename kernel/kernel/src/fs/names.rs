//! The names of inodes and of the objects that processes map.

use super::{Inode, Kind, Name, ROOT};
use crate::errno::Errno;
use crate::heap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::ControlFlow;
use vm::object::ObjectId;

/// The names of some files at some moment, by their content.
pub struct Names(Vec<Named>);

struct Named {
    object: ObjectId,
    inode: u64,
    /// The path; empty if none was found.
    path: String,
}

impl Names {
    /// Looks for the names of these objects in all directories. O(files).
    pub fn of_objects(objects: impl Iterator<Item = ObjectId>) -> Result<Self, Errno> {
        let mut names: Vec<Named> = Vec::new();
        for object in objects {
            if names.iter().all(|it| it.object != object) {
                let named = Named {
                    object,
                    inode: 0,
                    path: String::new(),
                };
                heap::push(&mut names, named)?;
            }
        }
        if names.is_empty() {
            return Ok(Names(names));
        }
        walk(|inode, path| {
            let Kind::File(object) = &inode.kind else {
                return ControlFlow::Continue(());
            };
            if let Some(named) = names.iter_mut().find(|it| it.object == object.id()) {
                named.inode = inode.number;
                named.path = String::from_utf8_lossy(path).into_owned();
            }
            ControlFlow::Continue(())
        })?;
        Ok(Names(names))
    }

    /// The name of an object.
    pub fn of(&self, object: ObjectId) -> Option<vm::proc::File<'_>> {
        let mut named = self.0.iter();
        let named = named.find(|it| it.object == object && !it.path.is_empty())?;
        Some(vm::proc::File {
            device: super::DEVICE,
            inode: named.inode,
            path: &named.path,
        })
    }
}

/// Visits all stored inodes that have names, with the paths, until `visit` breaks off. O(files).
fn walk(mut visit: impl FnMut(&Arc<Inode>, &[u8]) -> ControlFlow<()>) -> Result<(), Errno> {
    /// A directory of the walk: where its part of the path ends, and its last visited entry.
    struct Step {
        directory: Arc<Inode>,
        path: usize,
        last: Option<Name>,
    }
    let (mut way, mut path) = (Vec::new(), Name::new());
    let root = ROOT.clone();
    way.push(Step {
        directory: root,
        path: 0,
        last: None,
    });
    while let Some(step) = way.last_mut() {
        path.truncate(step.path);
        let directory = step.directory.directory()?;
        let Some((name, inode)) = directory.after(step.last.as_deref()) else {
            way.pop();
            continue;
        };
        path.try_reserve(name.len() + 1).map_err(|_| Errno::NOMEM)?;
        path.push(b'/');
        path.extend_from_slice(&name);
        step.last = Some(name);
        if visit(&inode, &path).is_break() {
            break;
        }
        if let Kind::Directory(_) = &inode.kind {
            let step = Step {
                directory: inode,
                path: path.len(),
                last: None,
            };
            heap::push(&mut way, step)?;
        }
    }
    Ok(())
}

/// The path of a directory, if it has a name. O(depth + entries of the directories above it).
pub fn path_of(directory: &Arc<Inode>) -> Option<Name> {
    let (mut here, mut names, mut bytes) = (directory.clone(), Vec::new(), 0);
    loop {
        let parent = here.directory().ok()?.parent()?;
        if Arc::ptr_eq(&parent, &here) {
            break;
        }
        let name = parent.directory().ok()?.name_of(&here)?;
        bytes += name.len() + 1;
        heap::push(&mut names, name).ok()?;
        here = parent;
    }
    let mut path = Name::new();
    path.try_reserve_exact(bytes.max(1)).ok()?;
    for name in names.iter().rev() {
        path.push(b'/');
        path.extend_from_slice(name);
    }
    if path.is_empty() {
        path.push(b'/');
    }
    Some(path)
}

/// The path of an inode that a process has open, if it has one. O(files) if it is no directory.
pub fn name_of(inode: &Arc<Inode>) -> Name {
    let path = match &inode.kind {
        Kind::Directory(_) => path_of(inode),
        Kind::Event(_) => Some(b"anon_inode:[eventfd]".to_vec()),
        Kind::Ticker(_) => Some(b"anon_inode:[timerfd]".to_vec()),
        Kind::Special(special) => Some(special.name().to_vec()),
        Kind::Epoll(_) => Some(b"anon_inode:[eventpoll]".to_vec()),
        Kind::Socket(_) => Some(format!("socket:[{}]", inode.number).into_bytes()),
        Kind::Fifo(fifo) if !fifo.is_named() => {
            Some(format!("pipe:[{}]", inode.number).into_bytes())
        }
        _ => {
            let mut found = None;
            // If there is no memory for the walk, it gets no name.
            let _ = walk(|it, path| {
                if Arc::ptr_eq(it, inode) {
                    found = Some(path.to_vec());
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            });
            found
        }
    };
    path.unwrap_or(b"(deleted)".to_vec())
}
