#!/bin/sh
# musl-sysroot.sh TARGET TOOLS MUSL PARTS LIBRARY OUT
#
# Makes a sysroot for one of Rust's targets with musl, to be given to rustc by --sysroot, for
# static programs. It holds what rustup's component for the target holds: the C half (musl and an
# unwinder) and the Rust half (the standard library), built here. It differs in two things. A panic
# prints no backtrace: the code for that is 220 kB of every program, and in a stripped one it finds
# nothing to print. And it is compiled for size, which makes the command 160 kB smaller.
#
# TARGET   the target
# TOOLS    the prefix of GCC's and the binutils' names; empty for this machine's own
# MUSL     the name of the folders of Debian's musl
# PARTS    unpacked Debian packages of that machine: musl-dev, and libunwind-19-dev
# LIBRARY  the source of the standard library of the very version of `rustc`
# OUT      an existing directory to fill
#
# The harness fetches the parts and the source, and knows the rest from src/packaging/machines ("vm musl-env").
set -eu

target=$1
cc=${2:+$2-}gcc
ar=${2:+$2-}ar
folder=$3
parts=$(realpath "$4")
library=$(realpath "$5")
out=$(realpath "$6")
work=$out/work
into=$out/lib/rustlib/$target/lib
mkdir -p "$work" "$into/self-contained"

# The C half. What rustc links every static program with: the C library with its start files,
# GCC's begin and end of the constructor lists, and the unwinder.
musl=$parts/usr/lib/$folder
cp "$musl"/*crt?.o "$musl/libc.a" "$into/self-contained/"
# Both are empty in musl; the unwinder names them as libraries it depends on.
cp "$musl/libdl.a" "$musl/libpthread.a" "$into/self-contained/"
for object in crtbegin.o crtbeginS.o crtend.o crtendS.o; do
    cp "$($cc -print-file-name=$object)" "$into/self-contained/"
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
$cc -O2 -fPIC -ffunction-sections -nostdinc -isystem "$parts/usr/include/$folder" \
    -isystem "$($cc -print-file-name=include)" -c "$work/fprintf_chk.c" -o "$work/fprintf_chk.o"
$ar rsD "$into/self-contained/libunwind.a" "$work/fprintf_chk.o"

# The Rust half: the crates of rust-std with the profile that it is built with, but for size. Only a
# compiler that accepts unstable features builds its own library, hence RUSTC_BOOTSTRAP. No path of
# this machine stays in it.
cp -r "$library" "$work/library"
commit=$(rustc --version --verbose | sed -n 's/^commit-hash: //p')
export RUSTC_BOOTSTRAP=1
unset CARGO_TARGET_DIR RUSTC_WRAPPER CARGO_ENCODED_RUSTFLAGS
manifest=$work/library/sysroot/Cargo.toml
cargo fetch --quiet --locked --manifest-path "$manifest"
RUSTFLAGS="-Zforce-unstable-if-unmarked --remap-path-prefix=$work/library=/rustc/$commit/library"
for registry in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*; do
    RUSTFLAGS="$RUSTFLAGS --remap-path-prefix=$registry=/rust/deps"
done
export RUSTFLAGS
CARGO_PROFILE_DIST_OPT_LEVEL=s cargo build --quiet --locked --manifest-path "$manifest" \
    --profile dist --features panic-unwind,optimize_for_size --target "$target" --target-dir "$work/target"
cp "$work/target/$target/dist/deps"/*.rlib "$into/"
rm -rf "$work"
