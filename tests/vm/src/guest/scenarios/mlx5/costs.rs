//! The cost of our requests for the device: the commands that the driver sends to the firmware for them.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use uverbs::host::Host;
use uverbs::mlx5::{devx, query_port};
use uverbs_mlx5_function::control::Command;
use uverbs_mlx5_function::description::Description;

use crate::lab::mlx5::Mlx5;
use crate::lab::{self, run};

const ALLOC_UAR: u16 = 0x802;
const CREATE_UCTX: u16 = 0xa04;
const QUERY_HCA_CAP: u16 = 0x100;
const QUERY_ESW_VPORT_CONTEXT: u16 = 0x752;
const QUERY_HCA_VPORT_GID: u16 = 0x764;
const QUERY_HCA_VPORT_PKEY: u16 = 0x765;

/// How often each opcode was sent.
fn counts(commands: &[Command]) -> BTreeMap<u16, usize> {
    let mut counts = BTreeMap::new();
    for command in commands {
        *counts.entry(command.opcode).or_default() += 1;
    }
    counts
}

/// Open, query every port, close: no more commands than rdma-core's, of no kind, and no UAR.
pub(crate) fn fewer_commands() -> Result<()> {
    for (description, representors) in [
        (Description::infiniband(2), None),
        (Description::roce(), None),
        (Description::switchdev(), Some(0)),
        (Description::embedded_cpu(2), Some(3)),
    ] {
        let mut device = Mlx5::bind(0, &description)?;
        let switchdev = representors.is_some();
        let representors = representors.unwrap_or(0);
        if switchdev {
            device.switchdev()?;
        }
        let name = device.name();
        let function = device.function();
        let (told, ours) = function.commands_during(|| {
            let context = Host::new().open(name)?;
            let mut told = 0;
            for number in 0..=context.ports().end() + 1 {
                told += u32::from(query_port(&context, number).is_ok());
            }
            Ok(told)
        })?;
        let known = lab::kernel()? >= (5, 13);
        ensure!((told > 0) == known, "{told} ports were told");
        let (_, theirs) = function.commands_during(|| run(&["mlx5", "ports", name]))?;
        let (ours, theirs) = (counts(&ours), counts(&theirs));
        println!("ours {ours:x?}\ntheirs {theirs:x?}");
        for (opcode, count) in &ours {
            let most = theirs.get(opcode).copied().unwrap_or(0);
            ensure!(*count <= most, "{opcode:#x}: {count} times, by rdma-core {most}");
        }
        ensure!(!ours.contains_key(&ALLOC_UAR) && !ours.contains_key(&CREATE_UCTX));
        ensure!(theirs.contains_key(&ALLOC_UAR), "rdma-core's commands were not seen");
        // For each representor's steering addresses.
        let asked = ours.get(&QUERY_ESW_VPORT_CONTEXT).copied().unwrap_or(0);
        ensure!(asked == if known { representors } else { 0 }, "{asked} of {representors}");
        let total = |counts: &BTreeMap<u16, usize>| counts.values().sum::<usize>();
        println!(
            "figure: {:?}: {} firmware commands, rdma-core {}",
            description.mode,
            total(&ours),
            total(&theirs)
        );
    }
    Ok(())
}

/// Choosing reads no P_Key, which the driver would ask of the firmware one by one.
pub(crate) fn choosing_reads_no_pkeys() -> Result<()> {
    let description = Description::infiniband(2);
    let device = Mlx5::bind(0, &description)?;
    let function = device.function();
    for (command, expected) in [
        (&["uverbs", "choose"][..], 0),
        (&["uverbs", "env", "nccl"], 0),
        (&["uverbs", "check"], 256),
        (&["uverbs", "snapshot"], 256),
    ] {
        let (_, commands) = function.commands_during(|| lab::output(command))?;
        let counts = counts(&commands);
        let pkeys = counts.get(&QUERY_HCA_VPORT_PKEY).copied().unwrap_or(0);
        println!("figure: `{}`: {} firmware commands", command.join(" "), commands.len());
        println!("{counts:x?}");
        ensure!(pkeys == expected, "{command:?} reads {pkeys} P_Keys");
    }
    Ok(())
}

/// A query on an open context is the one command that it is, and DEVX costs its user context.
pub(crate) fn one_command_a_query() -> Result<()> {
    let device = Mlx5::bind(0, &Description::infiniband(1))?;
    let function = device.function();
    let found = Host::new().device(device.name())?;
    let context = Host::new().open(device.name())?;
    let (_, commands) = function.commands_during(|| {
        Ok(devx::query_hca_cap(&context, devx::CapabilityMode::Current, devx::Vport::Own)?)
    })?;
    let own = commands.iter().filter(|it| it.opcode == QUERY_HCA_CAP).count();
    ensure!(own == 1, "{commands:?}");
    // In legacy mode the driver knows without asking that it has no data. A GID table is the kernel's own.
    // (Commands that the driver sends by itself meanwhile have no user context and are not counted.)
    let (_, commands) = function.commands_during(|| {
        ensure!(query_port(&context, 1).is_ok() == (lab::kernel()? >= (5, 13)));
        Ok(context.query_gid_table()?)
    })?;
    let asked = [QUERY_HCA_CAP, QUERY_ESW_VPORT_CONTEXT, QUERY_HCA_VPORT_GID];
    ensure!(!commands.iter().any(|it| asked.contains(&it.opcode)), "{commands:?}");
    drop(context);

    let (context, commands) = function.commands_during(|| Ok(devx::open(&found)?))?;
    let counts = counts(&commands);
    ensure!(counts.get(&CREATE_UCTX) == Some(&1) && !counts.contains_key(&ALLOC_UAR));
    drop(context);
    Ok(())
}
