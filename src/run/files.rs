//! Files into the store: straight for headless commands, through the channel beside a screen.

use std::ops::ControlFlow;
use std::path::PathBuf;

use super::now_ns;
use crate::pipeline::take_in;
use crate::report::InputSection;
use crate::source::file::{self, Input, Limits, Problem, Progress, Sink};
use crate::source::intake::{Intake, Payload, Receipt, Refusal};
use crate::store::Store;
use crate::tui::Shared;
use crate::view::header::Loading;

/// Problems that are told in words; further ones are counted.
const TOLD: usize = 100;

/// After how many bytes taken in the store is brought up to date.
const REFRESH_BYTES: usize = 8 << 20;

fn inputs(paths: &[PathBuf]) -> Vec<Input> {
    paths.iter().map(|path| Input::from(path.as_path())).collect()
}

/// Reads files straight into a store.
///
/// # Errors
/// None of the files could be read at all.
pub(super) fn into_store(paths: &[PathBuf], store: &mut Store) -> Result<InputSection, String> {
    let mut sink = Straight { store, input: InputSection::default(), taken: 0 };
    let summary = file::read(&inputs(paths), Limits::default(), &mut sink);
    let Straight { mut input, .. } = sink;
    input.files = paths.len() as u64 - summary.unreadable;
    input.bad_lines = summary.bad;
    if !paths.is_empty() && input.files == 0 {
        return Err(input.problems.join("; "));
    }
    Ok(input)
}

struct Straight<'a> {
    store: &'a mut Store,
    input: InputSection,
    taken: usize,
}

impl Sink for Straight<'_> {
    fn payload(&mut self, mut payload: Payload) -> Result<Receipt, Refusal> {
        self.taken += payload.size();
        let now_ns = now_ns();
        let receipt = take_in(self.store, &mut payload, now_ns)?;
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

    fn progress(&mut self, _: Progress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Reads files beside a screen, which shows how far it has come.
pub(super) fn into_intake(paths: &[PathBuf], intake: &Intake, shared: &Shared) {
    let name = match paths {
        [path] => path.display().to_string(),
        paths => format!("{} files", paths.len()),
    };
    let mut sink = Beside { intake, shared, name, problems: 0 };
    let summary = file::read(&inputs(paths), Limits::default(), &mut sink);
    shared.report(|vitals| {
        vitals.loading = None;
        if summary.bad + summary.unreadable > 0 {
            vitals.notices.push(format!("{} lines could not be read", summary.bad + summary.unreadable));
        }
    });
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
        self.problems += 1;
        let told = self.problems <= TOLD;
        self.shared.report(|vitals| {
            vitals.malformed += 1;
            if told {
                vitals.notices.push(problem.to_string());
            }
        });
    }

    fn progress(&mut self, progress: Progress) -> ControlFlow<()> {
        let loading = Loading { name: self.name.clone(), read: progress.bytes, total: progress.total.unwrap_or(0) };
        self.shared.report(|vitals| vitals.loading = Some(loading));
        ControlFlow::Continue(())
    }
}
