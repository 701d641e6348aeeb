//! The golden file with the sentences of findings and reasons.

use std::fmt::Write as _;
use std::path::Path;

use super::expect;
use super::harms::HARMS;
use super::*;
use crate::check::expect::compare;

/// The reasons for which rows are taken or refused.
fn tell_rows(text: &mut String) {
    text.push_str("\n# Rows\n");
    let name = || "eth0".to_owned();
    let reasons = [
        Reason::Recommended,
        Reason::Pinned,
        Reason::LowestFit,
        Reason::Untyped,
        Reason::StartFits,
        Reason::Start,
        Reason::FamilyAlone(Family::V4),
        Reason::DefaultIndex,
        Reason::Routable,
        Reason::FirstOf(ucx::Class::V2Ipv4),
        Reason::FirstOf(ucx::Class::V2Ipv6),
        Reason::FirstOf(ucx::Class::V2LinkLocal),
        Reason::FirstOf(ucx::Class::V1Ipv4),
        Reason::FirstOf(ucx::Class::V1Ipv6),
        Reason::FirstOf(ucx::Class::V1LinkLocal),
        Reason::LastResort,
        Reason::Unlooked,
        Reason::LowerFits(3),
        Reason::OtherFamily(Family::V4),
        Reason::OtherFamily(Family::V6),
        Reason::OutOfRange,
        Reason::NotValid,
        Reason::OtherVersion(2),
        Reason::OtherVersion(3),
        Reason::TypeHidden,
        Reason::Below(ucx::Class::V2Ipv4),
        Reason::NoLowHalf,
        Reason::NoAddressHandle,
        Reason::OutOfSubnets,
        Reason::V1Below(3),
        Reason::LinkLocalBelow(3),
        Reason::V6Below(3),
        Reason::UpperBelow(3),
        Reason::UnprovenBelow(3),
        Reason::LessKnownBelow(3),
        Reason::PerhapsBelow(3),
        Reason::Foreign,
        Reason::WithoutAddress,
        Reason::TypeUnread,
        Reason::InterfaceUnread,
        Reason::InterfaceDown(name()),
        Reason::AddressGone(name()),
        Reason::Unfit(Unfit::FarEnd),
        Reason::Unfit(Unfit::Duplicate),
        Reason::Unfit(Unfit::Enslaved),
        Reason::Unfit(Unfit::Bypassed),
        Reason::Unfit(Unfit::Unheard),
        Reason::Unfit(Unfit::NoSocket),
        Reason::Unfit(Unfit::NoNeighbours),
        Reason::Unfit(Unfit::NoLinkLocal),
        Reason::Unfit(Unfit::NoAddress),
        Reason::Unfit(Unfit::Unassigned),
        Reason::Unfit(Unfit::OtherMac),
        Reason::Unfit(Unfit::Mapped),
        Reason::DownOrElsewhere(Some(name())),
        Reason::DownOrElsewhere(None),
        Reason::UnfitOrElsewhere(Unfit::FarEnd),
        Reason::UnfitOrElsewhere(Unfit::Duplicate),
        Reason::Loopback,
        Reason::BeyondByte,
        Reason::Unwanted("type"),
        Reason::PortNotActive(PortState::DOWN),
    ];
    for reason in reasons {
        let _ = writeln!(text, "{reason}");
    }
}

/// What is not as expected.
fn tell_deviations(text: &mut String) {
    text.push_str("\n# Deviations\n");
    let pattern = expect::pattern(&[expect::full()]);
    for (_, _, change) in expect::DEVIATIONS {
        let mut inventory = expect::full();
        change(&mut inventory);
        for Finding { name, severity, seen, wanted, advice, .. } in
            compare(&inventory, &pattern, |_| true)
        {
            let wanted = wanted.map(|own| format!(", expected {own}")).unwrap_or_default();
            let line = format!("{severity}: {name}: {seen}{wanted}\n    {advice}\n");
            if !text.contains(&line) {
                *text += &line;
            }
        }
    }
}

/// A host with the modules that programs need, of whose nodes nothing is known; and one where they cannot be opened.
fn without_nodes() -> (Inventory, Inventory) {
    let mut refused = good();
    refused.modules.extend(["ib_umad".to_owned(), "rdma_ucm".to_owned()]);
    let unlooked = refused.clone();
    refused.umad_access = Some(Err(problem("/dev/infiniband/umad0: permission denied", 13)));
    refused.rdma_cm_access = Some(Err(problem("/dev/infiniband/rdma_cm: no such file", 2)));
    (unlooked, refused)
}

/// Everything that operators read: every finding, reason, caveat and refusal.
fn wording() -> String {
    let mut text = String::from(
        "The sentences of findings and reasons, which `uverbs check` and `uverbs choose` print. A test compares them;\n\
         UPDATE_WORDING=1 cargo test -p uverbs --lib --all-features wording writes them again.\n\n# Findings\n",
    );
    let layer = Expected { link_layer: Some(LinkLayer::INFINIBAND), ..Expected::default() };
    let needs = Expected { umad: true, rdma_cm: true, ..Expected::default() };
    let bare = Inventory { modules: Vec::new(), ..good() };
    let (unlooked, refused) = without_nodes();
    let harmed = HARMS.iter().map(|(_, harm)| {
        let mut inventory = good();
        harm(&mut inventory);
        check(&inventory, Expected::default())
    });
    for finding in harmed
        .flatten()
        .chain(check(&good(), layer))
        .chain(check(&good(), needs))
        .chain(check(&bare, needs))
        .chain(check(&refused, needs))
        .chain(check(&unlooked, needs))
    {
        let Finding { name, severity, seen, advice, .. } = finding;
        let line = format!("{severity}: {name}: {seen}\n    {advice}\n");
        if !text.contains(&line) {
            text += &line;
        }
    }
    tell_deviations(&mut text);
    text += "\n# Ports that are down\n";
    for layer in [LinkLayer::ETHERNET, LinkLayer::INFINIBAND] {
        for phys_state in 0..9 {
            let attributes = PortAttributes {
                state: PortState::INIT,
                phys_state: PhysState(phys_state),
                link_layer: layer,
                ..PortAttributes::default()
            };
            let (seen, advice) = why_down(&attributes);
            let _ = writeln!(text, "{layer}: {seen}\n    {advice}");
        }
    }
    tell_rows(&mut text);
    text += "\n# Reasons against a row that is taken\n";
    for caveat in [
        Caveat::LinkLocal,
        Caveat::V1,
        Caveat::Foreign,
        Caveat::WithoutAddress,
        Caveat::TypeUnread,
        Caveat::Unproven,
        Caveat::Unknown,
        Caveat::BetterUnknown(3),
        Caveat::MayBeUnheard,
        Caveat::Down,
        Caveat::AddressGone,
        Caveat::Unfit(Unfit::FarEnd),
        Caveat::BeyondByte,
    ] {
        let _ = writeln!(text, "{caveat}");
    }
    text += "\n# Ports\n";
    let whys = [
        Why::Disabled,
        Why::NotActive(PortState::INIT),
        Why::LinkLayer(LinkLayer::UNSPECIFIED),
        Why::NotListed("NCCL_IB_HCA"),
        Why::NoTable,
        Why::EmptyTable,
        Why::EmptyFirst(0),
        Why::OutsideFirst(255),
        Why::NoLowHalf(0),
        Why::UnreadableType(0),
        Why::NoTypes,
        Why::NoRoom,
        Why::Overrun,
        Why::BeyondRoom,
        Why::OtherPort,
        Why::BeyondSecond,
        Why::BadValue("UCX_IB_GID_INDEX"),
        Why::RangeCrash,
        Why::IndexAndSubnets,
        Why::NoRow,
        Why::Unwanted,
        Why::NotKnown(3),
        Why::LastEmpty,
    ];
    for why in whys {
        let _ = writeln!(text, "{}", Outcome::Ignored(why));
    }
    for outcome in [
        Outcome::Taken(3),
        Outcome::Empty(3),
        Outcome::Outside(255),
        Outcome::Fails(Why::NoRow),
        Outcome::ByLid,
    ] {
        let _ = writeln!(text, "{outcome}");
    }
    text
}

#[test]
fn wording_is_as_it_was_agreed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/wording.txt");
    if std::env::var_os("UPDATE_WORDING").is_some() {
        std::fs::write(&path, wording()).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), wording());
}
