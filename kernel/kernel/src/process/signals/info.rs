//! The cause of a signal, as in `siginfo`.

use super::Signal;
use crate::process::Process;
use linux_raw_sys::general::{SI_KERNEL, SI_TIMER, SI_TKILL, SI_USER};

/// The cause of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// The signal.
    pub signal: Signal,
    /// `SI_…`, or one of the signal's own codes.
    pub code: i32,
    /// The following words in `siginfo`; the code gives their meaning.
    pub words: [u64; WORDS],
}

/// Bytes of `siginfo`.
pub const BYTES: usize = 128;
/// Where the words begin.
const FIRST: usize = 16;
/// The number of words in use.
const WORDS: usize = 4;

/// The number of a process, and its user in the upper half.
fn who(process: &Process) -> u64 {
    u64::from(process.users.lock().user.real) << 32 | u64::from(process.pid)
}

impl Info {
    /// A signal sent by the kernel.
    pub fn kernel(signal: Signal) -> Self {
        let code = SI_KERNEL as i32;
        Info {
            signal,
            code,
            words: [0; _],
        }
    }

    /// A signal that a process has sent to a process.
    pub fn user(signal: Signal, sender: &Process) -> Self {
        Self::from(signal, SI_USER as i32, sender)
    }

    /// A signal that a process has sent to a thread.
    pub fn thread(signal: Signal, sender: &Process) -> Self {
        Self::from(signal, SI_TKILL, sender)
    }

    fn from(signal: Signal, code: i32, sender: &Process) -> Self {
        let words = [who(sender), 0, 0, 0];
        Info {
            signal,
            code,
            words,
        }
    }

    /// An event of a child: how it ended, or the signal that has stopped or continued it.
    pub fn child(code: u32, child: &Process, status: u32) -> Self {
        Info {
            signal: Signal::CHILD,
            code: code as i32,
            words: [who(child), status.into(), 0, 0],
        }
    }

    /// An exception at an address.
    pub fn fault(signal: Signal, code: i32, address: usize) -> Self {
        let words = [address as u64, 0, 0, 0];
        Info {
            signal,
            code,
            words,
        }
    }

    /// The address of the fault; 0 if the cause was none.
    pub fn fault_address(&self) -> usize {
        match self.signal {
            Signal::SEGV | Signal::BUS if self.code != SI_KERNEL as i32 => self.words[0] as usize,
            _ => 0,
        }
    }

    /// Reads the cause of `signal` from the bytes of a `siginfo`.
    pub fn read(signal: Signal, bytes: &[u8; BYTES]) -> Self {
        let (words, _) = bytes.as_chunks::<8>();
        let word = |index: usize| u64::from_le_bytes(words[index]);
        Info {
            signal,
            code: word(1) as i32,
            words: core::array::from_fn(|index| word(FIRST / 8 + index)),
        }
    }

    /// The bytes of `signalfd_siginfo`.
    pub fn file_bytes(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        let [first, second, third, fourth] = self.words.map(u64::to_le_bytes);
        put(0, &self.signal.number().to_le_bytes());
        put(8, &self.code.to_le_bytes());
        match (self.signal, self.code) {
            (_, SI_TIMER) => {
                // The timer, and how often it has expired meanwhile.
                put(24, &first[..4]);
                put(32, &first[4..]);
                put(44, &second[..4]);
                put(48, &second);
            }
            // The process, its user, its status and its times.
            (Signal::CHILD, 1..) => {
                put(12, &first);
                put(40, &second[..4]);
                put(56, &third);
                put(64, &fourth);
            }
            (Signal::ILL | Signal::FPE | Signal::SEGV | Signal::BUS | Signal::TRAP, 1..) => {
                put(72, &first);
            }
            // The process, its user, and its word.
            _ => {
                put(12, &first);
                put(44, &second[..4]);
                put(48, &second);
            }
        }
        bytes
    }

    /// The bytes of `siginfo`.
    pub fn bytes(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..4].copy_from_slice(&self.signal.number().to_le_bytes());
        bytes[8..12].copy_from_slice(&self.code.to_le_bytes());
        let words = self.words.map(u64::to_le_bytes);
        bytes[FIRST..][..WORDS * 8].copy_from_slice(words.as_flattened());
        bytes
    }
}
