//! Random worlds: interfaces of all kinds in several namespaces, whose indices and addresses collide on
//! purpose. No row may get the name of another row's interface.
//!
//! Commands run one at a time, and what rows each adds is recorded: so it is known whose each row is,
//! without asking what is tested. The kernel does this work in one queue; when a row of an interface
//! apart has come or gone, all before it is done.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::IpAddr;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use uverbs::context::Context;
use uverbs::device::Device;
use uverbs::host::Host;
use uverbs::host::{GidTable, Preference, Reader};
use uverbs::netdev::Interface;
use uverbs_vm::{Worlds, worlds};

use crate::lab::ip::Ip;
use crate::lab::{Aside, Namespace, run, undo, wait_until};
use crate::supervisor::PATH;

/// How many namespaces there are, ours among them, which is the first.
const NAMESPACES: usize = 4;
/// Indices that are given on purpose, in every namespace.
const INDICES: std::ops::Range<u32> = 60..64;
/// Addresses that are given on purpose. Those of one peer are of point-to-point links.
const ADDRESSES: &[&str] = &[
    "10.50.0.1/24",
    "10.50.0.2/24",
    "10.50.0.3/24",
    "10.50.0.3/16",
    "10.50.0.9 peer 10.50.0.1/32",
    "fd00::1/64",
    "fd00::2/64",
    "fd00::7 peer fd00::1/64",
    "fe80::11:22ff:fe33:4400/64",
    "fe80::11:22ff:fe33:4401/64",
];
/// The interfaces that stay: their names, the places of their namespaces, their RDMA devices.
const BASES: &[(&str, usize, Option<&str>)] = &[
    ("d0", 0, Some("rxe0")),
    ("d1", 1, Some("rxe1")),
    ("d2", 0, Some("rxe2")),
    ("e0", 0, None),
    ("e1", 1, None),
];
/// The interface apart, and its device.
const APART: (&str, &str) = ("apart", "rxe9");

/// Numbers that look random: splitmix64.
#[derive(Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).unwrap_or(0)
    }

    pub(super) fn one<'l, T>(&mut self, list: &'l [T]) -> &'l T {
        &list[self.below(list.len())]
    }

    /// Whether it is so in one of `n` cases.
    pub(super) fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// A row: its device and slot.
type Slot = (String, u32);
/// An interface: the place of its namespace, and its name.
type Owner = (usize, String);

/// An interface that exists.
#[derive(Clone, Debug)]
struct Link {
    name: String,
    place: usize,
    kind: &'static str,
    /// The index that it was given on purpose.
    index: Option<u32>,
}

/// The machine with what stays from world to world.
struct Lab {
    namespaces: Vec<Namespace>,
    ips: Vec<Ip>,
    devices: Vec<Device>,
    contexts: Vec<Context>,
    apart: Option<Context>,
    /// Whether the interface apart has its second address.
    has_marker: bool,
    /// Names are given once.
    named: u32,
}

impl Lab {
    fn new() -> Result<Self> {
        let mut namespaces = Vec::new();
        let mut ips = vec![Ip::new(None)?];
        for name in ["red", "green", "blue"] {
            let namespace = Namespace::new(name)?;
            ips.push(Ip::new(Some(&namespace))?);
            namespaces.push(namespace);
        }
        for (number, (name, place, device)) in BASES.iter().enumerate() {
            let index = 20 + number;
            let mac = format!("02:11:22:33:44:{number:02x}");
            must(
                &mut ips[*place],
                &format!("link add {name} index {index} address {mac} type dummy"),
            )?;
            must(&mut ips[*place], &format!("link set {name} addrgenmode none"))?;
            must(&mut ips[*place], &format!("link set {name} up"))?;
            if let Some(device) = device {
                let add = ["rdma", "link", "add", device, "type", "rxe", "netdev", name];
                match namespaces.get(place.wrapping_sub(1)) {
                    Some(namespace) => namespace.run(&add)?,
                    None => run(&add)?,
                };
            }
        }
        let (name, device) = APART;
        must(&mut ips[0], &format!("link add {name} type dummy"))?;
        must(&mut ips[0], &format!("link set {name} addrgenmode none"))?;
        must(&mut ips[0], &format!("link set {name} up"))?;
        run(&["rdma", "link", "add", device, "type", "rxe", "netdev", name])?;
        let mut host = Host::new();
        let mut devices = host.devices()?;
        devices.retain(|it| it.name != device);
        let contexts = devices.iter().map(Context::open).collect::<Result<_, _>>()?;
        let apart = Some(host.open(device)?);
        Ok(Self { namespaces, ips, devices, contexts, apart, has_marker: false, named: 0 })
    }

    /// Waits until the kernel has done all that the commands so far have made it do.
    fn settle(&mut self) -> Result<()> {
        let verb = if self.has_marker { "del" } else { "add" };
        must(&mut self.ips[0], &format!("address {verb} 10.255.0.1/24 dev {}", APART.0))?;
        self.has_marker = !self.has_marker;
        let count = 1 + usize::from(self.has_marker);
        let apart = &self.apart;
        wait_until("the row apart has come or gone", || {
            apart.iter().any(|it| it.query_gid_table().is_ok_and(|table| table.len() == count))
        })
    }

    /// The rows that there are.
    fn slots(&self) -> Result<BTreeSet<(Slot, String)>> {
        let mut slots = BTreeSet::new();
        for (device, context) in self.devices.iter().zip(&self.contexts) {
            for entry in context.query_gid_table()? {
                slots.insert(((device.name.clone(), entry.index()), format!("{entry:?}")));
            }
        }
        Ok(slots)
    }

    fn name(&mut self, kind: &str) -> String {
        self.named += 1;
        format!("{}{}", &kind[..kind.len().min(5)], self.named)
    }

    /// Calls a function in a namespace.
    fn within<T: Send>(&self, place: usize, what: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        within(&self.namespaces, place, what)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // Up to 6.12 a device waits for its contexts.
        self.contexts.clear();
        self.apart = None;
        for device in BASES.iter().filter_map(|(.., device)| *device).chain([APART.1]) {
            undo(&["rdma", "link", "delete", device]);
        }
        for (name, ..) in BASES.iter().filter(|(_, place, _)| *place == 0) {
            undo(&["ip", "link", "delete", name]);
        }
        undo(&["ip", "link", "delete", APART.0]);
    }
}

fn within<T: Send>(
    namespaces: &[Namespace],
    place: usize,
    what: impl FnOnce() -> Result<T> + Send,
) -> Result<T> {
    match namespaces.get(place.wrapping_sub(1)) {
        Some(namespace) => namespace.call(what),
        None => what(),
    }
}

fn must(ip: &mut Ip, command: &str) -> Result<()> {
    ensure!(ip.run(command)?, "`ip {command}` failed");
    Ok(())
}

/// One world, while it exists.
struct World<'l> {
    lab: &'l mut Lab,
    random: Random,
    links: Vec<Link>,
    /// The indices that were given on purpose, in each namespace.
    taken: BTreeSet<(usize, u32)>,
    /// What was made a member of a bridge or a bond.
    members: BTreeSet<Owner>,
    /// Whose each row is.
    owners: BTreeMap<Slot, Owner>,
    before: BTreeSet<(Slot, String)>,
    log: String,
}

impl<'l> World<'l> {
    fn new(lab: &'l mut Lab, seed: u64) -> Result<Self> {
        lab.settle()?;
        let before = lab.slots()?;
        // What there is now are the GIDs of the bases' MAC addresses.
        let base = |device: &str| BASES.iter().find(|(.., own)| *own == Some(device));
        let mut owners = BTreeMap::new();
        for ((device, slot), row) in &before {
            let (name, place, _) = base(device).context("a device of no base")?;
            ensure!(*slot == 0, "{device} has {row} before the world begins");
            owners.insert((device.clone(), *slot), (*place, (*name).to_owned()));
        }
        let link = |(name, place, _): &(&str, usize, Option<&str>)| Link {
            name: (*name).to_owned(),
            place: *place,
            kind: "dummy",
            index: None,
        };
        let links = BASES.iter().map(link).collect();
        let (random, taken, members) = (Random(seed), BTreeSet::new(), BTreeSet::new());
        Ok(Self { lab, random, links, taken, members, owners, before, log: String::new() })
    }

    /// Runs a command in a namespace. The rows that come by it are `owner`'s.
    fn command(&mut self, place: usize, command: &str, owner: &Owner) -> Result<bool> {
        let succeeded = self.lab.ips[place].run(command)?;
        let failed = if succeeded { "" } else { "   (failed)" };
        let _ = writeln!(self.log, "{place}: ip {command}{failed}");
        if succeeded {
            self.lab.settle()?;
            let now = self.lab.slots()?;
            for (slot, row) in self.before.difference(&now) {
                self.owners.remove(slot);
                let _ = writeln!(self.log, "     {slot:?} is gone: {row}");
            }
            for (slot, row) in now.difference(&self.before) {
                self.owners.insert(slot.clone(), owner.clone());
                let _ = writeln!(self.log, "     {slot:?} is {owner:?}'s: {row}");
            }
            self.before = now;
        }
        Ok(succeeded)
    }

    /// An index for a namespace that is not taken there, and is likely to be in another.
    fn index(&mut self, place: usize) -> Option<u32> {
        let given: Vec<u32> = if self.random.once_in(4) {
            // That of a base elsewhere.
            (20..).take(BASES.len()).collect()
        } else {
            INDICES.collect()
        };
        let index = *self.random.one(&given);
        let is_base = BASES.iter().zip(20..).any(|(base, own)| (base.1, own) == (place, index));
        (!is_base && self.taken.insert((place, index))).then_some(index)
    }

    /// Adds an interface.
    fn grow(&mut self) -> Result<()> {
        const KINDS: &[&str] = &[
            "vlan", "vlan", "vlan", "macvlan", "macvlan", "ipvlan", "macsec", "bridge", "bond",
            "veth", "gre", "ipip", "sit", "vti", "ip6tnl", "ip6gre", "vxlan", "geneve",
        ];
        let kind = *self.random.one(KINDS);
        // Half of them directly on a base: there collisions are.
        let lowers = if self.random.once_in(2) { BASES.len() } else { self.links.len() };
        let lower = self.random.one(&self.links[..lowers]).clone();
        let name = self.lab.name(kind);
        let number = self.lab.named;
        let (place, low) = (lower.place, &lower.name);
        let far = format!("10.200.{}.{}", number / 250, number % 250 + 1);
        let far6 = format!("fd99::{number:x}");
        let is_upper = matches!(kind, "vlan" | "macvlan" | "ipvlan" | "macsec");
        // An upper interface may be made in another namespace at once.
        let home =
            if is_upper && self.random.once_in(2) { self.random.below(NAMESPACES) } else { place };
        let netns = match self.lab.namespaces.get(home.wrapping_sub(1)) {
            _ if home == place => String::new(),
            Some(namespace) => format!("netns {} ", namespace.exec()[3]),
            // Ours is that of the first process.
            None => "netns 1 ".to_owned(),
        };
        let given = self.index(home);
        let index = given.map(|index| format!("index {index} ")).unwrap_or_default();
        let id = number % 4000 + 1;
        let what = match kind {
            "vlan" => format!("link {low} name {name} {index}{netns}type vlan id {id}"),
            "macvlan" => format!("link {low} name {name} {index}{netns}type macvlan mode bridge"),
            "ipvlan" => format!("link {low} name {name} {index}{netns}type ipvlan mode l2"),
            "macsec" => format!("link {low} name {name} {index}{netns}type macsec port {id}"),
            "bridge" => format!("{name} {index}type bridge"),
            "bond" => {
                let mode = self.random.one(&["active-backup", "balance-rr"]);
                format!("{name} {index}type bond mode {mode} miimon 0")
            }
            "veth" => format!("{name} {index}type veth peer name {name}p"),
            "gre" | "ipip" | "sit" => {
                format!("{name} {index}type {kind} local 10.50.0.1 remote {far} dev {low}")
            }
            "vti" => format!(
                "{name} {index}type vti local 10.50.0.1 remote {far} key {number} dev {low}"
            ),
            "ip6tnl" => format!("{name} {index}type ip6tnl local fd00::1 remote {far6} dev {low}"),
            "ip6gre" => format!("{name} {index}type ip6gre local fd00::1 remote {far6} dev {low}"),
            "vxlan" => {
                format!("{name} {index}type vxlan id {number} dstport {} dev {low}", 5000 + id)
            }
            _ => format!("{name} {index}type geneve id {number} remote {far}"),
        };
        let owner = (home, name.clone());
        if !self.command(place, &format!("link add {what}"), &owner)? {
            return Ok(());
        }
        self.links.push(Link { name: name.clone(), place: home, kind, index: given });
        // Not every kind has addresses of its own making.
        self.command(home, &format!("link set {name} addrgenmode none"), &owner)?;
        if matches!(kind, "bridge" | "bond") {
            for _ in 0..=self.random.below(3) {
                let member = self.random.one(&self.links.clone()).clone();
                if member.place == home && member.name != name {
                    self.join(&member, &owner)?;
                }
            }
        }
        self.command(home, &format!("link set {name} up"), &owner).map(drop)
    }

    /// Makes an interface a member of a bridge or a bond.
    fn join(&mut self, member: &Link, owner: &Owner) -> Result<()> {
        let (place, name) = owner;
        let own = (*place, member.name.clone());
        self.command(*place, &format!("link set {} down", member.name), owner)?;
        // An interface that leaves a bond has rows of its own again.
        if !self.members.insert(own.clone()) {
            self.command(*place, &format!("link set {} nomaster", member.name), &own)?;
        }
        self.command(*place, &format!("link set {} master {name}", member.name), owner)?;
        self.command(*place, &format!("link set {} up", member.name), owner).map(drop)
    }

    /// Gives an interface an address; often one that others have, and most often to those with an
    /// index that others have.
    fn address(&mut self) -> Result<()> {
        let chosen: Vec<Link> =
            self.links.iter().filter(|link| link.index.is_some()).cloned().collect();
        let all = self.links.clone();
        let links = if chosen.is_empty() || self.random.once_in(4) { &all } else { &chosen };
        let link = self.random.one(links).clone();
        let addresses = if self.random.once_in(2) { &ADDRESSES[..1] } else { ADDRESSES };
        let address = *self.random.one(addresses);
        let nodad = if address.contains(':') { " nodad" } else { "" };
        let command = format!("address add {address} dev {}{nodad}", link.name);
        self.command(link.place, &command, &(link.place, link.name)).map(drop)
    }

    fn take_down(self) -> Result<()> {
        let bases = BASES.len();
        for link in self.links.iter().skip(bases).rev() {
            // What was on top of another may be gone with it.
            self.lab.ips[link.place].run(&format!("link delete {}", link.name))?;
        }
        for (name, place, _) in BASES {
            must(&mut self.lab.ips[*place], &format!("address flush dev {name}"))?;
            must(&mut self.lab.ips[*place], &format!("link set {name} up"))?;
        }
        self.lab.settle()
    }
}

/// What is counted over all worlds.
#[derive(Debug, Default)]
struct Count {
    rows: u32,
    named: BTreeMap<&'static str, u32>,
    /// How many are named where the connection manager cannot be asked.
    named_without: u32,
    unnamed: BTreeMap<&'static str, u32>,
    others: u32,
    commands: u32,
    /// How often a command said that it leaves out rows that may be meant.
    doubts: u32,
    /// How often the index and the address together would have given a wrong name.
    lookalikes: u32,
    wrong: Vec<String>,
}

/// Names by one way of asking.
type Names = BTreeMap<Slot, Option<String>>;

/// The names that the library gives in the namespace that the caller is in, asked in several ways,
/// which must agree.
fn names(tables: &[GidTable]) -> Result<Names> {
    let mut host = Host::new();
    let all = host.netdevs(&tables.iter().collect::<Vec<_>>())?;
    let mut names = Names::new();
    for (table, all) in tables.iter().zip(&all) {
        let one = host.netdevs(&[table])?;
        ensure!(
            one == std::slice::from_ref(all),
            "{}: one {one:?}, all {all:?}",
            table.device().name
        );
        for (record, netdev) in all.iter() {
            let slot = (table.device().name.clone(), record.entry.index());
            names.insert(slot, netdev.map(|netdev| netdev.name.clone()));
        }
    }
    Ok(names)
}

/// What the command answers.
fn command(arguments: &[&str]) -> Result<(Value, bool)> {
    let output = Command::new("uverbs").args(arguments).env("PATH", PATH).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let document = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("uverbs {}: {} {said}", arguments.join(" "), output.status))?;
    Ok((document, output.status.success()))
}

/// The rows of a document of `gids`, `gid` or `snapshot`.
fn rows_of(document: &Value) -> Vec<(Slot, Option<String>)> {
    let row = |device: &Value, row: &Value| {
        let name = row["netdev"].as_str().or(row["netdev"]["name"].as_str()).map(str::to_owned);
        let index = row["index"].as_u64().and_then(|index| u32::try_from(index).ok());
        ((device.as_str().unwrap_or_default().to_owned(), index.unwrap_or(u32::MAX)), name)
    };
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut rows: Vec<_> =
        list(&document["gids"]).iter().map(|it| row(&it["device"], it)).collect();
    for device in list(&document["devices"]) {
        rows.extend(list(&device["gids"]).iter().map(|it| row(&device["name"], it)));
    }
    rows.retain(|((device, _), _)| device != APART.1);
    rows
}

impl World<'_> {
    fn judge(&mut self, count: &mut Count) -> Result<()> {
        let host = Host::new();
        let mut tables = Vec::new();
        let mut by_sysfs = Vec::new();
        let with_sysfs = self.random.once_in(4);
        for device in &self.lab.devices {
            let table = |preference| Reader::new(device, host.sysfs(), preference)?.gid_table();
            tables.push(table(Preference::Ioctl)?);
            if with_sysfs {
                by_sysfs.push(table(Preference::Sysfs)?);
            }
        }
        let asks_command = self.random.below(NAMESPACES);
        for place in 0..NAMESPACES {
            let ours = self.lab.within(place, || names(&tables))?;
            let without = {
                let _aside = Aside::moved("/dev/infiniband/rdma_cm")?;
                self.lab.within(place, || names(&tables))?
            };
            let interfaces = self.lab.within(place, || Ok(Host::new().interfaces()?))?;
            let interfaces = interfaces.unwrap_or_default();
            for table in &tables {
                for row in table {
                    let gid = row.entry.gid();
                    let ip = gid.ipv4().map_or(IpAddr::V6(gid.ipv6()), IpAddr::V4);
                    let alike = interfaces.iter().find(|own| {
                        Some(own.index) == row.entry.netdev_ifindex()
                            && own.addresses.iter().any(|(address, _)| *address == ip)
                    });
                    let slot = (table.device().name.clone(), row.entry.index());
                    let owner = self.owners.get(&slot);
                    count.lookalikes += u32::from(
                        alike.is_some_and(|own| owner != Some(&(place, own.name.clone()))),
                    );
                }
            }
            self.check(count, place, "the library", ours.iter());
            self.check(count, place, "without the connection manager", without.iter());
            count.named_without += u32::try_from(without.values().flatten().count())?;
            for (slot, name) in without.iter().filter(|(_, name)| name.is_some()) {
                ensure!(ours.get(slot) == Some(name), "{slot:?}: {name:?}, and asked {ours:?}");
            }
            self.count(count, place, &tables, &ours, &interfaces);
            if with_sysfs {
                let names = self.lab.within(place, || names(&by_sysfs))?;
                self.check(count, place, "sysfs", names.iter());
            }
            if place == asks_command {
                self.ask_command(count, place, &ours)?;
                self.ask_for_unnamed(count, place, &ours)?;
            }
        }
        Ok(())
    }

    /// That no name is wrong.
    fn check<'n>(
        &self,
        count: &mut Count,
        place: usize,
        way: &str,
        names: impl Iterator<Item = (&'n Slot, &'n Option<String>)>,
    ) {
        for (slot, name) in names {
            let Some(name) = name else { continue };
            let owner = self.owners.get(slot);
            if owner != Some(&(place, name.clone())) {
                count.wrong.push(format!(
                    "{slot:?} is {owner:?}'s; in namespace {place}, {way} names it {name}"
                ));
            }
        }
    }

    /// How many of the namespace's own rows are named, and why others are not.
    fn count(
        &self,
        count: &mut Count,
        place: usize,
        tables: &[GidTable],
        names: &Names,
        here: &[Interface],
    ) {
        for table in tables {
            let device = &table.device().name;
            let base = BASES.iter().find(|(.., own)| *own == Some(device.as_str()));
            let is_port_here = base.is_some_and(|(_, home, _)| *home == place);
            for record in table {
                let slot = (device.clone(), record.entry.index());
                let owner = self.owners.get(&slot);
                let Some((_, name)) = owner.filter(|(home, _)| *home == place) else {
                    count.others += u32::from(owner.is_some());
                    continue;
                };
                count.rows += 1;
                let kind =
                    self.links.iter().find(|link| link.name == *name).map_or("?", |it| it.kind);
                let same = |other: &&uverbs::host::GidRecord| {
                    other.entry.gid() == record.entry.gid()
                        && other.entry.netdev_ifindex() == record.entry.netdev_ifindex()
                };
                if names.get(&slot).is_some_and(Option::is_some) {
                    *count.named.entry(kind).or_default() += 1;
                    continue;
                }
                let gid = record.entry.gid();
                let ip = gid.ipv4().map_or(IpAddr::V6(gid.ipv6()), IpAddr::V4);
                let has_it = |own: &&Interface| own.addresses.iter().any(|(other, _)| *other == ip);
                let why = if table.iter().filter(same).count() > 1 {
                    "another row says the same"
                } else if !here.iter().any(|own| own.name == *name) {
                    "the interface is gone"
                } else if here.iter().filter(has_it).count() > 1 {
                    "several interfaces have the address"
                } else if is_port_here {
                    "what links it to the port's interface is in another namespace, or idle in a bond"
                } else {
                    "the port's own interface is in another namespace"
                };
                *count.unnamed.entry(why).or_default() += 1;
            }
        }
    }

    /// Asks for the rows of an interface that has one which is not proven to be its: the command says that
    /// it leaves one out.
    fn ask_for_unnamed(&self, count: &mut Count, place: usize, ours: &Names) -> Result<()> {
        let mut unnamed = ours.iter().filter(|(_, name)| name.is_none());
        let owned = unnamed.find_map(|(slot, _)| {
            let (home, name) = self.owners.get(slot)?;
            (*home == place).then_some((slot, name))
        });
        let Some((slot, name)) = owned else { return Ok(()) };
        let way = ["gids", "--netdev", name, "--json"];
        let (document, is_complete) = self.lab.within(place, || command(&way))?;
        ensure!(!is_complete, "{place}: --netdev {name} says nothing of {slot:?}: {document}");
        count.doubts += 1;
        Ok(())
    }

    /// Asks the command in one way, and that it says what the library says.
    fn ask_command(&mut self, count: &mut Count, place: usize, ours: &Names) -> Result<()> {
        let device = self.random.one(&["rxe0", "rxe1", "rxe2"]).to_string();
        let slots: Vec<&Slot> = ours.keys().collect();
        let (of_slot, slot) = (*self.random.one(&slots)).clone();
        let (port, slot) = (format!("{of_slot}:1"), slot.to_string());
        let mine: Vec<&Link> = self.links.iter().filter(|link| link.place == place).collect();
        let netdev =
            if mine.is_empty() { "lo".into() } else { self.random.one(&mine).name.clone() };
        let whole_port = format!("{device}:1");
        let ways: [&[&str]; 11] = [
            &["gids", "--json"],
            &["gids", &device, "--json"],
            &["gids", &whole_port, "--json"],
            &["gid", &port, &slot, "--json"],
            &["gids", "--netdev", &netdev, "--json"],
            &["gids", "--type", "v2", "--json"],
            &["gids", "--ip", "10.50.0.1", "--json"],
            &["gids", "--cidr", "fd00::/64", "--json"],
            &["gids", &device, "--source", "sysfs", "--json"],
            &["snapshot"],
            &["snapshot", "--source", "sysfs"],
        ];
        let way = *self.random.one(&ways);
        let (document, _) = self.lab.within(place, || command(way))?;
        let rows: BTreeMap<Slot, Option<String>> = rows_of(&document).into_iter().collect();
        count.commands += 1;
        let said = way.join(" ");
        self.check(count, place, &format!("`uverbs {said}`"), rows.iter());
        if !said.contains("sysfs") {
            for (slot, name) in &rows {
                ensure!(
                    ours.get(slot) == Some(name),
                    "{slot:?} in {place}: `uverbs {said}` says {name:?}, the library {:?}",
                    ours.get(slot)
                );
            }
            if said.contains("--netdev") {
                let named = ours.values().filter(|name| name.as_ref() == Some(&netdev)).count();
                ensure!(rows.len() == named, "{place}: {said}: {rows:?}, and {named} have it");
            }
        }
        Ok(())
    }
}

/// No world has a row with a wrong name, in no namespace, by no way of asking.
pub(crate) fn random_worlds() -> Result<()> {
    let Worlds { seed, count: wanted } = worlds()?;
    println!("figure: random worlds: seed {seed}, {wanted} worlds");
    let mut lab = Lab::new()?;
    let mut count = Count::default();
    for number in 0..wanted {
        let seed = seed.wrapping_add(u64::from(number));
        let mut world = World::new(&mut lab, seed).with_context(|| format!("world {seed}"))?;
        for _ in 0..4 + world.random.below(6) {
            world.grow()?;
        }
        for _ in 0..8 + world.random.below(12) {
            world.address()?;
        }
        let judged = world.judge(&mut count);
        if judged.is_err() || !count.wrong.is_empty() {
            println!("world {seed}:\n{}", world.log);
        }
        judged.with_context(|| format!("world {seed}"))?;
        ensure!(count.wrong.is_empty(), "world {seed}: wrong names: {:#?}", count.wrong);
        world.take_down().with_context(|| format!("after world {seed}"))?;
    }
    let named: u32 = count.named.values().sum();
    println!(
        "figure: random worlds: 0 wrong names; {named} of {} rows are named in their own namespace, {} \
         rows are looked at from others; the command is asked {} times",
        count.rows, count.others, count.commands
    );
    println!("figure: random worlds: {} times `--netdev` said what it leaves out", count.doubts);
    println!(
        "figure: random worlds: {} of {} without the connection manager",
        count.named_without, count.rows
    );
    println!(
        "figure: random worlds: {} times index and address are right and the name would be wrong",
        count.lookalikes
    );
    ensure!(wanted < 20 || count.lookalikes > 0, "no collision in {wanted} worlds shows nothing");
    for (kind, number) in &count.named {
        println!("figure: random worlds: named: {number} of {kind}");
    }
    for (why, number) in &count.unnamed {
        println!("figure: random worlds: unnamed: {number}, {why}");
    }
    // That it shows something: rows of every kind that can be named, were.
    for kind in ["dummy", "vlan", "macvlan", "ipvlan", "bridge", "bond"] {
        ensure!(wanted < 100 || count.named.contains_key(kind), "no row of a {kind} was named");
    }
    Ok(())
}
