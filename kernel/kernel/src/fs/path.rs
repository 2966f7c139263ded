//! From paths to inodes.

use super::{Inode, Kind};
use crate::abi::Errno;
use crate::system::system;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// A path, and the directory at which it begins unless it begins with `/`.
pub struct Path<'a> {
    /// Where it begins.
    pub from: Arc<Inode>,
    /// The names, with `/` between.
    pub names: &'a [u8],
}

/// The most bytes of a name.
const NAME: usize = 255;
/// The most symbolic links on a way.
const LINKS: usize = 40;

/// The inode at a path; follows a link at its end if `follow` says so.
pub fn find(path: &Path, follow: bool) -> Result<Arc<Inode>, Errno> {
    walk(path, follow, LINKS)
}

/// The directory that has, or may get, the last name of a path; and that name.
pub fn find_parent(path: &Path) -> Result<(Arc<Inode>, Vec<u8>), Errno> {
    let names = trim(path.names);
    let split = names.iter().rposition(|&byte| byte == b'/');
    let (above, last) = match split {
        Some(at) => (&names[..=at], &names[at + 1..]),
        None => (&names[..0], names),
    };
    if last.is_empty() {
        return Err(if names.is_empty() {
            Errno::NOENT
        } else {
            Errno::EXIST
        });
    }
    refuse_long(last)?;
    let above = Path {
        from: path.from.clone(),
        names: above,
    };
    let directory = match above.names.is_empty() {
        true => above.from,
        false => find(&above, true)?,
    };
    directory.directory()?;
    Ok((directory, last.to_vec()))
}

/// Without slashes at the end, but for the root.
fn trim(names: &[u8]) -> &[u8] {
    let end = names.iter().rposition(|&byte| byte != b'/');
    end.map_or(&names[..names.len().min(1)], |end| &names[..=end])
}

fn refuse_long(name: &[u8]) -> Result<(), Errno> {
    match name.len() > NAME {
        true => Err(Errno::NAMETOOLONG),
        false => Ok(()),
    }
}

/// The inode that a directory has by a name.
fn entry(directory: &Arc<Inode>, name: &[u8]) -> Result<Arc<Inode>, Errno> {
    if directory.finder().is_none() {
        directory.directory()?;
    }
    let entry = match (name, directory.finder()) {
        (b".", _) => Some(directory.clone()),
        (b"..", Some(_)) => directory.clone().found()?.directory()?.parent(),
        (name, Some(find)) => find(name),
        (b"..", None) => directory.directory()?.parent(),
        (name, None) => directory.directory()?.get(name),
    };
    entry.ok_or(Errno::NOENT)
}

fn walk(path: &Path, follow: bool, links: usize) -> Result<Arc<Inode>, Errno> {
    if path.names.is_empty() {
        return Err(Errno::NOENT);
    }
    let mut here = match path.names[0] {
        b'/' => system().root.clone(),
        _ => path.from.clone(),
    };
    let mut names = path
        .names
        .split(|&byte| byte == b'/')
        .filter(|name| !name.is_empty())
        .peekable();
    while let Some(name) = names.next() {
        refuse_long(name)?;
        let next = entry(&here, name)?;
        // A directory that finds the next name itself is not made.
        let next = match next.finder().is_some() && names.peek().is_some() {
            true => next,
            false => next.found()?,
        };
        let is_last = names.peek().is_none() && !path.names.ends_with(b"/");
        here = match &next.kind {
            Kind::Link(to) if follow || !is_last => {
                let to = Path {
                    from: here.clone(),
                    names: to,
                };
                walk(&to, true, links.checked_sub(1).ok_or(Errno::LOOP)?)?
            }
            _ => next,
        };
    }
    if path.names.ends_with(b"/") {
        here.directory()?;
    }
    Ok(here)
}
