//! A recording played again: its requests in their order and at their pace, as if they arrived now.
//!
//! Owns: the time that passes in a replay ([`Play`], which whoever counts arrivals or draws takes for the clock), and when
//! each request is due. Requests that do not say when they arrived are due when the last thing they tell of ended. Keeps
//! out: reading (`file`), the store.

use std::cell::Cell;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::intake::{Arrival, Body, Intake, Payload, Receipt, Refusal};
use super::otlp::wire;
use crate::lifecycle::batch::Batch;
use crate::lifecycle::record::Record;

/// Nothing arrived for so long: the rest of the silence is left out.
const LONGEST_SILENCE_NS: u64 = 60_000_000_000;

/// How fast time passes in a replay.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Speed {
    /// This many seconds a second.
    Times(f64),
    /// As fast as it is taken in.
    Max,
}

impl FromStr for Speed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "max" {
            return Ok(Self::Max);
        }
        let number = text.trim_start_matches('×').trim_end_matches(['x', '×']).parse();
        let times = number.ok().filter(|times| (0.01..=10_000.0).contains(times));
        times.map(Self::Times).ok_or_else(|| {
            format!("expected a number from 0.01 to 10000, such as 1, 10 or 0.5, or max; found {text:?}")
        })
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Times(times) => write!(f, "×{times}"),
            Self::Max => f.write_str("max"),
        }
    }
}

/// The time that passes in a replay.
#[derive(Debug)]
pub struct Play {
    time: Mutex<Time>,
    changed: Condvar,
}

#[derive(Debug)]
struct Time {
    speed: Speed,
    /// What the time was at `since`, nanoseconds since the epoch; 0 before the first arrival.
    at_ns: u64,
    since: Instant,
    /// Up to where it may pass by itself: the arrival that is waited for.
    most_ns: u64,
    held: bool,
    stopped: bool,
}

impl Time {
    fn now_ns(&self) -> u64 {
        match self.speed {
            Speed::Times(times) if !self.held => {
                let passed = self.since.elapsed().as_nanos() as f64 * times;
                self.at_ns.saturating_add(passed as u64).min(self.most_ns.max(self.at_ns))
            }
            _ => self.at_ns,
        }
    }

    fn settle(&mut self) {
        (self.at_ns, self.since) = (self.now_ns(), Instant::now());
    }
}

impl Play {
    /// A replay at this speed, before its first arrival.
    pub fn new(speed: Speed) -> Arc<Self> {
        let time = Time { speed, at_ns: 0, since: Instant::now(), most_ns: 0, held: false, stopped: false };
        Arc::new(Self { time: Mutex::new(time), changed: Condvar::new() })
    }

    /// The present of the replay, nanoseconds since the epoch; 0 before the first arrival.
    pub fn now_ns(&self) -> u64 {
        self.time.lock().now_ns()
    }

    /// Holds time, or lets it go on.
    pub fn hold(&self, held: bool) {
        let mut time = self.time.lock();
        if time.held != held {
            time.settle();
            time.held = held;
            self.changed.notify_all();
        }
    }

    /// Ends every wait; nothing arrives any more.
    pub fn stop(&self) {
        self.time.lock().stopped = true;
        self.changed.notify_all();
    }

    /// Waits until it is `due_ns`; gives that time, or the present when it is later already. `None` after a stop.
    fn wait_until(&self, due_ns: u64) -> Option<u64> {
        let mut time = self.time.lock();
        time.settle();
        if time.at_ns == 0 {
            time.at_ns = due_ns;
        }
        if time.speed == Speed::Max && !time.held {
            time.at_ns = time.at_ns.max(due_ns);
        }
        time.at_ns = time.at_ns.max(due_ns.saturating_sub(LONGEST_SILENCE_NS));
        time.most_ns = due_ns;
        while !time.stopped {
            let now_ns = time.now_ns();
            if !time.held && now_ns >= due_ns {
                return Some(now_ns.max(due_ns));
            }
            match time.speed {
                Speed::Times(times) if !time.held => {
                    let left = Duration::from_nanos(((due_ns - now_ns) as f64 / times) as u64 + 1);
                    self.changed.wait_for(&mut time, left);
                }
                _ => {
                    self.changed.wait(&mut time);
                    if !time.held {
                        time.at_ns = if time.speed == Speed::Max { due_ns.max(time.at_ns) } else { time.at_ns };
                    }
                }
            }
        }
        None
    }
}

/// Hands payloads on when they are due.
pub struct Replay {
    play: Arc<Play>,
    intake: Intake,
    /// When the last payload was due, and when it came.
    last: Cell<(u64, u64)>,
}

impl Replay {
    /// Plays into this channel.
    pub fn new(play: Arc<Play>, intake: Intake) -> Self {
        Self { play, intake, last: Cell::default() }
    }

    /// Waits until a payload is due, hands it over, and tells what became of it.
    ///
    /// # Errors
    /// As [`Intake::offer_blocking`] says; [`Refusal::Closed`] after a stop.
    pub fn play(&self, mut payload: Payload) -> Result<Receipt, Refusal> {
        let due_ns = payload.arrival.or(|| told_ns(&payload).unwrap_or(0));
        let came_ns = self.play.wait_until(due_ns).ok_or(Refusal::Closed)?;
        let (last_due_ns, last_ns) = self.last.replace((due_ns, came_ns));
        payload.arrival = match payload.arrival {
            Arrival::Continues(_) if due_ns == last_due_ns => Arrival::Continues(last_ns),
            Arrival::Continues(_) => Arrival::Continues(came_ns),
            _ => Arrival::At(came_ns),
        };
        self.intake.offer_blocking(payload)
    }
}

/// When the last thing was that a payload tells of, nanoseconds since the epoch.
fn told_ns(payload: &Payload) -> Option<u64> {
    match &payload.body {
        Body::Records(records) => records.iter().map(Record::written_ns).max(),
        Body::Otlp(signal, bytes) => {
            let mut batch = Batch::default();
            wire::decode(*signal, bytes, &mut batch).ok()?;
            batch.told_ns()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::thread;

    const START: u64 = 1_796_000_000_000_000_000;

    #[test]
    fn speeds_are_read() {
        for (text, speed) in [("1", Speed::Times(1.0)), ("0.5", Speed::Times(0.5)), ("max", Speed::Max)] {
            assert_eq!(text.parse(), Ok(speed));
        }
        assert_eq!("10x".parse::<Speed>().map(|speed| speed.to_string()), Ok("×10".into()));
        for text in ["", "fast", "0", "-1", "NaN", "1e9", "0.0001"] {
            let error = text.parse::<Speed>().unwrap_err();
            assert!(error.contains("expected a number from 0.01 to 10000"), "{error}");
        }
    }

    /// Late as its predecessor may have been played, it goes on where that ended.
    #[test]
    fn what_continues_another_file_follows_it() {
        let play = Play::new(Speed::Max);
        let (intake, mut outlet) = crate::source::intake::channel(crate::source::intake::Bounds::default());
        let replay = Replay::new(play, intake);
        let taker = thread::spawn(move || {
            let mut came = Vec::new();
            while let Some(delivery) = outlet.recv() {
                came.push(delivery.payload.arrival);
                delivery.answer(Ok(Receipt::default()));
            }
            came
        });
        let at = Arrival::At;
        for arrival in
            [at(START + 9), at(START), Arrival::Continues(START), at(START + 20), Arrival::Continues(START + 7)]
        {
            let empty = Payload::otlp(crate::source::intake::Signal::Traces, Vec::new());
            replay.play(Payload { arrival, ..empty }).unwrap();
        }
        drop(replay);
        let came = taker.join().unwrap();
        assert_eq!(came[1].or(|| 0), came[2].or(|| 1), "as late as its predecessor");
        assert!(matches!(came[2], Arrival::Continues(_)) && matches!(came[4], Arrival::Continues(_)));
    }

    #[test]
    fn time_passes_up_to_what_is_waited_for_and_long_silence_is_left_out() {
        let play = Play::new(Speed::Times(10_000.0));
        assert_eq!((play.wait_until(START), play.now_ns()), (Some(START), START));
        let began = Instant::now();
        // Ten virtual seconds are a real millisecond; a day is the longest silence.
        assert_eq!(play.wait_until(START + 10_000_000_000), Some(START + 10_000_000_000));
        let day = START + 86_400_000_000_000;
        assert_eq!(play.wait_until(day), Some(day));
        assert!(began.elapsed() < Duration::from_secs(5));
        assert_eq!(play.now_ns(), day);
        // What is due earlier than the present comes at once.
        assert_eq!(play.wait_until(START), Some(day));
    }

    #[test]
    fn nothing_arrives_while_it_is_held() {
        for speed in [Speed::Max, Speed::Times(10_000.0)] {
            let play = Play::new(speed);
            assert_eq!(play.wait_until(START), Some(START));
            play.hold(true);
            let (tell, told) = channel();
            let waits = Arc::clone(&play);
            let waiter = thread::spawn(move || {
                for second in 1..=2 {
                    tell.send(waits.wait_until(START + second * 1_000_000_000)).unwrap();
                }
            });
            assert!(told.recv_timeout(Duration::from_millis(20)).is_err());
            assert_eq!(play.now_ns(), START);
            play.hold(false);
            assert_eq!(told.recv(), Ok(Some(START + 1_000_000_000)));
            assert_eq!(told.recv(), Ok(Some(START + 2_000_000_000)));
            waiter.join().unwrap();
            play.hold(true);
            play.stop();
            assert_eq!(play.wait_until(START + 9_000_000_000), None);
        }
    }
}
