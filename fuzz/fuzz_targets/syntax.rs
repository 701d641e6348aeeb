//! Fuzz target: see `uverbs_fuzz::syntax`.
#![cfg_attr(fuzzing, no_main)]
uverbs_fuzz::target!(syntax);
