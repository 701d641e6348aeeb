//! How long a command watches, how often it reads again, and what ends it.

use std::cell::Cell;
use std::os::fd::AsFd as _;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use uverbs::inventory::{Inventory, Parts, Problem};
use uverbs::selector::Selector;
use uverbs::watch::{Change, Options, Watch};

use crate::args::{Common, SourceArg};
use crate::hosts::{host, tell_problems};
use crate::output::say;
use crate::report::Report;
use crate::selection::{Asked, select};

/// How long, and how often.
#[derive(Debug, Args)]
pub(crate) struct TimeArgs {
    /// End after so many seconds
    #[arg(long, value_name = "S", value_parser = seconds)]
    timeout: Option<Duration>,
    /// Read everything again each so many seconds, 0 for never [default: 30]
    #[arg(long, value_name = "S", value_parser = seconds)]
    reread: Option<Duration>,
}

/// Reads a number of seconds.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok();
    let duration = seconds.and_then(|own| Duration::try_from_secs_f64(own).ok());
    duration.ok_or_else(|| "expected a number of seconds, as 10 or 0.5".to_owned())
}

/// Signals that end a command, which from now on do nothing else.
fn signals(all: impl IntoIterator<Item = Signal>) -> Result<SignalFd, Problem> {
    let set: SigSet = all.into_iter().collect();
    let blocked = set.thread_block();
    let signals = blocked.and_then(|()| SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC));
    signals.map_err(|errno| {
        let text = format!("host: wait for signals: {}", errno.desc());
        Problem { text, errno: errno as i32 }
    })
}

/// Lets SIGTERM end the command as one that did what it should. In a container, where it may be process 1, the signal would do
/// nothing.
pub(crate) fn exit_on_signal() -> Result<(), Problem> {
    let signals = signals([Signal::SIGTERM])?;
    let wait = move || {
        while matches!(signals.read_signal(), Err(nix::errno::Errno::EINTR)) {}
        std::process::exit(0);
    };
    let started = thread::Builder::new().stack_size(64 << 10).spawn(wait);
    started.map(drop).map_err(|error| {
        let text = format!("host: wait for signals: {error}");
        Problem { text, errno: error.raw_os_error().unwrap_or(0) }
    })
}

/// What ends waiting.
#[derive(Debug)]
pub(crate) struct Ends {
    signals: SignalFd,
    /// Whether a signal was seen while there was something to write.
    is_signalled: Cell<bool>,
    deadline: Option<Instant>,
}

/// What waiting ended with.
pub(crate) enum Next {
    Change(Box<Change>),
    TimeIsUp,
    /// By a signal, or nobody reads any more.
    Ended,
}

impl TimeArgs {
    /// How often everything is read again, if that is said and not never.
    pub(crate) fn pace(&self) -> Option<Duration> {
        self.reread.filter(|pause| !pause.is_zero())
    }

    /// Begins to watch, and says on stderr what is not heard. The time begins now.
    pub(crate) fn begin(
        &self,
        common: &Common,
        source: SourceArg,
        asked: &[Selector],
        parts: Option<Parts>,
    ) -> Result<(Watch, Ends), Problem> {
        let deadline = self.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let signals = signals([Signal::SIGINT, Signal::SIGTERM])?;
        let mut options = Options::default();
        options.preference = source.preference(common);
        options.devices = asked.iter().map(|own| own.device.clone()).collect();
        options.parts = parts.unwrap_or(options.parts);
        options.reread = self.reread.or(options.reread).filter(|pause| !pause.is_zero());
        let pause = options.reread;
        let host = host(common);
        let watch = host.watch(options)?;
        let unheard = watch.unheard().iter();
        let told =
            unheard.map(|own| format!("not heard: {}: {}", own.origin.name(), own.problem.text));
        let then = pause.map(|pause| {
            format!(
                "what is not heard is found when all is read again, each {} s",
                pause.as_secs_f64()
            )
        });
        say(told.chain(then.filter(|_| !watch.unheard().is_empty())));
        Ok((watch, Ends { signals, is_signalled: Cell::new(false), deadline }))
    }
}

impl Ends {
    /// Sleeps until there is something to do, or until this time. Says whether it is the end.
    pub(crate) fn sleep(&self, watch: &Watch, until: Instant) -> bool {
        let until = self.deadline.map_or(until, |deadline| deadline.min(until));
        let mut files = [
            PollFd::from_borrowed_fd(watch.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN),
        ];
        let left = Timespec::try_from(until.saturating_duration_since(Instant::now())).ok();
        // If it fails, there is something to do.
        let _ = rustix::event::poll(&mut files, left.as_ref());
        let [_, signals] = &files;
        !signals.revents().is_empty() || self.is_late()
    }

    /// Whether the time is up.
    pub(crate) fn is_late(&self) -> bool {
        self.deadline.is_some_and(|own| own <= Instant::now())
    }

    /// Waits until something can be written, or for an end. Says whether to write.
    pub(crate) fn may_write(&self) -> bool {
        let stdout = rustix::stdio::stdout();
        loop {
            let mut files = [
                PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN),
                PollFd::from_borrowed_fd(stdout, PollFlags::OUT),
            ];
            let left = self.deadline.map(|end| end.saturating_duration_since(Instant::now()));
            let is_over = left == Some(Duration::ZERO);
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            let ready = match rustix::event::poll(&mut files, left.as_ref()) {
                Ok(ready) => ready,
                Err(Errno::INTR) => continue,
                Err(_) => return true,
            };
            let [signals, stdout] = &files;
            self.is_signalled.set(!signals.revents().is_empty());
            // What is wrong with stdout, writing says.
            if !stdout.revents().is_empty() {
                return true;
            }
            if ready > 0 || is_over {
                return false;
            }
        }
    }

    /// Waits for the next change, or for an end.
    pub(crate) fn next(&self, watch: &mut Watch) -> uverbs::Result<Next> {
        loop {
            if self.is_signalled.get() {
                return Ok(Next::Ended);
            }
            let left = self.deadline.map(|end| end.saturating_duration_since(Instant::now()));
            if let Some(change) = watch.wait(Some(Duration::ZERO))? {
                return Ok(Next::Change(Box::new(change)));
            }
            if left == Some(Duration::ZERO) {
                return Ok(Next::TimeIsUp);
            }
            let stdout = rustix::stdio::stdout();
            let mut files = [
                PollFd::from_borrowed_fd(watch.as_fd(), PollFlags::IN),
                PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN),
                // Whether anybody reads.
                PollFd::from_borrowed_fd(stdout, PollFlags::empty()),
            ];
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            // If it fails, the next round says why.
            let _ = rustix::event::poll(&mut files, left.as_ref());
            let [_, signals, stdout] = &files;
            if !signals.revents().is_empty() || !stdout.revents().is_empty() {
                return Ok(Next::Ended);
            }
        }
    }
}

/// All that a watch knows of its host, with the devices that are not watched.
pub(crate) fn host_of(watch: &Watch) -> Inventory {
    let mut inventory = watch.inventory().clone();
    inventory.others = watch.others().to_vec();
    inventory
}

/// What is asked for and is not there, or could not be read.
pub(crate) fn lacking(inventory: &Inventory, asked: &Asked<'_>) -> Vec<String> {
    let mut report = Report::default();
    tell_problems(inventory, asked, &mut report);
    select(inventory, asked, &mut report);
    let problems = report.problems().iter().map(crate::report::Unanswered::text);
    report.notes().map(str::to_owned).chain(problems).collect()
}
