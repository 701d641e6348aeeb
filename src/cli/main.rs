//! The program `uverbs`; see the library `uverbs_cli`.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

/// musl's allocator asks the kernel for nearly every small allocation that a program begins with,
/// three times as often as everything else here together.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

/// Whether stdout is open. Rust's own start opens `/dev/null` in the place of a stdout that is closed, so
/// that `uverbs gids >&-` would end well without having written anything.
static HAS_STDOUT: AtomicBool = AtomicBool::new(true);

/// Runs before that.
#[used]
#[expect(unsafe_code, reason = "nothing else runs before Rust's own start")]
// SAFETY: the C library calls each pointer of this section once, as a function, before `main`; whatever the
// arguments are, a C function without parameters may be called with them. The section has nothing but
// pointers, and this is one.
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = look_at_stdout;

extern "C" fn look_at_stdout() {
    let is_closed =
        rustix::io::fcntl_getfd(rustix::stdio::stdout()) == Err(rustix::io::Errno::BADF);
    HAS_STDOUT.store(!is_closed, Ordering::Relaxed);
}

fn main() -> ExitCode {
    uverbs_cli::main(HAS_STDOUT.load(Ordering::Relaxed))
}
