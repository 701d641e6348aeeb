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
    let is_iwarp = protocol == "iw";
    let node_type = if is_iwarp { "rnic" } else { "ca" };
    ensure!(text(ours, "node_type")? == node_type && text(ours, "uverbs")?.starts_with("uverbs"));
    ensure!(field(&theirs, "transport")?.starts_with(if is_iwarp {
        "iWARP"
    } else {
        "InfiniBand"
    }));
    ensure!(plain_guid("node_guid")? == text(ours, "node_guid")?);
    ensure!(plain_guid("sys_image_guid")? == text(ours, "sys_image_guid")?);
    ensure!(field(&theirs, "phys_port_cnt")?.parse::<u64>()? == number(ours, "ports")?);

    let ports = of(device, &ports, "ports")?;
    let sections = sections(&theirs, "\t\tport:");
    ensure!(sections.len() == ports.len() && !ports.is_empty(), "not as many ports: {ports:?}");
    let (mut rows, mut own) = (Vec::new(), Vec::new());
    for (port, section) in ports.iter().zip(sections) {
        devinfo_port(port, section, is_iwarp)?;
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
    if is_iwarp {
        // It leaves GIDs with a lower half of zeros out.
        ensure!(rows.is_empty() && own.len() == 1, "{rows:?}\n{own:?}");
    } else {
        ensure!(rows == own && !rows.is_empty(), "{rows:?}\n{own:?}");
    }
    Ok(())
}

fn devinfo_port(port: &Value, theirs: &str, is_iwarp: bool) -> Result<()> {
    let state = field(theirs, "state")?.to_lowercase();
    ensure!(state.contains(&text(port, "state")?), "{state}, {port}");
    // It shows none of iWARP.
    if !is_iwarp {
        let phys_state = field(theirs, "phys_state")?.to_lowercase();
        ensure!(phys_state.contains(&text(port, "phys_state")?), "{phys_state}, {port}");
    }
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
        let printed = run(&["uverbs", "ports", device, "--format", "ibstat"])?;
        ensure!(theirs == printed, "ours is another:\n{printed}");
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

/// `uverbs ports --format ibstat`, byte for byte: all devices, one, and one port.
pub(crate) fn ibstat_is_printed_byte_for_byte() -> Result<()> {
    let _lab = lab::two_soft_roce_devices()?;
    for (theirs, ours) in [
        (&["ibstat"][..], &[][..]),
        (&["ibstat", "rxe1"], &["rxe1"]),
        (&["ibstat", "rxe0", "1"], &["rxe0:1"]),
    ] {
        let theirs = run(theirs)?;
        let ours = run(&[&["uverbs", "ports", "--format", "ibstat"], ours].concat())?;
        ensure!(
            theirs == ours && theirs.contains("Link layer"),
            "ibstat:\n{theirs}\nours:\n{ours}"
        );
    }
    run(&["ip", "link", "set", "d1", "down"])?;
    let down = run(&["ibstat", "rxe1"])?;
    ensure!(down.contains("State: Down"), "{down}");
    ensure!(down == run(&["uverbs", "ports", "rxe1", "--format", "ibstat"])?, "{down}");
    let ours = run(&["uverbs", "ports", "--format", "ibdev2netdev"])?;
    ensure!(ours == "rxe0 port 1 ==> d0 (Up)\nrxe1 port 1 ==> d1 (Down)\n", "{ours}");
    Ok(())
}

/// A field of another tool, and where ours has it.
type Field = (&'static str, &'static str, &'static str);

/// Where what others show is in ours: a field of theirs, our command and its key. An empty key is that it
/// is only a heading, or part of another field.
const FIELDS: &[(&str, &[Field])] = &[
    (
        "ibv_devinfo -v",
        &[
            ("hca_id", "limits", "device"),
            ("transport", "devices", "node_type"),
            ("fw_ver", "limits", "fw_ver"),
            ("node_guid", "limits", "node_guid"),
            ("sys_image_guid", "limits", "sys_image_guid"),
            ("vendor_id", "limits", "vendor_id"),
            ("vendor_part_id", "limits", "vendor_part_id"),
            ("hw_ver", "limits", "hw_ver"),
            ("board_id", "limits", "board_id"),
            ("phys_port_cnt", "limits", "phys_port_cnt"),
            ("max_mr_size", "limits", "max_mr_size"),
            ("page_size_cap", "limits", "page_size_cap"),
            ("max_qp", "limits", "max_qp"),
            ("max_qp_wr", "limits", "max_qp_wr"),
            ("device_cap_flags", "limits", "device_cap_flags"),
            ("max_sge", "limits", "max_sge"),
            ("max_sge_rd", "limits", "max_sge_rd"),
            ("max_cq", "limits", "max_cq"),
            ("max_cqe", "limits", "max_cqe"),
            ("max_mr", "limits", "max_mr"),
            ("max_pd", "limits", "max_pd"),
            ("max_qp_rd_atom", "limits", "max_qp_rd_atom"),
            ("max_ee_rd_atom", "limits", "max_ee_rd_atom"),
            ("max_res_rd_atom", "limits", "max_res_rd_atom"),
            ("max_qp_init_rd_atom", "limits", "max_qp_init_rd_atom"),
            ("max_ee_init_rd_atom", "limits", "max_ee_init_rd_atom"),
            ("atomic_cap", "limits", "atomic_cap"),
            ("max_ee", "limits", "max_ee"),
            ("max_rdd", "limits", "max_rdd"),
            ("max_mw", "limits", "max_mw"),
            ("max_raw_ipv6_qp", "limits", "max_raw_ipv6_qp"),
            ("max_raw_ethy_qp", "limits", "max_raw_ethy_qp"),
            ("max_mcast_grp", "limits", "max_mcast_grp"),
            ("max_mcast_qp_attach", "limits", "max_mcast_qp_attach"),
            ("max_total_mcast_qp_attach", "limits", "max_total_mcast_qp_attach"),
            ("max_ah", "limits", "max_ah"),
            ("max_fmr", "limits", "max_fmr"),
            ("max_map_per_fmr", "limits", "max_map_per_fmr"),
            ("max_srq", "limits", "max_srq"),
            ("max_srq_wr", "limits", "max_srq_wr"),
            ("max_srq_sge", "limits", "max_srq_sge"),
            ("max_pkeys", "limits", "max_pkeys"),
            ("local_ca_ack_delay", "limits", "local_ca_ack_delay"),
            ("general_odp_caps", "limits", "general_odp_caps"),
            ("rc_odp_caps", "limits", "rc_odp_caps"),
            ("uc_odp_caps", "limits", "uc_odp_caps"),
            ("ud_odp_caps", "limits", "ud_odp_caps"),
            ("xrc_odp_caps", "limits", "xrc_odp_caps"),
            // Newer bits than it knows: ours have words for them.
            ("Unknown flags", "limits", "rc_odp_caps"),
            ("completion timestamp_mask", "limits", "completion_timestamp_mask"),
            ("completion_timestamp_mask not supported", "limits", "completion_timestamp_mask"),
            ("hca_core_clock", "limits", "hca_core_clock_khz"),
            ("core clock not supported", "limits", "hca_core_clock_khz"),
            ("raw packet caps", "limits", "raw_packet_caps"),
            ("device_cap_flags_ex", "limits", "device_cap_flags_ex"),
            ("max_rwq_indirection_tables", "limits", "max_rwq_indirection_tables"),
            ("max_rwq_indirection_table_size", "limits", "max_rwq_indirection_table_size"),
            ("rss_caps", "limits", "rss_supported_qp"),
            ("max_wq_type_rq", "limits", "max_wq_type_rq"),
            ("max_rndv_hdr_size", "limits", "tm_max_rndv_hdr_size"),
            ("max_num_tags", "limits", "tm_max_num_tags"),
            ("max_ops", "limits", "tm_max_ops"),
            ("flags", "limits", "tm_flags"),
            ("tag matching not supported", "limits", "tm_max_num_tags"),
            ("max_cq_count", "limits", "max_cq_count"),
            ("max_cq_period", "limits", "max_cq_period_us"),
            ("maximum available device memory", "limits", "max_dm_size"),
            ("tso_caps", "", ""),
            ("max_tso", "limits", "max_tso"),
            // Of segmentation; the same name is in two more of its parts, and max_sge in one.
            ("supported_qp", "limits", "tso_supported_qp"),
            ("supported_qp of rss_caps", "limits", "rss_supported_qp"),
            ("supported_qp of packet_pacing_caps", "limits", "packet_pacing_supported_qp"),
            ("max_sge of tag matching", "limits", "tm_max_sge"),
            ("rx_hash_function", "limits", "rx_hash_function"),
            ("rx_hash_fields_mask", "limits", "rx_hash_fields_mask"),
            ("packet_pacing_caps", "", ""),
            ("qp_rate_limit_min", "limits", "qp_rate_limit_min_kbps"),
            ("qp_rate_limit_max", "limits", "qp_rate_limit_max_kbps"),
            ("cq moderation caps", "", ""),
            ("num_comp_vectors", "limits", "num_comp_vectors"),
            ("port", "ports", "port"),
            ("state", "ports", "state"),
            ("max_mtu", "ports", "max_mtu"),
            ("active_mtu", "ports", "active_mtu"),
            ("sm_lid", "ports", "sm_lid"),
            ("port_lid", "ports", "lid"),
            ("port_lmc", "ports", "lmc"),
            ("link_layer", "ports", "link_layer"),
            ("max_msg_sz", "ports", "max_msg_sz"),
            ("port_cap_flags", "ports", "port_cap_flags"),
            ("port_cap_flags2", "ports", "port_cap_flags2"),
            ("max_vl_num", "ports", "max_vl"),
            ("bad_pkey_cntr", "ports", "bad_pkey_cntr"),
            ("qkey_viol_cntr", "ports", "qkey_viol_cntr"),
            ("sm_sl", "ports", "sm_sl"),
            ("pkey_tbl_len", "ports", "pkey_tbl_len"),
            ("gid_tbl_len", "ports", "gid_tbl_len"),
            ("subnet_timeout", "ports", "subnet_timeout"),
            ("init_type_reply", "ports", "init_type_reply"),
            ("active_width", "ports", "active_width"),
            ("active_speed", "ports", "active_speed"),
            ("effective_speed", "ports", "effective_gbps"),
            ("phys_state", "ports", "phys_state"),
            ("GID", "gids", "gid"),
        ],
    ),
    (
        "ibstat",
        &[
            ("CA", "devices", "device"),
            ("CA type", "devices", "ca_type"),
            ("Number of ports", "devices", "ports"),
            ("Firmware version", "devices", "fw_version"),
            ("Hardware version", "devices", "hw_rev"),
            ("Node GUID", "guids", "node_guid"),
            ("System image GUID", "guids", "sys_image_guid"),
            ("Port", "ports", "port"),
            ("State", "ports", "state"),
            ("Physical state", "ports", "phys_state"),
            ("Rate", "ports", "rate_gbps"),
            ("Effective speed", "ports", "effective_gbps"),
            ("Base lid", "ports", "lid"),
            ("LMC", "ports", "lmc"),
            ("SM lid", "ports", "sm_lid"),
            ("Capability mask", "ports", "port_cap_flags"),
            ("Port GUID", "ports", "port_guid"),
            ("Link layer", "ports", "link_layer"),
        ],
    ),
    (
        "show_gids",
        &[
            ("DEV", "gids", "device"),
            ("PORT", "gids", "port"),
            ("INDEX", "gids", "index"),
            ("GID", "gids", "gid"),
            ("IPv4", "gids", "ipv4"),
            ("VER", "gids", "gid_type"),
            ("netdev", "gids", "netdev"),
        ],
    ),
    (
        "ibdev2netdev",
        &[
            ("device", "ports", "device"),
            ("port", "ports", "port"),
            // That of GID 0.
            ("netdev", "gids", "netdev"),
            ("netdev without a GID 0", "ports", "netdev"),
            ("state of the netdev", "snapshot", "interfaces"),
        ],
    ),
];

/// Every field that the old tools print is in the list, and every key of the list in our answer.
pub(crate) fn nothing_of_other_tools_is_missing() -> Result<()> {
    let _lab = lab::two_soft_roce_devices()?;
    let mut answers = std::collections::BTreeMap::new();
    for command in ["devices", "ports", "guids", "gids", "limits"] {
        answers.insert(command, json(&["uverbs", command, "--json"])?[command][0].clone());
    }
    answers.insert("snapshot", json(&["uverbs", "snapshot"])?);
    for (tool, fields) in FIELDS {
        for (field, command, key) in *fields {
            if !key.is_empty() {
                let answer = answers.get(command).with_context(|| format!("no {command}"))?;
                ensure!(answer.get(*key).is_some(), "{tool}: {field}: no {key} in {answer}");
            }
        }
    }
    // What they print now.
    for (tool, words) in [("ibv_devinfo -v", &["ibv_devinfo", "-v"][..]), ("ibstat", &["ibstat"])] {
        let (_, fields) = FIELDS.iter().find(|(own, _)| *own == tool).context("no such tool")?;
        let printed = run(words)?;
        for line in printed.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let name = line.split([':', '[', '\'']).next().unwrap_or(line).trim();
            // A capability, in its own line; a port of ibstat has its number in the name.
            let name = if name.starts_with("Port ") && tool == "ibstat" && name != "Port GUID" {
                "Port"
            } else {
                name
            };
            let is_word = !line.contains(':')
                && name
                    .chars()
                    .all(|c| c.is_ascii_uppercase() || c == '_' || c == ' ' || c.is_ascii_digit());
            ensure!(
                is_word && tool != "ibstat" || fields.iter().any(|(own, ..)| *own == name),
                "{tool} prints {line:?}, which the list does not have"
            );
        }
    }
    Ok(())
}

/// The numbers and words of `ibv_devinfo -v` about the device.
pub(crate) fn limits_agree() -> Result<()> {
    let _lab = lab::two_soft_roce_devices()?;
    limits_agree_of("rxe0")?;
    let pkeys = run(&["uverbs", "pkeys", "--no-header"])?;
    ensure!(pkeys.lines().count() == 2 && pkeys.contains("0xffff  full"), "{pkeys}");
    Ok(())
}

/// The same of one device, also of what its driver adds.
pub(crate) fn limits_agree_of(device: &str) -> Result<Value> {
    let theirs = run(&["ibv_devinfo", "-v", "-d", device])?;
    let ours = json(&["uverbs", "limits", device, "--json"])?["limits"][0].clone();
    println!("{ours}");
    let mut count = 0;
    for (name, command, key) in FIELDS[0].1 {
        let (Ok(shown), "limits") = (field(&theirs, name), *command) else { continue };
        let own = &ours[*key];
        let shown = shown.replace("kHZ", "").replace("kbps", "");
        match own {
            // They show the bits of hashing, and ours has a word for each.
            Value::Array(words) if name.starts_with("rx_hash_") => {
                let bits = u64::from_str_radix(shown.trim_start_matches("0x"), 16)?;
                ensure!(bits.count_ones() as usize == words.len(), "{name}: {shown}, {own}");
                let is_unknown = |word: &Value| word.as_str().is_none_or(|own| own.contains('('));
                ensure!(!words.iter().any(is_unknown), "{name}: {own}");
                count += 1;
            }
            Value::Number(number) => {
                ensure!(
                    shown.strip_suffix(" us").unwrap_or(&shown) == number.to_string(),
                    "{name}: {shown}, {own}"
                );
                count += 1;
            }
            Value::String(text) if text.starts_with("0x") && !key.ends_with("guid") => {
                let number = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16);
                ensure!(number(&shown.to_lowercase())? == number(text)?, "{name}: {shown}, {text}");
                count += 1;
            }
            _ => {}
        }
    }
    ensure!(count > 30, "only {count} were compared");
    // Each of their words is one of ours, and there are as many.
    let (_, after) = theirs.split_once("device_cap_flags:").context("no flags")?;
    let words: Vec<String> = after
        .lines()
        .skip(1)
        .map(str::trim)
        .take_while(|line| !line.contains(':'))
        .map(str::to_lowercase)
        .collect();
    ensure!(ours["device_cap_flags"] == serde_json::json!(words) && !words.is_empty(), "{words:?}");
    ensure!(
        field(&theirs, "atomic_cap")?
            .to_lowercase()
            .contains(ours["atomic_cap"].as_str().context("no word")?)
    );
    // A table of one word a line, for awk.
    let table = run(&["uverbs", "limits", device, "--no-header"])?;
    let max_qp = table.lines().find(|line| line.split_whitespace().nth(1) == Some("max_qp"));
    ensure!(
        max_qp.is_some_and(|line| line.ends_with(&field(&theirs, "max_qp").unwrap_or_default()))
    );
    Ok(ours)
}
