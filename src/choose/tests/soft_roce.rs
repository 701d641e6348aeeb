//! What soft RoCE takes of what arrives: at its port's own interface and at VLANs on that, where it has a socket.

use core::num::NonZeroU32;

use super::homes::{by_ioctl, here, unread, with_row};
use super::*;
use crate::choose::surroundings::{Surroundings, port as seen};
use crate::driver::DriverId;
use crate::inventory::{Answer, GidRow, Inventory, Problem};
use crate::netdev::{Netdev, Unfit};

const ADDRESS: &str = "::ffff:10.0.0.1";

/// What is known of a row of `eth0`, which has the index 2.
#[derive(Clone, Debug)]
struct World {
    driver: DriverId,
    /// The index of the port's own interface.
    own: Answer<Option<u32>>,
    is_vlan: bool,
    vlan_on: Option<u32>,
    socket: Option<bool>,
    is_named: bool,
    has_netlink: bool,
    unfit: Option<Unfit>,
}

/// On the port's own interface, with a socket.
fn good() -> World {
    World {
        driver: DriverId::RXE,
        own: Ok(Some(2)),
        is_vlan: false,
        vlan_on: None,
        socket: Some(true),
        is_named: true,
        has_netlink: true,
        unfit: None,
    }
}

/// A VLAN on the port's own.
fn vlan() -> World {
    World { own: Ok(Some(3)), is_vlan: true, vlan_on: Some(3), ..good() }
}

/// A macvlan or bridge above it.
fn above() -> World {
    World { own: Ok(Some(3)), ..good() }
}

fn index(own: u32) -> NonZeroU32 {
    NonZeroU32::new(own).unwrap()
}

/// Why the row is of no use; or whether it is surely of use.
fn said(world: &World) -> Result<bool, Unfit> {
    let mut inventory =
        Inventory { has_netlink: world.has_netlink, has_roce_socket: world.socket, ..here() };
    let eth0 = &mut inventory.interfaces.as_mut().unwrap()[0];
    (eth0.vlan, eth0.vlan_on) = (world.is_vlan.then_some(7), world.vlan_on.map(index));
    eth0.unfit = world.unfit.map(|why| (eth0.addresses[0].0, why)).into_iter().collect();
    let netdev = world.is_named.then(|| Netdev::new(index(2), "eth0"));
    let row = GidRow { netdev, ..by_ioctl(ADDRESS, 2) };
    home_of(&inventory, &row, world)
}

fn home_of(inventory: &Inventory, row: &GidRow, world: &World) -> Result<bool, Unfit> {
    let mut record = with_row(row, LinkLayer::ETHERNET);
    record.device.driver = Some(world.driver);
    let own = world.own.clone();
    record.ports[0].netdev = own.map(|own| own.map(|own| Netdev::new(index(own), "own")));
    let surroundings = Surroundings::of(inventory);
    let port = seen(&surroundings, &record, &record.ports[0]).unwrap();
    let row = port.rows[0];
    assert!(row.has_address_handle, "the kernel makes one all the same");
    match row.home {
        Home::Ours { unfit, .. } | Home::Unproven { unfit, .. } => {
            unfit.map_or_else(|| Ok(is_sure(&port, row.index)), Err)
        }
        home => panic!("{home:?}"),
    }
}

#[test]
fn it_is_not_heard_above_its_interface() {
    let unheard = Err(Unfit::Unheard);
    let elsewhere = || Ok(None);
    let failed = || Err(Problem { text: "no".into(), errno: 5 });
    for (world, wanted) in [
        (good(), Ok(true)),
        (above(), unheard),
        (vlan(), Ok(true)),
        // A VLAN on what is above it.
        (World { vlan_on: Some(4), ..vlan() }, unheard),
        // It is not known what it is on.
        (World { vlan_on: None, ..vlan() }, Ok(false)),
        // The port's own is in another namespace.
        (World { own: elsewhere(), ..good() }, unheard),
        (World { own: elsewhere(), ..vlan() }, unheard),
        (World { own: elsewhere(), vlan_on: None, ..vlan() }, Ok(false)),
        // Which it is could not be read.
        (World { own: failed(), ..good() }, Ok(false)),
        (World { own: failed(), ..vlan() }, Ok(false)),
    ] {
        assert_eq!(said(&world), wanted, "{world:?}");
        // A row without a name is of no use for the same reasons.
        let unnamed = World { is_named: false, ..world.clone() };
        assert_eq!(said(&unnamed), wanted.map(|_| false), "{unnamed:?}");
        // Old snapshots do not say whether there is a socket.
        let unsaid = World { socket: None, ..world.clone() };
        assert_eq!(said(&unsaid), wanted.map(|_| false), "{unsaid:?}");
        let deaf = World { socket: Some(false), ..world.clone() };
        assert_eq!(said(&deaf), Err(Unfit::NoSocket), "{deaf:?}");
        for socket in [None, Some(false), Some(true)] {
            let hardware = World { driver: DriverId::MLX5, socket, ..world.clone() };
            assert_eq!(said(&hardware), Ok(true), "{hardware:?}");
        }
        // Without netlink nothing is known of the port's own interface.
        let blind = World { has_netlink: false, is_named: false, ..world };
        assert_eq!(said(&blind), Ok(false), "{blind:?}");
    }
}

/// Its packets leave by the interface, with all that this adds.
#[test]
fn it_sends_by_a_vlan_on_a_vlan() {
    let bypassed = |world: World| said(&World { unfit: Some(Unfit::Bypassed), ..world });
    assert_eq!(bypassed(good()), Ok(true));
    assert_eq!(bypassed(vlan()), Ok(true));
    assert_eq!(bypassed(above()), Err(Unfit::Unheard));
    assert_eq!(bypassed(World { vlan_on: Some(4), ..vlan() }), Err(Unfit::Unheard));
    assert_eq!(bypassed(World { vlan_on: None, ..vlan() }), Ok(false));
    assert_eq!(bypassed(World { socket: Some(false), ..vlan() }), Err(Unfit::NoSocket));
    assert_eq!(bypassed(World { driver: DriverId::MLX5, ..vlan() }), Err(Unfit::Bypassed));
    // Without netlink it is as hardware.
    let blind = World { has_netlink: false, is_named: false, ..vlan() };
    assert_eq!(bypassed(blind), Err(Unfit::Bypassed));
}

/// A row without an index is of the only interface that has its address.
#[test]
fn a_row_without_an_index_is_not_heard_there() {
    for (world, wanted) in [(above(), Err(Unfit::Unheard)), (vlan(), Ok(false))] {
        let mut inventory = here();
        let interfaces = inventory.interfaces.as_mut().unwrap();
        (interfaces[0].vlan, interfaces[0].vlan_on) =
            (world.is_vlan.then_some(7), world.vlan_on.map(index));
        let row = unread(ADDRESS);
        assert_eq!(home_of(&inventory, &row, &world), wanted, "{world:?}");
        // Of two it may be the other.
        let mut other = inventory.interfaces.as_ref().unwrap()[0].clone();
        (other.index, other.name) = (index(4), "eth2".to_owned());
        inventory.interfaces.as_mut().unwrap().push(other);
        assert_eq!(home_of(&inventory, &row, &world), Ok(false), "{world:?}");
        // Whatever is known of each, and in any order.
        for unfit in [[Unfit::Bypassed, Unfit::Enslaved], [Unfit::Enslaved, Unfit::Bypassed]] {
            let interfaces = inventory.interfaces.as_mut().unwrap();
            for (own, why) in interfaces.iter_mut().filter(|own| own.index != index(3)).zip(unfit) {
                own.unfit = vec![(own.addresses[0].0, why)];
            }
            assert_eq!(home_of(&inventory, &row, &world), Ok(false), "{world:?} {unfit:?}");
        }
    }
}
