//! Documents held against the schemas of this folder, for the tests of the command.

use std::fs;
use std::path::Path;

#[path = "differences.rs"]
mod differences;

/// Holds a document against its schema.
#[track_caller]
pub(crate) fn conforms(name: &str, document: &impl serde::Serialize) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/schemas").join(name);
    let schema = fs::read_to_string(path).unwrap();
    let document = serde_json::to_value(document).unwrap();
    assert_eq!(differences::differences(&schema, &document), [""; 0], "{name}: {document}");
}
