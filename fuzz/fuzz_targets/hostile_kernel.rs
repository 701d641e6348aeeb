//! Fuzz target: see `uverbs_fuzz::hostile_kernel`.
#![cfg_attr(fuzzing, no_main)]
uverbs_fuzz::target!(hostile_kernel);
