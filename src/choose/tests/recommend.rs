//! The recommendation, its reasons and its wishes.

use super::*;
use crate::netdev::Unfit;

fn home(line: &str, home: Home<'static>) -> Row<'static> {
    Row { home, ..row(line) }
}

fn down(name: &'static str) -> Home<'static> {
    Home::Ours { name, is_up: false, has_address: true, unfit: None, is_port_s: Some(true) }
}

fn ours(name: &'static str) -> Home<'static> {
    Home::Ours {
        name,
        is_up: true,
        has_address: true,
        unfit: None,
        is_port_s: Some(!name.contains('.')),
    }
}

/// A port with every kind of row that there is to refuse, with the reasons.
#[test]
fn the_recommendation_and_its_reasons() {
    let down = down("eth1");
    let far = Home::Ours {
        name: "eth0",
        is_up: true,
        has_address: true,
        unfit: Some(Unfit::FarEnd),
        is_port_s: Some(true),
    };
    let gone = Home::Ours {
        name: "eth0",
        is_up: true,
        has_address: false,
        unfit: None,
        is_port_s: Some(true),
    };
    let rows = vec![
        home("1 0 fe80::1 v1 e", ours("eth0")),
        home("1 1 fe80::1 v2 e", ours("eth0")),
        home("1 2 ::ffff:10.0.0.1 v2 e", Home::Foreign),
        home("1 3 ::ffff:10.0.0.2 v2 e", unproven(None, false)),
        home("1 4 ::ffff:10.7.0.1 v2 e", ours("eth0.7")),
        home("1 5 ::ffff:127.0.0.1 v2 e", ours("eth0")),
        home("1 6 ::ffff:10.0.0.6 v2 e", down),
        home("1 7 ::ffff:10.0.0.7 v2 e", gone),
        home("1 8 fd00::8 v2 e", ours("eth0")),
        home("1 9 ::ffff:10.0.0.9 v2 e", ours("eth0")),
        home("1 10 ::ffff:10.0.0.10 v2 e", ours("eth0")),
        home("1 11 ::ffff:169.254.1.1 v2 e", ours("eth0")),
        home("1 12 ::ffff:10.0.0.13 v2 e", far),
        home("1 300 ::ffff:10.0.0.12 v2 e", ours("eth0")),
    ];
    let port = port("port 1 link_layer Ethernet gid_tbl_len 1024", rows);
    let decision = recommend(&port, &Wish::default());
    assert_eq!(decision.outcome, Outcome::Taken(9));
    let reasons: Vec<Reason> = decision.rows.into_iter().map(|(_, reason)| reason).collect();
    let expected = [
        Reason::V1Below(9),
        Reason::LinkLocalBelow(9),
        Reason::Foreign,
        Reason::UnprovenBelow(9),
        Reason::UpperBelow(9),
        Reason::Loopback,
        Reason::InterfaceDown("eth1".into()),
        Reason::AddressGone("eth0".into()),
        Reason::V6Below(9),
        Reason::Recommended,
        Reason::LowerFits(9),
        Reason::LinkLocalBelow(9),
        Reason::Unfit(Unfit::FarEnd),
        Reason::BeyondByte,
    ];
    assert_eq!(reasons, expected);
    let with = |wish: Wish| recommend(&port, &wish).outcome.index();
    assert_eq!(with(Wish { family: Some(Family::V6), ..Wish::default() }), Some(8));
    assert_eq!(with(Wish { netdev: Some("eth0.7".into()), ..Wish::default() }), Some(4));
    assert_eq!(with(Wish { gid_type: Some(GidType::ROCE_V1), ..Wish::default() }), Some(0));
    let network = Network { address: "10.0.0.10".parse().unwrap(), bits: 32 };
    assert_eq!(with(Wish { networks: vec![network], ..Wish::default() }), Some(10));
    let elsewhere = Network { address: "192.0.2.0".parse().unwrap(), bits: 24 };
    let both = vec![network, elsewhere];
    assert_eq!(with(Wish { networks: both, ..Wish::default() }), None, "in all of them");
    let nothing = Wish { netdev: Some("eth9".into()), ..Wish::default() };
    // The interface of row 3 is not known.
    assert_eq!(recommend(&port, &nothing).outcome, Outcome::Ignored(Why::NotKnown(3)));
    let down = Port { state: PortState::INIT, ..port.clone() };
    let decision = recommend(&down, &Wish::default());
    assert_eq!(decision.outcome, Outcome::Ignored(Why::NotActive(PortState::INIT)));
    assert_eq!(decision.rows[9].1, Reason::PortNotActive(PortState::INIT));
    assert_eq!(caveats(&port, 0), [Caveat::LinkLocal, Caveat::V1]);
    assert_eq!(caveats(&port, 6), [Caveat::Down]);
    // Row 3 may be as good, and is lower.
    assert_eq!(caveats(&port, 9), [Caveat::BetterUnknown(3)]);
}

fn v2(index: u32, gid: &str, home: Home<'static>) -> Row<'static> {
    Row { home, ..row(&format!("1 {index} {gid} v2 e")) }
}

fn roce(rows: &[Row<'static>]) -> Port<'static> {
    port("port 1 link_layer Ethernet gid_tbl_len 16", rows.to_vec())
}

/// The outcome, and the reason of each row.
fn judged(rows: &[Row<'static>], wish: &Wish) -> (Outcome, Vec<Reason>) {
    let decision = recommend(&roce(rows), wish);
    (decision.outcome, decision.rows.into_iter().map(|(_, reason)| reason).collect())
}

const POSSIBLE: Home<'static> = unproven(Some("eth1"), true);
const UNKNOWN: Home<'static> = Home::Unknown { name: None };

/// What is better proven to be here comes first, whatever the address is. A row that sysfs keeps back comes
/// last.
#[test]
fn the_best_proven_row_comes_first() {
    let known = v2(9, "fe80::9", ours("eth0"));
    let possible = v2(3, "fe80::3", POSSIBLE);
    for (other, reason) in [
        (v2(2, "::ffff:10.5.5.5", UNKNOWN), Reason::LessKnownBelow(3)),
        (v2(2, "::ffff:10.5.5.5", Home::None), Reason::LessKnownBelow(3)),
        (v2(2, "::ffff:10.5.5.5", Home::Foreign), Reason::Foreign),
        (v2(2, "::ffff:10.5.5.5", Home::WithoutAddress), Reason::WithoutAddress),
        (
            Row { type_is_hidden: true, ..v2(2, "::ffff:10.5.5.5", POSSIBLE) },
            Reason::LessKnownBelow(3),
        ),
    ] {
        let (outcome, reasons) = judged(&[other, possible], &Wish::default());
        assert_eq!(outcome, Outcome::Taken(3), "{other:?}");
        assert_eq!(reasons, [reason, Reason::Recommended], "{other:?}");
        let (outcome, reasons) = judged(&[other, possible, known], &Wish::default());
        assert_eq!(outcome, Outcome::Taken(9), "{other:?}");
        assert_eq!(reasons[1], Reason::UnprovenBelow(9));
    }
    // Without the files of types all rows lack theirs, which says nothing of one of them.
    let hidden = Row { type_is_hidden: true, ..v2(2, "::ffff:10.5.5.5", POSSIBLE) };
    let port = Port { has_types: false, ..roce(&[hidden, possible]) };
    assert_eq!(recommend(&port, &Wish::default()).outcome, Outcome::Taken(2));
}

#[test]
fn a_row_of_roce_without_an_interface_is_not_sure() {
    let port = roce(&[v2(0, "::ffff:10.0.0.1", Home::None)]);
    assert_eq!(caveats(&port, 0), [Caveat::Unknown]);
    assert!(!is_sure(&port, 0));
    let iwarp = Port { node_type: NodeType::RNIC, ..port };
    assert!(is_sure(&iwarp, 0));
}

/// What cannot be read may be what is asked for: that is another answer than none.
#[test]
fn what_cannot_be_read_may_be_right() {
    let untyped = |home| Row {
        gid_type: GidType::UNNAMED,
        type_is_hidden: true,
        ..v2(3, "::ffff:10.0.0.3", home)
    };
    let netdev = |name: &str| Wish { netdev: Some(name.to_owned()), ..Wish::default() };
    let not_known = Outcome::Ignored(Why::NotKnown(3));
    let (none, unwanted) = (Outcome::Ignored(Why::NoRow), Outcome::Ignored(Why::Unwanted));
    let outcome = |row: Row<'static>, wish: &Wish| judged(&[row], wish).0;
    let eth0 = ours("eth0");
    let of_type = |own| Wish { gid_type: Some(own), ..Wish::default() };
    assert_eq!(outcome(untyped(eth0), &Wish::default()), not_known);
    assert_eq!(caveats(&roce(&[untyped(eth0)]), 3), [Caveat::TypeUnread]);
    assert_eq!(outcome(untyped(eth0), &of_type(GidType::ROCE_V1)), not_known);
    assert_eq!(outcome(untyped(eth0), &of_type(GidType::IB)), unwanted);
    assert_eq!(outcome(untyped(eth0), &netdev("eth1")), unwanted);
    assert_eq!(outcome(untyped(Home::WithoutAddress), &Wish::default()), none);
    // An interface matches if it is proven to be that one, or if nothing but names is known.
    let with = |home| v2(3, "::ffff:10.0.0.3", home);
    assert_eq!(outcome(with(eth0), &netdev("eth0")), Outcome::Taken(3));
    assert_eq!(outcome(with(POSSIBLE), &netdev("eth1")), not_known);
    assert_eq!(outcome(with(POSSIBLE), &netdev("eth0")), unwanted);
    for home in [unproven(None, false), UNKNOWN, Home::None] {
        assert_eq!(outcome(with(home), &netdev("eth0")), not_known, "{home:?}");
    }
    let of_tree = Home::Unknown { name: Some("eth0") };
    assert_eq!(outcome(with(of_tree), &netdev("eth0")), Outcome::Taken(3));
    assert_eq!(outcome(with(of_tree), &netdev("eth1")), unwanted);
    // Another row fits, or the port is not used at all.
    let (outcome, reasons) =
        judged(&[untyped(eth0), v2(5, "::ffff:10.0.0.5", eth0)], &Wish::default());
    assert_eq!(outcome, Outcome::Taken(5));
    assert_eq!(reasons, [Reason::TypeUnread, Reason::Recommended]);
    let down = Port { state: PortState::DOWN, ..roce(&[untyped(eth0)]) };
    let outcome = recommend(&down, &Wish::default()).outcome;
    assert_eq!(outcome, Outcome::Ignored(Why::NotActive(PortState::DOWN)));
}

#[test]
fn infiniband_and_iwarp_have_no_versions_to_choose_from() {
    let rows = vec![row("1 0 fe80::b859:9f03:11:2233 ib -"), row("1 1 2001:db8::1 ib -")];
    let infiniband = port("port 1 link_layer InfiniBand gid_tbl_len 8", rows);
    assert_eq!(recommend(&infiniband, &Wish::default()).outcome, Outcome::Taken(0));
    assert_eq!(caveats(&infiniband, 0), []);
    let row = row("1 0 211:2233:4455:: ib eth0");
    let iwarp = port("port 1 link_layer Ethernet gid_tbl_len 1", vec![row]);
    let iwarp = Port { node_type: NodeType::RNIC, ..iwarp };
    assert_eq!(recommend(&iwarp, &Wish::default()).outcome, Outcome::Taken(0));
    assert_eq!(caveats(&iwarp, 0), []);
    let empty = Port { rows: Vec::new(), ..iwarp.clone() };
    assert_eq!(recommend(&empty, &Wish::default()).outcome, Outcome::Ignored(Why::EmptyTable));
    let none = Port { gid_tbl_len: 0, ..empty };
    assert_eq!(recommend(&none, &Wish::default()).outcome, Outcome::Ignored(Why::NoTable));
}

#[test]
fn networks_hold_addresses() {
    let holds = |network: &str, gid: &str| {
        let (address, bits) = network.split_once('/').unwrap();
        let network = Network { address: address.parse().unwrap(), bits: bits.parse().unwrap() };
        network.holds(gid.parse::<Ipv6Addr>().unwrap().into())
    };
    assert!(holds("10.1.2.3/8", "::ffff:10.9.9.9"));
    assert!(!holds("10.1.2.3/32", "::ffff:10.1.2.4"));
    assert!(holds("0.0.0.0/0", "::ffff:10.9.9.9"));
    assert!(!holds("0.0.0.0/0", "fe80::1"));
    assert!(holds("fd00::/200", "fd00::"), "more bits than there are");
    assert!(holds("::/0", "fe80::1"));
    assert!(!holds("fd00::1/128", "fd00::2"));
}

/// The default rows of a port are proven, and link-local. A row that an interface here surely has is better.
#[test]
fn a_row_that_reaches_further_need_not_be_proven() {
    let local = v2(1, "fe80::1", ours("eth0"));
    let old = row("1 0 ::ffff:10.0.0.1 v1 e");
    let old = Row { home: ours("eth0"), ..old };
    let far = v2(3, "::ffff:10.0.0.1", POSSIBLE);
    let (outcome, reasons) = judged(&[old, local, far], &Wish::default());
    assert_eq!(outcome, Outcome::Taken(3));
    let expected = [Reason::V1Below(3), Reason::LinkLocalBelow(3), Reason::Recommended];
    assert_eq!(reasons, expected);
    assert_eq!(caveats(&roce(&[old, local, far]), 3), [Caveat::Unproven]);
    // What is proven and reaches as far is better.
    let proven = v2(5, "fd00::5", ours("eth0"));
    assert_eq!(judged(&[local, far, proven], &Wish::default()).0, Outcome::Taken(5));
}

/// Where the best row is not known to be the best, that is said.
#[test]
fn a_row_that_may_be_better_is_named() {
    let local = v2(1, "fe80::1", ours("eth0"));
    let better = |row: Row<'static>, wish: &Wish| {
        let port = roce(&[local, row]);
        let decision = recommend(&port, wish);
        assert_eq!(decision.outcome, Outcome::Taken(1), "{row:?}");
        assert_eq!(decision.is_sure(&port), decision.better_unknown.is_none());
        decision.better_unknown
    };
    let with = |home| v2(3, "::ffff:10.0.0.1", home);
    let any = Wish::default();
    let untyped = |home| Row { gid_type: GidType::UNNAMED, type_is_hidden: true, ..with(home) };
    let by_address = unproven(Some("eth0"), false);
    for row in [with(UNKNOWN), with(by_address), untyped(ours("eth0")), untyped(POSSIBLE)] {
        assert_eq!(better(row, &any), Some(3), "{row:?}");
        let port = roce(&[local, row]);
        assert_eq!(caveats(&port, 1), [Caveat::BetterUnknown(3), Caveat::LinkLocal]);
        assert!(!is_sure(&port, 1));
    }
    for row in [with(Home::Foreign), with(Home::WithoutAddress), v2(3, "fe80::3", UNKNOWN)] {
        assert_eq!(better(row, &any), None, "{row:?}");
    }
    // It is not what is asked for.
    let v6 = Wish { family: Some(Family::V6), ..Wish::default() };
    assert_eq!(better(with(UNKNOWN), &v6), None);
    let eth0 = Wish { netdev: Some("eth0".to_owned()), ..Wish::default() };
    assert_eq!(better(with(POSSIBLE), &eth0), None, "it is of eth1");
    // It may be what is asked for: then no other is known to be right.
    let not_known = Outcome::Ignored(Why::NotKnown(3));
    let typed = Wish { gid_type: Some(GidType::ROCE_V2), ..Wish::default() };
    for (row, wish) in [(with(by_address), &eth0), (untyped(ours("eth0")), &typed)] {
        let (outcome, reasons) = judged(&[local, row], wish);
        assert_eq!(outcome, not_known, "{row:?}");
        assert_eq!(reasons[0], Reason::PerhapsBelow(3));
    }
    // Its type is of no use where the interface is down.
    let down = down("eth0");
    assert_eq!(better(untyped(down), &typed), None);
}

/// Of rows that are equally good the lower index is recommended, if it is known.
#[test]
fn a_row_that_may_be_as_good_and_lower_is_named() {
    let own = |index| v2(index, "::ffff:10.0.1.1", ours("eth0"));
    let with = |index, home| v2(index, "::ffff:10.0.0.1", home);
    let untyped = |index| {
        let row = with(index, ours("eth0"));
        Row { gid_type: GidType::UNNAMED, type_is_hidden: true, ..row }
    };
    let port_s = Home::Unproven { name: Some("eth0"), is_named: true, is_up: true, unfit: None };
    for (row, is_doubtful) in [
        (with(3, UNKNOWN), true),
        (with(3, port_s), true),
        (untyped(3), true),
        // The lower one is known.
        (with(7, UNKNOWN), false),
        (untyped(7), false),
        (v2(3, "fe80::3", UNKNOWN), false),
        (with(3, Home::Foreign), false),
    ] {
        let mut rows = [own(5), row];
        rows.sort_by_key(|row| row.index);
        let port = roce(&rows);
        let decision = recommend(&port, &Wish::default());
        assert_eq!(decision.outcome, Outcome::Taken(5), "{row:?}");
        assert_eq!(decision.better_unknown, is_doubtful.then_some(3), "{row:?}");
        assert_eq!(decision.is_sure(&port), !is_doubtful, "{row:?}");
    }
}

/// The row of a VLAN is not surely right where the port's own may be.
#[test]
fn a_row_that_may_be_the_port_s_own_is_better_than_a_vlan_s() {
    let vlan = v2(3, "::ffff:10.7.0.1", ours("eth0.7"));
    let beside = |gid, home| roce(&[v2(1, gid, home), vlan]);
    let own = unproven(None, false);
    let port = beside("::ffff:10.0.0.1", own);
    let decision = recommend(&port, &Wish::default());
    assert_eq!((&decision.outcome, decision.better_unknown), (&Outcome::Taken(3), Some(1)));
    assert!(!decision.is_sure(&port) && !is_sure(&port, 3));
    // What cannot be better makes no doubt: another family, or a row that is proven.
    for port in
        [beside("2001:db8::1", own), beside("fe80::1", own), beside("fe80::1", ours("eth0"))]
    {
        let decision = recommend(&port, &Wish::default());
        assert!(decision.is_sure(&port), "{port:?}");
    }
    // It could not be read which interface is the port's own.
    let unread =
        |name| Home::Ours { name, is_up: true, has_address: true, unfit: None, is_port_s: None };
    let row = |index, home| v2(index, "::ffff:10.0.0.1", home);
    let port = roce(&[row(3, unread("eth0.7")), row(5, unread("eth0"))]);
    let decision = recommend(&port, &Wish::default());
    assert_eq!((&decision.outcome, decision.better_unknown), (&Outcome::Taken(3), Some(5)));
    assert_eq!(decision.rows[1], (5, Reason::PortUnreadBelow(3)));
    let port_of_one = roce(&[row(3, unread("eth0")), row(5, unread("eth0"))]);
    assert!(recommend(&port_of_one, &Wish::default()).is_sure(&port_of_one));
    let wish = Wish { netdev: Some("eth0.7".to_owned()), ..Wish::default() };
    assert_eq!(recommend(&port, &wish).better_unknown, None);
    // All rows of one interface are of the port's own, or none is.
    let port = beside("::ffff:10.0.0.1", own);
    assert_eq!(recommend(&port, &wish).outcome, Outcome::Taken(3));
}

/// That nothing is usable is another answer than that what is usable was not asked for.
#[test]
fn what_is_not_asked_for_is_not_unusable() {
    let wish = Wish { netdev: Some("typo".to_owned()), ..Wish::default() };
    let good = v2(3, "::ffff:10.0.0.3", ours("eth0"));
    let down = down("eth1");
    let down = v2(4, "::ffff:10.0.0.4", down);
    let foreign = v2(5, "::ffff:10.0.0.5", Home::Foreign);
    let outcome = |rows: &[Row<'static>], wish: &Wish| judged(rows, wish).0;
    assert_eq!(outcome(&[good, down, foreign], &wish), Outcome::Ignored(Why::Unwanted));
    assert_eq!(outcome(&[down, foreign], &wish), Outcome::Ignored(Why::NoRow));
    assert_eq!(outcome(&[down, foreign], &Wish::default()), Outcome::Ignored(Why::NoRow));
    // The one that is asked for is down.
    let eth1 = Wish { netdev: Some("eth1".to_owned()), ..Wish::default() };
    assert_eq!(outcome(&[good, down], &eth1), Outcome::Ignored(Why::Unwanted));
}

/// A row without an interface is of the only one that has its address, or of none here.
#[test]
fn the_only_interface_with_the_address_is_compared() {
    let row = |name| v2(3, "::ffff:10.0.0.3", unproven(name, false));
    let eth0 = Wish { netdev: Some("eth0".to_owned()), ..Wish::default() };
    let outcome = |name| judged(&[row(name)], &eth0).0;
    assert_eq!(outcome(Some("eth1")), Outcome::Ignored(Why::Unwanted));
    assert_eq!(outcome(Some("eth0")), Outcome::Ignored(Why::NotKnown(3)));
    assert_eq!(outcome(None), Outcome::Ignored(Why::NotKnown(3)));
}

/// A row that may be of an interface here is of no use if that is down, or if its address is of no use there: if it is
/// not of this interface, it is of one in another namespace.
#[test]
fn a_row_that_is_of_no_use_wherever_its_interface_is() {
    let good = v2(5, "fe80::5", ours("eth0"));
    let with = |is_up, unfit| {
        let home = Home::Unproven { name: Some("eth1"), is_named: true, is_up, unfit };
        judged(&[v2(3, "::ffff:10.0.0.3", home), good], &Wish::default())
    };
    assert_eq!(with(true, None).0, Outcome::Taken(3));
    let (outcome, reasons) = with(false, None);
    assert_eq!(outcome, Outcome::Taken(5));
    assert_eq!(reasons[0], Reason::DownOrElsewhere(Some("eth1".to_owned())));
    let (outcome, reasons) = with(true, Some(Unfit::FarEnd));
    assert_eq!(outcome, Outcome::Taken(5));
    assert_eq!(reasons[0], Reason::UnfitOrElsewhere(Unfit::FarEnd));
}
