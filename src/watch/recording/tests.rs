use std::io::{self, BufReader, Read};
use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

use super::super::diff::tests::host;
use super::super::{Change, Origin, What, differences};
use super::*;
use crate::context::{Event, EventType};
use crate::device::{Device, FolderId};
use crate::gid::{Gid, GidEntry, GidRecord};
use crate::inventory::{
    DeviceRecord, GidRow, Inventory, LONGEST_SNAPSHOT, LockedMemory, PortRecord, Problem, Snapshots,
};
use crate::netdev::Interface;
use crate::pkey::PKey;
use crate::port::PortAttributes;

/// A host as it is read for a recording: with everything in it.
fn whole(mut host: Inventory) -> Inventory {
    for own in &mut host.devices {
        own.device.port_count = u32::try_from(own.ports.len()).unwrap();
        for port in &mut own.ports {
            port.attributes
                .get_or_insert_with(|| Ok((PortAttributes::default(), crate::gid::Source::Ioctl)));
        }
        let ports = own.device.ports();
        if let Ok(rows) = own.gids.get_or_insert_with(|| Ok(Vec::new())) {
            rows.retain(|row| ports.contains(&row.record.entry.port()));
        }
    }
    host
}

fn found(what: Vec<What>) -> Vec<Change> {
    let change = |what| Change {
        monotonic: Duration::from_secs(7),
        time: SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_366_861),
        origins: vec![Origin::Route, Origin::Reread],
        what,
    };
    what.into_iter().map(change).collect()
}

/// The recording of a host that was so, one after the other.
fn record(states: &[Inventory]) -> String {
    let mut lines = Lines::new();
    let mut text = lines.begin(&states[0], false).unwrap() + "\n";
    for pair in states.windows(2) {
        let changes = differences(&pair[0], &pair[1]).into_iter().map(What::Difference).collect();
        match lines.changes(&found(changes), &pair[1]).unwrap() {
            Some(line) => text += &(line + "\n"),
            None => text += &(lines.unchanged().unwrap() + "\n"),
        }
    }
    text
}

/// What is known after each line, or what is wrong with it.
fn replay(text: &str) -> Vec<Result<Inventory, String>> {
    let mut recording = Recording::new(text.as_bytes());
    let mut states = Vec::new();
    while let Some(read) = recording.next() {
        let applied = match read {
            Ok(Entry::Moment(mut moment)) => recording.apply(&mut moment),
            Ok(Entry::Snapshot(_)) => {
                states.push(Err("a snapshot".to_owned()));
                continue;
            }
            Err(error) => Err(error),
        };
        states.push(match (applied, recording.inventory()) {
            (Err(error), _) => Err(error.to_string()),
            (Ok(()), Some(own)) => Ok(own.clone()),
            (Ok(()), None) => Err("nothing is known".to_owned()),
        });
    }
    states
}

fn lines_of(states: &[Inventory]) -> Vec<String> {
    record(states).lines().map(str::to_owned).collect()
}

fn with_kernel(kernel: &str) -> Inventory {
    Inventory { kernel: Some(kernel.to_owned()), ..Inventory::default() }
}

/// What a line changes is found in the part that it may change.
fn parts_have_the_differences(text: &str) -> Result<(), TestCaseError> {
    let mut recording = Recording::new(text.as_bytes());
    while let Some(Ok(Entry::Moment(mut moment))) = recording.next() {
        let before = recording.inventory().cloned();
        let part = moment.part();
        recording.apply(&mut moment).unwrap();
        let after = recording.inventory().unwrap();
        let Some(before) = &before else { continue };
        let [own_before, own_after] = [before, after].map(|own| part.of(own));
        let (all, own) = (moment.changes(before, after), moment.changes(&own_before, &own_after));
        prop_assert_eq!(own, all, "{:?}", part);
        prop_assert_eq!(own_before == own_after, before == after, "{:?}", part);
    }
    Ok(())
}

/// What goes and comes in a large host moves others, or takes them along. That is done so often, and not for ever.
#[test]
fn changes_of_large_hosts_are_bounded() {
    let device = |number: u32| {
        let mut own = DeviceRecord::new(Device::named(format!("x{number}")));
        (own.device.index, own.gids) = (Some(number), Some(Ok(Vec::new())));
        own
    };
    let host = Inventory { devices: (0..2000).map(device).collect(), ..Inventory::default() };
    let host = whole(host);
    let own = serde_json::to_string(&host.devices[0]).unwrap();
    let count = applied(&host, 4000, |number| match number % 2 {
        1 => r#""device":"x0","is_gone":true"#.to_owned(),
        _ => format!(r#""whole":{own}"#),
    });
    assert_eq!(count(1 << 26), 4001);
    assert!((1000..4000).contains(&count(0)), "{}", count(0));

    // A device takes its rows along when it gets another name.
    let mut own = device(0);
    let row = |index| GidRow::from(GidRecord::from(GidEntry::new(1, index, Gid::default())));
    (own.ports, own.gids) = (vec![PortRecord::new(1)], Some(Ok((0..2000).map(row).collect())));
    let host = whole(Inventory { devices: vec![own], ..Inventory::default() });
    let count = applied(&host, 4000, |number| {
        let (before, after) = if number % 2 == 1 { ("x0", "y0") } else { ("y0", "x0") };
        format!(r#""index":0,"renamed":["{before}","{after}"]"#)
    });
    assert_eq!(count(1 << 26), 4001);
    assert!((100..4000).contains(&count(0)), "{}", count(0));

    // Where an interface gets another name, all of the host is compared.
    let own = Interface::new(core::num::NonZeroU32::MIN, "d0");
    let mut port = PortRecord::new(1);
    port.pkeys = Some(Ok((0..1000).map(|index| (index, PKey(1))).collect()));
    let mut device = device(0);
    device.ports = vec![port];
    let host = Inventory {
        devices: vec![device],
        interfaces: Some(vec![own]),
        modules: vec!["m".repeat(4096); 16],
        ..Inventory::default()
    };
    let host = whole(host);
    for (name, wanted) in [(r#""ifindex":1"#, 100..4000), (r#""index":0"#, 50..150)] {
        let count = applied(&host, 4000, |number| {
            let (one, other) = if name.contains("if") { ("d0", "e0") } else { ("x0", "y0") };
            let (before, after) = if number % 2 == 1 { (one, other) } else { (other, one) };
            format!(r#"{name},"renamed":["{before}","{after}"]"#)
        });
        assert_eq!(count(1 << 26), 4001, "{name}");
        assert!(wanted.contains(&count(0)), "{name}: {}", count(0));
    }

    // An interface moves those that come after it in the list.
    let host = Inventory { interfaces: Some(Vec::new()), ..Inventory::default() };
    let count = applied(&host, 4000, |number| {
        let own = r#""name":"d","is_up":true,"is_lower_up":true,"mtu":1,"addresses":[]"#;
        format!(r#""interface":{{"index":{},{own}}}"#, 4001 - number)
    });
    assert_eq!(count(1 << 26), 4001);
    assert!((1000..4000).contains(&count(0)), "{}", count(0));
}

/// How many lines are applied with so much room: that with which this host begins, and so many with one change each.
fn applied(host: &Inventory, lines: u32, change: impl Fn(u32) -> String) -> impl Fn(u64) -> u32 {
    let mut text = record(std::slice::from_ref(host));
    let head = r#""time":"2026-11-22T12:00:00Z","monotonic_ns":1"#;
    text.extend((1..=lines).map(|number| {
        let change = change(number);
        format!("{{\"number\":{number},{head},\"changes\":[{{{change}}}]}}\n")
    }));
    move |room| {
        let mut recording = Recording::new(text.as_bytes()).with_room(room);
        let mut count = 0;
        while let Some(Ok(Entry::Moment(mut moment))) = recording.next() {
            match recording.apply(&mut moment) {
                Ok(()) => count += 1,
                Err(error) => {
                    assert!(
                        error.to_string().contains("more changes of so large a host"),
                        "{error}"
                    );
                    break;
                }
            }
        }
        count
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: Some(Box::new(FileFailurePersistence::SourceParallel("tests/regressions"))),
        ..ProptestConfig::with_cases(512)
    })]

    #[test]
    fn what_was_recorded_is_read(states in proptest::collection::vec(host().prop_map(whole), 1..4)) {
        let text = record(&states);
        prop_assert_eq!(replay(&text), states.iter().cloned().map(Ok).collect::<Vec<_>>(), "{}", text);
        // The differences are those that were found.
        let mut recording = Recording::new(text.as_bytes());
        for (place, after) in states.iter().enumerate() {
            let Some(Ok(Entry::Moment(mut moment))) = recording.next() else { panic!("{text}") };
            let before = recording.inventory().cloned();
            prop_assert_eq!(recording.is_gap(&moment), place == 0);
            recording.apply(&mut moment).unwrap();
            if let Some(before) = before {
                let changes = moment.changes(&before, recording.inventory().unwrap());
                let own = differences(&before, after).into_iter().map(What::Difference).collect();
                prop_assert_eq!(changes, found(own));
            }
        }
    }

    /// Of a host with more devices than change, or without any.
    #[test]
    fn what_a_line_may_change_has_the_differences(
        before in host().prop_map(whole),
        other in host().prop_map(whole),
        (devices, of_host, others) in (any::<bool>(), any::<bool>(), 0u32..9),
    ) {
        let mut after = before.clone();
        for own in &mut after.devices {
            let Some(other) = other.device(&own.device.name) else { continue };
            if other.ports.len() == own.ports.len() {
                (own.ports, own.gids) = (other.ports.clone(), other.gids.clone());
            }
        }
        // Where they are not known, names are those of rows, of which each has its own here.
        let mut before = before;
        (before.interfaces, after.interfaces) =
            (Some(before.interfaces.unwrap_or_default()), Some(other.interfaces.unwrap_or_default()));
        if devices {
            after.devices.clone_from(&other.devices);
        }
        if of_host {
            after.problems.clone_from(&other.problems);
            after.unlisted.clone_from(&other.unlisted);
        }
        let mut states = [before, after];
        for state in &mut states {
            state.devices.extend((0..others).map(|number| {
                let mut own = DeviceRecord::new(Device::named(format!("y{number}")));
                (own.device.index, own.gids) = (Some(100 + number), Some(Ok(Vec::new())));
                own
            }));
        }
        parts_have_the_differences(&record(&states))?;
    }

    /// Wherever it is torn, what is whole is read, and nothing else.
    #[test]
    fn a_torn_recording(
        states in proptest::collection::vec(host().prop_map(whole), 1..4),
        end in any::<prop::sample::Index>(),
    ) {
        let text = record(&states);
        let first = text.find('\n').unwrap() + 1;
        let end = first + end.index(text.len() - first + 1);
        let read = replay(&text[..end]);
        let count = text[..end].matches('\n').count();
        prop_assert_eq!(read, states[..count].iter().cloned().map(Ok).collect::<Vec<_>>());
    }

    /// Whatever is changed in it: it is read or refused.
    #[test]
    fn a_recording_from_anyone(
        states in proptest::collection::vec(host().prop_map(whole), 1..4),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = record(&states).into_bytes();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        for own in replay(&String::from_utf8_lossy(&bytes)).into_iter().flatten() {
            let text = serde_json::to_string(&own).unwrap();
            let again: Inventory = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(own, again);
        }
    }
}

#[test]
fn the_first_line_is_a_snapshot() {
    let locked_memory = Some(LockedMemory { limit: Some(1), is_exempt: false });
    let umad_access = Some(Ok(()));
    let own = Inventory { locked_memory, umad_access, ..with_kernel("7.2") };
    let text = Lines::new().begin(&own, false).unwrap();
    assert!(text.starts_with(r#"{"schema_version":1,"recording":{"number":0,"time":""#), "{text}");
    let read = Snapshots::new(text.as_bytes()).next().unwrap().unwrap();
    assert_eq!(read, with_kernel("7.2"), "without the recorder's own limit and rights");
    // Also as another program writes it.
    let again: serde_json::Value = serde_json::from_str(&text).unwrap();
    let again = serde_json::to_string(&again).unwrap().replace("\":", "\": ");
    assert!(!again.starts_with(r#"{"schema_version":1"#), "{again}");
    let escaped = again.replacen("recording", r"\u0072ecording", 1);
    let both = escaped.replacen("list_failure", r"list_f\u0061ilure", 1);
    assert_ne!(escaped, both);
    for same in [&again, &escaped, &both] {
        let read = Recording::new(same.as_bytes()).next().unwrap();
        assert!(matches!(&read, Ok(Entry::Moment(own)) if !own.is_unsaid), "{read:?}");
    }
    for (of, odd) in [("\"number\": 0", "\"other\": 0"), ("\"time\": \"", "\"time\": \"x")] {
        assert!(again.contains(of), "{again}");
        let read = Recording::new(again.replacen(of, odd, 1).as_bytes()).next().unwrap();
        assert!(read.is_err(), "{read:?}");
    }
    let named = Inventory { host: Some("recording".to_owned()), ..with_kernel("7.2") };
    let text = serde_json::to_string(&named).unwrap();
    let read = Recording::new(text.as_bytes()).next().unwrap();
    assert!(matches!(read, Ok(Entry::Snapshot(_))), "{read:?}");
}

#[test]
fn what_no_inventory_shows_is_kept() {
    let event = Event { event_type: EventType::PORT_ERR, element: 1 };
    let what = vec![What::Lost(Origin::Route), What::Event { device: "rxe0".to_owned(), event }];
    let mut lines = Lines::new();
    let own = with_kernel("7.2");
    let begun = lines.begin(&own, false).unwrap();
    let line = lines.changes(&found(what.clone()), &own).unwrap().unwrap();
    let text = format!("{begun}\n{line}\n");
    let mut recording = Recording::new(text.as_bytes());
    let mut changes = Vec::new();
    while let Some(read) = recording.next() {
        let Entry::Moment(mut moment) = read.unwrap() else { panic!("{text}") };
        recording.apply(&mut moment).unwrap();
        changes = moment.changes(&own, &own);
    }
    assert_eq!(changes, found(what));
    assert_eq!(lines.changes(&[], &own).unwrap(), None);
}

/// What changed in each line, the first of which has all.
fn names_of_changes(text: &str) -> Vec<&'static str> {
    let mut recording = Recording::new(text.as_bytes());
    let mut names = Vec::new();
    while let Some(read) = recording.next() {
        let Entry::Moment(mut moment) = read.unwrap() else { panic!("{text}") };
        let before = recording.inventory().cloned().unwrap_or_default();
        recording.apply(&mut moment).unwrap();
        for change in moment.changes(&before, recording.inventory().unwrap()) {
            let What::Difference(own) = change.what else { panic!("{change:?}") };
            names.push(own.name());
        }
    }
    names
}

/// Sysfs knows a device by its folder, which is in no document.
#[test]
fn a_device_that_is_replaced() {
    let host = |inode| {
        let mut own = DeviceRecord::new(Device::named("rxe0"));
        own.device.identity.device = Some(FolderId { path: "/sys/x".into(), inode });
        whole(Inventory { devices: vec![own], ..Inventory::default() })
    };
    let text = record(&[host(1), host(2)]);
    let names = names_of_changes(&text);
    assert_eq!(names, ["device_came", "device_replaced"], "{text}");
}

/// Older versions did not write whether devices could be listed. They could, once there are some.
#[test]
fn a_recording_of_an_older_version_has_a_list_once_it_has_a_device() {
    let problem = || Problem { text: "host: no interfaces".to_owned(), errno: 24 };
    let host = |names: &[&str]| Inventory {
        devices: names.iter().map(|own| DeviceRecord::new(Device::named(*own))).collect(),
        problems: vec![problem()],
        list_failure: Some(problem()),
        ..Inventory::default()
    };
    let states = [&[][..], &["a"], &[]].map(|names| whole(host(names)));
    let text = record(&states);
    let failures = |text: &str| {
        let known = replay(text).into_iter();
        known.map(|own| own.unwrap().list_failure.is_some()).collect::<Vec<_>>()
    };
    assert_eq!(failures(&text), [true; 3]);
    let own = serde_json::to_string(&problem()).unwrap();
    let older = text.replace(&format!(r#""list_failure":{own},"#), "");
    assert!(!older.contains("list_failure"), "{older}");
    assert_eq!(failures(&older), [true, false, false]);
}

/// A host that was started again gives its devices other indices.
#[test]
fn where_a_recording_begins_anew_an_index_is_no_identity() {
    let host = |devices: &[(&str, u32, u64)]| {
        let device = |(name, index, guid): &(&str, u32, u64)| {
            let mut own = Device::named(*name);
            (own.index, own.node_guid) = (Some(*index), (*guid).into());
            DeviceRecord::new(own)
        };
        let devices = devices.iter().map(device).collect();
        whole(Inventory { devices, ..Inventory::default() })
    };
    let text = record(&[host(&[("b", 0, 2)])]) + &record(&[host(&[("a", 0, 1), ("b", 1, 2)])]);
    let names = names_of_changes(&text);
    assert_eq!(names, ["device_came", "device_came", "device_changed"], "{text}");
}

#[test]
fn where_lines_are_missing_nothing_is_known() {
    let states = ["a", "b", "c", "d"].map(with_kernel);
    let all = lines_of(&states);
    let text = [&*all[0], &*all[1], &*all[3], &*all[0], &*all[1]].join("\n") + "\n";
    let known: Vec<_> = replay(&text)
        .into_iter()
        .map(|own| own.map(|own| own.kernel.unwrap()).map_err(|error| error.clone()))
        .collect();
    let missing = Err("line 3: lines are missing before this one".to_owned());
    assert_eq!(known, [Ok("a".into()), Ok("b".into()), missing, Ok("a".into()), Ok("b".into())]);
    // The first lines of a recording are missing.
    let read = replay(&([&*all[1], &*all[2], &*all[0], ""].join("\n")));
    let error = read[0].as_ref().unwrap_err();
    assert_eq!(error, "lines are missing before the first one");
    assert_eq!(read.last().unwrap().as_ref().unwrap().kernel.as_deref(), Some("a"), "{read:?}");
    // A line may be there twice, too.
    let read = replay(&([&*all[0], &*all[1], &*all[1], ""].join("\n")));
    let error = read[2].as_ref().unwrap_err();
    assert_eq!(error, "line 3: its number, 1, does not come after 1, that of the line before");
    // A line that is broken is named, and so is what comes after it until all is known again.
    let text = [&*all[0], "{\"number\":1,", &*all[2], &*all[0], ""].join("\n");
    let read = replay(&text);
    assert!(read[1].as_ref().is_err_and(|error| error.contains("no JSON")), "{read:?}");
    assert_eq!(read.last().unwrap().as_ref().unwrap().kernel.as_deref(), Some("a"), "{read:?}");
}

#[test]
fn a_file_that_goes_on() {
    let mut lines = Lines::new();
    let first = lines.begin(&with_kernel("a"), false).unwrap() + "\n";
    let second = lines.begin(&with_kernel("a"), true).unwrap() + "\n";
    let is_gap = |texts: &[&str]| -> Vec<bool> {
        let mut recording = Recording::new(texts[0].as_bytes());
        let mut gaps = Vec::new();
        for text in texts {
            recording.go_on(text.as_bytes());
            while let Some(read) = recording.next() {
                let Entry::Moment(mut moment) = read.unwrap() else { panic!("{text}") };
                gaps.push(recording.is_gap(&moment));
                recording.apply(&mut moment).unwrap();
            }
        }
        gaps
    };
    assert_eq!(is_gap(&[&first, &second]), [true, false]);
    assert_eq!(is_gap(&[&second]), [true], "by itself it begins");
    assert_eq!(is_gap(&[&first, &first]), [true, true]);
    assert_eq!(is_gap(&[&first, ""]), [true], "it was begun, and nothing was written to it yet");
}

/// A line that was cut hides no other one, wherever it was cut, nor with a last line that is not whole.
#[test]
fn a_document_of_a_recording_is_one_line() {
    let all = lines_of(&["a", "b", "c", "d"].map(with_kernel));
    for cut in 1..all[1].len() {
        for torn in ["", "{\"number\":4,\"ti"] {
            let read = replay(&[&*all[0], &all[1][..cut], &*all[2], &*all[3], torn].join("\n"));
            assert!(read[0].is_ok() && read.len() == 4, "{cut}: {read:?}");
            assert!(
                read[1].as_ref().is_err_and(|own| own.starts_with("line 2: ")),
                "{cut}: {read:?}"
            );
        }
    }
}

/// Only a line that was not written to its end is not there. What cannot be read is said, and may hide anything.
#[test]
fn what_cannot_be_read_is_no_end() {
    let all = lines_of(&["a", "b", "c"].map(with_kernel));
    let text = all.join("\n") + "\n";
    for end in [text.len(), text.len() - 1, text.len() - 9] {
        let mut recording = Recording::new(BufReader::new(text.as_bytes()[..end].chain(Broken)));
        let mut read = Vec::new();
        while let Some(own) = recording.next() {
            read.push(match own {
                Ok(Entry::Moment(mut moment)) => recording.apply(&mut moment).is_ok(),
                Ok(Entry::Snapshot(_)) => panic!("{text}"),
                Err(error) => {
                    assert_eq!(error.errno(), 5, "{error}");
                    false
                }
            });
        }
        let whole = text[..end].matches('\n').count();
        assert_eq!(read, [vec![true; whole], vec![false]].concat());
        assert!(recording.inventory().is_none());
    }
    let long = " ".repeat(LONGEST_SNAPSHOT + 1);
    for line_end in ["", "\n"] {
        let read = replay(&format!("{}\n{long}{line_end}", all[0]));
        assert_eq!(read.len(), 2, "{line_end:?}");
        assert!(read[1].as_ref().is_err_and(|error| error == "line 2: longer than 16 MiB"));
    }
}

/// A reader that fails.
struct Broken;

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::from_raw_os_error(5))
    }
}

#[test]
fn what_a_newer_version_writes_is_refused() {
    let all = lines_of(&[with_kernel("a"), with_kernel("b")]);
    let newer =
        r#"{"number":1,"time":"2026-11-22T00:00:00Z","monotonic_ns":1,"changes":[{"later":1}]}"#;
    let read = replay(&format!("{}\n{newer}\n", all[0]));
    assert!(read[1].as_ref().is_err_and(|error| error.contains("use a newer uverbs")), "{read:?}");
    for (step, wrong) in [
        (r#"{"device":"rxe7","is_gone":true}"#, "rxe7 is not known here"),
        (r#"{"index":1,"renamed":["a","b"]}"#, "a is not known here"),
        (r#"{"ifindex":1,"renamed":["a","b/c"]}"#, "\"b/c\" does not belong here"),
        (r#"{"ifindex":1,"renamed":["a","eth0?"]}"#, "\"eth0?\" does not belong here"),
        (r#"{"ifindex":1,"renamed":["a","b"]}"#, "the interface 1 is not known here"),
        (r#"{"ifindex":1}"#, "use a newer uverbs"),
        // A change says one thing.
        (
            r#"{"device":"rxe0","empty":[1,0],"event":[17,1]}"#,
            "changes.0: not one change of one thing",
        ),
        (r#"{"event":[17,1]}"#, "not one change of one thing"),
        (r#"{"device":"rxe0","empty":[1,0],"replaced":"rxe0"}"#, "not one change of one thing"),
        (r#"{"lost":"monitor","is_gone":true}"#, "not one change of one thing"),
        (r#"{"ifindex":1,"renamed":["a","b"],"is_gone":true}"#, "not one change of one thing"),
        (r#"{"device":"rxe0","ifindex":1,"is_gone":true}"#, "not one change of one thing"),
        // One interface does not make all known.
        (
            r#"{"interface":{"index":1,"name":"a","is_up":true,"is_lower_up":true,"mtu":1,"addresses":[]}}"#,
            "the interface 1 is not known here",
        ),
    ] {
        let line = newer.replace(r#"{"later":1}"#, step);
        let read = replay(&format!("{}\n{line}\n", all[0]));
        let error = read[1].as_ref().unwrap_err();
        assert!(error.contains(wrong), "{step}: {error}");
    }
}
