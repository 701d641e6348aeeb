//! How steering identifies a port: `MLX5_IB_METHOD_QUERY_PORT`, Linux 5.13, the ioctl of
//! [`mlx5dv_query_port(3)`].
//!
//! The driver answers for ports that represent vports of an e-switch, which exist in switchdev mode. If a
//! device's ports act together as one (multi-port RoCE), it gives the vhca id since Linux 6.12. Otherwise
//! the query succeeds and no flag is set.
//!
//! [`mlx5dv_query_port(3)`]: https://man7.org/linux/man-pages/man3/mlx5dv_query_port.3.html

use nix::libc;
use uverbs_uapi::device;
use uverbs_uapi::mlx5::{self as abi, device_method, query_port_flag as flag};
use zerocopy::IntoBytes;

use crate::context::Context;
use crate::error::{Cause, Request, Result};
use crate::ioctl::Command;
use crate::mlx5::require_mlx5;

pub use crate::mlx5_firmware::VportNumber;

/// The driver's answer for a port. Each field is `None` unless the driver set its flag.
#[doc(alias = "mlx5dv_port")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SteeringPort(abi::QueryPort);

impl SteeringPort {
    /// Which fields are set: bits of [`query_port_flag`](uverbs_uapi::mlx5::query_port_flag), including
    /// bits that this version does not know.
    #[must_use]
    pub const fn flags(&self) -> u64 {
        self.0.flags
    }

    fn told<T>(&self, flag: u64, value: T) -> Option<T> {
        (self.0.flags & flag != 0).then_some(value)
    }

    /// The vport of the e-switch that the port represents.
    #[must_use]
    pub fn vport(&self) -> Option<VportNumber> {
        self.told(flag::VPORT, VportNumber(self.0.vport))
    }

    /// Number of the vport's function within the device.
    #[must_use]
    pub fn vport_vhca_id(&self) -> Option<u16> {
        self.told(flag::VPORT_VHCA_ID, self.0.vport_vhca_id)
    }

    /// Number of the function that owns the e-switch.
    #[must_use]
    pub fn esw_owner_vhca_id(&self) -> Option<u16> {
        self.told(flag::ESW_OWNER_VHCA_ID, self.0.esw_owner_vhca_id)
    }

    /// The vport's address for steering in the device's memory (ICM), receive side.
    #[must_use]
    pub fn vport_steering_icm_rx(&self) -> Option<u64> {
        self.told(flag::VPORT_STEERING_ICM_RX, self.0.vport_steering_icm_rx)
    }

    /// The same, transmit side.
    #[must_use]
    pub fn vport_steering_icm_tx(&self) -> Option<u64> {
        self.told(flag::VPORT_STEERING_ICM_TX, self.0.vport_steering_icm_tx)
    }

    /// The content of register C0 that marks packets of the vport for steering.
    #[must_use]
    pub fn reg_c0(&self) -> Option<RegC0> {
        let reg = RegC0 { value: self.0.reg_c0_value, mask: self.0.reg_c0_mask };
        self.told(flag::VPORT_REG_C0, reg)
    }

    /// The structure that the kernel wrote.
    #[must_use]
    pub const fn as_abi(&self) -> &abi::QueryPort {
        &self.0
    }
}

impl From<abi::QueryPort> for SteeringPort {
    /// From the kernel's structure.
    fn from(abi: abi::QueryPort) -> Self {
        Self(abi)
    }
}

/// Content of the steering register C0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegC0 {
    /// The value of the bits in `mask`.
    pub value: u32,
    /// The bits that are compared.
    pub mask: u32,
}

/// Asks the driver how steering identifies a port. One system call, no allocation.
///
/// ```no_run
/// # fn main() -> Result<(), uverbs::Error> {
/// let context = uverbs::Host::new().open("mlx5_0")?;
/// for number in context.ports() {
///     let port = uverbs::mlx5::query_port(&context, number)?;
///     println!("{number}: vport {:?}, register C0 {:?}", port.vport(), port.reg_c0());
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Each a [`Cause`] of its own: not an mlx5 device ([`OtherDriver`](Cause::OtherDriver),
/// `EOPNOTSUPP`), Linux before 5.13 ([`UnknownToKernel`](Cause::UnknownToKernel),
/// `EPROTONOSUPPORT`), no such port ([`NoSuchPort`](Cause::NoSuchPort), `EINVAL`), in switchdev
/// mode a port that represents no vport ([`NoRepresentor`](Cause::NoRepresentor), `EOPNOTSUPP`), a
/// device that is gone ([`DeviceGone`](Cause::DeviceGone), `EIO`). In switchdev mode the driver
/// asks the firmware: `EIO`, `EINVAL`, `EAGAIN`, `ENOMEM`, `EBUSY` if it refuses, `ETIMEDOUT` if it
/// does not answer, `ENXIO` while it is reset. In multi-port RoCE also `EINVAL` if the port's own
/// function has no driver.
#[doc(alias = "mlx5dv_query_port")]
pub fn query_port(context: &Context, port: u32) -> Result<SteeringPort> {
    let mut answer = SteeringPort::default();
    query_port_into(context, port, answer.0.as_mut_bytes())?;
    Ok(answer)
}

/// [`query_port`] into the caller's memory, for callers with a structure of another release.
///
/// Memory beyond the kernel's [`QueryPort`](uverbs_uapi::mlx5::QueryPort) becomes zero. On an error
/// nothing is written.
///
/// # Errors
/// As [`query_port`], and `EINVAL` for less memory than the kernel's structure of 40 bytes.
pub fn query_port_into(context: &Context, port: u32, answer: &mut [u8]) -> Result<()> {
    ask(context, port, answer).map_err(|cause| {
        let cause = match cause {
            Cause::Os(libc::EINVAL) if !context.ports().contains(&port) => Cause::NoSuchPort,
            Cause::NotOffered => Cause::NoRepresentor,
            other => other,
        };
        context.error(Request::Mlx5Port { port }, cause)
    })
}

fn ask(context: &Context, port: u32, answer: &mut [u8]) -> Result<(), Cause> {
    require_mlx5(context)?;
    let mut command = Command::<2>::new(device::object::DEVICE, device_method::QUERY_PORT);
    command.input_value(abi::query_port::PORT_NUM, &port).output(abi::query_port::RESP, answer);
    context.send(&mut command)?;
    if command.is_output_valid(abi::query_port::RESP) {
        Ok(())
    } else {
        Err(Cause::Malformed("a port that was not written"))
    }
}
