//! What was looked at, for the line that a command ends with.

use std::fmt;

use uverbs::inventory::Inventory;

use crate::selection::Asked;
use crate::text::{count, thousands};

/// How many of each were looked at.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Looked {
    pub(crate) hosts: usize,
    pub(crate) devices: usize,
    pub(crate) ports: usize,
    gids: usize,
    /// Whether the host has, or may have, more devices, or GIDs.
    has_unlisted: bool,
    has_unread: bool,
}

impl Looked {
    /// All of a host.
    pub(crate) fn at(inventory: &Inventory) -> Self {
        let mut all = Self::default();
        all.add(inventory, &Asked::default());
        all.has_unlisted = inventory.list_failure.is_some() || !inventory.unlisted.is_empty();
        all.has_unread = inventory.devices.iter().any(|own| matches!(own.gids, Some(Err(_))));
        all
    }

    /// Adds what is asked for of a host.
    pub(crate) fn add(&mut self, inventory: &Inventory, asked: &Asked<'_>) {
        self.hosts += 1;
        for record in &inventory.devices {
            let name = record.device.name.as_str();
            if !asked.has_device(name) {
                continue;
            }
            self.devices += 1;
            let is_asked = |port| asked.has_port(name, port);
            self.ports += record.ports.iter().filter(|port| is_asked(port.number)).count();
            let mut rows = record.all_rows().iter().map(|row| row.record.entry.port());
            self.gids += rows.by_ref().filter(|port| is_asked(*port)).count();
        }
    }
}

impl fmt::Display for Looked {
    /// `2 devices, 2 ports, 8 GIDs`; `at least 8 GIDs` if tables could not be read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { devices, ports, gids, has_unlisted, has_unread, .. } = *self;
        let least = |is_least: bool| if is_least { "at least " } else { "" };
        let (own, all) = (least(has_unlisted), least(has_unread && !has_unlisted));
        let (devices, ports) = (count(devices, "device"), count(ports, "port"));
        write!(f, "{own}{devices}, {ports}, {all}{}", count(gids, "GID"))
    }
}

/// How many ports a choice was made for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PortCount {
    pub(crate) all: usize,
    pub(crate) active: usize,
    /// Those that have a usable GID with what was asked for.
    pub(crate) usable: usize,
    /// Those of which it is not known whether they have one.
    pub(crate) unknown: usize,
}

impl PortCount {
    /// Whether each has such a GID.
    pub(crate) fn is_whole(self) -> bool {
        self.usable == self.all
    }

    /// Those that a setting is for, among all ports of so many hosts: `all 7 active ports of 8 on 2 hosts`. With
    /// filters, whose words these are, others may be usable, too.
    pub(crate) fn text(self, asked: &Asked<'_>, hosts: usize, filters: &str) -> String {
        let named = if asked.is_all() { "" } else { " named" };
        let all = thousands(self.all);
        let hosts = (hosts > 1).then(|| count(hosts, "host"));
        if self.is_whole() {
            let of_hosts = hosts.map(|hosts| format!(" of {hosts}")).unwrap_or_default();
            return if self.all == 1 {
                format!("the{named} port{of_hosts}")
            } else {
                format!("all {all}{named} ports{of_hosts}")
            };
        }
        let on_hosts = hosts.map(|hosts| format!(" on {hosts}")).unwrap_or_default();
        let among = format!("of {all}{named}{on_hosts}");
        let usable = thousands(self.usable);
        let is_one = self.usable == 1;
        let known = if self.unknown > 0 { "known to be " } else { "" };
        if self.unknown == 0 && self.usable == self.active {
            return if is_one {
                format!("the only active port {among}")
            } else {
                format!("all {usable} active ports {among}")
            };
        }
        match (filters, known, is_one) {
            ("", "", true) => format!("the only usable port {among}"),
            ("", "", false) => format!("all {usable} usable ports {among}"),
            ("", known, true) => format!("the only port {known}usable {among}"),
            ("", known, false) => format!("all {usable} ports {known}usable {among}"),
            (filters, known, true) => {
                format!("the only port {among} that is {known}usable with {filters}")
            }
            (filters, known, false) => {
                format!("the {usable} ports {among} that are {known}usable with {filters}")
            }
        }
    }
}
