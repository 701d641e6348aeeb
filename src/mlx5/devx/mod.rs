//! Commands to the device's firmware (DEVX): raw ones, and the queries of devices and vports.
//!
//! [`general_cmd`] sends any command that makes no object, as `mlx5dv_devx_general_cmd` of
//! rdma-core does; the other functions here are such commands with typed answers.
//!
//! # Which context
//!
//! Four queries are answered on any [`Context`] of an mlx5 device: [`query_hca_cap`] (with
//! [`query_roce_cap`]), [`query_hca_vport_context`], [`query_esw_vport_context`] and, on Linux 6.1
//! (not on 5.10), [`query_esw_functions`]. All others want one that was opened by [`open`]: for that the firmware
//! makes a user context of its own, so it is asked for only where it is used. No capability is
//! needed for either.
//!
//! # What the kernel does not let through
//!
//! The GID and P_Key tables of InfiniBand ports (`QUERY_HCA_VPORT_GID`, `QUERY_HCA_VPORT_PKEY`),
//! access registers (`ACCESS_REG`: speeds, cables, temperatures), and what creates, modifies or
//! destroys objects: `EINVAL`. Operations from 0xb00 to 0xcff it lets through as they are, whatever
//! they do; of these none is sent here. GIDs are to be had by [`Context::query_gid_table`], P_Keys from
//! [`Sysfs::query_pkeys`](crate::sysfs::Sysfs::query_pkeys). [`query_roce_address`] tells a RoCE
//! port's GIDs as the firmware has them.
//!
//! # Refusals
//!
//! Where the firmware refuses, newer kernels fail with `EREMOTEIO` and hand its reason over:
//! [`Cause::Firmware`]. Older ones make an errno of the status (`EINVAL` for most) and keep the rest.
//! Linux 6.1 is of the first kind and 5.10 of the second; the change is of 2022, about 5.18.

use rustix::io::Errno;
use uverbs_uapi::mlx5::{devx_method, devx_other, object};
use uverbs_uapi::mlx5_firmware::{InputHeader, OutputHeader, PlainInput, opcode, status};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};

use crate::command::Command;
use crate::context::Context;
use crate::device::Device;
use crate::error::{Cause, Request, Result};
use crate::mlx5::require_mlx5;
use crate::names::named;

mod device;
mod target;
mod vport;

pub use device::{
    Adapter, Capabilities, CapabilityMode, EswFunctions, Lag, PciAddress, PortType,
    RoceCapabilities, nop, query_adapter, query_esw_functions, query_hca_cap, query_lag,
    query_roce_cap,
};
pub use target::Target;
pub use vport::{
    EswVportContext, HcaVportContext, MacAddress, NicVportContext, RoceAddress, RoceL3Type,
    RoceVersion, Traffic, Vport, VportAdminState, VportCounters, VportLinkState, VportSide,
    VportState, query_esw_vport_context, query_hca_vport_context, query_nic_vport_context,
    query_roce_address, query_vport_counter, query_vport_state,
};

named! {
    /// Why the firmware refused a command.
    Status(u8) {
        /// Internal error.
        INTERNAL_ERR = status::INTERNAL_ERR, "internal error";
        /// The operation is not known or not supported.
        BAD_OP = status::BAD_OP, "bad operation";
        /// A parameter is wrong or not supported.
        BAD_PARAM = status::BAD_PARAM, "bad parameter";
        /// The system is not in a state for it.
        BAD_SYS_STATE = status::BAD_SYS_STATE, "bad system state";
        /// No such resource.
        BAD_RES = status::BAD_RES, "bad resource";
        /// The resource is in use.
        RES_BUSY = status::RES_BUSY, "resource busy";
        /// Not ready.
        NOT_READY = status::NOT_READY, "not ready";
        /// A limit is exceeded.
        LIM_ERR = status::LIM_ERR, "limits exceeded";
        /// The resource is not in a state for it.
        BAD_RES_STATE = status::BAD_RES_STATE, "bad resource state";
        /// An index is outside its table.
        IX_ERR = status::IX_ERR, "bad index";
        /// No resources are left.
        NO_RES = status::NO_RES, "no resources";
        /// The queue pair is not in a state for it.
        BAD_QP_STATE = status::BAD_QP_STATE, "bad QP state";
        /// A management packet is malformed.
        BAD_PKT = status::BAD_PKT, "bad packet";
        /// Too many completions are outstanding.
        BAD_SIZE_OUTS_CQES = status::BAD_SIZE_OUTS_CQES, "too many outstanding completions";
        /// The input's length is wrong.
        BAD_INP_LEN = status::BAD_INP_LEN, "bad input length";
        /// The output's length is wrong.
        BAD_OUTP_LEN = status::BAD_OUTP_LEN, "bad output length";
    }
}

/// The firmware's answer to a command that it did not carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the firmware refused it: {status} (status {:#x}, syndrome {syndrome:#x})", .status.0)]
pub struct Refusal {
    /// What kind of refusal.
    pub status: Status,
    /// More about it, a number with a meaning to the firmware's makers.
    pub syndrome: u32,
}

/// Opens an mlx5 device with a user context of the firmware's, for the commands that need one.
///
/// ```no_run
/// # fn main() -> Result<(), uverbs::Error> {
/// use uverbs::mlx5::devx;
///
/// let device = uverbs::device::Host::new().device("mlx5_0")?;
/// let context = devx::open(&device)?;
/// println!("board {}", devx::query_adapter(&context)?.psid);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Those of [`Context::open`]; another driver's device ([`Cause::OtherDriver`], `EOPNOTSUPP`); no
/// user contexts in the firmware (`EINVAL`), or none left (`EAGAIN`, `ENOMEM`).
#[doc(alias = "mlx5dv_open_device")]
pub fn open(device: &Device) -> Result<Context> {
    Context::open_mlx5(device, true)
}

/// Sends a general command to the firmware: a query, or what else the kernel lets through (see the
/// [module](self)). One system call.
///
/// Both are in the firmware's own form, which begins with an [`InputHeader`] and an [`OutputHeader`],
/// at least 16 and at most 65,535 bytes long. `output` is set to zero first; if the firmware refuses,
/// it holds the refusal.
///
/// ```no_run
/// # fn main() -> Result<(), uverbs::Error> {
/// # let context = uverbs::device::Host::new().open("mlx5_0")?;
/// use uverbs::mlx5::devx;
/// use uverbs::uapi::mlx5_firmware::opcode;
///
/// let mut input = [0; 16];
/// input[..2].copy_from_slice(&opcode::QUERY_ESW_FUNCTIONS.to_be_bytes());
/// let mut output = [0; 128];
/// devx::general_cmd(&context, &input, &mut output)?;
/// println!("{} VFs", u16::from_be_bytes([output[18], output[19]]));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The firmware's refusal ([`Cause::Firmware`], `EREMOTEIO`; on Linux 5.10 only an errno); an
/// operation that needs a context of [`open`] ([`Cause::NeedsDevx`], `EINVAL`), or that the kernel
/// does not let through, or a length outside the limits (`EINVAL`); not an mlx5 device
/// ([`Cause::OtherDriver`], `EOPNOTSUPP`); on a context without DEVX, a driver that sends nothing for
/// such ([`Cause::NotOffered`], `EOPNOTSUPP`); firmware without user contexts
/// ([`Cause::UnknownToKernel`], `EPROTONOSUPPORT`); no answer in time (`ETIMEDOUT`); a device that is
/// being reset (`ENXIO`); a device that is gone ([`Cause::DeviceGone`], `EIO`).
#[doc(alias = "mlx5dv_devx_general_cmd")]
pub fn general_cmd(context: &Context, input: &[u8], output: &mut [u8]) -> Result<()> {
    let opcode = input.first_chunk().map_or(0, |bytes| u16::from_be_bytes(*bytes));
    send(context, opcode, input, output).map_err(|cause| {
        let target = Target::of(opcode, input);
        context.error(Request::Firmware { opcode, target }, cause)
    })
}

fn send(context: &Context, opcode: u16, input: &[u8], output: &mut [u8]) -> Result<(), Cause> {
    require_mlx5(context)?;
    output.fill(0);
    // As the kernel counts before it looks for DEVX.
    let is_whole = input.len().min(output.len()) >= LEAST;
    let answer = {
        let mut command = Command::<2>::new(object::DEVX, devx_method::OTHER);
        command.input(devx_other::CMD_IN, input).output(devx_other::CMD_OUT, output);
        context.submit(&mut command).map(|()| command.is_output_valid(devx_other::CMD_OUT))
    };
    let refusal = refusal(output);
    match answer {
        Ok(true) => refusal.map_or(Ok(()), |refusal| Err(refusal.into())),
        Ok(false) => Err(Cause::Malformed("a firmware's answer that was not written")),
        Err(Cause::Os(Errno::REMOTEIO)) => {
            Err(refusal.map_or(Cause::Os(Errno::REMOTEIO), Cause::from))
        }
        Err(Cause::Os(Errno::INVAL)) if !context.has_devx() && is_whole && needs_devx(opcode) => {
            Err(Cause::NeedsDevx)
        }
        Err(cause) => Err(cause),
    }
}

/// The least bytes of an input, and of an output.
const LEAST: usize = size_of::<PlainInput>();

/// The refusal in an output, if it is one.
fn refusal(output: &[u8]) -> Option<Refusal> {
    let (header, _) = OutputHeader::read_from_prefix(output).ok()?;
    let refusal = Refusal { status: Status(header.status), syndrome: header.syndrome.get() };
    (header.status != status::OK).then_some(refusal)
}

/// Whether the kernel lets an operation through, but only on a context that was opened by [`open`].
#[must_use]
pub fn needs_devx(opcode: u16) -> bool {
    matches!(
        opcode,
        opcode::QUERY_ADAPTER
            | opcode::QUERY_ISSI
            | opcode::QUERY_VPORT_STATE
            | opcode::QUERY_NIC_VPORT_CONTEXT
            | opcode::QUERY_ROCE_ADDRESS
            | opcode::QUERY_VNIC_ENV
            | opcode::QUERY_VPORT_COUNTER
            | opcode::GET_DROPPED_PACKET_LOG
            | opcode::NOP
            | opcode::QUERY_CONG_STATUS
            | opcode::QUERY_CONG_PARAMS
            | opcode::QUERY_CONG_STATISTICS
            | opcode::QUERY_LAG
            | opcode::GENERAL_START..opcode::GENERAL_END
    )
}

/// The name of an operation, where it is one that is asked here.
pub(crate) fn operation_name(opcode: u16) -> Option<&'static str> {
    Some(match opcode {
        opcode::QUERY_HCA_CAP => "QUERY_HCA_CAP",
        opcode::QUERY_ADAPTER => "QUERY_ADAPTER",
        opcode::QUERY_ESW_FUNCTIONS => "QUERY_ESW_FUNCTIONS",
        opcode::QUERY_VPORT_STATE => "QUERY_VPORT_STATE",
        opcode::QUERY_ESW_VPORT_CONTEXT => "QUERY_ESW_VPORT_CONTEXT",
        opcode::QUERY_NIC_VPORT_CONTEXT => "QUERY_NIC_VPORT_CONTEXT",
        opcode::QUERY_ROCE_ADDRESS => "QUERY_ROCE_ADDRESS",
        opcode::QUERY_HCA_VPORT_CONTEXT => "QUERY_HCA_VPORT_CONTEXT",
        opcode::QUERY_VPORT_COUNTER => "QUERY_VPORT_COUNTER",
        opcode::NOP => "NOP",
        opcode::QUERY_LAG => "QUERY_LAG",
        _ => return None,
    })
}

/// The header of an operation's input.
fn header(opcode: u16, op_mod: u16) -> InputHeader {
    InputHeader { opcode: opcode.into(), op_mod: op_mod.into(), ..InputHeader::new_zeroed() }
}

/// Sends an input and gives the output that belongs to it.
fn query<O: FromBytes + IntoBytes>(
    context: &Context,
    input: &(impl IntoBytes + Immutable),
) -> Result<O> {
    let mut output = O::new_zeroed();
    general_cmd(context, input.as_bytes(), output.as_mut_bytes())?;
    Ok(output)
}
