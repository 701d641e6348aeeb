//! Debian's own tools against the command line: what `ibv_devinfo -v` and `ibstat` show is what
//! `uverbs` shows, field by field.

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use crate::lab::{self, run};

fn json(command: &[&str]) -> Result<Value> {
    let text = run(command)?;
    serde_json::from_str(&text).with_context(|| format!("`{}` printed {text}", command.join(" ")))
}

/// What is behind `name:` on a line of its own, tabs and brackets aside.
fn field(text: &str, name: &str) -> Result<String> {
    text.lines()
        .find_map(|line| Some(line.trim().strip_prefix(name)?.strip_prefix(':')?.trim().to_owned()))
        .with_context(|| format!("no {name} in {text}"))
}

/// The code in brackets behind a name, as `PORT_ACTIVE (4)`.
fn code(text: &str, name: &str) -> Result<u64> {
    let value = field(text, name)?;
    let inside = value.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    Ok(inside.with_context(|| format!("{name}: {value}"))?.parse()?)
}

fn number(row: &Value, name: &str) -> Result<u64> {
    row.get(name).and_then(Value::as_u64).with_context(|| format!("no number {name} in {row}"))
}

fn text(row: &Value, name: &str) -> Result<String> {
    Ok(row.get(name).and_then(Value::as_str).with_context(|| format!("no {name} in {row}"))?.into())
}

/// Every field of `ibv_devinfo -v` that we show.
pub(crate) fn ibv_devinfo_agrees() -> Result<()> {
    let _lab = lab::two_soft_roce_devices()?;
    let devices = json(&["uverbs", "devices", "--json"])?;
    let ports = json(&["uverbs", "ports", "--json"])?;
    let gids = json(&["uverbs", "gids", "--json"])?;
    for device in ["rxe0", "rxe1"] {
        let theirs = run(&["ibv_devinfo", "-v", "-d", device])?;
        println!("{theirs}");
        let of = |list: &Value, kind: &str| -> Result<Vec<Value>> {
            let rows = list.get(kind).and_then(Value::as_array).context("no list")?;
            Ok(rows.iter().filter(|row| row["device"] == device).cloned().collect())
        };
        let [ours] = &of(&devices, "devices")?[..] else { bail!("not one {device}") };
        let plain_guid = |name: &str| -> Result<String> {
            Ok(format!("0x{}", field(&theirs, name)?.replace(':', "")))
        };
        ensure!(text(ours, "driver")? == "rxe" && text(ours, "protocol")? == "roce", "{ours}");
        ensure!(text(ours, "node_type")? == "ca" && text(ours, "uverbs")?.starts_with("uverbs"));
        ensure!(plain_guid("node_guid")? == text(ours, "node_guid")?);
        ensure!(plain_guid("sys_image_guid")? == text(ours, "sys_image_guid")?);
        ensure!(field(&theirs, "phys_port_cnt")?.parse::<u64>()? == number(ours, "ports")?);

        let [port] = &of(&ports, "ports")?[..] else { bail!("not one port") };
        let state = field(&theirs, "state")?.to_lowercase();
        ensure!(state.contains(&text(port, "state")?), "{state}, {port}");
        let phys_state = field(&theirs, "phys_state")?.to_lowercase();
        ensure!(phys_state.contains(&text(port, "phys_state")?), "{phys_state}, {port}");
        for name in ["max_mtu", "active_mtu"] {
            let bytes = field(&theirs, name)?;
            let bytes = bytes.split(' ').next().context("no MTU")?;
            ensure!(bytes.parse::<u64>()? == number(port, name)?, "{name}");
        }
        for (theirs_name, name) in [
            ("sm_lid", "sm_lid"),
            ("port_lid", "lid"),
            ("gid_tbl_len", "gid_tbl_len"),
            ("pkey_tbl_len", "pkey_tbl_len"),
        ] {
            ensure!(field(&theirs, theirs_name)?.parse::<u64>()? == number(port, name)?, "{name}");
        }
        ensure!(field(&theirs, "link_layer")?.to_lowercase() == text(port, "link_layer")?);
        ensure!(field(&theirs, "active_width")?.starts_with(&text(port, "active_width")?));
        ensure!(code(&theirs, "state")? == 4);

        // "GID[  0]:  fe80::11:22ff:fe33:4455, RoCE v2"
        let mut rows = Vec::new();
        for line in theirs.lines().filter_map(|line| line.trim().strip_prefix("GID[")) {
            let (index, rest) = line.split_once("]:").context("a GID line")?;
            let (gid, gid_type) = rest.trim().split_once(", ").context("a GID line")?;
            rows.push((index.trim().parse::<u64>()?, gid.to_owned(), gid_type.to_owned()));
        }
        let mut own = Vec::new();
        for row in of(&gids, "gids")? {
            let gid_type = text(&row, "gid_type")?.replace("roce_", "RoCE ");
            own.push((number(&row, "index")?, text(&row, "gid")?, gid_type));
        }
        ensure!(rows == own && !rows.is_empty(), "{rows:?}\n{own:?}");
    }
    Ok(())
}

/// Every field of `ibstat` that we show; its port GUIDs above all.
pub(crate) fn ibstat_agrees() -> Result<()> {
    let _lab = lab::two_soft_roce_devices()?;
    let ports = json(&["uverbs", "ports", "--json"])?;
    let guids = json(&["uverbs", "guids", "--json"])?;
    for (place, device) in ["rxe0", "rxe1"].into_iter().enumerate() {
        let theirs = run(&["ibstat", device])?;
        println!("{theirs}");
        let (port, own) = (&ports["ports"][place], &guids["guids"][place]);
        ensure!(port["device"] == device && own["device"] == device);
        ensure!(field(&theirs, "Node GUID")? == text(own, "node_guid")?);
        ensure!(field(&theirs, "System image GUID")? == text(own, "sys_image_guid")?);
        ensure!(own["port_guids"] == serde_json::json!([field(&theirs, "Port GUID")?]), "{own}");
        ensure!(field(&theirs, "Port GUID")? == text(port, "port_guid")?);
        ensure!(field(&theirs, "State")?.to_lowercase() == text(port, "state")?);
        ensure!(field(&theirs, "Base lid")?.parse::<u64>()? == number(port, "lid")?);
        ensure!(field(&theirs, "SM lid")?.parse::<u64>()? == number(port, "sm_lid")?);
        ensure!(field(&theirs, "LMC")?.parse::<u64>()? == number(port, "lmc")?);
        ensure!(field(&theirs, "Link layer")?.to_lowercase() == text(port, "link_layer")?);
        let rate = port["rate_gbps"].as_f64().context("no rate")?;
        ensure!(field(&theirs, "Rate")? == rate.to_string(), "{rate}");
    }
    let listed = run(&["ibstat", "-p"])?;
    let own: Vec<&str> = [&guids["guids"][0], &guids["guids"][1]]
        .iter()
        .filter_map(|row| row["port_guids"][0].as_str())
        .collect();
    ensure!(listed.lines().collect::<Vec<_>>() == own, "{listed}");
    Ok(())
}
