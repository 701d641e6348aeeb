//! Soft iWARP (`siw`): a device of another node type and transport, whose one GID is its MAC address.

use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use uverbs::context::Context;
use uverbs::device::NodeType;
use uverbs::error::Cause;
use uverbs::gid::GidType;
use uverbs::host::Host;
use uverbs::port::{LinkLayer, PortState};
use uverbs::sysfs::Sysfs;
use uverbs_vm::stretched;

use super::changes::answers_after_removal;
use super::{answers, examples, tools};
use crate::lab::{self, Namespace, Netdev, SoftIwarp, SoftRoce, run};

const MAC: &str = "02:11:22:33:44:55";
/// The same as a GID.
const GID: &str = "211:2233:4455::";

/// A device `siw0` on `d0`, with an address.
pub(super) struct IwarpLab {
    _module: SoftIwarp,
    _netdev: Netdev,
}

impl IwarpLab {
    pub(super) fn new() -> Result<Self> {
        let module = SoftIwarp::load()?;
        let netdev = Netdev::dummy("d0", MAC)?;
        netdev.address("192.168.77.1/24")?;
        SoftIwarp::add("siw0", &netdev)?;
        lab::wait_until("the port is active", || {
            Sysfs::host().query_port("siw0", 1).is_ok_and(|port| port.state == PortState::ACTIVE)
        })?;
        Ok(Self { _module: module, _netdev: netdev })
    }
}

/// Whether the GID is the interface's MAC address of now. Debian's kernels from 6.1 on keep the one with which the device
/// was made.
pub(super) fn gid_follows_the_mac() -> Result<bool> {
    Ok(lab::kernel()? < (6, 1))
}

/// What the library says of the device, its port and its GID, from each source.
pub(crate) fn comes_up() -> Result<()> {
    let lab = IwarpLab::new()?;
    let mut host = Host::new();
    let device = host.device("siw0")?;
    println!("{device:#?}");
    ensure!(device.node_type == NodeType::RNIC && device.ports() == (1..=1), "{device:?}");
    ensure!(device.protocol.as_deref() == Some("iw"), "{:?}", device.protocol);
    let context = Context::open(&device)?;
    ensure!(context.driver().name() == Some("siw"), "{:?}", context.driver());
    let port = context.query_port(1)?;
    println!("{port:#?}");
    ensure!(port.link_layer == LinkLayer::ETHERNET && port.state == PortState::ACTIVE, "{port:?}");

    let table = context.query_gid_table()?;
    println!("figure: the GID table by ioctl: {table:?}");
    let [entry] = &table[..] else { anyhow::bail!("not one GID: {table:?}") };
    ensure!(entry.gid().to_string() == GID && entry.gid_type() == GidType::IB, "{entry:?}");
    let has_ifindex = lab::kernel()? >= (6, 5);
    ensure!(entry.netdev_ifindex().is_some() == has_ifindex, "{entry:?}");
    let by_sysfs = Sysfs::host().query_gid_table("siw0")?;
    let [record] = &by_sysfs[..] else { anyhow::bail!("not one GID in sysfs: {by_sysfs:?}") };
    ensure!(record.entry.gid() == entry.gid() && record.entry.index() == entry.index());
    drop(context);

    for command in [&["devices"][..], &["ports"], &["gids"], &["choose", "--explain"], &["check"]] {
        let output = lab::output(&[&["uverbs"], command].concat())?;
        println!("{command:?}: {}", String::from_utf8_lossy(&output.stdout));
        ensure!(output.status.code().is_some_and(|status| status < 3), "{output:?}");
    }
    let listed = run(&["uverbs", "devices", "--no-header"])?;
    let words: Vec<&str> = listed.split_whitespace().collect();
    ensure!(words[..5] == ["siw0", "rnic", "iw", "siw", "1"], "{listed}");
    // What is in another namespace takes no address of this one.
    let elsewhere = Namespace::new("iwarp")?;
    run(&["ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1"])?;
    let cable = Netdev::made("v0");
    elsewhere.take(Netdev::made("v1"))?;
    run(&["ip", "link", "set", "v0", "up"])?;
    elsewhere.run(&["ip", "link", "set", "v1", "up"])?;
    elsewhere.run(&["rdma", "link", "add", "siw1", "type", "siw", "netdev", "v1"])?;
    lab::wait_until("the other port is active", || {
        Sysfs::host().query_port("siw1", 1).is_ok_and(|port| port.state == PortState::ACTIVE)
    })?;
    let output = lab::output(&["uverbs", "choose", "siw1", "--explain"])?;
    ensure!(output.status.code() == Some(1), "{output:?}");
    // There is no address to connect. Before Linux 6.5 one of a bridge above would do.
    let output = elsewhere.output(&["uverbs", "choose", "siw1"])?;
    ensure!(output.status.success() == (lab::kernel()? < (6, 5)), "{output:?}");
    elsewhere.run(&["ip", "address", "add", "10.9.9.1/24", "dev", "v1"])?;
    elsewhere.run(&["uverbs", "choose", "siw1"])?;
    drop((cable, elsewhere, lab));
    lab::sweep()
}

/// libibverbs and libibumad, alone, beside soft RoCE, and with an interface that is down.
pub(crate) fn answers_agree() -> Result<()> {
    let _lab = IwarpLab::new()?;
    answers::compare_verbs("siw0")?;
    answers::compare_umad(&[0, 1, 2])?;
    let other = Netdev::dummy("d1", "02:66:77:88:99:aa")?;
    SoftIwarp::add("siw1", &other)?;
    run(&["ip", "link", "set", "d0", "down"])?;
    lab::wait_until("the port is down", || {
        Sysfs::host().query_port("siw0", 1).is_ok_and(|port| port.state != PortState::ACTIVE)
    })?;
    for device in ["siw0", "siw1"] {
        answers::compare_verbs(device)?;
    }
    answers::compare_umad(&[0, 1, 2])
}

/// Debian's own tools: they show the same, and `ibstat` leaves the device out.
pub(crate) fn tools_agree() -> Result<()> {
    let _lab = IwarpLab::new()?;
    tools::compare_devinfo("siw0", "siw", "iw")?;
    tools::limits_agree_of("siw0")?;
    let netdev = Netdev::dummy("d1", "02:66:77:88:99:aa")?;
    let rxe = SoftRoce::new("rxe0", &netdev)?;
    rxe.wait_for_gids(1)?;
    tools::compare_devinfo("siw0", "siw", "iw")?;
    tools::compare_ibstat(&["rxe0"])?;
    let (theirs, ours) = (run(&["ibstat"])?, run(&["uverbs", "ports", "--format", "ibstat"])?);
    ensure!(theirs == ours && !theirs.contains("siw0"), "{theirs}\n{ours}");
    Ok(())
}

/// A new MAC address is a change of the LID, which the driver has instead of a change of the GID.
pub(crate) fn events() -> Result<()> {
    let _lab = IwarpLab::new()?;
    let change = || run(&["ip", "link", "set", "d0", "address", "02:11:22:33:44:66"]).map(drop);
    let event = examples::watched("siw0", change)?;
    println!("figure: a new MAC address is {event}");
    ensure!(event == "lid_change 1", "{event}");
    let table = Host::new().open("siw0")?.query_gid_table()?;
    println!("figure: then the GID table is {table:?}");
    let [entry] = &table[..] else { anyhow::bail!("not one GID: {table:?}") };
    let wanted = if gid_follows_the_mac()? { "211:2233:4466::" } else { GID };
    ensure!(entry.gid().to_string() == wanted, "{entry:?}, {wanted}");
    // Since Linux 6.5 the connection manager compares the interface, and not the MAC address.
    let output = lab::output(&["uverbs", "choose", "siw0", "--explain"])?;
    println!("{output:?}");
    let is_of_use = gid_follows_the_mac()? || lab::kernel()? >= (6, 5);
    ensure!(output.status.success() == is_of_use, "{output:?}");
    // libibverbs must read the same GID.
    answers::compare_verbs("siw0")?;
    answers::compare_umad(&[0, 1, 2])
}

/// libibverbs' answers for a device that is removed while it is open.
pub(crate) fn answers_agree_when_it_is_gone() -> Result<()> {
    let lab = IwarpLab::new()?;
    // On every kernel it waits until the device is closed.
    let wait = |removal: &thread::JoinHandle<()>| {
        thread::sleep(stretched(Duration::from_secs(1)));
        ensure!(!removal.is_finished(), "the removal does not wait for contexts");
        Ok(())
    };
    let remove = || lab::undo(&["rdma", "link", "delete", "siw0"]);
    answers::compare_gone("siw0", wait, remove)?;
    drop(lab);
    lab::sweep()
}

/// The device is removed while a context is open: each query says so.
pub(crate) fn removed_while_open() -> Result<()> {
    let lab = IwarpLab::new()?;
    let mut host = Host::new();
    let device = host.device("siw0")?;
    let context = Context::open(&device)?;
    let removal = thread::spawn(|| run(&["rdma", "link", "delete", "siw0"]).map(drop));
    thread::sleep(stretched(Duration::from_secs(1)));
    let waits = !removal.is_finished();
    println!(
        "figure: the removal {} for the context",
        if waits { "waits" } else { "does not wait" }
    );
    answers_after_removal(&context, waits)?;
    drop(context);
    removal.join().map_err(|_| anyhow::anyhow!("the removal failed"))??;
    ensure!(host.devices()?.is_empty(), "the device is still listed");
    let error = Context::open(&device).err().context("a device that is gone opened")?;
    ensure!(matches!(error.cause(), Cause::NodeMissing | Cause::DeviceGone(_)), "{error:?}");
    drop(lab);
    lab::sweep()
}
