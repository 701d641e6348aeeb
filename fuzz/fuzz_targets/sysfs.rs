//! Fuzz target: see `uverbs_fuzz::sysfs`.
#![cfg_attr(fuzzing, no_main)]
uverbs_fuzz::target!(sysfs);
