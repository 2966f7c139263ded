//! Control data of messages: descriptors and identities, as programs write them.

use crate::abi::Errno;
use crate::caller::Identity;
use crate::fs::{Control, Domain};
use crate::heap;
use crate::process::Thread;
use crate::system::system;
use linux_raw_sys::net::SOL_SOCKET;

/// Bytes of a piece's head: its length, its level and its type.
const HEAD: usize = 16;
/// The bytes of pieces are multiples of this.
const ALIGN: usize = 8;
/// The most bytes of all pieces, and the most descriptors of one.
const MOST: usize = 20480;
const FILES: usize = 253;

const SCM_RIGHTS: u32 = 1;
const SCM_CREDENTIALS: u32 = 2;

/// Bytes of a descriptor, and of an identity.
const NUMBER: usize = 4;
const IDENTITY: usize = 12;

/// Reads the control data of a message that a socket of the domain sends.
pub fn read_control(
    thread: &Thread,
    domain: Domain,
    at: usize,
    bytes: usize,
) -> Result<Control, Errno> {
    let mut control = Control::default();
    if bytes > MOST {
        return Err(Errno::NOBUFS);
    }
    let mut place = 0;
    while bytes.saturating_sub(place) >= HEAD {
        let here = at.wrapping_add(place);
        let length: usize = thread.read(here)?;
        let [level, kind]: [u32; 2] = thread.read(here.wrapping_add(8))?;
        if !(HEAD..=bytes - place).contains(&length) {
            return Err(Errno::INVAL);
        }
        let (data, count) = (here.wrapping_add(HEAD), length - HEAD);
        match (level, kind) {
            // Nothing of this goes to a port.
            (SOL_SOCKET, SCM_RIGHTS | SCM_CREDENTIALS) if domain.is_internet() => {}
            (SOL_SOCKET, SCM_RIGHTS) => read_files(thread, data, count, &mut control)?,
            (SOL_SOCKET, SCM_CREDENTIALS) => {
                control.sender = Some(read_identity(thread, data, count)?);
            }
            (SOL_SOCKET, _) => return Err(Errno::INVAL),
            _ if domain.is_internet() => return Err(Errno::INVAL),
            _ => {}
        }
        place += length.next_multiple_of(ALIGN);
    }
    Ok(control)
}

fn read_files(
    thread: &Thread,
    at: usize,
    bytes: usize,
    control: &mut Control,
) -> Result<(), Errno> {
    let count = bytes / NUMBER;
    if control.files.len() + count > FILES {
        return Err(Errno::INVAL);
    }
    for index in 0..count {
        let number: u32 = thread.read(at.wrapping_add(index * NUMBER))?;
        heap::push(&mut control.files, thread.file_or_place(number as usize)?)?;
    }
    Ok(())
}

/// Only the thread's own identity can be sent.
fn read_identity(thread: &Thread, at: usize, bytes: usize) -> Result<Identity, Errno> {
    if bytes != IDENTITY {
        return Err(Errno::INVAL);
    }
    let [process, user, group]: [u32; 3] = thread.read(at)?;
    let given = Identity {
        process,
        user,
        group,
    };
    match given == system().kernel.caller.identity() {
        true => Ok(given),
        false => Err(Errno::PERM),
    }
}

/// The identity of a sender that has not told it.
const NOBODY: Identity = Identity {
    process: 0,
    user: 65534,
    group: 65534,
};

/// Room for control data in the thread's memory.
pub struct Room {
    pub at: usize,
    pub bytes: usize,
    /// The bytes that are written.
    pub used: usize,
    /// True if there was not room for all.
    pub is_cut: bool,
}

impl Room {
    /// Writes the control data that a message came with: the sender if the socket `asks` for it,
    /// and the files, which get descriptors.
    pub fn fill(
        &mut self,
        thread: &Thread,
        mut control: Control,
        asks: bool,
        closes: bool,
    ) -> Result<(), Errno> {
        if asks {
            let sender = control.sender.unwrap_or(NOBODY);
            let words = [sender.process, sender.user, sender.group];
            let mut bytes = [0; IDENTITY];
            for (to, word) in bytes.chunks_exact_mut(4).zip(words) {
                to.copy_from_slice(&word.to_le_bytes());
            }
            self.put(thread, SCM_CREDENTIALS, &bytes)?;
        }
        if control.files.is_empty() {
            return Ok(());
        }
        let room = self.left().saturating_sub(HEAD) / NUMBER;
        let count = control.files.len().min(room);
        self.is_cut |= count < control.files.len();
        let mut numbers = [0; FILES * NUMBER];
        let mut given = 0;
        for file in control.files.drain(..count) {
            let Ok(number) = thread.add_file(file, closes) else {
                self.is_cut = true;
                break;
            };
            let place = given * NUMBER;
            numbers[place..place + NUMBER].copy_from_slice(&(number as u32).to_le_bytes());
            given += 1;
        }
        if given > 0 {
            self.put(thread, SCM_RIGHTS, &numbers[..given * NUMBER])?;
        }
        Ok(())
    }

    fn left(&self) -> usize {
        self.bytes - self.used
    }

    /// Writes a piece, or the part for which there is room.
    fn put(&mut self, thread: &Thread, kind: u32, data: &[u8]) -> Result<(), Errno> {
        if self.left() < HEAD {
            self.is_cut = true;
            return Ok(());
        }
        let count = data.len().min(self.left() - HEAD);
        self.is_cut |= count < data.len();
        let here = self.at.wrapping_add(self.used);
        thread.write(here, HEAD + count)?;
        thread.write(here.wrapping_add(8), [SOL_SOCKET, kind])?;
        thread.write_bytes(here.wrapping_add(HEAD), &data[..count])?;
        let whole = (HEAD + count).next_multiple_of(ALIGN);
        self.used += whole.min(self.left());
        Ok(())
    }
}
