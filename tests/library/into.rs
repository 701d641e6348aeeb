//! Queries that fill the caller's memory: one call, no allocation, and no byte outside it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use allocation_counter::measure;
use proptest::prelude::*;
use rustix::io::Errno;
use uverbs::context::Context;
use uverbs::driver::DriverId;
use uverbs::gid::GidEntry;
use uverbs::mlx5::{devx, query_port_into};
use uverbs::simulated::{SimulatedKernel, UserMemory};
use uverbs::uapi::device::method;

use crate::kernel::{entry, kernel_entry, mark_written};

const GUARD: u8 = 0xa5;

/// Writes so many entries, or fills all memory with ones; without a heap of its own.
#[derive(Debug)]
struct Writer {
    entries: u32,
    calls: Arc<AtomicUsize>,
}

impl SimulatedKernel for Writer {
    fn ioctl(&self, request: &mut [u8], memory: &UserMemory<'_>) -> Result<(), Errno> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let is_table =
            request[2..4] == [0, 0] && request[4..6] == method::QUERY_GID_TABLE.to_ne_bytes();
        for attribute in request[24..].chunks_exact_mut(16) {
            let len = u16::from_ne_bytes([attribute[2], attribute[3]]);
            let address = u64::from_ne_bytes(attribute[8..].try_into().unwrap());
            match (is_table, u16::from_ne_bytes([attribute[0], attribute[1]])) {
                (true, 2) => {
                    for index in 0..self.entries {
                        memory.write(
                            address + 32 * u64::from(index),
                            &kernel_entry(entry(1, index))[..32],
                        )?;
                    }
                }
                (true, 3) => memory.write(address, &u64::from(self.entries).to_ne_bytes())?,
                (true, _) => {}
                (false, _) => {
                    for place in 0..u64::from(len) {
                        // What is not lent for writing is an input.
                        let _ = memory.write(address + place, &[0]);
                    }
                }
            }
            mark_written(attribute);
        }
        Ok(())
    }
}

/// Runs a query into the middle of guarded memory: allocations, calls, and the memory it had.
fn costs(
    entries: u32,
    length: usize,
    query: impl FnOnce(&Context, &mut [u8]),
) -> (u64, usize, Vec<u8>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let kernel = Writer { entries, calls: Arc::clone(&calls) };
    let context = Context::simulated("sim0", 1..=1, DriverId::MLX5, Box::new(kernel)).unwrap();
    calls.store(0, Ordering::Relaxed);
    let mut memory = vec![GUARD; length + 128];
    let inside = &mut memory[64..64 + length];
    let allocations = measure(|| query(&context, inside)).count_total;
    assert!(memory[..64].iter().all(|byte| *byte == GUARD), "in front");
    assert!(memory[64 + length..].iter().all(|byte| *byte == GUARD), "behind");
    memory.truncate(64 + length);
    (allocations, calls.load(Ordering::Relaxed), memory.split_off(64))
}

proptest! {
    #[test]
    fn a_table_of_any_length(entries in 0u32..300, more in 1usize..300) {
        let room = entries as usize + more;
        let mut found = vec![GidEntry::default(); room + 2];
        let guard = entry(9, 9);
        found.fill(guard);
        let (allocations, calls, _) = costs(entries, 0, |context, _| {
            assert_eq!(context.query_gid_table_into(&mut found[1..=room]).unwrap(), entries as usize);
        });
        prop_assert_eq!((allocations, calls), (0, 1));
        for (place, found) in found.iter().enumerate() {
            let index = u32::try_from(place).unwrap().wrapping_sub(1);
            prop_assert_eq!(*found, if index < entries { entry(1, index) } else { guard });
        }
    }

    #[test]
    fn a_port_of_any_length(length in 0usize..3000) {
        let (allocations, calls, memory) = costs(0, length, |context, memory| {
            assert!(query_port_into(context, 1, memory).is_ok());
        });
        prop_assert_eq!((allocations, calls), (0, 1));
        prop_assert!(memory.iter().all(|byte| *byte == 0));
    }

    #[test]
    fn a_firmware_s_answer_of_any_length(length in 16usize..3000, input in 16usize..300) {
        let input = vec![0; input];
        let (allocations, calls, memory) = costs(0, length, |context, memory| {
            assert!(devx::general_cmd(context, &input, memory).is_ok());
        });
        prop_assert_eq!((allocations, calls), (0, 1));
        prop_assert!(memory.iter().all(|byte| *byte == 0));
    }
}
