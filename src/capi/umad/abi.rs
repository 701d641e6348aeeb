//! The structures of `<infiniband/umad.h>`, the same in rdma-core 44 to 65.

use core::ffi::{c_char, c_int, c_uint};
use core::ptr::null_mut;

use uverbs_uapi::umad::{UMAD_CA_MAX_PORTS, UMAD_CA_NAME_LEN};

use crate::capi::layout::layout;

/// A name as an array of characters that ends with a NUL.
pub type CaName = [u8; UMAD_CA_NAME_LEN];

/// `umad_port_t`: a port.
#[doc(alias = "umad_port_t")]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct UmadPort {
    /// Name of the CA.
    pub ca_name: CaName,
    /// Its number.
    pub portnum: c_int,
    /// Base LID.
    pub base_lid: c_uint,
    /// LID mask control.
    pub lmc: c_uint,
    /// LID of the subnet manager.
    pub sm_lid: c_uint,
    /// Service level of the subnet manager.
    pub sm_sl: c_uint,
    /// Logical state.
    pub state: c_uint,
    /// Physical state.
    pub phys_state: c_uint,
    /// Rate in whole Gb/s.
    pub rate: c_uint,
    /// Capability bits, in network order.
    pub capmask: u32,
    /// Upper half of the GID at index 0, in network order.
    pub gid_prefix: u64,
    /// Lower half of the GID at index 0, in network order.
    pub port_guid: u64,
    /// The number of P_Keys.
    pub pkeys_size: c_uint,
    /// As many P_Keys as `pkeys_size` says, in memory of `malloc`.
    pub pkeys: *mut u16,
    /// Link layer in the kernel's words; `IB` if the kernel does not give it.
    pub link_layer: [u8; 20],
}

impl UmadPort {
    /// All zero.
    pub(super) const NONE: Self = Self {
        ca_name: [0; UMAD_CA_NAME_LEN],
        portnum: 0,
        base_lid: 0,
        lmc: 0,
        sm_lid: 0,
        sm_sl: 0,
        state: 0,
        phys_state: 0,
        rate: 0,
        capmask: 0,
        gid_prefix: 0,
        port_guid: 0,
        pkeys_size: 0,
        pkeys: null_mut(),
        link_layer: [0; 20],
    };
}

/// `umad_ca_t`: a channel adapter, switch or router.
#[doc(alias = "umad_ca_t")]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct UmadCa {
    /// Name.
    pub ca_name: CaName,
    /// Node type.
    pub node_type: c_uint,
    /// The highest port number.
    pub numports: c_int,
    /// Firmware version.
    pub fw_ver: [u8; 20],
    /// The driver's name for the model.
    pub ca_type: [u8; 40],
    /// Hardware revision.
    pub hw_ver: [u8; 20],
    /// Node GUID, in network order.
    pub node_guid: u64,
    /// System image GUID, in network order.
    pub system_guid: u64,
    /// Ports by their numbers; each in memory of `malloc` of its own, or NULL.
    pub ports: [*mut UmadPort; UMAD_CA_MAX_PORTS],
}

impl UmadCa {
    /// All zero.
    pub(super) const NONE: Self = Self {
        ca_name: [0; UMAD_CA_NAME_LEN],
        node_type: 0,
        numports: 0,
        fw_ver: [0; 20],
        ca_type: [0; 40],
        hw_ver: [0; 20],
        node_guid: 0,
        system_guid: 0,
        ports: [null_mut(); UMAD_CA_MAX_PORTS],
    };
}

/// `struct umad_device_node`: a name in a list of names.
#[doc(alias = "umad_device_node")]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct UmadDeviceNode {
    /// The next node; NULL at the end of the list.
    pub next: *mut UmadDeviceNode,
    /// The name, which follows the node in the same memory.
    pub ca_name: *const c_char,
}

layout!("umad_port_t", UmadPort, size [112, 104, 100], align [8, 8, 4], {
    ca_name: 0,
    portnum: 20,
    base_lid: 24,
    lmc: 28,
    sm_lid: 32,
    sm_sl: 36,
    state: 40,
    phys_state: 44,
    rate: 48,
    capmask: 52,
    gid_prefix: 56,
    port_guid: 64,
    pkeys_size: 72,
    pkeys: [80, 76, 76],
    link_layer: [88, 80, 80],
});

layout!("umad_ca_t", UmadCa, size [208, 168, 164], align [8, 8, 4], {
    ca_name: 0,
    node_type: 20,
    numports: 24,
    fw_ver: 28,
    ca_type: 48,
    hw_ver: 88,
    node_guid: [112, 112, 108],
    system_guid: [120, 120, 116],
    ports: [128, 128, 124],
});

layout!("struct umad_device_node", UmadDeviceNode, size [16, 8, 8], align [8, 4, 4], {
    next: 0,
    ca_name: [8, 4, 4],
});
