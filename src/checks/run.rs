//! The run around the requests, learned from the requests themselves, in bounded memory.
//!
//! Fed with each request when it settles and again when it changes; what it has learned does not depend on the order
//! once all are fed, as everything is a set or a majority. Owns: what [`Surroundings`] asks. Keeps out: the requests.

use compact_str::CompactString;
use hashbrown::{HashMap, HashSet};

use super::around::{Place, Stood, Surroundings, Twin};
use super::load::LoadRecord;
use super::places::{Places, places};
use crate::lifecycle::catalogue::Field;
use crate::lifecycle::context::Resource;
use crate::lifecycle::facts::Marks;
use crate::lifecycle::ids::{Rid, TraceId};
use crate::lifecycle::record::{RecordBody, Replay};
use crate::lifecycle::request::{RequestKey, RequestView, Up};
use crate::lifecycle::stage::{Mode, Stage};

/// The most processes, workers and shared ids that are remembered; further ones stay unknown.
const MOST: usize = 4096;
/// The most lives kept for one shared id.
const MOST_LIVES: usize = 16;

/// One life under a shared id.
#[derive(Clone, Copy)]
struct Life {
    key: RequestKey,
    trace: TraceId,
    start_ns: u64,
    end_ns: u64,
}

/// Which parts of a request have been counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Learned {
    modes: bool,
    record: bool,
}

/// Everything that one request cannot tell, learned from all that were fed.
pub struct Run {
    /// Requests per process in core and in investigation mode.
    modes: HashMap<CompactString, [u64; 2]>,
    exporting: HashSet<u64>,
    shared: HashMap<Rid, Vec<Life>>,
    block_sizes: HashMap<u64, u64>,
    places: Places,
    records: u64,
    spans_lost: bool,
    records_lost: bool,
    /// Traces of which spans were refused.
    torn: HashSet<TraceId>,
    load: HashMap<CompactString, LoadRecord>,
}

impl Run {
    /// Knows nothing yet; beside a store of this many bytes.
    pub fn beside(memory: usize) -> Self {
        Self {
            modes: HashMap::new(),
            exporting: HashSet::new(),
            shared: HashMap::new(),
            block_sizes: HashMap::new(),
            places: Places::beside(memory),
            records: 0,
            spans_lost: false,
            records_lost: false,
            torn: HashSet::new(),
            load: HashMap::new(),
        }
    }

    /// Lets go of what most of its memory is for; what was compared with it is unknown from now on.
    pub fn forget_places(&mut self) {
        self.places.forget();
    }

    /// Learns from a request; call it before the request is asked, each time it is. `learned` is kept with the request
    /// (default at first), so that every majority counts it once.
    pub fn learn(&mut self, view: &RequestView<'_>, learned: &mut Learned) {
        self.learn_life(view);
        self.learn_workers(view);
        if !learned.modes && view.facts.has_root {
            learned.modes = true;
            self.learn_modes(view);
        }
        let end = view.records.iter().find_map(|record| match &record.body {
            RecordBody::End(end) => Some(end),
            _ => None,
        });
        if let (Some(end), false) = (end, learned.record) {
            learned.record = true;
            self.records += 1;
            if let Some(replay) = &end.replay {
                self.learn_replay(replay);
            }
        }
    }

    /// Notes that spans are missing all over: the source samples, the memory was full.
    pub fn note_lost_spans(&mut self) {
        self.spans_lost = true;
    }

    /// Notes that a span of this trace was refused. Of too many such traces nobody keeps count: then spans are missing all
    /// over.
    pub fn note_torn(&mut self, trace: TraceId) {
        if self.torn.len() < MOST || self.torn.contains(&trace) {
            self.torn.insert(trace);
        } else {
            self.spans_lost = true;
        }
    }

    /// Notes that records are missing: some could not be read.
    pub fn note_lost_records(&mut self) {
        self.records_lost = true;
    }

    /// Whether so many requests may have been lost whole.
    pub fn may_lack(&self, requests: u64) -> bool {
        self.spans_lost || requests <= self.torn.len() as u64
    }

    /// Takes in a load generator's list, to be compared request by request.
    pub fn set_load(&mut self, records: impl IntoIterator<Item = LoadRecord>) {
        self.load = records.into_iter().map(|record| (record.x_request_id.clone(), record)).collect();
    }

    /// Forgets a request that is given up; what was learned from it stays.
    pub fn forget(&mut self, key: RequestKey, request_id: &str) {
        if let Some(lives) = self.shared.get_mut(request_id) {
            lives.retain(|life| life.key != key);
            if lives.is_empty() {
                self.shared.remove(request_id);
            }
        }
    }

    /// The bytes it takes, about, for accounting.
    pub fn memory(&self) -> usize {
        self.places.memory()
            + self.modes.len() * 96
            + (self.exporting.len() + self.torn.len()) * 16
            + self.shared.values().map(|lives| 96 + lives.capacity() * size_of::<Life>()).sum::<usize>()
            + self.load.len() * (size_of::<LoadRecord>() + 64)
    }

    fn learn_life(&mut self, view: &RequestView<'_>) {
        let facts = view.facts;
        // Only ids that the store has seen twice can be shared.
        let (Some(trace), true) = (facts.trace, facts.marks.has(Marks::SHARED_ID) && facts.has_root) else { return };
        if self.shared.len() >= MOST && !self.shared.contains_key(&*facts.request_id) {
            return;
        }
        let life =
            Life { key: view.key, trace, start_ns: facts.start_ns, end_ns: facts.end_ns.unwrap_or(facts.start_ns) };
        let lives = self.shared.entry(facts.request_id.clone()).or_default();
        if let Some(known) = lives.iter_mut().find(|known| known.key == view.key) {
            *known = life;
        } else if lives.len() < MOST_LIVES {
            lives.push(life);
        }
    }

    /// A worker exports when lifecycle spans stand below a `handle_payload` of its instance.
    fn learn_workers(&mut self, view: &RequestView<'_>) {
        if self.exporting.len() >= MOST {
            return;
        }
        for span in view.spans.iter().filter(|span| span.stage == Stage::Operation) {
            if let Up::At(parent) = span.up
                && let Some(worker) = view.spans[parent as usize].number(Field::PayloadInstance)
            {
                self.exporting.insert(worker);
            }
        }
    }

    /// One span of each resource speaks for its process: enough for a majority.
    fn learn_modes(&mut self, view: &RequestView<'_>) {
        let mut seen: Vec<Resource<'_>> = Vec::new();
        for span in view.spans.iter().filter(|span| span.stage.is_lifecycle()) {
            if seen.contains(&span.resource) {
                continue;
            }
            let epoch = span.text(Field::Epoch);
            if epoch.is_empty() {
                continue;
            }
            seen.push(span.resource);
            let at = match Mode::of(span.text(Field::Mode)) {
                Mode::Core => 0,
                Mode::Investigation => 1,
                Mode::Unsaid => continue,
            };
            if let Some(counts) = self.modes.get_mut(epoch) {
                counts[at] += 1;
            } else if self.modes.len() < MOST {
                let mut counts = [0; 2];
                counts[at] = 1;
                self.modes.insert(epoch.into(), counts);
            }
        }
    }

    fn learn_replay(&mut self, replay: &Replay) {
        if let Some(size) = replay.trace_block_size
            && (self.block_sizes.len() < MOST || self.block_sizes.contains_key(&size))
        {
            *self.block_sizes.entry(size).or_default() += 1;
        }
        places(replay).for_each(|(hash, place)| self.places.vote(hash, place));
    }
}

impl Surroundings for Run {
    fn twin(&self, key: RequestKey, request_id: &str, trace: TraceId, start_ns: u64, end_ns: u64) -> Option<Twin> {
        let others = self.shared.get(request_id)?.iter().filter(|life| life.key != key && life.trace != trace);
        others
            .filter_map(|life| {
                let overlap_ns = end_ns.min(life.end_ns).checked_sub(start_ns.max(life.start_ns))?;
                (overlap_ns > 0).then_some(Twin { trace: life.trace, overlap_ns })
            })
            .max_by_key(|twin| (twin.overlap_ns, twin.trace))
    }

    fn other_mode(&self, epoch: &str, mode: Mode) -> Option<Mode> {
        let [core, investigation] = *self.modes.get(epoch)?;
        match mode {
            Mode::Core => (investigation >= core).then_some(Mode::Investigation),
            Mode::Investigation => (core >= investigation).then_some(Mode::Core),
            Mode::Unsaid if core > investigation => Some(Mode::Core),
            Mode::Unsaid => Some(Mode::Investigation),
        }
    }

    fn exports(&self, worker: u64) -> bool {
        self.exporting.contains(&worker)
    }

    fn has_records(&self) -> bool {
        self.records > 0
    }

    fn spans_lost(&self, view: &RequestView<'_>) -> bool {
        let is_torn = || view.spans.iter().any(|span| self.torn.contains(&span.trace));
        self.spans_lost || (!self.torn.is_empty() && is_torn())
    }

    fn records_lost(&self) -> bool {
        self.records_lost
    }

    fn block_size(&self) -> Option<u64> {
        self.block_sizes.iter().max_by_key(|(size, count)| (**count, **size)).map(|(size, _)| *size)
    }

    fn stood(&self, hash: u64, place: Place) -> Stood {
        self.places.stood(hash, place)
    }

    fn load(&self, x_request_id: &str) -> Option<&LoadRecord> {
        self.load.get(x_request_id)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fixture::Scene;
    use super::super::{Answer, CheckId, Moment, answer};
    use super::*;

    fn learn(run: &mut Run, scene: &Scene, learned: &mut Learned) {
        scene.with_view(|view| run.learn(view, learned));
    }

    fn asked(run: &Run, scene: &Scene, id: &str) -> Answer {
        scene.with_view(|view| answer(view, run, Moment::Settled).of(CheckId::of(id).unwrap()))
    }

    #[test]
    fn a_majority_counts_each_request_once() {
        let (mut run, core) = (Run::beside(1 << 20), Scene::aggregated().set_all("dynamo.lifecycle.mode", "core"));
        let mut learned = Learned::default();
        for _ in 0..5 {
            learn(&mut run, &core, &mut learned);
        }
        assert_eq!(asked(&run, &core, "mode.mixed"), Answer::Holds);
        learn(&mut run, &Scene::aggregated(), &mut Learned::default());
        // Of two halves, each speaks against the other.
        assert_eq!(asked(&run, &core, "mode.mixed"), Answer::Violated);
        assert_eq!(asked(&run, &Scene::aggregated(), "mode.mixed"), Answer::Violated);
        learn(&mut run, &Scene::aggregated(), &mut Learned::default());
        assert_eq!(asked(&run, &core, "mode.mixed"), Answer::Violated);
        assert_eq!(asked(&run, &Scene::aggregated(), "mode.mixed"), Answer::Holds);
        assert_eq!(run.other_mode("1:f", Mode::Unsaid), Some(Mode::Investigation));
    }

    #[test]
    fn hashes_have_one_place_and_records_one_block_size() {
        let mut run = Run::beside(1 << 20);
        for _ in 0..3 {
            learn(&mut run, &Scene::aggregated(), &mut Learned::default());
        }
        let moved = Scene::aggregated().record("/replay/input_sequence_hashes", json!([9, 2, 3]));
        learn(&mut run, &moved, &mut Learned::default());
        assert_eq!(run.stood(2, Place { index: 1, before: u64::MAX }), Stood::Fits);
        assert_eq!(asked(&run, &moved, "record.hashes"), Answer::Violated);
        assert_eq!(asked(&run, &Scene::aggregated(), "record.hashes"), Answer::Holds);
        let mut forgetful = Run::beside(0);
        learn(&mut forgetful, &Scene::aggregated(), &mut Learned::default());
        assert_eq!(
            asked(&forgetful, &Scene::aggregated(), "record.hashes"),
            Answer::Unknown(super::super::Why::Forgotten)
        );
        assert_eq!((run.block_size(), run.has_records()), (Some(16), true));
    }

    #[test]
    fn workers_and_losses_are_known() {
        let mut run = Run::beside(1 << 20);
        learn(&mut run, &Scene::aggregated(), &mut Learned::default());
        assert!(run.exports(super::super::fixture::WORKER) && !run.exports(7));
        let silent = Scene::aggregated().drop("worker.admission").drop("worker.operation");
        assert_eq!(asked(&run, &silent, "admission.witness"), Answer::Violated);
        run.note_lost_spans();
        assert_eq!(asked(&run, &silent, "admission.witness"), Answer::Unknown(super::super::Why::Lost));
    }

    #[test]
    fn lives_under_one_id_are_compared_and_forgotten() {
        let mut run = Run::beside(1 << 20);
        let life =
            |key, trace, start_ns, end_ns| Life { key: RequestKey(key), trace: TraceId([trace; 16]), start_ns, end_ns };
        run.shared.insert("r".into(), vec![life(1, 1, 0, 100), life(2, 2, 60, 200)]);
        let twin = |run: &Run| run.twin(RequestKey(1), "r", TraceId([1; 16]), 0, 100);
        assert_eq!(twin(&run), Some(Twin { trace: TraceId([2; 16]), overlap_ns: 40 }));
        assert_eq!(run.twin(RequestKey(3), "r", TraceId([3; 16]), 300, 400), None);
        run.forget(RequestKey(2), "r");
        assert_eq!(twin(&run), None);
        run.forget(RequestKey(1), "r");
        assert!(run.shared.is_empty());
    }
}
