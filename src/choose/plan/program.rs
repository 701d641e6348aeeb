//! The programs that read variables, each with its model.

use crate::choose::decision::{Decision, Outcome};
use crate::choose::nccl::Implementation;
use crate::choose::port::{Port, Row};
use crate::choose::room::{has_unlisted, of_programs};
use crate::choose::{nccl, ucx};
use crate::device::{Device, NodeType};
use crate::inventory::{DeviceRecord, Inventory, PortRecord};
use crate::port::{LinkLayer, PortState};

/// Programs that read variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Program {
    /// NCCL.
    Nccl,
    /// NVSHMEM.
    Nvshmem,
    /// UCX.
    Ucx,
}

impl core::fmt::Display for Program {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.pad(match self {
            Self::Nccl => "NCCL",
            Self::Nvshmem => "NVSHMEM",
            Self::Ucx => "UCX",
        })
    }
}

impl Program {
    /// The variable that sets the index.
    #[must_use]
    pub fn index_variable(self) -> &'static str {
        match self {
            Self::Nccl => "NCCL_IB_GID_INDEX",
            Self::Nvshmem => "NVSHMEM_IB_GID_INDEX",
            Self::Ucx => "UCX_IB_GID_INDEX",
        }
    }

    /// Whether it takes a port like this with some setting: see [`Why::PortNumber`](crate::choose::Why::PortNumber),
    /// [`Why::BeyondSecond`](crate::choose::Why::BeyondSecond), [`Why::LinkLayer`](crate::choose::Why::LinkLayer) and
    /// [`Why::NoTable`](crate::choose::Why::NoTable). UCX takes no port of iWARP.
    #[must_use]
    pub fn may_take(self, port: &Port<'_>) -> bool {
        self.takes(port.node_type, port.number, port.link_layer, port.gid_tbl_len)
    }

    /// The same of a port that may not have been read, as far as is known.
    pub(crate) fn may_take_record(self, record: &DeviceRecord, port: &PortRecord) -> bool {
        let (link_layer, length) =
            port.known().map_or((LinkLayer::ETHERNET, 1), |own| (own.link_layer, own.gid_tbl_len));
        self.takes(record.device.node_type, port.number, link_layer, length)
    }

    fn takes(self, node_type: NodeType, number: u32, link_layer: LinkLayer, length: u32) -> bool {
        match self {
            Self::Nccl | Self::Nvshmem => {
                nccl::ASKED.contains(&number) && nccl::takes_kind(link_layer)
            }
            Self::Ucx => ucx::asks_for(node_type, number) && ucx::may_take(node_type, length),
        }
    }

    /// Its variables that influence the choice, with values that have the effect of the default. Those that say whether
    /// RDMA is used at all are not among them: who set one meant it.
    pub(super) fn defaults(self) -> &'static [(&'static str, &'static str)] {
        match self {
            // A range of zero bits contains everything; a range of the other family is ignored.
            Self::Nccl => &[
                ("NCCL_IB_HCA", ""),
                ("NCCL_IB_GID_INDEX", "-1"),
                ("NCCL_IB_ROCE_VERSION_NUM", "2"),
                ("NCCL_IB_ADDR_FAMILY", "AF_INET"),
                ("NCCL_IB_ADDR_RANGE", "0.0.0.0/0"),
                ("NCCL_IB_ROUTABLE_FLID_GID_INDEX", "1"),
            ],
            Self::Nvshmem => &[
                ("NVSHMEM_ENABLE_NIC_PE_MAPPING", "0"),
                ("NVSHMEM_HCA_LIST", ""),
                ("NVSHMEM_IB_GID_INDEX", "-1"),
                ("NVSHMEM_IB_ROCE_VERSION_NUM", "2"),
                ("NVSHMEM_IB_ADDR_FAMILY", "AF_INET"),
                ("NVSHMEM_IB_ADDR_RANGE", "0.0.0.0/0"),
            ],
            Self::Ucx => &[
                ("UCX_NET_DEVICES", "all"),
                ("UCX_IB_GID_INDEX", "auto"),
                ("UCX_IB_ROCE_SUBNETS", "all"),
                ("UCX_IB_FLID_ROUTE", "y"),
            ],
        }
    }

    /// Whether a plan gives a variable a value of its own wherever it is set.
    #[must_use]
    pub fn resets(self, name: &str) -> bool {
        self.defaults().iter().any(|(own, _)| *own == name)
    }

    /// A model of its newest release with these variables.
    #[must_use]
    pub fn model<'v>(self, variable: impl Fn(&str) -> Option<&'v str>) -> Model {
        match self {
            Self::Nccl => {
                let program = Implementation::Nccl(nccl::Release::NEWEST);
                Model::Nccl(nccl::Settings::new(program, variable))
            }
            Self::Nvshmem => Model::Nccl(nccl::Settings::new(Implementation::Nvshmem, variable)),
            Self::Ucx => Model::Ucx(ucx::Settings::new(ucx::Release::NEWEST, variable)),
        }
    }
}

/// A program with its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Model {
    /// NCCL or NVSHMEM.
    Nccl(nccl::Settings),
    /// UCX.
    Ucx(ucx::Settings),
}

impl Model {
    /// What the program does with a port.
    #[must_use]
    pub fn choose(&self, port: &Port<'_>) -> Decision {
        match self {
            Self::Nccl(settings) => nccl::choose(port, settings),
            Self::Ucx(settings) => ucx::choose(port, settings),
        }
    }

    /// What the program does with all ports of a host. NCCL has room for only some of them.
    #[must_use]
    pub fn choose_all(&self, ports: &[&Port<'_>]) -> Vec<Decision> {
        match self {
            Self::Nccl(settings) => nccl::choose_all(ports, settings),
            Self::Ucx(settings) => ports.iter().map(|port| ucx::choose(port, settings)).collect(),
        }
    }

    /// The variable that makes it doubtful what the program does, if one is set.
    #[must_use]
    pub fn doubted_by(&self) -> Option<&'static str> {
        match self {
            Self::Nccl(settings) => settings.doubted_by(),
            Self::Ucx(settings) => settings.doubted_by(),
        }
    }

    /// Whether the program is known to take the row that [`choose`](Self::choose) says. It is not if a variable makes
    /// that doubtful ([`doubted_by`](Self::doubted_by)). UCX takes another one if it cannot make an address handle,
    /// which depends on an interface that may be elsewhere. NCCL may take another one if it compares with a type that
    /// it could not read. Both read types in sysfs: where it is not known whether sysfs has them, they must make no
    /// difference.
    #[must_use]
    pub fn is_sure(&self, port: &Port<'_>, outcome: &Outcome) -> bool {
        let row = || port.row(outcome.index()?);
        if self.may_miss_types(port) {
            return false;
        }
        match self {
            Self::Ucx(settings) if settings.doubted_by().is_some() => false,
            Self::Ucx(settings) if settings.pinned().is_none() && port.is_ethernet() => {
                row().is_none_or(Row::is_address_handle_known) && !self.may_be_led(port)
            }
            Self::Ucx(_) => true,
            Self::Nccl(settings) => nccl::is_sure(port, settings),
        }
    }

    /// Whether the program may do something else as sysfs may not have the types that it reads.
    #[must_use]
    pub fn may_miss_types(&self, port: &Port<'_>) -> bool {
        let outcome_of = |port: &Port<'_>| self.choose(port).outcome;
        port.assumes_types && outcome_of(port) != outcome_of(&without_types(port))
    }

    /// Whether UCX may take another row, as a route may lead to an address that an interface does not have.
    fn may_be_led(&self, port: &Port<'_>) -> bool {
        if !port.rows.iter().any(|row| row.may_lead_elsewhere) {
            return false;
        }
        let mut led = port.clone();
        for row in &mut led.rows {
            row.has_address_handle |= row.may_lead_elsewhere;
        }
        self.choose(&led).outcome != self.choose(port).outcome
    }

    /// Whether it uses RDMA, and its list of devices has a port.
    pub(crate) fn lists(&self, device: &str, port: u32) -> bool {
        match self {
            Self::Nccl(settings) if settings.is_disabled => false,
            Self::Nccl(settings) => settings.devices.takes(device, port),
            Self::Ucx(settings) => settings.devices.takes(device, port),
        }
    }

    fn program(&self) -> Program {
        match self {
            Self::Nccl(own) if own.implementation() == Implementation::Nvshmem => Program::Nvshmem,
            Self::Nccl(_) => Program::Nccl,
            Self::Ucx(_) => Program::Ucx,
        }
    }

    /// Whether a port that could not be read may be active, and one that the settings leave.
    pub(crate) fn lists_unread(&self, inventory: &Inventory) -> bool {
        let of_record = |(record, port): (&DeviceRecord, &PortRecord)| {
            let is_read = record.gids.as_ref().is_some_and(Result::is_ok);
            let may_be = match port.known() {
                Some(own) => !is_read && own.state == PortState::ACTIVE,
                None => true,
            };
            may_be
                && self.program().may_take_record(record, port)
                && self.lists(&record.device.name, port.number)
        };
        // No program asks for a port beyond.
        let of_other = |own: &Device| {
            (0..=255).any(|port| own.ports().contains(&port) && self.lists(&own.name, port))
        };
        has_unlisted(inventory)
            || inventory.others.iter().any(of_other)
            || of_programs(inventory)
                .flat_map(|own| own.ports.iter().map(move |port| (own, port)))
                .any(of_record)
    }

    /// The index that is set, if the program uses it.
    #[must_use]
    pub fn pinned(&self) -> Option<i64> {
        match self {
            Self::Nccl(settings) => settings.pinned(),
            Self::Ucx(settings) => settings.pinned().map(i64::from),
        }
    }
}

/// A port as it would be if sysfs had no types of its rows.
fn without_types<'i>(port: &Port<'i>) -> Port<'i> {
    let mut port = Port { has_types: false, assumes_types: false, ..port.clone() };
    for row in &mut port.rows {
        row.type_is_hidden = true;
    }
    port
}
