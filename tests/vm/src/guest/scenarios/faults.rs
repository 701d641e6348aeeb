//! Missing permissions, missing nodes, unknown drivers, very many devices.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use anyhow::{Context as _, Result, ensure};
use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use serde_json::Value;
use uverbs::choose::nccl::ROOM;
use uverbs::context::Context;
use uverbs::error::Cause;
use uverbs::host::Host;
use uverbs::host::{Preference, Reader, Source};

use crate::lab::limited::Limit;
use crate::lab::{self, Aside, Netdev, SoftRoce, output_as_nobody, run};
use uverbs_vm::has_its_turn;

/// Another user needs nothing but the node's mode; without it, a clear error or sysfs.
pub(crate) fn another_user() -> Result<()> {
    let _lab = lab::vlan_lab()?;
    let node = "/dev/infiniband/uverbs0";
    let gids = |more: &[&str]| {
        let output = output_as_nobody(&[&["uverbs", "gids", "--json"], more].concat())?;
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        println!("{:?}\n{stdout}{stderr}", output.status);
        anyhow::Ok((output.status.code(), serde_json::from_str::<Value>(&stdout)?, stderr))
    };
    let (status, answer, _) = gids(&["--source", "ioctl"])?;
    ensure!(status == Some(0) && answer["gids"].as_array().is_some_and(|rows| rows.len() == 4));

    fs::set_permissions(node, Permissions::from_mode(0o600))?;
    let (status, answer, _) = gids(&["--source", "ioctl"])?;
    ensure!(status == Some(3) && answer["gids"].as_array().is_some_and(Vec::is_empty));
    ensure!(answer["problems"][0]["device"] == "rxe0" && answer["problems"][0]["errno"] == 13);

    let (status, answer, stderr) = gids(&[])?;
    let by_sysfs = |row: &Value| row["source"] == "sysfs";
    ensure!(status == Some(0) && answer["gids"].as_array().is_some_and(|r| r.iter().all(by_sysfs)));
    ensure!(stderr.contains("permission denied"), "the reason is not said");
    Ok(())
}

/// Without `/dev/infiniband` sysfs answers, and says why; a wrong node is not believed.
pub(crate) fn without_nodes() -> Result<()> {
    let _lab = lab::vlan_lab()?;
    let node = "/dev/infiniband/uverbs0";
    let aside = Aside::moved(node)?;

    let mut host = Host::new();
    let device = host.device("rxe0")?;
    let error = Context::open(&device).err().context("opened without a node")?;
    println!("{error}");
    ensure!(*error.cause() == Cause::NodeMissing && error.errno() == 2);
    let mut reader = Reader::new(&device, host.sysfs(), Preference::Auto)?;
    let records = reader.gid_table()?;
    ensure!(records.len() == 4 && records.iter().all(|record| record.source == Source::Sysfs));
    ensure!(reader.fallback().is_some_and(|reason| *reason.cause() == Cause::NodeMissing));
    ensure!(Reader::new(&device, host.sysfs(), Preference::Ioctl).is_err());

    drop(aside);
    let aside = Aside::moved("/dev/infiniband")?;
    let output = lab::output(&["uverbs", "gids", "--json"])?;
    let answer: Value = serde_json::from_slice(&output.stdout)?;
    println!("{answer}\n{}", String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success() && answer["gids"].as_array().is_some_and(|r| r.len() == 4));
    ensure!(answer["gids"][0]["source"] == "sysfs" && answer["gids"][0]["netdev"] == "d0");
    ensure!(String::from_utf8_lossy(&output.stderr).contains("/dev/infiniband/uverbs0"));
    drop(aside);
    let aside = Aside::moved(node)?;

    fs::write(node, "not a device")?;
    let error = Context::open(&device).err().context("opened a file")?;
    println!("{error}");
    ensure!(*error.cause() == Cause::WrongNode);
    fs::remove_file(node)?;
    // /dev/null, numbers that no device has, and a disk's.
    for (kind, major, minor) in [
        (FileType::CharacterDevice, 1, 3),
        (FileType::CharacterDevice, 231, 215),
        (FileType::CharacterDevice, 239, 3),
        (FileType::BlockDevice, 231, 192),
        (FileType::Fifo, 0, 0),
    ] {
        mknodat(CWD, node, kind, Mode::RUSR, makedev(major, minor))?;
        let error = Context::open(&device).err().context("opened what is not the node")?;
        ensure!(*error.cause() == Cause::WrongNode, "{kind:?} {major}:{minor}: {error}");
        let output = lab::output(&["uverbs", "gids", "--json"])?;
        let answer: Value = serde_json::from_slice(&output.stdout)?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(answer["gids"].as_array().is_some_and(|rows| rows.len() == 4), "{answer}");
        ensure!(output.status.success() && said.contains("the node is stale"), "{said}");
        fs::remove_file(node)?;
    }
    drop(aside);
    ensure!(Context::open(&device).is_ok(), "the node is back");
    Ok(())
}

/// `QUERY_PORT_SPEED` came with 7.0, and soft RoCE does not offer it.
pub(crate) fn port_speed_by_release() -> Result<()> {
    let _lab = lab::vlan_lab()?;
    let error = Host::new().open("rxe0")?.query_port_speed(1).err().context("it answers")?;
    println!("{error}");
    let (cause, errno) = if lab::kernel()? >= (7, 0) {
        (Cause::NotOffered, 95)
    } else {
        (Cause::UnknownToKernel, 93)
    };
    ensure!((error.cause(), error.errno()) == (&cause, errno), "{error:?}");
    Ok(())
}

/// Probing finds the driver id that netlink gives, and no other id is accepted.
pub(crate) fn the_probe_finds_the_driver() -> Result<()> {
    let _lab = lab::vlan_lab()?;
    let mut device = Host::new().device("rxe0")?;
    let told = device.driver.take().context("netlink does not tell the driver")?;
    ensure!(uverbs::context::probe_driver(&device)? == told);
    let context = Context::open(&device)?;
    ensure!(context.driver() == told && !context.query_gid_table()?.is_empty());
    Ok(())
}

/// More devices than old tables had room for, and than the first block of minors.
pub(crate) fn many_devices() -> Result<()> {
    // Old tables have 32, 64 or 128.
    let count = if has_its_turn(0, 5) || !lab::is_newest_kernel()? { 140 } else { 70 };
    let mut lab = Vec::new();
    for number in 0..count {
        let mac = format!("02:00:00:00:{:02x}:{:02x}", number / 256, number % 256);
        let netdev = Netdev::dummy(&format!("d{number}"), &mac)?;
        lab.push((SoftRoce::new(&format!("rxe{number}"), &netdev)?, netdev));
    }
    for mut host in [Host::new(), Host::rooted("/sys", "/dev/infiniband")] {
        let devices = host.devices()?;
        ensure!(devices.len() == count, "{} devices", devices.len());
        for (number, device) in devices.iter().enumerate() {
            ensure!(device.name == format!("rxe{number}"), "{} at {number}", device.name);
            let context = Context::open(device)?;
            let entry = context.query_gid_ex(1, 0)?.context("no default GID")?;
            let [.., high, low] = entry.gid().to_bytes();
            ensure!((usize::from(high), usize::from(low)) == (number / 256, number % 256));
        }
    }
    let answer = run(&["uverbs", "devices"])?;
    ensure!(answer.lines().count() == count + 1, "{answer}");
    Ok(())
}

/// NCCL takes as many ports as it has room for, in the order of libibverbs: `choose` has the same ones,
/// and our library lists the same way. Also after devices were deleted, made anew and renamed; and where
/// neither has netlink.
pub(crate) fn the_order_of_libibverbs() -> Result<()> {
    const COUNT: u8 = 44;
    const EPROTONOSUPPORT: u32 = 93;
    let netdev = |number: u8| -> Result<Netdev> {
        let mac = format!("02:00:00:00:01:{number:02x}");
        let netdev = Netdev::dummy(&format!("d{number}"), &mac)?;
        netdev.address(&format!("10.1.{number}.1/24"))?;
        Ok(netdev)
    };
    let netdevs = (0..COUNT).map(netdev).collect::<Result<Vec<_>>>()?;
    // They are made in no order of their names.
    let name = |number: usize| format!("rxe{}", number * 7 % usize::from(COUNT));
    let made = netdevs.iter().enumerate();
    let mut devices = made
        .map(|(number, netdev)| Ok(Some(SoftRoce::new(&name(number), netdev)?)))
        .collect::<Result<Vec<_>>>()?;
    let is_newest = lab::is_newest_kernel()?;
    for (number, sockets) in (0..).zip([None, Some(EPROTONOSUPPORT)]) {
        if !is_newest || has_its_turn(number, 2) {
            compare_orders(sockets)?;
        }
    }

    // Without netlink libibverbs knows soft RoCE by these names only.
    for number in [0, 3, 20, 21] {
        devices[number] = None;
    }
    for number in [21, 3, 0] {
        devices[number] = Some(SoftRoce::new(&format!("rxe1{number:02}"), &netdevs[number])?);
    }
    for number in [1, 30] {
        let device = devices[number].take().context("no device")?;
        devices[number] = Some(device.renamed(&format!("rxe2{number:02}"))?);
    }
    for (number, sockets) in (1..).zip([None, Some(EPROTONOSUPPORT)]) {
        if !is_newest || has_its_turn(number, 2) {
            let order = compare_orders(sockets)?;
            ensure!(order.len() == usize::from(COUNT) - 1 && !order.is_sorted(), "{order:?}");
        }
    }
    Ok(())
}

/// Compares with rdma-core's list, which is returned. Sockets may be forbidden.
fn compare_orders(sockets: Option<u32>) -> Result<Vec<String>> {
    let ran = |command: &[&str]| -> Result<String> {
        let output = match sockets {
            Some(errno) => Limit::Sockets(errno).output(command)?,
            None => lab::output(command)?,
        };
        // Without sockets interfaces are not known, which `choose` says.
        let is_right = output.status.success() || sockets.is_some();
        ensure!(is_right && !output.stdout.is_empty(), "{command:?}: {output:?}");
        Ok(String::from_utf8(output.stdout)?)
    };
    // The first words of lines, each once.
    let listed = |program: &str, heading: usize| -> Result<Vec<String>> {
        let text = ran(&[program])?;
        let lines = text.lines().skip(heading);
        let mut names: Vec<String> =
            lines.filter_map(|line| Some(line.split_whitespace().next()?.to_owned())).collect();
        names.dedup();
        Ok(names)
    };
    let theirs = listed("/usr/bin/ibv_devices", 2)?;
    let ours = listed("/usr/uverbs/query_gid_table", 0)?;
    ensure!(ours == theirs, "sockets {sockets:?}: {ours:?} and {theirs:?}");
    let answer: Value = serde_json::from_str(&ran(&["/usr/bin/uverbs", "choose", "--json"])?)?;
    let rows = answer["choose"].as_array().context("no rows")?;
    ensure!(rows.len() == theirs.len() && rows.iter().all(|row| row["index"] == 1), "{answer:#}");
    let used = rows.iter().filter(|row| row["nccl"]["index"].is_number());
    let used: BTreeSet<&str> = used.filter_map(|row| row["device"].as_str()).collect();
    let room: BTreeSet<&str> = theirs.iter().take(ROOM).map(String::as_str).collect();
    ensure!(used == room, "sockets {sockets:?}: NCCL uses {used:?}, of {theirs:?}");
    Ok(theirs)
}
