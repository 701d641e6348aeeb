//! Two devices that exchange their names all the time: each answer is of one of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::tree::Tree;
use crate::guid::Guid;
use crate::umad::{ca, port, port_guids, strict};

/// Two devices, all of whose GUIDs and LIDs end in the number of the device.
fn pair() -> Tree {
    let tree = Tree::new();
    for (name, own) in [("d0", 7), ("d1", 8)] {
        tree.device(name, "1: CA");
        for file in ["node_guid", "sys_image_guid"] {
            tree.file(&format!("{name}/{file}"), &format!("0011:22ff:fe33:000{own}"));
        }
        for number in [1, 2] {
            let gid = format!("fe80:0000:0000:0000:0011:22ff:fe33:000{own}");
            tree.port(name, number).set(name, number, "gids/0", &gid);
            tree.set(name, number, "lid", &format!("0x{own}"));
            tree.set(name, number, "pkeys/0", &format!("0x800{own}"));
        }
    }
    tree
}

/// How often a question is asked. A file is read in a few microseconds.
const TIMES: u32 = 250;

/// Ends the exchanges, also after a panic.
struct End<'f>(&'f AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Asks while the devices exchange their names. The numbers of an answer must be those of one device.
#[track_caller]
fn steady(ask: impl Fn(&Tree) -> Vec<u64>) {
    let tree = pair();
    let is_over = AtomicBool::new(false);
    let [one, other] = ["d0", "d1"].map(|name| tree.class().join(name));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
                thread::yield_now();
            }
        });
        let end = End(&is_over);
        let answers: Vec<Vec<u64>> = (0..TIMES).map(|_| ask(&tree)).collect();
        drop(end);
        for answer in answers {
            let own = answer.first().copied();
            assert!(answer.len() > 1 && matches!(own, Some(7 | 8)), "{answer:?}");
            assert!(answer.iter().all(|number| Some(*number) == own), "of two devices: {answer:?}");
        }
    });
}

/// What a GUID ends in.
fn end(guid: Guid) -> u64 {
    guid.to_u64() & 0xf
}

#[test]
fn a_ca_is_of_one_device() {
    steady(|tree| {
        let ca = ca(&tree.sysfs(), "d0").unwrap();
        let mut all = vec![end(ca.node_guid), end(ca.system_guid)];
        for (_, port) in ca.ports {
            let port = port.unwrap();
            let (_, pkey) = port.pkeys.as_ref().unwrap()[0];
            all.extend([u64::from(port.base_lid), end(port.port_guid().unwrap())]);
            all.push(u64::from(pkey.0 & 0xf));
        }
        all
    });
    steady(|tree| {
        let ca = strict::get_ca(&tree.sysfs(), Some("d0")).unwrap();
        let mut all = vec![end(ca.node_guid), end(ca.system_guid)];
        for port in ca.ports.iter().flatten() {
            all.extend([u64::from(port.base_lid), end(port.port_guid)]);
            all.push(u64::from(port.pkeys[0].0 & 0xf));
        }
        all
    });
}

#[test]
fn a_port_is_of_one_device() {
    steady(|tree| {
        let port = port(&tree.sysfs(), "d0", 1).unwrap();
        vec![u64::from(port.base_lid), end(port.port_guid().unwrap())]
    });
    steady(|tree| {
        let port = strict::get_port(&tree.sysfs(), Some("d0"), 1).unwrap();
        vec![u64::from(port.base_lid), end(port.port_guid)]
    });
}

#[test]
fn port_guids_are_of_one_device() {
    steady(|tree| {
        let ports = port_guids(&tree.sysfs(), Some("d0")).unwrap().guids;
        ports.into_iter().map(|(_, guid)| end(guid.unwrap().unwrap())).collect()
    });
    steady(|tree| {
        let mut guids = [Guid::default(); 10];
        let count = strict::get_ca_portguids(&tree.sysfs(), Some("d0"), Some(&mut guids)).unwrap();
        guids[1..count].iter().map(|guid| end(*guid)).collect()
    });
}
