//! Commands without a screen: read files, listen if asked to, then print.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::FairMutex;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::onward::Onward;
use super::standing::Standing;
use super::{Ended, Output, clock, files, now, now_ns, runtime, say, stores};
use crate::checks::load::{LoadList, aiperf, ledger};
use crate::cli;
use crate::pipeline;
use crate::query::Query;
use crate::report::check::{Accepted, CheckReport, Expectation, Rules, catalogue};
use crate::report::{InputSection, Report};
use crate::settings;
use crate::source::file;
use crate::source::intake::{Bounds, channel};
use crate::source::notices::{Notice, Notices};
use crate::source::otlp::Endpoint;
use crate::source::remote::Until;
use crate::store::{Coming, Store};
use crate::tap::Alarm;

/// How often a wait for `--requests` looks.
const LOOK: Duration = Duration::from_millis(50);

/// Prints the report.
pub(super) fn report(args: cli::Report) -> Result<Ended, String> {
    gather(&args.input, |gathered| {
        let Gathered { store, input, filter, notes, .. } = gathered.asked();
        let window_ns = args.window.map(|window| u64::try_from(window.as_nanos()).unwrap_or(u64::MAX));
        let report = Report::within(&store, input, filter.as_ref(), window_ns);
        let output = match (args.json, args.markdown) {
            (true, _) => report.to_json() + "\n",
            (_, true) => report.to_markdown(),
            _ => report.to_string(),
        };
        Ok(Ended { notes, ..Ended::well(output) })
    })
}

/// Prints spans as OTLP JSON lines.
pub(super) fn export(args: cli::Export) -> Result<Ended, String> {
    gather(&args.input, |gathered| {
        let Gathered { store, input, filter, mut notes, .. } = gathered.asked();
        let counts = store.counts();
        // What is turned away of senders is theirs to hear of, and they have.
        let mut lost: Vec<String> = if args.input.listen { Vec::new() } else { input.left_out(counts).collect() };
        let room = counts.spans_evicted + counts.records_evicted + counts.spans_shed;
        if room > 0 {
            lost.push(format!("{room} spans and records were let go or not taken for room: raise --max-memory"));
        }
        notes.extend(input.problems);
        if counts.signs > 0 {
            notes.push(format!(
                "{} frontend logs on requests are not exported: requests that nothing else tells of are missing",
                counts.signs
            ));
        }
        let status = if lost.is_empty() { 0 } else { 2 };
        notes.extend(lost.into_iter().map(|what| format!("not exported: {what}")));
        Ok(Ended { output: Output::Export(Box::new(store), filter), notes, status })
    })
}

/// Asks every check and prints the verdict.
pub(super) fn check(args: cli::Check) -> Result<Ended, String> {
    let mut rules = Rules { only: args.only, skip: args.skip, strict: args.strict, ..Rules::default() };
    if let Some((option, name)) = rules.unnamed() {
        return Err(format!("--{option} {name}: no check or family is called that (`reqtop checks` lists them)"));
    }
    if !rules.want_any() {
        return Err("--only and --skip leave no check to ask".into());
    }
    if args.input.filter.is_some() && (args.aiperf.is_some() || args.load.is_some()) {
        return Err(
            "--filter: what a load generator saw is compared with all requests, not with some; leave one out".into()
        );
    }
    for text in &args.expect {
        rules.expectations.push(Expectation::read(text).map_err(|error| format!("--expect {text:?}: {error}"))?);
    }
    if let Some(path) = &args.baseline {
        rules.baseline = read_named("--baseline", path, Accepted::read)?;
    }
    let format = if args.json { cli::CheckFormat::Json } else { args.format };
    gather(&args.input, |Gathered { mut store, input, filter, notes, coming }| {
        rules.filter = filter;
        // The load generator writes its files while or after we listen: they are read when there is something to compare.
        (rules.load, rules.ledger) = load(args.aiperf.as_deref(), args.load.as_deref())?;
        if let Some(list) = &rules.load {
            store.expect_load(list);
        }
        ask(&mut store, &input, coming);
        let report = CheckReport::of(&store, &input, &rules);
        let output = match format {
            cli::CheckFormat::Text => report.to_string(),
            cli::CheckFormat::Json => report.to_json() + "\n",
            cli::CheckFormat::Junit => report.to_junit(),
            cli::CheckFormat::Github => report.to_github(),
        };
        Ok(Ended { notes, status: u8::from(!report.passed), ..Ended::well(output) })
    })
}

/// Reads a file that an option names; what is wrong with it names both.
fn read_named<T>(option: &str, path: &Path, read: impl FnOnce(&str) -> Result<T, String>) -> Result<T, String> {
    let text = file::text(path).map_err(|error| error.to_string());
    text.and_then(|text| read(&text)).map_err(|error| format!("{option} {}: {error}", path.display()))
}

/// What a load generator saw: request by request, and in counts.
fn load(listed: Option<&Path>, counted: Option<&Path>) -> Result<(Option<LoadList>, Option<ledger::Ledger>), String> {
    let (mut list, mut ledger) = (None, None);
    if let Some(path) = listed {
        let records = read_named("--aiperf", path, |text| match aiperf::profile_export(text)? {
            records if records.is_empty() => Err("no request is in it, so there is nothing to compare".into()),
            records => Ok(records),
        })?;
        let manifest = path.with_file_name("phase_manifest.json");
        // It lies there only when phases were told apart.
        let phases = match manifest.exists() {
            true => read_named("--aiperf", &manifest, aiperf::phase_manifest)?,
            false => Vec::new(),
        };
        list = Some(LoadList { records, phases });
    }
    if let Some(path) = counted {
        let parsed = read_named("--load", path, |text| match ledger::parse(text)? {
            parsed if parsed.records.is_empty() && !parsed.has_counts() => {
                Err("no request and no count is in it, so there is nothing to compare".into())
            }
            parsed => Ok(parsed),
        })?;
        if !parsed.records.is_empty() && list.is_none() {
            list = Some(LoadList { records: parsed.records.clone(), phases: Vec::new() });
        }
        // A list alone has no counts to compare.
        ledger = parsed.has_counts().then_some(parsed);
    }
    Ok((list, ledger))
}

/// Prints the catalogue of checks.
pub(super) fn checks(args: cli::Checks) -> Ended {
    let output = match args.format {
        cli::CatalogueFormat::Text => catalogue::text(),
        cli::CatalogueFormat::Json => catalogue::json(),
        cli::CatalogueFormat::Markdown => catalogue::markdown(),
    };
    Ended::well(output)
}

/// What came of the sources that a command names.
struct Gathered {
    store: Store,
    input: InputSection,
    filter: Option<Query>,
    notes: Vec<String>,
    /// What may still have been on its way when it ended.
    coming: Coming,
}

impl Gathered {
    /// With the checks asked when the filter goes by what they say.
    fn asked(mut self) -> Self {
        if self.filter.as_ref().is_some_and(Query::asks_checks) {
            ask(&mut self.store, &self.input, self.coming);
        }
        self
    }
}

/// Asks the checks of what came.
fn ask(store: &mut Store, input: &InputSection, coming: Coming) {
    if input.has_losses(store) {
        store.note_losses();
    }
    store.check_what_came(coming);
}

/// Fills a store from what the command names, and hands it over.
fn gather(args: &cli::Input, print: impl FnOnce(Gathered) -> Result<Ended, String>) -> Result<Ended, String> {
    let filter = settings::filter(args.filter.as_deref())?;
    if !args.listen {
        Onward::refuse_without_listening(&args.onward, "add --listen")?;
    }
    let bound = match args.listen {
        true => {
            let endpoint = settings::endpoint(&args.endpoint, settings::USUAL, now())?;
            Some(Endpoint::bind(endpoint).map_err(|error| error.to_string())?)
        }
        false => None,
    };
    let mut store = Store::new(settings::limits(&args.keep));
    let from = settings::store(&args.from, filter.as_ref(), Until::Now, now_ns())?;
    let standing = Standing::new(now_ns());
    let files::ReadIn { mut input, unreadable } = files::into_store(&args.files, &standing, &mut store)?;
    if let Some(from) = &from {
        stores::into_store(from, &standing, &mut store, &mut input)?;
    }
    let (mut notes, mut finished) = (Vec::new(), None);
    let mut end_ns = standing.now_ns();
    let mut coming = if from.is_some() { Coming::Writing(now_ns()) } else { Coming::Recorded(standing.now_ns()) };
    if let Some(bound) = bound {
        let addresses = |addresses: Vec<std::net::SocketAddr>| {
            addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        };
        let own = [bound.grpc(), bound.http()].concat();
        let alarm: Alarm = Arc::new(say);
        let notices = Notices::default();
        let (onward, taps) = Onward::start(&args.onward, &own, &notices, &alarm)?;
        let cautions = bound.cautions();
        let runtime = runtime()?;
        // Before anybody is told to send: whoever reads that may ask for the end at once.
        let signals = {
            let _within = runtime.enter();
            Signals::heard()
        };
        let since_ns = now_ns();
        store.listens_from(since_ns);
        // On standard error and at once: whoever starts the sender waits for it.
        say(&format!("listening: grpc {}; http {}", addresses(bound.grpc()), addresses(bound.http())));
        cautions.iter().for_each(|caution| say(&format!("caution: {caution}")));
        let shared = Arc::new(FairMutex::new(store));
        let (intake, outlet) = channel(Bounds::default());
        let writer = pipeline::start_with(outlet, Arc::clone(&shared), clock(), taps, || {})
            .map_err(|error| format!("cannot start the store's thread: {error}"))?;
        let until = listen_until(args.time, args.requests, signals, Arc::clone(&shared));
        runtime
            .block_on(bound.serve(intake, notices.clone(), until))
            .map_err(|error| format!("the endpoint ended: {error}"))?;
        writer.join().map_err(|_| "the store's thread ended early")?;
        finished = Some(onward.finish(&mut input));
        store = Arc::into_inner(shared).ok_or("the store is still in use")?.into_inner();
        end_ns = now_ns();
        coming = Coming::Arrivals { since_ns, until_ns: end_ns };
        store.heard_nothing_until(end_ns);
        input.losses += notices.lost();
        for noted in notices.list() {
            if noted.notice.is_refusal() {
                input.requests_refused += noted.count;
            } else if noted.notice == Notice::Busy {
                input.requests_busy += noted.count;
            }
            notes.push(format!("{} × {}: {}", noted.count, noted.notice.label(), noted.latest));
        }
    }
    store.finish(end_ns);
    let mut ended = print(Gathered { store, input, filter, notes, coming })?;
    if unreadable > 0 {
        let of = args.files.len();
        ended
            .notes
            .push(format!("{unreadable} of {of} files could not be read: what is said is not of all that was named"));
        ended.status = 2;
    }
    if let Some(finished) = finished {
        finished.end(&mut ended);
    }
    Ok(ended)
}

/// Ends with the time, with the number of ended requests, or with a signal; whichever comes first.
async fn listen_until(
    time: Option<Duration>,
    requests: Option<u64>,
    mut signals: Signals,
    store: Arc<FairMutex<Store>>,
) {
    let time_over = async {
        match time {
            Some(time) => tokio::time::sleep(time).await,
            None => std::future::pending().await,
        }
    };
    let requests_ended = async {
        let Some(wanted) = requests else { return std::future::pending().await };
        loop {
            tokio::time::sleep(LOOK).await;
            let mut store = store.lock();
            store.refresh(now_ns());
            let standing = store.standing();
            // What was let go had ended, or was given up for room: it is waited for no more.
            let gone = store.counts().requests_evicted;
            if standing.total - standing.in_flight - standing.lost + gone >= wanted {
                return;
            }
        }
    };
    tokio::select! {
        () = time_over => {}
        () = requests_ended => {}
        () = signals.any() => {}
    }
}

/// SIGINT, SIGTERM and SIGHUP: what was gathered is printed all the same.
struct Signals(Option<[Signal; 3]>);

impl Signals {
    /// Hears them from now on; within a runtime.
    fn heard() -> Self {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let [Ok(int), Ok(term), Ok(hup)] = kinds.map(signal) else { return Self(None) };
        Self(Some([int, term, hup]))
    }

    /// Waits for one of them.
    async fn any(&mut self) {
        let Some([int, term, hup]) = &mut self.0 else { return std::future::pending().await };
        tokio::select! {
            _ = int.recv() => {}
            _ = term.recv() => {}
            _ = hup.recv() => {}
        }
    }
}
