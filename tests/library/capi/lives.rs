//! Lifetimes of C objects: lists and contexts are made, used, closed and freed in every order, through the
//! functions that C calls. Miri checks each pointer at each use.

use core::ffi::{CStr, c_int};
use core::ptr::{null, null_mut};
use std::sync::Mutex;

use rustix::io::Errno;
use uverbs::capi::mlx5::{
    _mlx5dv_query_port, mlx5dv_devx_general_cmd, mlx5dv_is_supported, mlx5dv_open_device,
};
use uverbs::capi::verbs::{
    _ibv_query_gid_ex, _ibv_query_gid_table, abi, ibv_close_device, ibv_free_device_list,
    ibv_get_device_guid, ibv_get_device_index, ibv_get_device_list, ibv_get_device_name,
    ibv_import_device, ibv_open_device, ibv_query_device, ibv_query_gid, ibv_query_port,
    simulated_host, uverbs_query_device_ex, uverbs_query_port,
};
use uverbs::context::Context;
use uverbs::device::{Device, Node};
use uverbs::driver::DriverId;
use uverbs::guid::Guid;
use uverbs::mlx5::devx::DevxContext;
use uverbs::simulated::{SimulatedKernel, UserMemory};

use super::c_entry;
use crate::kernel::{Tables, attributes, entry, mark_written, table};

/// Ports and GIDs as [`super::Device`] has them, and an answer to mlx5's own requests.
#[derive(Debug)]
struct Mlx5(super::Device);

impl SimulatedKernel for Mlx5 {
    fn ioctl(&self, request: &mut [u8], memory: &UserMemory<'_>) -> Result<(), Errno> {
        let (asked, list) = attributes(request);
        // The number of its method for ports, and of that for commands.
        if asked != 0x1000 {
            return self.0.ioctl(request, memory);
        }
        let output = list.iter().find(|attribute| attribute.id == 0x1001).unwrap();
        memory.write(output.data, &vec![0; output.len])?;
        mark_written(&mut request[24 + 16..]);
        Ok(())
    }
}

fn kernel() -> Box<dyn SimulatedKernel> {
    let tables = Tables { first: 1, ports: vec![table(1, 4, 1)], calls: std::sync::Arc::default() };
    Box::new(Mlx5(super::Device(tables)))
}

/// The device when it was there for the `nth` time.
fn device(nth: u8) -> Device {
    let mut device = Device::named("sim0");
    device.index = Some(nth.into());
    device.node_guid = Guid::from_be_bytes([0, 0, 0, 0, 0, 0, 0, nth]);
    device.driver = Some(DriverId::MLX5);
    device.node = Some(Node::new("uverbs0", "/dev/null", 0));
    device
}

fn opened(device: &Device, with_devx: bool) -> uverbs::Result<Context> {
    if with_devx {
        DevxContext::simulated(&device.name, device.ports(), kernel()).map(Context::from)
    } else {
        Context::simulated(&device.name, device.ports(), DriverId::MLX5, kernel())
    }
}

/// The library's host is the process's: one test at a time has it.
static HOST: Mutex<()> = Mutex::new(());

/// The device is there for the `nth` time.
fn plugged(nth: u8) {
    simulated_host(vec![device(nth)], opened);
}

/// What a program holds: two lists, and two contexts.
#[derive(Default)]
struct Held {
    nth: u8,
    lists: [Option<(*mut *mut abi::Device, u8)>; 2],
    contexts: [Option<(*mut abi::Context, u8)>; 2],
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    List(usize),
    Free(usize),
    /// From the first device pointer at hand, or from the last.
    Open(usize, bool),
    Close(usize),
    /// The device goes, and another of its name comes.
    Replug,
}

impl Held {
    /// The devices at hand, and for which time they were there: of lists, and of contexts.
    fn devices(&self) -> Vec<(*mut abi::Device, u8)> {
        let of_list = |&(list, nth): &(*mut *mut abi::Device, u8)| {
            // SAFETY: a list that was not freed, and has a first element.
            (unsafe { *list }, nth)
        };
        let of_context = |&(context, nth): &(*mut abi::Context, u8)| {
            // SAFETY: open; `device` is the first field, as verbs.h has it.
            (unsafe { *context.cast::<*mut abi::Device>() }, nth)
        };
        let lists = self.lists.iter().flatten().map(of_list);
        lists.chain(self.contexts.iter().flatten().map(of_context)).collect()
    }

    fn done(&mut self, step: Step) {
        match step {
            Step::List(place) => {
                let mut number: c_int = 77;
                // SAFETY: an int.
                let list = unsafe { ibv_get_device_list(&raw mut number) };
                assert_eq!((number, list.is_null()), (1, false));
                self.lists[place] = Some((list, self.nth));
            }
            Step::Free(place) => {
                let (list, _) = self.lists[place].take().unwrap();
                // SAFETY: from the library, and not freed so far.
                unsafe { ibv_free_device_list(list) };
            }
            Step::Open(place, is_first) => {
                let devices = self.devices();
                let (device, nth) = if is_first { devices[0] } else { devices[devices.len() - 1] };
                // struct mlx5dv_context_attr: DEVX, and no comp_mask.
                let mut attr: [u64; 2] = zerocopy::transmute!([1u32, 0, 0, 0]);
                let context = if is_first {
                    // SAFETY: held by a list or by a context.
                    unsafe { ibv_open_device(device) }
                } else {
                    // SAFETY: the same; the structure is 16 bytes.
                    unsafe { mlx5dv_open_device(device, attr.as_mut_ptr().cast()) }
                };
                assert!(!context.is_null());
                // SAFETY: open; its first field.
                assert_eq!(unsafe { *context.cast::<*mut abi::Device>() }, device);
                self.contexts[place] = Some((context, nth));
                ask(context, !is_first);
            }
            Step::Close(place) => {
                let (context, _) = self.contexts[place].take().unwrap();
                // SAFETY: open, and used by nobody else.
                assert_eq!(unsafe { ibv_close_device(context) }, 0);
            }
            Step::Replug => {
                self.nth += 1;
                plugged(self.nth);
            }
        }
        for (device, nth) in self.devices() {
            name(device, nth);
        }
    }
}

/// Asks of a device what needs no opening.
#[expect(clippy::multiple_unsafe_ops_per_block, reason = "one reason for all")]
fn name(device: *mut abi::Device, nth: u8) {
    // SAFETY: held by a list or by a context.
    unsafe {
        assert_eq!(CStr::from_ptr(ibv_get_device_name(device)), c"sim0");
        assert_eq!(ibv_get_device_guid(device), u64::from(nth).to_be());
        assert_eq!(ibv_get_device_index(device), i32::from(nth));
        assert!(mlx5dv_is_supported(device));
    }
}

/// Asks an open device everything.
#[expect(clippy::multiple_unsafe_ops_per_block, reason = "one reason for all")]
fn ask(context: *mut abi::Context, has_devx: bool) {
    let mut found = c_entry(9, 9);
    let mut entries = [abi::GidEntry::default(); 5];
    let mut gid = [0; 16];
    let mut memory = [0u64; 64];
    let memory = memory.as_mut_ptr();
    let input = [0u8; 16];
    // SAFETY: open; each is given as much memory as it is told.
    unsafe {
        assert_eq!(_ibv_query_gid_ex(context, 1, 2, &raw mut found, 0, 32), 0);
        assert_eq!(_ibv_query_gid_table(context, entries.as_mut_ptr(), 5, 0, 32), 4);
        assert_eq!(ibv_query_gid(context, 1, 1, &raw mut gid), 0);
        assert_eq!(uverbs_query_port(context, 1, memory.cast(), 56), 0);
        assert_eq!(ibv_query_port(context, 1, memory.cast()), 0);
        assert_eq!(ibv_query_device(context, memory.cast()), 0);
        assert_eq!(uverbs_query_device_ex(context, null(), memory.cast(), 400), 0);
        assert_eq!(_mlx5dv_query_port(context, 1, memory.cast(), 40), 0);
        if has_devx {
            let status =
                mlx5dv_devx_general_cmd(context, input.as_ptr().cast(), 16, memory.cast(), 128);
            assert_eq!(status, 0);
        }
    }
    assert_eq!((found, entries[1]), (c_entry(1, 2), c_entry(1, 1)));
    assert_eq!(gid, entry(1, 1).gid().to_bytes());
}

impl Step {
    /// Whether C allows it after these: what is freed or closed is there, and something that was
    /// not has the device to open.
    fn is_allowed(self, before: &[Self]) -> bool {
        let has = |made: fn(Self) -> bool, gone: fn(Self) -> bool| {
            let count = |is: fn(Self) -> bool| before.iter().filter(|step| is(**step)).count();
            count(made) > count(gone)
        };
        let opened = |place| {
            let is = |step: &Self| matches!(step, Self::Open(at, _) if *at == place);
            before.iter().any(is) && !before.contains(&Self::Close(place))
        };
        let is_list = |step| matches!(step, Self::List(_));
        let is_open = |step| matches!(step, Self::Open(..));
        match self {
            Self::List(_) | Self::Replug => true,
            Self::Free(place) => before.contains(&Self::List(place)),
            Self::Open(..) => {
                has(is_list, |step| matches!(step, Self::Free(_)))
                    || has(is_open, |step| matches!(step, Self::Close(_)))
            }
            Self::Close(place) => opened(place),
        }
    }
}

/// Every order of these steps that C allows.
fn orders(steps: &[Step]) -> Vec<Vec<Step>> {
    let mut orders = vec![vec![]];
    for _ in steps {
        let longer = |order: &Vec<Step>| {
            let left = steps.iter().filter(|step| !order.contains(step) && step.is_allowed(order));
            left.map(|step| [&order[..], &[*step]].concat()).collect::<Vec<_>>()
        };
        orders = orders.iter().flat_map(longer).collect();
    }
    orders
}

/// Takes these steps, from nothing to nothing.
fn take(order: &[Step]) {
    plugged(1);
    let mut held = Held { nth: 1, ..Held::default() };
    for step in order {
        held.done(*step);
    }
    assert!(held.devices().is_empty(), "{order:?} leaves something");
}

/// Takes every order of these steps; their number.
fn taken(steps: &[Step]) -> usize {
    let _host = HOST.lock().unwrap();
    let orders = orders(steps);
    for order in &orders {
        take(order);
    }
    orders.len()
}

#[test]
fn a_device_outlives_its_list_in_the_context_that_was_opened_from_it() {
    use Step::{Close, Free, List, Open};
    // The second context may be opened from the first one's device, when the list is gone.
    let steps = [List(0), Open(0, true), Free(0), Open(1, false), Close(0), Close(1)];
    assert_eq!(taken(&steps), 20);
}

#[test]
fn a_device_that_no_list_has_any_more_lives_in_its_context() {
    use Step::{Close, Free, List, Open, Replug};
    let _host = HOST.lock().unwrap();
    let replugged = [List(0), Open(0, true), Free(0), Replug, List(1), Free(1)];
    take(&[&replugged[..], &[Open(1, false), Close(0), Close(1)]].concat());
}

/// Of these there are thousands, for which Miri takes too long.
#[test]
#[cfg(not(miri))]
fn lists_and_contexts_end_in_every_order() {
    use Step::{Close, Free, List, Open, Replug};
    let (first, second) = ([List(0), Open(0, true), Free(0)], [List(1), Open(1, false), Free(1)]);
    assert!(taken(&[&first[..], &second, &[Close(0), Close(1), Replug]].concat()) > 1000);
}

/// The driver is not known, and the node that would say it cannot be opened. That is no other driver.
#[test]
#[cfg(not(miri))]
fn a_device_that_cannot_be_asked_for_its_driver_is_no_other_drivers() {
    use std::os::fd::AsRawFd as _;
    let _host = HOST.lock().unwrap();
    let null = std::fs::File::open("/dev/null").unwrap();
    let number = std::os::unix::fs::MetadataExt::rdev(&null.metadata().unwrap());
    let mut unknown = device(1);
    unknown.driver = None;
    unknown.node = Some(Node::new("uverbs0", "/nowhere/uverbs0", number));
    simulated_host(vec![unknown], opened);
    // SAFETY: NULL is allowed.
    let list = unsafe { ibv_get_device_list(null_mut()) };
    // SAFETY: a list, which has a first element.
    let device = unsafe { *list };
    // SAFETY: held by the list.
    assert!(!unsafe { mlx5dv_is_supported(device) });
    // SAFETY: the same; NULL is allowed.
    assert!(unsafe { mlx5dv_open_device(device, null_mut()) }.is_null());
    assert_eq!(Errno::from_raw_os_error(nix::errno::Errno::last_raw()), Errno::NOENT);
    // SAFETY: open, and the context that would own it is not made.
    assert!(unsafe { ibv_import_device(null.as_raw_fd()) }.is_null());
    assert_eq!(Errno::from_raw_os_error(nix::errno::Errno::last_raw()), Errno::NOENT);
    // SAFETY: from the library, and not freed so far.
    unsafe { ibv_free_device_list(list) };
}

/// A device has one pointer as long as C holds it, also if a list between is without it.
#[test]
fn a_device_that_comes_back_is_the_one_that_is_held() {
    let _host = HOST.lock().unwrap();
    let list = |devices: Vec<Device>| {
        simulated_host(devices, opened);
        // SAFETY: NULL is allowed.
        let list = unsafe { ibv_get_device_list(null_mut()) };
        // SAFETY: a list, which has a first element or NULL.
        (list, unsafe { *list })
    };
    let (first, held) = list(vec![device(1)]);
    let (without, none) = list(Vec::new());
    let (again, same) = list(vec![device(1)]);
    let (fourth, other) = list(vec![device(2)]);
    assert!(none.is_null() && same == held && other != held);
    for list in [first, without, again, fourth] {
        // SAFETY: from the library, and not freed so far.
        unsafe { ibv_free_device_list(list) };
    }
}
