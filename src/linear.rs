//! Tests of costs: instructions, counted by valgrind, of a test that is run for n, 2n and 4n things.

use std::env;
use std::io::Write as _;
use std::process::Command;

/// How many things the test is about that is counted.
const COUNT: &str = "UVERBS_LINEAR_COUNT";

/// How many things this run of a test is about; `None` if it is not run to be counted.
pub(crate) fn count() -> Option<u32> {
    env::var(COUNT).ok().and_then(|text| text.parse().ok())
}

/// Asserts that the cost of a test, by its whole name, is linear: the second step is twice the first. It would be four
/// times the first if each thing were looked for among all. `most` says in tenths what is still linear.
#[track_caller]
pub(crate) fn assert_linear(whole_name: &str, least: u32, most: u64) {
    if env::var_os("ASAN_OPTIONS").is_some() || cfg!(miri) {
        let name = whole_name.rsplit("::").next().unwrap();
        let why = "valgrind does not run what a sanitizer watches";
        // Not by the macro, whose output is shown of what fails only.
        writeln!(std::io::stdout().lock(), "\nSKIPPED TEST: instructions for {name}: {why}")
            .unwrap();
        return;
    }
    let counted = |count: u32| -> u64 {
        let output = Command::new("valgrind")
            .args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"])
            .arg(env::current_exe().unwrap())
            .args(["--exact", whole_name, "--test-threads=1"])
            .env(COUNT, count.to_string())
            .output()
            .unwrap_or_else(|error| {
                panic!("valgrind is needed (apt-get install valgrind): {error}")
            });
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("1 passed"), "no test has the name {whole_name}: {text}");
        let text = String::from_utf8_lossy(&output.stderr);
        let line = text.lines().find_map(|line| line.split_once("refs:")).unwrap();
        line.1.trim().replace(',', "").parse().unwrap()
    };
    let [one, two, four] = [least, 2 * least, 4 * least].map(counted);
    println!("{one} {two} {four}");
    let ratio = 10 * (four - two) / (two - one);
    assert!(ratio < most, "{one} {two} {four}: the second step is {ratio} tenths of the first");
}
