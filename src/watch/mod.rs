//! Every change of devices, ports and GID tables, as it happens.
//!
//! A [`Watch`] reads an inventory and then gives its [`Change`]s: what came, went, changed or moved, before
//! and after, when it was found, and what caused the reading. The kernel has no event that says which row of a
//! table changed. So every event only causes a reading, and what is reported are differences between two
//! inventories. Applied to the first inventory in their order, they give what [`Watch::inventory`] has
//! now.
//!
//! ```no_run
//! use uverbs::Host;
//! use uverbs::watch::{Options, What};
//!
//! let watch = Host::new().watch(Options::default())?;
//! println!("{} devices", watch.inventory().devices.len());
//! for change in watch {
//!     if let What::Difference(difference) = change?.what {
//!         println!("{} {:?}", difference.name(), difference.device());
//!     }
//! }
//! # Ok::<(), uverbs::Error>(())
//! ```
//!
//! # What is heard
//!
//! | source | Linux | says that |
//! |---|---|---|
//! | RDMA netlink's monitor | 6.12 | devices come and go, ports get and lose their interface; 7.2: renames |
//! | uevents | all | devices and their nodes come, go and are renamed |
//! | route netlink | all | interfaces and addresses of this network namespace change |
//! | asynchronous events | 5.6 | GID tables, ports, LIDs and P_Keys change, see [`AsyncEvents`] |
//!
//! Only asynchronous events say what happens to InfiniBand ports, and to interfaces of other network
//! namespaces. They need an open device, and there are drivers whose devices cannot be removed while one is
//! open. So a device is kept open only if its driver is known to let go on this kernel: the page on
//! [watching](crate::docs::watch) has the list. It is closed as soon as its node goes.
//!
//! [`Watch::unheard`] says what cannot be heard, and why. Whatever is not heard is found when everything is
//! read again, every 30 seconds by default.
//!
//! # What is not seen
//!
//! A change that is undone before it is read. Route netlink speaks before the kernel writes the table: without
//! asynchronous events a device is read up to five times, within five seconds, until the address is there.
//!
//! If only the GIDs of an InfiniBand port change, no event says it. That is found at the port's next event, or when
//! everything is read again.
//!
//! Counters of ports are not state. They are left out (`None`), and so are devices that were not asked for, which
//! [`Watch::others`] has.

mod apply;
mod concerned;
mod diff;
mod difference;
mod pending;
mod read;
#[cfg(feature = "serde")]
mod recording;
mod sources;

use core::num::NonZeroU32;
use std::collections::{BTreeSet, VecDeque};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, SystemTime};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

#[cfg(doc)]
use crate::context::AsyncEvents;
use crate::context::Event;
use crate::device::Device;
use crate::error::{Cause, Error, Request, Result};
use crate::host::{Host, Preference};
use crate::inventory::{Inventory, Parts, Problem};
use crate::netlink::route::Link;
use pending::{Ladder, Pending};
use sources::Sources;

pub use apply::Mismatch;
pub use diff::differences;
pub use difference::{Difference, PortValue};
#[cfg(feature = "serde")]
pub use recording::{
    Entry, Lines, Moment, Part, RECORDED, Recording, format_time, parse_clock, parse_time,
};

/// What is watched.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// What is read. The default is ports with their P_Keys, and GID tables.
    pub parts: Parts,
    /// The source of answers. With [`Preference::Sysfs`] no device is opened.
    pub preference: Preference,
    /// The names of devices; all if there are none. A device that had one of these names is followed when it is
    /// renamed.
    pub devices: Vec<String>,
    /// How often everything is read again, even if nothing was heard; `None` for never. The default is 30
    /// seconds.
    pub reread: Option<Duration>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            parts: Parts { gids: true, pkeys: true, ..Parts::PORTS },
            preference: Preference::Auto,
            devices: Vec::new(),
            reread: Some(Duration::from_secs(30)),
        }
    }
}

/// Who says that something may have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Origin {
    /// An asynchronous event of an open device.
    AsyncEvent,
    /// RDMA netlink's monitor.
    Monitor,
    /// Route netlink.
    Route,
    /// A uevent.
    Uevent,
    /// Nobody: it was time to read everything again.
    Reread,
}

impl Origin {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::AsyncEvent, Self::Monitor, Self::Route, Self::Uevent, Self::Reread];

    /// A word for it: `async_event`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AsyncEvent => "async_event",
            Self::Monitor => "monitor",
            Self::Route => "route",
            Self::Uevent => "uevent",
            Self::Reread => "reread",
        }
    }
}

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// When it was found, by `CLOCK_MONOTONIC`: the time since the host was started, without suspension.
    pub monotonic: Duration,
    /// The same by the clock on the wall.
    pub time: SystemTime,
    /// What caused the reading, in the order of [`Origin`]; often several at once.
    pub origins: Vec<Origin>,
    /// What was found.
    pub what: What,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum What {
    /// The inventory is another one.
    Difference(Difference),
    /// Something happened to a device that no table shows, for example that the subnet manager asks to register
    /// again.
    Event {
        /// The device's name.
        device: String,
        /// What happened.
        event: Event,
    },
    /// The kernel dropped messages, as they were not taken in time. Everything was read again.
    Lost(Origin),
}

/// Something that is not heard.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unheard {
    /// Who would say it.
    pub origin: Origin,
    /// The device of which nothing is heard; `None` if it is none at all.
    pub device: Option<String>,
    /// Why.
    pub problem: Problem,
}

/// A host that is watched.
///
/// It has no thread: it works while one of its methods runs. Its file ([`AsFd`]) becomes readable when
/// there is something to do, so that it can be waited for with others by `poll` or `epoll`. Then call
/// [`wait`](Self::wait) without time until it gives `None`.
#[derive(Debug)]
pub struct Watch {
    host: Host,
    options: Options,
    inventory: Inventory,
    /// Devices that are not watched.
    others: Vec<Device>,
    sources: Sources,
    unheard: Vec<Unheard>,
    /// The interfaces of this namespace by their indices, as far as it matters what is above what.
    links: Vec<Link>,
    /// Whether they could be read.
    has_links: bool,
    /// The indices of interfaces that went since the last reading; `None` if not all is heard of them.
    gone: Option<BTreeSet<NonZeroU32>>,
    /// The kernel's indices of devices that had one of the names which are watched.
    followed: Vec<u32>,
    pending: Option<Pending>,
    ladder: Option<Ladder>,
    next_reread: Option<Duration>,
    /// Until when the timer sleeps.
    armed: Option<Duration>,
    /// How often a reading was not believed.
    doubts: u32,
    found: VecDeque<Change>,
}

/// The time since the host was started.
fn now() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Monotonic)).unwrap_or_default()
}

impl Host {
    /// Begins to watch: listens, and then reads the first inventory.
    ///
    /// Of another host's tree ([`rooted`](Self::rooted)) nothing is heard: it is read again from time to time.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`, `ENOMEM`: there is no file left to wait on.
    pub fn watch(self, options: Options) -> Result<Watch> {
        let sources = Sources::new().map_err(failed)?;
        let mut watch = Watch {
            host: self,
            options,
            inventory: Inventory::default(),
            others: Vec::new(),
            sources,
            unheard: Vec::new(),
            links: Vec::new(),
            has_links: false,
            gone: None,
            followed: Vec::new(),
            pending: None,
            ladder: None,
            next_reread: None,
            armed: None,
            doubts: 0,
            found: VecDeque::new(),
        };
        watch.listen();
        watch.gone = watch.sources.route.as_ref().map(|_| BTreeSet::new());
        watch.inventory = watch.list_all();
        watch.follow();
        // All of them are read after it.
        let _ = watch.hold_contexts();
        watch.inventory = watch.read_all();
        watch.follow();
        watch.plan_reread();
        watch.arm().map_err(failed)?;
        Ok(watch)
    }
}

fn failed(errno: Errno) -> Error {
    Error::of_host(Request::Watch, Cause::of(errno))
}

impl Watch {
    /// What is known now: the first inventory with all changes that were found, also those that were not
    /// given yet.
    #[must_use]
    pub fn inventory(&self) -> &Inventory {
        &self.inventory
    }

    /// The devices that are not watched, as they were listed last: those that [`Options::devices`] does not name.
    #[must_use]
    pub fn others(&self) -> &[Device] {
        &self.others
    }

    /// What is not heard, of what can be. It is complete when the watch begins, grows with devices that come, and has nothing that can be
    /// heard by now: what failed is tried again each time that everything is to be read.
    #[must_use]
    pub fn unheard(&self) -> &[Unheard] {
        &self.unheard
    }

    /// Whether changes were found that were not given yet.
    #[must_use]
    pub fn has_found(&self) -> bool {
        !self.found.is_empty()
    }

    /// Waits for the next change, at most this long; without an end if there is no timeout.
    ///
    /// With a timeout of zero it does what there is to do, and does not wait.
    ///
    /// # Errors
    /// Those of `epoll_wait(2)` and `poll(2)`. A signal does not end it.
    pub fn wait(&mut self, timeout: Option<Duration>) -> Result<Option<Change>> {
        let end = timeout.map(|timeout| now().saturating_add(timeout));
        loop {
            if let Some(change) = self.found.pop_front() {
                return Ok(Some(change));
            }
            self.turn().map_err(failed)?;
            if !self.found.is_empty() {
                continue;
            }
            let left = end.map(|end| end.saturating_sub(now()));
            if left == Some(Duration::ZERO) {
                return Ok(None);
            }
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            let mut files = [PollFd::new(&self.sources, PollFlags::IN)];
            match rustix::event::poll(&mut files, left.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(failed(errno)),
            }
        }
    }

    /// Hears what there is to hear, and reads what is due.
    fn turn(&mut self) -> Result<(), Errno> {
        self.hear()?;
        self.read_due();
        self.arm()
    }

    /// Sets the timer for what is due next.
    fn arm(&mut self) -> Result<(), Errno> {
        let pending = self.pending.as_ref().map(Pending::due);
        let rung = self.ladder.as_ref().map(Ladder::due);
        let next = [pending, rung, self.next_reread].into_iter().flatten().min();
        if next != self.armed {
            self.sources.set_timer(next)?;
            self.armed = next;
        }
        Ok(())
    }

    fn plan_reread(&mut self) {
        self.next_reread = self.options.reread.map(|pause| now().saturating_add(pause));
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.sources.as_fd()
    }
}

impl Iterator for Watch {
    type Item = Result<Change>;

    /// Waits for the next change. It never ends.
    fn next(&mut self) -> Option<Self::Item> {
        self.wait(None).transpose()
    }
}
