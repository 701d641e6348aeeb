//! Filling an [`Inventory`] from this host, or from a sysfs tree.

use core::cell::LazyCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read as _};
use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::settings::{self, NAMES, Reading, Setting};
use super::{Answer, DeviceRecord, GidRow, Inventory, Parts, PortRecord, Problem, Wanted};
use crate::context::probe_driver;
use crate::device::{Absence, Device};
use crate::error::Error;
use crate::host::Host;
use crate::host::{GidRecord, GidTable, Preference, Reader};
use crate::netlink::route::Dump;
use crate::pkey::PKey;
use crate::port::{LinkLayer, Rate};
use crate::sysfs::Sysfs;
use crate::text::is_plain_char;

/// Modules that RDMA needs, or that people look for.
const MODULES: [&str; 6] = ["ib_core", "ib_uverbs", "ib_umad", "ib_ipoib", "rdma_cm", "rdma_ucm"];

/// The most that is read of a file of settings.
const FILE_LIMIT: u64 = 64 * 1024;

impl Host {
    /// Reads what is wanted. It never fails: what could not be read is a [`Problem`] in its place.
    ///
    /// With [`Parts::host`](super::Parts::host) also the process's environment and NCCL's files are read;
    /// of another host's sysfs tree only the tree.
    #[must_use]
    pub fn inventory(&mut self, wanted: &Wanted<'_>) -> Inventory {
        let parts = wanted.parts;
        let mut inventory = self.listed(wanted);
        let mut tables = Vec::new();
        for record in &mut inventory.devices {
            if parts.host && self.is_here() {
                record.node_mode = node_mode(&record.device);
            }
            if parts.drivers && self.is_here() {
                find_driver(record);
            }
            if parts.has_ports() || parts.gids {
                tables.push(read_device(record, self.sysfs(), wanted));
            }
        }
        if parts.host || inventory.is_empty() {
            inventory.absences = self.absence();
            if !self.is_here() {
                // What this host's /dev holds has no bearing on another's.
                inventory.absences.retain(|reason| !matches!(reason, Absence::NoNodes { .. }));
            }
            inventory.shares_namespaces = self.shares_namespaces();
        }
        if parts.host {
            let modules = self.sysfs().folder("module");
            let is_there = |name: &&str| modules.join(*name).exists();
            inventory.modules = MODULES.into_iter().filter(is_there).map(str::to_owned).collect();
        }
        // Once for all: it costs some drivers commands to their firmware.
        let mut dump = None;
        if parts.interfaces {
            dump = self.dump().unwrap_or_else(|error| {
                inventory.problems.push(error.into());
                None
            });
            inventory.interfaces = dump.as_ref().map(Dump::interfaces);
        }
        if parts.gids {
            self.name_rows(&mut inventory, &tables, dump, wanted);
        }
        if parts.port_netdevs {
            self.name_ports(&mut inventory);
        }
        if parts.types {
            self.find_hidden_types(&mut inventory);
        }
        if parts.host && self.is_here() {
            let uname = rustix::system::uname();
            inventory.host = Some(shown(&uname.nodename().to_string_lossy()));
            inventory.kernel = Some(shown(&uname.release().to_string_lossy()));
            let (settings, problems) = read_settings();
            inventory.settings = settings;
            inventory.problems.extend(problems);
        }
        inventory
    }

    /// The devices that are wanted, of which nothing else is read yet.
    fn listed(&mut self, wanted: &Wanted<'_>) -> Inventory {
        let mut inventory = Inventory::default();
        match self.list() {
            Ok(listing) => {
                for error in &listing.problems {
                    match error.subject() {
                        "host" => inventory.problems.push(error.into()),
                        device => inventory.unlisted.push((device.to_owned(), error.into())),
                    }
                }
                let places = self.places(&listing.devices);
                let (devices, others) =
                    listing.devices.into_iter().partition(|device| (wanted.devices)(device));
                inventory.others = others;
                let devices = self.leave_out(devices, wanted, &mut inventory);
                inventory.devices = devices.into_iter().map(DeviceRecord::new).collect();
                for record in &mut inventory.devices {
                    record.place = places.get(&record.device.name).copied();
                }
            }
            Err(error) => inventory.problems.push(error.into()),
        }
        inventory.without_netlink = self.netlink_error().map(Problem::from);
        // Of devices that sysfs listed, as netlink did not answer, it says nothing.
        let is_known = |record: &DeviceRecord| record.device.index.is_some();
        inventory.has_netlink = self.is_here()
            && inventory.without_netlink.is_none()
            && inventory.devices.iter().all(is_known);
        inventory
    }

    /// Leaves out devices that have no GID of the interface that is wanted.
    fn leave_out(
        &mut self,
        devices: Vec<Device>,
        wanted: &Wanted<'_>,
        inventory: &mut Inventory,
    ) -> Vec<Device> {
        let Some(name) = wanted.netdev else { return devices };
        let known: Vec<&Device> = devices.iter().collect();
        let may = self.may_have_netdev(&known, name).unwrap_or_else(|error| {
            inventory.problems.push(error.into());
            vec![true; devices.len()]
        });
        let mut may = may.into_iter();
        let (left, others): (Vec<_>, Vec<_>) =
            devices.into_iter().partition(|_| may.next().unwrap_or(true));
        inventory.others.extend(others);
        left
    }

    /// Finds the interface of each row.
    fn name_rows(
        &mut self,
        inventory: &mut Inventory,
        tables: &[Option<GidTable>],
        dump: Option<Dump>,
        wanted: &Wanted<'_>,
    ) {
        let is_wanted = |record: &DeviceRecord| {
            let mut rows = record.all_rows().iter();
            rows.any(|row| (wanted.rows)(&record.device, &row.record))
        };
        if !inventory.devices.iter().any(is_wanted) {
            return;
        }
        let known: Vec<&GidTable> = tables.iter().flatten().collect();
        let names = self.netdevs_by(&known, dump).unwrap_or_else(|error| {
            inventory.problems.push(error.into());
            inventory.has_netlink = false;
            Vec::new()
        });
        let mut names = names.into_iter();
        for (record, table) in inventory.devices.iter_mut().zip(tables) {
            let (Some(table), Some(Ok(rows))) = (table, &mut record.gids) else { continue };
            // The rows are those of the table, or one of them.
            let mut rows = rows.iter_mut();
            let mut row = rows.next();
            for (record, name) in table.iter().zip(names.next().unwrap_or_default()) {
                if let Some(own) = row.as_mut().filter(|own| own.record == *record) {
                    own.netdev = name.netdev;
                    own.netdev_is_elsewhere = name.is_elsewhere;
                    row = rows.next();
                }
            }
        }
    }

    /// Finds the interface of each port.
    fn name_ports(&mut self, inventory: &mut Inventory) {
        let numbers = |record: &DeviceRecord| record.ports.iter().map(|port| port.number).collect();
        let listed: Vec<(Device, Vec<u32>)> =
            inventory.devices.iter().map(|it| (it.device.clone(), numbers(it))).collect();
        let ports: Vec<(&Device, u32)> = listed
            .iter()
            .flat_map(|(device, ports)| ports.iter().map(move |port| (device, *port)))
            .collect();
        let found = self.port_netdevs(&ports).unwrap_or_else(|error| {
            inventory.problems.push(error.into());
            // Of no port it is known whether its interface is here.
            inventory.has_netlink = false;
            BTreeMap::new()
        });
        for record in &mut inventory.devices {
            for port in &mut record.ports {
                port.netdev = found.get(&(record.device.name.clone(), port.number)).cloned();
            }
        }
    }

    /// Finds the rows whose types sysfs keeps back.
    fn find_hidden_types(&self, inventory: &mut Inventory) {
        let sysfs = self.sysfs();
        for DeviceRecord { device, gids, .. } in &mut inventory.devices {
            // Its own files, where they are wanted.
            let own = LazyCell::new(|| sysfs.of(device).ok());
            for row in gids.iter_mut().flatten().flatten() {
                row.type_is_hidden |= row.netdev.is_none()
                    && own.as_ref().is_some_and(|own| is_type_hidden(own, &device.name, row));
            }
        }
    }
}

/// A host's name or the like, which may be any bytes, with `?` for what does not show.
fn shown(text: &str) -> String {
    if text.is_empty() {
        return "?".to_owned();
    }
    text.chars().map(|c| if is_plain_char(c) { c } else { '?' }).collect()
}

/// Whether sysfs keeps back the type of a row that has an interface. Only rows that are not known to
/// be ours are asked about, as others are never hidden.
fn is_type_hidden(sysfs: &Sysfs, device: &str, row: &GidRow) -> bool {
    let entry = &row.record.entry;
    row.record.may_have_netdev()
        && sysfs.port(device, entry.port()).is_ok_and(|folder| {
            let types = folder.join("gid_attrs/types");
            types.read_bytes(&entry.index().to_string()) == Err(Errno::INVAL)
        })
}

fn node_mode(device: &Device) -> Option<u32> {
    rustix::fs::stat(&device.node.as_ref()?.path).ok().map(|stat| stat.st_mode)
}

/// Asks a device for its driver, if netlink did not name it. Not to know the driver of a device that
/// cannot be asked is no problem.
fn find_driver(record: &mut DeviceRecord) {
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

/// Reads a device; gives its GID table, by which the rows are named.
fn read_device(record: &mut DeviceRecord, sysfs: &Sysfs, wanted: &Wanted<'_>) -> Option<GidTable> {
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
    record.ports = numbers.map(|port| read_port(&mut reader, &device, port, parts)).collect();
    if wanted.preference != Preference::Sysfs {
        record.access = Some(reader.fallback().map_or(Ok(()), |error| Err(error.into())));
    }
    if let Some(context) = reader.context() {
        record.device.driver = Some(context.driver());
    }
    table
}

/// Reads one entry; and if it has an interface, the table it is in, which shows whose that is.
fn read_slot(
    reader: &mut Reader<'_>,
    port: u32,
    index: u32,
    table: &mut Option<GidTable>,
) -> Result<Vec<GidRecord>, Error> {
    let record = reader.gid(port, index)?;
    if record.as_ref().is_some_and(GidRecord::may_have_netdev) {
        *table = Some(reader.gid_table()?);
    }
    Ok(record.into_iter().collect())
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
        // Kernels before 7.0 do not know the method, and most drivers do not offer it. Where there is no
        // ioctl, the reader says why.
        let is_offered = |answer: &Result<Rate, Error>| {
            let error = answer.as_ref().err();
            !error.is_some_and(|it| it.is_not_supported() || it.leaves_no_ioctl())
        };
        record.effective = asked.filter(is_offered).map(|answer| answer.map_err(Problem::from));
    }
    if parts.guids {
        record.guid = reader.port_guid(number).map_err(Problem::from);
    }
    let is_ethernet = record.known().is_some_and(|it| it.link_layer == LinkLayer::ETHERNET);
    if parts.pkeys && !is_ethernet {
        record.pkeys = Some(read_pkeys(reader, &device.name, number).map_err(Problem::from));
    }
    if parts.types {
        record.has_types = has_types(reader, &device.name, number);
    }
    record
}

/// The P_Keys in use.
fn read_pkeys(reader: &Reader<'_>, device: &str, port: u32) -> Result<Vec<(u32, PKey)>, Error> {
    let mut pkeys = reader.sysfs()?.query_pkeys(device, port)?;
    pkeys.retain(|(_, pkey)| pkey.is_valid());
    Ok(pkeys)
}

/// Whether the files can be read that hold the types of a port's GIDs, which NCCL reads. Not known if
/// another device has taken this one's place.
fn has_types(reader: &Reader<'_>, device: &str, port: u32) -> Option<bool> {
    match reader.sysfs() {
        Ok(sysfs) => {
            let port = sysfs.port(device, port).ok()?;
            Some(port.join("gid_attrs/types").can_be_read())
        }
        Err(error) if error.errno() == Errno::NOENT.raw_os_error() => Some(false),
        Err(_) => None,
    }
}

/// The variables of this process, then those of NCCL's files; and what keeps files from being read.
fn read_settings() -> (Vec<Setting>, Vec<Problem>) {
    let variable =
        |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    let of_process = |name: &&str| Some(Setting::new(*name, variable(name)?, None));
    let mut found: Vec<Setting> = NAMES.iter().filter_map(of_process).collect();
    let mut problems = Vec::new();
    for (path, readings) in files() {
        match read_file(&path) {
            Ok(bytes) => {
                found.extend(settings::parse(&bytes, &path.to_string_lossy(), &readings));
            }
            Err(problem) => problems.push(problem),
        }
    }
    (found, problems)
}

/// The files that NCCL reads, in the order in which they count, with the releases that read them.
fn files() -> Vec<(PathBuf, RangeInclusive<Reading>)> {
    let own = std::env::var_os("NCCL_CONF_FILE").filter(|path| !path.is_empty());
    let own = own.map(PathBuf::from);
    let home = std::env::var_os("HOME");
    let of_home = |home: OsString| {
        let mut path = home;
        path.push("/.nccl.conf");
        PathBuf::from(path)
    };
    let entry = password_home(home.clone()).map(of_home);
    let user = |reading| match reading {
        Reading::V2_4 => entry.clone(),
        Reading::V2_23 => own.clone().or_else(|| entry.clone()),
        Reading::V2_30 => own.clone().or_else(|| home.clone().map(of_home)),
    };
    let mut files: Vec<(PathBuf, RangeInclusive<Reading>)> = Vec::new();
    for reading in Reading::ALL {
        let Some(path) = user(reading) else { continue };
        match files.last_mut() {
            Some((known, readings)) if *known == path => *readings = *readings.start()..=reading,
            _ => files.push((path, reading..=reading)),
        }
    }
    // What the newest release reads comes first.
    files.reverse();
    files.push((PathBuf::from("/etc/nccl.conf"), Setting::everywhere()));
    files
}

/// The home of this user's password entry, of `/etc/passwd`. Where the entry is a directory service's,
/// which cannot be asked from here, it is taken to be `$HOME`.
fn password_home(home: Option<OsString>) -> Option<OsString> {
    let open = |path| std::fs::File::open(path).map(BufReader::new);
    let uid = rustix::process::getuid().as_raw();
    match open("/etc/passwd").map(|file| home_of(file, uid)) {
        Ok(Some(own)) => Some(own),
        _ if open("/etc/nsswitch.conf").is_ok_and(asks_others) => home,
        _ => None,
    }
}

/// A user's home, of a file of password entries.
fn home_of(passwd: impl BufRead, uid: u32) -> Option<OsString> {
    let mut lines = passwd.split(b'\n').map_while(Result::ok);
    lines.find_map(|line| {
        let fields: Vec<&[u8]> = line.split(|byte| *byte == b':').collect();
        let [_, _, own, _, _, home, _] = fields.as_slice() else { return None };
        let own: u32 = std::str::from_utf8(own).ok()?.parse().ok()?;
        (own == uid).then(|| OsString::from_vec(home.to_vec()))
    })
}

/// Whether password entries come from elsewhere than `/etc/passwd` too.
fn asks_others(nsswitch: impl BufRead) -> bool {
    let mut lines = nsswitch.lines().map_while(Result::ok);
    let line = lines.find_map(|line| Some(line.trim_start().strip_prefix("passwd:")?.to_owned()));
    line.is_some_and(|line| {
        let sources = line.split('#').next().unwrap_or_default().split_whitespace();
        sources.into_iter().any(|source| !source.starts_with('[') && source != "files")
    })
}

/// A file of settings; what is not there, or may not be read, is empty, as it is for NCCL. What could
/// make the reader wait is not read.
fn read_file(path: &Path) -> Answer<Vec<u8>> {
    let refused = |what: &str, errno: Errno| Problem {
        text: format!("host: NCCL's settings in {}: {what}: not read", path.display()),
        errno: errno.raw_os_error(),
    };
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let Ok(status) = rustix::fs::stat(path) else { return Ok(Vec::new()) };
    match FileType::from_raw_mode(status.st_mode) {
        FileType::RegularFile => {}
        FileType::Directory => return Ok(Vec::new()),
        // NCCL_CONF_FILE=/dev/null is a way to have no file.
        FileType::CharacterDevice if status.st_rdev == rustix::fs::makedev(1, 3) => {
            return Ok(Vec::new());
        }
        _ => return Err(refused("no regular file", Errno::INVAL)),
    }
    let Ok(file) = rustix::fs::open(path, flags, Mode::empty()) else { return Ok(Vec::new()) };
    let mut bytes = Vec::new();
    // What cannot be read any further has ended, for NCCL too.
    let _ = std::fs::File::from(file).take(FILE_LIMIT + 1).read_to_end(&mut bytes);
    if bytes.len() as u64 > FILE_LIMIT {
        return Err(refused("longer than 64 KiB", Errno::FBIG));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homes_of_users() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\n# none\nodd:x:1000\nx:x:1000:1000:a:/home/x:\n\
                      y:x:1000:1000:a:/home/y:\nz:x:1001:1:::/bin/sh\n";
        let home = |uid| home_of(passwd.as_bytes(), uid).map(|home| home.into_string().unwrap());
        assert_eq!(home(0).as_deref(), Some("/root"));
        assert_eq!(home(1000).as_deref(), Some("/home/x"));
        assert_eq!(home(1001).as_deref(), Some(""));
        assert_eq!(home(1002), None);
    }

    #[test]
    fn sources_of_users() {
        for (text, expected) in [
            ("", false),
            ("hosts: files dns\n", false),
            ("passwd: files # ldap\n", false),
            ("# passwd: ldap\npasswd:files\n", false),
            ("passwd: files [NOTFOUND=return] sss\n", true),
            (" passwd:\tfiles systemd\n", true),
        ] {
            assert_eq!(asks_others(text.as_bytes()), expected, "{text:?}");
        }
    }

    #[test]
    fn files_that_are_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name| folder.path().join(name);
        assert_eq!(read_file(&path("absent")), Ok(Vec::new()));
        assert_eq!(read_file(folder.path()), Ok(Vec::new()));
        assert_eq!(read_file(Path::new("/dev/null")), Ok(Vec::new()));
        std::fs::write(path("file"), "NCCL_IB_HCA=a\n").unwrap();
        assert_eq!(read_file(&path("file")).unwrap(), b"NCCL_IB_HCA=a\n");
        std::fs::write(path("long"), vec![b'#'; 65537]).unwrap();
        assert_eq!(read_file(&path("long")).unwrap_err().errno, 27);
        // Nobody writes to it, so that a reader would wait for ever.
        let fifo = path("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, FileType::Fifo, Mode::RUSR, 0).unwrap();
        let problem = read_file(&fifo).unwrap_err();
        assert!(problem.text.ends_with("/fifo: no regular file: not read"), "{}", problem.text);
    }
}
