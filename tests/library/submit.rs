//! Commands that a user of the library puts together.

use std::error::Error as _;
use std::sync::atomic::Ordering;

use uverbs::Gid;
use uverbs::error::{Cause, Request};
use uverbs::ioctl::{Command, EncodeError};
use uverbs::uapi::device::{
    self as abi, invoke_write, method, object, query_gid_entry, write_command,
};
use zerocopy::IntoBytes;

use crate::kernel::{context, entry, table};

#[test]
fn a_query_of_one_s_own() {
    let (context, calls) = context(vec![table(1, 4, 2)]);
    let mut found = abi::GidEntry::default();
    let mut command = Command::<4>::new(object::DEVICE, method::QUERY_GID_ENTRY);
    command
        .constant(query_gid_entry::PORT, 1)
        .constant(query_gid_entry::GID_INDEX, 2)
        .flags(query_gid_entry::FLAGS, 0)
        .output(query_gid_entry::RESP_ENTRY, found.as_mut_bytes());
    context.submit(&mut command).unwrap();
    assert!(command.is_output_valid(query_gid_entry::RESP_ENTRY));
    let again = context.submit(&mut command).unwrap_err();
    assert_eq!(*again.cause(), Cause::Encode(EncodeError::Sent));
    assert_eq!(uverbs::GidEntry::from(found), entry(1, 2));
    assert_eq!(Gid::from_bytes(found.gid), entry(1, 2).gid());
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

#[test]
fn the_kernel_s_errno_comes_back() {
    let (context, _) = context(vec![table(1, 4, 2)]);
    let mut found = abi::GidEntry::default();
    let mut ask = |index| {
        let mut command = Command::<4>::new(object::DEVICE, method::QUERY_GID_ENTRY);
        command
            .constant(query_gid_entry::PORT, 1)
            .constant(query_gid_entry::GID_INDEX, index)
            .output(query_gid_entry::RESP_ENTRY, found.as_mut_bytes());
        context.submit(&mut command).unwrap_err()
    };
    let error = ask(1);
    assert_eq!(error.errno(), 61, "an empty slot: ENODATA");
    let request = Request::Ioctl { object: 0, method: method::QUERY_GID_ENTRY };
    assert_eq!(*error.request(), request);
    assert!(error.to_string().starts_with("sim0: method 0x6 of object 0x0: "), "{error}");
    assert!(error.source().is_none(), "the text is complete");
    assert_eq!(ask(9).errno(), 22);
    let io = std::io::Error::from(ask(9));
    assert_eq!(io.kind(), std::io::ErrorKind::InvalidInput);
    let error: uverbs::Error = io.downcast().unwrap();
    assert_eq!(error.errno(), 22);
}

/// What could make the kernel write elsewhere, or hand memory to the device, is not sent.
#[test]
fn what_is_not_known_is_not_sent() {
    let (context, calls) = context(vec![table(1, 4, 2)]);
    let refused = |command: &mut Command<'_, 4>| {
        let error = context.submit(command).unwrap_err();
        assert_eq!(*error.cause(), Cause::Encode(EncodeError::Undescribed));
        assert_eq!(error.errno(), 22);
    };
    // The answer's memory is not lent, or not for writing.
    let answer = |value| {
        let mut command = Command::new(object::DEVICE, method::QUERY_GID_ENTRY);
        command.constant(query_gid_entry::RESP_ENTRY, value);
        command
    };
    refused(&mut answer(0xdead_beef));
    refused(Command::new(object::DEVICE, method::QUERY_GID_ENTRY).input(3, &[0; 32]));
    // A method that is not listed, and one that makes a file nobody would close.
    refused(Command::new(object::PD, 0).constant(0, 1));
    refused(Command::new(object::ASYNC_EVENT, 0).new_fd(0));
    // Older commands name memory in their request: REG_MR (9), CREATE_CQ (18).
    let request = [0u8; 40];
    for number in [9, 18, u64::from(write_command::GET_CONTEXT), u64::MAX] {
        let mut command = Command::new(object::DEVICE, method::INVOKE_WRITE);
        refused(
            command
                .input(invoke_write::CORE_IN, &request)
                .constant(invoke_write::WRITE_CMD, number),
        );
    }
    // The second of two counts as well.
    let mut command = Command::new(object::DEVICE, method::INVOKE_WRITE);
    let known = write_command::QUERY_DEVICE.into();
    refused(command.constant(invoke_write::WRITE_CMD, known).constant(invoke_write::WRITE_CMD, 9));
    assert_eq!(calls.load(Ordering::Relaxed), 0);
}
