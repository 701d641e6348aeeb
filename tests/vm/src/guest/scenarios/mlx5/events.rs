//! Events, and changes during queries.

use std::io::{BufRead as _, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use uverbs::host::Host;
use uverbs::sysfs::Sysfs;
use uverbs_mlx5_function::description::{Description, Port};

use super::{gids_as_described, port_as_described};
use crate::lab;
use crate::lab::mlx5::{Mlx5, PortEvent};

/// An InfiniBand port goes down, comes up again and gets another LID.
pub(crate) fn port_goes_down_and_up() -> Result<()> {
    let mut description = Description::infiniband(2);
    let device = Mlx5::bind(0, &description)?;
    let function = device.function();
    let context = Host::new().open(device.name())?;
    // 7.0 added an event for a device whose ports' speed may have changed.
    let before: &[&str] = if lab::kernel()? >= (7, 0) { &["event 20 port 0"] } else { &[] };
    let down = [before, &["event 10 port 2"]].concat();
    let active = [before, &["event 9 port 2"]].concat();
    let lid = ["event 11 port 2"];
    let mut events = Events::of(device.name(), down.len() + active.len() + lid.len())?;

    let mut change = |event, wanted: &[&str], change: &dyn Fn(&mut Port)| -> Result<()> {
        function.port_event(2, event, change)?;
        events.are(wanted)?;
        change(&mut description.ports[1]);
        for (number, port) in (1..).zip(&description.ports) {
            port_as_described(&context, number, port)?;
            let by_sysfs = Sysfs::host().query_port(device.name(), number)?;
            ensure!((by_sysfs.state.0, by_sysfs.phys_state.0) == (port.state, port.phys_state));
            ensure!(by_sysfs.lid == u32::from(port.lid));
        }
        Ok(())
    };
    change(PortEvent::Down, &down, &|port| (port.state, port.phys_state) = (1, 2))?;
    change(PortEvent::Active, &active, &|port| (port.state, port.phys_state) = (4, 5))?;
    change(PortEvent::Lid, &lid, &|port| port.lid = 0x77)
}

/// GIDs and P_Keys of an InfiniBand port change.
pub(crate) fn tables_change() -> Result<()> {
    let mut description = Description::infiniband(1);
    let device = Mlx5::bind(0, &description)?;
    let context = Host::new().open(device.name())?;
    let port = &mut description.ports[0];
    port.gids.remove(1);
    let (_, gid) = port.gids[1];
    port.gids.push((7, gid.map(|byte| byte ^ 0x40)));
    port.pkeys = vec![0xffff, 0x8001, 0x8002];
    let port = port.clone();

    let function = device.function();
    function.port_event(1, PortEvent::Gids, |old| port.clone_into(old))?;
    lab::wait_until("the GIDs are the new ones", || {
        gids_as_described(&context, &description).is_ok()
    })?;
    function.port_event(1, PortEvent::PKeys, |_| ())?;
    lab::wait_until("the P_Keys are the new ones", || port_as_described(&context, 1, &port).is_ok())
}

/// libibverbs' asynchronous events of a device, as `answers events` prints them.
struct Events {
    peer: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Events {
    /// The next `count` events; the peer gives up when they do not come.
    fn of(device: &str, count: usize) -> Result<Self> {
        let mut peer = Command::new("answers")
            .args(["events", device, &count.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("starting answers")?;
        let lines = BufReader::new(peer.stdout.take().context("its output")?).lines();
        let mut events = Self { peer, lines };
        let (guid, open) = (events.next()?, events.next()?);
        ensure!(guid.starts_with("guid ") && open == "open", "{guid}\n{open}");
        Ok(events)
    }

    /// That the next ones are these.
    fn are(&mut self, wanted: &[&str]) -> Result<()> {
        for event in wanted {
            let came = self.next()?;
            ensure!(came == *event, "{came} instead of {event}");
        }
        Ok(())
    }

    fn next(&mut self) -> Result<String> {
        let line = self.lines.next().context("no event came")??;
        println!("{line}");
        Ok(line)
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        // Either fails only where it has ended already. It must not hold the device open.
        let _ = self.peer.kill();
        let _ = self.peer.wait();
    }
}
