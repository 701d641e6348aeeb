//! Texts of GIDs, and entries there and back.

use super::*;

const LINK_LOCAL: &str = "fe80:0000:0000:0000:0011:22ff:fe33:4455";

#[test]
fn full_form_there_and_back() {
    let gid = Gid::parse_full(LINK_LOCAL).unwrap();
    assert_eq!(gid.full(), LINK_LOCAL);
    assert_eq!(gid.to_string(), "fe80::11:22ff:fe33:4455");
    assert_eq!(gid.subnet_prefix(), 0xfe80_0000_0000_0000);
    assert_eq!(gid.interface_id(), 0x0011_22ff_fe33_4455);
}

#[test]
fn only_the_full_form_is_sysfs_text() {
    for text in [
        "",
        "fe80::1",
        &LINK_LOCAL.replace(':', "-"),
        &LINK_LOCAL[1..],
        "fe80:0000:0000:0000:0011:22ff:fe33:445g",
        "+e80:0000:0000:0000:0011:22ff:fe33:4455",
    ] {
        assert_eq!(Gid::parse_full(text), None, "{text:?}");
    }
}

#[test]
fn types_keep_their_number() {
    assert_eq!(GidType(7).to_string(), "unknown(7)");
    assert_eq!(format!("{:>8}|", GidType::ROCE_V2), " roce_v2|");
}

#[test]
fn a_full_call_holds_2047_entries() {
    assert_eq!(MAX_TABLE_ENTRIES, 2047);
}

#[test]
fn an_entry_there_and_back() {
    let kernel = abi::GidEntry {
        gid: *b"0123456789abcdef",
        gid_index: 1,
        port_num: 2,
        gid_type: 3,
        netdev_ifindex: 4,
    };
    let entry = GidEntry::from(kernel);
    assert_eq!((entry.index(), entry.port(), entry.gid_type()), (1, 2, GidType(3)));
    assert_eq!(entry.gid().to_bytes(), kernel.gid);
    assert_eq!(entry.netdev_ifindex(), NonZeroU32::new(4));
    assert_eq!(abi::GidEntry::from(entry), kernel);
    let made = GidEntry::new(2, 1, entry.gid()).with_type(GidType(3));
    assert_eq!(made.with_netdev_ifindex(NonZeroU32::new(4)), entry);
}

#[test]
fn entries_are_in_the_order_of_ports_and_indices() {
    let entry = |port, index| GidEntry::new(port, index, Gid::default());
    assert!(entry(1, 9) < entry(2, 0) && entry(1, 1) < entry(1, 2));
}
