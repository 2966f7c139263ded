//! Messages between scalevm and the host of a workload: short packets over a pair of
//! sockets, which also tell either side that the other is gone.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// The kind of a packet.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// From the host: it is loaded; the text is its description.
    Loaded,
    /// From the host: it cannot be loaded; the text says why.
    Refused,
    /// To the host: prepare, and start the tasks.
    Begin,
    /// From the host: it is prepared.
    Prepared,
    /// From the host: the tasks could not be started; the text says why.
    Broken,
    /// From the host: the tasks are at work.
    Running,
    /// From the host: a task has ended, with a status as `wait` gives it.
    Ended,
    /// From a task: it ends the whole host.
    Ending,
    /// From a task: the test case has returned.
    Returned,
    /// From a task: its command failed with a status; the text is its last complaint.
    Failed,
    /// To the host: end the tasks, clean up, go.
    End,
}

/// The kinds by number.
const KINDS: [Kind; 11] = [
    Kind::Loaded,
    Kind::Refused,
    Kind::Begin,
    Kind::Prepared,
    Kind::Broken,
    Kind::Running,
    Kind::Ended,
    Kind::Ending,
    Kind::Returned,
    Kind::Failed,
    Kind::End,
];

/// Bytes before the text: the kind, the task, the status.
const HEADER: usize = 9;
/// The longest packet; longer texts are cut.
const LONGEST: usize = 4096;

/// One packet.
#[derive(Debug, PartialEq, Eq)]
pub struct Packet {
    pub kind: Kind,
    /// The task, if the packet is of one.
    pub task: u32,
    /// A status as `wait` gives it, if there is one.
    pub status: i32,
    /// In words, if there are any.
    pub text: String,
}

impl Packet {
    pub fn new(kind: Kind, text: impl Into<String>) -> Self {
        Packet {
            kind,
            task: 0,
            status: 0,
            text: text.into(),
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = header(self.kind, self.task, self.status).to_vec();
        bytes.extend(self.text.bytes().take(LONGEST - HEADER));
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (header, text) = bytes.split_at_checked(HEADER)?;
        Some(Packet {
            kind: *KINDS.get(usize::from(header[0]))?,
            task: u32::from_le_bytes(header[1..5].try_into().ok()?),
            status: i32::from_le_bytes(header[5..].try_into().ok()?),
            text: String::from_utf8_lossy(text).into_owned(),
        })
    }
}

fn header(kind: Kind, task: u32, status: i32) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[0] = kind as u8;
    bytes[1..5].copy_from_slice(&task.to_le_bytes());
    bytes[5..].copy_from_slice(&status.to_le_bytes());
    bytes
}

/// One end.
pub struct Channel(OwnedFd);

/// The result of receiving.
#[derive(Debug, PartialEq, Eq)]
pub enum Received {
    Packet(Packet),
    /// Nothing in time, or a signal came first.
    Nothing,
    /// Nothing, ever again.
    Closed,
}

impl Channel {
    /// Both ends, closed on exec.
    pub fn pair() -> io::Result<(Self, Self)> {
        let mut ends = [-1; 2];
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
        // SAFETY: room for two descriptors.
        if unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) } < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just opened, and known nowhere else.
        Ok(unsafe {
            let [one, other] = ends.map(|end| OwnedFd::from_raw_fd(end));
            (Channel(one), Channel(other))
        })
    }

    /// The end that this process was started with.
    pub fn inherited(end: OwnedFd) -> Self {
        Channel(end)
    }

    pub fn number(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Sends a packet. If the other side is gone it is not needed.
    pub fn send(&self, packet: &Packet) {
        write(self.number(), &packet.encode());
    }

    /// Waits for a packet, for ever without a limit; with [`Received::Nothing`] when a
    /// signal comes that `unblocked` lets through.
    pub fn receive(&self, limit: Option<Duration>, unblocked: Option<&libc::sigset_t>) -> Received {
        let mut poll = libc::pollfd {
            fd: self.number(),
            events: libc::POLLIN,
            revents: 0,
        };
        let limit = limit.map(|limit| libc::timespec {
            tv_sec: limit.as_secs() as libc::time_t,
            tv_nsec: limit.subsec_nanos().into(),
        });
        let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let unblocked = unblocked.map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: one valid entry; the others are null or valid for the call.
        if unsafe { libc::ppoll(&mut poll, 1, limit, unblocked) } <= 0 {
            return Received::Nothing;
        }
        let mut bytes = [0; LONGEST];
        // SAFETY: room for as many bytes as are said.
        let read = unsafe {
            libc::recv(
                self.number(),
                bytes.as_mut_ptr().cast(),
                bytes.len(),
                libc::MSG_DONTWAIT,
            )
        };
        match usize::try_from(read) {
            Err(_) if io::Error::last_os_error().kind() == io::ErrorKind::WouldBlock => {
                Received::Nothing
            }
            Err(_) | Ok(0) => Received::Closed,
            Ok(read) => Packet::decode(&bytes[..read]).map_or(Received::Closed, Received::Packet),
        }
    }
}

/// Sends a packet without a text on descriptor `channel`. May be called in a signal
/// handler.
pub fn tell(channel: RawFd, kind: Kind, task: usize, status: i32) {
    write(channel, &header(kind, task as u32, status));
}

fn write(channel: RawFd, bytes: &[u8]) {
    let start = bytes.as_ptr().cast();
    // SAFETY: valid bytes. Packets are few and short, so there is room for each.
    unsafe { libc::send(channel, start, bytes.len(), libc::MSG_NOSIGNAL) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_arrive_as_they_were_sent() {
        let (one, other) = Channel::pair().expect("a pair");
        assert_eq!(
            one.receive(Some(Duration::ZERO), None),
            Received::Nothing,
            "nothing sent"
        );
        for (number, kind) in KINDS.into_iter().enumerate() {
            assert_eq!(kind as usize, number);
            let packet = Packet {
                kind,
                task: 2047,
                status: -number.cast_signed() as i32,
                text: "x".repeat(number),
            };
            other.send(&packet);
            assert_eq!(one.receive(None, None), Received::Packet(packet));
        }
        tell(other.number(), Kind::Ending, 3, 0);
        drop(other);
        let last = Packet {
            task: 3,
            ..Packet::new(Kind::Ending, "")
        };
        assert_eq!(one.receive(None, None), Received::Packet(last));
        assert_eq!(one.receive(None, None), Received::Closed);
        one.send(&Packet::new(Kind::End, "to nobody"));
    }
}
