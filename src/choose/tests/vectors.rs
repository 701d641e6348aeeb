//! Compares the models with what the programs themselves answered: [`vectors.md`](../vectors.md).

use super::*;

/// Every table of the file with every line of its two lists.
fn each_vector(mut check: impl FnMut(&str, &Port<'_>, &str, &[&str])) {
    let (mut name, mut head, mut rows) = ("", "", Vec::new());
    let mut of_nccl = true;
    for line in include_str!("../vectors.md").lines() {
        if let Some(title) = line.strip_prefix("#### ") {
            (name, rows) = (title, Vec::new());
        } else if line.starts_with("port ") {
            head = line;
        } else if line.starts_with("1 ") {
            rows.push(row(line));
        } else if line.starts_with("| NCCL") || line.starts_with("| UCX") {
            of_nccl = line.starts_with("| NCCL");
        } else if line.starts_with("| ") {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let table = if of_nccl { "nccl" } else { "ucx" };
            check(
                &format!("{name}: {table}: {}", cells[0]),
                &port(head, rows.clone()),
                table,
                &cells,
            );
        }
    }
}

#[test]
fn every_vector() {
    let mut count = 0;
    each_vector(|name, port, table, cells| {
        let set = variables(cells[0]);
        let expect = |column: usize| cells[column].trim_matches('*').to_owned();
        let mut check = |what: &str, decision: &Decision, expected: &str| {
            assert_eq!(words(&decision.outcome), expected, "{name} ({what}): {decision:?}");
            assert_eq!(decision.rows.len(), port.rows.len());
            for (index, reason) in &decision.rows {
                let is_index = decision.outcome.index() == Some(*index);
                assert_eq!(reason.is_taken(), is_index, "{name} ({what}): {index}: {reason}");
            }
            count += 1;
        };
        if table == "nccl" {
            use nccl::Release;
            let newest = expect(3);
            let middle = expect(2).replace("as right", &newest);
            let is_ethernet = port.link_layer == LinkLayer::ETHERNET;
            for (release, _) in Release::ALL.iter().copied() {
                let expected = match release {
                    Release::V2_20 => &expect(1),
                    Release::V2_21 if !is_ethernet => "n/a",
                    Release::V2_21 | Release::V2_22 | Release::V2_23 => &*middle,
                    Release::V2_26 | Release::V2_30 | Release::V2_30_7 => &newest,
                };
                // Without a slash in the range these two crash.
                let crashes = matches!(release, Release::V2_21 | Release::V2_22)
                    && set.iter().any(|(n, v)| n.ends_with("RANGE") && !v.contains('/'));
                let decision = nccl_of(port, release, &set);
                if crashes {
                    assert_eq!(decision.outcome, Outcome::Fails(Why::RangeCrash), "{name}");
                } else {
                    check(&format!("{release:?}"), &decision, expected);
                }
            }
        } else {
            use ucx::Release;
            for (release, column) in [(Release::V1_18, 1), (Release::V1_21, 2), (Release::V1_22, 2)]
            {
                check(&format!("{release:?}"), &ucx_of(port, release, &set), &expect(column));
            }
            // Older ones know no subnets, and no routable GIDs.
            if !cells[0].contains("SUBNETS") && !name.contains("FLID") {
                check("V1_15", &ucx_of(port, Release::V1_15, &set), &expect(1));
            }
        }
    });
    assert_eq!(count, 792, "every line of every table, by every release");
}

/// The last vector: no trial address handle succeeds.
#[test]
fn ucx_without_an_address_handle() {
    let rows = ["1 0 fe80::1 v1 eth0", "1 1 fe80::1 v2 eth0", "1 2 ::ffff:10.0.0.5 v1 eth0"]
        .map(|line| Row { has_address_handle: false, ..row(line) });
    for (length, new) in [(255, "interface fails"), (3, "0")] {
        let port = port(&format!("port 1 link_layer Ethernet gid_tbl_len {length}"), rows.to_vec());
        assert_eq!(words(&ucx_of(&port, ucx::Release::V1_18, &[]).outcome), "0");
        assert_eq!(words(&ucx_of(&port, ucx::Release::V1_21, &[]).outcome), new);
    }
}

/// A pod on `MLNX_OFED`: the host's rows give no address handle, so the pod's own row is taken.
#[test]
fn ucx_passes_over_rows_that_the_kernel_refuses() {
    let mut rows = Vec::new();
    each_vector(|name, port, _, _| {
        if name.starts_with("V06") {
            rows = port.rows.iter().map(|row| (row.index, row.gid, row.gid_type)).collect();
        }
    });
    let rows = rows.iter().map(|(index, gid, gid_type)| Row {
        index: *index,
        gid: *gid,
        gid_type: *gid_type,
        has_address_handle: *index > 3,
        ..row("1 0 :: v1 eth0")
    });
    let port = port("port 1 link_layer Ethernet gid_tbl_len 255", rows.collect());
    for release in [ucx::Release::V1_15, ucx::Release::V1_18, ucx::Release::V1_22] {
        assert_eq!(ucx_of(&port, release, &[]).outcome, Outcome::Taken(7));
    }
}
