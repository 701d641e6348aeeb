//! Fuzz target: see `uverbs_fuzz::c_arguments`.
#![cfg_attr(fuzzing, no_main)]
uverbs_fuzz::target!(c_arguments);
