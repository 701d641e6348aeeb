//! Each kind of function: the resulting device, on which all sources agree.

use std::fs;
use std::net::Ipv6Addr;
use std::os::unix::fs::PermissionsExt as _;

use anyhow::{Context as _, Result, ensure};
use nix::libc;
use rustix::mount::{UnmountFlags, mount_bind, unmount};
use serde_json::Value;
use uverbs::context::Context;
use uverbs::gid::{Gid, GidType};
use uverbs::host::Host;
use uverbs::mlx5::port::VportNumber;
use uverbs::sysfs::Sysfs;
use uverbs_mlx5_function::description::{Description, Mode};

use super::{all_agree, found, opened_as_described, ports};
use crate::lab::mlx5::{Mlx5, PortEvent};
use crate::lab::{self, run};
use crate::scenarios::{answers, tools};

/// InfiniBand, one port.
pub(crate) fn one_infiniband_port() -> Result<()> {
    let description = Description::infiniband(1);
    let device = Mlx5::bind(0, &description)?;
    drop(opened_as_described(&device, &description)?);
    all_agree(&device, &description)
}

/// InfiniBand, two ports that have nothing in common.
pub(crate) fn two_infiniband_ports() -> Result<()> {
    let description = unlike_ports();
    let device = Mlx5::bind(0, &description)?;
    drop(opened_as_described(&device, &description)?);
    all_agree(&device, &description)?;
    answers::compare_umad(&[2])?;
    nodes_of_both_kinds()?;
    tools::compare_devinfo(device.name(), "mlx5", "ib")?;
    tools::compare_ibstat(&[device.name()])
}

/// Each port has a node for management datagrams and one for a subnet manager, live as by sysfs.
fn nodes_of_both_kinds() -> Result<()> {
    let live = run(&["uverbs", "cdi"])?;
    let copied = run(&["uverbs", "cdi", "--sysfs", "/sys"])?;
    ensure!(live == copied, "{live}\nby sysfs: {copied}");
    for node in ["umad0", "umad1", "issm0", "issm1"] {
        ensure!(live.contains(&format!("/dev/infiniband/{node}\"")), "{node}: {live}");
    }
    Ok(())
}

/// Two ports whose every attribute differs, with gaps in the second one's tables.
pub(super) fn unlike_ports() -> Description {
    let mut description = Description::infiniband(2);
    for port in &mut description.ports {
        port.gid_table_len = 16;
    }
    if let [_, second] = description.ports.as_mut_slice() {
        second.gids.retain(|(index, _)| *index != 1);
        let (_, last) = second.gids[1];
        second.gids.push((15, last.map(|byte| byte ^ 0x10)));
        second.pkeys = vec![0x7fff, 0, 0x8003];
        (second.lid, second.lmc) = (0x1234, 3);
        (second.sm_lid, second.sm_sl) = (0x4321, 9);
        (second.state, second.phys_state) = (2, 5);
        (second.width, second.speed) = (4, 0x10);
        second.mtu = 2048;
        second.cap_mask = 0x0000_0802;
    }
    description
}

/// The speeds of InfiniBand. Before Linux 6.7 the ioctl says NDR of each speed from there on. Sysfs knows NDR then, but
/// not on 5.10.
pub(crate) fn speeds_by_release() -> Result<()> {
    let mut description = Description::infiniband(1);
    let device = Mlx5::bind(0, &description)?;
    let (has_all, knows_ndr) = (lab::kernel()? >= (6, 7), lab::kernel()? >= (6, 1));
    // By the ioctl, and with sysfs, too.
    for (code, told, is_by_ioctl, is_by_both) in [
        (64, "\"HDR\" 200", true, true),
        (128, "\"NDR\" 400", has_all, knows_ndr),
        (256, "\"XDR\" 800", has_all, has_all),
        (512, "\"unknown(512)\" null", has_all, has_all),
    ] {
        (description.ports[0].width, description.ports[0].speed) = (4, code);
        device.function().become_(&description)?;
        for (source, is_known) in [("ioctl", is_by_ioctl), ("auto", is_by_both)] {
            let text = run(&["uverbs", "ports", "--json", "--source", source])?;
            let answer: Value = serde_json::from_str(&text)?;
            let port = &answer["ports"][0];
            let own = format!("{} {}", port["active_speed"], port["rate_gbps"]);
            let expected = if is_known { told } else { "null null" };
            ensure!(own == expected, "{code} by {source}: {own}, not {expected}");
            ensure!(port["active_width"] == "4X", "{port}");
        }
    }
    description.ports[0].speed = 128;
    device.function().become_(&description)?;
    speed_that_sysfs_refuses(device.name(), has_all)
}

/// Of a port of NDR: where sysfs may not be read, all else is known. A file that is read and says nothing is an error.
fn speed_that_sysfs_refuses(name: &str, is_by_ioctl: bool) -> Result<()> {
    let file = format!("/sys/class/infiniband/{name}/ports/1/rate");
    let command = ["uverbs", "ports", "--json"];
    fs::set_permissions(&file, fs::Permissions::from_mode(0o000))?;
    let refused = lab::output_as_nobody(&command)?;
    let answer: Value = serde_json::from_slice(&refused.stdout)?;
    let port = &answer["ports"][0];
    let speed = if is_by_ioctl { Value::from("NDR") } else { Value::Null };
    ensure!(refused.status.success() && port["state"] == "active", "{answer}");
    ensure!(port["active_speed"] == speed && port["source"] == "ioctl", "{answer}");

    fs::write("/run/rate", "odd\n")?;
    mount_bind("/run/rate", &file)?;
    let covered = lab::output(&command);
    unmount(&file, UnmountFlags::DETACH)?;
    let covered = covered?;
    let answer = String::from_utf8_lossy(&covered.stdout);
    ensure!(covered.status.success() == is_by_ioctl, "{answer}");
    ensure!(answer.contains("ports/1/rate") != is_by_ioctl, "{answer}");
    Ok(())
}

/// RoCE: its GIDs are those of its interface, down and up, and its port's state is the link's.
pub(crate) fn roce() -> Result<()> {
    let description = Description::roce();
    let device = Mlx5::bind(0, &description)?;
    let name = device.name();
    let netdev = device.netdev()?;
    let found = found(&device, &description)?;
    ensure!((found.protocol.as_deref(), found.port_count) == (Some("roce"), 1));
    let context = Context::open(&found)?;

    let link_local = link_local(description.ports[0].mac);
    let ipv4 = Gid::from(Ipv6Addr::from([0, 0, 0, 0, 0, 0xffff, 0x0a09, 0x0001]));
    wait_for_gids(&context, &netdev, &[link_local])?;
    let state = || Ok::<_, anyhow::Error>(context.query_port(1)?.state.name().unwrap_or("?"));
    ensure!(state()? == "down");
    all_agree(&device, &description)?;

    run(&["ip", "address", "add", "10.9.0.1/24", "dev", &netdev])?;
    run(&["ip", "link", "set", &netdev, "up"])?;
    lab::wait_until("the port is up", || state().is_ok_and(|state| state == "active"))?;
    wait_for_gids(&context, &netdev, &[link_local, ipv4])?;
    all_agree(&device, &description)?;
    answers::compare_umad(&[2])?;
    tools::compare_devinfo(name, "mlx5", "roce")?;
    tools::compare_ibstat(&[name])?;

    device.function().port_event(1, PortEvent::Down, |port| port.state = 1)?;
    lab::wait_until("the port is down", || state().is_ok_and(|state| state == "down"))?;
    ensure!(Sysfs::host().query_port(name, 1)?.state.name() == Some("down"));
    device.function().port_event(1, PortEvent::Active, |port| port.state = 4)?;
    lab::wait_until("the port is up again", || state().is_ok_and(|state| state == "active"))
}

/// Waits until the table has these GIDs with both versions of RoCE, all on this interface.
fn wait_for_gids(context: &Context, netdev: &str, gids: &[Gid]) -> Result<()> {
    let index: u32 =
        fs::read_to_string(format!("/sys/class/net/{netdev}/ifindex"))?.trim().parse()?;
    let mut wanted: Vec<(Gid, GidType)> = Vec::new();
    for gid in gids {
        wanted.extend([(*gid, GidType::ROCE_V1), (*gid, GidType::ROCE_V2)]);
    }
    wanted.sort_unstable();
    let told = || -> Result<Vec<(Gid, GidType)>> {
        let table = context.query_gid_table()?;
        ensure!(table.iter().all(|e| e.netdev_ifindex().is_some_and(|i| i.get() == index)));
        let mut told: Vec<_> = table.iter().map(|entry| (entry.gid(), entry.gid_type())).collect();
        told.sort_unstable();
        Ok(told)
    };
    lab::wait_until("the GIDs are there", || told().is_ok_and(|told| told == wanted))
        .with_context(|| format!("{:?} instead of {wanted:?}", told()))
}

/// The link-local address that is made of a MAC address.
fn link_local(mac: [u8; 6]) -> Gid {
    let mut gid = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, mac[0] ^ 2, 0, 0, 0xff, 0xfe, 0, 0, 0];
    gid[9..11].copy_from_slice(&mac[1..3]);
    gid[13..].copy_from_slice(&mac[3..]);
    Gid::from_bytes(gid)
}

/// An e-switch manager: one Ethernet port as any other, without RoCE. In switchdev mode it has one
/// port more, the uplink, and the first represents nothing.
pub(crate) fn switchdev() -> Result<()> {
    let description = Description::switchdev();
    let mut device = Mlx5::bind(0, &description)?;
    ensure!(found(&device, &description)?.port_count == 1);
    all_agree(&device, &description)?;
    let before = Host::new().open(device.name())?;
    device.switchdev()?;
    let error = before.query_port(1).err().context("an answer of the device before")?;
    println!("{error}");
    ensure!(*error.cause() == uverbs::error::Cause::DeviceGone(libc::EIO));
    representors(&device, &description, &[None, Some(VportNumber::UPLINK)])
}

/// The embedded CPU of a smart NIC: in switchdev mode a port each for the host's PF, its VFs and the
/// uplink; some kernels count one for the embedded CPU itself, which it has not.
pub(crate) fn embedded_cpu() -> Result<()> {
    let description = Description::embedded_cpu(2);
    let mut device = Mlx5::bind(0, &description)?;
    all_agree(&device, &description)?;
    device.switchdev()?;
    let mut vports = vec![Some(VportNumber::PF), Some(VportNumber(1)), Some(VportNumber(2))];
    if lab::kernel()? >= (6, 12) {
        vports.push(None);
    }
    vports.push(Some(VportNumber::UPLINK));
    representors(&device, &description, &vports)
}

/// An embedded CPU with a vport of its own, which has a port, too.
pub(crate) fn embedded_cpu_with_a_vport() -> Result<()> {
    let mode = Mode::EmbeddedCpu { host_vfs: 1, own_vport: true };
    let description = Description { mode, ..Description::embedded_cpu(1) };
    let mut device = Mlx5::bind(0, &description)?;
    device.switchdev()?;
    let vports = [VportNumber::PF, VportNumber(1), VportNumber::ECPF, VportNumber::UPLINK];
    representors(&device, &description, &vports.map(Some))
}

/// Representors' ports have no GIDs, and are down like their interfaces.
fn representors(
    device: &Mlx5,
    description: &Description,
    vports: &[Option<VportNumber>],
) -> Result<()> {
    let found = found(device, description)?;
    ensure!(usize::try_from(found.port_count)? == vports.len(), "{} ports", found.port_count);
    let context = Context::open(&found)?;
    for number in found.ports() {
        let port = context.query_port(number)?;
        ensure!((port.state.name(), port.link_layer.name()) == (Some("down"), Some("ethernet")));
    }
    ensure!(context.query_gid_table()?.is_empty());
    drop(context);
    // Sysfs has a folder of GIDs for each of them, which is empty.
    let sysfs = Sysfs::host();
    for number in found.ports() {
        ensure!(sysfs.query_port(device.name(), number)?.gid_tbl_len == 0);
    }
    ensure!(sysfs.query_gid_table(device.name())?.is_empty());
    ports::as_described(device, description, vports)?;
    all_agree(device, description)?;
    answers::compare_umad(&[2])
}

/// Two devices of different kinds at the same time.
pub(crate) fn two_devices() -> Result<()> {
    let descriptions = [Description::infiniband(1), Description::roce().sibling()];
    let infiniband = Mlx5::bind(0, &descriptions[0])?;
    let roce = Mlx5::bind(1, &descriptions[1])?;
    drop(opened_as_described(&infiniband, &descriptions[0])?);
    let netdev = roce.netdev()?;
    let link_local = link_local(descriptions[1].ports[0].mac);
    let context = Context::open(&found(&roce, &descriptions[1])?)?;
    wait_for_gids(&context, &netdev, &[link_local])?;

    let mut names = [infiniband.name(), roce.name()];
    names.sort_unstable();
    for mut host in [Host::new(), Host::rooted("/sys", "/dev/infiniband")] {
        let listed: Vec<String> = host.devices()?.into_iter().map(|device| device.name).collect();
        ensure!(listed == names, "{listed:?}");
    }
    for (device, description, protocol) in
        [(&infiniband, &descriptions[0], "ib"), (&roce, &descriptions[1], "roce")]
    {
        all_agree(device, description)?;
        tools::compare_devinfo(device.name(), "mlx5", protocol)?;
    }
    tools::compare_ibstat(&names)
}

/// What the driver adds to a device's limits is what `ibv_devinfo -v` shows: TCP segmentation, hashing.
pub(crate) fn limits_agree() -> Result<()> {
    let device = Mlx5::bind(0, &Description::roce())?;
    let limits = tools::limits_agree_of(device.name())?;
    // The function offers packets of 2^18 bytes.
    ensure!(
        limits["max_tso"] == 1 << 18 && limits["tso_supported_qp"][0] == "raw_packet",
        "{limits}"
    );
    ensure!(limits["rx_hash_function"][0] == "toeplitz", "{limits}");
    Ok(())
}
