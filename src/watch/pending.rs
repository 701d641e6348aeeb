//! What must be read, and when.

use std::net::IpAddr;
use std::time::Duration;

use super::Origin;
use crate::inventory::{DeviceRecord, GidRow, Inventory};
use crate::netlink::route::gid_of;

/// How long nothing may be heard before a table is read. One change of an interface has many events.
const QUIET: Duration = Duration::from_millis(3);

/// The same for devices that come and go, which takes several steps.
const QUIET_DEVICES: Duration = Duration::from_millis(20);

/// The same for interfaces of which no device has rows. There may be very many.
const QUIET_INTERFACES: Duration = Duration::from_millis(500);

/// How long a reading waits at most where it is never quiet.
const LONGEST: Duration = Duration::from_secs(1);

/// When a table is read again after route netlink spoke, which is before the table is written.
const RUNGS: [Duration; 5] = [
    Duration::from_millis(10),
    Duration::from_millis(50),
    Duration::from_millis(200),
    Duration::from_secs(1),
    Duration::from_secs(5),
];

/// What is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// These devices, and what is no device's. There may be none.
    Devices(Vec<String>),
    All,
}

impl Scope {
    fn add(&mut self, other: Self) {
        match (&mut *self, other) {
            (Self::Devices(own), Self::Devices(other)) => {
                for name in other {
                    once(own, name);
                }
            }
            _ => *self = Self::All,
        }
    }
}

/// Adds what is not there yet.
pub(super) fn once<T: PartialEq>(list: &mut Vec<T>, own: T) {
    if !list.contains(&own) {
        list.push(own);
    }
}

/// A reading that is to come.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) scope: Scope,
    /// In their order.
    pub(super) origins: Vec<Origin>,
    /// When it was first wanted.
    first: Duration,
    /// When it is quiet, if nothing else is heard.
    quiet: Duration,
}

impl Pending {
    pub(super) fn new(now: Duration) -> Self {
        Self { scope: Scope::Devices(Vec::new()), origins: Vec::new(), first: now, quiet: now }
    }

    pub(super) fn add(&mut self, scope: Scope, origin: Origin, now: Duration) {
        let pause = match &scope {
            Scope::All => QUIET_DEVICES,
            Scope::Devices(devices) if devices.is_empty() => QUIET_INTERFACES,
            Scope::Devices(_) => QUIET,
        };
        self.quiet = match &self.scope {
            // What was wanted first can wait no longer than what is wanted now.
            Scope::Devices(devices) if devices.is_empty() => now + pause,
            _ => self.quiet.max(now + pause),
        };
        self.scope.add(scope);
        if let Err(place) = self.origins.binary_search(&origin) {
            self.origins.insert(place, origin);
        }
    }

    /// What was wanted meanwhile is read with it.
    pub(super) fn join(&mut self, meanwhile: Self) {
        self.quiet = self.quiet.max(meanwhile.quiet);
        self.scope.add(meanwhile.scope);
        self.origins.extend(meanwhile.origins);
        self.origins.sort_unstable();
        self.origins.dedup();
    }

    /// A reading that was not believed is made again.
    pub(super) fn again(mut self, now: Duration) -> Self {
        (self.first, self.quiet) = (now, now + Duration::from_millis(50));
        self
    }

    pub(super) fn due(&self) -> Duration {
        self.quiet.min(self.first + LONGEST)
    }
}

/// A row that is to come or to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ExpectedRow {
    pub(super) ip: IpAddr,
    /// The interface's index.
    pub(super) index: u32,
    pub(super) is_there: bool,
}

/// A device's table, to look rows up in: there may be many of them, and many that are expected.
struct Table<'i> {
    /// Ascending by GID.
    rows: Vec<&'i GidRow>,
    /// The types that each port has rows of: ports with types, ascending.
    types: Vec<(u32, u32)>,
}

impl<'i> Table<'i> {
    fn of(device: &'i DeviceRecord) -> Self {
        let mut rows: Vec<&GidRow> = device.all_rows().iter().collect();
        rows.sort_by_key(|row| row.record.entry.gid());
        let mut types: Vec<(u32, u32)> = rows.iter().map(|row| port_and_type(row)).collect();
        types.sort_unstable();
        types.dedup();
        Self { rows, types }
    }

    /// Whether there is no row of an address of an interface; or one of each type that its port has rows of, which the
    /// kernel writes one by one.
    fn has(&self, (ip, index): (IpAddr, u32), is_there: bool) -> bool {
        let gid = gid_of(ip);
        let of_it = |row: &&&GidRow| {
            let own = row.netdev.as_ref().map(|own| own.index);
            let own = own.or(row.record.entry.netdev_ifindex());
            own.is_none_or(|own| own.get() == index)
        };
        let first = self.rows.partition_point(|row| row.record.entry.gid() < gid);
        let rows = self.rows.iter().skip(first);
        let rows = rows.take_while(|row| row.record.entry.gid() == gid).filter(of_it);
        let own: Vec<(u32, u32)> = rows.map(|row| port_and_type(row)).collect();
        let Some((port, _)) = own.first() else { return !is_there };
        let first = self.types.partition_point(|own| own.0 < *port);
        let mut types = self.types.iter().skip(first).take_while(|own| own.0 == *port);
        is_there && types.all(|kind| own.contains(kind))
    }
}

/// What a row that is expected is about.
fn place((device, own): &(String, ExpectedRow)) -> (&str, IpAddr, u32) {
    (device, own.ip, own.index)
}

fn port_and_type(row: &GidRow) -> (u32, u32) {
    (row.record.entry.port(), row.record.entry.gid_type().0)
}

/// Readings of tables that may be written only now.
#[derive(Clone, Debug)]
pub(super) struct Ladder {
    start: Duration,
    rung: usize,
    devices: Vec<String>,
    /// Devices and rows. Of several that are about the same row the last one counts.
    expected: Vec<(String, ExpectedRow)>,
    /// Whether something may change of which it is not known what.
    is_open: bool,
}

impl Ladder {
    pub(super) fn new(now: Duration) -> Self {
        Self { start: now, rung: 0, devices: Vec::new(), expected: Vec::new(), is_open: false }
    }

    /// Begins from the lowest rung, with one more device.
    pub(super) fn add(&mut self, device: &str, expected: Option<ExpectedRow>, now: Duration) {
        (self.start, self.rung) = (now, 0);
        once(&mut self.devices, device.to_owned());
        match expected {
            Some(expected) => self.expected.push((device.to_owned(), expected)),
            None => self.is_open = true,
        }
    }

    pub(super) fn due(&self) -> Duration {
        self.start + RUNGS.get(self.rung).copied().unwrap_or_default()
    }

    /// The devices to read now.
    pub(super) fn scope(&self) -> Scope {
        Scope::Devices(self.devices.clone())
    }

    /// Goes on after a reading; `None` if there is no more to expect, or it was the last rung.
    pub(super) fn climb(mut self, inventory: &Inventory, now: Duration) -> Option<Self> {
        self.expected.sort_by(|one, other| place(one).cmp(&place(other)));
        // The last word counts.
        self.expected.dedup_by(|next, own| {
            let is_same = place(next) == place(own);
            if is_same {
                own.1 = next.1;
            }
            is_same
        });
        let mut left = Vec::new();
        for rows in self.expected.chunk_by(|one, other| one.0 == other.0) {
            let device = rows.first().and_then(|(device, _)| inventory.device(device));
            // Of a device that is gone nothing is to come.
            let Some(table) = device.map(Table::of) else { continue };
            let is_left =
                |(_, own): &&(String, ExpectedRow)| !table.has((own.ip, own.index), own.is_there);
            left.extend(rows.iter().filter(is_left).cloned());
        }
        self.expected = left;
        if self.expected.is_empty() && !self.is_open {
            return None;
        }
        while self.due() <= now {
            self.rung += 1;
            RUNGS.get(self.rung)?;
        }
        // The last one is only for rows that are still to come or to go.
        if self.rung + 1 == RUNGS.len() && self.expected.is_empty() {
            return None;
        }
        Some(self)
    }
}

#[cfg(test)]
mod linear;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;
    use crate::gid::{GidEntry, GidRecord, GidType};
    use crate::inventory::DeviceRecord;

    const MS: Duration = Duration::from_millis(1);

    /// A device with rows of these types and addresses.
    fn host(rows: &[(GidType, &str)]) -> Inventory {
        let mut own = DeviceRecord::new(Device::named("rxe0"));
        let entry = |(place, (gid_type, ip)): (usize, &(GidType, &str))| {
            let index = u32::try_from(place).unwrap();
            GidRecord::from(
                GidEntry::new(1, index, gid_of(ip.parse().unwrap())).with_type(*gid_type),
            )
            .into()
        };
        own.gids = Some(Ok(rows.iter().enumerate().map(entry).collect()));
        Inventory { devices: vec![own], ..Inventory::default() }
    }

    #[test]
    fn a_reading_waits_for_quiet_and_not_for_ever() {
        let one = || Scope::Devices(vec!["rxe0".to_owned()]);
        let mut pending = Pending::new(MS);
        pending.add(one(), Origin::Route, MS);
        assert_eq!(pending.due(), MS + QUIET);
        pending.add(one(), Origin::AsyncEvent, 3 * MS);
        assert_eq!(pending.due(), 3 * MS + QUIET);
        // Of other interfaces there may be news without an end: it is not waited for.
        pending.add(Scope::Devices(Vec::new()), Origin::Route, 4 * MS);
        assert_eq!(pending.scope, one());
        pending.add(Scope::All, Origin::Uevent, 5000 * MS);
        assert_eq!((pending.due(), &pending.scope), (MS + LONGEST, &Scope::All));
        assert_eq!(pending.origins.len(), 3);
    }

    #[test]
    fn what_is_seen_ends_the_ladder() {
        let (v1, v2) = (GidType::ROCE_V1, GidType::ROCE_V2);
        let before = host(&[(v1, "fe80::1"), (v2, "fe80::1")]);
        let half = host(&[(v1, "fe80::1"), (v2, "fe80::1"), (v1, "10.0.0.1")]);
        let whole = host(&[(v1, "fe80::1"), (v2, "fe80::1"), (v1, "10.0.0.1"), (v2, "10.0.0.1")]);
        let expected =
            |is_there| ExpectedRow { ip: "10.0.0.1".parse().unwrap(), index: 3, is_there };
        let mut ladder = Ladder::new(MS);
        ladder.add("rxe0", Some(expected(true)), MS);
        assert_eq!(ladder.due(), 11 * MS);
        let ladder = ladder.climb(&before, 12 * MS).unwrap();
        assert_eq!(ladder.due(), 51 * MS);
        let ladder = ladder.climb(&half, 60 * MS).unwrap();
        assert_eq!(ladder.due(), 201 * MS);
        assert!(ladder.clone().climb(&whole, 210 * MS).is_none(), "it is there");
        let ladder = ladder.climb(&before, 210 * MS).unwrap();
        let ladder = ladder.climb(&before, 1100 * MS).unwrap();
        assert_eq!(ladder.due(), 5001 * MS);
        assert!(ladder.climb(&before, 5100 * MS).is_none(), "it was the last rung");

        let mut gone = Ladder::new(MS);
        gone.add("rxe0", Some(expected(true)), MS);
        gone.add("rxe0", Some(expected(false)), MS);
        assert!(gone.clone().climb(&whole, 2 * MS).is_some());
        assert!(gone.clone().climb(&half, 2 * MS).is_some());
        assert!(gone.clone().climb(&before, 2 * MS).is_none());
        gone.add("rxe0", None, MS);
        let open = gone.climb(&before, 2 * MS).expect("more may change");
        assert!(open.climb(&before, 1100 * MS).is_none(), "no row is known to come");
    }
}
