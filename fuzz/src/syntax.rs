//! What people type: selectors, GUIDs, addresses and whole command lines. No panic, and what prints
//! reads back.

use std::net::Ipv6Addr;

use uverbs::choose::nccl::{self, Implementation};
use uverbs::choose::{Port, Row, ucx};
use uverbs::gid::{Gid, GidEntry, GidType};
use uverbs::guid::Guid;
use uverbs::inventory::settings;
use uverbs::selector::Selector;

/// Runs the target. The first byte says whether the rest is one text, or a command line whose words
/// end with a NUL.
///
/// # Panics
/// If a promise is broken.
pub fn run(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(rest);
    if *first == b'c' { command_line(&text, rest) } else { one_text(&text) }
}

fn one_text(text: &str) {
    variables(text);
    match text.parse::<Selector>() {
        Ok(selector) => {
            assert!(!selector.device.is_empty() && !selector.device.contains([':', '/']));
            let printed = selector.to_string();
            assert_eq!(printed.parse::<Selector>().as_ref(), Ok(&selector), "{printed:?}");
            assert!(selector.includes(&selector.device, selector.port.unwrap_or(7)));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    match text.parse::<Guid>() {
        Ok(guid) => {
            assert_eq!(guid.to_string().parse::<Guid>().as_ref(), Ok(&guid));
            assert_eq!(Guid::from_be_bytes(guid.to_be_bytes()), guid);
            assert_eq!(guid.is_zero(), guid.to_u64() == 0);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    if let Ok(address) = text.parse::<Ipv6Addr>() {
        let gid = Gid::from(address);
        assert_eq!(gid.to_string().parse::<Ipv6Addr>().as_ref(), Ok(&address));
        assert_eq!(gid.full().parse::<Ipv6Addr>().as_ref(), Ok(&address));
        assert_eq!(Gid::from_bytes(gid.to_bytes()), gid);
        let number = u128::from(gid.subnet_prefix()) << 64 | u128::from(gid.interface_id());
        assert_eq!(number, u128::from(address));
        assert_eq!(gid.is_zero(), number == 0);
        assert!(gid.ipv4().is_none_or(|v4| Gid::from(v4) == gid));
    }
}

/// All variables by which programs choose are set to this text: whatever they take is in the table
/// or has its reason.
fn variables(text: &str) {
    for setting in
        settings::parse(text.as_bytes(), "/etc/nccl.conf", &settings::Setting::everywhere())
    {
        assert!(setting.to_string().contains(&setting.name));
    }
    let row = |index, gid: Ipv6Addr| Row::new(index, Gid::from(gid), GidType::ROCE_V2);
    let link_local = Ipv6Addr::new(0xfe80, 0, 0, 0, 0x11, 0x22ff, 0xfe33, 0x4455);
    let mut port = Port::new("mlx5_0", 1);
    port.gid_tbl_len = 8;
    port.rows = vec![
        row(0, link_local),
        row(3, std::net::Ipv4Addr::new(10, 0, 0, 1).to_ipv6_mapped()),
        row(5, Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0x10)),
    ];
    let variable = |_: &str| Some(text);
    let nccl = nccl::Release::ALL
        .iter()
        .map(|(release, _)| Implementation::Nccl(*release))
        .chain([Implementation::Nvshmem])
        .map(|program| nccl::choose(&port, &nccl::Settings::new(program, variable)));
    let ucx = ucx::Release::ALL
        .iter()
        .map(|(release, _)| ucx::choose(&port, &ucx::Settings::new(*release, variable)));
    for decision in nccl.chain(ucx) {
        let _ = decision.outcome.to_string();
        for (index, reason) in decision.rows {
            assert!(port.rows.iter().any(|row| row.index == index));
            assert!(!reason.to_string().is_empty());
        }
    }
}

fn command_line(text: &str, raw: &[u8]) {
    let words: Vec<&str> = text.split('\0').take(12).collect();
    let mut gid = [0; 16];
    for (place, byte) in gid.iter_mut().zip(raw.iter().rev()) {
        *place = *byte;
    }
    for bytes in [gid, [0; 16], Gid::from(std::net::Ipv4Addr::new(10, 0, 0, 1)).to_bytes()] {
        let kind = GidType(u32::from(gid[0] % 4));
        let entry = GidEntry::new(1, 0, Gid::from_bytes(bytes)).with_type(kind);
        let line = std::iter::once("uverbs").chain(words.iter().copied());
        match uverbs_cli::filtered(line, &entry) {
            Ok(Some((wanted, passes))) => {
                assert!(!passes || wanted.is_none_or(|wanted| wanted == kind));
            }
            Ok(None) => {}
            Err(error) => assert!(!error.is_empty()),
        }
    }
}
