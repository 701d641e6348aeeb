use super::*;
use crate::inventory::{Parts, Wanted};
use crate::netlink::Message;
use crate::umad;

const GID: &str = "fe80:0000:0000:0000:0011:22ff:fe33:4455";

/// The folder of a device with one port, its GID and GUIDs.
fn make_device(class: &Path, name: &str, gid: &str) {
    let device = class.join(name);
    let port = device.join("ports/1");
    std::fs::create_dir_all(port.join("gids")).unwrap();
    std::fs::create_dir_all(port.join("gid_attrs/types")).unwrap();
    for (file, text) in [
        (device.join("node_type"), "1: CA"),
        (device.join("node_guid"), "0011:22ff:fe33:4455"),
        (device.join("sys_image_guid"), "0011:22ff:fe33:4455"),
        (port.join("gids/0"), gid),
        (port.join("gid_attrs/types/0"), "RoCE v2"),
    ] {
        std::fs::write(file, text).unwrap();
    }
}

fn tree() -> (tempfile::TempDir, PathBuf, Host) {
    let tree = tempfile::tempdir().unwrap();
    let class = tree.path().join("class/infiniband");
    make_device(&class, "rxe0", GID);
    let node = tree.path().join("class/infiniband_verbs/uverbs0");
    std::fs::create_dir_all(&node).unwrap();
    std::fs::write(node.join("ibdev"), "rxe0\n").unwrap();
    std::fs::write(node.join("dev"), "231:192\n").unwrap();
    let host = Host::rooted(tree.path(), "/dev/infiniband");
    (tree, class, host)
}

#[test]
fn sysfs_answers_of_the_device_that_was_listed() {
    let (_tree, class, mut host) = tree();
    let device = host.device("rxe0").unwrap();
    assert!(device.node.is_some());
    let asked = |sysfs: &Sysfs| sysfs.query_gid_table("rxe0").map(|rows| rows.len());
    let sysfs = host.sysfs().of(&device).unwrap();
    assert_eq!(asked(&sysfs).unwrap(), 1);

    // Renamed, it is still the device.
    std::fs::rename(class.join("rxe0"), class.join("rxe9")).unwrap();
    assert_eq!(asked(&sysfs).unwrap(), 1);
    assert_eq!(asked(&host.sysfs().of(&device).unwrap()).unwrap(), 1);
    assert_eq!(asked(host.sysfs()).unwrap_err().errno(), 2, "by its name there is none");

    // Another has its name: what was opened before is the old one's.
    make_device(&class, "rxe0", GID);
    std::fs::write(class.join("rxe0/ports/1/gids/0"), GID.replace("4455", "6677")).unwrap();
    let gid = sysfs.query_gid_ex("rxe0", 1, 0).unwrap().unwrap().entry.gid();
    assert_eq!(gid.full(), GID);
    assert_eq!(asked(&host.sysfs().of(&device).unwrap()).unwrap(), 1);

    // And the old one is gone.
    std::fs::remove_dir_all(class.join("rxe9")).unwrap();
    assert_eq!(asked(&sysfs).unwrap_err().errno(), 2);
    assert_eq!(sysfs.query_port("rxe0", 1).unwrap_err().errno(), 2);
    assert_eq!(sysfs.query_pkeys("rxe0", 1).unwrap_err().errno(), 2);
    let error = host.sysfs().of(&device).unwrap_err();
    assert_eq!((error.cause(), error.errno()), (&Cause::Replaced, 19));
    std::fs::remove_dir_all(class.join("rxe0")).unwrap();
    assert_eq!(host.sysfs().of(&device).unwrap_err().errno(), 2);
}

#[test]
fn a_file_without_which_a_device_is_not_listed_is_named() {
    for file in ["ports", "node_type", "node_guid", "sys_image_guid"] {
        let (_tree, class, mut host) = tree();
        let path = class.join("rxe0").join(file);
        std::fs::rename(&path, class.join("../elsewhere")).unwrap();
        let listing = host.list().unwrap();
        assert!(listing.devices.is_empty());
        let [problem] = listing.problems.as_slice() else { panic!("{listing:?}") };
        let said = format!("rxe0: read {}: ENOENT", path.display());
        assert!(problem.to_string().starts_with(&said), "{problem}");
    }
}

#[test]
fn a_tree_without_netlink_may_have_it_later() {
    let mut host = Host { netlink: Netlink::Unopened(Some(Errno::MFILE)), ..Host::new() };
    assert_eq!(host.netlink_error().unwrap().errno(), 24);
    // Whether this kernel has it or not, it was asked again.
    let _ = host.netlink();
    assert!(host.is_here() && host.netlink_error().is_none_or(|error| error.errno() != 24));
}

#[test]
fn a_host_whose_last_device_went_lacks_no_module() {
    let (tree, class, _) = tree();
    let mut host = Host::rooted(tree.path(), "/nowhere/infiniband");
    let lacks_nodes =
        |host: &mut Host| host.absence().iter().any(|it| matches!(it, Absence::NoNodes { .. }));
    assert!(lacks_nodes(&mut host), "the device has a node, and there is no folder");
    std::fs::remove_dir_all(class.join("rxe0")).unwrap();
    std::fs::remove_dir_all(tree.path().join("class/infiniband_verbs/uverbs0")).unwrap();
    assert!(!lacks_nodes(&mut host), "ib_uverbs is loaded");
    std::fs::remove_dir(tree.path().join("class/infiniband_verbs")).unwrap();
    assert!(lacks_nodes(&mut host), "ib_uverbs is not loaded");
}

#[test]
fn nodes_that_cannot_be_read_are_not_nodes_that_are_not_there() {
    let (tree, _class, mut host) = tree();
    let verbs = tree.path().join("class/infiniband_verbs");
    std::fs::remove_dir_all(&verbs).unwrap();
    let listing = host.list().unwrap();
    assert!(listing.devices[0].node.is_none() && listing.problems.is_empty());
    assert!(listing.devices[0].node_is_unread, "the tree may be a part of one");
    std::fs::create_dir(tree.path().join("module")).unwrap();
    assert!(host.list().unwrap().devices[0].node_is_unread, "modules are hidden");
    std::fs::create_dir(tree.path().join("module/kernel")).unwrap();
    assert!(!host.list().unwrap().devices[0].node_is_unread, "ib_uverbs is not loaded");
    std::fs::create_dir(tree.path().join("module/ib_uverbs")).unwrap();
    assert!(host.list().unwrap().devices[0].node_is_unread, "it is loaded");
    // One that something covers, or that leads nowhere, is none of the kernel's.
    std::fs::create_dir(&verbs).unwrap();
    assert!(host.list().unwrap().devices[0].node_is_unread, "the class is covered");
    std::fs::write(verbs.join("abi_version"), "6").unwrap();
    assert!(!host.list().unwrap().devices[0].node_is_unread, "no device has a node");
    std::fs::remove_dir_all(&verbs).unwrap();
    std::os::unix::fs::symlink("nowhere", &verbs).unwrap();
    assert!(host.list().unwrap().devices[0].node_is_unread, "the class leads nowhere");
    std::fs::remove_file(&verbs).unwrap();
    std::fs::write(&verbs, "").unwrap();
    let listing = host.list().unwrap();
    assert_eq!((listing.devices.len(), listing.problems.len()), (1, 1));
    assert!(listing.devices[0].node_is_unread);
    let refused = Context::open(&listing.devices[0]).unwrap_err();
    assert_eq!(refused.cause(), &Cause::NodeUnread);
    let said = listing.problems[0].to_string();
    assert!(said.starts_with("host: ") && said.contains("class/infiniband_verbs"), "{said}");
}

/// Of a sysfs where a class is hidden nothing follows, but what netlink says.
#[test]
fn a_host_whose_sysfs_is_hidden_lacks_no_module() {
    let hidden = tempfile::tempdir().unwrap();
    let at = |netlink: Netlink| Host { sysfs: Sysfs::at(hidden.path()), netlink, ..Host::new() };
    let no_module = |host: &mut Host| host.absence().contains(&Absence::NoModule);

    // It is no sysfs.
    let mut elsewhere = at(Netlink::Absent);
    assert_eq!(elsewhere.list().unwrap_err().cause(), &Cause::NotSysfs);
    assert!(!no_module(&mut elsewhere));
    assert_eq!(elsewhere.inventory(&Wanted::new(Parts::GIDS)).problems.len(), 1);
    let make = |path: &str| std::fs::create_dir_all(hidden.path().join(path)).unwrap();
    make("class/net");
    make("module/kernel");
    assert!(elsewhere.list().unwrap().devices.is_empty() && no_module(&mut elsewhere));

    // RDMA netlink is there, so the RDMA core is.
    let refusal = crate::netlink::Datagram::refusal(Errno::PERM, 1);
    let mut refused = at(Netlink::Open(Socket::given(vec![vec![refusal]])));
    assert_eq!(refused.list().unwrap_err().errno(), libc::EPERM);
    assert!(!no_module(&mut refused));
}

/// Nothing says that the module is not loaded where classes or modules are missing, as of a class that is mounted
/// into a container; nor where there is what only its modules make.
#[test]
fn a_part_of_a_sysfs_lacks_no_module() {
    for parts in [
        &["class/net"][..],
        &["module"],
        &["class/net", "module/ib_core"],
        &["class/infiniband_verbs/uverbs0", "module/ib_uverbs"],
        &["class/infiniband_mad", "module"],
        &["class/misc/rdma_cm", "module"],
    ] {
        let tree = tempfile::tempdir().unwrap();
        for part in parts {
            std::fs::create_dir_all(tree.path().join(part)).unwrap();
        }
        let mut host = Host::rooted(tree.path(), "/dev/infiniband");
        let by_umad = umad::ca_names(host.sysfs()).unwrap_err();
        for error in [host.list().unwrap_err(), by_umad] {
            let path = tree.path().join(CLASS);
            assert_eq!(error.request(), &Request::Sysfs { path }, "{parts:?}");
            assert_eq!(error.errno(), libc::ENOENT, "{parts:?}");
            assert!(error.to_string().ends_with("is all of sysfs there?"), "{error}");
        }
        assert!(!host.absence().contains(&Absence::NoModule), "{parts:?}");
    }
}

/// The class is empty, as in a namespace without devices. Netlink answers for this one.
#[test]
fn a_host_whose_sysfs_is_of_another_namespace_has_the_devices_that_netlink_lists() {
    use crate::netlink::Datagram;
    use uverbs_uapi::netlink::attribute;
    let tree = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(tree.path().join("class/infiniband")).unwrap();
    let device = Message::new(0, &[])
        .number(attribute::DEV_INDEX, 0)
        .text(attribute::DEV_NAME, "rxe0")
        .number(attribute::PORT_INDEX, 1)
        .finish_for_test();
    let some = |place| vec![Datagram::reply(&device, place), Datagram::end(place)];
    let none = |place| vec![Datagram::end(place)];
    let at = |answers| {
        let netlink = Netlink::Open(Socket::given(answers));
        Host { sysfs: Sysfs::at(tree.path()), netlink, ..Host::new() }
    };
    let has_none = |reasons: &[Absence]| reasons.contains(&Absence::NoDevice);
    assert!(!has_none(&at(vec![some(1)]).absence()));
    assert!(has_none(&at(vec![none(1)]).absence()));
    assert!(has_none(&at(vec![]).absence()), "netlink does not say");
    // It went after it was listed.
    let no_node = vec![Datagram::refusal(Errno::OPNOTSUPP, 2)];
    let mut host = at(vec![some(1), no_node, some(3), none(4)]);
    let inventory = host.inventory(&Wanted::new(Parts { host: true, ..Parts::LISTED }));
    assert_eq!(inventory.devices.len(), 1);
    assert!(!has_none(&inventory.absences), "{:?}", inventory.absences);
}

/// It is listed, and all else can be looked at.
#[test]
fn a_device_whose_node_is_refused_is_not_unlisted() {
    use crate::netlink::Datagram;
    use uverbs_uapi::netlink::attribute;
    let device = Message::new(0, &[])
        .number(attribute::DEV_INDEX, 0)
        .text(attribute::DEV_NAME, "rxe0")
        .number(attribute::PORT_INDEX, 1)
        .finish_for_test();
    let mut host = Host::with_netlink(Socket::given(vec![
        vec![Datagram::reply(&device, 1), Datagram::end(1)],
        vec![Datagram::refusal(Errno::NOMEM, 2)],
        vec![Datagram::reply(&device, 3), Datagram::end(3)],
    ]));
    let wanted = Wanted::new(Parts::LISTED).preference(Preference::Sysfs);
    let inventory = host.inventory(&wanted);
    assert!(inventory.unlisted.is_empty() && inventory.devices.len() == 1, "{inventory:?}");
    let [problem] = &inventory.problems[..] else { panic!("{inventory:?}") };
    assert!(problem.text.starts_with("rxe0: ask RDMA netlink: ENOMEM"), "{problem:?}");
}

/// The others' interfaces are known, and netlink has answered.
#[test]
fn a_port_whose_interface_is_refused_hides_no_other() {
    use crate::inventory::Unread;
    use crate::netlink::Datagram;
    use uverbs_uapi::netlink::attribute;
    let device = Message::new(0, &[])
        .number(attribute::DEV_INDEX, 0)
        .text(attribute::DEV_NAME, "rxe0")
        .number(attribute::PORT_INDEX, 2)
        .finish_for_test();
    let d0 = Message::new(0, &[])
        .number(attribute::NDEV_INDEX, 2)
        .text(attribute::NDEV_NAME, "d0")
        .finish_for_test();
    let mut host = Host::with_netlink(Socket::given(vec![
        vec![Datagram::reply(&device, 1), Datagram::end(1)],
        vec![Datagram::refusal(Errno::OPNOTSUPP, 2)],
        vec![Datagram::reply(&device, 3), Datagram::end(3)],
        vec![Datagram::refusal(Errno::IO, 4), Datagram::reply(&d0, 5)],
    ]));
    let wanted = Wanted::new(Parts { port_netdevs: true, ..Parts::LISTED });
    let inventory = host.inventory(&wanted.preference(Preference::Sysfs));
    assert!(inventory.has_netlink && inventory.problems.is_empty(), "{inventory:?}");
    let ports = &inventory.devices[0].ports;
    let problem = ports[0].netdev.as_ref().unwrap_err();
    assert!(problem.text.starts_with("rxe0: find the network interface of port 1: EIO"));
    assert_eq!(ports[1].netdev().map(|own| own.name.as_str()), Some("d0"));
    assert_eq!(inventory.unread(), [Unread::Port("rxe0", 1)]);
}

/// What is wrong with the only device of a tree that is a part of a sysfs.
fn part_problem(host: &mut Host, file: &Path) {
    let is_elsewhere = |own: &Absence| matches!(own, Absence::OtherNamespace { .. });
    assert!(!host.absence().iter().any(is_elsewhere));
    let listing = host.list().unwrap();
    let [problem] = listing.problems.as_slice() else { panic!("{listing:?}") };
    let said = format!("rxe0: read {}: ENOENT", file.display());
    assert!(listing.devices.is_empty() && problem.to_string().starts_with(&said), "{problem}");
    assert!(problem.to_string().ends_with("is all of sysfs there?"), "{problem}");
}

/// In the kernel's sysfs its device would be another namespace's.
#[test]
fn a_device_that_a_copy_lacks_is_not_elsewhere() {
    let (_tree, class, mut host) = tree();
    std::fs::remove_dir_all(class.join("rxe0")).unwrap();
    part_problem(&mut host, &class.join("rxe0/ports"));
    // A name that may not be followed.
    std::os::unix::fs::symlink(class.join("rxe0"), class.join("rxe0")).unwrap();
    assert_eq!(host.list().unwrap().problems[0].errno(), libc::ELOOP);
}

#[test]
fn a_device_without_ports_is_a_part_of_one() {
    let (_tree, class, mut host) = tree();
    std::fs::remove_dir_all(class.join("rxe0/ports/1")).unwrap();
    part_problem(&mut host, &class.join("rxe0/ports/1"));
    assert_eq!(host.sysfs().query_gid_table("rxe0").unwrap_err().errno(), libc::ENOENT);
}

#[test]
fn a_firmware_version_that_is_refused_is_not_none() {
    let (_tree, class, mut host) = tree();
    let file = class.join("rxe0/fw_ver");
    std::fs::write(&file, b"1.2\xff\n").unwrap();
    assert_eq!(host.devices().unwrap()[0].fw_version.as_deref(), Some("1.2\u{fffd}"));
    std::fs::remove_file(&file).unwrap();
    assert_eq!(host.devices().unwrap()[0].fw_version, None);
    std::fs::create_dir(&file).unwrap();
    let listing = host.list().unwrap();
    let [problem] = listing.problems.as_slice() else { panic!("{listing:?}") };
    let said = format!("rxe0: read {}: EISDIR", file.display());
    assert!(problem.to_string().starts_with(&said), "{problem}");
}

/// Which port is the first that is active, and which GIDs there are, cannot be known without port 1.
#[test]
fn a_device_without_a_port_before_another_is_a_part_of_one() {
    let (_tree, class, mut host) = tree();
    std::fs::rename(class.join("rxe0/ports/1"), class.join("rxe0/ports/2")).unwrap();
    let listing = host.list().unwrap();
    let [of_list] = listing.problems.as_slice() else { panic!("{listing:?}") };
    let sysfs = host.sysfs();
    for error in [
        of_list,
        &sysfs.query_gid_table("rxe0").unwrap_err(),
        &umad::ca(sysfs, "rxe0").unwrap_err(),
        &umad::port(sysfs, "rxe0", 1).unwrap_err(),
        &umad::port_guids(sysfs, Some("rxe0")).unwrap_err(),
        &umad::default_port(sysfs, None).unwrap_err(),
    ] {
        assert_eq!(error.errno(), libc::EPROTO);
        assert!(error.to_string().contains("rxe0/ports: "), "{error}");
    }
}

/// As `cp -a /sys/class` leaves them.
#[test]
fn of_links_that_lead_nowhere_a_file_is_missing() {
    let (tree, class, mut host) = tree();
    let device = host.device("rxe0").unwrap();
    let lead_nowhere = |path: &Path| {
        std::fs::remove_dir_all(path).unwrap();
        std::os::unix::fs::symlink("../../devices/nowhere", path).unwrap();
    };
    lead_nowhere(&class.join("rxe0"));
    let ports = class.join("rxe0/ports");
    part_problem(&mut host, &ports);
    let by_name = host.sysfs().query_port("rxe0", 1).unwrap_err();
    for error in [by_name, host.sysfs().of(&device).unwrap_err()] {
        assert_eq!(error.request(), &Request::Sysfs { path: ports.clone() });
    }
    let node = tree.path().join("class/infiniband_verbs/uverbs0");
    lead_nowhere(&node);
    let said = format!("host: read {}: ENOENT", node.join("ibdev").display());
    let listing = host.list().unwrap();
    assert!(listing.problems.iter().any(|own| own.to_string().starts_with(&said)));
}

/// Of two nodes it is not known which is the device's, and a file in place of one is not none.
#[test]
fn a_device_s_node_is_the_only_one() {
    let (tree, _, mut host) = tree();
    let class = tree.path().join("class/infiniband_verbs");
    let mut node = || {
        let listing = host.list().unwrap();
        let device = listing.devices.into_iter().next().unwrap();
        let node = device.node.map(|own| own.name);
        (node, device.node_is_unread, listing.problems.iter().map(Error::errno).collect())
    };
    std::fs::write(class.join("abi_version"), "6").unwrap();
    assert_eq!(node(), (Some("uverbs0".to_owned()), false, vec![]));
    std::fs::create_dir(class.join("uverbs7")).unwrap();
    std::fs::write(class.join("uverbs7/ibdev"), "rxe0\n").unwrap();
    std::fs::write(class.join("uverbs7/dev"), "231:199\n").unwrap();
    assert_eq!(node(), (None, true, vec![libc::EPROTO]));
    for folder in ["uverbs0", "uverbs7"] {
        std::fs::remove_dir_all(class.join(folder)).unwrap();
    }
    assert_eq!(node(), (None, false, vec![]));
    std::fs::write(class.join("uverbs0"), "").unwrap();
    assert_eq!(node(), (None, true, vec![libc::ENOTDIR]));
}

/// Where nothing is missing, sysfs is the answer, and so it is of a kernel that has no RDMA netlink.
#[test]
fn a_refusal_is_a_problem_where_something_is_missing() {
    type Opened = core::result::Result<Socket, Errno>;
    // One that opens, and refuses to list.
    fn given(errno: Errno) -> Socket {
        Socket::given(vec![vec![crate::netlink::Datagram::refusal(errno, 1)]])
    }
    let (tree, class, _) = tree();
    let is_problem = |open: fn() -> Opened, wanted: &Wanted<'_>| {
        let inventory = Host::opening(tree.path(), open).inventory(wanted);
        assert!(!inventory.has_netlink && inventory.devices.len() == 1, "{inventory:?}");
        let reason = inventory.without_netlink.as_ref().unwrap();
        let count = inventory.problems.iter().filter(|own| *own == reason).count();
        assert!(count <= 1 && inventory.problems.len() == count, "{inventory:?}");
        assert!(count == 0 || inventory.netlink_failure() == Some(reason));
        count == 1
    };
    let filtered: fn() -> Opened = || Err(Errno::AFNOSUPPORT);
    let [devices, guids, ports, rows] =
        [Parts::DEVICES, Parts::GUIDS, Parts::PORTS, Parts::GIDS].map(Wanted::new);
    assert!(is_problem(filtered, &devices) && is_problem(filtered, &ports));
    assert!(!is_problem(filtered, &guids));
    // A row of InfiniBand, which has no interface, and one of RoCE.
    let port = class.join("rxe0/ports/1");
    let write = |link_layer, kind| {
        std::fs::write(port.join("link_layer"), link_layer).unwrap();
        std::fs::write(port.join("gid_attrs/types/0"), kind).unwrap();
    };
    write("InfiniBand", "IB/RoCE v1");
    assert!(!is_problem(filtered, &rows));
    write("Ethernet", "RoCE v2");
    assert!(is_problem(filtered, &rows));
    assert!(!is_problem(filtered, &rows.rows(&|_, _| false)));
    assert!(!is_problem(filtered, &rows.preference(Preference::Sysfs)));

    let failures: [fn() -> Opened; 4] = [
        || Err(Errno::PERM),
        || Err(Errno::MFILE),
        || Ok(given(Errno::PERM)),
        || Ok(given(Errno::AGAIN)),
    ];
    let none: [fn() -> Opened; 3] =
        [|| Err(Errno::PROTONOSUPPORT), || Ok(given(Errno::INVAL)), || Ok(given(Errno::OPNOTSUPP))];
    for open in failures {
        assert!(is_problem(open, &rows));
    }
    for open in none {
        assert!(!is_problem(open, &rows) && !is_problem(open, &devices));
    }
}

/// The reason is that of the listing, whatever is asked later.
#[test]
fn netlink_that_opens_later_does_not_hide_why_it_did_not() {
    use core::sync::atomic::{AtomicBool, Ordering};
    static IS_OPEN: AtomicBool = AtomicBool::new(false);
    let (tree, ..) = tree();
    let open = || {
        let is_open = IS_OPEN.fetch_or(true, Ordering::Relaxed);
        if is_open { Ok(Socket::given(Vec::new())) } else { Err(Errno::MFILE) }
    };
    let wanted = Wanted::new(Parts::DEVICES).netdev(Some("d0"));
    let inventory = Host::opening(tree.path(), open).inventory(&wanted);
    assert_eq!(inventory.netlink_failure().map(|own| own.errno), Some(24), "{inventory:?}");
}

#[test]
fn netlink_that_does_not_list_is_not_netlink_that_answers() {
    let refusal = crate::netlink::Datagram::refusal(Errno::PERM, 1);
    let mut host = Host::with_netlink(Socket::given(vec![vec![refusal]]));
    let _ = host.list();
    assert_eq!(host.netlink_error().map(|error| error.errno()), Some(1));
}
