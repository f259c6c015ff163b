//! More connections than there should be.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use reqtop::source::notices::Notice;
use reqtop::source::otlp::Settings;

use crate::Form;
use crate::common::{self, Listening};
use crate::house::{House, mib, one_span, peak_memory, say, status, wait, wait_closed};
use crate::http2::Client;

/// How many file descriptors this process may have.
fn descriptors() -> usize {
    let output = Command::new("sh").args(["-c", "ulimit -n"]).output().unwrap();
    String::from_utf8_lossy(&output.stdout).trim().parse().unwrap_or(usize::MAX)
}

/// Idle connections, far more than there may be: a new sender is served at once all the same.
pub fn many_connections(form: Form) -> String {
    let listening = Listening::report();
    let pid = listening.child.id();
    let wanted = form.pick(400, 10_000);
    let count = wanted.min(descriptors().saturating_sub(100));
    let mut held = Vec::new();
    let mut slowest = Duration::ZERO;
    for at in 0..count {
        held.push(TcpStream::connect(if at % 2 == 0 { listening.http } else { listening.grpc }).unwrap());
        if at % (count / 20) == 0 {
            let begun = Instant::now();
            assert_eq!(common::post_json(listening.http, &one_span(at as u64)).status, 200);
            slowest = slowest.max(begun.elapsed());
        }
    }
    let open = || std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, |fds| fds.count());
    wait("those beyond the limit to be let go", || open() < 2200);
    let kept = open();
    let peak = peak_memory(pid);
    assert!(peak < 200 << 20, "{}", mib(peak));
    let mut client = Client::open(listening.grpc);
    client.export(1, b"\0\0\0\0\0");
    assert_eq!(client.answered(&[1]), 1);
    drop(held);
    wait("descriptors to be given back", || open() < 64);
    let threads = status(pid, "Threads:");
    assert!(threads < 32, "{threads} threads");
    listening.end();
    format!("{count} connections (of {wanted}): {kept} held, slowest export {slowest:.1?}, peak {}", mib(peak))
}

/// At the limit the ones idle longest go, the busy stay, and it is said.
pub fn too_many_connections(form: Form) -> String {
    let most = form.pick(8, 200);
    let house = House::with(Settings { max_connections: most, ..Settings::default() });
    // Senders that have sent, and are idle.
    let mut known: Vec<Client> = (0..most / 2)
        .map(|_| {
            let mut client = Client::open(house.grpc);
            client.export(1, b"\0\0\0\0\0");
            assert_eq!(client.answered(&[1]), 1);
            client
        })
        .collect();
    // Strangers, each of which goes for the next.
    let mut strangers: Vec<TcpStream> = (0..most * 3).map(|_| say(house.http, b"")).collect();
    house.wait_noted(Notice::Crowded, (most * 2) as u64);
    strangers.iter_mut().take(most).for_each(|stranger| assert!(wait_closed(stranger).is_empty()));
    assert!(house.notices.list().iter().any(|noted| noted.latest.contains("--max-connections")));
    for client in &mut known {
        client.export(3, b"\0\0\0\0\0");
        assert_eq!(client.answered(&[3]), 1, "a sender was let go for strangers");
    }
    house.serves();
    format!("{most} at most: {} strangers came and went, senders stayed", most * 3)
}

/// No descriptors left: what is open goes on, nothing spins, and it recovers by itself.
pub fn no_descriptors(form: Form) -> String {
    let limit = form.pick(64, 256);
    let mut child = Command::new("sh")
        .args(["-c", &format!("ulimit -n {limit}; exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_reqtop")])
        .args(["report", "--json", "--listen", "--for", "120s"])
        .args(common::ANY)
        .env_clear()
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (before, grpc, http) = common::listening(child.stderr.as_mut().unwrap());
    let listening = Listening { child, before, grpc, http };
    let pid = listening.child.id();
    // Half a request each: these are busy, so none can be let go for another.
    let held: Vec<TcpStream> = (0..limit * 2)
        .map(|_| say(http, b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{"))
        .collect();
    wait("the descriptors to be used up", || {
        std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(limit, |fds| fds.count()) >= limit - 1
    });
    let before = ticks(pid);
    std::thread::sleep(Duration::from_secs(1));
    let spent = ticks(pid) - before;
    assert!(spent < 20, "{spent} ticks of 10 ms in a second: it spins");
    // Those that were accepted are served when the rest of their request comes.
    let mut served = 0;
    for mut stream in held {
        stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        let mut answer = [0; 12];
        if stream.write_all(b"}").is_ok() && stream.read_exact(&mut answer).is_ok() {
            served += usize::from(answer.starts_with(b"HTTP/1.1 200"));
        }
    }
    assert!(served >= limit / 2, "{served}");
    assert_eq!(common::post_json(http, &one_span(0)).status, 200);
    let output = listening.end();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("no file descriptors are left"), "{said}");
    format!("{limit} descriptors, twice as many senders: {served} served, {spent} ticks of CPU in a second, recovered")
}

/// CPU time of a process, in ticks of 10 ms; 0 where the system does not say.
fn ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let number = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    number(11) + number(12)
}
