//! Ports: state, sizes of their tables, LIDs, MTU, width and speed.
//!
//! By ioctl: `QUERY_PORT` (Linux 5.0) and `QUERY_PORT_SPEED` (7.0), with the semantics of
//! [`ibv_query_port(3)`]. By sysfs: the files of `ports/P`, which have less: what they do not have
//! is `None`. States, and speeds by ioctl, that this version does not know keep their number.
//!
//! [`ibv_query_port(3)`]: https://man7.org/linux/man-pages/man3/ibv_query_port.3.html

use core::fmt;

use uverbs_uapi::device as abi;

use crate::named::named;

named! {
    /// Logical state of a port.
    #[doc(alias = "ibv_port_state")]
    #[doc(alias = "ibv_port_state_str")]
    PortState(u8) {
        /// No state change; never the state of a port at rest.
        NOP = abi::port_state::NOP, "nop";
        /// Down.
        DOWN = abi::port_state::DOWN, "down";
        /// Initialising: the link is up, the subnet manager has not configured it.
        INIT = abi::port_state::INIT, "init";
        /// Armed: configured, not yet active.
        ARMED = abi::port_state::ARMED, "armed";
        /// Active.
        ACTIVE = abi::port_state::ACTIVE, "active";
        /// Active, with a link failure that is waited out.
        ACTIVE_DEFER = abi::port_state::ACTIVE_DEFER, "active_defer";
    }
}

named! {
    /// Physical state of a port.
    PhysState(u8) {
        /// No state change; never the state of a port at rest.
        NOP = 0, "nop";
        /// Sleeping.
        SLEEP = abi::phys_state::SLEEP, "sleep";
        /// Looking for a peer.
        POLLING = abi::phys_state::POLLING, "polling";
        /// Disabled.
        DISABLED = abi::phys_state::DISABLED, "disabled";
        /// Training the link.
        TRAINING = abi::phys_state::PORT_CONFIGURATION_TRAINING, "training";
        /// Link up.
        LINK_UP = abi::phys_state::LINK_UP, "link_up";
        /// Recovering from link errors.
        RECOVERY = abi::phys_state::LINK_ERROR_RECOVERY, "link_error_recovery";
        /// Physical test.
        TEST = abi::phys_state::PHY_TEST, "phy_test";
    }
}

named! {
    /// What carries the port's packets.
    LinkLayer(u8) {
        /// Not said; InfiniBand, as libraries read it.
        UNSPECIFIED = abi::link_layer::UNSPECIFIED, "unspecified";
        /// InfiniBand.
        INFINIBAND = abi::link_layer::INFINIBAND, "infiniband";
        /// Ethernet: RoCE or iWARP.
        ETHERNET = abi::link_layer::ETHERNET, "ethernet";
    }
}

/// Code of a maximum transfer unit.
#[doc(alias = "ibv_mtu")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Mtu(pub u8);

impl Mtu {
    /// Its bytes: 256 to 4096; `None` for a code that this version does not know.
    #[must_use]
    pub const fn bytes(self) -> Option<u16> {
        match self.0 {
            abi::mtu::BYTES_256 => Some(256),
            abi::mtu::BYTES_512 => Some(512),
            abi::mtu::BYTES_1024 => Some(1024),
            abi::mtu::BYTES_2048 => Some(2048),
            abi::mtu::BYTES_4096 => Some(4096),
            _ => None,
        }
    }
}

/// Code of a link's width.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Width(pub u8);

impl Width {
    /// Its lanes: 1, 2, 4, 8 or 12; `None` for a code that this version does not know.
    #[must_use]
    pub const fn lanes(self) -> Option<u8> {
        match self.0 {
            abi::width::X1 => Some(1),
            abi::width::X2 => Some(2),
            abi::width::X4 => Some(4),
            abi::width::X8 => Some(8),
            abi::width::X12 => Some(12),
            _ => None,
        }
    }

    pub(crate) fn from_lanes(lanes: u64) -> Option<Self> {
        [abi::width::X1, abi::width::X2, abi::width::X4, abi::width::X8, abi::width::X12]
            .map(Self)
            .into_iter()
            .find(|width| width.lanes().map(u64::from) == Some(lanes))
    }
}

named! {
    /// Code of a lane's speed.
    Speed(u32) {
        /// 2.5 Gb/s.
        SDR = abi::speed::SDR, "SDR";
        /// 5 Gb/s.
        DDR = abi::speed::DDR, "DDR";
        /// 10 Gb/s.
        QDR = abi::speed::QDR, "QDR";
        /// 10 Gb/s, with FDR's encoding.
        FDR10 = abi::speed::FDR10, "FDR10";
        /// 14 Gb/s.
        FDR = abi::speed::FDR, "FDR";
        /// 25 Gb/s.
        EDR = abi::speed::EDR, "EDR";
        /// 50 Gb/s.
        HDR = abi::speed::HDR, "HDR";
        /// 100 Gb/s.
        NDR = abi::speed::NDR, "NDR";
        /// 200 Gb/s.
        XDR = abi::speed::XDR, "XDR";
    }
}

impl Speed {
    /// A lane's nominal rate in units of 100 Mb/s; `None` for a code that this version does not know.
    #[must_use]
    pub const fn lane_rate(self) -> Option<u32> {
        match self {
            Self::SDR => Some(25),
            Self::DDR => Some(50),
            Self::QDR | Self::FDR10 => Some(100),
            Self::FDR => Some(140),
            Self::EDR => Some(250),
            Self::HDR => Some(500),
            Self::NDR => Some(1000),
            Self::XDR => Some(2000),
            _ => None,
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        (0..u32::BITS).map(|bit| Self(1 << bit)).find(|speed| speed.name() == Some(name))
    }
}

/// A data rate in units of 100 Mb/s, so that 2.5 Gb/s is a whole number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Rate(pub u64);

impl Rate {
    /// In Gb/s.
    #[must_use]
    pub fn gbps(self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "rates are far below 2^52")]
        let units = self.0 as f64;
        units / 10.0
    }
}

impl fmt::Display for Rate {
    /// Gb/s, with one decimal only where it is needed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0 / 10, self.0 % 10) {
            (whole, 0) => f.pad(&whole.to_string()),
            (whole, tenth) => f.pad(&format!("{whole}.{tenth}")),
        }
    }
}

/// What is known of a port. `None` where the source does not say.
#[doc(alias = "ibv_port_attr")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(expecting = "an object")
)]
#[non_exhaustive]
pub struct PortAttributes {
    /// Logical state.
    pub state: PortState,
    /// Physical state.
    pub phys_state: PhysState,
    /// Link layer.
    pub link_layer: LinkLayer,
    /// Largest MTU that the port supports. Not in sysfs.
    pub max_mtu: Option<Mtu>,
    /// MTU in use. Not in sysfs.
    pub active_mtu: Option<Mtu>,
    /// Base LID; 0 on RoCE. On Omni-Path it may have more than 16 bits.
    pub lid: u32,
    /// LID of the subnet manager.
    pub sm_lid: u32,
    /// Service level of the subnet manager.
    pub sm_sl: u8,
    /// LID mask control: the port has 2^lmc LIDs.
    pub lmc: u8,
    /// Slots in the GID table.
    pub gid_tbl_len: u32,
    /// Slots in the P_Key table.
    pub pkey_tbl_len: u32,
    /// Width in use. Sysfs does not have each: see [`Sysfs::query_port`](crate::Sysfs::query_port).
    pub active_width: Option<Width>,
    /// Speed of a lane. `None` if it is NDR or more, and not known which: before Linux 6.7, which brought the full code
    /// (`active_speed_ex`), the ioctl says NDR of each of these, unless the link layer is Ethernet.
    /// [`Reader::port`](crate::host::Reader::port) asks sysfs, too. Sysfs does not have each:
    /// see [`Sysfs::query_port`](crate::Sysfs::query_port).
    pub active_speed: Option<Speed>,
    /// Capability bits of the InfiniBand specification.
    pub port_cap_flags: u32,
    /// More capability bits. Not in sysfs.
    pub port_cap_flags2: Option<u16>,
    /// Longest message in bytes. Not in sysfs.
    pub max_msg_sz: Option<u32>,
    /// Bad P_Key counter. Not in sysfs.
    pub bad_pkey_cntr: Option<u32>,
    /// Q_Key violation counter. Not in sysfs.
    pub qkey_viol_cntr: Option<u32>,
    /// Code of the number of virtual lanes. Not in sysfs.
    pub max_vl_num: Option<u8>,
    /// Subnet propagation delay, 4.096 µs · 2^n. Not in sysfs.
    pub subnet_timeout: Option<u8>,
    /// Kind of initialisation that the subnet manager did. Not in sysfs.
    pub init_type_reply: Option<u8>,
    /// Flag bits, 1 = every address needs a GRH. Not in sysfs.
    pub flags: Option<u8>,
}

impl PortAttributes {
    /// Nominal rate: lanes times a lane's rate; `None` if a code is not known.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        let lanes = self.active_width?.lanes()?;
        let lane = self.active_speed?.lane_rate()?;
        Some(Rate(u64::from(lanes) * u64::from(lane)))
    }
}

impl From<&abi::QueryPortResponse> for PortAttributes {
    fn from(response: &abi::QueryPortResponse) -> Self {
        let link_layer = LinkLayer(response.link_layer);
        // The codes of InfiniBand come from the firmware. Drivers of Ethernet choose among those that the kernel knows.
        let active_speed = match (response.active_speed_ex, Speed(response.active_speed.into())) {
            (0, Speed::NDR) if link_layer != LinkLayer::ETHERNET => None,
            (0, speed) => Some(speed),
            (full, _) => Some(Speed(full)),
        };
        Self {
            state: PortState(response.state),
            phys_state: PhysState(response.phys_state),
            link_layer,
            max_mtu: Some(Mtu(response.max_mtu)),
            active_mtu: Some(Mtu(response.active_mtu)),
            lid: response.lid.into(),
            sm_lid: response.sm_lid.into(),
            sm_sl: response.sm_sl,
            lmc: response.lmc,
            gid_tbl_len: response.gid_tbl_len,
            pkey_tbl_len: response.pkey_tbl_len.into(),
            active_width: Some(Width(response.active_width)),
            active_speed,
            port_cap_flags: response.port_cap_flags,
            port_cap_flags2: Some(response.port_cap_flags2),
            max_msg_sz: Some(response.max_msg_sz),
            bad_pkey_cntr: Some(response.bad_pkey_cntr),
            qkey_viol_cntr: Some(response.qkey_viol_cntr),
            max_vl_num: Some(response.max_vl_num),
            subnet_timeout: Some(response.subnet_timeout),
            init_type_reply: Some(response.init_type_reply),
            flags: Some(response.flags),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `ib_port_attr_to_speed_info` of the kernel has them.
    #[test]
    fn a_lane_s_rate_by_the_kernel_s_code() {
        let rates: Vec<_> = (0..10).map(|bit| Speed(1 << bit).lane_rate()).collect();
        let known = [25, 50, 100, 100, 140, 250, 500, 1000, 2000].map(Some);
        assert_eq!(rates, [known.as_slice(), &[None]].concat());
        assert_eq!(Speed(0).lane_rate(), None);
        let names = ["SDR", "DDR", "QDR", "FDR10", "FDR", "EDR", "HDR", "NDR", "XDR"];
        for (bit, name) in names.into_iter().enumerate() {
            assert_eq!(Speed::from_name(name), Some(Speed(1 << bit)), "{name}");
        }
    }

    #[test]
    fn the_full_speed_code_wins() {
        let mut response =
            abi::QueryPortResponse { active_speed: 128, active_width: 2, ..Default::default() };
        // Of InfiniBand it may be more.
        assert_eq!(PortAttributes::from(&response).rate(), None);
        response.link_layer = LinkLayer::ETHERNET.0;
        assert_eq!(PortAttributes::from(&response).rate(), Some(Rate(4000)));
        response.link_layer = LinkLayer::INFINIBAND.0;
        response.active_speed = 64;
        assert_eq!(PortAttributes::from(&response).rate(), Some(Rate(2000)));
        response.active_speed_ex = 256;
        assert_eq!(PortAttributes::from(&response).rate(), Some(Rate(8000)));
        response.active_speed_ex = 512;
        let port = PortAttributes::from(&response);
        assert_eq!((port.rate(), port.active_speed), (None, Some(Speed(512))));
    }

    #[test]
    fn unknown_numbers_survive() {
        assert_eq!(PortState(9).to_string(), "unknown(9)");
        assert_eq!(PhysState(11).to_string(), "unknown(11)");
        assert_eq!(Mtu(6).bytes(), None);
        assert_eq!(Width(32).lanes(), None);
    }

    #[test]
    fn rates_print_as_people_write_them() {
        assert_eq!(Rate(25).to_string(), "2.5");
        assert_eq!(Rate(1000).to_string(), "100");
        assert!((Rate(25).gbps() - 2.5).abs() < 1e-9);
    }
}
