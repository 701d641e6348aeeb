//! Which devices and ports are asked for. Nothing is opened to find out.

use uverbs::device::Device;
use uverbs::selector::Selector;

use crate::report::Report;

/// A device with those of its ports that are asked for.
#[derive(Debug)]
pub(crate) struct Selected<'d> {
    pub(crate) device: &'d Device,
    /// None if all.
    ports: Option<Vec<u32>>,
}

impl Selected<'_> {
    pub(crate) fn includes(&self, port: u32) -> bool {
        self.ports.as_ref().is_none_or(|ports| ports.contains(&port))
    }

    /// Whether the port itself is asked for, not only its device.
    pub(crate) fn names(&self, port: u32) -> bool {
        self.ports.as_ref().is_some_and(|ports| ports.contains(&port))
    }

    /// The ports that are asked for, ascending.
    pub(crate) fn ports(&self) -> impl Iterator<Item = u32> {
        self.device.ports().filter(|port| self.includes(*port))
    }
}

/// The devices that the selectors name, in the order of `devices`; all if there is no selector.
pub(crate) fn select<'d>(
    devices: &'d [Device],
    selectors: &[Selector],
    report: &mut Report,
) -> Vec<Selected<'d>> {
    if selectors.is_empty() {
        return devices.iter().map(|device| Selected { device, ports: None }).collect();
    }
    for selector in selectors {
        match devices.iter().find(|device| device.name == selector.device) {
            None => report.no_such_device(&selector.device),
            Some(device) => {
                if let Some(port) = selector.port.filter(|port| !device.ports().contains(port)) {
                    report.no_such_port(device, port);
                }
            }
        }
    }
    devices
        .iter()
        .filter_map(|device| {
            let own = || selectors.iter().filter(|selector| selector.device == device.name);
            if own().any(|selector| selector.port.is_none()) {
                return Some(Selected { device, ports: None });
            }
            let ports: Vec<u32> = own()
                .filter_map(|selector| selector.port)
                .filter(|port| device.ports().contains(port))
                .collect();
            (!ports.is_empty()).then_some(Selected { device, ports: Some(ports) })
        })
        .collect()
}
