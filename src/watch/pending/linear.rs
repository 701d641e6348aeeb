//! The cost of waiting for rows grows as the number of addresses.

use std::net::Ipv4Addr;

use super::*;
use crate::device::Device;
use crate::gid::{GidEntry, GidRecord, GidType};
use crate::inventory::DeviceRecord;

/// How many addresses [`waiting`] is about; it is run for three numbers by [`waiting_is_linear`].
const COUNT: &str = "UVERBS_WAITING_COUNT";

/// Waits for the rows of as many addresses, of two types, all but one of which are there.
#[test]
fn waiting() {
    let Some(count) = std::env::var(COUNT).ok().and_then(|text| text.parse::<u32>().ok()) else {
        return;
    };
    let ip = |number: u32| IpAddr::from(Ipv4Addr::from_bits(0x0a00_0000 | number));
    let row = |number: u32, slot: u32, gid_type| {
        let entry = GidEntry::new(1, slot, gid_of(ip(number))).with_type(gid_type);
        GidRow::from(GidRecord::from(entry))
    };
    let both = |number: u32| {
        let types = [GidType::ROCE_V1, GidType::ROCE_V2];
        (2 * number..).zip(types).map(move |(slot, own)| row(number, slot, own))
    };
    let mut own = DeviceRecord::new(Device::named("rxe0"));
    own.gids = Some(Ok((0..count).flat_map(both).collect()));
    let inventory = Inventory { devices: vec![own], ..Inventory::default() };
    let mut ladder = Ladder::new(Duration::ZERO);
    for number in 0..=count {
        let expected = ExpectedRow { ip: ip(number), index: 3, is_there: true };
        ladder.add("rxe0", Some(expected), Duration::ZERO);
    }
    assert!(ladder.climb(&inventory, Duration::ZERO).is_some(), "one is not there");
}

/// Instructions, counted by valgrind, at n, 2n and 4n: the second step is twice the first, and would be
/// four times it if each address were looked for among all rows.
#[test]
fn waiting_is_linear() {
    use std::io::Write;
    if std::env::var_os("ASAN_OPTIONS").is_some() || cfg!(miri) {
        let why = "valgrind does not run what a sanitizer watches";
        // Not by the macro, whose output is shown of what fails only.
        writeln!(std::io::stdout().lock(), "\nSKIPPED: instructions for waiting: {why}").unwrap();
        return;
    }
    let counted = |count: u32| -> u64 {
        let output = std::process::Command::new("valgrind")
            .args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "watch::pending::linear::waiting", "--test-threads=1"])
            .env(COUNT, count.to_string())
            .output()
            .unwrap_or_else(|error| {
                panic!("valgrind is needed (apt-get install valgrind): {error}")
            });
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{output:?}");
        let line = text.lines().find_map(|line| line.split_once("refs:")).unwrap();
        line.1.trim().replace(',', "").parse().unwrap()
    };
    let [one, two, four] = [75, 150, 300].map(counted);
    println!("{one} {two} {four}");
    // In tenths.
    let ratio = 10 * (four - two) / (two - one);
    assert!(ratio < 26, "{one} {two} {four}: the second step is {ratio} tenths of the first");
}
