//! Blocks: the length of what is stored, the length of what it stands for, a checksum of both and
//! of what is stored, each four bytes, the lowest first; then what is stored, by `deflate`.

use crate::Error;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};
use std::io::{self, Read, Write};

/// A block's own bytes before what is stored.
const HEAD: usize = 12;

/// The bytes that a block stands for at most: a call with a part for each of 65,530 mappings fits.
pub const LARGEST: usize = 4 << 20;

/// A block may stand for this many times the bytes that are stored: so a file has no more events
/// than its own length allows.
const DENSEST: usize = 64;

/// Appends the block that stands for `raw`.
pub fn seal(raw: &[u8], to: &mut Vec<u8>) -> io::Result<()> {
    let mut stored = deflated(raw, Compression::fast())?;
    if stored.len() * DENSEST < raw.len() {
        stored = deflated(raw, Compression::none())?;
    }
    let lengths = lengths(stored.len(), raw.len());
    to.extend_from_slice(&lengths);
    to.extend_from_slice(&checksum(&lengths, &stored).to_le_bytes());
    to.extend_from_slice(&stored);
    Ok(())
}

fn deflated(raw: &[u8], how: Compression) -> io::Result<Vec<u8>> {
    let mut encoder = DeflateEncoder::new(Vec::new(), how);
    encoder.write_all(raw)?;
    encoder.finish()
}

/// Both are at most a few MiB.
fn lengths(stored: usize, raw: usize) -> [u8; 8] {
    let lengths = (raw as u64) << 32 | stored as u64;
    lengths.to_le_bytes()
}

fn checksum(lengths: &[u8], stored: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(lengths);
    crc.update(stored);
    crc.sum()
}

/// Reads blocks one after the other.
pub struct Blocks<R> {
    from: R,
    /// The number of the block that is read last, and where it begins.
    block: u64,
    byte: u64,
    /// Where the next one begins, and how many there were.
    next: u64,
    count: u64,
}

impl<R: Read> Blocks<R> {
    /// The first one begins at this byte.
    pub fn new(from: R, byte: u64) -> Self {
        Blocks {
            from,
            block: 0,
            byte,
            next: byte,
            count: 0,
        }
    }

    /// What the next block stands for; none if no whole block follows.
    pub fn next(&mut self) -> Result<Option<Vec<u8>>, Error> {
        (self.block, self.byte) = (self.count, self.next);
        let head = self.bytes(HEAD)?;
        let [stored, raw, crc] = [0, 4, 8].map(|at| {
            let word = head.get(at..at + 4).and_then(|word| word.try_into().ok());
            word.map(u32::from_le_bytes)
        });
        let (Some(stored), Some(raw), Some(crc)) = (stored, raw, crc) else {
            return Ok(None);
        };
        let [length, raw] = [stored, raw].map(|length| length as usize);
        if raw == 0 || raw > LARGEST || length > LARGEST + LARGEST / 64 || raw > DENSEST * length {
            return Err(self.damaged(format!("{length} bytes cannot stand for {raw}")));
        }
        let stored = self.bytes(length)?;
        if stored.len() < length {
            return Ok(None);
        }
        if checksum(&head[..8], &stored) != crc {
            return Err(self.damaged("the checksum does not match"));
        }
        let raw = inflated(&stored, raw).ok_or_else(|| self.damaged("it cannot be inflated"))?;
        self.next += (HEAD + length) as u64;
        self.count += 1;
        Ok(Some(raw))
    }

    /// Returns true if nothing follows.
    pub fn is_over(&mut self) -> Result<bool, Error> {
        Ok(self.bytes(1)?.is_empty())
    }

    /// An error in the block that was read last.
    pub fn damaged(&self, why: impl Into<String>) -> Error {
        Error::Damaged {
            block: self.block,
            byte: self.byte,
            why: why.into(),
        }
    }

    /// The next bytes, fewer if the file ends in them. Memory is taken as they come, whatever their
    /// number says.
    fn bytes(&mut self, count: usize) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        self.from
            .by_ref()
            .take(count as u64)
            .read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// What all of `stored` stands for, if that has this length.
fn inflated(stored: &[u8], length: usize) -> Option<Vec<u8>> {
    let mut decoder = DeflateDecoder::new(stored);
    let mut raw = Vec::with_capacity(length);
    let read = decoder
        .by_ref()
        .take(length as u64 + 1)
        .read_to_end(&mut raw);
    let is_all = decoder.total_in() == stored.len() as u64;
    (read.is_ok() && raw.len() == length && is_all).then_some(raw)
}
