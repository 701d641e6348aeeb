//! Interfaces and addresses, as the kernel sends them, and as it never does.

use core::num::NonZeroU32;
use std::net::Ipv6Addr;

use uverbs_uapi::netlink as abi;

use super::address::parse_neighbour;
use super::link::*;
use super::*;
use crate::netlink::rdma::parse_port;

const MAC: [u8; 6] = [0x02, 0x11, 0x22, 0x33, 0x44, 0x55];
const ACTIVE_BACKUP: u8 = 1;

pub(crate) fn index(index: u32) -> NonZeroU32 {
    NonZeroU32::new(index).unwrap()
}

pub(crate) fn link(number: u32, name: &str) -> Link {
    Link {
        index: index(number),
        name: name.into(),
        flags: 0,
        is_ethernet: true,
        mtu: 0,
        mac: None,
        port_guid: None,
        lower: None,
        is_lower_told: true,
        kind: "dummy".into(),
        is_bus_said: false,
        master: None,
        master_kind: "dummy".into(),
        bond: None,
        vlan: None,
        takes_from: None,
        framing: Framing::Plain,
    }
}

/// A bond in this mode.
pub(crate) fn bond(number: u32, name: &str, mode: u8, active: Option<u32>) -> Link {
    Link { bond: Some(Bond { mode: Some(mode), active }), ..link(number, name) }
}

#[test]
fn route_messages() {
    let (nine, flags) = (9u32.to_ne_bytes(), u32::to_ne_bytes(UP | LOWER_UP));
    let body = [[0; 4], nine, flags, [0; 4]].concat();
    let message = Message::new(0, &body)
        .text(libc::IFLA_IFNAME, "d0.7")
        .number(libc::IFLA_MTU, 9000)
        .attribute(libc::IFLA_ADDRESS, &MAC)
        .number(libc::IFLA_MASTER, 5);
    let parsed = parse_link(&message.finish_for_test()).unwrap().unwrap();
    let expected = Link {
        flags: UP | LOWER_UP,
        is_ethernet: false,
        mtu: 9000,
        mac: Some(MAC),
        master: Some(5),
        kind: String::new(),
        master_kind: String::new(),
        ..link(9, "d0.7")
    };
    assert_eq!(parsed, expected);
    assert!(parse_link(&[0; 7]).is_err());
    // What a bridge says of its own.
    let body = [&[7][..], body.get(1..).unwrap()].concat();
    let message = Message::new(0, &body).text(libc::IFLA_IFNAME, "d0.7");
    assert_eq!(parse_link(&message.finish_for_test()), Ok(None));

    let data = Message::new(0, &[]).attribute(1, &[ACTIVE_BACKUP]).number(2, 4).finish_for_test();
    let bonded = Message::new(0, &[])
        .text(libc::IFLA_INFO_KIND, "bond")
        .attribute(libc::IFLA_INFO_DATA, &data);
    let message = Message::new(0, &[[0; 4], nine, [0; 4], [0; 4]].concat())
        .attribute(libc::IFLA_LINKINFO, &bonded.finish_for_test());
    let parsed = parse_link(&message.finish_for_test()).unwrap().unwrap();
    let bond = Link {
        is_ethernet: false,
        kind: "bond".into(),
        master_kind: String::new(),
        ..bond(9, "#9", ACTIVE_BACKUP, Some(4))
    };
    assert_eq!(parsed, bond, "a kind, and no hardware");
    let ethernet = [&[0, 0][..], &libc::ARPHRD_ETHER.to_ne_bytes(), &[9; 12]].concat();
    assert!(parse_link(&ethernet).unwrap().unwrap().is_ethernet);

    let address = |near: &[u8], far: &[u8]| {
        let message = Message::new(0, &[[2, 24, 0, 0], nine].concat())
            .attribute(libc::IFA_LOCAL, near)
            .attribute(libc::IFA_ADDRESS, far);
        parse_address(&message.finish_for_test()).unwrap().unwrap()
    };
    let expected_of = |ip: &str, near: &str| {
        let (ip, near) = (ip.parse().unwrap(), near.parse().unwrap());
        Address { index: 9, ip, near, prefix: 24, is_duplicate: false }
    };
    let expected = |ip| expected_of(ip, ip);
    let far = expected_of("10.0.0.2", "10.0.0.1");
    assert_eq!(address(&[10, 0, 0, 1], &[10, 0, 0, 2]), far, "the far end");
    let v6 = |last| Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last).octets();
    assert_eq!(address(&v6(1), &v6(2)), expected("fd00::1"), "the near end");
    let message =
        Message::new(0, &[[10, 24, 0, 0], nine].concat()).attribute(libc::IFA_ADDRESS, &v6(3));
    let parsed = parse_address(&message.finish_for_test()).unwrap();
    assert_eq!(parsed, Some(expected("fd00::3")), "without a far end");
    assert!(parse_address(&[0; 3]).is_err());
}

/// Before Linux 5.10 an ipvlan does not say that what is below it is in another namespace.
#[test]
fn an_old_ipvlan_does_not_say_where_its_lower_is() {
    let kind = Message::new(0, &[]).text(libc::IFLA_INFO_KIND, "ipvlan").finish_for_test();
    let message = Message::new(0, &[[0; 4], 9u32.to_ne_bytes(), [0; 4], [0; 4]].concat())
        .number(libc::IFLA_LINK, 2)
        .attribute(libc::IFLA_LINKINFO, &kind);
    for (release, is_told) in [(None, false), (Some((5, 9)), false), (Some((5, 10)), true)] {
        let mut own = [parse_link(&message.clone().finish_for_test()).unwrap().unwrap()];
        doubt(&mut own, &|| release, &|| panic!("it is no hardware"));
        let [own] = own;
        assert_eq!((own.is_lower_told, own.lower.is_some()), (is_told, is_told), "{release:?}");
    }
}

/// Hyper-V's interface is the master of a virtual function, which may be in another namespace.
#[test]
fn the_master_of_a_virtual_function_may_be_elsewhere() {
    let hardware = |number: u32, bus: Option<&str>, mac: [u8; 6], flags: u32, master: u32| {
        let body = [[0; 4], number.to_ne_bytes(), flags.to_ne_bytes(), [0; 4]].concat();
        let mut message = Message::new(0, &body).attribute(libc::IFLA_ADDRESS, &mac);
        if let Some(bus) = bus {
            message = message.text(libc::IFLA_PARENT_DEV_BUS_NAME, bus);
        }
        if master != 0 {
            message = message.number(libc::IFLA_MASTER, master);
        }
        parse_link(&message.finish_for_test()).unwrap().unwrap()
    };
    let made = |links: &[Link], is_hyper_v: bool| {
        let mut links = links.to_vec();
        doubt(&mut links, &|| panic!("none is an ipvlan"), &|| is_hyper_v);
        let links: Links = links.into_iter().collect();
        (links.untold(), links.above(index(5)))
    };
    let [none, own] = [BTreeSet::new(), BTreeSet::from([7])];
    let (pci, vmbus) = (Some("pci"), Some("vmbus"));
    let (loopback, other) = (hardware(1, None, [0; 6], LOOPBACK, 0), [9; 6]);
    // Without its virtual function, nobody knows what is below it.
    for (bus, is_hyper_v, is_told) in [
        (vmbus, true, false),
        (Some("virtio"), false, false),
        (vmbus, false, false),
        (None, true, false),
        (None, false, true),
        (pci, true, true),
    ] {
        let links = [loopback.clone(), hardware(7, bus, MAC, UP, 0)];
        let untold = if is_told { &none } else { &own };
        assert_eq!(
            made(&links, is_hyper_v),
            (untold.clone(), none.clone()),
            "{bus:?} {is_hyper_v}"
        );
    }
    let function = hardware(5, pci, MAC, UP, 7);
    let links = [function.clone(), hardware(7, vmbus, MAC, UP, 0)];
    assert_eq!(made(&links, true), (none.clone(), own.clone()));
    // Another interface has its index here.
    for bus in [pci, vmbus] {
        let (_, above) = made(&[function.clone(), hardware(7, bus, other, UP, 0)], true);
        assert_eq!(above, none);
    }
    // A bond's member may have another address, and a bond is where its members are.
    let bond = Link { mac: Some(other), kind: "bond".into(), ..bond(7, "b", ACTIVE_BACKUP, None) };
    let member = Link { master_kind: "bond".into(), ..function.clone() };
    assert_eq!(made(&[member.clone(), bond.clone()], true).1, own);
    // Each of the two may have the index of the other's.
    for (link, here) in
        [(&function, bond), (&member, link(7, "v")), (&member, hardware(7, pci, MAC, UP, 0))]
    {
        assert_eq!(made(&[link.clone(), here], true).1, none);
    }
}

/// An interface of a kind, as it is read with these data.
fn read_as(kind: &str, data: &[(u16, &[u8])]) -> Link {
    let add = |message: Message, own: &(u16, &[u8])| message.attribute(own.0, own.1);
    let data = data.iter().fold(Message::new(0, &[]), add).finish_for_test();
    let info = Message::new(0, &[])
        .text(libc::IFLA_INFO_KIND, kind)
        .attribute(libc::IFLA_INFO_DATA, &data);
    let body = [&[0; 4], &9u32.to_ne_bytes()[..], &[0; 8]].concat();
    let message = Message::new(0, &body).attribute(libc::IFLA_LINKINFO, &info.finish_for_test());
    parse_link(&message.finish_for_test()).unwrap().unwrap()
}

/// The id of a VLAN is that of 802.1Q, and of nothing else.
#[test]
fn vlans_have_an_id() {
    let vlan = |kind: &str, protocol: u16, id: u16| {
        let link = read_as(kind, &[(1, &id.to_ne_bytes()), (5, &protocol.to_be_bytes())]);
        let dump = RouteDump { links: [link].into_iter().collect(), ..Default::default() };
        dump.interfaces()[0].vlan
    };
    assert_eq!(vlan("vlan", 0x8100, 7), Some(7));
    assert_eq!(vlan("vlan", 0x8100, 4095), None, "it is none");
    assert_eq!(vlan("vlan", 0x88a8, 7), None, "802.1ad");
    assert_eq!(vlan("macvlan", 0x8100, 7), None, "its attributes mean something else");
}

/// Whose frames have what RDMA leaves out.
#[test]
fn frames_of_interfaces_are_plain_or_not() {
    let framing = |kind: &str, data: &[(u16, &[u8])]| read_as(kind, data).framing;
    let (plain, added) = (Framing::Plain, Framing::Added);
    assert_eq!(framing("vlan", &[(5, &0x8100u16.to_be_bytes())]), plain);
    assert_eq!(framing("vlan", &[(5, &0x88a8u16.to_be_bytes())]), added);
    assert_eq!(framing("macsec", &[(7, &[1]), (15, &[2])]), plain, "offload mac");
    assert_eq!(framing("macsec", &[(7, &[1]), (15, &[0])]), added, "offload off");
    assert_eq!(framing("macsec", &[(7, &[1])]), added, "before Linux 5.7");
    assert_eq!((framing("vxlan", &[]), framing("batadv", &[])), (added, added));
    assert_eq!((framing("macvlan", &[(15, &[0])]), framing("", &[])), (plain, plain));
}

/// A macvlan takes what arrives below it in one mode only.
#[test]
fn what_takes_all_that_arrives() {
    let taken = |kind: &str, mode: u32, is_elsewhere: bool| {
        let data = Message::new(0, &[]).attribute(1, &mode.to_ne_bytes()).finish_for_test();
        let info = Message::new(0, &[])
            .text(libc::IFLA_INFO_KIND, kind)
            .attribute(libc::IFLA_INFO_DATA, &data)
            .finish_for_test();
        let body = [&[0; 4], &9u32.to_ne_bytes()[..], &[0; 8]].concat();
        let mut message = Message::new(0, &body)
            .attribute(libc::IFLA_LINK, &7u32.to_ne_bytes())
            .attribute(libc::IFLA_LINKINFO, &info);
        if is_elsewhere {
            message = message.attribute(libc::IFLA_LINK_NETNSID, &0u32.to_ne_bytes());
        }
        let above = parse_link(&message.finish_for_test()).unwrap().unwrap();
        let own = "10.0.0.1".parse().unwrap();
        let address = Address { index: 7, ip: own, near: own, prefix: 24, is_duplicate: false };
        let links = [link(7, "d0"), above].into_iter().collect();
        RouteDump { links, addresses: vec![address], ..Default::default() }.interfaces()[0]
            .unfit
            .clone()
    };
    let why = [("10.0.0.1".parse().unwrap(), Unfit::Enslaved)];
    assert_eq!(taken("macvlan", 8, false), why);
    assert_eq!(taken("macvlan", 4, false), []);
    assert_eq!(taken("ipvlan", 8, false), []);
    assert_eq!(taken("macvtap", 8, false), [], "its d0 may be another one");
    assert_eq!(taken("macvlan", 8, true), [], "its d0 is another one");
}

/// The port's GUID ends IPoIB's hardware address, and only IPoIB's.
#[test]
fn ipoib_names_its_port() {
    let link = |kind: u16, address: &[u8]| {
        let body = [&[0, 0][..], &kind.to_ne_bytes(), &9u32.to_ne_bytes(), &[0; 8]].concat();
        let message = Message::new(0, &body).attribute(libc::IFLA_ADDRESS, address);
        parse_link(&message.finish_for_test()).unwrap().unwrap().port_guid
    };
    let mut address = [0; 20];
    address[4..6].copy_from_slice(&[0xfe, 0x80]);
    address[12..].copy_from_slice(&[0, 2, 0xc9, 3, 0, 4, 0, 1]);
    assert_eq!(link(libc::ARPHRD_INFINIBAND, &address), Some(0x0002_c903_0004_0001.into()));
    assert_eq!(link(libc::ARPHRD_INFINIBAND, &address[1..]), None);
    assert_eq!(link(libc::ARPHRD_ETHER, &address), None);
}

#[test]
fn addresses_that_nobody_can_use() {
    let address = |flags: u8, near: &[u8], far: &[u8]| {
        let body = [&[2, 24, flags, 0], &9u32.to_ne_bytes()[..]].concat();
        let message = Message::new(0, &body)
            .attribute(libc::IFA_LOCAL, near)
            .attribute(libc::IFA_ADDRESS, far);
        parse_address(&message.finish_for_test()).unwrap().unwrap()
    };
    let v6 = |last| Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last);
    let addresses = vec![
        address(0x80, &[10, 0, 0, 1], &[10, 0, 0, 1]),
        address(0x80, &[10, 0, 0, 3], &[10, 0, 0, 4]),
        address(0x80, &v6(1).octets(), &v6(2).octets()),
        address(0xc8, &v6(5).octets(), &v6(5).octets()),
    ];
    let dump =
        RouteDump { links: [link(9, "d0")].into_iter().collect(), addresses, ..Default::default() };
    let [own] = &dump.interfaces()[..] else { panic!("one interface") };
    assert_eq!(own.addresses.len(), 4);
    let far = ("10.0.0.4".parse().unwrap(), Unfit::FarEnd);
    assert_eq!(own.unfit, [far, (v6(5).into(), Unfit::Duplicate)]);
    // Where neighbours are asked for, a global IPv6 address needs a link-local one that can be used. What arrives at a
    // member of a bridge is the bridge's; a VRF leaves it there.
    let local = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
    let unfit = |flags: u32, master: &str, local_flags: Option<u8>| {
        let ips: [&[u8]; 2] = [&v6(6).octets(), &[10, 0, 0, 1]];
        let mut addresses = ips.map(|own| address(0x80, own, own)).to_vec();
        let local = local_flags.map(|own| address(own, &local.octets(), &local.octets()));
        addresses.extend(local);
        let mut link = link(9, "d0");
        (link.flags, link.master_kind) = (flags, master.replace("none", ""));
        link.master = (!master.is_empty()).then_some(8);
        let dump =
            RouteDump { links: [link].into_iter().collect(), addresses, ..Default::default() };
        let unfit = dump.interfaces()[0].unfit.clone();
        unfit.into_iter().map(|(_, why)| why).collect::<Vec<_>>()
    };
    let is_up = UP | LOWER_UP;
    let mapped = "::ffff:10.0.0.1".parse().unwrap();
    let mapped = Address { index: 9, ip: mapped, near: mapped, prefix: 128, is_duplicate: false };
    let mut member = link(9, "d0");
    (member.master, member.master_kind) = (Some(8), "bond".to_owned());
    let links = [member].into_iter().collect();
    let dump = RouteDump { links, addresses: vec![mapped], ..Default::default() };
    assert_eq!(dump.interfaces()[0].unfit, [], "it is of IPv4");
    assert_eq!(unfit(is_up, "", Some(0x80)), []);
    assert_eq!(unfit(is_up, "", None), [Unfit::NoLinkLocal]);
    assert_eq!(unfit(is_up, "", Some(0xc8)), [Unfit::NoLinkLocal, Unfit::Duplicate]);
    for flags in [UP, LOWER_UP, is_up | LOOPBACK, is_up | NO_ARP | LOOPBACK] {
        assert_eq!(unfit(flags, "", None), [], "{flags:x}");
    }
    assert_eq!(unfit(is_up, "vrf", Some(0x80)), []);
    for master in ["bridge", "bond", "team", "openvswitch", "none"] {
        assert_eq!(unfit(is_up, master, Some(0x80)), [Unfit::Enslaved; 3], "{master}");
    }
    // The interface has the address itself.
    let addresses = vec![
        address(0x80, &[10, 0, 0, 3], &[10, 0, 0, 4]),
        address(0x80, &[10, 0, 0, 4], &[10, 0, 0, 4]),
    ];
    let dump =
        RouteDump { links: [link(9, "d0")].into_iter().collect(), addresses, ..Default::default() };
    assert_eq!(dump.interfaces()[0].unfit, []);
}

/// What is below a VLAN is found over other VLANs only.
#[test]
fn what_a_vlan_is_on_is_known() {
    let made = |(index, kind, lower): &(u32, &str, Option<u32>)| {
        let mut own = link(*index, &format!("e{index}"));
        (own.kind, own.lower) = ((*kind).to_owned(), *lower);
        own
    };
    let links = [
        (1, "", None),
        (2, "vlan", Some(1)),
        (3, "vlan", Some(2)),
        (4, "macvlan", Some(1)),
        (5, "vlan", Some(4)),
        // In another namespace, and gone while they were listed.
        (6, "vlan", None),
        (7, "vlan", Some(99)),
        (8, "vlan", Some(6)),
        // A circle, which no kernel makes.
        (9, "vlan", Some(9)),
    ];
    let links = links.iter().map(made).collect();
    let dump = RouteDump { links, ..Default::default() };
    let on = dump.interfaces().into_iter().map(|own| own.vlan_on.map(NonZeroU32::get));
    let known = [None, Some(1), Some(1), None, Some(4), None, None, None];
    assert!(on.take(8).eq(known));
}

/// RDMA leaves out what these interfaces add. A bridge or VRF may have another way.
#[test]
fn what_rdma_leaves_out_is_known() {
    let bypassed = |links: &[(u32, &str, Option<u32>, Option<u32>)]| {
        let made = |(index, kind, lower, master): &(u32, &str, Option<u32>, Option<u32>)| {
            let kind_of = |of: u32| links.iter().find(|own| own.0 == of).unwrap().1.to_owned();
            let mut own = link(*index, &format!("e{index}"));
            (own.kind, own.lower, own.master) = ((*kind).to_owned(), *lower, *master);
            own.master_kind = master.map(kind_of).unwrap_or_default();
            if TUNNEL_KINDS.contains(kind) {
                own.framing = Framing::Added;
            }
            own
        };
        links.iter().map(made).collect::<Links>().bypassed().into_iter().collect::<Vec<u32>>()
    };
    let (nic, flannel) = ((1, "", None, None), (2, "vxlan", None, None));
    let none: [u32; 0] = [];
    assert_eq!(bypassed(&[nic, (3, "vlan", Some(1), None)]), none);
    // A VLAN's tag within another's, also over a bridge.
    let (vlan, between) = ((3, "vlan", Some(1), None), (4, "macvlan", Some(3), None));
    assert_eq!(bypassed(&[nic, vlan, between, (5, "vlan", Some(4), None)]), [5]);
    let vlans = [(3, "vlan", Some(1), Some(5)), (6, "vlan", Some(5), None)];
    assert_eq!(bypassed(&[nic, (5, "bridge", None, None), vlans[0], vlans[1]]), [6]);
    let above = [(3, "macvlan", Some(2), None), (4, "vlan", Some(3), None)];
    assert_eq!(bypassed(&[nic, flannel, above[0], above[1]]), [2, 3, 4]);
    let bridge = (5, "bridge", None, None);
    let members = [(2, "vxlan", None, Some(5)), (6, "veth", None, Some(5))];
    let over = (7, "vlan", Some(5), None);
    assert_eq!(bypassed(&[nic, members[0], bridge, members[1], over]), [2, 5, 7]);
    assert_eq!(bypassed(&[(1, "", None, Some(5)), members[0], bridge, members[1], over]), [2]);
    let two = (8, "vxlan", None, Some(5));
    assert_eq!(bypassed(&[two, members[0], bridge]), [2, 5, 8]);
    let vrf = (9, "vrf", None, None);
    assert_eq!(bypassed(&[(1, "", None, Some(9)), (2, "vxlan", None, Some(9)), vrf]), [2]);
    assert_eq!(bypassed(&[(1, "", None, Some(4)), (4, "batadv", None, None)]), [4]);

    let ip: IpAddr = "10.244.0.0".parse().unwrap();
    let address = Address { index: 2, ip, near: ip, prefix: 32, is_duplicate: false };
    let kind = "vxlan".to_owned();
    let own = Link { kind, flags: UP | LOWER_UP, framing: Framing::Added, ..link(2, "flannel.1") };
    let links = [own].into_iter().collect();
    let dump = RouteDump { links, addresses: vec![address], ..Default::default() };
    assert_eq!(dump.interfaces()[0].unfit, [(ip, Unfit::Bypassed)]);
}

/// An interface without ARP reaches nobody else, if no neighbours are set by hand. Behind a dummy there is nobody else.
#[test]
fn who_is_set_by_hand_is_reached() {
    let neighbour = |family: i32, state: u16| {
        let family = u8::try_from(family).unwrap();
        let body = [&[family, 0, 0, 0], &9u32.to_ne_bytes()[..], &state.to_ne_bytes(), &[0; 2]];
        let message = Message::new(0, &body.concat());
        parse_neighbour(&message.finish_for_test()).unwrap()
    };
    let (v4, v6) = (libc::AF_INET, libc::AF_INET6);
    assert_eq!(neighbour(v4, libc::NUD_PERMANENT | libc::NUD_REACHABLE), Some((9, v4)));
    assert_eq!(neighbour(v6, libc::NUD_STALE | libc::NUD_NOARP), None);
    assert!(parse_neighbour(&[2; 9]).is_err());
    let ips: [IpAddr; 2] = ["10.0.0.1".parse().unwrap(), "fd00::1".parse().unwrap()];
    let unfit = |kind: &str, flags: u32, neighbours: &[(u32, i32)]| {
        let mut own = link(9, "e0");
        (own.kind, own.flags) = (kind.to_owned(), flags);
        own.lower = (kind != DUMMY).then_some(7);
        own.is_ethernet = kind != "ipip";
        let below = Link { kind: if kind == "vlan" { DUMMY } else { "" }.into(), ..link(7, "d0") };
        let addresses =
            ips.map(|ip| Address { index: 9, ip, near: ip, prefix: 24, is_duplicate: false });
        let links = [own, below].into_iter().collect();
        let neighbours = neighbours.iter().copied().collect();
        let dump = RouteDump { links, addresses: addresses.to_vec(), neighbours };
        let own = dump.interfaces().into_iter().find(|own| own.name == "e0").unwrap();
        own.unfit.into_iter().map(|(_, why)| why).collect::<Vec<_>>()
    };
    let (is_up, no_arp) = (UP | LOWER_UP, UP | LOWER_UP | NO_ARP);
    assert_eq!(unfit("ipvlan", no_arp, &[]), [Unfit::NoNeighbours; 2]);
    assert_eq!(unfit("ipvlan", no_arp, &[(9, v4)]), [Unfit::NoNeighbours]);
    assert_eq!(unfit("ipvlan", no_arp, &[(9, v6), (9, v4), (7, v4)]), []);
    assert_eq!(unfit("ipvlan", no_arp, &[(7, v4), (7, v6)]), [Unfit::NoNeighbours; 2]);
    for kind in [DUMMY, "vlan", "ipip", "vrf"] {
        assert_eq!(unfit(kind, no_arp, &[]), [], "{kind}");
    }
    // RDMA does not always look for them.
    let heeded = |release: Option<(u32, u32)>| {
        let flags = [(7, is_up), (9, no_arp)];
        let links = flags.map(|(index, flags)| Link { flags, ..link(index, "e") });
        let neighbours = [(7, v4), (9, v4)].into_iter().collect();
        let links = links.into_iter().collect();
        let mut dump = RouteDump { links, addresses: Vec::new(), neighbours };
        dump.heed(release);
        dump.neighbours.into_iter().map(|(index, _)| index).collect::<Vec<_>>()
    };
    assert_eq!(heeded(Some((6, 18))), [7, 9]);
    assert_eq!((heeded(Some((6, 17))), heeded(None)), (vec![7], vec![7]));
    assert_eq!(unfit("ipvlan", is_up, &[]), [Unfit::NoLinkLocal]);
    assert_eq!(unfit("ipvlan", is_up, &[(9, v6)]), []);
    assert_eq!(unfit("ipvlan", is_up, &[(9, v4)]), [Unfit::NoLinkLocal]);
}

#[test]
fn up_and_carrier_are_two_things() {
    let with = |number, flags| Link { flags, ..link(number, "d0") };
    let links = [with(2, UP), with(3, LOWER_UP), with(4, UP | LOWER_UP), with(5, 0)];
    let dump = RouteDump { links: links.into_iter().collect(), ..Default::default() };
    let told: Vec<_> = dump.interfaces().iter().map(|it| (it.is_up, it.is_lower_up)).collect();
    assert_eq!(told, [(true, false), (false, true), (true, true), (false, false)]);
}

proptest::proptest! {
    /// Whatever the kernel sends is a link, an address and a port, or an error.
    #[test]
    fn any_message_is_read_or_refused(
        body in proptest::collection::vec(proptest::num::u8::ANY, 0..24),
        list in proptest::collection::vec(
            (0u16..110, proptest::collection::vec(proptest::num::u8::ANY, 0..20)), 0..8),
        cut in 0usize..200,
    ) {
        let mut message = Message::new(0, &body);
        for (kind, payload) in &list {
            message = message.attribute(*kind, payload);
        }
        let bytes = message.finish_for_test();
        for bytes in [&bytes[..], &bytes[..cut.min(bytes.len())]] {
            let _ = (parse_link(bytes), parse_address(bytes), parse_port(bytes));
            let _ = parse_neighbour(bytes);
        }
    }
}

#[test]
fn a_name_that_does_not_show_is_not_printed() {
    let message = |name: &[u8]| {
        let mut body = [0; LINK_BODY];
        body[4..8].copy_from_slice(&7u32.to_ne_bytes());
        Message::new(0, &body)
            .attribute(libc::IFLA_IFNAME, &[name, b"\0"].concat())
            .finish_for_test()
    };
    let named = |name: &[u8]| {
        let all = message(name);
        parse_link(&all).unwrap().unwrap().name
    };
    assert_eq!(named(b"eth0.7"), "eth0.7");
    // Names that could be taken for what tables have in place of one.
    let signs = [b"-" as &[u8], b"?", b"#9", b"eth0?"];
    let odd = [b"a\x1b[31m" as &[u8], b"\xff", "a\u{202e}b".as_bytes(), b""];
    for odd in odd.into_iter().chain(signs) {
        assert_eq!(named(odd), "#7", "{odd:?}");
        let port = Message::new(0, &[])
            .number(abi::attribute::NDEV_INDEX, 7)
            .attribute(abi::attribute::NDEV_NAME, &[odd, b"\0"].concat());
        assert_eq!(parse_port(&port.finish_for_test()).unwrap().unwrap().name, "#7");
    }
}
