//! The names of sockets: paths, abstract names, ports.

use super::address::refuse_foreign;
use super::ports::{claim_name, claim_port};
use super::{Address, Domain, Socket};
use crate::errno::Errno;
use crate::fs::{Name, caller};
use alloc::format;
use alloc::sync::Arc;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Ports below this one are root's.
const RESERVED: u16 = 1024;
/// The numbers from which a name is made.
const MADE: u32 = 1 << 20;

impl Socket {
    /// Gives a Unix socket a path, which `take` puts into the file system.
    pub fn bind_path(
        &self,
        name: Name,
        take: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let _claim = self.claim.lock();
        if !self.address().is_none() {
            return Err(Errno::INVAL);
        }
        take()?;
        self.set_address(Address::Unix(name));
        Ok(())
    }

    /// Gives a Unix socket an abstract name; one that nobody has, if there is none.
    pub fn bind_name(self: &Arc<Self>, name: Option<Name>) -> Result<(), Errno> {
        let mut claim = self.claim.lock();
        if !self.address().is_none() {
            // A socket with a name keeps it.
            return name.map_or(Ok(()), |_| Err(Errno::INVAL));
        }
        let (name, taken) = match name {
            Some(name) => {
                let taken = claim_name(self, &name)?;
                (name, taken)
            }
            None => (0..MADE)
                .find_map(|number| {
                    let name = format!("\0{number:05x}").into_bytes();
                    let taken = claim_name(self, &name).ok()?;
                    Some((name, taken))
                })
                .ok_or(Errno::NOSPC)?,
        };
        *claim = Some(taken);
        self.set_address(Address::Unix(name));
        Ok(())
    }

    /// Gives it a port, any free one for port 0.
    pub fn bind_port(self: &Arc<Self>, at: SocketAddr) -> Result<(), Errno> {
        refuse_foreign(at.ip())?;
        if (1..RESERVED).contains(&at.port()) && !caller().is_root() {
            return Err(Errno::ACCES);
        }
        let mut claim = self.claim.lock();
        if claim.is_some() {
            return Err(Errno::INVAL);
        }
        let (at, taken) = claim_port(self, at)?;
        *claim = Some(taken);
        self.set_address(Address::Internet(at));
        Ok(())
    }

    /// Gives it a port, unless it has one. It gets the number `ip` if it has any.
    pub(super) fn have_port(self: &Arc<Self>, ip: IpAddr) -> Result<SocketAddr, Errno> {
        let any: IpAddr = match self.domain {
            Domain::Six => Ipv6Addr::UNSPECIFIED.into(),
            _ => Ipv4Addr::UNSPECIFIED.into(),
        };
        let bound = self.bind_port((any, 0).into());
        match bound {
            Ok(()) | Err(Errno::INVAL) => {}
            Err(_) => return Err(Errno::ADDRNOTAVAIL),
        }
        let own = self.address().internet().ok_or(Errno::INVAL)?;
        match own.ip().is_unspecified() {
            true => Ok((ip, own.port()).into()),
            false => Ok(own),
        }
    }
}
