//! Network namespaces: which namespace a GID's interface and a device belong to.

use std::fs::{self, Permissions};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use rustix::mount::{UnmountFlags, mount_bind, unmount};
use serde_json::Value;
use uverbs::context::Context;
use uverbs::device::Absence;
use uverbs::driver::DriverId;
use uverbs::error::Cause;
use uverbs::host::{Host, NamedTable, Preference, Reader};
use uverbs::inventory::{Parts, Wanted};

use super::costs::traced;
use crate::lab::ip::Ip;
use crate::lab::roce::PORT;
use crate::lab::{self, FAR, Namespace, Netdev, run};

/// Of an entry: its GID, its interface's index (0 by sysfs), and that interface's name where it is
/// shown to be in this namespace.
type Row = (String, u32, Option<String>);

/// Every entry of every device.
fn rows(preference: Preference) -> Result<Vec<Row>> {
    let mut host = Host::new();
    let devices = host.devices()?;
    let mut tables = Vec::new();
    for device in &devices {
        tables.push(Reader::new(device, host.sysfs(), preference)?.gid_table()?);
    }
    let names = host.netdevs(&tables.iter().collect::<Vec<_>>())?;
    Ok(names
        .iter()
        .flat_map(NamedTable::iter)
        .map(|(record, netdev)| {
            let index = record.entry.netdev_ifindex().map_or(0, std::num::NonZero::get);
            (record.entry.gid().to_string(), index, netdev.map(|netdev| netdev.name.clone()))
        })
        .collect())
}

fn named(rows: &[Row], gid: &str) -> Vec<Option<String>> {
    rows.iter().filter(|(other, ..)| other == gid).map(|(.., name)| name.clone()).collect()
}

/// The names that the link-local address of this index is given.
fn link_local(rows: &[Row], index: u32) -> Vec<Option<String>> {
    let of_index = rows.iter().filter(|(_, other, _)| *other == index);
    named(&of_index.cloned().collect::<Vec<_>>(), LINK_LOCAL)
}

/// All interfaces are here: each entry's is named, by ioctl and by sysfs.
pub(crate) fn interfaces_here_are_named() -> Result<()> {
    let _lab = lab::two_soft_roce_devices()?;
    for preference in [Preference::Ioctl, Preference::Sysfs] {
        let rows = rows(preference)?;
        println!("{preference:?}: {rows:#?}");
        ensure!(named(&rows, "::ffff:192.168.77.1") == [Some("d0".into())]);
        ensure!(named(&rows, "::ffff:10.7.0.1") == [Some("d0.7".into())]);
        ensure!(named(&rows, "2001:db8::1") == [Some("d1".into())]);
        // The default GID and the VLAN's link-local address are the same GID.
        let link_local = named(&rows, "fe80::11:22ff:fe33:4455");
        ensure!(link_local == [Some("d0".into()), Some("d0.7".into())], "{link_local:?}");
    }
    Ok(())
}

/// A VLAN is moved to another namespace, where it gets an index that is taken by another
/// interface here: neither side may name it wrongly.
pub(crate) fn an_interface_elsewhere_is_not_named() -> Result<()> {
    let lab = lab::vlan_lab()?;
    let namespace = Namespace::new("blue")?;
    run(&["ip", "link", "set", "d0.7", "netns", "blue"])?;
    namespace.run(&["ip", "link", "set", "d0.7", "up"])?;
    namespace.run(&["ip", "address", "add", "10.8.0.1/24", "dev", "d0.7"])?;
    lab.rxe.wait_for_gid("0000:0000:0000:0000:0000:ffff:0a08:0001")?;

    // Here: the same index, if the kernel gave it again, must not make a name of it.
    let here = rows(Preference::Ioctl)?;
    println!("here: {here:#?}");
    ensure!(named(&here, "::ffff:10.8.0.1") == [None]);
    ensure!(named(&here, "::ffff:192.168.77.1") == [Some("d0".into())]);
    let by_sysfs = rows(Preference::Sysfs)?;
    println!("here, by sysfs: {by_sysfs:#?}");
    ensure!(named(&by_sysfs, "::ffff:10.8.0.1") == [None]);

    // There the connection manager knows it. d0's own entries must not be taken for an interface there.
    let there = namespace.call(|| rows(Preference::Ioctl))?;
    println!("there: {there:#?}");
    ensure!(named(&there, "::ffff:10.8.0.1") == [Some("d0.7".into())]);
    ensure!(named(&there, "::ffff:192.168.77.1") == [None]);
    Ok(())
}

/// The index that a new namespace gives to the first interface that cannot keep its own.
const FIRST: u32 = 2;

/// The link-local address of a MAC address that [`lab`] often gives.
const LINK_LOCAL: &str = "fe80::11:22ff:fe33:4455";

/// Interfaces of two namespaces on one port with one MAC address: `v8` in blue has
/// the index of `d0` here, the port's own interface, and `v9` in blue that of `d0.7` here.
struct SameIndices {
    rxe: lab::SoftRoce,
    _vlan: Netdev,
    _netdev: Netdev,
    namespace: Namespace,
    /// The index of `v9` and `d0.7`; that of the other two is [`FIRST`].
    other: u32,
}

/// Sets [`SameIndices`] up, these of them without IPv6.
fn same_indices(without_ipv6: &[&str]) -> Result<SameIndices> {
    let lacks = |name: &str| without_ipv6.contains(&name);
    let namespace = Namespace::new("blue")?;
    let netdev = Netdev::dummy_with_index("d0", FIRST, "02:11:22:33:44:55")?;
    netdev.address("192.168.77.1/24")?;
    if lacks("d0") {
        netdev.disable_ipv6()?;
    }
    let v8 = netdev.traveller("v8", 8)?;
    namespace.run(&["ip", "link", "add", "x0", "index", &v8.to_string(), "type", "dummy"])?;
    let v9 = netdev.traveller("v9", 9)?;
    for (id, name) in [(8, "v8"), (9, "v9")] {
        run(&["ip", "link", "set", name, "netns", "blue"])?;
        if lacks(name) {
            namespace.call(|| lab::disable_ipv6(name))?;
        }
        let address = format!("10.{id}.0.1/24");
        namespace.run(&["ip", "address", "add", &address, "dev", name])?;
        namespace.run(&["ip", "link", "set", name, "up"])?;
    }
    let links = namespace.run(&["ip", "-oneline", "link"])?;
    let has =
        |index: u32, name: &str| links.lines().any(|l| l.starts_with(&format!("{index}: {name}@")));
    ensure!(has(FIRST, "v8") && has(v9, "v9"), "not the indices that were meant:\n{links}");
    let vlan = netdev.vlan_with_index(7, v9)?;
    vlan.address("10.7.0.1/24")?;
    if lacks("d0.7") {
        vlan.disable_ipv6()?;
    }
    let rxe = lab::SoftRoce::new("rxe0", &netdev)?;
    // Two for each; the port's own link-local GID is there without IPv6, too.
    let lacking = without_ipv6.iter().filter(|name| **name != "d0").count();
    rxe.wait_for_gids(8 - lacking)?;
    Ok(SameIndices { rxe, _vlan: vlan, _netdev: netdev, namespace, other: v9 })
}

/// Interfaces elsewhere on top of the port's own, with the indices of interfaces here: of the port's own,
/// and of another interface on top of it.
pub(crate) fn the_same_index_on_the_same_port() -> Result<()> {
    let lab = same_indices(&[])?;
    let here = rows(Preference::Ioctl)?;
    println!("here: {here:#?}");
    ensure!(named(&here, "::ffff:192.168.77.1") == [Some("d0".into())]);
    ensure!(named(&here, "::ffff:10.7.0.1") == [Some("d0.7".into())]);
    ensure!(named(&here, "::ffff:10.8.0.1") == [None], "v8 was taken for d0");
    ensure!(named(&here, "::ffff:10.9.0.1") == [None], "v9 was taken for d0.7");
    // All four have one MAC address and so one link-local address: two claims for each index.
    let link_local = named(&here, LINK_LOCAL);
    ensure!(link_local.len() == 4 && link_local.iter().all(Option::is_none), "{link_local:?}");

    let there = lab.namespace.call(|| rows(Preference::Ioctl))?;
    println!("there: {there:#?}");
    ensure!(named(&there, "::ffff:10.8.0.1") == [Some("v8".into())]);
    ensure!(named(&there, "::ffff:10.9.0.1") == [Some("v9".into())]);
    ensure!(named(&there, LINK_LOCAL) == [None, None, None, None]);
    ensure!(named(&there, "::ffff:192.168.77.1") == [None], "d0 was taken for v8");
    ensure!(named(&there, "::ffff:10.7.0.1") == [None], "d0.7 was taken for v9");
    Ok(())
}

/// One of the two with the same index has no IPv6: the other's link-local address, although it is
/// made of the MAC address that both have, is not taken for its own.
pub(crate) fn the_same_index_without_ipv6() -> Result<()> {
    {
        let lab = same_indices(&["v8", "d0.7"])?;
        let here = rows(Preference::Ioctl)?;
        println!("v8 and d0.7 without IPv6, here: {here:#?}");
        ensure!(named(&here, "::ffff:10.7.0.1") == [Some("d0.7".into())]);
        ensure!(named(&here, "::ffff:10.9.0.1") == [None], "v9 was taken for d0.7");
        ensure!(link_local(&here, FIRST) == [Some("d0".into())]);
        ensure!(link_local(&here, lab.other) == [None], "v9's was taken for d0.7's");
        let there = lab.namespace.call(|| rows(Preference::Ioctl))?;
        println!("there: {there:#?}");
        ensure!(link_local(&there, FIRST) == [None], "d0's was taken for v8's");
        ensure!(link_local(&there, lab.other) == [Some("v9".into())]);
    }
    let lab = same_indices(&["d0", "v9"])?;
    let here = rows(Preference::Ioctl)?;
    println!("d0 and v9 without IPv6, here: {here:#?}");
    // Only the port's own interface has a link-local GID without IPv6: one of these is d0's.
    ensure!(link_local(&here, FIRST) == [None, None], "v8's or d0's was taken for the other's");
    ensure!(link_local(&here, lab.other) == [Some("d0.7".into())]);
    let there = lab.namespace.call(|| rows(Preference::Ioctl))?;
    println!("there: {there:#?}");
    ensure!(link_local(&there, FIRST) == [None, None], "v8's or d0's was taken for the other's");
    ensure!(link_local(&there, lab.other) == [None], "d0.7's was taken for v9's");
    ensure!(named(&there, "::ffff:10.9.0.1") == [Some("v9".into())]);
    Ok(())
}

/// In another namespace other interfaces on the same port have the names of these here, by which
/// sysfs tells them.
pub(crate) fn the_same_name_on_the_same_port() -> Result<()> {
    let lab = same_indices(&["v8", "d0.7"])?;
    for (before, after) in [("v8", "d0"), ("v9", "d0.7")] {
        lab.namespace.run(&["ip", "link", "set", before, "down"])?;
        lab.namespace.run(&["ip", "link", "set", before, "name", after])?;
        lab.namespace.run(&["ip", "link", "set", after, "up"])?;
    }
    lab.rxe.settle()?;
    lab.rxe.wait_for_gids(6)?;
    let here = rows(Preference::Sysfs)?;
    println!("here: {here:#?}");
    ensure!(named(&here, "::ffff:192.168.77.1") == [Some("d0".into())]);
    ensure!(named(&here, "::ffff:10.7.0.1") == [Some("d0.7".into())]);
    ensure!(named(&here, "::ffff:10.8.0.1") == [None], "the d0 there was taken for this one");
    ensure!(named(&here, "::ffff:10.9.0.1") == [None], "the d0.7 there was taken for this one");
    // The other is that of the d0.7 there.
    ensure!(named(&here, LINK_LOCAL) == [Some("d0".into()), None]);
    Ok(())
}

/// A macvlan on the port's interface, with a MAC address of its own, is a pod's second interface;
/// it has the index of the port's own interface.
pub(crate) fn a_macvlan_in_a_pod() -> Result<()> {
    let namespace = Namespace::new("blue")?;
    let netdev = Netdev::dummy_with_index("d0", FIRST, "02:11:22:33:44:55")?;
    netdev.address("192.168.77.1/24")?;
    let rxe = lab::SoftRoce::new("rxe0", &netdev)?;
    let net1 = netdev.macvlan("net1", 8, "02:aa:bb:cc:dd:ee")?;
    namespace.run(&["ip", "link", "add", "x0", "index", "8", "type", "dummy"])?;
    namespace.take(net1)?;
    namespace.run(&["ip", "address", "add", "10.5.0.1/24", "dev", "net1"])?;
    namespace.run(&["ip", "link", "set", "net1", "up"])?;
    let links = namespace.run(&["ip", "-oneline", "link"])?;
    ensure!(links.contains(&format!("{FIRST}: net1@")), "not the index that was meant:\n{links}");
    rxe.wait_for_gids(4)?;

    let of_d0 = ["::ffff:192.168.77.1", LINK_LOCAL];
    let of_net1 = ["::ffff:10.5.0.1", "fe80::aa:bbff:fecc:ddee"];
    let here = rows(Preference::Ioctl)?;
    let by_sysfs = rows(Preference::Sysfs)?;
    println!("here: {here:#?}\nby sysfs: {by_sysfs:#?}");
    let there = namespace.call(|| rows(Preference::Ioctl))?;
    let there_by_sysfs = namespace.call(|| rows(Preference::Sysfs))?;
    println!("there: {there:#?}\nby sysfs: {there_by_sysfs:#?}");
    for gid in of_d0 {
        ensure!(named(&here, gid) == [Some("d0".into())], "{gid} here");
        ensure!(named(&by_sysfs, gid) == [Some("d0".into())], "{gid} here, by sysfs");
        ensure!(named(&there, gid) == [None], "{gid}: d0 was taken for net1");
        ensure!(named(&there_by_sysfs, gid) == [None], "{gid}: d0 was found there by sysfs");
    }
    for gid in of_net1 {
        ensure!(named(&here, gid) == [None], "{gid}: net1 was taken for d0");
        ensure!(named(&by_sysfs, gid) == [None], "{gid}: net1 was found here by sysfs");
        ensure!(named(&there, gid) == [Some("net1".into())], "{gid} there");
        ensure!(named(&there_by_sysfs, gid) == [Some("net1".into())], "{gid} there, by sysfs");
    }
    Ok(())
}

/// The node of the connection manager.
const MANAGER: &str = "/dev/infiniband/rdma_cm";

/// Makes an interface of this kind for a namespace, on another, with an index that no other reaches in the
/// course of a run, and this address.
fn pod_interface(pod: &Namespace, lower: &Netdev, kind: &[&str], address: &str) -> Result<()> {
    let (name, index) = (pod.exec()[3], FAR.to_string());
    let link = ["link", lower.name(), "name", "net1", "index", &index, "netns", name, "type"];
    run(&[&["ip", "link", "add"], &link[..], kind].concat())?;
    pod.run(&["ip", "address", "add", address, "dev", "net1"])?;
    pod.run(&["ip", "link", "set", "net1", "up"]).map(drop)
}

/// The connection manager tells pods whose rows are theirs, with interfaces of any kind, whoever asks;
/// and where it cannot, rows have no name. It is not left with anything.
pub(crate) fn the_connection_manager_names_pods() -> Result<()> {
    let pods = ["macvlan", "ipvlan", "vlan"].map(Namespace::new);
    let [macvlan, ipvlan, vlan] = pods;
    let (macvlan, ipvlan, vlan) = (macvlan?, ipvlan?, vlan?);
    // What has a macvlan takes no ipvlan.
    let first = Netdev::dummy("d0", "02:11:22:33:44:55")?;
    let second = Netdev::dummy("d1", "02:66:77:88:99:aa")?;
    let (rxe0, rxe1) = (lab::SoftRoce::new("rxe0", &first)?, lab::SoftRoce::new("rxe1", &second)?);
    let of_kind = [
        (&macvlan, &rxe0, &first, ["macvlan", "mode", "bridge"]),
        (&ipvlan, &rxe1, &second, ["ipvlan", "mode", "l2"]),
        (&vlan, &rxe0, &first, ["vlan", "id", "7"]),
    ];
    for (number, (pod, rxe, lower, kind)) in (1..).zip(of_kind) {
        pod_interface(pod, lower, &kind, &format!("10.{number}.0.1/16"))?;
        rxe.wait_for_gid(&format!("0000:0000:0000:0000:0000:ffff:0a0{number}:0001"))?;
    }
    let check = |said: Option<&str>| -> Result<()> {
        for (number, (pod, ..)) in (1..).zip(of_kind) {
            for preference in [Preference::Ioctl, Preference::Sysfs] {
                let rows = pod.call(|| rows(preference))?;
                println!("{number}, {preference:?}: {rows:#?}");
                for other in 1..=3 {
                    let wanted = said.filter(|_| other == number).map(str::to_owned);
                    let told = named(&rows, &format!("::ffff:10.{other}.0.1"));
                    ensure!(told == [wanted], "{other} in {number}, {preference:?}: {told:?}");
                }
            }
        }
        ensure!(named(&rows(Preference::Ioctl)?, "::ffff:10.1.0.1") == [None], "here");
        Ok(())
    };
    check(Some("net1"))?;
    let calls = traced(&[&macvlan.exec(), &["uverbs", "gids"][..]].concat())?;
    let of_manager = calls.iter().filter(|call| call.contains("rdma_cm")).count();
    println!("figure: `uverbs gids` in a pod: {} system calls\n{}", calls.len(), calls.join("\n"));
    ensure!(of_manager > 0);
    let left = run(&["rdma", "resource", "show", "cm_id"])?;
    ensure!(!left.contains("rxe0"), "identifiers are left: {left}");

    let as_nobody = |pod: &Namespace| {
        pod.call(|| Ok(lab::output_as_nobody(&["uverbs", "gids", "--json"])?.stdout))
    };
    let of_net1 = |stdout: &[u8]| -> Result<usize> {
        let document: Value = serde_json::from_slice(stdout)?;
        let rows = document["gids"].as_array().context("no rows")?;
        Ok(rows.iter().filter(|row| row["netdev"] == "net1").count())
    };
    ensure!(of_net1(&as_nobody(&macvlan)?)? == 2, "without rights");
    let filtered = macvlan.run(&["uverbs", "gids", "--netdev", "net1", "--no-header"])?;
    ensure!(filtered.lines().count() == 2, "{filtered}");
    // One who may not write to it is told of no interface, and of nothing else.
    fs::set_permissions(MANAGER, Permissions::from_mode(0o600))?;
    let refused = as_nobody(&macvlan).and_then(|stdout| of_net1(&stdout));
    fs::set_permissions(MANAGER, Permissions::from_mode(0o666))?;
    ensure!(refused? == 0, "it was asked without a right to it");
    let _aside = lab::Aside::moved(MANAGER)?;
    check(None)?;
    // Something else in its place is not opened.
    for node in ["/dev/null", "/dev/infiniband/uverbs0"] {
        std::os::unix::fs::symlink(node, MANAGER)?;
        let checked = check(None);
        fs::remove_file(MANAGER)?;
        checked.with_context(|| format!("{node} in its place"))?;
    }
    Ok(())
}

/// Two pods on one port have the same index and address: none is taken for the other. On two ports each
/// has its own.
pub(crate) fn pods_that_look_alike() -> Result<()> {
    let (red, green) = (Namespace::new("red")?, Namespace::new("green")?);
    let first = Netdev::dummy("d0", "02:11:22:33:44:55")?;
    let second = Netdev::dummy("d1", "02:66:77:88:99:aa")?;
    let _rxe = [("rxe0", &first), ("rxe1", &second)]
        .map(|(name, netdev)| lab::SoftRoce::new(name, netdev))
        .into_iter()
        .collect::<Result<Vec<_>>>()?;
    let kind = ["macvlan", "mode", "bridge"];
    pod_interface(&red, &first, &kind, "10.7.0.1/24")?;
    let by_pod = || -> Result<Vec<Vec<Option<String>>>> {
        let of =
            |pod: &Namespace| Ok(named(&pod.call(|| rows(Preference::Ioctl))?, "::ffff:10.7.0.1"));
        [&red, &green].into_iter().map(of).collect()
    };
    let wait = |count: usize| {
        lab::wait_until("the rows", || {
            rows(Preference::Ioctl).is_ok_and(|rows| named(&rows, "::ffff:10.7.0.1").len() == count)
        })
    };
    let net1 = || Some("net1".to_owned());
    wait(1)?;
    ensure!(by_pod()? == [[net1()], [None]], "red is not there");
    // Rows are in the order of the devices.
    pod_interface(&green, &second, &kind, "10.7.0.1/24")?;
    wait(2)?;
    let told = by_pod()?;
    ensure!(told == [[net1(), None], [None, net1()]], "on two ports: {told:?}");
    green.run(&["ip", "link", "delete", "net1"])?;
    wait(1)?;
    pod_interface(&green, &first, &kind, "10.7.0.1/24")?;
    wait(2)?;
    let told = by_pod()?;
    ensure!(told == [[None, None], [None, None]], "on one port: {told:?}");
    // The row of one of them goes, and the other's is known again.
    red.run(&["ip", "address", "delete", "10.7.0.1/24", "dev", "net1"])?;
    wait(1)?;
    let told = by_pod()?;
    ensure!(told == [[None], [net1()]], "red's is gone: {told:?}");
    // Of an address on two interfaces of one pod it is not known which of them is meant.
    green.run(&["ip", "link", "add", "x0", "type", "dummy"])?;
    green.run(&["ip", "address", "add", "10.7.0.1/16", "dev", "x0"])?;
    ensure!(by_pod()? == [[None], [None]], "on two interfaces");
    Ok(())
}

/// A bond: its own entries and those of a VLAN on it, for a port that is the bond's active or
/// waiting slave, or the bond itself.
pub(crate) fn a_bond_and_what_stands_on_it() -> Result<()> {
    let active = Netdev::dummy("d0", "02:11:22:33:44:55")?;
    let waiting = Netdev::dummy("d1", "02:66:77:88:99:aa")?;
    let bond = Netdev::bond("bond0", &[&active, &waiting])?;
    bond.address("10.4.0.1/24")?;
    let vlan = bond.vlan(9)?;
    vlan.address("10.9.0.1/24")?;
    let entries = [
        (LINK_LOCAL, "bond0"),
        ("::ffff:10.4.0.1", "bond0"),
        (LINK_LOCAL, "bond0.9"),
        ("::ffff:10.9.0.1", "bond0.9"),
    ];
    for below in [&active, &bond] {
        let rxe = lab::SoftRoce::new("rxe0", below)?;
        all_named(&rxe, &entries).with_context(|| format!("on {}", below.name()))?;
        ibdev2netdev_is_of_gid_0("bond0")?;
    }
    // The waiting slave has the bond's own link-local GID, but nothing else of it.
    all_named(&lab::SoftRoce::new("rxe0", &waiting)?, &entries[..1])?;
    // The bond has no link-local address now, but its GID all the same.
    bond.disable_ipv6()?;
    for below in [&active, &bond] {
        let rxe = lab::SoftRoce::new("rxe0", below)?;
        all_named(&rxe, &entries).with_context(|| format!("on {}", below.name()))?;
    }
    Ok(())
}

/// The interface and its state as the script reads them, and as ours prints them.
fn ibdev2netdev_is_of_gid_0(name: &str) -> Result<()> {
    let read = |path: &str| -> Result<String> {
        Ok(fs::read_to_string(path).with_context(|| path.to_owned())?.trim().to_owned())
    };
    let theirs = read("/sys/class/infiniband/rxe0/ports/1/gid_attrs/ndevs/0")?;
    ensure!(theirs == name, "{theirs}");
    ensure!(read(&format!("/sys/class/net/{name}/carrier"))? == "1");
    let ours = run(&["uverbs", "ports", "--format", "ibdev2netdev"])?;
    ensure!(ours == format!("rxe0 port 1 ==> {name} (Up)\n"), "{ours}");
    Ok(())
}

/// The port's own interface is in a bond, so it has no GID of its own: the link-local one of an
/// interface elsewhere that has its index is not taken for its.
pub(crate) fn the_index_of_a_slave_elsewhere() -> Result<()> {
    let namespace = Namespace::new("blue")?;
    let netdev = Netdev::dummy_with_index("d0", FIRST, "02:11:22:33:44:55")?;
    let bond = Netdev::bond("bond0", &[&netdev])?;
    bond.address("10.4.0.1/24")?;
    let v9 = bond.traveller("v9", 9)?;
    namespace.run(&["ip", "link", "add", "x0", "index", &v9.to_string(), "type", "dummy"])?;
    run(&["ip", "link", "set", "v9", "netns", "blue"])?;
    namespace.run(&["ip", "address", "add", "10.9.0.1/24", "dev", "v9"])?;
    namespace.run(&["ip", "link", "set", "v9", "up"])?;
    let rxe = lab::SoftRoce::new("rxe0", &netdev)?;
    rxe.wait_for_gids(4)?;
    let here = rows(Preference::Ioctl)?;
    println!("here: {here:#?}");
    ensure!(named(&here, "::ffff:10.4.0.1") == [Some("bond0".into())]);
    ensure!(named(&here, "::ffff:10.9.0.1") == [None], "v9 was taken for d0");
    ensure!(link_local(&here, FIRST) == [None], "v9's was taken for d0's");
    ensure!(named(&here, LINK_LOCAL).contains(&Some("bond0".into())));
    Ok(())
}

/// A bridge: the port's interface is in it, or is the bridge.
pub(crate) fn a_bridge() -> Result<()> {
    let netdev = Netdev::dummy_with_index("d0", FIRST, "02:11:22:33:44:55")?;
    let bridge = Netdev::bridge("br0", FIRST + 1, &[&netdev])?;
    bridge.address("10.6.0.1/24")?;
    let of_bridge = [(LINK_LOCAL, "br0"), ("::ffff:10.6.0.1", "br0")];
    let rxe = lab::SoftRoce::new("rxe0", &netdev)?;
    all_named(&rxe, &[&[(LINK_LOCAL, "d0")][..], &of_bridge].concat())?;
    drop(rxe);
    all_named(&lab::SoftRoce::new("rxe0", &bridge)?, &of_bridge)
}

/// Two VLANs of the port's interface are in a bridge, and one goes: the kernel takes all rows of the bridge away. That of
/// an interface elsewhere with its index, or its name, is not taken for its.
pub(crate) fn a_bridge_that_has_lost_its_rows() -> Result<()> {
    let namespace = Namespace::new("blue")?;
    let netdev = Netdev::dummy_with_index("d0", FIRST, "02:11:22:33:44:55")?;
    let index = FAR;
    let others = [("other", index), ("br0", index + 1)];
    // Before the bridge has the index: Linux 5.10 wants it free here, too.
    for (name, index) in others {
        let index = index.to_string();
        let link = ["link", netdev.name(), "name", name, "index", &index, "netns", "blue"];
        run(&[&["ip", "link", "add"][..], &link, &["type", "macvlan", "mode", "bridge"]].concat())?;
    }
    let (gone, left) = (netdev.vlan(71)?, netdev.vlan(72)?);
    let bridge = Netdev::bridge("br0", index, &[&gone, &left])?;
    bridge.address("10.6.0.1/24")?;
    let rxe = lab::SoftRoce::new("rxe0", &netdev)?;
    rxe.wait_for_gid("0000:0000:0000:0000:0000:ffff:0a06:0001")?;
    let ours = "::ffff:10.6.0.1";
    ensure!(named(&rows(Preference::Ioctl)?, ours) == [Some("br0".into())]);
    drop(gone);
    rxe.settle()?;
    println!("without one of its two VLANs: {:#?}", rows(Preference::Ioctl)?);
    for (name, _) in others {
        namespace.run(&["ip", "address", "add", "10.6.0.1/24", "dev", name])?;
        namespace.run(&["ip", "link", "set", name, "up"])?;
        rxe.wait_for_gid("0000:0000:0000:0000:0000:ffff:0a06:0001")?;
        rxe.settle()?;
        for preference in [Preference::Ioctl, Preference::Sysfs] {
            let here = rows(preference)?;
            println!("{name} elsewhere, {preference:?}: {here:#?}");
            ensure!(named(&here, ours) == [None], "{name} elsewhere was taken for br0");
        }
        namespace.run(&["ip", "link", "delete", name])?;
        rxe.settle()?;
    }
    Ok(())
}

/// Another member of a bond becomes active, whose mode leaves the rows where they were: a row of an interface elsewhere,
/// with the bond's index, on the port of the member that is active now, is not taken for the bond's.
pub(crate) fn a_bond_whose_rows_stay() -> Result<()> {
    let namespace = Namespace::new("blue")?;
    let before = Netdev::dummy("d0", "02:11:22:33:44:55")?;
    let after = Netdev::dummy("d1", "02:66:77:88:99:aa")?;
    let index = FAR.to_string();
    let link = ["link", after.name(), "name", "net1", "index", &index, "netns", "blue"];
    run(&[&["ip", "link", "add"][..], &link, &["type", "vlan", "id", "9"]].concat())?;
    for mode in ["balance-tlb", "balance-alb"] {
        let options = ["mode", mode, "miimon", "50"];
        let bond = Netdev::bond_of("bond0", &["index", &index], &options, &[&before, &after])?;
        bond.address("10.6.0.1/24")?;
        let rxe = lab::SoftRoce::new("rxe0", &after)?;
        rxe.settle()?;
        run(&["ip", "link", "set", before.name(), "down"])?;
        lab::wait_until("the other member is active", || {
            let active = fs::read_to_string("/sys/class/net/bond0/bonding/active_slave");
            active.is_ok_and(|own| own.trim() == after.name())
        })?;
        rxe.settle()?;
        println!("{mode}, after the change: {:#?}", rows(Preference::Ioctl)?);
        namespace.run(&["ip", "address", "add", "10.6.0.1/24", "dev", "net1"])?;
        namespace.run(&["ip", "link", "set", "net1", "up"])?;
        rxe.wait_for_gid("0000:0000:0000:0000:0000:ffff:0a06:0001")?;
        rxe.settle()?;
        let here = rows(Preference::Ioctl)?;
        println!("{mode}, with net1 elsewhere: {here:#?}");
        ensure!(named(&here, "::ffff:10.6.0.1") == [None], "net1 was taken for bond0");
        namespace.run(&["ip", "link", "set", "net1", "down"])?;
        namespace.run(&["ip", "address", "flush", "dev", "net1"])?;
    }
    Ok(())
}

/// A bridge has a GID made of its MAC address only if it has that address: the one of an interface
/// elsewhere that has its index is not taken for its.
pub(crate) fn the_index_of_a_bridge_elsewhere() -> Result<()> {
    let namespace = Namespace::new("blue")?;
    let netdev = Netdev::dummy("d0", "02:11:22:33:44:55")?;
    let v9 = netdev.traveller("v9", 9)?;
    run(&["ip", "link", "set", "v9", "netns", "blue"])?;
    namespace.run(&["ip", "address", "add", "10.9.0.1/24", "dev", "v9"])?;
    namespace.run(&["ip", "link", "set", "v9", "up"])?;
    let bridge = Netdev::bridge("br0", v9, &[&netdev])?;
    bridge.disable_ipv6()?;
    bridge.address("10.6.0.1/24")?;
    let rxe = lab::SoftRoce::new("rxe0", &netdev)?;
    rxe.wait_for_gids(4)?;
    let here = rows(Preference::Ioctl)?;
    println!("here: {here:#?}");
    ensure!(named(&here, "::ffff:10.6.0.1") == [Some("br0".into())]);
    ensure!(named(&here, "::ffff:10.9.0.1") == [None], "v9 was taken for br0");
    ensure!(link_local(&here, v9) == [None], "v9's was taken for br0's");
    ensure!(named(&here, LINK_LOCAL) == [Some("d0".into()), None]);
    Ok(())
}

/// That the only device has these entries, GID and name of the interface, and each is given its
/// name, by ioctl and by sysfs.
fn all_named(rxe: &lab::SoftRoce, entries: &[(&str, &str)]) -> Result<()> {
    rxe.wait_for_gids(entries.len())?;
    let mut wanted = Vec::new();
    for (gid, name) in entries {
        let index = fs::read_to_string(format!("/sys/class/net/{name}/ifindex"))?;
        wanted.push(((*gid).to_owned(), index.trim().parse()?, Some((*name).to_owned())));
    }
    wanted.sort_unstable();
    let mut by_ioctl = rows(Preference::Ioctl)?;
    println!("{by_ioctl:#?}");
    by_ioctl.sort_unstable();
    ensure!(by_ioctl == wanted, "by ioctl; wanted: {wanted:#?}");
    let mut by_sysfs = rows(Preference::Sysfs)?;
    println!("by sysfs: {by_sysfs:#?}");
    by_sysfs.sort_unstable();
    // It gives no index.
    for row in &mut wanted {
        row.1 = 0;
    }
    wanted.sort_unstable();
    ensure!(by_sysfs == wanted, "by sysfs; wanted: {wanted:#?}");
    Ok(())
}

/// An interface elsewhere and one here have the same index, and even the same address.
pub(crate) fn the_same_index_and_address_in_two_namespaces() -> Result<()> {
    let _lab = lab::vlan_lab()?;
    let namespace = Namespace::new("blue")?;
    // Another interface there with d0's index and address.
    let index = fs::read_to_string("/sys/class/net/d0/ifindex")?;
    let index = index.trim();
    namespace.run(&["ip", "link", "add", "x0", "index", index, "type", "dummy"])?;
    namespace.run(&["ip", "address", "add", "192.168.77.1/24", "dev", "x0"])?;
    namespace.run(&["ip", "link", "set", "x0", "up"])?;
    let there = namespace.call(|| rows(Preference::Ioctl))?;
    println!("there: {there:#?}");
    ensure!(named(&there, "::ffff:192.168.77.1") == [None], "x0 was taken for d0");
    // It is not above the port's interface, so no row is its own, and none is recommended.
    for command in
        [&["choose"][..], &["choose", "--netdev", "x0"], &["env", "nccl"], &["env", "ucx"]]
    {
        let output = lab::output(&[&namespace.exec()[..], &["uverbs"], command].concat())?;
        let said = String::from_utf8(output.stdout)?;
        println!("{command:?}: {}: {said}{}", output.status, String::from_utf8(output.stderr)?);
        ensure!(output.status.code() == Some(1) && !said.contains("192.168.77.1"), "{command:?}");
        ensure!(!said.contains("export"), "{command:?}");
    }
    Ok(())
}

/// Container A's interface is on an interface without RDMA, B's on the port's, with the same index and
/// address; and a VLAN above B's has the index of what A's is on.
pub(crate) fn indices_of_other_namespaces() -> Result<()> {
    let (a, b) = (Namespace::new("a")?, Namespace::new("b")?);
    let netdev = Netdev::dummy("d0", "02:11:22:33:44:55")?;
    let other = Netdev::dummy_with_index("e0", FAR, "02:66:77:88:99:aa")?;
    let rxe = lab::SoftRoce::new("rxe0", &netdev)?;
    let index = (FAR + 1).to_string();
    for (namespace, below) in [("a", &other), ("b", &netdev)] {
        let link = ["link", below.name(), "name", "net1", "index", &index, "netns", namespace];
        run(&[&["ip", "link", "add"][..], &link, &["type", "macvlan", "mode", "bridge"]].concat())?;
    }
    let vlan =
        ["link", "net1", "name", "net1.5", "index", &FAR.to_string(), "type", "vlan", "id", "5"];
    b.run(&[&["ip", "link", "add"][..], &vlan].concat())?;
    for namespace in [&a, &b] {
        namespace.run(&["ip", "address", "add", "10.7.0.1/24", "dev", "net1"])?;
        namespace.run(&["ip", "link", "set", "net1", "up"])?;
    }
    b.run(&["ip", "address", "add", "10.6.0.1/24", "dev", "net1.5"])?;
    rxe.wait_for_gid("0000:0000:0000:0000:0000:ffff:0a06:0001")?;
    rxe.wait_for_gid("0000:0000:0000:0000:0000:ffff:0a07:0001")?;
    let gids = rxe.gids()?;
    let row = gids.iter().find(|(_, gid)| gid.ends_with("ffff:0a07:0001"));
    let index = row.context("B's row")?.0.to_string();
    for can_ask in [true, false] {
        // Without the connection manager it may be net1's, for all that is known in A.
        let _aside = if can_ask { None } else { Some(lab::Aside::moved(MANAGER)?) };
        for arguments in [
            &["gids", "--json"][..],
            &["gids", "rxe0", "--json"],
            &["gid", "rxe0:1", &index, "--json"],
            &["gids", "--ip", "10.7.0.1", "--json"],
            &["gids", "--type", "v2", "--json"],
            &["gids", "--netdev", "net1", "--json"],
            &["gids", "--source", "sysfs", "--json"],
            &["snapshot"],
        ] {
            let output = lab::output(&[&a.exec()[..], &["uverbs"], arguments].concat())?;
            let said = String::from_utf8(output.stdout)?;
            let noted = String::from_utf8(output.stderr)?;
            println!("{arguments:?}: {said}{noted}");
            let is_of_net1 = arguments.contains(&"--netdev");
            let is_doubted = noted.contains("it is not known whether the interface is theirs");
            ensure!(output.status.code() == Some(i32::from(is_of_net1)), "{}", output.status);
            ensure!(is_doubted == (is_of_net1 && !can_ask), "{noted}");
            let document: Value = serde_json::from_str(&said)?;
            let mut rows = document["gids"].as_array().cloned().unwrap_or_default();
            for device in document["devices"].as_array().into_iter().flatten() {
                rows.extend(device["gids"].as_array().cloned().unwrap_or_default());
            }
            ensure!(!rows.is_empty() || is_of_net1, "no rows");
            ensure!(rows.iter().all(|row| row["netdev"].is_null()), "B's rows were taken for A's");
        }
        if can_ask {
            none_is_chosen(&a)?;
        } else {
            // Of hardware it may be net1's.
            soft_roce_listens_in_one_namespace(&a)?;
        }
        soft_roce_listens_in_one_namespace(&b)?;
    }
    Ok(())
}

/// That the address of a container is of use to hardware, and not to soft RoCE: it does not listen there.
fn soft_roce_listens_in_one_namespace(container: &Namespace) -> Result<()> {
    const ADDRESS: &str = "10.7.0.1";
    const FILE: &str = "/tmp/container.json";
    let is_taken = || UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT)).is_err();
    ensure!(is_taken(), "it does not listen here");
    ensure!(!container.call(|| Ok(is_taken()))?, "it listens in the container");
    let said = container.output(&["uverbs", "choose", "--explain"])?;
    println!("{said:?}");
    let said = String::from_utf8(said.stdout)?;
    ensure!(said.contains("soft RoCE has no socket in this network namespace"), "{said}");
    let mut seen: Value = serde_json::from_str(&container.run(&["uverbs", "snapshot"])?)?;
    for driver in [DriverId::RXE, DriverId::MLX5] {
        seen["devices"][0]["driver"] = driver.0.into();
        fs::write(FILE, seen.to_string())?;
        let said = lab::output(&["uverbs", "choose", "--from", FILE])?;
        println!("{driver}: {said:?}");
        let is_chosen = String::from_utf8(said.stdout)?.contains(ADDRESS);
        ensure!(is_chosen == (driver == DriverId::MLX5), "{driver}");
    }
    let said = String::from_utf8(container.output(&["uverbs", "check"])?.stdout)?;
    ensure!(said.contains("use the port where its interface is"), "{said}");
    Ok(())
}

/// A pod's VLAN is on an interface that has no RDMA, and has the index and the address of one on the port's: its row is not
/// taken, whether the connection manager can be asked or not.
pub(crate) fn an_interface_on_another_in_the_pod() -> Result<()> {
    let pod = Namespace::new("a")?;
    let netdev = Netdev::dummy("d0", "02:11:22:33:44:55")?;
    let vlan = netdev.vlan_with_index(7, FAR)?;
    vlan.address("10.7.0.1/24")?;
    let rxe = lab::SoftRoce::new("rxe0", &netdev)?;
    rxe.wait_for_gid("0000:0000:0000:0000:0000:ffff:0a07:0001")?;
    pod.run(&["ip", "link", "add", "e0", "type", "dummy"])?;
    let index = FAR.to_string();
    let link = ["link", "e0", "name", "net1", "index", &index, "type", "vlan", "id", "7"];
    pod.run(&[&["ip", "link", "add"][..], &link].concat())?;
    pod.run(&["ip", "address", "add", "10.7.0.1/24", "dev", "net1"])?;
    for name in ["e0", "net1"] {
        pod.run(&["ip", "link", "set", name, "up"])?;
    }
    none_is_chosen(&pod)?;
    let _aside = lab::Aside::moved(MANAGER)?;
    none_is_chosen(&pod)
}

/// Two other pods have interfaces of one index and address, on the port's interface; the pod's own, which has both, is on
/// another: neither of their rows is taken.
pub(crate) fn rows_of_two_other_pods() -> Result<()> {
    let pod = Namespace::new("a")?;
    let netdev = Netdev::dummy("d0", "02:11:22:33:44:55")?;
    let rxe = lab::SoftRoce::new("rxe0", &netdev)?;
    let _e0 = Netdev::dummy("e0", "02:11:22:33:44:66")?;
    let index = FAR.to_string();
    let (b, c) = (Namespace::new("b")?, Namespace::new("c")?);
    for (pod, place, name, link) in
        [(&b, "b", "b0", "d0"), (&c, "c", "c0", "d0"), (&pod, "a", "net1", "e0")]
    {
        let link = ["link", link, "name", name, "index", &index, "netns", place];
        run(&[&["ip", "link", "add"][..], &link, &["type", "macvlan", "mode", "bridge"]].concat())?;
        pod.run(&["ip", "address", "add", "10.7.0.1/24", "dev", name])?;
        pod.run(&["ip", "link", "set", name, "up"])?;
    }
    rxe.wait_for_gid("0000:0000:0000:0000:0000:ffff:0a07:0001")?;
    let shown = pod.run(&["uverbs", "gids", "--no-header"])?;
    ensure!(shown.matches("10.7.0.1").count() > 2, "{shown}");
    none_is_chosen(&pod)
}

/// That no row is taken in a namespace, and that of the address is known to be of another.
fn none_is_chosen(namespace: &Namespace) -> Result<()> {
    let commands: [&[&str]; 5] = [
        &["choose"],
        &["choose", "--netdev", "net1"],
        &["env", "nccl"],
        // By sysfs a row has a name, which no interface here has.
        &["choose", "--source", "sysfs"],
        &["env", "nccl", "--source", "sysfs"],
    ];
    for command in commands {
        let output = lab::output(&[&namespace.exec()[..], &["uverbs"], command].concat())?;
        let said = String::from_utf8(output.stdout)?;
        println!("{command:?}: {}: {said}{}", output.status, String::from_utf8(output.stderr)?);
        ensure!(output.status.code() == Some(1) && !said.contains("10.7.0.1"), "{command:?}");
        ensure!(!said.contains("export"), "{command:?}");
    }
    let taken: Value = serde_json::from_str(&namespace.run(&["uverbs", "snapshot"])?)?;
    let rows = taken["devices"][0]["gids"].as_array().context("no rows")?;
    let row = rows.iter().find(|row| row["gid"] == "::ffff:10.7.0.1").context("no such row")?;
    ensure!(row["netdev_is_elsewhere"] == true, "{row}");
    Ok(())
}

/// `gre1` here is bound to the port's interface, and a VLAN elsewhere has its index and address.
pub(crate) fn a_tunnel_is_bound_to_an_interface() -> Result<()> {
    let blue = Namespace::new("blue")?;
    let netdev = Netdev::dummy("d0", "02:11:22:33:44:55")?;
    let rxe = lab::SoftRoce::new("rxe0", &netdev)?;
    // First the VLAN: 5.10 refuses it an index that is taken here.
    let vlan = ["link", "d0", "name", "v5", "index", &FAR.to_string(), "netns", "blue"];
    run(&[&["ip", "link", "add"][..], &vlan, &["type", "vlan", "id", "5"]].concat())?;
    let gre = ["type", "gre", "local", "10.9.0.1", "remote", "10.9.0.2", "dev", "d0"];
    run(&[&["ip", "link", "add", "gre1", "index", &FAR.to_string()][..], &gre].concat())?;
    let tunnel = Netdev::made("gre1");
    tunnel.address("10.9.0.1/24")?;
    blue.run(&["ip", "address", "add", "10.9.0.1/24", "dev", "v5"])?;
    rxe.wait_for_gid("0000:0000:0000:0000:0000:ffff:0a09:0001")?;
    let here = rows(Preference::Ioctl)?;
    println!("here: {here:#?}");
    ensure!(named(&here, "::ffff:10.9.0.1") == [None], "v5 was taken for gre1");
    Ok(())
}

/// Of an address with a far end, the GID is that of the far end for IPv4, of the near end for IPv6.
pub(crate) fn addresses_with_a_far_end() -> Result<()> {
    let netdev = Netdev::dummy("d0", "02:11:22:33:44:55")?;
    let rxe = lab::SoftRoce::new("rxe0", &netdev)?;
    let add = ["ip", "address", "add"];
    run(&[&add[..], &["fd00::1", "peer", "fd00::2/64", "dev", "d0", "nodad"]].concat())?;
    rxe.wait_for_gid("fd00:0000:0000:0000:0000:0000:0000:0001")?;
    let said = run(&["uverbs", "choose", "--json"])?;
    let chosen: Value = serde_json::from_str(&said)?;
    println!("{chosen:#}");
    ensure!(said.contains("fd00::1"), "the only address that is not link-local is not chosen");
    let said = run(&["uverbs", "check"]).unwrap_or_else(|error| error.to_string());
    println!("{said}");
    ensure!(!said.contains("no-usable-gid") && !said.contains("of no interface"));
    run(&[&add[..], &["10.1.0.1", "peer", "10.1.0.2/32", "dev", "d0"]].concat())?;
    all_named(&rxe, &[(LINK_LOCAL, "d0"), ("fd00::1", "d0"), ("::ffff:10.1.0.2", "d0")])
}

/// The kernel makes no row of a bond for the port of an idle member, so the one that looks like it is
/// that of a VLAN elsewhere.
pub(crate) fn an_idle_member_of_a_bond() -> Result<()> {
    let _blue = Namespace::new("blue")?;
    let active = Netdev::dummy("d0", "02:11:22:33:44:55")?;
    let idle = Netdev::dummy("d1", "02:66:77:88:99:aa")?;
    // First the VLAN: 5.10 refuses it an index that is taken here.
    let vlan = ["link", "d1", "name", "v5", "index", &FAR.to_string(), "netns", "blue"];
    run(&[&["ip", "link", "add"][..], &vlan, &["type", "vlan", "id", "5"]].concat())?;
    let bond = Netdev::bond_with_index("bond0", FAR, &[&active, &idle])?;
    bond.address("10.4.0.1/24")?;
    let rxe = lab::SoftRoce::new("rxe0", &idle)?;
    let address = ["ip", "-netns", "blue", "address", "add", "10.4.0.1/24", "dev", "v5"];
    run(&address)?;
    rxe.wait_for_gid("0000:0000:0000:0000:0000:ffff:0a04:0001")?;
    let here = rows(Preference::Ioctl)?;
    println!("here: {here:#?}");
    ensure!(named(&here, "::ffff:10.4.0.1") == [None], "v5 was taken for bond0");
    Ok(())
}

/// A table that is full has no row of d0.7 here, but one of an interface elsewhere that looks like it.
pub(crate) fn a_full_table_names_nobody_else() -> Result<()> {
    let blue = Namespace::new("blue")?;
    let netdev = Netdev::dummy("d0", "02:11:22:33:44:55")?;
    let rxe = lab::SoftRoce::new("rxe0", &netdev)?;
    let link = ["link", "d0", "name", "m", "index", &FAR.to_string(), "netns", "blue"];
    run(&[&["ip", "link", "add"][..], &link, &["type", "macvlan", "mode", "bridge"]].concat())?;
    let context = Host::new().open("rxe0")?;
    let length = context.query_port(1)?.gid_tbl_len;
    let mut ip = Ip::new(Some(&blue))?;
    for number in 0..length {
        let address = format!("10.60.{}.{}", number / 250, number % 250 + 1);
        ensure!(ip.run(&format!("address add {address}/8 dev m"))?, "{address} was not added");
    }
    let is_full = || context.query_gid_table().is_ok_and(|table| table.len() == length as usize);
    lab::wait_until("the table is full", is_full)?;
    drop(context);
    let vlan = netdev.vlan_with_index(7, FAR)?;
    vlan.address("10.60.0.5/8")?;
    rxe.settle()?;
    for preference in [Preference::Ioctl, Preference::Sysfs] {
        let here = rows(preference)?;
        ensure!(named(&here, "::ffff:10.60.0.5") == [None], "{preference:?}: m was taken for d0.7");
        ensure!(named(&here, LINK_LOCAL) == [Some("d0".into())], "{preference:?}: its first slot");
    }
    Ok(())
}

/// Soft RoCE on the loopback interface: `127.0.0.1` and `::1` are in every namespace.
pub(crate) fn loopback_is_not_taken_for_another() -> Result<()> {
    run(&["ip", "link", "set", "lo", "up"])?;
    let rxe = lab::SoftRoce::on_loopback("rxe0")?;
    rxe.wait_for_gid("0000:0000:0000:0000:0000:0000:0000:0001")?;
    let here = rows(Preference::Ioctl)?;
    println!("here: {here:#?}");
    ensure!(named(&here, "::1") == [Some("lo".into())]);
    let namespace = Namespace::new("blue")?;
    namespace.run(&["ip", "link", "set", "lo", "up"])?;
    let there = namespace.call(|| rows(Preference::Ioctl))?;
    println!("there: {there:#?}");
    ensure!(named(&there, "::1") == [None], "this loopback was taken for another's");
    Ok(())
}

/// In shared mode, the default, another namespace sees and opens the device.
pub(crate) fn shared_mode_shows_devices_everywhere() -> Result<()> {
    let _lab = lab::vlan_lab()?;
    ensure!(Host::new().shares_namespaces() == Some(true), "shared mode is not seen");
    let namespace = Namespace::new("blue")?;
    for source in ["ioctl", "sysfs"] {
        let answer = namespace.run(&["uverbs", "gids", "--source", source])?;
        println!("{answer}");
        ensure!(answer.contains("::ffff:192.168.77.1"));
    }
    // A node whose device is not there is of one that goes or is renamed, and of none elsewhere.
    fs::write("/run/ibdev", "rxe7\n")?;
    let file = "/sys/class/infiniband_verbs/uverbs0/ibdev";
    mount_bind("/run/ibdev", file)?;
    let absence = Host::new().absence();
    unmount(file, UnmountFlags::DETACH)?;
    println!("{absence:?}");
    ensure!(absence.is_empty(), "a device is elsewhere");
    Ok(())
}

/// In exclusive mode a device is in one namespace, and elsewhere its absence is explained.
pub(crate) fn exclusive_mode_hides_devices_elsewhere() -> Result<()> {
    let _mode = lab::Exclusive::set()?;
    let _lab = lab::vlan_lab()?;
    let namespace = Namespace::new("blue")?;
    ensure!(Host::new().shares_namespaces() == Some(false), "exclusive mode is not seen");
    ensure!(Host::new().open("rxe0").is_ok(), "the device's own namespace");

    let output = namespace.output(&["uverbs", "gids", "--json"])?;
    let (stdout, stderr) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    println!("stdout: {stdout}\nstderr: {stderr}");
    ensure!(output.status.success(), "no device is no failure");
    ensure!(stderr.contains("rxe0") && stderr.contains("another network namespace"));

    // The node can be reached, but the kernel refuses to open it from there.
    let device = Host::new().device("rxe0")?;
    let error = namespace.call(|| Ok(Context::open(&device).err()))?.context("the node opened")?;
    println!("{error}");
    ensure!(*error.cause() == Cause::NotPermitted && error.errno() == 1, "{error:?}");
    namespace.call(|| {
        let mut host = Host::new();
        ensure!(host.devices()?.is_empty(), "the device is listed there");
        ensure!(host.open("rxe0").is_err_and(|error| error.errno() == 19));
        Ok(())
    })
}

/// A namespace with another `rxe0`, on an interface here with this MAC address.
fn namesake(mac: &str) -> Result<(Namespace, Netdev, lab::SoftRoce)> {
    let namespace = Namespace::new("blue")?;
    let netdev = Netdev::dummy("d1", mac)?;
    let rxe = lab::SoftRoce::new("rxe1", &netdev)?;
    run(&["rdma", "dev", "set", "rxe1", "netns", "blue"])?;
    namespace.run(&["rdma", "dev", "set", "rxe1", "name", "rxe0"])?;
    Ok((namespace, netdev, rxe))
}

/// Two namespaces have a device of one name, and a program in one of them has the sysfs of the other.
pub(crate) fn one_name_in_two_namespaces() -> Result<()> {
    lab::on_the_newest_kernel("before Linux 7 no two devices have one name")?;
    let _mode = lab::Exclusive::set()?;
    let _lab = lab::vlan_lab()?;
    let (namespace, _netdev, rxe) = namesake("02:66:77:88:99:aa")?;
    let own = Host::new().device("rxe0")?;
    let wanted = |preference| Wanted::new(Parts::ALL).preference(preference);
    let absences = Host::new().inventory(&wanted(Preference::Ioctl)).absences;
    // The class of nodes of ib_umad is the same in all namespaces.
    let (here, blue) = (run(&["uverbs", "cdi"])?, namespace.run(&["uverbs", "cdi"])?);
    let (other, foreign, read, there_is) = namespace.call(|| {
        let mut host = Host::new();
        let other = host.device("rxe0")?;
        let foreign = host.sysfs().of(&other).err();
        let read = [Preference::Ioctl, Preference::Sysfs].map(|own| host.inventory(&wanted(own)));
        let there_is = host.absence();
        Ok((other, foreign, read, there_is))
    })?;
    namespace.run(&["rdma", "dev", "set", "rxe0", "name", "rxe1"])?;
    let (there, hidden, said) = namespace.call(|| {
        let mut host = Host::new();
        let device = host.device("rxe1")?;
        let said = ["counters", "metrics"]
            .map(|name| Command::new("uverbs").arg(name).output().map(|own| own.stderr));
        Ok((host.sysfs().of(&device).err(), host.inventory(&wanted(Preference::Ioctl)), said))
    })?;
    namespace.run(&["rdma", "link", "delete", "rxe1"])?;
    std::mem::forget(rxe);

    println!("{own:?}\n{other:?}\n{foreign:?}\n{read:#?}\n{there:?}");
    ensure!(own.node_guid != other.node_guid && own.index != other.index, "one device");
    ensure!(Host::new().sysfs().of(&own).is_ok(), "its own sysfs");
    println!("{here}{blue}{absences:?}{there_is:?}");
    let elsewhere =
        |node: &str| Absence::OtherNamespace { device: "rxe0".into(), node: node.into() };
    ensure!(absences == [elsewhere("uverbs1")], "a device of the same name is elsewhere");
    ensure!(there_is == [elsewhere("uverbs0")], "seen from there, the one here is");
    ensure!(here.contains("/umad0\"") && !here.contains("/umad1\""), "nodes of another device");
    ensure!(blue.contains("/umad1\"") && !blue.contains("/umad0\""), "nodes of another device");
    let foreign = foreign.context("the other device's folder was taken")?;
    ensure!(*foreign.cause() == Cause::NotInSysfs, "{foreign:?}");
    let there = there.context("a folder that is not there was taken")?;
    ensure!(*there.cause() == Cause::NotInSysfs, "{there:?}");
    let [by_ioctl, by_sysfs] = read.each_ref().map(|own| &own.devices[0]);
    let gids = by_ioctl.all_rows().iter().map(|row| row.record.entry.gid().to_string());
    ensure!(gids.eq(["fe80::66:77ff:fe88:99aa"]), "its GIDs");
    ensure!(by_sysfs.all_rows().is_empty() && by_sysfs.problem().is_some(), "whose GIDs?");
    for record in [by_ioctl, by_sysfs] {
        ensure!(record.device.node_guid == other.node_guid && record.hardware.is_none());
        ensure!(record.ports[0].has_types.is_none(), "the files are those of another device");
    }
    let types: Vec<_> = hidden.devices[0].ports.iter().map(|own| own.has_types).collect();
    ensure!(types == [Some(false)], "programs there find no files: {types:?}");
    for said in said {
        let said = String::from_utf8(said?)?;
        ensure!(said.contains("what netlink does not have of rxe1"), "{said}");
    }
    Ok(())
}

/// The same with one node GUID. Soft RoCE has no place by which it is known: the kernel is asked whose sysfs it is.
pub(crate) fn one_name_and_guid_in_two_namespaces() -> Result<()> {
    lab::on_the_newest_kernel("before Linux 7 no two devices have one name")?;
    let _mode = lab::Exclusive::set()?;
    let _lab = lab::vlan_lab()?;
    let (namespace, _netdev, rxe) = namesake("02:11:22:33:44:55")?;
    let own = Host::new().device("rxe0")?;
    let here = Host::new().sysfs().of(&own).err();
    let by_sysfs = ["uverbs", "gids", "rxe0", "--source", "sysfs"];
    let mut unprivileged = vec![lab::output_as_nobody(&by_sysfs)?];
    let rows = lab::output_as_nobody(&["uverbs", "gids", "rxe0"])?;
    let (other, foreign, refused) = namespace.call(|| {
        let mut host = Host::new();
        let other = host.device("rxe0")?;
        let foreign = host.sysfs().of(&other).err();
        Ok((other, foreign, lab::output_as_nobody(&by_sysfs)?))
    })?;
    unprivileged.push(refused);
    // There it is mounted anew.
    let there = namespace.run(&["uverbs", "gids", "--source", "sysfs"]);
    namespace.run(&["rdma", "link", "delete", "rxe0"])?;
    std::mem::forget(rxe);

    println!("{own:?}\n{other:?}\n{here:?}\n{foreign:?}\n{there:?}");
    ensure!(own.node_guid == other.node_guid && own.index != other.index, "not one GUID");
    ensure!(here.is_none(), "its own sysfs");
    let foreign = foreign.context("the other device's folder was taken")?;
    ensure!(*foreign.cause() == Cause::NotInSysfs, "{foreign:?}");
    ensure!(there?.matches("rxe0").count() == 1, "its one row");
    println!("{unprivileged:?}\n{rows:?}");
    for output in unprivileged {
        let lines = String::from_utf8(output.stdout)?.lines().count();
        ensure!(lines == 1 && !output.status.success(), "whose rows are these?");
        let said = String::from_utf8(output.stderr)?;
        ensure!(said.contains("this sysfs does not show the device"), "{said}");
    }
    ensure!(rows.status.success() && !rows.stdout.is_empty(), "by ioctl there is no doubt");
    Ok(())
}

/// Renaming a device is seen at once, and its index stays.
pub(crate) fn a_renamed_device_is_found() -> Result<()> {
    let _lab = lab::vlan_lab()?;
    let mut host = Host::new();
    let before = host.device("rxe0")?;
    let long = "n".repeat(63);
    let mut old = "rxe0";
    for name in ["roce-p1.0", &long, "rxe0"] {
        run(&["rdma", "dev", "set", old, "name", name])?;
        old = name;
        let after = host.device(name)?;
        ensure!((after.index, &after.node) == (before.index, &before.node), "{after:?}");
        ensure!(after.driver == Some(DriverId::RXE), "{after:?}");
        ensure!(!Context::open(&after)?.query_gid_table()?.is_empty());
        let by_sysfs = Host::rooted("/sys", "/dev/infiniband").device(name)?;
        ensure!(by_sysfs.node == before.node, "{by_sysfs:?}");
    }
    Ok(())
}
