//! Reading a CA and its ports as libibumad does.

use rustix::io::Errno;
use uverbs_uapi::umad::UMAD_CA_NAME_LEN;

use super::failure::{Failure, UnreadFile};
use super::text::{self, Text};
use super::values::{Ca, CaName, Port};
use crate::device::NodeType;
use crate::guid::Guid;
use crate::pkey::PKey;
use crate::sysfs::{Folder, Sysfs, whole};
use crate::umad::file;

/// Room for the text of a number or of a GUID, including its closing NUL.
const NUMBER_ROOM: usize = 32;

/// Room for the text of a GID, including its closing NUL.
const GID_ROOM: usize = 64;

/// Reads a CA by its name.
pub(super) fn read_ca(sysfs: &Sysfs, name: &str) -> Result<Ca, Failure> {
    let folder = match sysfs.device(name) {
        Ok(folder) if name.len() < UMAD_CA_NAME_LEN => folder,
        _ => return Err(Failure::new(Errno::NOENT)),
    };
    let failure = |unread: UnreadFile| unread.of(name, unread.errno);
    let folder = held(&folder, file::NODE_TYPE).map_err(failure)?;
    let mut ca = Ca {
        ca_name: CaName::new(name.as_bytes()),
        node_type: read_number(&folder, file::NODE_TYPE).map_err(failure)?,
        numports: 0,
        fw_ver: read_text(&folder, file::FIRMWARE).unwrap_or_default(),
        hw_ver: read_text(&folder, file::HARDWARE).unwrap_or_default(),
        ca_type: read_text(&folder, file::CA_TYPE).unwrap_or_default(),
        node_guid: read_guid(&folder, file::NODE_GUID).map_err(failure)?,
        system_guid: read_guid(&folder, file::SYSTEM_GUID).map_err(failure)?,
        ports: Default::default(),
    };
    let device = folder;
    let folder = device.join(file::PORTS);
    let entries = folder.names().map_err(|cause| {
        let unread = UnreadFile { path: folder.path().to_owned(), errno: cause.as_errno() };
        unread.of(name, Errno::NOENT)
    })?;
    for entry in entries {
        let number = match text::atoi(entry.as_bytes()) {
            0 if entry != "0" => -1,
            number => number,
        };
        let slot = usize::try_from(number).ok().and_then(|number| ca.ports.get_mut(number));
        let Some(slot) = slot else {
            let unread = UnreadFile { path: folder.path().join(entry), errno: Errno::RANGE };
            return Err(unread.of(name, Errno::IO));
        };
        let port = read_port(&folder, name, number).map_err(|unread| unread.of(name, Errno::IO))?;
        *slot = Some(port);
        ca.numports = ca.numports.max(number.unsigned_abs());
    }
    still(&device).map_err(failure)?;
    // Only while the kernel makes a device or removes it, it has no port or a gap.
    let is_switch = ca.node_type == u32::from(NodeType::SWITCH.0);
    let count = ca.ports.iter().flatten().count();
    let ports = ca.ports.iter().skip(usize::from(!is_switch));
    let is_whole = count > 0 && ports.take_while(|port| port.is_some()).count() == count;
    if !is_whole && folder.is_of_kernel() {
        let unread = UnreadFile { path: folder.path().to_owned(), errno: Errno::NOENT };
        return Err(unread.of(name, Errno::IO));
    }
    Ok(ca)
}

/// A device's folder, kept open: what is read from it is this device's, whatever has its name now. If it cannot be
/// opened, the file that is read first cannot be read.
fn held(folder: &Folder, first: &str) -> Result<Folder, UnreadFile> {
    folder.held().map_err(|errno| UnreadFile { path: folder.path().join(first), errno })
}

/// Makes sure that a device is still there. One that is being removed lists fewer files.
fn still(device: &Folder) -> Result<(), UnreadFile> {
    device.look().map_err(|errno| UnreadFile { path: device.path().to_owned(), errno })
}

/// Reads one port of a device.
pub(super) fn read_port_of(
    device: &Folder,
    ca_name: &str,
    portnum: i32,
) -> Result<Port, UnreadFile> {
    let first = format!("{}/{portnum}/{}", file::PORTS, file::LMC);
    let device = held(device, &first)?;
    let port = read_port(&device.join(file::PORTS), ca_name, portnum)?;
    still(&device)?;
    Ok(port)
}

fn read_port(ports: &Folder, ca_name: &str, portnum: i32) -> Result<Port, UnreadFile> {
    let folder = ports.join(portnum.to_string());
    let number = |file| read_number(&folder, file);
    let mut port = Port {
        ca_name: CaName::new(ca_name.as_bytes()),
        portnum,
        lmc: number(file::LMC)?,
        sm_lid: number(file::SM_LID)?,
        sm_sl: number(file::SM_SL)?,
        base_lid: number(file::LID)?,
        state: number(file::STATE)?,
        phys_state: number(file::PHYS_STATE)?,
        rate: number(file::RATE)?,
        capmask: number(file::CAPABILITIES)?,
        link_layer: read_text(&folder, file::LINK_LAYER).unwrap_or_else(|_| Text::new(b"IB")),
        ..Port::default()
    };
    let [prefix, guid] = read_gid(&folder, file::GID_0)?;
    port.gid_prefix = prefix;
    port.port_guid = guid.into();
    let pkeys = folder.join(file::PKEYS);
    let is_there = || {
        let unread = |errno| UnreadFile { path: pkeys.path().to_owned(), errno };
        whole(&folder).map_err(|(_, cause)| unread(cause.as_errno()))
    };
    is_there()?;
    port.pkeys = read_pkeys(&pkeys)?;
    is_there()?;
    Ok(port)
}

/// The P_Key table. Its length is the number of files; each file's name is its index.
fn read_pkeys(folder: &Folder) -> Result<Vec<PKey>, UnreadFile> {
    let unread = |errno| UnreadFile { path: folder.path().to_owned(), errno };
    let mut names = folder.names().map_err(|cause| unread(cause.as_errno()))?;
    names.retain(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    if names.is_empty() {
        return Err(unread(Errno::NODATA));
    }
    let mut pkeys = vec![PKey(0); names.len()];
    for name in names {
        let [low, high, ..] = read_number(folder, &name)?.to_le_bytes();
        let index = usize::try_from(text::strtoul(name.as_bytes(), 0));
        if let Some(slot) = index.ok().and_then(|index| pkeys.get_mut(index)) {
            *slot = PKey(u16::from_le_bytes([low, high]));
        }
    }
    Ok(pkeys)
}

pub(super) fn is_infiniband(class: &Folder, name: &str) -> bool {
    read_number(&class.join(name), file::NODE_TYPE).is_ok_and(|node_type| {
        [NodeType::CA, NodeType::SWITCH, NodeType::ROUTER]
            .iter()
            .any(|known| node_type == u32::from(known.0))
    })
}

fn read(folder: &Folder, file: &str) -> Result<Vec<u8>, UnreadFile> {
    folder.read_bytes(file).map_err(|errno| UnreadFile { path: folder.path().join(file), errno })
}

fn read_text<const ROOM: usize>(folder: &Folder, file: &str) -> Result<Text<ROOM>, UnreadFile> {
    Ok(Text::new(text::cut(&read(folder, file)?, ROOM)))
}

fn read_number(folder: &Folder, file: &str) -> Result<u32, UnreadFile> {
    let bytes = read(folder, file)?;
    let value = text::strtoul(text::cut(&bytes, NUMBER_ROOM), 0);
    // As the assignment to `unsigned` does.
    let [a, b, c, d, ..] = value.to_le_bytes();
    Ok(u32::from_le_bytes([a, b, c, d]))
}

fn read_guid(folder: &Folder, file: &str) -> Result<Guid, UnreadFile> {
    let [guid] = read_quads(folder, file, NUMBER_ROOM)?;
    Ok(guid.into())
}

/// Both halves of a GID.
fn read_gid(folder: &Folder, file: &str) -> Result<[u64; 2], UnreadFile> {
    read_quads(folder, file, GID_ROOM)
}

/// Numbers of four groups each; further groups are ignored.
fn read_quads<const COUNT: usize>(
    folder: &Folder,
    file: &str,
    room: usize,
) -> Result<[u64; COUNT], UnreadFile> {
    let bytes = read(folder, file)?;
    let mut groups = text::groups(text::cut(&bytes, room));
    let mut quads = [0; COUNT];
    for quad in &mut quads {
        for _ in 0..4 {
            let group = groups.next();
            let errno = Errno::INVAL;
            let group =
                group.ok_or_else(|| UnreadFile { path: folder.path().join(file), errno })?;
            *quad = *quad << 16 | u64::from(group);
        }
    }
    Ok(quads)
}
