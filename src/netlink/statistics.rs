//! RDMA netlink: counters of ports and their states, how many objects are in use, and whose they are.

use std::collections::BTreeMap;

use uverbs_uapi::netlink as abi;

use super::rdma::message_type;
use super::{Message, attributes};
use crate::counter::{OptionalCounter, Owner, ResourceUse};
use crate::error::Cause;

fn of_port(op: u16, index: u32, port: u32) -> Message {
    Message::new(message_type(op), &[])
        .number(abi::attribute::DEV_INDEX, index)
        .number(abi::attribute::PORT_INDEX, port)
}

/// Asks for the counters of a port.
pub(crate) fn counters_request(index: u32, port: u32) -> Message {
    of_port(abi::op::STAT_GET, index, port)
}

/// Asks for the names of a port's counters and the states of the optional ones. The driver is not asked.
pub(crate) fn states_request(index: u32, port: u32) -> Message {
    of_port(abi::op::STAT_GET_STATUS, index, port)
}

/// Asks whether queue pairs have counters of their own, which the driver then adds up.
pub(crate) fn mode_request(index: u32, port: u32) -> Message {
    of_port(abi::op::STAT_GET, index, port)
        .number(abi::attribute::STAT_MODE, abi::stat_mode::AUTO)
        .number(abi::attribute::STAT_RES, abi::attribute::RES_QP.into())
}

/// Asks how many objects are in use, of all devices.
pub(crate) fn resources_request() -> Message {
    Message::new(message_type(abi::op::RES_GET), &[])
}

/// A kind of objects that are listed with their owners. The kernel answers by itself. It would ask the driver for
/// each queue pair, and mlx5 asks its firmware: these are not here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnedKind {
    /// Its name, as in a summary.
    pub(crate) name: &'static str,
    /// Whether an older kernel may not know it.
    pub(crate) is_new: bool,
    op: u16,
    list: u16,
    entry: u16,
}

/// All of them.
pub(crate) const OWNED_KINDS: [OwnedKind; 6] = {
    use abi::attribute::{
        RES_CM_ID, RES_CM_ID_ENTRY, RES_CQ, RES_CQ_ENTRY, RES_CTX, RES_CTX_ENTRY, RES_MR,
        RES_MR_ENTRY, RES_PD, RES_PD_ENTRY, RES_SRQ, RES_SRQ_ENTRY,
    };
    use abi::op::{RES_CM_ID_GET, RES_CQ_GET, RES_CTX_GET, RES_MR_GET, RES_PD_GET, RES_SRQ_GET};
    const fn kind(name: &'static str, op: u16, list: u16, entry: u16) -> OwnedKind {
        let is_new = matches!(op, RES_CTX_GET | RES_SRQ_GET);
        OwnedKind { name, is_new, op, list, entry }
    }
    [
        kind("ctx", RES_CTX_GET, RES_CTX, RES_CTX_ENTRY),
        kind("pd", RES_PD_GET, RES_PD, RES_PD_ENTRY),
        kind("cq", RES_CQ_GET, RES_CQ, RES_CQ_ENTRY),
        kind("mr", RES_MR_GET, RES_MR, RES_MR_ENTRY),
        kind("srq", RES_SRQ_GET, RES_SRQ, RES_SRQ_ENTRY),
        // Last, so that a device that vanishes meanwhile is not taken for a kernel that does not know a kind.
        kind("cm_id", RES_CM_ID_GET, RES_CM_ID, RES_CM_ID_ENTRY),
    ]
};

impl OwnedKind {
    /// Asks for all objects of the kind on a device.
    pub(crate) fn request(self, index: u32) -> Message {
        Message::new(message_type(self.op), &[]).number(abi::attribute::DEV_INDEX, index)
    }

    /// How many objects each owner has in this message; those whose owner is not said have none.
    pub(crate) fn parse(self, payload: &[u8]) -> Result<BTreeMap<Option<Owner>, u64>, Cause> {
        let mut owners = BTreeMap::new();
        for entry in entries(payload, self.list, self.entry)? {
            let mut owner = None;
            for attribute in attributes(entry) {
                let attribute = attribute?;
                match attribute.kind {
                    abi::attribute::RES_PID => owner = Some(Owner::Process(attribute.u32()?)),
                    abi::attribute::RES_KERN_NAME => owner = Some(Owner::Kernel(attribute.text())),
                    _ => {}
                }
            }
            *owners.entry(owner).or_default() += 1;
        }
        Ok(owners)
    }
}

/// That a reply is of the device with this name. Another one may have taken over its index since it was listed.
pub(crate) fn is_of(payload: &[u8], name: &str) -> Result<(), Cause> {
    for attribute in attributes(payload) {
        let attribute = attribute?;
        if attribute.kind == abi::attribute::DEV_NAME {
            return if attribute.text() == name { Ok(()) } else { Err(Cause::Replaced) };
        }
    }
    Err(Cause::Malformed("a reply without a device's name"))
}

/// The entries of a nested list: what `list` holds of the kind `entry`.
fn entries(payload: &[u8], list: u16, entry: u16) -> Result<Vec<&[u8]>, Cause> {
    let mut found = Vec::new();
    for attribute in attributes(payload) {
        let attribute = attribute?;
        if attribute.kind != list {
            continue;
        }
        for own in attributes(attribute.bytes()) {
            let own = own?;
            if own.kind == entry {
                found.push(own.bytes());
            }
        }
    }
    Ok(found)
}

/// A name and a number of an entry; either may be missing.
fn named(entry: &[u8], name: u16, number: u16) -> Result<(Option<String>, Option<u64>), Cause> {
    let (mut text, mut value) = (None, None);
    for attribute in attributes(entry) {
        let attribute = attribute?;
        if attribute.kind == name {
            text = Some(attribute.text()).filter(|text| !text.is_empty());
        } else if attribute.kind == number {
            value = Some(attribute.number()?);
        }
    }
    Ok((text, value))
}

/// Reads a port's counters with their values.
pub(crate) fn parse_counters(payload: &[u8]) -> Result<Vec<(String, u64)>, Cause> {
    use abi::attribute::{
        STAT_HWCOUNTER_ENTRY, STAT_HWCOUNTER_ENTRY_NAME, STAT_HWCOUNTER_ENTRY_VALUE,
        STAT_HWCOUNTERS,
    };
    let mut counters = Vec::new();
    for entry in entries(payload, STAT_HWCOUNTERS, STAT_HWCOUNTER_ENTRY)? {
        match named(entry, STAT_HWCOUNTER_ENTRY_NAME, STAT_HWCOUNTER_ENTRY_VALUE)? {
            (Some(name), Some(value)) => counters.push((name, value)),
            _ => return Err(Cause::Malformed("a counter without name or value")),
        }
    }
    Ok(counters)
}

/// Reads how many counters a port has, and the states of those that are optional.
pub(crate) fn parse_states(payload: &[u8]) -> Result<(usize, Vec<OptionalCounter>), Cause> {
    use abi::attribute::{
        STAT_HWCOUNTER_DYNAMIC, STAT_HWCOUNTER_ENTRY, STAT_HWCOUNTER_ENTRY_NAME, STAT_HWCOUNTERS,
    };
    let entries = entries(payload, STAT_HWCOUNTERS, STAT_HWCOUNTER_ENTRY)?;
    let mut optional = Vec::new();
    for entry in &entries {
        match named(entry, STAT_HWCOUNTER_ENTRY_NAME, STAT_HWCOUNTER_DYNAMIC)? {
            (Some(name), Some(state)) => optional.push(OptionalCounter::new(name, state != 0)),
            (Some(_), None) => {}
            (None, _) => return Err(Cause::Malformed("a counter without name")),
        }
    }
    Ok((entries.len(), optional))
}

/// Whether no queue pair of a port has counters of its own; `None` if the reply does not say.
pub(crate) fn parse_mode(payload: &[u8]) -> Result<Option<bool>, Cause> {
    let mut is_none = None;
    for attribute in attributes(payload) {
        let attribute = attribute?;
        if attribute.kind == abi::attribute::STAT_MODE {
            is_none = Some(attribute.u32()? == abi::stat_mode::NONE);
        }
    }
    Ok(is_none)
}

/// Reads how many objects of each kind are in use on a device, whose index and name come first.
pub(crate) fn parse_resources(payload: &[u8]) -> Result<(u32, String, Vec<ResourceUse>), Cause> {
    use abi::attribute::{
        DEV_INDEX, DEV_NAME, RES_SUMMARY, RES_SUMMARY_ENTRY, RES_SUMMARY_ENTRY_CURR,
        RES_SUMMARY_ENTRY_NAME,
    };
    let (mut index, mut name) = (None, None);
    for attribute in attributes(payload) {
        let attribute = attribute?;
        match attribute.kind {
            DEV_INDEX => index = Some(attribute.u32()?),
            DEV_NAME => name = Some(attribute.text()),
            _ => {}
        }
    }
    let (Some(index), Some(name)) = (index, name) else {
        return Err(Cause::Malformed("resources without a device"));
    };
    let mut resources = Vec::new();
    for entry in entries(payload, RES_SUMMARY, RES_SUMMARY_ENTRY)? {
        match named(entry, RES_SUMMARY_ENTRY_NAME, RES_SUMMARY_ENTRY_CURR)? {
            (Some(kind), Some(used)) => resources.push(ResourceUse::new(kind, used)),
            _ => return Err(Cause::Malformed("a kind of resource without name or number")),
        }
    }
    Ok((index, name, resources))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn payload(message: Message) -> Vec<u8> {
        message.finish_for_test()
    }

    fn list(list: u16, entry: u16, entries: &[Message]) -> Vec<u8> {
        let mut inner = Message::new(0, &[]);
        for own in entries {
            inner = inner.attribute(entry | 0x8000, &payload(own.clone()));
        }
        let device = Message::new(0, &[]).number(1, 7).text(2, "x");
        payload(device.attribute(list | 0x8000, &payload(inner)))
    }

    /// The reply with these counters.
    pub(crate) fn told(counters: &[(&str, u64)]) -> Vec<u8> {
        let entry = |(name, value): &(&str, u64)| {
            Message::new(0, &[]).text(82, name).attribute(83, &value.to_ne_bytes())
        };
        list(80, 81, &counters.iter().map(entry).collect::<Vec<_>>())
    }

    /// The reply with objects of this kind of these processes (0: of none) and parts of the kernel.
    pub(crate) fn owned(kind: OwnedKind, processes: &[u32], parts: &[&str]) -> Vec<u8> {
        let of_process = processes.iter().map(|pid| match pid {
            0 => Message::new(0, &[]).number(62, 1),
            pid => Message::new(0, &[]).number(28, *pid),
        });
        let of_kernel = parts.iter().map(|name| Message::new(0, &[]).text(29, name));
        list(kind.list, kind.entry, &of_process.chain(of_kernel).collect::<Vec<_>>())
    }

    #[test]
    fn counters_with_their_values() {
        let read = parse_counters(&told(&[("sent_pkts", 1), ("RNR sent", u64::MAX)])).unwrap();
        assert_eq!(read, [("sent_pkts".to_owned(), 1), ("RNR sent".to_owned(), u64::MAX)]);
        assert_eq!(parse_counters(&[]).unwrap(), []);
        for broken in [
            list(80, 81, &[Message::new(0, &[]).text(82, "x")]),
            list(80, 81, &[Message::new(0, &[]).text(82, "").attribute(83, &[0; 8])]),
            list(80, 81, &[Message::new(0, &[]).text(82, "x").attribute(83, &[0; 3])]),
            payload(Message::new(0, &[]).attribute(80, &[9, 0, 81, 0])),
        ] {
            assert!(parse_counters(&broken).is_err(), "{broken:?}");
        }
    }

    #[test]
    fn states_of_optional_counters() {
        let entry = |name: &str| Message::new(0, &[]).text(82, name).number(94, 3);
        let reply = list(
            80,
            81,
            &[entry("a"), entry("on").attribute(95, &[1]), entry("off").attribute(95, &[0])],
        );
        let (count, optional) = parse_states(&reply).unwrap();
        let expected = [OptionalCounter::new("on", true), OptionalCounter::new("off", false)];
        assert_eq!((count, optional), (3, expected.to_vec()));
        assert!(parse_states(&list(80, 81, &[Message::new(0, &[]).attribute(95, &[1])])).is_err());
    }

    #[test]
    fn modes() {
        let told = |mode| parse_mode(&payload(Message::new(0, &[]).number(74, mode))).unwrap();
        assert_eq!((told(0), told(1), told(2)), (Some(true), Some(false), Some(false)));
        assert_eq!(parse_mode(&[]).unwrap(), None);
    }

    #[test]
    fn resources() {
        let entry = |kind: &str, used: u64| {
            Message::new(0, &[]).text(17, kind).attribute(18, &used.to_ne_bytes())
        };
        let (index, name, read) = parse_resources(&list(15, 16, &[entry("qp", 3)])).unwrap();
        assert_eq!((index, &*name, read), (7, "x", vec![ResourceUse::new("qp", 3)]));
        assert!(parse_resources(&[]).is_err());
        let nameless = Message::new(0, &[]).attribute(18, &[0; 8]);
        assert!(parse_resources(&list(15, 16, &[nameless])).is_err());
    }
}
