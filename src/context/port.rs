//! Ports by ioctl: `QUERY_PORT` (Linux 5.0) and `QUERY_PORT_SPEED` (7.0), with the semantics of
//! [`ibv_query_port(3)`].
//!
//! [`ibv_query_port(3)`]: https://man7.org/linux/man-pages/man3/ibv_query_port.3.html

use uverbs_uapi::device as abi;
use zerocopy::{FromZeros, IntoBytes};

use super::Context;
use crate::error::{Cause, Request, Result};
use crate::ioctl::Command;
use crate::port::{PortAttributes, Rate};

impl Context {
    /// Asks for a port's attributes. One system call.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), uverbs::Error> {
    /// # let context = uverbs::Host::new().open("rxe0")?;
    /// let port = context.query_port(1)?;
    /// println!("{} {} slots", port.state, port.gid_tbl_len);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `EINVAL`: no such port (also any port above 255, which the request cannot name); `EIO`: the
    /// device is gone; `ENODEV`: an iWARP port without interface; `EPROTONOSUPPORT`: Linux before 5.0.
    #[doc(alias = "ibv_query_port")]
    pub fn query_port(&self, port: u32) -> Result<PortAttributes> {
        match self.port_response(port) {
            Ok(response) => Ok((&response).into()),
            Err(cause) => Err(self.port_error(port, Request::Port { port }, cause)),
        }
    }

    pub(crate) fn port_response(&self, port: u32) -> Result<abi::QueryPortResponse, Cause> {
        let mut response = abi::QueryPortResponse::new_zeroed();
        let mut command = Command::<2>::new(abi::object::DEVICE, abi::method::QUERY_PORT);
        command
            .constant(abi::query_port::PORT_NUM, port.into())
            .output(abi::query_port::RESP, response.as_mut_bytes());
        self.send(&mut command)?;
        if !command.is_output_valid(abi::query_port::RESP) {
            return Err(Cause::Malformed("port attributes that were not written"));
        }
        Ok(response)
    }

    /// Asks for a port's effective rate, which differs from the nominal one on bonded or partly
    /// used links, in units of 100 Mb/s. One system call. Linux 7.0; of the drivers, mlx5 and efa answer.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), uverbs::Error> {
    /// # let context = uverbs::Host::new().open("mlx5_0")?;
    /// println!("{} Gb/s", context.query_port_speed(1)?.gbps());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `EOPNOTSUPP`: the driver does not offer it; `EINVAL`: no such port; `ENODEV`: the port has no network interface, as
    /// one that represents no vport; `EIO`: the device is gone; `EPROTONOSUPPORT`: Linux before 7.0.
    #[doc(alias = "ibv_query_port_speed")]
    pub fn query_port_speed(&self, port: u32) -> Result<Rate> {
        let mut rate = 0u64;
        let mut command = Command::<2>::new(abi::object::DEVICE, abi::method::QUERY_PORT_SPEED);
        command
            .constant(abi::query_port_speed::PORT_NUM, port.into())
            .output(abi::query_port_speed::RESP, rate.as_mut_bytes());
        match self.send(&mut command) {
            Ok(()) if command.is_output_valid(abi::query_port_speed::RESP) => Ok(Rate(rate)),
            Ok(()) => Err(Cause::Malformed("a port speed that was not written")),
            Err(cause) => Err(cause),
        }
        .map_err(|cause| self.port_error(port, Request::PortSpeed { port }, cause))
    }
}
