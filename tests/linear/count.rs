//! What the command costs, in instructions.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The least number of elements; one that doubles no list's room just between two measurements.
pub(crate) const COUNT: usize = 120;

/// The second step over the first: 2 if linear, a little more for sorted look-ups, 4 if quadratic.
const MOST: f64 = 2.3;

/// The commands in which all code that looks at a snapshot has a part.
pub(crate) const COMMANDS: [&[&str]; 5] = [
    &["check"],
    &["choose", "--explain", "--like", "nccl"],
    &["env", "ucx"],
    &["fleet"],
    &["expect"],
];

/// Those that read one device at a time.
pub(crate) const READERS: [&[&str]; 2] = [&["gids"], &["ports"]];

/// Instructions of the command on these files.
pub(crate) fn instructions(words: &[&str], files: &[PathBuf]) -> u64 {
    let program = std::env::var("UVERBS_TEST_PROGRAM");
    let program = program.as_deref().unwrap_or(env!("CARGO_BIN_EXE_uverbs"));
    let output = Command::new("valgrind")
        .args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"])
        .arg(program)
        .args(words)
        .args(files.iter().flat_map(|file| [Path::new("--from"), file]))
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("valgrind is needed (apt-get install valgrind): {error}"));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!text.contains("panicked") && output.status.code().is_some(), "{words:?}: {text}");
    let line = text.lines().find_map(|line| line.split_once("refs:")).unwrap();
    line.1.trim().replace(',', "").parse().unwrap()
}

/// Counts at this number of elements, twice and four times that. Fails if the second step is more than it may be.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
#[track_caller]
pub(crate) fn hold(what: &str, words: &[&str], least: usize, count: impl Fn(usize) -> u64) {
    let counts = [1, 2, 4].map(|times| count(times * least));
    let [one, two, four] = counts.map(|count| count as f64);
    let ratio = (four - two) / (two - one);
    println!("{what}: {}: {counts:?}: {ratio:.2}", words.join(" "));
    // What hardly grows has no shape.
    assert!(ratio < MOST || four < 1.05 * one, "{what}: {words:?}: {counts:?}, {ratio:.2}");
}
