//! What is tested on each kernel: a file for each topic, a function for each scenario.
//!
//! To add one, write a function that returns `Result<()>` and list it in [`ALL`]. It runs in a
//! process of its own on a machine without any RDMA device, builds what it needs with
//! [`lab`](crate::lab), prints what would help the reader of a failure, and returns an error
//! where something is not as it should be (`anyhow::ensure!`). Scenarios may not depend on one
//! another. Where one has no meaning on some kernel, it returns [`skip`](crate::lab::skip) with
//! the reason; where a claim holds from one kernel on, it proves the opposite on the older ones
//! ([`kernel`](crate::lab::kernel)).

mod laboratory;
mod peers;
mod soft_roce;

use anyhow::{Context, Result};

/// A scenario: its name, a single word, and what it does.
type Scenario = (&'static str, fn() -> Result<()>);

/// Every scenario, in the order in which they run.
pub(crate) const ALL: &[Scenario] = &[
    ("soft_roce_comes_up", soft_roce::comes_up),
    ("the_lab_cleans_up", laboratory::cleans_up),
    ("peers_answer", peers::answer),
];

/// Runs one by its name.
pub(crate) fn run(name: &str) -> Result<()> {
    let (_, scenario) = ALL
        .iter()
        .find(|(known, _)| *known == name)
        .with_context(|| format!("no scenario {name:?}"))?;
    scenario()
}
