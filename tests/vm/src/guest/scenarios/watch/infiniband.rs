//! Random operations on InfiniBand: what a subnet manager changes, and devices that come and go.

use anyhow::{Context as _, Result};
use uverbs::sysfs::Sysfs;
use uverbs_mlx5_function::description::{Description, Port};

use super::add_up::{Bed, Counts, count};
use super::ethernet::{HOME, moved, unloaded};
use crate::lab::mlx5::{IbModule, Mlx5, PortEvent};
use crate::lab::{Exclusive, IbSwitch, Namespace, run, wait_until};
use crate::scenarios::worlds::Random;

/// An mlx5 function with InfiniBand ports.
pub(super) struct Function {
    device: Mlx5,
    ports: usize,
    /// Names are given once.
    named: u32,
    // Fields are dropped in this order.
    namespace: Namespace,
    _home: Namespace,
    _mode: Exclusive,
}

impl Function {
    pub(super) fn bind(description: &Description, mode: Exclusive) -> Result<Self> {
        let device = Mlx5::bind(0, description)?;
        let (ports, namespace) = (description.ports.len(), Namespace::new("pod")?);
        let home = Namespace::first(HOME)?;
        Ok(Self { device, ports, named: 0, namespace, _home: home, _mode: mode })
    }

    fn change(&self, port: usize, event: PortEvent, change: impl FnOnce(&mut Port)) -> Result<()> {
        self.device.function().port_event(u8::try_from(port)?, event, change)
    }
}

impl Bed for Function {
    fn step(&mut self, random: &mut Random, counts: &mut Counts) -> Result<()> {
        let port = random.below(self.ports) + 1;
        let small = u8::try_from(random.below(16))?;
        let what = match random.below(100) {
            0..22 => {
                self.change(port, PortEvent::Lid, |own| {
                    (own.lid, own.lmc) = (u16::from(small) + 1, small % 3);
                })?;
                "a LID"
            }
            22..44 => {
                self.change(port, PortEvent::Reregister, |own| {
                    (own.sm_lid, own.sm_sl) = (u16::from(small) + 40, small % 4);
                })?;
                "another subnet manager"
            }
            44..66 => {
                let pkeys = (0..small % 5).map(|bit| 0x8001 + (u16::from(small) << bit));
                let pkeys = [0xffff].into_iter().chain(pkeys).collect();
                self.change(port, PortEvent::PKeys, |own| own.pkeys = pkeys)?;
                "P_Keys"
            }
            66..76 => {
                self.gids(port, random)?;
                "GIDs"
            }
            76..94 => {
                let (event, states) =
                    if small < 8 { (PortEvent::Down, (1, 2)) } else { (PortEvent::Active, (4, 5)) };
                self.change(port, event, |own| (own.state, own.phys_state) = states)?;
                if small < 8 { "down" } else { "up" }
            }
            94..97 => {
                self.named += 1;
                let after = format!("ib{}", self.named);
                run(&["rdma", "dev", "set", self.device.name(), "name", &after])?;
                self.device.find()?;
                "a device is renamed"
            }
            97 => {
                self.device.rebind()?;
                "the driver is unbound and bound"
            }
            98 => {
                IbModule::unload()?.load()?;
                self.device.find()?;
                "the module is unloaded and loaded"
            }
            _ => {
                let is_moved = moved(self.device.name(), &self.namespace, random)?;
                self.device.find()?;
                count(counts, "a device is moved and comes back", is_moved);
                return Ok(());
            }
        };
        count(counts, what, true);
        Ok(())
    }
}

impl Function {
    /// Other GIDs. The kernel passes no event of that on, so another one follows.
    fn gids(&self, port: usize, random: &mut Random) -> Result<()> {
        let before = self.device.function().description()?;
        let before = before.ports.get(port - 1).context("no such port")?.gids.clone();
        let (_, first) = *before.first().context("no GID")?;
        let mut gids = vec![(0, first)];
        for index in 1..6 {
            if random.once_in(2) {
                let mut gid = first;
                gid[15] = u8::try_from(random.below(6))?;
                gids.push((index, gid));
            }
        }
        let wanted = gids.clone();
        self.change(port, PortEvent::Gids, |own| own.gids = gids)?;
        wait_until("the GIDs are the new ones", || {
            let table = Sysfs::host().query_gid_table(self.device.name()).unwrap_or_default();
            let own = table.iter().map(|row| &row.entry);
            let own = own.filter(|row| usize::try_from(row.port()) == Ok(port));
            own.map(|row| (row.index(), row.gid().to_bytes()))
                .eq(wanted.iter().map(|(index, gid)| (u32::from(*index), *gid)))
        })?;
        self.change(port, PortEvent::Reregister, |_| ())
    }
}

/// The InfiniBand switch.
pub(super) struct Switch {
    module: IbSwitch,
    name: String,
    /// Names are given once.
    named: u32,
}

impl Switch {
    pub(super) fn load() -> Result<Self> {
        Ok(Self { module: IbSwitch::load()?, name: "switch0".to_owned(), named: 0 })
    }
}

impl Bed for Switch {
    fn step(&mut self, random: &mut Random, counts: &mut Counts) -> Result<()> {
        let small = random.below(12);
        let what = match random.below(50) {
            0..10 => {
                self.module.change(&format!("lid {}", small + 1))?;
                "a LID"
            }
            10..20 => {
                self.module.change(&format!("sm {}", small + 40))?;
                "another subnet manager"
            }
            20..30 => {
                self.module.change(&format!("pkey {}", 0x8001 + small))?;
                "P_Keys"
            }
            30..38 => {
                let (index, low) = (random.below(3) + 1, if small < 6 { 0 } else { small });
                self.module.change(&format!("gid {index} {low}"))?;
                wait_until("the GID is the new one", || {
                    let table = Sysfs::host().query_gid_table(&self.name).unwrap_or_default();
                    let row =
                        table.iter().find(|row| usize::try_from(row.entry.index()) == Ok(index));
                    let now = row.map_or(0, |row| row.entry.gid().to_bytes()[15]);
                    usize::from(now) == low
                })?;
                // The kernel passes no event of that on.
                self.module.change("reregister")?;
                "GIDs"
            }
            38..45 => {
                self.module.change(if small < 6 { "state 1" } else { "state 4" })?;
                if small < 6 { "down" } else { "up" }
            }
            45..48 => {
                self.named += 1;
                let after = format!("ib{}", self.named);
                run(&["rdma", "dev", "set", &self.name, "name", &after])?;
                self.name = after;
                "a device is renamed"
            }
            _ => {
                let is_unloaded = unloaded(IbSwitch::try_unload)?;
                if is_unloaded {
                    IbSwitch::load_again()?;
                    "switch0".clone_into(&mut self.name);
                }
                count(counts, "the module is unloaded and loaded", is_unloaded);
                return Ok(());
            }
        };
        count(counts, what, true);
        Ok(())
    }
}
