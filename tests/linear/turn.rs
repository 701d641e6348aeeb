//! A run with a seed has a tenth of what is counted.

use std::io::Write;

/// Of how many parts a seed has one.
const TURNS: usize = 10;

/// Whether the list with this number, one of several of a test, is counted in this run.
pub(crate) fn has_its_turn(number: usize, name: &str) -> bool {
    has_turn(number, name, "SKIPPED")
}

/// The same, where the test is about nothing else.
pub(crate) fn test_has_its_turn(number: usize, name: &str) -> bool {
    has_turn(number, name, "SKIPPED TEST")
}

fn has_turn(number: usize, name: &str, skipped: &str) -> bool {
    let Ok(seed) = std::env::var("UVERBS_LINEAR_SEED") else { return true };
    let seed: usize = seed.parse().unwrap();
    let is_now = number % TURNS == seed % TURNS;
    if !is_now {
        // Not by the macro, whose output is shown of what fails only.
        let why = "not its turn by the seed; `tests/run all` has it";
        writeln!(std::io::stdout().lock(), "\n{skipped}: instructions for {name}: {why}").unwrap();
    }
    is_now
}
