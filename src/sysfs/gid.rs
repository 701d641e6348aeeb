//! GIDs by sysfs: `gids`, `gid_attrs/types` and `gid_attrs/ndevs` of each port, with the meaning that
//! rdma-core gives them.

use std::path::Path;

use nix::libc;

use super::folder::Unread;
use super::port::{NO_SLOTS, while_whole};
use super::{Folder, PORTS, Sysfs, of_file};
use crate::device::NodeType;
use crate::error::{Cause, Error, Request, Result};
use crate::gid::{Gid, GidEntry, GidRecord, GidType, SLOT_READS, Source};
use crate::port::LinkLayer;
use crate::text::{is_interface_name, is_shown_name};

impl Sysfs {
    /// One entry of a port's GID table: `None` if the slot is empty.
    ///
    /// Reads a few files; needs no rights and no uverbs node. The interface's name is the kernel's, in
    /// the interface's own network namespace; the record has no interface index.
    ///
    /// ```no_run
    /// if let Some(record) = uverbs::Sysfs::host().query_gid_ex("mlx5_0", 1, 3)? {
    ///     println!("{} {:?}", record.entry.gid(), record.sysfs_netdev);
    /// }
    /// # Ok::<(), uverbs::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errno of a file that cannot be read. Also `ENODEV` or `ENAMETOOLONG`: no device can have the name;
    /// `ENOENT`: no such device, here or any more, or a part of its files is missing; `EINVAL`: no such port, or the index
    /// is outside its table; `EPROTO`: a file that does not read as it should, or a port that comes or goes; `EAGAIN`: the
    /// slot changes each time that it is read.
    #[doc(alias = "ibv_query_gid_ex")]
    pub fn query_gid_ex(&self, device: &str, port: u32, index: u32) -> Result<Option<GidRecord>> {
        let request = || Request::GidEntry { port, index };
        self.steadily(device, request, |sysfs| {
            let folder =
                sysfs.port(device, port).map_err(|cause| Error::new(device, request(), cause))?;
            read_gid(&folder, port, index).map_err(|(path, cause)| {
                let gids = folder.join("gids");
                // What is left of a table with a gap, or of a port that goes, does not say what is outside it.
                let cause = match (cause, gid_slots(&folder)) {
                    (Cause::Os(libc::ENOENT), Err((_, why @ Cause::MalformedFile { .. }))) => why,
                    (cause, _) => cause,
                };
                // Each port has the folder, also without a slot: this tree is a part of a sysfs.
                let slot =
                    if gids.is_missing() { folder.clone() } else { gids.join(index.to_string()) };
                sysfs.missing_or(device, &folder, &slot, request(), (path, cause))
            })
        })
    }

    /// All valid entries of all ports, ascending by port and index.
    ///
    /// ```no_run
    /// for record in uverbs::Sysfs::host().query_gid_table("mlx5_0")? {
    ///     println!("{} {} {}", record.entry.port(), record.entry.index(), record.entry.gid());
    /// }
    /// # Ok::<(), uverbs::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errno of a file that cannot be read. Also `ENODEV` or `ENAMETOOLONG`: no device can have the name;
    /// `ENOENT`: no such device, here or any more, or a part of its files is missing; `EPROTO`: a file that does not
    /// read as it should, port numbers with a gap, or a port that comes or goes; `EAGAIN`: a slot changes each time that
    /// it is read.
    #[doc(alias = "ibv_query_gid_table")]
    pub fn query_gid_table(&self, device: &str) -> Result<Vec<GidRecord>> {
        Ok(self.gid_slots(device)?.1.into_iter().filter_map(|slot| slot.gid).collect())
    }

    /// The ports, and all their slots, ascending by port and index.
    pub(crate) fn gid_slots(&self, device: &str) -> Result<(Vec<u32>, Vec<Slot>)> {
        self.steadily(device, || Request::GidTable, |sysfs| sysfs.read_slots(device))
    }

    fn read_slots(&self, device: &str) -> Result<(Vec<u32>, Vec<Slot>)> {
        let error = |path: &Path, cause| {
            Error::new(device, Request::Sysfs { path: path.to_owned() }, cause)
        };
        let own =
            self.device(device).map_err(|cause| Error::new(device, Request::GidTable, cause))?;
        let node_type = NodeType::of_sysfs(&own).map_err(|cause| ("node_type", cause));
        let numbers = node_type
            .and_then(|node_type| own.port_numbers(node_type))
            .map_err(|(file, cause)| error(own.join(file).path(), cause))?;
        let mut slots = Vec::new();
        for &port in &numbers {
            let folder = own.join(PORTS).join(port.to_string());
            for index in gid_slots(&folder).map_err(|(path, cause)| error(&path, cause))? {
                let gid = read_gid(&folder, port, index)
                    .map_err(|unread| of_file(device, Request::GidEntry { port, index }, unread))?;
                slots.push(Slot { port, index, gid });
            }
        }
        Ok((numbers, slots))
    }
}

/// A slot of a port's GID table, as sysfs shows it.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) port: u32,
    pub(crate) index: u32,
    /// What is in it.
    pub(crate) gid: Option<GidRecord>,
}

/// The slots of a port's table. The kernel makes as many files of types.
pub(crate) fn gid_slots(port: &Folder) -> Result<Vec<u32>, Unread> {
    while_whole(port, || {
        let slots = port.join("gids").slots().map_err(port.unread("gids"))?;
        if slots.is_empty() && !port.join("gid_attrs/types").has_none() {
            return Err(port.unread("gids")(port.malformed("gids", NO_SLOTS)));
        }
        Ok(slots)
    })
}

/// Reads a slot's files; none if it is empty.
///
/// They are three files, and the slot may change between them. So the GID is read once more at
/// the end. Only if it is unchanged, the answers belong together.
fn read_gid(port_folder: &Folder, port: u32, index: u32) -> Result<Option<GidRecord>, Unread> {
    let name = index.to_string();
    let gids = port_folder.join("gids");
    let read = || {
        let text = gids.read(&name).map_err(gids.unread(&name))?;
        let malformed = || gids.unread(&name)(gids.malformed(&name, "a GID"));
        Gid::parse_full(&text).ok_or_else(malformed)
    };
    let mut gid = read()?;
    for _ in 0..SLOT_READS {
        if gid.is_zero() {
            return Ok(None);
        }
        let gid_type = read_gid_type(port_folder, &name);
        let netdev = read_netdev(port_folder, &name);
        let again = read()?;
        if again == gid {
            let gid_type = gid_type?;
            let entry =
                GidEntry::new(port, index, gid).with_type(gid_type.unwrap_or(GidType::UNNAMED));
            // What cannot be read is not known; what cannot be a name is a broken answer.
            if let Err(cause @ Cause::MalformedFile { .. }) = netdev {
                return Err(gids.unread(&name)(cause));
            }
            let is_hidden = gid_type.is_none();
            // Each row of RoCE has an interface, also if the file does not name it.
            let is_roce = gid_type != Some(GidType::IB);
            let is_unread = netdev.as_ref().map_or(true, |name| is_roce && name.is_none());
            let record = GidRecord::new(entry, Source::Sysfs)
                .with_sysfs_netdev(netdev.unwrap_or_default())
                .with_netdev_unread(is_unread)
                .with_type_unread(is_hidden);
            return Ok(Some(record));
        }
        gid = again;
    }
    Err(gids.unread(&name)(Cause::Os(libc::EAGAIN)))
}

/// Reads `gid_attrs/ndevs/I`; none if the kernel names no interface, which it says by EINVAL.
fn read_netdev(port_folder: &Folder, name: &str) -> Result<Option<String>, Cause> {
    let names = port_folder.join("gid_attrs/ndevs");
    match names.read_any_name(name) {
        Ok(text) if text.trim().is_empty() => Ok(None),
        Ok(text) if is_shown_name(&text) && !text.contains('\u{fffd}') => Ok(Some(text)),
        // Here such an interface goes by its index, which is not known. To the kernel all that is not ASCII is letters.
        Ok(text) if is_interface_name(&text.replace(|c: char| !c.is_ascii(), "_")) => {
            Err(Cause::Os(libc::ENODATA))
        }
        Ok(_) => Err(names.malformed(name, "an interface's name")),
        Err(Cause::Os(libc::EINVAL)) => Ok(None),
        // Kernels without the folder know no interfaces.
        Err(Cause::Os(libc::ENOENT)) if names.is_missing() => Ok(None),
        Err(cause) => Err(cause),
    }
}

/// Reads `gid_attrs/types/I`; none if the kernel keeps the type back. The file has the same text for
/// InfiniBand, iWARP and RoCE v1: the link layer and the node type make the difference.
fn read_gid_type(port_folder: &Folder, name: &str) -> Result<Option<GidType>, Unread> {
    let attributes = port_folder.join("gid_attrs");
    let types = attributes.join("types");
    match types.read(name) {
        Ok(text) => match text.as_str() {
            "RoCE v2" => return Ok(Some(GidType::ROCE_V2)),
            // A copy of a file that could not be read.
            "" if is_roce(port_folder)? => return Ok(None),
            "IB/RoCE v1" | "" => {}
            _ => return Ok(Some(GidType::UNNAMED)),
        },
        // What old kernels say of a slot that is not RoCE; and that of MLNX_OFED of a row of another
        // namespace, whatever its type is.
        Err(Cause::Os(libc::EINVAL)) if is_roce(port_folder)? => return Ok(None),
        Err(Cause::Os(libc::EINVAL)) => {}
        // Every kernel since Linux 4.5 has the folder: the port is being removed, or this tree is a part of a sysfs.
        Err(Cause::Os(libc::ENOENT)) if attributes.is_missing() && !port_folder.is_of_kernel() => {
            if is_roce(port_folder)? {
                return Ok(None);
            }
        }
        Err(cause) => return Err(types.unread(name)(cause)),
    }
    Ok(Some(if is_roce(port_folder)? { GidType::ROCE_V1 } else { GidType::IB }))
}

/// Whether the port is one of RoCE.
fn is_roce(port_folder: &Folder) -> Result<bool, Unread> {
    let device = port_folder.device_of_port();
    let link_layer = LinkLayer::of_sysfs(port_folder).map_err(port_folder.unread("link_layer"))?;
    Ok(link_layer == LinkLayer::ETHERNET
        && NodeType::of_sysfs(&device).map_err(device.unread("node_type"))? == NodeType::CA)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK_LOCAL: &str = "fe80:0000:0000:0000:0011:22ff:fe33:4455";

    // Miri has no `openat`.
    #[cfg(not(miri))]
    #[test]
    fn an_unreadable_interface_is_not_none() {
        let root = std::env::temp_dir().join(format!("uverbs-ndevs-{}", std::process::id()));
        let port = root.join("class/infiniband/rxe0/ports/1");
        for folder in ["gids", "gid_attrs/types", "gid_attrs/ndevs/1"] {
            std::fs::create_dir_all(port.join(folder)).unwrap();
        }
        std::fs::write(port.join("../../node_type"), "1: CA\n").unwrap();
        for slot in 0..3 {
            std::fs::write(port.join(format!("gids/{slot}")), LINK_LOCAL).unwrap();
            std::fs::write(port.join(format!("gid_attrs/types/{slot}")), "RoCE v2\n").unwrap();
        }
        std::fs::write(port.join("gid_attrs/ndevs/0"), "d0\n").unwrap();
        // Slot 1 has a folder for a file, which cannot be read; slot 2 an empty file, but a row of RoCE
        // has an interface; slot 3 is of InfiniBand.
        std::fs::write(port.join("gid_attrs/ndevs/2"), "").unwrap();
        std::fs::write(port.join("link_layer"), "InfiniBand\n").unwrap();
        std::fs::write(port.join("gids/3"), LINK_LOCAL).unwrap();
        std::fs::write(port.join("gid_attrs/types/3"), "IB/RoCE v1\n").unwrap();
        std::fs::write(port.join("gid_attrs/ndevs/3"), "").unwrap();
        let query = || Sysfs::at(&root).query_gid_table("rxe0").unwrap();
        let table = query();
        let found: Vec<_> =
            table.iter().map(|gid| (gid.sysfs_netdev.as_deref(), gid.netdev_is_unread)).collect();
        assert_eq!(found, [(Some("d0"), false), (None, true), (None, true), (None, false)]);
        // Another interface may be shown so, or be named so without what looks like white space.
        for name in ["#5\n", "d0\u{3000}\n", "d\u{3000}0\n", "d0 \n", "d0\n\n"] {
            std::fs::write(port.join("gid_attrs/ndevs/0"), name).unwrap();
            let row = Sysfs::at(&root).query_gid_table("rxe0").map(|table| table[0].clone());
            let found = row.map(|row| (row.sysfs_netdev, row.netdev_is_unread));
            let is_name = !name.contains([' ']) && name != "d0\n\n";
            assert_eq!(found.ok(), is_name.then_some((None, true)), "{name:?}");
        }
        // An interface may be named with any bytes: one in a pod costs the others no rows.
        std::fs::write(port.join("gid_attrs/ndevs/0"), b"z\xffz\n").unwrap();
        assert_eq!((query()[0].sysfs_netdev.as_deref(), query()[0].netdev_is_unread), (None, true));
        std::fs::write(port.join("gid_attrs/ndevs/0"), "d0\n").unwrap();
        // A copy has an empty file where reading failed: of InfiniBand there is one type.
        std::fs::write(port.join("gid_attrs/types/0"), "").unwrap();
        let types = || (query()[0].entry.gid_type(), query()[0].type_is_unread);
        assert_eq!(types(), (GidType::IB, false));
        std::fs::write(port.join("link_layer"), "Ethernet\n").unwrap();
        assert!(types().1);
        // A table without slots has no types, either.
        let gids = port.join("gids");
        std::fs::rename(&gids, port.join("away")).unwrap();
        std::fs::create_dir(&gids).unwrap();
        let errors = [
            Sysfs::at(&root).query_gid_table("rxe0").map(drop),
            Sysfs::at(&root).query_gid_ex("rxe0", 1, 0).map(drop),
        ];
        for error in errors.map(Result::unwrap_err) {
            let text = error.to_string();
            assert!(text.contains("without slots") && text.contains("ports/1/gids"), "{text}");
        }
        std::fs::remove_dir(&gids).unwrap();
        std::fs::rename(port.join("away"), &gids).unwrap();
        // Each device has a port: where none is there, its files are missing.
        let cause = || {
            let error = Sysfs::at(&root).query_gid_ex("rxe0", 7, 0).unwrap_err();
            (error.cause().clone(), error.to_string())
        };
        assert_eq!(cause().0, Cause::NoSuchPort);
        std::fs::remove_dir_all(&port).unwrap();
        let (own, text) = cause();
        assert_eq!(own, Cause::Os(libc::ENOENT));
        assert!(
            text.contains("rxe0/ports: ") && text.ends_with("is all of sysfs there?"),
            "{text}"
        );
        std::fs::remove_dir_all(port.parent().unwrap()).unwrap();
        assert_eq!(cause().0, Cause::Os(libc::ENOENT));
        assert!(cause().1.contains("infiniband/rxe0/ports: "), "{}", cause().1);
        std::fs::remove_dir_all(port.parent().unwrap().parent().unwrap()).unwrap();
        assert!(cause().1.contains("infiniband/rxe0: "), "{}", cause().1);
        std::fs::remove_dir_all(&root).unwrap();
    }
}
