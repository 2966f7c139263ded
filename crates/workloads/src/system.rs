//! What a workload needs of an operating system.

use crate::Error;

/// The rights of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prot {
    /// No access.
    None,
    /// Reading only.
    Read,
    /// Reading and writing.
    ReadWrite,
}

/// What lies behind a mapping.
#[derive(Debug, PartialEq, Eq)]
pub enum Backing<'a, F> {
    /// Zeroes, private (`MAP_PRIVATE | MAP_ANONYMOUS`).
    Anonymous,
    /// A file, from its start; writes are private (`MAP_PRIVATE`).
    PrivateFile(&'a F),
    /// A file, from its start; writes go to it (`MAP_SHARED`).
    SharedFile(&'a F),
}

impl<F> Clone for Backing<'_, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F> Copy for Backing<'_, F> {}

/// One task's handle of an operating system.
///
/// Tasks of one process have handles of one address space, tasks of different
/// processes of different ones. Addresses and lengths are multiples of
/// [`System::page_size`]. A system that lacks an operation answers
/// [`Error::Unsupported`].
pub trait System {
    /// A file that mappings can be made of; goes away when dropped.
    type File;

    /// Bytes in a page.
    fn page_size(&self) -> usize;

    /// Maps `len` bytes wherever there is room and returns the address.
    fn map(
        &mut self,
        len: usize,
        prot: Prot,
        backing: Backing<'_, Self::File>,
    ) -> Result<usize, Error>;

    /// Takes `len` bytes of mappings away.
    fn unmap(&mut self, start: usize, len: usize) -> Result<(), Error>;

    /// Changes the rights of `len` bytes.
    fn protect(&mut self, start: usize, len: usize, prot: Prot) -> Result<(), Error>;

    /// Drops the pages of `len` bytes; the next read finds zeroes, or the file.
    fn discard(&mut self, start: usize, len: usize) -> Result<(), Error>;

    /// Where the program break is, as a place from which the workload may move it
    /// up and back.
    fn program_break(&mut self) -> Result<usize, Error>;

    /// Moves the program break.
    fn set_program_break(&mut self, to: usize) -> Result<(), Error>;

    /// Creates a file of `len` zero bytes that no other task has.
    fn file(&mut self, len: usize) -> Result<Self::File, Error>;

    /// Writes one byte. The page is mapped for writing by this task.
    fn write(&mut self, address: usize, value: u8) -> Result<(), Error>;

    /// Reads one byte. The page is mapped for reading by this task.
    fn read(&mut self, address: usize) -> Result<u8, Error>;
}

/// Maps `len` writable bytes, hands their address to `body`, and takes the mapping
/// away again, also when `body` fails.
pub(crate) fn with_mapping<S: System, T>(
    system: &mut S,
    len: usize,
    backing: Backing<'_, S::File>,
    body: impl FnOnce(&mut S, usize) -> Result<T, Error>,
) -> Result<T, Error> {
    let start = system.map(len, Prot::ReadWrite, backing)?;
    let result = body(system, start);
    let unmapped = system.unmap(start, len);
    let value = result?; // the first error is the cause
    unmapped?;
    Ok(value)
}

/// Maps [`crate::SIZE`] bytes, writes one byte in each page, counting pages, and
/// unmaps: the loop of page_fault1 to page_fault3.
pub(crate) fn fault_each_page<S: System>(
    system: &mut S,
    tick: &crate::Counter,
    backing: Backing<'_, S::File>,
) -> Result<(), Error> {
    let page = system.page_size();
    loop {
        let go_on = with_mapping(system, crate::SIZE, backing, |system, start| {
            for address in (start..start + crate::SIZE).step_by(page) {
                system.write(address, 0)?;
                if !tick.add(1) {
                    return Ok(false);
                }
            }
            Ok(true)
        })?;
        if !go_on {
            return Ok(());
        }
    }
}
