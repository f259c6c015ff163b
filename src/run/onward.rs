//! Where what is received goes on to, put together: the taps, what is told of them, and how they end.

use std::sync::Arc;

use crate::cli;
use crate::report::{InputSection, RecordingSection};
use crate::settings;
use crate::tap::record::{self, Recording};
use crate::tap::{Alarm, Taps};
use crate::view::format;
use crate::view::header::WayOut;

/// The ways out of a running command.
#[derive(Default)]
pub(super) struct Onward {
    recording: Option<Recording>,
}

impl Onward {
    /// Starts what is asked for. `alarm` also hears what was found on the way.
    pub(super) fn start(args: &cli::Onward, alarm: Alarm) -> Result<(Arc<Self>, Taps), String> {
        let mut taps = Taps::new();
        let mut onward = Self::default();
        if let Some(settings) = settings::recording(args) {
            let (recorder, recording) = Recording::start(settings, alarm)?;
            taps.push(Box::new(recorder));
            onward.recording = Some(recording);
        }
        Ok((Arc::new(onward), taps))
    }

    /// Refuses what would do nothing.
    pub(super) fn refuse_without_listening(args: &cli::Onward, hint: &str) -> Result<(), String> {
        match args.record {
            Some(_) => Err(format!("--record takes what is received, and nothing listens here: {hint}")),
            None => Ok(()),
        }
    }

    /// How they stand, for the header.
    pub(super) fn ways(&self) -> Vec<WayOut> {
        self.recording.iter().map(|recording| rec(&recording.standing())).collect()
    }

    /// Waits until everything is written, once the taps are gone, and tells what it came to.
    pub(super) fn finish(&self, input: &mut InputSection) -> Vec<String> {
        let Some(recording) = &self.recording else { return Vec::new() };
        let record::Standing { requests, bytes, lost, metrics, too_deep, ended } = recording.finish();
        let file = recording.path().display().to_string();
        let section = RecordingSection { file, requests, bytes, lost, metrics, too_deep, ended };
        let note = format!("recorded {section}");
        input.recording = Some(section);
        vec![note]
    }
}

fn rec(standing: &record::Standing) -> WayOut {
    let trouble = match (&standing.ended, standing.lost) {
        (Some(why), _) => Some(format!("STOPPED: {why}")),
        (None, 0) => None,
        (None, lost) => Some(format!("lost {}", format::count(lost))),
    };
    WayOut { name: "rec", said: format::bytes(standing.bytes), trouble }
}
