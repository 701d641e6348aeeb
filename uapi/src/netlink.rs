//! RDMA netlink: how devices, ports and their character devices are listed, and the monitor.
//!
//! Kernel header `rdma/rdma_netlink.h`; the protocol number is in `linux/netlink.h`. A request is a netlink
//! header directly followed by attributes. Skip unknown attribute types. An item without a release is older
//! than 5.3.

/// The protocol number of the socket.
pub const NETLINK_RDMA: u32 = 20;

/// Bits of a message type that hold the operation.
const OP_BITS: u32 = 10;

/// The type of a netlink message that asks `client` for `op`.
#[must_use]
pub const fn message_type(client: u16, op: u16) -> u16 {
    (client << OP_BITS) | op
}

const _: () = assert!(NETLINK_RDMA == 20);

/// Who answers.
pub mod client {
    /// iWARP connection manager.
    pub const IWCM: u16 = 2;
    /// Local service: resolves paths and addresses.
    pub const LS: u16 = 4;
    /// Devices, ports, links and resources: all of this module.
    pub const NLDEV: u16 = 5;
}

/// Operations of [`client::NLDEV`]. Reading ones need no privilege.
pub mod op {
    /// Device, or all devices with `NLM_F_DUMP`. Also the type of the answer to [`PORT_GET`].
    pub const GET: u16 = 1;
    /// Changes a device: name, network namespace.
    pub const SET: u16 = 2;
    /// Makes a device in software (rxe, siw) on a network device.
    pub const NEWLINK: u16 = 3;
    /// Removes such a device.
    pub const DELLINK: u16 = 4;
    /// Port of a device, or all its ports with `NLM_F_DUMP`.
    pub const PORT_GET: u16 = 5;
    /// Settings of the RDMA subsystem.
    pub const SYS_GET: u16 = 6;
    /// Changes these.
    pub const SYS_SET: u16 = 7;
    /// How many objects of each kind are in use on a device.
    pub const RES_GET: u16 = 9;
    /// The identifiers of the connection manager in use on a device, with their owners.
    pub const RES_CM_ID_GET: u16 = 11;
    /// The completion queues in use on a device.
    pub const RES_CQ_GET: u16 = 12;
    /// The memory regions in use on a device.
    pub const RES_MR_GET: u16 = 13;
    /// The protection domains in use on a device.
    pub const RES_PD_GET: u16 = 14;
    /// The character device of a device's client: "uverbs", "umad" or "issm". Since 5.3.
    pub const GET_CHARDEV: u16 = 15;
    /// The counters of a port, or how they are bound to objects. Since 5.3.
    pub const STAT_GET: u16 = 17;
    /// The ucontexts in use on a device. In 6.1, not in 5.10.
    pub const RES_CTX_GET: u16 = 22;
    /// The shared receive queues in use on a device. In 6.1, not in 5.10.
    pub const RES_SRQ_GET: u16 = 23;
    /// The names of a port's counters, and which optional ones are on. In 6.1, not in 5.10.
    pub const STAT_GET_STATUS: u16 = 24;
    /// Makes a sub-device of a device. In 6.12, not in 6.1.
    pub const NEWDEV: u16 = 26;
    /// Removes a sub-device. In 6.12, not in 6.1.
    pub const DELDEV: u16 = 27;
    /// A report of the monitor, see [`group::NOTIFY`](super::group::NOTIFY). In 6.12, not in 6.1.
    pub const MONITOR: u16 = 28;
}

/// Attributes of [`client::NLDEV`], with the type of the value.
pub mod attribute {
    /// Fills space before a 64-bit value; skip it.
    pub const PAD: u16 = 0;
    /// `u32`: number of the device.
    pub const DEV_INDEX: u16 = 1;
    /// String: name of the device.
    pub const DEV_NAME: u16 = 2;
    /// `u32`: port number; in the answer about a device the number of its ports.
    pub const PORT_INDEX: u16 = 3;
    /// `u64`: capability bits of the device or the port.
    pub const CAP_FLAGS: u16 = 4;
    /// String: firmware version.
    pub const FW_VERSION: u16 = 5;
    /// `u64`: node GUID, in the machine's byte order.
    pub const NODE_GUID: u16 = 6;
    /// `u64`: system image GUID, in the machine's byte order.
    pub const SYS_IMAGE_GUID: u16 = 7;
    /// `u64`: subnet prefix, in the machine's byte order.
    pub const SUBNET_PREFIX: u16 = 8;
    /// `u32`: local identifier.
    pub const LID: u16 = 9;
    /// `u32`: local identifier of the subnet manager.
    pub const SM_LID: u16 = 10;
    /// `u8`: how many low bits of the LID are free to choose.
    pub const LMC: u16 = 11;
    /// `u8`: one of [`port_state`](crate::device::port_state).
    pub const PORT_STATE: u16 = 12;
    /// `u8`: one of [`phys_state`](crate::device::phys_state).
    pub const PORT_PHYS_STATE: u16 = 13;
    /// `u8`: one of [`node_type`](crate::device::node_type).
    pub const DEV_NODE_TYPE: u16 = 14;
    /// Nested: a [`RES_SUMMARY_ENTRY`] for each kind of object.
    pub const RES_SUMMARY: u16 = 15;
    /// Nested: a kind's name and number.
    pub const RES_SUMMARY_ENTRY: u16 = 16;
    /// String: "qp", "cq", "mr" and so on.
    pub const RES_SUMMARY_ENTRY_NAME: u16 = 17;
    /// `u64`: how many there are.
    pub const RES_SUMMARY_ENTRY_CURR: u16 = 18;
    /// Nested: queue pairs in use. Also a value of [`STAT_RES`].
    pub const RES_QP: u16 = 19;
    /// `u32`: the process that made the object, as the asker's PID namespace sees it; absent of a zombie.
    pub const RES_PID: u16 = 28;
    /// String: the part of the kernel that made the object.
    pub const RES_KERN_NAME: u16 = 29;
    /// Nested: identifiers of the connection manager in use.
    pub const RES_CM_ID: u16 = 30;
    /// Nested: one of them.
    pub const RES_CM_ID_ENTRY: u16 = 31;
    /// Nested: completion queues in use.
    pub const RES_CQ: u16 = 35;
    /// Nested: one of them.
    pub const RES_CQ_ENTRY: u16 = 36;
    /// Nested: memory regions in use.
    pub const RES_MR: u16 = 40;
    /// Nested: one of them.
    pub const RES_MR_ENTRY: u16 = 41;
    /// Nested: protection domains in use.
    pub const RES_PD: u16 = 46;
    /// Nested: one of them.
    pub const RES_PD_ENTRY: u16 = 47;
    /// `u32`: index of the port's network device, if that is in the asker's network namespace.
    pub const NDEV_INDEX: u16 = 50;
    /// String: name of that network device.
    pub const NDEV_NAME: u16 = 51;
    /// String: "rxe" or "siw", the kind of device in software.
    pub const LINK_TYPE: u16 = 65;
    /// `u8`: one of [`netns_mode`](super::netns_mode).
    pub const SYS_NETNS_MODE: u16 = 66;
    /// String: "ib", "roce", "iw", "usnic" or "opa"; absent for other devices.
    pub const DEV_PROTOCOL: u16 = 67;
    /// `u32`: file descriptor of the network namespace that the device shall move to.
    pub const NET_NS_FD: u16 = 68;
    /// String: the requested character device.
    pub const CHARDEV_TYPE: u16 = 69;
    /// String: its name below `/dev/infiniband`.
    pub const CHARDEV_NAME: u16 = 70;
    /// `u64`: version of its ABI; for "uverbs" that of the driver's.
    pub const CHARDEV_ABI: u16 = 71;
    /// `u64`: its number, see [`decode_chardev`](super::decode_chardev).
    pub const CHARDEV: u16 = 72;
    /// `u32`, although the header says 64 bits: one of
    /// [`driver_id`](crate::driver::driver_id). Absent for mthca and hns.
    pub const UVERBS_DRIVER_ID: u16 = 73;
    /// `u32`: one of [`stat_mode`](super::stat_mode). Since 5.3.
    pub const STAT_MODE: u16 = 74;
    /// `u32`: the attribute of the objects that counters are bound to, [`RES_QP`]. Since 5.3.
    pub const STAT_RES: u16 = 75;
    /// Nested: a [`STAT_HWCOUNTER_ENTRY`] for each counter. Since 5.3.
    pub const STAT_HWCOUNTERS: u16 = 80;
    /// Nested: a counter's name with its value or its state. Since 5.3.
    pub const STAT_HWCOUNTER_ENTRY: u16 = 81;
    /// String: the name, as sysfs has it. Since 5.3.
    pub const STAT_HWCOUNTER_ENTRY_NAME: u16 = 82;
    /// `u64`: the value. Since 5.3.
    pub const STAT_HWCOUNTER_ENTRY_VALUE: u16 = 83;
    /// `u8`: whether completion moderation adapts itself.
    pub const DEV_DIM: u16 = 84;
    /// Nested: ucontexts in use. In 6.1, not in 5.10.
    pub const RES_CTX: u16 = 86;
    /// Nested: one of them. In 6.1, not in 5.10.
    pub const RES_CTX_ENTRY: u16 = 87;
    /// Nested: shared receive queues in use. In 6.1, not in 5.10.
    pub const RES_SRQ: u16 = 88;
    /// Nested: one of them. In 6.1, not in 5.10.
    pub const RES_SRQ_ENTRY: u16 = 89;
    /// `u8`: 1 if memory registrations survive a fork. In 6.1, not in 5.10.
    pub const SYS_COPY_ON_FORK: u16 = 93;
    /// `u8`: 1 if an optional counter is on, 0 if it is off; absent of one that is no option. In 6.1, not in
    /// 5.10.
    pub const STAT_HWCOUNTER_DYNAMIC: u16 = 95;
    /// `u8`: whether privileged `Q_Key`s are open to all. In 6.12, and in later stable releases of 6.1.
    pub const SYS_PRIVILEGED_QKEY_MODE: u16 = 96;
    /// `u8`: kind of a sub-device. In 6.12, not in 6.1.
    pub const DEV_TYPE: u16 = 99;
    /// String: the device that a sub-device belongs to. In 6.12, not in 6.1.
    pub const PARENT_NAME: u16 = 100;
    /// `u8`: 1 if user space chose the name. In 6.12, not in 6.1.
    pub const NAME_ASSIGN_TYPE: u16 = 101;
    /// `u8`: one of [`event_type`](super::event_type). In 6.12, not in 6.1.
    pub const EVENT_TYPE: u16 = 102;
    /// `u8`: 1 if there is a monitor. In 6.12, not in 6.1.
    pub const SYS_MONITOR_MODE: u16 = 103;
}

/// Multicast groups.
pub mod group {
    /// iWARP port mapper.
    pub const IWPM: u32 = 2;
    /// Local service.
    pub const LS: u32 = 3;
    /// The monitor: [`op::MONITOR`](super::op::MONITOR) messages about devices and their network
    /// devices. In 6.12, not in 6.1.
    pub const NOTIFY: u32 = 4;
}

/// Values of [`attribute::EVENT_TYPE`]: what the monitor reports. In 6.12, not in 6.1.
pub mod event_type {
    /// A device came.
    pub const REGISTER: u8 = 0;
    /// A device went.
    pub const UNREGISTER: u8 = 1;
    /// A port got a network device.
    pub const NETDEV_ATTACH: u8 = 2;
    /// A port lost its network device.
    pub const NETDEV_DETACH: u8 = 3;
    /// A device has another name. In 7.2, not in 6.12.
    pub const RENAME: u8 = 4;
    /// A port's network device has another name. In 7.2, not in 6.12.
    pub const NETDEV_RENAME: u8 = 5;
}

/// Values of [`attribute::STAT_MODE`]: whether queue pairs have counters of their own. Since 5.3.
pub mod stat_mode {
    /// No queue pair has.
    pub const NONE: u32 = 0;
    /// New ones get some, by a rule.
    pub const AUTO: u32 = 1;
    /// Some were bound by hand.
    pub const MANUAL: u32 = 2;
}

/// Values of [`attribute::SYS_NETNS_MODE`].
pub mod netns_mode {
    /// A device is in one network namespace only.
    pub const EXCLUSIVE: u8 = 0;
    /// Devices can be opened from every network namespace.
    pub const SHARED: u8 = 1;
}

/// Major and minor number of a character device, from the value of [`attribute::CHARDEV`].
///
/// ```
/// assert_eq!(uverbs_uapi::netlink::decode_chardev(0xE7C0), (231, 192));
/// ```
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "the masks leave 12 and 20 bits")]
pub const fn decode_chardev(value: u64) -> (u32, u32) {
    let major = (value >> 8) & 0xFFF;
    let minor = (value & 0xFF) | ((value >> 12) & 0xF_FF00);
    (major as u32, minor as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_types_are_the_kernel_s() {
        for (op, literal) in [
            (op::GET, 0x1401),
            (op::SET, 0x1402),
            (op::NEWLINK, 0x1403),
            (op::DELLINK, 0x1404),
            (op::PORT_GET, 0x1405),
            (op::SYS_GET, 0x1406),
            (op::SYS_SET, 0x1407),
            (op::RES_GET, 0x1409),
            (op::GET_CHARDEV, 0x140F),
            (op::STAT_GET, 0x1411),
            (op::RES_CTX_GET, 0x1416),
            (op::STAT_GET_STATUS, 0x1418),
            (op::NEWDEV, 0x141A),
            (op::DELDEV, 0x141B),
            (op::MONITOR, 0x141C),
        ] {
            assert_eq!(message_type(client::NLDEV, op), literal);
        }
        assert_eq!(message_type(client::IWCM, 0), 0x0800);
        assert_eq!(message_type(client::LS, 0), 0x1000);
    }

    #[test]
    fn chardev_numbers_are_taken_apart() {
        assert_eq!(decode_chardev(0), (0, 0));
        assert_eq!(decode_chardev((231 << 8) | 0xC0), (231, 192));
        assert_eq!(decode_chardev(0xF_FF00), (0xFFF, 0));
        assert_eq!(decode_chardev(0xFFF0_00FF), (0, 0xF_FFFF));
        // Minor 256 is the first that does not fit below the major.
        assert_eq!(decode_chardev((1 << 20) | (511 << 8)), (511, 256));
        // Device numbers have 32 bits; higher bits are not part of the number.
        assert_eq!(decode_chardev(0xFFFF_FFFF_0000_E7C0), (231, 192));
    }
}
