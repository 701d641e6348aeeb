//! A GID in the table and in JSON.

use core::num::NonZeroU32;
use std::net::Ipv4Addr;

use serde::Serialize;
use uverbs::gid::{Gid, GidType};
use uverbs::host::Source;
use uverbs::inventory::GidRow;

use crate::values::{NONE, Text, cell};

pub(crate) const COLUMNS: usize = 7;

/// What the columns are; [`Row::cells`] has their order.
pub(crate) const HEADING: [&str; COLUMNS] =
    ["DEVICE", "PORT", "INDEX", "GID", "TYPE", "IPV4", "NETDEV"];

/// A row.
#[derive(Debug, Serialize)]
pub(crate) struct Row<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) host: Option<&'a str>,
    pub(crate) device: &'a str,
    pub(crate) port: u32,
    pub(crate) index: u32,
    pub(crate) gid: Text<Gid>,
    pub(crate) gid_type: Text<GidType>,
    ipv4: Option<Ipv4Addr>,
    /// The interface, in whichever namespace it is.
    ifindex: Option<NonZeroU32>,
    /// Its name, if it is in this namespace.
    pub(crate) netdev: Option<&'a str>,
    /// Its name in its own namespace.
    #[serde(skip)]
    pub(crate) foreign_netdev: Option<&'a str>,
    /// The same, if it is not known that it is in this namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    sysfs_netdev: Option<&'a str>,
    /// Whether it may have one whose name cannot be read.
    #[serde(skip_serializing_if = "is_false")]
    netdev_is_unread: bool,
    #[serde(skip_serializing_if = "is_false")]
    type_is_unread: bool,
    source: Text<Source>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    rest: Option<Rest>,
}

/// What a row has beside that.
#[derive(Debug, Serialize)]
struct Rest {
    /// Whether no interface of this namespace can be its own.
    netdev_is_elsewhere: bool,
    /// Whether sysfs keeps its type back.
    type_is_hidden: bool,
}

impl<'a> Row<'a> {
    pub(crate) fn new(host: Option<&'a str>, device: &'a str, row: &'a GidRow) -> Self {
        let GidRow { record, netdev, .. } = row;
        let entry = &record.entry;
        let netdev = netdev.as_ref();
        Self {
            host,
            device,
            port: entry.port(),
            index: entry.index(),
            gid: Text(entry.gid()),
            gid_type: Text(entry.gid_type()),
            ipv4: entry.gid().ipv4(),
            ifindex: netdev.map(|netdev| netdev.index).or(entry.netdev_ifindex()),
            netdev: netdev.map(|netdev| netdev.name.as_str()),
            foreign_netdev: record.sysfs_netdev.as_deref(),
            sysfs_netdev: record.sysfs_netdev.as_deref().filter(|_| netdev.is_none()),
            netdev_is_unread: record.netdev_is_unread,
            type_is_unread: record.type_is_unread,
            source: Text(record.source),
            rest: None,
        }
    }

    pub(crate) fn cells(&self) -> [String; COLUMNS] {
        [
            self.device.to_owned(),
            self.port.to_string(),
            self.index.to_string(),
            self.gid.to_string(),
            self.type_cell(),
            cell(self.ipv4),
            self.netdev_cell(),
        ]
    }

    /// The row with what is not in the table.
    pub(crate) fn in_full(device: &'a str, row: &'a GidRow) -> Self {
        let &GidRow { netdev_is_elsewhere, type_is_hidden, .. } = row;
        let rest = Some(Rest { netdev_is_elsewhere, type_is_hidden });
        Self { rest, ..Self::new(None, device, row) }
    }

    /// What distinguishes it from the other rows of its port; and the rest, if it has that.
    pub(crate) fn brief(&self) -> String {
        let own =
            format!("{} {} {} {}", self.index, self.gid, self.type_cell(), self.netdev_cell());
        let Some(rest) = &self.rest else { return own };
        let mut words = vec![format!("by {}", self.source)];
        words.extend(self.ifindex.map(|index| format!("interface #{index}")));
        words.extend(rest.netdev_is_elsewhere.then(|| "interface not here".to_owned()));
        words.extend(self.netdev_is_unread.then(|| "interface not known".to_owned()));
        words.extend(rest.type_is_hidden.then(|| "type hidden in sysfs".to_owned()));
        format!("{own} ({})", words.join(", "))
    }

    fn type_cell(&self) -> String {
        if self.type_is_unread { "?".to_owned() } else { short_type(self.gid_type.0) }
    }

    fn netdev_cell(&self) -> String {
        match (self.netdev, self.ifindex, self.foreign_netdev) {
            (Some(name), ..) => name.to_owned(),
            (None, Some(index), _) => format!("#{index}"),
            (None, None, Some(name)) => format!("{name}?"),
            (None, None, None) if self.netdev_is_unread => "?".to_owned(),
            (None, None, None) => NONE.to_owned(),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

/// A GID's type in the words of `--type`.
pub(crate) fn short_type(gid_type: GidType) -> String {
    match gid_type {
        GidType::ROCE_V1 => "v1".to_owned(),
        GidType::ROCE_V2 => "v2".to_owned(),
        other => other.to_string(),
    }
}
