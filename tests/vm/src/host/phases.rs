//! What a try is doing: each part with its usual time while it lasts, and the seconds of all at the end.

use std::io::{IsTerminal, Write, stderr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Whether the last line on the terminal has no end yet.
static IS_LINE_OPEN: AtomicBool = AtomicBool::new(false);

/// Ends a line on the terminal that is still counting.
pub(crate) fn end_line() {
    if IS_LINE_OPEN.swap(false, Ordering::Relaxed) {
        eprintln!();
    }
}

/// The parts so far.
#[derive(Debug, Default)]
pub(crate) struct Phases {
    done: Vec<(String, f32)>,
    now: Option<Phase>,
}

/// The part that lasts.
#[derive(Debug)]
struct Phase {
    name: String,
    start: Instant,
    /// Counts its seconds on a terminal; dropping the sender ends it.
    counter: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Phases {
    /// A part that is over already.
    pub(crate) fn add(&mut self, name: &str, seconds: f32) {
        self.done.push((name.to_owned(), seconds));
    }

    /// The next part, shown with the time that it usually takes.
    pub(crate) fn begin(&mut self, name: &str, usual: &str) {
        self.end();
        let line = format!("vm: {name}, usually {usual}");
        let counter = if stderr().is_terminal() {
            let (sender, end) = channel::<()>();
            let start = Instant::now();
            let counter = thread::spawn(move || {
                loop {
                    IS_LINE_OPEN.store(true, Ordering::Relaxed);
                    let _ = write!(stderr(), "\r{line}: {} s", start.elapsed().as_secs());
                    match end.recv_timeout(Duration::from_secs(1)) {
                        Err(RecvTimeoutError::Timeout) => {}
                        _ => return,
                    }
                }
            });
            Some((sender, counter))
        } else {
            eprintln!("{line}");
            None
        };
        self.now = Some(Phase { name: name.to_owned(), start: Instant::now(), counter });
    }

    /// The next part, of which nothing is shown: it has an output of its own.
    pub(crate) fn begin_silently(&mut self, name: &str) {
        self.end();
        self.now = Some(Phase { name: name.to_owned(), start: Instant::now(), counter: None });
    }

    /// The end of the part that lasts.
    pub(crate) fn end(&mut self) {
        let Some(phase) = self.now.take() else { return };
        if let Some((sender, counter)) = phase.counter {
            drop(sender);
            // It has nothing to say at its end.
            let _ = counter.join();
            end_line();
        }
        self.done.push((phase.name, phase.start.elapsed().as_secs_f32()));
    }

    /// The seconds of all.
    pub(crate) fn summary(&self) -> String {
        let all: f32 = self.done.iter().map(|(_, seconds)| seconds).sum();
        let parts = self.done.iter().map(|(name, seconds)| format!("{name} {seconds:.1} s"));
        format!("{}; together {all:.1} s", parts.collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_has_its_seconds() {
        let mut phases = Phases::default();
        phases.add("building", 1.25);
        phases.begin_silently("booting");
        phases.begin_silently("uverbs gids");
        phases.end();
        phases.end();
        let names: Vec<&str> = phases.done.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["building", "booting", "uverbs gids"]);
        assert!(phases.summary().starts_with("building 1.2 s, booting 0."), "{}", phases.summary());
        assert!(phases.summary().contains("; together 1."), "{}", phases.summary());
    }
}
