//! Devices.

use crate::errno::Errno;
use crate::profile;
use crate::program::random_word;
use crate::single::Single;
use ipc::Pipe;
use metal::Metal;

/// The terminal, as files use it.
pub trait Tty: Send + Sync {
    /// Reads a line, or the ready bytes, depending on its settings.
    fn read(&'static self, to: &mut [u8], waits: bool) -> Result<usize, Errno>;

    /// Prints bytes.
    fn write(&self, from: &[u8]) -> Result<usize, Errno>;

    /// The pipe that contains a byte while there is input.
    fn input_pipe(&'static self) -> &'static Pipe<Metal>;

    /// Returns true if there is input.
    fn has_input(&'static self) -> bool;

    /// The number of bytes of input.
    fn count(&self) -> usize;
}

/// The terminal.
pub static TTY: Single<&'static dyn Tty> = Single::new();

/// A device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// The terminal.
    Console,
    /// The terminal of the caller's session.
    Terminal,
    /// `/dev/null`: reads end at once, writes are discarded.
    Null,
    /// `/dev/zero`: reads get zeroes, writes are discarded.
    Zero,
    /// `/dev/full`: reads get zeroes, writes find no room.
    Full,
    /// `/dev/random`: numbers that programs cannot easily guess.
    Random,
    /// `/dev/profile`: starts and stops the profile.
    Profile,
}

impl Device {
    /// The device with these numbers.
    pub fn of(major: u32, minor: u32) -> Option<Self> {
        match (major, minor) {
            (5, 0) => Some(Device::Terminal),
            (5, 1) => Some(Device::Console),
            (1, 3) => Some(Device::Null),
            (1, 5) => Some(Device::Zero),
            (1, 7) => Some(Device::Full),
            (1, 8 | 9) => Some(Device::Random),
            _ => None,
        }
    }

    /// The device's numbers.
    pub fn numbers(self) -> (u32, u32) {
        match self {
            Device::Console => (5, 1),
            Device::Terminal => (5, 0),
            Device::Null => (1, 3),
            Device::Zero => (1, 5),
            Device::Full => (1, 7),
            Device::Random => (1, 9),
            // A misc device.
            Device::Profile => (10, 255),
        }
    }

    /// Reads the available bytes; with `waits`, waits for some.
    pub fn read(self, to: &mut [u8], waits: bool) -> Result<usize, Errno> {
        match self {
            Device::Null | Device::Profile => return Ok(0),
            Device::Random => {
                for part in to.chunks_mut(8) {
                    part.copy_from_slice(&random_word().to_le_bytes()[..part.len()]);
                }
            }
            Device::Zero | Device::Full => to.fill(0),
            Device::Console | Device::Terminal => return TTY.read(to, waits),
        }
        Ok(to.len())
    }

    /// Writes all.
    pub fn write(self, from: &[u8]) -> Result<usize, Errno> {
        match self {
            Device::Full => Err(Errno::NOSPC),
            Device::Profile => profile::control(from),
            Device::Console | Device::Terminal => TTY.write(from),
            Device::Null | Device::Zero | Device::Random => Ok(from.len()),
        }
    }
}
