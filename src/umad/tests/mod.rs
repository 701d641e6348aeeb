mod lenient;
#[cfg(not(miri))]
mod replaced;
mod strict;
pub(crate) mod tree;

use self::tree::Tree;
use super::{ca, ca_names, default_port, port, port_guids, strict as by_the_letter};

/// A xorshift generator: the same trees in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).unwrap()
    }
}

/// Whatever a tree holds, every question has an answer or an error: no panic, no waiting.
#[test]
fn any_tree_is_answered() {
    const NAMES: [&str; 5] = ["d0", "d1", "a-name-of-twenty-byte", "11", "."];
    const FILES: [&str; 16] = [
        "node_type",
        "node_guid",
        "sys_image_guid",
        "ports",
        "ports/1",
        "ports/x",
        "ports/10",
        "ports/0",
        "ports/1/state",
        "ports/1/lid",
        "ports/1/rate",
        "ports/1/link_layer",
        "ports/1/gids",
        "ports/1/gids/0",
        "ports/1/pkeys/0",
        "ports/1/pkeys/777",
    ];
    const TEXTS: [&[u8]; 12] = [
        b"",
        b"\n",
        b"\0\0",
        b"4: ACTIVE\n",
        b"0x",
        b"-1",
        b"99999999999999999999999999999999999",
        b":::::::::::::::::",
        b"\xff\xfe\xfd",
        b"1\n2\n3",
        b"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff\n",
        &[b'7'; 9000],
    ];
    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    let mut answered = 0;
    for _ in 0..100 {
        let tree = Tree::new();
        tree.device("d0", "1: CA").port("d0", 1).device("d1", "1: CA").port("d1", 1);
        for _ in 0..dice.roll(4) {
            let name = NAMES[dice.roll(2)];
            let path = format!("{name}/{}", FILES[dice.roll(FILES.len())]);
            match dice.roll(6) {
                0 => tree.remove(&path),
                1 => tree.remove(&path).folder(&path),
                2 => tree
                    .remove(&path)
                    .link(&path, ["0", "/dev/zero", "nowhere", ".."][dice.roll(4)]),
                3 => tree.remove(&path).fifo(&path),
                _ => tree.remove(&path).bytes(&path, TEXTS[dice.roll(TEXTS.len())]),
            };
        }
        let sysfs = &tree.sysfs();
        let _ = ca_names(sysfs);
        by_the_letter::get_ca_device_list(sysfs).unwrap();
        let _ = by_the_letter::get_cas_names(sysfs, dice.roll(3));
        for name in NAMES.map(Some).into_iter().chain([None]) {
            let _ = (default_port(sysfs, name), port_guids(sysfs, name));
            if let Some(name) = name {
                let _ = (ca(sysfs, name), port(sysfs, name, 1));
            }
            for number in [0, 1, 10, -1, i32::MAX, i32::MIN] {
                let _ = by_the_letter::get_port(sysfs, name, number);
            }
            let mut guids = [crate::guid::Guid::default(); 10];
            if let Ok(count) = by_the_letter::get_ca_portguids(sysfs, name, Some(&mut guids)) {
                let ca = by_the_letter::get_ca(sysfs, name).unwrap();
                assert_eq!(count, ca.numports as usize + 1);
                answered += 1;
            }
        }
    }
    assert!(answered > 100, "{answered}");
}
