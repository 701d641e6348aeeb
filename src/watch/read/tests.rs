//! A watch of a sysfs tree, in which nothing can be heard.

use std::path::Path;
use std::time::Duration;

use super::*;
use crate::driver::DriverId;
use crate::inventory::{Parts, Problem};
use crate::port::PortState;
use crate::watch::difference::Difference;
use crate::watch::{Options, PortValue, Unheard, Watch};

fn write(root: &Path, file: &str, text: &str) {
    let path = root.join("class/infiniband/rxe0").join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn tree() -> tempfile::TempDir {
    let tree = tempfile::tempdir().unwrap();
    for (file, text) in [
        ("node_type", "1: CA"),
        ("node_guid", "0011:22ff:fe33:4455"),
        ("sys_image_guid", "0011:22ff:fe33:4455"),
        ("ports/1/pkeys/0", "0xffff"),
        ("ports/1/gids/0", "fe80:0000:0000:0000:0011:22ff:fe33:4455"),
        ("ports/1/gid_attrs/types/0", "RoCE v2"),
        ("ports/1/state", "4: ACTIVE"),
        ("ports/1/phys_state", "5: LinkUp"),
        ("ports/1/link_layer", "Ethernet"),
        ("ports/1/lid", "0x0"),
        ("ports/1/sm_lid", "0x0"),
        ("ports/1/sm_sl", "0"),
        ("ports/1/lid_mask_count", "0"),
        ("ports/1/cap_mask", "0x00010000"),
    ] {
        write(tree.path(), file, text);
    }
    tree
}

fn watched(tree: &Path, reread: Option<Duration>) -> Watch {
    let host = Host::rooted(tree, tree.join("dev"));
    host.watch(Options { reread, ..Options::default() }).unwrap()
}

const SOON: Option<Duration> = Some(Duration::from_millis(1));

/// A refusal is not a kernel without a monitor, and what is said of a device is what keeps it from being heard now.
#[test]
fn why_nothing_is_heard_is_said_as_it_is() {
    use rustix::io::Errno;
    let tree = tree();
    let told = |watch: &Watch, origin| {
        let own = watch.unheard().iter().find(|own| own.origin == origin).unwrap();
        own.problem.text.clone()
    };
    let mut host = Host::opening(tree.path(), || Err(Errno::AFNOSUPPORT));
    let mut watch = host.watch(Options { reread: None, ..Options::default() }).unwrap();
    let monitor = told(&watch, Origin::Monitor);
    assert!(monitor.contains("ask RDMA netlink") && monitor.contains("errno 97"), "{monitor}");
    let device = told(&watch, Origin::AsyncEvent);
    assert!(device.contains("which uverbs node the device has"), "{device}");
    for (file, text) in [("ibdev", "rxe0\n"), ("dev", "231:192\n")] {
        let path = tree.path().join("class/infiniband_verbs/uverbs0").join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    watch.reread().unwrap();
    let device = told(&watch, Origin::AsyncEvent);
    assert!(device.contains("uverbs0: no such file"), "{device}");

    host = Host::opening(tree.path(), || Ok(crate::netlink::Socket::given(Vec::new())));
    let watch = host.watch(Options { reread: None, ..Options::default() }).unwrap();
    let monitor = told(&watch, Origin::Monitor);
    assert!(!monitor.contains("no RDMA monitor"), "{monitor}");
}

/// What fails for the host is not asked about again where only some devices are read: so all are.
#[test]
fn after_a_failure_everything_is_read() {
    use rustix::io::Errno;
    let tree = tree();
    let host = Host::opening(tree.path(), || Err(Errno::PERM));
    let mut watch = host.watch(Options { reread: None, ..Options::default() }).unwrap();
    assert!(!watch.inventory().problems.is_empty());
    for wanted in [&[][..], &["rxe0".to_owned()]] {
        assert_eq!(watch.read_some(wanted), None);
    }
}

#[test]
fn what_is_not_heard_is_said_and_found_by_reading_again() {
    let tree = tree();
    let mut watch = watched(tree.path(), SOON);
    let unheard: Vec<Origin> = watch.unheard().iter().map(|own| own.origin).collect();
    assert_eq!(unheard, [Origin::AsyncEvent, Origin::Monitor, Origin::Route, Origin::Uevent]);
    let mut copy = watch.inventory().clone();
    assert_eq!(watch.wait(Some(Duration::ZERO)).unwrap(), None);

    write(tree.path(), "ports/1/state", "1: DOWN");
    write(tree.path(), "ports/1/gids/1", "0000:0000:0000:0000:0000:ffff:0a00:0001");
    write(tree.path(), "ports/1/gid_attrs/types/1", "RoCE v2");
    let mut found = Vec::new();
    while found.len() < 3 {
        let change = watch.wait(None).unwrap().unwrap();
        assert_eq!(change.origins, [Origin::Reread]);
        let What::Difference(difference) = change.what else { panic!("{change:?}") };
        difference.apply(&mut copy).unwrap();
        found.push(difference);
    }
    let (state, attributes) = (&found[0], &found[1]);
    assert!(
        matches!(
            state,
            Difference::Port {
                before: PortValue::State(PortState::ACTIVE),
                after: PortValue::State(PortState::DOWN),
                ..
            }
        ),
        "{state:?}"
    );
    // The table has one more slot.
    assert_eq!((attributes.name(), found[2].name()), ("port_attributes", "gid_came"));
    assert_eq!(&copy, watch.inventory());

    std::fs::remove_dir_all(tree.path().join("class/infiniband/rxe0")).unwrap();
    let change = watch.wait(None).unwrap().unwrap();
    let What::Difference(difference) = change.what else { panic!("{change:?}") };
    assert_eq!((difference.name(), difference.device()), ("device_went", Some("rxe0")));
}

#[test]
fn without_a_pause_nothing_is_read_again() {
    let tree = tree();
    let mut watch = watched(tree.path(), None);
    write(tree.path(), "ports/1/state", "1: DOWN");
    assert_eq!(watch.wait(Some(Duration::from_millis(20))).unwrap(), None);
    watch.reread().unwrap();
    assert!(watch.has_found());
    let change = watch.wait(Some(Duration::ZERO)).unwrap().unwrap();
    assert_eq!(change.origins, [Origin::Reread]);
    // What cannot be read is believed at the end, and what was found is that of the last reading.
    write(tree.path(), "ports/1/state", "nonsense");
    watch.reread().unwrap();
    assert!(watch.has_found() && watch.doubts == 0 && watch.pending.is_none());
    assert!(watch.inventory().devices[0].ports[0].problem().is_some());
}

/// A file that cannot be read for a moment is not a change. One that stays so is.
#[test]
fn a_fault_is_believed_when_it_stays() {
    let tree = tree();
    let mut watch = watched(tree.path(), SOON);
    write(tree.path(), "ports/1/state", "nonsense");
    let mut found = Vec::new();
    // Whether the port has P_Keys is not known either.
    while found.last() != Some(&"port_attributes") {
        let change = watch.wait(None).unwrap().unwrap();
        let What::Difference(difference) = change.what else { panic!("{change:?}") };
        found.push(difference.name());
    }
    assert!(watch.inventory().devices[0].ports[0].problem().is_some());
}

#[test]
fn only_what_is_named_is_watched() {
    let tree = tree();
    let other = tree.path().join("class/infiniband/rxe1");
    std::fs::create_dir_all(other.join("ports/1")).unwrap();
    for file in ["node_type", "node_guid", "sys_image_guid"] {
        let from = tree.path().join("class/infiniband/rxe0").join(file);
        std::fs::copy(from, other.join(file)).unwrap();
    }
    let host = Host::rooted(tree.path(), tree.path().join("dev"));
    let options = Options { devices: vec!["rxe1".to_owned()], ..Options::default() };
    let watch = host.watch(options).unwrap();
    let names: Vec<&str> =
        watch.inventory().devices.iter().map(|own| own.device.name.as_str()).collect();
    assert_eq!(names, ["rxe1"]);
    assert_eq!(watch.inventory().others, []);
    let names: Vec<&str> = watch.others().iter().map(|own| own.name.as_str()).collect();
    assert_eq!(names, ["rxe0"]);
}

/// The kernel may list addresses in another order than before.
#[test]
fn the_order_of_addresses_is_no_state() {
    use crate::netdev::Unfit;
    let with = |texts: [&str; 2]| {
        let mut own = Interface::new(core::num::NonZeroU32::MIN, "d0");
        own.addresses = texts.map(|text| (text.parse().unwrap(), 64)).into();
        own.unfit = texts.map(|text| (text.parse().unwrap(), Unfit::Duplicate)).into();
        order(&mut own);
        own
    };
    assert_eq!(with(["fd00::1", "fd00::2"]), with(["fd00::2", "fd00::1"]));
}

/// The kernel may write a table after the message that is lost.
#[test]
fn after_a_loss_tables_are_read_until_they_rest() {
    let tree = tree();
    let mut watch = watched(tree.path(), None);
    watch.lose(Origin::Route);
    let change = watch.wait(Some(Duration::ZERO)).unwrap().unwrap();
    assert_eq!(change.what, What::Lost(Origin::Route));
    while watch.pending.is_some() {
        assert_eq!(watch.wait(Some(Duration::from_millis(1))).unwrap(), None);
    }
    // The reading that was wanted is over. This comes later.
    write(tree.path(), "ports/1/state", "1: DOWN");
    let change = watch.wait(Some(Duration::from_secs(60))).unwrap().expect("it is found");
    assert_eq!(change.origins, [Origin::Route]);
    assert!(matches!(change.what, What::Difference(_)), "{change:?}");
}

/// The kernel may refuse a socket for a moment. What is heard again has no gap: all is read after it.
#[test]
#[cfg_attr(miri, ignore = "Miri has no netlink")]
fn what_failed_for_a_moment_is_tried_again() {
    use rustix::io::Errno;
    let mut watch = Host::new().watch(Options { reread: None, ..Options::default() }).unwrap();
    let known = watch.unheard.clone();
    assert!(watch.gone.is_some() && known.iter().all(|own| own.origin != Origin::Route));
    for (errno, is_over) in [(Errno::OPNOTSUPP, false), (Errno::MFILE, true)] {
        (watch.sources.route, watch.gone) = (None, None);
        let problem = Problem { text: "not heard".to_owned(), errno: errno.raw_os_error() };
        watch.unheard = known.clone();
        watch.unheard.push(Unheard { origin: Origin::Route, device: None, problem });
        watch.reread().unwrap();
        // One that the kernel does not have is not asked for again.
        assert_eq!(watch.sources.route.is_some(), is_over);
        assert_eq!((watch.unheard == known, watch.gone.is_some()), (is_over, is_over));
    }
    watch.lose(Origin::Route);
    assert_eq!(watch.gone, None);
}

/// The answers of a host with rxe0 to four readings.
fn with_soft_roce() -> crate::netlink::Socket {
    use crate::netlink::{Datagram, Message, Socket};
    use uverbs_uapi::netlink::attribute;
    let device = Message::new(0, &[])
        .number(attribute::DEV_INDEX, 0)
        .text(attribute::DEV_NAME, "rxe0")
        .number(attribute::PORT_INDEX, 1)
        .attribute(attribute::DEV_NODE_TYPE, &[1])
        .finish_for_test();
    let node = Message::new(0, &[])
        .text(attribute::CHARDEV_NAME, "uverbs0")
        .attribute(attribute::CHARDEV, &0xe7c0_u64.to_ne_bytes())
        .number(attribute::UVERBS_DRIVER_ID, DriverId::RXE.0)
        .finish_for_test();
    // The list, the node, and the list again.
    let reading = |at: u32| {
        let list = |at| vec![Datagram::reply(&device, at), Datagram::end(at)];
        [list(at), vec![Datagram::reply(&node, at + 1)], list(at + 2)]
    };
    Socket::given((0..4).flat_map(|number| reading(1 + 3 * number)).collect())
}

/// What is known of the host is the same, whichever devices are read with it.
#[test]
#[cfg_attr(miri, ignore = "Miri has no netlink")]
fn a_reading_of_some_devices_says_the_same_of_the_host() {
    let tree = tree();
    let mut watch = watched(tree.path(), None);
    watch.options.parts = Parts { interfaces: true, ..Parts::LISTED };
    watch.host = Host::opening(tree.path(), || Ok(with_soft_roce()));
    watch.inventory = watch.read_all();
    assert_eq!(watch.inventory.devices[0].device.driver, Some(DriverId::RXE));
    assert!(watch.inventory.has_roce_socket.is_some());
    for wanted in [&[][..], &["rxe0".to_owned()]] {
        assert_eq!(watch.read_some(wanted), Some(watch.inventory.clone()), "{wanted:?}");
    }
}
