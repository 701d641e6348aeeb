//! Prints the public API of a crate from its rustdoc JSON, one item per line. `tests/api/run` compares it
//! with the recorded API.

use std::env;

use anyhow::{Context, Result};
use public_api::Builder;

fn main() -> Result<()> {
    let path = env::args_os().nth(1).context("usage: uverbs-api RUSTDOC_JSON")?;
    // The compiler derives these for every type; they are no decision of this project.
    let api = Builder::from_rustdoc_json(path)
        .sorted(true)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()?;
    for item in api.items() {
        println!("{item}");
    }
    Ok(())
}
