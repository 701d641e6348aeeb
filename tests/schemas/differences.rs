//! Documents held against their schemas.

use serde_json::Value;

/// Where a document is not as its schema has it. Keys that the schema does not name are refused.
pub(crate) fn differences(schema: &str, document: &Value) -> Vec<String> {
    let mut schema = serde_json::from_str(schema).unwrap_or_default();
    forbid_more(&mut schema);
    match jsonschema::validator_for(&schema) {
        Ok(validator) => validator
            .iter_errors(document)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect(),
        Err(error) => vec![format!("no schema: {error}")],
    }
}

/// Makes the schema refuse keys that it does not name.
fn forbid_more(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if fields.contains_key("properties") && !fields.contains_key("additionalProperties") {
                fields.insert("additionalProperties".into(), false.into());
            }
            fields.values_mut().for_each(forbid_more);
        }
        Value::Array(items) => items.iter_mut().for_each(forbid_more),
        _ => {}
    }
}
