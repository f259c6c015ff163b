//! Trace stores into the store: straight for headless commands, through the channel beside a screen.

use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use super::files::TOLD;
use super::standing::Standing;
use super::{now_ns, say};
use crate::report::InputSection;
use crate::source::intake::{Intake, Payload, Receipt, Refusal};
use crate::source::remote::{self, Progress, Settings, Sink, Until};
use crate::store::Store;
use crate::tui::Shared;
use crate::view::header::{Done, Loading};

/// How often a terminal is told how far reading has come.
const SAY_AGAIN: Duration = Duration::from_secs(2);
/// After how many bytes taken in the store is brought up to date.
const REFRESH_BYTES: usize = 8 << 20;

/// Reads a trace store straight into our own.
///
/// # Errors
/// Why it could not be read.
pub(super) fn into_store(
    settings: &Settings,
    standing: &Standing,
    store: &mut Store,
    input: &mut InputSection,
) -> Result<(), String> {
    stand(settings, standing);
    let said = std::io::stderr().is_terminal().then(Instant::now);
    let mut sink = Straight { store, standing, input, taken: 0, untold: 0, said };
    let progress = remote::read(settings, &now_ns, &mut sink)?;
    if sink.untold > 0 {
        let words = and_more(sink.untold);
        say(&words);
        sink.input.problems.push(words);
    }
    if said.is_some() {
        say(&format!("{}: {} traces", settings.name(), progress.traces));
    }
    Ok(())
}

/// What is said of problems beyond those that are told.
fn and_more(untold: usize) -> String {
    format!("and {untold} more that are not told one by one")
}

/// What goes up to the present stands there.
fn stand(settings: &Settings, standing: &Standing) {
    if settings.until == Until::Now {
        standing.reaches_the_present();
    }
}

struct Straight<'a> {
    store: &'a mut Store,
    standing: &'a Standing,
    input: &'a mut InputSection,
    taken: usize,
    /// Problems beyond those that are told.
    untold: usize,
    /// When the terminal was last told; `None` when there is none.
    said: Option<Instant>,
}

impl Sink for Straight<'_> {
    fn payload(&mut self, payload: Payload) -> Result<Receipt, Refusal> {
        self.taken += payload.size();
        let receipt = self.standing.take(payload, self.store)?;
        if self.taken >= REFRESH_BYTES {
            self.taken = 0;
            self.store.refresh(self.standing.now_ns());
        }
        Ok(receipt)
    }

    fn problem(&mut self, words: String) {
        if self.input.problems.len() < TOLD {
            say(&words);
            self.input.problems.push(words);
        } else {
            self.untold += 1;
        }
    }

    fn left_out(&mut self, words: String, is_named: bool) {
        self.input.bad_lines += 1;
        self.input.losses += u64::from(!is_named);
        self.problem(words);
    }

    fn progress(&mut self, progress: Progress) -> ControlFlow<()> {
        if self.said.is_some_and(|said| said.elapsed() >= SAY_AGAIN) {
            self.said = Some(Instant::now());
            let share = progress.done_ns as u128 * 100 / u128::from(progress.of_ns.max(1));
            say(&format!("{share} % of the time read, {} traces", progress.traces));
        }
        ControlFlow::Continue(())
    }
}

/// Reads a trace store beside a screen, which shows how far it has come and what went wrong.
pub(super) fn into_intake(settings: &Settings, standing: Option<&Standing>, intake: &Intake, shared: &Shared) {
    if let Some(standing) = standing {
        stand(settings, standing);
    }
    let mut sink = Beside { intake, shared, standing, name: settings.name(), problems: 0, has_losses: false };
    let ended = remote::read(settings, &now_ns, &mut sink);
    shared.report(|vitals| {
        vitals.loading = None;
        vitals.notices.extend(ended.err());
    });
}

struct Beside<'a> {
    intake: &'a Intake,
    shared: &'a Shared,
    /// Its time, when nothing is added to it.
    standing: Option<&'a Standing>,
    name: String,
    problems: usize,
    has_losses: bool,
}

impl Beside<'_> {
    /// Something is missing, and nobody knows of which requests.
    fn note_losses(&mut self) {
        if !std::mem::replace(&mut self.has_losses, true) {
            self.shared.store.lock().note_losses();
        }
    }
}

impl Sink for Beside<'_> {
    fn payload(&mut self, payload: Payload) -> Result<Receipt, Refusal> {
        match self.standing {
            Some(standing) => standing.offer(payload, self.intake, self.shared),
            None => self.intake.offer_blocking(payload),
        }
    }

    fn problem(&mut self, words: String) {
        self.problems += 1;
        let untold = self.problems.saturating_sub(TOLD);
        self.shared.report(|vitals| match untold {
            0 => vitals.notices.push(words),
            _ => {
                let before = and_more(untold - 1);
                vitals.notices.retain(|notice| *notice != before);
                vitals.notices.push(and_more(untold));
            }
        });
    }

    fn left_out(&mut self, words: String, is_named: bool) {
        if !is_named {
            self.note_losses();
        }
        self.shared.report(|vitals| vitals.malformed += 1);
        self.problem(words);
    }

    fn progress(&mut self, progress: Progress) -> ControlFlow<()> {
        let Progress { done_ns, of_ns, .. } = progress;
        let loading = (done_ns < of_ns).then(|| Loading {
            doing: "reading".into(),
            name: self.name.clone(),
            done: Done::Time { done_ns, of_ns },
        });
        self.shared.report(|vitals| {
            if vitals.loading != loading {
                vitals.loading = loading;
            }
        });
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Limits;

    #[test]
    fn what_is_left_out_is_counted_beyond_what_is_told() {
        let (mut store, standing, mut input) =
            (Store::new(Limits::default()), Standing::new(1), InputSection::default());
        let (store, input) = (&mut store, &mut input);
        let mut sink = Straight { store, standing: &standing, input, taken: 0, untold: 0, said: None };
        for number in 0..TOLD + 3 {
            sink.left_out(format!("trace {number}"), number > 0);
        }
        assert_eq!(
            (sink.input.problems.len(), and_more(sink.untold)),
            (TOLD, "and 3 more that are not told one by one".into())
        );
        assert_eq!((sink.input.bad_lines, sink.input.losses), (TOLD as u64 + 3, 1));
    }
}
