//! The output of mlnx-tools' `show_gids`, for scripts that were written for it.
//!
//! Tabs alone, no widths; the IPv4 column is filled for every GID whose first group is zero; what
//! is not RoCE v2 says `v1`. Two differences are meant: indices are in numeric order (the script
//! has 10 before 2), and an interface is named only if it is in this network namespace.

use std::fmt::Write;
use std::net::Ipv4Addr;

use uverbs::gid::{Gid, GidType};

use crate::gids::Row;
use crate::output::printable;

const HEADING: &str = "\
DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4  \t\tVER\tDEV
---\t----\t-----\t---\t\t\t\t\t------------  \t---\t---
";

/// `fe80::`, which the script leaves out.
const PREFIX_ALONE: Gid = Gid::from_bytes([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);

pub(crate) fn print(rows: &[Row<'_>]) -> String {
    let mut text = HEADING.to_owned();
    let mut count = 0;
    for row in rows.iter().filter(|row| !row.gid.0.is_zero() && row.gid.0 != PREFIX_ALONE) {
        let Row { device, port, index, gid, .. } = row;
        let device = printable(device);
        let _ = write!(text, "{device}\t{port}\t{index}\t{}\t", gid.0.full());
        let _ = match ipv4(row.gid.0) {
            Some(address) => write!(text, "{address}  \t"),
            None => write!(text, "\t\t"),
        };
        let version = match row.gid_type.0 {
            GidType::IB | GidType::ROCE_V1 => "v1".to_owned(),
            GidType::ROCE_V2 => "v2".to_owned(),
            newer => newer.to_string(),
        };
        let _ = writeln!(text, "{version}\t{}", printable(row.netdev.unwrap_or_default()));
        count += 1;
    }
    let _ = writeln!(text, "n_gids_found={count}");
    text
}

/// The script's idea of an IPv4 address: the end of any GID whose first group is zero.
fn ipv4(gid: Gid) -> Option<Ipv4Addr> {
    match gid.to_bytes() {
        [0, 0, .., a, b, c, d] => Some(Ipv4Addr::new(a, b, c, d)),
        _ => None,
    }
}
