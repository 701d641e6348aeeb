//! Which scenarios a run has on which kernel.
//!
//! A whole run has all of them on all. One that takes samples has on the newest kernel those in which kernels differ,
//! and half of the others. Of the older kernels it has one by its seed: there it has the same, but of the others a
//! sixth, and that only if more is wanted. With these, eighteen seeds that follow one another have them all.

use crate::machines::Machine;
use crate::{boards, kernels};

/// When a scenario runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rank {
    /// In this run.
    Now,
    /// By another seed.
    Later,
    /// Only in a run that has more.
    More,
}

/// Scenarios whose course depends on the kernel's release: other calls, other answers, another way
/// to remove a device, other modules.
const DIFFERS: &[&str] = &[
    "soft_roce_comes_up",
    "answers_agree",
    "answers_agree_on_a_device_that_is_gone",
    "answers_agree_on_a_refused_open",
    "few_calls_for_the_command",
    "counters_agree",
    "counters_in_a_fresh_namespace",
    "what_containers_need",
    "the_same_index_and_address_in_two_namespaces",
    "the_connection_manager_names_pods",
    "exclusive_mode_hides_devices_elsewhere",
    "removed_while_open",
    "removed_before_the_open",
    "modules_are_unloaded",
    "differences_add_up",
    "nothing_waits_for_a_watch",
    "standing_while_listed",
    "requests_on_soft_roce",
    "port_speed_by_release",
    "the_probe_finds_the_driver",
    "a_switch_comes_and_goes",
    "answers_agree_on_iwarp",
    "iwarp_has_events",
    "a_snapshot_answers_as_the_host",
    "c_programs_on_soft_roce",
    "mlx5_two_infiniband_ports",
    "mlx5_speeds_by_release",
    "mlx5_roce",
    "mlx5_switchdev",
    "mlx5_embedded_cpu",
    "mlx5_ports_have_nothing_to_tell",
    "mlx5_fewer_firmware_commands",
    "mlx5_counters_cost_a_tenth",
    "requests_on_mlx5_infiniband",
    "requests_on_mlx5_roce",
    "requests_on_mlx5_switchdev",
    "mlx5_driver_is_bound_anew",
    "mlx5_unplugged_while_open",
    "random_worlds",
    "replaced_at_every_call",
];

/// Scenarios that the newest kernel has by one seed in three, each by another: they take a minute, and compare with no
/// peer. The first only measures, on a machine of its own that counts instructions.
const BY_TURNS: &[&str] = &["metrics_of_eight_ports_in_instructions", "podman_gives_one_device"];

/// The scenarios for kernels of other machines, if none is named: all that compare with rdma-core, answers of the
/// firmware, events, removal, and requests that the model of the kernel predicts.
const ELSEWHERE: &[&str] = &[
    "soft_roce_comes_up",
    "the_lab_cleans_up",
    "peers_answer",
    "answers_agree",
    "answers_agree_on_links_that_are_down",
    "answers_agree_on_a_full_table",
    "answers_agree_on_a_sparse_table",
    "answers_agree_on_a_device_that_is_gone",
    "answers_agree_on_a_refused_open",
    "ibv_devinfo_agrees",
    "ibstat_agrees",
    "ibstat_is_printed_byte_for_byte",
    "nothing_of_other_tools_is_missing",
    "limits_agree",
    "counters_agree",
    "removed_while_open",
    "removed_before_the_open",
    "modules_are_unloaded",
    "differences_add_up",
    "readings_after_events_are_right",
    "requests_on_soft_roce",
    "a_snapshot_answers_as_the_host",
    "c_programs_on_soft_roce",
    "c_programs_on_links_that_are_down",
    "c_programs_hear_events_on_soft_roce",
    "c_programs_without_a_device",
    "c_programs_of_32_bits",
    "mlx5_two_infiniband_ports",
    "mlx5_roce",
    "mlx5_switchdev",
    "mlx5_embedded_cpu",
    "mlx5_port_goes_down_and_up",
    "mlx5_ports_odd_memory",
    "mlx5_firmware_infiniband",
    "mlx5_firmware_roce",
    "mlx5_firmware_other_vports",
    "mlx5_firmware_refusals",
    "mlx5_limits_agree",
    "mlx5_counters_cost_a_tenth",
    "mlx5_commands_infiniband",
    "mlx5_commands_roce",
    "requests_on_mlx5_infiniband",
    "requests_on_mlx5_roce",
    "requests_on_mlx5_switchdev",
    "mlx5_driver_is_bound_anew",
    "mlx5_unplugged_while_open",
    "c_programs_on_two_mlx5_ports",
    "c_programs_hear_events_on_mlx5_roce",
    "c_programs_on_mlx5_of_32_bits",
];

/// Those of them that start thousands of programs. On a machine that QEMU emulates slowly each takes ten minutes, and
/// nothing in them depends on the machine that is not in the others.
const LONG: &[&str] = &["differences_add_up", "readings_after_events_are_right"];

/// Whether a scenario is for kernels of this machine.
pub(crate) fn is_for(machine: Machine, scenario: &str) -> bool {
    let is_usual = Machine::guest().is_ok_and(|usual| usual == machine);
    let is_slow = boards::of(machine).is_ok_and(|board| board.is_slow);
    is_usual || (ELSEWHERE.contains(&scenario) && !(is_slow && LONG.contains(&scenario)))
}

/// What a run takes samples by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) seed: u64,
    /// Whether older kernels have scenarios in which kernels do not differ, and some machines two processors.
    pub(crate) has_more: bool,
}

/// The rank of a scenario in a run that takes samples; in a whole run where it takes none.
pub(crate) fn rank(sample: Option<Sample>, series: &str, scenario: &str) -> Rank {
    let Some(Sample { seed, has_more }) = sample else { return Rank::Now };
    if !has_more && !is_newest(series) && !DIFFERS.contains(&scenario) {
        return Rank::More;
    }
    let is_of_part = |seed: u64, parts| seed % parts == part(series, scenario, parts);
    let has_its_turn = if let Some(place) = BY_TURNS.iter().position(|own| *own == scenario)
        && is_newest(series)
    {
        seed % 3 == place as u64
    } else if DIFFERS.contains(&scenario) {
        has_turn(seed, series)
    } else if is_newest(series) {
        is_of_part(seed, PARTS_OF_THE_NEWEST)
    } else {
        has_turn(seed, series) && is_of_part(seed / older(), PARTS_OF_OLDER)
    };
    if has_its_turn { Rank::Now } else { Rank::Later }
}

/// Whether a run that takes samples by this seed boots this kernel.
pub(crate) fn has_turn(seed: u64, series: &str) -> bool {
    let place = kernels::ALL.iter().position(|own| own.name == series);
    is_newest(series) || place.is_some_and(|place| seed % older() == place as u64)
}

fn is_newest(series: &str) -> bool {
    kernels::ALL.last().is_some_and(|own| own.name == series)
}

/// How many kernels are not the newest.
fn older() -> u64 {
    kernels::ALL.len() as u64 - 1
}

/// How many parts the scenarios have in which kernels do not differ: each seed has one.
const PARTS_OF_THE_NEWEST: u64 = 2;
const PARTS_OF_OLDER: u64 = 6;

/// The one of so many parts to which it belongs.
fn part(series: &str, scenario: &str, parts: u64) -> u64 {
    // FNV-1a: the same everywhere and always.
    let bytes = series.bytes().chain([0]).chain(scenario.bytes());
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let mut hash = bytes.fold(0xcbf2_9ce4_8422_2325, step);
    // Names that are alike have hashes that are: these two lines spread them.
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    (hash ^ (hash >> 33)) % parts
}

/// Names of the lists that no scenario has, any more.
pub(crate) fn unknown<'a>(known: &[&str]) -> Vec<&'a str> {
    DIFFERS
        .iter()
        .chain(ELSEWHERE)
        .chain(LONG)
        .chain(BY_TURNS)
        .copied()
        .filter(|name| !known.contains(name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eighteen_runs_have_everything() {
        for (series, expected) in [("5.10", 1), ("6.1", 1), ("6.12", 1), ("7", 9)] {
            for number in 0..200 {
                let scenario = format!("scenario_{number}");
                for first in 70..90 {
                    let its_runs =
                        (first..first + 18).filter(|seed| runs(*seed, series, &scenario));
                    assert_eq!(its_runs.count(), expected, "{scenario}");
                }
            }
        }
    }

    fn sample(seed: u64) -> Sample {
        Sample { seed, has_more: true }
    }

    fn runs(seed: u64, series: &str, scenario: &str) -> bool {
        rank(Some(sample(seed)), series, scenario) == Rank::Now
    }

    #[test]
    fn without_more_an_older_kernel_has_only_what_differs() {
        for seed in 70..80 {
            let sample = |has_more| Some(Sample { seed, has_more });
            for series in ["5.10", "6.1", "6.12"] {
                assert_eq!(rank(sample(false), series, "anything"), Rank::More);
            }
            for (series, name) in [("5.10", "answers_agree"), ("7", "anything")] {
                assert_eq!(rank(sample(false), series, name), rank(sample(true), series, name));
            }
        }
    }

    #[test]
    fn one_older_kernel_has_what_differs() {
        for seed in 70..80 {
            let older = ["5.10", "6.1", "6.12"];
            let has = |series: &&&str| runs(seed, series, "answers_agree");
            assert_eq!(older.iter().filter(has).count(), 1, "{seed}");
            for series in older {
                assert_eq!(has_turn(seed, series), has(&&series));
            }
            assert!(has_turn(seed, "7"));
        }
    }

    #[test]
    fn other_machines_have_what_depends_on_them() {
        let of = |name: &str| Machine::named(name).unwrap();
        assert!(is_for(of("x86_64"), "anything") && !is_for(of("aarch64"), "anything"));
        assert!(is_for(of("aarch64"), LONG[0]) && !is_for(of("s390x"), LONG[0]));
        assert!(is_for(of("s390x"), "answers_agree"));
    }

    #[test]
    fn parts_are_alike() {
        for (series, parts, least, most) in
            [("6.1", PARTS_OF_OLDER, 130, 205), ("7", PARTS_OF_THE_NEWEST, 450, 550)]
        {
            let mut of_part = [0; 6];
            for number in 0..1000 {
                let part = part(series, &format!("scenario_{number}"), parts);
                of_part[usize::try_from(part).unwrap()] += 1;
            }
            let of_part = &of_part[..usize::try_from(parts).unwrap()];
            assert!(of_part.iter().all(|count| (least..most).contains(count)), "{of_part:?}");
        }
    }

    #[test]
    fn two_runs_have_all_on_the_newest_kernel() {
        for seed in 0..10 {
            assert!(runs(seed, "7", "answers_agree"));
            assert_ne!(runs(seed, "7", "anything"), runs(seed + 1, "7", "anything"));
            for scenario in BY_TURNS {
                let its_turns = (seed..seed + 3).filter(|seed| runs(*seed, "7", scenario));
                assert_eq!(its_turns.count(), 1);
            }
        }
        assert_eq!(rank(None, "5.10", "anything"), Rank::Now);
    }
}
