//! What is read of one device and its ports.

use nix::libc;

use crate::context::probe_driver;
use crate::device::Device;
use crate::error::{Cause, Error};
use crate::host::{GidRecord, GidTable, Preference, Reader};
use crate::inventory::{Answer, DeviceRecord, GidRow, Parts, PortRecord, Problem, Wanted};
use crate::pkey::PKey;
use crate::port::{LinkLayer, Rate};
use crate::sysfs::Sysfs;

/// Asks a device for its driver, if netlink did not name it. Not to know the driver of a device that
/// cannot be asked is no problem.
pub(super) fn find_driver(record: &mut DeviceRecord) {
    let device = &mut record.device;
    if device.driver.is_some() || device.node.is_none() {
        return;
    }
    match probe_driver(device) {
        Ok(driver) => device.driver = Some(driver),
        Err(error) if error.leaves_no_ioctl() => {}
        Err(error) => record.access = Some(Err(error.into())),
    }
}

/// Reads what carries the device. Where sysfs is masked, nothing is known of it.
pub(super) fn find_hardware(record: &mut DeviceRecord, sysfs: &Sysfs) {
    let device = &record.device;
    let hardware = sysfs.of(device).and_then(|sysfs| sysfs.hardware(&device.name));
    record.hardware = hardware.ok();
}

/// Reads a device; gives its GID table, by which the rows are named.
pub(super) fn read_device(
    record: &mut DeviceRecord,
    sysfs: &Sysfs,
    wanted: &Wanted<'_>,
) -> Option<GidTable> {
    let device = record.device.clone();
    let parts = wanted.parts;
    let numbers = device.ports().filter(|port| parts.has_ports() && (wanted.ports)(&device, *port));
    let mut reader = match Reader::new(&device, sysfs, wanted.preference) {
        Ok(reader) => reader,
        Err(error) => {
            let problem = Problem::from(error);
            record.access = Some(Err(problem.clone()));
            record.ports = numbers.map(|port| unread(port, &problem)).collect();
            record.gids = parts.gids.then_some(Err(problem));
            return None;
        }
    };
    let mut table = None;
    if parts.gids {
        let gids = match wanted.slot {
            Some((port, index)) => read_slot(&mut reader, port, index, &mut table),
            None => reader.gid_table().map(|read| table.insert(read).to_vec()),
        };
        let row = GidRow::from;
        let gids = gids.map(|records| records.into_iter().map(row).collect());
        record.gids = Some(gids.map_err(Problem::from));
    }
    for port in numbers {
        record.ports.push(read_port(&mut reader, &device, port, parts));
    }
    if wanted.preference != Preference::Sysfs {
        record.access = Some(reader.fallback().map_or(Ok(()), |error| Err(error.into())));
    }
    if let Some(context) = reader.context() {
        record.device.driver = Some(context.driver());
    }
    table
}

/// Reads one entry; and if it has an interface, the table it is in, which shows whose that is. Then it is the entry as
/// the table has it: another may have taken the slot meanwhile.
fn read_slot(
    reader: &mut Reader<'_>,
    port: u32,
    index: u32,
    table: &mut Option<GidTable>,
) -> Result<Vec<GidRecord>, Error> {
    let record = reader.gid(port, index)?;
    if !record.as_ref().is_some_and(GidRecord::may_have_netdev) {
        return Ok(record.into_iter().collect());
    }
    let table = table.insert(reader.gid_table()?);
    let is_in_slot = |own: &&GidRecord| (own.entry.port(), own.entry.index()) == (port, index);
    Ok(table.iter().filter(is_in_slot).cloned().collect())
}

/// A port of a device that cannot be read at all.
fn unread(number: u32, problem: &Problem) -> PortRecord {
    PortRecord {
        attributes: Some(Err(problem.clone())),
        guid: Err(problem.clone()),
        ..PortRecord::new(number)
    }
}

fn read_port(reader: &mut Reader<'_>, device: &Device, number: u32, parts: Parts) -> PortRecord {
    let mut record = PortRecord::new(number);
    if parts.attributes {
        record.attributes = Some(reader.port(number).map_err(Problem::from));
    }
    if parts.effective {
        let asked = reader.context().map(|context| context.query_port_speed(number));
        // Kernels before 7.0 do not know the method, and most drivers do not offer it. A port without an interface has no
        // speed. Where there is no ioctl, the reader says why.
        let is_offered = |answer: &Result<Rate, Error>| {
            let error = answer.as_ref().err();
            let is_none = |it: &Error| *it.cause() == Cause::Os(libc::ENODEV);
            !error.is_some_and(|it| it.is_not_supported() || it.leaves_no_ioctl() || is_none(it))
        };
        record.effective = asked.filter(is_offered).map(|answer| answer.map_err(Problem::from));
    }
    if parts.guids {
        record.guid = reader.port_guid(number).map_err(Problem::from);
    }
    if parts.pkeys {
        record.pkeys = match link_layer(reader, &device.name, &record) {
            Ok(Some(LinkLayer::ETHERNET)) => None,
            Ok(_) => Some(read_pkeys(reader, &device.name, number).map_err(Problem::from)),
            Err(problem) => Some(Err(problem)),
        };
    }
    if parts.types {
        record.has_types = has_types(reader, &device.name, number);
    }
    record
}

/// The link layer of a port, if the attributes are wanted. Sysfs has it also where these cannot be read.
fn link_layer(reader: &Reader<'_>, device: &str, record: &PortRecord) -> Answer<Option<LinkLayer>> {
    let by_sysfs = || {
        let folder = reader.sysfs().ok()?.port(device, record.number).ok()?;
        LinkLayer::of_sysfs(&folder).ok()
    };
    match &record.attributes {
        None => Ok(None),
        Some(Ok((own, _))) => Ok(Some(own.link_layer)),
        Some(Err(problem)) => by_sysfs().map(Some).ok_or_else(|| problem.clone()),
    }
}

/// The P_Keys in use.
fn read_pkeys(reader: &Reader<'_>, device: &str, port: u32) -> Result<Vec<(u32, PKey)>, Error> {
    let mut pkeys = reader.sysfs()?.query_pkeys(device, port)?;
    pkeys.retain(|(_, pkey)| pkey.is_valid());
    Ok(pkeys)
}

/// Whether the files can be read that hold the types of a port's GIDs, which NCCL reads. Not known if
/// they cannot be looked at, or if another device is in this one's place, as in another namespace's sysfs.
fn has_types(reader: &Reader<'_>, device: &str, port: u32) -> Option<bool> {
    match reader.sysfs() {
        Ok(own) => {
            let port = own.port(device, port).ok()?;
            let types = port.join("gid_attrs/types");
            // Something may cover the folder. A table of length 0 has no files.
            let is_empty = || types.join("0").is_gone() && !port.join("gids/0").is_gone();
            types.can_be_read().map(|can_be_read| can_be_read && !is_empty())
        }
        Err(_) => reader.has_no_name_in_sysfs().then_some(false),
    }
}

#[cfg(all(test, feature = "simulated-kernel"))]
#[expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use core::num::NonZeroU32;

    use rustix::io::Errno;
    use uverbs_uapi::device::{self as abi, method};
    use zerocopy::IntoBytes;

    use super::*;
    use crate::context::Context;
    use crate::driver::DriverId;
    use crate::gid::{Gid, GidEntry, GidType};
    use crate::simulated::{SimulatedKernel, UserMemory};

    /// Has a row of interface 2, and in the table, which is read later, that of interface 3 with the same GID.
    #[derive(Debug)]
    struct Replacing;

    fn entry(ifindex: u32) -> GidEntry {
        let gid = Gid::of_roce([2, 0x11, 0x22, 0x33, 0x44, 0x55]);
        let entry = GidEntry::new(1, 0, gid).with_type(GidType::ROCE_V2);
        entry.with_netdev_ifindex(NonZeroU32::new(ifindex))
    }

    impl SimulatedKernel for Replacing {
        fn ioctl(&self, request: &mut [u8], memory: &UserMemory<'_>) -> Result<(), Errno> {
            let asked = u16::from_ne_bytes([request[4], request[5]]);
            let mut answer = |id: u16, bytes: &[u8]| -> Result<(), Errno> {
                let mut attributes = request[24..].chunks_exact_mut(16);
                let own = attributes.find(|own| own[..2] == id.to_ne_bytes()).unwrap();
                memory.write(u64::from_ne_bytes(own[8..].try_into().unwrap()), bytes)?;
                // `VALID_OUTPUT`.
                let flags = u16::from_ne_bytes([own[4], own[5]]) | 2;
                own[4..6].copy_from_slice(&flags.to_ne_bytes());
                Ok(())
            };
            match asked {
                method::GET_CONTEXT => Ok(()),
                method::QUERY_GID_ENTRY => answer(3, abi::GidEntry::from(entry(2)).as_bytes()),
                method::QUERY_GID_TABLE => {
                    answer(2, abi::GidEntry::from(entry(3)).as_bytes())?;
                    answer(3, &1u64.to_ne_bytes())
                }
                _ => Err(Errno::PROTONOSUPPORT),
            }
        }
    }

    #[test]
    fn types_that_cannot_be_looked_at_may_be_there() {
        let tree = tempfile::tempdir().unwrap();
        let (device, sysfs) = (Device::named("x"), Sysfs::at(tree.path()));
        let has = || {
            let reader = Reader::new(&device, &sysfs, Preference::Sysfs).unwrap();
            has_types(&reader, "x", 1)
        };
        assert_eq!(has(), Some(false), "there is no sysfs");
        let folder = tree.path().join("class/infiniband/x/ports/1");
        std::fs::create_dir_all(&folder).unwrap();
        assert_eq!(has(), Some(false));
        std::fs::write(folder.join("gid_attrs"), "").unwrap();
        assert_eq!(has(), Some(false));
        std::fs::remove_file(folder.join("gid_attrs")).unwrap();
        let types = folder.join("gid_attrs/types");
        std::fs::create_dir_all(&types).unwrap();
        assert_eq!(has(), Some(true), "a table of length 0");
        std::fs::create_dir_all(folder.join("gids")).unwrap();
        std::fs::write(folder.join("gids/0"), "").unwrap();
        assert_eq!(has(), Some(false), "something covers the folder");
        std::fs::write(types.join("0"), "").unwrap();
        assert_eq!(has(), Some(true));
        std::fs::remove_file(types.join("0")).unwrap();
        // A circle, which no user can look at.
        std::fs::remove_dir(&types).unwrap();
        std::os::unix::fs::symlink(&types, &types).unwrap();
        assert_eq!(has(), None);
    }

    #[test]
    fn a_port_that_cannot_be_asked_has_p_keys_on_its_link_layer_only() {
        let tree = tempfile::tempdir().unwrap();
        let (device, sysfs) = (Device::named("x"), Sysfs::at(tree.path()));
        let folder = tree.path().join("class/infiniband/x");
        std::fs::create_dir_all(folder.join("ports/1/pkeys")).unwrap();
        std::fs::write(folder.join("node_type"), "1: CA\n").unwrap();
        std::fs::write(folder.join("ports/1/pkeys/0"), "0xffff\n").unwrap();
        let parts = Parts { attributes: true, pkeys: true, ..Parts::LISTED };
        let pkeys = |link_layer: &str| {
            std::fs::write(folder.join("ports/1/link_layer"), link_layer).unwrap();
            let mut reader = Reader::new(&device, &sysfs, Preference::Sysfs).unwrap();
            let port = read_port(&mut reader, &device, 1, parts);
            assert!(port.attributes.unwrap().is_err());
            port.pkeys
        };
        assert_eq!(pkeys("Ethernet\n"), None);
        assert_eq!(pkeys("InfiniBand\n"), Some(Ok(vec![(0, PKey(0xffff))])));
        assert!(pkeys("odd\n").unwrap().is_err());
    }

    #[test]
    fn a_row_is_the_one_of_the_table_that_names_it() {
        let (device, sysfs) = (Device::named("x"), Sysfs::at("/nowhere"));
        let context = Context::simulated("x", 1..=1, DriverId::RXE, Box::new(Replacing)).unwrap();
        let mut reader = Reader::simulated(&device, &sysfs, Preference::Ioctl, context);
        let mut table = None;
        let rows = read_slot(&mut reader, 1, 0, &mut table).unwrap();
        assert_eq!(rows, [GidRecord::from(entry(3))]);
        assert_eq!(rows, table.unwrap().to_vec());
    }
}
