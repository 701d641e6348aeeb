#!/bin/sh
# musl-sysroot.sh PARTS OUT
#
# Makes a sysroot for x86_64-unknown-linux-musl, to be given to rustc by --sysroot, for machines
# on which `rustup target add` is not possible. It holds what rustup's rust-std component holds:
# the C half (musl and an unwinder) and the Rust half (the standard library), built here.
#
# PARTS  unpacked Debian packages: rust-src of the very version of `rustc`, musl-dev, and
#        libunwind-19-dev. The harness fetches them ("vm musl-env").
# OUT    an existing directory to fill
set -eu

parts=$(realpath "$1")
out=$(realpath "$2")
target=x86_64-unknown-linux-musl
work=$out/work
into=$out/lib/rustlib/$target/lib
mkdir -p "$work" "$into/self-contained"

# The C half. What rustc links every static program with: the C library with its start files,
# GCC's begin and end of the constructor lists, and the unwinder.
musl=$parts/usr/lib/x86_64-linux-musl
cp "$musl"/*crt?.o "$musl/libc.a" "$into/self-contained/"
# Both are empty in musl; the unwinder names them as libraries it depends on.
cp "$musl/libdl.a" "$musl/libpthread.a" "$into/self-contained/"
for object in crtbegin.o crtbeginS.o crtend.o crtendS.o; do
    cp "$(cc -print-file-name=$object)" "$into/self-contained/"
done
cp "$parts/usr/lib/llvm-19/lib/libunwind.a" "$into/self-contained/"

# Debian's unwinder is compiled for glibc with hardening; musl lacks the one function it calls.
cat > "$work/fprintf_chk.c" <<'C'
#include <stdarg.h>
#include <stdio.h>

int __fprintf_chk(FILE *file, int flag, const char *format, ...)
{
	(void)flag;
	va_list arguments;
	va_start(arguments, format);
	int written = vfprintf(file, format, arguments);
	va_end(arguments);
	return written;
}
C
cc -O2 -fPIC -ffunction-sections -nostdinc -isystem "$parts/usr/include/x86_64-linux-musl" \
    -isystem "$(cc -print-file-name=include)" -c "$work/fprintf_chk.c" -o "$work/fprintf_chk.o"
ar rs "$into/self-contained/libunwind.a" "$work/fprintf_chk.o"

# The Rust half: the crates of rust-std with the profile that rust-std is built with. Only a
# compiler that accepts unstable features builds its own library, hence RUSTC_BOOTSTRAP.
cp -r "$parts"/usr/src/rustc-*/library "$work/library"
commit=$(rustc --version --verbose | sed -n 's/^commit-hash: //p')
env -u CARGO_TARGET_DIR -u RUSTC_WRAPPER -u CARGO_ENCODED_RUSTFLAGS RUSTC_BOOTSTRAP=1 \
    RUSTFLAGS="-Zforce-unstable-if-unmarked --remap-path-prefix=$work/library=/rustc/$commit/library" \
    cargo build --quiet --locked --manifest-path "$work/library/sysroot/Cargo.toml" \
    --profile dist --features 'panic-unwind backtrace' --target $target --target-dir "$work/target"
cp "$work/target/$target/dist/deps"/*.rlib "$into/"
rm -rf "$work"
