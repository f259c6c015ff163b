//! Files into the store: straight for headless commands, through the channel beside a screen.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use super::now_ns;
use crate::pipeline::take_in;
use crate::report::InputSection;
use crate::source::file::follow::Followed;
use crate::source::file::{self, Input, Limits, Problem, Progress, Sink};
use crate::source::intake::{Intake, Payload, Receipt, Refusal};
use crate::store::Store;
use crate::tui::Shared;
use crate::view::header::{Done, Loading};

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
    /// When the last request of a recording among them arrived.
    pub arrived_ns: Option<u64>,
    /// Files that could not be read, or not to their end.
    pub unreadable: u64,
}

/// Reads files straight into a store.
///
/// # Errors
/// None of the files, or nothing in them, could be read: a report or a verdict on that would be about nothing.
pub(super) fn into_store(paths: &[PathBuf], store: &mut Store) -> Result<ReadIn, String> {
    let mut sink = Straight { store, input: InputSection::default(), kept: 0, taken: 0, arrived_ns: None };
    let summary = file::read(&inputs(paths), Limits::default(), &mut sink);
    let Straight { mut input, kept, arrived_ns, .. } = sink;
    input.files = paths.len() as u64 - summary.unreadable;
    input.bad_lines = summary.bad + summary.idle;
    if !paths.is_empty() && input.files == 0 {
        return Err(input.problems.join("; "));
    }
    if kept == 0 && summary.bad > 0 {
        let first = input.problems.first().map_or("", String::as_str);
        return Err(format!("nothing in {} could be read; first: {first}", name_of(paths)));
    }
    Ok(ReadIn { input, arrived_ns, unreadable: summary.unreadable })
}

fn name_of(paths: &[PathBuf]) -> String {
    match paths {
        [path] => path.display().to_string(),
        paths => format!("{} files", paths.len()),
    }
}

struct Straight<'a> {
    store: &'a mut Store,
    input: InputSection,
    /// Spans, records and logs that were good.
    kept: u64,
    /// Bytes since the store was last brought up to date.
    taken: usize,
    /// When the last payload of a recording arrived.
    arrived_ns: Option<u64>,
}

impl Sink for Straight<'_> {
    fn payload(&mut self, mut payload: Payload) -> Result<Receipt, Refusal> {
        self.taken += payload.size();
        self.arrived_ns = self.arrived_ns.max(payload.arrived_ns);
        let now_ns = payload.arrived_ns.unwrap_or_else(now_ns);
        let receipt = take_in(self.store, &mut payload, now_ns)?;
        self.kept += receipt.taken;
        if self.taken >= REFRESH_BYTES {
            self.taken = 0;
            self.store.refresh(now_ns);
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

/// Reads files beside a screen, which shows how far it has come; then, if asked to, the last one for as long as the
/// program runs.
pub(super) fn into_intake(mut paths: Vec<PathBuf>, follow: bool, intake: &Intake, shared: &Shared) {
    let name = name_of(&paths);
    let followed = if follow { paths.pop() } else { None };
    let mut sink = Beside { intake, shared, name, problems: 0 };
    let summary = file::read(&inputs(&paths), Limits::default(), &mut sink);
    shared.report(|vitals| {
        vitals.loading = None;
        if summary.bad + summary.unreadable > 0 {
            vitals.notices.push(format!("{} lines could not be read", summary.bad + summary.unreadable));
        }
    });
    match followed {
        Some(path) => keep_reading(&mut Followed::new(&path), &mut sink),
        None if summary.stopped => {}
        None => settle(shared, now_ns()),
    }
}

/// Nothing more comes: asks the checks that waited for it, in slices between which others have the store.
pub(super) fn settle(shared: &Shared, now_ns: u64) {
    shared.store.lock().finish(now_ns);
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
fn keep_reading(followed: &mut Followed, sink: &mut Beside<'_>) {
    let mut told = false;
    loop {
        match followed.news() {
            Ok(Some(part)) => {
                if file::read(&[part], Limits::default(), sink).stopped {
                    return;
                }
                sink.shared.report(|vitals| vitals.loading = None);
            }
            Ok(None) => std::thread::sleep(LOOK_AGAIN),
            Err(error) => {
                if !std::mem::replace(&mut told, true) {
                    let notice = format!("{}: {error}", sink.name);
                    sink.shared.report(|vitals| vitals.notices.push(notice));
                }
                std::thread::sleep(LOOK_AGAIN);
            }
        }
    }
}

/// Has the screen count a problem, and say it while there are few.
pub(super) fn tell_problem(shared: &Shared, problems: &mut usize, problem: &Problem) {
    shared.report(|vitals| vitals.malformed += 1);
    tell_left_out(shared, problems, problem);
}

/// Has the screen say what was left out of something good, while there is little of it.
pub(super) fn tell_left_out(shared: &Shared, problems: &mut usize, problem: &Problem) {
    *problems += 1;
    if *problems <= TOLD {
        shared.report(|vitals| vitals.notices.push(problem.to_string()));
    }
}

/// Has the screen say what is done with a file, and how far it has come.
pub(super) fn tell_progress(shared: &Shared, doing: &str, name: &str, progress: &Progress) {
    let done = Done::Bytes { read: progress.bytes, total: progress.total.unwrap_or(0) };
    let loading = Loading { doing: doing.into(), name: name.into(), done };
    shared.report(|vitals| vitals.loading = Some(loading));
}

struct Beside<'a> {
    intake: &'a Intake,
    shared: &'a Shared,
    name: String,
    problems: usize,
}

impl Sink for Beside<'_> {
    fn payload(&mut self, payload: Payload) -> Result<Receipt, Refusal> {
        self.intake.offer_blocking(payload)
    }

    fn problem(&mut self, problem: Problem) {
        tell_problem(self.shared, &mut self.problems, &problem);
    }

    fn left_out(&mut self, problem: Problem) {
        tell_left_out(self.shared, &mut self.problems, &problem);
    }

    fn progress(&mut self, progress: Progress) -> ControlFlow<()> {
        tell_progress(self.shared, "reading", &self.name, &progress);
        ControlFlow::Continue(())
    }
}
