//! What valgrind's memcheck cannot see by itself: which memory an ioctl of uverbs writes.
//!
//! A program of C that runs under it may hand memory over that holds nothing yet. Memcheck learns of
//! the kernel's answer by a client request: instructions that do nothing on a processor, and that
//! valgrind, which translates every instruction, knows (`valgrind.h`, `memcheck.h`).

/// `VG_USERREQ__MAKE_MEM_DEFINED_IF_ADDRESSABLE`: memory that is not the program's stays so.
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
const MAKE_DEFINED: u64 = 0x4d43_0000 + 11;

/// Says that these bytes were written. Elsewhere than under memcheck it has no effect.
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
pub(super) fn written(address: u64, len: u64) {
    let request = [MAKE_DEFINED, address, len, 0, 0, 0];
    #[cfg(target_arch = "x86_64")]
    // SAFETY: `rdi` is rotated by 128 bits in all, which leaves it as it was, and `rbx` is exchanged
    // with itself. Valgrind reads the request, which lives, and writes `rdx`, which is named. It
    // changes what it thinks of memory, and no memory.
    unsafe {
        core::arch::asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") request.as_ptr(),
            inout("rdx") 0u64 => _,
            options(nostack, readonly),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: `x12` is rotated by 128 bits in all, which leaves it as it was, and `x10` becomes
    // itself. Valgrind reads the request, which lives, and writes `x3`, which is named. It changes
    // what it thinks of memory, and no memory.
    unsafe {
        core::arch::asm!(
            "ror x12, x12, #3",
            "ror x12, x12, #13",
            "ror x12, x12, #51",
            "ror x12, x12, #61",
            "orr x10, x10, x10",
            inout("x3") 0u64 => _,
            in("x4") request.as_ptr(),
            options(nostack, readonly),
        );
    }
}

/// Does nothing: memcheck's request is not known here for this machine.
#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
pub(super) fn written(_address: u64, _len: u64) {}

#[cfg(test)]
mod tests {
    #[test]
    fn the_memory_stays_as_it_is() {
        let memory = [0xa5u8; 64];
        super::written(memory.as_ptr().addr() as u64, 64);
        super::written(0, u64::MAX);
        assert_eq!(memory, [0xa5; 64]);
    }
}
