//! The loop: waits for events, has them handled, draws at most so many frames a second.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use ratatui::backend::Backend;

use super::waiting::Waiting;
use super::{App, Event, ExitReason, Host, Request};
use crate::tui::screen::Screen;

/// Frames a second, at most.
pub const MAX_FPS: u64 = 30;
/// How often a silent terminal is asked whether it is still there.
const LOOK_AFTER: Duration = Duration::from_secs(2);

impl App<'_> {
    pub(super) fn serve(&mut self, host: &mut dyn Host) -> io::Result<Served> {
        let mut served = Served::default();
        // One may ask for others.
        while !self.requests.is_empty() {
            let request = self.requests.remove(0);
            match request {
                Request::Act(action) => self.act(action),
                Request::Mouse(on) => host.mouse(on)?,
                Request::End(reason) => served.end = served.end.or(Some(reason)),
                Request::Suspend => {
                    if !host.suspend()? {
                        self.say("not suspended: no shell here could wake it".into());
                    }
                    served.redraw = true;
                }
                Request::Retake => {
                    host.retake()?;
                    served.redraw = true;
                }
                Request::Redraw => served.redraw = true,
                Request::Copy(what, text) => {
                    let told = host.copy(what, &text);
                    self.say(told);
                }
                Request::Save(stem, bytes, note) => {
                    // Of what was not written nothing is left out.
                    self.say(host.save(&stem, &bytes).map_or_else(|why| why, |told| told + &note));
                }
            }
        }
        Ok(served)
    }

    /// How long this frame stays right although nothing comes.
    fn stays_right(&self) -> Option<Duration> {
        let message = self.message.stays().map(|left| left + Duration::from_millis(1));
        let meter = self.meter.is_moving().then_some(Duration::from_secs(1));
        let layers = self.layers.iter().filter_map(|layer| layer.stays_right());
        layers.chain(message).chain(meter).min()
    }

    /// The loop: until the user, a signal or the end of the terminal ends it.
    ///
    /// # Errors
    /// The terminal could not be written to.
    pub fn run<B: Backend>(
        &mut self,
        screen: &mut Screen<B>,
        host: &mut dyn Host,
        events: &Receiver<Event>,
    ) -> io::Result<ExitReason>
    where
        B::Error: std::error::Error + Send + Sync + 'static,
    {
        let between = Duration::from_millis(1000 / MAX_FPS);
        let mut drawn: Option<Instant> = None;
        let mut changed = true;
        let mut waiting = Waiting::default();
        self.serve(host)?;
        loop {
            let since = drawn.map(|drawn| drawn.elapsed());
            let wait = match since {
                _ if !waiting.is_empty() => Duration::ZERO,
                None => Duration::ZERO,
                Some(since) if changed => between.saturating_sub(since),
                Some(since) => {
                    self.stays_right().map_or(LOOK_AFTER, |fresh| fresh.saturating_sub(since).min(LOOK_AFTER))
                }
            };
            let first = if wait.is_zero() {
                match events.try_recv() {
                    Ok(event) => Some(event),
                    Err(TryRecvError::Empty) => None,
                    Err(TryRecvError::Disconnected) => return Ok(ExitReason::Closed),
                }
            } else {
                match events.recv_timeout(wait) {
                    Ok(event) => Some(event),
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => return Ok(ExitReason::Closed),
                }
            };
            waiting.take(first.into_iter().chain(events.try_iter()), |event| self.ends(event));
            if waiting.is_empty() && !changed {
                if !host.is_there() {
                    return Ok(ExitReason::Closed);
                }
                let since = drawn.map_or(Duration::MAX, |drawn| drawn.elapsed());
                changed = self.stays_right().is_some_and(|fresh| since >= fresh);
            }
            let begun = Instant::now();
            while !waiting.is_empty() && begun.elapsed() < between {
                self.handle_next(&mut waiting);
                changed = true;
                let served = self.serve(host)?;
                if let Some(reason) = served.end {
                    return Ok(reason);
                }
                if served.redraw {
                    screen.forget();
                }
            }
            if changed && drawn.is_none_or(|drawn| drawn.elapsed() >= between) {
                self.refresh(screen.resize()?);
                screen.show(|buf| self.draw(buf))?;
                drawn = Some(Instant::now());
                changed = false;
            }
        }
    }
}

/// What serving the requests came to.
#[derive(Default)]
pub(super) struct Served {
    pub(super) end: Option<ExitReason>,
    redraw: bool,
}
