//! Files into the store: straight for headless commands, through the channel beside a screen.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::now_ns;
use super::standing::Standing;
use crate::report::InputSection;
use crate::source::file::follow::Followed;
use crate::source::file::{self, Input, Limits, Problem, Progress, Sink, Summary};
use crate::source::intake::{Intake, Payload, Receipt, Refusal};
use crate::store::{Coming, Store};
use crate::tui::Shared;
use crate::view::header::{Done, Loading, Vitals};

/// Problems that are told in words; further ones are counted.
pub(super) const TOLD: usize = 100;

/// How often a followed file is looked at while nothing is written.
const LOOK_AGAIN: Duration = Duration::from_millis(300);

/// After how many bytes taken in the store is brought up to date.
const REFRESH_BYTES: usize = 8 << 20;

pub(super) fn inputs(paths: &[PathBuf]) -> Vec<Input> {
    paths.iter().map(|path| Input::from(path.as_path())).collect()
}

/// What became of files that were read straight into a store.
#[derive(Default)]
pub(super) struct ReadIn {
    pub input: InputSection,
    /// Files that could not be read, or not to their end.
    pub unreadable: u64,
}

/// Reads files straight into a store.
///
/// # Errors
/// None of the files, or nothing in them, could be read: a report or a verdict on that would be about nothing.
pub(super) fn into_store(paths: &[PathBuf], standing: &Standing, store: &mut Store) -> Result<ReadIn, String> {
    let mut sink = Straight { store, standing, input: InputSection::default(), kept: 0, taken: 0 };
    let summary = file::read(&inputs(paths), Limits::default(), &mut sink);
    let Straight { mut input, kept, .. } = sink;
    input.files = paths.len() as u64 - summary.unreadable;
    (input.bad_lines, input.losses) = (summary.bad + summary.idle, summary.bad);
    if !paths.is_empty() && input.files == 0 {
        return Err(input.problems.join("; "));
    }
    if kept == 0 && summary.bad > 0 {
        let first = input.problems.first().map_or("", String::as_str);
        return Err(format!("nothing in {} could be read; first: {first}", name_of(paths)));
    }
    Ok(ReadIn { input, unreadable: summary.unreadable })
}

/// Refuses before there is a screen what it could show nothing of: when none of the files can be opened. One that is
/// followed may come later.
pub(super) fn refuse_absent(paths: &[PathBuf], follow: bool) -> Result<(), String> {
    let comes_later =
        |at: usize, error: &io::Error| follow && at + 1 == paths.len() && error.kind() == ErrorKind::NotFound;
    let closed = paths.iter().enumerate().filter_map(|(at, path)| {
        let error = opened(path).err().filter(|error| !comes_later(at, error))?;
        Some(format!("{}: cannot be opened: {error}", Input::from(path.as_path())))
    });
    let closed: Vec<String> = closed.collect();
    match paths.is_empty() || closed.len() < paths.len() {
        true => Ok(()),
        false => Err(closed.join("; ")),
    }
}

/// Whether a file can be opened, as far as asking takes nothing away: what is read from a pipe is gone.
fn opened(path: &Path) -> io::Result<()> {
    if is_stdin(path) {
        return Ok(());
    }
    let kind = fs::metadata(path)?.file_type();
    match kind.is_file() || kind.is_dir() {
        true => File::open(path)?.read(&mut [0]).map(drop),
        false => Ok(()),
    }
}

fn is_stdin(path: &Path) -> bool {
    Input::from(path) == Input::Stdin
}

fn name_of(paths: &[PathBuf]) -> String {
    match paths {
        [path] => path.display().to_string(),
        paths => format!("{} files", paths.len()),
    }
}

struct Straight<'a> {
    store: &'a mut Store,
    standing: &'a Standing,
    input: InputSection,
    /// Spans, records and logs that were good.
    kept: u64,
    /// Bytes since the store was last brought up to date.
    taken: usize,
}

impl Sink for Straight<'_> {
    fn payload(&mut self, payload: Payload) -> Result<Receipt, Refusal> {
        self.taken += payload.size();
        let receipt = self.standing.take(payload, self.store)?;
        self.kept += receipt.taken;
        if self.taken >= REFRESH_BYTES {
            self.taken = 0;
            self.store.refresh(self.standing.now_ns());
        }
        Ok(receipt)
    }

    fn problem(&mut self, problem: Problem) {
        if self.input.problems.len() < TOLD {
            self.input.problems.push(problem.to_string());
        }
    }

    fn left_out(&mut self, problem: Problem) {
        self.problem(problem);
    }

    fn progress(&mut self, _: Progress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Reads files beside a screen, which shows how far it has come; then, unless their time stands, the last one for as long as
/// the program runs.
pub(super) fn into_intake(mut paths: Vec<PathBuf>, standing: Option<&Standing>, intake: &Intake, shared: &Shared) {
    let name = name_of(&paths);
    // Standard input is read to its end as it is.
    let followed = paths.pop_if(|last| standing.is_none() && !is_stdin(last));
    let mut sink = Beside { intake, shared, standing, name, problems: Problems::default() };
    let summary = file::read(&inputs(&paths), Limits::default(), &mut sink);
    shared.report(|vitals| {
        vitals.loading = None;
        sink.problems.sum_up(&summary, vitals);
    });
    match followed {
        Some(path) => keep_reading(&path, &mut sink),
        None if summary.stopped => {}
        None => {
            let now_ns = standing.map_or_else(now_ns, Standing::now_ns);
            settle(shared, now_ns, summary.bad > 0, Coming::Recorded(now_ns));
        }
    }
}

/// No more comes than this: asks the checks that waited for it, in slices between which others have the store; all of them anew
/// when something could not be read that may be what is missing.
pub(super) fn settle(shared: &Shared, now_ns: u64, has_losses: bool, coming: Coming) {
    {
        let mut store = shared.store.lock();
        store.finish(now_ns);
        if has_losses || store.unplaced() > 0 {
            store.note_losses();
        }
        store.ask_the_rest(coming);
    }
    shared.report(|vitals| vitals.ended = true);
    let mut waits = true;
    while waits {
        let mut store = shared.store.lock();
        store.check(u64::MAX);
        waits = store.next_check_ns().is_some();
        drop(store);
        shared.changed();
    }
}

/// Reads what is written to a file, until the screen is gone.
fn keep_reading(path: &Path, sink: &mut Beside<'_>) {
    let mut followed = Followed::new(path);
    let mut absence = None;
    loop {
        let mut is_news = false;
        match followed.news() {
            Ok(news) => {
                if let Some(notice) = absence.take() {
                    sink.shared.report(|vitals| vitals.notices.retain(|told| *told != notice));
                }
                if let Some(news) = news {
                    let summary = file::read(&[news], Limits::default(), sink);
                    if summary.stopped {
                        return;
                    }
                    sink.shared.report(|vitals| vitals.loading = None);
                    // A device may be at its end whenever it is read, and a file unreadable.
                    is_news = summary.pieces > 0;
                }
            }
            Err(error) => {
                if absence.is_none() {
                    let notice = absence.insert(absent(path, &error)).clone();
                    sink.shared.report(|vitals| vitals.notices.push(notice));
                }
            }
        }
        if !is_news {
            std::thread::sleep(LOOK_AGAIN);
        }
    }
}

fn absent(path: &Path, error: &io::Error) -> String {
    let name = Input::from(path);
    match error.kind() {
        ErrorKind::NotFound => format!("{name}: is not there yet, and is read when it is"),
        _ => format!("{name}: cannot be read, and is tried again: {error}"),
    }
}

/// What is told of problems beside a screen.
#[derive(Default)]
pub(super) struct Problems {
    /// How many were told, with what was left out of something good.
    told: usize,
    /// The first thing that could not be used.
    first: Option<String>,
}

impl Problems {
    /// Has the screen count a problem, and say it while there are few.
    pub(super) fn tell(&mut self, shared: &Shared, problem: &Problem) {
        shared.report(|vitals| vitals.malformed += 1);
        self.first.get_or_insert_with(|| problem.to_string());
        self.tell_left_out(shared, problem);
    }

    /// Has the screen say what was left out of something good, while there is little of it.
    pub(super) fn tell_left_out(&mut self, shared: &Shared, problem: &Problem) {
        self.told += 1;
        if self.told <= TOLD {
            shared.report(|vitals| vitals.notices.push(problem.to_string()));
        }
    }

    /// Says at the end what was wrong first, which may be seen no more, and how much there was.
    pub(super) fn sum_up(&self, summary: &Summary, vitals: &mut Vitals) {
        let Some(first) = &self.first else { return };
        let mut words = first.clone();
        let counts = [(summary.unreadable, "file"), (summary.bad + summary.idle, "line")];
        if counts.iter().map(|(count, _)| count).sum::<u64>() > 1 {
            let counts = counts.iter().filter(|(count, _)| *count > 0);
            let counts = counts.map(|(count, what)| format!("{count} {what}{}", if *count == 1 { "" } else { "s" }));
            words += &format!("; in all {} could not be used", counts.collect::<Vec<_>>().join(" and "));
        }
        if vitals.notices.last() != Some(&words) {
            vitals.notices.push(words);
        }
    }
}

/// Has the screen say what is done with a file, and how far it has come until all that was there is read.
pub(super) fn tell_progress(shared: &Shared, doing: &str, name: &str, progress: &Progress) {
    let done = Done::Bytes { read: progress.bytes, total: progress.total.unwrap_or(0) };
    let is_done = progress.total.is_some_and(|total| progress.bytes >= total);
    let loading = (!is_done).then(|| Loading { doing: doing.into(), name: name.into(), done });
    shared.report(|vitals| vitals.loading = loading);
}

struct Beside<'a> {
    intake: &'a Intake,
    shared: &'a Shared,
    standing: Option<&'a Standing>,
    name: String,
    problems: Problems,
}

impl Sink for Beside<'_> {
    fn payload(&mut self, payload: Payload) -> Result<Receipt, Refusal> {
        match self.standing {
            Some(standing) => standing.offer(payload, self.intake, self.shared),
            None => self.intake.offer_blocking(payload),
        }
    }

    fn problem(&mut self, problem: Problem) {
        self.problems.tell(self.shared, &problem);
    }

    fn left_out(&mut self, problem: Problem) {
        self.problems.tell_left_out(self.shared, &problem);
    }

    fn progress(&mut self, progress: Progress) -> ControlFlow<()> {
        tell_progress(self.shared, "reading", &self.name, &progress);
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Instant;

    use parking_lot::FairMutex;

    use super::*;
    use crate::source::intake::{Bounds, channel};

    #[test]
    fn the_first_thing_wrong_is_said_before_how_much_is() {
        let said = |unreadable, bad| {
            let first = Some("a.jsonl:1: why".to_owned());
            let mut vitals = Vitals { notices: first.clone().into_iter().collect(), ..Vitals::default() };
            let problems = Problems { told: 0, first };
            problems.sum_up(&Summary { unreadable, bad, ..Summary::default() }, &mut vitals);
            vitals.notices
        };
        assert_eq!(said(1, 0), ["a.jsonl:1: why"]);
        assert_eq!(said(0, 2)[1..], ["a.jsonl:1: why; in all 2 lines could not be used"]);
        assert_eq!(said(1, 2)[1..], ["a.jsonl:1: why; in all 1 file and 2 lines could not be used"]);
        let mut vitals = Vitals::default();
        Problems::default().sum_up(&Summary::default(), &mut vitals);
        assert!(vitals.notices.is_empty());
    }

    #[test]
    fn that_a_followed_file_is_not_there_is_said_until_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("later.jsonl");
        let store = Store::new(crate::store::Limits::default());
        let shared = Shared::new(Arc::new(FairMutex::new(store)), Vitals::default());
        let (intake, mut outlet) = channel(Bounds::default());
        let notices = || {
            let mut notices = Vec::new();
            shared.report(|vitals| notices.clone_from(&vitals.notices));
            notices
        };
        std::thread::scope(|scope| {
            scope.spawn(|| into_intake(vec![path.clone()], None, &intake, &shared));
            let until = Instant::now() + Duration::from_secs(30);
            while notices().is_empty() && Instant::now() < until {
                std::thread::yield_now();
            }
            assert!(matches!(&notices()[..], [notice] if notice.contains("later.jsonl: is not there yet")));
            let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/dev-sim.request_trace.jsonl.gz");
            fs::write(&path, file::text(&sample).unwrap()).unwrap();
            let delivery = outlet.recv().unwrap();
            assert_eq!(notices(), [""; 0]);
            // The program ends.
            delivery.answer(Err(Refusal::Closed));
        });
    }

    #[test]
    fn files_are_refused_when_none_can_be_opened() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("there"), "").unwrap();
        let absent = refuse_absent(&[at("none"), at("")], false).unwrap_err();
        assert!(
            absent.contains("none: cannot be opened: No such file") && absent.contains("Is a directory"),
            "{absent}"
        );
        assert!(refuse_absent(&[at("none")], true).is_ok(), "what is followed may come later");
        assert!(refuse_absent(&[at("")], true).is_err());
        for other in [at("there"), "-".into(), "/dev/null".into()] {
            assert!(refuse_absent(&[at("none"), other], false).is_ok());
        }
        assert!(refuse_absent(&[], false).is_ok());
    }
}
