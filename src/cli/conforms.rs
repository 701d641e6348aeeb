//! Documents held against their schemas in unit tests: those of commands that need a device which test
//! machines do not have.

use std::fs;
use std::path::Path;

use serde_json::Value;

/// Makes the schema refuse keys that it does not name.
fn strict(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if fields.contains_key("properties") && !fields.contains_key("additionalProperties") {
                fields.insert("additionalProperties".into(), false.into());
            }
            fields.values_mut().for_each(strict);
        }
        Value::Array(items) => items.iter_mut().for_each(strict),
        _ => {}
    }
}

/// Holds a document against its schema.
#[track_caller]
pub(crate) fn conforms(name: &str, document: &impl serde::Serialize) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/schemas").join(name);
    let mut schema = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    strict(&mut schema);
    let document = serde_json::to_value(document).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(&document)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert_eq!(errors, [""; 0], "{name}: {document}");
}
