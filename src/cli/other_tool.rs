//! Ports in the forms of `ibstat` and `ibdev2netdev`, which know one host.

use std::fmt::Write as _;

use uverbs::inventory::{Inventory, PortRecord};
use uverbs::netdev::Netdev;

use crate::ibstat;
use crate::output::Answer;
use crate::ports::PortsFormat;
use crate::report::Report;
use crate::selection::Selected;
use crate::text::printable;

/// The text of such a tool, port by port.
#[derive(Debug)]
pub(crate) enum OtherTool {
    /// Another form is asked for.
    None,
    Ibstat(Text),
    Ibdev2netdev(Text),
}

#[derive(Debug, Default)]
pub(crate) struct Text {
    text: String,
    has_host: bool,
}

impl OtherTool {
    pub(crate) fn new(format: PortsFormat) -> Self {
        match format {
            PortsFormat::Ibstat => Self::Ibstat(Text::default()),
            PortsFormat::Ibdev2netdev => Self::Ibdev2netdev(Text::default()),
            PortsFormat::Table | PortsFormat::Json => Self::None,
        }
    }

    fn name_and_text(&mut self) -> Option<(&'static str, &mut Text)> {
        match self {
            Self::None => None,
            Self::Ibstat(text) => Some(("ibstat", text)),
            Self::Ibdev2netdev(text) => Some(("ibdev2netdev", text)),
        }
    }

    /// Whether there is room for a host, which is noted if there is none.
    pub(crate) fn has_room(&mut self, report: &mut Report) -> bool {
        let Some((name, text)) = self.name_and_text() else { return true };
        let is_second = std::mem::replace(&mut text.has_host, true);
        if is_second {
            report.nothing(format!("{name} knows one host: the first is shown"));
        }
        !is_second
    }

    /// Orders devices as the tool does: by the bytes of their names.
    pub(crate) fn order(&self, devices: &mut [Selected<'_>]) {
        if !matches!(self, Self::None) {
            devices.sort_by(|one, other| one.device.name.cmp(&other.device.name));
        }
    }

    /// Begins a device. Of one that is named only by its ports, ibstat shows only these.
    pub(crate) fn add_device(&mut self, selected: &Selected<'_>, report: &mut Report) {
        let Self::Ibstat(to) = self else { return };
        match ibstat::device(selected.record) {
            Some(text) if selected.is_whole() => to.text += &text,
            Some(_) => {}
            None => {
                let name = &selected.device.name;
                report.note(format!("{name}: ibstat shows no device of its type"));
            }
        }
    }

    /// Adds a port whose attributes were read.
    pub(crate) fn add_port(
        &mut self,
        selected: &Selected<'_>,
        port: &PortRecord,
        inventory: &Inventory,
        report: &mut Report,
    ) {
        let name = &selected.device.name;
        match self {
            Self::None => {}
            // It is with its device.
            Self::Ibstat(_) if selected.is_whole() => {}
            Self::Ibstat(to) => {
                to.text += &ibstat::port(selected.record, port).unwrap_or_default();
            }
            Self::Ibdev2netdev(to) => {
                // An InfiniBand port has no interface of its own; IPoIB has the port's GUID in its address.
                let guid = port.guid.as_ref().ok().copied().flatten();
                let mut all = inventory.interfaces.iter().flatten();
                let ipoib = all.find(|own| own.port_guid.is_some() && own.port_guid == guid);
                let ipoib = ipoib.map(|own| Netdev::new(own.index, &own.name));
                let own = port.netdev.clone().or(ipoib);
                let Some(netdev) = &own else {
                    let place = format!("{name}:{}", port.number);
                    if inventory.has_netlink && inventory.interfaces.is_some() {
                        report.note(format!("{place}: no network interface of it is known here"));
                    } else {
                        report.nothing(format!("{place}: network interfaces are not known"));
                    }
                    return;
                };
                let state = match inventory.interface(netdev.index.get()) {
                    Some(own) if own.is_lower_up => "Up",
                    Some(_) => "Down",
                    None => "NA",
                };
                let (name, netdev) = (printable(name), printable(&netdev.name));
                let number = port.number;
                let _ = writeln!(to.text, "{name} port {number} ==> {netdev} ({state})");
            }
        }
    }

    /// The answer, if it is one of such a tool.
    pub(crate) fn end(mut self) -> Option<Answer> {
        let (_, text) = self.name_and_text()?;
        Some(Answer::Text(std::mem::take(&mut text.text).into_bytes()))
    }
}
