//! libibumad's rules, one by one.

mod ca;
mod defaults;
mod guids;
mod lists;
mod ports;

use core::fmt::Debug;

use rustix::io::Errno;

use crate::guid::Guid;
use crate::pkey::PKey;
use crate::umad::choice::{self, Candidate};
use crate::umad::strict::{
    Failure, get_ca, get_ca_device_list, get_ca_portguids, get_cas_names, get_port,
};
use crate::umad::tests::tree::Tree;

const CA: &str = "1: CA";
const LONG: &str = "a-name-of-twenty-bytes";
/// As long as a name may be.
const NINETEEN: &str = "name-of-nineteen-by";

#[track_caller]
fn fails<T: Debug>(result: Result<T, Failure>, errno: Errno) {
    assert_eq!(result.unwrap_err().value(), -errno.raw_os_error());
}

fn names(tree: &Tree) -> Vec<String> {
    get_cas_names(&tree.sysfs(), 128).iter().map(ToString::to_string).collect()
}

/// The low group of each GUID, as `Tree` numbers them.
fn guids(tree: &Tree, name: Option<&str>) -> Result<Vec<u64>, Failure> {
    let mut guids = [Guid::from(0xdead); 10];
    let count = get_ca_portguids(&tree.sysfs(), name, Some(&mut guids))?;
    assert!(guids[count..].iter().all(|guid| *guid == Guid::from(0xdead)));
    Ok(guids[..count].iter().map(|guid| guid.to_u64() & 0xffff).collect())
}

/// Name and port of the default, for a wanted port.
fn default(tree: &Tree, portnum: i32) -> (String, i32) {
    let port = get_port(&tree.sysfs(), None, portnum).unwrap();
    (port.ca_name.to_string(), port.portnum)
}
