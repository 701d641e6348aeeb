//! Random operations on soft iWARP.

use anyhow::Result;

use super::add_up::{Bed, Counts, count};
use crate::lab::{Netdev, SoftIwarp, run};
use crate::scenarios::worlds::Random;

/// A device on an interface, which comes and goes.
pub(super) struct Iwarp {
    /// The device, while there is one.
    device: Option<String>,
    /// Names are given once.
    named: u32,
    // Fields are dropped in this order.
    _module: SoftIwarp,
    netdev: Netdev,
}

impl Iwarp {
    pub(super) fn new() -> Result<Self> {
        let module = SoftIwarp::load()?;
        let netdev = Netdev::dummy("d0", "02:11:22:33:44:55")?;
        let mut this = Self { device: None, named: 0, _module: module, netdev };
        this.add()?;
        Ok(this)
    }

    fn add(&mut self) -> Result<()> {
        self.named += 1;
        let name = format!("siw{}", self.named);
        SoftIwarp::add(&name, &self.netdev)?;
        self.device = Some(name);
        Ok(())
    }
}

impl Bed for Iwarp {
    fn step(&mut self, random: &mut Random, counts: &mut Counts) -> Result<()> {
        let netdev = self.netdev.name();
        let set = |words: &[&str]| run(&[&["ip", "link", "set", netdev], words].concat()).map(drop);
        let what = match random.below(100) {
            0..30 => {
                set(&["address", &format!("02:11:22:33:44:{:02x}", random.below(8))])?;
                "a MAC address"
            }
            30..50 => {
                set(&["down"])?;
                "down"
            }
            50..75 => {
                set(&["up"])?;
                "up"
            }
            75..90 => {
                let Some(device) = &self.device else { return Ok(()) };
                self.named += 1;
                let after = format!("siw{}", self.named);
                run(&["rdma", "dev", "set", device, "name", &after])?;
                self.device = Some(after);
                "a device is renamed"
            }
            _ => {
                if let Some(device) = self.device.take() {
                    run(&["rdma", "link", "delete", &device])?;
                    "a device goes"
                } else {
                    self.add()?;
                    "a device"
                }
            }
        };
        count(counts, what, true);
        Ok(())
    }
}
