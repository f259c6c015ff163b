//! What is paused stands still to the last cell, whatever comes in: lists, panes, trees, axes, checks, stories, exports.

use super::*;
use crate::demo::{Cluster, fault};

/// What is looked at while the screen is paused, from the list back to the list: every part of a request in flight and of
/// the next ones, its checks, its story, its spans as they came, what is exported of it; the checks of all; filters by all
/// that can change.
const WALK: &str = "g | G | g e | Enter | Tab | Tab | Tab G | Tab G v | Esc c | Esc t | Esc e | n | n e | Tab G | n | \
                    n c | Esc n n n n t | Esc Esc c | G | g v | Esc Esc | j j j j j j Enter | G e c | Esc Esc";

const FILTERS: [&str; 8] = [
    "state:in-flight",
    "state:ended",
    "check:any",
    "span:handle_payload",
    "outcome:success,cancelled",
    "worker.operation",
    "tokens.out>20",
    "check:record.present",
];

/// A cluster that is followed by a store which the screen looks at.
struct Followed {
    shared: Shared,
    cluster: RefCell<Cluster>,
    now_ns: Cell<u64>,
}

impl Followed {
    fn new(seed: u64, faults: &[&'static fault::Kind]) -> Self {
        let start_ns = NOW - 12_000 * MS;
        let settings = crate::demo::Settings { seed, rate: 4.0, faults: faults.to_vec(), ..Default::default() };
        let store = Store::new(Limits { lost_after_ns: 20_000 * MS, ..Limits::default() });
        let shared = Shared::new(std::sync::Arc::new(parking_lot::FairMutex::new(store)), Vitals::default());
        let cluster = RefCell::new(Cluster::new(&settings, start_ns));
        let followed = Self { shared, cluster, now_ns: Cell::new(start_ns) };
        followed.go_on(12_000);
        followed
    }

    /// Takes in what comes within so many milliseconds, and asks the checks.
    fn go_on(&self, ms: u64) {
        let until_ns = self.now_ns.get() + ms * MS;
        while self.now_ns.get() < until_ns {
            self.now_ns.set(self.now_ns.get() + 250 * MS);
            feed(&self.shared, &mut self.cluster.borrow_mut(), self.now_ns.get());
            let mut store = self.shared.store.lock();
            store.refresh(self.now_ns.get());
            store.check(self.now_ns.get());
        }
    }

    /// The screens of a walk over what is paused, and what it wrote. `meanwhile` comes in between any two steps.
    fn walk(&self, first: &str, meanwhile: impl Fn(&Self)) -> (Vec<String>, Vec<(String, String)>) {
        let clock = || self.now_ns.get();
        let app = App::new(&self.shared, Theme::named("terminal").unwrap(), &clock);
        let mut journey = Journey { app, hands: Hands::default(), size: (210, 60) };
        journey.screen();
        journey.keys(first);
        let mut seen = vec![journey.keys("p")];
        for step in WALK.split(" | ") {
            meanwhile(self);
            seen.push(journey.keys(step));
        }
        for filter in FILTERS {
            meanwhile(self);
            journey.keys("Esc Esc /");
            seen.push(journey.text(filter));
            journey.keys("Enter");
            // Asked a slice at a time.
            for _ in 0..4 {
                journey.screen();
            }
            seen.push(journey.keys("e"));
            seen.push(journey.keys("Enter G"));
        }
        (seen.iter().map(|screen| of_then(screen)).collect(), journey.hands.saved)
    }
}

/// A screen without what it tells of the present: the rate at which spans come, how many requests have come since, when the
/// last export did, and the message.
fn of_then(screen: &str) -> String {
    let mut lines: Vec<&str> = screen.lines().collect();
    lines.pop();
    if let Some((_, header)) = lines[0].split_once("spans/s") {
        lines[0] = header.split("PAUSED").next().unwrap_or(header).trim_end();
    }
    lines.join("\n")
}

fn assert_same(one: &(Vec<String>, Vec<(String, String)>), other: &(Vec<String>, Vec<(String, String)>)) {
    for (step, (one, other)) in one.0.iter().zip(&other.0).enumerate() {
        let differs = one.lines().zip(other.lines()).find(|(one, other)| one != other);
        assert!(one == other, "after step {step}: {differs:#?}\n{one}\n{other}");
    }
    assert_eq!(one.1.len(), other.1.len());
    for (one, other) in one.1.iter().zip(&other.1) {
        assert_eq!(one, other);
    }
}

#[test]
fn what_is_paused_is_the_same_to_the_last_cell_whatever_comes() {
    // Opened before the pause, and after it.
    for (seed, first) in [(4, "g"), (5, "g Enter n")] {
        let faults: Vec<_> = fault::Kind::all().collect();
        let alone = Followed::new(seed, &faults).walk(first, |_| {});
        let flooded = Followed::new(seed, &faults).walk(first, |followed| followed.go_on(1_000));
        assert_same(&alone, &flooded);
    }
}
