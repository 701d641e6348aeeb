//! One setting for many ports: the variables by which a program uses the right GID on each of them.
//!
//! Candidates are tried on the program's model, in this order: one index; the program's own choice; that
//! choice limited to addresses of one network. The first candidate that is right on every port is the plan.
//! The program must not use a port that is not wanted.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Decision, Family, Network, Outcome, Port, nccl, ucx};
use crate::gid::GidType;
use crate::port::PortState;

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

    /// Its variables that influence the choice, with values that have the effect of the default.
    fn defaults(self) -> &'static [(&'static str, &'static str)] {
        match self {
            // A range of zero bits contains everything; a range of the other family is ignored.
            Self::Nccl => &[
                ("NCCL_IB_DISABLE", "0"),
                ("NCCL_IB_HCA", ""),
                ("NCCL_IB_GID_INDEX", "-1"),
                ("NCCL_IB_ROCE_VERSION_NUM", "2"),
                ("NCCL_IB_ADDR_FAMILY", "AF_INET"),
                ("NCCL_IB_ADDR_RANGE", "0.0.0.0/0"),
            ],
            Self::Nvshmem => &[
                ("NVSHMEM_ENABLE_NIC_PE_MAPPING", "0"),
                ("NVSHMEM_IB_GID_INDEX", "-1"),
                ("NVSHMEM_IB_ROCE_VERSION_NUM", "2"),
                ("NVSHMEM_IB_ADDR_FAMILY", "AF_INET"),
                ("NVSHMEM_IB_ADDR_RANGE", "0.0.0.0/0"),
            ],
            Self::Ucx => &[
                ("UCX_NET_DEVICES", "all"),
                ("UCX_IB_GID_INDEX", "auto"),
                ("UCX_IB_ROCE_SUBNETS", "all"),
            ],
        }
    }

    /// A model of its newest release with these variables.
    #[must_use]
    pub fn model<'v>(self, variable: impl Fn(&str) -> Option<&'v str>) -> Model {
        match self {
            Self::Nccl => {
                let program = nccl::Program::Nccl(nccl::Release::NEWEST);
                Model::Nccl(nccl::Settings::new(program, variable))
            }
            Self::Nvshmem => Model::Nccl(nccl::Settings::new(nccl::Program::Nvshmem, variable)),
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

    /// The index that is set, if the program uses it.
    #[must_use]
    pub fn pinned(&self) -> Option<i64> {
        match self {
            Self::Nccl(settings) => settings.pinned(),
            Self::Ucx(settings) => settings.pinned().map(i64::from),
        }
    }
}

/// A port, and the row it should use; `None` if it should not be used.
#[derive(Clone, Copy, Debug)]
pub struct Target<'p, 'i> {
    /// The host: a number that the caller chooses. The targets of one host come together.
    pub host: usize,
    /// The port.
    pub port: &'p Port<'i>,
    /// The index.
    pub index: Option<u32>,
}

impl Target<'_, '_> {
    /// Whether an outcome is the right one.
    #[must_use]
    pub fn is_met_by(&self, outcome: &Outcome) -> bool {
        match (outcome, self.index) {
            // The GID of a port that is not wanted or not active does not matter.
            (Outcome::Ignored(_), None) => true,
            // Only Ethernet has rows to choose from.
            (Outcome::Taken(_) | Outcome::ByLid, Some(_)) if !self.port.is_ethernet() => true,
            (outcome, index) => index.is_some() && outcome.index() == index,
        }
    }
}

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
}

/// The longest variable that the kernel passes to a program (`MAX_ARG_STRLEN`), including its name and the
/// final zero byte.
const LONGEST: usize = 128 << 10;

/// Finds variables with which a program uses the right row on every wanted port, and no other port. `None`
/// if there are none. `None` also if no port is wanted, because no list of devices can name zero devices.
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
    if targets.iter().all(|target| target.index.is_none()) {
        return None;
    }
    let list = device_list(program, targets, has_others)?;
    candidates(program, targets).into_iter().find_map(|(way, variables)| {
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
            host.iter().zip(decisions).all(|(target, own)| target.is_met_by(&own.outcome))
        };
        let fits = |(name, value): &(&str, String)| name.len() + value.len() + 2 <= LONGEST;
        let mut hosts = targets.chunk_by(|one, other| one.host == other.host);
        let is_plan = hosts.all(is_right) && variables.iter().all(fits);
        is_plan.then_some(Plan { way, variables })
    })
}

/// The list of devices that is needed if some active port is not wanted; `None` if no list can name the
/// wanted ports.
fn device_list(
    program: Program,
    targets: &[Target<'_, '_>],
    has_others: bool,
) -> Option<Vec<(&'static str, String)>> {
    let is_spare =
        |own: &Target<'_, '_>| own.index.is_none() && own.port.state == PortState::ACTIVE;
    if !has_others && !targets.iter().any(is_spare) {
        return Some(Vec::new());
    }
    let mut names: Vec<String> = Vec::new();
    let mut known = BTreeSet::new();
    for own in targets.iter().filter(|own| own.index.is_some()) {
        // Other characters may have a meaning in a list, now or in a later release.
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '!');
        if own.port.device.is_empty() || !own.port.device.chars().all(is_word) {
            return None;
        }
        if known.insert((own.port.device, own.port.number)) {
            names.push(format!("{}:{}", own.port.device, own.port.number));
        }
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

fn candidates(program: Program, targets: &[Target<'_, '_>]) -> Vec<Candidate> {
    let rows: Vec<_> = targets
        .iter()
        .filter(|own| own.port.is_ethernet())
        .filter_map(|own| own.port.row(own.index?))
        .collect();
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
        let exact: Vec<String> = addresses.iter().map(exact).collect();
        for subnets in [short, exact] {
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
    if rows.iter().all(|row| row.family() == Family::V6) {
        chosen.push((family_variable, "AF_INET6".to_owned()));
    }
    if rows.iter().all(|row| row.gid_type == GidType::ROCE_V1) {
        chosen.push((version_variable, "1".to_owned()));
    }
    list.push((Way::Automatic, chosen.clone()));
    if let Some(network) = covering(&addresses, first.family()) {
        chosen.push((range_variable, network.to_string()));
        list.push((Way::Addresses, chosen));
    }
    list
}

/// The smallest network that contains all addresses of a family; `None` if there are none.
fn covering(addresses: &[IpAddr], family: Family) -> Option<Network> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choose::tests::{port, row};

    /// RoCE ports by their rows, each with the index that is wanted.
    fn planned(program: Program, ports: &[(&'static str, &[&str], Option<u32>)]) -> Option<String> {
        planned_beside(false, program, ports)
    }

    /// The same, where there may be other ports.
    fn planned_beside(
        has_others: bool,
        program: Program,
        ports: &[(&'static str, &[&str], Option<u32>)],
    ) -> Option<String> {
        let ports: Vec<_> = ports
            .iter()
            .map(|(device, rows, index)| {
                let rows = rows.iter().map(|line| row(line)).collect();
                let port = port("port 1 link_layer Ethernet gid_tbl_len 16", rows);
                (Port { device, ..port }, *index)
            })
            .collect();
        let targets: Vec<_> =
            ports.iter().map(|(port, index)| Target { host: 0, port, index: *index }).collect();
        plan(program, &targets, has_others, |name| SET.contains(&name)).map(|plan| {
            let pairs = plan.variables.iter().map(|(name, value)| format!("{name}={value}"));
            pairs.collect::<Vec<_>>().join(" ")
        })
    }

    const DUAL: &[&str] = &[
        "1 0 fe80::1 v1 e",
        "1 1 fe80::1 v2 e",
        "1 2 ::ffff:10.0.0.1 v1 e",
        "1 3 ::ffff:10.0.0.1 v2 e",
    ];
    const LATER: &[&str] = &[
        "1 0 fe80::1 v1 e",
        "1 1 fe80::1 v2 e",
        "1 4 ::ffff:10.0.0.2 v1 e",
        "1 5 ::ffff:10.0.0.2 v2 e",
    ];
    const VLAN: &[&str] = &[
        "1 0 fe80::1 v1 e",
        "1 1 fe80::1 v2 e",
        "1 3 ::ffff:192.168.7.1 v2 e.7",
        "1 5 ::ffff:10.0.0.3 v2 e",
    ];
    const POD: &[&str] = &["1 6 ::ffff:10.1.2.3 v1 n", "1 7 ::ffff:10.1.2.3 v2 n"];
    const IPV6: &[&str] = &["1 0 fe80::1 v1 e", "1 2 fd00::1 v1 e", "1 3 fd00::1 v2 e"];

    /// Set already, on these hosts: of no effect on what is not NVSHMEM's.
    const SET: &[&str] = &["NVSHMEM_IB_ADDR_RANGE"];

    #[test]
    fn one_index_where_it_is_right_on_all() {
        let ports = [("a", DUAL, Some(3)), ("b", DUAL, Some(3))];
        assert_eq!(planned(Program::Nccl, &ports).as_deref(), Some("NCCL_IB_GID_INDEX=3"));
        assert_eq!(
            planned(Program::Nvshmem, &ports).as_deref(),
            Some("NVSHMEM_IB_GID_INDEX=3 NVSHMEM_IB_ADDR_RANGE=0.0.0.0/0")
        );
        assert_eq!(planned(Program::Ucx, &ports).as_deref(), Some("UCX_IB_GID_INDEX=3"));
    }

    #[test]
    fn the_program_s_own_choice_where_indices_differ() {
        let ports = [("a", DUAL, Some(3)), ("b", LATER, Some(5))];
        assert_eq!(planned(Program::Nccl, &ports).as_deref(), Some("NCCL_IB_GID_INDEX=-1"));
        assert_eq!(planned(Program::Ucx, &ports).as_deref(), Some("UCX_IB_GID_INDEX=auto"));
        let ports =
            [("a", IPV6, Some(3)), ("b", &["1 0 fe80::1 v2 e", "1 1 fd00::2 v2 e"], Some(1))];
        assert_eq!(
            planned(Program::Nccl, &ports).as_deref(),
            Some("NCCL_IB_GID_INDEX=-1 NCCL_IB_ADDR_FAMILY=AF_INET6")
        );
    }

    #[test]
    fn an_address_range_where_its_own_choice_is_wrong() {
        let ports = [("a", DUAL, Some(3)), ("b", VLAN, Some(5))];
        assert_eq!(
            planned(Program::Nccl, &ports).as_deref(),
            Some("NCCL_IB_GID_INDEX=-1 NCCL_IB_ADDR_RANGE=10.0.0.0/30")
        );
        assert_eq!(
            planned(Program::Ucx, &ports).as_deref(),
            Some("UCX_IB_GID_INDEX=auto UCX_IB_ROCE_SUBNETS=10.0.0.0/30")
        );
    }

    #[test]
    fn a_list_of_devices_where_a_port_is_not_wanted() {
        let ports = [("a", DUAL, Some(3)), ("b", DUAL, None)];
        assert_eq!(
            planned(Program::Nccl, &ports).as_deref(),
            Some("NCCL_IB_HCA==a:1 NCCL_IB_GID_INDEX=3")
        );
        assert_eq!(
            planned(Program::Ucx, &ports).as_deref(),
            Some("UCX_NET_DEVICES=a:1 UCX_IB_GID_INDEX=3")
        );
        // The same name is wanted on one host and not on another: no list can say that.
        let ports = [("a", DUAL, Some(3)), ("a", DUAL, None)];
        assert_eq!(planned(Program::Nccl, &ports), None);
    }

    #[test]
    fn no_more_ports_than_there_is_room_for() {
        const NAMES: [&str; 33] = [
            "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q",
            "r", "s", "t", "u", "v", "w", "x", "y", "z", "A", "B", "C", "D", "E", "F", "G",
        ];
        let all = NAMES.map(|name| (name, DUAL, Some(3)));
        assert_eq!(planned(Program::Nccl, &all), None);
        assert_eq!(planned(Program::Nccl, &all[1..]).as_deref(), Some("NCCL_IB_GID_INDEX=3"));
        assert_eq!(planned(Program::Ucx, &all).as_deref(), Some("UCX_IB_GID_INDEX=3"));
        let mut some = all;
        some[0].2 = None;
        let list = NAMES[1..].join(":1,");
        let expected = format!("NCCL_IB_HCA=={list}:1 NCCL_IB_GID_INDEX=3");
        assert_eq!(planned(Program::Nccl, &some), Some(expected));
    }

    #[test]
    fn a_list_of_devices_where_a_port_is_not_known() {
        let ports = [("a", DUAL, Some(3)), ("b", DUAL, Some(3))];
        assert_eq!(
            planned_beside(true, Program::Nccl, &ports).as_deref(),
            Some("NCCL_IB_HCA==a:1,b:1 NCCL_IB_GID_INDEX=3")
        );
    }

    #[test]
    fn nothing_is_wanted_of_no_port() {
        for program in [Program::Nccl, Program::Nvshmem, Program::Ucx] {
            assert_eq!(planned(program, &[]), None);
            assert_eq!(planned(program, &[("a", DUAL, None)]), None);
            assert_eq!(planned_beside(true, program, &[]), None);
        }
    }

    #[test]
    fn a_name_that_would_mean_something_else_is_in_no_list() {
        for odd in ["", "a,b", "^a", "=a", "a[0-1]", "a b", "a:1"] {
            for program in [Program::Nccl, Program::Nvshmem, Program::Ucx] {
                assert_eq!(
                    planned(program, &[(odd, DUAL, Some(3)), ("b", DUAL, None)]),
                    None,
                    "{odd:?}"
                );
            }
        }
    }

    #[test]
    fn what_the_kernel_hands_to_no_program_is_no_plan() {
        let rows = |n: u32| {
            let [.., a, b] = n.to_be_bytes();
            vec![
                "1 0 fe80::1 v1 e".to_owned(),
                format!("1 3 ::ffff:10.{}.{a}.{b} v2 e.7", 2 * (n % 2) + 1),
                format!("1 {} ::ffff:10.{}.{a}.{b} v2 e", 5 + n % 2, 2 * (n % 2)),
            ]
        };
        let planned = |count: u32| {
            let rows: Vec<Vec<String>> = (0..count).map(rows).collect();
            let rows: Vec<Vec<&str>> =
                rows.iter().map(|rows| rows.iter().map(String::as_str).collect()).collect();
            let ports: Vec<_> = (0u32..)
                .zip(&rows)
                .map(|(n, rows)| ("a", rows.as_slice(), Some(5 + n % 2)))
                .collect();
            planned(Program::Ucx, &ports)
        };
        assert!(planned(1000).unwrap().contains("UCX_IB_ROCE_SUBNETS=10.0.0.0/32,10.2.0.1/32,"));
        assert_eq!(planned(20_000), None);
    }

    #[test]
    fn nothing_may_be_right() {
        // UCX skips a port with an empty slot 0 unless an index is set, and the indices differ.
        let ports = [("a", POD, Some(7)), ("b", LATER, Some(5))];
        assert_eq!(planned(Program::Ucx, &ports), None);
        assert_eq!(planned(Program::Nccl, &ports).as_deref(), Some("NCCL_IB_GID_INDEX=-1"));
        let mixed = [("a", DUAL, Some(3)), ("b", IPV6, Some(3))];
        assert_eq!(planned(Program::Nccl, &mixed).as_deref(), Some("NCCL_IB_GID_INDEX=3"));
    }

    #[test]
    fn covering_networks() {
        let cover = |list: &[&str]| {
            let list: Vec<IpAddr> = list.iter().map(|text| text.parse().unwrap()).collect();
            let family = if list[0].is_ipv4() { Family::V4 } else { Family::V6 };
            covering(&list, family).unwrap().to_string()
        };
        assert_eq!(cover(&["10.0.0.1"]), "10.0.0.1/32");
        assert_eq!(cover(&["10.0.0.1", "10.0.1.1"]), "10.0.0.0/23");
        assert_eq!(cover(&["10.0.0.1", "192.168.0.1"]), "0.0.0.0/0");
        assert_eq!(cover(&["fd00::1"]), "fd00::1/128");
        assert_eq!(cover(&["fd00::1", "fe00::1"]), "fc00::/6");
    }
}
