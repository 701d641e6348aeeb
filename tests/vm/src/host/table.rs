//! The verdicts of a whole run and how they are shown.

use std::collections::BTreeMap;
use std::fmt::Write;

/// The width of a column.
const WIDTH: usize = 10;

/// What became of one scenario on one kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    Ok,
    /// With all there is to say about it.
    Failed(String),
    /// With the reason.
    Skipped(String),
    /// It is for other machines.
    Elsewhere,
}

impl Verdict {
    fn word(&self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed(_) => "FAILED",
            Self::Skipped(_) => "skipped",
            Self::Elsewhere => "-",
        }
    }
}

/// The verdicts, by scenario and kernel.
#[derive(Debug, Default)]
pub(crate) struct Table {
    kernels: Vec<String>,
    scenarios: Vec<String>,
    verdicts: BTreeMap<(String, String), Verdict>,
}

impl Table {
    /// A table of these kernels and scenarios in which nothing is known yet.
    pub(crate) fn new(kernels: Vec<String>, scenarios: Vec<String>) -> Self {
        Self { kernels, scenarios, verdicts: BTreeMap::new() }
    }

    /// Notes a verdict.
    pub(crate) fn set(&mut self, scenario: &str, kernel: &str, verdict: Verdict) {
        self.verdicts.insert((scenario.to_owned(), kernel.to_owned()), verdict);
    }

    /// Scenarios that were skipped everywhere they could have run, so nothing tests what they do.
    pub(crate) fn nowhere<'a>(&self, scenarios: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
        let is_skipped = |scenario: &str, kernel: &String| {
            let verdict = self.verdicts.get(&(scenario.to_owned(), kernel.clone()));
            matches!(verdict, Some(Verdict::Skipped(_) | Verdict::Elsewhere))
        };
        scenarios.filter(|it| self.kernels.iter().all(|kernel| is_skipped(it, kernel))).collect()
    }

    /// Every pair with its verdict. Where there is none, something is broken: that fails.
    fn all(&self) -> Vec<(&str, &str, Verdict)> {
        let mut all = Vec::new();
        for scenario in &self.scenarios {
            for kernel in &self.kernels {
                let verdict = self.verdicts.get(&(scenario.clone(), kernel.clone())).cloned();
                let verdict = verdict.unwrap_or_else(|| Verdict::Failed("it did not run".into()));
                all.push((scenario.as_str(), kernel.as_str(), verdict));
            }
        }
        all
    }

    /// Whether nothing failed.
    pub(crate) fn passed(&self) -> bool {
        !self.all().iter().any(|(_, _, verdict)| matches!(verdict, Verdict::Failed(_)))
    }

    /// The table, then the reasons, and the count as the last line.
    pub(crate) fn text(&self) -> String {
        let all = self.all();
        let first = self.scenarios.iter().map(String::len).max().unwrap_or(0);
        let mut text = format!("\n{:first$}", "");
        for kernel in &self.kernels {
            let _ = write!(text, "  {kernel:>WIDTH$}");
        }
        for row in all.chunks(self.kernels.len().max(1)) {
            let name = row.first().map_or("", |(scenario, _, _)| scenario);
            let _ = write!(text, "\n{name:first$}");
            for (_, _, verdict) in row {
                let _ = write!(text, "  {:>WIDTH$}", verdict.word());
            }
        }
        text.push('\n');
        // Many are skipped for one reason.
        let mut skipped: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
        for (scenario, kernel, verdict) in &all {
            match verdict {
                Verdict::Ok | Verdict::Elsewhere => {}
                Verdict::Skipped(why) => {
                    skipped.entry((kernel, why)).or_default().push(scenario);
                }
                Verdict::Failed(why) => {
                    let _ = write!(text, "\nFAILED: {scenario} on {kernel}\n{}\n", indented(why));
                }
            }
        }
        for ((kernel, why), scenarios) in &skipped {
            let _ = write!(text, "\nSKIPPED: on {kernel}: {why}: {}", scenarios.join(" "));
        }
        let count =
            |word: &str| all.iter().filter(|(_, _, verdict)| verdict.word() == word).count();
        let (ok, failed, skipped) = (count("ok"), count("FAILED"), count("skipped"));
        let _ = writeln!(text, "\nvm: {ok} passed, {failed} failed, {skipped} skipped");
        text
    }
}

fn indented(text: &str) -> String {
    let lines: Vec<String> = text.trim_end().lines().map(|line| format!("    {line}")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_heard_of_fails() {
        let mut table = Table::new(vec!["5.10".into(), "6.1".into()], vec!["a".into(), "b".into()]);
        table.set("a", "5.10", Verdict::Ok);
        table.set("a", "6.1", Verdict::Ok);
        table.set("b", "5.10", Verdict::Skipped("too old".into()));
        assert!(!table.passed());
        let text = table.text();
        assert_eq!(text.lines().last(), Some("vm: 2 passed, 1 failed, 1 skipped"));
        assert!(text.contains("SKIPPED: on 5.10: too old: b"));
        assert!(text.contains("FAILED: b on 6.1"));
    }

    #[test]
    fn what_is_skipped_on_each_kernel_is_known() {
        let mut table = Table::new(vec!["6.1".into(), "7".into()], vec!["a".into(), "b".into()]);
        for (scenario, kernel) in [("a", "6.1"), ("a", "7"), ("b", "6.1")] {
            table.set(scenario, kernel, Verdict::Skipped("no".into()));
        }
        table.set("a", "7", Verdict::Elsewhere);
        table.set("b", "7", Verdict::Ok);
        assert_eq!(table.nowhere(["a", "b"].into_iter()), ["a"]);
    }
}
