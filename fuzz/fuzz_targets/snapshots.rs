//! Fuzz target: see `uverbs_fuzz::snapshots`.
#![cfg_attr(fuzzing, no_main)]
uverbs_fuzz::target!(snapshots);
