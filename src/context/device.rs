//! Attributes of a device: its limits and capabilities, firmware version and GUIDs.
//!
//! By the ioctl's `INVOKE_WRITE` (Linux 5.0), which runs the older extended `QUERY_DEVICE` command,
//! with the semantics of [`ibv_query_device_ex(3)`]. There is no other source for most of it.
//!
//! [`ibv_query_device_ex(3)`]: https://man7.org/linux/man-pages/man3/ibv_query_device_ex.3.html

use uverbs_uapi::device as abi;
use uverbs_uapi::driver::{
    Mlx4QueryDeviceResponse, Mlx5QueryDeviceResponse, PacketPacingCaps, RssHash, TsoCaps, driver_id,
};
use zerocopy::{FromZeros, IntoBytes};

use crate::context::Context;
use crate::error::{Cause, Request, Result};
use crate::guid::Guid;
use crate::ioctl::Command;

/// What the device says of itself, in the kernel's layout; fields that an older kernel does not
/// know are zero.
#[doc(alias = "ibv_device_attr_ex")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceAttributes {
    common: abi::ExQueryDeviceResponse,
    driver: DriverAttributes,
}

/// What drivers add to the kernel's common answer: mlx5 all of it, mlx4 all but packet pacing, `bnxt_re` packet
/// pacing. The rest is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DriverAttributes {
    /// TCP segmentation by the device. C structure `ibv_tso_caps`.
    pub tso: TsoCaps,
    /// Hashing of received packets. C structure `ibv_rss_caps` has it with the common part.
    pub rss_hash: RssHash,
    /// Limits on the rate of a queue pair. C structure `ibv_packet_pacing_caps`.
    pub packet_pacing: PacketPacingCaps,
}

impl DeviceAttributes {
    /// All common fields, as the kernel gave them.
    #[must_use]
    pub fn raw(&self) -> &abi::ExQueryDeviceResponse {
        &self.common
    }

    /// What the driver adds.
    #[must_use]
    pub fn driver(&self) -> &DriverAttributes {
        &self.driver
    }

    /// Node GUID.
    #[must_use]
    pub fn node_guid(&self) -> Guid {
        Guid::from_be_bytes(self.common.base.node_guid)
    }

    /// System image GUID.
    #[must_use]
    pub fn sys_image_guid(&self) -> Guid {
        Guid::from_be_bytes(self.common.base.sys_image_guid)
    }
}

impl Context {
    /// Asks for the device's attributes. One system call, no allocation.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), uverbs::Error> {
    /// # let context = uverbs::Host::new().open("rxe0")?;
    /// let attributes = context.query_device()?;
    /// println!("{} {}", attributes.node_guid(), attributes.raw().base.max_qp);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `EIO`: the device is gone; `EPROTONOSUPPORT`: Linux before 5.0.
    #[doc(alias = "ibv_query_device")]
    #[doc(alias = "ibv_query_device_ex")]
    pub fn query_device(&self) -> Result<DeviceAttributes> {
        self.device_attributes().map_err(|cause| self.error(Request::Device, cause))
    }

    /// The same, without saying of which device an error is.
    pub(crate) fn device_attributes(&self) -> Result<DeviceAttributes, Cause> {
        let mut driver = DriverAttributes::default();
        let common = match self.driver().0 {
            driver_id::MLX5 => {
                let mut own = Mlx5QueryDeviceResponse::new_zeroed();
                let common = self.device_response(own.as_mut_bytes())?;
                driver.tso = own.tso_caps;
                driver.rss_hash = own.rss_caps;
                driver.packet_pacing = own.packet_pacing_caps;
                common
            }
            driver_id::MLX4 => {
                let mut own = Mlx4QueryDeviceResponse::new_zeroed();
                let common = self.device_response(own.as_mut_bytes())?;
                driver.tso = own.tso_caps;
                driver.rss_hash = own.rss_caps;
                common
            }
            driver_id::BNXT_RE => self.device_response(driver.packet_pacing.as_mut_bytes())?,
            _ => self.device_response(&mut [])?,
        };
        Ok(DeviceAttributes { common, driver })
    }

    /// The node GUID, by the older command: the core of the kernel answers it without its driver.
    pub(crate) fn node_guid(&self) -> Result<Guid, Cause> {
        let request = abi::QueryDeviceRequest::default();
        let mut response = abi::QueryDeviceResponse::new_zeroed();
        let mut command = Command::<3>::new(abi::object::DEVICE, abi::method::INVOKE_WRITE);
        command
            .constant(abi::invoke_write::WRITE_CMD, abi::write_command::QUERY_DEVICE.into())
            .input_value(abi::invoke_write::CORE_IN, &request)
            .output(abi::invoke_write::CORE_OUT, response.as_mut_bytes());
        self.send(&mut command)?;
        if !command.is_output_valid(abi::invoke_write::CORE_OUT) {
            return Err(Cause::Malformed("device attributes that were not written"));
        }
        Ok(Guid::from_be_bytes(response.node_guid))
    }

    /// The answer, and in `driver_part` what the driver adds to it; the latter is not asked for if
    /// there is no room for it, as some drivers refuse that.
    fn device_response(&self, driver_part: &mut [u8]) -> Result<abi::ExQueryDeviceResponse, Cause> {
        let request = abi::ExQueryDeviceRequest::default();
        let mut response = abi::ExQueryDeviceResponse::new_zeroed();
        let mut command = Command::<4>::new(abi::object::DEVICE, abi::method::INVOKE_WRITE);
        command
            .constant(abi::invoke_write::WRITE_CMD, abi::write_command::EX_QUERY_DEVICE.into())
            .input_value(abi::invoke_write::CORE_IN, &request)
            .output(abi::invoke_write::CORE_OUT, response.as_mut_bytes());
        if !driver_part.is_empty() {
            command.driver_output(driver_part);
        }
        self.send(&mut command)?;
        if !command.is_output_valid(abi::invoke_write::CORE_OUT) {
            return Err(Cause::Malformed("device attributes that were not written"));
        }
        Ok(response)
    }
}

#[cfg(all(test, feature = "simulated-kernel"))]
mod tests {
    use super::*;
    use crate::driver::DriverId;
    use crate::simulated::{SimulatedKernel, UserMemory};
    use rustix::io::Errno;

    /// Says that all is well, and writes nothing.
    #[derive(Debug)]
    struct Silent;

    impl SimulatedKernel for Silent {
        fn ioctl(&self, _: &mut [u8], _: &UserMemory<'_>) -> Result<(), Errno> {
            Ok(())
        }
    }

    #[test]
    fn what_was_not_written_is_no_answer() {
        let context = Context::simulated("sim0", 1..=1, DriverId::RXE, Box::new(Silent)).unwrap();
        assert!(matches!(context.node_guid(), Err(Cause::Malformed(_))));
        let error = context.query_device().unwrap_err();
        assert!(matches!(error.cause(), Cause::Malformed(_)));
    }

    #[test]
    fn the_two_guids_are_two() {
        let mut response = abi::ExQueryDeviceResponse::new_zeroed();
        response.base.node_guid = [1, 2, 3, 4, 5, 6, 7, 8];
        response.base.sys_image_guid = [8, 7, 6, 5, 4, 3, 2, 1];
        let driver = DriverAttributes::default();
        let attributes = DeviceAttributes { common: response, driver };
        assert_eq!(attributes.node_guid().to_be_bytes(), [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(attributes.sys_image_guid().to_be_bytes(), [8, 7, 6, 5, 4, 3, 2, 1]);
    }
}
