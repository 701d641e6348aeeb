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
    // A driver without one writes an empty line. A file that is empty is covered.
    let is_blank = |own: Vec<u8>| !own.is_empty() && own.trim_ascii().is_empty();
    let is_none = || folder.read_bytes("board_id").map_or_else(is_absent, is_blank);
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
    // The kernel says something of each device. What is empty or has no value is covered.
    if !about.contains('=') {
        return Err(Unread);
    }
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
mod tests;
