//! Which GIDs are shown: by type, address and interface.
//!
//! A device that can have no such GID is not opened. Only its protocol is known then, by RDMA netlink. An
//! unknown protocol excludes nothing.

use std::net::IpAddr;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum, ValueHint};
use ipnet::IpNet;
use uverbs::choose::Network;
use uverbs::choose::{Family, Wish};
use uverbs::device::Device;
use uverbs::gid::{GidRecord, GidType};

use crate::gid_row::short_type;

/// Which GIDs are meant.
#[derive(Debug, Args)]
pub(crate) struct FilterArgs {
    /// Only GIDs of this type
    #[arg(long = "type", value_name = "TYPE", help_heading = "Filters")]
    pub(crate) gid_type: Option<TypeChoice>,
    /// Only GIDs of this network interface
    // A shell's variable that is empty is a mistake, not the name of an interface that is not there.
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new(), value_hint = ValueHint::Other, help_heading = "Filters")]
    pub(crate) netdev: Option<String>,
    /// Only GIDs of this address; an IPv4 address means the GID that RoCE makes of it
    #[arg(long, value_name = "ADDR", value_hint = ValueHint::Other, help_heading = "Filters")]
    pub(crate) ip: Option<IpAddr>,
    /// Only GIDs of addresses in this network, as 10.0.0.0/8
    #[arg(long, value_name = "NET", value_parser = network, value_hint = ValueHint::Other, help_heading = "Filters")]
    pub(crate) cidr: Option<IpNet>,
}

impl FilterArgs {
    /// The networks that must all hold a GID.
    pub(crate) fn networks(&self) -> impl Iterator<Item = Network> {
        let networks = self.ip.map(IpNet::from).into_iter().chain(self.cidr);
        networks.map(|net| Network { address: net.addr(), bits: net.prefix_len() })
    }

    /// The options that are given, as they are written: `--type v2 --netdev eth0`.
    pub(crate) fn words(&self) -> String {
        let gid_type = self.gid_type.map(|own| short_type(own.into()));
        let words = [
            gid_type.map(|own| format!("--type {own}")),
            self.netdev.as_ref().map(|own| format!("--netdev {own}")),
            self.ip.map(|own| format!("--ip {own}")),
            self.cidr.map(|own| format!("--cidr {own}")),
        ];
        words.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    /// The same with the family.
    pub(crate) fn words_with(&self, family: Option<FamilyChoice>) -> String {
        let family = match family {
            Some(FamilyChoice::Ipv4) => "--family ipv4",
            Some(FamilyChoice::Ipv6) => "--family ipv6",
            None => "",
        };
        [self.words().as_str(), family].join(" ").trim().to_owned()
    }

    /// A GID that is looked for: one that is usable and has what was asked for.
    pub(crate) fn usable_gid(&self, family: Option<FamilyChoice>) -> String {
        match self.words_with(family).as_str() {
            "" => "a usable GID".to_owned(),
            words => format!("a usable GID that matches {words}"),
        }
    }

    pub(crate) fn wish(&self, family: Option<FamilyChoice>) -> Wish {
        let mut wish = Wish::default();
        wish.gid_type = self.gid_type.map(GidType::from);
        wish.family = family.map(|family| match family {
            FamilyChoice::Ipv4 => Family::V4,
            FamilyChoice::Ipv6 => Family::V6,
        });
        wish.netdev.clone_from(&self.netdev);
        wish.networks = self.networks().collect();
        wish
    }
}

/// Reads a network. An address without the length of a prefix is none.
fn network(text: &str) -> Result<IpNet, String> {
    text.parse().map_err(|_| match text.parse() {
        Ok(IpAddr::V4(own)) => {
            format!("the prefix length is missing, as in {own}/24; --ip {own} is one address")
        }
        Ok(IpAddr::V6(own)) => {
            format!("the prefix length is missing, as in {own}/64; --ip {own} is one address")
        }
        Err(_) => "expected an address and a prefix length, as 10.0.0.0/8".to_owned(),
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FamilyChoice {
    /// IPv4
    Ipv4,
    /// IPv6
    Ipv6,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TypeChoice {
    /// InfiniBand, iWARP and others that are not RoCE
    Ib,
    /// RoCE v1
    #[value(alias = "roce_v1")]
    V1,
    /// RoCE v2
    #[value(alias = "roce_v2")]
    V2,
}

impl From<TypeChoice> for GidType {
    fn from(choice: TypeChoice) -> Self {
        match choice {
            TypeChoice::Ib => Self::IB,
            TypeChoice::V1 => Self::ROCE_V1,
            TypeChoice::V2 => Self::ROCE_V2,
        }
    }
}

/// What a filter says of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Match {
    Passes,
    /// It has the address, and may have the type.
    TypeUnknown,
    Fails,
}

#[derive(Debug)]
pub(crate) struct Filter<'a> {
    gid_type: Option<GidType>,
    netdev: Option<&'a str>,
    /// All of them must hold the GID.
    networks: Vec<Network>,
}

impl<'a> Filter<'a> {
    pub(crate) fn new(args: &'a FilterArgs) -> Self {
        Self {
            gid_type: args.gid_type.map(GidType::from),
            netdev: args.netdev.as_deref(),
            networks: args.networks().collect(),
        }
    }

    /// Whether no GID of the device can pass.
    pub(crate) fn excludes(&self, device: &Device) -> bool {
        let Some(protocol) = device.protocol.as_deref() else { return false };
        // The kernel gives the first port's protocol only. An mlx4 device may have one of InfiniBand and one
        // of RoCE.
        if device.ports().count() > 1 {
            return false;
        }
        let by_type = match self.gid_type {
            Some(GidType::ROCE_V1 | GidType::ROCE_V2) => {
                matches!(protocol, "ib" | "iw" | "opa" | "usnic")
            }
            Some(GidType::IB) => protocol == "roce",
            _ => false,
        };
        let by_netdev = self.netdev.is_some() && matches!(protocol, "ib" | "opa");
        // Only RoCE makes GIDs of IPv4 addresses.
        let by_network = self.networks.iter().any(|network| network.address.is_ipv4())
            && matches!(protocol, "ib" | "iw" | "opa");
        by_type || by_netdev || by_network
    }

    /// Whether a row has the type and the address.
    pub(crate) fn verdict(&self, record: &GidRecord) -> Match {
        let GidRecord { entry, type_is_unread, .. } = record;
        if !self.networks.iter().all(|network| network.holds(entry.gid())) {
            return Match::Fails;
        }
        match self.gid_type {
            Some(GidType::ROCE_V1 | GidType::ROCE_V2) if *type_is_unread => Match::TypeUnknown,
            Some(gid_type) if gid_type != entry.gid_type() => Match::Fails,
            _ => Match::Passes,
        }
    }

    /// Whether an entry's interface passes.
    pub(crate) fn admits_netdev(&self, netdev: Option<&str>) -> bool {
        self.netdev.is_none_or(|name| netdev == Some(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::{Cli, Command};
    use crate::testing::host;
    use clap::Parser;

    /// Protocols whose devices a filter leaves unopened.
    fn excluded(options: &[&str]) -> Vec<&'static str> {
        excluded_with(1, options)
    }

    /// The same, of devices with so many ports.
    fn excluded_with(ports: u32, options: &[&str]) -> Vec<&'static str> {
        let cli = Cli::try_parse_from([&["uverbs", "gids"], options].concat()).unwrap();
        let Command::Gids(args) = &cli.command else { panic!("gids is a command") };
        let filter = Filter::new(&args.filter);
        let (_folder, mut host) = host();
        let mut device = host.device("rxe0").unwrap();
        device.port_count = ports;
        assert!(!filter.excludes(&device), "nothing is known of its protocol");
        let protocols = ["ib", "roce", "iw", "opa", "usnic", "new"].into_iter();
        protocols
            .filter(|protocol| {
                device.protocol = Some((*protocol).to_owned());
                filter.excludes(&device)
            })
            .collect()
    }

    #[test]
    fn what_cannot_match_is_not_opened() {
        assert_eq!(excluded(&[]), [""; 0]);
        assert_eq!(excluded(&["--type", "v1"]), ["ib", "iw", "opa", "usnic"]);
        assert_eq!(excluded(&["--type", "v2"]), ["ib", "iw", "opa", "usnic"]);
        assert_eq!(excluded(&["--type", "ib"]), ["roce"]);
        assert_eq!(excluded(&["--netdev", "eth0"]), ["ib", "opa"]);
        assert_eq!(excluded(&["--ip", "10.0.0.1"]), ["ib", "iw", "opa"]);
        assert_eq!(excluded(&["--cidr", "10.0.0.0/8"]), ["ib", "iw", "opa"]);
        assert_eq!(excluded(&["--ip", "fe80::1"]), [""; 0]);
        for options in
            [["--type", "v2"], ["--type", "ib"], ["--netdev", "eth0"], ["--ip", "10.0.0.1"]]
        {
            assert_eq!(excluded_with(2, &options), [""; 0], "the second port may be another's");
        }
    }
}
