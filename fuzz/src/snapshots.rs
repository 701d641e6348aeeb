//! A file of snapshots, or a recording, which may come from anyone. Each document is read or refused. What is read is
//! written and read alike, and all that looks at a host can look at it.

use uverbs::check::{Expected, check};
use uverbs::choose::plan::{Fleet, Program};
use uverbs::choose::{Wish, ports, recommend};
use uverbs::inventory::{Inventory, Snapshots};
use uverbs::watch::{Entry, Recording};

/// Runs the target on a file.
///
/// # Panics
/// If a promise is broken.
pub fn run(data: &[u8]) {
    let mut fleet = Fleet::default();
    let mut documents = Snapshots::new(data);
    let mut line = 0;
    while let Some(read) = documents.next() {
        assert!(documents.line() > line, "documents go forward");
        line = documents.line();
        match read {
            Ok(inventory) => look(&inventory, &mut fleet),
            Err(error) => {
                assert!(error.line() == line && error.errno() > 0 && !error.to_string().is_empty());
            }
        }
    }
    assert!(line > 0, "also nothing is an error");
    let mut recording = Recording::new(data);
    while let Some(read) = recording.next() {
        let Ok(Entry::Moment(mut moment)) = read else { continue };
        let before = recording.inventory().cloned();
        if recording.apply(&mut moment).is_ok()
            && let Some(after) = recording.inventory()
        {
            look(after, &mut fleet);
            let _ = before.map(|before| moment.changes(&before, after));
        }
    }
    for program in [Program::Nccl, Program::Nvshmem, Program::Ucx] {
        let plan = fleet.plan(program, line > 1, |_| true);
        assert!(plan.is_none_or(|plan| plan.variables.iter().all(|(_, own)| !own.contains('\0'))));
    }
}

fn look(inventory: &Inventory, fleet: &mut Fleet) {
    let text = serde_json::to_string(inventory).expect("an inventory is JSON");
    let again: Inventory = serde_json::from_str(&text).expect("what was written is read");
    assert_eq!(*inventory, again);
    for finding in check(inventory, Expected::default()) {
        assert!(!finding.seen.is_empty() && !finding.advice.is_empty());
    }
    let ports = ports(inventory);
    let index = |port| recommend(port, &Wish::default()).outcome.index();
    fleet.add(ports.iter().map(|port| (port, index(port))));
}
