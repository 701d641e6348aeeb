//! The fields of libibumad's structures.

use uverbs_uapi::umad::{UMAD_CA_MAX_PORTS, UMAD_CA_NAME_LEN};

use super::text::Text;
use crate::guid::Guid;
use crate::pkey::PKey;

/// `strcmp` with these is how libibumad knows an InfiniBand port.
const INFINIBAND: [&str; 2] = ["InfiniBand", "IB"];

/// The name of a CA, with the closing NUL within the 20 bytes of `UMAD_CA_NAME_LEN`.
pub type CaName = Text<UMAD_CA_NAME_LEN>;

/// The fields of `umad_ca_t`.
#[doc(alias = "umad_ca_t")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ca {
    /// Name.
    pub ca_name: CaName,
    /// Node type.
    pub node_type: u32,
    /// The highest port number, 0 on a switch.
    pub numports: u32,
    /// Firmware version; empty if the driver gives none.
    pub fw_ver: Text<20>,
    /// The driver's name for the model; empty if it gives none.
    pub ca_type: Text<40>,
    /// Hardware revision; empty if the driver gives none.
    pub hw_ver: Text<20>,
    /// Node GUID.
    pub node_guid: Guid,
    /// System image GUID.
    pub system_guid: Guid,
    /// Ports by their numbers. Index 0 is the port of a switch.
    pub ports: [Option<Port>; UMAD_CA_MAX_PORTS],
}

/// The fields of `umad_port_t`.
#[doc(alias = "umad_port_t")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Port {
    /// Name of the CA.
    pub ca_name: CaName,
    /// Its number.
    pub portnum: i32,
    /// Base LID.
    pub base_lid: u32,
    /// LID mask control.
    pub lmc: u32,
    /// LID of the subnet manager.
    pub sm_lid: u32,
    /// Service level of the subnet manager.
    pub sm_sl: u32,
    /// Logical state.
    pub state: u32,
    /// Physical state.
    pub phys_state: u32,
    /// Rate in whole Gb/s, rounded down: 2 for 2.5 Gb/s.
    pub rate: u32,
    /// Capability bits, as a number of this machine; in network order in the C structure.
    pub capmask: u32,
    /// Upper half of the GID at index 0, as a number of this machine; in network order in the C
    /// structure.
    pub gid_prefix: u64,
    /// Lower half of the GID at index 0, which is 0 if that slot is empty.
    pub port_guid: Guid,
    /// The P_Key table.
    pub pkeys: Vec<PKey>,
    /// Link layer in the kernel's words; `IB` if the kernel does not give it.
    pub link_layer: Text<20>,
}

impl Port {
    pub(super) fn is_infiniband(&self) -> bool {
        INFINIBAND.iter().any(|name| self.link_layer == **name)
    }
}
