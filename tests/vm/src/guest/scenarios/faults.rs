//! Rights that are missing, nodes that are not there, devices that go away.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use anyhow::{Context as _, Result, ensure};
use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use serde_json::Value;
use uverbs::context::Context;
use uverbs::device::Host;
use uverbs::error::Cause;
use uverbs::reader::{Preference, Reader, Source};

use crate::lab::{self, Aside, Netdev, SoftRoce, output_as_nobody, run};

/// Another user needs nothing but the node's mode; without it, a clear error or sysfs.
pub(crate) fn another_user() -> Result<()> {
    let _lab = lab::vlan_lab()?;
    let node = "/dev/infiniband/uverbs0";
    let gids = |more: &[&str]| {
        let output = output_as_nobody(&[&["uverbs", "gids", "--json"], more].concat())?;
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        println!("{:?}\n{stdout}{stderr}", output.status);
        anyhow::Ok((output.status.code(), serde_json::from_str::<Value>(&stdout)?, stderr))
    };
    let (status, answer, _) = gids(&["--source", "ioctl"])?;
    ensure!(status == Some(0) && answer["gids"].as_array().is_some_and(|rows| rows.len() == 4));

    fs::set_permissions(node, Permissions::from_mode(0o600))?;
    let (status, answer, _) = gids(&["--source", "ioctl"])?;
    ensure!(status == Some(1) && answer["gids"].as_array().is_some_and(Vec::is_empty));
    ensure!(answer["problems"][0]["device"] == "rxe0" && answer["problems"][0]["errno"] == 13);

    let (status, answer, stderr) = gids(&[])?;
    let by_sysfs = |row: &Value| row["source"] == "sysfs";
    ensure!(status == Some(0) && answer["gids"].as_array().is_some_and(|r| r.iter().all(by_sysfs)));
    ensure!(stderr.contains("permission denied"), "the reason is not said");
    Ok(())
}

/// Without `/dev/infiniband` sysfs answers, and says why; a wrong node is not believed.
pub(crate) fn without_nodes() -> Result<()> {
    let _lab = lab::vlan_lab()?;
    let node = "/dev/infiniband/uverbs0";
    let aside = Aside::moved(node)?;

    let mut host = Host::new();
    let device = host.device("rxe0")?;
    let error = Context::open(&device).err().context("opened without a node")?;
    println!("{error}");
    ensure!(*error.cause() == Cause::NodeMissing && error.errno() == 2);
    let mut reader = Reader::new(&device, host.sysfs(), Preference::Auto)?;
    let records = reader.gid_table()?;
    ensure!(records.len() == 4 && records.iter().all(|record| record.source == Source::Sysfs));
    ensure!(reader.fallback().is_some_and(|reason| *reason.cause() == Cause::NodeMissing));
    ensure!(Reader::new(&device, host.sysfs(), Preference::Ioctl).is_err());

    drop(aside);
    let aside = Aside::moved("/dev/infiniband")?;
    let output = lab::output(&["uverbs", "gids", "--json"])?;
    let answer: Value = serde_json::from_slice(&output.stdout)?;
    println!("{answer}\n{}", String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success() && answer["gids"].as_array().is_some_and(|r| r.len() == 4));
    ensure!(answer["gids"][0]["source"] == "sysfs" && answer["gids"][0]["netdev"] == "d0");
    ensure!(String::from_utf8_lossy(&output.stderr).contains("/dev/infiniband/uverbs0"));
    drop(aside);
    let aside = Aside::moved(node)?;

    fs::write(node, "not a device")?;
    let error = Context::open(&device).err().context("opened a file")?;
    println!("{error}");
    ensure!(*error.cause() == Cause::WrongNode);
    fs::remove_file(node)?;
    mknodat(CWD, node, FileType::CharacterDevice, Mode::RUSR, makedev(1, 3))?;
    let error = Context::open(&device).err().context("opened /dev/null")?;
    ensure!(*error.cause() == Cause::WrongNode);
    fs::remove_file(node)?;
    drop(aside);
    ensure!(Context::open(&device).is_ok(), "the node is back");
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
    for error in [
        context.query_gid_table().err(),
        context.query_gid_ex(1, 0).err(),
        context.query_port(1).err(),
        context.query_device().err(),
    ] {
        match error {
            Some(error) => {
                println!("{error}");
                ensure!(*error.cause() == Cause::DeviceGone(rustix::io::Errno::IO), "{error:?}");
            }
            None => ensure!(waits, "an answer of a device that is gone"),
        }
    }
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

/// A device stands while one that the kernel lists before it goes away: it is in every list, though
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
    const ROUNDS: u32 = 25;
    // Odd while rxe1 stands, another number each time.
    let phase = AtomicU32::new(0);
    let mut listed = 0;
    thread::scope(|scope| {
        let changes = scope.spawn(|| -> Result<()> {
            for _ in 0..ROUNDS {
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
    ensure!(listed >= ROUNDS, "listed {listed} times only");
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
                ensure!(known && entry.gid_type() == uverbs::gid::GidType::ROCE_V2, "{record:?}");
                seen += 1;
            }
        }
    }
    println!("{seen} rows read");
    Ok(())
}

/// `QUERY_PORT_SPEED` came with 7.0, and soft RoCE does not offer it.
pub(crate) fn port_speed_by_release() -> Result<()> {
    let _lab = lab::vlan_lab()?;
    let error = Host::new().open("rxe0")?.query_port_speed(1).err().context("it answers")?;
    println!("{error}");
    let (cause, errno) = if lab::kernel()? >= (7, 0) {
        (Cause::NotOffered, 95)
    } else {
        (Cause::UnknownToKernel, 93)
    };
    ensure!((error.cause(), error.errno()) == (&cause, errno), "{error:?}");
    Ok(())
}

/// The driver id by probing is the one that netlink tells, and no other is accepted.
pub(crate) fn the_probe_finds_the_driver() -> Result<()> {
    let _lab = lab::vlan_lab()?;
    let mut device = Host::new().device("rxe0")?;
    let told = device.driver.take().context("netlink does not tell the driver")?;
    ensure!(uverbs::context::probe_driver(&device)? == told);
    let context = Context::open(&device)?;
    ensure!(context.driver() == told && !context.query_gid_table()?.is_empty());
    Ok(())
}

/// More devices than old tables had room for, and than the first block of minors.
pub(crate) fn many_devices() -> Result<()> {
    const COUNT: usize = 140;
    let mut lab = Vec::new();
    for number in 0..COUNT {
        let mac = format!("02:00:00:00:{:02x}:{:02x}", number / 256, number % 256);
        let netdev = Netdev::dummy(&format!("d{number}"), &mac)?;
        lab.push((SoftRoce::new(&format!("rxe{number}"), &netdev)?, netdev));
    }
    for mut host in [Host::new(), Host::rooted("/sys", "/dev/infiniband")] {
        let devices = host.devices()?;
        ensure!(devices.len() == COUNT, "{} devices", devices.len());
        for (number, device) in devices.iter().enumerate() {
            ensure!(device.name == format!("rxe{number}"), "{} at {number}", device.name);
            let context = Context::open(device)?;
            let entry = context.query_gid_ex(1, 0)?.context("no default GID")?;
            let [.., high, low] = entry.gid().to_bytes();
            ensure!((usize::from(high), usize::from(low)) == (number / 256, number % 256));
        }
    }
    let answer = run(&["uverbs", "devices"])?;
    ensure!(answer.lines().count() == COUNT + 1, "{answer}");
    Ok(())
}
