//! The chosen GID: our model of UCX is compared with Debian's UCX, for every port that UCX offers, in every
//! scene, by the index that it logs; and the default of perftest.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use rustix::system::delete_module;
use serde_json::Value;
use uverbs::driver::DriverId;
use uverbs_mlx5_function::description::Description;

use crate::boot;
use crate::lab::mlx5::Mlx5;
use crate::lab::{self, Namespace, Netdev, SoftRoce, run};

/// The release of UCX in the peers' Debian, as `--like` names it.
const UCX: &str = "ucx-1.13";

/// Variables of the environment.
type Settings<'a> = &'a [(&'a str, &'a str)];

/// What is chosen on a port.
#[derive(Debug, PartialEq, Eq)]
struct Choice {
    /// The index. UCX logs it only if no index is set.
    index: Option<u32>,
    /// The interface of that row, by the name that sysfs has for it.
    netdev: Option<String>,
}

/// The choice on each port (`DEVICE:PORT`) that is used.
type Choices = BTreeMap<String, Choice>;

/// What UCX chooses, by its log.
fn ucx(settings: Settings) -> Result<Choices> {
    let output = Command::new("ucx_info")
        .args(["-w", "-u", "t"])
        .env("UCX_LOG_LEVEL", "debug")
        .env("UCX_TLS", "rc_verbs,ud_verbs")
        // The emulated function has no such objects.
        .env("UCX_IB_MLX5_DEVX", "n")
        .envs(settings.iter().copied())
        .output()
        .context("starting ucx_info")?;
    let log = String::from_utf8_lossy(&output.stdout);
    ensure!(log.contains("UCX  DEBUG"), "no log: {output:?}");
    let mut choices = Choices::new();
    let mut index = None;
    for line in log.lines() {
        // First the index, if it is searched for; then, of the row that it is, the interface.
        if let Some((_, number)) = line.split_once(" using gid_index ") {
            index = Some(number.trim().parse()?);
        } else if let Some((_, rest)) = line.split_once("RoCE LAG level on ") {
            let (port, rest) = rest.split_once(" (").context("no interface")?;
            let netdev = rest.split_once(')').map(|(netdev, _)| netdev.to_owned());
            let choice = Choice { index: index.take(), netdev };
            let known = choices.get(port).is_none_or(|known| *known == choice);
            ensure!(known, "{port}: {choice:?} and {choices:?}");
            choices.insert(port.to_owned(), choice);
        }
    }
    Ok(choices)
}

/// What our command says that a program chooses.
fn chosen(like: &str, settings: Settings) -> Result<Choices> {
    let output = Command::new("uverbs")
        .args(["choose", "--json", "--like", like])
        .envs(settings.iter().copied())
        .output()?;
    let answer: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("{like}, {settings:?}: {output:?}"))?;
    let mut choices = Choices::new();
    for port in answer["choose"].as_array().context("no list")? {
        println!("{} {}: {} {}", port["device"], port["port"], port["index"], port["why"]);
        if let Some(index) = port["index"].as_u64() {
            let name = port["device"].as_str().context("no name")?;
            let index = Some(u32::try_from(index)?);
            let netdev = port["netdev"].as_str().map(str::to_owned);
            choices.insert(format!("{name}:{}", port["port"]), Choice { index, netdev });
        }
    }
    Ok(choices)
}

/// Compares both in one scene, with each of these settings. Of the first it may be known what comes.
fn compare(scene: &str, expected: Option<&[(&str, u32)]>, settings: &[Settings]) -> Result<()> {
    for (round, settings) in settings.iter().enumerate() {
        println!("# {scene}, {settings:?}");
        let (mut theirs, mut ours) = (ucx(settings)?, chosen(UCX, settings)?);
        println!("UCX {theirs:?}, uverbs {ours:?}");
        if let (0, Some(expected)) = (round, expected) {
            let indices = theirs.iter().map(|(port, choice)| (port.as_str(), choice.index));
            let expected = expected.iter().map(|(port, index)| (*port, Some(*index)));
            ensure!(indices.eq(expected), "{scene}: {theirs:?}");
        }
        let is_told = |name: &str| name == "UCX_IB_GID_INDEX";
        let is_told = settings.iter().any(|(name, value)| is_told(name) && *value != "AUTO");
        for (port, choice) in &mut theirs {
            ensure!(choice.index.is_some() != is_told, "{port} in {scene}, {settings:?}");
            let Some(our) = ours.get_mut(port) else { continue };
            if is_told {
                our.index = None;
            }
            // An interface elsewhere is not named by us.
            if our.netdev.is_none() {
                choice.netdev = None;
            }
        }
        ensure!(theirs == ours, "{scene}, {settings:?}: UCX {theirs:?}, uverbs {ours:?}");
        println!("figure: {scene}, {settings:?}: {} ports alike", theirs.len());
    }
    Ok(())
}

/// Soft RoCE: VLANs, sparse tables, only IPv6, no address at all, two subnets, a pod, settings.
pub(crate) fn as_ucx_on_soft_roce() -> Result<()> {
    {
        let _lab = lab::two_soft_roce_devices()?;
        compare(
            "a VLAN, and IPv6 alone",
            Some(&[("rxe0:1", 1), ("rxe1:1", 0)]),
            &[
                &[],
                &[("UCX_NET_DEVICES", "rxe1:1")],
                &[("UCX_NET_DEVICES", "rxe0:1,nosuch0:1")],
                &[("UCX_NET_DEVICES", "rxe0")],
                &[("UCX_NET_DEVICES", "^rxe0:1")],
                &[("UCX_NET_DEVICES", "rxe[0-1]:1")],
                &[("UCX_NET_DEVICES", "all,rxe0:1")],
                &[("UCX_IB_GID_INDEX", "1")],
                &[("UCX_IB_GID_INDEX", "2")],
                &[("UCX_IB_GID_INDEX", "7")],
                // Read as 0, whose interface is another.
                &[("UCX_IB_GID_INDEX", "0x2")],
                &[("UCX_IB_GID_INDEX", "AUTO")],
            ],
        )?;
    }
    let netdev = Netdev::dummy("d0", "02:11:22:33:44:55")?;
    {
        let rxe = SoftRoce::new("rxe0", &netdev)?;
        rxe.wait_for_gids(1)?;
        compare("link-local alone", Some(&[("rxe0:1", 0)]), &[&[]])?;
        netdev.address("2001:db8::1/64")?;
        rxe.wait_for_gids(2)?;
        compare("IPv6 alone", Some(&[("rxe0:1", 0)]), &[&[], &[("UCX_IB_GID_INDEX", "1")]])?;
        let early = ["10.0.0.1/32", "10.0.0.2/32", "10.0.0.3/32"];
        for address in early {
            netdev.address(address)?;
        }
        netdev.address("10.1.0.1/24")?;
        rxe.wait_for_gids(6)?;
        compare("two subnets", Some(&[("rxe0:1", 2)]), &[&[]])?;
        for address in early {
            run(&["ip", "address", "delete", address, "dev", "d0"])?;
        }
        rxe.wait_for_gids(3)?;
        compare("a sparse table", Some(&[("rxe0:1", 5)]), &[&[], &[("UCX_IB_GID_INDEX", "3")]])?;
        run(&["ip", "address", "delete", "10.1.0.1/24", "dev", "d0"])?;
        let vlan = netdev.vlan(7)?;
        vlan.address("10.7.0.1/24")?;
        rxe.wait_for_gids(4)?;
        // Which of its addresses comes first is not fixed.
        compare("IPv4 on the VLAN alone", None, &[&[]])?;
        drop(vlan);
        netdev.address("169.254.7.7/16")?;
        rxe.wait_for_gids(3)?;
        compare("a link-local IPv4 address", Some(&[("rxe0:1", 2)]), &[&[]])?;
        run(&["ip", "link", "set", "d0", "down"])?;
        compare("the interface is down", Some(&[]), &[&[]])?;
        run(&["ip", "link", "set", "d0", "up"])?;
    }
    drop(netdev);

    let netdev = Netdev::dummy("d0", "02:11:22:33:44:55")?;
    let rxe = SoftRoce::new("rxe0", &netdev)?;
    let pod = Namespace::new("pod")?;
    pod.take(netdev.macvlan("m0", lab::FAR, "02:aa:bb:cc:dd:ee")?)?;
    pod.run(&["ip", "link", "set", "m0", "up"])?;
    pod.run(&["ip", "address", "add", "10.9.0.1/24", "dev", "m0"])?;
    rxe.wait_for_gids(3)?;
    if lab::kernel()? < (6, 1) {
        // Linux 5.10 makes address handles only in the first namespace, and no table says whether
        // that is an interface's: our model is of newer kernels, as its documentation says.
        let (theirs, ours) = (ucx(&[])?, chosen(UCX, &[])?);
        println!("figure: a pod's address: UCX {theirs:?}, uverbs {ours:?}");
        let index = |choices: &Choices| choices.get("rxe0:1").and_then(|choice| choice.index);
        ensure!((index(&theirs), index(&ours)) == (Some(0), Some(2)), "{theirs:?}, {ours:?}");
        return Ok(());
    }
    compare("the only IPv4 address is a pod's", Some(&[("rxe0:1", 2)]), &[&[]])
}

/// mlx5 with RoCE, whose table has both versions: no address at all, only IPv6, IPv4, a VLAN, two
/// subnets, a sparse table.
pub(crate) fn as_ucx_on_mlx5_roce() -> Result<()> {
    let device = Mlx5::bind(0, &Description::roce())?;
    let netdev = device.netdev()?;
    let port = format!("{}:1", device.name());
    let address = |verb: &str, address: &str| -> Result<()> {
        let more: &[&str] = if verb == "add" && address.contains(':') { &["nodad"] } else { &[] };
        let command = ["ip", "address", verb, address, "dev", &netdev];
        run(&[&command, more].concat()).map(drop)
    };
    let has_rows = |count: usize| {
        lab::wait_until(&format!("{count} rows"), || {
            run(&["uverbs", "gids", "--no-header"]).is_ok_and(|rows| rows.lines().count() == count)
        })
    };
    run(&["ip", "link", "set", &netdev, "up"])?;
    has_rows(2)?;
    // Before that no address handle can be made with it, and UCX takes another row.
    lab::wait_until("the link-local address is no longer tentative", || {
        run(&["ip", "-6", "address", "show", "dev", &netdev])
            .is_ok_and(|shown| shown.contains("fe80::") && !shown.contains("tentative"))
    })?;
    let pinned: &[Settings] = &[&[], &[("UCX_IB_GID_INDEX", "0")]];
    compare("mlx5, link-local alone", Some(&[(&port, 1)]), pinned)?;
    address("add", "2001:db8::1/64")?;
    has_rows(4)?;
    // The release of the peers takes the first of version 2, link-local or not.
    compare("mlx5, IPv6 alone", Some(&[(&port, 1)]), &[&[]])?;
    address("add", "10.9.0.1/24")?;
    has_rows(6)?;
    compare("mlx5, both families", Some(&[(&port, 5)]), &[&[], &[("UCX_IB_GID_INDEX", "4")]])?;
    address("add", "10.10.0.1/24")?;
    has_rows(8)?;
    compare("mlx5, two subnets", Some(&[(&port, 5)]), &[&[]])?;
    address("delete", "10.9.0.1/24")?;
    has_rows(6)?;
    compare("mlx5, a sparse table", Some(&[(&port, 7)]), &[&[], &[("UCX_IB_GID_INDEX", "5")]])?;
    address("delete", "10.10.0.1/24")?;
    has_rows(4)?;
    // The default GIDs stay. That of version 2 is resolved by its address, and that of version 1 is not.
    let own = run(&["ip", "-6", "-o", "address", "show", "dev", &netdev, "scope", "link"])?;
    let own =
        own.split_whitespace().find(|word| word.starts_with("fe80::")).context("no fe80::")?;
    address("delete", own)?;
    has_rows(4)?;
    compare("mlx5, the default GID has no address", Some(&[(&port, 3)]), &[&[]])?;
    address("delete", "2001:db8::1/64")?;
    has_rows(2)?;
    compare("mlx5, no address", Some(&[(&port, 0)]), &[&[]])?;
    address("add", own)?;
    has_rows(2)?;
    let vlan = format!("{netdev}.7");
    run(&["ip", "link", "add", "link", &netdev, "name", &vlan, "type", "vlan", "id", "7"])?;
    run(&["ip", "link", "set", &vlan, "up"])?;
    run(&["ip", "address", "add", "10.7.0.1/24", "dev", &vlan])?;
    has_rows(6)?;
    // Which of its addresses comes first is not fixed.
    compare("mlx5, IPv4 on the VLAN alone", None, &[&[]])?;
    run(&["ip", "link", "delete", &vlan]).map(drop)
}

/// perftest's default, of the peers' release, is what its rule says in every scene: a row of IPv4
/// before others, then one of version 2.
pub(crate) fn perftest_s_default() -> Result<()> {
    run(&["ip", "link", "set", "lo", "up"])?;
    let compared = perftest_s_scenes();
    run(&["ip", "link", "set", "lo", "down"])?;
    compared
}

fn perftest_s_scenes() -> Result<()> {
    {
        let _lab = lab::vlan_lab()?;
        perftest_s_rule("a VLAN", 1)?;
    }
    let netdev = Netdev::dummy("d0", "02:11:22:33:44:55")?;
    let rxe = SoftRoce::new("rxe0", &netdev)?;
    netdev.address("2001:db8::1/64")?;
    rxe.wait_for_gids(2)?;
    perftest_s_rule("IPv6 alone", 0)?;
    for address in ["10.0.0.1/32", "10.0.0.2/32", "10.1.0.1/24"] {
        netdev.address(address)?;
    }
    rxe.wait_for_gids(5)?;
    run(&["ip", "address", "delete", "10.0.0.1/32", "dev", "d0"])?;
    rxe.wait_for_gids(4)?;
    perftest_s_rule("a sparse table", 3)
}

/// Soft RoCE has only rows of version 2.
fn perftest_s_rule(scene: &str, expected: u64) -> Result<()> {
    let rows: Value = serde_json::from_str(&run(&["uverbs", "gids", "--json"])?)?;
    let rows = rows["gids"].as_array().context("no list")?;
    let first = |is_ipv4: bool| rows.iter().find(|row| row["ipv4"].is_string() == is_ipv4);
    let by_rule = first(true).or_else(|| first(false)).context("no row")?;
    let told = perftest_s_index()?;
    println!("figure: {scene}: perftest takes {told}");
    ensure!(by_rule["index"] == told && told == expected, "{scene}: {told}, by the rule {by_rule}");
    Ok(())
}

/// A child that ends with its scope.
pub(super) struct Ending(pub(super) Child);

impl Drop for Ending {
    fn drop(&mut self) {
        // It may be over.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn perftest_s_index() -> Result<u64> {
    const TEST: [&str; 5] = ["-d", "rxe0", "-F", "-n", "5"];
    let mut server = Command::new("ib_send_bw");
    let server = server.args(TEST).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let _server = Ending(server.context("starting ib_send_bw")?);
    let mut said = String::new();
    // It is logged when both sides are connected, even if the test fails later.
    lab::wait_until("the server answers", || {
        let output = lab::output(&[&["ib_send_bw"], &TEST[..], &["127.0.0.1"]].concat());
        said = output.map_or_else(
            |error| error.to_string(),
            |output| String::from_utf8_lossy(&output.stdout).into_owned(),
        );
        said.contains("GID index")
    })
    .with_context(|| said.clone())?;
    println!("{said}");
    let line = said.lines().find_map(|line| line.trim().strip_prefix("GID index"));
    Ok(line.context("no index")?.trim_start_matches([' ', ':']).trim().parse()?)
}

/// A snapshot of a live host answers as the host does, command by command.
pub(crate) fn a_snapshot_answers_as_the_host() -> Result<()> {
    const FILE: &str = "/tmp/snapshot.json";
    let _lab = lab::two_soft_roce_devices()?;
    fs::write(FILE, run(&["uverbs", "snapshot"])?)?;
    for command in [
        &["devices"][..],
        &["gids"],
        &["gid", "rxe0:1", "1"],
        &["ports"],
        &["guids"],
        &["choose", "--explain"],
        &["choose", "rxe0:1", "--like", "nccl-2.20"],
        &["env", "nccl"],
        &["env", "ucx"],
        &["env", "nvshmem"],
        &["check"],
    ] {
        let words = [&["uverbs"], command, &["--json"]].concat();
        let live = lab::output(&words)?;
        let told = lab::output(&[&words[..], &["--from", FILE]].concat())?;
        let (mut live_json, mut told_json): (Value, Value) =
            (serde_json::from_slice(&live.stdout)?, serde_json::from_slice(&told.stdout)?);
        // What only the file has.
        for answer in [&mut live_json, &mut told_json] {
            let object = answer.as_object_mut().context("no document")?;
            object.remove("fits_all");
            for rows in object.values_mut().filter_map(Value::as_array_mut) {
                for row in rows.iter_mut().filter_map(Value::as_object_mut) {
                    row.remove("host");
                }
            }
        }
        println!("{command:?}: {:?} {live_json}", live.status);
        ensure!(live_json == told_json, "{command:?}:\n{live_json}\n{told_json}");
        ensure!(live.status == told.status, "{command:?}: {} and {}", live.status, told.status);
    }
    fs::remove_file(FILE)?;
    Ok(())
}

/// `uverbs check` on live hosts: what is wrong is found, and nothing else.
pub(crate) fn a_host_is_checked() -> Result<()> {
    let found = |words: &[&str], status: i32| -> Result<Vec<String>> {
        let output = lab::output(&[&["uverbs", "check", "--json"], words].concat())?;
        let answer: Value = serde_json::from_slice(&output.stdout)?;
        println!("{words:?}: {} {answer:#}", output.status);
        ensure!(output.status.code() == Some(status), "{words:?}: {output:?}");
        let rows = answer["check"].as_array().context("no list")?;
        let grave = rows.iter().filter(|row| row["severity"] != "note");
        grave.map(|row| Ok(row["name"].as_str().context("no name")?.to_owned())).collect()
    };
    let is = |words: &[&str], status: i32, expected: &[&str]| -> Result<()> {
        let found = found(words, status)?;
        ensure!(found == expected, "{words:?}: {found:?} instead of {expected:?}");
        Ok(())
    };
    is(&[], 2, &["no-device"])?;
    let lab = lab::vlan_lab()?;
    is(&["--strict"], 0, &[])?;
    // All modules are loaded, until one is not.
    is(&["--need", "umad", "--need", "rdma-cm", "--strict"], 0, &[])?;
    delete_module(c"rdma_ucm", 0)?;
    let missed = is(&["--need", "umad", "--need", "rdma-cm"], 2, &["no-rdma-ucm-module"]);
    boot::load_module("rdma_ucm.ko", "")?;
    missed?;
    // So are the nodes, which root may open.
    for (node, missed) in [("rdma_cm", "no-rdma-cm-node"), ("umad0", "no-umad-node")] {
        let _aside = lab::Aside::moved(&format!("/dev/infiniband/{node}"))?;
        is(&["--need", "umad", "--need", "rdma-cm"], 2, &[missed])?;
        is(&[], 0, &[])?;
    }
    let words = ["uverbs", "check", "--need", "umad", "--need", "rdma-cm"];
    let refused = String::from_utf8(lab::output_as_nobody(&words)?.stdout)?;
    ensure!(refused.contains("umad0: permission denied"), "{refused}");
    ensure!(!refused.contains("no-rdma-cm-node"), "{refused}");
    // Root may lock any memory, other users by default little.
    let limited = lab::output_as_nobody(&["uverbs", "check", "--json"])?;
    let limited = String::from_utf8(limited.stdout)?;
    ensure!(limited.contains("locked-memory-low"), "{limited}");
    is(&["--link-layer", "infiniband"], 2, &["other-link-layer"])?;
    let aside = lab::Aside::moved("/dev/infiniband/uverbs0")?;
    is(&[], 2, &["node-missing"])?;
    // Nothing is opened, and the node is missing all the same.
    is(&["--source", "sysfs"], 2, &["node-missing"])?;
    drop(aside);
    run(&["ip", "link", "set", "d0", "down"])?;
    is(&[], 2, &["port-down", "netdev-down"])?;
    drop(lab);

    let netdev = Netdev::dummy("d0", "02:11:22:33:44:55")?;
    let rxe = SoftRoce::new("rxe0", &netdev)?;
    rxe.wait_for_gids(1)?;
    is(&[], 2, &["only-link-local"])?;
    // NCCL goes astray on a host without IPv4.
    netdev.address("2001:db8::1/64")?;
    rxe.wait_for_gids(2)?;
    is(&[], 0, &["takes-other-gid"])?;
    is(&["--strict"], 1, &["takes-other-gid"])
}

/// An interface that asks for no neighbours reaches those that are set by hand. UCX asks only for itself, and a default
/// route may lead it to a default GID that the interface does not have.
pub(crate) fn neighbours_that_are_not_asked_for() -> Result<()> {
    let elsewhere = Namespace::new("elsewhere")?;
    run(&["ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1"])?;
    let cable = Netdev::made("v0");
    elsewhere.take(Netdev::made("v1"))?;
    elsewhere.run(&["ip", "link", "set", "v1", "up"])?;
    run(&["ip", "link", "set", "v0", "addrgenmode", "none"])?;
    run(&["ip", "link", "set", "v0", "up"])?;
    let rdma = SoftRoce::new("rxe9", &cable)?;
    run(&["ip", "address", "add", "fd00:9::8/64", "dev", "v0", "nodad"])?;
    run(&["ip", "address", "add", "10.9.7.1/24", "dev", "v0"])?;
    rdma.wait_for_gids(3)?;
    let reason_is = |gid: &str, reason: &str| -> Result<()> {
        let answer = lab::output(&["uverbs", "choose", "rxe9", "--explain"])?;
        let answer = String::from_utf8(answer.stdout)?;
        let is_so = answer.lines().any(|line| line.contains(gid) && line.contains(reason));
        println!("{answer}");
        ensure!(is_so, "{gid}: {reason}: {answer}");
        Ok(())
    };
    let by_hand = |verb: &str, ip: &str| {
        let own = ["lladdr", "02:00:00:00:00:09", "dev", "v0", "nud", "permanent"];
        run(&[&["ip", "neighbour", verb, ip], &own[..]].concat()).map(drop)
    };
    reason_is("fd00:9::8", "its interface has no link-local IPv6 address")?;
    by_hand("add", "10.9.7.9")?;
    reason_is("fd00:9::8", "its interface has no link-local IPv6 address")?;
    by_hand("add", "fd00:9::9")?;
    reason_is("10.9.7.1", "recommended")?;
    run(&["ip", "address", "delete", "10.9.7.1/24", "dev", "v0"])?;
    rdma.wait_for_gids(2)?;
    reason_is("fd00:9::8", "recommended")?;
    // Of the two of version 2 the peers' release takes the first that has an address handle.
    let is_sure = || -> Result<Value> {
        let answer = run(&["uverbs", "choose", "rxe9", "--like", UCX, "--json"])?;
        let answer: Value = serde_json::from_str(&answer)?;
        Ok(answer["choose"][0]["is_sure"].clone())
    };
    let only = [("UCX_NET_DEVICES", "rxe9:1")];
    compare("no default route", Some(&[("rxe9:1", 1)]), &[&only])?;
    run(&["ip", "-6", "route", "add", "default", "via", "fd00:9::9", "dev", "v0"])?;
    let theirs = ucx(&only)?;
    // Linux 5.10 makes no address handle all the same.
    let led = u32::from(lab::kernel()? < (6, 1));
    ensure!(theirs["rxe9:1"].index == Some(led), "{theirs:?}");
    ensure!(is_sure()? == false, "{}", is_sure()?);
    // Without ARP.
    run(&["ip", "address", "add", "10.9.7.1/24", "dev", "v0"])?;
    run(&["ip", "neighbour", "flush", "dev", "v0", "nud", "permanent"])?;
    run(&["ip", "link", "set", "v0", "arp", "off"])?;
    rdma.wait_for_gids(3)?;
    reason_is("10.9.7.1", "its interface asks for no neighbours")?;
    reason_is("fd00:9::8", "its interface asks for no neighbours")?;
    by_hand("add", "10.9.7.9")?;
    let is_found = lab::kernel()? >= (6, 18);
    reason_is(
        "10.9.7.1",
        if is_found { "recommended" } else { "its interface asks for no neighbours" },
    )?;
    reason_is("fd00:9::8", "its interface asks for no neighbours")?;
    // A VRF asks for none itself. Its members do.
    run(&["ip", "link", "set", "v0", "arp", "on"])?;
    run(&["ip", "link", "add", "vrf9", "type", "vrf", "table", "9"])?;
    let _vrf = Netdev::made("vrf9");
    run(&["ip", "link", "set", "vrf9", "up"])?;
    run(&["ip", "link", "set", "v0", "master", "vrf9"])?;
    run(&["ip", "address", "add", "10.9.8.1/32", "dev", "vrf9"])?;
    lab::wait_until("the address of the VRF has a row", || {
        run(&["uverbs", "gids", "rxe9"]).is_ok_and(|rows| rows.contains("10.9.8.1"))
    })?;
    run(&["ip", "address", "flush", "dev", "v0"])?;
    // That soft RoCE is not heard above its interface is another reason.
    reason_is("10.9.8.1", "soft RoCE takes only what arrives")
}

/// What is said of a device of soft RoCE as it is, if it were one of hardware.
fn as_hardware(device: &str) -> Result<String> {
    const FILE: &str = "/tmp/as-hardware.json";
    let mut seen: Value = serde_json::from_str(&run(&["uverbs", "snapshot"])?)?;
    let own = seen["devices"].as_array_mut().into_iter().flatten();
    for own in own.filter(|own| own["name"] == device) {
        own["driver"] = DriverId::MLX5.0.into();
    }
    fs::write(FILE, seen.to_string())?;
    let answer = lab::output(&["uverbs", "choose", device, "--explain", "--from", FILE])?;
    let answer = String::from_utf8(answer.stdout)?;
    println!("{answer}");
    Ok(answer)
}

/// The address of a tunnel above the port's interface has a row, but RDMA does not send by the tunnel, and with one VLAN tag
/// at most. A device on the tunnel does.
pub(crate) fn a_tunnel_is_not_recommended() -> Result<()> {
    let elsewhere = Namespace::new("elsewhere")?;
    run(&["ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1"])?;
    let cable = Netdev::made("v0");
    elsewhere.take(Netdev::made("v1"))?;
    elsewhere.run(&["ip", "link", "set", "v1", "up"])?;
    run(&["ip", "link", "set", "v0", "up"])?;
    let rdma = SoftRoce::new("rxe9", &cable)?;
    let tunnel = ["id", "1", "dev", "v0", "dstport", "8472", "nolearning"];
    run(&[&["ip", "link", "add", "flannel.1", "type", "vxlan"], &tunnel[..]].concat())?;
    let flannel = Netdev::made("flannel.1");
    run(&["ip", "link", "add", "link", "flannel.1", "name", "v9", "type", "vlan", "id", "9"])?;
    let _above = Netdev::made("v9");
    run(&["ip", "link", "add", "link", "v0", "name", "v7", "type", "vlan", "id", "7"])?;
    let _tag = Netdev::made("v7");
    run(&["ip", "link", "add", "link", "v7", "name", "v78", "type", "vlan", "id", "8"])?;
    let _second = Netdev::made("v78");
    let other_tag = ["link", "v0", "name", "v88", "type", "vlan", "proto", "802.1ad", "id", "8"];
    run(&[&["ip", "link", "add"], &other_tag[..]].concat())?;
    let _other = Netdev::made("v88");
    let refused = ["10.244.0.0", "10.244.9.1", "10.78.0.1", "10.88.0.1"];
    run(&["ip", "link", "set", "v7", "up"])?;
    let netdevs = [("flannel.1", "/32"), ("v9", "/24"), ("v78", "/24"), ("v88", "/24")];
    for ((netdev, prefix), ip) in netdevs.into_iter().zip(refused) {
        let address = &format!("{ip}{prefix}");
        run(&["ip", "link", "set", netdev, "up"])?;
        run(&["ip", "address", "add", address, "dev", netdev])?;
    }
    lab::wait_until("the tunnel's addresses have rows", || {
        run(&["uverbs", "gids", "rxe9"])
            .is_ok_and(|rows| refused.iter().all(|own| rows.contains(own)))
    })?;
    let explained = |device: &str| -> Result<String> {
        let answer = lab::output(&["uverbs", "choose", device, "--explain"])?;
        let answer = String::from_utf8(answer.stdout)?;
        println!("{answer}");
        Ok(answer)
    };
    let is = |answer: &str, gid: &str, reason: &str| {
        answer.lines().any(|line| line.contains(gid) && line.contains(reason))
    };
    let as_hardware = as_hardware("rxe9")?;
    for gid in refused {
        let reason = "RDMA leaves out what its interface adds";
        ensure!(is(&as_hardware, gid, reason), "{gid}: {as_hardware}");
    }
    // Soft RoCE sends all of it, and does not hear the tunnel.
    let before = explained("rxe9")?;
    let [tunnel, above, second, other] = refused;
    for gid in [tunnel, above] {
        ensure!(is(&before, gid, "soft RoCE takes only what arrives"), "{gid}: {before}");
    }
    for gid in [second, other] {
        ensure!(
            is(&before, gid, "recommended") || is(&before, gid, "equally good"),
            "{gid}: {before}"
        );
    }
    // Soft RoCE takes nothing that arrives at a macvlan.
    run(&["ip", "link", "add", "link", "v0", "name", "m0", "type", "macvlan", "mode", "bridge"])?;
    let _macvlan = Netdev::made("m0");
    run(&["ip", "link", "set", "m0", "up"])?;
    run(&["ip", "address", "add", "10.66.0.1/24", "dev", "m0"])?;
    // The port's own address comes last, and is the one to take.
    run(&["ip", "address", "add", "10.1.0.1/24", "dev", "v0"])?;
    lab::wait_until("the two addresses have rows", || {
        run(&["uverbs", "gids", "rxe9"])
            .is_ok_and(|rows| ["10.1.0.1", "10.66.0.1"].iter().all(|own| rows.contains(own)))
    })?;
    let after = explained("rxe9")?;
    ensure!(is(&after, "10.1.0.1", "recommended"), "{after}");
    ensure!(is(&after, "10.66.0.1", "soft RoCE takes only what arrives"), "{after}");
    // UCX takes the first of which the kernel makes an address handle, also past a tunnel.
    compare("a tunnel", None, &[&[("UCX_NET_DEVICES", "rxe9:1")]])?;
    drop(rdma);
    let _on_it = SoftRoce::new("rxe8", &flannel)?;
    lab::wait_until("the device on the tunnel has its row", || {
        run(&["uverbs", "gids", "rxe8"]).is_ok_and(|rows| rows.contains("10.244.0.0"))
    })?;
    let own = explained("rxe8")?;
    ensure!(is(&own, "10.244.0.0", "recommended"), "{own}");
    Ok(())
}

/// Of an IPv4 address of a point-to-point link the kernel makes the GID of the other end. An IPv6 address that
/// another host has keeps its GID, too. Neither is recommended.
pub(crate) fn addresses_that_nobody_can_use() -> Result<()> {
    let _lab = lab::two_soft_roce_devices()?;
    run(&["ip", "address", "add", "10.9.0.1", "peer", "10.9.0.2", "dev", "d0"])?;
    // Two ends of a cable, and both are given fd00:9::9.
    let elsewhere = Namespace::new("duplicate")?;
    run(&["ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1"])?;
    let cable = Netdev::made("v0");
    elsewhere.take(Netdev::made("v1"))?;
    elsewhere.run(&["ip", "link", "set", "v1", "up"])?;
    elsewhere.run(&["ip", "address", "add", "fd00:9::9/64", "dev", "v1", "nodad"])?;
    run(&["ip", "link", "set", "v0", "up"])?;
    let rdma = SoftRoce::new("rxe9", &cable)?;
    lab::wait_until("v0 has a carrier", || {
        fs::read_to_string("/sys/class/net/v0/carrier").is_ok_and(|text| text.trim() == "1")
    })?;
    run(&["ip", "address", "add", "fd00:9::9/64", "dev", "v0"])?;
    lab::wait_until("the address is found to be another's", || {
        run(&["ip", "address", "show", "dev", "v0"]).is_ok_and(|text| text.contains("dadfailed"))
    })?;
    for (device, gid, why) in [
        (
            "rxe0",
            "::ffff:10.9.0.2",
            "its address is that of the other end of a point-to-point link",
        ),
        ("rxe9", "fd00:9::9", "another host has its address"),
    ] {
        let answer = run(&["uverbs", "choose", device, "--explain"])?;
        let line = answer.lines().find(|line| line.contains(gid)).context("no row")?;
        ensure!(line.contains(why) && !line.contains("recommended"), "{answer}");
    }
    // The kernel makes UCX no address handle with a default GID that is no address of the interface.
    let own = run(&["ip", "-6", "-o", "address", "show", "dev", "v0", "scope", "link"])?;
    let own =
        own.split_whitespace().find(|word| word.starts_with("fe80::")).context("no fe80::")?;
    run(&["ip", "address", "delete", own, "dev", "v0"])?;
    let only = |device| [("UCX_NET_DEVICES", device)];
    // While the kernel knows that host as a neighbour, UCX may take it.
    let answer = run(&["uverbs", "choose", "rxe9", "--like", UCX, "--json"])?;
    let answer: Value = serde_json::from_str(&answer)?;
    ensure!(answer["choose"][0]["is_sure"] == false, "{answer}");
    run(&["ip", "address", "delete", "fd00:9::9/64", "dev", "v0"])?;
    run(&["ip", "address", "add", "fd00:9::8/64", "dev", "v0", "nodad"])?;
    rdma.wait_for_gids(2)?;
    compare("a default GID without an address", Some(&[("rxe9:1", 1)]), &[&only("rxe9:1")])?;
    // The kernel takes it for IPv4.
    run(&["ip", "address", "add", "::ffff:10.9.0.1/128", "dev", "v0", "nodad"])?;
    rdma.wait_for_gids(3)?;
    compare("IPv4 in IPv6", Some(&[("rxe9:1", 1)]), &[&only("rxe9:1")])?;
    let answer = lab::output(&["uverbs", "choose", "rxe9", "--explain"])?;
    ensure!(answer.status.code() == Some(1), "{answer:?}");
    let answer = String::from_utf8(answer.stdout)?;
    for (gid, why) in [
        ("fe80::", "its interface does not have its address, which is made of the MAC address"),
        ("::ffff:10.9.0.1", "the kernel takes it for an IPv4 address"),
        ("fd00:9::8", "its interface has no link-local IPv6 address"),
    ] {
        ensure!(answer.lines().any(|line| line.contains(gid) && line.contains(why)), "{answer}");
    }
    // What arrives at a member of a bridge is the bridge's. UCX asks for no neighbour.
    run(&["ip", "address", "add", "10.9.7.1/24", "dev", "v0"])?;
    rdma.wait_for_gids(4)?;
    let recommended = || -> Result<Value> {
        let answer = run(&["uverbs", "choose", "rxe9", "--json"])?;
        let answer: Value = serde_json::from_str(&answer)?;
        Ok(answer["choose"][0]["index"].clone())
    };
    ensure!(recommended()? == 3, "{}", recommended()?);
    run(&["ip", "link", "add", "br9", "type", "bridge"])?;
    let bridge = Netdev::made("br9");
    run(&["ip", "link", "set", "br9", "addrgenmode", "none"])?;
    run(&["ip", "link", "set", "br9", "up"])?;
    run(&["ip", "link", "set", "v0", "master", "br9"])?;
    run(&["ip", "address", "add", "10.9.7.2/24", "dev", "br9"])?;
    rdma.wait_for_gids(5)?;
    compare("a member of a bridge", Some(&[("rxe9:1", 3)]), &[&only("rxe9:1")])?;
    let answer = lab::output(&["uverbs", "choose", "rxe9", "--explain"])?;
    let answer = String::from_utf8(answer.stdout)?;
    println!("{answer}");
    let of = |gid: &str| answer.lines().find(|line| line.contains(gid)).unwrap_or_default();
    ensure!(of("10.9.7.1").contains("another interface takes what arrives"), "{answer}");
    // The bridge's own has that reason only.
    ensure!(of("10.9.7.2").contains("soft RoCE takes only what arrives"), "{answer}");
    // So it is below a macvlan that takes all.
    drop(bridge);
    ensure!(recommended()? == 3, "{}", recommended()?);
    run(&["ip", "link", "add", "m9", "link", "v0", "type", "macvlan", "mode", "passthru"])?;
    let above = Netdev::made("m9");
    let answer = lab::output(&["uverbs", "choose", "rxe9", "--explain"])?;
    let answer = String::from_utf8(answer.stdout)?;
    ensure!(
        answer.lines().any(|line| {
            line.contains("10.9.7.1") && line.contains("another interface takes what arrives")
        }),
        "{answer}"
    );
    drop((above, rdma));
    let netdev = Netdev::dummy("d9", "02:11:22:33:44:99")?;
    let rxe = SoftRoce::new("rxe8", &netdev)?;
    rxe.wait_for_gids(1)?;
    run(&["ip", "address", "add", "10.9.0.1", "peer", "10.9.0.2", "dev", "d9"])?;
    rxe.wait_for_gids(2)?;
    compare("the other end of a link", Some(&[("rxe8:1", 0)]), &[&only("rxe8:1")])
}
