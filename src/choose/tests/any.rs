//! Any table and any settings.

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

use super::*;
use crate::gid::Gid;
use crate::inventory::settings::NAMES;

fn any_gid() -> impl Strategy<Value = Gid> {
    let known = prop_oneof![
        Just("::"),
        Just("fe80::1"),
        Just("fe80:0:0:1::1"),
        Just("::ffff:10.0.0.5"),
        Just("::ffff:0.0.0.0"),
        Just("ff0e::ffff:224.0.0.1"),
        Just("fd00::5"),
        Just("211:2233:4455::"),
        Just("fec0:0:7:1:14:500:11:2233"),
    ];
    prop_oneof![
        known.prop_map(|text| text.parse::<Ipv6Addr>().unwrap().into()),
        any::<[u8; 16]>().prop_map(Gid::from_bytes),
    ]
}

fn any_row() -> impl Strategy<Value = Row<'static>> {
    let home = prop_oneof![
        Just(Home::None),
        Just(Home::Foreign),
        Just(Home::WithoutAddress),
        Just(unproven(None, false)),
        Just(unproven(Some("e"), true)),
        Just(Home::Unknown { name: Some("e") }),
        (any::<bool>(), any::<bool>(), any::<Option<bool>>()).prop_map(
            |(is_up, has_address, is_port_s)| {
                Home::Ours { name: "e", is_up, has_address, unfit: None, is_port_s }
            }
        ),
    ];
    let index = prop_oneof![8 => 0u32..12, 1 => any::<u32>()];
    let gid_type = prop_oneof![8 => 0u32..3, 1 => any::<u32>()].prop_map(GidType);
    (index, any_gid(), gid_type, any::<bool>(), any::<bool>(), home).prop_map(
        |(index, gid, gid_type, type_is_hidden, has_address_handle, home)| Row {
            index,
            gid,
            gid_type,
            type_is_hidden,
            has_address_handle,
            may_lead_elsewhere: false,
            home,
            is_heard: Some(true),
        },
    )
}

fn any_port() -> impl Strategy<Value = Port<'static>> {
    let length = prop_oneof![8 => 0u32..16, 1 => any::<u32>()];
    (proptest::collection::vec(any_row(), 0..10), length, 0u8..7, 0u8..4, 0u8..9).prop_map(
        |(mut rows, gid_tbl_len, state, layer, node_type)| {
            rows.sort_by_key(|row| row.index);
            rows.dedup_by_key(|row| row.index);
            Port {
                device: "mlx5_0",
                node_type: NodeType(node_type),
                driver: None,
                number: 1,
                place: None,
                is_found: true,
                has_types: true,
                assumes_types: false,
                state: PortState(if state > 4 { 4 } else { state }),
                link_layer: LinkLayer(layer),
                gid_tbl_len,
                rows,
            }
        },
    )
}

/// NCCL's walk slot by slot, to compare with the walk of [`nccl`], which skips runs of empty slots.
fn slot_by_slot(port: &Port<'_>, family: Family, version: u8) -> u32 {
    let fam = |i| port.row(i).map_or(Family::V6, Row::family);
    let valid = |i| {
        port.row(i).is_some_and(|row| !row.gid.is_zero() && row.gid.subnet_prefix() != 0xfe80 << 48)
    };
    let version_of = |i| port.row(i).and_then(Row::version);
    let mut current = 0;
    for i in 1..port.gid_tbl_len {
        let is_better = || {
            valid(i)
                && version_of(i) == Some(version)
                && (version_of(current) != version_of(i) || !valid(current))
        };
        if fam(i) == family && (fam(current) != family || is_better()) {
            current = i;
        }
    }
    current
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: Some(Box::new(FileFailurePersistence::SourceParallel("tests/regressions"))),
        ..ProptestConfig::default()
    })]

    /// Every table and all settings give an answer, with a reason for every row. At most one row is taken:
    /// the row of the outcome.
    #[test]
    fn any_table_has_an_answer(
        port in any_port(),
        values in proptest::collection::vec(
            proptest::option::of("[-^=]?(0x|mlx5_|AF_INET|auto|all|10.0.0.0/|::/)?[0-9]{0,3}[:,/]?[a-z0-9\\[\\]-]{0,4}|\\PC{0,6}"), NAMES.len()),
    ) {
        let variable = |name: &str| {
            let place = NAMES.iter().position(|own| *own == name)?;
            values.get(place)?.as_deref()
        };
        let mut decisions = vec![recommend(&port, &Wish::default())];
        // From before the oldest to after the newest that is known.
        for (minor, patch) in (19..=31).map(|minor| (minor, 7)).chain([(30, 4)]) {
            let program = Implementation::Nccl(nccl::Release::of(2, minor, patch));
            decisions.push(nccl::choose(&port, &nccl::Settings::new(program, variable)));
        }
        decisions.push(nccl::choose(&port, &nccl::Settings::new(Implementation::Nvshmem, variable)));
        for version in 14..=23 {
            let release = ucx::Release::of(1, version);
            decisions.push(ucx::choose(&port, &ucx::Settings::new(release, variable)));
        }
        for decision in decisions {
            prop_assert_eq!(decision.rows.len(), port.rows.len());
            let taken: Vec<u32> = decision.rows.iter()
                .filter(|(_, reason)| reason.is_taken()).map(|(index, _)| *index).collect();
            let expected: Vec<u32> = decision.outcome.index().into_iter().collect();
            prop_assert_eq!(taken, expected, "{:?}", decision);
            for (_, reason) in &decision.rows {
                prop_assert!(!reason.to_string().is_empty());
            }
        }
    }

    /// A row that is proven to be usable is passed over for one that is not only if that reaches other links and
    /// it does not. A row that cannot be right is never taken. Where a better row may be right, that is said.
    #[test]
    fn what_is_proven_comes_first(port in any_port()) {
        let (state, link_layer) = (PortState::ACTIVE, LinkLayer::ETHERNET);
        let port = Port { state, link_layer, node_type: NodeType::CA, ..port };
        let is_ours = |row: &Row<'_>| {
            matches!(row.home, Home::Ours { is_up: true, has_address: true, .. })
                && !row.is_type_unread()
        };
        // Nor any other address that is no host's, nor a type that nobody knows.
        let is_loopback = |row: &Row<'_>| {
            let is_odd = |v4: std::net::Ipv4Addr| {
                v4.is_loopback() || v4.is_multicast() || v4.is_broadcast() || v4.is_unspecified()
            };
            row.gid.ipv4().is_some_and(is_odd)
                || row.gid.ipv6().is_multicast()
                || (!row.is_type_unread() && row.gid_type > GidType::ROCE_V2)
        };
        let is_usable = |row: &&Row<'_>| is_ours(row) && !is_loopback(row) && row.index <= 255;
        let taken = recommend(&port, &Wish::default()).outcome.index();
        let taken = taken.and_then(|index| port.row(index));
        let is_far = |row: &Row<'_>| {
            let is_local = is_link_local(row.gid)
                || row.gid.ipv4().is_some_and(|v4| v4.is_link_local());
            row.gid_type == GidType::ROCE_V2 && !is_local
        };
        let is_possible = |row: &Row<'_>| {
            matches!(row.home, Home::Unproven { is_named: true, .. }) && is_far(row)
        };
        if port.rows.iter().any(|row| is_usable(&row) && is_far(row)) {
            prop_assert!(taken.is_some_and(|row| is_ours(row) && is_far(row)));
        } else if port.rows.iter().any(|row| is_usable(&row)) {
            prop_assert!(taken.is_some_and(|row| is_ours(row) || is_possible(row)));
        }
        let may_be_far = |row: &Row<'_>| {
            is_far(&Row { gid_type: if row.is_type_unread() { GidType::ROCE_V2 } else { row.gid_type }, ..*row })
                && !matches!(row.home, Home::Foreign | Home::WithoutAddress | Home::Ours { is_up: false, .. }
                    | Home::Ours { has_address: false, .. })
                && !is_loopback(row) && row.gid.ipv6() != Ipv6Addr::LOCALHOST && row.index <= 255
        };
        if let Some(row) = taken && !is_far(row) && port.rows.iter().any(may_be_far) {
            prop_assert!(!is_sure(&port, row.index));
        }
        if let Some(row) = taken {
            prop_assert!(!matches!(row.home, Home::Foreign | Home::WithoutAddress));
            prop_assert!(!row.is_type_unread());
            prop_assert!(is_ours(row) || !is_sure(&port, row.index));
        }
    }

    #[test]
    fn nccl_walks_as_if_slot_by_slot(port in any_port(), is_v6: bool, version in 1u8..4) {
        let port = Port {
            state: PortState::ACTIVE,
            link_layer: LinkLayer::ETHERNET,
            gid_tbl_len: port.gid_tbl_len.min(300),
            ..port
        };
        let (family, word) = if is_v6 { (Family::V6, "AF_INET6") } else { (Family::V4, "AF_INET") };
        let version_text = version.to_string();
        let settings = nccl::Settings::new(Implementation::Nccl(nccl::Release::NEWEST), |name| match name {
            "NCCL_IB_ADDR_FAMILY" => Some(word),
            "NCCL_IB_ROCE_VERSION_NUM" => Some(&version_text),
            _ => None,
        });
        let expected = slot_by_slot(&port, family, version);
        let outcome = nccl::choose(&port, &settings).outcome;
        prop_assert_eq!(outcome, Outcome::of_index(&port, expected.into()));
    }
}
