//! An InfiniBand switch, which has only port 0: our module `ib_switch`, because no driver of Linux
//! registers one. Its numbers are in `modules/ib_switch/ib_switch.c`.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use uverbs::context::Context;
use uverbs::device::{Device, NodeType};
use uverbs::gid::{GidEntry, GidType};
use uverbs::host::Host;
use uverbs::host::{Preference, Reader, Source};
use uverbs::port::{LinkLayer, PortAttributes, PortState};
use uverbs::sysfs::Sysfs;
use uverbs::umad;

use super::answers;
use crate::lab::{self, IbSwitch, output, run};

const NODE_GUID: &str = "0x0200c0fffe000100";
const SYSTEM_GUID: &str = "0x0200c0fffe000103";
const PORT_GUID: &str = "0x0200c0fffe000140";
/// The GIDs with their indices.
const GIDS: [(u32, &str); 2] = [(0, "fe80::200:c0ff:fe00:140"), (2, "fec0::7:200:c0ff:fe00:177")];
const GID_SLOTS: u32 = 4;
const EINVAL: i32 = 22;

/// The module loads without force and without a complaint, and leaves nothing.
pub(crate) fn comes_and_goes() -> Result<()> {
    let switch = IbSwitch::load()?;
    let (version, level) = lab::kernel()?;
    // Bits 12 and 13: a module from outside of the kernel's tree, without a signature.
    let tainted: u32 = fs::read_to_string("/proc/sys/kernel/tainted")?.trim().parse()?;
    ensure!(tainted & !(1 << 12 | 1 << 13) == 0, "{version}.{level} is tainted: {tainted}");
    ensure!(Host::new().devices()?.len() == 1, "not one device");
    drop(switch);
    ensure!(Host::new().devices()?.is_empty(), "the device has stayed");
    lab::sweep()
}

/// The library by netlink and ioctl, and only by sysfs.
pub(crate) fn has_port_0_alone() -> Result<()> {
    let _switch = IbSwitch::load()?;
    for mut host in [Host::new(), Host::rooted("/sys", "/dev/infiniband")] {
        let device = host.device("switch0")?;
        println!("{device:?}");
        ensure!(device.node_type == NodeType::SWITCH && device.ports() == (0..=0));
        // Neither netlink nor sysfs shows the 36 ports that it switches between.
        ensure!(device.port_count == 0, "{} ports", device.port_count);
        ensure!(device.node_guid.to_string() == NODE_GUID, "{}", device.node_guid);
        ensure!(device.sys_image_guid.to_string() == SYSTEM_GUID, "{}", device.sys_image_guid);
        ensure!(device.fw_version.as_deref() == Some("1.2.3"));
        for preference in [Preference::Auto, Preference::Ioctl, Preference::Sysfs] {
            read_all(&device, host.sysfs(), preference)?;
        }
    }
    let device = Host::new().device("switch0")?;
    ensure!(device.protocol.as_deref() == Some("ib"), "{:?}", device.protocol);

    let context = Context::open(&device)?;
    ensure!(context.ports() == (0..=0));
    let by_ioctl = context.query_port(0)?;
    let by_sysfs = Sysfs::host().query_port("switch0", 0)?;
    ensure!(told_by_sysfs(&by_ioctl) == by_sysfs, "{by_ioctl:#?}\n{by_sysfs:#?}");
    ensure!(by_ioctl.active_mtu.and_then(uverbs::port::Mtu::bytes) == Some(2048));
    ensure!((by_ioctl.bad_pkey_cntr, by_ioctl.qkey_viol_cntr) == (Some(5), Some(6)));

    let mut entries = [GidEntry::default(); 3];
    ensure!(context.query_gid_table_into(&mut entries)? == GIDS.len());
    ensure!(context.query_gid_table_into(&mut entries[..1]).is_err_and(|e| e.errno() == EINVAL));

    let pkeys = Sysfs::host().query_pkeys("switch0", 0)?;
    let pkeys: Vec<(u32, u16)> = pkeys.into_iter().map(|(index, pkey)| (index, pkey.0)).collect();
    ensure!(pkeys == [(0, 0xffff), (1, 0x8123)], "{pkeys:x?}");
    ensure!(Sysfs::host().query_pkeys("switch0", 1).is_err_and(|e| e.errno() == EINVAL));

    let ca = umad::ca(&Sysfs::host(), "switch0")?;
    let [(0, Ok(port))] = &ca.ports[..] else { anyhow::bail!("{:?}", ca.ports) };
    ensure!(ca.node_type == NodeType::SWITCH && port.port_guid() == by_guid()?, "{ca:?}");
    ensure!(umad::port(&Sysfs::host(), "switch0", 1).is_err_and(|e| e.errno() == EINVAL));
    ensure!(umad::default_port(&Sysfs::host(), None)? == ("switch0".to_owned(), 0));
    let guids = umad::port_guids(&Sysfs::host(), None)?;
    let [(0, Ok(guid))] = &guids.guids[..] else { anyhow::bail!("{guids:?}") };
    ensure!(guids.ca_name == "switch0" && *guid == by_guid()?);
    Ok(())
}

fn by_guid() -> Result<Option<uverbs::guid::Guid>> {
    Ok(Some(PORT_GUID.parse()?))
}

/// What a [`Reader`] says of the device, and of ports that it does not have.
fn read_all(device: &Device, sysfs: &Sysfs, preference: Preference) -> Result<()> {
    let mut reader = Reader::new(device, sysfs, preference)?;
    let source = if preference == Preference::Sysfs { Source::Sysfs } else { Source::Ioctl };
    ensure!(reader.fallback().is_none());

    let (port, told_by) = reader.port(0)?;
    ensure!(told_by == source && port.state == PortState::ACTIVE, "{port:?}");
    ensure!(port.link_layer == LinkLayer::INFINIBAND && (port.lid, port.sm_lid) == (11, 3));
    ensure!((port.gid_tbl_len, port.pkey_tbl_len) == (GID_SLOTS, 2), "{port:?}");
    ensure!(port.rate().is_some_and(|rate| rate.to_string() == "100"), "{port:?}");
    ensure!(reader.port_guid(0)? == by_guid()?);

    let table = reader.gid_table()?;
    ensure!(table.len() == GIDS.len(), "{table:#?}");
    for (record, (index, gid)) in table.iter().zip(GIDS) {
        let entry = &record.entry;
        ensure!(record.source == source && (entry.port(), entry.index()) == (0, index));
        ensure!(entry.gid().to_string() == gid && entry.gid_type() == GidType::IB, "{entry:?}");
        ensure!(entry.netdev_ifindex().is_none() && record.sysfs_netdev.is_none());
        ensure!(reader.gid(0, index)?.as_ref() == Some(record));
    }
    for empty in [1, 3] {
        ensure!(reader.gid(0, empty)?.is_none(), "index {empty}");
    }
    for (port, index) in [(0, GID_SLOTS), (1, 0), (36, 0), (37, 0), (u32::MAX, 0)] {
        let error = reader.gid(port, index).err().context("it answers")?;
        ensure!(error.errno() == EINVAL, "GID {index} of port {port}: {error}");
    }
    for port in [1, 36, 37, 255, 256] {
        let error = reader.port(port).err().context("it answers")?;
        ensure!(error.errno() == EINVAL, "port {port}: {error}");
        let error = reader.port_guid(port).err().context("it answers")?;
        ensure!(error.errno() == EINVAL, "GUID of port {port}: {error}");
    }
    Ok(())
}

/// The part of these attributes that sysfs has.
fn told_by_sysfs(port: &PortAttributes) -> PortAttributes {
    let mut told = port.clone();
    told.max_mtu = None;
    told.active_mtu = None;
    told.port_cap_flags2 = None;
    told.max_msg_sz = None;
    told.bad_pkey_cntr = None;
    told.qkey_viol_cntr = None;
    told.max_vl_num = None;
    told.subnet_timeout = None;
    told.init_type_reply = None;
    told.flags = None;
    told
}

/// libibverbs and libibumad, with only the switch and with soft RoCE too. Where none is
/// named, libibumad takes a switch as an active device.
pub(crate) fn answers_agree() -> Result<()> {
    let _switch = IbSwitch::load()?;
    answers::compare_verbs("switch0")?;
    answers::compare_umad(&[0, 1, 2, 3, 4])?;
    let _roce = lab::two_soft_roce_devices()?;
    answers::compare_verbs("switch0")?;
    answers::compare_verbs("rxe0")?;
    answers::compare_umad(&[0, 1, 2, 3, 4])
}

/// `ibstat`, `ibv_devices` and `rdma` name the same device, port and GUIDs.
pub(crate) fn tools_agree() -> Result<()> {
    let _switch = IbSwitch::load()?;
    let stat = run(&["ibstat", "switch0"])?;
    println!("{stat}");
    for line in [
        "Switch 'switch0'",
        "Number of ports: 0",
        "Firmware version: 1.2.3",
        &format!("Node GUID: {NODE_GUID}"),
        &format!("System image GUID: {SYSTEM_GUID}"),
        "Port 0:",
        "State: Active",
        "Physical state: LinkUp",
        "Rate: 100",
        "Base lid: 11",
        "LMC: 1",
        "SM lid: 3",
        &format!("Port GUID: {PORT_GUID}"),
        "Link layer: InfiniBand",
    ] {
        ensure!(stat.lines().any(|theirs| theirs.trim() == line), "no {line:?}");
    }
    // Ours has the same bytes, of all devices, of the switch and of its port.
    for (theirs, ours) in
        [(&[][..], &[][..]), (&["switch0"], &["switch0"]), (&["switch0", "0"], &["switch0:0"])]
    {
        let theirs = run(&[&["ibstat"], theirs].concat())?;
        let ours = run(&[&["uverbs", "ports", "--format", "ibstat"], ours].concat())?;
        ensure!(theirs == ours && ours.contains("Switch"), "ibstat:\n{theirs}\nours:\n{ours}");
    }
    let devices = run(&["ibv_devices"])?;
    let guid = NODE_GUID.trim_start_matches("0x");
    ensure!(devices.contains("switch0") && devices.contains(guid), "{devices}");
    let listed = run(&["ibstat", "-p"])?;
    ensure!(listed.trim() == PORT_GUID, "{listed}");
    let devices = run(&["rdma", "dev"])?;
    ensure!(devices.contains("switch0: node_type switch fw 1.2.3 "), "{devices}");
    Ok(())
}

/// What a command prints that has no problem.
fn json_of(command: &[&str]) -> Result<Value> {
    let text = run(command)?;
    let line = command.join(" ");
    let answer: Value =
        serde_json::from_str(&text).with_context(|| format!("`{line}` printed {text}"))?;
    ensure!(answer["problems"] == json!([]), "`{line}`: {}", answer["problems"]);
    Ok(answer)
}

/// The command line shows port 0, and takes `switch0:0`.
pub(crate) fn the_command() -> Result<()> {
    let _switch = IbSwitch::load()?;
    let _roce = lab::two_soft_roce_devices()?;

    let devices = json_of(&["uverbs", "devices", "--json"])?;
    let row = devices["devices"].as_array().and_then(|rows| rows.last()).context("no rows")?;
    println!("{row}");
    for (field, value) in [
        ("device", json!("switch0")),
        ("node_type", json!("switch")),
        ("protocol", json!("ib")),
        ("node_guid", json!(NODE_GUID)),
        ("sys_image_guid", json!(SYSTEM_GUID)),
        ("fw_version", json!("1.2.3")),
        ("ports", json!(1)),
        ("uverbs", json!("uverbs0")),
    ] {
        ensure!(row[field] == value, "{field}: {}, not {value}", row[field]);
    }
    let table = run(&["uverbs", "devices"])?;
    ensure!(table.lines().any(|line| line.starts_with("switch0  switch  ")), "{table}");

    for selector in ["switch0", "switch0:0", "switch0/0"] {
        for source in ["auto", "ioctl", "sysfs"] {
            shows_port_0(selector, source)?;
        }
    }
    let guids = json_of(&["uverbs", "guids", "switch0", "--json"])?;
    let expected = json!([{
        "device": "switch0", "node_guid": NODE_GUID, "sys_image_guid": SYSTEM_GUID,
        "port_guids": [PORT_GUID],
    }]);
    ensure!(guids["guids"] == expected, "{guids}");
    let table = run(&["uverbs", "guids", "switch0", "--no-header"])?;
    let cells: Vec<&str> = table.split_whitespace().collect();
    ensure!(cells == ["switch0", NODE_GUID, SYSTEM_GUID, "0", PORT_GUID], "{table}");
    let table = run(&["uverbs", "ports", "switch0:0", "--no-header"])?;
    let cells: Vec<&str> = table.split_whitespace().collect();
    let expected = [
        "switch0",
        "0",
        "active",
        "link_up",
        "infiniband",
        "2048",
        "100",
        "4X",
        "EDR",
        "11",
        "-",
        PORT_GUID,
    ];
    ensure!(cells == expected, "{table}");
    let table = run(&["uverbs", "gids", "switch0:0", "--no-header"])?;
    let rows = GIDS.map(|(index, gid)| format!("switch0 0 {index} {gid} ib - -"));
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    ensure!(table.lines().map(words).eq(rows), "{table}");

    for command in [
        &["uverbs", "ports", "switch0:1"][..],
        &["uverbs", "gids", "switch0:1"],
        &["uverbs", "gid", "switch0:1", "0"],
    ] {
        let refused = output(command)?;
        let said = String::from_utf8_lossy(&refused.stderr);
        println!("# {}\n{said}", command.join(" "));
        ensure!(!refused.status.success() && said.contains("its only port is 0"), "{said}");
    }
    Ok(())
}

/// `uverbs ports`, `gids` and `gid` by one source.
fn shows_port_0(selector: &str, source: &str) -> Result<()> {
    let told_by = if source == "sysfs" { "sysfs" } else { "ioctl" };
    let ports = json_of(&["uverbs", "ports", selector, "--source", source, "--json"])?;
    println!("{ports}");
    ensure!(ports["ports"].as_array().is_some_and(|rows| rows.len() == 1), "{ports}");
    for (field, value) in [
        ("device", json!("switch0")),
        ("port", json!(0)),
        ("state", json!("active")),
        ("phys_state", json!("link_up")),
        ("link_layer", json!("infiniband")),
        ("lid", json!(11)),
        ("sm_lid", json!(3)),
        ("lmc", json!(1)),
        ("gid_tbl_len", json!(GID_SLOTS)),
        ("pkey_tbl_len", json!(2)),
        ("active_width", json!("4X")),
        ("active_speed", json!("EDR")),
        ("rate_gbps", json!(100)),
        ("active_mtu", if told_by == "ioctl" { json!(2048) } else { Value::Null }),
        ("netdev", Value::Null),
        ("port_guid", json!(PORT_GUID)),
        ("source", json!(told_by)),
    ] {
        let shown = &ports["ports"][0][field];
        ensure!(*shown == value, "{selector} by {source}: {field} is {shown}, not {value}");
    }

    let gids = json_of(&["uverbs", "gids", selector, "--source", source, "--json"])?;
    let rows = GIDS.map(|(index, gid)| {
        json!({
            "device": "switch0", "port": 0, "index": index, "gid": gid, "gid_type": "ib",
            "ipv4": null, "ifindex": null, "netdev": null, "source": told_by,
        })
    });
    ensure!(gids["gids"] == json!(rows), "{selector} by {source}: {gids}");
    if selector != "switch0" {
        let gid = json_of(&["uverbs", "gid", selector, "2", "--source", source, "--json"])?;
        ensure!(gid["gids"] == json!([rows[1]]), "{selector} by {source}: {gid}");
    }
    Ok(())
}
