//! The dashboard: sources → writer → store ← screen.

use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::FairMutex;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use super::onward::Onward;
use super::{Ended, clock, files, runtime};
use crate::cli;
use crate::pipeline::{self, Clock};
use crate::report::InputSection;
use crate::settings;
use crate::source::intake::{Bounds, Intake, channel};
use crate::source::notices::Notices;
use crate::source::otlp::{Bound, Endpoint};
use crate::source::replay::Play;
use crate::store::Store;
use crate::tui::theme::{Signs, Theme};
use crate::tui::{self, RunArgs, Shared};
use crate::view::header::{Listener, Vitals};

/// Runs the dashboard on files, or on what arrives.
pub(super) fn run(args: cli::Dashboard) -> Result<Ended, String> {
    if let Some(refusal) = tui::terminal::refusal() {
        return Err(refusal.to_string());
    }
    let bound = if args.files.is_empty() {
        let endpoint = settings::endpoint(&args.listen, settings::USUAL)?;
        Some(Endpoint::bind(endpoint).map_err(|error| error.to_string())?)
    } else {
        None
    };
    if bound.is_none() {
        Onward::refuse_without_listening(&args.onward, "without files, reqtop listens")?;
    }
    let stage = Stage::new(&args.keep, &args.look, bound.as_ref(), &args.onward, Time::Wall)?;
    let serving = bound.map(|bound| stage.serve(bound)).transpose()?;
    stage.read(args.files, args.follow)?;
    let ended = stage.show();
    drop(serving);
    stage.end(ended)
}

/// By which clock arrivals are counted and screens drawn.
pub(super) enum Time {
    /// The wall's.
    Wall,
    /// A replay's, which stands still while the screen does.
    Played(Arc<Play>),
}

/// The store with its writer, before it has sources and a screen.
pub(super) struct Stage {
    shared: Arc<Shared>,
    notices: Notices,
    intake: Intake,
    onward: Arc<Onward>,
    theme: Theme,
    clock: Clock,
}

/// An endpoint at work; dropped, it closes within a second.
pub(super) struct Serving {
    stop: Option<oneshot::Sender<()>>,
    runtime: Option<Runtime>,
    task: Option<tokio::task::JoinHandle<std::io::Result<()>>>,
}

impl Serving {
    /// The runtime, for what else needs one.
    pub(super) fn runtime(&self) -> Option<&Runtime> {
        self.runtime.as_ref()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let (Some(runtime), Some(task)) = (self.runtime.take(), self.task.take()) {
            let limit = std::time::Duration::from_millis(1500);
            let _ = runtime.block_on(async { tokio::time::timeout(limit, task).await });
            runtime.shutdown_timeout(std::time::Duration::from_millis(100));
        }
    }
}

impl Stage {
    pub(super) fn new(
        keep: &cli::Keep,
        look: &cli::Look,
        bound: Option<&Bound>,
        onward: &cli::Onward,
        time: Time,
    ) -> Result<Self, String> {
        let theme = Theme::named(look.theme.as_deref().unwrap_or("terminal"))?;
        let theme = if std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) {
            theme.without_colour()
        } else {
            theme
        };
        let theme = theme.with_signs(if look.ascii { Signs::Ascii } else { Signs::Unicode });
        let listeners = bound.map_or_else(Vec::new, |bound| {
            let of =
                |protocol, addresses: Vec<_>| addresses.into_iter().map(move |address| Listener { protocol, address });
            of("grpc", bound.grpc()).chain(of("http", bound.http())).collect()
        });
        let store = Arc::new(FairMutex::new(Store::new(settings::limits(keep))));
        let shared = Arc::new(Shared::new(Arc::clone(&store), Vitals { listeners, ..Vitals::default() }));
        let (intake, outlet) = channel(Bounds::default());
        let bell = Arc::downgrade(&shared);
        let alarm = move |words: &str| {
            if let Some(shared) = bell.upgrade() {
                shared.report(|vitals| vitals.notices.push(words.to_owned()));
            }
        };
        let (onward, taps) = Onward::start(onward, Box::new(alarm))?;
        let watched = Arc::clone(&onward);
        shared.watch(move || watched.ways());
        let clock = match time {
            Time::Wall => clock(),
            Time::Played(play) => {
                let held = Arc::clone(&play);
                shared.on_hold(move |is_held| held.hold(is_held));
                Arc::new(move || play.now_ns())
            }
        };
        let bell = Arc::clone(&shared);
        pipeline::start_with(outlet, store, Arc::clone(&clock), taps, move || bell.changed())
            .map_err(|error| format!("cannot start the store's thread: {error}"))?;
        let bell = Arc::downgrade(&shared);
        let notices = Notices::default();
        notices.on_note(move |notices| {
            if let Some(shared) = bell.upgrade() {
                let busy = notices.count(crate::source::notices::Notice::Busy);
                let malformed = notices.total() - busy;
                let words =
                    notices.list().into_iter().map(|noted| format!("{}: {}", noted.notice.label(), noted.latest));
                let words: Vec<String> = words.collect();
                shared.report(|vitals| {
                    (vitals.busy, vitals.malformed) = (busy, malformed);
                    vitals.notices = words;
                });
            }
        });
        Ok(Self { shared, notices, intake, onward, theme, clock })
    }

    /// The way in for another source.
    pub(super) fn intake(&self) -> Intake {
        self.intake.clone()
    }

    /// What sources tell the screen through.
    pub(super) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// Serves an endpoint that is bound.
    pub(super) fn serve(&self, bound: Bound) -> Result<Serving, String> {
        let runtime = runtime()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let task = runtime.spawn(bound.serve(self.intake.clone(), self.notices.clone(), async {
            // An error means that the other side is gone, which is the same message.
            let _ = stopped.await;
        }));
        Ok(Serving { stop: Some(stop), runtime: Some(runtime), task: Some(task) })
    }

    /// Reads files beside the screen.
    fn read(&self, paths: Vec<PathBuf>, follow: bool) -> Result<(), String> {
        if paths.is_empty() {
            return Ok(());
        }
        let (shared, intake) = (Arc::clone(&self.shared), self.intake.clone());
        std::thread::Builder::new()
            .name("files".into())
            .spawn(move || files::into_intake(paths, follow, &intake, &shared))
            .map(drop)
            .map_err(|error| format!("cannot start the reading thread: {error}"))
    }

    /// Ends after the screen: lets what is on its way out get there, and tells what it came to.
    pub(super) fn end(self, ended: Result<Ended, String>) -> Result<Ended, String> {
        let Self { intake, onward, .. } = self;
        drop(intake);
        let notes = onward.finish(&mut InputSection::default());
        ended.map(|ended| Ended { notes: [ended.notes, notes].concat(), ..ended })
    }

    /// Shows the screen until it ends.
    pub(super) fn show(&self) -> Result<Ended, String> {
        let args = RunArgs { shared: Arc::clone(&self.shared), theme: self.theme.clone(), clock: &*self.clock };
        let reason = tui::run(&args).map_err(|error| error.to_string())?;
        Ok(Ended { output: String::new(), notes: Vec::new(), status: reason.status() })
    }
}
