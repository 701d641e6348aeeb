//! Scenarios on emulated mlx5 functions, with the kernel's own drivers.
//!
//! All answers are compared with the function's [`Description`].

mod c_programs;
mod commands;
mod costs;
mod counters;
mod events;
mod firmware;
mod health;
mod metrics;
mod modes;
mod orders;
mod ports;
mod removal;
mod replaced;

use anyhow::{Context as _, Result, ensure};
use uverbs::context::Context;
use uverbs::device::Device;
use uverbs::driver::DriverId;
use uverbs::gid::{Gid, GidEntry, GidType};
use uverbs::host::Host;
use uverbs::pkey::PKey;
use uverbs::sysfs::Sysfs;
use uverbs_mlx5_function::description::{Description, Port};

pub(super) use firmware::trial_words as firmware_words;

use super::{Scenario, answers, c_events, choices, containers, model, of_32_bits, record, watch};
use crate::lab::mlx5::Mlx5;

/// Every scenario of them, in the order in which they run.
pub(crate) const ALL: &[Scenario] = &[
    ("mlx5_takes_orders", orders::taken),
    ("mlx5_failures_are_told", orders::failures_are_told),
    ("mlx5_commands_time_out", orders::commands_time_out),
    ("mlx5_one_infiniband_port", modes::one_infiniband_port),
    ("mlx5_two_infiniband_ports", modes::two_infiniband_ports),
    ("mlx5_roce", modes::roce),
    ("mlx5_switchdev", modes::switchdev),
    ("mlx5_embedded_cpu", modes::embedded_cpu),
    ("mlx5_embedded_cpu_with_a_vport", modes::embedded_cpu_with_a_vport),
    ("mlx5_two_devices", modes::two_devices),
    ("mlx5_port_goes_down_and_up", events::port_goes_down_and_up),
    ("mlx5_tables_change", events::tables_change),
    ("mlx5_speeds_by_release", modes::speeds_by_release),
    ("mlx5_differences_add_up_on_roce", watch::on_mlx5_roce),
    ("mlx5_differences_add_up_on_infiniband", watch::on_mlx5_infiniband),
    ("mlx5_readings_after_events_are_right", watch::readings_after_events_on_mlx5),
    ("mlx5_nothing_waits_for_a_watch", watch::nothing_waits_for_a_watch_of_mlx5),
    ("mlx5_examples_run", super::examples::run_on_mlx5),
    ("mlx5_the_readme_shows_real_outputs", super::readme::on_mlx5),
    ("mlx5_ports_have_nothing_to_tell", ports::nothing_to_tell),
    ("mlx5_ports_odd_memory", ports::odd_memory),
    ("mlx5_ports_another_driver", ports::another_driver),
    ("mlx5_ports_firmware_refuses", ports::firmware_refuses),
    ("mlx5_firmware_infiniband", firmware::infiniband),
    ("mlx5_firmware_roce", firmware::roce),
    ("mlx5_firmware_other_vports", firmware::other_vports),
    ("mlx5_firmware_refusals", firmware::refusals),
    ("mlx5_firmware_late_answers", firmware::late_answers),
    ("mlx5_firmware_gone", firmware::gone),
    ("mlx5_fewer_firmware_commands", costs::fewer_commands),
    ("mlx5_choosing_reads_no_pkeys", costs::choosing_reads_no_pkeys),
    ("mlx5_one_firmware_command_a_query", costs::one_command_a_query),
    ("mlx5_limits_agree", modes::limits_agree),
    ("mlx5_counters_cost_a_tenth", counters::agree_and_cost_a_tenth),
    ("mlx5_counters_a_refused_register", counters::a_refused_register),
    ("mlx5_metrics_cost_a_seventh", metrics::cost_a_seventh),
    ("mlx5_metrics_through_faults", metrics::through_faults),
    ("mlx5_commands_embedded_cpu", commands::embedded_cpu),
    ("mlx5_commands_infiniband", commands::infiniband),
    ("mlx5_commands_roce", commands::roce),
    ("requests_on_mlx5_infiniband", model::requests_on_mlx5_infiniband),
    ("requests_on_mlx5_roce", model::requests_on_mlx5_roce),
    ("requests_on_mlx5_switchdev", model::requests_on_mlx5_switchdev),
    ("mlx5_events_that_change_no_table", watch::events_that_change_no_table),
    ("mlx5_each_moment_of_roce", record::each_moment_on_mlx5_roce),
    ("mlx5_each_moment_of_infiniband", record::each_moment_on_mlx5_infiniband),
    ("mlx5_given_to_a_pod", containers::a_device_given_to_a_pod),
    ("as_ucx_on_mlx5_roce", choices::as_ucx_on_mlx5_roce),
    ("mlx5_fatal_error", health::fatal_error),
    ("mlx5_driver_is_bound_anew", removal::driver_is_bound_anew),
    ("mlx5_driver_goes_while_reading", removal::driver_goes_while_reading),
    ("mlx5_driver_is_loaded_anew", removal::driver_is_loaded_anew),
    ("mlx5_replaced_at_every_call", replaced::at_every_call),
    ("mlx5_unplugged_while_open", removal::unplugged_while_open),
    ("mlx5_pulled_out_while_open", removal::pulled_out_while_open),
    ("c_programs_on_one_mlx5_port", c_programs::on_one_infiniband_port),
    ("c_programs_on_two_mlx5_ports", c_programs::on_two_infiniband_ports),
    ("c_programs_on_mlx5_roce", c_programs::on_roce),
    ("c_programs_hear_events_on_mlx5_infiniband", c_events::on_mlx5_infiniband),
    ("c_programs_hear_events_on_mlx5_roce", c_events::on_mlx5_roce),
    ("c_programs_on_mlx5_switchdev", c_programs::on_switchdev),
    ("c_programs_on_mlx5_embedded_cpu", c_programs::on_an_embedded_cpu),
    ("c_programs_on_two_mlx5_devices", c_programs::on_two_devices),
    ("c_programs_on_mlx5_without_devx", c_programs::without_devx),
    ("c_programs_on_mlx5_of_32_bits", of_32_bits::canaries_on_mlx5),
    ("c_programs_on_mlx5_sanitized", c_programs::sanitized),
    ("c_programs_on_mlx5_under_valgrind", c_programs::under_valgrind),
];

/// Everything that rdma-core says of a device: every port and table, and every command.
fn all_agree(device: &Mlx5, description: &Description) -> Result<()> {
    let name = device.name();
    answers::compare_verbs(name)?;
    ports::compare_with_rdma_core(name)?;
    drop(firmware::opened(device, description)?);
    firmware::compare_trials(device)?;

    let by_ioctl = Host::new().open(name)?.query_gid_table()?;
    let by_sysfs = Sysfs::host().query_gid_table(name)?;
    let key = |entry: &GidEntry| (entry.port(), entry.index(), entry.gid(), entry.gid_type());
    let by_sysfs: Vec<_> = by_sysfs.iter().map(|row| key(&row.entry)).collect();
    let by_ioctl: Vec<_> = by_ioctl.iter().map(key).collect();
    ensure!(by_ioctl == by_sysfs, "by ioctl {by_ioctl:#?}, by sysfs {by_sysfs:#?}");
    Ok(())
}

/// Finds a device and checks what is known of it without opening it.
fn found(device: &Mlx5, description: &Description) -> Result<Device> {
    let found = Host::new().device(device.name())?;
    println!("{found:#?}");
    let (major, minor, sub_minor) = description.firmware;
    ensure!(found.driver == Some(DriverId::MLX5));
    ensure!(found.node_guid.to_u64() == description.node_guid);
    ensure!(found.sys_image_guid.to_u64() == description.system_image_guid);
    ensure!(found.fw_version == Some(format!("{major}.{minor}.{sub_minor:04}")));
    let folder = format!("/sys/class/infiniband/{}", found.name);
    let board = std::fs::read_to_string(format!("{folder}/board_id"))?;
    ensure!(board.trim() == description.psid, "board {board:?}");
    Ok(found)
}

/// Opens an InfiniBand device that is as described, and checks every port and table.
fn opened_as_described(device: &Mlx5, description: &Description) -> Result<Context> {
    let found = found(device, description)?;
    ensure!(found.protocol.as_deref() == Some("ib"));
    ensure!(usize::try_from(found.port_count)? == description.ports.len());
    let context = Context::open(&found)?;
    ensure!(context.driver() == DriverId::MLX5);
    let attributes = context.query_device()?;
    ensure!(attributes.node_guid().to_u64() == description.node_guid);
    for (number, port) in (1..).zip(&description.ports) {
        port_as_described(&context, number, port).with_context(|| format!("port {number}"))?;
    }
    gids_as_described(&context, description)?;
    Ok(context)
}

fn port_as_described(context: &Context, number: u32, port: &Port) -> Result<()> {
    let ours = context.query_port(number)?;
    println!("port {number}: {ours:#?}");
    ensure!((ours.state.0, ours.phys_state.0) == (port.state, port.phys_state));
    ensure!(ours.link_layer.name() == Some("infiniband"));
    ensure!((ours.lid, ours.lmc) == (port.lid.into(), port.lmc));
    ensure!((ours.sm_lid, ours.sm_sl) == (port.sm_lid.into(), port.sm_sl));
    ensure!(ours.gid_tbl_len == u32::from(port.gid_table_len));
    for mtu in [ours.max_mtu, ours.active_mtu] {
        ensure!(mtu.and_then(uverbs::port::Mtu::bytes) == Some(port.mtu));
    }
    let lanes = ours.active_width.and_then(uverbs::port::Width::lanes);
    ensure!(lanes == Some(if port.width == 16 { 12 } else { port.width }));
    ensure!(ours.active_speed.is_some_and(|speed| speed.0 == port.speed));
    ensure!(ours.port_cap_flags == port.cap_mask);

    let told = Sysfs::host().query_pkeys(context.device_name(), number)?;
    ensure!(told.len() == usize::try_from(ours.pkey_tbl_len)?);
    for (index, pkey) in told {
        let described = port.pkeys.get(usize::try_from(index)?).copied().unwrap_or(0);
        ensure!(pkey == PKey(described), "P_Key {index} is {pkey}");
    }
    Ok(())
}

/// Every GID: by ioctl as described, and by sysfs the same.
fn gids_as_described(context: &Context, description: &Description) -> Result<()> {
    let mut described: Vec<(u32, u32, Gid)> = Vec::new();
    for (number, port) in (1..).zip(&description.ports) {
        let gids = port.gids.iter();
        described.extend(gids.map(|(index, gid)| (number, (*index).into(), Gid::from_bytes(*gid))));
    }
    let by_ioctl = context.query_gid_table()?;
    let by_sysfs = Sysfs::host().query_gid_table(context.device_name())?;
    ensure!(by_ioctl.iter().all(|entry| entry.gid_type() == GidType::IB));
    let told: Vec<_> =
        by_ioctl.iter().map(|entry| (entry.port(), entry.index(), entry.gid())).collect();
    ensure!(told == described, "by ioctl {told:#?}, described {described:#?}");
    let told: Vec<_> =
        by_sysfs.iter().map(|row| (row.entry.port(), row.entry.index(), row.entry.gid())).collect();
    ensure!(told == described, "by sysfs {told:#?}, described {described:#?}");
    Ok(())
}
