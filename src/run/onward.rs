//! Where what is received goes on to, put together: the taps, what is told of them, and how they end.

use std::net::SocketAddr;
use std::sync::Arc;

use super::Ended;
use crate::cli;
use crate::report::{ForwardingSection, InputSection, RecordingSection};
use crate::settings;
use crate::tap::forward::{self, Forwarding};
use crate::tap::record::{self, Recording};
use crate::tap::{Alarm, Taps};
use crate::view::format;
use crate::view::header::WayOut;

/// The ways out of a running command.
#[derive(Default)]
pub(super) struct Onward {
    recording: Option<Recording>,
    forwarding: Option<Forwarding>,
}

/// What the ways out came to.
pub(super) struct Finished {
    /// A line of each.
    pub notes: Vec<String>,
    /// Whether everything got where it was to go.
    pub is_whole: bool,
}

impl Finished {
    /// Tells it at the end of a command; what was lost shows in the exit status.
    pub(super) fn end(self, ended: &mut Ended) {
        ended.notes.extend(self.notes);
        if !self.is_whole {
            ended.status = 2;
        }
    }
}

impl Onward {
    /// Starts what is asked for; `own` are the addresses that must not be forwarded to. `alarm` also hears what was found
    /// on the way.
    pub(super) fn start(args: &cli::Onward, own: &[SocketAddr], alarm: &Alarm) -> Result<(Arc<Self>, Taps), String> {
        let mut taps = Taps::new();
        let mut onward = Self::default();
        if let Some((settings, cautions)) = settings::forwarding(args)? {
            cautions.iter().for_each(|caution| alarm(caution));
            if let Some(own) = settings.target.is_own(own) {
                return Err(format!(
                    "--forward {}: is {own}, where this program itself listens; give another endpoint",
                    settings.target
                ));
            }
            let (forwarder, forwarding) = Forwarding::start(settings, Arc::clone(alarm))?;
            taps.push(Box::new(forwarder));
            onward.forwarding = Some(forwarding);
        }
        if let Some(settings) = settings::recording(args) {
            let (recorder, recording) = Recording::start(settings, Arc::clone(alarm))?;
            taps.push(Box::new(recorder));
            onward.recording = Some(recording);
        }
        Ok((Arc::new(onward), taps))
    }

    /// Refuses what would do nothing.
    pub(super) fn refuse_without_listening(args: &cli::Onward, hint: &str) -> Result<(), String> {
        for (asked, option) in [(args.record.is_some(), "--record"), (args.forward.is_some(), "--forward")] {
            if asked {
                return Err(format!("{option} takes what is received, and nothing listens here: {hint}"));
            }
        }
        Ok(())
    }

    /// How they stand, for the header.
    pub(super) fn ways(&self) -> Vec<WayOut> {
        let forwarding = self.forwarding.iter().map(|forwarding| fwd(&forwarding.standing()));
        let recording = self.recording.iter().map(|recording| rec(&recording.standing()));
        forwarding.chain(recording).collect()
    }

    /// Waits until everything is out, once the taps are gone, and tells what it came to.
    pub(super) fn finish(&self, input: &mut InputSection) -> Finished {
        let (mut notes, mut is_whole) = (Vec::new(), true);
        if let Some(forwarding) = &self.forwarding {
            let standing = forwarding.finish();
            let section = ForwardingSection {
                target: forwarding.target().to_string(),
                forwarded: standing.forwarded,
                retried: standing.retried,
                dropped: standing.dropped,
                refused: standing.refused,
                came_back: standing.came_back,
                rejected: standing.rejected,
                waiting: standing.waiting,
                trouble: standing.trouble,
            };
            is_whole &= section.dropped + section.refused + section.rejected + section.waiting == 0;
            notes.push(format!("forwarded {section}"));
            input.forwarding = Some(section);
        }
        if let Some(recording) = &self.recording {
            let record::Standing { requests, bytes, lost, too_deep, ended } = recording.finish();
            let file = recording.path().display().to_string();
            let section = RecordingSection { file, requests, bytes, lost, too_deep, ended };
            is_whole &= section.lost == 0 && section.ended.is_none();
            notes.push(format!("recorded {section}"));
            input.recording = Some(section);
        }
        Finished { notes, is_whole }
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

fn fwd(standing: &forward::Standing) -> WayOut {
    let lost = standing.dropped + standing.refused;
    let mut said = format::count(standing.forwarded);
    if standing.waiting > 0 {
        said += &format!(" · {} waiting", format::count(standing.waiting));
    }
    if standing.came_back > 0 {
        said += &format!(" · {} came back", format::count(standing.came_back));
    }
    let trouble = match (lost, &standing.trouble) {
        (0, None) => None,
        (0, Some(why)) => Some(why.chars().take(40).collect()),
        (lost, _) => Some(format!("lost {}", format::count(lost))),
    };
    WayOut { name: "fwd", said, trouble }
}
