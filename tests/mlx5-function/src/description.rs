//! Descriptions of functions, which tests choose.
//!
//! They are plain data with the numbers of the firmware interface. The tests check what the driver makes of
//! them.

use serde::{Deserialize, Serialize};
use std::fmt::{Debug, Display};
use std::ops::RangeInclusive;

/// A whole function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// What kind of function it is.
    pub mode: Mode,
    /// Number of this function within its device (`vhca_id`).
    pub vhca_id: u16,
    /// Firmware version: major, minor, sub-minor.
    pub firmware: (u16, u16, u16),
    /// Board's parameter set id, at most 16 bytes of ASCII; the kernel's `board_id`.
    pub psid: String,
    /// Node GUID.
    pub node_guid: u64,
    /// System image GUID.
    pub system_image_guid: u64,
    /// The ports: one or two with [`Mode::InfiniBand`], else one.
    pub ports: Vec<Port>,
    /// The e-switch, asked of its manager only.
    pub eswitch: Eswitch,
    /// Link aggregation, as in the answer of `QUERY_LAG`.
    pub lag: Lag,
    /// Timeout of commands for a driver that is loaded now, in milliseconds, at most 1048575; 0 for
    /// its own minute. Linux 5.10 always takes its minute. All wait five seconds more.
    pub command_timeout: u32,
}

/// The e-switch's answers about its vports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Eswitch {
    /// A vport's `vhca_id` is this plus its number, cut to 16 bits.
    pub vport_vhca_id: u16,
    /// Steering addresses of the uplink, receive and transmit; 0 if there is none.
    pub uplink_icm: (u64, u64),
    /// How many more VFs the embedded CPU's host could enable. Each is one more port in switchdev mode.
    pub spare_vfs: u16,
    /// A vport's steering addresses are these plus its number shifted left by 16.
    pub vport_icm: (u64, u64),
}

/// State of link aggregation.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lag {
    /// `lag_state`, 0 to 7.
    pub state: u8,
    /// `tx_remap_affinity_1` and `_2`, 0 to 15.
    pub tx_remap_affinity: (u8, u8),
}

impl Description {
    /// An InfiniBand function with one or two ports, all values unlike one another.
    #[must_use]
    pub fn infiniband(ports: u8) -> Self {
        let ports = (1..=ports).map(|number| Port {
            gids: (0..3).map(|index| (index, Port::ib_gid(number, index))).collect(),
            ..Port::numbered(number)
        });
        Self { ports: ports.collect(), ..Self::with_mode(Mode::InfiniBand) }
    }

    /// A RoCE function. Its addresses are set by the driver.
    #[must_use]
    pub fn roce() -> Self {
        Self::with_mode(Mode::Roce)
    }

    /// An Ethernet function, without RoCE, that manages an e-switch.
    #[must_use]
    pub fn switchdev() -> Self {
        Self::with_mode(Mode::Switchdev)
    }

    /// The embedded CPU of a smart NIC whose host has this many VFs.
    #[must_use]
    pub fn embedded_cpu(host_vfs: u16) -> Self {
        Self::with_mode(Mode::EmbeddedCpu { host_vfs, own_vport: false })
    }

    /// The same function as another device: no GUID, MAC address or `vhca_id` in common.
    #[must_use]
    pub fn sibling(mut self) -> Self {
        const OTHER: u64 = 0x1_0000;
        self.vhca_id ^= 1;
        self.node_guid ^= OTHER;
        self.system_image_guid ^= OTHER;
        for port in &mut self.ports {
            port.guid ^= OTHER;
            port.mac[3] ^= 1;
            for (_, gid) in &mut port.gids {
                gid[13] ^= 1;
            }
        }
        self
    }

    /// Whether there can be such a function; if not, what is wrong with it.
    ///
    /// # Errors
    ///
    /// The field that is wrong, its value and what it may be.
    pub fn check(&self) -> Result<(), String> {
        let ports: &[usize] = match self.mode {
            Mode::InfiniBand => &[1, 2],
            Mode::Roce | Mode::Switchdev | Mode::EmbeddedCpu { .. } => &[1],
        };
        one_of("number of ports", &self.ports.len(), ports)?;
        if self.psid.len() > 16 || !self.psid.is_ascii() {
            return Err(format!("psid: {:?} is not at most 16 bytes of ASCII", self.psid));
        }
        if let Mode::EmbeddedCpu { host_vfs, .. } = self.mode {
            within("host_vfs", host_vfs, 0..=MAX_VFS)?;
            within("eswitch.spare_vfs", self.eswitch.spare_vfs, 0..=MAX_VFS - host_vfs)?;
        }
        within("command_timeout", self.command_timeout, 0..=MAX_TIMEOUT)?;
        within("lag.state", self.lag.state, 0..=7)?;
        within("lag.tx_remap_affinity.0", self.lag.tx_remap_affinity.0, 0..=15)?;
        within("lag.tx_remap_affinity.1", self.lag.tx_remap_affinity.1, 0..=15)?;
        for (index, port) in self.ports.iter().enumerate() {
            port.check(self.mode).map_err(|wrong| format!("ports[{index}].{wrong}"))?;
        }
        // All ports share one capability for it.
        if let [one, other] = self.ports.as_slice()
            && one.gid_table_len != other.gid_table_len
        {
            return Err(format!(
                "ports[1].gid_table_len: {} is not ports[0]'s, {}",
                other.gid_table_len, one.gid_table_len
            ));
        }
        Ok(())
    }

    fn with_mode(mode: Mode) -> Self {
        Self {
            mode,
            vhca_id: 0x2a,
            firmware: (20, 35, 1012),
            psid: "MT_0000000224".to_owned(),
            node_guid: 0x0002_c903_00aa_bb00,
            system_image_guid: 0x0002_c903_00aa_bb0f,
            ports: vec![match mode {
                Mode::InfiniBand => Port::numbered(1),
                Mode::Roce | Mode::Switchdev | Mode::EmbeddedCpu { .. } => Port::ethernet(),
            }],
            eswitch: Eswitch {
                vport_vhca_id: 0x100,
                spare_vfs: 0,
                uplink_icm: (0x1111_0000_2222_0000, 0x3333_0000_4444_0000),
                vport_icm: (0x5555_0000_0000_0000, 0x6666_0000_0000_0000),
            },
            lag: Lag::default(),
            command_timeout: 0,
        }
    }
}

/// The kinds of functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// InfiniBand ports, no network interface.
    #[serde(rename = "infiniband")]
    InfiniBand,
    /// One Ethernet port (RoCE).
    Roce,
    /// One Ethernet port, without RoCE, and manager of an e-switch that can be set to switchdev.
    Switchdev,
    /// The embedded CPU of a smart NIC: manager of the e-switch with the host's PF and its VFs.
    EmbeddedCpu {
        /// How many VFs the host has enabled.
        host_vfs: u16,
        /// Whether the embedded CPU has a vport of its own. Where it has, Linux 6.12.95 and 6.12.107
        /// fall over it when switchdev is set; 6.12.117 does not.
        own_vport: bool,
    },
}

/// One port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Port {
    /// Port GUID.
    pub guid: u64,
    /// MAC address (Ethernet).
    pub mac: [u8; 6],
    /// Length of the GID table, InfiniBand: 8, 16, 32, 64 or 128; of the RoCE address table, RoCE.
    pub gid_table_len: u16,
    /// Its GIDs with their indexes (InfiniBand); every other entry is zero. RoCE's are set by the driver.
    pub gids: Vec<(u16, [u8; 16])>,
    /// The P_Keys from index 0 on, at most 128; every further one is 0. RoCE has only 0xffff.
    pub pkeys: Vec<u16>,
    /// LID, InfiniBand.
    pub lid: u16,
    /// LID mask control, 0 to 7.
    pub lmc: u8,
    /// LID of the subnet manager.
    pub sm_lid: u16,
    /// Service level of the subnet manager, 0 to 15.
    pub sm_sl: u8,
    /// Logical state: 1 down, 2 init, 3 armed, 4 active. Of Ethernet, 4 is up and all else down.
    pub state: u8,
    /// Physical state: 2 polling, 3 disabled, 5 link up.
    pub phys_state: u8,
    /// Capability mask, `cap_mask1` (InfiniBand).
    pub cap_mask: u32,
    /// Largest MTU in bytes; it is also the active one.
    pub mtu: u16,
    /// Link width as the register has it: 1 = 1x, 2 = 2x, 4 = 4x, 8 = 8x, 16 = 12x (InfiniBand).
    pub width: u8,
    /// Speed as the register has it, 0x20 = EDR (InfiniBand); bit of the Ethernet protocols, RoCE.
    pub speed: u32,
    /// Vport counters.
    pub counters: Counters,
}

impl Port {
    /// An active port whose addresses end in its number.
    fn numbered(number: u8) -> Self {
        Self {
            guid: 0x0002_c903_00aa_bb00 + u64::from(number),
            mac: [0x02, 0xc9, 0x00, 0xaa, 0xbb, number],
            gid_table_len: 8,
            gids: Vec::new(),
            pkeys: vec![0xffff, 0x8001],
            lid: 0x10 + u16::from(number),
            lmc: 0,
            sm_lid: 1,
            sm_sl: 0,
            state: 4,
            phys_state: 5,
            cap_mask: 0x0251_e848,
            mtu: 4096,
            width: 2,
            speed: 0x20,
            counters: Counters::default(),
        }
    }

    /// A port whose link is up, 100 Gb/s.
    fn ethernet() -> Self {
        Self {
            gid_table_len: 256,
            pkeys: vec![0xffff],
            mtu: 1500,
            speed: 1 << 20,
            ..Self::numbered(1)
        }
    }

    /// `fe80::` and the port's GUID, with the index in the interface id.
    fn ib_gid(number: u8, index: u16) -> [u8; 16] {
        let prefix = 0xfe80_0000_0000_0000_u64;
        let interface = Self::numbered(number).guid + (u64::from(index) << 32);
        let mut gid = [0; 16];
        gid[..8].copy_from_slice(&prefix.to_be_bytes());
        gid[8..].copy_from_slice(&interface.to_be_bytes());
        gid
    }
}

impl Port {
    fn check(&self, mode: Mode) -> Result<(), String> {
        if mode == Mode::InfiniBand {
            one_of("gid_table_len", &self.gid_table_len, &[8, 16, 32, 64, 128])?;
            one_of("mtu", &self.mtu, &[256, 512, 1024, 2048, 4096])?;
            one_of("width", &self.width, &[1, 2, 4, 8, 16])?;
            within("speed", self.speed, 0..=0xffff)?;
        } else {
            within("gid_table_len", self.gid_table_len, 1..=1024)?;
            within("mtu", self.mtu, 68..=10_000)?;
        }
        for (position, (index, _)) in self.gids.iter().enumerate() {
            within("gids' index", *index, 0..=self.gid_table_len.saturating_sub(1))?;
            if self.gids.iter().skip(position + 1).any(|(other, _)| other == index) {
                return Err(format!("gids: {index} is there twice"));
            }
        }
        within("number of pkeys", self.pkeys.len(), 0..=PKEYS)?;
        within("lmc", self.lmc, 0..=7)?;
        within("sm_sl", self.sm_sl, 0..=15)?;
        one_of("state", &self.state, &[1, 2, 3, 4])?;
        within("phys_state", self.phys_state, 0..=15)
    }
}

/// Length of the P_Key table.
pub(crate) const PKEYS: usize = 128;
/// The most VFs that a host has.
const MAX_VFS: u16 = 127;
/// The longest timeout of commands: it has 20 bits.
const MAX_TIMEOUT: u32 = 0xf_ffff;

fn within<T: Copy + PartialOrd + Display>(
    what: &str,
    value: T,
    range: RangeInclusive<T>,
) -> Result<(), String> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(format!("{what}: {value} is not in {} to {}", range.start(), range.end()))
}

fn one_of<T: PartialEq + Display + Debug>(what: &str, value: &T, of: &[T]) -> Result<(), String> {
    if of.contains(value) { Ok(()) } else { Err(format!("{what}: {value} is none of {of:?}")) }
}

/// The counters of `QUERY_VPORT_COUNTER`, each packets and octets.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(missing_docs, reason = "the names are the firmware's")]
pub struct Counters {
    pub received_errors: (u64, u64),
    pub transmit_errors: (u64, u64),
    pub received_ib_unicast: (u64, u64),
    pub transmitted_ib_unicast: (u64, u64),
    pub received_ib_multicast: (u64, u64),
    pub transmitted_ib_multicast: (u64, u64),
    pub received_eth_broadcast: (u64, u64),
    pub transmitted_eth_broadcast: (u64, u64),
    pub received_eth_unicast: (u64, u64),
    pub transmitted_eth_unicast: (u64, u64),
    pub received_eth_multicast: (u64, u64),
    pub transmitted_eth_multicast: (u64, u64),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_here_can_be() {
        let made = [
            Description::infiniband(1),
            Description::infiniband(2),
            Description::roce(),
            Description::switchdev(),
            Description::embedded_cpu(2),
        ];
        for description in made {
            assert_eq!(description.check(), Ok(()), "{description:?}");
            assert_eq!(description.sibling().check(), Ok(()));
        }
    }

    #[test]
    fn what_cannot_be_is_named() {
        let wrong = |change: fn(&mut Description)| {
            let mut description = Description::infiniband(2);
            change(&mut description);
            description.check().unwrap_err()
        };
        assert_eq!(wrong(|it| it.ports.clear()), "number of ports: 0 is none of [1, 2]");
        assert_eq!(wrong(|it| it.mode = Mode::Roce), "number of ports: 2 is none of [1]");
        assert_eq!(wrong(|it| it.ports[1].mtu = 1500), {
            "ports[1].mtu: 1500 is none of [256, 512, 1024, 2048, 4096]"
        });
        assert_eq!(wrong(|it| it.ports[0].gids.push((8, [1; 16]))), {
            "ports[0].gids' index: 8 is not in 0 to 7"
        });
        assert_eq!(wrong(|it| it.ports[0].gids.push((2, [1; 16]))), {
            "ports[0].gids: 2 is there twice"
        });
        assert_eq!(wrong(|it| it.ports[1].gid_table_len = 16), {
            "ports[1].gid_table_len: 16 is not ports[0]'s, 8"
        });
        assert_eq!(wrong(|it| it.ports[0].pkeys = vec![1; 129]), {
            "ports[0].number of pkeys: 129 is not in 0 to 128"
        });
        assert_eq!(wrong(|it| it.ports[0].state = 5), {
            "ports[0].state: 5 is none of [1, 2, 3, 4]"
        });
        assert_eq!(wrong(|it| it.lag.state = 8), "lag.state: 8 is not in 0 to 7");
        assert!(wrong(|it| it.psid.push_str("01234")).starts_with("psid: "));
    }

    #[test]
    fn it_survives_json() {
        let description = Description::embedded_cpu(3);
        let text = serde_json::to_string(&description).unwrap();
        assert_eq!(serde_json::from_str::<Description>(&text).unwrap(), description);
    }
}
