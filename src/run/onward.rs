//! Where what is received goes on to, put together: the taps, what is told of them, and how they end.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use super::{Ended, say};
use crate::cli;
use crate::report::{ForwardingSection, InputSection, RecordingSection};
use crate::settings;
use crate::source::notices::Notices;
use crate::tap::forward::target::Target;
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
    /// Starts what is asked for; `own` are the addresses that must not be forwarded to; `notices` tell what was
    /// lost at the door. `alarm` also hears what was found
    /// on the way.
    pub(super) fn start(
        args: &cli::Onward,
        own: &[SocketAddr],
        notices: &Notices,
        alarm: &Alarm,
    ) -> Result<(Arc<Self>, Taps), String> {
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
            taps.push(Box::new(recorder.hearing(notices.clone())));
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
            let mut patience = Patience::new(forwarding.target());
            let standing = forwarding.finish(|waited| patience.lasts(waited));
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
            let record::Standing { requests, bytes, lost, removed, too_deep, ended } = recording.finish();
            let file = recording.path().display().to_string();
            let section = RecordingSection { file, requests, bytes, lost, removed, too_deep, ended };
            is_whole &= section.lost == 0 && section.ended.is_none();
            notes.push(format!("recorded {section}"));
            input.recording = Some(section);
        }
        Finished { notes, is_whole }
    }
}

/// How long whoever is at the terminal has to wait in silence.
const SILENCE: Duration = Duration::from_secs(1);

/// Waits for the far side of a forwarder: says so after a while, and ends when it is asked to.
struct Patience<'a> {
    target: &'a Target,
    is_silent: bool,
    asked: Arc<AtomicBool>,
    heard: Vec<SigId>,
}

impl<'a> Patience<'a> {
    fn new(target: &'a Target) -> Self {
        let asked = Arc::<AtomicBool>::default();
        let hear = |signal| signal_hook::flag::register(signal, Arc::clone(&asked)).ok();
        Self {
            target,
            is_silent: true,
            heard: [SIGINT, SIGTERM, SIGHUP, SIGQUIT].into_iter().filter_map(hear).collect(),
            asked,
        }
    }

    fn lasts(&mut self, waited: Duration) -> bool {
        if waited >= SILENCE && std::mem::take(&mut self.is_silent) && std::io::stderr().is_terminal() {
            let most = forward::LAST_CALL.as_secs();
            say(&format!("waiting up to {most} s for {} to take what waits; Ctrl-C ends it", self.target));
        }
        !self.asked.load(Ordering::SeqCst)
    }
}

impl Drop for Patience<'_> {
    fn drop(&mut self) {
        self.heard.drain(..).for_each(|heard| _ = signal_hook::low_level::unregister(heard));
    }
}

fn rec(standing: &record::Standing) -> WayOut {
    let trouble = standing.ended.as_ref().map(|why| format!("STOPPED: {why}"));
    WayOut { name: "rec", said: format::bytes(standing.bytes), lost: standing.lost, trouble }
}

fn fwd(standing: &forward::Standing) -> WayOut {
    let mut said = format::count(standing.forwarded);
    if standing.waiting > 0 {
        said += &format!(" · {} waiting", format::count(standing.waiting));
    }
    if standing.came_back > 0 {
        said += &format!(" · {} came back", format::count(standing.came_back));
    }
    let lost = standing.dropped + standing.refused;
    WayOut { name: "fwd", said, lost, trouble: standing.trouble.clone() }
}
