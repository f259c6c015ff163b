//! `reqtop replay`: recordings through the same way as what arrives, with a dashboard on it.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use super::dashboard::{Stage, Time};
use super::files::{Problems, inputs, refuse_absent, settle, tell_progress};
use super::{Ended, WITHOUT_SCREEN};
use crate::cli;
use crate::settings;
use crate::source::file::{self, Limits, Problem, Progress, Sink};
use crate::source::intake::{Payload, Receipt, Refusal};
use crate::source::replay::{Play, Replay};
use crate::store::Coming;
use crate::tui::{self, Shared};

/// Plays recordings on the dashboard.
pub(super) fn run(args: cli::Replay) -> Result<Ended, String> {
    if let Some(refusal) = tui::terminal::refusal() {
        return Err(format!("{refusal}; {WITHOUT_SCREEN}"));
    }
    refuse_absent(&args.files, false)?;
    if let Some(record) = &args.onward.record {
        let same = |file: &PathBuf| matches!((file.canonicalize(), record.canonicalize()), (Ok(a), Ok(b)) if a == b);
        if args.files.iter().any(same) {
            return Err(format!("--record {}: is what is played; choose another file", record.display()));
        }
    }
    let play = Play::new(args.speed);
    let trace_url = settings::trace_url(&args.look, None)?;
    let stage =
        Stage::new(&args.keep, &args.look, None, &args.onward, Time::Played(Arc::clone(&play)))?.linking(trace_url);
    let player = Player {
        replay: Replay::new(Arc::clone(&play), stage.intake()),
        play: Arc::clone(&play),
        shared: stage.shared(),
        name: name(&args.files),
        doing: format!("replaying {}", args.speed),
        problems: Problems::default(),
    };
    let files = args.files;
    std::thread::Builder::new()
        .name("replay".into())
        .spawn(move || play_all(&files, player))
        .map_err(|error| format!("cannot start the replay's thread: {error}"))?;
    let (ended, leaving) = stage.show();
    play.stop();
    leaving.end(ended)
}

fn name(files: &[PathBuf]) -> String {
    match files {
        [file] => file.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        files => format!("{} files", files.len()),
    }
}

/// Plays every file in turn; at the end the time stands at the last arrival, and what checks waited for is known not to
/// come.
fn play_all(files: &[PathBuf], mut player: Player) {
    // Each line by itself: what is joined would arrive at once.
    let summary = file::read(&inputs(files), Limits { joined: 0, ..Limits::default() }, &mut player);
    if !summary.stopped {
        let now_ns = player.play.now_ns();
        settle(&player.shared, now_ns, summary.bad > 0, Coming::Recorded(now_ns));
    }
    player.shared.report(|vitals| {
        if let Some(loading) = &mut vitals.loading {
            loading.doing = "replayed".into();
        }
        player.problems.sum_up(&summary, vitals);
    });
}

struct Player {
    replay: Replay,
    play: Arc<Play>,
    shared: Arc<Shared>,
    name: String,
    doing: String,
    problems: Problems,
}

impl Sink for Player {
    fn payload(&mut self, payload: Payload) -> Result<Receipt, Refusal> {
        self.replay.play(payload)
    }

    fn problem(&mut self, problem: Problem) {
        self.problems.tell(&self.shared, &problem);
    }

    fn left_out(&mut self, problem: Problem) {
        self.problems.tell_left_out(&self.shared, &problem);
    }

    fn progress(&mut self, progress: Progress) -> ControlFlow<()> {
        tell_progress(&self.shared, &self.doing, &self.name, &progress);
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::FairMutex;

    use super::*;
    use crate::checks::{self, CheckId};
    use crate::demo::{self, Cluster};
    use crate::pipeline;
    use crate::report::{InputSection, Report};
    use crate::run::files::into_intake;
    use crate::run::standing::Standing;
    use crate::source::intake::{Bounds, Intake, Signal, channel};
    use crate::source::replay::Speed;
    use crate::store::{self, Store};
    use crate::tap::Tap as _;
    use crate::tap::record::{self, Recording};
    use crate::view::header::Vitals;

    const START: u64 = 1_796_000_000_000_000_000;

    /// The report of a store, without what only sources know.
    fn report(store: &mut Store, now_ns: u64) -> String {
        store.finish(now_ns);
        Report::of(store, InputSection::default(), None).to_json()
    }

    fn player(play: &Arc<Play>, played: &Arc<FairMutex<Store>>, intake: Intake) -> Player {
        Player {
            replay: Replay::new(Arc::clone(play), intake),
            play: Arc::clone(play),
            shared: Arc::new(Shared::new(Arc::clone(played), Vitals::default())),
            name: "run".into(),
            doing: "replaying".into(),
            problems: Problems::default(),
        }
    }

    /// What had not come when the recording was killed, or ended, may have been on its way; when it ended long after, it was not.
    #[test]
    fn a_recording_of_a_seeded_cluster_replays_to_a_report_equal_to_the_originals() {
        for silence_ns in [None, Some(1_000_000_000), Some(20_000_000_000)] {
            replays_equal(silence_ns);
        }
    }

    fn replays_equal(silence_ns: Option<u64>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.jsonl.zst");
        let settings = record::Settings { path: path.clone(), most: None, keep: 0 };
        let (mut recorder, recording) = Recording::start(settings, Arc::new(|words: &str| panic!("{words}"))).unwrap();
        let mut original = Store::new(store::Limits::default());
        let mut last_ns = 0;
        // Nothing is waited for at the end: some requests are in flight.
        for delivery in Cluster::new(&demo::Settings::default(), START).advance(START + 20_000_000_000) {
            let signal = match delivery.signal {
                demo::Signal::Traces => Signal::Traces,
                demo::Signal::Logs => Signal::Logs,
            };
            last_ns = delivery.at_ns;
            recorder.take(&crate::tap::queue::Item::straight(signal, &delivery.body, last_ns));
            pipeline::take_in(&mut original, &mut Payload::otlp(signal, delivery.body), last_ns).unwrap();
            original.refresh(last_ns);
        }
        let end_ns = last_ns + silence_ns.unwrap_or(0);
        if silence_ns.is_some() {
            recorder.end(end_ns);
        }
        drop(recorder);
        assert_eq!(recording.finish().lost, 0);
        original.finish(end_ns);
        // As `reqtop check` asks them, those in flight too.
        original.check_what_came(Coming::Recorded(end_ns));
        let checked = |store: &Store| {
            let counts = (0..checks::COUNT).map(|at| store.checked().said().counts(CheckId(at as u8)));
            (store.next_check_ns(), counts.collect::<Vec<_>>())
        };
        let is_settled = silence_ns == Some(20_000_000_000);
        let (unsettled, violations) = (original.checked().unsettled().len(), original.checked().said().violations());
        assert_eq!((unsettled == 0, violations > 0), (is_settled, is_settled), "{unsettled} {violations}");
        for speed in [Speed::Max, Speed::Times(10_000.0)] {
            let play = Play::new(speed);
            let played = Arc::new(FairMutex::new(Store::new(store::Limits::default())));
            let (intake, outlet) = channel(Bounds::default());
            let clock = Arc::clone(&play);
            let writer = pipeline::start(outlet, Arc::clone(&played), Arc::new(move || clock.now_ns()), || {}).unwrap();
            let player = player(&play, &played, intake);
            play_all(std::slice::from_ref(&path), player);
            writer.join().unwrap();
            let mut played = played.lock();
            assert_eq!(played.arrived_ns(), end_ns, "{speed}");
            assert_eq!(checked(&played), checked(&original), "{speed}");
            assert_eq!(report(&mut played, play.now_ns()), report(&mut original, end_ns), "{speed}");
        }
        // And so it is on the screen over the file, long after, however often somebody looks.
        let standing = Arc::new(Standing::new(end_ns + 100 * 86_400_000_000_000));
        let held = Arc::new(FairMutex::new(Store::new(store::Limits::default())));
        let shared = Shared::new(Arc::clone(&held), Vitals::default());
        let (intake, outlet) = channel(Bounds::default());
        let clock = Arc::clone(&standing);
        let looked = Arc::clone(&held);
        let looks = {
            let clock = Arc::clone(&standing);
            move || looked.lock().refresh(clock.now_ns())
        };
        let writer = pipeline::start(outlet, Arc::clone(&held), Arc::new(move || clock.now_ns()), looks).unwrap();
        into_intake(vec![path.clone()], Some(&standing), &intake, &shared);
        drop(intake);
        writer.join().unwrap();
        let mut held = held.lock();
        assert_eq!(checked(&held), checked(&original));
        assert_eq!(report(&mut held, standing.now_ns()), report(&mut original, end_ns));
        assert!(original.standing().in_flight > 5);
    }

    #[test]
    fn other_files_play_by_the_times_at_which_their_spans_ended() {
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/dev-sim.traces.jsonl.gz");
        let play = Play::new(Speed::Max);
        let played = Arc::new(FairMutex::new(Store::new(store::Limits::default())));
        let (intake, outlet) = channel(Bounds::default());
        let clock = Arc::clone(&play);
        let writer = pipeline::start(outlet, Arc::clone(&played), Arc::new(move || clock.now_ns()), || {}).unwrap();
        let player = player(&play, &played, intake);
        play_all(&[file], player);
        writer.join().unwrap();
        let mut played = played.lock();
        played.finish(play.now_ns());
        let last_ns = played.spans().map(|span| span.end_ns).max().unwrap();
        assert_eq!((played.arrived_ns(), play.now_ns()), (last_ns, last_ns));
    }
}
