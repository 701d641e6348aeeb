//! Every reading that follows an event of a GID table is right: it has what the event is about.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::OFlags;
use rustix::io::Errno;
use serde_json::Value;
use uverbs::context::{AsyncEvents, Context, EventType};
use uverbs::gid::Gid;
use uverbs::host::Host;
use uverbs::inventory::DeviceRecord;
use uverbs::watch::{Difference, Options, What};
use uverbs_mlx5_function::description::Description;
use uverbs_vm::{sample, stretched};

use super::{Running, has};
use crate::lab::mlx5::{Mlx5, PortEvent};
use crate::lab::{self, Namespace, Netdev, SoftRoce, output, run};
use crate::scenarios::worlds::Random;

/// A device whose events are heard.
struct Heard {
    context: Context,
    events: AsyncEvents,
    /// How many types of rows each address has.
    types: usize,
}

impl Heard {
    fn open(device: &str) -> Result<Self> {
        let context = Host::new().open(device)?;
        let events = context.async_events()?;
        rustix::fs::fcntl_setfl(&events, OFlags::NONBLOCK)?;
        let mut types: Vec<u32> =
            context.query_gid_table()?.iter().map(|row| row.gid_type().0).collect();
        types.sort_unstable();
        types.dedup();
        Ok(Self { context, events, types: types.len() })
    }

    /// Waits for an event of a GID table; `None` if none comes for so long.
    fn next(&self, limit: Duration) -> Result<Option<()>> {
        let limit = Timespec::try_from(stretched(limit))?;
        loop {
            match self.events.next_event() {
                Ok(event) if event.event_type == EventType::GID_CHANGE => return Ok(Some(())),
                Ok(_) => continue,
                Err(error) if error.errno() == Errno::AGAIN.raw_os_error() => {}
                Err(error) => return Err(error.into()),
            }
            let mut files = [PollFd::new(&self.events, PollFlags::IN)];
            if rustix::event::poll(&mut files, Some(&limit))? == 0 {
                return Ok(None);
            }
        }
    }

    /// How many rows an address has now.
    fn rows(&self, gid: Gid) -> Result<usize> {
        Ok(self.context.query_gid_table()?.iter().filter(|row| row.gid() == gid).count())
    }
}

/// Addresses come and go. After the n-th event of one the table has at least n of its changes.
fn readings(device: &str, base: &str) -> Result<()> {
    let count = if sample().is_some() { 60 } else { 500 };
    let mut random = Random::new(sample().unwrap_or(1));
    let pod = Namespace::new("pod")?;
    let macvlan = ["ip", "link", "add", "link", base, "name", "pod0", "netns", "pod"];
    run(&[&macvlan[..], &["type", "macvlan", "mode", "bridge"]].concat())?;
    pod.run(&["ip", "link", "set", "pod0", "up"])?;
    run(&["ip", "link", "add", "link", base, "name", "v7", "type", "vlan", "id", "7"])?;
    run(&["ip", "link", "set", "v7", "up"])?;
    let heard = Heard::open(device)?;
    while heard.next(Duration::from_millis(500))?.is_some() {}

    let (mut events, mut stale, mut late) = (0, 0, 0);
    for step in 0..count {
        let on = *random.one(&[base, "v7", "pod0"]);
        let number = random.below(200) + 1;
        let (address, gid): (String, Gid) = if random.once_in(2) {
            let ip = core::net::Ipv4Addr::new(10, 3, 0, u8::try_from(number)?);
            (format!("{ip}/24"), ip.into())
        } else {
            let ip: core::net::Ipv6Addr = format!("2001:db8:3::{number:x}").parse()?;
            (format!("{ip}/64"), ip.into())
        };
        let set = |word: &str| -> Result<()> {
            let mut words = vec!["ip", "addr", word, &address, "dev", on];
            if word == "add" && address.contains(':') {
                words.push("nodad");
            }
            let done = if on == "pod0" { pod.output(&words)? } else { output(&words)? };
            ensure!(done.status.success(), "{words:?}: {done:?}");
            Ok(())
        };
        for word in ["add", "del"] {
            set(word)?;
            let mut told = 0;
            loop {
                let event = heard.next(Duration::from_mins(1))?;
                ensure!(event.is_some(), "step {step}: no event of {word} {address} on {on}");
                let rows = heard.rows(gid)?;
                let done = if word == "add" { rows } else { heard.types - rows };
                (events, told) = (events + 1, told + 1);
                if done < told {
                    stale += 1;
                    println!("{word} {address} on {on}: {done} of {told}");
                }
                // The second row may be there before its event is.
                late += usize::from(done > told);
                if told == heard.types {
                    break;
                }
            }
        }
    }
    println!(
        "figure: {device}: {events} events of GID tables, {stale} readings without the change, {late} with \
         the next one too"
    );
    run(&["ip", "link", "delete", "v7"])?;
    ensure!(events >= 2 * count && stale == 0, "{stale} readings were not right");
    Ok(())
}

/// On soft RoCE.
pub(crate) fn readings_after_events_on_soft_roce() -> Result<()> {
    let netdev = Netdev::dummy("d0", "02:11:22:33:44:55")?;
    let rxe = SoftRoce::new("rxe0", &netdev)?;
    rxe.wait_for_gids(1)?;
    readings("rxe0", "d0")
}

/// On mlx5, whose addresses have a row of each type.
pub(crate) fn readings_after_events_on_mlx5() -> Result<()> {
    let device = Mlx5::bind(0, &Description::roce())?;
    let netdev = device.netdev()?;
    run(&["ip", "link", "set", &netdev, "up"])?;
    lab::wait_until("there are GIDs", || {
        let table = uverbs::sysfs::Sysfs::host().query_gid_table(device.name());
        table.is_ok_and(|table| table.len() >= 2)
    })?;
    readings(device.name(), &netdev)
}

/// What changes no table is a line of its own, once for each time it is heard, and nothing else is.
pub(crate) fn events_that_change_no_table() -> Result<()> {
    const TIMES: usize = 5;
    let device = Mlx5::bind(0, &Description::infiniband(1))?;
    let (name, function) = (device.name(), device.function());
    let watch = Running::new(&["watch", "--json", "--reread", "0"])?;
    for time in 1..=TIMES {
        function.port_event(1, PortEvent::Reregister, |_| ())?;
        lab::wait_until(&format!("{time} lines"), || {
            watch.lines().is_ok_and(|lines| lines.len() >= time)
        })?;
    }
    // What changes a table shows that nothing else is on the way.
    function.port_event(1, PortEvent::Lid, |port| port.lid = 77)?;
    lab::wait_until("the LID", || watch.lines().is_ok_and(|lines| has(&lines, "port_lid", name)))?;
    let lines = watch.lines()?;
    for line in &lines {
        println!("{line}");
    }
    let (events, rest) = lines.split_at_checked(TIMES).context("fewer lines")?;
    for line in events {
        ensure!(line["what"] == "client_reregister" && line["device"] == name, "{line}");
        ensure!(line["causes"] == serde_json::json!(["async_event"]), "{line}");
        ensure!(line.get("before").is_none_or(Value::is_null), "{line}");
    }
    ensure!(rest.len() == 1, "{rest:?}");
    watch.end()
}

/// An interface gets the index of one that went, and its address: it is no renamed one. One that is renamed is.
pub(crate) fn an_index_that_another_interface_gets() -> Result<()> {
    let index = lab::FAR.to_string();
    let netdev = Netdev::dummy("d0", "02:11:22:33:44:55")?;
    let vlan = netdev.vlan_with_index(5, lab::FAR)?;
    vlan.address("10.9.0.1/24")?;
    let rxe = SoftRoce::new("rxe0", &netdev)?;
    rxe.wait_for_gids(3)?;
    for with_interfaces in [false, true] {
        let mut options = Options::default();
        options.parts.interfaces = with_interfaces;
        let mut watch = Host::new().watch(options)?;
        let mut renamed = Vec::new();
        let mut until = |name: &str| -> Result<Vec<(String, String)>> {
            lab::wait_until(&format!("a row of {name}"), || {
                while let Ok(Some(change)) = watch.wait(Some(Duration::ZERO)) {
                    if let What::Difference(Difference::InterfaceRenamed {
                        before, after, ..
                    }) = change.what
                    {
                        renamed.push((before, after));
                    }
                }
                let devices = watch.inventory().devices.iter();
                let mut rows = devices.flat_map(DeviceRecord::all_rows);
                rows.any(|row| row.netdev.as_ref().is_some_and(|own| own.name == name))
            })?;
            Ok(std::mem::take(&mut renamed))
        };
        ensure!(until("d0.5")?.is_empty());
        fs::write(
            "/tmp/batch",
            format!(
                "link del d0.5\nlink add link d0 name other index {index} type vlan id 6\n\
                 addr add 10.9.0.1/24 dev other\nlink set other up\n"
            ),
        )?;
        run(&["ip", "-batch", "/tmp/batch"])?;
        let said = until("other")?;
        ensure!(said.is_empty(), "another interface is taken for a renamed one: {said:?}");
        for words in [&["down"][..], &["name", "d0.5"]] {
            run(&[&["ip", "link", "set", "dev", "other"][..], words].concat())?;
        }
        let said = until("d0.5")?;
        ensure!(said == [("other".to_owned(), "d0.5".to_owned())], "{said:?}");
        run(&["ip", "link", "set", "d0.5", "up"])?;
    }
    drop(vlan);
    Ok(())
}
