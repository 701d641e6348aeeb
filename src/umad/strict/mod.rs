//! The queries of [`super`] by libibumad's exact rules, for callers that rely on them.
//!
//! These functions answer what libibumad 65 answers, right or wrong: a CA fails as a whole if it has a
//! port number of 10 or more, or a port without P_Keys or without a GID at index 0. A host without RDMA
//! has a device named `mthca0`. Every error carries the number that the C function returns.
//!
//! There are some differences. Only the first five can occur with a kernel's own sysfs tree:
//! * An answer is of one device. libibumad may mix two, if another takes over the name meanwhile. Of a device that
//!   comes or goes meanwhile it may answer without ports, or without those before the last one, which is a failure here.
//! * A device name of 19 bytes works. libibumad leaves its copy without a NUL, so for
//!   [`get_ca_portguids`] and the defaults the memory after it decides.
//! * A device name of 20 bytes or more is unknown to [`get_ca`] and [`get_ca_portguids`]. libibumad
//!   reads the device that the first 19 bytes name, if its caller has zeroed the structure.
//! * A name that is no UTF-8, or has U+FFFD, is left out of [`get_cas_names`]. [`get_ca_device_list`] fails if there is one,
//!   and so does the choice of a default.
//! * Names are sorted by their bytes, as in the C locale, in every locale.
//! * A name that leads out of the devices' folder is an unknown device.
//! * A P_Key outside the table is dropped; libibumad writes it past the end of its array.
//! * A FIFO in place of a file reads as empty; libibumad waits for a writer.
//! * If a folder of ports can be opened but not listed, the number is -2; that of libibumad is -5.

mod failure;
mod read;
mod text;
mod values;

use core::convert::Infallible;

use rustix::io::Errno;
use uverbs_uapi::umad::UMAD_CA_NAME_LEN;

use super::choice::{self, Candidate, Seen};
use super::file;
use crate::device::NodeType;
use crate::guid::Guid;
use crate::sysfs::Sysfs;
use failure::UnreadFile;
use read::{is_infiniband, read_ca, read_port_of};

pub use failure::Failure;
pub use text::Text;
pub use values::{Ca, CaName, Port};

/// The device that libibumad names if it finds none.
const DEFAULT_NAME: &str = "mthca0";

/// The port that goes with [`DEFAULT_NAME`].
const DEFAULT_PORT: u32 = 1;

/// Lists up to `max` names of channel adapters, switches and routers, sorted by their bytes. Names
/// of 20 bytes or more, and those that are no UTF-8, are left out.
///
/// If the folder of the devices is missing or cannot be read, the list is only `mthca0`, **even if `max`
/// is 0**. The C function then writes to an array without room, which [`umad_get_cas_names(3)`] does not
/// say. It never returns the −1 that its man page promises.
///
/// ```no_run
/// let sysfs = uverbs::sysfs::Sysfs::host();
/// for name in uverbs::umad::strict::get_cas_names(&sysfs, 128) {
///     println!("{name}");
/// }
/// ```
///
/// [`umad_get_cas_names(3)`]: https://man7.org/linux/man-pages/man3/umad_get_cas_names.3.html
#[doc(alias = "umad_get_cas_names")]
#[must_use]
pub fn get_cas_names(sysfs: &Sysfs, max: usize) -> Vec<CaName> {
    let class = sysfs.folder(file::CLASS);
    let Ok(mut names) = class.steady_names() else {
        return vec![CaName::new(DEFAULT_NAME.as_bytes())];
    };
    names.sort_unstable();
    names
        .iter()
        .filter(|name| name.len() < UMAD_CA_NAME_LEN && is_text(name))
        .filter(|name| is_infiniband(&class, name))
        .take(max)
        .map(|name| CaName::new(name.as_bytes()))
        .collect()
}

/// Lists all channel adapters, switches and routers in the order of the folder, with names of any length.
///
/// ```no_run
/// let sysfs = uverbs::sysfs::Sysfs::host();
/// let mut names = uverbs::umad::strict::get_ca_device_list(&sysfs)?;
/// names.sort();
/// # Ok::<(), uverbs::umad::strict::Failure>(())
/// ```
///
/// # Errors
/// If the folder of the devices exists but cannot be read; `EPROTO` if a name is no UTF-8. The C function then returns
/// NULL and sets `errno` to this error's [value](Failure::value), negated. For an empty list it also returns NULL,
/// with `errno` 0.
#[doc(alias = "umad_get_ca_device_list")]
pub fn get_ca_device_list(sysfs: &Sysfs) -> Result<Vec<String>, Failure> {
    let class = sysfs.folder(file::CLASS);
    let unread = |errno| UnreadFile { path: class.path().to_owned(), errno }.of_host();
    match class.steady_names() {
        Ok(names) if !names.iter().all(|name| is_text(name)) => Err(unread(Errno::PROTO)),
        Ok(names) => Ok(names.into_iter().filter(|name| is_infiniband(&class, name)).collect()),
        Err(cause) if cause.as_errno() == Errno::NOENT => Ok(Vec::new()),
        Err(cause) => Err(unread(cause.as_errno())),
    }
}

/// Reads a CA and all its ports; the default CA if none is named.
///
/// The default is the first device, in the order of the folder, with an active InfiniBand port (or
/// a switch); else the first whose InfiniBand port has its physical link up, or which has none
/// such, but a port of any kind that is not disabled; else `mthca0`.
///
/// ```no_run
/// let sysfs = uverbs::sysfs::Sysfs::host();
/// let ca = uverbs::umad::strict::get_ca(&sysfs, None)?;
/// println!("{} has {} ports", ca.ca_name, ca.numports);
/// # Ok::<(), uverbs::umad::strict::Failure>(())
/// ```
///
/// # Errors
/// Those of [`umad_get_ca(3)`], whose man page does not list them:
/// * `-ENODEV`: no CA is named, and there is no InfiniBand-type device;
/// * `-ENOENT`: no such CA (also one whose name has 20 bytes or more), or no folder of its ports;
/// * `-EINVAL`: `node_guid` or `sys_image_guid` has fewer than 4 groups;
/// * `-EIO`: a port's number is 10 or more, or a port cannot be read or has no P_Keys or no GID at
///   index 0;
/// * any other negative errno: that of reading `node_type`, `node_guid` or `sys_image_guid`.
///
/// [`umad_get_ca(3)`]: https://man7.org/linux/man-pages/man3/umad_get_ca.3.html
#[doc(alias = "umad_get_ca")]
pub fn get_ca(sysfs: &Sysfs, name: Option<&str>) -> Result<Ca, Failure> {
    let (name, _) = resolve(sysfs, name, None)?;
    read_ca(sysfs, &name)
}

/// Reads one port; of the default CA if none is named, and the default port for a `portnum` of 0.
///
/// If the CA and the port are named, the rest of the CA is not read. Otherwise the CA is read as by
/// [`get_ca`], whose rule chooses among devices and ports; a switch's port is always 0. With a `portnum`
/// but no name, only devices count whose port of that number has link layer InfiniBand and is active or, if
/// there is none, not disabled.
///
/// ```no_run
/// let sysfs = uverbs::sysfs::Sysfs::host();
/// let port = uverbs::umad::strict::get_port(&sysfs, Some("mlx5_0"), 1)?;
/// println!("state {}, LID {}", port.state, port.base_lid);
/// # Ok::<(), uverbs::umad::strict::Failure>(())
/// ```
///
/// # Errors
/// Those of [`umad_get_port(3)`], whose man page does not list them:
/// * `-ENODEV`: no CA is named, and there is no InfiniBand-type device; or the named CA is unknown,
///   cannot be read or has no usable port, and `portnum` is 0;
/// * `-EIO`: no such port or CA, or the port cannot be read or has no P_Keys or no GID at index 0.
///
/// [`umad_get_port(3)`]: https://man7.org/linux/man-pages/man3/umad_get_port.3.html
#[doc(alias = "umad_get_port")]
pub fn get_port(sysfs: &Sysfs, name: Option<&str>, portnum: i32) -> Result<Port, Failure> {
    let (name, portnum) = resolve(sysfs, name, Some(portnum))?;
    let device = sysfs.device(&name).map_err(|_| Failure::new(Errno::IO))?;
    read_port_of(&device, &name, portnum).map_err(|unread| unread.of(&name, Errno::IO))
}

/// Writes the port GUIDs of a CA, or of the default CA if none is named, each at the index of its
/// port's number; returns how many were written.
///
/// That is one more than the highest port number: **2 on a CA with one port**, because index 0 is the
/// port of a switch. The GUID is zero if there is no port, or if its GID at index 0 is empty. Without
/// `guids` nothing is written and the result is 0. Entries after the returned count do not change.
///
/// ```no_run
/// use uverbs::guid::Guid;
/// let sysfs = uverbs::sysfs::Sysfs::host();
/// let mut guids = [Guid::default(); 10];
/// let count = uverbs::umad::strict::get_ca_portguids(&sysfs, Some("mlx5_0"), Some(&mut guids))?;
/// for (number, guid) in guids.iter().take(count).enumerate().skip(1) {
///     println!("port {number}: {guid}");
/// }
/// # Ok::<(), uverbs::umad::strict::Failure>(())
/// ```
///
/// # Errors
/// Those of [`umad_get_ca_portguids(3)`], whose man page does not list them:
/// * `-ENODEV`: no CA is named, and there is no InfiniBand-type device;
/// * `-1`: the CA, named or default, is unknown, or fails for any reason of [`get_ca`];
/// * `-ENOMEM`: `guids` has no room for all. Nothing is written.
///
/// [`umad_get_ca_portguids(3)`]: https://man7.org/linux/man-pages/man3/umad_get_ca_portguids.3.html
#[doc(alias = "umad_get_ca_portguids")]
pub fn get_ca_portguids(
    sysfs: &Sysfs,
    name: Option<&str>,
    guids: Option<&mut [Guid]>,
) -> Result<usize, Failure> {
    let (name, _) = resolve(sysfs, name, None)?;
    let ca = read_ca(sysfs, &name).map_err(|failure| failure.with(-1))?;
    let Some(guids) = guids else { return Ok(0) };
    let filled = ca.ports.iter().take(ca.numports as usize + 1);
    let count = filled.len();
    if count > guids.len() {
        return Err(Failure::new(Errno::NOMEM));
    }
    for (guid, port) in guids.iter_mut().zip(filled) {
        *guid = port.as_ref().map_or_else(Guid::default, |port| port.port_guid);
    }
    Ok(count)
}

/// Whether a name in the folder is that of a file: of one that is no UTF-8 odd bytes were replaced.
fn is_text(name: &str) -> bool {
    !name.contains(char::REPLACEMENT_CHARACTER)
}

/// The CA and port to read. `portnum` is `None` if no port is asked for, `Some(0)` for any port.
fn resolve(
    sysfs: &Sysfs,
    name: Option<&str>,
    portnum: Option<i32>,
) -> Result<(String, i32), Failure> {
    // No port has a negative number. With a name it counts as a number, without a name as any port.
    let wanted = portnum.and_then(|number| u32::try_from(number).ok()).filter(|number| *number > 0);
    let no_device = || Failure::new(Errno::NODEV);
    let (name, number) = match (name, portnum) {
        (Some(name), None) => (name.to_owned(), 0),
        (Some(name), Some(number)) if number != 0 => return Ok((name.to_owned(), number)),
        (Some(name), Some(_)) => {
            let best = best_port(sysfs, name, None).map_err(|f| f.with(no_device().value))?;
            (name.to_owned(), best.ok_or_else(no_device)?.number)
        }
        (None, _) => {
            let names = get_ca_device_list(sysfs).map_err(|f| f.with(no_device().value))?;
            if names.is_empty() {
                return Err(no_device());
            }
            let best = |name: &str| Ok(best_port(sysfs, name, wanted).ok().flatten());
            let Ok::<_, Infallible>(best) = choice::device(&names, best);
            best.unwrap_or_else(|| (DEFAULT_NAME.to_owned(), DEFAULT_PORT))
        }
    };
    // Below 10, or the wanted number, which was an i32.
    Ok((name, i32::try_from(number).unwrap_or_default()))
}

fn best_port(sysfs: &Sysfs, name: &str, wanted: Option<u32>) -> Result<Option<Candidate>, Failure> {
    let ca = read_ca(sysfs, name)?;
    let ports: Vec<Seen<u32>> = (0..)
        .zip(&ca.ports)
        .filter_map(|(number, port)| {
            let port = port.as_ref()?;
            let infiniband = port.is_infiniband();
            Some(Seen { number, infiniband, state: port.state, phys_state: port.phys_state })
        })
        .collect();
    Ok(choice::port(ca.node_type == u32::from(NodeType::SWITCH.0), &ports, wanted))
}
