//! What the connection manager is asked, and what its answers prove.

use super::*;

/// What is known of the rows of `rxe0`, a device of another namespace, by this answer of the connection manager to all that
/// it is asked.
fn namings(here: &Namespace, table: &GidTable, answer: Holder) -> Vec<Naming> {
    let mut found = here.name(&[table]).remove(0);
    let questions = here.questions(table, &found.names);
    let answers = questions.iter().map(|(_, question)| (*question, answer)).collect();
    here.take_answers(table, &questions, &answers, &mut found);
    here.namings(&[table], vec![found], &[false], || None, |_| None).remove(0)
}

/// What the rows are named.
fn answered(here: &Namespace, table: &GidTable, (device, port): (u32, u32)) -> Vec<Option<String>> {
    let namings = namings(here, table, Holder::Port(device, port));
    namings.into_iter().map(|naming| naming.netdev.map(|netdev| netdev.name)).collect()
}

/// A pod with `net1`, and `net2` beside it: the ports' own interfaces are in another namespace.
fn pod(addresses: &[(u32, &str)], net1: Link) -> Namespace {
    let links = vec![link(1, "lo"), net1, link(62, "net2")];
    Namespace { port_netdevs: BTreeMap::new(), ..namespace(addresses, links) }
}

/// The number of the device of [`GidTable::sample`], and that of the port of [`record`].
const PORT: (u32, u32) = (0, 1);

#[test]
fn a_pod_s_interface_is_known_by_the_connection_manager() {
    let here = pod(&[(61, "10.7.0.1")], link(61, "net1"));
    let rows = vec![record(60, "10.6.0.1"), record(61, "10.7.0.1"), record(61, "10.7.0.2")];
    let table = GidTable::sample("rxe0", rows);
    assert_eq!(answered(&here, &table, PORT), [None, Some("net1".into()), None]);
    for of_another in [(0, 2), (1, 1), (0, 0)] {
        assert_eq!(answered(&here, &table, of_another), [None, None, None], "{of_another:?}");
    }
    let questions = here.questions(&table, &here.name_table(&table));
    let question = Question { gid: gid("10.7.0.1"), interface: index(61) };
    assert_eq!(questions, [(1, question)]);
    // By sysfs, which has no index.
    let row = GidRecord { sysfs_netdev: Some("net1".into()), ..record(0, "10.7.0.1") };
    let table = GidTable::sample("rxe0", vec![row.clone()]);
    assert_eq!(answered(&here, &table, PORT), [Some("net1".into())]);
    let other = GidRecord { sysfs_netdev: Some("net2".into()), ..row };
    assert_eq!(answered(&here, &GidTable::sample("rxe0", vec![other]), PORT), [None]);
}

/// Its answer would be of another interface, or of none.
#[test]
fn what_the_connection_manager_cannot_tell_apart_is_not_asked() {
    let asked = |here: &Namespace, row: &GidRecord| {
        let table = GidTable::sample("rxe0", vec![row.clone()]);
        !here.questions(&table, &here.name_table(&table)).is_empty()
    };
    let row = record(61, "10.7.0.1");
    let net1 = || link(61, "net1");
    assert!(asked(&pod(&[(61, "10.7.0.1")], net1()), &row));
    assert!(!asked(&pod(&[(62, "10.7.0.1")], net1()), &row), "of another here");
    let two = [(61, "10.7.0.1"), (62, "10.7.0.1")];
    assert!(!asked(&pod(&two, net1()), &row), "of two here");
    let mapped = [(61, "::ffff:10.7.0.1")];
    assert!(!asked(&pod(&mapped, net1()), &row), "as IPv6, which it would be asked of as IPv4");
    let infiniband = Link { is_ethernet: false, ..net1() };
    assert!(!asked(&pod(&[(61, "10.7.0.1")], infiniband), &row), "not Ethernet");
    let mut entry = GidEntry::new(1, 7, gid("10.7.0.1"))
        .with_type(GidType::IB)
        .with_netdev_ifindex(Some(index(61)));
    assert!(!asked(&pod(&[(61, "10.7.0.1")], net1()), &entry.into()), "not RoCE");
    entry = GidEntry::new(1, 7, gid("10.7.0.1"))
        .with_type(GidType::ROCE_V1)
        .with_netdev_ifindex(Some(index(61)));
    assert!(asked(&pod(&[(61, "10.7.0.1")], net1()), &entry.into()));
    // A far end is nobody's own address here.
    let far = Address {
        index: 61,
        ip: "10.7.0.1".parse().unwrap(),
        near: "10.7.0.2".parse().unwrap(),
        prefix: 32,
        is_duplicate: false,
    };
    let links = pod(&[], net1()).links;
    let here = Namespace { links, ..Namespace::new(BTreeMap::new(), &[far]) };
    assert!(!asked(&here, &row), "a far end");
    // Only for link-local addresses the question says which interface is meant.
    let both = [(61, "fe80::1"), (62, "fe80::1"), (61, "fd00::1"), (62, "fd00::1")];
    assert!(asked(&pod(&both, net1()), &record(61, "fe80::1")));
    assert!(!asked(&pod(&both, net1()), &record(61, "fd00::1")));
    // A device that netlink does not list has no number.
    let here = pod(&[(61, "10.7.0.1")], net1());
    let host = Host::rooted("/nowhere", "/nowhere");
    assert!(host.connection_manager().is_none());
    let device = Device { index: None, ..Device::sample("rxe0") };
    let table = GidTable::sample("rxe0", vec![row]).of(device);
    assert!(here.questions(&table, &[None]).is_empty());
}

/// It does not say of which type the row is that it knows.
#[test]
fn rows_of_both_types_are_named_if_the_kernel_has_made_both() {
    let here = pod(&[(61, "10.7.0.1")], link(61, "net1"));
    let v2 = record(61, "10.7.0.1");
    let v1 = GidRecord::from(
        GidEntry::new(1, 8, v2.entry.gid())
            .with_type(GidType::ROCE_V1)
            .with_netdev_ifindex(Some(index(61))),
    );
    let named = |rows: &[&GidRecord]| {
        let table = GidTable::sample("rxe0", rows.iter().map(|row| (*row).clone()).collect());
        [answered(&here, &table, PORT), answered(&here, &table.filled(), PORT)]
    };
    let net1 = || Some("net1".to_owned());
    assert_eq!(named(&[&v1, &v2]), [[net1(), net1()], [None, None]]);
    // With one of them it is this.
    assert_eq!(named(&[&v1]), [[net1()], [net1()]]);
    assert_eq!(named(&[&v2]), [[net1()], [net1()]]);
    // Another's is among them.
    assert_eq!(named(&[&v2, &v2]), [[None, None], [None, None]]);
    assert_eq!(named(&[&v1, &v2, &v2]), [[None, None, None], [None, None, None]]);
    // Or may be.
    let by_name = |row: &GidRecord| {
        let entry = GidEntry::new(1, 7, row.entry.gid()).with_type(row.entry.gid_type());
        GidRecord { sysfs_netdev: Some("net1".into()), ..entry.into() }
    };
    let unread = GidRecord { sysfs_netdev: None, netdev_is_unread: true, ..by_name(&v2) };
    assert_eq!(named(&[&by_name(&v1), &by_name(&v2)])[0], [net1(), net1()]);
    assert_eq!(named(&[&by_name(&v1), &unread])[0], [None, None]);
    assert_eq!(named(&[&by_name(&v2), &unread])[0], [None, None]);
}

#[test]
fn the_connection_manager_is_not_asked_of_what_has_a_name_or_no_address_here() {
    let d0 = Link { mac: Some(MAC), ..link(2, "d0") };
    let here = namespace(&[(2, "10.0.0.1")], vec![d0, link(61, "net1")]);
    let rows = vec![
        first(2, "fe80::11:22ff:fe33:4455"),
        record(2, "10.0.0.1"),
        record(61, "10.7.0.1"),
        record(3, "10.0.0.1"),
    ];
    let table = GidTable::sample("rxe0", rows);
    let names = [here.name_table(&table)];
    assert!(here.questions(&table, &names[0]).is_empty());
    // Nor are links read for it.
    let far_away = GidTable::sample("rxe1", vec![record(61, "10.7.0.1"), record(3, "10.0.0.1")]);
    assert_eq!(here.settled(&[&far_away]), [true]);
    let near = pod(&[(61, "10.7.0.1")], link(61, "net1"));
    assert_eq!(near.settled(&[&far_away]), [false]);
}

/// It knows an interface that has the row's index, or name, and address, and no port has a row for that.
#[test]
fn a_row_of_nobody_here_is_elsewhere() {
    let by_name = |netdev: &str, address: &str| GidRecord {
        sysfs_netdev: Some(netdev.to_owned()),
        ..record(0, address)
    };
    let elsewhere = |here: &Namespace, row: GidRecord, answer: Holder| {
        let table = GidTable::sample("rxe0", vec![row]);
        namings(here, &table, answer).remove(0).is_elsewhere
    };
    // It is on an interface of another namespace, which may be the port's.
    let net1 = || Link { is_lower_told: false, ..link(61, "net1") };
    let mut here = pod(&[(61, "10.7.0.1")], net1());
    here.port_netdevs.insert(("rxe0".into(), 1), Ok(None));
    for row in [record(61, "10.7.0.1"), by_name("net1", "10.7.0.1")] {
        assert!(elsewhere(&here, row.clone(), Holder::Nobody), "{row:?}");
        // It has a row on another port, and may have one on this.
        assert!(!elsewhere(&here, row.clone(), Holder::Port(1, 1)), "{row:?}");
        assert!(!elsewhere(&here, row.clone(), Holder::Port(0, 1)), "{row:?}");
    }
    // Two rows say the same: it has neither. If it has one, it is not known which.
    let twice = GidTable::sample("rxe0", vec![record(61, "10.7.0.1"), record(61, "10.7.0.1")]);
    for (answer, is_elsewhere) in [(Holder::Nobody, true), (Holder::Port(0, 1), false)] {
        for own in namings(&here, &twice, answer) {
            assert_eq!((own.is_elsewhere, own.netdev), (is_elsewhere, None), "{answer:?}");
        }
    }
    // Of its two rows only that may be there which the connection manager does not look for.
    let full = GidTable::sample("rxe0", vec![record(61, "10.7.0.1")]).filled();
    assert!(!namings(&here, &full, Holder::Nobody).remove(0).is_elsewhere);
    // With an address that several here may have, it may have had the other's name.
    let mut here = pod(&[(61, "fe80::1"), (62, "fe80::1")], net1());
    here.port_netdevs.insert(("rxe0".into(), 1), Ok(None));
    assert!(elsewhere(&here, record(61, "fe80::1"), Holder::Nobody));
    assert!(!elsewhere(&here, by_name("net1", "fe80::1"), Holder::Nobody));
}

/// The kernel may have removed the row for a moment when the connection manager was asked.
#[test]
fn that_nobody_has_a_row_is_asked_twice() {
    let here = pod(&[(61, "10.7.0.1")], link(61, "net1"));
    let rows = vec![record(60, "10.6.0.1"), record(61, "10.7.0.1")];
    let table = GidTable::sample("rxe0", rows.clone());
    let confirmed = |again: Option<&GidTable>, answer: Option<Holder>| {
        let mut found = here.name(&[&table]).remove(0);
        let questions = here.questions(&table, &found.names);
        let answers = questions.iter().map(|(_, asked)| (*asked, Holder::Nobody)).collect();
        here.take_answers(&table, &questions, &answers, &mut found);
        assert!(found.is_any_elsewhere());
        found.confirm(&table, again, &questions, |_| answer);
        found.is_any_elsewhere()
    };
    assert!(confirmed(Some(&table), Some(Holder::Nobody)));
    assert!(!confirmed(Some(&table), Some(Holder::Port(0, 1))), "it is there again");
    assert!(!confirmed(Some(&table), None), "no answer");
    assert!(!confirmed(None, Some(Holder::Nobody)), "not read again");
    // Another interface had the address, by which the kernel may have found it.
    let address = |index: u32| {
        let ip = "10.7.0.1".parse().unwrap();
        Address { index, ip, near: ip, prefix: 24, is_duplicate: false }
    };
    let meant = |again: &[Address]| {
        let mut found = here.name(&[&table]).remove(0);
        let questions = here.questions(&table, &found.names);
        let answers = questions.iter().map(|(_, asked)| (*asked, Holder::Nobody)).collect();
        here.take_answers(&table, &questions, &answers, &mut found);
        found.keep_meant(&questions, &Namespace::new(PortNetdevs::new(), again));
        found.is_any_elsewhere()
    };
    assert!(meant(&[address(61)]));
    assert!(!meant(&[address(61), address(62)]) && !meant(&[address(62)]) && !meant(&[]));
    for rows in [vec![rows[0].clone()], vec![rows[0].clone(), record(62, "10.7.0.1")]] {
        assert!(!confirmed(Some(&GidTable::sample("rxe0", rows)), Some(Holder::Nobody)));
    }
}
