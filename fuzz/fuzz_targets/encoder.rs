//! Fuzz target: see `uverbs_fuzz::encoder`.
#![cfg_attr(fuzzing, no_main)]
uverbs_fuzz::target!(encoder);
