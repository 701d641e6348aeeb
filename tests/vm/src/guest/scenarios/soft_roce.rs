//! The kernel's own soft RoCE, as the other scenarios rely on it.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::lab::{self, Namespace, Netdev, SoftRoce, roce, run};

/// A device node and the GIDs of the network device below it appear.
pub(crate) fn comes_up() -> Result<()> {
    println!("kernel {:?}", lab::kernel()?);
    let lab = lab::vlan_lab()?;

    let node = "/dev/infiniband/uverbs0";
    ensure!(fs::metadata(node)?.file_type().is_char_device(), "{node} is no device node");

    let gids = lab.rxe.gids()?;
    println!("{gids:#?}");
    // Index 0 is the default GID, from the MAC address; the order of the others is the kernel's.
    ensure!(gids.first() == Some(&(0, "fe80:0000:0000:0000:0011:22ff:fe33:4455".into())));
    for gid in
        ["0000:0000:0000:0000:0000:ffff:c0a8:4d01", "0000:0000:0000:0000:0000:ffff:0a07:0001"]
    {
        ensure!(gids.iter().any(|(_, other)| other == gid), "{gid} is missing");
    }
    Ok(())
}

/// Soft RoCE takes what arrives in network namespaces where it has a socket: in each that it was made in, or on older
/// kernels in the first one.
pub(crate) fn listens_where_it_has_a_socket() -> Result<()> {
    let (a, c) = (Namespace::new("a")?, Namespace::new("c")?);
    let v0 = cable(&a)?;
    a.run(&["ip", "address", "add", "10.7.0.2/24", "dev", "v1"])?;
    v0.address("10.7.0.1/24")?;
    // A VLAN on the host's interface is in another namespace.
    v0.traveller("w0", 8)?;
    run(&["ip", "link", "set", "w0", "netns", "c"])?;
    c.run(&["ip", "address", "add", "10.8.0.1/24", "dev", "w0"])?;
    c.run(&["ip", "link", "set", "w0", "up"])?;
    far_vlan(&a, 8)?;
    let host_s = SoftRoce::new("rxe8", &v0)?;
    host_s.wait_for_gid("0000:0000:0000:0000:0000:ffff:0a08:0001")?;
    let of_vlan =
        Place { at: Some(&c), device: "rxe8", address: "10.8.0.1", from: (&a, "10.8.0.2") };
    agrees(&of_vlan, &Said::Unheard("soft RoCE has no socket"))?;

    let has_namespaces = lab::is_newest_kernel()?;
    a.run(&["rdma", "link", "add", "rxe9", "type", "rxe", "netdev", "v1"])?;
    let first = Namespace::first("first")?;
    let of_pod =
        Place { at: Some(&a), device: "rxe9", address: "10.7.0.2", from: (&first, "10.7.0.1") };
    let said = if has_namespaces { Said::Heard } else { Said::Unheard("soft RoCE has no socket") };
    agrees(&of_pod, &said)?;
    let checked = String::from_utf8(a.output(&["uverbs", "check"])?.stdout)?;
    ensure!(checked.contains("no-roce-socket") != has_namespaces, "{checked}");
    if !has_namespaces {
        nothing_else_ends_a_wait(&a)?;
    }
    // A device there makes a socket there, for all. It is not known what the VLAN is on.
    c.run(&["ip", "link", "add", "d7", "type", "dummy"])?;
    c.run(&["rdma", "link", "add", "rxe7", "type", "rxe", "netdev", "d7"])?;
    agrees(&of_vlan, if has_namespaces { &Said::Doubted } else { &said })?;
    for (pod, name) in [(&c, "rxe7"), (&a, "rxe9")] {
        pod.run(&["rdma", "link", "delete", name])?;
    }
    Ok(())
}

/// Interfaces come and go, which have nothing to do with what is waited for: a socket.
fn nothing_else_ends_a_wait(pod: &Namespace) -> Result<()> {
    let wait = ["uverbs", "wait", "rxe9", "--timeout", "4"];
    let words = [&pod.exec()[..], &wait].concat();
    let (program, arguments) = words.split_first().context("no words")?;
    let mut waiting = Command::new(program).args(arguments).spawn()?;
    let mut count = 0;
    let status = loop {
        if let Some(status) = waiting.try_wait()? {
            break status;
        }
        pod.run(&["ip", "link", "add", "x0", "type", "dummy"])?;
        pod.run(&["ip", "link", "delete", "x0"])?;
        count += 1;
    };
    println!("{count} interfaces came and went: {status}");
    ensure!(count > 0 && status.code() == Some(1), "{status} after {count}");
    Ok(())
}

/// It takes what arrives at VLANs on its port's own interface, and on those, and at no other.
pub(crate) fn hears_vlans_on_its_interface() -> Result<()> {
    let unheard = Said::Unheard("soft RoCE takes only what arrives at its port's own interface");
    let a = Namespace::new("a")?;
    let v0 = cable(&a)?;
    let bridge = Netdev::bridge("br0", lab::FAR, &[&v0])?;
    let (own, above) = (v0.vlan(8)?, bridge.vlan(9)?);
    let second = own.vlan(5)?;
    for (vlan, address) in
        [(&own, "10.8.0.1/24"), (&above, "10.9.0.1/24"), (&second, "10.5.0.1/24")]
    {
        vlan.address(address)?;
    }
    far_vlan(&a, 8)?;
    far_vlan(&a, 9)?;
    a.run(&["ip", "link", "add", "w5", "link", "w8", "type", "vlan", "id", "5"])?;
    a.run(&["ip", "address", "add", "10.5.0.2/24", "dev", "w5"])?;
    a.run(&["ip", "link", "set", "w5", "up"])?;
    let rxe = SoftRoce::new("rxe8", &v0)?;
    for (address, far, said) in [
        ("10.8.0.1", "10.8.0.2", &Said::Heard),
        ("10.9.0.1", "10.9.0.2", &unheard),
        ("10.5.0.1", "10.5.0.2", &Said::Heard),
    ] {
        agrees(&Place { at: None, device: "rxe8", address, from: (&a, far) }, said)?;
    }
    // To a device on the bridge it is the other way round.
    drop(rxe);
    let _rxe = SoftRoce::new("rxe8", &bridge)?;
    agrees(
        &Place { at: None, device: "rxe8", address: "10.9.0.1", from: (&a, "10.9.0.2") },
        &Said::Heard,
    )
}

/// A cable from `v0` here to `v1` in a namespace.
fn cable(far: &Namespace) -> Result<Netdev> {
    run(&["ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1"])?;
    let v0 = Netdev::made("v0");
    far.take(Netdev::made("v1"))?;
    run(&["ip", "link", "set", "v0", "up"])?;
    far.run(&["ip", "link", "set", "v1", "up"])?;
    Ok(v0)
}

/// The VLAN `wID` on the far end of the cable, with the address `10.ID.0.2`.
fn far_vlan(far: &Namespace, id: u16) -> Result<()> {
    let (name, address, id) = (format!("w{id}"), format!("10.{id}.0.2/24"), id.to_string());
    far.run(&["ip", "link", "add", &name, "link", "v1", "type", "vlan", "id", &id])?;
    far.run(&["ip", "address", "add", &address, "dev", &name])?;
    far.run(&["ip", "link", "set", &name, "up"]).map(drop)
}

/// An address of a device, perhaps in a network namespace, and from where packets are sent to it.
struct Place<'p> {
    at: Option<&'p Namespace>,
    device: &'p str,
    address: &'p str,
    from: (&'p Namespace, &'p str),
}

/// What is said of an address.
enum Said {
    /// It is recommended, and packets are taken.
    Heard,
    /// The same, with a doubt.
    Doubted,
    /// Packets are not taken, for this reason.
    Unheard(&'static str),
}

/// That packets to an address are taken, or not, and that `choose` says so, live and of a snapshot.
fn agrees(place: &Place<'_>, wanted: &Said) -> Result<()> {
    const FILE: &str = "/tmp/soft-roce.json";
    let Place { at, device, address, from } = place;
    let said = |arguments: &[&str]| -> Result<String> {
        let command = [&["uverbs"], arguments].concat();
        let output = match at {
            Some(at) => at.output(&command)?,
            None => lab::output(&command)?,
        };
        let said = String::from_utf8(output.stdout)?;
        println!("{arguments:?}: {said}{}", String::from_utf8(output.stderr)?);
        Ok(said)
    };
    lab::wait_until("the address has a GID", || {
        said(&["gids", device]).is_ok_and(|own| own.contains(address))
    })?;
    let is_heard = roce::is_heard(device, address, *from)?;
    println!("{device} {address}: packets are taken: {is_heard}");
    ensure!(is_heard != matches!(wanted, Said::Unheard(_)), "packets are taken: {is_heard}");
    fs::write(FILE, said(&["snapshot"])?)?;
    let only = [device, "--explain", "--ip", address];
    for source in [&[][..], &["--from", FILE]] {
        let explained = said(&[&["choose"], &only[..], source].concat())?;
        let line = explained.lines().find(|line| line.contains(address)).unwrap_or_default();
        let (is_chosen, is_doubted) =
            (line.contains("recommended"), line.contains("it is not known whether it does here"));
        let is_so = match wanted {
            Said::Heard => is_chosen && !is_doubted,
            Said::Doubted => is_chosen && is_doubted,
            Said::Unheard(why) => !is_chosen && line.contains(why),
        };
        ensure!(is_so, "{line}");
    }
    Ok(())
}
