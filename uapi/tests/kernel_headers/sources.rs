//! The names that the crate makes public, read from its sources.

/// Files of the crate that declare items.
const SOURCES: [(&str, &str); 8] = [
    ("cm", include_str!("../../src/cm.rs")),
    ("device", include_str!("../../src/device.rs")),
    ("driver", include_str!("../../src/driver.rs")),
    ("event", include_str!("../../src/event.rs")),
    ("ioctl", include_str!("../../src/ioctl.rs")),
    ("mlx5", include_str!("../../src/mlx5.rs")),
    ("netlink", include_str!("../../src/netlink.rs")),
    ("umad", include_str!("../../src/umad.rs")),
];

/// The paths of all constants and structures, from the root of the crate.
///
/// Relies on rustfmt's layout: an item starts its line, and a top-level module ends with a brace in the
/// first column.
pub(crate) fn public_items() -> Vec<String> {
    let mut items = Vec::new();
    for (file, text) in SOURCES {
        let mut path = String::from(file);
        for line in text.lines() {
            if let Some(module) = line.strip_prefix("pub mod ") {
                path = format!("{file}::{}", module.trim_end_matches(" {"));
            } else if line.starts_with('}') {
                path = String::from(file);
            }
            let line = line.trim_start();
            let name = line
                .strip_prefix("pub const ")
                .filter(|rest| !rest.starts_with("fn "))
                .or_else(|| line.strip_prefix("pub struct "))
                .and_then(|rest| rest.split([':', ' ', '<', '(']).next());
            if let Some(name) = name {
                items.push(format!("{path}::{name}"));
            }
        }
    }
    assert!(items.len() > 200, "only {} items found", items.len());
    items
}
