//! The kernel's reports as files, and the directories that contain them. Directories are made when
//! a path leads there, reports when they are read.

use super::{Directory, Inode, Kind, Live, Name};
use crate::errno::Errno;
use crate::heap;
use crate::system::Lock;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

/// A file whose content is made when it is read.
pub trait Report: Send + Sync {
    /// Fills `to` with the bytes from `offset` on; returns their number.
    fn read_at(&self, offset: u64, to: &mut [u8]) -> Result<usize, Errno>;
}

/// A text that is being written. Writing fails if there is no memory.
#[derive(Default)]
pub struct Sheet(Vec<u8>);

impl Sheet {
    /// Writes bytes.
    pub fn add(&mut self, bytes: &[u8]) -> Result<(), Errno> {
        // A text may not take the memory that is reserved for operations that cannot fail.
        if self.0.capacity() - self.0.len() < bytes.len() && heap::is_short() {
            return Err(Errno::NOMEM);
        }
        self.0.try_reserve(bytes.len()).map_err(|_| Errno::NOMEM)?;
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

impl fmt::Write for Sheet {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.add(text.as_bytes()).map_err(|_| fmt::Error)
    }
}

/// A report that `write` writes again whenever it is read from its start.
struct Text<W> {
    write: W,
    written: Lock<Option<Sheet>>,
}

impl<W: Fn(&mut Sheet) -> Result<(), Errno> + Send + Sync> Report for Text<W> {
    fn read_at(&self, offset: u64, to: &mut [u8]) -> Result<usize, Errno> {
        let mut written = self.written.lock();
        if offset == 0 {
            *written = None;
        }
        let sheet = match &mut *written {
            Some(sheet) => sheet,
            place => {
                let mut sheet = Sheet::default();
                (self.write)(&mut sheet)?;
                place.insert(sheet)
            }
        };
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = sheet.0.get(start..).unwrap_or(&[]);
        let count = rest.len().min(to.len());
        to[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

/// A file with the text that `write` writes.
pub fn text(
    write: impl Fn(&mut Sheet) -> Result<(), Errno> + Send + Sync + 'static,
) -> Result<Arc<Inode>, Errno> {
    let written = Lock::new(None);
    Ok(report(Text { write, written }, 0o444))
}

/// A file whose bytes are made as they are read.
pub fn report(report: impl Report + 'static, mode: u32) -> Arc<Inode> {
    Inode::new(Kind::Report(Box::new(report)), mode)
}

/// A symbolic link.
pub fn link(to: &[u8]) -> Result<Arc<Inode>, Errno> {
    Ok(Inode::new(Kind::Link(to.to_vec()), 0o777))
}

/// A directory whose entries the kernel makes.
pub fn directory(live: impl Live + 'static) -> Arc<Inode> {
    Inode::new(Kind::Directory(Directory::live(live)), 0o555)
}

/// An entry of a [`Table`]: its name, and a function that makes its inode, from the directory's and
/// the subject.
pub type Entry<S> = (
    &'static str,
    fn(&Arc<Inode>, &S) -> Result<Arc<Inode>, Errno>,
);

/// A directory with fixed entries about a subject.
pub struct Table<S: 'static> {
    /// The directory that has this one.
    pub parent: Arc<Inode>,
    /// Its name there.
    pub name: Name,
    /// The subject of the entries.
    pub of: S,
    /// The entries.
    pub entries: &'static [Entry<S>],
}

impl<S: Send + Sync> Live for Table<S> {
    fn parent(&self) -> Option<Arc<Inode>> {
        Some(self.parent.clone())
    }

    fn name(&self) -> Name {
        self.name.clone()
    }

    fn get(&self, own: &Arc<Inode>, name: &[u8]) -> Result<Arc<Inode>, Errno> {
        let mut entries = self.entries.iter();
        let found = entries.find(|(its, _)| its.as_bytes() == name);
        let (_, make) = found.ok_or(Errno::NOENT)?;
        let made = make(own, &self.of)?;
        made.belong_to(own);
        Ok(made)
    }

    fn next(&self, from: u64) -> Option<(u64, Name)> {
        let (name, _) = self.entries.get(usize::try_from(from).ok()?)?;
        Some((from, name.as_bytes().to_vec()))
    }
}

/// A directory with fixed entries about the whole system.
pub fn table(
    parent: &Arc<Inode>,
    name: &str,
    entries: &'static [Entry<()>],
) -> Result<Arc<Inode>, Errno> {
    Ok(directory(Table {
        parent: parent.clone(),
        name: name.as_bytes().to_vec(),
        of: (),
        entries,
    }))
}

/// The number that a name spells, without leading zeroes.
pub fn number<N: core::str::FromStr + alloc::string::ToString>(name: &[u8]) -> Result<N, Errno> {
    let number = str::from_utf8(name)
        .ok()
        .and_then(|it| it.parse::<N>().ok());
    let number = number.filter(|it| it.to_string().as_bytes() == name);
    number.ok_or(Errno::NOENT)
}
