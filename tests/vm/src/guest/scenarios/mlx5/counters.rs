//! Counters of an emulated function: the same by all sources, and what they cost.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use uverbs::counter::Reading;
use uverbs::host::{CounterReader, Host, PortCounters};
use uverbs_mlx5_function::control::{Command, Fault};
use uverbs_mlx5_function::description::Description;

use crate::lab::mlx5::Mlx5;
use crate::lab::{self, run};
use crate::scenarios::counters::{by_rdma, by_sysfs, ours};

const ACCESS_REG: u16 = 0x805;

fn read(reader: &mut CounterReader, device: &str) -> Result<PortCounters> {
    let mut host = Host::new();
    let devices = host.devices()?;
    let is_it = |own: &uverbs::device::Device, _| own.name == device;
    let counters = reader.read(&mut host, &devices, &is_it);
    ensure!(counters.problems.is_empty(), "{:?}", counters.problems);
    let own = counters.devices.into_iter().find(|own| own.device == device);
    own.and_then(|own| own.ports.into_iter().next()).context("no port")
}

/// The commands of one port's counters. What the driver sends by itself meanwhile is of other opcodes.
fn of_counters(commands: &[Command]) -> usize {
    const OPCODES: [u16; 4] = [0x770, 0x773, 0x826, ACCESS_REG];
    commands.iter().filter(|command| OPCODES.contains(&command.opcode)).count()
}

/// The files that `node_exporter` reads, as it reads them: each once.
fn read_files(device: &str) -> Result<usize> {
    let mut count = 0;
    for folder in ["counters", "hw_counters"] {
        let folder = format!("/sys/class/infiniband/{device}/ports/1/{folder}");
        for entry in fs::read_dir(folder)? {
            fs::read(entry?.path())?;
            count += 1;
        }
    }
    Ok(count)
}

/// Ours are those of sysfs and of `rdma statistic`, and cost a tenth of reading the files.
pub(crate) fn agree_and_cost_a_tenth() -> Result<()> {
    let mut description = Description::roce();
    description.ports[0].counters.received_ib_unicast = (11, 4 * 1000);
    let device = Mlx5::bind(0, &description)?;
    let (name, function) = (device.name(), device.function());
    let port = format!("{name}:1");
    let (hardware, pma) = (ours(&[], &port, "hw")?, ours(&[], &port, "pma")?);
    println!("{hardware:?}\n{pma:?}");
    ensure!(hardware.len() > 20 && hardware == by_sysfs(name, "hw_counters")?);
    ensure!(hardware == by_rdma(&[], name)?);
    ensure!(pma.len() > 15 && pma == by_sysfs(name, "counters")?);
    // By the function's own numbers.
    ensure!(hardware["rx_write_requests"] == 16 && pma["symbol_error"] == 7, "not the function's");
    ensure!(pma["port_rcv_data"] == 1000 && pma["port_rcv_packets"] == 11);

    let (files, theirs) = function.commands_during(|| read_files(name))?;
    let theirs = of_counters(&theirs);
    let (frugal, spent) = function.commands_during(|| read(&mut CounterReader::frugal(), name))?;
    let (full, spent_fully) = function.commands_during(|| read(&mut CounterReader::new(), name))?;
    for (own, spent) in [(&frugal, &spent), (&full, &spent_fully)] {
        let told = own.cost.firmware_commands;
        ensure!(told == Some(u32::try_from(of_counters(spent))?), "{told:?} are {spent:?}");
    }
    let netlink = function.commands_during(|| run(&["rdma", "statistic", "show"]))?.1;
    println!(
        "figure: counters of a port: {} firmware commands, all of them {}, `rdma statistic` {}, {files} files \
         {theirs}",
        of_counters(&spent),
        of_counters(&spent_fully),
        of_counters(&netlink)
    );
    // Since there are optional counters (5.16) the driver's answer is not kept from one file to the next.
    let is_kept = lab::kernel()? < (5, 16);
    let share = if is_kept { 3 } else { 10 };
    ensure!(of_counters(&spent) * share <= theirs, "more than one part of {share}");
    ensure!(is_kept || theirs > files, "the driver's answer is kept");
    ensure!(!frugal.left_out.is_empty() && full.left_out.is_empty());
    let downed =
        full.counters.iter().find(|own| own.name == "link_downed").context("no counter")?;
    ensure!(downed.reading == Reading::Saturated(255), "{downed:?}");
    let metrics = run(&["uverbs", "metrics"])?;
    let saturated = format!(
        "uverbs_port_saturated{{device=\"{name}\",port=\"1\",counter=\"link_downed\"}} 1\n"
    );
    ensure!(metrics.contains(&saturated) && !metrics.contains("uverbs_port_link_downed_total"));
    // Whose the objects are: the firmware is not asked. What the driver sends by itself may come between.
    let mut host = Host::new();
    let devices = host.devices()?;
    let own = devices.iter().find(|own| own.name == name).context("not listed")?;
    lab::wait_until("no command is sent for owners", || {
        let asked = function.commands_during(|| Ok(host.resource_owners(own)?));
        asked.is_ok_and(|(owners, commands)| !owners.is_empty() && commands.is_empty())
    })?;
    let (_, whole) = function.commands_during(|| run(&["uverbs", "metrics"]))?;
    println!("figure: `uverbs metrics`: {} firmware commands in all", whole.len());
    Ok(())
}

/// A restricted function refuses the register of error counters: that is one problem, the others are read,
/// and the reader does not ask for it again.
pub(crate) fn a_refused_register() -> Result<()> {
    let device = Mlx5::bind(0, &Description::roce())?;
    let (name, function) = (device.name(), device.function());
    function.inject(ACCESS_REG, Fault::Status { status: 2, syndrome: 0x009a_6171 })?;
    let mut reader = CounterReader::new();
    for expected in [1, 0] {
        let (port, commands) = function.commands_during(|| read(&mut reader, name))?;
        let asked = commands.iter().filter(|command| command.opcode == ACCESS_REG).count();
        ensure!(asked == expected, "{asked} times: {commands:?}");
        let problems: Vec<String> = port.problems.iter().map(ToString::to_string).collect();
        ensure!(problems.len() == 1 && problems[0].contains("/counters/"), "{problems:?}");
        let has = |wanted: &str| port.counters.iter().any(|own| own.name == wanted);
        ensure!(has("port_rcv_data") && has("out_of_buffer") && !has("symbol_error"), "{port:?}");
    }
    function.clear()?;
    reader.forget();
    let port = read(&mut reader, name)?;
    ensure!(port.problems.is_empty() && port.counters.iter().any(|own| own.name == "symbol_error"));
    // All of it by the command: the status says so, and the rest is there.
    function.inject(ACCESS_REG, Fault::Status { status: 2, syndrome: 0x009a_6171 })?;
    let output = lab::output(&["uverbs", "counters", name, "--all"])?;
    function.clear()?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.code() == Some(3) && text.contains("out_of_buffer"), "{output:?}");
    Ok(())
}
