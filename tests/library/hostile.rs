//! Answers that no kernel should give: each is an error, never a panic and never a wrong row.

use proptest::prelude::*;
use rustix::io::Errno;
use uverbs::context::Context;
use uverbs::driver::DriverId;
use uverbs::error::Cause;
use uverbs::gid::{Gid, GidEntry, GidType};
use uverbs::simulated::{SimulatedKernel, UserMemory};
use uverbs::uapi::device::{QueryPortResponse, method};
use zerocopy::IntoBytes;

use crate::kernel::{answer, attributes, entry, kernel_entry, mark_written, value};

/// After a proper context, every output is filled with these bytes and marked as written.
#[derive(Clone, Debug)]
struct Hostile {
    bytes: Vec<u8>,
    mark: bool,
    errno: Option<i32>,
}

impl SimulatedKernel for Hostile {
    fn ioctl(&self, request: &mut [u8], memory: &UserMemory<'_>) -> Result<(), Errno> {
        let (asked, list) = attributes(request);
        if asked == method::GET_CONTEXT {
            return Ok(());
        }
        for (place, attribute) in list.iter().enumerate() {
            let filling: Vec<u8> = self.bytes.iter().copied().cycle().take(attribute.len).collect();
            let written = memory.write(attribute.data, &filling).is_ok();
            if written && self.mark {
                mark_written(&mut request[24 + 16 * place..]);
            }
        }
        self.errno.map_or(Ok(()), |errno| Err(Errno::from_raw_os_error(errno)))
    }
}

/// Always has one entry too many for a table call; then any table length, and for the entries a
/// row of errnos in turn, `None` for an entry.
#[derive(Debug)]
struct Walked {
    length: u32,
    answers: Vec<Option<i32>>,
}

impl SimulatedKernel for Walked {
    fn ioctl(&self, request: &mut [u8], memory: &UserMemory<'_>) -> Result<(), Errno> {
        let (asked, list) = attributes(request);
        match asked {
            method::GET_CONTEXT => Ok(()),
            method::QUERY_PORT => {
                let response = QueryPortResponse { gid_tbl_len: self.length, ..Default::default() };
                answer(request, memory, 1, response.as_bytes())
            }
            method::QUERY_GID_ENTRY => {
                let [port, index] =
                    [value(&list, 0), value(&list, 1)].map(|n| u32::try_from(n).unwrap());
                match self.answers[index as usize % self.answers.len()] {
                    Some(errno) => Err(Errno::from_raw_os_error(errno)),
                    None => answer(request, memory, 3, &kernel_entry(entry(port, index))),
                }
            }
            _ => Err(Errno::INVAL),
        }
    }
}

fn hostile(kernel: Hostile) -> Context {
    Context::simulated("sim0", 1..=2, DriverId::RXE, Box::new(kernel)).unwrap()
}

#[test]
fn a_count_beyond_the_room_is_refused() {
    let context = hostile(Hostile { bytes: vec![0xff], mark: true, errno: None });
    let error = context.query_gid_table_into(&mut [GidEntry::default(); 4]).unwrap_err();
    assert!(matches!(error.cause(), Cause::Malformed(_)), "{error}");
    assert!(context.query_gid_table().is_err());
}

#[test]
fn an_answer_that_was_not_written_is_refused() {
    let context = hostile(Hostile { bytes: vec![0], mark: false, errno: None });
    assert!(context.query_gid_ex(1, 0).is_err());
    assert!(context.query_gid_table().is_err());
    assert!(context.query_port(1).is_err());
    assert!(context.query_port_speed(1).is_err());
    assert!(context.query_device().is_err());
}

#[test]
fn an_entry_of_another_slot_is_refused() {
    let context = hostile(Hostile { bytes: vec![7], mark: true, errno: None });
    assert!(matches!(context.query_gid_ex(1, 0).unwrap_err().cause(), Cause::Malformed(_)));
}

proptest! {
    #[test]
    fn nothing_panics_and_nothing_is_written_outside(
        bytes in proptest::collection::vec(any::<u8>(), 1..64),
        mark in any::<bool>(),
        errno in proptest::option::of(1i32..200),
        port in any::<u32>(),
        index in any::<u32>(),
    ) {
        let context = hostile(Hostile { bytes, mark, errno });
        let _ = context.query_gid_ex(port, index);
        let _ = context.query_port(port);
        let _ = context.query_port_speed(port);
        let _ = context.query_device();
        let guard = GidEntry::new(9, 9, Gid::default()).with_type(GidType(9));
        let mut entries = [guard; 8];
        let _ = context.query_gid_table_into(&mut entries[1..7]);
        prop_assert_eq!((entries[0], entries[7]), (guard, guard));
    }

    /// The walk over slots, against nonsense: it ends, and writes only into the slice.
    #[test]
    fn the_walk_ends_whatever_the_kernel_says(
        length in any::<u32>(),
        answers in proptest::collection::vec(
            prop_oneof![Just(None), Just(Some(22)), Just(Some(61)), (1i32..200).prop_map(Some)], 1..8),
    ) {
        let kernel = Walked { length, answers };
        let context = Context::simulated("sim0", 1..=2, DriverId::RXE, Box::new(kernel)).unwrap();
        let guard = GidEntry::new(9, 9, Gid::default()).with_type(GidType(9));
        let mut entries = vec![guard; 2050];
        let _ = context.query_gid_table_into(&mut entries[1..2049]);
        prop_assert_eq!((entries[0], entries[2049]), (guard, guard));
        let _ = context.query_gid_table();
    }
}
