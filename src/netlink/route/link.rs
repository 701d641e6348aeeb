//! One network interface, as a message of route netlink says it.

use core::num::NonZeroU32;

use nix::libc;

use crate::error::Cause;
use crate::guid::Guid;
use crate::netdev::{Netdev, VLAN_IDS};
use crate::netlink::{Attribute, attributes, number_at, short_at};
use crate::text::is_shown_name;

/// Length of `struct ifinfomsg`.
pub(super) const LINK_BODY: usize = 16;

/// Attributes of a bond (`linux/if_link.h`).
const BOND_MODE: u16 = 1;
const BOND_ACTIVE_SLAVE: u16 = 2;

/// Attributes of a VLAN (`linux/if_link.h`), and the number of 802.1Q in `linux/if_ether.h`.
const VLAN_ID: u16 = 1;
const VLAN_PROTOCOL: u16 = 5;
const PROTOCOL_8021Q: u16 = 0x8100;

/// Modes of a bond in which only one member is active: active-backup, balance-tlb, balance-alb.
const MODES_WITH_ACTIVE_MEMBER: [u8; 3] = [1, 5, 6];

/// Kinds of interfaces that the kernel makes upper devices of their `IFLA_LINK`, and that say if that is in another
/// namespace: all of them on every kernel, but [`IPVLAN`]. With all others it may be the far end of a pair, or what
/// a tunnel is bound to.
const UPPER_KINDS: [&str; 4] = [VLAN, MACVLAN, IPVLAN, MACSEC];

/// A kind that adds a tag, and one that encrypts, if hardware does not do so (`IFLA_MACSEC_OFFLOAD` in `linux/if_link.h`).
pub(super) const VLAN: &str = "vlan";
const MACSEC: &str = "macsec";
const MACSEC_OFFLOAD: u16 = 15;

/// A kind that says so from [`super::IPVLAN_SAYS`] on.
pub(super) const IPVLAN: &str = "ipvlan";

/// Kinds of masters that take what arrives at their members, as does a master of no kind (`hv_netvsc`, `net_failover`). A
/// VRF does not, nor does a network of batman-adv.
const TAKING_KINDS: [&str; 5] = ["", "bridge", "bond", "team", "openvswitch"];

/// A kind with a mode (`IFLA_MACVLAN_MODE` in `linux/if_link.h`), in one of which it takes what arrives below. A macvtap
/// does so, too, but before Linux 5.18 it does not say that what is below it is in another namespace.
const MACVLAN: &str = "macvlan";
const MACVLAN_MODE: u16 = 1;
const PASSTHRU: u32 = 8;

/// Kinds that are no upper devices of anything but of their members, which are in their namespace.
const BOTTOM_KINDS: [&str; 4] = [DUMMY, "veth", "bond", "bridge"];

/// Kinds that put what they send into packets of their own.
pub(super) const TUNNEL_KINDS: [&str; 2] = ["vxlan", "batadv"];

/// A kind that has no other end.
pub(super) const DUMMY: &str = "dummy";

/// The buses of Hyper-V's interface and of virtio's (`net_failover`). Either may be the master of a virtual function, and
/// the two in different namespaces. It has no kind.
pub(super) const BUSES_OF_MASTERS: [&str; 2] = ["vmbus", "virtio"];

/// Bits of an interface's flags (`linux/if.h`): switched on; `lo`; and able to carry packets.
pub(super) const UP: u32 = 1 << 0;
pub(super) const LOOPBACK: u32 = 1 << 3;
pub(super) const NO_ARP: u32 = 1 << 7;
pub(super) const LOWER_UP: u32 = 1 << 16;

/// An interface, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) index: NonZeroU32,
    pub(crate) name: String,
    /// Its flags, as in `linux/if.h`.
    pub(crate) flags: u32,
    pub(crate) is_ethernet: bool,
    pub(crate) mtu: u32,
    pub(crate) mac: Option<[u8; 6]>,
    /// Of IPoIB, the GUID of the port below it.
    pub(crate) port_guid: Option<Guid>,
    /// The interface that it is an upper device of, if that is in this namespace.
    pub(crate) lower: Option<u32>,
    /// Whether it is known what it is an upper device of.
    pub(crate) is_lower_told: bool,
    /// Its kind; empty for hardware, which has none.
    pub(crate) kind: String,
    /// Whether the bus of hardware is known, as it is from Linux 5.14 on, or it has none.
    pub(crate) is_bus_said: bool,
    /// The bond, bridge … that it belongs to, which is an upper device of it; and the kind of that.
    pub(crate) master: Option<u32>,
    pub(crate) master_kind: String,
    /// What it does with its members, if it is a bond.
    pub(crate) bond: Option<Bond>,
    /// Its id, if it is a VLAN of 802.1Q.
    pub(crate) vlan: Option<u16>,
    /// The interface here of which it takes all that arrives there, as a macvlan in the mode passthru.
    pub(crate) takes_from: Option<u32>,
    pub(crate) framing: Framing,
}

/// What an interface does to packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Nothing that RDMA does not do.
    #[default]
    Plain,
    /// It adds what RDMA leaves out: those of a tunnel, of `MACsec` without offload, a tag of 802.1ad.
    Added,
}

impl Link {
    pub(crate) fn netdev(&self) -> Netdev {
        Netdev { index: self.index, name: self.name.clone() }
    }

    /// Whether it asks for neighbours.
    pub(super) fn asks(&self) -> bool {
        self.flags & NO_ARP == 0
    }

    /// Whether its master takes what arrives at it.
    pub(super) fn is_taken(&self) -> bool {
        self.master.is_some() && TAKING_KINDS.contains(&self.master_kind.as_str())
    }
}

/// How a bond uses its members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bond {
    pub(crate) mode: Option<u8>,
    /// The index of the active member, if there is one.
    pub(crate) active: Option<u32>,
}

impl Bond {
    /// Whether the kernel makes rows of the bond's addresses, and of VLANs on it, for this member's port: for
    /// all where none is active by the bond's mode, else for the active one. Without one (all are
    /// down) it goes by the last.
    pub(crate) fn serves(self, member: NonZeroU32) -> bool {
        let all = self.mode.is_some_and(|mode| !MODES_WITH_ACTIVE_MEMBER.contains(&mode));
        all || self.active == Some(member.get())
    }
}

/// An interface's name. The kernel lets it have nearly any bytes.
pub(crate) fn shown(name: String, index: NonZeroU32) -> String {
    if is_shown_name(&name) { name } else { format!("#{index}") }
}

/// The GUID in a hardware address of IPoIB: four bytes with the queue pair's number, and a GID.
fn port_guid(address: &[u8]) -> Option<Guid> {
    let (_, guid) = address.split_last_chunk()?;
    (address.len() == 20).then(|| Guid::from_be_bytes(*guid))
}

pub(crate) fn parse_link(payload: &[u8]) -> Result<Option<Link>, Cause> {
    const SHORT: Cause = Cause::Malformed("an interface message");
    let Some(index) = NonZeroU32::new(number_at(payload, 4).ok_or(SHORT)?) else { return Ok(None) };
    // A bridge says of its own that a link is a part of it, or no more. That says nothing else of the link.
    if payload.first().copied().map(i32::from) != Some(libc::AF_UNSPEC) {
        return Ok(None);
    }
    let mut link = Link {
        index,
        name: String::new(),
        flags: number_at(payload, 8).ok_or(SHORT)?,
        is_ethernet: short_at(payload, 2).ok_or(SHORT)? == libc::ARPHRD_ETHER,
        mtu: 0,
        mac: None,
        port_guid: None,
        lower: None,
        is_lower_told: false,
        kind: String::new(),
        is_bus_said: false,
        master: None,
        master_kind: String::new(),
        bond: None,
        vlan: None,
        takes_from: None,
        framing: Framing::Plain,
    };
    let is_infiniband = short_at(payload, 2).ok_or(SHORT)? == libc::ARPHRD_INFINIBAND;
    let mut lower = None;
    let mut is_lower_elsewhere = false;
    let mut kind = Kind::default();
    let mut bus = None;
    for attribute in attributes(payload.get(LINK_BODY..).ok_or(SHORT)?) {
        let attribute: Attribute<'_> = attribute?;
        match attribute.kind {
            libc::IFLA_IFNAME => link.name = attribute.text(),
            libc::IFLA_MTU => link.mtu = attribute.u32()?,
            libc::IFLA_ADDRESS => {
                link.mac = attribute.bytes().try_into().ok();
                link.port_guid = port_guid(attribute.bytes()).filter(|_| is_infiniband);
            }
            libc::IFLA_LINK => lower = Some(attribute.u32()?).filter(|lower| *lower != 0),
            libc::IFLA_LINK_NETNSID => is_lower_elsewhere = true,
            libc::IFLA_MASTER => link.master = Some(attribute.u32()?),
            libc::IFLA_PARENT_DEV_BUS_NAME => bus = Some(attribute.text()),
            libc::IFLA_LINKINFO => kind = parse_kind(attribute.bytes())?,
            _ => {}
        }
    }
    if UPPER_KINDS.contains(&kind.name.as_str()) && !is_lower_elsewhere {
        link.lower = lower;
    }
    link.takes_from = lower.filter(|_| kind.is_passthru && !is_lower_elsewhere);
    let is_tunnel = TUNNEL_KINDS.contains(&kind.name.as_str());
    link.framing = if is_tunnel { Framing::Added } else { kind.framing };
    link.is_bus_said = bus.is_some() || link.flags & LOOPBACK != 0;
    link.is_lower_told = match kind.name.as_str() {
        "" => bus.is_none_or(|own| !BUSES_OF_MASTERS.contains(&own.as_str())),
        own => link.lower.is_some() || BOTTOM_KINDS.contains(&own),
    };
    (link.kind, link.master_kind) = (kind.name.clone(), kind.master);
    link.bond = kind.bond.filter(|_| kind.name == "bond");
    link.vlan = kind.vlan.filter(|_| kind.name == VLAN);
    link.name = shown(link.name, index);
    Ok(Some(link))
}

/// What a virtual interface is.
#[derive(Debug, Default)]
struct Kind {
    /// As `vlan`; empty for others.
    name: String,
    /// That of its master, if it has one.
    master: String,
    /// Its data, if they are read as a bond's.
    bond: Option<Bond>,
    /// Its id, if it is a VLAN of 802.1Q.
    vlan: Option<u16>,
    /// Whether it takes all that arrives below.
    is_passthru: bool,
    /// Of a VLAN and of `MACsec`.
    framing: Framing,
}

/// Reads what a virtual interface is. The kernel gives the kind first, then the data.
fn parse_kind(link_info: &[u8]) -> Result<Kind, Cause> {
    let mut kind = Kind::default();
    for attribute in attributes(link_info) {
        let attribute = attribute?;
        match attribute.kind {
            libc::IFLA_INFO_KIND => {
                kind.name = attribute.text();
                if kind.name == "bond" {
                    kind.bond = Some(Bond::default());
                }
            }
            libc::IFLA_INFO_SLAVE_KIND => kind.master = attribute.text(),
            libc::IFLA_INFO_DATA if kind.name == "bond" => {
                kind.bond = Some(parse_bond(attribute.bytes())?);
            }
            libc::IFLA_INFO_DATA if kind.name == MACVLAN => {
                kind.is_passthru = is_passthru(attribute.bytes())?;
            }
            libc::IFLA_INFO_DATA if kind.name == VLAN => {
                (kind.vlan, kind.framing) = parse_vlan(attribute.bytes())?;
            }
            libc::IFLA_INFO_DATA if kind.name == MACSEC => {
                kind.framing = framing_of_macsec(attribute.bytes())?;
            }
            _ => {}
        }
    }
    Ok(kind)
}

fn parse_bond(data: &[u8]) -> Result<Bond, Cause> {
    let mut bond = Bond::default();
    for attribute in attributes(data) {
        let attribute = attribute?;
        match attribute.kind {
            BOND_MODE => bond.mode = attribute.bytes().first().copied(),
            BOND_ACTIVE_SLAVE => bond.active = Some(attribute.u32()?),
            _ => {}
        }
    }
    Ok(bond)
}

/// Whether the mode of a macvlan is passthru.
fn is_passthru(data: &[u8]) -> Result<bool, Cause> {
    for attribute in attributes(data) {
        let attribute = attribute?;
        if attribute.kind == MACVLAN_MODE {
            return Ok(attribute.u32()? == PASSTHRU);
        }
    }
    Ok(false)
}

/// What a `MACsec` interface does, if hardware does not. Kernels that do not say so have no offload.
fn framing_of_macsec(data: &[u8]) -> Result<Framing, Cause> {
    for attribute in attributes(data) {
        let attribute = attribute?;
        if attribute.kind == MACSEC_OFFLOAD && attribute.bytes().iter().any(|own| *own != 0) {
            return Ok(Framing::Plain);
        }
    }
    Ok(Framing::Added)
}

/// The id of a VLAN, unless its frames have a tag of another kind (802.1ad).
fn parse_vlan(data: &[u8]) -> Result<(Option<u16>, Framing), Cause> {
    let (mut id, mut protocol) = (None, None);
    for attribute in attributes(data) {
        let attribute = attribute?;
        match attribute.kind {
            VLAN_ID => id = attribute.bytes().try_into().ok().map(u16::from_ne_bytes),
            VLAN_PROTOCOL => {
                protocol = attribute.bytes().try_into().ok().map(u16::from_be_bytes);
            }
            _ => {}
        }
    }
    let id = id.filter(|own| protocol == Some(PROTOCOL_8021Q) && VLAN_IDS.contains(own));
    let has_other_tag = protocol.is_some_and(|own| own != PROTOCOL_8021Q);
    Ok((id, if has_other_tag { Framing::Added } else { Framing::Plain }))
}
