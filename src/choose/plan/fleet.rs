//! The ports of many hosts, kept in little memory for one plan that fits them all.

use std::collections::BTreeMap;

use super::program::Program;
use super::search::{self, Plan};
use super::target::{Hosts, Target};
use crate::choose::port::{Home, Port, Row};
use crate::device::NodeType;
use crate::gid::{Gid, GidType};
use crate::port::{LinkLayer, PortState};

/// Hosts, added one by one, for a [`Plan`] that fits them all.
///
/// Of each host only the ports and rows are kept, as a plan looks at them: about 30 bytes for a row and 50
/// for a port. The inventory is no longer needed.
///
/// ```
/// use uverbs::choose::plan::{Fleet, Program};
/// use uverbs::choose::{self, Wish};
///
/// let mut fleet = Fleet::default();
/// # let inventories = [uverbs::Inventory::default()];
/// for inventory in &inventories {
///     let ports = choose::ports(inventory);
///     let index = |port| choose::recommend(port, &Wish::default()).outcome.index();
///     fleet.add(ports.iter().map(|port| (port, index(port))));
/// }
/// let plan = fleet.plan(Program::Nccl, false, |_| false);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Fleet {
    hosts: Vec<KeptHost>,
    /// Names of devices, which most hosts share.
    names: Vec<String>,
    known: BTreeMap<String, usize>,
}

#[derive(Clone, Debug)]
struct KeptHost {
    ports: Box<[FleetPort]>,
    /// Those of all ports, one port after the other.
    rows: Box<[KeptRow]>,
}

#[derive(Clone, Copy, Debug)]
struct FleetPort {
    /// The place of the device's name.
    name: usize,
    number: u32,
    index: Option<u32>,
    place: Option<u32>,
    is_found: bool,
    gid_tbl_len: u32,
    node_type: NodeType,
    state: PortState,
    link_layer: LinkLayer,
    has_types: bool,
    assumes_types: bool,
    /// How many rows it has.
    rows: u32,
}

#[derive(Clone, Copy, Debug)]
struct KeptRow {
    index: u32,
    gid_type: GidType,
    gid: Gid,
    type_is_hidden: bool,
    has_address_handle: bool,
}

impl Fleet {
    /// Adds a host: its ports, each with the index that it should use; `None` if it should not be used.
    pub fn add<'p, 'i: 'p>(
        &mut self,
        ports: impl IntoIterator<Item = (&'p Port<'i>, Option<u32>)>,
    ) {
        let mut rows = Vec::new();
        let mut kept = Vec::new();
        for (port, index) in ports {
            rows.extend(port.rows.iter().map(KeptRow::from));
            kept.push(FleetPort {
                name: self.name(port.device),
                number: port.number,
                index,
                place: port.place,
                is_found: port.is_found,
                gid_tbl_len: port.gid_tbl_len,
                node_type: port.node_type,
                state: port.state,
                link_layer: port.link_layer,
                has_types: port.has_types,
                assumes_types: port.assumes_types,
                rows: u32::try_from(port.rows.len()).unwrap_or(u32::MAX),
            });
        }
        self.hosts.push(KeptHost { ports: kept.into(), rows: rows.into() });
    }

    /// The place of a device's name.
    fn name(&mut self, device: &str) -> usize {
        if let Some(place) = self.known.get(device) {
            return *place;
        }
        let place = self.names.len();
        self.names.push(device.to_owned());
        self.known.insert(device.to_owned(), place);
        place
    }

    /// Finds variables with which a program uses the right row on every port of every host: what
    /// [`plan`](super::plan) finds for these targets.
    #[must_use]
    pub fn plan(
        &self,
        program: Program,
        has_others: bool,
        is_set: impl Fn(&str) -> bool,
    ) -> Option<Plan> {
        self.plan_of(program, has_others, is_set, |_| true)
    }

    /// The same of some hosts only, by the order in which they were added.
    #[must_use]
    pub fn plan_of(
        &self,
        program: Program,
        has_others: bool,
        is_set: impl Fn(&str) -> bool,
        is_wanted: impl Fn(usize) -> bool,
    ) -> Option<Plan> {
        let part = Part { fleet: self, is_wanted: &is_wanted };
        let is_set: &dyn Fn(&str) -> bool = &is_set;
        search::plan_of(program, &part, has_others, is_set)
    }
}

/// Some hosts of a fleet.
struct Part<'f> {
    fleet: &'f Fleet,
    is_wanted: &'f dyn Fn(usize) -> bool,
}

impl Hosts for Part<'_> {
    fn all(&self, holds: &mut dyn FnMut(&[Target<'_, '_>]) -> bool) -> bool {
        let Self { fleet, is_wanted } = self;
        let mut hosts = fleet.hosts.iter().enumerate().filter(|(number, _)| is_wanted(*number));
        hosts.all(|(number, host)| {
            let mut rows = host.rows.iter().map(Row::from);
            let ports: Vec<(Port<'_>, Option<u32>)> = host
                .ports
                .iter()
                .map(|kept| {
                    let port = Port {
                        device: fleet.names.get(kept.name).map_or("", String::as_str),
                        node_type: kept.node_type,
                        // No program looks at it.
                        driver: None,
                        number: kept.number,
                        place: kept.place,
                        is_found: kept.is_found,
                        state: kept.state,
                        link_layer: kept.link_layer,
                        gid_tbl_len: kept.gid_tbl_len,
                        has_types: kept.has_types,
                        assumes_types: kept.assumes_types,
                        rows: rows.by_ref().take(kept.rows as usize).collect(),
                    };
                    (port, kept.index)
                })
                .collect();
            let mut targets = Vec::with_capacity(ports.len());
            for (port, index) in &ports {
                targets.push(Target { host: number, port, index: *index });
            }
            holds(&targets)
        })
    }
}

impl From<&Row<'_>> for KeptRow {
    fn from(row: &Row<'_>) -> Self {
        Self {
            index: row.index,
            gid_type: row.gid_type,
            gid: row.gid,
            type_is_hidden: row.type_is_hidden,
            has_address_handle: row.has_address_handle,
        }
    }
}

impl From<&KeptRow> for Row<'_> {
    /// No program looks at the interface of a row.
    fn from(kept: &KeptRow) -> Self {
        Self {
            index: kept.index,
            gid: kept.gid,
            gid_type: kept.gid_type,
            type_is_hidden: kept.type_is_hidden,
            has_address_handle: kept.has_address_handle,
            may_lead_elsewhere: false,
            home: Home::None,
            is_heard: Some(true),
        }
    }
}
