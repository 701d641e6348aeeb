//! The cost of what is kept grows as the number of devices.

use super::*;
use crate::netlink::route::tests::{index, link};

/// How many devices [`keeping`] is about; it is run for three numbers by [`keeping_is_linear`].
const COUNT: &str = "UVERBS_KEEPING_COUNT";

/// Keeps what the ports of as many devices said, and looks it up.
#[test]
fn keeping() {
    let Some(count) = std::env::var(COUNT).ok().and_then(|text| text.parse::<u32>().ok()) else {
        return;
    };
    let up = |number: u32| Link { flags: 1 | 1 << 16, ..link(number, &format!("d{number}")) };
    let links: Links = (1..=count).map(up).collect();
    let record = |number: u32| {
        let mut record = DeviceRecord::new(Device::named(format!("mlx5_{number}")));
        record.device.driver = Some(DriverId::MLX5);
        let attributes =
            PortAttributes { link_layer: LinkLayer::ETHERNET, ..PortAttributes::default() };
        let mut port = PortRecord::new(1);
        port.attributes = Some(Ok((attributes, Source::Ioctl)));
        port.netdev = Some(Netdev { index: index(number), name: format!("d{number}") });
        record.ports.push(port);
        record
    };
    let records: Vec<DeviceRecord> = (1..=count).map(record).collect();
    let mut kept = Kept::default();
    kept.keep(&records, &links);
    assert!(records.iter().all(|own| kept.known(&own.device, 1, &links).is_some()));
}

/// Instructions, counted by valgrind, at n, 2n and 4n: the second step is twice the first, and would be
/// four times it if each device were looked for among all.
#[test]
fn keeping_is_linear() {
    use std::io::Write;
    if std::env::var_os("ASAN_OPTIONS").is_some() || cfg!(miri) {
        let why = "valgrind does not run what a sanitizer watches";
        // Not by the macro, whose output is shown of what fails only.
        writeln!(std::io::stdout().lock(), "\nSKIPPED: instructions for keeping: {why}").unwrap();
        return;
    }
    let counted = |count: u32| -> u64 {
        let output = std::process::Command::new("valgrind")
            .args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "inventory::read::kept::linear::keeping", "--test-threads=1"])
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
    let [one, two, four] = [150, 300, 600].map(counted);
    println!("{one} {two} {four}");
    // In tenths.
    let ratio = 10 * (four - two) / (two - one);
    assert!(ratio < 26, "{one} {two} {four}: the second step is {ratio} tenths of the first");
}
