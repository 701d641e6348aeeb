//! Fuzz target: see `uverbs_fuzz::netlink`.
#![cfg_attr(fuzzing, no_main)]
uverbs_fuzz::target!(netlink);
