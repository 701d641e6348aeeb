//! Which devices a change of a network interface concerns.

use super::Watch;
use super::pending::once;
use crate::inventory::DeviceRecord;
use crate::netlink::route::{Link, Links};
use crate::port::LinkLayer;

impl Watch {
    /// Each device with the interfaces of which a change may be one of its tables.
    pub(super) fn concerned(&self) -> Vec<(String, Concern)> {
        let links: Links = self.links.iter().cloned().collect();
        let knows_ports = self.options.parts.port_netdevs && self.inventory.has_netlink;
        // What is below these may be any port's own interface.
        let ethernet = |index: &u32| may_concern(links.by_index.get(index));
        let untold: Vec<u32> = links.untold().into_iter().filter(ethernet).collect();
        let concern = |device: &DeviceRecord| {
            // An event says what comes of them if the device is kept open.
            let is_held = self.sources.holds(&device.device.name);
            let untold = if is_held { &[] } else { &*untold };
            let related = related(device, &links, untold).filter(|_| knows_ports);
            (device.device.name.clone(), Concern(related))
        };
        self.inventory.devices.iter().map(concern).collect()
    }
}

/// The interfaces that a device has rows of, or may get rows of, ascending; `None` if that is not known.
pub(super) struct Concern(Option<Vec<u32>>);

impl Concern {
    /// Whether this interface is one of them. What is not known of it is `None`.
    pub(super) fn has(&self, index: u32, link: Option<&Link>) -> bool {
        match &self.0 {
            Some(related) => related.binary_search(&index).is_ok(),
            None => may_concern(link),
        }
    }
}

/// Whether an interface can have GIDs. Of one that is not known it is not known.
fn may_concern(link: Option<&Link>) -> bool {
    link.is_none_or(|link| link.is_ethernet || link.name == "lo")
}

/// The interfaces that a device has rows of, or may get rows of; `None` if that is not known: a port has no
/// interface here, so that any may be above it.
fn related(device: &DeviceRecord, links: &Links, untold: &[u32]) -> Option<Vec<u32>> {
    let mut own = Vec::new();
    for port in &device.ports {
        let is_ethernet = port.known().is_none_or(|own| own.link_layer == LinkLayer::ETHERNET);
        match port.netdev() {
            Some(netdev) => {
                once(&mut own, netdev.index.get());
            }
            None if is_ethernet => return None,
            None => {}
        }
    }
    for row in device.all_rows() {
        let indices = [row.netdev.as_ref().map(|own| own.index), row.record.entry.netdev_ifindex()];
        for index in indices.iter().flatten() {
            once(&mut own, index.get());
        }
    }
    let above = links.all_above(own.iter().copied());
    own.extend(above.into_iter().chain(untold.iter().copied()));
    own.sort_unstable();
    own.dedup();
    Some(own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;
    use crate::inventory::PortRecord;
    use crate::netdev::Netdev;
    use crate::netlink::route::tests::{index, link};
    use crate::port::PortAttributes;

    #[test]
    fn interfaces_above_a_port_s_own_concern_its_device() {
        let mut vlan = link(3, "d0.7");
        vlan.lower = Some(2);
        let mut member = link(2, "d0");
        member.master = Some(5);
        let links: Links = [member, vlan, link(4, "veth0"), link(5, "bond0")].into_iter().collect();
        let mut device = DeviceRecord::new(Device::named("rxe0"));
        let mut port = PortRecord::new(1);
        port.netdev = Ok(Some(Netdev::new(index(2), "d0")));
        device.ports = vec![port];
        assert_eq!(related(&device, &links, &[]), Some(vec![2, 3, 5]));
        device.ports[0].netdev = Ok(None);
        assert_eq!(related(&device, &links, &[]), None, "any may be above it");
        let attributes =
            PortAttributes { link_layer: LinkLayer::INFINIBAND, ..PortAttributes::default() };
        device.ports[0].attributes = Some(Ok((attributes, crate::gid::Source::Ioctl)));
        assert_eq!(related(&device, &links, &[]), Some(Vec::new()));
    }
}
