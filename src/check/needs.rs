//! Findings about what RDMA programs need of the host beside devices: memory that they may lock, modules.

use super::finding::{Findings, Severity};
use super::port::Expected;
use crate::device::Absence;
use crate::inventory::{Answer, Inventory, Problem};

/// A limit below this is low, in bytes. Programs lock all that they register: NCCL alone has buffers of 4 MiB for
/// each of its channels to each peer. The usual limits are 64 KiB (Linux before 5.16) and 8 MiB, or none.
const LOW: u64 = 64 << 20;

/// The first Linux with which the memory of a GPU can be registered without a module of its vendor (dma-buf).
const WITH_DMA_BUF: (u32, u32) = (5, 12);

pub(super) fn check_needs(inventory: &Inventory, expected: Expected, findings: &mut Findings<'_>) {
    use Severity::{Note, Warning};
    for need in needs(inventory, expected) {
        need.check(inventory, findings);
    }
    if inventory.devices.is_empty() {
        return;
    }
    let limit = inventory.locked_memory.filter(|own| !own.is_exempt).and_then(|own| own.limit);
    if let Some(limit) = limit.filter(|own| *own < LOW) {
        findings.add(
            "locked-memory-low",
            Warning,
            format!(
                "a process like this may lock {} of memory (RLIMIT_MEMLOCK), and RDMA locks what it registers",
                bytes(limit)
            ),
            "ulimit -l unlimited for the program: limits.conf(5) for logins, LimitMEMLOCK=infinity for \
             services, --ulimit memlock=-1 for containers",
        );
    }
    let (severity, why) = match dma_buf(inventory) {
        Some(DmaBuf::NotOfDriver) => (
            Warning,
            "NVIDIA documents dma-buf only for its open modules, which this is none of".to_owned(),
        ),
        Some(DmaBuf::NotOfKernel(version, level)) => {
            let kernel = format!("Linux {version}.{level}");
            (Note, format!("{kernel} has no dma-buf for RDMA unless its distribution added it"))
        }
        None => return,
    };
    findings.add(
        "no-peer-memory",
        severity,
        format!(
            "the module nvidia is loaded, neither nvidia_peermem nor nv_peer_mem is, and {why}"
        ),
        "if RDMA devices are to reach the GPUs' memory (GPUDirect RDMA): modprobe nvidia_peermem, which needs \
         MLNX_OFED, or use NVIDIA's open kernel modules with Linux 5.12 or later",
    );
}

/// Nodes that a program opens, and the module that makes them.
struct Need<'i> {
    module: &'static str,
    /// The names of findings: that the module is not loaded, and that no node can be opened.
    names: [&'static str; 2],
    harm: &'static str,
    access: Option<&'i Answer<()>>,
    advice: &'static str,
}

/// Those of what is expected.
fn needs(inventory: &Inventory, expected: Expected) -> impl Iterator<Item = Need<'_>> {
    let umad = Need {
        module: "ib_umad",
        names: ["no-umad-module", "no-umad-node"],
        harm: "management datagrams are not possible",
        access: inventory.umad_access.as_ref(),
        advice: "the kernel makes the nodes for root (mode 0600), and a udev rule may change that; a container must be given them; a device without management datagrams, as mlx5 in switchdev mode, has none",
    };
    let rdma_cm = Need {
        module: "rdma_ucm",
        names: ["no-rdma-ucm-module", "no-rdma-cm-node"],
        harm: "librdmacm does not work",
        access: inventory.rdma_cm_access.as_ref(),
        advice: "the kernel makes the node for everyone (mode 0666), and a udev rule may change that; a container must be given it",
    };
    let umad = expected.umad.then_some(umad);
    umad.into_iter().chain(expected.rdma_cm.then_some(rdma_cm))
}

impl Need<'_> {
    fn check(&self, inventory: &Inventory, findings: &mut Findings<'_>) {
        let Self { module, names, harm, access, advice } = self;
        let (without_module, without_node) = (names[0], names[1]);
        let is_loaded = has_module(inventory, module);
        let is_of_process = |own: &Answer<()>| own.as_ref().is_err_and(Problem::is_of_process);
        // Without RDMA's core none of them is loaded.
        let are_known =
            !inventory.modules.is_empty() || inventory.absences.contains(&Absence::NoModule);
        match access.filter(|own| is_loaded || !are_known || !is_of_process(own)) {
            Some(Ok(())) => {}
            Some(Err(problem)) if problem.is_of_process() => findings.add(
                "nodes-unknown",
                Severity::Warning,
                format!(
                    "it is not known whether a node of {module} can be opened ({}): {harm} without it",
                    problem.text
                ),
                "this says nothing about the node: run uverbs check again, with higher limits",
            ),
            Some(Err(problem)) => {
                let seen = format!("{}: {harm}", problem.text);
                findings.add(without_node, Severity::Problem, seen, *advice);
            }
            None if is_loaded => findings.add(
                "nodes-unknown",
                Severity::Warning,
                format!(
                    "it is not known whether a node of {module} can be opened: {harm} without it"
                ),
                "run uverbs check where the program runs, with access to /dev and all of sysfs",
            ),
            None if !are_known => {
                let seen = format!(
                    "it is not known whether the module {module} is loaded: {harm} without it"
                );
                findings.add(
                    "modules-unknown",
                    Severity::Warning,
                    seen,
                    "let uverbs read /sys/module",
                );
            }
            None => {
                let seen = format!("the module {module} is not loaded: {harm}");
                findings.add(without_module, Severity::Problem, seen, format!("modprobe {module}"));
            }
        }
    }
}

fn has_module(inventory: &Inventory, name: &str) -> bool {
    inventory.modules.iter().any(|module| module == name)
}

/// Why the memory of GPUs is not reached by dma-buf.
enum DmaBuf {
    NotOfDriver,
    /// The version and patch level of the kernel.
    NotOfKernel(u32, u32),
}

/// Why RDMA devices do not reach the memory of NVIDIA's GPUs; `None` if they may. There are two ways: a module of
/// NVIDIA's, and dma-buf, which both the kernel and the driver must have.
fn dma_buf(inventory: &Inventory) -> Option<DmaBuf> {
    if !has_module(inventory, "nvidia") || has_peer_memory(inventory) {
        return None;
    }
    // NVIDIA's documentation of its GPU Operator wants the open modules for dma-buf.
    if inventory.proprietary.as_ref()?.iter().any(|name| name == "nvidia") {
        return Some(DmaBuf::NotOfDriver);
    }
    let (version, level) = release(inventory.kernel.as_deref()?)?;
    ((version, level) < WITH_DMA_BUF).then_some(DmaBuf::NotOfKernel(version, level))
}

/// Whether a module is loaded by which RDMA devices reach the memory of NVIDIA's GPUs.
fn has_peer_memory(inventory: &Inventory) -> bool {
    ["nvidia_peermem", "nv_peer_mem"].iter().any(|own| has_module(inventory, own))
}

/// Whether it is known if RDMA devices may reach the memory of NVIDIA's GPUs.
fn is_dma_buf_known(inventory: &Inventory) -> bool {
    if has_peer_memory(inventory) {
        return true;
    }
    // Where this was not read, the modules of GPUs may not have been looked for either.
    let Some(proprietary) = &inventory.proprietary else { return false };
    !has_module(inventory, "nvidia")
        || proprietary.iter().any(|name| name == "nvidia")
        || inventory.kernel.as_deref().and_then(release).is_some()
}

/// What was not read of a host's modules and memory.
pub(super) fn unknown_needs(inventory: &Inventory) -> [Option<&'static str>; 3] {
    let has_modules = !inventory.modules.is_empty();
    [
        (!has_modules).then_some("kernel modules"),
        (has_modules && !is_dma_buf_known(inventory))
            .then_some("whether RDMA devices reach the memory of GPUs"),
        inventory.locked_memory.is_none().then_some("how much memory may be locked"),
    ]
}

/// Version and patch level of a kernel's release: (6, 12) of `6.12.9-amd64`.
fn release(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// A number of bytes with its largest whole unit.
fn bytes(count: u64) -> String {
    for (shift, unit) in [(20, "MiB"), (10, "KiB")] {
        if count >> shift > 0 && count.trailing_zeros() >= shift {
            return format!("{} {unit}", count >> shift);
        }
    }
    format!("{count} bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_whole_units() {
        assert_eq!(bytes(8 << 20), "8 MiB");
        assert_eq!(bytes(64 << 10), "64 KiB");
        assert_eq!(bytes((8 << 20) + 1), "8388609 bytes");
        assert_eq!(bytes(0), "0 bytes");
    }

    #[test]
    fn releases_of_kernels() {
        assert_eq!(release("5.10.0-30-amd64"), Some((5, 10)));
        assert_eq!(release("6.12.117"), Some((6, 12)));
        assert_eq!(release("7.3-rc1"), Some((7, 3)));
        assert_eq!(release("6"), None);
        assert_eq!(release("unknown"), None);
    }
}
