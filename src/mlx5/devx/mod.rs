//! Commands to the device's firmware (DEVX): raw commands, and queries of devices and vports.
//!
//! [`general_cmd`] sends any command that makes no object, like rdma-core's
//! `mlx5dv_devx_general_cmd`. The other functions send such commands and return typed answers.
//!
//! # Which context
//!
//! Four queries are answered on any [`Context`] of an mlx5 device: [`query_hca_cap`] (with
//! [`query_roce_cap`]), [`query_hca_vport_context`], [`query_esw_vport_context`] and, on Linux 6.1
//! (not on 5.10), [`query_esw_functions`]. All others take a [`DevxContext`], which [`open`] makes: the
//! firmware makes a user context for it, so open one only if you use it. Neither needs a capability. A
//! `DevxContext` is a [`Context`] too.
//!
//! ```compile_fail,E0308
//! # fn main() -> Result<(), uverbs::Error> {
//! let context = uverbs::Host::new().open("mlx5_0")?;
//! uverbs::mlx5::devx::query_adapter(&context)?; // needs a DevxContext
//! # Ok(())
//! # }
//! ```
//!
//! # What the kernel does not let through
//!
//! The GID and P_Key tables of InfiniBand ports (`QUERY_HCA_VPORT_GID`, `QUERY_HCA_VPORT_PKEY`),
//! access registers (`ACCESS_REG`: speeds, cables, temperatures), and what creates, modifies or
//! destroys objects: `EINVAL`. The kernel passes on all operations from 0xb00 to 0xcff unchecked; no
//! typed query is one of them. [`Context::query_gid_table`] gives GIDs, and
//! [`Sysfs::query_pkeys`](crate::sysfs::Sysfs::query_pkeys) gives P_Keys. [`query_roce_address`] gives a
//! RoCE port's GIDs as the firmware has them.
//!
//! # Refusals
//!
//! If the firmware refuses, newer kernels fail with `EREMOTEIO` and return the firmware's reason:
//! [`Cause::Firmware`]. Older kernels turn the status into an errno (mostly `EINVAL`) and drop the rest.
//! Linux 6.1 is of the first kind and 5.10 of the second; the change was made in 2022, about 5.18.

use core::ops::Deref;

use nix::libc;
use uverbs_uapi::mlx5::{devx_method, devx_other, object};
use uverbs_uapi::mlx5_firmware::{InputHeader, OutputHeader, PlainInput, opcode, status};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};

use crate::context::Context;
use crate::device::Device;
use crate::error::{Cause, Request, Result};
use crate::ioctl::Command;
use crate::mlx5::require_mlx5;

mod device;
mod mac;
mod roce_address;
mod vport;
mod vport_context;
mod vport_counter;
mod vport_state;

pub use crate::mlx5_firmware::{FirmwareRefusal, FirmwareTarget, Status};
pub use device::{
    Adapter, Capabilities, CapabilityMode, EswFunctions, HostPci, Lag, PortType, RoceCapabilities,
    nop, query_adapter, query_esw_functions, query_hca_cap, query_lag, query_roce_cap,
};
pub use mac::MacAddress;
pub use roce_address::{RoceAddress, RoceL3Type, RoceVersion, query_roce_address};
pub use vport::Vport;
pub use vport_context::{
    EswVportContext, HcaVportContext, NicVportContext, query_esw_vport_context,
    query_hca_vport_context, query_nic_vport_context,
};
pub use vport_counter::{Traffic, VportCounters, query_vport_counter};
pub use vport_state::{VportAdminState, VportLinkState, VportSide, VportState, query_vport_state};

/// Opens an mlx5 device with a firmware user context, for the commands that need one.
///
/// ```no_run
/// # fn main() -> Result<(), uverbs::Error> {
/// use uverbs::mlx5::devx;
///
/// let device = uverbs::Host::new().device("mlx5_0")?;
/// let context = devx::open(&device)?;
/// println!("board {}", devx::query_adapter(&context)?.psid);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Those of [`Context::open`]; another driver's device ([`Cause::OtherDriver`], `EOPNOTSUPP`); no
/// user contexts in the firmware, or its refusal (`EINVAL`); none left, or a device that is not active (`EAGAIN`,
/// `ENOMEM`).
#[doc(alias = "mlx5dv_open_device")]
pub fn open(device: &Device) -> Result<DevxContext> {
    Context::open_mlx5(device, true).map(DevxContext)
}

/// A [`Context`] whose firmware commands the kernel sends in the name of a user context (DEVX). [`open`]
/// makes it. Wherever a `&Context` is wanted, a `&DevxContext` will do.
#[derive(Debug)]
pub struct DevxContext(Context);

impl DevxContext {
    /// The context as one of any device. [`general_cmd`] still sends commands that need DEVX on it.
    #[must_use]
    pub fn into_context(self) -> Context {
        self.0
    }

    /// A context whose kernel is test code.
    ///
    /// # Errors
    /// Those of `GET_CONTEXT`, as the simulated kernel answers it.
    #[cfg(feature = "simulated-kernel")]
    #[doc(hidden)]
    pub fn simulated(
        device: &str,
        ports: core::ops::RangeInclusive<u32>,
        kernel: Box<dyn crate::simulated::SimulatedKernel>,
    ) -> Result<Self> {
        Context::simulated_devx(device, ports, kernel).map(Self)
    }
}

impl Deref for DevxContext {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.0
    }
}

impl AsRef<Context> for DevxContext {
    fn as_ref(&self) -> &Context {
        &self.0
    }
}

impl From<DevxContext> for Context {
    fn from(context: DevxContext) -> Self {
        context.0
    }
}

/// Sends a general command to the firmware: a query, or another command that the kernel lets through
/// (see the [module](self)). One system call.
///
/// `input` and `output` are in the firmware's own form. They begin with an [`InputHeader`] and an
/// [`OutputHeader`], and have 16 to 65,535 bytes. `output` is written only if the firmware answers. If the
/// firmware refuses, `output` holds the refusal.
///
/// ```no_run
/// # fn main() -> Result<(), uverbs::Error> {
/// # let context = uverbs::Host::new().open("mlx5_0")?;
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
/// operation that needs a [`DevxContext`] ([`Cause::NeedsDevx`], `EINVAL`), or that the kernel
/// does not let through, or a length outside the limits (`EINVAL`); not an mlx5 device
/// ([`Cause::OtherDriver`], `EOPNOTSUPP`); on a context without DEVX, a driver that sends nothing for
/// such ([`Cause::NotOffered`], `EOPNOTSUPP`); firmware without user contexts
/// ([`Cause::UnknownToKernel`], `EPROTONOSUPPORT`); no answer in time (`ETIMEDOUT`); a device that is
/// being reset (`ENXIO`); a device that is gone ([`Cause::DeviceGone`], `EIO`).
#[doc(alias = "mlx5dv_devx_general_cmd")]
pub fn general_cmd(context: &Context, input: &[u8], output: &mut [u8]) -> Result<()> {
    let opcode = input.first_chunk().map_or(0, |bytes| u16::from_be_bytes(*bytes));
    send(context, opcode, input, output).map_err(|cause| {
        let target = FirmwareTarget::of(opcode, input);
        context.error(Request::Firmware { opcode, target }, cause)
    })
}

fn send(context: &Context, opcode: u16, input: &[u8], output: &mut [u8]) -> Result<(), Cause> {
    require_mlx5(context)?;
    // The kernel checks lengths before it looks for DEVX.
    let is_whole = input.len().min(output.len()) >= LEAST;
    let (answer, is_written) = {
        let mut command = Command::<2>::new(object::DEVX, devx_method::OTHER);
        command.input(devx_other::CMD_IN, input).output(devx_other::CMD_OUT, output);
        let answer = context.send(&mut command);
        (answer, command.is_output_valid(devx_other::CMD_OUT))
    };
    // Old content of the memory must not look like a refusal.
    let refusal = if is_written { refusal(output) } else { None };
    match answer {
        Ok(()) if is_written => refusal.map_or(Ok(()), |refusal| Err(refusal.into())),
        Ok(()) => Err(Cause::Malformed("a firmware's answer that was not written")),
        Err(Cause::Os(libc::EREMOTEIO)) => {
            Err(refusal.map_or(Cause::Os(libc::EREMOTEIO), Cause::from))
        }
        Err(Cause::Os(libc::EINVAL)) if !context.has_devx() && is_whole && needs_devx(opcode) => {
            Err(Cause::NeedsDevx)
        }
        Err(cause) => Err(cause),
    }
}

/// The fewest bytes of an input or output.
const LEAST: usize = size_of::<PlainInput>();

/// The refusal in an output, if it is one.
fn refusal(output: &[u8]) -> Option<FirmwareRefusal> {
    let (header, _) = OutputHeader::read_from_prefix(output).ok()?;
    let refusal = FirmwareRefusal::new(Status(header.status), header.syndrome.get());
    (header.status != status::OK).then_some(refusal)
}

/// Whether the kernel lets an operation through only on a [`DevxContext`].
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

/// The header of an operation's input.
fn header(opcode: u16, op_mod: u16) -> InputHeader {
    InputHeader { opcode: opcode.into(), op_mod: op_mod.into(), ..InputHeader::new_zeroed() }
}

/// Sends an input and returns its output.
fn query<O: FromBytes + IntoBytes>(
    context: &Context,
    input: &(impl IntoBytes + Immutable),
) -> Result<O> {
    let mut output = O::new_zeroed();
    general_cmd(context, input.as_bytes(), output.as_mut_bytes())?;
    Ok(output)
}
