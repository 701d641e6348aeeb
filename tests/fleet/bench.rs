//! What a fleet costs: `choose`, `env` and `check` on snapshots of 1,000 hosts with 8 RoCE ports each.
//!
//! `cargo bench --bench fleet --profile command` prints CPU time and, if valgrind is installed,
//! instructions. It asserts nothing: a loaded machine is no failure. `FLEET_HOSTS` sets another number of
//! hosts.
#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// A host with 8 ports of 8 GIDs, whose addresses are its own.
fn snapshot(host: usize) -> String {
    let (mut devices, mut interfaces) = (Vec::new(), Vec::new());
    for port in 0..8usize {
        let (ifindex, name) = (port + 2, format!("eth{port}"));
        let address = format!("10.{port}.{}.{}", host / 250, host % 250 + 1);
        let (local, global) = (format!("fe80::{port}:{host:x}"), format!("fd00:{port}::{host:x}"));
        let gids: Vec<String> = [&local, &format!("::ffff:{address}"), &global, &local]
            .into_iter()
            .enumerate()
            .flat_map(|(place, gid)| (0..2).map(move |version| (2 * place + version, gid)))
            .map(|(index, gid)| {
                format!(
                    r#"{{"port":1,"index":{index},"gid":"{gid}","gid_type":{},"ifindex":{ifindex},"sysfs_netdev":null,"source":"ioctl","netdev":{{"index":{ifindex},"name":"{name}"}},"type_is_hidden":false}}"#,
                    index % 2 + 1
                )
            })
            .collect();
        devices.push(format!(
            r#"{{"name":"mlx5_{port}","index":{port},"node_type":1,"node_guid":"0x0002c90300000004","sys_image_guid":"0x0002c90300000004","fw_version":"28.39.2048","protocol":"roce","driver":1,"node":{{"name":"uverbs{port}","path":"/dev/infiniband/uverbs{port}","number":59328}},"node_mode":8630,"access":true,"ports":[{{"number":1,"attributes":[{{"state":4,"phys_state":5,"link_layer":2,"max_mtu":5,"active_mtu":5,"lid":0,"sm_lid":0,"sm_sl":0,"lmc":0,"gid_tbl_len":255,"pkey_tbl_len":128,"active_width":2,"active_speed":128,"port_cap_flags":67174400,"port_cap_flags2":0,"max_msg_sz":1073741824,"bad_pkey_cntr":0,"qkey_viol_cntr":0,"max_vl_num":1,"subnet_timeout":0,"init_type_reply":0,"flags":1}},"ioctl"],"effective":4000,"guid":"0x0002c90300000004","netdev":{{"index":{ifindex},"name":"{name}"}},"pkeys":null}}],"gids":[{}]}}"#,
            gids.join(",")
        ));
        interfaces.push(format!(
            r#"{{"index":{ifindex},"name":"{name}","is_up":true,"is_lower_up":true,"mtu":9000,"mac":"02:11:22:33:44:55","addresses":[["{address}",16],["{global}",64],["{local}",64]]}}"#
        ));
    }
    format!(
        r#"{{"schema_version":1,"host":"node{host}","kernel":"6.12.0","modules":["ib_core","ib_uverbs"],"shares_namespaces":true,"has_netlink":true,"devices":[{}],"absences":[],"interfaces":[{}],"settings":[],"problems":[]}}"#,
        devices.join(","),
        interfaces.join(",")
    )
}

/// CPU time of all children so far, in hundredths of a second.
fn cpu() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields = stat.rsplit_once(')').unwrap().1.split_whitespace().skip(13).take(2);
    fields.map(|field| field.parse::<u64>().unwrap()).sum()
}

/// Runs the command on the files; the instructions, if valgrind counts them.
fn run(words: &[&str], folder: &Path, hosts: usize, counted: bool) -> Option<u64> {
    let program = env!("CARGO_BIN_EXE_uverbs");
    let mut command = if counted { Command::new("valgrind") } else { Command::new(program) };
    if counted {
        command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null", program]);
    }
    let files = (0..hosts).map(|host| folder.join(format!("{host}.json")));
    let output = command
        .args(words)
        .arg("--from")
        .args(files)
        .env_clear()
        .stdout(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    text.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok())
}

fn main() {
    // `cargo test --all-targets` runs benchmarks too, and there is nothing to test here.
    if !std::env::args().any(|word| word == "--bench") {
        return;
    }
    let hosts = std::env::var("FLEET_HOSTS").ok().and_then(|text| text.parse().ok());
    let hosts = hosts.unwrap_or(1000);
    let folder = tempfile::TempDir::new().unwrap();
    let mut bytes = 0;
    for host in 0..hosts {
        let text = snapshot(host);
        bytes += text.len();
        std::fs::write(folder.path().join(format!("{host}.json")), text).unwrap();
    }
    println!("{hosts} hosts, {} ports, {bytes} bytes of snapshots", 8 * hosts);
    let commands: [&[&str]; 5] = [
        &["choose"],
        &["choose", "--explain", "--json"],
        &["env", "nccl"],
        &["env", "ucx"],
        &["check"],
    ];
    for words in commands {
        let before = cpu();
        run(words, folder.path(), hosts, false);
        let time = cpu() - before;
        let mut line = format!("{:<24} {}.{:02} s of CPU", words.join(" "), time / 100, time % 100);
        if let Some(count) = run(words, folder.path(), hosts, true) {
            let _ = write!(line, ", {} million instructions", count / 1_000_000);
        }
        println!("{line}");
    }
}
