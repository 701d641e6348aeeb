//! `uverbs snapshot`: everything that the other commands read, as one JSON document.
//!
//! `tests/schemas/snapshot.json` describes the document; the library reads and writes it
//! (`uverbs::inventory::Snapshots`).

use std::time::SystemTime;

use uverbs::inventory::{Inventory, Snapshots, Wanted};
use uverbs::watch::format_time;

use crate::args::{Common, SnapshotArgs};
use crate::hosts::live;
use crate::output;
use crate::report::Report;
use crate::status::Status;
use crate::text::plain_json;

pub(crate) fn answer(
    common: &Common,
    args: &SnapshotArgs,
    report: &mut Report,
) -> serde_json::Result<output::Output> {
    let wanted = Wanted::default().preference(args.source.preference(common));
    let text = write(&live(common, &wanted), SystemTime::now())?;
    // What this program would refuse may be an odd name or a value that is too long.
    if let Some(Err(error)) = Snapshots::new(text.as_bytes()).next() {
        report.raise(Status::Failed);
        report.note(format!("--from will not read this: {error}"));
    }
    Ok(output::Output::Text(text.into_bytes()))
}

/// The document of a host, on a line, with when and by what it was written: after the first key, by which
/// documents are found.
fn write(inventory: &Inventory, time: SystemTime) -> serde_json::Result<String> {
    let text = serde_json::to_string(inventory)?;
    let (first, rest) = text.split_once(',').unwrap_or_default();
    let time = format_time(time, 0);
    let version = env!("CARGO_PKG_VERSION");
    let text =
        format!("{first},\"written_at\":\"{time}\",\"written_by\":\"uverbs {version}\",{rest}");
    Ok(plain_json(&text).into_owned() + "\n")
}

#[cfg(test)]
mod tests {
    use core::num::NonZeroU32;

    use proptest::prelude::*;
    use uverbs::device::{Absence, Device};
    use uverbs::driver::DriverId;
    use uverbs::host::Source;
    use uverbs::inventory::{Problem, Setting, SettingsReading, SnapshotError};
    use uverbs::netdev::{Interface, Netdev};
    use uverbs::pkey::PKey;
    use uverbs::port::{Mtu, PortAttributes, Rate};

    use super::*;
    use crate::testing::host;

    fn parse(text: &str) -> Result<Inventory, SnapshotError> {
        Snapshots::new(text.as_bytes()).next().unwrap()
    }

    fn write(inventory: &Inventory) -> String {
        super::write(inventory, SystemTime::UNIX_EPOCH).unwrap()
    }

    /// A host with something in every field.
    fn full() -> Inventory {
        let (_folder, mut host) = host();
        let mut inventory = host.inventory(&Wanted::default());
        let netdev = Netdev::new(NonZeroU32::MIN, "eth0");
        inventory.host = Some("node1".into());
        inventory.kernel = Some("6.12.0".into());
        inventory.shares_namespaces = Some(true);
        inventory.modules.push("ib_core".into());
        let mut interface = Interface::new(NonZeroU32::MAX, "eth0");
        interface.is_up = true;
        interface.mtu = 9000;
        interface.mac = Some([0, 1, 2, 0xfd, 0xfe, 0xff]);
        interface.addresses =
            vec![("10.0.0.1".parse().unwrap(), 24), ("fd00::1".parse().unwrap(), 64)];
        inventory.interfaces = Some(vec![interface]);
        inventory.absences = vec![
            Absence::NoModule,
            Absence::NoDevice,
            Absence::OtherNamespace { device: "mlx5_1".into(), node: "uverbs1".into() },
            Absence::NoNodes { folder: "/dev/infiniband".into() },
        ];
        let file = Some("/etc/nccl.conf".into());
        let name = "NCCL_IB_HCA";
        let setting = Setting::new(name, "^=a b", file);
        let read_by = |readings| {
            let mut own = setting.clone();
            own.readings = readings;
            own
        };
        let old = read_by(SettingsReading::V2_4..=SettingsReading::V2_23);
        let middle = read_by(SettingsReading::V2_23..=SettingsReading::V2_23);
        let new = read_by(SettingsReading::V2_30..=SettingsReading::V2_30);
        inventory.settings = vec![setting, new, middle, old];
        inventory.problems = vec![Problem { text: "host: no".into(), errno: 5 }];
        let mut other = Device::named("other");
        (other.port_count, other.node_is_unread) = (7, true);
        inventory.others = vec![other];
        let record = &mut inventory.devices[0];
        // What identifies the live device is not written.
        let live = std::mem::replace(&mut record.device, Device::named("rxe0"));
        record.device.node_guid = live.node_guid;
        record.device.sys_image_guid = live.sys_image_guid;
        record.device.node = live.node;
        record.device.driver = Some(DriverId(99));
        record.device.fw_version = Some("1.2".into());
        record.place = Some(7);
        record.node_mode = Some(0o20_600);
        (record.node_is_missing, record.node_is_in_nodev) = (true, true);
        record.node_is_read_only = true;
        record.ports[0].netdev = Ok(Some(netdev.clone()));
        record.ports[0].pkeys = Some(Ok(vec![(0, PKey(0xffff))]));
        record.ports[0].effective = Some(Ok(Rate(25)));
        let empty = PortAttributes::default;
        let mut attributes = empty();
        attributes.active_mtu = Some(Mtu(99));
        record.ports[0].attributes = Some(Ok((attributes, Source::Ioctl)));
        let row = &mut record.gids.as_mut().unwrap().as_mut().unwrap()[0];
        (row.netdev, row.type_is_hidden) = (Some(netdev), true);
        let mut broken = record.clone();
        broken.device.name = "broken".into();
        broken.gids = Some(Err(Problem { text: "broken: no".into(), errno: 22 }));
        broken.ports[0].attributes = Some(Err(Problem { text: "broken: no".into(), errno: 22 }));
        broken.ports[0].effective = Some(Err(Problem { text: "broken: no".into(), errno: 5 }));
        broken.ports[0].pkeys = Some(Err(Problem { text: "broken: no".into(), errno: 22 }));
        broken.ports[0].netdev = Err(Problem { text: "broken: no".into(), errno: 5 });
        broken.access = None;
        inventory.devices.push(broken);
        inventory
    }

    #[test]
    fn what_was_written_is_read() {
        let inventory = full();
        assert_eq!(parse(&write(&inventory)).unwrap(), inventory);
        let empty = Inventory::default();
        assert_eq!(parse(&write(&empty)).unwrap(), empty);
    }

    proptest! {
        /// Whatever is changed in a file: it is read, and then written and read alike, or refused.
        #[test]
        fn any_file_is_read_or_refused(
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        ) {
            let mut bytes = write(&full()).into_bytes();
            for (place, byte) in changes {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
            if let Ok(inventory) = parse(&String::from_utf8_lossy(&bytes)) {
                prop_assert_eq!(parse(&write(&inventory)).unwrap(), inventory);
            }
        }
    }
}
