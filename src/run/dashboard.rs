//! The dashboard: sources → writer → store ← screen.

use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::FairMutex;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use super::onward::Onward;
use super::standing::Standing;
use super::{Ended, clock, files, now, now_ns, runtime, stores};
use crate::cli;
use crate::pipeline::{self, Clock};
use crate::report::InputSection;
use crate::settings;
use crate::source::intake::{Bounds, Intake, channel};
use crate::source::notices::{Notice, Notices};
use crate::source::otlp::{self, Bound, Clients, Endpoint};
use crate::source::remote::{self, Until};
use crate::source::replay::Play;
use crate::store::{Coming, Store};
use crate::tap::Alarm;
use crate::tui::{self, RunArgs, Setup, Shared};
use crate::view::header::{Guard, Listener, Vitals};
use crate::view::link::TraceUrl;

/// Runs the dashboard on files, or on what arrives.
pub(super) fn run(args: cli::Dashboard) -> Result<Ended, String> {
    if let Some(refusal) = tui::terminal::refusal() {
        return Err(format!("{refusal}; {}", super::WITHOUT_SCREEN));
    }
    files::refuse_absent(&args.files, args.follow)?;
    let from = settings::store(&args.from, None, Until::Ever, now_ns())?;
    if let Some(from) = &from {
        remote::probe(from)?;
    }
    let bound = if args.files.is_empty() && from.is_none() {
        let endpoint = settings::endpoint(&args.listen, settings::USUAL, now())?;
        Some(Endpoint::bind(endpoint).map_err(|error| error.to_string())?)
    } else {
        None
    };
    let trace_url = settings::trace_url(&args.look, from.as_ref())?;
    if bound.is_none() {
        Onward::refuse_without_listening(&args.onward, "without files, reqtop listens")?;
    }
    let is_finite = from.as_ref().is_none_or(|from| from.until != Until::Ever);
    let standing = (bound.is_none() && !args.follow && is_finite).then(|| Arc::new(Standing::new(now_ns())));
    let time = standing.clone().map_or(Time::Wall, Time::Standing);
    let stage = Stage::new(&args.keep, &args.look, bound.as_ref(), &args.onward, time)?.linking(trace_url);
    let serving = bound.map(|bound| stage.serve(bound)).transpose()?;
    stage.read(args.files, standing.clone())?;
    if let Some(from) = from {
        stage.read_store(from, standing)?;
    }
    let (ended, leaving) = stage.show();
    drop(serving);
    leaving.end(ended)
}

/// By which clock arrivals are counted and screens drawn.
pub(super) enum Time {
    /// The wall's.
    Wall,
    /// A replay's, which stands still while the screen does.
    Played(Arc<Play>),
    /// That of files which nothing is added to.
    Standing(Arc<Standing>),
}

/// The store with its writer, before it has sources and a screen.
pub(super) struct Stage {
    shared: Arc<Shared>,
    notices: Notices,
    intake: Intake,
    onward: Arc<Onward>,
    setup: Setup,
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
        let setup = settings::setup(look, |name| std::env::var(name).ok())?;
        let listeners = bound.map_or_else(Vec::new, |bound| {
            let of =
                |protocol, addresses: Vec<_>| addresses.into_iter().map(move |address| Listener { protocol, address });
            of("grpc", bound.grpc()).chain(of("http", bound.http())).collect()
        });
        let guard = bound.map_or_else(Guard::default, |bound| words(bound.guard()));
        let cautions = bound.map_or_else(Vec::new, Bound::cautions);
        let mut store = Store::new(settings::limits(keep));
        if bound.is_some() {
            store.listens_from(now_ns());
        }
        let store = Arc::new(FairMutex::new(store));
        let vitals = Vitals { listeners, guard, notices: cautions.clone(), ..Vitals::default() };
        let shared = Arc::new(Shared::new(Arc::clone(&store), vitals));
        let (intake, outlet) = channel(Bounds::default());
        let bell = Arc::downgrade(&shared);
        let alarm = move |words: &str| {
            if let Some(shared) = bell.upgrade() {
                shared.report(|vitals| vitals.notices.push(words.to_owned()));
            }
        };
        let own = bound.map_or_else(Vec::new, |bound| [bound.grpc(), bound.http()].concat());
        let alarm: Alarm = Arc::new(alarm);
        let notices = Notices::default();
        let (onward, taps) = Onward::start(onward, &own, &notices, &alarm)?;
        let watched = Arc::clone(&onward);
        shared.watch(move || watched.ways());
        let clock = match time {
            Time::Wall => clock(),
            Time::Played(play) => {
                let held = Arc::clone(&play);
                shared.on_hold(move |is_held| held.hold(is_held));
                Arc::new(move || play.now_ns())
            }
            Time::Standing(standing) => {
                shared.ends_with_what_is_held();
                Arc::new(move || standing.now_ns())
            }
        };
        let bell = Arc::clone(&shared);
        pipeline::start_with(outlet, store, Arc::clone(&clock), taps, move || bell.changed())
            .map_err(|error| format!("cannot start the store's thread: {error}"))?;
        let bell = Arc::downgrade(&shared);
        notices.on_note(move |notices| {
            if let Some(shared) = bell.upgrade() {
                let busy = notices.count(Notice::Busy);
                let refusals = Notice::ALL.into_iter().filter(|notice| notice.is_refusal());
                let malformed = refusals.map(|notice| notices.count(notice)).sum();
                let noted = notices.list().into_iter();
                let noted = noted.map(|noted| format!("{}: {}", noted.notice.label(), noted.latest));
                let words: Vec<String> = cautions.iter().cloned().chain(noted).collect();
                shared.report(|vitals| {
                    (vitals.busy, vitals.malformed) = (busy, malformed);
                    vitals.notices = words;
                });
            }
        });
        Ok(Self { shared, notices, intake, onward, setup, clock })
    }

    /// With links to traces in their store.
    pub(super) fn linking(mut self, trace_url: Option<TraceUrl>) -> Self {
        self.setup.trace_url = trace_url;
        self
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

    /// Reads files beside the screen, the last one for as long as it is there unless their time stands.
    fn read(&self, paths: Vec<PathBuf>, standing: Option<Arc<Standing>>) -> Result<(), String> {
        if paths.is_empty() {
            return Ok(());
        }
        let (shared, intake) = (Arc::clone(&self.shared), self.intake.clone());
        std::thread::Builder::new()
            .name("files".into())
            .spawn(move || files::into_intake(paths, standing.as_deref(), &intake, &shared))
            .map(drop)
            .map_err(|error| format!("cannot start the reading thread: {error}"))
    }

    /// Reads a trace store beside the screen.
    fn read_store(&self, from: remote::Settings, standing: Option<Arc<Standing>>) -> Result<(), String> {
        let (shared, intake) = (Arc::clone(&self.shared), self.intake.clone());
        let clock = Arc::clone(&self.clock);
        if from.until == Until::Ever {
            shared.report(|vitals| vitals.store = Some(from.name()));
        }
        std::thread::Builder::new()
            .name("trace store".into())
            .spawn(move || {
                stores::into_intake(&from, standing.as_deref(), &intake, &shared);
                if from.until != Until::Ever {
                    let now_ns = clock();
                    files::settle(&shared, now_ns, false, Coming::Writing(now_ns));
                }
            })
            .map(drop)
            .map_err(|error| format!("cannot start the reading thread: {error}"))
    }

    /// Shows the screen until it ends. What is on its way out then is [`Leaving`]'s to wait for.
    pub(super) fn show(self) -> (Result<Ended, String>, Leaving) {
        let Self { shared, intake, onward, setup, clock, .. } = self;
        let ended = tui::run(RunArgs { shared, setup, clock: &*clock }).map_err(|error| error.to_string());
        let ended = ended.map(|reason| Ended { status: reason.status(), ..Ended::well(String::new()) });
        (ended, Leaving { intake, onward })
    }
}

/// What is left when the screen has ended.
pub(super) struct Leaving {
    intake: Intake,
    onward: Arc<Onward>,
}

impl Leaving {
    /// Lets what is on its way out get there, once the sources are gone, and tells what it came to.
    pub(super) fn end(self, ended: Result<Ended, String>) -> Result<Ended, String> {
        let Self { intake, onward } = self;
        drop(intake);
        let finished = onward.finish(&mut InputSection::default());
        let mut ended = ended?;
        finished.end(&mut ended);
        Ok(ended)
    }
}

/// What keeps others out, and what could.
fn words(guard: otlp::Guard) -> Guard {
    let mut words = Guard::default();
    match guard.tls {
        None => words.lacks.push("no TLS"),
        Some(Clients::All) => words.has.push("TLS"),
        Some(Clients::Certified) => words.has.push("TLS with client certificates"),
    }
    match guard.token {
        true => words.has.push("token"),
        false if guard.tls == Some(Clients::Certified) => {}
        false => words.lacks.push("no token"),
    }
    words
}
