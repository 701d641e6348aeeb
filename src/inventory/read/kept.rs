//! What ports said before, and when it is what they would say now.
//!
//! mlx5 asks its firmware whenever it is asked for a port's attributes, or for its interface. An Ethernet port's
//! state, rate and MTU follow its interface: they cannot change unless its carrier goes and comes again, which the
//! kernel counts. So where route netlink says the same as before the last answer, the answer is still right.

use crate::device::Device;
use crate::driver::DriverId;
use crate::gid::Source;
use crate::inventory::{DeviceRecord, PortRecord};
use crate::netdev::Netdev;
use crate::netlink::route::{Link, Links};
use crate::port::{LinkLayer, PortAttributes};

/// What ports said when an inventory was read, for [`Host::inventory_keeping`](crate::host::Host::inventory_keeping).
#[derive(Debug, Default)]
pub struct Kept {
    /// Ascending by the names of their devices and their numbers.
    ports: Vec<KeptPort>,
}

#[derive(Debug)]
struct KeptPort {
    device: Device,
    number: u32,
    attributes: (PortAttributes, Source),
    netdev: Netdev,
    /// Its interface, as it was before the port was asked.
    link: Link,
}

/// What need not be asked of a port.
#[derive(Clone, Debug)]
pub(super) struct KnownPort {
    pub(super) attributes: (PortAttributes, Source),
    pub(super) netdev: Netdev,
}

impl Kept {
    /// What a port said, if it would say the same now that these are the links.
    pub(super) fn known(&self, device: &Device, number: u32, links: &Links) -> Option<KnownPort> {
        let wanted = (device.name.as_str(), number);
        let place = self.ports.binary_search_by(|own| own.place().cmp(&wanted)).ok()?;
        let own = self.ports.get(place)?;
        // As it was listed: the driver may have been found out since.
        if own.device != (Device { driver: own.device.driver, ..device.clone() }) {
            return None;
        }
        let is_same = links.carrier(&own.netdev) == Some(&own.link);
        is_same
            .then(|| KnownPort { attributes: own.attributes.clone(), netdev: own.netdev.clone() })
    }

    /// Keeps what these said after the links were read.
    pub(super) fn keep(&mut self, records: &[DeviceRecord], links: &Links) {
        self.ports.clear();
        for record in records.iter().filter(|own| own.device.driver == Some(DriverId::MLX5)) {
            let ports = record.ports.iter();
            self.ports.extend(ports.filter_map(|port| kept(&record.device, port, links)));
        }
        self.ports.sort_unstable_by(|own, other| own.place().cmp(&other.place()));
    }
}

impl KeptPort {
    fn place(&self) -> (&str, u32) {
        (&self.device.name, self.number)
    }
}

fn kept(device: &Device, port: &PortRecord, links: &Links) -> Option<KeptPort> {
    let attributes = port.attributes.as_ref()?.as_ref().ok()?;
    let netdev = port.netdev.as_ref()?;
    let link = links.carrier(netdev)?;
    (attributes.0.link_layer == LinkLayer::ETHERNET).then(|| KeptPort {
        device: device.clone(),
        number: port.number,
        attributes: attributes.clone(),
        netdev: netdev.clone(),
        link: link.clone(),
    })
}

#[cfg(test)]
mod linear;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::route::tests::link;
    use crate::port::PortState;

    /// Up, with a carrier.
    const UP: u32 = 1 << 0 | 1 << 16;

    fn links(change: impl FnOnce(&mut Link)) -> Links {
        let mut own = Link { flags: UP, carrier_changes: 3, ..link(2, "d0") };
        change(&mut own);
        [own, link(3, "other")].into_iter().collect()
    }

    fn record(change: impl FnOnce(&mut DeviceRecord)) -> DeviceRecord {
        let mut record = DeviceRecord::new(Device::named("mlx5_0"));
        record.device.driver = Some(DriverId::MLX5);
        let mut attributes = PortAttributes::default();
        (attributes.link_layer, attributes.state) = (LinkLayer::ETHERNET, PortState::ACTIVE);
        let mut port = PortRecord::new(1);
        port.attributes = Some(Ok((attributes, Source::Ioctl)));
        port.netdev = Some(link(2, "d0").netdev());
        record.ports.push(port);
        change(&mut record);
        record
    }

    /// Whether a port that said this is asked again, when the links are these.
    fn is_known(before: &DeviceRecord, first: &Links, now: &Links, device: &Device) -> bool {
        let mut kept = Kept::default();
        kept.keep(std::slice::from_ref(before), first);
        let known = kept.known(device, 1, now);
        if let Some(known) = &known {
            assert_eq!(known.attributes.0.state, PortState::ACTIVE);
        }
        assert!(kept.known(device, 2, now).is_none());
        known.is_some()
    }

    #[test]
    fn what_is_the_same_is_known() {
        let (well, same) = (record(|_| {}), links(|_| {}));
        assert!(is_known(&well, &same, &links(|_| {}), &well.device));
        // Its driver was found out after it was listed.
        let listed = Device { driver: None, ..well.device.clone() };
        assert!(is_known(&well, &same, &same, &listed));
    }

    #[test]
    fn what_may_have_changed_is_asked() {
        let (well, same) = (record(|_| {}), links(|_| {}));
        let changes: [fn(&mut Link); 6] = [
            |link| link.carrier_changes += 2,
            |link| link.flags = 1,
            |link| link.mtu = 9000,
            |link| link.master = Some(3),
            |link| link.name = "d1".into(),
            |link| link.index = crate::netlink::route::tests::index(9),
        ];
        for (number, change) in changes.into_iter().enumerate() {
            assert!(!is_known(&well, &same, &links(change), &well.device), "{number}");
        }
        // What was so before is asked again as well.
        for change in [|link: &mut Link| link.flags = 0, |link: &mut Link| link.master = Some(3)] {
            assert!(!is_known(&well, &links(change), &links(change), &well.device));
        }
        let another = Device { index: Some(7), ..well.device.clone() };
        assert!(!is_known(&well, &same, &same, &another));
        let records: [fn(&mut DeviceRecord); 4] = [
            |record| record.device.driver = Some(DriverId::RXE),
            |record| record.ports[0].netdev = None,
            |record| record.ports[0].attributes = None,
            |record| {
                let attributes = record.ports[0].attributes.as_mut().unwrap().as_mut().unwrap();
                attributes.0.link_layer = LinkLayer::INFINIBAND;
            },
        ];
        for (number, change) in records.into_iter().enumerate() {
            let before = record(change);
            let device = Device { driver: None, ..before.device.clone() };
            assert!(!is_known(&before, &same, &same, &device), "{number}");
        }
    }
}
