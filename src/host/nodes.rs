//! The character devices that programs open, of one device and of all.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use nix::libc;
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::Host;
use super::list::{lacks_class, nodes_of_class};
use crate::device::{Device, Node};
use crate::error::{Cause, Error, Request, Result};
use crate::inventory::{Answer, Problem};
use crate::netlink::rdma::{parse_chardev, port_chardev_request};
use crate::netlink::{Message, Socket};
use crate::sysfs::{CM, Folder, UMAD_CLASS, device_number, open_node};
use crate::text::natural;

/// How the names of nodes for management datagrams begin.
const UMAD: &str = "umad";

/// The nodes of `ib_umad` by the names of their devices; `None` if it is not known whether there are any.
type UmadNodes = Option<Result<BTreeMap<String, Vec<Node>>>>;

impl Host {
    /// The character devices of one device: its uverbs node, and those for management datagrams (`umad0`) and for a
    /// subnet manager (`issm0`) of its ports, as far as there are any. Nothing is opened, and nothing says that the
    /// nodes are where they should be, or that this process may open them.
    ///
    /// ```no_run
    /// let mut host = uverbs::Host::new();
    /// for device in host.devices()? {
    ///     for node in host.nodes(&device)? {
    ///         println!("{}: {}", device.name, node.path.display());
    ///     }
    /// }
    /// # Ok::<(), uverbs::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ENOENT` if the device has no uverbs node, if it is not known which it has, or whether there are nodes of
    /// `ib_umad`; the errno of sysfs if a node cannot be read, of RDMA netlink if it cannot be asked whose a node is;
    /// `ENODEV` if the device has gone, or another has its name.
    pub fn nodes(&self, device: &Device) -> Result<Vec<Node>> {
        self.nodes_of(device, &mut None)
    }

    /// The same of many devices, in their order. Nodes are read once for all.
    pub fn nodes_of_all<'d>(
        &self,
        devices: impl IntoIterator<Item = &'d Device>,
    ) -> Vec<Result<Vec<Node>>> {
        let mut found = None;
        devices.into_iter().map(|device| self.nodes_of(device, &mut found)).collect()
    }

    fn nodes_of(&self, device: &Device, found: &mut Option<UmadNodes>) -> Result<Vec<Node>> {
        let class = self.sysfs.folder(UMAD_CLASS);
        let path = class.path().to_owned();
        let error = |cause| Error::new(&*device.name, Request::Sysfs { path: path.clone() }, cause);
        let Some(first) = &device.node else {
            let cause = if device.node_is_unread { Cause::NodeUnread } else { Cause::NoNode };
            return Err(Error::new(&*device.name, Request::ListDevices, cause));
        };
        let found = found.get_or_insert_with(|| {
            if lacks_class(&self.sysfs, UMAD_CLASS, "ib_umad") {
                return None;
            }
            let (found, unread) = nodes_of_class(&class, &self.dev);
            let mut nodes: BTreeMap<String, Vec<Node>> = BTreeMap::new();
            for (device, node, _) in found {
                nodes.entry(device).or_default().push(node);
            }
            Some(unread.map_or(Ok(nodes), Err))
        });
        let Some(found) = found else { return Err(error(Cause::Os(libc::ENOENT))) };
        let nodes = found.as_ref().map_err(Clone::clone)?.get(&device.name);
        let mut nodes = nodes.cloned().unwrap_or_default();
        if let Some(index) = device.index.filter(|_| !nodes.is_empty()) {
            let requests = owner_requests((device, index), &class, &nodes).map_err(&error)?;
            let of_netlink = |cause| Error::new(&*device.name, Request::Netlink, cause);
            if let Some(own) = own_numbers(requests).map_err(of_netlink)? {
                // That of the subnet manager has the number of the port's other one in its name.
                let number = |node: &Node| node.name.replace(|own: char| !own.is_ascii_digit(), "");
                let own = nodes.iter().filter(|node| own.contains(&node.number));
                let own: BTreeSet<String> = own.map(number).collect();
                nodes.retain(|node| own.contains(&number(node)));
            }
        }
        put_in_order(&mut nodes);
        // The nodes were found by the device's name, which it still has.
        let named = self.sysfs.of(device)?.device(&device.name).map_err(&error)?;
        if !named.path().ends_with(&device.name) {
            return Err(error(Cause::Replaced));
        }
        nodes.insert(0, first.clone());
        Ok(nodes)
    }

    /// The node of the connection manager, which is one for all devices; `None` if the module `rdma_ucm` is not loaded.
    /// It is not opened.
    ///
    /// # Errors
    /// `ENOENT` if it is not known whether there is one; the errno of sysfs if it cannot be read.
    pub fn connection_manager_node(&self) -> Result<Option<Node>> {
        let folder = self.sysfs.folder(CM);
        let path = folder.path().join("dev");
        let error = |cause| Error::of_host(Request::Sysfs { path: path.clone() }, cause);
        if lacks_class(&self.sysfs, CM, "rdma_ucm") {
            return Err(error(Cause::Os(libc::ENOENT)));
        }
        match folder.read("dev") {
            Ok(text) => {
                let cause = || error(folder.malformed("dev", "a node's number"));
                let number = device_number(&text).ok_or_else(cause)?;
                Ok(Some(Node {
                    path: self.dev.join("rdma_cm"),
                    name: "rdma_cm".to_owned(),
                    number,
                }))
            }
            Err(_) if folder.is_gone() => Ok(None),
            Err(cause) => Err(error(cause)),
        }
    }
}

impl Host {
    /// Whether this process can open the node of the connection manager as programs do; `None` if there is none, or
    /// that is not known. What the process lacked is said.
    pub(crate) fn connection_manager_access(&self) -> Option<Answer<()>> {
        match self.connection_manager_node() {
            Ok(node) => node.as_ref().map(access),
            Err(error) => of_process(&error),
        }
    }

    /// The same of any node for management datagrams; `None` if `ib_umad` is not loaded, or that is not known. If none can
    /// be opened, it is said of one why.
    pub(crate) fn umad_access(&self) -> Option<Answer<()>> {
        let class = self.sysfs.folder(UMAD_CLASS);
        // An empty one hides those that are there.
        if class.has_none() {
            return None;
        }
        let (found, unread) = nodes_of_class(&class, &self.dev);
        let mut nodes: Vec<Node> = found.into_iter().map(|(_, node, _)| node).collect();
        // To open that of a subnet manager (`issm0`) says that there is one.
        nodes.retain(|node| node.name.starts_with(UMAD));
        put_in_order(&mut nodes);
        let mut problems = Vec::new();
        for own in nodes.iter().map(access) {
            match own {
                Ok(()) => return Some(Ok(())),
                Err(problem) => problems.push(problem),
            }
        }
        // A container has some of the host's. Why one that is there cannot be opened says more, unless it is not known.
        let first = problems.into_iter().min_by_key(|own| match own.errno {
            _ if own.is_of_process() => 0,
            libc::ENOENT => 2,
            _ => 1,
        });
        let none = || {
            let (text, errno) = ("no device has a node of ib_umad".to_owned(), libc::ENOENT);
            Err(Problem { text, errno })
        };
        match unread {
            Some(error) => of_process(&error),
            None => Some(first.map_or_else(none, Err)),
        }
    }
}

/// In natural order of their names.
fn put_in_order(nodes: &mut [Node]) {
    nodes.sort_by(|one, other| natural(&one.name, &other.name));
}

/// An error that says what the process lacked.
fn of_process(error: &Error) -> Option<Answer<()>> {
    let problem = Problem::from(error);
    problem.is_of_process().then_some(Err(problem))
}

/// Whether this process can open a node for reading and writing, as programs do. What is not the node is not opened.
fn access(node: &Node) -> Answer<()> {
    let opened = open_node(&node.path, node.number, OFlags::RDWR);
    opened.map(drop).map_err(|cause| Problem {
        text: format!("{}: {cause}", node.path.display()),
        errno: cause.errno(),
    })
}

/// Asks which nodes for management datagrams are the device's, of these. The class has the nodes of all network namespaces,
/// and in another one there may be a device of the same name (in exclusive mode, since Linux 7). Of a node for a subnet
/// manager no kernel answers.
fn owner_requests(
    (device, index): (&Device, u32),
    class: &Folder,
    nodes: &[Node],
) -> Result<Vec<Message>, Cause> {
    let mut requests = Vec::new();
    for node in nodes.iter().filter(|node| node.name.starts_with(UMAD)) {
        let folder = class.join(&node.name);
        let malformed = |_| folder.malformed("port", "a port's number");
        let port = u32::try_from(folder.read_number("port")?).map_err(malformed)?;
        if device.ports().contains(&port) {
            requests.push(port_chardev_request(index, port, UMAD));
        }
    }
    Ok(requests)
}

/// The numbers of the nodes that these requests ask for; `None` if the kernel does not know the question.
fn own_numbers(requests: Vec<Message>) -> Result<Option<BTreeSet<u64>>, Cause> {
    let (mut own, mut is_old) = (BTreeSet::new(), false);
    Socket::rdma().map_err(Cause::of)?.ask(requests, |_, reply| {
        let mut now = Device::named("");
        match reply {
            Ok(reply) => parse_chardev(reply, Path::new(""), &mut now)?,
            // The device has none for this port.
            Err(Errno::OPNOTSUPP) => {}
            // Kernels before 5.3 do not know the question, and have no two devices of one name.
            Err(Errno::INVAL) => is_old = true,
            Err(errno) => return Err(Cause::of(errno)),
        }
        own.extend(now.node.map(|node| node.number));
        Ok(())
    })?;
    Ok((!is_old).then_some(own))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn write(root: &Path, file: &str, text: &str) {
        let path = root.join("class").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn device(root: &Path, name: &str) {
        write(root, &format!("infiniband/{name}/node_type"), "1: CA");
        write(root, &format!("infiniband/{name}/node_guid"), "0011:22ff:fe33:4455");
        write(root, &format!("infiniband/{name}/sys_image_guid"), "0011:22ff:fe33:4455");
        write(root, &format!("infiniband/{name}/ports/1/link_layer"), "Ethernet");
    }

    /// A device that is registered again always has a node: none is not said of it.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn a_node_that_is_replaced_is_not_none() {
        use std::os::unix::fs::symlink;
        use std::sync::atomic::{AtomicBool, Ordering};
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        device(root, "x");
        // The name leads to one folder or the other, as the kernel makes it.
        for name in ["one", "other"] {
            write(root, &format!("{name}/ibdev"), "x");
            write(root, &format!("{name}/dev"), "231:192");
        }
        let class = root.join("class/infiniband_verbs");
        let lead_to = |name: &str| {
            let new = root.join("new");
            symlink(root.join("class").join(name), &new).unwrap();
            fs::rename(new, class.join("uverbs0")).unwrap();
        };
        fs::create_dir(&class).unwrap();
        lead_to("one");
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    lead_to("other");
                    lead_to("one");
                }
            });
            let mut host = Host::rooted(root, "/dev/infiniband");
            let found = (0..2_000).map(|_| host.device("x")).filter(|own| {
                own.as_ref().is_ok_and(|own| own.node.is_none() && !own.node_is_unread)
            });
            let count = found.count();
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(count, 0);
        });
    }

    #[test]
    fn nodes_are_those_of_the_device_that_was_listed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        device(root, "x");
        for (name, of) in [("umad1", "x"), ("umad0", "y"), ("issm1", "x")] {
            write(root, &format!("infiniband_mad/{name}/ibdev"), of);
            write(root, &format!("infiniband_mad/{name}/dev"), "231:1");
        }
        let mut host = Host::rooted(root, "/dev/infiniband");
        let names = |host: &Host, device: &Device| {
            let nodes = host.nodes(device)?.into_iter();
            Ok::<_, Error>(nodes.map(|node| node.path.display().to_string()).collect::<Vec<_>>())
        };
        write(root, "infiniband_verbs/abi_version", "6");
        let listed = host.device("x").unwrap();
        assert_eq!(*names(&host, &listed).unwrap_err().cause(), Cause::NoNode);
        write(root, "infiniband_verbs/uverbs7/ibdev", "x");
        write(root, "infiniband_verbs/uverbs7/dev", "231:199");
        let listed = host.device("x").unwrap();
        let expected = ["uverbs7", "issm1", "umad1"].map(|name| format!("/dev/infiniband/{name}"));
        assert_eq!(names(&host, &listed).unwrap(), expected);
        // What something covers is not none.
        let (class, aside) = (root.join("class/infiniband_mad"), root.join("aside"));
        fs::rename(&class, &aside).unwrap();
        fs::create_dir(&class).unwrap();
        assert_eq!(names(&host, &listed).unwrap_err().errno(), libc::ENOENT);
        assert_eq!(host.umad_access(), None);
        fs::remove_dir(&class).unwrap();
        fs::rename(&aside, &class).unwrap();
        assert!(matches!(host.umad_access(), Some(Err(_))), "there are nodes, and nothing to open");
        // Another device takes over the name, and then the device has another name.
        fs::rename(root.join("class/infiniband/x"), root.join("class/infiniband/z")).unwrap();
        assert_eq!(*names(&host, &listed).unwrap_err().cause(), Cause::Replaced);
        device(root, "x");
        assert_eq!(*names(&host, &listed).unwrap_err().cause(), Cause::Replaced);
        fs::remove_dir_all(root.join("class/infiniband")).unwrap();
        assert!(names(&host, &listed).is_err());
    }

    #[test]
    fn the_connection_manager_has_a_node_if_its_module_is_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let host = Host::rooted(root, "/dev/infiniband");
        assert!(host.connection_manager_node().is_err());
        fs::create_dir_all(root.join("module/kernel")).unwrap();
        assert!(host.connection_manager_node().is_err(), "no class is there");
        fs::create_dir_all(root.join("class/net")).unwrap();
        assert_eq!(host.connection_manager_node().unwrap(), None);
        write(root, "misc/rdma_cm/dev", "10:58");
        let node = host.connection_manager_node().unwrap().unwrap();
        assert_eq!(node.path, Path::new("/dev/infiniband/rdma_cm"));
        assert_eq!(node.number, rustix::fs::makedev(10, 58));
        write(root, "misc/rdma_cm/dev", "10");
        assert!(host.connection_manager_node().is_err());
    }
}
