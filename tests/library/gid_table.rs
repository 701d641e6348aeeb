//! The whole table, also if one call cannot return it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use nix::libc;
use rustix::io::Errno;
use uverbs::context::Context;
use uverbs::driver::DriverId;
use uverbs::error::Cause;
use uverbs::gid::{GidEntry, MAX_TABLE_ENTRIES};
use uverbs::simulated::{SimulatedKernel, UserMemory};
use uverbs::uapi::device::{method, query_gid_entry, query_gid_table};

use crate::kernel::{
    Tables, attributes, context, entry, kernel_entry, mark_written, switch, table, value,
};

/// What all entries of these tables are, in order.
fn all(ports: &[(u32, u32)]) -> Vec<GidEntry> {
    ports.iter().flat_map(|&(port, slots)| (0..slots).map(move |i| entry(port, i))).collect()
}

#[test]
fn sparse_tables_of_two_ports() {
    let (context, calls) = context(vec![table(1, 10, 3), table(2, 4, 2)]);
    let found: Vec<_> =
        context.query_gid_table().unwrap().iter().map(|e| (e.port(), e.index())).collect();
    assert_eq!(found, [(1, 0), (1, 3), (1, 6), (1, 9), (2, 0), (2, 2)]);
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

#[test]
fn exactly_as_many_entries_as_one_call_returns() {
    let (context, calls) = context(vec![table(1, 2047, 1)]);
    let mut entries = vec![GidEntry::default(); MAX_TABLE_ENTRIES];
    assert_eq!(context.query_gid_table_into(&mut entries).unwrap(), 2047);
    assert_eq!(entries, all(&[(1, 2047)]));
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

#[test]
fn one_entry_more_than_one_call_returns() {
    let (context, _) = context(vec![table(1, 1024, 1), table(2, 1024, 1)]);
    let expected = all(&[(1, 1024), (2, 1024)]);
    assert_eq!(expected.len(), 2048);
    assert_eq!(context.query_gid_table().unwrap(), expected);
    let mut entries = vec![GidEntry::default(); 2050];
    assert_eq!(context.query_gid_table_into(&mut entries).unwrap(), 2048);
    assert_eq!(entries[..2048], expected);
    assert_eq!(entries[2048..], [GidEntry::default(); 2]);
}

#[test]
fn many_slots_few_entries_are_still_one_call() {
    let (context, calls) = context(vec![table(1, 5000, 100)]);
    assert_eq!(context.query_gid_table().unwrap().len(), 50);
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

#[test]
fn too_little_room_is_einval_and_says_so() {
    for (slots, room) in [(3, 2), (3, 0), (0, 0), (2100, 2048), (2100, 2099)] {
        let (context, _) = context(vec![table(1, slots, 1)]);
        let error = context.query_gid_table_into(&mut vec![GidEntry::default(); room]).unwrap_err();
        assert_eq!(error.errno(), 22, "{slots} entries, room for {room}");
        assert!(error.to_string().contains(&format!("the caller's {room}")), "{error}");
    }
}

#[test]
fn an_empty_table_is_an_answer() {
    let (context, _) = context(vec![vec![None; 256]]);
    assert_eq!(context.query_gid_table().unwrap(), []);
    assert_eq!(context.query_gid_table_into(&mut [GidEntry::default()]).unwrap(), 0);
}

#[test]
fn an_empty_slot_is_an_answer_and_a_wrong_index_is_not() {
    let (context, _) = context(vec![table(1, 4, 2)]);
    assert_eq!(context.query_gid_ex(1, 2).unwrap(), Some(entry(1, 2)));
    assert_eq!(context.query_gid_ex(1, 1).unwrap(), None);
    for (port, index) in [(1, 4), (0, 0), (2, 0), (1, u32::MAX), (u32::MAX, 0)] {
        assert_eq!(context.query_gid_ex(port, index).unwrap_err().errno(), 22, "{port} {index}");
    }
}

#[test]
fn the_one_port_of_a_switch_is_0() {
    let context = switch(table(0, 3, 2));
    assert_eq!(context.ports(), 0..=0);
    assert_eq!(context.query_gid_table().unwrap(), [entry(0, 0), entry(0, 2)]);
    assert_eq!(context.query_gid_ex(0, 2).unwrap(), Some(entry(0, 2)));
    assert_eq!(context.query_port(0).unwrap().gid_tbl_len, 3);
    assert_eq!(context.query_gid_ex(1, 0).unwrap_err().errno(), 22);
    assert_eq!(context.query_port(1).unwrap_err().errno(), 22);
    // The slot-by-slot way asks port 0 as well.
    let expected: Vec<_> = (0..2100).map(|index| entry(0, index)).collect();
    assert_eq!(switch(table(0, 2100, 1)).query_gid_table().unwrap(), expected);
}

/// `QUERY_PORT` has eight bits for the port; the tables of ports above 255 are walked to their end.
#[test]
fn ports_that_query_port_cannot_name() {
    let mut ports = vec![Vec::new(); 300];
    ports[0] = table(1, 2048, 1);
    ports[298] = table(299, 5, 2);
    let (context, _) = context(ports);
    let found = context.query_gid_table().unwrap();
    assert_eq!(found.len(), 2048 + 3);
    assert_eq!(found[2048..], [entry(299, 0), entry(299, 2), entry(299, 4)]);
    assert_eq!(context.query_port(299).unwrap_err().errno(), 22);
}

/// Says of one slot, the first few times that it is asked about, what a kernel says of one that is
/// being emptied at that moment.
#[derive(Debug)]
struct Emptying {
    tables: Tables,
    slot: (u64, u64),
    left: AtomicUsize,
}

impl SimulatedKernel for Emptying {
    fn ioctl(&self, request: &mut [u8], memory: &UserMemory<'_>) -> Result<(), Errno> {
        let (asked, list) = attributes(request);
        if asked == method::QUERY_GID_ENTRY {
            let asked =
                (value(&list, query_gid_entry::PORT), value(&list, query_gid_entry::GID_INDEX));
            let less = |left: usize| left.checked_sub(1);
            if asked == self.slot
                && self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
            {
                return Err(Errno::INVAL);
            }
        }
        self.tables.ioctl(request, memory)
    }
}

#[test]
fn a_slot_that_is_being_emptied_is_not_the_end_of_its_table() {
    for (port, index) in [(1, 7), (299, 0), (299, 2), (299, 3)] {
        let mut ports = vec![Vec::new(); 300];
        ports[0] = table(1, 2048, 1);
        ports[298] = table(299, 5, 2);
        let tables = Tables { first: 1, ports, calls: Arc::default() };
        let kernel = Emptying { tables, slot: (port, index), left: AtomicUsize::new(3) };
        let context = Context::simulated("sim0", 1..=300, DriverId::RXE, Box::new(kernel)).unwrap();
        let found = context.query_gid_table().unwrap();
        // Port 1 gives its length, so each slot is asked about once.
        let missing = usize::from(port == 1);
        assert_eq!(found.len(), 2048 + 3 - missing, "{port} {index}");
        assert_eq!(found[found.len() - 1], entry(299, 4), "{port} {index}");
    }
}

#[test]
fn a_slot_that_is_being_emptied_is_not_called_outside_of_its_table() {
    let tables = Tables { first: 1, ports: vec![table(1, 10, 1)], calls: Arc::default() };
    let kernel = Emptying { tables, slot: (1, 7), left: AtomicUsize::new(3) };
    let context = Context::simulated("sim0", 1..=1, DriverId::RXE, Box::new(kernel)).unwrap();
    assert_eq!(context.query_gid_ex(1, 7).unwrap(), Some(entry(1, 7)));
    assert_eq!(context.query_gid_ex(1, 10).unwrap_err().errno(), 22);
}

/// Writes the count of a table in as many bytes as are given. Linux has a number as long as a pointer there.
#[derive(Debug)]
struct Counting(Tables, &'static [u8]);

impl SimulatedKernel for Counting {
    fn ioctl(&self, request: &mut [u8], memory: &UserMemory<'_>) -> Result<(), Errno> {
        let (asked, list) = attributes(request);
        if asked != method::QUERY_GID_TABLE {
            return self.0.ioctl(request, memory);
        }
        let address = |id| list.iter().find(|attribute| attribute.id == id).unwrap().data;
        for (place, entry) in (0..).zip(self.0.ports.iter().flatten().flatten()) {
            let to = address(query_gid_table::RESP_ENTRIES) + 32 * place;
            memory.write(to, &kernel_entry(*entry)[..32])?;
        }
        memory.write(address(query_gid_table::RESP_NUM_ENTRIES), self.1)?;
        request[24..].chunks_exact_mut(16).for_each(mark_written);
        Ok(())
    }
}

#[test]
fn a_count_is_read_by_its_width() {
    const WORD: [u8; 4] = 3u32.to_ne_bytes();
    const LONG: [u8; 8] = 3u64.to_ne_bytes();
    let counted = |count| {
        let tables = Tables { first: 1, ports: vec![table(1, 3, 1)], calls: Arc::default() };
        let kernel = Box::new(Counting(tables, count));
        let context = Context::simulated("sim0", 1..=1, DriverId::RXE, kernel).unwrap();
        context.query_gid_table().map(|entries| entries.len())
    };
    assert_eq!(counted(&LONG).unwrap(), 3, "of a kernel with 64 bits");
    assert_eq!(counted(&WORD).unwrap(), 3, "of a kernel with 32 bits");
    // What is marked as written, and was not, is no count.
    for broken in [&[0xff; 8][..], &[]] {
        let error = counted(broken).unwrap_err();
        assert!(matches!(error.cause(), Cause::Malformed(_)), "{error}");
    }
}

/// A firmware that refuses what is asked about any port.
#[derive(Debug)]
struct Refusing(Tables);

impl SimulatedKernel for Refusing {
    fn ioctl(&self, request: &mut [u8], memory: &UserMemory<'_>) -> Result<(), Errno> {
        let (asked, _) = attributes(request);
        if [method::QUERY_PORT, method::QUERY_PORT_SPEED].contains(&asked) {
            return Err(Errno::INVAL);
        }
        self.0.ioctl(request, memory)
    }
}

#[test]
fn einval_of_a_port_that_is_there_is_not_no_such_port() {
    let (context, _) = context(vec![table(1, 4, 2)]);
    for error in [context.query_gid_ex(2, 0).unwrap_err(), context.query_port(2).unwrap_err()] {
        assert_eq!((error.cause(), error.errno()), (&Cause::NoSuchPort, 22));
    }
    let error = context.query_gid_ex(1, 4).unwrap_err();
    assert_eq!(*error.cause(), Cause::Os(libc::EINVAL));
    assert!(error.to_string().ends_with("the index is outside the port's table"), "{error}");

    let tables = Tables { first: 1, ports: vec![table(1, 4, 2)], calls: Arc::default() };
    let kernel = Box::new(Refusing(tables));
    let context = Context::simulated("sim0", 1..=1, DriverId::MLX5, kernel).unwrap();
    for error in [context.query_port(1).unwrap_err(), context.query_port_speed(1).unwrap_err()] {
        let said = error.to_string();
        assert!(error.errno() == 22 && said.contains("firmware refused"), "{said}");
        assert!(!said.contains("no such port"), "{said}");
    }
    let error = context.query_port(2).unwrap_err();
    assert_eq!((error.cause(), error.errno()), (&Cause::NoSuchPort, 22));
}
