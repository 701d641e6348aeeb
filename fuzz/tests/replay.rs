//! Every target on its corpus, and on bytes from a seed: with stable Rust and no fuzzer.

use std::path::Path;

use uverbs_fuzz::TARGETS;

/// Runs a target on its corpus; a panic names the file.
fn replay(name: &str, run: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|it| it.unwrap().path()).collect();
    assert!(!files.is_empty(), "{} holds nothing", folder.display());
    for path in files {
        let bytes = std::fs::read(&path).unwrap();
        let result = std::panic::catch_unwind(|| run(&bytes));
        assert!(result.is_ok(), "{} broke a promise", path.display());
    }
}

/// Runs a target on pseudo-random bytes, as long as most inputs are.
fn random(name: &str, run: fn(&[u8]), count: u64) {
    for seed in 0..count {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut bytes = vec![0; random.usize(..600)];
        random.fill(&mut bytes);
        let result = std::panic::catch_unwind(|| run(&bytes));
        assert!(result.is_ok(), "{name}: the bytes of seed {seed} broke a promise");
    }
}

fn target(name: &str, count: u64) {
    let (_, run) = TARGETS.into_iter().find(|(target, _)| *target == name).unwrap();
    replay(name, run);
    random(name, run, count);
}

#[test]
fn encoder() {
    target("encoder", 4000);
}

#[test]
fn hostile_kernel() {
    target("hostile_kernel", 4000);
}

#[test]
fn sysfs() {
    target("sysfs", 500);
}

#[test]
fn netlink() {
    target("netlink", 10_000);
}

#[test]
fn snapshots() {
    target("snapshots", 4000);
}

#[test]
fn syntax() {
    target("syntax", 10_000);
}

#[test]
fn c_arguments() {
    target("c_arguments", 4000);
}
