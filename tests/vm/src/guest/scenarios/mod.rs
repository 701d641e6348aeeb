//! What is tested on each kernel: a file for each topic, a function for each scenario.
//!
//! To add one, write a function that returns `Result<()>` and list it in [`SOFT`], [`mlx5::ALL`] or [`COUNTED`], which
//! decides its machine. It runs in a separate process on a machine without any RDMA device, and builds what
//! it needs with [`lab`](crate::lab). It prints what helps the reader of a failure (a line `figure: …` is
//! always shown), and returns an error if something is wrong (`anyhow::ensure!`). Scenarios must not depend
//! on each other. If a scenario does not apply to a kernel, it returns [`skip`](crate::lab::skip) with the
//! reason. If a claim holds from one kernel on, it proves the opposite on the older ones
//! ([`kernel`](crate::lab::kernel)).
#![expect(clippy::indexing_slicing, reason = "a scenario fails by panicking")]

mod answers;
mod c_events;
mod c_programs;
mod changes;
mod choices;
mod containers;
mod costs;
mod counters;
mod examples;
mod faults;
mod laboratory;
mod limits;
mod metrics;
mod mlx5;
mod model;
mod namespaces;
mod of_32_bits;
mod pairs;
mod peers;
mod readme;
mod record;
mod replaced;
mod siw;
mod slurm;
mod soft_roce;
mod switch;
mod tools;
mod watch;
mod worlds;

pub(crate) use costs::query_table;

use anyhow::{Context, Result};
use uverbs_vm::bed::Bed;

/// A scenario: its name, which is a single word, and its function.
type Scenario = (&'static str, fn() -> Result<()>);

/// The scenarios with only software, in the order in which they run.
const SOFT: &[Scenario] = &[
    ("soft_roce_comes_up", soft_roce::comes_up),
    ("soft_roce_listens_where_it_has_a_socket", soft_roce::listens_where_it_has_a_socket),
    ("soft_roce_hears_vlans_on_its_interface", soft_roce::hears_vlans_on_its_interface),
    ("the_lab_cleans_up", laboratory::cleans_up),
    ("peers_answer", peers::answer),
    ("answers_agree", answers::agree),
    ("answers_agree_on_links_that_are_down", answers::agree_on_links_that_are_down),
    ("answers_agree_on_a_full_table", answers::agree_on_a_full_table),
    ("answers_agree_on_a_sparse_table", answers::agree_on_a_sparse_table),
    ("answers_agree_on_a_device_that_is_gone", answers::agree_on_a_device_that_is_gone),
    ("answers_agree_on_a_refused_open", answers::agree_on_a_refused_open),
    ("ibv_devinfo_agrees", tools::ibv_devinfo_agrees),
    ("ibstat_agrees", tools::ibstat_agrees),
    ("ibstat_is_printed_byte_for_byte", tools::ibstat_is_printed_byte_for_byte),
    ("nothing_of_other_tools_is_missing", tools::nothing_of_other_tools_is_missing),
    ("limits_agree", tools::limits_agree),
    ("one_call_for_the_table", costs::one_call_for_the_table),
    ("few_calls_for_the_command", costs::few_calls_for_the_command),
    ("interfaces_are_listed_once", costs::interfaces_are_listed_once),
    ("filters_come_before_opening", costs::filters_come_before_opening),
    ("counters_agree", counters::on_soft_roce),
    ("owners_of_objects_agree", counters::owners_agree),
    ("counters_in_a_fresh_namespace", counters::in_a_fresh_namespace),
    ("metrics_of_eight_ports", metrics::eight_ports),
    ("metrics_on_a_full_disk", metrics::a_full_disk),
    ("an_empty_root", containers::an_empty_root),
    ("little_memory_and_one_thread", containers::little_memory_and_one_thread),
    ("what_containers_need", containers::what_containers_need),
    ("podman_gives_one_device", containers::podman_gives_one_device),
    ("interfaces_here_are_named", namespaces::interfaces_here_are_named),
    ("an_interface_elsewhere_is_not_named", namespaces::an_interface_elsewhere_is_not_named),
    ("the_same_index_on_the_same_port", namespaces::the_same_index_on_the_same_port),
    ("the_same_index_without_ipv6", namespaces::the_same_index_without_ipv6),
    ("a_macvlan_in_a_pod", namespaces::a_macvlan_in_a_pod),
    ("the_connection_manager_names_pods", namespaces::the_connection_manager_names_pods),
    ("pods_that_look_alike", namespaces::pods_that_look_alike),
    ("the_same_name_on_the_same_port", namespaces::the_same_name_on_the_same_port),
    ("a_bond_and_what_stands_on_it", namespaces::a_bond_and_what_stands_on_it),
    ("the_index_of_a_slave_elsewhere", namespaces::the_index_of_a_slave_elsewhere),
    ("a_bridge", namespaces::a_bridge),
    ("a_bridge_that_has_lost_its_rows", namespaces::a_bridge_that_has_lost_its_rows),
    ("a_bond_whose_rows_stay", namespaces::a_bond_whose_rows_stay),
    ("the_index_of_a_bridge_elsewhere", namespaces::the_index_of_a_bridge_elsewhere),
    (
        "the_same_index_and_address_in_two_namespaces",
        namespaces::the_same_index_and_address_in_two_namespaces,
    ),
    ("indices_of_other_namespaces", namespaces::indices_of_other_namespaces),
    ("an_interface_on_another_in_the_pod", namespaces::an_interface_on_another_in_the_pod),
    ("rows_of_two_other_pods", namespaces::rows_of_two_other_pods),
    ("a_tunnel_is_bound_to_an_interface", namespaces::a_tunnel_is_bound_to_an_interface),
    ("addresses_with_a_far_end", namespaces::addresses_with_a_far_end),
    ("an_idle_member_of_a_bond", namespaces::an_idle_member_of_a_bond),
    ("a_full_table_names_nobody_else", namespaces::a_full_table_names_nobody_else),
    ("random_worlds", worlds::random_worlds),
    ("loopback_is_not_taken_for_another", namespaces::loopback_is_not_taken_for_another),
    ("shared_mode_shows_devices_everywhere", namespaces::shared_mode_shows_devices_everywhere),
    ("exclusive_mode_hides_devices_elsewhere", namespaces::exclusive_mode_hides_devices_elsewhere),
    ("one_name_in_two_namespaces", namespaces::one_name_in_two_namespaces),
    ("one_name_and_guid_in_two_namespaces", namespaces::one_name_and_guid_in_two_namespaces),
    ("a_renamed_device_is_found", namespaces::a_renamed_device_is_found),
    ("another_user", faults::another_user),
    ("without_nodes", faults::without_nodes),
    ("removed_while_open", changes::removed_while_open),
    ("removed_before_the_open", changes::removed_before_the_open),
    ("removed_while_reading", changes::removed_while_reading),
    ("removed_at_every_call", changes::removed_at_every_call),
    ("replaced_at_every_call", replaced::replaced_at_every_call),
    ("interface_deleted_at_every_call", replaced::interface_deleted_at_every_call),
    ("replaced_while_kept", replaced::replaced_while_kept),
    ("replaced_behind_a_made_node", replaced::replaced_behind_a_made_node),
    ("sysfs_is_mounted_anew", replaced::sysfs_is_mounted_anew),
    ("modules_are_unloaded", changes::modules_are_unloaded),
    ("vanishing_while_read", changes::vanishing_while_read),
    ("standing_while_listed", changes::standing_while_listed),
    ("addresses_while_read", changes::addresses_while_read),
    ("churn_under_four_readers", changes::churn_under_four_readers),
    ("differences_add_up", watch::on_soft_roce),
    ("differences_add_up_without_rereading", watch::on_soft_roce_without_rereading),
    ("differences_add_up_in_exclusive_mode", watch::on_soft_roce_of_its_own_namespace),
    ("differences_add_up_on_a_switch", watch::on_a_switch),
    ("differences_add_up_on_iwarp", watch::on_soft_iwarp),
    ("readings_after_events_are_right", watch::readings_after_events_on_soft_roce),
    ("nothing_waits_for_a_watch", watch::nothing_waits_for_a_watch),
    ("an_idle_watch_sleeps", watch::an_idle_watch_sleeps),
    ("a_new_device_is_read_again", watch::a_new_device_is_read_again),
    ("a_watch_of_another_user", watch::a_watch_of_another_user),
    ("a_stopped_watch_says_what_it_lost", watch::a_stopped_watch_says_what_it_lost),
    ("an_index_that_another_interface_gets", watch::an_index_that_another_interface_gets),
    ("waiting_for_a_gid", watch::waiting_for_a_gid),
    ("ports_meet_as_is_said", pairs::ports_meet_as_is_said),
    ("slurm_drains_and_returns", slurm::drains_and_returns),
    ("each_moment_is_as_it_was", record::each_moment_on_soft_roce),
    ("a_recorder_on_a_full_disk", record::a_recorder_on_a_full_disk),
    ("few_files", limits::few_files),
    ("little_memory", limits::little_memory),
    ("forbidden_calls", limits::forbidden_calls),
    ("refused_netlink", limits::refused_netlink),
    ("hidden_folders", limits::hidden_folders),
    ("a_cgroup_that_is_full", limits::a_cgroup_that_is_full),
    ("thousands_of_opens", limits::thousands_of_opens),
    ("every_call_fails_once", limits::every_call_fails_once),
    ("requests_on_soft_roce", model::requests_on_soft_roce),
    ("port_speed_by_release", faults::port_speed_by_release),
    ("the_probe_finds_the_driver", faults::the_probe_finds_the_driver),
    ("many_devices", faults::many_devices),
    ("the_order_of_libibverbs", faults::the_order_of_libibverbs),
    ("a_switch_comes_and_goes", switch::comes_and_goes),
    ("a_switch_has_port_0_alone", switch::has_port_0_alone),
    ("answers_agree_on_a_switch", switch::answers_agree),
    ("tools_agree_on_a_switch", switch::tools_agree),
    ("the_command_on_a_switch", switch::the_command),
    ("iwarp_comes_up", siw::comes_up),
    ("answers_agree_on_iwarp", siw::answers_agree),
    ("tools_agree_on_iwarp", siw::tools_agree),
    ("iwarp_has_events", siw::events),
    ("answers_agree_on_iwarp_that_is_gone", siw::answers_agree_when_it_is_gone),
    ("iwarp_is_removed_while_open", siw::removed_while_open),
    ("as_ucx_on_soft_roce", choices::as_ucx_on_soft_roce),
    ("a_snapshot_answers_as_the_host", choices::a_snapshot_answers_as_the_host),
    ("a_host_is_checked", choices::a_host_is_checked),
    ("perftest_s_default", choices::perftest_s_default),
    ("addresses_that_nobody_can_use", choices::addresses_that_nobody_can_use),
    ("neighbours_that_are_not_asked_for", choices::neighbours_that_are_not_asked_for),
    ("a_tunnel_is_not_recommended", choices::a_tunnel_is_not_recommended),
    ("examples_run", examples::run_on_soft_roce),
    ("the_readme_shows_real_outputs", readme::on_soft_roce),
    ("c_programs_on_soft_roce", c_programs::on_soft_roce),
    ("c_programs_on_links_that_are_down", c_programs::on_links_that_are_down),
    ("c_programs_on_a_switch", c_programs::on_a_switch),
    ("c_programs_on_soft_iwarp", c_programs::on_soft_iwarp),
    ("c_programs_hear_events_on_soft_iwarp", c_events::on_soft_iwarp),
    ("c_programs_hear_events_on_soft_roce", c_events::on_soft_roce),
    ("c_programs_hear_events_on_a_switch", c_events::on_a_switch),
    ("c_programs_without_a_device", c_programs::without_a_device),
    ("c_programs_of_another_user", c_programs::of_another_user),
    ("c_programs_without_nodes", c_programs::without_nodes),
    ("c_programs_in_another_namespace", c_programs::in_another_namespace),
    ("c_programs_with_nothing_mounted", c_programs::with_nothing_mounted),
    ("c_programs_in_an_empty_root", c_programs::in_an_empty_root),
    ("c_programs_of_32_bits", of_32_bits::canaries),
    ("c_programs_sanitized", c_programs::sanitized),
    ("c_programs_under_valgrind", c_programs::under_valgrind),
];

/// The scenarios that count instructions.
const COUNTED: &[Scenario] =
    &[("metrics_of_eight_ports_in_instructions", metrics::eight_ports_in_instructions)];

/// Every scenario, with the machine that it runs on.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, Bed, fn() -> Result<()>)> {
    let beds = [(Bed::Soft, SOFT), (Bed::Counted, COUNTED), (Bed::Mlx5, mlx5::ALL)];
    beds.into_iter().flat_map(|(bed, scenarios)| {
        scenarios.iter().map(move |(name, scenario)| (*name, bed, *scenario))
    })
}

/// Runs one by its name.
pub(crate) fn run(name: &str) -> Result<()> {
    let (.., scenario) = all()
        .find(|(known, ..)| *known == name)
        .with_context(|| format!("no scenario {name:?}"))?;
    scenario()
}
