//! What a query costs: one call of the kernel and no allocation.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use allocation_counter::measure;
use rustix::io::Errno;
use uverbs::context::Context;
use uverbs::driver::DriverId;
use uverbs::gid::GidEntry;
use uverbs::mlx5::devx::{self, Vport};
use uverbs::mlx5::query_port;
use uverbs::simulated::{SimulatedKernel, UserMemory};
use uverbs::uapi::device::method;

use crate::kernel::mark_written;

/// Says yes to everything and fills in what it must; without a heap of its own.
#[derive(Debug)]
struct Frugal(Arc<AtomicUsize>);

impl SimulatedKernel for Frugal {
    fn ioctl(&self, request: &mut [u8], memory: &UserMemory<'_>) -> Result<(), Errno> {
        self.0.fetch_add(1, Ordering::Relaxed);
        for attribute in request[24..].chunks_exact_mut(16) {
            mark_written(attribute);
        }
        let data = |place: usize| {
            let at = 24 + 16 * place + 8;
            u64::from_ne_bytes(request[at..at + 8].try_into().unwrap())
        };
        match u16::from_ne_bytes([request[4], request[5]]) {
            method::QUERY_GID_TABLE => memory.write(data(3), &1000u64.to_ne_bytes()),
            method::QUERY_GID_ENTRY => memory
                .write(data(3), &crate::kernel::kernel_entry(crate::kernel::entry(1, 5))[..32]),
            _ => Ok(()),
        }
    }
}

fn costs(query: impl FnOnce(&Context)) -> (u64, usize) {
    costs_with(DriverId::RXE, query)
}

fn costs_with(driver: DriverId, query: impl FnOnce(&Context)) -> (u64, usize) {
    let calls = Arc::new(AtomicUsize::new(0));
    let kernel = Box::new(Frugal(Arc::clone(&calls)));
    let context = Context::simulated("sim0", 1..=1, driver, kernel).unwrap();
    calls.store(0, Ordering::Relaxed);
    let allocations = measure(|| query(&context)).count_total;
    (allocations, calls.load(Ordering::Relaxed))
}

#[test]
fn the_counter_counts() {
    assert_eq!(measure(|| drop(std::hint::black_box(vec![1u8; 100]))).count_total, 1);
}

#[test]
fn query_gid_table_into_is_one_call_without_allocation() {
    let mut entries = vec![GidEntry::default(); 2047];
    let costs = costs(|context| {
        assert_eq!(context.query_gid_table_into(&mut entries).unwrap(), 1000);
    });
    assert_eq!(costs, (0, 1));
}

#[test]
fn the_other_queries_are_one_call_without_allocation() {
    assert_eq!(costs(|context| assert!(context.query_gid_ex(1, 5).is_ok())), (0, 1));
    assert_eq!(costs(|context| assert!(context.query_port(1).is_ok())), (0, 1));
    assert_eq!(costs(|context| assert!(context.query_port_speed(1).is_ok())), (0, 1));
    assert_eq!(costs(|context| assert!(context.query_device().is_ok())), (0, 1));
}

#[test]
fn mlx5_s_own_are_one_call_without_allocation() {
    let costs =
        |query: fn(&Context) -> bool| costs_with(DriverId::MLX5, |context| assert!(query(context)));
    assert_eq!(costs(|context| query_port(context, 1).is_ok()), (0, 1));
    assert_eq!(
        costs(|context| devx::query_hca_vport_context(context, 1, Vport::Own).is_ok()),
        (0, 1)
    );
    assert_eq!(
        costs(|context| {
            devx::query_hca_cap(context, devx::CapabilityMode::Current, Vport::Own).is_ok()
        }),
        (0, 1)
    );
}
