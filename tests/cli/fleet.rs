//! `fleet`, on made fleets.

use std::fs;

use serde_json::{Value, json};

use crate::run::{Run, finish, program};
use crate::snapshots::{Fleet, begun, host, port, set, with_third_port};

/// A host `nN` with two rails, each with a network of its own.
fn node(number: u32) -> Value {
    with_networks(number, ["10.0.0", "10.1.0"])
}

/// The same in these networks of 24 bits.
fn with_networks(number: u32, networks: [&str; 2]) -> Value {
    let mut all = Value::Null;
    for (rail, network) in networks.into_iter().enumerate() {
        let netdev = format!("eth{rail}");
        let local = format!("fe80::11:22ff:fe{rail:02x}:{number:x}");
        let global = format!("::ffff:{network}.{number}");
        let rows = [(0, &local, 1), (1, &local, 2), (2, &global, 1), (3, &global, 2)];
        let rows = rows.map(|(index, gid, version)| (index, gid.as_str(), version, Some("eth0")));
        let device = format!("mlx5_{rail}");
        let mut one = host(&format!("n{number}"), &[(&device, port(&rows))]);
        let guid = format!("0x{:016x}", 0x0200_0000_0000 + 16 * u64::from(number) + rail as u64);
        let index = 2 + rail;
        let own = &mut one["devices"][0];
        (own["node_guid"], own["fw_version"]) = (json!(guid), json!("28.39.2048"));
        own["ports"][0]["guid"] = json!(guid);
        own["ports"][0]["netdev"] = json!({ "index": index, "name": netdev });
        for row in own["gids"].as_array_mut().unwrap() {
            row["ifindex"] = json!(index);
            row["netdev"] = json!({ "index": index, "name": netdev });
        }
        let interfaces = one["interfaces"].as_array_mut().unwrap();
        interfaces.truncate(1);
        interfaces[0]["index"] = json!(index);
        interfaces[0]["name"] = json!(netdev);
        interfaces[0]["mac"] =
            json!(format!("02:11:22:{rail:02x}:{:02x}:{:02x}", number >> 8, number & 255));
        if all.is_null() {
            all = one;
            continue;
        }
        for list in ["devices", "interfaces"] {
            let more = one[list].as_array_mut().unwrap().pop().unwrap();
            all[list].as_array_mut().unwrap().push(more);
        }
    }
    all
}

fn nodes(numbers: impl Iterator<Item = u32>) -> Vec<Value> {
    numbers.map(node).collect()
}

fn uverbs(hosts: &[Value], words: &[&str]) -> Run {
    Fleet::new(hosts).uverbs(&[&["fleet"], words].concat())
}

/// UCX can be set to reach only its own network, or less.
#[test]
fn what_ucx_is_set_to_reach() {
    let answer = |settings: &[(&str, &str)], networks: [[&str; 2]; 2], words: &[&str]| {
        let mut hosts = vec![with_networks(1, networks[0]), with_networks(2, networks[1])];
        // Of one host only it would be odd.
        for host in &mut hosts {
            for (name, value) in settings {
                set(host, name, value, None);
            }
        }
        let run = uverbs(&hosts, words);
        let is_said = run.stdout.contains("it is set to reach only a part of the networks: ");
        assert!(!is_said || run.stdout.contains(" UCX: "), "of UCX only: {run:?}");
        (run.status, is_said, run.stderr.contains("not known: whether UCX reaches all ports"))
    };
    let one = [["10.0.0", "10.1.0"]; 2];
    let two = [["10.0.0", "10.1.0"], ["10.2.0", "10.3.0"]];
    let local = ("UCX_IB_ROCE_LOCAL_SUBNET", "y");
    let mode = |value| ("UCX_IB_ROCE_REACHABILITY_MODE", value);
    let bits = |value| ("UCX_IB_ROCE_SUBNET_PREFIX_LEN", value);
    let job = ["--hosts", "n[1-2]", "--routed"];
    for settings in [&[][..], &[("UCX_IB_ROCE_LOCAL_SUBNET", "N")], &[mode("route"), bits("8")]] {
        assert_eq!(answer(settings, two, &["--routed"]), (0, false, false), "{settings:?}");
        assert_eq!(answer(settings, two, &job), (0, false, false), "{settings:?}");
    }
    for settings in [&[local][..], &[mode("local_subnet")], &[local, bits("AUTO")]] {
        assert_eq!(answer(settings, two, &["--routed"]), (1, true, false), "{settings:?}");
        assert_eq!(answer(settings, two, &job), (1, true, true), "{settings:?}");
        assert_eq!(answer(settings, one, &[]), (0, false, false), "{settings:?}");
        assert_eq!(answer(settings, one, &job[..2]), (0, false, false), "{settings:?}");
    }
    let part = &[local, bits("32")];
    assert_eq!(answer(part, one, &[]), (1, true, false));
    assert_eq!(answer(part, one, &job[..2]), (1, true, true));
    // It may take the length of the prefix from another address of the interface, which may be the first.
    for (address, status) in
        [(("10.9.9.1", 32), 1), (("10.9.9.1", 16), 0), (("fe80::5", 10), 0), (("fd00::5", 16), 1)]
    {
        let mut hosts = vec![with_networks(1, one[0]), with_networks(2, one[1])];
        for host in &mut hosts {
            set(host, local.0, local.1, None);
            host["interfaces"][1]["addresses"].as_array_mut().unwrap().push(json!(address));
        }
        for words in [&[][..], &job[..2]] {
            let run = uverbs(&hosts, words);
            assert_eq!(run.status, status, "{address:?}: {run:?}");
        }
    }
    // A job of one host joins nothing, and to RoCE v1 this does not apply.
    let mut lonely = [with_networks(1, one[0]), with_networks(2, one[1])];
    for host in &mut lonely {
        set(host, local.0, local.1, None);
        set(host, "UCX_IB_ROCE_SUBNET_PREFIX_LEN", "32", None);
    }
    let said = "not known: whether UCX reaches all ports";
    let run = uverbs(&lonely, &["--hosts", "n1"]);
    assert!(!run.stderr.contains(said) && run.status == 0, "{run:?}");
    let run = uverbs(&lonely, &["--hosts", "n[1-2]"]);
    assert!(run.stderr.contains(said), "{run:?}");
    for host in &mut lonely {
        for device in host["devices"].as_array_mut().unwrap() {
            device["gids"].as_array_mut().unwrap().retain(|row| row["gid_type"] == json!(1));
        }
    }
    let run = uverbs(&lonely, &["--hosts", "n[1-2]"]);
    assert!(!run.stderr.contains(said), "{run:?}");
    // What UCX never takes keeps nothing from being known.
    let mut hosts = [with_networks(1, one[0]), with_networks(2, one[1])];
    for host in &mut hosts {
        set(host, local.0, local.1, None);
        with_third_port(&mut host["devices"][1]);
        host["interfaces"][1]["addresses"].as_array_mut().unwrap().push(json!(["fd00::5", 64]));
    }
    let run = uverbs(&hosts, &["--hosts", "n[1-2]"]);
    assert!(run.stderr.contains("UCX itself never takes n1: mlx5_1:3"), "{run:?}");
    assert!(!run.stderr.contains(said), "{run:?}");
    // All ports of the host that is set so are named, also where each network is on one host.
    let mut hosts = [with_networks(1, two[0]), with_networks(2, two[1])];
    set(&mut hosts[0], local.0, local.1, None);
    let seen = not_meeting(&hosts, &["--all-to-all", "--routed"]);
    assert!(seen.len() == 1 && seen[0].starts_with("n1 mlx5_0:1,mlx5_1:1 "), "{seen:?}");
    // It is told of the host that is set so, and not of a job without it.
    let mut hosts: Vec<Value> =
        (1..=4).map(|own| with_networks(own, two[usize::from(own > 2)])).collect();
    set(&mut hosts[0], local.0, local.1, None);
    let seen = not_meeting(&hosts, &["--routed"]);
    assert!(seen.len() == 1 && seen[0].starts_with("n1 mlx5_0:1,mlx5_1:1 "), "{seen:?}");
    let said = "not known: whether UCX reaches all ports";
    let run = uverbs(&hosts, &["--hosts", "n[1-4]", "--routed"]);
    assert!(run.stderr.contains(said), "{run:?}");
    for device in hosts[0]["devices"].as_array_mut().unwrap() {
        device["ports"][0]["attributes"][0]["state"] = json!(1);
    }
    let run = uverbs(&hosts, &["--hosts", "n[1-4]", "--routed"]);
    assert!(!run.stderr.contains(said) && run.stderr.contains("n1"), "{run:?}");
}

/// Soft RoCE sends by a VLAN on a VLAN, of which only the inner id is known: the outer ones may differ.
#[test]
fn two_vlans_of_soft_roce_may_not_meet() {
    let with_vlans = |are_two: bool| {
        let mut all = [node(1), node(2)];
        for own in &mut all {
            own["has_roce_socket"] = true.into();
            for rail in 0..2 {
                let device = &mut own["devices"][rail];
                device["driver"] = 14.into();
                device["fw_version"] = Value::Null;
                device["ports"][0]["netdev"] = json!({ "index": 9, "name": "eth9" });
                let vlan = &mut own["interfaces"][rail];
                (vlan["vlan"], vlan["vlan_on"]) = (7.into(), 9.into());
                let bypassed = |own: &Value| json!([own[0], "bypassed"]);
                let addresses = vlan["addresses"].as_array().unwrap();
                let unfit: Vec<Value> = addresses.iter().map(bypassed).collect();
                vlan["unfit"] = if are_two { json!(unfit) } else { json!([]) };
            }
        }
        uverbs(&all, &["--hosts", "n[1-2]"])
    };
    let one = with_vlans(false);
    assert!(one.status == 0 && !one.stdout.contains("not-known"), "{one:?}");
    let two = with_vlans(true);
    assert!(two.status == 1 && two.stdout.contains("not-known"), "{two:?}");
}

/// Soft RoCE may be on a tunnel. Of two with different names it is not known whether they are one.
#[test]
fn two_tunnels_of_soft_roce_may_not_meet() {
    let of_tunnels = |names: [&str; 2]| {
        let mut all = [node(1), node(2)];
        for (own, name) in all.iter_mut().zip(names) {
            own["has_roce_socket"] = true.into();
            for rail in 0..2 {
                let device = &mut own["devices"][rail];
                device["driver"] = 14.into();
                device["fw_version"] = Value::Null;
                let tunnel = &mut own["interfaces"][rail];
                tunnel["name"] = format!("{name}{rail}").into();
                let bypassed = |own: &Value| json!([own[0], "bypassed"]);
                let addresses = tunnel["addresses"].as_array().unwrap();
                tunnel["unfit"] = addresses.iter().map(bypassed).collect();
            }
        }
        uverbs(&all, &["--hosts", "n[1-2]"])
    };
    let one = of_tunnels(["vx", "vx"]);
    assert!(one.status == 0 && !one.stdout.contains("not-known"), "{one:?}");
    let two = of_tunnels(["vx", "vy"]);
    assert!(two.status == 1 && two.stdout.contains("not-known"), "{two:?}");
}

/// Without a link-local address or ARP it is not known whether two ends meet: the kernel may know the neighbour. So it is with
/// what RDMA sends past: it may be `MACsec`.
#[test]
fn addresses_from_which_nobody_may_be_reached() {
    let networks = ["10.0.0", "10.1.0"];
    let mut hosts = [with_networks(1, networks), with_networks(2, networks)];
    for why in ["no_link_local", "no_neighbours", "bypassed"] {
        for own in hosts[0]["interfaces"].as_array_mut().unwrap() {
            let addresses = own["addresses"].as_array().unwrap().iter();
            own["unfit"] = addresses.map(|own| json!([own[0], why])).collect();
        }
        // A tunnel is above the port's own interface.
        if why == "bypassed" {
            for device in hosts[0]["devices"].as_array_mut().unwrap() {
                device["ports"][0]["netdev"] = json!({ "index": 99, "name": "eth99" });
            }
        }
        let seen = not_meeting(&hosts, &[]).join("\n");
        assert!(seen.contains("RDMA may reach nobody from an address"), "{seen}");
        assert!(!seen.contains("the address of the GID is not usable"), "{seen}");
    }
}

/// Three odd hosts in many.
#[test]
fn three_odd_hosts_in_few_lines() {
    let mut hosts = nodes(1..=40);
    hosts[6]["devices"][1]["fw_version"] = json!("28.37.1014");
    hosts[16]["devices"][0]["ports"][0]["attributes"][0]["state"] = json!(1);
    let rows = hosts[22]["devices"][1]["gids"].as_array_mut().unwrap();
    rows.retain(|row| row["gid_type"] == 1);
    let run = uverbs(&hosts, &[]);
    assert_eq!(
        run.stdout,
        "\
FINDING      HOSTS  WHERE     SEEN
cannot-meet  n17    mlx5_0:1  the port is down, not active
cannot-meet  n23    mlx5_1:1  roce_v1 against roce_v2 (39 hosts, as n1)
odd          n7     mlx5_1    firmware: 28.37.1014, most have 28.39.2048
odd          n17    mlx5_0:1  state: down, most have active
odd          n23    mlx5_1:1  GID type: roce_v1, most have roce_v2; GID index: 2, most have 3
"
    );
    let last = "looked at 40 hosts: 80 devices, 80 ports, 318 GIDs; 3 hosts are odd; not all ports of 2 rails can meet";
    assert_eq!((run.stderr, run.status), (format!("uverbs: {last}\n"), 1));
}

/// The line about a node. For a job the first host is left out.
fn odd_node(hosts: &[Value]) -> Option<String> {
    let run = uverbs(hosts, &[]);
    let job = uverbs(hosts, &["--hosts", "n[1-5]"]);
    assert_eq!((run.status, job.status), (1, 1));
    assert!(job.stderr.contains("leave out n1\n"), "{job:?}");
    let line = run.stdout.lines().find(|line| line.contains("node"));
    line.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Programs do not find a device without a node, or cannot open it.
#[test]
fn nodes_that_differ() {
    let seen = |what: &str| Some(format!("odd n1 mlx5_1 node: {what}, most have usable"));
    let mut hosts = nodes(1..=5);
    hosts[0]["devices"][1]["node"] = Value::Null;
    assert_eq!(odd_node(&hosts), seen("none"));
    for (errno, what) in
        [(2, "missing"), (13, "forbidden"), (1, "not permitted"), (19, "not usable")]
    {
        let mut hosts = nodes(1..=5);
        hosts[0]["devices"][1]["access"] = json!({ "error": "no", "errno": errno });
        assert_eq!(odd_node(&hosts), seen(what));
    }
}

/// Pods without nodes are alike. Whether the job has nodes is not known.
#[test]
fn no_host_has_nodes() {
    let mut hosts = nodes(1..=5);
    for host in &mut hosts {
        for device in host["devices"].as_array_mut().unwrap() {
            device["access"] = json!({ "error": "no", "errno": 2 });
        }
    }
    let run = uverbs(&hosts, &[]);
    assert_eq!((run.stdout.lines().count(), run.status), (1, 0), "{run:?}");
    let job = uverbs(&hosts, &["--hosts", "n[1-5]"]);
    let unknown = "not known: whether programs can open the devices of n1, n2, n3 and 2 more\n";
    assert!(job.stderr.contains(unknown) && job.status == 1, "{job:?}");
    assert!(job.stderr.contains("NCCL: right on all hosts, as far as is known: "), "{job:?}");
    // Nor where each lacks one, as pods that were given the other.
    for host in &mut hosts {
        host["devices"][0]["access"] = json!(true);
    }
    let job = uverbs(&hosts, &["--hosts", "n[1-5]"]);
    assert!(job.stderr.contains(unknown) && job.status == 1, "{job:?}");
    assert!(job.stderr.contains("NCCL: right on all hosts, as far as is known: "), "{job:?}");
    // One that has none is left out then.
    hosts[0]["devices"][0]["access"] = json!({ "error": "no", "errno": 2 });
    let job = uverbs(&hosts, &["--hosts", "n[1-5]"]);
    assert!(job.stderr.contains("leave out n1, as far as is known\n"), "{job:?}");
    // But not if nobody tried to open one of its nodes.
    hosts[0]["devices"][0]["access"] = Value::Null;
    let job = uverbs(&hosts, &["--hosts", "n[1-5]"]);
    assert!(job.stderr.contains(unknown) && !job.stderr.contains("leave out"), "{job:?}");
}

/// Of hosts on which no port can be used, that is the reason.
#[test]
fn no_host_has_a_port_that_can_be_used() {
    let mut hosts = nodes(1..=2);
    for host in &mut hosts {
        for device in host["devices"].as_array_mut().unwrap() {
            device["ports"][0]["attributes"][0]["state"] = json!(1);
        }
    }
    let job = uverbs(&hosts, &["--hosts", "n[1-2]"]);
    let said = "uverbs: NCCL can use no port of these hosts\n";
    assert!(job.stderr.contains(said) && job.status == 1, "{job:?}");
    assert!(!job.stderr.contains("which of them to leave out"), "{job:?}");
    // Of hosts of which nothing was read it is not known.
    for list in ["n[1-3]", "n9"] {
        let job = uverbs(&hosts, &["--hosts", list]);
        assert!(
            job.stderr.contains("nor which of them to leave out, as far as is known"),
            "{job:?}"
        );
    }
}

/// A host of a job is one host, however many snapshots of it there are.
#[test]
fn two_snapshots_of_a_host() {
    let mut hosts = nodes(1..=3);
    hosts.push(node(1));
    let run = uverbs(&hosts, &["--hosts", "n[1-3]"]);
    let note = "uverbs: left out, as another snapshot of the host was read before: n1\n";
    assert!(run.stderr.contains(note) && !run.stderr.contains("leave out"), "{run:?}");
    assert!(run.stderr.contains("NCCL: right on all hosts, as far as is known: "), "{run:?}");
    assert_eq!((run.stdout.lines().count(), run.status), (1, 1), "{run:?}");
    let run = uverbs(&hosts, &[]);
    assert!(run.stdout.contains(" port GUIDs from ") && run.stdout.contains(" addresses from "));
    // Other commands count it again and say so, and a file that is expected is of three hosts.
    let fleet = Fleet::new(&hosts);
    for command in ["check", "choose"] {
        let run = fleet.uverbs(&[command]);
        let said = "node3.json: another snapshot with the host name n1, counted as another host\n";
        assert_eq!(run.stderr.matches(" another snapshot ").count(), 1, "{run:?}");
        assert!(run.stderr.contains(said), "{run:?}");
    }
    let run = fleet.uverbs(&["expect"]);
    assert!(run.stdout.contains("from 3 hosts (n1, n2, n3).\n"), "{run:?}");
    // Two hosts may have one name.
    for own in &mut hosts {
        own["host"] = json!("localhost");
    }
    let run = Fleet::new(&hosts).uverbs(&["expect"]);
    assert!(run.stdout.contains("from 3 hosts (localhost, localhost, localhost).\n"), "{run:?}");
}

/// A host that was not asked for its name and kernel (`uname` was refused) has `?` for the name, and in older snapshots
/// for the kernel.
#[test]
fn a_host_whose_name_and_kernel_were_not_read() {
    let mut hosts = nodes(1..=4);
    for own in &mut hosts[..2] {
        (own["host"], own["kernel"]) = (json!("?"), json!("?"));
    }
    let run = uverbs(&hosts, &[]);
    let end = "no host is known to be odd; the ports of 2 rails can meet; not everything is known of 2 hosts\n";
    assert!(run.stderr.ends_with(end), "{run:?}");
    assert_eq!((run.stdout.lines().count(), run.status), (1, 1), "{run:?}");
    // They may be two hosts: each has the name of its file.
    let run = Fleet::new(&hosts).uverbs(&["choose"]);
    assert!(!run.stderr.contains("another snapshot") && run.status == 0, "{run:?}");
    let files = run.stdout.lines().filter(|line| line.contains(".json "));
    assert_eq!(files.count(), 4, "{run:?}");
    // No host of a job is called so.
    let run = uverbs(&hosts, &["--hosts", "n3,n4,?"]);
    assert!(run.status != 0 && !run.stderr.contains("another snapshot"), "{run:?}");
}

/// What was not read is not the same as elsewhere.
#[test]
fn what_is_not_known_of_a_host_is_said() {
    let said = |change: fn(&mut Value)| {
        let mut hosts = nodes(1..=5);
        change(&mut hosts[1]["devices"][1]);
        let run = uverbs(&hosts, &[]);
        let end = "no host is known to be odd; the ports of 2 rails can meet; not everything is known of 1 host\n";
        assert!(run.stderr.ends_with(end) && run.status == 1, "{run:?}");
        let answer = Fleet::new(&hosts).json(&["fleet"]);
        assert_eq!((&answer["alike"], &answer["partly"]), (&json!(5), &json!(1)));
        let job = uverbs(&hosts, &["--hosts", "n[1-5]"]);
        assert!(job.stderr.ends_with(end), "{job:?}");
        job
    };
    // A job does not depend on these.
    for change in [
        (|own: &mut Value| own["fw_version"] = Value::Null) as fn(&mut Value),
        |own| {
            own["hardware"] = Value::Null;
        },
        |own| own["ports"][0]["attributes"][0]["active_mtu"] = Value::Null,
    ] {
        let job = said(change);
        assert!(job.stderr.contains("NCCL: right on all hosts: ") && job.status == 0, "{job:?}");
    }
    let unknown = "uverbs: not known: whether programs can open the devices of n2\n";
    let job = said(|own| own["access"] = Value::Null);
    assert!(job.stderr.contains(unknown) && job.status == 1, "{job:?}");
    assert!(job.stderr.contains("NCCL: right on all hosts, as far as is known: "), "{job:?}");
    // Where it was tried, and others could be opened, it is not known what programs do.
    let mut hosts = nodes(1..=5);
    hosts[1]["devices"][1]["access"] = json!({ "error": "Too many open files", "errno": 24 });
    let job = uverbs(&hosts, &["--hosts", "n[1-5]"]);
    assert!(job.stderr.contains(unknown) && job.status == 1, "{job:?}");
    let finding = "not-known  n2     mlx5_1:1  NCCL, UCX: which GID is used is not known\n";
    assert!(job.stdout.ends_with(finding), "{job:?}");
}

/// Where a recording could not be read it may have been that time, too: nothing is said of its host as if it were
/// known. What is said of another host names that one.
#[test]
fn a_recording_that_is_partly_read() {
    let folder = tempfile::tempdir().unwrap();
    let files = nodes(1..=2).into_iter().enumerate().map(|(number, own)| {
        let time = |second: u32| format!("2026-11-22T12:00:{second:02}.000Z");
        let head =
            json!({ "number": 0, "time": time(0), "monotonic_ns": 0, "goes_on": false });
        let next = json!({ "number": 1, "time": time(9), "monotonic_ns": 9_000_000_000_u64, "changes": [] });
        let garbage = ["", "garbage\n"][number];
        let file = folder.path().join(format!("{number}.jsonl"));
        fs::write(&file, format!("{}\n{next}\n{garbage}{}\n", begun(&own, &head), begun(&own, &head)))
            .unwrap();
        file
    });
    let files: Vec<_> = files.collect();
    let asked = |words: &[&str], time: &str| {
        let from = files.iter().flat_map(|file| ["--from".as_ref(), file.as_os_str()]);
        finish(program().args(words).args(from).args(["--at", time]))
    };
    let time = "2026-11-22T12:00:05Z";
    let fleet = asked(&["fleet"], time);
    let end = "no host is known to be odd; the ports of 2 rails can meet, as far as they were read; not everything is known of 1 host\n";
    assert!(fleet.status == 3 && fleet.stderr.ends_with(end), "{fleet:?}");
    let expect = asked(&["expect"], time).stdout;
    assert!(expect.contains("\n# Not read, or not as a whole: n2.\n"), "{expect}");
    // Labels are of one host.
    for (file, is_known) in files.iter().zip([true, false]) {
        let nfd = finish(program().arg("nfd").arg("--from").arg(file).args(["--at", time]));
        // What was so may be so no more.
        for label in ["uverbs-devices=2", "uverbs-roce=true", "uverbs-roce-v2-ipv4=true"] {
            assert_eq!(nfd.stdout.contains(&format!("{label}\n")), is_known, "{label}: {nfd:?}");
        }
    }
    let check = asked(&["check"], time);
    assert!(!check.stdout.contains("host-unreadable"), "{check:?}");
    for command in ["devices", "gids", "ports", "guids", "pkeys", "metrics", "choose", "check"] {
        let run = asked(&[command], time);
        let notes = run.stderr.lines().filter(|line| line.contains("as it was"));
        let expected = ["n1", "n2"]
            .map(|host| format!("uverbs: {host}: as it was at 2026-11-22T12:00:05.000Z"));
        assert_eq!(notes.collect::<Vec<_>>(), expected, "{command}");
    }
    // The last moment is known.
    let fleet = asked(&["fleet"], "end");
    assert!(fleet.stderr.ends_with("no host is odd; the ports of 2 rails can meet\n"), "{fleet:?}");
    assert!(!asked(&["expect"], "end").stdout.contains("# Not read"));
}

/// Nor is it where it was read on no host.
#[test]
fn what_is_not_known_of_any_host_is_said() {
    let mut hosts = nodes(1..=5);
    for device in hosts.iter_mut().flat_map(|own| own["devices"].as_array_mut().unwrap()) {
        device["ports"][0]["attributes"][0]["active_mtu"] = Value::Null;
    }
    let run = uverbs(&hosts, &[]);
    assert!(run.stderr.contains("; no host is known to be odd; "), "{run:?}");
    assert!(run.stderr.ends_with("; not everything is known of 5 hosts\n"), "{run:?}");
    assert_eq!(run.status, 1, "{run:?}");
}

#[test]
fn a_fleet_that_is_well() {
    let hosts = nodes(1..=5);
    let run = uverbs(&hosts, &[]);
    assert_eq!(run.stdout, "FINDING  HOSTS  WHERE  SEEN\n");
    let last = "looked at 5 hosts: 10 devices, 10 ports, 40 GIDs; no host is odd; the ports of 2 rails can meet";
    assert_eq!((run.stderr, run.status), (format!("uverbs: {last}\n"), 0));
    let answer = Fleet::new(&hosts).json(&["fleet"]);
    let rest = json!({
        "fleet": [], "hosts": 5, "alike": 5, "partly": 0, "rails": "names", "joined": 2, "problems": [],
    });
    assert_eq!(answer, rest);
}

/// Ports of rails are in different networks, which routers may join.
#[test]
fn all_to_all() {
    let hosts = nodes(1..=5);
    let run = uverbs(&hosts, &["--all-to-all"]);
    let line = "not-known  5 hosts: n1, n2, n3 and 2 more  mlx5_1:1  only if a router joins them: 10.1.0.0/24 against 10.0.0.0/24 (each with 4 other hosts)\n";
    assert!(run.stdout.ends_with(line), "{run:?}");
    assert!(
        run.stderr.ends_with("no host is odd; it is not known whether all ports can meet\n"),
        "{run:?}"
    );
    assert_eq!(run.status, 1);
    let run = uverbs(&hosts, &["--all-to-all", "--routed"]);
    assert!(run.stderr.ends_with("no host is odd; all ports can meet\n"), "{run:?}");
    assert_eq!(run.status, 0);
}

/// What is shown of the others is what one of them has, as most do, and not all.
#[test]
fn others_of_several_kinds() {
    let mut hosts = nodes(1..=6);
    for own in &mut hosts[3..5] {
        own["devices"][0]["ports"][0]["attributes"][0]["active_mtu"] = json!(4);
    }
    let rows = hosts[5]["devices"][0]["gids"].as_array_mut().unwrap();
    rows.retain(|row| row["gid_type"] == 1);
    let run = uverbs(&hosts, &[]);
    let line = "roce_v1 against roce_v2 (n1, one of 5 hosts)\n";
    assert!(run.stdout.contains(line), "{run:?}");
}

/// One document a line, on standard input.
#[test]
fn a_stream() {
    let mut hosts = nodes(1..=3);
    hosts[2] = with_networks(3, ["10.9.0", "10.1.0"]);
    let lines: Vec<String> = hosts.iter().map(Value::to_string).collect();
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("all");
    fs::write(&file, lines.join("\n")).unwrap();
    let input = fs::File::open(&file).unwrap();
    let run = finish(program().args(["fleet", "--from", "-"]).stdin(input));
    let line = "not-known  n3     mlx5_0:1  only if a router joins them: 10.9.0.0/24 against 10.0.0.0/24 (2 hosts, as n1)\n";
    assert!(run.stdout.ends_with(line), "{run:?}");
    assert_eq!((run.stdout, run.stderr), {
        let run = uverbs(&hosts, &[]);
        (run.stdout, run.stderr)
    });
}

/// What could not be read is never fine.
#[test]
fn what_could_not_be_read() {
    let mut hosts = nodes(1..=3);
    hosts[1]["devices"][0]["gids"] = json!({ "error": "mlx5_0: query GID table: no", "errno": 5 });
    for words in [&[] as &[&str], &["--hosts", "n[1-3]"]] {
        let run = uverbs(&hosts, words);
        let line = "not-known  n2     mlx5_0:1  which GID is used is not known\n";
        assert!(run.stdout.ends_with(line), "{run:?}");
        assert!(run.stderr.contains("uverbs: n2: mlx5_0: query GID table: no\n"), "{run:?}");
        assert_eq!(run.status, 3);
    }
    let known = "uverbs: NCCL: right on all hosts, among what was read, as far as is known: ";
    assert!(uverbs(&hosts, &["--hosts", "n[1-3]"]).stderr.contains(known));
    // What is no device's may matter to each.
    let mut hosts = nodes(1..=3);
    hosts[1]["problems"] = json!([{ "error": "host: read: no", "errno": 5 }]);
    let run = uverbs(&hosts, &["--hosts", "n[1-3]"]);
    assert!(run.stderr.contains("; the ports of 2 rails can meet, as far as they were read; "));
    assert_eq!(run.status, 3, "{run:?}");
    let fleet = Fleet::new(&nodes(1..=3));
    fs::write(fleet.file(1), "{").unwrap();
    let run = fleet.uverbs(&["fleet"]);
    assert!(run.stderr.ends_with("; 1 snapshot could not be read\n"), "{run:?}");
    assert_eq!((run.stdout.lines().count(), run.status), (1, 3));
    // Interfaces that are not known prove nothing.
    let mut hosts = nodes(1..=3);
    hosts[1]["interfaces"] = Value::Null;
    let run = uverbs(&hosts, &[]);
    assert!(run.stdout.contains("not-known  n2     mlx5_0:1, mlx5_1:1  "), "{run:?}");
    assert_eq!(run.status, 1);
}

#[test]
fn the_hosts_of_a_job() {
    let mut hosts = nodes(1..=9);
    // Odd in what does not matter to a job; programs take a wrong GID, which the job can set.
    hosts[1]["kernel"] = json!("6.1.0");
    set(&mut hosts[1], "NCCL_IB_GID_INDEX", "1", None);
    // Not of the job.
    hosts[8]["devices"][0]["ports"][0]["attributes"][0]["state"] = json!(1);
    let run = uverbs(&hosts, &["--hosts", "n[1-8]"]);
    assert_eq!(
        run.stderr,
        "\
uverbs: NCCL: right on all hosts: NCCL_IB_GID_INDEX=3
uverbs: UCX: right on all hosts: UCX_IB_GID_INDEX=3
uverbs: looked at 8 hosts: 16 devices, 16 ports, 64 GIDs; 1 host is odd; the ports of 2 rails can meet with these variables
"
    );
    assert_eq!(run.status, 0);
    let line = "odd          n2     mlx5_0:1, mlx5_1:1  GID index of NCCL: 1, most have 3; NCCL_IB_GID_INDEX: \"1\", most have it not set; kernel: 6.1.0, most have 6.12.0\n";
    assert!(run.stdout.ends_with(line), "{run:?}");
    assert!(run.stdout.contains("  NCCL: IPv6 against IPv4 (7 hosts, as n1)\n"), "{run:?}");
    // Those that are left out are among the hosts that were looked at, whose programs take what they take now.
    let mut without = hosts.clone();
    without[4]["devices"][0]["ports"][0]["attributes"][0]["state"] = json!(1);
    let run = uverbs(&without, &["--hosts", "n[1-8]"]);
    assert!(run.stderr.starts_with("uverbs: leave out n5\n"), "{run:?}");
    assert!(run.stderr.ends_with("; not all ports of 2 rails can meet\n"), "{run:?}");
    // Some have to be left out.
    let run = uverbs(&hosts, &["--hosts", "n[1-3,09],m[1-2]"]);
    let missing = "missing      3 hosts: n09, m1, m2  -                   no snapshot was read\n";
    assert!(run.stdout.contains(missing), "{run:?}");
    assert!(
        run.stderr.starts_with(
            "uverbs: leave out n09, m1, m2\nuverbs: NCCL: right on the others: NCCL_IB_GID_INDEX=3\n"
        ),
        "{run:?}"
    );
    assert_eq!(run.status, 1);
    let run = uverbs(&hosts, &["--hosts", "n[1-3,9]", "--json"]);
    let answer: Value = serde_json::from_str(&run.stdout).unwrap();
    let job = json!({
        "is_known": true, "leave_out": ["n9"], "nccl": { "NCCL_IB_GID_INDEX": "3" },
        "ucx": { "UCX_IB_GID_INDEX": "3" },
    });
    assert_eq!((&answer["job"], run.status), (&job, 1));
    // What keeps a program from its own transport is of no other program.
    let mut by_tcp = hosts.clone();
    set(&mut by_tcp[2], "UCX_TLS", "tcp", None);
    set(&mut hosts[2], "NCCL_IB_DISABLE", "1", None);
    for (hosts, said) in [
        (
            &hosts,
            "\
uverbs: NCCL_IB_DISABLE is set: NCCL may use other ports or GIDs, or no RDMA
uverbs: NCCL: right on all hosts, as far as is known: NCCL_IB_GID_INDEX=3
uverbs: UCX: right on all hosts: UCX_IB_GID_INDEX=3
",
        ),
        (
            &by_tcp,
            "\
uverbs: UCX_TLS is set: UCX may use other ports or GIDs, or no RDMA
uverbs: NCCL: right on all hosts: NCCL_IB_GID_INDEX=3
uverbs: UCX: right on all hosts, as far as is known: UCX_IB_GID_INDEX=3
",
        ),
    ] {
        let run = uverbs(hosts, &["--hosts", "n[1-8]"]);
        assert!(run.stderr.starts_with(said), "{run:?}");
        assert_eq!(run.status, 1);
    }
    // None of them was read.
    let run = uverbs(&hosts, &["--hosts", "m1"]);
    assert_eq!(run.status, 1, "{run:?}");
    assert!(run.stderr.ends_with("looked at 0 hosts: 0 devices, 0 ports, 0 GIDs\n"), "{run:?}");
}

/// A host's own name may have a domain.
#[test]
fn names_with_a_domain() {
    let mut hosts = nodes(1..=2);
    hosts[0]["host"] = json!("n1.cluster.example");
    for (list, status) in [("n1,n2", 0), ("n1.cluster.example,n2", 0), ("n1.elsewhere,n2", 1)] {
        assert_eq!(uverbs(&hosts, &["--hosts", list]).status, status, "{list}");
    }
}

#[test]
fn a_list_that_is_none() {
    for list in ["", "n[1-", "n[3-1]", "n1,,n2"] {
        let run = uverbs(&nodes(1..=1), &["--hosts", list]);
        assert_eq!((run.stdout.as_str(), run.status), ("", 3), "{run:?}");
        assert!(run.stderr.contains("expected hosts as n[1-3,07],m5"), "{run:?}");
    }
}

#[test]
fn what_is_there_twice() {
    let mut hosts = nodes(1..=4);
    hosts[2]["devices"][0]["node_guid"] = hosts[1]["devices"][0]["node_guid"].clone();
    let run = uverbs(&hosts, &[]);
    let line = "duplicate  2 hosts: n2, n3  -      the same node GUID 0x0000020000000020\n";
    assert!(run.stdout.ends_with(line), "{run:?}");
    assert_eq!(run.status, 1);
}

/// A job keeps the host whose address another one has had.
#[test]
fn a_row_that_is_left_of_another_address() {
    let mut hosts = nodes(1..=3);
    let rows = hosts[0]["devices"][0]["gids"].as_array_mut().unwrap();
    let mut row = rows[3].clone();
    (row["index"], row["gid"]) = (json!(4), json!("::ffff:10.0.0.2"));
    rows.push(row);
    for words in [&[] as &[&str], &["--hosts", "n[1-3]"]] {
        let run = uverbs(&hosts, words);
        assert_eq!((run.stdout.lines().count(), run.status), (1, 0), "{run:?}");
    }
    // The row's interface came while the host was read: the address may be there.
    let rows = hosts[0]["devices"][0]["gids"].as_array_mut().unwrap();
    (rows[4]["ifindex"], rows[4]["netdev"]) = (json!(9), json!({ "index": 9, "name": "eth9" }));
    let run = uverbs(&hosts, &["--hosts", "n[1-3]"]);
    let note = "not known: whether these have the same address 10.0.0.2: n1, n2\n";
    assert!(run.stderr.contains(note) && run.status == 1, "{run:?}");
    let run = uverbs(&hosts, &["--hosts", "n[1,3]"]);
    assert_eq!(run.status, 0, "{run:?}");
}

/// A GUID that could not be read may be another host's, too.
#[test]
fn a_port_s_guid_that_could_not_be_read() {
    let mut hosts = nodes(1..=2);
    hosts[1]["devices"][0]["ports"][0]["guid"] = json!({ "error": "mlx5_0: no", "errno": 5 });
    let run = uverbs(&hosts, &[]);
    assert!(
        run.stderr.starts_with(
            "uverbs: n2: mlx5_0: no
"
        ),
        "{run:?}"
    );
    assert!(run.stderr.contains("; no host is known to be odd; "), "{run:?}");
    assert!(run.stderr.ends_with("; not everything is known of 1 host\n"), "{run:?}");
    assert_eq!(run.status, 3);
    let run = uverbs(&hosts, &["--hosts", "n[1-2]", "--json"]);
    let answer: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((&answer["job"]["is_known"], run.status), (&json!(false), 3));
}

/// A long list has a few lines of each kind.
#[test]
fn many_odd_hosts() {
    let mut hosts = nodes(1..=60);
    for (number, own) in hosts.iter_mut().enumerate().take(50) {
        own["kernel"] = json!(format!("6.12.{}", 1 + number / 2));
    }
    let run = uverbs(&hosts, &[]);
    assert_eq!(run.stdout.lines().count(), 21);
    assert!(run.stdout.contains("\nodd      2 hosts: n1, n2  "), "{run:?}");
    assert!(run.stdout.contains("kernel: 6.12.1, 10 hosts have 6.12.0"), "{run:?}");
    assert!(run.stderr.contains("uverbs: 5 more of odd; --json has all\n"), "{run:?}");
    let answer = Fleet::new(&hosts).json(&["fleet"]);
    assert_eq!(answer["fleet"].as_array().unwrap().len(), 25);
}

/// What is said of a job's hosts covers each of them.
#[test]
fn a_job_is_right_on_each_host_or_leaves_it_out() {
    let job = |hosts: &[Value], list: &str| {
        let run = uverbs(hosts, &["--hosts", list, "--json"]);
        let answer: Value = serde_json::from_str(&run.stdout).unwrap();
        (answer["job"].clone(), run.status)
    };
    // No device, and no active port.
    let mut hosts = nodes(1..=3);
    hosts[2]["devices"] = json!([]);
    assert_eq!(job(&hosts, "n[1-3]").0["leave_out"], json!(["n3"]));
    let mut hosts = nodes(1..=3);
    for device in hosts[2]["devices"].as_array_mut().unwrap() {
        device["ports"][0]["attributes"][0]["state"] = json!(1);
    }
    assert_eq!(job(&hosts, "n[1-3]").0["leave_out"], json!(["n3"]));
    // Ports that NCCL never takes, and those that UCX does not.
    let mut hosts = nodes(1..=3);
    for device in hosts[2]["devices"].as_array_mut().unwrap() {
        device["ports"][0]["number"] = json!(256);
        let rows = device["gids"].as_array_mut().unwrap();
        for row in rows {
            row["port"] = json!(256);
        }
    }
    assert_eq!(job(&hosts, "n[1-3]").0["leave_out"], json!(["n3"]));
    let mut hosts = nodes(1..=3);
    for device in hosts.iter_mut().flat_map(|own| own["devices"].as_array_mut().unwrap()) {
        with_third_port(device);
    }
    let (own, status) = job(&hosts, "n[1-3]");
    assert_eq!((&own["leave_out"], &own["ucx"], status), (&json!([]), &Value::Null, 1), "{own}");
    // What was not read may be what it asks for.
    let mut hosts = nodes(1..=3);
    for device in hosts[2]["devices"].as_array_mut().unwrap() {
        with_third_port(device);
        device["gids"] = json!({ "error": "no table", "errno": 5 });
    }
    assert_eq!(job(&hosts, "n[1-3]").0["ucx"], json!({ "UCX_IB_GID_INDEX": "3" }));
    // One address twice: one of the hosts can stay.
    let mut hosts = nodes(1..=3);
    hosts[2] = with_networks(3, ["10.0.0", "10.1.0"]);
    let text = hosts[2].to_string().replace("10.0.0.3", "10.0.0.1");
    hosts[2] = serde_json::from_str(&text).unwrap();
    assert_eq!(job(&hosts, "n[1-3]").0["leave_out"], json!(["n3"]));
    // A GID that is not proven to be the host's, where there is nothing to compare with.
    let mut hosts = nodes(1..=1);
    for row in hosts[0]["devices"][0]["gids"].as_array_mut().unwrap() {
        row["netdev"] = Value::Null;
    }
    let (one, status) = job(&hosts, "n1");
    assert_eq!((&one["is_known"], status), (&json!(false), 1));
    // Rails are networks, and a port that was perhaps never connected has a name of its own.
    let mut hosts = nodes(1..=5);
    for own in &mut hosts[..2] {
        (own["devices"][0]["name"], own["devices"][1]["name"]) = (json!("mlx5_1"), json!("mlx5_0"));
    }
    let spare = &mut hosts[4]["devices"][1];
    spare["name"] = json!("mlx5_7");
    spare["ports"][0]["attributes"][0]["state"] = json!(1);
    let (own, status) = job(&hosts, "n[1-5]");
    assert_eq!((&own["leave_out"], &own["is_known"], status), (&json!([]), &json!(false), 1));
    let run = uverbs(&hosts, &[]);
    let line =
        "not-known  n5     mlx5_7:1        the port is down, not active, and may be in use\n";
    assert!(run.stdout.contains(line), "{run:?}");
    // Settings that could not be read, and another transport.
    let mut hosts = nodes(1..=3);
    hosts[2]["unread_settings"] = json!([{ "error": "nccl.conf: no", "errno": 13 }]);
    let (own, _) = job(&hosts, "n[1-3]");
    assert_eq!(own["is_known"], json!(false));
    assert_eq!(own["nccl"], json!({ "NCCL_IB_GID_INDEX": "3" }));
    let run = uverbs(&hosts, &["--hosts", "n[1-3]"]);
    assert!(run.stderr.contains("nccl.conf: no: what NCCL does may be something else"), "{run:?}");
    assert!(run.stderr.contains("; not everything is known of 1 host"), "{run:?}");
}

/// Where none is like most, those that are alike stay.
#[test]
fn a_job_of_two_kinds_of_hosts() {
    let mut hosts = nodes(1..=5);
    // A container's address is in the rows where others have the host's own: NCCL would choose that.
    for own in &mut hosts[3..] {
        for device in own["devices"].as_array_mut().unwrap() {
            let rows = device["gids"].as_array_mut().unwrap();
            let more: Vec<Value> = rows[2..].to_vec();
            for row in &mut rows[2..] {
                row["gid"] = json!(
                    row["gid"]
                        .as_str()
                        .unwrap()
                        .replace(".0.0.", ".0.0.10")
                        .replace(".1.0.", ".1.0.10")
                );
                row["ifindex"] = json!(77);
                row["netdev"] = Value::Null;
                row["netdev_is_elsewhere"] = json!(true);
            }
            for mut row in more {
                row["index"] = json!(row["index"].as_u64().unwrap() + 2);
                rows.push(row);
            }
        }
    }
    for (list, left_out) in [("n[1-5]", json!(["n4", "n5"])), ("n[1-2,4-5]", json!(["n4", "n5"]))] {
        let run = uverbs(&hosts, &["--hosts", list, "--json"]);
        let answer: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(answer["job"]["leave_out"], left_out, "{list}: {}", answer["job"]);
        assert_eq!(answer["job"]["nccl"], json!({ "NCCL_IB_GID_INDEX": "3" }), "{list}");
    }
}

/// Without a host that is left out, rails are names, and another host is of other networks.
#[test]
fn what_shows_only_without_some_hosts() {
    let swapped = |number| with_networks(number, ["10.1.0", "10.0.0"]);
    let mut hosts = nodes(1..=11);
    (hosts[1], hosts[2]) = (swapped(2), swapped(3));
    let run = uverbs(&hosts, &["--hosts", "n[1-11]"]);
    assert_eq!(run.status, 0, "rails are networks: {run:?}");
    hosts[2]["devices"][0]["ports"][0]["attributes"][0]["state"] = json!(1);
    let run = uverbs(&hosts, &["--hosts", "n[1-11]"]);
    assert!(!run.stdout.contains(" n2 "), "{run:?}");
    let said = "uverbs: without hosts that are left out: n2: mlx5_0:1, mlx5_1:1: \
                mlx5_0:1: only if a router joins them: 10.1.0.0/24 against 10.0.0.0/24 (9 hosts, as n1)\n";
    assert!(run.stderr.contains(said), "{run:?}");
    assert!(run.stderr.contains("leave out n3, as far as is known\n"), "{run:?}");
    assert_eq!(run.status, 1);
}

/// Two hosts whose short names are one.
#[test]
fn a_short_name_of_two_hosts() {
    let mut hosts = nodes(1..=3);
    hosts[0]["host"] = json!("n1.a");
    hosts[2]["host"] = json!("n1.b");
    let run = uverbs(&hosts, &["--hosts", "n1,n2"]);
    assert!(run.stderr.contains("looked at 2 hosts"), "{run:?}");
    assert!(
        run.stderr
            .contains("another host of this short name was read before: n1.b; list full names"),
        "{run:?}"
    );
    assert_eq!(run.status, 1);
    assert_eq!(uverbs(&hosts, &["--hosts", "n1.a,n2"]).status, 0);
    // Only the other one has a longer name.
    hosts[2]["host"] = json!("n1");
    let run = uverbs(&hosts, &["--hosts", "n1,n2"]);
    assert!(run.stderr.contains("read before: n1; leave out the other snapshot\n"), "{run:?}");
    assert_eq!(run.status, 1);
}

/// The rows about ports that do not meet, as `hosts places seen`.
fn not_meeting(hosts: &[Value], words: &[&str]) -> Vec<String> {
    let answer = Fleet::new(hosts).json(&[&["fleet"], words].concat());
    let rows = answer["fleet"].as_array().unwrap().iter();
    let rows =
        rows.filter(|row| ["cannot-meet", "not-known"].contains(&row["finding"].as_str().unwrap()));
    let list = |own: &Value| {
        let own = own.as_array().unwrap().iter().map(|own| own.as_str().unwrap());
        own.collect::<Vec<_>>().join(",")
    };
    rows.map(|row| {
        let seen = row["seen"].as_str().unwrap();
        format!("{} {} {seen}", list(&row["hosts"]), list(&row["ports"]))
    })
    .collect()
}

/// An index is sent as one byte, so that nobody uses a row above 255.
#[test]
fn rows_above_255_meet_nobody() {
    let far = |number: u32, index: u32| {
        let mut own = node(number);
        for device in own["devices"].as_array_mut().unwrap() {
            device["ports"][0]["attributes"][0]["gid_tbl_len"] = json!(1024);
            device["gids"][3]["index"] = json!(index);
        }
        own
    };
    let words = |index: u32| {
        let mut hosts = [far(1, index), far(2, index)];
        for own in &mut hosts {
            set(own, "NCCL_IB_GID_INDEX", &index.to_string(), None);
        }
        let run = uverbs(&hosts, &["--hosts", "n[1-2]"]);
        let not_meeting = not_meeting(&hosts, &[]);
        (run.status, not_meeting.iter().any(|own| own.contains("no usable GID")))
    };
    assert_eq!(words(255), (0, false));
    assert_eq!(words(256), (1, true));
}

/// What a line says is so of each of its hosts, ports and choices.
#[test]
fn a_line_is_true_of_all_that_it_names() {
    // Each program has a GID on one port.
    let mut hosts = nodes(1..4);
    set(&mut hosts[0], "NCCL_IB_GID_INDEX", "3", None);
    set(&mut hosts[0], "UCX_IB_GID_INDEX", "5", None);
    for row in hosts[0]["devices"][0]["gids"].as_array_mut().unwrap() {
        row["index"] = json!(row["index"].as_u64().map(|own| own + if own > 1 { 2 } else { 0 }));
    }
    assert_eq!(
        not_meeting(&hosts, &[]),
        ["n1 mlx5_0:1 NCCL: no usable GID", "n1 mlx5_1:1 UCX: no usable GID"]
    );
    // A program that is left none, whatever it would choose.
    let mut hosts = nodes(1..4);
    set(&mut hosts[0], "NCCL_IB_HCA", "mlx5_7:1", None);
    assert_eq!(
        not_meeting(&hosts, &[]),
        ["n1 mlx5_0:1,mlx5_1:1 NCCL: its list of devices leaves it no active port"]
    );
    // Two ports with other states.
    let mut hosts = nodes(1..4);
    for (device, state) in [(0, 1), (1, 3)] {
        hosts[0]["devices"][device]["ports"][0]["attributes"][0]["state"] = json!(state);
    }
    assert_eq!(
        not_meeting(&hosts, &[]),
        ["n1 mlx5_0:1 the port is down, not active", "n1 mlx5_1:1 the port is armed, not active"]
    );
    // Where all are joined, two hosts that each have another port.
    let mut hosts = nodes(1..5);
    for (device, host) in hosts.iter_mut().take(2).enumerate() {
        host["devices"][device]["gids"] = json!([]);
    }
    let none = "no usable GID";
    assert_eq!(
        not_meeting(&hosts, &["--all-to-all", "--routed"]),
        [format!("n1 mlx5_0:1 {none}"), format!("n2 mlx5_1:1 {none}")]
    );
    // Of each rail the networks are others, and so are those of each odd host.
    let mut hosts = nodes(1..4);
    hosts.push(with_networks(4, ["10.4.0", "10.5.0"]));
    let routed = "only if a router joins them";
    assert_eq!(
        not_meeting(&hosts, &[]),
        [format!(
            "n4 mlx5_0:1,mlx5_1:1 mlx5_0:1: {routed}: 10.4.0.0/24 against 10.0.0.0/24 (3 hosts, as n1)"
        )]
    );
    hosts.push(with_networks(5, ["10.6.0", "10.7.0"]));
    assert_eq!(
        not_meeting(&hosts, &[]),
        [format!(
            "n4,n5 mlx5_0:1,mlx5_1:1 n4 mlx5_0:1: {routed}: 10.4.0.0/24 against 10.0.0.0/24 (3 hosts, as n1)"
        )]
    );
}

/// Of a port it is said only what is so of the ports of other hosts that it is joined with.
#[test]
fn a_host_s_own_ports_are_no_others() {
    let keep = |host: &mut Value, device: usize, index: u64| {
        let rows = host["devices"][device]["gids"].as_array_mut().unwrap();
        rows.retain(|row| row["index"] == index);
    };
    // The first port of n1 is of RoCE v1 only, the second of v2 as is n2's, which has one device.
    let mut hosts = nodes(1..3);
    keep(&mut hosts[0], 0, 2);
    keep(&mut hosts[0], 1, 3);
    keep(&mut hosts[1], 1, 3);
    hosts[1]["devices"].as_array_mut().unwrap().remove(0);
    let seen = not_meeting(&hosts, &["--all-to-all", "--routed"]);
    let types = |seen: &&String| seen.contains("against");
    assert!(seen.iter().any(|own| types(&own)), "{seen:?}");
    assert!(!seen.iter().filter(types).any(|own| own.starts_with("n1 mlx5_1:1")), "{seen:?}");
    // The others are other hosts in each rail: n1 on one, n2 on the other.
    let mut hosts = nodes(1..4);
    keep(&mut hosts[0], 0, 2);
    keep(&mut hosts[1], 1, 2);
    for (host, device) in [(0, 1), (1, 0), (2, 0), (2, 1)] {
        keep(&mut hosts[host], device, 3);
    }
    let seen = not_meeting(&hosts, &[]);
    let line =
        |place: &str| format!("{place} recommended, NCCL: roce_v1 against roce_v2 (2 hosts, as ");
    for place in ["n1 mlx5_0:1", "n2 mlx5_1:1"] {
        assert!(seen.iter().any(|own| own.starts_with(&line(place))), "{seen:?}");
    }
}

/// What is said of the others is not said of those that have something else.
#[test]
fn an_example_of_the_others_is_no_host_of_the_line() {
    let mut hosts = nodes(1..4);
    for device in hosts.iter_mut().flat_map(|host| host["devices"].as_array_mut().unwrap()) {
        device["gids"].as_array_mut().unwrap().retain(|row| row["index"].as_u64().unwrap() < 2);
    }
    hosts.extend((4..8).map(|number| {
        let mut text = with_networks(number, ["10.0.0", "10.1.0"]).to_string();
        for (rail, byte) in [(0, "fd"), (1, "fc")] {
            let own = format!("10.{rail}.0.{number}");
            let other = format!("{byte}0{number}::1");
            text = text.replace(&format!("::ffff:{own}"), &other).replace(&own, &other);
        }
        serde_json::from_str(&text).unwrap()
    }));
    let line = |network: &str| {
        format!(
            "only on one link: roce_v2 link-local IPv6 against roce_v2 {network} (n4, one of 6 hosts)"
        )
    };
    let seen = not_meeting(&hosts, &["--routed"]);
    assert!(seen.iter().any(|own| own.contains(&line("fd04::/24"))), "{seen:?}");
    assert!(!seen.iter().any(|own| own.contains("roce_v2 link-local IPv6 (each")), "{seen:?}");
}
