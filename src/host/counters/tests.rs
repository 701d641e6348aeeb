use std::path::Path;

use rustix::io::Errno;

use super::*;
use crate::counter::Reading;
use crate::host::Netlink;
use crate::linear::{assert_linear, count};
use crate::netlink::statistics::tests::told;
use crate::netlink::{Datagram, Message, Socket};

fn write(path: impl AsRef<Path>, text: &str) {
    std::fs::create_dir_all(path.as_ref().parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A tree with one device of this driver and one port, whose files have these texts.
fn tree(driver: DriverId, files: &[(&str, &str)]) -> (tempfile::TempDir, Host, Device) {
    let tree = tempfile::tempdir().unwrap();
    let folder = tree.path().join("class/infiniband/x");
    std::fs::create_dir_all(folder.join("ports/1")).unwrap();
    for (file, text) in files {
        write(folder.join(file), text);
    }
    let host = Host::rooted(tree.path(), "/nowhere");
    let mut device = Device::named("x");
    (device.port_count, device.driver) = (1, Some(driver));
    device.identity.device = Some(host.sysfs().device("x").unwrap().id().unwrap());
    (tree, host, device)
}

/// This host's netlink answers with these batches.
fn with_netlink(host: Host, batches: Vec<Vec<Datagram<Vec<u8>>>>) -> Host {
    Host { netlink: Netlink::Open(Socket::given(batches)), ..host }
}

fn read(reader: &mut CounterReader, host: &mut Host, device: &Device) -> DeviceCounters {
    let mut found = reader.read(host, std::slice::from_ref(device), &|_, _| true);
    assert_eq!(found.problems.iter().map(ToString::to_string).collect::<Vec<_>>(), [""; 0]);
    found.devices.remove(0)
}

fn said(port: &PortCounters) -> Vec<(&str, Group, CounterSource, u64)> {
    port.counters.iter().map(|it| (it.name.as_str(), it.group, it.source, it.raw())).collect()
}

const PMA: Group = Group::Pma;
const HW: Group = Group::Hardware;
const FILE: CounterSource = CounterSource::Sysfs;
const NETLINK: CounterSource = CounterSource::Netlink;

#[test]
fn a_tree_has_all_by_files() {
    let (_tree, mut host, device) = tree(
        DriverId::RXE,
        &[
            ("ports/1/hw_counters/sent_pkts", "7\n"),
            ("ports/1/hw_counters/lifespan", "10\n"),
            ("ports/1/counters/link_downed", "255\n"),
            ("ports/1/counters/port_xmit_data", "3\n"),
            ("hw_counters/cmds_err", "1\n"),
        ],
    );
    let own = read(&mut CounterReader::new(), &mut host, &device);
    let [port] = &own.ports[..] else { panic!("{own:?}") };
    assert_eq!(
        said(port),
        [
            ("sent_pkts", HW, FILE, 7),
            ("link_downed", PMA, FILE, 255),
            ("port_xmit_data", PMA, FILE, 3),
        ]
    );
    assert_eq!(port.counters[1].reading, Reading::Saturated(255));
    assert_eq!(own.counters[0].name, "cmds_err");
    let cost = Cost { netlink_requests: 0, files: 3, firmware_commands: Some(0) };
    assert_eq!((port.cost, port.problems.len(), own.resources), (cost, 0, None));
}

/// Objects in use are nowhere else. A kernel without RDMA netlink has none to count.
#[test]
fn netlink_that_is_refused_is_a_problem() {
    let (tree, _, device) = tree(DriverId::RXE, &[("ports/1/hw_counters/sent_pkts", "7\n")]);
    let read = |open, devices: &[Device]| {
        let mut host = Host::opening(tree.path(), open);
        let found = CounterReader::new().read(&mut host, devices, &|_, _| true);
        assert!(found.devices.iter().all(|own| own.resources.is_none()));
        found.problems.iter().map(Error::errno).collect::<Vec<_>>()
    };
    let devices = [device];
    assert_eq!(read(|| Err(Errno::AFNOSUPPORT), &devices), [libc::EAFNOSUPPORT]);
    assert_eq!(read(|| Err(Errno::AFNOSUPPORT), &[]), [0; 0]);
    assert_eq!(read(|| Err(Errno::PROTONOSUPPORT), &devices), [0; 0]);
}

#[test]
fn netlink_comes_first_and_costs_what_it_says() {
    let files = [
        ("ports/1/hw_counters/out_of_buffer", "9\n"),
        ("ports/1/counters/link_downed", "2\n"),
        ("ports/1/counters/port_rcv_errors", "2\n"),
    ];
    let (_tree, host, mut device) = tree(DriverId::MLX5, &files);
    device.index = Some(7);
    let counters = told(&[("out_of_buffer", 5), ("rp_cnp_ignored", 6)]);
    let plain = Message::new(0, &[]).text(2, "x").number(74, 0).finish_for_test();
    let batches = vec![
        vec![
            Datagram::reply(&counters, 1),
            Datagram::reply(&counters, 2),
            Datagram::reply(&plain, 3),
        ],
        vec![Datagram::end(4)],
    ];
    let mut host = with_netlink(host, batches);
    let own = read(&mut CounterReader::frugal(), &mut host, &device);
    let port = &own.ports[0];
    assert_eq!(
        said(port),
        [
            ("out_of_buffer", HW, NETLINK, 5),
            ("rp_cnp_ignored", HW, NETLINK, 6),
            ("link_downed", PMA, FILE, 2),
        ]
    );
    assert_eq!(port.left_out, ["port_rcv_errors"]);
    let cost = Cost { netlink_requests: 3, files: 1, firmware_commands: Some(3) };
    assert_eq!(port.cost, cost);
}

/// Optional counters that could not be asked about are not none. A kernel older than the question refuses it.
#[test]
fn a_failed_question_about_optional_counters_is_a_problem() {
    for (errno, expected) in [(Errno::NOMEM, 1), (Errno::INVAL, 0)] {
        let (_tree, host, mut device) = tree(DriverId::RXE, &[]);
        device.index = Some(7);
        let counters = told(&[("sent_pkts", 5)]);
        let batch = vec![
            Datagram::reply(&counters, 1),
            Datagram::refusal(errno, 2),
            Datagram::refusal(Errno::INVAL, 3),
        ];
        let mut host = with_netlink(host, vec![batch, vec![Datagram::end(4)]]);
        let own = read(&mut CounterReader::new(), &mut host, &device);
        let port = &own.ports[0];
        assert_eq!((port.counters.len(), port.optional.len()), (1, 0));
        assert_eq!(port.problems.len(), expected, "{:?}", port.problems);
    }
}

/// In switchdev mode only the device has its driver's counters, and only in sysfs.
#[test]
fn a_frugal_reader_reads_few_files_of_mlx5() {
    let files = [
        ("hw_counters/out_of_buffer", "9\n"),
        ("hw_counters/rx_read_requests", "9\n"),
        ("ports/1/counters/VL15_dropped", "2\n"),
    ];
    for (driver, expected) in [(DriverId::MLX5, (1, 1, 1, 0)), (DriverId::RXE, (2, 0, 0, 1))] {
        let (_tree, mut host, device) = tree(driver, &files);
        let own = read(&mut CounterReader::frugal(), &mut host, &device);
        let port = &own.ports[0];
        let found =
            (own.counters.len(), own.left_out.len(), port.left_out.len(), port.counters.len());
        assert_eq!(found, expected, "{own:?}");
    }
}

#[test]
fn what_is_refused_is_asked_once() {
    let mut device = tree(DriverId::MLX5, &[]);
    device.2.index = Some(7);
    let (_tree, host, device) = device;
    let names = told(&[("out_of_buffer", 0)]);
    let refused = vec![
        Datagram::refusal(Errno::INVAL, 1),
        Datagram::reply(&names, 2),
        Datagram::refusal(Errno::INVAL, 3),
    ];
    let [end, last] = [4, 5].map(|number| vec![Datagram::end(number)]);
    let mut host = with_netlink(host, vec![refused.clone(), end, last]);
    let mut reader = CounterReader::new();
    let first = read(&mut reader, &mut host, &device);
    let text = first.ports[0].problems[0].to_string();
    assert!(
        text.starts_with("x: read counters of port 1: EINVAL: Invalid argument (errno 22)"),
        "{text}"
    );
    // Netlink has nothing to answer with any more but its objects, and it is not asked.
    let again = read(&mut reader, &mut host, &device);
    assert_eq!(again.ports[0].problems[0].to_string(), text);
    assert_eq!(again.ports[0].cost.netlink_requests, 0);
    // Another device of that name is another.
    let mut other = device.clone();
    other.index = Some(8);
    let mut host = with_netlink(host, vec![refused.clone(), vec![Datagram::end(4)]]);
    assert_eq!(read(&mut reader, &mut host, &other).ports[0].cost.netlink_requests, 3);
    reader.forget();
    let mut host = with_netlink(host, vec![refused, vec![Datagram::end(4)]]);
    assert_eq!(read(&mut reader, &mut host, &other).ports[0].cost.netlink_requests, 3);
}

/// The index may be another device's by now: its counters and its objects are not this one's.
#[test]
fn counters_of_another_device_are_not_taken() {
    let files = [("ports/1/hw_counters/out_of_buffer", "9\n")];
    let (_tree, host, mut device) = tree(DriverId::MLX5, &files);
    (device.index, device.name) = (Some(7), "y".to_owned());
    let counters = told(&[("out_of_buffer", 5)]);
    let replies = (1..=3).map(|number| Datagram::reply(&counters, number)).collect();
    let list = Message::new(0, &[]).attribute(0x800f, &[]).finish_for_test();
    let objects = [counters, list].concat();
    let resources = vec![Datagram::reply(&objects, 4), Datagram::end(4)];
    let mut host = with_netlink(host, vec![replies, resources]);
    let own = read(&mut CounterReader::new(), &mut host, &device);
    assert_eq!((own.ports[0].counters.len(), &own.resources), (0, &None), "{own:?}");
    let text = own.ports[0].problems[0].to_string();
    assert!(text.contains("replaced by another device, or renamed"), "{text}");
}

/// Renamed after its counters were read, or another one has its name, and the kernel passed over its own.
#[test]
fn a_device_that_is_listed_under_another_name_has_been_replaced() {
    for (index, name) in [(7, "y"), (8, "x")] {
        let (_tree, host, mut device) = tree(DriverId::SIW, &[]);
        device.index = Some(7);
        let refused = (1..=3).map(|number| Datagram::refusal(Errno::INVAL, number)).collect();
        let listed = Message::new(0, &[]).number(1, index).text(2, name).attribute(0x800f, &[]);
        let listed = vec![Datagram::reply(&listed.finish_for_test(), 4), Datagram::end(4)];
        let mut host = with_netlink(host, vec![refused, listed]);
        let own = read(&mut CounterReader::new(), &mut host, &device);
        let [problem] = &own.problems[..] else { panic!("{own:?}") };
        assert_eq!(*problem.cause(), Cause::Replaced, "{index} {name}: {problem}");
    }
}

/// A driver without counters refuses as one that fails does; the list of names shows the difference.
#[test]
fn a_driver_without_counters_is_no_problem() {
    let (_tree, host, mut device) = tree(DriverId::SIW, &[]);
    device.index = Some(7);
    let refused = (1..=3).map(|number| Datagram::refusal(Errno::INVAL, number)).collect();
    let mut host = with_netlink(host, vec![refused, vec![Datagram::end(4)]]);
    let own = read(&mut CounterReader::new(), &mut host, &device);
    assert!(own.ports[0].problems.is_empty() && own.ports[0].counters.is_empty(), "{own:?}");
}

/// What was removed since it was listed has no counters that are 0 or hidden: it is an error. The kernel refuses its
/// counters as those of a driver that has none.
#[test]
fn a_device_that_is_gone_is_a_problem() {
    let asked = |answer: Datagram<Vec<u8>>| {
        let (tree, host, mut device) = tree(DriverId::RXE, &[]);
        device.index = Some(7);
        std::fs::remove_dir_all(tree.path().join("class/infiniband/x")).unwrap();
        let refused = (1..=3).map(|number| Datagram::refusal(Errno::INVAL, number)).collect();
        let batches = vec![refused, vec![Datagram::end(4)], vec![answer]];
        let own = read(&mut CounterReader::new(), &mut with_netlink(host, batches), &device);
        own.problems.iter().map(ToString::to_string).collect::<Vec<String>>()
    };
    let problems = asked(Datagram::refusal(Errno::INVAL, 5));
    let [text] = &problems[..] else { panic!("{problems:?}") };
    assert!(text.starts_with("x: ask RDMA netlink: the device is gone"), "{text}");
    // It is there, its files are hidden, and the kernel passed over it; or another one is there.
    let named =
        |name: &str| Datagram::reply(&Message::new(0, &[]).text(2, name).finish_for_test(), 5);
    let passed_over =
        "x: count objects in use: unusable answer: the device is not in it (errno 71)";
    assert_eq!(asked(named("x")), [passed_over]);
    assert!(asked(named("y"))[0].contains("replaced by another device, or renamed"));
}

/// Its folder is still open, and its files are there no more.
#[test]
fn a_device_that_goes_while_its_files_are_read_is_a_problem() {
    let files = [("ports/1/counters/link_downed", "2\n")];
    let (tree, host, device) = tree(DriverId::RXE, &files);
    let sysfs = host.sysfs().of(&device).unwrap();
    assert_eq!(removed(&device, &sysfs).map(|error| error.errno()), None);
    std::fs::remove_dir_all(tree.path().join("class/infiniband/x")).unwrap();
    assert_eq!(removed(&device, &sysfs).map(|error| error.errno()), Some(libc::ENOENT));
}

#[cfg(not(miri))]
#[test]
fn a_file_that_fails_does_not_end_the_others() {
    // The kernel refuses to read the speed of the loopback interface (EINVAL).
    const REFUSED: &str = "/sys/class/net/lo/speed";
    assert!(std::fs::read(REFUSED).is_err_and(|error| error.raw_os_error() == Some(22)));
    let (tree, mut host, device) = tree(
        DriverId::MLX5,
        &[
            ("ports/1/counters/link_downed", "nonsense\n"),
            ("ports/1/counters/port_rcv_data", "4\n"),
            ("ports/1/counters/VL15_dropped", "0\n"),
            ("ports/1/hw_counters/np_cnp_sent", "1\n"),
        ],
    );
    let port = tree.path().join("class/infiniband/x/ports/1");
    for file in ["counters/port_rcv_errors", "counters/symbol_error", "hw_counters/broken"] {
        std::os::unix::fs::symlink(REFUSED, port.join(file)).unwrap();
    }
    let mut reader = CounterReader::new();
    for turn in ["first", "again"] {
        let own = read(&mut reader, &mut host, &device);
        let port = &own.ports[0];
        let names: Vec<&str> = port.counters.iter().map(|own| own.name.as_str()).collect();
        let is_first = turn == "first";
        // Once an attribute of the PMA is refused, none of its files is asked.
        let expected: &[&str] = if is_first {
            &["np_cnp_sent", "VL15_dropped", "port_rcv_data"]
        } else {
            &["np_cnp_sent", "port_rcv_data"]
        };
        assert_eq!(names, expected, "{turn}");
        let problems: Vec<String> = port.problems.iter().map(ToString::to_string).collect();
        let has = |file: &str| problems.iter().filter(|text| text.contains(file)).count();
        assert_eq!((has("hw_counters/broken"), has("port_rcv_errors")), (1, 1), "{problems:?}");
        assert_eq!(has("symbol_error"), 0, "{problems:?}");
        assert_eq!(has("link_downed"), usize::from(is_first), "{problems:?}");
        // They are named.
        let left_out: &[&str] = if is_first {
            &["symbol_error"]
        } else {
            &["VL15_dropped", "link_downed", "symbol_error"]
        };
        assert_eq!(port.left_out, left_out, "{turn}");
        assert_eq!(port.cost.firmware_commands, None);
    }
}

/// Reads as many counters twice, each of which is refused.
#[test]
fn refusals() {
    let Some(count) = count() else { return };
    let files: Vec<String> = (0..count).map(|number| format!("hw_counters/c{number}")).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|file| (file.as_str(), "nonsense")).collect();
    let (_tree, mut host, device) = tree(DriverId::RXE, &files);
    let mut reader = CounterReader::new();
    for _ in 0..2 {
        assert_eq!(read(&mut reader, &mut host, &device).problems.len(), files.len());
    }
}

#[test]
fn refusals_are_linear() {
    assert_linear("host::counters::tests::refusals", 300, 24);
}

#[test]
fn a_device_given_twice_has_its_objects_twice() {
    let (_tree, host, mut device) = tree(DriverId::RXE, &[]);
    device.index = Some(7);
    let counters = told(&[("sent_pkts", 5)]);
    let replies: Vec<_> = (1..=6).map(|number| Datagram::reply(&counters, number)).collect();
    let entry =
        Message::new(0, &[]).text(17, "qp").attribute(18, &3u64.to_ne_bytes()).finish_for_test();
    let entries = Message::new(0, &[]).attribute(16 | 0x8000, &entry).finish_for_test();
    let own = Message::new(0, &[]).number(1, 7).text(2, "x").finish_for_test();
    let list = Message::new(0, &[]).attribute(15 | 0x8000, &entries).finish_for_test();
    let resources = vec![Datagram::reply(&[own, list].concat(), 7), Datagram::end(7)];
    let mut host = with_netlink(host, vec![replies, resources]);
    let found = CounterReader::new().read(&mut host, &[device.clone(), device], &|_, _| true);
    let [one, other] = &found.devices[..] else { panic!("not two") };
    assert_eq!(one.resources.as_ref().map(Vec::len), Some(1));
    assert_eq!(one.resources, other.resources);
}
