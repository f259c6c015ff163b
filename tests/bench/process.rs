//! The program itself on a pseudo-terminal: how soon it listens, what it costs while nothing happens.

use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use crate::own::free;
use crate::{Line, quantile, within};

const STARTS: usize = 15;
const IDLE: Duration = Duration::from_secs(20);

struct Running {
    child: Box<dyn Child + Send + Sync>,
    #[expect(dead_code, reason = "the terminal lives as long as the program on it")]
    terminal: Box<dyn MasterPty + Send>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start(grpc: SocketAddr) -> Running {
    let size = PtySize { rows: 50, cols: 160, pixel_width: 0, pixel_height: 0 };
    let pair = native_pty_system().openpty(size).unwrap();
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_reqtop"));
    command.env_clear();
    command.env("TERM", "xterm-256color");
    command.args(["--grpc", &grpc.to_string(), "--http", "127.0.0.1:0"]);
    let mut reader = pair.master.try_clone_reader().unwrap();
    std::thread::spawn(move || {
        let mut bytes = [0; 65536];
        while let Ok(1..) = reader.read(&mut bytes) {}
    });
    Running { child: pair.slave.spawn_command(command).unwrap(), terminal: pair.master }
}

fn until_listening(address: SocketAddr) {
    let begun = Instant::now();
    while TcpStream::connect(address).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(10), "never listened on {address}");
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// User and system time of a process so far.
fn cpu(process: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

pub fn lines() -> Vec<Line> {
    let mut starts: Vec<Duration> = (0..STARTS)
        .map(|_| {
            let [address] = free();
            let begun = Instant::now();
            let running = start(address);
            until_listening(address);
            let took = begun.elapsed();
            drop(running);
            took
        })
        .collect();
    let [address] = free();
    let running = start(address);
    until_listening(address);
    std::thread::sleep(Duration::from_secs(1));
    let process = running.child.process_id().unwrap();
    let before = cpu(process);
    std::thread::sleep(IDLE);
    let a_minute = (cpu(process) - before) * 60 / IDLE.as_secs() as u32;
    let millis = Duration::from_millis;
    vec![
        within("exec to listening", quantile(&mut starts, 0.5), millis(50), millis(20)),
        within("idle CPU a minute", a_minute, millis(300), millis(0)),
    ]
}
