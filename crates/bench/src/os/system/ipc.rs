//! Pipes, sockets, futexes.

use super::{answered, failed};
use std::ptr;
use workloads::{Call, Descriptor, Error};

/// The end to read from, and the end to write to.
pub fn pipe() -> Result<[Descriptor; 2], Error> {
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors.
    answered(Call::Pipe, unsafe { libc::pipe(ends.as_mut_ptr()) })?;
    Ok(ends.map(Descriptor))
}

/// Two stream sockets, connected.
pub fn socket_pair() -> Result<[Descriptor; 2], Error> {
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors.
    let made = unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM, 0, ends.as_mut_ptr()) };
    answered(Call::SocketPair, made)?;
    Ok(ends.map(Descriptor))
}

#[inline]
pub fn write(to: Descriptor, bytes: &[u8]) -> Result<usize, Error> {
    // SAFETY: `bytes.len()` bytes can be read there.
    uninterrupted(Call::Write, || unsafe {
        libc::write(to.0, bytes.as_ptr().cast(), bytes.len())
    })
}

#[inline]
pub fn read(from: Descriptor, bytes: &mut [u8]) -> Result<usize, Error> {
    // SAFETY: `bytes.len()` bytes can be written there.
    uninterrupted(Call::Read, || unsafe {
        libc::read(from.0, bytes.as_mut_ptr().cast(), bytes.len())
    })
}

/// Calls again as long as a signal comes first.
#[inline]
fn uninterrupted(call: Call, mut attempt: impl FnMut() -> isize) -> Result<usize, Error> {
    loop {
        match usize::try_from(attempt()) {
            Ok(length) => return Ok(length),
            Err(_) => match failed(call) {
                Error::Failed(_, libc::EINTR) => {}
                error => return Err(error),
            },
        }
    }
}

/// Waits as long as the word holds `value`. Returns true if it did at first.
#[inline]
pub fn futex_wait(address: usize, value: u32) -> Result<bool, Error> {
    let nothing = ptr::null::<libc::timespec>();
    // SAFETY: the kernel checks the address and only reads there.
    let waited =
        unsafe { libc::syscall(libc::SYS_futex, address, libc::FUTEX_WAIT, value, nothing) };
    match waited {
        0 => Ok(true),
        _ => match failed(Call::FutexWait) {
            Error::Failed(_, libc::EAGAIN) => Ok(false),
            Error::Failed(_, libc::EINTR) => Ok(true),
            error => Err(error),
        },
    }
}

/// Wakes waiters of any process, as futexes between processes need it.
#[inline]
pub fn futex_wake(address: usize, count: u32) -> Result<u32, Error> {
    let nothing = ptr::null::<libc::timespec>();
    // SAFETY: the kernel checks the address and changes nothing there.
    let woken = unsafe {
        libc::syscall(
            libc::SYS_futex,
            address,
            libc::FUTEX_WAKE,
            count,
            nothing,
            nothing,
            0,
        )
    };
    u32::try_from(woken).map_err(|_| failed(Call::FutexWake))
}
