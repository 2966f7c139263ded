//! An opened event.

use super::Attributes;
use perf_event_open_sys::{bindings as sys, ioctls, perf_event_open};
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// The target of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// Everything that runs on the CPU.
    Cpu(u32),
    /// One thread, while it runs on the CPU.
    Thread(u32, u32),
}

/// An opened event, closed when dropped.
#[derive(Debug)]
pub(crate) struct Counter {
    fd: OwnedFd,
    id: u64,
}

impl Counter {
    /// Opens an event, disabled.
    pub fn open(attributes: &Attributes, target: Target) -> io::Result<Counter> {
        let mut attr = attributes.raw();
        let (pid, cpu) = match target {
            Target::Cpu(cpu) => (-1, cpu as i32),
            Target::Thread(tid, cpu) => (tid as i32, cpu as i32),
        };
        let cloexec = sys::PERF_FLAG_FD_CLOEXEC.into();
        // SAFETY: `attr` is initialised and holds its own size; the kernel may write to it.
        let fd = unsafe { perf_event_open(&mut attr, pid, cpu, -1, cloexec) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just returned this descriptor, so nothing else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let mut id = 0;
        // SAFETY: the kernel writes eight bytes to `id`, a local u64.
        checked(unsafe { ioctls::ID(fd.as_raw_fd(), &mut id) })?;
        Ok(Counter { fd, id })
    }

    /// The number that records name this event by.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The descriptor, for mapping and polling.
    pub fn as_raw_fd(&self) -> i32 {
        self.fd.as_raw_fd()
    }

    /// Sends this event's records to the ring of `leader`, an event of the same CPU.
    pub fn write_to(&self, leader: &Counter) -> io::Result<()> {
        // SAFETY: both descriptors are open as long as their counters live; the call takes no
        // memory.
        checked(unsafe { ioctls::SET_OUTPUT(self.as_raw_fd(), leader.as_raw_fd()) })
    }

    /// Makes each `period`th hit a record.
    pub fn set_period(&self, period: u64) -> io::Result<()> {
        let place = (&raw const period).addr() as u64;
        // SAFETY: the descriptor is open as long as `self` lives; the call reads eight bytes at the
        // given place, a local variable.
        checked(unsafe { ioctls::PERIOD(self.as_raw_fd(), place) })
    }

    /// Leaves out the hits of a tracepoint that `filter`, on its fields, does not allow.
    pub fn set_filter(&self, filter: &CStr) -> io::Result<()> {
        let place = filter.as_ptr().cast_mut();
        // SAFETY: the descriptor is open as long as `self` lives; the call only reads the C string.
        checked(unsafe { ioctls::SET_FILTER(self.as_raw_fd(), place) })
    }

    /// Starts counting.
    pub fn enable(&self) -> io::Result<()> {
        // SAFETY: the descriptor is open as long as `self` lives; the call takes no memory.
        checked(unsafe { ioctls::ENABLE(self.as_raw_fd(), 0) })
    }

    /// Stops counting; once it returns no record is being written.
    pub fn disable(&self) -> io::Result<()> {
        // SAFETY: the descriptor is open as long as `self` lives; the call takes no memory.
        checked(unsafe { ioctls::DISABLE(self.as_raw_fd(), 0) })
    }
}

fn checked(result: i32) -> io::Result<()> {
    match result {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
