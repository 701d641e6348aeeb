//! Calls as a C program makes them, with guards around its memory.
#![expect(unsafe_code, reason = "it calls as C does")]

use core::ffi::{c_int, c_void};
use core::ptr::{null, null_mut};

use arbitrary::Arbitrary;
use uverbs::capi::mlx5::{_mlx5dv_query_port, mlx5dv_devx_general_cmd};
use uverbs::capi::verbs::{
    _ibv_query_comp_cntr_caps, _ibv_query_gid_ex, _ibv_query_gid_table, abi, ibv_close_device,
    ibv_event_type_str, ibv_get_device_guid, ibv_get_device_index, ibv_get_device_name,
    ibv_get_pkey_index, ibv_node_type_str, ibv_port_state_str, ibv_query_device, ibv_query_gid,
    ibv_query_gid_type, ibv_query_pkey, ibv_query_port, ibv_query_port_speed, ibv_wc_status_str,
    ibv_wr_opcode_str, simulated, uverbs_query_device_ex, uverbs_query_port,
};
use uverbs::context::Context;

use crate::guarded::Guarded;

/// A call: its arguments, and whether its pointers are NULL.
#[derive(Arbitrary, Debug)]
pub struct Call {
    function: Function,
    port: u32,
    index: u32,
    flags: u32,
    length: Length,
    /// The context, the memory to fill, the input.
    nulls: [u8; 3],
}

#[derive(Arbitrary, Debug)]
enum Function {
    QueryPort,
    OldQueryPort,
    QueryDeviceEx { comp_mask: Option<u32> },
    OldQueryDevice,
    QueryGidEx,
    QueryGidTable { count: Count },
    QueryGid,
    QueryGidType,
    QueryPkey,
    PkeyIndex,
    PortSpeed,
    CompCntrCaps,
    Mlx5Port,
    GeneralCommand { input: Vec<u8>, claimed: Option<usize> },
    Strings(i32),
    Device,
}

/// How long a structure of the caller's is said to be.
#[derive(Arbitrary, Debug)]
enum Length {
    /// And is.
    Small(u8),
    Middle(u16),
    Right,
    /// Longer than anything: only where the function may not touch the memory then.
    Huge(usize),
}

/// How many structures there are said to be.
#[derive(Arbitrary, Debug)]
enum Count {
    Small(u8),
    Middle(u16),
    Huge(usize),
}

/// More than one attribute carries.
const BEYOND: usize = 65_536;

impl Call {
    /// Bytes of memory that are said to be there, and of those that are.
    fn length(&self, right: usize, may_be_huge: bool) -> (usize, usize) {
        match self.length {
            Length::Small(length) => (length.into(), length.into()),
            Length::Middle(length) => (length.into(), length.into()),
            Length::Huge(length) if may_be_huge => (length.max(BEYOND), 16),
            Length::Right | Length::Huge(_) => (right, right),
        }
    }
}

/// Makes the calls on a context; with `is_sound`, a kernel that writes nothing when it fails.
///
/// # Panics
/// If a promise is broken.
pub fn run(context: Context, calls: &[Call], is_sound: bool) {
    let opened = simulated(context);
    if opened.is_null() {
        return;
    }
    for call in calls {
        // One in 16 is NULL.
        let context = if call.nulls[0] % 16 == 15 { null_mut() } else { opened };
        one(context, call, is_sound);
    }
    // SAFETY: open, and used by nobody else.
    assert_eq!(unsafe { ibv_close_device(opened) }, 0);
}

fn one(context: *mut abi::Context, call: &Call, is_sound: bool) {
    let nowhere = call.nulls[1] % 16 == 15;
    let port = call.port.to_ne_bytes()[0] % 8;
    let (said, real) = match call.function {
        Function::QueryPort => call.length(56, false),
        Function::OldQueryPort => (48, 48),
        Function::QueryDeviceEx { .. } => call.length(size_of::<abi::DeviceAttrEx>(), false),
        Function::OldQueryDevice => (size_of::<abi::DeviceAttr>(), size_of::<abi::DeviceAttr>()),
        Function::QueryGidEx => call.length(32, true),
        Function::QueryGid => (16, 16),
        Function::QueryGidType => (4, 4),
        Function::QueryPkey => (2, 2),
        Function::PortSpeed => (8, 8),
        Function::CompCntrCaps => call.length(24, false),
        Function::Mlx5Port => call.length(40, true),
        Function::GeneralCommand { .. } => call.length(16, true),
        Function::QueryGidTable { .. }
        | Function::PkeyIndex
        | Function::Strings(_)
        | Function::Device => (0, 0),
    };
    let mut memory = Guarded::new(real);
    let at = memory.pointer::<c_void>(nowhere);
    let status = match &call.function {
        Function::QueryPort => {
            // SAFETY: NULL or a context, NULL or `said` bytes.
            unsafe { uverbs_query_port(context, port, at.cast(), said) }
        }
        // SAFETY: NULL or a context, NULL or 48 bytes.
        Function::OldQueryPort => unsafe { ibv_query_port(context, port, at.cast()) },
        Function::QueryDeviceEx { comp_mask } => {
            let input = comp_mask.as_ref().map_or(null(), core::ptr::from_ref);
            // SAFETY: NULL or a context, NULL or the structure, NULL or `said` bytes.
            unsafe { uverbs_query_device_ex(context, input.cast(), at.cast(), said) }
        }
        // SAFETY: NULL or a context, NULL or room for the structure.
        Function::OldQueryDevice => unsafe { ibv_query_device(context, at.cast()) },
        Function::QueryGidEx => {
            let (port, index) = (call.port % 8, call.index % 64);
            // SAFETY: NULL or a context; NULL, or `said` bytes, or so many that none are touched.
            unsafe { _ibv_query_gid_ex(context, port, index, at.cast(), call.flags & 1, said) }
        }
        Function::QueryGid => {
            // SAFETY: NULL or a context, NULL or 16 bytes.
            unsafe { ibv_query_gid(context, port, call.index.cast_signed() % 64, at.cast()) }
        }
        Function::QueryGidType => {
            // SAFETY: NULL or a context, NULL or an `enum`.
            unsafe { ibv_query_gid_type(context, port, call.index % 64, at.cast()) }
        }
        Function::QueryPkey => {
            // SAFETY: NULL or a context, NULL or 16 bits.
            unsafe { ibv_query_pkey(context, port, call.index.cast_signed(), at.cast()) }
        }
        Function::PkeyIndex => {
            // SAFETY: NULL or a context.
            unsafe { ibv_get_pkey_index(context, port, 0xffff) }
        }
        Function::PortSpeed => {
            // SAFETY: NULL or a context, NULL or 64 bits.
            unsafe { ibv_query_port_speed(context, call.port % 8, at.cast()) }
        }
        Function::CompCntrCaps => {
            // SAFETY: NULL or a context, NULL or `said` bytes.
            unsafe { _ibv_query_comp_cntr_caps(context, at, said) };
            return memory.check();
        }
        Function::Mlx5Port => {
            // SAFETY: NULL or a context; NULL, or `said` bytes, or so many that none are touched.
            unsafe { _mlx5dv_query_port(context, call.port % 8, at, said) }
        }
        Function::GeneralCommand { input, claimed } => {
            let from = if call.nulls[2] % 16 == 15 { null() } else { input.as_ptr() };
            let length = claimed.map_or(input.len(), |claimed| claimed.max(BEYOND));
            // SAFETY: NULL or a context; NULL, or as many bytes as are said, or so many that none
            // are touched.
            unsafe { mlx5dv_devx_general_cmd(context, from.cast(), length, at, said) };
            return memory.check();
        }
        Function::QueryGidTable { count } => return table(context, call, count, nowhere),
        Function::Strings(value) => return strings(*value),
        Function::Device => return device(context),
    };
    memory.check();
    if nowhere || context.is_null() || (is_sound && status != 0) {
        // As each release of rdma-core does, but for the oldest structure.
        let is_zero = matches!(call.function, Function::QueryPort) && said > 48;
        if is_zero && !nowhere && !context.is_null() {
            memory.check_zero();
        } else {
            memory.check_untouched();
        }
        if !matches!(call.function, Function::PkeyIndex) {
            assert_ne!(status, 0);
        }
    }
}

/// The table, with room for as many as there is memory for, or with a product that is none.
fn table(context: *mut abi::Context, call: &Call, count: &Count, nowhere: bool) {
    let (size, _) = call.length(32, true);
    let bytes = |count: usize| count.checked_mul(size).filter(|bytes| *bytes <= 200_000);
    let (count, real) = match *count {
        Count::Small(count) => (usize::from(count), bytes(count.into())),
        Count::Middle(count) => (usize::from(count) % 2500, bytes(usize::from(count) % 2500)),
        Count::Huge(count) => (count, bytes(count)),
    };
    // Either the memory is there, or the product is more than any memory.
    let too_much = count.checked_mul(size).is_none_or(|bytes| isize::try_from(bytes).is_err());
    let Some(real) = real.or(too_much.then_some(32)) else { return };
    let mut memory = Guarded::new(real);
    let at = memory.pointer(nowhere);
    // SAFETY: NULL or a context; NULL or as much memory as the product says, if it can be.
    let found = unsafe { _ibv_query_gid_table(context, at, count, call.flags & 1, size) };
    memory.check();
    if too_much || nowhere || context.is_null() {
        assert_eq!(found, -22);
        memory.check_untouched();
    }
    assert!(usize::try_from(found).is_ok_and(|found| found <= count) || found < 0);
}

fn strings(value: c_int) {
    let bits = value.cast_unsigned();
    let texts = [
        ibv_node_type_str(value),
        ibv_port_state_str(bits),
        ibv_event_type_str(bits),
        ibv_wc_status_str(bits),
        ibv_wr_opcode_str(bits),
    ];
    for text in texts {
        // SAFETY: the function's promise: a text that stays.
        assert!(!unsafe { core::ffi::CStr::from_ptr(text) }.is_empty());
    }
}

fn device(context: *mut abi::Context) {
    if context.is_null() {
        return;
    }
    // SAFETY: an open context begins with its device.
    let device = unsafe { context.cast::<*mut abi::Device>().read() };
    // SAFETY: the context holds it.
    let name = unsafe { ibv_get_device_name(device) };
    // SAFETY: a text as long as the device is held.
    assert_eq!(unsafe { core::ffi::CStr::from_ptr(name) }, c"sim0");
    // SAFETY: the context holds it.
    let _ = unsafe { ibv_get_device_guid(device) };
    // SAFETY: the context holds it.
    let _ = unsafe { ibv_get_device_index(device) };
}
