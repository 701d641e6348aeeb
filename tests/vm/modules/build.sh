#!/bin/sh
# build.sh TREE SOURCE OUT
#
# Builds a kernel module against Debian's kernel headers that are unpacked, not installed.
#
# Needs GCC, binutils and make; not root.
#
# TREE    unpacked Debian packages: linux-headers-…-amd64, linux-headers-…-common, and
#         linux-kbuild-… with the libraries that it needs. They are changed here, the first time.
# SOURCE  the folder of the module: a Kbuild file and what it names
# OUT     an existing directory to fill with the modules
set -eu

tree=$(realpath "$1")
source=$(realpath "$2")
out=$(realpath "$3")
headers=$(echo "$tree"/usr/src/linux-headers-*-amd64)

if ! [ -e "$tree/prepared" ]; then
# The one file of the headers that names where they are to be installed.
sed -i "s:/usr/src/:$tree/usr/src/:" "$headers/Makefile"

# Some programs exist once for each kind of machine, called by a program that chooses.
find "$tree"/usr/lib/linux-kbuild-* -name '*.real-lsb-64' -o -name '*.real-x86' | while read -r real; do
    mv "$real" "${real%.real-*}"
done

# kbuild's programs may want a newer C library than this machine's: they get their release's.
loader=$(find "$tree" -name ld-linux-x86-64.so.2 -path '*/x86_64-linux-gnu/*')
libraries=$tree/usr/lib/x86_64-linux-gnu:$tree/lib/x86_64-linux-gnu
find "$tree"/usr/lib/linux-kbuild-* -type f -perm /111 | while read -r program; do
    [ "$(head -c 4 "$program" | tail -c 3)" = ELF ] || continue
    mv "$program" "$program.elf"
    cat > "$program" <<SH
#!/bin/sh
exec "$loader" --library-path "$libraries" "$program.elf" "\$@"
SH
    chmod +x "$program"
done
touch "$tree/prepared"
fi

# The compiler is this machine's, not the one that the kernel was built with, and the kernel's
# configuration is that other one's:
# * Of what the newest configuration takes for granted, bookworm's GCC 12 lacks but the flag
#   -fmin-function-alignment; without it, an older flag is used.
# * No type information (BTF) for the module: it needs pahole, and is not used.
rm -rf "$tree/module"
cp -r "$source" "$tree/module"
unset MAKEFLAGS MAKELEVEL # of a make that this may run under
make --silent -C "$headers" M="$tree/module" CC=gcc \
    CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT= CONFIG_DEBUG_INFO_BTF_MODULES= modules
strip --strip-debug "$tree/module"/*.ko
cp "$tree/module"/*.ko "$out/"
