//! Prints the public API that a crate's rustdoc JSON describes, an item a line. `tests/api/run` compares
//! it with what is written down.

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
