//! The functions of `<infiniband/verbs.h>` and `<infiniband/driver.h>`.

pub mod abi;
mod absent;
mod context;
mod device;
mod device_attr;
mod event;
mod gid;
mod opened;
mod port;
mod strings;
mod sysfs;

pub(super) use context::open;
#[cfg(feature = "simulated-kernel")]
#[doc(hidden)]
pub use context::simulated;
#[cfg(all(test, feature = "simulated-kernel", not(miri)))]
pub(super) use context::simulated_at;
pub use context::{ibv_close_device, ibv_import_device, ibv_open_device};
pub(super) use device::Held;
#[cfg(feature = "simulated-kernel")]
#[doc(hidden)]
pub use device::simulated_host;
pub use device::{
    ibv_free_device_list, ibv_get_device_guid, ibv_get_device_index, ibv_get_device_list,
    ibv_get_device_name,
};
pub use device_attr::{_ibv_query_comp_cntr_caps, ibv_query_device, uverbs_query_device_ex};
pub use event::{ibv_ack_async_event, ibv_get_async_event};
pub use gid::{_ibv_query_gid_ex, _ibv_query_gid_table, ibv_query_gid, ibv_query_gid_type};
pub(super) use opened::Opened;
pub use port::{
    ibv_get_pkey_index, ibv_query_pkey, ibv_query_port, ibv_query_port_speed, uverbs_query_port,
};
pub use strings::{
    ibv_event_type_str, ibv_node_type_str, ibv_port_state_str, ibv_wc_status_str, ibv_wr_opcode_str,
};
pub use sysfs::{ibv_get_sysfs_path, ibv_read_sysfs_file};
