//! Counters of all devices and ports, by the cheapest source that has them.
//!
//! RDMA netlink gives all of a driver's own counters of a port in one reply, also in a network namespace where
//! sysfs has none (a pod's); the requests for all ports go out together. Sysfs has a file for each counter,
//! and mlx5 asks its firmware once or twice for each file: it is read where netlink has no answer, for the
//! counters of a whole device, and for those of the performance management agent (PMA), which nothing else
//! has.
//!
//! A port, a group or a file that fails is a problem of its own.

mod cost;
mod files;
mod missing;

use std::collections::{BTreeMap, BTreeSet};

use nix::libc;

use super::{Host, means_no_netlink};
use crate::counter::{Counter, CounterSource, Group, OptionalCounter, ResourceUse};
use crate::device::Device;
use crate::driver::DriverId;
use crate::error::{Cause, Error, Request};
use crate::kernel::lists_all_objects;
use crate::netlink::statistics::{
    counters_request, is_of, mode_request, parse_counters, parse_mode, parse_resources,
    parse_states, resources_request, states_request,
};
use crate::sysfs::{Folder, Sysfs};
pub use cost::Cost;
use cost::{mlx5_commands, software};
use files::FolderRead;
use missing::{gone, means_none, removed};

/// The counters of devices, and what could not be read and is no device's.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Counters {
    /// Each device that was given, in that order.
    pub devices: Vec<DeviceCounters>,
    /// What went wrong and is no device's.
    pub problems: Vec<Error>,
}

/// The counters of a device.
#[derive(Debug)]
#[non_exhaustive]
pub struct DeviceCounters {
    /// Its name.
    pub device: String,
    /// Those of the whole device.
    pub counters: Vec<Counter>,
    /// Its ports, ascending.
    pub ports: Vec<PortCounters>,
    /// How many objects are in use; `None` if netlink does not say, or before Linux 5.5 in a PID namespace that is not the
    /// initial one, where it counts only the reader's.
    pub resources: Option<Vec<ResourceUse>>,
    /// Files of the whole device that were not read: see [`CounterReader::frugal`].
    pub left_out: Vec<String>,
    /// Whether sysfs does not show the device, so that its ports lack what only sysfs has.
    pub is_hidden: bool,
    /// What could not be read and is no port's.
    pub problems: Vec<Error>,
}

/// The counters of a port.
#[derive(Debug)]
#[non_exhaustive]
pub struct PortCounters {
    /// Its number.
    pub number: u32,
    /// Its counters, those of the driver first.
    pub counters: Vec<Counter>,
    /// Counters that can be turned on and off; none before Linux 5.16.
    pub optional: Vec<OptionalCounter>,
    /// Files that were not read: each costs a command to the firmware ([`CounterReader::frugal`]), or the question that
    /// fills it was refused for another file, which is a problem.
    pub left_out: Vec<String>,
    /// What could not be read.
    pub problems: Vec<Error>,
    /// What the reading cost.
    pub cost: Cost,
}

/// Reads counters, and remembers what was refused.
///
/// What a port refused is not asked again by the same reader: with restricted functions each refusal is a
/// line in the kernel's log. Its error is given again instead. It is asked again if the device is replaced,
/// or was not among those of the reading before, or after [`forget`](Self::forget).
///
/// ```no_run
/// use uverbs::Host;
/// use uverbs::host::CounterReader;
///
/// let mut host = Host::new();
/// let devices = host.devices()?;
/// let mut reader = CounterReader::new();
/// for device in reader.read(&mut host, &devices, &|_, _| true).devices {
///     for port in device.ports {
///         for counter in port.counters {
///             println!("{}:{} {} {:?}", device.device, port.number, counter.name, counter.reading);
///         }
///     }
/// }
/// # Ok::<(), uverbs::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct CounterReader {
    is_frugal: bool,
    refused: BTreeMap<Place, Error>,
}

/// Something that can be refused. A device is the same as long as its name, index and folder are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    device: (String, Option<u32>, Option<u64>),
    port: Option<u32>,
    what: Way,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    /// All of a driver's counters of a port, by netlink.
    Netlink,
    /// The files that the kernel fills from one attribute of the PMA.
    Traffic,
    Errors,
    /// A file of `hw_counters`.
    File(String),
}

/// What came of asking netlink for a port's counters.
#[derive(Debug, Default)]
struct FromNetlink {
    /// The driver's counters, or why there are none.
    counters: Option<Result<Vec<(String, u64)>, Cause>>,
    /// How many there are by name, without a question to the driver.
    count: usize,
    /// Whether no queue pair has counters of its own.
    is_plain: bool,
}

/// The devices in the kernel's list of objects in use.
#[derive(Debug, Default)]
struct Listed {
    indices: BTreeSet<u32>,
    names: BTreeSet<String>,
}

/// Files that say what matters most, of those that cost a command each.
const FRUGAL: [&str; 8] = [
    "port_rcv_data",
    "port_xmit_data",
    "link_downed",
    "symbol_error",
    // Of the driver, where netlink does not have them.
    "out_of_buffer",
    "out_of_sequence",
    "packet_seq_err",
    "local_ack_timeout_err",
];

impl Listed {
    /// Whether a device that is not in it has another name by now, or another one has its name.
    fn has_another(&self, device: &Device) -> bool {
        self.names.contains(&device.name)
            || device.index.is_some_and(|index| self.indices.contains(&index))
    }
}

impl CounterReader {
    /// A reader of all counters.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A reader that leaves out most files where each costs a command to the firmware (drivers mlx5 and mlx4).
    /// Of the PMA it reads data, `link_downed` and `symbol_error`; of the driver's counters that
    /// netlink does not have, `out_of_buffer`, `out_of_sequence`, `packet_seq_err` and
    /// `local_ack_timeout_err`.
    #[must_use]
    pub fn frugal() -> Self {
        Self { is_frugal: true, ..Self::default() }
    }

    /// Asks again for what was refused.
    pub fn forget(&mut self) {
        self.refused.clear();
    }

    /// Reads the counters of these ports of these devices.
    ///
    /// Where a network namespace or a container hides sysfs, what only sysfs has is not there: that is no
    /// problem ([`DeviceCounters::is_hidden`]).
    #[must_use]
    pub fn read(
        &mut self,
        host: &mut Host,
        devices: &[Device],
        ports: &dyn Fn(&Device, u32) -> bool,
    ) -> Counters {
        let listed: BTreeSet<_> = devices.iter().map(identity).collect();
        self.refused.retain(|place, _| listed.contains(&place.device));
        let mut found = Counters::default();
        for device in devices {
            let numbers = device.ports().filter(|port| ports(device, *port));
            found.devices.push(DeviceCounters {
                device: device.name.clone(),
                counters: Vec::new(),
                ports: numbers.map(PortCounters::new).collect(),
                resources: None,
                left_out: Vec::new(),
                is_hidden: false,
                problems: Vec::new(),
            });
        }
        let (told, listed) = self.ask(host, devices, &mut found);
        let mut told = told.into_iter();
        let tree = host.sysfs().anew();
        for (device, own) in devices.iter().zip(&mut found.devices) {
            let sysfs = Self::open(&tree, device, own);
            if sysfs.is_none() && own.problems.is_empty() {
                own.problems.extend(gone(host, device));
            }
            for port in &mut own.ports {
                let told = told.next().unwrap_or_default();
                self.fill(device, port, told, sysfs.as_ref());
            }
            if let Some(sysfs) = &sysfs {
                self.read_device(device, sysfs, own);
                own.problems.extend(removed(device, sysfs));
            }
            // The kernel passes over a device if another one goes while it lists them.
            let is_left_out = own.resources.is_none() && device.index.is_some();
            let listed = listed.as_ref().filter(|_| is_left_out);
            // With another name, or none, it is not found there.
            let is_gone =
                |error: &Error| matches!(error.cause(), Cause::Replaced | Cause::DeviceGone(_));
            let is_said = own.ports.iter().flat_map(|port| &port.problems).any(is_gone);
            if let Some(listed) = listed.filter(|_| own.problems.is_empty() && !is_said) {
                let cause = if listed.has_another(device) {
                    Cause::Replaced
                } else {
                    Cause::Malformed("the device is not in it")
                };
                own.problems.push(Error::new(&*device.name, Request::Resources, cause));
            }
        }
        found
    }

    /// Asks netlink for all ports together: what it said of each, in their order, and of which devices it lists objects
    /// in use; `None` if it lists none.
    fn ask(
        &self,
        host: &mut Host,
        devices: &[Device],
        found: &mut Counters,
    ) -> (Vec<FromNetlink>, Option<Listed>) {
        let count = found.devices.iter().map(|own| own.ports.len()).sum();
        let mut told: Vec<FromNetlink> =
            core::iter::repeat_with(FromNetlink::default).take(count).collect();
        let is_listed = devices.iter().any(|device| device.index.is_some());
        let socket = host.socket().unwrap_or_else(|error| {
            let is_missed = !devices.is_empty() && !means_no_netlink(error.errno());
            found.problems.extend(is_missed.then_some(error));
            None
        });
        let Some(socket) = socket.filter(|_| is_listed) else { return (told, None) };
        let (mut requests, mut places, mut own_place) = (Vec::new(), Vec::new(), 0);
        for (number, (device, own)) in devices.iter().zip(&mut found.devices).enumerate() {
            for (place, port) in own.ports.iter_mut().enumerate() {
                let place_of_told = own_place;
                own_place += 1;
                let Some(index) = device.index else { continue };
                if self.refusal(device, Some(port.number), Way::Netlink).is_some() {
                    continue;
                }
                // Of these the driver is asked the first only.
                let asked = [counters_request, states_request, mode_request];
                for (question, request) in asked.into_iter().enumerate() {
                    requests.push(request(index, port.number));
                    places.push((number, place, place_of_told, question));
                    port.cost.netlink_requests += 1;
                }
            }
        }
        let mut states = Vec::new();
        let asked = socket.ask(requests, |request, reply| {
            let Some(&(number, place, own, question)) = places.get(request) else { return Ok(()) };
            let Some(told) = told.get_mut(own) else { return Ok(()) };
            let reply = reply.map_err(Cause::of);
            let name = devices.get(number).map_or("", |device| &*device.name);
            let reply = reply.and_then(|reply| is_of(reply, name).map(|()| reply));
            match question {
                0 => told.counters = Some(reply.and_then(parse_counters)),
                1 => states.push((number, place, own, reply.and_then(parse_states))),
                _ => told.is_plain = reply.and_then(parse_mode) == Ok(Some(true)),
            }
            Ok(())
        });
        let lists_all = lists_all_objects();
        let resources = socket.dump(&resources_request(), |reply| Ok(parse_resources(reply)));
        for (number, place, own, answer) in states {
            let device = found.devices.get_mut(number);
            let port = device.and_then(|own| own.ports.get_mut(place));
            let (Some(port), Some(told), Some(device)) =
                (port, told.get_mut(own), devices.get(number))
            else {
                continue;
            };
            match answer {
                Ok((count, optional)) => (told.count, port.optional) = (count, optional),
                // The driver has no counters, or the kernel is older than the question; or it is said already.
                Err(cause) if means_none(&cause, 0) => {}
                Err(cause)
                    if told.counters.as_ref().is_some_and(|own| own.as_ref() == Err(&cause)) => {}
                Err(cause) => {
                    let request = Request::Counters { port: Some(port.number) };
                    port.problems.push(Error::new(&*device.name, request, cause));
                }
            }
        }
        for problem in [asked.err(), resources.as_ref().err().cloned()].into_iter().flatten() {
            found.problems.push(Error::of_host(Request::Netlink, problem));
        }
        let lists_resources = lists_all && resources.is_ok();
        let mut in_use: BTreeMap<(u32, String), Vec<ResourceUse>> = BTreeMap::new();
        for own in resources.unwrap_or_default() {
            match own {
                Ok((index, name, own)) => drop(in_use.insert((index, name), own)),
                Err(cause) => found.problems.push(Error::of_host(Request::Resources, cause)),
            }
        }
        for (device, own) in devices.iter().zip(&mut found.devices) {
            let place = device.index.map(|index| (index, device.name.clone()));
            own.resources =
                place.and_then(|place| in_use.get(&place).cloned()).filter(|_| lists_all);
        }
        let listed = lists_resources.then(|| {
            let (indices, names) = in_use.into_keys().unzip();
            Listed { indices, names }
        });
        (told, listed)
    }

    /// The device's files, if there are any.
    fn open(sysfs: &Sysfs, device: &Device, own: &mut DeviceCounters) -> Option<Sysfs> {
        match sysfs.of(device) {
            Ok(sysfs) => Some(sysfs),
            // Hidden by a container, or gone.
            Err(error) if error.errno() == libc::ENOENT && device.index.is_some() => {
                own.is_hidden = true;
                None
            }
            Err(error) => {
                own.problems.push(error);
                None
            }
        }
    }

    /// Reads a port.
    fn fill(
        &mut self,
        device: &Device,
        port: &mut PortCounters,
        told: FromNetlink,
        sysfs: Option<&Sysfs>,
    ) {
        let mut commands = software(device.driver);
        let number = Some(port.number);
        let folder = sysfs.and_then(|sysfs| sysfs.port(&device.name, port.number).ok());
        if let Some(error) = self.refusal(device, number, Way::Netlink) {
            port.problems.push(error.clone());
        } else {
            match told.counters {
                Some(Ok(counters)) => {
                    if device.driver == Some(DriverId::MLX5) && told.is_plain {
                        commands = Some(mlx5_commands(&counters, &port.optional));
                    }
                    port.counters.extend(counters.into_iter().map(|(name, value)| {
                        let (group, source) = (Group::Hardware, CounterSource::Netlink);
                        Counter::new(name, group, source, device.driver, value)
                    }));
                }
                // The driver was asked for counters that it has, and failed; or it was not asked, as the device is
                // another one.
                Some(Err(cause)) if !means_none(&cause, told.count) => {
                    commands = None;
                    let request = Request::Counters { port: number };
                    let error = Error::new(&*device.name, request, cause);
                    self.refuse(device, number, Way::Netlink, &error);
                    port.problems.push(error);
                }
                // It has none, or more than fit into a message; or there is no netlink.
                _ => {
                    if let Some(folder) = folder.as_ref().map(|folder| folder.join("hw_counters")) {
                        if device.driver == Some(DriverId::MLX5) {
                            commands = None;
                        }
                        let read = self.read_folder(device, number, &folder);
                        port.take(read);
                    }
                }
            }
        }
        if let Some(folder) = &folder {
            let read = self.read_pma(device, port.number, &folder.join("counters"));
            if let (Some(DriverId::MLX5), Some(commands)) = (device.driver, &mut commands) {
                *commands += read.files;
            }
            if !read.problems.is_empty() && device.driver == Some(DriverId::MLX5) {
                commands = None;
            }
            port.take(read);
        }
        port.cost.firmware_commands = commands;
    }

    /// Reads the counters of a whole device, which only sysfs has.
    fn read_device(&mut self, device: &Device, sysfs: &Sysfs, own: &mut DeviceCounters) {
        let Ok(folder) = sysfs.device(&device.name) else { return };
        let read = self.read_folder(device, None, &folder.join("hw_counters"));
        own.counters = read.counters;
        own.left_out = read.left_out;
        own.problems.extend(read.problems);
    }

    /// Reads a folder of the driver's counters.
    fn read_folder(&mut self, device: &Device, port: Option<u32>, folder: &Folder) -> FolderRead {
        let mut read = FolderRead::default();
        for name in read.names(device, port, folder) {
            if self.leaves_out(device, &name) {
                read.left_out.push(name);
                continue;
            }
            if let Some(error) = self.refusal(device, port, Way::File(name.clone())) {
                read.problems.push(error.clone());
                continue;
            }
            if let Err(error) = read.file(device, Group::Hardware, folder, &name) {
                self.refuse(device, port, Way::File(name), &error);
                let is_gone = error.is_gone() || folder.is_gone();
                read.problems.push(error);
                if is_gone {
                    break;
                }
            }
        }
        read
    }

    /// Reads the counters of the PMA. The kernel fills all files of an attribute by the same question, so
    /// that if one is refused, all are.
    fn read_pma(&mut self, device: &Device, port: u32, folder: &Folder) -> FolderRead {
        let mut read = FolderRead::default();
        let number = Some(port);
        let mut failed = Vec::new();
        for name in read.names(device, number, folder) {
            if self.leaves_out(device, &name) {
                read.left_out.push(name);
                continue;
            }
            let is_traffic = name.ends_with("_data") || name.ends_with("_packets");
            let what = if is_traffic { Way::Traffic } else { Way::Errors };
            if failed.contains(&what) {
                if !read.problems.iter().any(|error| is_of_file(error, &name)) {
                    read.left_out.push(name);
                }
                continue;
            }
            if let Some(error) = self.refusal(device, number, what.clone()) {
                if !is_of_file(error, &name) {
                    read.left_out.push(name);
                }
                read.problems.push(error.clone());
                failed.push(what);
                continue;
            }
            if let Err(error) = read.file(device, Group::Pma, folder, &name) {
                if !matches!(error.cause(), Cause::Malformed(_) | Cause::MalformedFile { .. }) {
                    self.refuse(device, number, what.clone(), &error);
                    failed.push(what);
                }
                read.problems.push(error);
            }
        }
        read
    }

    /// Whether a file is not read, as it costs a command.
    fn leaves_out(&self, device: &Device, name: &str) -> bool {
        let costs_commands = matches!(device.driver, Some(DriverId::MLX5 | DriverId::MLX4));
        self.is_frugal && costs_commands && !FRUGAL.contains(&name)
    }

    fn refusal(&self, device: &Device, port: Option<u32>, what: Way) -> Option<&Error> {
        if self.refused.is_empty() {
            return None;
        }
        self.refused.get(&Place { device: identity(device), port, what })
    }

    /// Remembers a refusal, unless it may be another next time.
    fn refuse(&mut self, device: &Device, port: Option<u32>, what: Way, error: &Error) {
        const LASTING: [i32; 9] = [
            libc::EINVAL,
            libc::EIO,
            libc::ENXIO,
            libc::EOPNOTSUPP,
            libc::EPERM,
            libc::EACCES,
            libc::EREMOTEIO,
            libc::EPROTO,
            libc::ENODATA,
        ];
        if LASTING.contains(&error.errno()) {
            self.refused.insert(Place { device: identity(device), port, what }, error.clone());
        }
    }
}

impl PortCounters {
    /// A port of which nothing was read yet.
    #[must_use]
    pub fn new(number: u32) -> Self {
        Self {
            number,
            counters: Vec::new(),
            optional: Vec::new(),
            left_out: Vec::new(),
            problems: Vec::new(),
            cost: Cost::default(),
        }
    }

    fn take(&mut self, read: FolderRead) {
        self.counters.extend(read.counters);
        self.left_out.extend(read.left_out);
        self.problems.extend(read.problems);
        self.cost.files += read.files;
    }
}

/// Whether an error is that of a file of this name.
fn is_of_file(error: &Error, name: &str) -> bool {
    matches!(error.request(), Request::Sysfs { path } if path.ends_with(name))
}

fn identity(device: &Device) -> (String, Option<u32>, Option<u64>) {
    let folder = device.identity.device.as_ref().or(device.identity.node.as_ref());
    (device.name.clone(), device.index, folder.map(|folder| folder.inode))
}

#[cfg(test)]
mod tests;
