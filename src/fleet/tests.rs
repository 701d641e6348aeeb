//! Ends and what meets, and made fleets.

mod made;
mod survey;

use proptest::prelude::*;

use super::*;
use crate::choose::{Family, Network};
use crate::device::{Device, NodeType};
use crate::driver::DriverId;
use crate::gid::{GidType, Source};
use crate::inventory::{DeviceRecord, PortRecord};
use crate::pkey::PKey;
use crate::port::{LinkLayer, Mtu, PortAttributes, PortState};

fn compared(by: Chooser, prefix: u64, is_routable: bool) -> Compared {
    Compared { by, prefix, is_routable }
}

/// An end by its words: a fabric; `down`; `mtu5`; `none` or `unknown` for the GID; of RoCE a version, a network or
/// `link` (with a family) or `nowhere`, the name of an upper interface (`^bond0`), the id of a VLAN (`^vlan7`) or `^?`,
/// and `unproven`; of InfiniBand a prefix (`/fe80`) and P_Keys in hexadecimal.
fn end(words: &str) -> End {
    let mut end = End { state: PortState::ACTIVE, ..End::unread() };
    let mut row = UsedRow {
        gid_type: None,
        family: Family::V4,
        site: Site::Unknown,
        upper: None,
        is_proven: true,
        fault: None,
        reach: Reach::Routed,
        may_reach_nobody: false,
    };
    let mut used = None;
    for word in words.split(' ') {
        let family = if word.contains(':') { Family::V6 } else { Family::V4 };
        match word {
            "roce" => end.fabric = Some(Fabric::Roce),
            "iwarp" => end.fabric = Some(Fabric::Iwarp),
            "opa" => end.fabric = Some(Fabric::OmniPath),
            "ib?" => {
                end.fabric = Some(Fabric::InfiniBandOrOmniPath);
                used = Some(Used::Subnet(None));
            }
            "ib" => {
                end.fabric = Some(Fabric::InfiniBand);
                used = Some(Used::Subnet(None));
            }
            "efa" => {
                end.fabric = Some(Fabric::Other(LinkLayer::UNSPECIFIED, NodeType::UNSPECIFIED));
            }
            "from-flid" => end.compared = Some(compared(Chooser::Ucx, 0xfec0_0000_1234_0000, true)),
            "from-other" => {
                end.compared = Some(compared(Chooser::Ucx, 0xfec0_0000_1235_0000, true));
            }
            "from-unheeded" => {
                end.compared = Some(compared(Chooser::Ucx, 0xfec0_0000_1235_0000, false));
            }
            "from-plain" => end.compared = Some(compared(Chooser::Ucx, 0xfe80 << 48, false)),
            "nccl-1" => end.compared = Some(compared(Chooser::Nccl, 0xfec0_0000_1234_0001, true)),
            "nccl-1-again" => {
                end.compared = Some(compared(Chooser::Nccl, 0xfec0_0000_1235_0001, true));
            }
            "nccl-2" => end.compared = Some(compared(Chooser::Nccl, 0xfec0_0000_1235_0002, true)),
            "nccl-plain-1" => {
                end.compared = Some(compared(Chooser::Nccl, 0xfec0_0000_0000_0001, false));
            }
            "nccl-plain-2" => {
                end.compared = Some(compared(Chooser::Nccl, 0xfec0_0000_0000_0002, false));
            }
            "down" => end.state = PortState::DOWN,
            "mtu5" => end.mtu = Some(Mtu(5)),
            "mtu3" => end.mtu = Some(Mtu(3)),
            "none" => used = Some(Used::None),
            "unknown" => used = Some(Used::Unknown),
            "v1" => row.gid_type = Some(GidType::ROCE_V1),
            "v2" => row.gid_type = Some(GidType::ROCE_V2),
            "link" => (row.site, row.family) = (Site::Link, Family::V6),
            "link4" => row.site = Site::Link,
            "nowhere" => row.site = Site::Unknown,
            "nowhere:" => (row.site, row.family) = (Site::Unknown, Family::V6),
            "^?" => row.upper = Some(Upper::Unread),
            "unproven" => row.is_proven = false,
            "mute" => row.may_reach_nobody = true,
            "own-network" => row.reach = Reach::Network,
            "own-part" => row.reach = Reach::Part,
            "if-down" => row.fault = Some(Obstacle::InterfaceDown),
            "gone" => row.fault = Some(Obstacle::AddressGone),
            _ if word.starts_with('^') => {
                let own = &word[1..];
                let id = own.strip_prefix("vlan").and_then(|own| own.parse().ok());
                row.upper = Some(id.map_or_else(|| Upper::Named(own.to_owned()), Upper::Vlan));
            }
            _ if word.starts_with('/') => {
                let prefix = u64::from_str_radix(&word[1..], 16).unwrap();
                used = Some(Used::Subnet(Some(prefix << 48)));
            }
            _ if word.contains('/') => {
                let (address, bits) = word.split_once('/').unwrap();
                let address = address.parse().unwrap();
                row.site = Site::Network(Network { address, bits: bits.parse().unwrap() });
                row.family = family;
            }
            _ => {
                let mut keys: Vec<PKey> = word
                    .split(',')
                    .map(|own| PKey(u16::from_str_radix(own, 16).unwrap()))
                    .collect();
                keys.sort_unstable();
                end.pkeys = Some(keys);
            }
        }
    }
    end.used = used.unwrap_or(Used::Row(row));
    end
}

/// Two ends, and what comes of them: `meet`, obstacles or doubts.
const TABLE: &[(&str, &str, &str)] = &[
    // One network.
    ("roce v2 10.0.0.0/24", "roce v2 10.0.0.0/24", "meet"),
    ("roce v2 fd00::/64", "roce v2 fd00::/64", "meet"),
    ("roce v1 10.0.0.0/24", "roce v1 10.0.0.0/24", "meet"),
    ("roce v2 10.0.0.0/24 mtu5", "roce v2 10.0.0.0/24 mtu3", "meet mtu"),
    ("roce v2 10.0.0.0/24 mtu5", "roce v2 10.0.0.0/24", "meet"),
    ("roce v2 10.0.0.0/24 ^bond0", "roce v2 10.0.0.0/24 ^bond0", "meet"),
    // What a router may join, or not.
    ("roce v2 10.0.0.0/24", "roce v2 10.0.1.0/24", "Networks"),
    ("roce v2 10.0.0.0/24", "roce v2 10.0.0.0/16", "Networks"),
    ("roce v2 fd00::/64", "roce v2 fd01::/64", "Networks"),
    ("roce v1 10.0.0.0/24", "roce v1 10.0.1.0/24", "Link"),
    ("roce v2 link", "roce v2 link", "Link"),
    ("roce v2 link4", "roce v2 link4", "Link"),
    ("roce v2 link", "roce v2 fd00::/64", "Link"),
    ("roce v2 nowhere", "roce v2 10.0.0.0/24", "NetworkUnread"),
    ("roce v2 nowhere", "roce v2 nowhere", "NetworkUnread"),
    // What UCX is set to reach.
    ("roce v2 10.0.0.0/24 own-network", "roce v2 10.0.0.0/24", "meet"),
    ("roce v2 10.0.0.0/24 own-network", "roce v2 10.0.1.0/24", "Networks Reach"),
    ("roce v2 10.0.0.0/24", "roce v2 10.0.1.0/24 own-network", "Networks Reach"),
    ("roce v2 10.0.0.0/24 own-part", "roce v2 10.0.0.0/24", "Reach"),
    ("roce v2 10.0.0.0/24 mute", "roce v2 10.0.0.0/24", "Address"),
    ("roce v2 10.0.0.0/24 own-part", "roce v2 10.0.1.0/24 own-network", "Networks Reach"),
    ("roce v2 nowhere own-network", "roce v2 nowhere", "NetworkUnread Reach"),
    ("roce v2 link own-network", "roce v2 link", "Link"),
    // Versions and families.
    ("roce v1 10.0.0.0/24", "roce v2 10.0.0.0/24", "!GidType"),
    ("roce v2 10.0.0.0/24", "roce v2 fd00::/64", "!Family"),
    ("roce v1 10.0.0.0/24", "roce v1 link", "!Family"),
    ("roce v1 10.0.0.0/24", "roce v2 fd00::/64", "!GidType Family"),
    ("roce v2 link4", "roce v2 nowhere:", "!Family"),
    ("roce 10.0.0.0/24", "roce v2 10.0.0.0/24", "TypeUnread"),
    ("roce 10.0.0.0/24", "roce v2 fd00::/64", "!Family"),
    // Interfaces.
    ("roce v2 10.0.0.0/24", "roce v2 10.0.0.0/24 ^eth0.7", "Interface"),
    ("roce v2 10.0.0.0/24 ^eth0.8", "roce v2 10.0.0.0/24 ^eth0.7", "Interface"),
    ("roce v2 10.0.0.0/24 ^vlan7", "roce v2 10.0.0.0/24 ^vlan7", "meet"),
    ("roce v2 10.0.0.0/24 ^vlan7", "roce v2 10.0.0.0/24 ^vlan8", "Interface"),
    ("roce v2 10.0.0.0/24 ^vlan7", "roce v2 10.0.0.0/24 ^eth0.7", "Interface"),
    ("roce v2 10.0.0.0/24 unproven", "roce v2 10.0.0.0/24", "Unproven"),
    ("roce v2 10.0.0.0/24 ^?", "roce v2 10.0.0.0/24", "InterfaceUnread"),
    ("roce v2 10.0.0.0/24 ^?", "roce v2 10.0.0.0/24 ^vlan7", "InterfaceUnread"),
    ("roce v2 10.0.0.0/24 ^?", "roce v2 10.0.0.0/24 ^?", "InterfaceUnread"),
    ("roce v2 10.0.0.0/24 ^? unproven", "roce v2 10.0.0.0/24", "Unproven"),
    ("roce v2 10.0.0.0/24 ^vlan7 unproven", "roce v2 10.0.0.0/24", "Unproven Interface"),
    ("roce v2 10.0.0.0/24 if-down", "roce v2 10.0.0.0/24", "!InterfaceDown"),
    ("roce v2 10.0.0.0/24 gone", "roce v2 10.0.0.0/24", "!AddressGone"),
    // What is of one end only.
    ("roce v2 10.0.0.0/24 down", "roce v2 10.0.0.0/24", "!NotActive"),
    ("roce none", "roce v2 10.0.0.0/24", "!NoGid"),
    ("roce none", "roce unknown", "!NoGid"),
    ("roce unknown", "roce v2 10.0.0.0/24", "GidUnread"),
    // Kinds.
    ("roce v2 10.0.0.0/24", "ib /fe80 ffff", "!Fabric"),
    ("roce v2 10.0.0.0/24", "iwarp v1 link", "!Fabric"),
    ("ib /fe80 ffff", "opa /fe80 ffff", "!Fabric"),
    ("ib? /fe80 ffff", "opa /fe80 ffff", "FabricUnread"),
    ("ib? /fe80 ffff", "ib /fe80 ffff", "FabricUnread"),
    ("ib? /fe80 ffff", "ib? /fe80 ffff", "FabricUnread"),
    ("ib? /fe80 ffff", "ib /fe80 8001", "!Partition"),
    ("ib? /fe80 ffff", "roce v2 10.0.0.0/24", "!Fabric"),
    ("ib /fe80 ffff down", "roce v2 10.0.0.0/24", "!NotActive Fabric"),
    ("iwarp v1 link", "iwarp v1 link", "NoRule"),
    ("efa v1 link", "efa v1 link", "NoRule"),
    // InfiniBand.
    ("ib /fe80 ffff", "ib /fe80 ffff", "meet"),
    ("opa /fe80 ffff", "opa /fe80 ffff", "meet"),
    ("ib /fec0 ffff", "ib /fec0 7fff", "meet"),
    ("ib /fe80 7fff", "ib /fe80 7fff", "!Partition"),
    ("ib /fe80 8001", "ib /fe80 8002", "!Partition"),
    ("ib /fe80 8001,7fff", "ib /fe80 0001,7fff", "meet"),
    ("ib /fe80 8000", "ib /fe80 8000", "!Partition"),
    ("ib /fe80", "ib /fe80 ffff", "PKeysUnread"),
    ("ib /fe80 ffff", "ib /fec0 ffff", "!Subnet"),
    ("ib /fec0 ffff", "ib /fec1 ffff", "Networks"),
    ("ib /fe80 ffff from-flid", "ib /fe80 ffff from-flid", "meet"),
    ("ib /fe80 ffff from-flid", "ib /fe80 ffff from-other", "meet"),
    ("ib /fe80 ffff from-flid", "ib /fe80 ffff from-plain", "!Subnet"),
    ("ib /fec0 ffff from-flid", "ib /fec1 ffff from-other", "Networks"),
    ("ib /fe80 ffff from-flid", "ib /fec0 ffff from-other", "Networks"),
    ("ib /fe80 ffff from-flid", "ib /fe80 ffff from-unheeded", "!Subnet"),
    ("ib /fe80 ffff from-flid", "ib /fe80 ffff", "meet"),
    // NCCL compares the low 16 bits of the prefixes, and takes LIDs if these are equal.
    ("ib /fec0 ffff nccl-1", "ib /fec0 ffff nccl-1-again", "meet"),
    ("ib /fec0 ffff nccl-plain-1", "ib /fec0 ffff nccl-1", "meet"),
    ("ib /fec0 ffff nccl-1", "ib /fec1 ffff nccl-1-again", "!Subnet"),
    ("ib /fec0 ffff nccl-1", "ib /fec1 ffff nccl-2", "Networks"),
    ("ib /fe80 ffff nccl-1", "ib /fec0 ffff nccl-2", "Networks"),
    ("ib /fec0 ffff nccl-plain-1", "ib /fec1 ffff nccl-plain-2", "!Subnet"),
    ("ib /fec0 ffff nccl-plain-1", "ib /fec1 ffff nccl-2", "!Subnet"),
    ("ib /fec0 ffff nccl-plain-1", "ib /fec0 ffff nccl-2", "Path"),
    ("ib /fec0 ffff nccl-1", "ib /fec0 ffff nccl-2", "Path"),
    ("ib ffff nccl-1", "ib /fec0 ffff nccl-2", "NetworkUnread"),
    ("ib /fec0 ffff nccl-1", "ib /fec1 ffff from-flid", "Networks"),
    ("ib ffff", "ib /fec1 ffff", "NetworkUnread"),
    ("ib ffff none", "ib /fec1 ffff", "!NoGid"),
];

#[test]
fn what_meets() {
    for (one, other, expected) in TABLE {
        for (one, other) in [(one, other), (other, one)] {
            let own = meet(&end(one), &end(other));
            let words = |list: Vec<String>| list.join(" ");
            let obstacles = own.obstacles.iter().map(|own| format!("{own:?}")).collect();
            let doubts = own.doubts.iter().map(|own| format!("{own:?}")).collect();
            let text = match own.can() {
                Some(true) if own.mtus_differ => "meet mtu".to_owned(),
                Some(true) => "meet".to_owned(),
                Some(false) => format!("!{}", words(obstacles)),
                None => words(doubts),
            };
            assert_eq!(text, *expected, "{one}, {other}");
        }
    }
}

#[test]
fn nothing_is_known_of_a_port_that_could_not_be_read() {
    let other = end("roce v2 10.0.0.0/24");
    assert_eq!(meet(&End::unread(), &other).can(), None);
    // Nobody meets a port that is down, whatever the other one is.
    let down = End { state: PortState::DOWN, ..other };
    assert_eq!(meet(&End::unread(), &down).can(), Some(false));
}

/// A survey finds equal ends by their keys.
#[test]
fn keys_are_equal_where_ends_are() {
    let words = TABLE.iter().flat_map(|(one, other, _)| [*one, *other]);
    let ends = words.flat_map(|words| {
        let more =
            ["", " down", " mtu3", " none", " unknown", " ^v", " ^?", " unproven", " gone", " v1"];
        more.map(|more| {
            let mut own = end(&format!("{words}{more}"));
            if let Used::Row(UsedRow { site: Site::Network(network), .. }) = &mut own.used {
                network.address = core::net::Ipv4Addr::UNSPECIFIED.into();
                network.bits = 0;
            }
            // A survey has the P_Keys of InfiniBand only.
            if !own.fabric.is_some_and(Fabric::has_subnets) {
                own.pkeys = None;
            }
            own
        })
    });
    let ends: Vec<End> = ends.chain([End::unread()]).collect();
    for one in &ends {
        for other in &ends {
            assert_eq!(one == other, one.key() == other.key(), "{one:?}, {other:?}");
        }
    }
}

/// Netlink names the protocol of the first port only.
#[test]
fn the_fabric_of_a_port() {
    let fabric = |layer, node_type, protocol: Option<&str>, number, slots| {
        let mut record = DeviceRecord::new(Device::named("x"));
        (record.device.node_type, record.device.port_count) = (node_type, 2);
        record.device.protocol = protocol.map(str::to_owned);
        let mut port = PortRecord::new(number);
        assert_eq!(Fabric::of(&record, &port), None);
        let attributes =
            PortAttributes { link_layer: layer, gid_tbl_len: slots, ..PortAttributes::default() };
        port.attributes = Some(Ok((attributes, Source::Ioctl)));
        Fabric::of(&record, &port).unwrap()
    };
    let (ethernet, ca) = (LinkLayer::ETHERNET, NodeType::CA);
    let none = Fabric::Other(ethernet, ca);
    for (protocol, number, slots, expected) in [
        (Some("roce"), 1, 16, Fabric::Roce),
        (Some("ib"), 1, 16, none),
        (Some("ib"), 2, 16, Fabric::Roce),
        (None, 1, 16, Fabric::Roce),
        (None, 1, 0, none),
    ] {
        assert_eq!(
            fabric(ethernet, ca, protocol, number, slots),
            expected,
            "{protocol:?} {number}"
        );
    }
    assert_eq!(fabric(ethernet, NodeType::RNIC, Some("iw"), 1, 1), Fabric::Iwarp);
    let infiniband = |protocol| fabric(LinkLayer::INFINIBAND, ca, protocol, 1, 8);
    assert_eq!(infiniband(Some("opa")), Fabric::OmniPath);
    assert_eq!(infiniband(Some("ib")), Fabric::InfiniBand);
    assert_eq!(infiniband(None), Fabric::InfiniBandOrOmniPath);
    // Without a protocol the driver says it, if it is one that is known.
    for (driver, expected) in [
        (DriverId::HFI1, Fabric::OmniPath),
        (DriverId::MLX5, Fabric::InfiniBand),
        (DriverId(9999), Fabric::InfiniBandOrOmniPath),
    ] {
        let mut record = DeviceRecord::new(Device::named("x"));
        (record.device.node_type, record.device.driver) = (ca, Some(driver));
        let mut port = PortRecord::new(1);
        let link_layer = LinkLayer::INFINIBAND;
        let attributes = PortAttributes { link_layer, ..PortAttributes::default() };
        port.attributes = Some(Ok((attributes, Source::Ioctl)));
        assert_eq!(Fabric::of(&record, &port), Some(expected), "{driver:?}");
    }
}

fn any_end() -> impl Strategy<Value = End> {
    let words = TABLE.iter().flat_map(|(one, other, _)| [*one, *other]).collect::<Vec<_>>();
    (
        prop::sample::select(words),
        prop::sample::select(vec!["", " down", " mtu3", " none", " ^v", " ^?"]),
    )
        .prop_map(|(words, more)| end(&format!("{words}{more}")))
}

proptest! {
    /// Whose end comes first makes no difference.
    #[test]
    fn it_is_symmetric(one in any_end(), other in any_end()) {
        prop_assert_eq!(meet(&one, &other), meet(&other, &one));
    }

    /// What keeps everybody from an end keeps each other end from it.
    #[test]
    fn a_fault_is_an_obstacle(one in any_end(), other in any_end()) {
        if let Some(fault) = one.fault() {
            prop_assert!(meet(&one, &other).obstacles.contains(&fault));
        }
    }
}
