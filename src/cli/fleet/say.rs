//! What is found in a fleet, in sentences.

use std::fmt::Write as _;

use uverbs::fleet::{
    Chooser, Difference, Doubt, Duplicate, End, Fabric, Field, Identity, Obstacle, Site, Trouble,
    Used, Why,
};

use crate::hosts::some;
use crate::text::{count, thousands};

/// How many differences of a group are shown.
const MOST: usize = 3;

/// Differences, most telling first: `firmware: 28.1, most have 28.2`. Where a column of the table has the ports, they are
/// not named again.
pub(super) fn differences(list: &[Difference], ports: &[String], hosts: usize) -> String {
    let shown = list.iter().take(MOST).map(|own| difference(own, ports, hosts));
    let mut texts: Vec<String> = shown.collect();
    if let Some(more @ 1..) = list.len().checked_sub(MOST) {
        texts.push(format!("{more} more"));
    }
    texts.join("; ")
}

fn difference(own: &Difference, ports: &[String], hosts: usize) -> String {
    let who = if 2 * own.count > hosts {
        "most have".to_owned()
    } else {
        format!("{} {}", count(own.count, "host"), if own.count == 1 { "has" } else { "have" })
    };
    let value = |own: &Option<String>| own.clone().unwrap_or_else(|| "none".to_owned());
    let (seen, usual) = (value(&own.seen), value(&own.usual));
    // A variable may be empty, or have any value.
    let set = |own: &Option<String>, unset: &str| {
        own.as_ref().map_or_else(
            || unset.to_owned(),
            |own| format!("\"{}\"", own.replace('\\', "\\\\").replace('"', "\\\"")),
        )
    };
    let places = some(&own.places);
    match own.field {
        Field::Present if own.seen.is_some() => format!("additional: {places}, {who} none"),
        Field::Present => format!("missing: {places}, {who} it"),
        Field::Setting => {
            let (seen, usual) = (set(&own.seen, "not set"), set(&own.usual, "it not set"));
            format!("{places}: {seen}, {who} {usual}")
        }
        field => {
            let is_named = own.places.is_empty() || own.places == ports;
            let places = if is_named { String::new() } else { places + " " };
            format!("{places}{}: {seen}, {who} {usual}", field.name())
        }
    }
}

/// The devices and ports of differences.
pub(super) fn ports(list: &[Difference]) -> Vec<String> {
    let own = list.iter().filter(|own| own.field != Field::Setting);
    let mut all: Vec<String> = own.flat_map(|own| own.places.iter().cloned()).collect();
    all.sort();
    all.dedup();
    all
}

/// Why ports do not meet, or may not.
pub(super) fn trouble(own: &Trouble, names: &[String]) -> String {
    let mut texts = Vec::new();
    let (end, other) = (&own.ends.0, own.ends.1.as_ref());
    match &own.why {
        Why::Cannot(list) => texts.extend(list.iter().map(|what| obstacle(*what, end, other))),
        Why::Unknown(list) => texts.extend(list.iter().map(|what| doubt(*what, end, other))),
        Why::Alone => {
            texts.push("no other host is known to have a port to join with it".to_owned());
        }
        _ => texts.push("too many kinds of ports to compare all".to_owned()),
    }
    let mut text = texts.join("; ");
    if let Some((host, port)) = &own.at {
        let host = if own.hosts.len() > 1 { names.get(*host as usize) } else { None };
        let host = host.map(|own| format!("{own} ")).unwrap_or_default();
        text.insert_str(0, &format!("{host}{port}: "));
    }
    let is_among = own.example.is_some_and(|host| own.hosts.contains(&host));
    let is_among = is_among && own.others == own.alike;
    let example = own.example.and_then(|host| names.get(host as usize));
    if is_among {
        let _ = write!(text, " (each with {})", count(own.others, "other host"));
    } else if let (Some(example), 1..) = (example, own.others) {
        let _ = match own.others {
            1 => write!(text, " ({example})"),
            all if all == own.alike => write!(text, " ({all} hosts, as {example})"),
            // Others may have something else.
            all => write!(text, " ({example}, one of {all} hosts)"),
        };
    }
    if own.choosers.len() < Chooser::ALL.len() {
        let names = own.choosers.iter().map(|own| match own {
            Chooser::Recommended => "recommended",
            Chooser::Nccl => "NCCL",
            Chooser::Ucx => "UCX",
        });
        text.insert_str(0, &(names.collect::<Vec<_>>().join(", ") + ": "));
    }
    text
}

/// What is of this side, and what of the other one.
fn against(end: &End, other: Option<&End>, what: impl Fn(&End) -> String) -> String {
    let own = what(end);
    match other.map(what) {
        Some(other) if other != own => format!("{own} against {other}"),
        _ => own,
    }
}

fn obstacle(what: Obstacle, end: &End, other: Option<&End>) -> String {
    match what {
        Obstacle::NotActive => format!("the port is {}, not active", end.state),
        Obstacle::NoGid => "no usable GID".to_owned(),
        Obstacle::NotListed => "its list of devices leaves it no active port".to_owned(),
        Obstacle::InterfaceDown => "the interface of the GID is down".to_owned(),
        Obstacle::AddressGone => "the address of the GID is not usable on its interface".to_owned(),
        Obstacle::Fabric => against(end, other, fabric),
        Obstacle::GidType => against(end, other, gid_type),
        Obstacle::Family => against(end, other, |own| match &own.used {
            Used::Row(row) => row.family.to_string(),
            _ => "another family".to_owned(),
        }),
        Obstacle::Partition => {
            let other = other.filter(|other| other.pkeys != end.pkeys);
            let against = other.map(|other| format!(" against {}", pkeys(other)));
            let against = against.unwrap_or_default();
            format!("no common P_Key with a full member: {}{against}", pkeys(end))
        }
        Obstacle::Subnet => format!("subnet {}", against(end, other, site)),
        _ => "something else".to_owned(),
    }
}

fn doubt(what: Doubt, end: &End, other: Option<&End>) -> String {
    match what {
        Doubt::PortUnread => "the port could not be read".to_owned(),
        Doubt::GidUnread => "which GID is used is not known".to_owned(),
        Doubt::TypeUnread => "the type of the GID that is used is not known".to_owned(),
        Doubt::FabricUnread => "whether it is InfiniBand or Omni-Path is not known".to_owned(),
        Doubt::PKeysUnread => "P_Keys were not read".to_owned(),
        Doubt::NetworkUnread => "a network is not known".to_owned(),
        Doubt::InterfaceUnread => "whether an interface is its port's own is not known".to_owned(),
        Doubt::Unproven => "an interface is not proven to be the host's".to_owned(),
        Doubt::Address => {
            "RDMA may reach nobody from an address (uverbs choose --explain says why)".to_owned()
        }
        Doubt::NoRule => format!("{} is not connected by GIDs", fabric(end)),
        Doubt::Interface => {
            let text = against(end, other, |own| match &own.used {
                Used::Row(row) => {
                    let upper = row.upper.as_ref().map(ToString::to_string);
                    upper.unwrap_or_else(|| "the port's own interface".to_owned())
                }
                _ => "another interface".to_owned(),
            });
            format!("perhaps not one VLAN: {text}")
        }
        Doubt::Link => {
            let text = against(end, other, |own| format!("{} {}", gid_type(own), site(own)));
            format!("only on one link: {text}")
        }
        Doubt::Networks => {
            format!("only if a router joins them: {}", against(end, other, site))
        }
        Doubt::Path => {
            format!("it takes one subnet for two: {}", against(end, other, site))
        }
        Doubt::Reach => {
            format!("it is set to reach only a part of the networks: {}", against(end, other, site))
        }
        Doubt::Unused => format!("the port is {}, not active, and may be in use", end.state),
        _ => "something else".to_owned(),
    }
}

fn fabric(end: &End) -> String {
    end.fabric.map_or_else(|| "not known".to_owned(), |own: Fabric| own.to_string())
}

fn gid_type(end: &End) -> String {
    match &end.used {
        Used::Row(row) => row.gid_type.map_or_else(|| "?".to_owned(), |own| own.to_string()),
        _ => "?".to_owned(),
    }
}

fn pkeys(end: &End) -> String {
    let keys: Vec<String> = end.pkeys.iter().flatten().map(ToString::to_string).collect();
    if keys.is_empty() { "none".to_owned() } else { some(&keys) }
}

fn site(end: &End) -> String {
    let unknown = || "?".to_owned();
    match &end.used {
        Used::Row(row) => match row.site {
            Site::Network(network) => network.to_string(),
            Site::Link => format!("link-local {}", row.family),
            _ => unknown(),
        },
        Used::Subnet(prefix) => {
            let subnet = prefix.map_or_else(unknown, |own| format!("{own:#018x}"));
            match end.compared.map(|own| own.prefix).filter(|own| Some(*own) != *prefix) {
                Some(own) => format!("{subnet} by a GID of {own:#018x}"),
                None => subnet,
            }
        }
        _ => unknown(),
    }
}

/// What several hosts have.
pub(super) fn duplicate(own: &Duplicate) -> String {
    let same = own.same.iter().map(|(identity, number, first)| {
        let what = match identity {
            Identity::NodeGuid => "node GUID",
            Identity::PortGuid => "port GUID",
            Identity::Mac => "MAC address",
            Identity::Lid => "LID",
            _ => "address",
        };
        match number {
            1 => format!("{what} {first}"),
            many => {
                let plural = if what.ends_with('s') { "es" } else { "s" };
                format!("{} {what}{plural} from {first} on", thousands(*many))
            }
        }
    });
    format!("the same {}", same.collect::<Vec<_>>().join(", "))
}
