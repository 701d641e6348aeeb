//! Devices of mlx5 that take one another's place.

use anyhow::{Result, ensure};
use uverbs_mlx5_function::description::Description;

use crate::lab::mlx5::{Mlx5, Rdma};
use crate::scenarios::replaced::{DEVICE, Pair, Sampled, replace_at_every_call};

/// Two functions, of which one has its RDMA device.
struct Functions {
    all: [Rdma; 2],
    marks: [Vec<String>; 2],
    name: String,
    place: usize,
}

impl Functions {
    /// Both as described, but for what tells them apart.
    fn bind(description: &Description, has_switchdev: bool) -> Result<Self> {
        let mut descriptions = [description.clone(), description.clone().sibling()];
        let mut number = 54_300;
        for own in &mut descriptions {
            number += 1;
            own.vhca_id = number;
            own.eswitch.vport_vhca_id = number + 100;
            let icm = u64::from(number) << 40;
            own.eswitch.uplink_icm = (icm | 1 << 20, icm | 2 << 20);
            own.eswitch.vport_icm = (icm | 3 << 20, icm | 4 << 20);
            own.psid = format!("MT_{number}");
        }
        let marks = descriptions.each_ref().map(marks);
        let bound = |place: usize| -> Result<Rdma> {
            let mut device = Mlx5::bind(place, &descriptions[place])?;
            if !has_switchdev {
                return Rdma::by_driver(device);
            }
            device.switchdev()?;
            Ok(Rdma::by_mode(device))
        };
        let all = [bound(0)?, bound(1)?];
        // The node of the first has the number that each is to have.
        all[1].take_away()?;
        let name = all[0].device().name().to_owned();
        Ok(Self { all, marks, name, place: 0 })
    }
}

/// What only the function has that is described.
fn marks(own: &Description) -> Vec<String> {
    let mut marks = vec![own.vhca_id.to_string(), own.psid.clone()];
    let mut guid = |guid: u64| {
        marks.push(format!("{guid:#018x}"));
        marks.push(format!("{guid:016x}"));
        marks.push(std::net::Ipv6Addr::from(0xfe80 << 112 | u128::from(guid)).to_string());
    };
    guid(own.node_guid);
    guid(own.system_image_guid);
    for port in &own.ports {
        guid(port.guid);
    }
    for port in &own.ports {
        marks.push(port.mac.map(|byte| format!("{byte:02x}")).join(":"));
        let gids = port.gids.iter().map(|(_, gid)| std::net::Ipv6Addr::from(*gid).to_string());
        marks.extend(gids);
    }
    let (receive, send) = own.eswitch.uplink_icm;
    marks.extend([format!("{receive:#x}"), format!("{send:#x}")]);
    marks
}

impl Pair for Functions {
    fn name(&self) -> &str {
        &self.name
    }

    fn place(&self) -> usize {
        self.place
    }

    fn marks(&self) -> &[Vec<String>; 2] {
        &self.marks
    }

    fn swap(&mut self, name: &str) -> Result<()> {
        let other = 1 - self.place;
        self.all[self.place].take_away()?;
        self.all[other].bring_back(name)?;
        (self.name, self.place) = (name.to_owned(), other);
        Ok(())
    }

    fn waits(&self) -> Result<bool> {
        Ok(false)
    }
}

/// The RDMA device of one function goes, and that of another comes in its place, after each system call
/// of a command. A context that has DEVX opens its device a second time.
pub(crate) fn at_every_call() -> Result<()> {
    const INFINIBAND: [Sampled; 8] = [
        (&["/usr/bin/uverbs", "mlx5", "vport", DEVICE, "--json"], 20),
        (&["/usr/bin/uverbs", "mlx5", "device", "--json"], 20),
        (&["/usr/bin/uverbs", "gids", "--json", "--source", "sysfs"], 20),
        (&["/usr/bin/uverbs", "ports", "--json", "--source", "sysfs"], 20),
        (&["/usr/bin/uverbs", "gids", "--json", "--sysfs", "/sys"], 20),
        (&["/usr/bin/uverbs", "choose", "--json"], 20),
        (&["/usr/uverbs/query_gid_table"], 20),
        (&["/usr/uverbs/umad_get_ca_portguids", DEVICE], 20),
    ];
    const SWITCHDEV: [Sampled; 4] = [
        (&["/usr/bin/uverbs", "mlx5", "port", "--json"], 8),
        (&["/usr/bin/uverbs", "mlx5", "vport", "--json"], 8),
        (&["/usr/bin/uverbs", "mlx5", "device", DEVICE, "--json"], 8),
        (&["/usr/uverbs/mlx5_query_port", DEVICE], 8),
    ];
    let mut description = Description::infiniband(1);
    for port in &mut description.ports {
        port.pkeys = vec![0xffff];
    }
    let mut functions = Functions::bind(&description, false)?;
    ensure!(functions.marks[0].iter().all(|mark| !functions.marks[1].contains(mark)));
    if !Rdma::has_parts()? {
        // The whole function goes and comes, which takes seconds.
        return replace_at_every_call(&mut functions, &INFINIBAND.map(|(command, _)| (command, 2)));
    }
    replace_at_every_call(&mut functions, &INFINIBAND)?;
    drop(functions);
    let mut functions = Functions::bind(&Description::switchdev(), true)?;
    replace_at_every_call(&mut functions, &SWITCHDEV)
}
