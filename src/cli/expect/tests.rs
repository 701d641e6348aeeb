//! What is written is read, and what does not belong is refused with its line.

use proptest::prelude::*;
use uverbs::check::expect::{
    Allowed, DevicePattern, Field, Form, Gathering, HostPattern, Hosts, Value,
};
use uverbs::choose::Network;
use uverbs::inventory::Inventory;

use super::read::read;
use super::write::write;

fn hosts(names: &[&str]) -> Hosts {
    let mut hosts = Hosts::default();
    for own in names {
        hosts.add(Some(own), &Inventory::default());
    }
    hosts
}

/// The file of a pattern.
fn written(pattern: HostPattern) -> String {
    let mut gathered = Gathering::default().end();
    gathered.left_out = vec![Vec::new(); pattern.devices.len()];
    gathered.pattern = pattern;
    write(&gathered, &hosts(&["node1"]), &[])
}

/// A file is read with one group that has this line, which is the third.
fn refused(line: &str) -> String {
    read(&format!("only_these_devices = true\n[[devices]]\n{line}\n")).unwrap_err().to_string()
}

#[test]
fn what_does_not_belong_is_refused() {
    const NUMBER: &str =
        "is not allowed, but a whole number, { min = N, max = N }, or a list of such";
    for (line, said) in [
        ("raet = 400", "3: raet: no such key; allowed are driver, board, name, count, firmware,"),
        (
            "rate = \"400\"",
            "3: rate: \"400\" is not allowed, but a number with at most one decimal, { min = N, max = N }, or a list of such",
        ),
        ("rate = 2.55", "3: rate: 2.55 is not allowed, but a number with at most one decimal"),
        ("rate = -1", "3: rate: -1 is not allowed"),
        ("rate = inf", "3: rate: inf is not allowed"),
        ("rate = 1e3", "3: rate: 1e3 is not allowed"),
        ("rate = true", "3: rate: true is not allowed"),
        ("rate = []", "3: rate: an empty list is not allowed"),
        ("rate = {}", "3: rate: an empty range is not allowed, but min, max or both"),
        ("rate = { least = 1 }", "3: rate.least: no such key; allowed are min, max or both"),
        ("rate = { min = 4, max = 1 }", "3: rate: min is greater than max"),
        (
            "rate = { min = \"4\" }",
            "3: rate.min: \"4\" is not allowed, but a number with at most one decimal",
        ),
        ("width = 4.0", &format!("3: width: 4.0 {NUMBER}")),
        ("width = [4, \"4\"]", &format!("3: width: \"4\" {NUMBER}")),
        ("width = [\n4,\n\"4\"]", &format!("5: width: \"4\" {NUMBER}")),
        ("count = 99999999999999999999", "3: count: 99999999999999999999 is not allowed"),
        ("count = 1979-05-27", "3: count: this datetime is not allowed"),
        (
            "gid_index = \"any\"",
            "3: gid_index: \"any\" is not allowed, but a whole number, \"none\", { min = N, max = N }",
        ),
        (
            "state = \"activ\"",
            "3: state: \"activ\" is not allowed, but one of nop, down, init, armed, active, active_defer, or a list of such",
        ),
        ("state = \"unknown(x)\"", "3: state: \"unknown(x)\" is not allowed"),
        (
            "link_layer = 2",
            "3: link_layer: 2 is not allowed, but one of unspecified, infiniband, ethernet",
        ),
        (
            &format!("firmware = '{}'", "x".repeat(4097)),
            "3: firmware: a text of more than 4096 characters is not allowed, but a text",
        ),
        ("firmware = \"\"", "3: firmware: an empty text is not allowed, but a text"),
        ("firmware = { min = 1 }", "3: firmware: a table is not allowed"),
        (
            "driver = \"mlx6\"",
            "3: driver: \"mlx6\" is not allowed, but the name of a driver, or a list of such",
        ),
        (
            "roce_v2_ipv4 = \"fd00::/64\"",
            "3: roce_v2_ipv4: \"fd00::/64\" is not allowed, but a network as \"10.0.0.0/16\"",
        ),
        (
            "roce_v2_ipv6 = \"10.0.0.0/16\"",
            "3: roce_v2_ipv6: \"10.0.0.0/16\" is not allowed, but a network as \"2001:db8::/64\"",
        ),
        ("roce_v2_ipv4 = \"10.0.0.0/33\"", "3: roce_v2_ipv4: \"10.0.0.0/33\" is not allowed"),
        ("roce_v2_ipv4 = \"10.0.0.1\"", "3: roce_v2_ipv4: \"10.0.0.1\" is not allowed"),
        ("pkeys = 0x10000", "3: pkeys: this integer is not allowed, but a P_Key as 0xffff"),
        ("pkeys = { min = 1 }", "3: pkeys: a table is not allowed"),
        ("", "2: an empty group; allowed are driver, board, name, count"),
        ("rate = ", "3: this is no TOML: "),
        ("rate = 1\nrate = 2", "4: this is no TOML: "),
    ] {
        let text = refused(line);
        assert!(text.starts_with(said), "{line}: {text}");
    }
    for (text, said) in [
        ("", "1: nothing is expected; allowed are only_these_devices, [[devices]]"),
        ("# nothing\n", "1: nothing is expected"),
        ("only_these_devices = false", "1: nothing is expected"),
        ("devices = []", "1: devices: an empty list is not allowed, but groups of devices"),
        ("\nonly_these_devices = 1", "2: only_these_devices: 1 is not allowed, but true or false"),
        ("device = 1", "1: device: no such key; allowed are only_these_devices, [[devices]]"),
        ("[devices]\nrate = 1", "1: devices: a table is not allowed, but groups of devices"),
        ("devices = [1]", "1: devices: 1 is not allowed"),
        ("[[devices]]\nrate = 1\n[[devices]]\nx = 1", "4: x: no such key"),
    ] {
        let fault = read(text).unwrap_err().to_string();
        assert!(fault.starts_with(said), "{text:?}: {fault}");
    }
}

#[test]
fn that_there_is_no_device_may_be_expected() {
    let pattern = read("only_these_devices = true").unwrap();
    assert!(pattern.only_these_devices && pattern.devices.is_empty());
}

#[test]
fn what_operators_may_write() {
    let field = |line: &str, field: Field| {
        let pattern = read(&format!("[[devices]]\n{line}")).unwrap();
        assert!(!pattern.only_these_devices);
        pattern.devices[0].fields[&field].clone()
    };
    let numbers = |all: &[u64]| Allowed::OneOf(all.iter().copied().map(Value::Number).collect());
    assert_eq!(field("rate = 2.5", Field::Rate), numbers(&[25]));
    assert_eq!(field("rate = [100, 2.50]", Field::Rate), numbers(&[1000, 25]));
    let within = Allowed::Within { min: Some(1000), max: None };
    assert_eq!(field("rate = { min = 100 }", Field::Rate), within);
    assert_eq!(field("rate.min = 100.0", Field::Rate), within);
    assert_eq!(field("pkeys = [0xffff, 0x8_001, 1]", Field::PKeys), numbers(&[0xffff, 0x8001, 1]));
    assert_eq!(field("mtu = 4_096", Field::Mtu), numbers(&[4096]));
    let none = Value::word(Value::NO_INDEX);
    assert_eq!(
        field("nccl_index = [\"none\", 3]", Field::NcclIndex),
        Allowed::OneOf(vec![none, Value::Number(3)])
    );
    let network = Network { address: "10.1.0.0".parse().unwrap(), bits: 16 };
    let networks = Allowed::one(Value::Network(network));
    assert_eq!(field("roce_v2_ipv4 = '10.1.2.3/16'", Field::RoceV2Ipv4), networks);
    let state = Allowed::one(Value::word("unknown(9)"));
    assert_eq!(field("state = \"unknown(9)\"", Field::State), state);
    let group = &read("[[devices]]\ndriver = ['mlx5', 'unknown(77)']\nname = 'a'\ncount.max = 1")
        .unwrap()
        .devices[0];
    assert_eq!((group.drivers.len(), group.names.len()), (2, 1));
    assert_eq!(group.count, Some(Allowed::Within { min: None, max: Some(1) }));
    assert_eq!(read("only_these_devices = true").unwrap().devices, []);
}

/// Whatever a device is called, a file says it, and nothing else.
#[test]
fn odd_names_are_quoted() {
    let odd = "a\"]\n[[devices]]\n\u{7f}\u{1b}\\ # é \u{202e}";
    let mut pattern = HostPattern::default();
    let mut group = DevicePattern::default();
    group.names = vec![odd.to_owned()];
    pattern.devices = vec![group];
    let text = written(pattern.clone());
    assert!(!text.contains(['\u{7f}', '\u{1b}', '\u{202e}']), "{text}");
    assert_eq!(read(&text), Ok(pattern));
    let text = write(
        &Gathering::default().end(),
        &hosts(&["a\nrate = 1", "b", "c", "d"]),
        &["e\nmtu = 1".into()],
    );
    let first = text.lines().next().unwrap();
    assert!(first.ends_with("from 4 hosts (a\\nrate = 1, b, c, …)."), "{first}");
}

fn word(field: Option<Field>) -> BoxedStrategy<String> {
    match field.and_then(Field::words) {
        Some(words) => prop::sample::select(words).prop_map(str::to_owned).boxed(),
        None => "\\PC{1,6}|[\"\\\\'#\n\t]{1,3}".boxed(),
    }
}

fn any_value(form: Form, field: Option<Field>) -> BoxedStrategy<Value> {
    match form {
        Form::Word => word(field).prop_map(Value::Word).boxed(),
        Form::Networks => (any::<u128>(), 0u8..=128)
            .prop_map(move |(number, bits)| {
                let v6 = std::net::Ipv6Addr::from_bits(number);
                let v4 = std::net::Ipv4Addr::from_bits((number & 0xffff_ffff) as u32);
                let network = if field == Some(Field::RoceV2Ipv4) {
                    ipnet::IpNet::new(v4.into(), bits % 33)
                } else {
                    ipnet::IpNet::new(v6.into(), bits)
                };
                let network = network.unwrap().trunc();
                Value::Network(Network { address: network.addr(), bits: network.prefix_len() })
            })
            .boxed(),
        Form::PKeys => any::<u16>().prop_map(|own| Value::Number(own.into())).boxed(),
        Form::Index => {
            prop_oneof![Just(Value::word(Value::NO_INDEX)), (0u64..256).prop_map(Value::Number)]
                .boxed()
        }
        _ => (0u64..1 << 40).prop_map(Value::Number).boxed(),
    }
}

fn any_allowed(form: Form, field: Option<Field>) -> BoxedStrategy<Allowed> {
    let list = proptest::collection::vec(any_value(form, field), 1..4).prop_map(Allowed::OneOf);
    let has_range = matches!(form, Form::Number | Form::Tenths | Form::Index);
    if !has_range {
        return list.boxed();
    }
    let range = (0u64..1000, proptest::option::of(0u64..1000), any::<bool>()).prop_map(
        |(min, more, has_min)| Allowed::Within {
            min: (has_min || more.is_none()).then_some(min),
            max: more.map(|more| min + more),
        },
    );
    prop_oneof![list, range].boxed()
}

prop_compose! {
    fn any_group()(
        drivers in proptest::collection::vec(prop::sample::select(vec!["mlx5", "rxe", "unknown(77)"]), 0..3),
        boards in proptest::collection::vec(word(None), 0..3),
        names in proptest::collection::vec(word(None), 0..3),
        count in any_allowed(Form::Number, None),
        fields in Field::ALL.into_iter().map(|field| {
            proptest::option::of(any_allowed(field.form(), Some(field)).prop_map(move |own| (field, own)))
        }).collect::<Vec<_>>(),
    ) -> DevicePattern {
        let mut own = DevicePattern::default();
        own.drivers = drivers.into_iter().map(str::to_owned).collect();
        (own.boards, own.names, own.count) = (boards, names, Some(count));
        own.fields = fields.into_iter().flatten().collect();
        own
    }
}

proptest! {
    #[test]
    fn what_was_written_is_read(
        devices in proptest::collection::vec(any_group(), 0..3),
        only in any::<bool>(),
    ) {
        let mut pattern = HostPattern::default();
        // Without either nothing is expected.
        let only = only || devices.is_empty();
        (pattern.devices, pattern.only_these_devices) = (devices, only);
        let text = written(pattern.clone());
        prop_assert_eq!(read(&text), Ok(pattern), "{}", text);
    }

    /// Whatever is changed in a file: it is read, or refused with a line that it has.
    #[test]
    fn any_file_is_read_or_refused(
        devices in proptest::collection::vec(any_group(), 1..3),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut pattern = HostPattern::default();
        pattern.devices = devices;
        let mut bytes = written(pattern).into_bytes();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        let text = String::from_utf8_lossy(&bytes);
        if let Err(fault) = read(&text) {
            let line: usize = fault.to_string().split(':').next().unwrap().parse().unwrap();
            prop_assert!(line <= 1 + text.matches('\n').count(), "{}", fault);
        }
    }
}
