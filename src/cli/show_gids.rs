//! The output of mlnx-tools' `show_gids`, for scripts that were written for it.
//!
//! Tabs, no widths; the IPv4 column is filled for every GID whose first group is zero; what
//! is not RoCE v2 says `v1`. Two differences are meant: devices and indices are in numeric order (the
//! script has 10 before 2), and an interface is named only if it is in this network namespace.

use std::fmt::Write;
use std::net::Ipv4Addr;

use uverbs::gid::{Gid, GidType};

use crate::gid_row::Row;
use crate::text::printable;

const HEADING: &str = "\
DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4  \t\tVER\tDEV
---\t----\t-----\t---\t\t\t\t\t------------  \t---\t---
";

/// `fe80::`, which the script leaves out.
const PREFIX_ALONE: Gid = Gid::from_bytes([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);

/// The text, row by row.
#[derive(Debug, Default)]
pub(crate) struct ShowGids {
    text: String,
    count: usize,
}

impl ShowGids {
    pub(crate) fn add(&mut self, row: &Row<'_>) {
        let Row { device, port, index, gid, .. } = row;
        if gid.0.is_zero() || gid.0 == PREFIX_ALONE {
            return;
        }
        let device = printable(device);
        let _ = write!(self.text, "{device}\t{port}\t{index}\t{}\t", gid.0.full());
        let _ = match ipv4(row.gid.0) {
            Some(address) => write!(self.text, "{address}  \t"),
            None => write!(self.text, "\t\t"),
        };
        let version = match row.gid_type.0 {
            GidType::IB | GidType::ROCE_V1 => "v1".to_owned(),
            GidType::ROCE_V2 => "v2".to_owned(),
            newer => newer.to_string(),
        };
        let netdev = printable(row.netdev.unwrap_or_default());
        let _ = writeln!(self.text, "{version}\t{netdev}");
        self.count += 1;
    }

    pub(crate) fn end(self) -> String {
        format!("{HEADING}{}n_gids_found={}\n", self.text, self.count)
    }
}

/// The script's idea of an IPv4 address: the end of any GID whose first group is zero.
fn ipv4(gid: Gid) -> Option<Ipv4Addr> {
    match gid.to_bytes() {
        [0, 0, .., a, b, c, d] => Some(Ipv4Addr::new(a, b, c, d)),
        _ => None,
    }
}
