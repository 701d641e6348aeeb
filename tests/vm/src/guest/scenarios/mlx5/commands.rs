//! The command line on mlx5 devices.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use uverbs_mlx5_function::description::Description;

use crate::differences::differences;
use crate::lab::mlx5::Mlx5;
use crate::lab::{self, Netdev, SoftRoce, output, run};

/// The schemas of the commands' documents.
const SCHEMAS: [(&[&str], &str); 5] = [
    (&["uverbs", "devices"], include_str!("../../../../../schemas/devices.json")),
    (&["uverbs", "gids"], include_str!("../../../../../schemas/gids.json")),
    (&["uverbs", "mlx5", "device"], include_str!("../../../../../schemas/mlx5-device.json")),
    (&["uverbs", "mlx5", "port"], include_str!("../../../../../schemas/mlx5-port.json")),
    (&["uverbs", "mlx5", "vport"], include_str!("../../../../../schemas/mlx5-vport.json")),
];

/// Reads a command's document, which has the form of its schema and no key more.
fn document(command: &[&str], text: &str) -> Result<Value> {
    let document = serde_json::from_str(text).with_context(|| format!("{command:?}: {text}"))?;
    let (_, schema) =
        SCHEMAS.iter().find(|(own, _)| command.starts_with(own)).context("no schema")?;
    let differences = differences(schema, &document);
    ensure!(differences.is_empty(), "{command:?}: {differences:#?}: {document:#}");
    Ok(document)
}

fn json(command: &[&str]) -> Result<Value> {
    document(command, &run(&[command, &["--json"]].concat())?)
}

/// Runs a command that has problems and ends with this status, and gives its document.
fn incomplete(command: &[&str], status: i32) -> Result<Value> {
    let output = output(&[command, &["--json"]].concat())?;
    ensure!(output.status.code() == Some(status), "{command:?}: {}", output.status);
    document(command, &String::from_utf8(output.stdout)?)
}

/// In each port, a null has a reason, and nothing else has one: every question had an answer.
fn nulls_have_reasons(answer: &Value) -> Result<()> {
    ensure!(answer["problems"] == Value::Array(Vec::new()), "{answer}");
    for row in answer["vports"].as_array().context("no list")? {
        let why = row["not_asked"].as_object().context("no reasons")?;
        for field in ["state", "infiniband", "ethernet", "eswitch", "roce_addresses", "counters"] {
            ensure!(row[field].is_null() == why.contains_key(field), "{field}: {row}");
        }
    }
    Ok(())
}

/// An embedded CPU in switchdev mode, with a device of another driver.
pub(crate) fn embedded_cpu() -> Result<()> {
    let netdev = Netdev::dummy("d0", "02:11:22:33:44:55")?;
    let _rxe = SoftRoce::new("rxe0", &netdev)?;
    let description = Description::embedded_cpu(2);
    let mut device = Mlx5::bind(0, &description)?;
    device.switchdev()?;
    let name = device.name();

    let devices = json(&["uverbs", "devices"])?;
    let drivers: Vec<_> = devices["devices"]
        .as_array()
        .context("no list")?
        .iter()
        .map(|row| (row["device"].as_str(), row["driver"].as_str()))
        .collect();
    ensure!(drivers == [(Some(name), Some("mlx5")), (Some("rxe0"), Some("rxe"))], "{drivers:?}");

    let old = lab::kernel()? < (5, 13);
    let command = ["uverbs", "mlx5", "port"];
    if old {
        let answer = incomplete(&command, 3)?;
        ensure!(answer["ports"] == Value::Array(Vec::new()));
        ensure!(answer["problems"].as_array().is_some_and(|list| list.len() == 4), "{answer}");
        ensure!(answer["problems"][0]["errno"] == 93);
    } else {
        // From 6.12 on there is one port more, for the vport that this function has not.
        let answer = json(&command)?;
        println!("{answer:#}");
        let ports = answer["ports"].as_array().context("no list")?;
        ensure!(ports.len() == 4);
        let last = serde_json::json!([
            { "device": name, "port": 4, "why": "it represents no vport" }
        ]);
        let none = Value::Array(Vec::new());
        let left_out = if lab::kernel()? < (6, 12) { &none } else { &last };
        ensure!(answer["left_out"] == *left_out, "{answer}");
        let second = serde_json::json!({
            "device": name,
            "port": 2,
            "flags": "0x3f",
            "vport": 1,
            "vport_vhca_id": description.eswitch.vport_vhca_id + 1,
            "esw_owner_vhca_id": description.vhca_id,
            "vport_steering_icm_rx": format!("{:#x}", description.eswitch.vport_icm.0 + 0x1_0000),
            "vport_steering_icm_tx": format!("{:#x}", description.eswitch.vport_icm.1 + 0x1_0000),
            "reg_c0": ports[1]["reg_c0"],
        });
        ensure!(ports[1] == second, "{}", ports[1]);
        ensure!(ports[1]["reg_c0"]["mask"] == "0xffff0000");
        ensure!(ports[3]["vport"] == 0xffff && ports[3]["vport_vhca_id"].is_null());
        ensure!(ports[3]["flags"] == "0x3d");
        ensure!(answer["problems"] == Value::Array(Vec::new()));
        let said = String::from_utf8(output(&command)?.stderr)?;
        let has_gap = lab::kernel()? >= (6, 12);
        ensure!(said.contains("one more port represents no vport") == has_gap, "{said}");
        if has_gap {
            let named = incomplete(&["uverbs", "mlx5", "port", &format!("{name}:4")], 1)?;
            ensure!(named["problems"][0]["errno"] == 95, "{named}");
        }
        let one = json(&["uverbs", "mlx5", "vport", &format!("{name}:2")])?;
        ensure!(one["vports"][0]["vport"] == 1, "{one:#}");
        ensure!(
            one["vports"][0]["eswitch"]["sw_steering_icm_rx"] == second["vport_steering_icm_rx"]
        );
    }

    let answer = json(&["uverbs", "mlx5", "device", name])?;
    println!("{answer:#}");
    let row = &answer["devices"][0];
    ensure!(row["eswitch_manager"] == true && row["vhca_id"] == description.vhca_id);
    // Linux 5.10 does not let the question through.
    ensure!(row["host"]["num_of_vfs"] == if old { Value::Null } else { 2.into() });
    ensure!(row["not_asked"]["host"].is_string() == old, "{row:#}");
    if !old {
        let answer = json(&["uverbs", "mlx5", "vport", name])?;
        println!("{answer:#}");
        nulls_have_reasons(&answer)?;
        let rows = answer["vports"].as_array().context("no list")?;
        let uplink = rows.iter().find(|row| row["vport"] == 0xffff).context("no uplink")?;
        let why = "it represents the wire, of which only the state can be asked";
        ensure!(uplink["not_asked"]["ethernet"] == why && uplink["not_asked"]["eswitch"] == why);
    }
    let shown = output(&["uverbs", "mlx5", "vport", name, "--no-header"])?;
    ensure!(!String::from_utf8_lossy(&shown.stdout).contains("not_asked"));
    let shown = String::from_utf8(shown.stdout)?;
    println!("{shown}");
    // Linux 5.10 does not say whose ports these are, so they have no answer.
    let named = |port: u32, vport: &str| {
        shown
            .lines()
            .any(|line| line.split_whitespace().eq([&format!("{name}:{port}"), "vport", vport]))
    };
    let last = if lab::kernel()? >= (6, 12) { 5 } else { 4 };
    ensure!(shown.is_empty() == old);
    ensure!(old || named(1, "0") && named(2, "1") && named(3, "2") && named(last, "uplink"));

    let answer = incomplete(&["uverbs", "mlx5", "port", "rxe0"], 3)?;
    ensure!(answer["problems"][0]["errno"] == 95, "{answer}");
    let said = answer["problems"][0]["error"].as_str().unwrap_or_default();
    ensure!(said.contains("the device's driver is rxe, not mlx5"), "{said}");
    Ok(())
}

/// InfiniBand: no e-switch, and two ports of one function.
pub(crate) fn infiniband() -> Result<()> {
    let mut description = Description::infiniband(2);
    description.ports[1].counters.received_errors = (7, 700);
    let device = Mlx5::bind(0, &description)?;
    let name = device.name();
    let answer = json(&["uverbs", "mlx5", "device", name])?;
    println!("{answer:#}");
    let row = &answer["devices"][0];
    ensure!(row["vhca_id"] == description.vhca_id && row["psid"] == description.psid.as_str());
    ensure!(row["port_type"] == "infiniband" && row["num_ports"] == 2);
    ensure!(row["gid_table_len"] == description.ports[0].gid_table_len && row["roce"].is_null());

    let answer = json(&["uverbs", "mlx5", "vport", name])?;
    println!("{answer:#}");
    for (place, port) in description.ports.iter().enumerate() {
        let row = &answer["vports"][place];
        ensure!(row["vport"].is_null() && row["ethernet"].is_null() && row["eswitch"].is_null());
        ensure!(row["infiniband"]["lid"] == port.lid);
        ensure!(row["infiniband"]["port_guid"] == format!("{:#018x}", port.guid));
        ensure!(row["infiniband"]["vport_state"] == "active");
        let counter = &row["counters"]["received_errors"];
        ensure!(counter["packets"] == port.counters.received_errors.0);
        ensure!(counter["octets"] == port.counters.received_errors.1);
    }

    let command = ["uverbs", "mlx5", "port"];
    if lab::kernel()? < (5, 13) {
        let answer = incomplete(&command, 3)?;
        ensure!(answer["problems"][1]["errno"] == 93, "{answer}");
        return Ok(());
    }
    let answer = json(&command)?;
    ensure!(answer["ports"][1]["flags"] == "0x0" && answer["ports"][1]["vport"].is_null());
    let shown = output(&command)?;
    let said = String::from_utf8_lossy(&shown.stderr).into_owned();
    ensure!(shown.status.success() && said.contains("only in switchdev mode"), "{said}");
    Ok(())
}

/// RoCE: Ethernet's fields, and the addresses of the GIDs.
pub(crate) fn roce() -> Result<()> {
    let description = Description::roce();
    let device = Mlx5::bind(0, &description)?;
    let name = device.name();
    let netdev = device.netdev()?;
    run(&["ip", "address", "add", "10.9.0.1/24", "dev", &netdev])?;
    let gids = || json(&["uverbs", "gids", name]);
    lab::wait_until("the GIDs are there", || {
        gids().is_ok_and(|answer| answer["gids"].as_array().is_some_and(|rows| rows.len() == 4))
    })?;
    let answer = json(&["uverbs", "mlx5", "vport", &format!("{name}/1")])?;
    println!("{answer:#}");
    nulls_have_reasons(&answer)?;
    let row = &answer["vports"][0];
    ensure!(row["state"]["link"] == "up" && row["infiniband"].is_null());
    ensure!(row["ethernet"]["mac"] == "02:c9:00:aa:bb:01");
    let addresses = row["roce_addresses"].as_array().context("no addresses")?;
    let gids = gids()?;
    ensure!(addresses.len() == 4);
    for (address, gid) in addresses.iter().zip(gids["gids"].as_array().context("no GIDs")?) {
        ensure!(
            address["gid"] == gid["gid"] && address["index"] == gid["index"],
            "{address} {gid}"
        );
        let version = address["version"].as_str().context("no version")?;
        ensure!(gid["gid_type"] == format!("roce_{version}"), "{address} {gid}");
        ensure!(address["mac"] == "02:c9:00:aa:bb:01");
    }
    let answer = json(&["uverbs", "mlx5", "device"])?;
    ensure!(answer["devices"][0]["roce"]["address_table_len"] == 256, "{answer:#}");
    Ok(())
}
