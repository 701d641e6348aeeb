//! Which scenarios a run has on which kernel.
//!
//! A whole run has all of them on all. One that takes samples has all on the newest kernel; on the
//! older ones those in which kernels differ, and of the others those whose turn it is: ten seeds that
//! follow one another have them all.

use crate::kernels;
use uverbs_vm::TURNS;

/// Whether, and when, a scenario runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// In any case.
    Always,
    /// So many runs later, or now where there is time.
    Later(u64),
}

/// Scenarios whose course depends on the kernel's release: other calls, other answers, another way
/// to remove a device, other modules.
const DIFFERS: &[&str] = &[
    "soft_roce_comes_up",
    "answers_agree",
    "answers_agree_on_a_device_that_is_gone",
    "answers_agree_on_a_refused_open",
    "few_calls_for_the_command",
    "what_containers_need",
    "the_same_index_and_address_in_two_namespaces",
    "the_connection_manager_names_pods",
    "exclusive_mode_hides_devices_elsewhere",
    "removed_while_open",
    "removed_before_the_open",
    "modules_are_unloaded",
    "standing_while_listed",
    "requests_on_soft_roce",
    "port_speed_by_release",
    "the_probe_finds_the_driver",
    "a_switch_comes_and_goes",
    "a_snapshot_answers_as_the_host",
    "c_programs_on_soft_roce",
    "mlx5_two_infiniband_ports",
    "mlx5_roce",
    "mlx5_switchdev",
    "mlx5_embedded_cpu",
    "mlx5_ports_have_nothing_to_tell",
    "mlx5_fewer_firmware_commands",
    "requests_on_mlx5_infiniband",
    "requests_on_mlx5_roce",
    "requests_on_mlx5_switchdev",
    "mlx5_driver_is_bound_anew",
    "mlx5_unplugged_while_open",
    "random_worlds",
    "replaced_at_every_call",
];

/// The rank of a scenario in a run with this seed; in a whole run where there is none.
pub(crate) fn rank(sample: Option<u64>, series: &str, scenario: &str) -> Rank {
    let Some(seed) = sample else { return Rank::Always };
    let is_newest = kernels::ALL.last().is_some_and(|newest| newest.name == series);
    if is_newest || DIFFERS.contains(&scenario) {
        return Rank::Always;
    }
    match (turn(series, scenario) + TURNS - seed % TURNS) % TURNS {
        0 => Rank::Always,
        later => Rank::Later(later),
    }
}

/// The last digit of the seeds that have it.
fn turn(series: &str, scenario: &str) -> u64 {
    // FNV-1a: the same everywhere and always.
    let bytes = series.bytes().chain([0]).chain(scenario.bytes());
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let mut hash = bytes.fold(0xcbf2_9ce4_8422_2325, step);
    // Names that are alike have hashes that are: these two lines spread them.
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    (hash ^ (hash >> 33)) % TURNS
}

/// Names of the list that no scenario has, any more.
pub(crate) fn unknown<'a>(known: &[&str]) -> Vec<&'a str> {
    DIFFERS.iter().copied().filter(|name| !known.contains(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_runs_have_everything() {
        for series in ["5.10", "6.1", "6.12"] {
            for number in 0..200 {
                let scenario = format!("scenario_{number}");
                let its_runs =
                    (70..80).filter(|seed| rank(Some(*seed), series, &scenario) == Rank::Always);
                assert_eq!(its_runs.count(), 1, "{scenario}");
            }
        }
    }

    #[test]
    fn turns_are_spread() {
        let mut of_turn = [0; 10];
        for number in 0..1000 {
            let turn = turn("6.1", &format!("scenario_{number}"));
            of_turn[usize::try_from(turn).unwrap()] += 1;
        }
        assert!(of_turn.iter().all(|count| (50..200).contains(count)), "{of_turn:?}");
    }

    #[test]
    fn some_run_always() {
        for seed in 0..10 {
            assert_eq!(rank(Some(seed), "7", "anything"), Rank::Always);
            assert_eq!(rank(Some(seed), "5.10", "answers_agree"), Rank::Always);
        }
        assert_eq!(rank(None, "5.10", "anything"), Rank::Always);
    }
}
