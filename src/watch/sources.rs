//! The files that say that something may have changed, and hearing them.

use std::mem::MaybeUninit;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll;
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use uverbs_uapi::netlink as abi;

use super::pending::{ExpectedRow, Ladder, Pending, Scope, once};
use super::{Change, Origin, Unheard, Watch, What, now};
use crate::context::{AsyncEvents, Context, Event, EventType, probe_driver};
use crate::device::Device;
use crate::error::{Cause, Error, Request};
use crate::host::Preference;
use crate::inventory::Problem;
use crate::kernel::release;
use crate::netlink::listen::{Listener, RouteNews, parse_route_news, parse_uevent};

// What an event of epoll is about.
const TIMER: u64 = 0;
const MONITOR: u64 = 1;
const ROUTE: u64 = 2;
const UEVENTS: u64 = 3;
const FIRST_DEVICE: u64 = 16;

/// The files.
#[derive(Debug)]
pub(super) struct Sources {
    epoll: OwnedFd,
    timer: OwnedFd,
    monitor: Option<Listener>,
    pub(super) route: Option<Listener>,
    uevents: Option<Listener>,
    /// Open devices.
    held: Vec<Held>,
    next: u64,
}

/// A device that is kept open.
#[derive(Debug)]
struct Held {
    /// What epoll says.
    token: u64,
    name: String,
    index: Option<u32>,
    node: Option<String>,
    events: AsyncEvents,
    /// Without it nothing arrives.
    _context: Context,
}

impl Sources {
    pub(super) fn new() -> Result<Self, Errno> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let data = epoll::EventData::new_u64(TIMER);
        epoll::add(&epoll, &timer, data, epoll::EventFlags::IN)?;
        let (monitor, route, uevents) = (None, None, None);
        let (held, next) = (Vec::new(), FIRST_DEVICE);
        Ok(Self { epoll, timer, monitor, route, uevents, held, next })
    }

    fn add(&self, file: impl AsFd, token: u64) -> Result<(), Errno> {
        let data = epoll::EventData::new_u64(token);
        epoll::add(&self.epoll, file, data, epoll::EventFlags::IN)
    }

    /// Sets the timer to a time since the host was started; `None` stops it.
    pub(super) fn set_timer(&self, at: Option<Duration>) -> Result<(), Errno> {
        const NEVER: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
        // Zero would stop it.
        let at = at.map(|at| at.max(Duration::from_nanos(1)));
        let it_value = at.and_then(|at| Timespec::try_from(at).ok()).unwrap_or(NEVER);
        let value = Itimerspec { it_interval: NEVER, it_value };
        rustix::time::timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &value).map(drop)
    }

    /// Whether a device is kept open.
    pub(super) fn holds(&self, device: &str) -> bool {
        self.held.iter().any(|own| own.name == device)
    }
}

impl AsFd for Sources {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

impl Watch {
    /// Subscribes to all that can be heard without an open device.
    pub(super) fn listen(&mut self) {
        if !self.host.is_here() {
            let what = "only its files are read, and no file of sysfs says that it changed";
            for origin in [Origin::AsyncEvent, Origin::Monitor, Origin::Route, Origin::Uevent] {
                self.miss(origin, None, what.to_owned(), Errno::OPNOTSUPP.raw_os_error());
            }
            return;
        }
        // The kernel may have refused one for a moment.
        if self.is_untried(Origin::Monitor, self.sources.monitor.as_ref()) {
            self.listen_to_monitor();
        }
        if self.is_untried(Origin::Route, self.sources.route.as_ref()) {
            self.sources.route = self.heard(Origin::Route, ROUTE, Listener::route());
        }
        if self.is_untried(Origin::Uevent, self.sources.uevents.as_ref()) {
            self.sources.uevents = self.heard(Origin::Uevent, UEVENTS, Listener::uevents());
        }
    }

    /// Whether it is not heard, and is not known to be none that this kernel has.
    fn is_untried(&self, origin: Origin, listener: Option<&Listener>) -> bool {
        let is_none = |own: &Unheard| {
            own.origin == origin && own.problem.errno == Errno::OPNOTSUPP.raw_os_error()
        };
        listener.is_none() && !self.unheard.iter().any(is_none)
    }

    fn listen_to_monitor(&mut self) {
        match self.has_monitor() {
            Ok(true) => {
                self.sources.monitor = self.heard(Origin::Monitor, MONITOR, Listener::monitor());
            }
            Ok(false) => {
                let what = "the kernel has no RDMA monitor; it came with Linux 6.12";
                let errno = Errno::OPNOTSUPP.raw_os_error();
                self.miss(Origin::Monitor, None, what.to_owned(), errno);
            }
            Err(error) => self.miss(Origin::Monitor, None, error.to_string(), error.errno()),
        }
    }

    /// Whether the kernel has the monitor. One that does not know the question has none. A socket that is refused is no answer.
    fn has_monitor(&mut self) -> Result<bool, Error> {
        match self.host.system_setting(abi::attribute::SYS_MONITOR_MODE) {
            Ok(mode) => Ok(mode == Some(1)),
            Err(error)
                if error.errno() == Errno::INVAL.raw_os_error()
                    && self.host.netlink_error().is_none() =>
            {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Waits for a socket, or says why it cannot be heard.
    fn heard(
        &mut self,
        origin: Origin,
        token: u64,
        listener: Result<Listener, Errno>,
    ) -> Option<Listener> {
        let added = listener.and_then(|own| self.sources.add(&own, token).map(|()| own));
        match added {
            Ok(listener) => {
                self.unheard.retain(|own| own.origin != origin || own.device.is_some());
                Some(listener)
            }
            Err(errno) => {
                let Problem { text, errno } =
                    Error::of_host(Request::Watch, Cause::of(errno)).into();
                self.miss(origin, None, text, errno);
                None
            }
        }
    }

    fn miss(&mut self, origin: Origin, device: Option<&str>, text: String, errno: i32) {
        let device = device.map(str::to_owned);
        if !self.unheard.iter().any(|own| own.origin == origin && own.device == device) {
            self.unheard.push(Unheard { origin, device, problem: Problem { text, errno } });
        }
    }

    /// Keeps those devices open, and no others, that are there and whose removal does not wait for it. Returns those
    /// that were not open before.
    pub(super) fn hold_contexts(&mut self) -> Vec<String> {
        let mut new = Vec::new();
        if !self.host.is_here() || self.options.preference == Preference::Sysfs {
            return new;
        }
        let kernel = release();
        let devices: Vec<Device> =
            self.inventory.devices.iter().map(|own| own.device.clone()).collect();
        let is_there = |held: &Held| {
            devices.iter().any(|own| own.name == held.name && own.index == held.index)
        };
        self.sources.held.retain(is_there);
        self.unheard.retain(|own| {
            let name = own.device.as_deref();
            name.is_none_or(|name| devices.iter().any(|own| own.name == name))
        });
        for device in devices {
            if self.sources.holds(&device.name) {
                continue;
            }
            let held = self.hold(&device, kernel);
            let name = device.name;
            // What kept it from being heard may be over, or be something else now.
            self.unheard.retain(|own| own.device.as_deref() != Some(&*name));
            match held {
                Ok(()) => new.push(name),
                Err(Problem { text, errno }) => {
                    self.miss(Origin::AsyncEvent, Some(&name), text, errno);
                }
            }
        }
        new
    }

    /// Keeps a device open, or says why not.
    fn hold(&mut self, device: &Device, kernel: Option<(u32, u32)>) -> Result<(), Problem> {
        let driver = device.driver.map_or_else(|| probe_driver(device), Ok)?;
        // If its release is not known, the kernel counts as older than any.
        if !driver.lets_go(kernel.unwrap_or_default()) {
            let on = kernel.map_or_else(
                || "a kernel whose release could not be read".to_owned(),
                |(major, minor)| format!("Linux {major}.{minor}"),
            );
            let text = format!(
                "{}: not kept open: with the driver {driver} on {on} its removal could wait for that",
                device.name
            );
            return Err(Problem { text, errno: Errno::OPNOTSUPP.raw_os_error() });
        }
        let device = &Device { driver: Some(driver), ..device.clone() };
        let context = Context::open(device)?;
        let events = context.async_events()?;
        let failed = |errno| Error::new(&*device.name, Request::Events, Cause::of(errno));
        rustix::fs::fcntl_setfl(&events, OFlags::NONBLOCK).map_err(failed)?;
        let token = self.sources.next;
        self.sources.next += 1;
        self.sources.add(&events, token).map_err(failed)?;
        let node = device.node.as_ref().map(|own| own.name.clone());
        let (name, index) = (device.name.clone(), device.index);
        self.sources.held.push(Held { token, name, index, node, events, _context: context });
        Ok(())
    }

    /// Takes everything that is there to hear.
    pub(super) fn hear(&mut self) -> Result<(), Errno> {
        loop {
            let mut room = [MaybeUninit::<epoll::Event>::uninit(); 16];
            let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
            let ready = match epoll::wait(&self.sources.epoll, &mut room, Some(&zero)) {
                Ok((ready, _)) => ready.iter().map(|own| own.data.u64()).collect::<Vec<u64>>(),
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(errno),
            };
            let is_all = ready.len() < room.len();
            for token in ready {
                match token {
                    TIMER => {
                        let mut count = [0; 8];
                        // It is read to be quiet. What is due is known.
                        let _ = rustix::io::read(&self.sources.timer, &mut count);
                        self.armed = None;
                    }
                    MONITOR => self.hear_monitor(),
                    ROUTE => self.hear_route(),
                    UEVENTS => self.hear_uevents(),
                    token => self.hear_device(token),
                }
            }
            if is_all {
                return Ok(());
            }
        }
    }

    /// Wants a reading.
    pub(super) fn want(&mut self, scope: Scope, origin: Origin) {
        let now = now();
        self.pending.get_or_insert_with(|| Pending::new(now)).add(scope, origin, now);
    }

    /// Says that messages were lost, and wants everything read.
    pub(super) fn lose(&mut self, origin: Origin) {
        self.tell(vec![origin], What::Lost(origin));
        self.want_all(origin);
    }

    /// Wants everything read again, as it is not known what is new.
    fn want_all(&mut self, origin: Origin) {
        self.want(Scope::All, origin);
        if origin == Origin::Route {
            self.gone = None;
            self.read_links();
            // The kernel may write a table only after the message that was lost.
            let now = now();
            for own in &self.inventory.devices {
                if !self.sources.holds(&own.device.name) {
                    let ladder = self.ladder.get_or_insert_with(|| Ladder::new(now));
                    ladder.add(&own.device.name, None, now);
                }
            }
        }
    }

    pub(super) fn tell(&mut self, origins: Vec<Origin>, what: What) {
        let (monotonic, time) = (now(), std::time::SystemTime::now());
        self.found.push_back(Change { monotonic, time, origins, what });
    }

    fn hear_monitor(&mut self) {
        let Some(listener) = &mut self.sources.monitor else { return };
        let mut is_any = false;
        let drained = listener.drain(&mut |_| is_any = true);
        if drained.unwrap_or(true) {
            self.lose(Origin::Monitor);
        }
        if is_any {
            self.want(Scope::All, Origin::Monitor);
        }
    }

    fn hear_uevents(&mut self) {
        let Some(listener) = &mut self.sources.uevents else { return };
        let held = &mut self.sources.held;
        let mut is_any = false;
        let drained = listener.drain(&mut |datagram| {
            let Some(event) = parse_uevent(datagram) else { return };
            is_any = true;
            // At once, in case the removal waits for it after all.
            if event.action == "remove" && event.node.is_some() {
                held.retain(|own| own.node.as_deref() != event.node);
            }
        });
        if drained.unwrap_or(true) {
            self.sources.held.clear();
            self.lose(Origin::Uevent);
        }
        if is_any {
            self.want(Scope::All, Origin::Uevent);
        }
    }

    fn hear_device(&mut self, token: u64) {
        let Some(own) = self.sources.held.iter().find(|own| own.token == token) else { return };
        let name = own.name.clone();
        let (mut is_over, mut is_any) = (false, false);
        let mut others: Vec<Event> = Vec::new();
        loop {
            match own.events.next_event() {
                Ok(event) => {
                    is_any = true;
                    is_over |= event.event_type == EventType::DEVICE_FATAL && event.element == 0;
                    if !is_in_tables(event.event_type) && !others.contains(&event) {
                        others.push(event);
                    }
                }
                Err(error) if error.errno() == Errno::INTR.raw_os_error() => {}
                Err(error) => {
                    is_over |= error.errno() != Errno::AGAIN.raw_os_error();
                    break;
                }
            }
        }
        for event in others {
            self.tell(vec![Origin::AsyncEvent], What::Event { device: name.clone(), event });
        }
        if is_over {
            self.sources.held.retain(|own| own.token != token);
            self.want(Scope::All, Origin::AsyncEvent);
        } else if is_any {
            self.want(Scope::Devices(vec![name]), Origin::AsyncEvent);
        }
    }

    pub(super) fn hear_route(&mut self) {
        let Some(listener) = &mut self.sources.route else { return };
        let mut news = Vec::new();
        let drained = listener.drain(&mut |datagram| {
            parse_route_news(datagram, &mut |own| news.push(own));
        });
        if drained.unwrap_or(true) || news.contains(&RouteNews::Unread) {
            return self.lose(Origin::Route);
        }
        if !news.is_empty() && !self.has_links {
            return self.want_all(Origin::Route);
        }
        // What an interface was, as long as it matters what was above what.
        let mut gone = Vec::new();
        let mut touched: Vec<(u32, Touch)> = Vec::new();
        for own in news {
            match own {
                RouteNews::Link(link) => {
                    let index = link.index.get();
                    gone.retain(|own| *own != index);
                    let place = self.links.binary_search_by_key(&index, |own| own.index.get());
                    let touch = match place.map(|place| (place, self.links.get_mut(place))) {
                        Ok((_, Some(known))) if *known == link => continue,
                        Ok((_, Some(known))) => {
                            // Another name changes no table.
                            known.name.clone_from(&link.name);
                            let touch = if *known == link { Touch::Name } else { Touch::Any };
                            *known = link;
                            touch
                        }
                        Ok((place, None)) | Err(place) => {
                            self.links.insert(place, link);
                            Touch::Any
                        }
                    };
                    touched.push((index, touch));
                }
                RouteNews::LinkGone(link) => {
                    if let Some(own) = &mut self.gone {
                        own.insert(link.index);
                    }
                    touched.push((link.index.get(), Touch::Any));
                    gone.push(link.index.get());
                }
                RouteNews::Address(own) => {
                    touched.push((own.index, Touch::Address(own.ip, true)));
                }
                RouteNews::AddressGone(own) => {
                    touched.push((own.index, Touch::Address(own.ip, false)));
                }
                RouteNews::Unread => {}
            }
        }
        if touched.is_empty() {
            return;
        }
        let now = now();
        let mut devices = Vec::new();
        for (device, concern) in self.concerned() {
            for (index, touch) in &touched {
                let place = self.links.binary_search_by_key(index, |own| own.index.get());
                let link = place.ok().and_then(|place| self.links.get(place));
                if !concern.has(*index, link) {
                    continue;
                }
                once(&mut devices, device.clone());
                // An event follows if the device is kept open.
                if self.sources.holds(&device) {
                    continue;
                }
                let expected = match *touch {
                    Touch::Name => continue,
                    Touch::Any => None,
                    Touch::Address(ip, is_there) => {
                        Some(ExpectedRow { ip, index: *index, is_there })
                    }
                };
                self.ladder.get_or_insert_with(|| Ladder::new(now)).add(&device, expected, now);
            }
        }
        self.links.retain(|own| !gone.contains(&own.index.get()));
        if !devices.is_empty() || self.options.parts.interfaces {
            self.want(Scope::Devices(devices), Origin::Route);
        }
    }
}

/// What changed of an interface.
#[derive(Clone, Copy, Debug)]
enum Touch {
    /// Only its name, which changes no table.
    Name,
    /// Anything.
    Any,
    /// It has an address now, or no longer has it.
    Address(IpAddr, bool),
}

/// Whether what such an event is about shows in a table that is read.
fn is_in_tables(event: EventType) -> bool {
    matches!(
        event,
        EventType::PORT_ACTIVE
            | EventType::PORT_ERR
            | EventType::LID_CHANGE
            | EventType::PKEY_CHANGE
            | EventType::GID_CHANGE
            | EventType::DEVICE_SPEED_CHANGE
    )
}

#[cfg(test)]
mod tests {
    use crate::driver::DriverId;
    use crate::kernel::version;

    #[test]
    fn only_drivers_that_let_go_are_kept_open() {
        use uverbs_uapi::driver::driver_id as id;
        let of = |id, release| DriverId(id).lets_go(version(release));
        assert!(of(id::MLX5, "5.10.0-35-amd64") && of(id::HNS, "6.1.0"));
        assert!(!of(id::RXE, "7.2.13") && of(id::RXE, "7.3.4") && of(id::RXE, "10.0"));
        assert!(!of(id::BNXT_RE, "6.1.0") && of(id::BNXT_RE, "6.12.95+deb13"));
        assert!(!of(id::SIW, "9.9.9") && !of(id::EFA, "9.9.9") && !of(999, "9.9.9"));
        assert!(!of(id::RXE, "") && !of(id::RXE, "x"));
    }
}
