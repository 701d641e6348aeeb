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
}

impl Looked {
    /// All of a host.
    pub(crate) fn at(inventory: &Inventory) -> Self {
        let mut all = Self::default();
        all.add(inventory, &Asked::default());
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
    /// `2 devices, 2 ports, 8 GIDs`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { devices, ports, gids, .. } = *self;
        write!(f, "{}, {}, {}", count(devices, "device"), count(ports, "port"), count(gids, "GID"))
    }
}

/// How many ports a choice was made for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PortCount {
    pub(crate) all: usize,
    pub(crate) active: usize,
    /// Those that have a usable GID.
    pub(crate) usable: usize,
    /// Those of which it is not known whether they have one.
    pub(crate) unknown: usize,
}

impl PortCount {
    /// Whether each has a usable GID.
    pub(crate) fn is_whole(self) -> bool {
        self.usable == self.all
    }

    /// Those that a setting is for, among all: `all 7 active ports of 8`.
    pub(crate) fn text(self, asked: &Asked<'_>) -> String {
        let named = if asked.is_all() { "" } else { " named" };
        let all = thousands(self.all);
        if self.is_whole() {
            return if self.all == 1 {
                format!("the{named} port")
            } else {
                format!("all {all}{named} ports")
            };
        }
        let usable = thousands(self.usable);
        if self.unknown > 0 {
            return if self.usable == 1 {
                format!("the only port known to be usable of {all}{named}")
            } else {
                format!("all {usable} ports known to be usable of {all}{named}")
            };
        }
        let kind = if self.usable == self.active { "active" } else { "usable" };
        if self.usable == 1 {
            format!("the only {kind} port of {all}{named}")
        } else {
            format!("all {usable} {kind} ports of {all}{named}")
        }
    }
}
