//! Changes during a query: devices are removed in every phase of a query, modules are unloaded, addresses
//! and VLANs come and go.

use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv6Addr;
use std::num::NonZeroU32;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use nix::libc;
use rustix::system::delete_module;
use uverbs::context::Context;
use uverbs::error::Cause;
use uverbs::gid::{Gid, GidEntry, GidType};
use uverbs::host::Host;
use uverbs::host::{GidRecord, Preference, Reader};
use uverbs::sysfs::Sysfs;
use uverbs::umad;

use super::costs::traced;
use super::limits::{baseline, right_or_refused};
use crate::boot;
use crate::lab::{self, Netdev, SoftRoce, run};
use uverbs_vm::{has_its_turn, sample};

/// Every query of a device that was removed while it was open fails with `EIO`, unless the removal waits.
pub(super) fn answers_after_removal(context: &Context, waits: bool) -> Result<()> {
    for error in [
        context.query_gid_table().err(),
        context.query_gid_ex(1, 0).err(),
        context.query_port(1).err(),
        context.query_device().err(),
    ] {
        match error {
            Some(error) => {
                println!("{error}");
                ensure!(*error.cause() == Cause::DeviceGone(libc::EIO), "{error:?}");
            }
            None => ensure!(waits, "an answer of a device that is gone"),
        }
    }
    Ok(())
}

/// The device of an open context is removed: each query says so, and a new listing is empty.
pub(crate) fn removed_while_open() -> Result<()> {
    let lab = lab::vlan_lab()?;
    let mut host = Host::new();
    let device = host.device("rxe0")?;
    let context = Context::open(&device)?;
    let removal = thread::spawn(move || drop(lab));
    lab::wait_for_removal(&removal)?;
    let waits = !removal.is_finished();
    println!("the removal {} for the context", if waits { "waits" } else { "does not wait" });
    answers_after_removal(&context, waits)?;
    drop(context);
    removal.join().map_err(|_| anyhow::anyhow!("the removal failed"))?;
    ensure!(host.devices()?.is_empty(), "the device is still listed");
    let error = Context::open(&device).err().context("a device that is gone opened")?;
    println!("{error}");
    ensure!(matches!(error.cause(), Cause::NodeMissing | Cause::DeviceGone(_)), "{error:?}");
    Ok(())
}

/// Devices come and go while they are listed and read: right answers or clear errors.
pub(crate) fn vanishing_while_read() -> Result<()> {
    let netdev = Netdev::dummy("d0", "02:11:22:33:44:55")?;
    netdev.address("192.168.77.1/24")?;
    let steady_netdev = Netdev::dummy("d1", "02:66:77:88:99:aa")?;
    let steady = SoftRoce::new("rxe1", &steady_netdev)?;
    steady.wait_for_gids(1)?;
    while_changing(|_| SoftRoce::new("rxe0", &netdev).map(drop), read_devices)
}

/// Reads while another thread makes changes, one round after another.
fn while_changing(
    change: impl Fn(u32) -> Result<()> + Sync,
    read: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let changes = scope.spawn(|| -> Result<u32> {
            let mut rounds = 0;
            while !stop.load(Ordering::Relaxed) {
                change(rounds)?;
                rounds += 1;
            }
            Ok(rounds)
        });
        let result = read();
        stop.store(true, Ordering::Relaxed);
        let rounds = changes.join().map_err(|_| anyhow::anyhow!("the changes panicked"))??;
        println!("{rounds} rounds of changes");
        result
    })
}

fn read_devices() -> Result<()> {
    let (mut complete, mut errors) = (0, 0);
    for round in 0..60 {
        for mut host in [Host::new(), Host::rooted("/sys", "/dev/infiniband")] {
            let devices = host.devices()?;
            ensure!(devices.iter().any(|device| device.name == "rxe1"), "{devices:?}");
            for device in devices {
                // Sysfs has 1,024 slots to read: not each time.
                let preferences = [Preference::Ioctl, Preference::Sysfs];
                for preference in preferences.into_iter().take(1 + usize::from(round % 20 == 0)) {
                    let table = Reader::new(&device, host.sysfs(), preference)
                        .and_then(|mut reader| reader.gid_table());
                    match table {
                        Ok(table) => {
                            complete += 1;
                            let bad = table.iter().find(|record| {
                                record.entry.gid().is_zero() || record.entry.port() != 1
                            });
                            ensure!(bad.is_none(), "{bad:?}");
                        }
                        Err(error) => {
                            errors += 1;
                            ensure!(device.name == "rxe0", "rxe1 stands: {error}");
                        }
                    }
                }
            }
        }
    }
    println!("{complete} tables, {errors} errors of the device that comes and goes");
    ensure!(complete >= 60 * 2 + 3 * 2, "rxe1 was not always read");
    Ok(())
}

/// A device exists while one that the kernel lists before it is removed: it is in every list, though
/// the kernel's own listings leave it out now and then.
pub(crate) fn standing_while_listed() -> Result<()> {
    let [passing, standing] =
        [Netdev::dummy("d0", "02:11:22:33:44:55")?, Netdev::dummy("d1", "02:66:77:88:99:aa")?];
    for host in [Host::new(), Host::rooted("/sys", "/dev/infiniband")] {
        list_while_one_goes(host, &passing, &standing)?;
    }
    Ok(())
}

fn list_while_one_goes(mut host: Host, passing: &Netdev, standing: &Netdev) -> Result<()> {
    let rounds = if sample().is_some() { 8 } else { 25 };
    // Odd while rxe1 exists, another number each time.
    let phase = AtomicU32::new(0);
    let mut listed = 0;
    thread::scope(|scope| {
        let changes = scope.spawn(|| -> Result<()> {
            for _ in 0..rounds {
                let first = SoftRoce::new("rxe0", passing)?;
                let second = SoftRoce::new("rxe1", standing)?;
                phase.fetch_add(1, Ordering::SeqCst);
                drop(first);
                phase.fetch_add(1, Ordering::SeqCst);
                drop(second);
            }
            Ok(())
        });
        while !changes.is_finished() {
            let before = phase.load(Ordering::SeqCst);
            let devices = host.devices()?;
            if before % 2 == 1 && phase.load(Ordering::SeqCst) == before {
                listed += 1;
                ensure!(devices.iter().any(|device| device.name == "rxe1"), "{devices:?}");
            }
        }
        changes.join().map_err(|_| anyhow::anyhow!("the changes panicked"))?
    })?;
    println!("figure: listed {listed} times while a device before it went away");
    ensure!(listed >= rounds, "listed {listed} times only");
    Ok(())
}

/// Addresses come and go while the table is read: never a row that was not there.
pub(crate) fn addresses_while_read() -> Result<()> {
    let netdev = Netdev::dummy("d0", "02:11:22:33:44:55")?;
    netdev.address("192.168.77.1/24")?;
    let rxe = SoftRoce::new("rxe0", &netdev)?;
    rxe.wait_for_gids(2)?;
    let change = |round| {
        let address = format!("10.0.0.{}/32", round % 50 + 1);
        netdev.address(&address)?;
        run(&["ip", "address", "delete", &address, "dev", "d0"]).map(drop)
    };
    while_changing(change, read_addresses)
}

fn read_addresses() -> Result<()> {
    let mut host = Host::new();
    let device = host.device("rxe0")?;
    let mut ioctl = Reader::new(&device, host.sysfs(), Preference::Ioctl)?;
    let mut sysfs = Reader::new(&device, host.sysfs(), Preference::Sysfs)?;
    let mut seen = 0;
    for round in 0..400 {
        // Sysfs has 1,024 slots to read: not each time.
        let readers = if round % 20 == 0 { vec![&mut ioctl, &mut sysfs] } else { vec![&mut ioctl] };
        for reader in readers {
            let table = reader.gid_table()?;
            for steady in ["fe80::11:22ff:fe33:4455", "::ffff:192.168.77.1"] {
                let found = table.iter().filter(|r| r.entry.gid().to_string() == steady).count();
                ensure!(found == 1, "{steady} is there {found} times: {table:#?}");
            }
            for record in &table {
                let entry = &record.entry;
                let known = entry.gid().ipv4().is_none_or(|address| {
                    let [a, b, c, _] = address.octets();
                    [a, b, c] == [10, 0, 0] || [a, b, c] == [192, 168, 77]
                });
                ensure!(known && entry.gid_type() == GidType::ROCE_V2, "{record:?}");
                seen += 1;
            }
        }
    }
    println!("{seen} rows read");
    Ok(())
}

/// The device is removed at each system call of a command, which waits there meanwhile: the answer is
/// that of before, or an error, or that of a host without devices.
pub(crate) fn removed_at_every_call() -> Result<()> {
    const LOG: &str = "/tmp/strace";
    /// How long the command waits at the call; the removal takes a tenth of it.
    const WAIT: Duration = Duration::from_millis(700);
    let is_newest = lab::is_newest_kernel()?;
    let command = ["/usr/bin/uverbs", "gids", "--json"];
    let netdev = Netdev::dummy("d0", MAC)?;
    netdev.address("192.168.77.1/24")?;
    let vlan = netdev.vlan(7)?;
    vlan.address("10.7.0.1/24")?;
    let made = || -> Result<SoftRoce> {
        let rxe = SoftRoce::new("rxe0", &netdev)?;
        rxe.wait_for_gids(4)?;
        Ok(rxe)
    };
    let (all, calls) = {
        let _rxe = made()?;
        (baseline("gids")?, traced(&command)?)
    };
    // How often each call was made before this one, itself included.
    let mut counts = BTreeMap::<String, u32>::new();
    let (mut whole, mut refused, mut asking) = (0, 0, 0);
    for (place, call) in calls.iter().enumerate() {
        let name = call.split('(').next().and_then(|words| words.split_whitespace().last());
        let name = name.context("no name")?;
        let number = counts.entry(name.to_owned()).or_default();
        *number += 1;
        // Of listing and asking. Before and between are what a program does for itself.
        if !["openat", "sendto", "recvmmsg", "recvmsg", "ioctl", "getdents64", "read"]
            .contains(&name)
        {
            continue;
        }
        asking += 1;
        if is_newest && !has_its_turn(asking, 3) {
            continue;
        }
        let rxe = made()?;
        let wait = uverbs_vm::stretched(WAIT).as_micros();
        let inject = format!("inject={name}:delay_enter={wait}:when={number}");
        let child = Command::new("strace")
            .args(["-f", "-o", LOG, "-e", "trace=all", "-e", &inject])
            .args(command)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let reached = || fs::read_to_string(LOG).is_ok_and(|log| log.lines().count() >= place);
        lab::wait_until("the call is reached", reached)?;
        drop(rxe);
        let output = child.wait_with_output()?;
        fs::remove_file(LOG)?;
        let said = String::from_utf8_lossy(&output.stderr);
        let told = right_or_refused("gids", &all, &output).with_context(|| call.clone())?;
        println!("{name} {number}: {}", if told { "all rows" } else { said.trim() });
        *(if told { &mut whole } else { &mut refused }) += 1;
    }
    println!(
        "figure: removed at {} calls: {whole} whole answers, {refused} refusals",
        whole + refused
    );
    ensure!(whole > 0 && refused > 0, "{whole} and {refused}");
    Ok(())
}

/// A device is listed and then removed: opening it and reading it by sysfs say so. The same with its
/// node open, before there is a context.
pub(crate) fn removed_before_the_open() -> Result<()> {
    let mut host = Host::new();
    let lab = lab::vlan_lab()?;
    let device = host.device("rxe0")?;
    drop(lab);
    let gone = |cause: &Cause| matches!(cause, Cause::NodeMissing | Cause::DeviceGone(_));
    let error = Context::open(&device).err().context("it opened")?;
    println!("{error}");
    ensure!(gone(error.cause()), "{error:?}");
    for preference in [Preference::Auto, Preference::Sysfs] {
        let table = Reader::new(&device, host.sysfs(), preference)
            .and_then(|mut reader| reader.gid_table());
        let error = table.err().context("a table of a device that is gone")?;
        println!("{error}");
        let is_gone = matches!(error.errno(), 2 | 19);
        ensure!(is_gone && error.to_string().contains("list the devices"), "{error:?}");
    }
    ensure!(host.devices()?.is_empty());

    let lab = lab::vlan_lab()?;
    let device = host.device("rxe0")?;
    let node = fs::File::open("/dev/infiniband/uverbs0")?;
    let removal = thread::spawn(move || drop(lab));
    lab::wait_for_removal(&removal)?;
    let waits = !removal.is_finished();
    let error = Context::import(&device, node.into()).err().context("taken over")?;
    println!("{error}");
    ensure!(waits || gone(error.cause()), "{error:?}");
    removal.join().map_err(|_| anyhow::anyhow!("the removal failed"))
}

/// Tables are read without a pause while the device is removed: each that is given is whole, and what
/// comes after says that the device is gone.
pub(crate) fn removed_while_reading() -> Result<()> {
    let lab = lab::vlan_lab()?;
    let context = Host::new().open("rxe0")?;
    let right = context.query_gid_table()?;
    let (going, stop) = (AtomicBool::new(false), AtomicBool::new(false));
    let read = || -> Result<_> {
        let mut given = 0;
        while !stop.load(Ordering::SeqCst) {
            match context.query_gid_table() {
                Ok(table) if table == right => given += 1,
                // A device that is going loses its entries one by one.
                Ok(table) => {
                    let known = table.iter().all(|row| right.contains(row));
                    ensure!(known && going.load(Ordering::SeqCst), "{table:?}");
                }
                Err(error) => return Ok((given, Some(error))),
            }
        }
        Ok((given, None))
    };
    let (removal, waits, ends) = thread::scope(|scope| -> Result<_> {
        let readers = [scope.spawn(read), scope.spawn(read)];
        thread::sleep(Duration::from_millis(50));
        going.store(true, Ordering::SeqCst);
        let removal = thread::spawn(move || drop(lab));
        let waited = lab::wait_for_removal(&removal);
        let waits = !removal.is_finished();
        if waits {
            stop.store(true, Ordering::SeqCst);
        }
        let ends = readers.map(|reader| reader.join().map_err(|_| anyhow::anyhow!("a panic"))?);
        waited?;
        Ok((removal, waits, ends))
    })?;
    for end in ends {
        let (given, error) = end?;
        println!("{given} tables, then {error:?}");
        ensure!(given > 0);
        match error {
            Some(error) => {
                ensure!(*error.cause() == Cause::DeviceGone(libc::EIO), "{error:?}");
            }
            None => ensure!(waits, "read to the end without an error"),
        }
    }
    drop(context);
    removal.join().map_err(|_| anyhow::anyhow!("the removal failed"))?;
    guids_of_a_port_that_goes()
}

/// Each port has its GUID, or an error, as long as there is one to read: the kernel takes the files of a table away one
/// after the other.
fn guids_of_a_port_that_goes() -> Result<()> {
    const ROUNDS: u32 = 12;
    let netdev = Netdev::dummy("d0", MAC)?;
    let (mut given, mut refused) = (0, 0);
    for _ in 0..ROUNDS {
        let rxe = SoftRoce::new("rxe0", &netdev)?;
        rxe.settle()?;
        let stop = AtomicBool::new(false);
        let read = || -> Result<_> {
            let (mut given, mut refused) = (0, 0);
            while !stop.load(Ordering::SeqCst) {
                let Ok(guids) = umad::port_guids(&Sysfs::host(), Some("rxe0")) else { continue };
                for (_, guid) in guids.guids {
                    ensure!(!matches!(guid, Ok(None)), "a GUID that is there is none");
                    given += u32::from(guid.is_ok());
                    refused += u32::from(guid.is_err());
                }
            }
            Ok((given, refused))
        };
        let counts = thread::scope(|scope| {
            let reader = scope.spawn(read);
            thread::sleep(Duration::from_millis(20));
            drop(rxe);
            stop.store(true, Ordering::SeqCst);
            reader.join().map_err(|_| anyhow::anyhow!("a panic"))?
        })?;
        given += counts.0;
        refused += counts.1;
    }
    println!("figure: {given} GUIDs of a port that goes, {refused} errors");
    ensure!(given > 0);
    Ok(())
}

/// The driver's module is unloaded, and all of RDMA's: what is open keeps them, else a host without
/// devices says why it has none; loaded again, all is as before.
pub(crate) fn modules_are_unloaded() -> Result<()> {
    let netdev = Netdev::dummy("d0", MAC)?;
    netdev.address("192.168.77.1/24")?;
    // It goes with its module.
    std::mem::forget(SoftRoce::new("rxe0", &netdev)?);
    let result = unload_everything();
    boot::load_missing_modules()?;
    drop(netdev);
    result?;
    ensure!(Host::new().devices()?.is_empty());
    let _lab = lab::vlan_lab()?;
    ensure!(baseline("gids")?.len() == 4);
    Ok(())
}

fn unload_everything() -> Result<()> {
    let mut host = Host::new();
    let context = host.open("rxe0")?;
    match delete_module(c"rdma_rxe", NONBLOCK) {
        Err(rustix::io::Errno::AGAIN) => {
            println!("an open context keeps the module");
            ensure!(context.query_gid_table()?.len() == 2);
        }
        Ok(()) => {
            println!("an open context does not keep the module");
            let error = context.query_gid_table().err().context("it answers without a driver")?;
            ensure!(matches!(error.cause(), Cause::DeviceGone(_)), "{error:?}");
        }
        Err(other) => return Err(other.into()),
    }
    drop(context);

    let mut unloaded = Vec::new();
    unload("rdma_rxe", &mut unloaded)?;
    ensure!(host.devices()?.is_empty() && Host::new().devices()?.is_empty());
    // It keeps a socket of RDMA netlink, and that a module.
    drop(host);
    unload("ib_core", &mut unloaded)?;
    println!("unloaded: {unloaded:?}");
    ensure!(Host::new().devices()?.is_empty());
    let output = lab::output(&["uverbs", "gids"])?;
    println!("{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success() && said.contains("no RDMA module is loaded"), "{said}");
    Ok(())
}

/// The flag of `delete_module` for not waiting.
const NONBLOCK: i32 = 0o4000;

/// Unloads a module, and before it those that need it.
fn unload(name: &str, unloaded: &mut Vec<String>) -> Result<()> {
    if !fs::exists(format!("/sys/module/{name}"))? {
        return Ok(());
    }
    for holder in lab::names_in(&format!("/sys/module/{name}/holders"))? {
        unload(&holder, unloaded)?;
    }
    let c_name = std::ffi::CString::new(name)?;
    let gone = || delete_module(&c_name, NONBLOCK) != Err(rustix::io::Errno::AGAIN);
    // The kernel lets go of a device's last references in its own time.
    lab::wait_until(&format!("{name} is unused"), gone)?;
    ensure!(!fs::exists(format!("/sys/module/{name}"))?, "{name} is still there");
    unloaded.push(name.to_owned());
    Ok(())
}

/// For a minute, or some seconds of it, addresses and VLANs come and go under four readers: every row is one that was there,
/// its GID on its own interface, and what does not change is in every table.
pub(crate) fn churn_under_four_readers() -> Result<()> {
    let duration = Duration::from_secs(if sample().is_some() { 8 } else { 60 });
    let netdev = Netdev::dummy("d0", MAC)?;
    netdev.address("192.168.77.1/24")?;
    let rxe = SoftRoce::new("rxe0", &netdev)?;
    rxe.wait_for_gids(2)?;
    let base = fs::read_to_string("/sys/class/net/d0/ifindex")?.trim().parse()?;
    let mut host = Host::new();
    let device = host.device("rxe0")?;
    let context = Context::open(&device)?;
    let stop = AtomicBool::new(false);
    let until_the_end = |read: &dyn Fn() -> Result<usize>| -> Result<(u32, usize)> {
        let (mut rounds, mut rows) = (0, 0);
        while !stop.load(Ordering::Relaxed) {
            rows += read()?;
            rounds += 1;
        }
        Ok((rounds, rows))
    };
    let sysfs = host.sysfs();
    let table = || {
        let mut entries = [GidEntry::default(); 64];
        let count = context.query_gid_table_into(&mut entries)?;
        // The rest is not touched.
        let untouched = entries
            .get(count..)
            .is_some_and(|rest| rest.iter().all(|entry| *entry == GidEntry::default()));
        ensure!(untouched, "written beyond entry {count}: {entries:?}");
        all_right(entries.iter().take(count).map(|entry| (*entry, None)), base, true)
    };
    let entries = || {
        let mut rows = 0;
        for index in 0..16 {
            if let Some(entry) = context.query_gid_ex(1, index)? {
                ensure!((entry.port(), entry.index()) == (1, index), "{entry:?} at {index}");
                rows += all_right([(entry, None)], base, false)?;
            }
        }
        Ok(rows)
    };
    let by_sysfs = || {
        let mut reader = Reader::new(&device, sysfs, Preference::Sysfs)?;
        let rows = reader.gid_table()?;
        all_right(
            rows.iter().map(|row: &GidRecord| (row.entry, row.sysfs_netdev.as_deref())),
            base,
            true,
        )
    };
    let opened = || {
        let table = Context::open(&device)?.query_gid_table()?;
        all_right(table.into_iter().map(|entry| (entry, None)), base, true)
    };
    thread::scope(|scope| {
        let readers = [
            ("tables", scope.spawn(|| until_the_end(&table))),
            ("entries", scope.spawn(|| until_the_end(&entries))),
            ("sysfs", scope.spawn(|| until_the_end(&by_sysfs))),
            ("contexts", scope.spawn(|| until_the_end(&opened))),
        ];
        let start = Instant::now();
        let mut rounds = 0;
        let mut result = Ok(());
        while result.is_ok()
            && start.elapsed() < duration
            && !readers.iter().any(|(_, it)| it.is_finished())
        {
            result = change(&netdev, rounds);
            rounds += 1;
        }
        stop.store(true, Ordering::Relaxed);
        for (what, reader) in readers {
            let (times, rows) = reader.join().map_err(|_| anyhow::anyhow!("{what} panicked"))??;
            println!("figure: {what}: read {times} times, {rows} rows, all right");
            ensure!(times > 0, "{what} were never read");
        }
        println!("figure: {rounds} rounds of changes");
        result
    })
}

const MAC: &str = "02:11:22:33:44:55";

/// An address, a VLAN with addresses of its own, and both gone again.
fn change(netdev: &Netdev, round: u16) -> Result<()> {
    let address = format!("10.0.0.{}/32", round % 50 + 1);
    netdev.address(&address)?;
    let vlan = netdev.vlan(round % 7 + 1)?;
    vlan.address(&format!("10.7.0.{}/24", round % 50 + 1))?;
    vlan.address(&format!("2001:db8:7::{:x}/64", round % 50 + 1))?;
    run(&["ip", "address", "delete", &address, "dev", netdev.name()])?;
    drop(vlan);
    Ok(())
}

/// Each row's GID belongs to an address that [`change`] makes or that does not change, on the interface
/// that has it. A whole table has each GID that does not change once.
fn all_right<'a>(
    rows: impl IntoIterator<Item = (GidEntry, Option<&'a str>)>,
    base: u32,
    whole: bool,
) -> Result<usize> {
    let gid = |text: &str| anyhow::Ok(Gid::from(text.parse::<Ipv6Addr>()?));
    let (link_local, standing) = (gid("fe80::11:22ff:fe33:4455")?, gid("::ffff:192.168.77.1")?);
    let (mut count, mut stand) = (0, 0);
    let mut indices = Vec::new();
    for (entry, name) in rows {
        let gid = entry.gid();
        let on_vlan = match gid.ipv4().map(|address| address.octets()) {
            Some([192, 168, 77, 1] | [10, 0, 0, 1..=50]) => Some(false),
            Some([10, 7, 0, 1..=50]) => Some(true),
            // Both interfaces have the MAC address that it is made of.
            None if gid == link_local => None,
            None if gid.to_bytes().starts_with(&[0x20, 0x01, 0x0d, 0xb8, 0, 7]) => Some(true),
            _ => anyhow::bail!("{entry:?} was never there"),
        };
        ensure!(entry.gid_type() == GidType::ROCE_V2 && entry.port() == 1, "{entry:?}");
        let is_there = |index: NonZeroU32| (index.get() == base) == (on_vlan == Some(false));
        ensure!(
            on_vlan.is_none() || entry.netdev_ifindex().is_none_or(is_there),
            "{entry:?} on another interface, d0 is {base}"
        );
        if let (Some(on_vlan), Some(name)) = (on_vlan, name) {
            ensure!(name.starts_with("d0") && name.contains('.') == on_vlan, "{entry:?} on {name}");
        }
        ensure!(!indices.contains(&entry.index()), "index {} twice", entry.index());
        indices.push(entry.index());
        stand += u32::from(gid == standing);
        count += 1;
    }
    ensure!(!whole || stand == 1, "what stands is there {stand} times");
    Ok(count)
}
