//! Network namespaces: whose interface a GID's is, and whose device a device is.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use uverbs::context::Context;
use uverbs::device::Host;
use uverbs::driver::DriverId;
use uverbs::error::Cause;
use uverbs::netdev::DeviceGids;
use uverbs::reader::{Preference, Reader};

use crate::lab::{self, Namespace, Netdev, run};

/// Index, GID and, where it is shown to be in this namespace, interface of every entry.
fn rows(preference: Preference) -> Result<Vec<(String, u32, Option<String>)>> {
    let mut host = Host::new();
    let devices = host.devices()?;
    let mut records = Vec::new();
    for device in &devices {
        records.push(Reader::new(device, host.sysfs(), preference)?.gid_table()?);
    }
    let gids: Vec<_> = devices
        .iter()
        .zip(&records)
        .map(|(device, records)| DeviceGids { device, records })
        .collect();
    let names = host.netdevs(&gids)?;
    Ok(records
        .iter()
        .flatten()
        .zip(names.into_iter().flatten())
        .map(|(record, netdev)| {
            let index = record.entry.netdev_ifindex().map_or(0, std::num::NonZero::get);
            (record.entry.gid().to_string(), index, netdev.map(|netdev| netdev.name))
        })
        .collect())
}

fn named(rows: &[(String, u32, Option<String>)], gid: &str) -> Vec<Option<String>> {
    rows.iter().filter(|(other, ..)| other == gid).map(|(.., name)| name.clone()).collect()
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

    // There: d0.7 is a guest on an interface whose entries are in the table, so it is known.
    // d0's own entries must not be taken for an interface there.
    let there = namespace.call(|| rows(Preference::Ioctl))?;
    println!("there: {there:#?}");
    ensure!(named(&there, "::ffff:10.8.0.1") == [Some("d0.7".into())]);
    ensure!(named(&there, "::ffff:192.168.77.1") == [None]);
    Ok(())
}

/// Interfaces elsewhere that stand on the port's own, and have the indices of interfaces here: of
/// the port's own, and of another that stands on it.
pub(crate) fn the_same_index_on_the_same_port() -> Result<()> {
    let namespace = Namespace::new("blue")?;
    // 2 is what a new namespace gives to the first interface that cannot keep its index.
    let netdev = Netdev::dummy_with_index("d0", 2, "02:11:22:33:44:55")?;
    netdev.address("192.168.77.1/24")?;
    let v8 = netdev.traveller("v8", 8)?;
    namespace.run(&["ip", "link", "add", "x0", "index", &v8.to_string(), "type", "dummy"])?;
    let v9 = netdev.traveller("v9", 9)?;
    for (id, name) in [(8, "v8"), (9, "v9")] {
        run(&["ip", "link", "set", name, "netns", "blue"])?;
        let address = format!("10.{id}.0.1/24");
        namespace.run(&["ip", "address", "add", &address, "dev", name])?;
        namespace.run(&["ip", "link", "set", name, "up"])?;
    }
    let links = namespace.run(&["ip", "-oneline", "link"])?;
    let has =
        |index: u32, name: &str| links.lines().any(|l| l.starts_with(&format!("{index}: {name}@")));
    ensure!(has(2, "v8") && has(v9, "v9"), "not the indices that were meant:\n{links}");
    let vlan = netdev.vlan_with_index(7, v9)?;
    vlan.address("10.7.0.1/24")?;
    let rxe = lab::SoftRoce::new("rxe0", &netdev)?;
    for wanted in ["0a07", "0a08", "0a09"] {
        rxe.wait_for_gid(&format!("0000:0000:0000:0000:0000:ffff:{wanted}:0001"))?;
    }
    rxe.settle()?;

    let here = rows(Preference::Ioctl)?;
    println!("here: {here:#?}");
    ensure!(named(&here, "::ffff:192.168.77.1") == [Some("d0".into())]);
    ensure!(named(&here, "::ffff:10.7.0.1") == [Some("d0.7".into())]);
    ensure!(named(&here, "::ffff:10.8.0.1") == [None], "v8 was taken for d0");
    ensure!(named(&here, "::ffff:10.9.0.1") == [None], "v9 was taken for d0.7");
    // All four have one MAC address and so one link-local address: two claims for each index.
    let link_local = named(&here, "fe80::11:22ff:fe33:4455");
    ensure!(link_local.len() == 4 && link_local.iter().all(Option::is_none), "{link_local:?}");

    let there = namespace.call(|| rows(Preference::Ioctl))?;
    println!("there: {there:#?}");
    ensure!(named(&there, "::ffff:10.8.0.1") == [Some("v8".into())]);
    ensure!(named(&there, "::ffff:10.9.0.1") == [Some("v9".into())]);
    ensure!(named(&there, "::ffff:192.168.77.1") == [None], "d0 was taken for v8");
    ensure!(named(&there, "::ffff:10.7.0.1") == [None], "d0.7 was taken for v9");
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
    let answer = namespace.run(&["uverbs", "gids", "--source", "ioctl"])?;
    println!("{answer}");
    ensure!(answer.contains("::ffff:192.168.77.1"));
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
