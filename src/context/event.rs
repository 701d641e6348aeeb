//! Asynchronous events: a device failed, a port came up or went down, its GID table changed.
//!
//! Each event file gets every event of the device from the moment it is opened; it stays open when
//! the context is closed, but nothing arrives then. Linux 5.6. On RoCE ports every change of a GID
//! table is an event ([`EventType::GID_CHANGE`]); on InfiniBand ports tables change with
//! [`PORT_ACTIVE`](EventType::PORT_ACTIVE), [`PORT_ERR`](EventType::PORT_ERR),
//! [`LID_CHANGE`](EventType::LID_CHANGE), [`PKEY_CHANGE`](EventType::PKEY_CHANGE) and
//! [`CLIENT_REREGISTER`](EventType::CLIENT_REREGISTER). No event says which entry changed: the table
//! is to be read again.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use uverbs_uapi::device::object;
use uverbs_uapi::event::{AsyncEvent, async_event_alloc, event_type, method};
use zerocopy::{FromZeros, IntoBytes};

use crate::context::Context;
use crate::error::{Cause, Error, Request, Result};
use crate::ioctl::Command;
use crate::named::named;

named! {
    /// What happened.
    #[doc(alias = "ibv_event_type")]
    #[doc(alias = "ibv_event_type_str")]
    EventType(u32) {
        /// The device was removed: then the element is 0, and neither an event nor an error comes after it. Or it failed:
        /// then it may still be there, and others may come, also this one again.
        DEVICE_FATAL = event_type::DEVICE_FATAL, "device_fatal";
        /// The port came up.
        PORT_ACTIVE = event_type::PORT_ACTIVE, "port_active";
        /// The port went down.
        PORT_ERR = event_type::PORT_ERR, "port_err";
        /// The subnet manager gave the port another LID.
        LID_CHANGE = event_type::LID_CHANGE, "lid_change";
        /// The port's P_Key table changed.
        PKEY_CHANGE = event_type::PKEY_CHANGE, "pkey_change";
        /// The subnet has another subnet manager.
        SM_CHANGE = event_type::SM_CHANGE, "sm_change";
        /// The subnet manager asks clients to register again.
        CLIENT_REREGISTER = event_type::CLIENT_REREGISTER, "client_reregister";
        /// The port's GID table changed (RoCE).
        GID_CHANGE = event_type::GID_CHANGE, "gid_change";
        /// The speed of the device changed (Linux 7).
        DEVICE_SPEED_CHANGE = event_type::DEVICE_SPEED_CHANGE, "device_speed_change";
    }
}

/// One event.
#[doc(alias = "ibv_async_event")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// What happened.
    pub event_type: EventType,
    /// To what: the port's number, 0 for the whole device, for others (queues) what the kernel says. Of a device that
    /// failed and is still there, mlx5 says a port.
    pub element: u64,
}

/// An event file of a context. [`AsFd`] is for `poll` and for `O_NONBLOCK`.
///
/// ```no_run
/// # fn main() -> Result<(), uverbs::Error> {
/// let context = uverbs::Host::new().open("rxe0")?;
/// let events = context.async_events()?;
/// loop {
///     let event = events.next_event()?;
///     println!("{} on {}", event.event_type, event.element);
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct AsyncEvents {
    device: String,
    fd: OwnedFd,
}

impl Context {
    /// Opens one more event file of this context.
    ///
    /// Keep the context as long as you wait. The kernel sends no event after it is closed, and
    /// [`next_event`](AsyncEvents::next_event) then waits for ever.
    ///
    /// # Errors
    /// `EIO`: the device is gone; `EPROTONOSUPPORT`: Linux before 5.6; `EMFILE`, `ENFILE`: too many
    /// open files.
    #[doc(alias = "ibv_get_async_event")]
    pub fn async_events(&self) -> Result<AsyncEvents> {
        let mut command = Command::<1>::new(object::ASYNC_EVENT, method::ASYNC_EVENT_ALLOC);
        command.new_fd(async_event_alloc::FD_HANDLE);
        match self.send_for_fd(&mut command) {
            Ok(fd) => Ok(AsyncEvents { device: self.device_name().to_owned(), fd }),
            Err(cause) => Err(self.error(Request::Events, cause)),
        }
    }
}

impl AsyncEvents {
    /// The next event; waits for one, unless the file was made non-blocking.
    ///
    /// # Errors
    /// `EAGAIN`: none is there, on a non-blocking file; `EINTR`: a signal came first.
    #[doc(alias = "ibv_get_async_event")]
    pub fn next_event(&self) -> Result<Event> {
        read_event(&self.fd).map_err(|cause| Error::new(&*self.device, Request::Events, cause))
    }
}

/// Reads one record of an event file.
fn read_event(fd: impl AsFd) -> Result<Event, Cause> {
    let mut record = AsyncEvent::new_zeroed();
    let length = rustix::io::read(fd, record.as_mut_bytes()).map_err(Cause::of)?;
    Event::of(record, length)
}

impl Event {
    /// The event of a record of which so many bytes were read.
    pub(crate) fn of(record: AsyncEvent, length: usize) -> Result<Self, Cause> {
        if length != size_of::<AsyncEvent>() {
            return Err(Cause::Malformed("part of an event"));
        }
        Ok(Self { event_type: EventType(record.event_type), element: record.element })
    }
}

impl AsFd for AsyncEvents {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl From<AsyncEvents> for OwnedFd {
    fn from(events: AsyncEvents) -> Self {
        events.fd
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_from(bytes: &[u8]) -> Result<Event, Cause> {
        let (reader, writer) = std::io::pipe().unwrap();
        rustix::io::write(&writer, bytes).unwrap();
        drop(writer);
        read_event(&reader)
    }

    #[test]
    fn a_record_is_an_event() {
        let record = AsyncEvent { element: 2, event_type: 10, reserved: 0 };
        let event = Event { event_type: EventType::PORT_ERR, element: 2 };
        assert_eq!(read_from(record.as_bytes()), Ok(event));
        assert_eq!(EventType::PORT_ERR.to_string(), "port_err");
        assert_eq!(EventType(77).to_string(), "unknown(77)");
    }

    #[test]
    fn part_of_a_record_is_none() {
        assert!(matches!(read_from(&[0; 15]), Err(Cause::Malformed(_))));
        assert!(matches!(read_from(&[]), Err(Cause::Malformed(_))));
    }
}
