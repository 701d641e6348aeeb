//! The cost of waiting for rows grows as the number of addresses.

use std::net::Ipv4Addr;

use super::*;
use crate::device::Device;
use crate::gid::{GidEntry, GidRecord, GidType};
use crate::inventory::DeviceRecord;
use crate::linear::{assert_linear, count};

/// Waits for the rows of as many addresses, of two types, all but one of which are there.
#[test]
fn waiting() {
    let Some(count) = count() else { return };
    let ip = |number: u32| IpAddr::from(Ipv4Addr::from_bits(0x0a00_0000 | number));
    let row = |number: u32, slot: u32, gid_type| {
        let entry = GidEntry::new(1, slot, gid_of(ip(number))).with_type(gid_type);
        GidRow::from(GidRecord::from(entry))
    };
    let both = |number: u32| {
        let types = [GidType::ROCE_V1, GidType::ROCE_V2];
        (2 * number..).zip(types).map(move |(slot, own)| row(number, slot, own))
    };
    let mut own = DeviceRecord::new(Device::named("rxe0"));
    own.gids = Some(Ok((0..count).flat_map(both).collect()));
    let inventory = Inventory { devices: vec![own], ..Inventory::default() };
    let mut ladder = Ladder::new(Duration::ZERO);
    for number in 0..=count {
        let expected = ExpectedRow { ip: ip(number), index: 3, is_there: true };
        ladder.add("rxe0", Some(expected), Duration::ZERO);
    }
    assert!(ladder.climb(&inventory, Duration::ZERO).is_some(), "one is not there");
}

#[test]
fn waiting_is_linear() {
    assert_linear("watch::pending::linear::waiting", 75, 26);
}
