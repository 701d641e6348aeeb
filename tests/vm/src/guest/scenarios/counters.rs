//! Counters: ours are sysfs's and those of `rdma statistic`, one by one; also where sysfs has none.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use uverbs::host::Host;

use super::choices::Ending;
use super::metrics::Loopback;
use crate::lab::limited::Limit;
use crate::lab::{self, Namespace, run};

/// Counters by their names.
pub(super) type Numbers = BTreeMap<String, u64>;

/// The kernel's numbers of a port's counters of a group (`hw`, `pma`), by our command.
pub(super) fn ours(before: &[&str], port: &str, group: &str) -> Result<Numbers> {
    let text = run(&[before, &["uverbs", "counters", port, "--json"]].concat())?;
    let answer: Value = serde_json::from_str(&text)?;
    ensure!(answer["problems"] == serde_json::json!([]), "{text}");
    let rows = answer["counters"].as_array().context("no list")?;
    let rows = rows.iter().filter(|row| row["group"] == group && !row["port"].is_null());
    rows.map(|row| {
        let name = row["name"].as_str().context("no name")?;
        Ok((name.to_owned(), row["raw"].as_u64().context("no number")?))
    })
    .collect()
}

/// The same by sysfs; none if it has no such folder.
pub(super) fn by_sysfs(device: &str, folder: &str) -> Result<Numbers> {
    let folder = format!("/sys/class/infiniband/{device}/ports/1/{folder}");
    let Ok(entries) = fs::read_dir(&folder) else { return Ok(Numbers::new()) };
    let mut numbers = Numbers::new();
    for entry in entries {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name != "lifespan" {
            let text = fs::read_to_string(format!("{folder}/{name}"))?;
            numbers.insert(name, text.trim().parse()?);
        }
    }
    Ok(numbers)
}

/// The same by iproute2.
pub(super) fn by_rdma(before: &[&str], device: &str) -> Result<Numbers> {
    let link = format!("{device}/1");
    let text = run(&[before, &["rdma", "-j", "statistic", "show", "link", &link]].concat())?;
    let answer: Value = serde_json::from_str(&text).with_context(|| text.clone())?;
    let row = answer[0].as_object().context("no object")?;
    let row = row.iter().filter(|(name, _)| !["ifname", "ifindex", "port"].contains(&&***name));
    row.map(|(name, value)| Ok((name.clone(), value.as_u64().context("no number")?))).collect()
}

/// All agree, value by value, while nothing is counted.
fn agree() -> Result<(Numbers, Numbers)> {
    let mut agreed = None;
    lab::wait_until("nothing is counted", || {
        let read = || -> Result<_> {
            let before = (ours(&[], "rxe0:1", "hw")?, ours(&[], "rxe0:1", "pma")?);
            let theirs = (by_sysfs("rxe0", "hw_counters")?, by_sysfs("rxe0", "counters")?);
            let told = by_rdma(&[], "rxe0")?;
            let after = (ours(&[], "rxe0:1", "hw")?, ours(&[], "rxe0:1", "pma")?);
            Ok((before == after).then_some((before, theirs, told)))
        };
        agreed = read().transpose();
        agreed.is_some()
    })?;
    let ((hardware, pma), (files, pma_files), told) = agreed.context("not read")??;
    println!("{hardware:?}\n{pma:?}");
    ensure!(!hardware.is_empty() && hardware == files, "sysfs: {files:?}");
    ensure!(hardware == told, "rdma: {told:?}");
    ensure!(pma == pma_files, "sysfs: {pma_files:?}");
    Ok((hardware, pma))
}

/// At rest, and after traffic that the device counts.
pub(crate) fn on_soft_roce() -> Result<()> {
    let _lab = lab::vlan_lab()?;
    run(&["ip", "link", "set", "lo", "up"])?;
    let compared = on_soft_roce_with_loopback();
    run(&["ip", "link", "set", "lo", "down"])?;
    compared
}

fn on_soft_roce_with_loopback() -> Result<()> {
    let (before, _) = agree()?;
    traffic()?;
    let (after, pma) = agree()?;
    for name in ["sent_pkts", "rcvd_pkts", "rdma_sends", "rdma_recvs"] {
        ensure!(after[name] > before[name], "{name} did not grow: {}", after[name]);
    }
    // From 7.2 on the agent counts as the driver does, in words of 4 bytes.
    if let (Some(bytes), Some(words)) = (after.get("sent_bytes"), pma.get("port_xmit_data")) {
        ensure!(bytes / 4 == *words, "{bytes} bytes, {words} words");
    }
    let newest = lab::is_newest_kernel()?;
    ensure!(newest || pma.is_empty(), "soft RoCE had no agent for counters before 7.2: {pma:?}");
    // As bytes and packets, and per second.
    let text = run(&["uverbs", "counters", "rxe0", "--rate", "0.01"])?;
    ensure!(text.starts_with("DEVICE  PORT  COUNTER"), "{text}");
    let text = run(&["uverbs", "metrics"])?;
    let sent = format!(
        "uverbs_port_hw_sent_pkts_total{{device=\"rxe0\",port=\"1\"}} {}\n",
        after["sent_pkts"]
    );
    ensure!(text.contains(&sent), "{sent}: {text}");
    ensure!(text.contains("uverbs_reading_firmware_commands{device=\"rxe0\",port=\"1\"} 0\n"));
    let contexts = "uverbs_device_resources{device=\"rxe0\",kind=\"qp\"} 1\n";
    ensure!(text.contains(contexts), "{text}");
    // Not of a tree of files, by which Prometheus's programs are tried.
    for known in ["gids_elsewhere", "choice_differs"] {
        let sample = format!("uverbs_port_{known}{{device=\"rxe0\",port=\"1\"}} ");
        ensure!(text.contains(&sample), "{sample}: {text}");
    }
    Ok(())
}

/// Sends over soft RoCE, from the device to itself.
fn traffic() -> Result<()> {
    const TEST: [&str; 7] = ["-d", "rxe0", "-F", "-n", "100", "-x", "1"];
    let mut server = Command::new("ib_send_bw");
    let server = server.args(TEST).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let _server = Ending(server.context("starting ib_send_bw")?);
    let mut said = String::new();
    lab::wait_until("the traffic is over", || {
        let output = lab::output(&[&["ib_send_bw"], &TEST[..], &["127.0.0.1"]].concat());
        output.is_ok_and(|output| {
            said = String::from_utf8_lossy(&output.stdout).into_owned();
            output.status.success()
        })
    })
    .with_context(|| said.clone())
}

/// The objects of a device, and whose they are: by kind, with the process or the part of the kernel.
type Owners = BTreeMap<(String, Option<u64>, Option<String>), u64>;

/// The owners that we list.
pub(super) fn owners(device: &str) -> Result<Owners> {
    listed(&run(&["uverbs", "counters", device, "--processes", "--json"])?)
}

/// What is in the answer.
fn listed(text: &str) -> Result<Owners> {
    let answer: Value = serde_json::from_str(text)?;
    ensure!(answer["problems"] == serde_json::json!([]), "{text}");
    let rows = answer["owners"].as_array().context("no owners")?;
    let row = |row: &Value| {
        let kind = row["kind"].as_str().context("no kind")?.to_owned();
        let kernel = row["kernel"].as_str().map(str::to_owned);
        Ok(((kind, row["pid"].as_u64(), kernel), row["count"].as_u64().context("no count")?))
    };
    rows.iter().map(row).collect()
}

/// Those of iproute2, object by object. What it cannot list is what the kernel does not list.
fn owners_by_rdma(device: &str) -> Result<Owners> {
    let mut owners = Owners::new();
    for kind in ["ctx", "pd", "cq", "mr", "srq", "cm_id"] {
        let output = lab::output(&["rdma", "-j", "resource", "show", kind, "dev", device])?;
        let text = String::from_utf8_lossy(&output.stdout);
        let answer: Value = serde_json::from_str(&text).unwrap_or_default();
        for object in answer.as_array().into_iter().flatten() {
            let pid = object["pid"].as_u64();
            // It puts the kernel's parts into brackets.
            let part = object["comm"].as_str().filter(|_| pid.is_none());
            let part = part.map(|part| part.trim_matches(['[', ']']).to_owned());
            *owners.entry((kind.to_owned(), pid, part)).or_default() += 1;
        }
    }
    Ok(owners)
}

/// Our owners are those of `rdma resource`, with programs that use the device, and without them.
pub(crate) fn owners_agree() -> Result<()> {
    let _lab = lab::vlan_lab()?;
    let _loopback = Loopback::new()?;
    let of_kernel = owners("rxe0")?;
    ensure!(of_kernel == owners_by_rdma("rxe0")?, "{of_kernel:?}");
    ensure!(!of_kernel.is_empty() && of_kernel.keys().all(|(_, pid, _)| pid.is_none()));
    let send = |words: &[&str]| {
        let mut command = Command::new("ib_send_bw");
        command.args(["-d", "rxe0", "-F", "-x", "1", "-D", "600"]).args(words);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().map(Ending)
    };
    let server = send(&[]).context("starting ib_send_bw")?;
    let mut client = send(&["127.0.0.1"])?;
    // The completion queues come after the memory.
    let has = |own: &Owners, pid: u32| {
        let made = |kind: &str| own.contains_key(&(kind.to_owned(), Some(pid.into()), None));
        made("mr") && made("cq")
    };
    let mut all = Owners::new();
    lab::wait_until("both have their objects", || {
        // It may have come before the server.
        let is_over = client.0.try_wait().is_ok_and(|ended| ended.is_some());
        if let (true, Ok(next)) = (is_over, send(&["127.0.0.1"])) {
            client = next;
        }
        all = owners("rxe0").unwrap_or_default();
        has(&all, client.0.id())
            && has(&all, server.0.id())
            && owners("rxe0").is_ok_and(|own| own == all)
    })?;
    println!("{all:?}");
    // In 6.1, not in 5.10.
    let lists_contexts = lab::kernel()? >= (6, 1);
    ensure!(all == owners_by_rdma("rxe0")?, "{all:?}");
    for (kind, is_old) in [("pd", true), ("cq", true), ("mr", true), ("ctx", false)] {
        let is_there = all.contains_key(&(kind.to_owned(), Some(client.0.id().into()), None));
        ensure!(is_there == (is_old || lists_contexts), "{kind}: {all:?}");
    }
    drop((client, server));
    lab::wait_until("their objects are gone", || owners("rxe0").is_ok_and(|own| own == of_kernel))?;
    // From another PID namespace the objects are seen, without the process's number.
    let held = Host::new().open("rxe0")?;
    let own = ("ctx".to_owned(), Some(u64::from(std::process::id())), None);
    let here = owners("rxe0")?;
    ensure!(here.contains_key(&own) == lists_contexts, "{here:?}");
    let words = ["/usr/bin/uverbs", "counters", "rxe0", "--processes", "--json"];
    let there = Limit::Processes.output(&words)?;
    let there = listed(&String::from_utf8_lossy(&there.stdout))?;
    let unnumbered = here.into_iter().map(|((kind, _, part), count)| ((kind, None, part), count));
    ensure!(there == unnumbered.collect(), "{there:?}");
    drop(held);
    Ok(())
}

/// As in a pod: sysfs has no counters there, netlink has them all the same.
pub(crate) fn in_a_fresh_namespace() -> Result<()> {
    let _lab = lab::vlan_lab()?;
    let here = ours(&[], "rxe0:1", "hw")?;
    let pod = Namespace::new("pod")?;
    let inside = pod.exec();
    let files = pod.run(&["uverbs", "counters", "rxe0", "--json", "--sysfs", "/sys"])?;
    ensure!(files.starts_with("{\"counters\":[],"), "sysfs has them there: {files}");
    let there = ours(&inside, "rxe0:1", "hw")?;
    let names = |numbers: &Numbers| numbers.keys().cloned().collect::<Vec<_>>();
    println!("{there:?}");
    ensure!(!there.is_empty() && names(&there) == names(&here), "{here:?}");
    ensure!(names(&by_rdma(&inside, "rxe0")?) == names(&there));
    ensure!(ours(&inside, "rxe0:1", "pma")?.is_empty());
    let metrics = pod.run(&["uverbs", "metrics"])?;
    ensure!(metrics.contains("uverbs_port_hw_sent_pkts_total{device=\"rxe0\""), "{metrics}");
    Ok(())
}
