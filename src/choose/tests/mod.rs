//! The models of programs and the recommendation: what their tests share.

mod any;
mod homes;
mod lists;
mod programs;
mod recommend;
mod soft_roce;
mod vectors;

use std::net::Ipv6Addr;

use super::*;
use crate::choose::nccl::Implementation;
use crate::device::NodeType;
use crate::gid::GidType;
use crate::port::{LinkLayer, PortState};

/// The variables of an `A=1 B=2` cell.
fn variables(cell: &str) -> Vec<(String, String)> {
    let cell = cell.trim_matches('`');
    let words = cell.split(' ').filter(|word| *word != "(none)");
    let pairs = words.map(|word| word.split_once('=').unwrap());
    pairs.map(|(name, value)| (name.to_owned(), value.replace("(empty)", ""))).collect()
}

fn of<'v>(variables: &'v [(String, String)]) -> impl Fn(&str) -> Option<&'v str> {
    |name| variables.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
}

fn nccl_of(port: &Port<'_>, release: nccl::Release, set: &[(String, String)]) -> Decision {
    nccl::choose(port, &nccl::Settings::new(Implementation::Nccl(release), of(set)))
}

fn ucx_of(port: &Port<'_>, release: ucx::Release, set: &[(String, String)]) -> Decision {
    ucx::choose(port, &ucx::Settings::new(release, of(set)))
}

/// An outcome in the words of the vectors.
fn words(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Taken(index) => index.to_string(),
        Outcome::Empty(index) => format!("{index} (empty slot)"),
        Outcome::Outside(index) => format!("{index}, then error"),
        Outcome::Fails(
            Why::UnreadableType(_) | Why::BadValue("NCCL_IB_ROUTABLE_FLID_GID_INDEX"),
        ) => "error".to_owned(),
        Outcome::Fails(_) => "interface fails".to_owned(),
        Outcome::Ignored(Why::OutsideFirst(_)) => "port ignored (error logged)".to_owned(),
        Outcome::Ignored(_) => "port ignored".to_owned(),
        Outcome::ByLid => "n/a".to_owned(),
    }
}

pub(super) fn row(line: &str) -> Row<'static> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let gid: Ipv6Addr = words[2].parse().unwrap();
    Row {
        index: words[1].parse().unwrap(),
        gid: gid.into(),
        gid_type: match words[3] {
            "v1" => GidType::ROCE_V1,
            "v2" => GidType::ROCE_V2,
            "ib" => GidType::IB,
            other => panic!("{other}"),
        },
        type_is_hidden: line.contains("EINVAL"),
        has_address_handle: true,
        may_lead_elsewhere: false,
        is_heard: Some(true),
        home: if line.contains("(host)") { Home::Foreign } else { Home::None },
    }
}

/// An interface that may be one here, which is up.
const fn unproven(name: Option<&'static str>, is_named: bool) -> Home<'static> {
    Home::Unproven { name, is_named, is_up: true, unfit: None }
}

pub(super) fn port(head: &str, rows: Vec<Row<'static>>) -> Port<'static> {
    let words: Vec<&str> = head.split_whitespace().collect();
    let is_infiniband = words[3] == "InfiniBand";
    Port {
        device: "mlx5_0",
        node_type: NodeType::CA,
        driver: None,
        number: 1,
        place: None,
        is_found: true,
        state: PortState::ACTIVE,
        link_layer: if is_infiniband { LinkLayer::INFINIBAND } else { LinkLayer::ETHERNET },
        gid_tbl_len: words[5].parse().unwrap(),
        has_types: true,
        assumes_types: false,
        rows,
    }
}
