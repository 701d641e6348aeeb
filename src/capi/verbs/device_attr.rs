//! Attributes of a device.

use core::ffi::{c_int, c_void};
use core::mem::offset_of;

use rustix::io::Errno;
use uverbs_uapi::device::QueryDeviceResponse;
use uverbs_uapi::mlx5_firmware::{
    InputHeader, QueryGeneralCapOutput, QueryHcaCapInput, capability_mode, capability_type, opcode,
};
use zerocopy::{FromZeros, IntoBytes};

use super::abi;
use super::opened::Opened;
use crate::capi::{fill, guarded, number, signed};
use crate::driver::DriverId;
use crate::error::Cause;
use crate::mlx5::devx;

/// Bytes of the attributes that every release has.
const ORIGINAL: usize = size_of::<abi::DeviceAttr>();

/// Where the attributes of newer releases end, in ascending order. A program's structure may end with any
/// of them. If it ends within an attribute, it does not get that attribute.
const ENDS: [usize; 16] = {
    use abi::DeviceAttrEx as Attr;
    [
        ORIGINAL,
        offset_of!(Attr, odp_caps) + size_of::<abi::OdpCaps>(),
        offset_of!(Attr, completion_timestamp_mask) + 8,
        offset_of!(Attr, hca_core_clock) + 8,
        offset_of!(Attr, device_cap_flags_ex) + 8,
        offset_of!(Attr, tso_caps) + size_of::<abi::TsoCaps>(),
        offset_of!(Attr, rss_caps) + size_of::<abi::RssCaps>(),
        offset_of!(Attr, max_wq_type_rq) + 4,
        offset_of!(Attr, packet_pacing_caps) + size_of::<abi::PacketPacingCaps>(),
        offset_of!(Attr, raw_packet_caps) + 4,
        offset_of!(Attr, tm_caps) + size_of::<abi::TmCaps>(),
        offset_of!(Attr, cq_mod_caps) + size_of::<abi::CqModerationCaps>(),
        offset_of!(Attr, max_dm_size) + 8,
        PCI_ATOMICS,
        offset_of!(Attr, xrc_odp_caps) + 4,
        offset_of!(Attr, phys_port_cnt_ex) + 4,
    ]
};
const PCI_ATOMICS: usize =
    offset_of!(abi::DeviceAttrEx, pci_atomic_caps) + size_of::<abi::PciAtomicCaps>();

/// Asks for a device's attributes, as many as fit in `length` bytes. The headers' inline
/// `ibv_query_device_ex(3)`, whose structure grew, calls it.
///
/// # Errors
/// `EINVAL` (NULL, `comp_mask` not 0, a length below that of `struct ibv_device_attr`), `EIO` (the
/// device is gone), or the driver's.
///
/// # Safety
/// `context` is NULL or open; `input` is NULL or points to its structure; `attr` is NULL or has room
/// for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn uverbs_query_device_ex(
    context: *mut abi::Context,
    input: *const abi::QueryDeviceExInput,
    attr: *mut abi::DeviceAttrEx,
    length: usize,
) -> c_int {
    // SAFETY: the same contract.
    let Some(opened) = (unsafe { Opened::of(context) }) else { return number(Errno::INVAL) };
    let comp_mask = if input.is_null() {
        0
    } else {
        // SAFETY: not NULL, so by the contract the structure.
        unsafe { (*input).comp_mask }
    };
    if attr.is_null() || comp_mask != 0 || length < ORIGINAL {
        return number(Errno::INVAL);
    }
    let end = ENDS.into_iter().rfind(|end| *end <= length).unwrap_or(ORIGINAL);
    let answer =
        guarded(Err(Errno::IO), || attributes(opened, end).map_err(|cause| cause.as_errno()));
    match answer {
        Ok(attributes) => {
            let told = attributes.as_bytes().get(..end).unwrap_or_default();
            // SAFETY: not NULL, so by the contract `length` bytes of the caller's.
            unsafe { fill(attr.cast(), length, told) };
            0
        }
        Err(errno) => number(errno),
    }
}

/// Asks for the attributes that every release has. See `ibv_query_device(3)`.
///
/// # Errors
/// As [`uverbs_query_device_ex`].
///
/// # Safety
/// `context` is NULL or open; `device_attr` is NULL or points to its structure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_query_device(
    context: *mut abi::Context,
    device_attr: *mut abi::DeviceAttr,
) -> c_int {
    // SAFETY: the same contract; the shorter structure begins the longer one.
    unsafe { uverbs_query_device_ex(context, core::ptr::null(), device_attr.cast(), ORIGINAL) }
}

/// This library has no completion counters: it writes zeros and returns `EOPNOTSUPP`.
///
/// # Safety
/// `caps` is NULL or has room for `caps_size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _ibv_query_comp_cntr_caps(
    _context: *mut abi::Context,
    caps: *mut c_void,
    caps_size: usize,
) -> c_int {
    if !caps.is_null() {
        // SAFETY: not NULL, so by the contract `caps_size` bytes of the caller's.
        unsafe { fill(caps.cast(), caps_size, &[]) };
    }
    number(Errno::OPNOTSUPP)
}

fn attributes(opened: &Opened, end: usize) -> Result<abi::DeviceAttrEx, Cause> {
    let driver = opened.context.driver();
    let attributes = opened.context.device_attributes()?;
    let (response, own) = (attributes.raw(), attributes.driver());
    let mut attr = abi::DeviceAttrEx::new_zeroed();
    attr.orig_attr = original(&response.base);
    let says = opened.listed.device.fw_version.as_deref();
    attr.orig_attr.fw_ver = c_text(&driver.firmware_version(response.base.fw_ver, says));
    let odp = &response.odp_caps;
    attr.odp_caps = abi::OdpCaps {
        general_caps: odp.general_caps,
        rc_odp_caps: odp.rc_odp_caps,
        uc_odp_caps: odp.uc_odp_caps,
        ud_odp_caps: odp.ud_odp_caps,
        ..abi::OdpCaps::default()
    };
    attr.completion_timestamp_mask = response.timestamp_mask;
    attr.hca_core_clock = response.hca_core_clock;
    attr.device_cap_flags_ex = response.device_cap_flags_ex;
    attr.tso_caps =
        abi::TsoCaps { max_tso: own.tso.max_tso, supported_qpts: own.tso.supported_qpts };
    attr.rss_caps = abi::RssCaps {
        supported_qpts: response.rss_caps.supported_qpts,
        max_rwq_indirection_tables: response.rss_caps.max_rwq_indirection_tables,
        max_rwq_indirection_table_size: response.rss_caps.max_rwq_indirection_table_size,
        rx_hash_fields_mask: own.rss_hash.rx_hash_fields_mask,
        rx_hash_function: own.rss_hash.rx_hash_function,
        ..abi::RssCaps::default()
    };
    attr.max_wq_type_rq = response.max_wq_type_rq;
    attr.packet_pacing_caps = abi::PacketPacingCaps {
        qp_rate_limit_min: own.packet_pacing.qp_rate_limit_min,
        qp_rate_limit_max: own.packet_pacing.qp_rate_limit_max,
        supported_qpts: own.packet_pacing.supported_qpts,
    };
    attr.raw_packet_caps = response.raw_packet_caps;
    let tm = &response.tm_caps;
    attr.tm_caps = abi::TmCaps {
        max_rndv_hdr_size: tm.max_rndv_hdr_size,
        max_num_tags: tm.max_num_tags,
        flags: tm.flags,
        max_ops: tm.max_ops,
        max_sge: tm.max_sge,
    };
    attr.cq_mod_caps = abi::CqModerationCaps {
        max_cq_count: response.cq_moderation_caps.max_cq_moderation_count,
        max_cq_period: response.cq_moderation_caps.max_cq_moderation_period,
    };
    attr.max_dm_size = response.max_dm_size;
    attr.xrc_odp_caps = response.xrc_odp_caps;
    attr.phys_port_cnt_ex = match opened.listed.device.port_count {
        0 => response.base.phys_port_cnt.into(),
        count => count,
    };
    let has_atomics = driver == DriverId::MLX5 && end >= PCI_ATOMICS;
    if let Some(atomics) = has_atomics.then(|| pci_atomics(opened)).flatten() {
        attr.pci_atomic_caps = atomics;
        attr.orig_attr.atomic_cap =
            with_pci_atomics(attr.orig_attr.atomic_cap, attr.pci_atomic_caps);
    }
    Ok(attr)
}

/// Atomic operations on the bus, if the firmware reports them.
fn pci_atomics(opened: &Opened) -> Option<abi::PciAtomicCaps> {
    /// Their offsets in the firmware's atomic capabilities: two bytes each.
    const FETCH_ADD: usize = 0x50;
    const SWAP: usize = 0x52;
    const COMPARE_SWAP: usize = 0x54;
    /// Offset of the capabilities in the output.
    const CAPABILITIES: usize = 16;
    let input = QueryHcaCapInput {
        header: InputHeader {
            opcode: opcode::QUERY_HCA_CAP.into(),
            op_mod: (capability_type::ATOMIC << 1 | capability_mode::CURRENT).into(),
            ..InputHeader::new_zeroed()
        },
        ..QueryHcaCapInput::new_zeroed()
    };
    let mut output = [0u8; size_of::<QueryGeneralCapOutput>()];
    devx::general_cmd(&opened.context, input.as_bytes(), &mut output).ok()?;
    let at = |offset| {
        let bytes: [u8; 2] = *output.get(CAPABILITIES + offset..)?.first_chunk()?;
        Some(u16::from_be_bytes(bytes))
    };
    Some(abi::PciAtomicCaps {
        fetch_add: at(FETCH_ADD)?,
        swap: at(SWAP)?,
        compare_swap: at(COMPARE_SWAP)?,
    })
}

/// Atomic operations are atomic for the whole host (`IBV_ATOMIC_GLOB`) if the device can do operations of
/// eight bytes on the bus, otherwise only within the device (`IBV_ATOMIC_HCA`).
fn with_pci_atomics(atomic_cap: u32, caps: abi::PciAtomicCaps) -> u32 {
    const HCA: u32 = 1;
    const GLOB: u32 = 2;
    const EIGHT_BYTES: u16 = 1 << 1;
    if atomic_cap == HCA && caps.fetch_add & caps.compare_swap & EIGHT_BYTES != 0 {
        GLOB
    } else {
        atomic_cap
    }
}

fn original(base: &QueryDeviceResponse) -> abi::DeviceAttr {
    abi::DeviceAttr {
        fw_ver: [0; 64],
        node_guid: base.node_guid,
        sys_image_guid: base.sys_image_guid,
        max_mr_size: base.max_mr_size,
        page_size_cap: base.page_size_cap,
        vendor_id: base.vendor_id,
        vendor_part_id: base.vendor_part_id,
        hw_ver: base.hw_ver,
        max_qp: signed(base.max_qp),
        max_qp_wr: signed(base.max_qp_wr),
        device_cap_flags: base.device_cap_flags,
        max_sge: signed(base.max_sge),
        max_sge_rd: signed(base.max_sge_rd),
        max_cq: signed(base.max_cq),
        max_cqe: signed(base.max_cqe),
        max_mr: signed(base.max_mr),
        max_pd: signed(base.max_pd),
        max_qp_rd_atom: signed(base.max_qp_rd_atom),
        max_ee_rd_atom: signed(base.max_ee_rd_atom),
        max_res_rd_atom: signed(base.max_res_rd_atom),
        max_qp_init_rd_atom: signed(base.max_qp_init_rd_atom),
        max_ee_init_rd_atom: signed(base.max_ee_init_rd_atom),
        atomic_cap: base.atomic_cap,
        max_ee: signed(base.max_ee),
        max_rdd: signed(base.max_rdd),
        max_mw: signed(base.max_mw),
        max_raw_ipv6_qp: signed(base.max_raw_ipv6_qp),
        max_raw_ethy_qp: signed(base.max_raw_ethy_qp),
        max_mcast_grp: signed(base.max_mcast_grp),
        max_mcast_qp_attach: signed(base.max_mcast_qp_attach),
        max_total_mcast_qp_attach: signed(base.max_total_mcast_qp_attach),
        max_ah: signed(base.max_ah),
        max_fmr: signed(base.max_fmr),
        max_map_per_fmr: signed(base.max_map_per_fmr),
        max_srq: signed(base.max_srq),
        max_srq_wr: signed(base.max_srq_wr),
        max_srq_sge: signed(base.max_srq_sge),
        max_pkeys: base.max_pkeys,
        local_ca_ack_delay: base.local_ca_ack_delay,
        phys_port_cnt: base.phys_port_cnt,
        padding: Default::default(),
    }
}

/// A C text, cut so that it fits with its NUL.
fn c_text<const N: usize>(text: &str) -> [u8; N] {
    let mut array = [0; N];
    for (place, byte) in array.iter_mut().take(N - 1).zip(text.bytes()) {
        *place = byte;
    }
    array
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_ends_with_its_nul() {
        assert_eq!(c_text::<4>("ab"), *b"ab\0\0");
        assert_eq!(c_text::<4>("abcdef"), *b"abc\0");
    }

    #[test]
    fn atomics_on_the_bus_make_atomics_global() {
        let caps =
            |fetch_add, compare_swap| abi::PciAtomicCaps { fetch_add, swap: 0, compare_swap };
        // 4, 8 and 16 bytes are bits 0, 1 and 2.
        assert_eq!(with_pci_atomics(1, caps(2, 2)), 2);
        assert_eq!(with_pci_atomics(1, caps(7, 2)), 2);
        assert_eq!(with_pci_atomics(1, caps(2, 5)), 1);
        assert_eq!(with_pci_atomics(1, caps(1, 1)), 1);
        assert_eq!(with_pci_atomics(0, caps(2, 2)), 0);
    }
}
