//! How long scenarios took, so that the long ones start first; and where a run's time went.

use crate::paths;
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

/// What one takes of which nothing is known.
const USUAL: f32 = 3.0;

/// Seconds by series and scenario, as of the last run.
#[derive(Debug)]
pub(crate) struct Times(BTreeMap<(String, String), f32>);

impl Times {
    /// What was recorded on this machine, and what came with the source before.
    pub(crate) fn read() -> Self {
        let mut times = BTreeMap::new();
        for file in [paths::package().join("times"), recorded()] {
            for line in fs::read_to_string(file).unwrap_or_default().lines() {
                let words: Vec<&str> = line.split_whitespace().collect();
                if let [series, scenario, seconds] = words[..]
                    && let Ok(seconds) = seconds.parse()
                {
                    times.insert((series.to_owned(), scenario.to_owned()), seconds);
                }
            }
        }
        Self(times)
    }

    /// What this one may take: as last time, or as on another kernel.
    pub(crate) fn estimate(&self, series: &str, scenario: &str) -> f32 {
        let own = self.0.get(&(series.to_owned(), scenario.to_owned()));
        let others = || {
            let of_it = self.0.iter().filter(|((_, name), _)| name == scenario);
            of_it.map(|(_, seconds)| seconds).max_by(|a, b| a.total_cmp(b))
        };
        own.or_else(others).copied().unwrap_or(USUAL)
    }

    /// Notes what it took now.
    pub(crate) fn note(&mut self, series: &str, scenario: &str, seconds: f32) {
        self.0.insert((series.to_owned(), scenario.to_owned()), seconds);
    }

    /// Keeps all for the next run. Where that fails the next one is less well arranged.
    pub(crate) fn keep(&self) {
        let lines = self
            .0
            .iter()
            .map(|((series, scenario), seconds)| format!("{series} {scenario} {seconds:.1}\n"));
        let _ = fs::write(recorded(), lines.collect::<String>());
    }
}

fn recorded() -> PathBuf {
    paths::logs("times")
}

/// Does something, and adds the seconds that it took to the file `UVERBS_TIMES`, where it is set: a
/// line `SECONDS PART`.
pub(crate) fn timed<T>(part: &str, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    spent(part, start.elapsed().as_secs_f32());
    result
}

/// Adds a part that took so many seconds.
pub(crate) fn spent(part: &str, seconds: f32) {
    let Some(path) = std::env::var_os("UVERBS_TIMES") else { return };
    if let Ok(mut file) = OpenOptions::new().create(true).append(true).open(path) {
        // One write, so that lines of several writers stay whole. Nothing depends on it.
        let _ = file.write_all(format!("{seconds:.1} {part}\n").as_bytes());
    }
}
