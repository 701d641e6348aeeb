//! The program `uverbs`; see the library `uverbs_cli`.

use std::process::ExitCode;

/// musl's allocator asks the kernel for nearly every small allocation that a program begins with,
/// three times as often as everything else here together.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

fn main() -> ExitCode {
    uverbs_cli::main()
}
