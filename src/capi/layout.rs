//! Layouts of C's structures on every machine that the C interface is made for.
//!
//! Three things of a machine decide them: how long a pointer is, whether a 64-bit number is aligned to
//! eight bytes or to four, and how long the C library's mutex is. [`layout`] takes the numbers for each
//! kind of machine and asserts those of the machine that is compiled for. `layouts.txt` has the same
//! numbers as C compilers print them for rdma-core's headers. The tests below compare both for all
//! kinds, on any machine. `tests/capi/run` compares the file with three compilers, and `tests/arch/run` with
//! that of each other machine. On a machine that is not among them the C interface does not compile.

use nix::libc;

#[cfg(not(any(
    all(
        target_pointer_width = "64",
        any(
            target_arch = "x86_64",
            target_arch = "aarch64",
            target_arch = "s390x",
            target_arch = "riscv64",
            all(target_arch = "powerpc64", target_endian = "little"),
        ),
    ),
    all(target_pointer_width = "32", target_endian = "little", target_arch = "arm"),
    all(target_pointer_width = "32", target_arch = "x86"),
)))]
compile_error!(
    "the C interface (feature `capi`) is for x86-64, aarch64, s390x, riscv64, ppc64le, 32-bit Arm and \
     i686: on no other machine were its structures compared with rdma-core's headers"
);

/// Kinds of machines: with 64 bits, 32-bit Arm, i686. On the last a 64-bit number is aligned to four.
pub(crate) const KINDS: usize = 3;

/// The kind of this machine.
pub(crate) const KIND: usize = if cfg!(target_pointer_width = "64") {
    0
} else if cfg!(target_arch = "arm") {
    1
} else {
    2
};

/// How C aligns a 64-bit number, which decides how much padding a structure has.
pub(crate) const ALIGN_64: usize = align_of::<u64>();

/// Bytes of the C library's mutex: on this machine as it is, on others as glibc has it (on 64-bit Arm it
/// has 48).
pub(crate) const MUTEX: [usize; KINDS] = {
    let mut sizes = [40, 24, 24];
    sizes[KIND] = size_of::<libc::pthread_mutex_t>();
    sizes
};

/// A number for each kind of machine: the same for all, or `[64 bits, Arm, i686]`.
macro_rules! kinds {
    ([$lp64:expr, $arm:expr, $x86:expr]) => {
        [$lp64, $arm, $x86]
    };
    ($all:expr) => {
        [$all; $crate::capi::layout::KINDS]
    };
}
pub(crate) use kinds;

/// Asserts size, alignment and the offset of every field of a structure. The list must name every
/// field; `as` gives C's name if it is another, and `""` if C has no such field or keeps it to itself. `begins` is for
/// the beginning of a longer structure of C.
macro_rules! layout {
    (begins $($rest:tt)+) => { $crate::capi::layout::layout!(@ false, $($rest)+); };
    (@ $whole:literal, $c:literal, $name:ident, size $size:tt, align $align:tt,
        { $($field:ident $(as $of_c:literal)?: $offset:tt),+ $(,)? }) => {
        const _: () = {
            use $crate::capi::layout::{KIND, kinds};
            fn _names_every_field($name { $($field: _),+ }: $name) {}
            assert!(size_of::<$name>() == kinds!($size)[KIND], "size");
            assert!(align_of::<$name>() == kinds!($align)[KIND], "alignment");
            $(assert!(
                core::mem::offset_of!($name, $field) == kinds!($offset)[KIND],
                concat!("offset of ", stringify!($field))
            );)+
        };

        #[cfg(test)]
        impl $crate::capi::layout::Layout for $name {
            const C: &'static str = $c;
            const SIZE: Option<[usize; $crate::capi::layout::KINDS]> =
                if $whole { Some($crate::capi::layout::kinds!($size)) } else { None };
            const FIELDS: &'static [(&'static str, [usize; $crate::capi::layout::KINDS])] = &[$((
                ($crate::capi::layout::of_c(&[stringify!($field), $($of_c)?])),
                $crate::capi::layout::kinds!($offset),
            )),+];
        }
    };
    ($c:literal, $($rest:tt)+) => { $crate::capi::layout::layout!(@ true, $c, $($rest)+); };
}
pub(crate) use layout;

/// What [`layout`] was told of a structure.
#[cfg(test)]
pub(crate) trait Layout {
    /// C's name.
    const C: &'static str;
    /// Its size, unless C's structure goes on.
    const SIZE: Option<[usize; KINDS]>;
    /// C's names of fields, and their offsets.
    const FIELDS: &'static [(&'static str, [usize; KINDS])];
}

/// The last of a field's names.
#[cfg(test)]
pub(crate) const fn of_c(names: &[&'static str]) -> &'static str {
    match names {
        [.., last] => last,
        [] => "",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::capi::{mlx5, umad, verbs::abi};

    /// What C compilers print; see the file.
    const OF_C: &str = include_str!("layouts.txt");

    /// The numbers of C by their names: `struct ibv_device.name` and the like.
    fn of_c() -> BTreeMap<&'static str, [usize; KINDS]> {
        let line = |line: &'static str| {
            let (name, numbers) = line.split_once(": ").unwrap();
            let (_, numbers) = numbers.split_once(' ').unwrap();
            let numbers: Vec<usize> =
                numbers.split(' ').map(|number| number.parse().unwrap()).collect();
            (name, numbers.try_into().unwrap())
        };
        OF_C.lines().filter(|line| !line.starts_with('#')).map(line).collect()
    }

    /// Compares a structure in both directions; the number of comparisons.
    fn compared<T: Layout>(of_c: &BTreeMap<&str, [usize; KINDS]>) -> usize {
        if let Some(size) = T::SIZE {
            assert_eq!(of_c.get(T::C), Some(&size), "{}: size", T::C);
        }
        let fields = T::FIELDS.iter().filter(|(name, _)| !name.is_empty());
        let mut count = usize::from(T::SIZE.is_some());
        for (name, offset) in fields.clone() {
            let name = format!("{}.{name}", T::C);
            assert_eq!(of_c.get(&*name), Some(offset), "{name}");
            count += 1;
        }
        // C has no field that is not named here, or part of one that is.
        let prefix = format!("{}.", T::C);
        let first = |name: &str| name.split('.').next().map(str::to_owned);
        for theirs in of_c.keys().filter_map(|name| name.strip_prefix(&prefix)) {
            let is_named = fields.clone().any(|(ours, _)| first(ours) == first(theirs));
            assert!(is_named || T::SIZE.is_none(), "{prefix}{theirs}");
        }
        count
    }

    #[test]
    fn layouts_are_those_of_rdma_core_on_every_machine() {
        let c = of_c();
        let counts = [
            compared::<abi::Device>(&c),
            compared::<abi::GidEntry>(&c),
            compared::<abi::ContextOps>(&c),
            compared::<abi::Context>(&c),
            compared::<abi::VerbsContext>(&c),
            compared::<abi::QueryDeviceExInput>(&c),
            compared::<abi::DeviceAttr>(&c),
            compared::<abi::DeviceAttrEx>(&c),
            compared::<abi::OdpCaps>(&c),
            compared::<abi::TsoCaps>(&c),
            compared::<abi::RssCaps>(&c),
            compared::<abi::PacketPacingCaps>(&c),
            compared::<abi::TmCaps>(&c),
            compared::<abi::CqModerationCaps>(&c),
            compared::<abi::PciAtomicCaps>(&c),
            compared::<abi::PortAttr>(&c),
            compared::<abi::AsyncEvent>(&c),
            compared::<mlx5::ContextAttr>(&c),
            compared::<umad::UmadPort>(&c),
            compared::<umad::UmadCa>(&c),
            compared::<umad::UmadDeviceNode>(&c),
        ];
        assert!(counts.iter().all(|count| *count > 0) && counts.iter().sum::<usize>() > 150);
    }
}
