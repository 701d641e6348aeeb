//! GID tables and the interfaces that are read after them, of one moment.

use std::collections::BTreeSet;

use nix::libc;

use crate::error::{Cause, Error, Request};
use crate::gid::{Gid, GidRecord};
use crate::host::{GidTable, table_again};
use crate::inventory::Problem;
use crate::netlink::route::{RouteDump, gid_of};
use crate::sysfs::Sysfs;

/// The names of the devices whose tables are others by now, or could not be read again, and why.
///
/// An interface or an address that went after a table was read, and before the interfaces were, leaves a row that seems to
/// be of another network namespace. So each table is read again that has a row which no interface explains. (By sysfs a row
/// has no index, and it is not known where its interface is.)
pub(super) fn changed_since(
    sysfs: &Sysfs,
    tables: &[Option<GidTable>],
    dump: &RouteDump,
) -> Vec<(String, Problem)> {
    let addresses: BTreeSet<(u32, Gid)> =
        dump.addresses.iter().map(|own| (own.index, gid_of(own.ip))).collect();
    let is_explained = |record: &&GidRecord| {
        let Some(index) = record.entry.netdev_ifindex() else { return true };
        let gid = record.entry.gid();
        let link = dump.links.by_index.get(&index.get());
        link.is_some_and(|link| {
            let made = link.mac.map(|mac| [Gid::of_roce(mac), Gid::of_iwarp(mac)]);
            addresses.contains(&(index.get(), gid)) || made.is_some_and(|own| own.contains(&gid))
        })
    };
    let why = |table: &GidTable| {
        let odd: Vec<&GidRecord> = table.iter().filter(|record| !is_explained(record)).collect();
        if odd.is_empty() {
            return None;
        }
        let again = match table_again(sysfs, table) {
            Ok(again) => again,
            Err(error) => return Some(error),
        };
        let is_there =
            |own: &GidRecord| again.row(own.entry.port(), own.entry.index()) == Some(own);
        let cause = Cause::Os(libc::EAGAIN);
        let error = Error::new(&*table.device().name, Request::GidTable, cause);
        (!odd.into_iter().all(is_there)).then_some(error)
    };
    let changed = tables.iter().flatten().filter_map(|table| Some((table, why(table)?)));
    changed.map(|(table, why)| (table.device().name.clone(), why.into())).collect()
}
