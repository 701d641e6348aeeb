//! The cost of naming grows as the number of rows.

use std::net::Ipv4Addr;

use super::*;

/// How many things [`naming`] is about; it is run for three numbers by [`naming_is_linear`].
const COUNT: &str = "UVERBS_NAMING_COUNT";

/// Names rows of as many interfaces: VLANs above one port's, then one on each of as many ports; and reads
/// them from as many messages.
#[test]
fn naming() {
    let Some(count) = std::env::var(COUNT).ok().and_then(|text| text.parse::<u32>().ok()) else {
        return;
    };
    let address = |number: u32| Ipv4Addr::from_bits(0x0a00_0000 | number).to_string();
    let row = |port: u32, slot: u32, number: u32| {
        let ifindex = NonZeroU32::new(number);
        GidRecord::from(
            GidEntry::new(port, slot, gid(&address(number)))
                .with_type(GidType::ROCE_V2)
                .with_netdev_ifindex(ifindex),
        )
    };
    let numbers = || 10..10 + count;
    let vlans =
        numbers().map(|number| parsed(number, &format!("d0.{number}"), "vlan", Some(2), false));
    let own =
        numbers().map(|number| parsed(number + count, &format!("d{number}"), "", None, false));
    let links: Vec<Link> = [link(2, "d0")].into_iter().chain(vlans).chain(own).collect();
    let addresses: Vec<(u32, String)> =
        (10..10 + 2 * count).map(|number| (number, address(number))).collect();
    let addresses: Vec<(u32, &str)> =
        addresses.iter().map(|(number, address)| (*number, address.as_str())).collect();
    let mut here = namespace(&addresses, links);
    for (port, number) in (2..).zip(numbers()) {
        let own = Netdev { index: index(number + count), name: format!("d{number}") };
        here.port_netdevs.insert(("rxe0".into(), port), own);
    }
    let of_one = numbers().map(|number| row(1, number, number));
    let of_each = (2..).zip(numbers()).map(|(port, number)| row(port, 7, number + count));
    let rows: Vec<GidRecord> = of_one.chain(of_each).collect();
    let table = GidTable::sample("rxe0", rows);
    let tables = [&table];
    let names = here.name(&tables);
    assert!(here.is_settled(&tables, &names));
    assert!(names[0].iter().all(Option::is_some), "{names:?}");
    // None is named, as if none were proven, and each is looked for.
    let unnamed = vec![vec![None; table.len()]];
    assert!(here.namings(&tables, unnamed)[0].iter().all(|naming| !naming.is_elsewhere));
}

/// Instructions, counted by valgrind, at n, 2n and 4n: the second step is twice the first, and would be
/// four times it if each row were looked for among all.
#[test]
fn naming_is_linear() {
    use std::io::Write;
    if std::env::var_os("ASAN_OPTIONS").is_some() || cfg!(miri) {
        let why = "valgrind does not run what a sanitizer watches";
        // Not by the macro, whose output is shown of what fails only.
        writeln!(std::io::stdout().lock(), "\nSKIPPED: instructions for naming: {why}").unwrap();
        return;
    }
    let counted = |count: u32| -> u64 {
        let output = std::process::Command::new("valgrind")
            .args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "host::netdev::proof::tests::linear::naming", "--test-threads=1"])
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
    let [one, two, four] = [300, 600, 1200].map(counted);
    println!("{one} {two} {four}");
    // In tenths.
    let ratio = 10 * (four - two) / (two - one);
    assert!(ratio < 24, "{one} {two} {four}: the second step is {ratio} tenths of the first");
}
