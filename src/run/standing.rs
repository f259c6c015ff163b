//! The time of what nothing is added to: files, a trace store up to a moment.
//!
//! It stands still, so that what is in flight there is for as long as one looks, whenever that is. It is that of the last
//! arrival where recordings say it, else of the last thing that was told of. Owns: that time. Keeps out: who goes by it.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::pipeline::take_in;
use crate::source::intake::{Arrival, Intake, Payload, Receipt, Refusal};
use crate::store::Store;
use crate::tui::Shared;

/// See the module.
pub(super) struct Standing {
    opened_ns: u64,
    last_ns: AtomicU64,
}

impl Standing {
    /// Opened then, nanoseconds since the epoch.
    pub(super) fn new(opened_ns: u64) -> Self {
        Self { opened_ns, last_ns: AtomicU64::new(0) }
    }

    /// Its present; 0 before anything was heard. It only goes forward: what has been silent for too long by it stays so.
    pub(super) fn now_ns(&self) -> u64 {
        self.last_ns.load(Ordering::Relaxed)
    }

    /// Makes the moment at which it was opened its present: what is asked for goes up to then.
    pub(super) fn reaches_the_present(&self) {
        self.heard(self.opened_ns);
    }

    /// Something arrived then, or was told of that happened then.
    fn heard(&self, at_ns: u64) {
        self.last_ns.fetch_max(at_ns, Ordering::Relaxed);
    }

    /// What no source dated came before it was opened.
    fn date(&self, payload: Payload) -> Payload {
        let arrival = match payload.arrival {
            Arrival::Now => Arrival::Before(self.opened_ns),
            dated => dated,
        };
        Payload { arrival, ..payload }
    }

    /// Takes a payload into a store.
    pub(super) fn take(&self, payload: Payload, store: &mut Store) -> Result<Receipt, Refusal> {
        let receipt = take_in(store, &mut self.date(payload), self.opened_ns)?;
        self.heard(store.arrived_ns());
        Ok(receipt)
    }

    /// Hands a payload to the writer of a shared store, and waits until it is taken in.
    pub(super) fn offer(&self, payload: Payload, intake: &Intake, shared: &Shared) -> Result<Receipt, Refusal> {
        let receipt = intake.offer_blocking(self.date(payload))?;
        self.heard(shared.store.lock().arrived_ns());
        Ok(receipt)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use parking_lot::FairMutex;

    use super::*;
    use crate::checks::CheckId;
    use crate::pipeline;
    use crate::report::{InputSection, Report};
    use crate::run::files;
    use crate::source::file;
    use crate::source::intake::{Bounds, channel};
    use crate::store::{CheckCounts, Limits, Standing};
    use crate::view::header::Vitals;

    const END_S: u64 = 1_796_003_600;

    /// A span in a trace of its own, of a request of which nothing else is there.
    fn line(trace: u64, end_s: u64) -> String {
        format!(
            r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{{"traceId":"{trace:032x}","spanId":"{trace:016x}",
            "parentSpanId":"00000000000000ff","name":"kv_router.select_worker","startTimeUnixNano":"{end_s}000000000",
            "endTimeUnixNano":"{end_s}000000000","attributes":[{{"key":"request_id","value":{{"stringValue":"r{trace}"}}}}]
            }}]}}]}}]}}"#
        )
        .replace('\n', "")
            + "\n"
    }

    /// What a file has come to.
    #[derive(Debug, PartialEq)]
    struct Read {
        now_ns: u64,
        in_flight: u64,
        lost: u64,
        report: String,
        checks: Vec<CheckCounts>,
    }

    impl Read {
        fn of(store: &mut Store, now_ns: u64) -> Self {
            store.finish(now_ns);
            let checks = CheckId::all().map(|id| store.checked().said().counts(id)).collect();
            let report = Report::of(store, InputSection::default(), None).to_json();
            let Standing { in_flight, lost, .. } = store.standing();
            Self { now_ns, in_flight, lost, report, checks }
        }
    }

    /// A file read as commands read it, and beside a screen that looks at each moment by its clock.
    fn both_ways(path: &Path, opened_ns: u64) -> (Read, Read) {
        let paths = [path.to_owned()];
        let standing = super::Standing::new(opened_ns);
        let mut straight = Store::new(Limits::default());
        files::into_store(&paths, &standing, &mut straight).unwrap();
        straight.finish(standing.now_ns());
        straight.check_all();
        let straight = Read::of(&mut straight, standing.now_ns());

        let standing = Arc::new(super::Standing::new(opened_ns));
        let held = Arc::new(FairMutex::new(Store::new(Limits::default())));
        let shared = Shared::new(Arc::clone(&held), Vitals::default());
        let (intake, outlet) = channel(Bounds::default());
        let clock = {
            let standing = Arc::clone(&standing);
            Arc::new(move || standing.now_ns())
        };
        let looks = {
            let (clock, held) = (Arc::clone(&clock), Arc::clone(&held));
            move || held.lock().refresh(clock())
        };
        let writer = pipeline::start(outlet, Arc::clone(&held), clock, looks).unwrap();
        files::into_intake(paths.into(), Some(&standing), &intake, &shared);
        drop(intake);
        writer.join().unwrap();
        let mut ended = false;
        shared.report(|vitals| ended = vitals.ended);
        assert!(ended);
        let beside = Read::of(&mut held.lock(), standing.now_ns());
        (straight, beside)
    }

    /// Of a capture that was cut off much is in flight, on screen as in a report, however old it is.
    #[test]
    fn a_capture_that_was_cut_off_is_the_same_on_screen_and_in_a_report() {
        let folder = tempfile::tempdir().unwrap();
        let mut in_flight = 0;
        for name in ["dev-sim", "aiperf-queue", "evidence-disagg"] {
            let fixture = format!("tests/fixtures/{name}.traces.jsonl.gz");
            let text = file::text(&Path::new(env!("CARGO_MANIFEST_DIR")).join(fixture)).unwrap();
            let lines: Vec<&str> = text.lines().collect();
            for part in [3, 2] {
                let path = folder.path().join(format!("{name}-{part}.jsonl"));
                std::fs::write(&path, lines[..lines.len() / part].join("\n") + "\n").unwrap();
                let (straight, beside) = both_ways(&path, END_S * 1_000_000_000 + 86_400_000_000_000_000);
                assert_eq!(beside, straight, "{name} {part}");
                assert_eq!(straight.lost, 0, "{name} {part}");
                in_flight += straight.in_flight;
            }
        }
        assert!(in_flight > 20, "{in_flight}");
    }

    #[test]
    fn a_file_stands_at_the_last_thing_it_tells_of_whenever_it_is_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("spans.jsonl");
        // Of the first, nothing was heard for twenty minutes; the last is from a time that cannot be.
        let lines = [line(1, END_S - 1200), line(2, END_S), line(3, END_S - 30), line(4, 9_000_000_000)];
        std::fs::write(&path, lines[..3].concat()).unwrap();
        for opened_s in [END_S + 1, END_S + 86_400_000] {
            let (straight, beside) = both_ways(&path, opened_s * 1_000_000_000);
            assert_eq!(straight.now_ns, END_S * 1_000_000_000);
            assert_eq!((straight.in_flight, straight.lost), (2, 1));
            assert_eq!(beside, straight);
        }
        // No file tells of what comes after it was opened.
        std::fs::write(&path, lines.concat()).unwrap();
        let (standing, mut store) = (super::Standing::new((END_S + 60) * 1_000_000_000), Store::new(Limits::default()));
        files::into_store(std::slice::from_ref(&path), &standing, &mut store).unwrap();
        assert_eq!(standing.now_ns(), (END_S + 60) * 1_000_000_000);
        // A trace store is asked for what is up to the present.
        let standing = super::Standing::new(7);
        assert_eq!(standing.now_ns(), 0);
        standing.heard(5);
        assert_eq!(standing.now_ns(), 5);
        standing.reaches_the_present();
        assert_eq!(standing.now_ns(), 7);
    }
}
