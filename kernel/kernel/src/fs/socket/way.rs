//! Ways: what one socket receives. Bytes in a pipe, or packets in a queue.

use super::{Address, Control};
use crate::caller::Identity;
use crate::errno::Errno;
use crate::fs::transfer::{self, Reading};
use crate::fs::{Source, Target};
use crate::heap;
use crate::system::{Lock, system};
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::Cell;
use ipc::pipe::ATOMIC;
use ipc::{End, Pipe, poll_changes, poll_while};
use metal::Metal;

/// The most bytes of packets that wait, and the most packets, which include empty ones.
const ROOM: usize = 212_992;
const PACKETS: usize = 512;
/// The most bytes of a packet.
pub const LARGEST: usize = ROOM - 32;

/// What one socket receives.
pub struct Way {
    /// The bytes; or a byte for each packet, so that threads wait for packets as for bytes.
    pub pipe: Arc<Pipe<Metal>>,
    content: Content,
}

enum Content {
    /// Bytes, and the control data that came with some of them.
    Bytes(Lock<VecDeque<Mark>>),
    Packets(Lock<Packets>),
}

/// Control data of the bytes of one call, by their places among all bytes of the way.
struct Mark {
    from: usize,
    to: usize,
    control: Control,
}

impl Mark {
    /// Returns true if its bytes have this sender, and came without files.
    fn is_of(&self, sender: Option<Identity>) -> bool {
        self.control.files.is_empty() && self.control.sender == sender
    }
}

#[derive(Default)]
struct Packets {
    queue: VecDeque<Packet>,
    bytes: usize,
}

/// A packet: its bytes stay together.
pub struct Packet {
    bytes: Vec<u8>,
    from: Address,
    control: Control,
}

/// What came with received bytes.
#[derive(Default)]
pub struct Received {
    /// Control data.
    pub control: Control,
    /// The sender of a packet.
    pub from: Option<Address>,
    /// The bytes of a packet. The caller may have got fewer.
    pub whole: usize,
}

impl Packet {
    /// A packet of these bytes.
    pub fn new(source: &mut dyn Source, from: Address, control: Control) -> Result<Self, Errno> {
        if source.most() > LARGEST {
            return Err(Errno::MSGSIZE);
        }
        let mut bytes = heap::buffer(source.most())?;
        if source.get(0, &mut bytes) < bytes.len() {
            return Err(Errno::FAULT);
        }
        Ok(Packet {
            bytes,
            from,
            control,
        })
    }
}

impl Way {
    /// A way for bytes.
    pub fn of_bytes() -> Result<Self, Errno> {
        let pipe = Pipe::try_new().map_err(|_| Errno::NOMEM)?;
        Ok(Way {
            pipe: Arc::new(pipe),
            content: Content::Bytes(Lock::new(VecDeque::new())),
        })
    }

    /// A way for packets.
    pub fn of_packets() -> Result<Self, Errno> {
        let pipe = Pipe::of_size(ATOMIC).map_err(|_| Errno::NOMEM)?;
        Ok(Way {
            pipe: Arc::new(pipe),
            content: Content::Packets(Lock::new(Packets::default())),
        })
    }

    /// Returns true if it has packets.
    pub fn has_packets(&self) -> bool {
        matches!(self.content, Content::Packets(_))
    }

    /// The bytes that a read would get now.
    pub fn available(&self) -> usize {
        match &self.content {
            Content::Bytes(_) => self.pipe.room(End::Reading).0,
            Content::Packets(packets) => {
                let packets = packets.lock();
                packets.queue.front().map_or(0, |first| first.bytes.len())
            }
        }
    }

    /// Returns true if the way has room for more.
    pub fn has_room(&self) -> bool {
        match &self.content {
            Content::Bytes(_) => self.pipe.room(End::Writing).0 >= ATOMIC,
            Content::Packets(packets) => packets.lock().is_half_empty(),
        }
    }

    /// Sends bytes; what there is room for, if `waits` returns false.
    pub fn send(
        &self,
        source: &mut dyn Source,
        control: Control,
        waits: impl Fn() -> bool,
    ) -> Result<usize, Errno> {
        let Content::Bytes(marks) = &self.content else {
            return Err(Errno::OPNOTSUPP);
        };
        if control.is_empty() {
            return transfer::send_to(&self.pipe, source, waits, |_, _| ());
        }
        let sender = control.sender;
        let mut control = Some(control);
        marks.lock().try_reserve(1).map_err(|_| Errno::NOMEM)?;
        transfer::send_to(&self.pipe, source, waits, |from, count| {
            let (mut marks, to) = (marks.lock(), from + count);
            let has_files = control.as_ref().is_some_and(|it| !it.files.is_empty());
            match (marks.back_mut(), control.take()) {
                // Bytes of one sender go together.
                (Some(last), _) if !has_files && last.to == from && last.is_of(sender) => {
                    last.to = to;
                }
                (_, Some(control)) => marks.push_back(Mark { from, to, control }),
                _ => {}
            }
        })
    }

    /// Adds a packet, and waits for room while `waits` returns true. Gives it back when it does
    /// not.
    ///
    /// # Errors
    /// If nothing is received any more.
    pub fn push(&self, packet: Packet, waits: impl Fn() -> bool) -> Result<Option<Packet>, Errno> {
        let Content::Packets(packets) = &self.content else {
            return Err(Errno::OPNOTSUPP);
        };
        let bytes = packet.bytes.len();
        loop {
            let seen = self.pipe.changes(End::Writing);
            if self.pipe.room(End::Writing).1 {
                return Err(Errno::PIPE);
            }
            let mut now = packets.lock();
            if now.has_room(bytes) {
                now.queue.try_reserve(1).map_err(|_| Errno::NOMEM)?;
                now.bytes += bytes;
                now.queue.push_back(packet);
                drop(now);
                // There is room for more than may wait.
                let _ = self.pipe.write(&system().kernel, &[0]);
                return Ok(None);
            }
            drop(now);
            if !waits() {
                return Ok(Some(packet));
            }
            let end = [(&*self.pipe, End::Writing, seen)];
            poll_changes(&system().kernel, end.into_iter(), &waits);
        }
    }

    /// Receives bytes, or a packet; 0 at the end. `None` if it would have to wait.
    pub fn receive(
        &self,
        target: &mut dyn Target,
        how: &Reading,
        received: &mut Received,
    ) -> Result<Option<usize>, Errno> {
        match &self.content {
            Content::Bytes(marks) => self.receive_bytes(marks, target, how, received),
            Content::Packets(packets) => self.receive_packet(packets, target, how, received),
        }
    }

    /// Receives bytes, but no more than those of one call if control data came with them.
    fn receive_bytes(
        &self,
        marks: &Lock<VecDeque<Mark>>,
        target: &mut dyn Target,
        how: &Reading,
        received: &mut Received,
    ) -> Result<Option<usize>, Errno> {
        let start = Cell::new(0);
        let most = |position| {
            start.set(position);
            let marks = marks.lock();
            let next = marks.front();
            next.map_or(usize::MAX, |mark| match mark.from > position {
                // Bytes of another sender come first.
                true if mark.control.files.is_empty() => mark.from - position,
                _ => mark.to - position,
            })
        };
        let got = |count| {
            let (mut marks, end) = (marks.lock(), start.get() + count);
            let Some(mark) = marks.front_mut().filter(|mark| mark.from < end) else {
                return false;
            };
            if how.peeks {
                received.control = mark.control.clone();
                return true;
            }
            received.control.sender = mark.control.sender;
            received.control.files = core::mem::take(&mut mark.control.files);
            if mark.to <= end || mark.control.sender.is_none() {
                marks.pop_front();
            }
            true
        };
        transfer::receive_from(&self.pipe, target, how, most, got)
    }

    fn receive_packet(
        &self,
        packets: &Lock<Packets>,
        target: &mut dyn Target,
        how: &Reading,
        received: &mut Received,
    ) -> Result<Option<usize>, Errno> {
        loop {
            let mut now = packets.lock();
            if let Some(first) = now.queue.front() {
                let count = first.bytes.len().min(target.most());
                received.whole = first.bytes.len();
                if how.peeks {
                    // Not copied under the lock, where memory cannot be brought in.
                    received.from = Some(first.from.clone());
                    received.control = first.control.clone();
                    let mut bytes = heap::buffer(count)?;
                    bytes.copy_from_slice(&first.bytes[..count]);
                    drop(now);
                    return delivered(target, &bytes).map(Some);
                }
                let first = now
                    .queue
                    .pop_front()
                    .unwrap_or_else(|| unreachable!("seen above"));
                now.bytes -= first.bytes.len();
                drop(now);
                // The byte is in the pipe, or about to be.
                self.pipe.read(&system().kernel, &mut [0]);
                received.from = Some(first.from);
                received.control = first.control;
                return delivered(target, &first.bytes[..count]).map(Some);
            }
            drop(now);
            if self.pipe.room(End::Reading).1 {
                return Ok(Some(0));
            }
            if !(how.waits)() {
                return Ok(None);
            }
            poll_while(&system().kernel, &[(&*self.pipe, End::Reading)], how.waits);
        }
    }

    /// Takes what nobody receives any more, to be dropped where nothing is locked.
    pub fn clear(&self) -> Vec<Control> {
        match &self.content {
            Content::Bytes(marks) => {
                let marks = core::mem::take(&mut *marks.lock());
                marks.into_iter().map(|mark| mark.control).collect()
            }
            Content::Packets(packets) => {
                let packets = core::mem::take(&mut *packets.lock());
                let queue = packets.queue.into_iter();
                queue.map(|packet| packet.control).collect()
            }
        }
    }
}

impl Packets {
    /// Returns true if there is room for several packets.
    fn is_half_empty(&self) -> bool {
        self.queue.len() < PACKETS && self.bytes <= ROOM / 2
    }

    /// Returns true if there is room for a packet of this size.
    fn has_room(&self, bytes: usize) -> bool {
        self.queue.len() < PACKETS && (self.bytes + bytes <= ROOM || self.queue.is_empty())
    }
}

/// Copies a packet.
fn delivered(target: &mut dyn Target, bytes: &[u8]) -> Result<usize, Errno> {
    if target.put(0, bytes) < bytes.len() {
        return Err(Errno::FAULT);
    }
    Ok(bytes.len())
}
