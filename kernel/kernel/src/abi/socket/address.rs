//! Addresses of sockets, as programs write them.

use crate::abi::{Answer, Errno};
use crate::fs::{Address, Domain};
use crate::process::Thread;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use linux_raw_sys::net::{AF_INET, AF_INET6, AF_UNIX, AF_UNSPEC};

/// Bytes of the family, of a whole address of each kind, and the fewest of an IPv6 address.
const FAMILY: usize = 2;
const MOST: usize = 128;
const UNIX: usize = 110;
const FOUR: usize = 16;
const SIX: usize = 28;
const SHORT_SIX: usize = 24;

/// An address that a program gives.
pub enum Given {
    Address(Address),
    /// Only the family: any name.
    Any,
    /// No family: none.
    Nowhere,
}

/// Reads an address for a socket of the domain.
pub fn read_address(
    thread: &Thread,
    domain: Domain,
    at: usize,
    size: usize,
) -> Result<Given, Errno> {
    let size = size as u32 as usize;
    if !(FAMILY..=MOST).contains(&size) {
        return Err(Errno::INVAL);
    }
    let mut bytes = [0; MOST];
    thread.read_bytes(at, &mut bytes[..size])?;
    let family = u32::from(u16::from_le_bytes([bytes[0], bytes[1]]));
    if family == AF_UNSPEC {
        return Ok(Given::Nowhere);
    }
    match domain {
        Domain::Unix => unix(family, &bytes[..size]),
        Domain::Four if size < FOUR => Err(Errno::INVAL),
        Domain::Four if family != AF_INET => Err(Errno::AFNOSUPPORT),
        Domain::Four => {
            let [a, b, c, d] = [4, 5, 6, 7].map(|place| bytes[place]);
            Ok(internet(Ipv4Addr::new(a, b, c, d).into(), &bytes))
        }
        Domain::Six if family != AF_INET6 => Err(Errno::AFNOSUPPORT),
        Domain::Six if size < SHORT_SIX => Err(Errno::INVAL),
        Domain::Six => {
            let mut ip = [0; 16];
            ip.copy_from_slice(&bytes[8..24]);
            Ok(internet(IpAddr::from(ip).to_canonical(), &bytes))
        }
    }
}

/// A path without its end, or an abstract name, which begins with a 0.
fn unix(family: u32, bytes: &[u8]) -> Result<Given, Errno> {
    if family != AF_UNIX || bytes.len() > UNIX {
        return Err(Errno::INVAL);
    }
    let name = &bytes[FAMILY..];
    let end = match name {
        [] => return Ok(Given::Any),
        [0, ..] => name.len(),
        _ => name
            .iter()
            .position(|&byte| byte == 0)
            .unwrap_or(name.len()),
    };
    Ok(Given::Address(Address::Unix(name[..end].to_vec())))
}

fn internet(ip: IpAddr, bytes: &[u8]) -> Given {
    let port = u16::from_be_bytes([bytes[2], bytes[3]]);
    Given::Address(Address::Internet((ip, port).into()))
}

/// Writes as much of an address as there is room for, and its size.
pub fn write_address(
    thread: &Thread,
    domain: Domain,
    address: &Address,
    to: usize,
    size: usize,
) -> Answer {
    let room: u32 = thread.read(size)?;
    if (room as i32) < 0 {
        return Err(Errno::INVAL);
    }
    let mut bytes = [0; MOST];
    let whole = fill(domain, address, &mut bytes);
    let count = whole.min(room as usize);
    thread.write_bytes(to, &bytes[..count])?;
    thread.write(size, whole as u32)?;
    Ok(0)
}

/// Fills in an address; returns how many bytes it has.
fn fill(domain: Domain, address: &Address, to: &mut [u8; MOST]) -> usize {
    let family = match domain {
        Domain::Unix => AF_UNIX,
        Domain::Four => AF_INET,
        Domain::Six => AF_INET6,
    };
    to[..FAMILY].copy_from_slice(&(family as u16).to_le_bytes());
    match address {
        Address::Unnamed => FAMILY,
        Address::Unix(name) => {
            to[FAMILY..FAMILY + name.len()].copy_from_slice(name);
            FAMILY + name.len()
        }
        Address::Internet(at) => {
            to[2..4].copy_from_slice(&at.port().to_be_bytes());
            fill_number(domain, at, to)
        }
    }
}

fn fill_number(domain: Domain, at: &SocketAddr, to: &mut [u8; MOST]) -> usize {
    match (domain, at.ip()) {
        (Domain::Six, ip) => {
            let ip: Ipv6Addr = match ip {
                IpAddr::V4(ip) => ip.to_ipv6_mapped(),
                IpAddr::V6(ip) => ip,
            };
            to[8..24].copy_from_slice(&ip.octets());
            SIX
        }
        (_, IpAddr::V4(ip)) => {
            to[4..8].copy_from_slice(&ip.octets());
            FOUR
        }
        (_, IpAddr::V6(_)) => FOUR,
    }
}
