//! Listing the devices: by RDMA netlink, or by sysfs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use nix::libc;
use rustix::io::Errno;

use crate::device::{Device, FolderId, Identity, Node, NodeType};
use crate::error::{Cause, Error, Request, Result};
use crate::guid::Guid;
use crate::netlink::Socket;
use crate::netlink::rdma::{chardev_request, check, devices_request, parse_chardev, parse_device};
use crate::sysfs::{CLASS, Folder, PORTS, Sysfs, VERBS_CLASS, device_number};
use crate::text::{is_device_name, is_node_name, is_plain_char, to_plain};

/// The devices of a host.
#[derive(Debug)]
#[non_exhaustive]
pub struct Listing {
    /// Those that could be read, in natural order of their names.
    pub devices: Vec<Device>,
    /// What could not be found out, of a device that is left out or of one that is listed without
    /// its node; [`Error::subject`] names it.
    pub problems: Vec<Error>,
}

/// How often devices are listed before their changes are called too many.
const TRIES: u32 = 8;

/// Whether the kernel (before 4.16) or the container leave no RDMA netlink, or devices change
/// faster than it lists them, so that sysfs may answer instead.
pub(super) fn leaves_no_netlink(cause: &Cause) -> bool {
    const ERRNOS: [Errno; 7] = [
        Errno::INVAL,
        Errno::OPNOTSUPP,
        Errno::NOSYS,
        Errno::PERM,
        Errno::ACCESS,
        Errno::AGAIN,
        // Before Linux 5.3 only the first network namespace has it.
        Errno::CONNREFUSED,
    ];
    ERRNOS.contains(&cause.as_errno())
}

/// Whether this errno of RDMA netlink says that the kernel has none (before 4.16, or without the RDMA core), so that
/// sysfs has all that there is to know. With any other it was refused, or it failed.
pub(crate) fn means_no_netlink(errno: i32) -> bool {
    matches!(errno, libc::EPROTONOSUPPORT | libc::EINVAL | libc::EOPNOTSUPP)
}

pub(super) fn list_by_netlink(
    socket: &mut Socket,
    sysfs: &Sysfs,
    dev: &Path,
) -> Result<Listing, Cause> {
    for _ in 0..TRIES {
        if let Some(listing) = list_once(socket, sysfs, dev)? {
            return Ok(listing);
        }
    }
    Err(Cause::Os(libc::EAGAIN))
}

/// Lists the devices, unless they change meanwhile. The kernel resumes a dump by counting devices, so it
/// skips one for each that is removed before it. A second dump shows this: it lacks the removed device.
fn list_once(socket: &mut Socket, sysfs: &Sysfs, dev: &Path) -> Result<Option<Listing>, Cause> {
    let request = devices_request();
    let found = socket.dump(&request, |payload| Ok(parse_device(payload)))?;
    let mut devices = Vec::with_capacity(found.len());
    let mut problems = Vec::new();
    let mut requests = Vec::with_capacity(found.len());
    for device in &found {
        let (index, device) = match device {
            Ok(device) => device,
            Err(cause) => {
                problems.push(Error::of_host(Request::ListDevices, cause.clone()));
                continue;
            }
        };
        requests.push(chardev_request(*index));
        devices.push(device.clone());
    }
    let mut untold = false;
    socket.ask(requests, |place, reply| {
        let Some(device) = devices.get_mut(place) else { return Ok(()) };
        match reply {
            Ok(reply) => parse_chardev(reply, dev, device)?,
            // The request is unknown, before Linux 5.3.
            Err(Errno::INVAL | Errno::NODEV) => untold = true,
            // No uverbs client on this device: it has no node.
            Err(Errno::OPNOTSUPP) => {}
            Err(errno) => {
                device.node_is_unread = true;
                problems.push(Error::new(&*device.name, Request::Netlink, Cause::of(errno)));
            }
        }
        Ok(())
    })?;
    let class = sysfs.folder(VERBS_CLASS);
    for device in &mut devices {
        let folder = device.node.as_ref().map(|node| class.join(&node.name));
        device.identity.node = folder.and_then(|folder| folder.id().ok());
    }
    if untold {
        let (nodes, unread) = nodes_by_sysfs(&class, dev);
        let are_nodes_unread = unread.is_some() || lacks_nodes(sysfs);
        problems.extend(unread);
        for device in devices.iter_mut().filter(|device| device.node.is_none()) {
            if let Some((node, id)) = nodes.get(&device.name) {
                device.node = Some(node.clone());
                device.identity.node = Some(id.clone());
                device.node_is_unread = false;
            } else {
                device.node_is_unread |= are_nodes_unread;
            }
        }
    }
    // The last word, so that what was read in between is of devices that were there all the time.
    if !found.is_empty() && socket.dump(&request, |payload| Ok(parse_device(payload)))? != found {
        return Ok(None);
    }
    Ok(Some(Listing { devices, problems }))
}

/// Lists the devices by sysfs; `None` if the tree shows that the RDMA core is not loaded.
pub(super) fn list_by_sysfs(sysfs: &Sysfs, dev: &Path) -> Result<Option<Listing>> {
    let mut listing = Listing { devices: Vec::new(), problems: Vec::new() };
    let Some(names) = sysfs.device_names()? else { return Ok(None) };
    let (class, verbs) = (sysfs.folder(CLASS), sysfs.folder(VERBS_CLASS));
    let (mut nodes, mut unread) = nodes_by_sysfs(&verbs, dev);
    let lacks_nodes = lacks_nodes(sysfs);
    // In the kernel's own they are other namespaces' devices.
    if !class.is_of_kernel() {
        for name in nodes.keys().filter(|name| class.join(name).is_gone()) {
            let request = Request::Sysfs { path: class.join(name).path().join(PORTS) };
            listing.problems.push(Error::new(name, request, Cause::Os(libc::ENOENT)));
        }
    }
    for name in names {
        let by_name = class.join(&name);
        // It may not be the name that the folder has.
        if !is_device_name(&name) {
            let request = Request::Sysfs { path: by_name.path().to_owned() };
            let cause = Cause::Malformed("a device's name");
            // Nor may what shows of it be another device's.
            let shown = name.replace(|c| !is_plain_char(c), "\u{fffd}");
            listing.problems.push(Error::new(shown, request, cause));
            continue;
        }
        let listed = steady_device(&by_name, &name, &mut nodes, &mut unread, &verbs, dev);
        match listed {
            Ok(mut device) => {
                let are_nodes_unread = unread.is_some() || lacks_nodes;
                device.node_is_unread = device.node.is_none() && are_nodes_unread;
                listing.devices.push(device);
            }
            // It has gone since it was listed.
            Err(_) if by_name.is_gone() => {}
            Err((file, cause)) => {
                let request = Request::Sysfs { path: path_of(&by_name, file) };
                listing.problems.push(Error::new(name, request, cause));
            }
        }
    }
    listing.problems.splice(0..0, unread);
    Ok(Some(listing))
}

/// A file in a folder, or with `""` the folder.
fn path_of(folder: &Folder, file: &str) -> PathBuf {
    if file.is_empty() { folder.path().to_owned() } else { folder.path().join(file) }
}

/// Reads a device and finds its node, both of one device. If nodes are read again, what kept them from it is
/// noted, too.
fn steady_device(
    by_name: &Folder,
    name: &str,
    nodes: &mut BTreeMap<String, (Node, FolderId)>,
    unread: &mut Option<Error>,
    verbs: &Folder,
    dev: &Path,
) -> Result<Device, Unread> {
    let of_folder = |errno| match errno {
        // If the name is there, it leads nowhere, where the files should be.
        Errno::NOENT => (PORTS, Cause::Os(libc::ENOENT)),
        errno => ("", Cause::of(errno)),
    };
    for _ in 0..TRIES {
        let folder = by_name.held().map_err(of_folder)?;
        let mut device = read_device(&folder, name.to_owned())?;
        device.identity.device = Some(folder.id().map_err(of_folder)?);
        // One that is being removed lists fewer ports.
        folder.look().map_err(of_folder)?;
        let Some((node, id)) = nodes.get(name) else {
            return Ok(device);
        };
        // The node that had this device's name before still has it.
        let name_now = verbs.join(&node.name).read_name("ibdev");
        if name_now.as_deref() == Ok(name) && id.still_exists().is_ok() {
            device.node = Some(node.clone());
            device.identity.node = Some(id.clone());
            return Ok(device);
        }
        let (now, unread_now) = nodes_by_sysfs(verbs, dev);
        *nodes = now;
        *unread = unread.take().or(unread_now);
    }
    Err(("", Cause::Os(libc::EAGAIN)))
}

/// Whether the class of nodes is missing in a tree that does not show that `ib_uverbs` is not loaded.
fn lacks_nodes(sysfs: &Sysfs) -> bool {
    lacks_class(sysfs, VERBS_CLASS, "ib_uverbs")
}

/// The same of any class of nodes, which this module makes. One that is empty, or leads nowhere, is none of the kernel's,
/// which has a file in each: what is there is hidden.
pub(super) fn lacks_class(sysfs: &Sysfs, class: &str, module: &str) -> bool {
    let folder = sysfs.folder(class);
    if folder.is_gone() { !sysfs.is_unloaded(module) } else { folder.has_none() }
}

/// Each uverbs node with the name of its device, and what kept nodes from being read. The names are those
/// of all network namespaces. Without `ib_uverbs` there is none.
fn nodes_by_sysfs(
    class: &Folder,
    dev: &Path,
) -> (BTreeMap<String, (Node, FolderId)>, Option<Error>) {
    let (mut found, mut unread) = nodes_of_class(class, dev);
    let mut twice = named_twice(&found);
    for _ in 1..TRIES {
        if twice.is_empty() {
            break;
        }
        // One of them may have been replaced by the other.
        (found, unread) = nodes_of_class(class, dev);
        twice = named_twice(&found);
    }
    // Of a copy that has two it is not known which is the device's.
    if let Some((_, node, _)) = found.iter().find(|(device, ..)| twice.contains(device)) {
        let folder = class.join(&node.name);
        let cause = folder.malformed("ibdev", "a device that no other node has");
        let request = Request::Sysfs { path: path_of(&folder, "ibdev") };
        unread.get_or_insert_with(|| Error::of_host(request, cause));
    }
    found.retain(|(device, ..)| !twice.contains(device));
    (found.into_iter().map(|(device, node, id)| (device, (node, id))).collect(), unread)
}

/// The devices that several nodes have.
fn named_twice(found: &[(String, Node, FolderId)]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    found.iter().filter(|(name, ..)| !names.insert(name)).map(|(name, ..)| name.clone()).collect()
}

/// The nodes of a class, each with the name of its device, and what kept nodes from being read. Without the module of
/// the class there is none.
pub(super) fn nodes_of_class(
    class: &Folder,
    dev: &Path,
) -> (Vec<(String, Node, FolderId)>, Option<Error>) {
    let mut look = Look::at(class, dev);
    for _ in 1..TRIES {
        if !look.is_changing {
            break;
        }
        look = Look::at(class, dev);
    }
    let changing = look.is_changing.then(|| {
        let request = Request::Sysfs { path: class.path().to_owned() };
        Error::of_host(request, Cause::Os(libc::EAGAIN))
    });
    (look.found, look.unread.or(changing))
}

/// One look at a class of nodes.
#[derive(Default)]
struct Look {
    found: Vec<(String, Node, FolderId)>,
    unread: Option<Error>,
    /// Whether a node went or was replaced meanwhile: its device may have another one by now.
    is_changing: bool,
}

impl Look {
    fn at(class: &Folder, dev: &Path) -> Self {
        let error = |path: PathBuf, cause| Some(Error::of_host(Request::Sysfs { path }, cause));
        let mut own = Self::default();
        let names = match class.steady_names() {
            Ok(names) => names,
            Err(Cause::Os(libc::ENOENT)) => return own,
            Err(cause) => {
                own.unread = error(class.path().to_owned(), cause);
                return own;
            }
        };
        for name in names {
            let folder = class.join(&name);
            let is_file = name == "abi_version";
            let node = read_node(&folder, name, dev).and_then(|(device, node)| {
                let id = folder.id().map_err(|errno| ("", Cause::of(errno)))?;
                // Another may have taken over the name between two files.
                id.still_exists().map_err(|cause| ("", cause))?;
                Ok((device, node, id))
            });
            match node {
                Ok(node) => own.found.push(node),
                Err((_, cause)) if is_file && cause.errno() == libc::ENOTDIR => {}
                Err(_) if folder.is_gone() => own.is_changing = true,
                Err((file, cause)) => {
                    own.is_changing |= cause == Cause::Replaced || cause.errno() == libc::ENODEV;
                    own.unread = error(path_of(&folder, file), cause);
                }
            }
        }
        own
    }
}

/// A node, with the name of its device.
fn read_node(folder: &Folder, name: String, dev: &Path) -> Result<(String, Node), Unread> {
    let read = |file| folder.read(file).map_err(|cause| (file, cause));
    let malformed = |file, what| (file, folder.malformed(file, what));
    let device = folder.read_name("ibdev").map_err(|cause| ("ibdev", cause))?;
    if !is_device_name(&device) {
        return Err(malformed("ibdev", "a device's name"));
    }
    let number = device_number(&read("dev")?).ok_or_else(|| malformed("dev", "a node's number"))?;
    if !is_node_name(&name) {
        return Err(("", Cause::Malformed("a node's name")));
    }
    Ok((device, Node { path: dev.join(&name), name, number }))
}

/// Why a device or a node could not be read: the file in its folder, or `""`, and what was wrong there.
type Unread = (&'static str, Cause);

fn read_device(folder: &Folder, name: String) -> Result<Device, Unread> {
    let at = |file| move |cause| (file, cause);
    let guid = |file| {
        let guid = folder.read(file).map_err(at(file))?.parse::<Guid>();
        guid.map_err(|_| (file, folder.malformed(file, "a GUID in sysfs")))
    };
    let node_type = NodeType::of_sysfs(folder).map_err(at("node_type"))?;
    let ports = folder.port_numbers(node_type)?;
    let device = Device {
        name,
        index: None,
        node_type,
        node_guid: guid("node_guid")?,
        sys_image_guid: guid("sys_image_guid")?,
        fw_version: read_firmware(folder).map_err(at("fw_ver"))?,
        protocol: None,
        port_count: ports.last().copied().unwrap_or(0),
        driver: None,
        node: None,
        node_is_unread: false,
        identity: Identity::default(),
    };
    check(&device).map_err(at(""))?;
    Ok(device)
}

/// The firmware's version, if the driver gives it; with `?` for what does not show.
fn read_firmware(folder: &Folder) -> Result<Option<String>, Cause> {
    match folder.read_bytes("fw_ver") {
        Ok(bytes) => {
            let text = to_plain(String::from_utf8_lossy(&bytes).trim_end());
            Ok(Some(text).filter(|text| !text.is_empty()))
        }
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(Cause::of(errno)),
    }
}
