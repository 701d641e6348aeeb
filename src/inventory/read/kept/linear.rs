//! The cost of what is kept grows as the number of devices.

use super::*;
use crate::linear::{assert_linear, count};
use crate::netlink::route::tests::{index, link};

/// Keeps what the ports of as many devices said, and looks it up.
#[test]
fn keeping() {
    let Some(count) = count() else { return };
    let up = |number: u32| Link { flags: 1 | 1 << 16, ..link(number, &format!("d{number}")) };
    let links: Links = (1..=count).map(up).collect();
    let record = |number: u32| {
        let mut record = DeviceRecord::new(Device::named(format!("mlx5_{number}")));
        record.device.driver = Some(DriverId::MLX5);
        let attributes =
            PortAttributes { link_layer: LinkLayer::ETHERNET, ..PortAttributes::default() };
        let mut port = PortRecord::new(1);
        port.attributes = Some(Ok((attributes, Source::Ioctl)));
        port.netdev = Some(Netdev { index: index(number), name: format!("d{number}") });
        record.ports.push(port);
        record
    };
    let records: Vec<DeviceRecord> = (1..=count).map(record).collect();
    let mut kept = Kept::default();
    kept.keep(&records, &links);
    assert!(records.iter().all(|own| kept.known(&own.device, 1, &links).is_some()));
}

#[test]
fn keeping_is_linear() {
    assert_linear("inventory::read::kept::linear::keeping", 150, 26);
}
