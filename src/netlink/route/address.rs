//! Addresses of interfaces, and the neighbours that are set by hand.

use std::net::IpAddr;

use nix::libc;

use crate::error::Cause;
use crate::gid::Gid;
use crate::netlink::{attributes, number_at, short_at};

/// Lengths of `struct ifaddrmsg` and `struct ndmsg`.
pub(super) const ADDRESS_BODY: usize = 8;
pub(super) const NEIGHBOUR_BODY: usize = 12;

/// An address of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// The interface's index.
    pub(crate) index: u32,
    /// That of which the kernel makes a GID.
    pub(crate) ip: IpAddr,
    /// That of the interface itself.
    pub(crate) near: IpAddr,
    /// Length of the network's part.
    pub(crate) prefix: u8,
    /// Whether another host has it.
    pub(crate) is_duplicate: bool,
}

/// The GID that the kernel makes from an address.
pub(crate) fn gid_of(ip: IpAddr) -> Gid {
    match ip {
        IpAddr::V4(v4) => v4.into(),
        IpAddr::V6(v6) => v6.into(),
    }
}

/// Reads an interface's address: of a point-to-point link, as the kernel's GIDs do, for IPv4 the far end
/// and for IPv6 the near end. A message has that one as `IFA_ADDRESS`, and this one, if there is a far
/// end, as `IFA_LOCAL`.
pub(crate) fn parse_address(payload: &[u8]) -> Result<Option<Address>, Cause> {
    const SHORT: Cause = Cause::Malformed("an address message");
    let prefix = *payload.get(1).ok_or(SHORT)?;
    let flags = *payload.get(2).ok_or(SHORT)?;
    let index = number_at(payload, 4).ok_or(SHORT)?;
    let (mut far, mut near) = (None, None);
    for attribute in attributes(payload.get(ADDRESS_BODY..).ok_or(SHORT)?) {
        let attribute = attribute?;
        match attribute.kind {
            libc::IFA_ADDRESS => far = ip(attribute.bytes()),
            libc::IFA_LOCAL => near = ip(attribute.bytes()),
            _ => {}
        }
    }
    let of_gid = far.filter(IpAddr::is_ipv4).or(near.filter(IpAddr::is_ipv6)).or(far);
    let is_duplicate = u32::from(flags) & libc::IFA_F_DADFAILED != 0;
    Ok(of_gid.map(|ip| Address { index, ip, near: near.unwrap_or(ip), prefix, is_duplicate }))
}

/// Reads a neighbour (`struct ndmsg` of `linux/neighbour.h`): its interface and family, if it is set by hand.
pub(crate) fn parse_neighbour(payload: &[u8]) -> Result<Option<(u32, i32)>, Cause> {
    const SHORT: Cause = Cause::Malformed("a neighbour message");
    let family = i32::from(*payload.first().ok_or(SHORT)?);
    let index = number_at(payload, 4).ok_or(SHORT)?;
    let state = short_at(payload, 8).ok_or(SHORT)?;
    Ok((state & libc::NUD_PERMANENT != 0).then_some((index, family)))
}

fn ip(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = || <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from);
    v4().or_else(|| <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from))
}
