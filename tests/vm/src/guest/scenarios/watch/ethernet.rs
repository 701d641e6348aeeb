//! Random operations on Ethernet: interfaces with their addresses, and the RDMA devices above them.

use std::thread;
use std::time::Duration;

use anyhow::Result;
use rustix::io::Errno;
use uverbs_mlx5_function::description::Description;

use super::add_up::{Bed, Counts, count};
use crate::boot;
use crate::lab::mlx5::{IbModule, Mlx5};
use crate::lab::{self, Exclusive, Namespace, output, run, wait_until};
use crate::scenarios::worlds::Random;

/// The first namespace's name.
pub(super) const HOME: &str = "home";
/// VLANs that come and go.
const VLANS: [u16; 2] = [7, 8];

/// Interfaces, and the devices above them.
pub(super) struct Ethernet {
    /// Each interface.
    names: Vec<String>,
    devices: Devices,
    /// Names are given once.
    named: u32,
    /// Macvlans in the other namespace; `None` if there are to be none.
    macvlans: Option<u32>,
    // Fields are dropped in this order.
    namespace: Namespace,
    _home: Namespace,
    mode: Option<Exclusive>,
}

/// RDMA devices.
enum Devices {
    /// Soft RoCE: the name of that on each interface.
    Soft([Option<String>; 2]),
    Mlx5(Mlx5),
}

impl Ethernet {
    /// Two dummy interfaces for soft RoCE.
    pub(super) fn soft(mode: Option<Exclusive>, with_macvlans: bool) -> Result<Self> {
        let mut names = Vec::new();
        for place in 0..2 {
            let (name, mac) = (format!("d{place}"), format!("02:11:22:33:44:{place:02x}"));
            run(&["ip", "link", "add", &name, "address", &mac, "type", "dummy"])?;
            run(&["ip", "link", "set", &name, "up"])?;
            names.push(name);
        }
        let first = "rxe0".to_owned();
        run(&["rdma", "link", "add", &first, "type", "rxe", "netdev", "d0"])?;
        let devices = Devices::Soft([Some(first), None]);
        Self::of(names, devices, mode, with_macvlans)
    }

    /// An mlx5 function.
    pub(super) fn mlx5(mode: Exclusive) -> Result<Self> {
        let device = Mlx5::bind(0, &Description::roce())?;
        let name = device.netdev()?;
        run(&["ip", "link", "set", &name, "up"])?;
        Self::of(vec![name], Devices::Mlx5(device), Some(mode), true)
    }

    fn of(
        names: Vec<String>,
        devices: Devices,
        mode: Option<Exclusive>,
        with_macvlans: bool,
    ) -> Result<Self> {
        let macvlans = with_macvlans.then_some(0);
        let (namespace, home) = (Namespace::new("pod")?, Namespace::first(HOME)?);
        Ok(Self { names, devices, named: 0, macvlans, namespace, _home: home, mode })
    }

    /// A macvlan with an address in the other namespace, of which route netlink says nothing here; or it goes.
    fn macvlan(&mut self, base: &str, random: &mut Random, counts: &mut Counts) -> Result<()> {
        let Some(number) = &mut self.macvlans else { return Ok(()) };
        if *number > 0 && random.once_in(2) {
            let name = format!("pod{number}");
            *number -= 1;
            // It goes with the interface below it.
            let gone = self.namespace.output(&["ip", "link", "del", &name])?;
            count(counts, "a macvlan elsewhere goes", gone.status.success());
            return Ok(());
        }
        let name = format!("pod{}", *number + 1);
        let add = ["ip", "link", "add", "link", base, "name", &name, "netns", "pod"];
        let added = output(&[&add[..], &["type", "macvlan", "mode", "bridge"]].concat())?;
        if added.status.success() {
            *number += 1;
            let address = format!("10.9.9.{number}/24");
            self.namespace.run(&["ip", "link", "set", &name, "up"])?;
            self.namespace.run(&["ip", "addr", "add", &address, "dev", &name])?;
        }
        count(counts, "a macvlan elsewhere", added.status.success());
        Ok(())
    }

    fn rename_interface(&mut self, place: usize, counts: &mut Counts) -> Result<()> {
        self.named += 1;
        let (before, after) = (self.names[place].clone(), format!("n{place}x{}", self.named));
        // Before 6.2 only while it is down.
        let renamed = output(&["ip", "link", "set", &before, "name", &after])?;
        if renamed.status.success() {
            self.names[place] = after;
        }
        count(counts, "an interface is renamed", renamed.status.success());
        Ok(())
    }

    /// A device comes or goes; that of mlx5 goes and comes with its driver.
    fn device(&mut self, place: usize, counts: &mut Counts) -> Result<()> {
        let netdev = &self.names[place];
        match &mut self.devices {
            Devices::Soft(devices) => {
                if let Some(name) = devices[place].take() {
                    run(&["rdma", "link", "delete", &name])?;
                    count(counts, "a device goes", true);
                } else {
                    let name = format!("rxe{place}");
                    run(&["rdma", "link", "add", &name, "type", "rxe", "netdev", netdev])?;
                    devices[place] = Some(name);
                    count(counts, "a device", true);
                }
            }
            Devices::Mlx5(device) => {
                // With its interface, and all that is above it.
                device.rebind()?;
                self.macvlans = Some(0);
                wait_until("the interface is there", || device.netdev().is_ok())?;
                self.names[0] = device.netdev()?;
                run(&["ip", "link", "set", &self.names[0], "up"])?;
                count(counts, "the driver is unbound and bound", true);
            }
        }
        Ok(())
    }

    /// The device on an interface.
    fn device_name(&self, place: usize) -> Option<String> {
        match &self.devices {
            Devices::Soft(devices) => devices[place].clone(),
            Devices::Mlx5(device) => Some(device.name().to_owned()),
        }
    }

    fn rename_device(&mut self, place: usize, counts: &mut Counts) -> Result<()> {
        let Some(before) = self.device_name(place) else { return self.device(place, counts) };
        self.named += 1;
        let after = format!("roce{place}x{}", self.named);
        run(&["rdma", "dev", "set", &before, "name", &after])?;
        match &mut self.devices {
            Devices::Soft(devices) => devices[place] = Some(after),
            Devices::Mlx5(device) => device.find()?,
        }
        count(counts, "a device is renamed", true);
        Ok(())
    }

    /// A device is moved to the other namespace and back.
    fn move_device(
        &mut self,
        place: usize,
        random: &mut Random,
        counts: &mut Counts,
    ) -> Result<()> {
        let Some(name) = self.device_name(place).filter(|_| self.mode.is_some()) else {
            return Ok(());
        };
        let moved = moved(&name, &self.namespace, random)?;
        if let Devices::Mlx5(device) = &mut self.devices {
            device.find()?;
        }
        count(counts, "a device is moved and comes back", moved);
        Ok(())
    }

    fn unload(&mut self, counts: &mut Counts) -> Result<()> {
        match &mut self.devices {
            Devices::Soft(devices) => {
                let unloaded = unloaded(|| rustix::system::delete_module(c"rdma_rxe", 0))?;
                if unloaded {
                    *devices = [None, None];
                    boot::load_missing_modules()?;
                }
                count(counts, "the module is unloaded and loaded", unloaded);
            }
            Devices::Mlx5(device) => {
                IbModule::unload()?.load()?;
                device.find()?;
                count(counts, "the module is unloaded and loaded", true);
            }
        }
        Ok(())
    }
}

/// Moves a device to the other namespace and back, if its driver can.
pub(super) fn moved(name: &str, namespace: &Namespace, random: &mut Random) -> Result<bool> {
    if !output(&["rdma", "dev", "set", name, "netns", "pod"])?.status.success() {
        return Ok(false);
    }
    let pause = u64::try_from(random.below(200)).unwrap_or(0);
    thread::sleep(Duration::from_millis(pause));
    namespace.run(&["rdma", "dev", "set", name, "netns", HOME])?;
    Ok(true)
}

/// Unloads a module. A reading that has the device open right now keeps it, for a moment.
pub(super) fn unloaded(mut unload: impl FnMut() -> rustix::io::Result<()>) -> Result<bool> {
    for _ in 0..100 {
        match unload() {
            Ok(()) => return Ok(true),
            Err(Errno::AGAIN) => thread::sleep(Duration::from_millis(10)),
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(false)
}

impl Bed for Ethernet {
    fn step(&mut self, random: &mut Random, counts: &mut Counts) -> Result<()> {
        let place = random.below(self.names.len());
        let base = self.names[place].clone();
        let vlan = *random.one(&VLANS);
        let upper = format!("v{place}.{vlan}");
        let on = if random.once_in(3) { upper.clone() } else { base.clone() };
        let number = random.below(6) + 1;
        let v4 = format!("10.{place}.{vlan}.{number}/24");
        let v6 = format!("2001:db8:{place}:{vlan}::{number}/64");
        let mac = format!("02:99:00:00:{place:02x}:{number:02x}");
        let mtu = ["1500", "9000", "4200", "1280"][random.below(4)];
        let id = vlan.to_string();
        // What a whole driver of mlx5 does takes seconds.
        let is_slow = matches!(self.devices, Devices::Mlx5(_));
        let (what, words): (&'static str, Vec<&str>) = match random.below(86) {
            0..16 => ("an IPv4 address", vec!["ip", "addr", "add", &v4, "dev", &on]),
            16..24 => ("an IPv4 address goes", vec!["ip", "addr", "del", &v4, "dev", &on]),
            24..32 => ("an IPv6 address", vec!["ip", "addr", "add", &v6, "dev", &on]),
            32..36 => ("an IPv6 address goes", vec!["ip", "addr", "del", &v6, "dev", &on]),
            36..40 => ("down", vec!["ip", "link", "set", &on, "down"]),
            40..48 => ("up", vec!["ip", "link", "set", &on, "up"]),
            48..52 => ("a MAC address", vec!["ip", "link", "set", &base, "address", &mac]),
            52..56 => ("an MTU", vec!["ip", "link", "set", &base, "mtu", mtu]),
            56..60 => (
                "a VLAN",
                vec!["ip", "link", "add", "link", &base, "name", &upper, "type", "vlan", "id", &id],
            ),
            60..63 => ("a VLAN goes", vec!["ip", "link", "del", &upper]),
            63..68 => return self.macvlan(&base, random, counts),
            68..72 => return self.rename_interface(place, counts),
            72..86 if is_slow && !random.once_in(5) => return Ok(()),
            72..77 => return self.device(place, counts),
            77..81 => return self.rename_device(place, counts),
            81..84 => return self.move_device(place, random, counts),
            _ => return self.unload(counts),
        };
        count(counts, what, output(&words)?.status.success());
        Ok(())
    }
}

impl Drop for Ethernet {
    fn drop(&mut self) {
        let Devices::Soft(devices) = &self.devices else { return };
        for name in devices.iter().flatten() {
            lab::undo(&["rdma", "link", "delete", name]);
        }
        for name in &self.names {
            lab::undo(&["ip", "link", "delete", name]);
        }
    }
}
