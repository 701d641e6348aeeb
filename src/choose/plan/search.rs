//! The search for a plan.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::program::{Model, Program};
use super::target::{Hosts, Target};
use crate::choose::address::{Family, Network};
use crate::choose::decision::Outcome;
use crate::choose::port::{Port, Row};
use crate::choose::{nccl, ucx};
use crate::gid::{Gid, GidType};
use crate::port::PortState;

/// How a plan works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// One index is right on all ports.
    Index(u32),
    /// The program's own choice is right on all ports.
    Automatic,
    /// The program's choice among the addresses that the plan names is right on all ports.
    Addresses,
}

/// Variables to set.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Plan {
    /// How it works.
    pub way: Way,
    /// Names and values, in the order to set them.
    pub variables: Vec<(&'static str, String)>,
    /// Whether the program is known to choose right with them. If not, it compares with a type that it cannot read,
    /// or it is not known whether it can read types.
    pub is_sure: bool,
}

/// Finds variables with which a program uses the right row on every wanted port that it may take
/// ([`Program::may_take`]), and no other port. `None` if no setting that is tried does this. `None` also if no such port is
/// wanted, because no list of devices can name zero devices.
///
/// `has_others` says whether there may be ports that are not among the targets because they could not be
/// read. Only a list of devices excludes such ports. `is_set` says whether a variable is already set. If the
/// plan does not need it, the plan sets it to its default, since it would change the choice otherwise.
#[must_use]
pub fn plan(
    program: Program,
    targets: &[Target<'_, '_>],
    has_others: bool,
    is_set: impl Fn(&str) -> bool,
) -> Option<Plan> {
    plan_of(program, targets, has_others, is_set)
}

/// What the candidates are made of.
#[derive(Default)]
struct Needs {
    /// Whether some port is wanted.
    is_any: bool,
    /// Whether some active port is not wanted.
    has_spare: bool,
    /// The wanted ports as a list of devices names them, each once; `None` if no list can name them.
    names: Option<Vec<String>>,
    /// The rows that Ethernet ports should use.
    rows: Vec<RightRow>,
}

/// A row that is right.
#[derive(Clone, Copy)]
struct RightRow {
    index: u32,
    gid: Gid,
    gid_type: GidType,
}

impl Needs {
    fn of(program: Program, hosts: &(impl Hosts + ?Sized)) -> Self {
        let mut this = Self { names: Some(Vec::new()), ..Self::default() };
        let mut known: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
        hosts.all(&mut |targets| {
            for Target { port, index, .. } in
                targets.iter().filter(|own| program.may_take(own.port))
            {
                let Some(index) = *index else {
                    // NVSHMEM has no room for a fifth port, be it active or not.
                    this.has_spare |= port.state == PortState::ACTIVE
                        || program == Program::Nvshmem && nccl::PAST_FOURTH.contains(&port.number);
                    continue;
                };
                this.is_any = true;
                let is_new = if let Some(numbers) = known.get_mut(port.device) {
                    numbers.insert(port.number)
                } else {
                    known.insert(port.device.to_owned(), BTreeSet::from([port.number]));
                    true
                };
                if is_new {
                    this.name(port);
                }
                if let Some(row) = port.row(index).filter(|_| port.is_ethernet()) {
                    let Row { index, gid, gid_type, .. } = *row;
                    this.rows.push(RightRow { index, gid, gid_type });
                }
            }
            true
        });
        this
    }

    /// Adds a port's name.
    fn name(&mut self, port: &Port<'_>) {
        // Other characters may have a meaning in a list, now or in a later release.
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '!');
        if port.device.is_empty() || !port.device.chars().all(is_word) {
            self.names = None;
        } else if let Some(names) = &mut self.names {
            names.push(format!("{}:{}", port.device, port.number));
        }
    }
}

/// The same for targets that are kept in another way.
pub(super) fn plan_of(
    program: Program,
    hosts: &(impl Hosts + ?Sized),
    has_others: bool,
    is_set: impl Fn(&str) -> bool,
) -> Option<Plan> {
    let wanted = Needs::of(program, hosts);
    if !wanted.is_any {
        return None;
    }
    let list = device_list(program, &wanted, has_others)?;
    // UCX takes an index for InfiniBand too, where none is to be chosen.
    let unset = program.model(|_| None);
    let keeps_infiniband = |target: &Target<'_, '_>, outcome: &Outcome| {
        let Model::Ucx(settings) = &unset else { return true };
        target.index.is_none()
            || target.port.is_ethernet()
            || outcome.index() == target.index
            || *outcome == ucx::choose(target.port, settings).outcome
    };
    let plans = candidates(program, &wanted.rows).into_iter().filter_map(|(way, variables)| {
        let mut variables: Vec<(&'static str, String)> =
            list.iter().cloned().chain(variables).collect();
        for (name, default) in program.defaults().iter().filter(|(name, _)| is_set(name)) {
            if !variables.iter().any(|(own, _)| own == name) {
                variables.push((name, (*default).to_owned()));
            }
        }
        let model = program.model(|name| {
            variables.iter().find(|(own, _)| *own == name).map(|(_, value)| value.as_str())
        });
        let is_right = |host: &[Target<'_, '_>]| {
            let ports: Vec<&Port<'_>> = host.iter().map(|target| target.port).collect();
            let decisions = model.choose_all(&ports);
            host.iter().zip(decisions).all(|(target, own)| {
                !program.may_take(target.port)
                    || target.is_met_by(&own.outcome) && keeps_infiniband(target, &own.outcome)
            })
        };
        let is_plan = hosts.all(&mut |host| is_right(host));
        let is_sure = |host: &[Target<'_, '_>]| {
            host.iter().all(|target| {
                let is_sure = match &model {
                    Model::Nccl(settings) => nccl::is_sure(target.port, settings),
                    Model::Ucx(_) => true,
                };
                is_sure && !model.may_miss_types(target.port)
            })
        };
        let is_sure = is_plan && hosts.all(&mut |host| is_sure(host));
        is_plan.then_some(Plan { way, variables, is_sure })
    });
    // The first that is sure, else the first.
    let mut first = None;
    for plan in plans {
        if plan.is_sure {
            return Some(plan);
        }
        first.get_or_insert(plan);
    }
    first
}

/// The list of devices that is needed if some active port is not wanted; `None` if no list can name the
/// wanted ports.
fn device_list(
    program: Program,
    wanted: &Needs,
    has_others: bool,
) -> Option<Vec<(&'static str, String)>> {
    if !has_others && !wanted.has_spare {
        return Some(Vec::new());
    }
    let names = wanted.names.as_ref()?;
    if program == Program::Ucx && names.len() > ucx::NAMED {
        return None;
    }
    let names = names.join(",");
    Some(match program {
        Program::Nccl => vec![("NCCL_IB_HCA", format!("={names}"))],
        Program::Nvshmem => {
            vec![("NVSHMEM_ENABLE_NIC_PE_MAPPING", "1".to_owned()), ("NVSHMEM_HCA_LIST", names)]
        }
        Program::Ucx => vec![("UCX_NET_DEVICES", names)],
    })
}

type Candidate = (Way, Vec<(&'static str, String)>);

fn candidates(program: Program, rows: &[RightRow]) -> Vec<Candidate> {
    let index = program.index_variable();
    let automatic = match program {
        Program::Ucx => (index, "auto".to_owned()),
        Program::Nccl | Program::Nvshmem => (index, "-1".to_owned()),
    };
    let mut list: Vec<Candidate> = Vec::new();
    let Some(first) = rows.first() else {
        // Without RoCE nothing needs to be set.
        return vec![(Way::Automatic, Vec::new())];
    };
    if rows.iter().all(|row| row.index == first.index) {
        list.push((Way::Index(first.index), vec![(index, first.index.to_string())]));
    }
    list.push((Way::Automatic, vec![automatic.clone()]));
    let addresses: Vec<IpAddr> = rows
        .iter()
        .map(|row| row.gid.ipv4().map_or(IpAddr::V6(row.gid.ipv6()), IpAddr::V4))
        .collect();
    if program == Program::Ucx {
        let covers = [covering(&addresses, Family::V4), covering(&addresses, Family::V6)];
        let short: Vec<String> = covers.iter().flatten().map(Network::to_string).collect();
        let exact = |own: &IpAddr| format!("{own}/{}", if own.is_ipv4() { 32 } else { 128 });
        let mut known = BTreeSet::new();
        let once: Vec<&IpAddr> = addresses.iter().filter(|own| known.insert(**own)).collect();
        // UCX does not read more.
        let has_room = once.len() <= ucx::ROOM;
        let exact = has_room.then(|| once.into_iter().map(exact).collect::<Vec<String>>());
        for subnets in [Some(short), exact].into_iter().flatten() {
            let subnets = ("UCX_IB_ROCE_SUBNETS", subnets.join(","));
            list.push((Way::Addresses, vec![automatic.clone(), subnets]));
        }
        return list;
    }
    let prefix = if program == Program::Nccl {
        ["NCCL_IB_ADDR_FAMILY", "NCCL_IB_ROCE_VERSION_NUM", "NCCL_IB_ADDR_RANGE"]
    } else {
        ["NVSHMEM_IB_ADDR_FAMILY", "NVSHMEM_IB_ROCE_VERSION_NUM", "NVSHMEM_IB_ADDR_RANGE"]
    };
    let [family_variable, version_variable, range_variable] = prefix;
    let mut chosen = vec![automatic];
    // A range of another family than the one that is set is ignored.
    let mut family = Family::V4;
    if rows.iter().all(|row| Family::of(row.gid) == Family::V6) {
        family = Family::V6;
        chosen.push((family_variable, "AF_INET6".to_owned()));
    }
    if rows.iter().all(|row| row.gid_type == GidType::ROCE_V1) {
        chosen.push((version_variable, "1".to_owned()));
    }
    list.push((Way::Automatic, chosen.clone()));
    if let Some(network) = covering(&addresses, family) {
        chosen.push((range_variable, network.to_string()));
        list.push((Way::Addresses, chosen));
    }
    list
}

/// The smallest network that contains all addresses of a family; `None` if there are none.
pub(super) fn covering(addresses: &[IpAddr], family: Family) -> Option<Network> {
    let numbers = addresses.iter().filter_map(|address| match (address, family) {
        (IpAddr::V4(own), Family::V4) => Some(u128::from(own.to_bits()) << 96),
        (IpAddr::V6(own), Family::V6) => Some(own.to_bits()),
        _ => None,
    });
    let numbers: Vec<u128> = numbers.collect();
    let first = *numbers.first()?;
    let length = if family == Family::V4 { 32 } else { 128 };
    let differing = numbers.iter().fold(0, |sum, number| sum | (number ^ first));
    let bits = differing.leading_zeros().min(length);
    let mask = u128::MAX.checked_shl(u128::BITS - bits).unwrap_or(0);
    let start = first & mask;
    let address = match family {
        Family::V4 => IpAddr::V4(Ipv4Addr::from_bits((start >> 96) as u32)),
        Family::V6 => IpAddr::V6(Ipv6Addr::from_bits(start)),
    };
    Some(Network { address, bits: u8::try_from(bits).ok()? })
}
