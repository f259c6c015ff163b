//! Senders and receivers that are killed, stopped and started again.

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use reqtop::source::otlp::{Address, Settings};

use crate::Form;
use crate::common::{self, Listening, signal};
use crate::house::{House, wait};

/// A simulated cluster as a process of its own.
fn sender(to: SocketAddr, seed: u32, seconds: u64) -> Child {
    let mut command = common::binary();
    command.args(["demo", "--export", &format!("http://{to}"), "--rate", "150", "--seed", &seed.to_string()]);
    command.args(["--duration", &format!("{seconds}s")]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// What a sender says it sent: spans acknowledged, exports lost.
fn said(sender: Child) -> (u64, u64) {
    let output = sender.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let first = text.lines().next().unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    let number = |before: &str| first.split(before).next().unwrap().rsplit(' ').next().unwrap().parse::<u64>();
    (number(" spans").unwrap(), first.rsplit("; ").next().unwrap().split(' ').next().unwrap().parse().unwrap())
}

/// Killed in the middle, and another one after it: nothing of it stays but what it sent.
pub fn killed_senders(form: Form) -> String {
    let house = House::with(Settings::default());
    let mut kept = 0;
    let rounds = form.pick(3, 20);
    for round in 0..rounds {
        let mut victim = sender(house.grpc, round, 600);
        wait("the first spans", || house.spans() > kept);
        victim.kill().unwrap();
        victim.wait().unwrap();
        house.wait_deserted();
        kept = house.spans();
    }
    let last = sender(house.grpc, 99, form.pick(2, 10));
    let (sent, lost) = said(last);
    assert_eq!((house.spans() - kept, lost), (sent, 0), "what it says it sent is what came");
    house.wait_deserted();
    house.serves();
    format!("{rounds} killed ({kept} spans came before); the next one's {sent} spans all there")
}

/// The receiver goes and comes back: what the sender says it sent is in one of the two.
pub fn restarted_receiver(form: Form) -> String {
    let first = House::with(Settings::default());
    let address = first.grpc;
    let sender = sender(address, 7, form.pick(4, 20));
    wait("the first spans", || first.spans() > 200);
    let store = std::sync::Arc::clone(&first.store);
    drop(first);
    let before = store.lock().counts().spans_received;
    std::thread::sleep(Duration::from_millis(200));
    let second = House::at(Address::Exactly(address), Settings::default());
    let (sent, lost) = said(sender);
    let after = second.spans();
    // How long a sender tries again is its own matter; on a busy machine it may have given up a little.
    assert!(after > 0 && before + after >= sent, "{before} + {after} of {sent}");
    // What was taken and not acknowledged any more came again: one export at most.
    assert!(before + after <= sent + 2_000, "{before} + {after} of {sent}");
    format!("{before} before, {after} after, {sent} acknowledged, {lost} given up by the sender")
}

/// Stopped and continued, either side: nothing is lost and others do not wait.
pub fn stopped_sides(form: Form) -> String {
    let pause = Duration::from_secs(form.pick(1, 20));
    let listening = Listening::report();
    let (pid, grpc) = (listening.child.id(), listening.grpc);
    let sending = sender(grpc, 3, form.pick(3, 40));
    std::thread::sleep(Duration::from_millis(700));
    signal(sending.id(), "STOP");
    std::thread::sleep(pause);
    assert_eq!(common::post_json(listening.http, &crate::house::one_span(1 << 40)).status, 200);
    signal(sending.id(), "CONT");
    std::thread::sleep(Duration::from_millis(300));
    signal(pid, "STOP");
    std::thread::sleep(pause);
    signal(pid, "CONT");
    let (sent, lost) = said(sending);
    let report = listening.json();
    let spans = &report["spans"];
    let received = spans["received"].as_u64().unwrap() - 1;
    let duplicates = spans["duplicates"].as_u64().unwrap();
    assert_eq!(lost, 0);
    // An export that took longer than its sender waited came again; it is known as such.
    assert_eq!(received - duplicates, sent, "{spans}");
    format!("each stopped for {pause:?}: {sent} sent, {received} received, {duplicates} of them again")
}

/// The kernel's word for a process that is stopped.
pub fn is_stopped(pid: u32) -> bool {
    let output = Command::new("ps").args(["-o", "stat=", "-p", &pid.to_string()]).output().unwrap();
    output.stdout.starts_with(b"T")
}
