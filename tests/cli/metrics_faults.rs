//! `metrics` when clients, disks and devices fail: others are answered, memory stays bounded, nothing is torn.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use crate::metrics::Server;
use crate::run::program;
use crate::tree::Tree;

const GET: &str = "GET /metrics HTTP/1.1\r\n\r\n";

/// The text of a reply, whole.
fn whole(reply: &str) -> &str {
    let (head, text) = reply.split_once("\r\n\r\n").expect(reply);
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert_eq!(promised(head), text.len(), "it is torn");
    text
}

fn promised(head: &str) -> usize {
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    length.expect(head).parse().unwrap()
}

/// Each line is a comment, or a sample with a number.
fn assert_samples(text: &str) {
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let value = line.rsplit(' ').next().and_then(|value| value.parse::<f64>().ok());
        assert!(line.starts_with("uverbs_") && value.is_some(), "{line}");
    }
    assert!(text.ends_with('\n'), "{text}");
}

/// Clients that do not read, that write a byte now and then, or half a request: they are cut off at last. A
/// hundred others are answered meanwhile. All who got one reading share its text.
#[test]
fn slow_clients() {
    let tree = Tree::new();
    let port = tree.with_roce().port_again(1);
    // More than the buffers of a connection hold.
    for number in 0..8000 {
        port.file(&format!("hw_counters/{number}{}", "x".repeat(220)), "1");
    }
    let server = Server::new(&tree);
    let length = whole(&server.ask(GET)).len();
    assert!(length > 6 << 20, "{length} bytes");

    let mut readers: Vec<TcpStream> = (0..10).map(|_| server.connect()).collect();
    for reader in &mut readers {
        reader.write_all(GET.as_bytes()).unwrap();
    }
    let mut halves: Vec<TcpStream> = (0..3).map(|_| server.connect()).collect();
    for half in &mut halves {
        half.write_all(b"GET /metrics HTTP/1.1\r\nX: ").unwrap();
    }
    thread::scope(|scope| {
        let writers: Vec<_> = (0..5)
            .map(|_| {
                let mut writer = server.connect();
                scope.spawn(move || {
                    writer.write_all(b"GET /metrics HTTP/1.1\r\nX: ").unwrap();
                    while writer.write_all(b"x").is_ok() {
                        thread::sleep(Duration::from_millis(100));
                    }
                })
            })
            .collect();
        let clients: Vec<_> = (0..100).map(|_| scope.spawn(|| server.ask(GET))).collect();
        for client in clients {
            assert_eq!(whole(&client.join().unwrap()).len() >> 20, length >> 20);
        }
        // They end only because the server ends them.
        for writer in writers {
            writer.join().unwrap();
        }
    });
    for half in &mut halves {
        let mut reply = Vec::new();
        assert!(half.read_to_end(&mut reply).is_err() || reply.is_empty(), "{reply:?}");
    }
    // The server gives them up one after another, each after its time. One thread waits for signals.
    while server.number_of("Threads:").is_some_and(|threads| threads > 2) {
        thread::sleep(Duration::from_millis(50));
    }
    for reader in readers.iter_mut().filter(|_| server.number_of("Threads:").is_some()) {
        // What they get is less than was promised, so that nobody takes it for the whole.
        let mut reply = Vec::new();
        let ended = reader.read_to_end(&mut reply);
        let text = String::from_utf8_lossy(&reply);
        let (head, text) = text.split_once("\r\n\r\n").expect("a head");
        assert!(text.len() < promised(head), "{ended:?}: {} bytes", text.len());
    }
    if let Some(peak) = server.peak_memory() {
        println!("{peak} bytes of memory at the peak, {length} bytes of text");
        // Each slow reader may hold a reading of its own. The hundred share a few.
        assert!(peak < 40 * length as u64, "{peak} bytes for texts of {length}");
    }
    whole(&server.ask(GET));
}

/// A request that does not end is not read to its end.
#[test]
fn endless_headers() {
    let tree = Tree::new();
    tree.with_roce();
    let server = Server::new(&tree);
    whole(&server.ask(GET));
    let before = server.peak_memory();
    thread::scope(|scope| {
        for _ in 0..50 {
            scope.spawn(|| {
                let mut stream = server.connect();
                stream.write_all(b"GET /metrics HTTP/1.1\r\n").unwrap();
                let many = "X: y\r\n".repeat(10_000);
                // The server closes, at 8,192 bytes.
                while stream.write_all(many.as_bytes()).is_ok() {}
            });
        }
        for _ in 0..10 {
            whole(&server.ask(GET));
        }
    });
    if let (Some(before), Some(peak)) = (before, server.peak_memory()) {
        println!("{before} bytes of memory at the peak before, {peak} after");
        assert!(peak < before + (20 << 20), "{before} to {peak}");
    }
}

/// A client that ends its side after the request is answered all the same, and one that goes is no harm.
#[test]
fn clients_that_go() {
    let tree = Tree::new();
    tree.with_roce();
    let server = Server::new(&tree);
    for _ in 0..20 {
        drop(server.connect());
        server.connect().write_all(GET.as_bytes()).unwrap();
    }
    let mut stream = server.connect();
    stream.write_all(GET.as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    whole(&reply);
}

/// What is in the way of a file that is too long: the old one stays, and nothing beside it.
#[test]
fn a_full_disk() {
    let tree = Tree::new();
    tree.with_roce();
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("uverbs.prom");
    fs::write(&path, "old\n").unwrap();
    let program = program();
    // 512 bytes are the most that a file may have.
    let limited = |before: &str| {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("{before} ulimit -f 1; exec \"$@\"")).arg("sh");
        shell.arg(program.get_program()).args(program.get_args());
        shell.args(["metrics", "--sysfs"]).arg(tree.path()).arg("--output").arg(&path);
        shell.output().unwrap()
    };
    let refused = limited("trap '' XFSZ;");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(3), "{refused:?}");
    assert!(said.contains("uverbs.prom: ") && said.contains("cannot write"), "{said}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "old\n");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    // Where the signal ends the process, the old file is whole as well.
    let killed = limited("");
    assert!(killed.status.signal().is_some() || killed.status.code() != Some(0), "{killed:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "old\n");
}

/// A device that comes and goes while it is scraped: each reply is whole, and has the other device.
#[test]
fn a_device_that_vanishes() {
    let tree = Tree::new();
    let device = tree.with_roce();
    let port = device.port_again(1);
    port.file("counters/port_rcv_data", "12");
    tree.with_infiniband();
    let server = Server::new(&tree);
    let away = tree.path().join("away");
    let at = tree.path().join("class/infiniband/mlx5_0");
    let is_over = AtomicBool::new(false);
    let (mut with, mut without) = (0, 0);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                fs::rename(&at, &away).unwrap();
                thread::sleep(Duration::from_micros(700));
                fs::rename(&away, &at).unwrap();
                thread::sleep(Duration::from_micros(700));
            }
        });
        for _ in 0..300 {
            let reply = server.try_ask(GET);
            let text = reply.as_ref().map(|reply| whole(reply));
            if let Ok(text) = text {
                assert_samples(text);
                let other = "uverbs_port_state{device=\"mlx4_0\",port=\"1\",state=\"active\"} 1\n";
                assert!(text.contains(other), "{text}");
                let is_there = text.contains("uverbs_port_state{device=\"mlx5_0\"");
                *(if is_there { &mut with } else { &mut without }) += 1;
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    println!("{with} readings with the device, {without} without");
    assert!(with + without == 300 && with > 0 && without > 0, "{with}, {without}");
}

impl Server {
    /// The most memory that the server used, in bytes.
    fn peak_memory(&self) -> Option<u64> {
        Some(self.number_of("VmHWM:")? * 1024)
    }

    /// A number that the kernel says of the server. Not of one that an emulator runs.
    fn number_of(&self, name: &str) -> Option<u64> {
        if std::env::var("UVERBS_TEST_PROGRAM").is_ok_and(|words| words.contains(' ')) {
            return None;
        }
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    }
}
