//! RDMA netlink: devices, their nodes, and the network interface of a port.

use core::num::NonZeroU32;
use std::path::Path;

use rustix::io::Errno;
use uverbs_uapi::netlink as abi;

use super::route::shown;
use super::{Attribute, Message, Socket, attributes};
use crate::device::{Device, Node, NodeType};
use crate::driver::DriverId;
use crate::error::Cause;
use crate::netdev::Netdev;
use crate::text::{is_device_name, is_node_name, to_plain};

/// More ports than any device has; a larger number is a broken answer, not a device.
const MAX_PORTS: u32 = 1 << 16;

/// Asks for all devices.
pub(crate) fn devices_request() -> Message {
    Message::new(message_type(abi::op::GET), &[])
}

/// Asks for a device by its index.
pub(crate) fn device_request(index: u32) -> Message {
    devices_request().number(abi::attribute::DEV_INDEX, index)
}

/// Asks for a device's uverbs node.
pub(crate) fn chardev_request(index: u32) -> Message {
    Message::new(message_type(abi::op::GET_CHARDEV), &[])
        .number(abi::attribute::DEV_INDEX, index)
        .text(abi::attribute::CHARDEV_TYPE, "uverbs")
}

/// Asks for the node of a port, of the kind `umad` or `issm`.
pub(crate) fn port_chardev_request(index: u32, port: u32, kind: &str) -> Message {
    Message::new(message_type(abi::op::GET_CHARDEV), &[])
        .number(abi::attribute::DEV_INDEX, index)
        .number(abi::attribute::PORT_INDEX, port)
        .text(abi::attribute::CHARDEV_TYPE, kind)
}

pub(crate) const fn message_type(op: u16) -> u16 {
    abi::message_type(abi::client::NLDEV, op)
}

/// Reads a device of a `GET` dump; its index comes first.
pub(crate) fn parse_device(payload: &[u8]) -> Result<(u32, Device), Cause> {
    let mut index = None;
    let mut device =
        Device { node_type: NodeType::UNSPECIFIED, port_count: 0, ..Device::named("") };
    for attribute in attributes(payload) {
        let attribute = attribute?;
        match attribute.kind {
            abi::attribute::DEV_INDEX => index = Some(attribute.u32()?),
            abi::attribute::DEV_NAME => device.name = attribute.text(),
            abi::attribute::PORT_INDEX => device.port_count = attribute.u32()?,
            abi::attribute::FW_VERSION => device.fw_version = plain_text(&attribute),
            abi::attribute::NODE_GUID => device.node_guid = attribute.number()?.into(),
            abi::attribute::SYS_IMAGE_GUID => device.sys_image_guid = attribute.number()?.into(),
            abi::attribute::DEV_NODE_TYPE => device.node_type = NodeType(attribute.u8()?),
            abi::attribute::DEV_PROTOCOL => device.protocol = plain_text(&attribute),
            _ => {}
        }
    }
    let index = index.ok_or(Cause::Malformed("a device without index"))?;
    device.index = Some(index);
    check(&device)?;
    Ok((index, device))
}

/// A text, if it is not empty.
fn plain_text(attribute: &Attribute<'_>) -> Option<String> {
    Some(to_plain(&attribute.text())).filter(|text| !text.is_empty())
}

/// Reads a `GET_CHARDEV` reply into `device`.
pub(crate) fn parse_chardev(payload: &[u8], dev: &Path, device: &mut Device) -> Result<(), Cause> {
    let (mut name, mut number) = (None, None);
    for attribute in attributes(payload) {
        let attribute = attribute?;
        match attribute.kind {
            abi::attribute::CHARDEV_NAME => name = Some(attribute.text()),
            abi::attribute::CHARDEV => number = Some(attribute.number()?),
            abi::attribute::UVERBS_DRIVER_ID => device.driver = Some(DriverId(attribute.u32()?)),
            _ => {}
        }
    }
    if let (Some(name), Some(number)) = (name, number) {
        if !is_node_name(&name) {
            return Err(Cause::Malformed("a node's name"));
        }
        let (major, minor) = abi::decode_chardev(number);
        let number = rustix::fs::makedev(major, minor);
        device.node = Some(Node { path: dev.join(&name), name, number });
    }
    Ok(())
}

/// Refuses what would lead out of a folder, read as something else in a list, or into endless loops.
pub(crate) fn check(device: &Device) -> Result<(), Cause> {
    if !is_device_name(&device.name) {
        return Err(Cause::Malformed("a device's name"));
    }
    if device.port_count > MAX_PORTS {
        return Err(Cause::Malformed("a number of ports beyond all reason"));
    }
    Ok(())
}

/// What a device is now.
pub(crate) struct Now {
    pub(crate) name: String,
    /// Whether its name may be that of another device, too, in another network namespace.
    pub(crate) may_have_namesake: bool,
}

/// What the device of this index is now; `None` if it is gone.
pub(crate) fn device_now(index: u32) -> Result<Option<Now>, Cause> {
    let mut socket = Socket::rdma().map_err(Cause::of)?;
    let mut name = Ok(None);
    let mut may_have_namesake = false;
    socket.ask(vec![device_request(index), settings_request()], |place, reply| {
        match reply {
            // Kernels before 5.2 do not know the question, and have one name for each device.
            Err(Errno::INVAL) if place == 1 => {}
            _ if place == 1 => may_have_namesake = may_repeat_names(reply.ok()),
            Ok(reply) => name = parse_device(reply).map(|(_, device)| Some(device.name)),
            Err(Errno::INVAL | Errno::NODEV) => {}
            Err(errno) => name = Err(Cause::of(errno)),
        }
        Ok(())
    })?;
    Ok(name?.map(|name| Now { name, may_have_namesake }))
}

/// Whether two devices may have one name, by the settings of the RDMA subsystem as far as they could be read.
fn may_repeat_names(settings: Option<&[u8]>) -> bool {
    let mode = settings.map(|own| setting(own, abi::attribute::SYS_NETNS_MODE));
    !matches!(mode, Some(Ok(None | Some(abi::netns_mode::SHARED))))
}

/// Asks for the settings of the RDMA subsystem.
pub(crate) fn settings_request() -> Message {
    Message::new(message_type(abi::op::SYS_GET), &[])
}

/// One of them; `None` if the kernel has no such setting.
pub(crate) fn setting(payload: &[u8], kind: u16) -> Result<Option<u8>, Cause> {
    let mut setting = None;
    for attribute in attributes(payload) {
        let attribute = attribute?;
        if attribute.kind == kind {
            setting = Some(attribute.u8()?);
        }
    }
    Ok(setting)
}

/// Reads the interface of a `PORT_GET` reply, which is there only if it is in this namespace.
pub(crate) fn parse_port(payload: &[u8]) -> Result<Option<Netdev>, Cause> {
    let (mut index, mut name) = (None, None);
    for attribute in attributes(payload) {
        let attribute = attribute?;
        match attribute.kind {
            abi::attribute::NDEV_INDEX => index = NonZeroU32::new(attribute.u32()?),
            abi::attribute::NDEV_NAME => name = Some(attribute.text()),
            _ => {}
        }
    }
    Ok(index.zip(name).map(|(index, name)| Netdev { index, name: shown(name, index) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(message: &Message) -> Vec<u8> {
        message.clone().finish_for_test()
    }

    #[test]
    fn a_device_of_a_dump() {
        let message = Message::new(0, &[])
            .number(abi::attribute::DEV_INDEX, 3)
            .text(abi::attribute::DEV_NAME, "rxe0")
            .number(abi::attribute::PORT_INDEX, 1)
            .attribute(abi::attribute::NODE_GUID, &0x0011_22ff_fe33_4455u64.to_ne_bytes())
            .attribute(abi::attribute::DEV_NODE_TYPE, &[1])
            .text(999, "from a newer kernel")
            .text(abi::attribute::DEV_PROTOCOL, "roce");
        let (index, device) = parse_device(&payload(&message)).unwrap();
        assert_eq!(index, 3);
        assert_eq!(device.name, "rxe0");
        assert_eq!(device.ports(), 1..=1);
        assert_eq!(device.node_guid.to_string(), "0x001122fffe334455");
        assert_eq!(device.protocol.as_deref(), Some("roce"));
    }

    #[test]
    fn names_may_repeat_unless_the_kernel_says_otherwise() {
        let mode = |payload: &[u8]| {
            Message::new(0, &[]).attribute(abi::attribute::SYS_NETNS_MODE, payload)
        };
        let of = |message: Message| may_repeat_names(Some(&payload(&message)));
        assert!(!of(mode(&[abi::netns_mode::SHARED])));
        assert!(!of(Message::new(0, &[])), "a kernel without such modes");
        assert!(of(mode(&[0])), "exclusive mode");
        assert!(of(mode(&[1, 0, 0, 0, 0])), "not a setting");
        assert!(may_repeat_names(None), "refused");
    }

    #[test]
    fn broken_devices_are_refused() {
        let named = |name| Message::new(0, &[]).number(1, 0).text(2, name);
        assert!(parse_device(&payload(&named("../x"))).is_err());
        for name in ["", "a,b", "a\nb", "a:1", "a\u{202e}b"] {
            assert!(parse_device(&payload(&named(name))).is_err(), "{name:?}");
        }
        assert!(parse_device(&payload(&Message::new(0, &[]).text(2, "a"))).is_err());
        assert!(parse_device(&payload(&named("a").number(3, u32::MAX))).is_err());
    }

    #[test]
    fn texts_of_drivers_show_as_what_they_are() {
        let texts = |version: &str, protocol: &str| {
            let message = Message::new(0, &[])
                .number(abi::attribute::DEV_INDEX, 0)
                .text(abi::attribute::DEV_NAME, "a")
                .text(abi::attribute::FW_VERSION, version)
                .text(abi::attribute::DEV_PROTOCOL, protocol);
            let (_, device) = parse_device(&payload(&message)).unwrap();
            (device.fw_version, device.protocol)
        };
        assert_eq!(texts("1.2\u{1}", "ro\nce"), (Some("1.2?".into()), Some("ro?ce".into())));
        assert_eq!(texts("", ""), (None, None));
    }

    #[test]
    fn a_switch_has_port_0_only() {
        let message = Message::new(0, &[])
            .number(1, 0)
            .text(2, "sw")
            .number(3, 36)
            .attribute(abi::attribute::DEV_NODE_TYPE, &[2]);
        assert_eq!(parse_device(&payload(&message)).unwrap().1.ports(), 0..=0);
    }
}
