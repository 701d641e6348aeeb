//! `metrics`, from sysfs and from snapshots.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};
use std::thread;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::run::{Run, program, uverbs};
use crate::snapshots::{DUAL, Fleet, host, port, set};
use crate::tree::Tree;

/// What is not a time.
fn steady(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.contains("uverbs_reading_")).collect()
}

fn samples(text: &str) -> Vec<&str> {
    steady(text).into_iter().filter(|line| !line.starts_with('#')).collect()
}

#[test]
fn a_tree_as_metrics() {
    let tree = Tree::new();
    let port = tree.with_roce().port_again(1);
    port.file("counters/port_rcv_data", "12");
    port.file("counters/link_downed", "255");
    port.file("counters/symbol_error", "3");
    port.file("hw_counters/RNR sent", "4");
    let run = tree.uverbs(&["metrics", "mlx5_0:1"]);
    let expected = "\
uverbs_build_info{version=\"0.1.0\"} 1
uverbs_device_info{device=\"mlx5_0\",node_type=\"ca\",fw_version=\"28.39.2048\",node_guid=\"0x0002c90300000000\"} 1
uverbs_port_gid_index{device=\"mlx5_0\",port=\"1\",program=\"recommended\"} 3
uverbs_port_gid_table_size{device=\"mlx5_0\",port=\"1\"} 12
uverbs_port_gids{device=\"mlx5_0\",port=\"1\",type=\"roce_v1\"} 1
uverbs_port_gids{device=\"mlx5_0\",port=\"1\",type=\"roce_v2\"} 3
uverbs_port_hw_rnr_sent_total{device=\"mlx5_0\",port=\"1\"} 4
uverbs_port_info{device=\"mlx5_0\",port=\"1\",link_layer=\"ethernet\",port_guid=\"0x001122fffe334455\"} 1
uverbs_port_physical_state{device=\"mlx5_0\",port=\"1\",state=\"disabled\"} 0
uverbs_port_physical_state{device=\"mlx5_0\",port=\"1\",state=\"link_error_recovery\"} 0
uverbs_port_physical_state{device=\"mlx5_0\",port=\"1\",state=\"link_up\"} 1
uverbs_port_physical_state{device=\"mlx5_0\",port=\"1\",state=\"nop\"} 0
uverbs_port_physical_state{device=\"mlx5_0\",port=\"1\",state=\"phy_test\"} 0
uverbs_port_physical_state{device=\"mlx5_0\",port=\"1\",state=\"polling\"} 0
uverbs_port_physical_state{device=\"mlx5_0\",port=\"1\",state=\"sleep\"} 0
uverbs_port_physical_state{device=\"mlx5_0\",port=\"1\",state=\"training\"} 0
uverbs_port_rate_bytes_per_second{device=\"mlx5_0\",port=\"1\"} 12500000000
uverbs_port_rcv_data_bytes_total{device=\"mlx5_0\",port=\"1\"} 48
uverbs_port_recommended_gid_info{device=\"mlx5_0\",port=\"1\",gid=\"::ffff:192.168.77.1\",type=\"roce_v2\"} 1
uverbs_port_saturated{device=\"mlx5_0\",port=\"1\",counter=\"link_downed\"} 1
uverbs_port_saturated{device=\"mlx5_0\",port=\"1\",counter=\"symbol_error\"} 0
uverbs_port_state{device=\"mlx5_0\",port=\"1\",state=\"active\"} 1
uverbs_port_state{device=\"mlx5_0\",port=\"1\",state=\"active_defer\"} 0
uverbs_port_state{device=\"mlx5_0\",port=\"1\",state=\"armed\"} 0
uverbs_port_state{device=\"mlx5_0\",port=\"1\",state=\"down\"} 0
uverbs_port_state{device=\"mlx5_0\",port=\"1\",state=\"init\"} 0
uverbs_port_state{device=\"mlx5_0\",port=\"1\",state=\"nop\"} 0
uverbs_port_symbol_error_total{device=\"mlx5_0\",port=\"1\"} 3
uverbs_port_width_lanes{device=\"mlx5_0\",port=\"1\"} 4
";
    let mut found: Vec<&str> = samples(&run.stdout)
        .into_iter()
        .filter(|line| !line.starts_with("uverbs_check_findings"))
        .collect();
    found.sort_unstable();
    assert_eq!(found, expected.lines().collect::<Vec<_>>(), "{run:?}");
    assert_eq!(run.status, 0, "{run:?}");
    // The same samples in the other form.
    let open = tree.uverbs(&["metrics", "--format", "openmetrics"]);
    assert!(open.stdout.ends_with("\n# EOF\n"), "{open:?}");
    let all = tree.uverbs(&["metrics"]);
    assert_eq!(samples(&open.stdout), samples(&all.stdout));
}

#[test]
fn what_could_not_be_read_is_counted() {
    let tree = Tree::new();
    let port = tree.with_roce().port_again(1);
    port.file("counters/link_downed", "1");
    port.refuse("counters/link_downed");
    tree.with_infiniband();
    let run = tree.uverbs(&["metrics"]);
    assert_eq!(run.status, 3, "{run:?}");
    assert!(run.stdout.contains("uverbs_reading_problems{device=\"mlx5_0\"} 1\n"), "{run:?}");
    assert!(run.stdout.contains("uverbs_port_state{device=\"mlx4_0\",port=\"1\","), "{run:?}");
    assert!(run.stderr.contains("counters/link_downed: EINVAL"), "{run:?}");
    // Two counters of one name, and a gauge that another device counts up.
    port.file("counters/link_downed", "1");
    port.file("hw_counters/RNR sent", "4");
    port.file("hw_counters/rnr_sent", "9");
    port.file("hw_counters/current_rate", "4");
    tree.device("mlx4_0", "1: CA", 4).port_again(1).file("hw_counters/Current Rate", "4");
    let run = tree.uverbs(&["metrics"]);
    assert_eq!(run.status, 3, "{run:?}");
    for (device, name) in [("mlx5_0", "rnr_sent"), ("mlx5_0", "current_rate")] {
        let text = format!("{device}:1: the counter {name:?} is left out: another has its name");
        assert!(run.stderr.contains(&text), "{text}: {run:?}");
        let text = format!("uverbs_reading_problems{{device=\"{device}\"}} 2\n");
        assert!(run.stdout.contains(&text), "{text}: {run:?}");
    }
}

/// Findings that cost commands to the firmware are there if they are asked for.
#[test]
fn findings_about_pkeys() {
    let tree = Tree::new();
    let port = tree.with_infiniband().port_again(1);
    let lines = |args: &[&str], status: i32| {
        let run = tree.uverbs(args);
        assert_eq!(run.status, status, "{run:?}");
        let has =
            |line: &&str| line.contains("pkey") || line.starts_with("uverbs_reading_problems");
        let lines = run.stdout.lines().filter(|line| !line.starts_with('#'));
        lines.filter(has).map(str::to_owned).collect::<Vec<_>>()
    };
    let finding = |severity: &str, name: &str| {
        format!(
            "uverbs_check_findings{{severity=\"{severity}\",name=\"{name}\",device=\"mlx4_0\",port=\"1\"}} 1"
        )
    };
    let none: [String; 0] = [];
    port.file("pkeys/0", "0x0000");
    assert_eq!(lines(&["metrics"], 0), none);
    assert_eq!(lines(&["metrics", "--full"], 0), [finding("problem", "no-pkey")]);
    port.refuse("pkeys/0");
    let unread = "uverbs_reading_problems{device=\"mlx4_0\"} 1".to_owned();
    assert_eq!(lines(&["metrics", "--full"], 3), [finding("warning", "pkeys-unreadable"), unread]);
}

#[test]
fn snapshots_have_a_label_for_their_host() {
    let hosts = ["node1", "node2"].map(|name| host(name, &[("mlx5_0", port(DUAL))]));
    let run = Fleet::new(&hosts).uverbs(&["metrics"]);
    for host in ["node1", "node2"] {
        let begin = format!("uverbs_port_state{{host=\"{host}\",device=\"mlx5_0\",port=\"1\"");
        assert!(run.stdout.lines().any(|line| line.starts_with(&begin)), "{run:?}");
    }
    let others: Vec<&str> = samples(&run.stdout)
        .into_iter()
        .filter(|line| !line.contains("{host=") && !line.starts_with("uverbs_build_info"))
        .collect();
    assert_eq!(others, [""; 0], "{run:?}");
    assert!(!run.stdout.contains("uverbs_reading_timestamp"), "{run:?}");
}

/// A GUID and a rate that could not be read are missing answers. Where interfaces are not known, it is not known how
/// many GIDs are of others.
#[test]
fn what_is_not_known_of_a_snapshot_has_no_number() {
    let elsewhere = |run: &Run| {
        run.stdout.lines().filter(|line| line.starts_with("uverbs_port_gids_elsewhere{")).count()
    };
    let mut one = host("node1", &[("mlx5_0", port(DUAL))]);
    let run = Fleet::new(&[one.clone(), host("node2", &[])]).uverbs(&["metrics"]);
    assert_eq!(elsewhere(&run), 1, "{run:?}");
    one["has_netlink"] = json!(false);
    let own = &mut one["devices"][0]["ports"][0];
    own["guid"] = json!({"error": "mlx5_0: no GUID", "errno": 5});
    own["effective"] = json!({"error": "mlx5_0: no rate", "errno": 5});
    let run = Fleet::new(&[one, host("node2", &[])]).uverbs(&["metrics"]);
    assert_eq!((elsewhere(&run), run.status), (0, 3), "{run:?}");
    let problems = "uverbs_reading_problems{host=\"node1\",device=\"mlx5_0\"} 2\n";
    assert!(run.stdout.contains(problems), "{run:?}");
}

/// A number that a snapshot may have is shown as it is, and hides no other host.
#[test]
fn a_rate_of_any_size() {
    let mut one = host("node1", &[("mlx5_0", port(DUAL))]);
    one["devices"][0]["ports"][0]["effective"] = u64::MAX.into();
    let run = Fleet::new(&[one, host("node2", &[("mlx5_0", port(DUAL))])]).uverbs(&["metrics"]);
    let port = "device=\"mlx5_0\",port=\"1\"";
    let rate = format!(
        "uverbs_port_effective_rate_bytes_per_second{{host=\"node1\",{port}}} {}\n",
        u128::from(u64::MAX) * 12_500_000
    );
    assert!(run.stdout.contains(&rate) && run.stdout.contains("{host=\"node2\""), "{run:?}");
}

/// Where it is not known which GID is right, none differs, and none is the same.
#[test]
fn what_is_not_known_to_be_right_is_not_compared() {
    let differs = |own: &Value| {
        let run = Fleet::new(std::slice::from_ref(own)).uverbs(&["metrics"]);
        run.stdout.lines().filter(|line| line.starts_with("uverbs_port_choice_differs{")).count()
    };
    let mut own = host("h", &[("mlx5_0", port(&DUAL[3..]))]);
    for program in ["NCCL", "UCX"] {
        set(&mut own, &format!("{program}_IB_GID_INDEX"), "3", None);
    }
    assert_eq!(differs(&own), 1);
    let row = &mut own["devices"][0]["gids"][0];
    (row["gid_type"], row["type_is_hidden"]) = (u32::MAX.into(), true.into());
    assert_eq!(differs(&own), 0);
}

/// A program that takes a port of which no GID is right should leave it out, also if all that it finds is an empty slot.
#[test]
fn a_program_that_fails_where_none_is_right_differs() {
    let differs = |state: u8| {
        let mut own = host("h", &[("mlx5_0", port(&[]))]);
        own["devices"][0]["ports"][0]["attributes"][0]["state"] = state.into();
        let run = Fleet::new(&[own]).uverbs(&["metrics"]);
        let mut lines = run.stdout.lines();
        let line = lines.find(|line| line.starts_with("uverbs_port_choice_differs{"));
        line.and_then(|line| line.rsplit(' ').next()).map(str::to_owned)
    };
    assert_eq!(differs(4).as_deref(), Some("1"));
    assert_eq!(differs(1).as_deref(), Some("0"));
}

#[test]
fn a_file_for_the_textfile_collector() {
    let tree = Tree::new();
    tree.with_roce();
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("uverbs.prom");
    let file = path.to_str().unwrap();
    for _ in 0..2 {
        let run = tree.uverbs(&["metrics", "--output", file]);
        assert_eq!((run.stdout.as_str(), run.status), ("", 0), "{run:?}");
        let written = fs::read_to_string(&path).unwrap();
        assert_eq!(samples(&written), samples(&tree.uverbs(&["metrics"]).stdout));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
    for wrong in ["/dev/null", "/nowhere/x.prom"] {
        let run = tree.uverbs(&["metrics", "--output", wrong]);
        let text = format!("cannot write {wrong}: ");
        assert!(run.status == 3 && run.stderr.contains(&text), "{run:?}");
    }
}

/// A server that ends with the test.
pub(crate) struct Server(Child, String);

impl Server {
    /// Serves a tree.
    pub(crate) fn new(tree: &Tree) -> Self {
        let mut server = program();
        server.args(["metrics", "--listen", "0", "--sysfs"]).arg(tree.path());
        let mut child = server.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.strip_prefix("uverbs: serving http://").expect(&line);
        let address = address.strip_suffix("/metrics\n").unwrap().to_owned();
        assert!(address.starts_with("127.0.0.1:"), "{address}");
        Self(child, address)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    pub(crate) fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.1).unwrap()
    }

    /// The whole reply to a request.
    pub(crate) fn ask(&self, request: &str) -> String {
        self.try_ask(request).unwrap()
    }

    pub(crate) fn try_ask(&self, request: &str) -> io::Result<String> {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes())?;
        let mut reply = String::new();
        stream.read_to_string(&mut reply)?;
        Ok(reply)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Process 1 of a container has no signal that ends it without being asked for.
#[test]
fn a_signal_ends_the_server() {
    let tree = Tree::new();
    tree.with_roce();
    let mut server = Server::new(&tree);
    let waiting = server.connect();
    let reply = server.ask("GET /metrics HTTP/1.1\r\n\r\n");
    assert!(reply.starts_with("HTTP/1.1 200 OK"), "{reply}");
    kill(Pid::from_raw(server.pid().try_into().unwrap()), Signal::SIGTERM).unwrap();
    let status = server.0.wait().unwrap();
    assert_eq!(status.code(), Some(0), "{status:?}");
    drop(waiting);
}

#[test]
fn scrapes() {
    let tree = Tree::new();
    tree.with_roce();
    let server = Server::new(&tree);
    let reply = server.ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    let (head, text) = reply.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("Content-Type: text/plain; version=0.0.4; charset=utf-8"), "{head}");
    assert!(head.contains(&format!("Content-Length: {}\r\n", text.len())), "{head}");
    assert_eq!(samples(text), samples(&tree.answer(&["metrics"])));
    // Each scrape is a reading of its own.
    tree.with_infiniband();
    let open = server.ask("GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text\r\n\r\n");
    assert!(open.contains("application/openmetrics-text; version=1.0.0"), "{open}");
    assert!(open.contains("mlx4_0") && open.ends_with("# EOF\n"), "{open}");
    let head = server.ask("HEAD /metrics HTTP/1.1\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 OK") && head.ends_with("\r\n\r\n"), "{head}");
    for (request, status) in [
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), "404"),
        ("POST /metrics HTTP/1.1\r\n\r\n".to_owned(), "405"),
        ("nonsense\r\n\r\n".to_owned(), "400"),
        ("\u{16}\u{3}\u{1}".to_owned(), "400"),
        (format!("GET /{}", "x".repeat(8192 - 5)), "431"),
    ] {
        let reply = server.ask(&request);
        assert!(reply.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {reply}");
        assert!(reply.ends_with('\n') && !reply.ends_with("\r\n"), "it says why: {reply}");
    }
    for request in ["HEAD / HTTP/1.1\r\n\r\n".to_owned(), format!("HEAD /{}", "x".repeat(8192 - 6))]
    {
        let reply = server.ask(&request);
        assert!(reply.starts_with("HTTP/1.1 4") && reply.ends_with("\r\n\r\n"), "{reply}");
        assert!(!reply.contains("Content-Length: 0"), "{reply}");
    }
    // A line of a request may end by a line feed only.
    let reply = server.ask("GET http://x/metrics HTTP/1.1\nHost: x\n\r\n");
    assert!(reply.starts_with("HTTP/1.1 200 OK"), "{reply}");
}

/// Half requests hold nobody up, and who asks while a reading goes on gets it.
#[test]
fn many_clients() {
    let tree = Tree::new();
    tree.with_roce();
    let server = Server::new(&tree);
    let mut half: Vec<TcpStream> = (0..20).map(|_| server.connect()).collect();
    for stream in &mut half {
        stream.write_all(b"GET /metrics HT").unwrap();
    }
    let replies: Vec<String> = thread::scope(|scope| {
        let ask = || server.ask("GET /metrics HTTP/1.1\r\n\r\n");
        let clients: Vec<_> = (0..100).map(|_| scope.spawn(ask)).collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    for reply in &replies {
        assert!(reply.starts_with("HTTP/1.1 200 OK") && reply.ends_with('\n'), "{reply}");
    }
    // Those that were begun can be ended.
    let stream = &mut half[0];
    stream.write_all(b"TP/1.1\r\n\r\n").unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 200 OK"), "{reply}");
}

/// More connections than are served are refused at once, and later ones are served again.
#[test]
fn too_many_connections() {
    let tree = Tree::new();
    let server = Server::new(&tree);
    let idle: Vec<TcpStream> = (0..128).map(|_| server.connect()).collect();
    let mut more = server.connect();
    let mut reply = String::new();
    more.read_to_string(&mut reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 503 "), "{reply}");
    drop(idle);
    // A thread ends a moment after its client.
    let is_served = || {
        let reply = server.try_ask("GET /metrics HTTP/1.1\r\n\r\n");
        reply.is_ok_and(|reply| reply.starts_with("HTTP/1.1 200"))
    };
    assert!((0..1000).any(|_| is_served()));
}

#[test]
fn a_server_that_cannot_be() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let run = uverbs(&["metrics", "--listen", &address]);
    assert!(run.status == 3 && run.stderr.contains("cannot serve: "), "{run:?}");
    // The standard input is no socket.
    let run = uverbs(&["metrics", "--listen", "-"]);
    assert!(run.status == 3 && run.stderr.contains("cannot serve: "), "{run:?}");
    for more in [&["--output", "x"][..], &["--from", "x"]] {
        let run = uverbs(&[&["metrics", "--listen", "0"], more].concat());
        assert!(run.status == 3 && run.stderr.contains("cannot be used with"), "{run:?}");
    }
}

/// A socket that nobody can connect to is not served: a connection, one that only has an address, and one of UDP.
#[test]
fn a_socket_that_does_not_listen() {
    use rustix::net::{AddressFamily, Shutdown, SocketType, bind, shutdown, socket};
    let tree = Tree::new();
    let serve = |socket: OwnedFd| {
        let mut command = program();
        command.args(["metrics", "--listen", "-", "--sysfs"]).arg(tree.path()).stdin(socket);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        (said.next().unwrap(), said, Server(child, String::new()))
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let client = TcpStream::connect(address).unwrap();
    let bound = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&bound, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    for socket in [client.into(), bound, udp.into()] {
        let (said, _, mut server) = serve(socket);
        assert!(said.contains("cannot serve: standard input is no socket that listens"), "{said}");
        assert_eq!(server.0.wait().unwrap().code(), Some(3));
    }
    // Who shares it may end it for all.
    let (said, mut rest, mut server) = serve(listener.try_clone().unwrap().into());
    assert_eq!(said, format!("uverbs: serving http://{address}/metrics"));
    shutdown(&listener, Shutdown::Both).unwrap();
    let said = rest.next().unwrap();
    assert!(said.contains("cannot serve: "), "{said}");
    assert_eq!(server.0.wait().unwrap().code(), Some(3));
}

#[test]
fn json_is_no_form_of_metrics() {
    let run = uverbs(&["metrics", "--json"]);
    assert!(run.status == 3 && run.stderr.contains("metrics has formats of its own"), "{run:?}");
    let run = uverbs(&["metrics", "--no-header"]);
    assert!(run.status == 3 && run.stderr.contains("--no-header is for tables"), "{run:?}");
}
