//! How much was compared with rdma-core, by kernel: what scenarios that passed said of it.

use std::collections::BTreeMap;
use std::fmt::Write;

/// What is counted: how scenarios end the number, and our words for it.
const COUNTED: [(&str, &str); 3] = [
    (" answers agree", "answers"),
    (" runs with each library", "runs of C programs with either library"),
    (" bytes", "bytes that these print"),
];

/// The sums of each kernel.
#[derive(Debug, Default)]
pub(crate) struct Compared(BTreeMap<String, [u64; COUNTED.len()]>);

impl Compared {
    /// Adds what a scenario printed that passed.
    pub(crate) fn note(&mut self, kernel: &str, output: &str) {
        let sums = self.0.entry(kernel.to_owned()).or_default();
        for line in output.lines() {
            // Of bytes, those of C programs, whose line has all.
            if !line.ends_with(COUNTED[0].0) && !line.contains(COUNTED[1].0) {
                continue;
            }
            for (sum, (end, _)) in sums.iter_mut().zip(COUNTED) {
                *sum += line.split(", ").find_map(|part| number(part, end)).unwrap_or_default();
            }
        }
    }

    /// A line for each kernel.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for (kernel, sums) in &self.0 {
            let counted = sums.iter().zip(COUNTED).filter(|(sum, _)| **sum > 0);
            let counts: Vec<_> = counted.map(|(sum, (_, what))| format!("{sum} {what}")).collect();
            if !counts.is_empty() {
                let counts = counts.join(", ");
                let _ = writeln!(text, "the same as rdma-core's on {kernel}: {counts}");
            }
        }
        text
    }
}

fn number(part: &str, end: &str) -> Option<u64> {
    part.strip_suffix(end)?.rsplit(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_sums_by_kernel() {
        let mut compared = Compared::default();
        compared.note(
            "7",
            "12 answers agree\nfigure: 9 bytes of other things\nfigure: 3 answers agree",
        );
        compared
            .note("7", "figure: Open: 24 C programs, 166 runs with each library, 955273 bytes\n");
        compared.note("6.1", "nothing\n");
        compared.note("6.12", "4 answers agree\n");
        assert_eq!(
            compared.text(),
            "the same as rdma-core's on 6.12: 4 answers\n\
             the same as rdma-core's on 7: 15 answers, 166 runs of C programs with either library, \
             955273 bytes that these print\n"
        );
    }
}
