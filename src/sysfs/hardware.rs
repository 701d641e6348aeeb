//! A device's hardware by sysfs: the device's own folder, and that of the PCI function which carries it.

use super::{CLASS, Folder, Sysfs, is_absent};
use crate::error::{Error, Request, Result};
use crate::hardware::{Hardware, LANES, PciAddress, PciFunction, PcieLink};

impl Sysfs {
    /// Reads what the kernel says of a device's hardware. What it does not say is `None`; there is no
    /// error of a file that is missing or reads as something else.
    ///
    /// ```no_run
    /// let hardware = uverbs::sysfs::Sysfs::host().hardware("mlx5_0")?;
    /// if let Some(pci) = hardware.pci {
    ///     println!("{} on NUMA node {:?}", pci.address, hardware.numa_node);
    /// }
    /// # Ok::<(), uverbs::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ENODEV` or `ENAMETOOLONG`: no device can have the name; `ENOENT`: no such device, here or any more; or another
    /// errno of opening its folder.
    pub fn hardware(&self, device: &str) -> Result<Hardware> {
        let request = || Request::Sysfs { path: self.root().join(CLASS).join(device) };
        self.steadily(device, request, |sysfs| {
            let folder =
                sysfs.device(device).map_err(|cause| Error::new(device, request(), cause))?;
            Ok(read_hardware(&folder))
        })
    }
}

fn read_hardware(folder: &Folder) -> Hardware {
    let plain = |name| folder.read_optional(name).filter(|text| crate::text::is_plain(text));
    let below = folder.join("device");
    let (pci, pci_is_unread) = match find_function(&below) {
        Ok(pci) => (pci, false),
        Err(Unread) => (None, true),
    };
    // Of a sub-function it is the function that has a node.
    let is_sub = pci.as_ref().is_some_and(|own| own.has_sub_function);
    let with_node = if is_sub { below.join("..") } else { below };
    let numa_node = match with_node.read_bytes("numa_node") {
        Ok(bytes) => parse_node(&bytes),
        // So it is of a kernel without NUMA.
        Err(errno) if is_absent(errno) => Ok(None),
        Err(_) => Err(Unread),
    };
    let board_id = plain("board_id");
    let is_none =
        || folder.read_bytes("board_id").map_or_else(is_absent, |own| own.trim_ascii().is_empty());
    let own = Hardware {
        board_is_unread: board_id.is_none() && !is_none(),
        board_id,
        ca_type: plain("hca_type"),
        hw_rev: plain("hw_rev"),
        numa_node_is_unread: numa_node.is_err(),
        numa_node: numa_node.unwrap_or_default(),
        pci,
        pci_is_unread,
    };
    own.doubting_node()
}

/// Something could not be read.
struct Unread;

/// A NUMA node, or -1 of a machine that has none.
fn parse_node(bytes: &[u8]) -> Result<Option<u32>, Unread> {
    match core::str::from_utf8(bytes.trim_ascii()) {
        Ok("-1") => Ok(None),
        Ok(text) => text.parse().map(Some).map_err(|_| Unread),
        Err(_) => Err(Unread),
    }
}

/// The PCI function that carries a device: its parent, or that of its sub-function. Software devices have no parent,
/// or one that is no PCI function.
fn find_function(parent: &Folder) -> Result<Option<PciFunction>, Unread> {
    if parent.is_gone() {
        return Ok(None);
    }
    let about = parent.read("uevent").map_err(|_| Unread)?;
    let is_sub = value(&about, "MODALIAS").is_some_and(|own| own.starts_with("auxiliary:"));
    if value(&about, "PCI_SLOT_NAME").is_some() || !is_sub {
        return read_function(parent, &about);
    }
    let above = parent.join("..");
    let about = above.read("uevent").map_err(|_| Unread)?;
    let function = read_function(&above, &about)?;
    Ok(function.map(|own| PciFunction { has_sub_function: true, ..own }))
}

fn read_function(folder: &Folder, about: &str) -> Result<Option<PciFunction>, Unread> {
    if value(about, "PCI_SLOT_NAME").is_none() {
        return Ok(None);
    }
    let mut function = PciFunction::at(address(about).ok_or(Unread)?);
    function.id = value(about, "PCI_ID").and_then(|id| {
        let (vendor, device) = id.split_once(':')?;
        let number = |digits| u16::from_str_radix(digits, 16).ok();
        Some((number(vendor)?, number(device)?))
    });
    let physical = folder.join("physfn");
    function.physical = physical.read_optional("uevent").as_deref().and_then(address);
    // Only a VF has this folder, which may lead to where nothing can be read.
    function.physical_is_unread = function.physical.is_none() && !physical.is_gone();
    function.has_virtual = !folder.join("sriov_totalvfs").is_gone();
    // The kernel knows no link of a VF.
    let of_link = if function.is_virtual() { &physical } else { folder };
    function.link = link(of_link, "current_link_speed", "current_link_width");
    function.max_link = link(of_link, "max_link_speed", "max_link_width");
    Ok(Some(function))
}

fn address(about: &str) -> Option<PciAddress> {
    value(about, "PCI_SLOT_NAME")?.parse().ok()
}

/// A value of a `uevent` file, which has a line `KEY=value` for each.
fn value<'a>(about: &'a str, key: &str) -> Option<&'a str> {
    about.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
}

fn link(folder: &Folder, speed: &str, width: &str) -> Option<PcieLink> {
    // 0 and 255 are that it is not known.
    let speed = parse_speed(&folder.read_optional(speed)?)?;
    let width = folder.read_optional(width)?.parse().ok().filter(|width| LANES.contains(width))?;
    Some(PcieLink { speed, width })
}

/// `16.0 GT/s PCIe`, or `8 GT/s` of older kernels; not `Unknown`.
fn parse_speed(text: &str) -> Option<u32> {
    let number = text.split_once(" GT/s")?.0;
    let (whole, tenth) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if tenth.len() != 1 || !digits(whole) || !digits(tenth) {
        return None;
    }
    let tenths = whole.parse::<u32>().ok()?.checked_mul(10)?.checked_add(tenth.parse().ok()?)?;
    (tenths > 0).then_some(tenths)
}

#[cfg(test)]
#[cfg(not(miri))]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    #[test]
    fn speeds() {
        for (text, tenths) in
            [("16.0 GT/s PCIe", 160), ("8 GT/s", 80), ("2.5 GT/s", 25), ("64.0 GT/s PCIe", 640)]
        {
            assert_eq!(parse_speed(text), Some(tenths));
        }
        let odd =
            ["", "Unknown", "Unknown speed", "-8 GT/s", "8.25 GT/s", " GT/s", "0 GT/s", "+8 GT/s"];
        for text in odd.into_iter().chain(["99999999999 GT/s", "8. GT/s", ".5 GT/s"]) {
            assert_eq!(parse_speed(text), None, "{text:?}");
        }
    }

    fn write(folder: &Path, files: &[(&str, &str)]) {
        std::fs::create_dir_all(folder).unwrap();
        for (name, text) in files {
            std::fs::write(folder.join(name), format!("{text}\n")).unwrap();
        }
    }

    /// A device whose parent is this folder of the tree.
    fn device(root: &Path, name: &str, parent: &str) {
        let own = root.join(parent).join("infiniband").join(name);
        std::fs::create_dir_all(own.join("ports")).unwrap();
        std::fs::create_dir_all(root.join("class/infiniband")).unwrap();
        symlink(root.join(parent), own.join("device")).unwrap();
        symlink(&own, root.join("class/infiniband").join(name)).unwrap();
    }

    /// As the kernel has them: a function, its VF, a sub-function, and soft RoCE.
    #[test]
    fn functions_of_all_kinds() {
        let tree = tempfile::tempdir().unwrap();
        let (root, bus) = (tree.path(), "devices/pci0000:16/0000:16:02.0");
        let (pf, vf) = (format!("{bus}/0000:17:00.0"), format!("{bus}/0000:17:00.2"));
        let sf = format!("{pf}/mlx5_core.sf.4");
        write(
            &root.join(&pf),
            &[
                ("uevent", "DRIVER=mlx5_core\nPCI_ID=15B3:1021\nPCI_SLOT_NAME=0000:17:00.0"),
                ("numa_node", "1"),
                ("current_link_speed", "16.0 GT/s PCIe"),
                ("current_link_width", "8"),
                ("max_link_speed", "32.0 GT/s PCIe"),
                ("max_link_width", "16"),
            ],
        );
        write(
            &root.join(&vf),
            &[
                ("uevent", "PCI_ID=15B3:101E\nPCI_SLOT_NAME=0000:17:00.2"),
                ("numa_node", "-1"),
                ("current_link_speed", "Unknown"),
                ("current_link_width", "0"),
                ("max_link_speed", "Unknown"),
                ("max_link_width", "255"),
            ],
        );
        symlink(root.join(&pf), root.join(&vf).join("physfn")).unwrap();
        write(&root.join(&sf), &[("uevent", "MODALIAS=auxiliary:mlx5_core.sf")]);
        for (name, parent) in [("mlx5_0", &pf), ("mlx5_1", &vf), ("mlx5_2", &sf)] {
            device(root, name, parent);
        }
        write(
            &root.join("class/infiniband/mlx5_0"),
            &[("board_id", "MT_224"), ("hca_type", "MT4129"), ("hw_rev", "0")],
        );
        write(&root.join("class/infiniband/rxe0/ports"), &[]);
        let read = |name| Sysfs::at(root).hardware(name).unwrap();
        let address = |text: &str| text.parse::<PciAddress>().unwrap();

        let own = read("mlx5_0");
        assert_eq!(
            (own.board_id.as_deref(), own.ca_type.as_deref()),
            (Some("MT_224"), Some("MT4129"))
        );
        assert_eq!((own.hw_rev.as_deref(), own.numa_node), (Some("0"), Some(1)));
        let function = own.pci.unwrap();
        let mut expected = PciFunction::at(address("0000:17:00.0"));
        expected.id = Some((0x15b3, 0x1021));
        expected.link = Some(PcieLink { speed: 160, width: 8 });
        expected.max_link = Some(PcieLink { speed: 320, width: 16 });
        assert_eq!(function, expected);

        let own = read("mlx5_1");
        assert_eq!(own.numa_node, None);
        let virtual_one = own.pci.unwrap();
        assert_eq!(virtual_one.physical, Some(address("0000:17:00.0")));
        assert_eq!(
            (virtual_one.address, virtual_one.link),
            (address("0000:17:00.2"), function.link)
        );

        // Known by numbers: in a virtual machine nothing else is to be seen.
        assert!(function.is_physical() && !virtual_one.is_physical());
        std::fs::remove_file(root.join(&vf).join("physfn")).unwrap();
        let guest = read("mlx5_1").pci.unwrap();
        assert!(guest.is_virtual() && !guest.is_physical());
        assert_eq!((guest.physical, guest.link), (None, None));
        // Of a number that says nothing it is known by its virtual functions.
        let unknown = "PCI_ID=8086:1592\nPCI_SLOT_NAME=0000:17:00.0";
        write(&root.join(&pf), &[("uevent", unknown)]);
        let other = read("mlx5_0").pci.unwrap();
        assert!(!other.is_virtual() && !other.is_physical());
        write(&root.join(&pf), &[("sriov_totalvfs", "8")]);
        assert!(read("mlx5_0").pci.unwrap().is_physical());

        // One whose physical function cannot be read is a VF all the same.
        let physfn = root.join(&vf).join("physfn");
        symlink("../0000:99:00.0", &physfn).unwrap();
        let virtual_one = read("mlx5_1").pci.unwrap();
        assert!(virtual_one.is_virtual() && virtual_one.physical_is_unread);
        assert_eq!((virtual_one.physical, virtual_one.link), (None, None));

        let own = read("mlx5_2");
        let sub = own.pci.unwrap();
        assert!(sub.has_sub_function && sub.address == function.address && sub.physical.is_none());
        assert_eq!((own.numa_node, sub.max_link), (Some(1), function.max_link));

        assert_eq!(read("rxe0"), Hardware::default());
        assert_eq!(Sysfs::at(root).hardware("mlx5_9").unwrap_err().errno(), 2);
    }

    #[test]
    fn what_reads_as_something_else_is_not_known() {
        let tree = tempfile::tempdir().unwrap();
        let pf = "devices/0000:17:00.0";
        device(tree.path(), "x", pf);
        let read = |uevent: &str, numa: &str| {
            write(&tree.path().join(pf), &[("uevent", uevent), ("numa_node", numa)]);
            Sysfs::at(tree.path()).hardware("x").unwrap()
        };
        for (uevent, is_unread) in [
            ("", false),
            ("MODALIAS=usb:x", false),
            ("PCI_SLOT_NAME=", true),
            ("PCI_SLOT_NAME=17:00.0", true),
            ("MODALIAS=auxiliary:x", true),
        ] {
            let expected = Hardware {
                pci_is_unread: is_unread,
                numa_node_is_unread: is_unread,
                ..Hardware::default()
            };
            assert_eq!(read(uevent, "-1"), expected, "{uevent:?}");
        }
        let own = read("PCI_SLOT_NAME=0000:17:00.0\nPCI_ID=15B3", "99999999999").pci.unwrap();
        assert_eq!(own, PciFunction::at("0000:17:00.0".parse().unwrap()));
        // No board is another thing than one that cannot be read.
        let folder = tree.path().join("class/infiniband/x");
        for (text, is_unread) in [("", false), (" \n", false), ("MT_1", false), ("MT\x07", true)] {
            write(&folder, &[("board_id", text)]);
            let own = Sysfs::at(tree.path()).hardware("x").unwrap();
            assert_eq!(own.board_is_unread, is_unread, "{text:?} {own:?}");
        }
        std::fs::remove_file(folder.join("board_id")).unwrap();
        std::fs::create_dir(folder.join("board_id")).unwrap();
        let own = Sysfs::at(tree.path()).hardware("x").unwrap();
        assert!(own.board_is_unread && own.board_id.is_none(), "{own:?}");
    }

    /// A machine without NUMA is another thing than one whose file cannot be read.
    #[test]
    fn a_numa_node_that_is_not_known() {
        let tree = tempfile::tempdir().unwrap();
        let pf = "devices/0000:17:00.0";
        device(tree.path(), "x", pf);
        let place = tree.path().join(pf);
        let read = || {
            let own = Sysfs::at(tree.path()).hardware("x").unwrap();
            (own.numa_node, own.numa_node_is_unread)
        };
        write(&place, &[("uevent", "PCI_SLOT_NAME=0000:17:00.0")]);
        assert_eq!(read(), (None, false));
        for (text, node, is_unread) in [
            ("0", Some(0), false),
            ("-1", None, false),
            ("-2", None, true),
            ("99999999999", None, true),
            ("x", None, true),
            ("", None, true),
        ] {
            write(&place, &[("numa_node", text)]);
            assert_eq!(read(), (node, is_unread), "{text:?}");
        }
        std::fs::remove_file(place.join("numa_node")).unwrap();
        std::fs::create_dir(place.join("numa_node")).unwrap();
        assert_eq!(read(), (None, true));
        std::fs::remove_dir(place.join("numa_node")).unwrap();
        // A function that is not known may be a sub-function, of which another folder has the node.
        write(&place, &[("uevent", "PCI_SLOT_NAME=")]);
        assert_eq!(read(), (None, true));
        write(&place, &[("numa_node", "1")]);
        assert_eq!(read(), (Some(1), false));
        let link = place.join("infiniband/x/device");
        std::fs::remove_file(&link).unwrap();
        assert_eq!(read(), (None, false));
        symlink("../nowhere", &link).unwrap();
        assert_eq!(read(), (None, true));
    }
}
