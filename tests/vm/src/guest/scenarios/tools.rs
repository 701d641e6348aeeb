//! Debian's own tools: `ibv_devinfo -v` and `ibstat` show the same as `uverbs`, field by field.

use std::net::Ipv6Addr;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use crate::lab::{self, run};

fn json(command: &[&str]) -> Result<Value> {
    let text = run(command)?;
    serde_json::from_str(&text).with_context(|| format!("`{}` printed {text}", command.join(" ")))
}

/// The text after `name:` on a separate line, without tabs and brackets.
fn field(text: &str, name: &str) -> Result<String> {
    text.lines()
        .find_map(|line| Some(line.trim().strip_prefix(name)?.strip_prefix(':')?.trim().to_owned()))
        .with_context(|| format!("no {name} in {text}"))
}

fn number(row: &Value, name: &str) -> Result<u64> {
    row.get(name).and_then(Value::as_u64).with_context(|| format!("no number {name} in {row}"))
}

fn text(row: &Value, name: &str) -> Result<String> {
    Ok(row.get(name).and_then(Value::as_str).with_context(|| format!("no {name} in {row}"))?.into())
}

/// The rows of a device in our list.
fn of(device: &str, list: &Value, kind: &str) -> Result<Vec<Value>> {
    let rows = list.get(kind).and_then(Value::as_array).context("no list")?;
    Ok(rows.iter().filter(|row| row["device"] == device).cloned().collect())
}

/// The parts of a text that begin with a line of this kind, one for each port.
fn sections<'a>(text: &'a str, begin: &str) -> Vec<&'a str> {
    text.split(begin).skip(1).collect()
}

/// Soft RoCE, all of it.
pub(crate) fn ibv_devinfo_agrees() -> Result<()> {
    let _lab = lab::two_soft_roce_devices()?;
    for device in ["rxe0", "rxe1"] {
        compare_devinfo(device, "rxe", "roce")?;
    }
    Ok(())
}

/// Every field of `ibv_devinfo -v` that we show.
pub(crate) fn compare_devinfo(device: &str, driver: &str, protocol: &str) -> Result<()> {
    let devices = json(&["uverbs", "devices", "--json"])?;
    let ports = json(&["uverbs", "ports", "--json"])?;
    let gids = json(&["uverbs", "gids", "--json"])?;
    let theirs = run(&["ibv_devinfo", "-v", "-d", device])?;
    println!("{theirs}");
    let [ours] = &of(device, &devices, "devices")?[..] else { bail!("not one {device}") };
    let plain_guid = |name: &str| -> Result<String> {
        Ok(format!("0x{}", field(&theirs, name)?.replace(':', "")))
    };
    ensure!(text(ours, "driver")? == driver && text(ours, "protocol")? == protocol, "{ours}");
    ensure!(text(ours, "node_type")? == "ca" && text(ours, "uverbs")?.starts_with("uverbs"));
    ensure!(plain_guid("node_guid")? == text(ours, "node_guid")?);
    ensure!(plain_guid("sys_image_guid")? == text(ours, "sys_image_guid")?);
    ensure!(field(&theirs, "phys_port_cnt")?.parse::<u64>()? == number(ours, "ports")?);

    let ports = of(device, &ports, "ports")?;
    let sections = sections(&theirs, "\t\tport:");
    ensure!(sections.len() == ports.len() && !ports.is_empty(), "not as many ports: {ports:?}");
    let (mut rows, mut own) = (Vec::new(), Vec::new());
    for (port, section) in ports.iter().zip(sections) {
        devinfo_port(port, section)?;
        // "GID[  0]:  fe80::11:22ff:fe33:4455, RoCE v2"; of InfiniBand without the type.
        for line in section.lines().filter_map(|line| line.trim().strip_prefix("GID[")) {
            let (index, rest) = line.split_once("]:").context("a GID line")?;
            let (gid, gid_type) = rest.trim().split_once(", ").unwrap_or((rest.trim(), "ib"));
            let index = index.trim().parse::<u64>()?;
            rows.push((
                number(port, "port")?,
                index,
                gid.parse::<Ipv6Addr>()?,
                gid_type.to_owned(),
            ));
        }
    }
    for row in of(device, &gids, "gids")? {
        let gid_type = text(&row, "gid_type")?.replace("roce_", "RoCE ");
        let gid = text(&row, "gid")?.parse::<Ipv6Addr>()?;
        own.push((number(&row, "port")?, number(&row, "index")?, gid, gid_type));
    }
    ensure!(rows == own && !rows.is_empty(), "{rows:?}\n{own:?}");
    Ok(())
}

fn devinfo_port(port: &Value, theirs: &str) -> Result<()> {
    let state = field(theirs, "state")?.to_lowercase();
    ensure!(state.contains(&text(port, "state")?), "{state}, {port}");
    let phys_state = field(theirs, "phys_state")?.to_lowercase();
    ensure!(phys_state.contains(&text(port, "phys_state")?), "{phys_state}, {port}");
    for name in ["max_mtu", "active_mtu"] {
        let bytes = field(theirs, name)?;
        let bytes = bytes.split(' ').next().context("no MTU")?;
        ensure!(bytes.parse::<u64>()? == number(port, name)?, "{name}");
    }
    for (theirs_name, name) in [
        ("sm_lid", "sm_lid"),
        ("port_lid", "lid"),
        ("gid_tbl_len", "gid_tbl_len"),
        ("pkey_tbl_len", "pkey_tbl_len"),
    ] {
        ensure!(field(theirs, theirs_name)?.parse::<u64>()? == number(port, name)?, "{name}");
    }
    ensure!(field(theirs, "link_layer")?.to_lowercase() == text(port, "link_layer")?);
    ensure!(field(theirs, "active_width")?.starts_with(&text(port, "active_width")?));
    Ok(())
}

/// Soft RoCE, all of it.
pub(crate) fn ibstat_agrees() -> Result<()> {
    let _lab = lab::two_soft_roce_devices()?;
    compare_ibstat(&["rxe0", "rxe1"])
}

/// Every field of `ibstat` that we show, for all devices; their port GUIDs above all.
pub(crate) fn compare_ibstat(devices: &[&str]) -> Result<()> {
    let ports = json(&["uverbs", "ports", "--json"])?;
    let guids = json(&["uverbs", "guids", "--json"])?;
    let mut own_guids = Vec::new();
    for device in devices {
        let theirs = run(&["ibstat", device])?;
        println!("{theirs}");
        let [own] = &of(device, &guids, "guids")?[..] else { bail!("not one {device}") };
        ensure!(field(&theirs, "Node GUID")? == text(own, "node_guid")?);
        ensure!(field(&theirs, "System image GUID")? == text(own, "sys_image_guid")?);
        let ports = of(device, &ports, "ports")?;
        let sections = sections(&theirs, "\n\tPort ");
        ensure!(sections.len() == ports.len() && !ports.is_empty(), "not as many ports: {ports:?}");
        let mut port_guids = Vec::new();
        for (port, theirs) in ports.iter().zip(sections) {
            port_guids.push(field(theirs, "Port GUID")?);
            ensure!(field(theirs, "Port GUID")? == text(port, "port_guid")?);
            // "Initializing" is our "init".
            let state = field(theirs, "State")?.to_lowercase();
            ensure!(state.starts_with(&text(port, "state")?), "{state}, {port}");
            ensure!(field(theirs, "Base lid")?.parse::<u64>()? == number(port, "lid")?);
            ensure!(field(theirs, "SM lid")?.parse::<u64>()? == number(port, "sm_lid")?);
            ensure!(field(theirs, "LMC")?.parse::<u64>()? == number(port, "lmc")?);
            ensure!(field(theirs, "Link layer")?.to_lowercase() == text(port, "link_layer")?);
            let rate = port["rate_gbps"].as_f64().context("no rate")?;
            ensure!(field(theirs, "Rate")? == rate.to_string(), "{rate}");
        }
        ensure!(own["port_guids"] == serde_json::json!(port_guids), "{own}");
        own_guids.extend(port_guids);
    }
    let listed = run(&["ibstat", "-p"])?;
    ensure!(listed.lines().collect::<Vec<_>>() == own_guids, "{listed}");
    Ok(())
}
