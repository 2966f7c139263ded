//! Steps shared by several workloads.

use crate::{Backing, Call, Counter, Descriptor, Error, Prot, System};

/// Maps `len` writable bytes, passes their address to `body`, and unmaps them, even if `body`
/// fails.
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

/// Maps `len` bytes, writes one byte in each page, counting pages, and
/// unmaps: the loop of page_fault1 to page_fault3.
pub(crate) fn fault_each_page<S: System>(
    system: &mut S,
    tick: &Counter,
    len: usize,
    backing: Backing<'_, S::File>,
) -> Result<(), Error> {
    on_each_page(system, tick, len, backing, |system, address| {
        system.write(address, 0)
    })
}

/// Maps `len` bytes, does `work` at the address of each page, counting pages, and unmaps, over
/// and over.
pub(crate) fn on_each_page<S: System>(
    system: &mut S,
    tick: &Counter,
    len: usize,
    backing: Backing<'_, S::File>,
    mut work: impl FnMut(&mut S, usize) -> Result<(), Error>,
) -> Result<(), Error> {
    let page = system.page_size();
    loop {
        let go_on = with_mapping(system, len, backing, |system, start| {
            for address in (start..start + len).step_by(page) {
                work(system, address)?;
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

/// Reads the byte at `address`, which must be `expected`.
pub(crate) fn expect_byte<S: System>(
    system: &mut S,
    address: usize,
    expected: u8,
) -> Result<(), Error> {
    match system.read(address)? {
        found if found == expected => Ok(()),
        found => Err(Error::Wrong {
            address,
            found,
            expected,
        }),
    }
}

/// Writes `byte` to new pages from `start` on.
pub(crate) fn fill<S: System>(
    system: &mut S,
    start: usize,
    pages: usize,
    byte: u8,
) -> Result<(), Error> {
    let page = system.page_size();
    (0..pages).try_for_each(|number| system.write(start + number * page, byte))
}

/// Reads pages from `start` on; each must hold `byte`.
pub(crate) fn expect_bytes<S: System>(
    system: &mut S,
    start: usize,
    pages: usize,
    byte: u8,
) -> Result<(), Error> {
    let page = system.page_size();
    (0..pages).try_for_each(|number| expect_byte(system, start + number * page, byte))
}

/// Passes two connected ends, to write to and to read from, to `body`, and closes them, even if
/// `body` fails.
pub(crate) fn with_ends<S: System, T>(
    system: &mut S,
    ends: [Descriptor; 2],
    body: impl FnOnce(&mut S, [Descriptor; 2]) -> Result<T, Error>,
) -> Result<T, Error> {
    let result = body(system, ends);
    let closed = ends.map(|end| system.close(end));
    let value = result?; // the first error is the cause
    closed.into_iter().collect::<Result<(), Error>>()?;
    Ok(value)
}

/// Writes one byte at one end and reads it at the other, over and over: the loop of pipe1
/// and unix1.
pub(crate) fn pass_bytes<S: System>(
    system: &mut S,
    tick: &Counter,
    [reader, writer]: [Descriptor; 2],
) -> Result<(), Error> {
    let mut byte = 0u8;
    loop {
        byte = byte.wrapping_add(1); // a read returns the last byte written
        send(system, writer, byte)?;
        expect(system, reader, byte)?;
        if !tick.add(1) {
            return Ok(());
        }
    }
}

/// Writes one byte.
pub(crate) fn send<S: System>(system: &mut S, to: Descriptor, byte: u8) -> Result<(), Error> {
    let written = system.write_to(to, &[byte])?;
    Error::unless(Call::Write, written as u64, 1)
}

/// Reads one byte, which must be `byte`.
pub(crate) fn expect<S: System>(system: &mut S, from: Descriptor, byte: u8) -> Result<(), Error> {
    let mut found = [0];
    let length = system.read_from(from, &mut found)?;
    Error::unless(Call::Read, length as u64, 1)?; // 0: the writing end is closed
    Error::unless(Call::Read, u64::from(found[0]), u64::from(byte))
}
