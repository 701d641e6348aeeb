//! Made hosts.

use core::num::NonZeroU32;
use std::net::IpAddr;

use crate::device::{Device, Node};
use crate::driver::DriverId;
use crate::gid::{Gid, GidEntry, GidRecord, GidType};
use crate::guid::Guid;
use crate::hardware::Hardware;
use crate::host::Source;
use crate::inventory::{DeviceRecord, GidRow, Inventory, PortRecord};
use crate::netdev::{Interface, Netdev};
use crate::pkey::PKey;
use crate::port::{LinkLayer, Mtu, PhysState, PortAttributes, PortState, Speed, Width};

fn index(number: usize) -> NonZeroU32 {
    NonZeroU32::new(u32::try_from(number).unwrap() + 2).unwrap()
}

fn attributes(link_layer: LinkLayer) -> PortAttributes {
    PortAttributes {
        state: PortState::ACTIVE,
        phys_state: PhysState::LINK_UP,
        link_layer,
        active_mtu: Some(Mtu(5)),
        gid_tbl_len: 16,
        active_width: Some(Width(2)),
        active_speed: Some(Speed::EDR),
        ..PortAttributes::default()
    }
}

/// The address that the kernel makes from a MAC address.
fn link_local(mac: [u8; 6]) -> IpAddr {
    Gid::of_roce(mac).ipv6().into()
}

/// A device with a node that programs can use.
fn usable(mut device: Device) -> DeviceRecord {
    let path = "/dev/infiniband/uverbs0".into();
    device.node = Some(Node { name: "uverbs0".to_owned(), path, number: 1 });
    device.driver = Some(DriverId::MLX5);
    device.fw_version = Some("28.39.2048".to_owned());
    let mut record = DeviceRecord::new(device);
    (record.access, record.hardware) = (Some(Ok(())), Some(Hardware::default()));
    record
}

/// A RoCE host: a device `mlx5_N` for each address, with the rows that mlx5 has of it.
pub(super) fn host(number: u8, addresses: &[(&str, u8)]) -> Inventory {
    let mut inventory = Inventory {
        host: Some(format!("n{number}")),
        kernel: Some("6.12.0".to_owned()),
        has_netlink: true,
        interfaces: Some(Vec::new()),
        ..Inventory::default()
    };
    for (place, (address, bits)) in addresses.iter().enumerate() {
        let (address, ifindex): (IpAddr, _) = (address.parse().unwrap(), index(place));
        let netdev = Netdev::new(ifindex, format!("eth{place}"));
        let mac = [2, 0, 0, 0, number, u8::try_from(place).unwrap()];
        let mut interface = Interface::new(ifindex, netdev.name.clone());
        (interface.is_up, interface.is_lower_up, interface.mac) = (true, true, Some(mac));
        interface.addresses = vec![(link_local(mac), 64), (address, *bits)];
        let ipv6 = |own: IpAddr| match own {
            IpAddr::V4(own) => own.to_ipv6_mapped(),
            IpAddr::V6(own) => own,
        };
        let mut device = Device::named(format!("mlx5_{place}"));
        device.index = u32::try_from(place).ok();
        device.node_guid =
            Guid::from_be_bytes([2, 0, 0, 0, 0, 0, number, u8::try_from(place).unwrap()]);
        let mut record = usable(device);
        let rows = [link_local(mac), address].into_iter().flat_map(|own| {
            [GidType::ROCE_V1, GidType::ROCE_V2].map(|gid_type| (ipv6(own), gid_type))
        });
        let rows = rows.enumerate().map(|(row, (gid, gid_type))| {
            let entry = GidEntry::new(1, u32::try_from(row).unwrap(), gid.into());
            let entry = entry.with_type(gid_type).with_netdev_ifindex(Some(ifindex));
            let record = GidRecord::new(entry, Source::Ioctl);
            GidRow { netdev: Some(netdev.clone()), ..GidRow::from(record) }
        });
        record.gids = Some(Ok(rows.collect()));
        let mut port = PortRecord::new(1);
        port.attributes = Some(Ok((attributes(LinkLayer::ETHERNET), Source::Ioctl)));
        port.netdev = Ok(Some(netdev));
        port.has_types = Some(true);
        record.ports.push(port);
        inventory.interfaces.as_mut().unwrap().push(interface);
        inventory.devices.push(record);
    }
    inventory
}

/// A host with one port of InfiniBand.
pub(super) fn infiniband(number: u8, prefix: u64, lid: u32, keys: &[u16]) -> Inventory {
    let mut inventory = host(number, &[]);
    let mut device = Device::named("mlx5_0");
    device.node_guid = Guid::from_be_bytes([2, 0, 0, 0, 0, 0, number, 0]);
    let mut record = usable(device);
    let gid = u128::from(prefix) << 64 | u128::from(number);
    let entry = GidEntry::new(1, 0, Gid::from_bytes(gid.to_be_bytes()));
    let entry = entry.with_type(GidType::IB);
    record.gids = Some(Ok(vec![GidRecord::new(entry, Source::Ioctl).into()]));
    let mut port = PortRecord::new(1);
    let attributes = PortAttributes { lid, flags: Some(0), ..attributes(LinkLayer::INFINIBAND) };
    port.attributes = Some(Ok((attributes, Source::Ioctl)));
    port.pkeys = Some(Ok((0u32..).zip(keys.iter().copied().map(PKey)).collect()));
    port.has_types = Some(true);
    record.ports.push(port);
    inventory.devices.push(record);
    inventory
}

/// The attributes of a host's first port.
pub(super) fn port(inventory: &mut Inventory, device: usize) -> &mut PortAttributes {
    let port = &mut inventory.devices[device].ports[0];
    &mut port.attributes.as_mut().unwrap().as_mut().unwrap().0
}

/// Leaves some rows of a device.
pub(super) fn keep_rows(inventory: &mut Inventory, device: usize, is_kept: impl Fn(u32) -> bool) {
    let rows = inventory.devices[device].gids.as_mut().unwrap().as_mut().unwrap();
    rows.retain(|row| is_kept(row.record.entry.index()));
}
