//! What view models read: the store, or the store as it stood when the user paused.
//!
//! Owns: the seam between screens and store, and the frozen view. Keeps out: locking and time (`tui`).

use std::borrow::Cow;
use std::collections::HashMap;

use super::filter::Filter;
use crate::checks::Answers;
use crate::lifecycle::facts::{Facts, State};
use crate::lifecycle::request::{RequestKey, RequestView};
use crate::query::Query;
use crate::store::rollup::Rollup;
use crate::store::{Checked, Counts, Standing, Store};

/// What screens read.
pub trait Data {
    /// Grows whenever anything that can be seen changes.
    fn version(&self) -> u64;
    /// How the requests stand.
    fn standing(&self) -> Standing;
    /// What was counted.
    fn counts(&self) -> &Counts;
    /// Bytes held, and the most that may be.
    fn memory(&self) -> (usize, usize);
    /// The requests, newest first.
    fn newest(&self) -> Box<dyn Iterator<Item = (RequestKey, &Facts)> + '_>;
    /// The requests that pass a filter, when that set is kept up to date already; `None`: every request must be asked.
    fn passing(&self, filter: &Filter) -> Option<Passing<'_>> {
        let _ = filter;
        None
    }
    /// The numbers of the requests that pass the filter within the window.
    fn seen(&self) -> Seen<'_>;
    /// The facts of a request; follows joins.
    fn facts(&self, key: RequestKey) -> Option<&Facts>;
    /// The whole request; follows joins.
    fn request(&self, key: RequestKey) -> Option<RequestView<'_>>;
    /// What the key means now, after joins.
    fn resolve(&self, key: RequestKey) -> Option<RequestKey>;
    /// Whether a filter means this request.
    fn matches(&self, query: &Query, key: RequestKey) -> bool;
    /// What the checks say of it; `None` while it has not been asked.
    fn answers(&self, key: RequestKey) -> Option<&Answers>;
    /// What the checks have said of all requests.
    fn checked(&self) -> &Checked;
}

/// See [`Data::passing`].
pub struct Passing<'a> {
    /// How many there are.
    pub len: usize,
    /// Whether every request has been asked.
    pub whole: bool,
    /// Whether a window leaves requests out that the filter does not.
    pub windowed: bool,
    /// The requests, newest first.
    pub newest: Box<dyn Iterator<Item = RequestKey> + 'a>,
}

/// See [`Data::seen`].
pub struct Seen<'a> {
    /// The numbers.
    pub rollup: Cow<'a, Rollup>,
    /// Length of the window, nanoseconds; `None` for everything.
    pub window_ns: Option<u64>,
    /// Its end, nanoseconds since the epoch.
    pub until_ns: u64,
    /// Whether every request has been asked.
    pub whole: bool,
    /// The requests, newest first.
    pub newest: Box<dyn Iterator<Item = RequestKey> + 'a>,
}

impl Data for Store {
    fn version(&self) -> u64 {
        self.version()
    }
    fn standing(&self) -> Standing {
        self.standing()
    }
    fn counts(&self) -> &Counts {
        self.counts()
    }
    fn memory(&self) -> (usize, usize) {
        (self.memory(), self.limits().memory)
    }
    fn newest(&self) -> Box<dyn Iterator<Item = (RequestKey, &Facts)> + '_> {
        Box::new(self.requests().rev())
    }
    fn passing(&self, filter: &Filter) -> Option<Passing<'_>> {
        let lens = self.lens();
        let (whole, windowed) = (lens.is_whole(), lens.window_ns().is_some());
        let passing = || Passing { len: lens.len(), whole, windowed, newest: Box::new(lens.members().rev()) };
        (lens.query() == filter.query()).then(passing)
    }
    fn seen(&self) -> Seen<'_> {
        let lens = self.lens();
        Seen {
            rollup: Cow::Borrowed(lens.rollup()),
            window_ns: lens.window_ns(),
            until_ns: lens.until_ns(),
            whole: lens.is_whole(),
            newest: Box::new(lens.members().rev()),
        }
    }
    fn facts(&self, key: RequestKey) -> Option<&Facts> {
        self.facts(key)
    }
    fn request(&self, key: RequestKey) -> Option<RequestView<'_>> {
        self.request(key)
    }
    fn resolve(&self, key: RequestKey) -> Option<RequestKey> {
        self.resolve(key)
    }
    fn matches(&self, query: &Query, key: RequestKey) -> bool {
        self.matches(query, key)
    }
    fn answers(&self, key: RequestKey) -> Option<&Answers> {
        self.answers(key)
    }
    fn checked(&self) -> &Checked {
        self.checked()
    }
}

/// The list as it stood at one moment: which requests there were, and the facts of those that could still change.
///
/// Ended requests hardly ever change and are read from the store; the few that do (a late record) show it early.
pub struct Frozen {
    /// When, nanoseconds since the epoch.
    pub at_ns: u64,
    keys: Vec<RequestKey>,
    facts: HashMap<RequestKey, Facts>,
    version: u64,
    standing: Standing,
    counts: Counts,
    memory: (usize, usize),
}

impl Frozen {
    /// Freezes `data`; `shown` are the requests on screen, whose facts are kept whatever their state.
    pub fn new(data: &dyn Data, shown: &[RequestKey], at_ns: u64) -> Self {
        let mut keys = Vec::with_capacity(data.standing().total as usize);
        let mut facts = HashMap::new();
        for (key, known) in data.newest() {
            keys.push(key);
            if known.state == State::InFlight {
                facts.insert(key, known.clone());
            }
        }
        for key in shown {
            if let Some(known) = data.facts(*key) {
                facts.entry(*key).or_insert_with(|| known.clone());
            }
        }
        let (version, standing) = (data.version(), data.standing());
        Self { at_ns, keys, facts, version, standing, counts: data.counts().clone(), memory: data.memory() }
    }

    /// The frozen view over what the store holds now.
    pub fn over<'a>(&'a self, now: &'a dyn Data) -> FrozenData<'a> {
        FrozenData { frozen: self, now }
    }

    /// Requests that have come since.
    pub fn newer(&self, now: &dyn Data) -> u64 {
        now.standing().total.saturating_sub(self.standing.total)
    }
}

/// See [`Frozen::over`].
pub struct FrozenData<'a> {
    frozen: &'a Frozen,
    now: &'a dyn Data,
}

impl Data for FrozenData<'_> {
    fn version(&self) -> u64 {
        self.frozen.version
    }
    fn standing(&self) -> Standing {
        self.frozen.standing
    }
    fn counts(&self) -> &Counts {
        &self.frozen.counts
    }
    fn memory(&self) -> (usize, usize) {
        self.frozen.memory
    }
    fn newest(&self) -> Box<dyn Iterator<Item = (RequestKey, &Facts)> + '_> {
        Box::new(self.frozen.keys.iter().filter_map(|key| Some((*key, self.facts(*key)?))))
    }
    fn passing(&self, filter: &Filter) -> Option<Passing<'_>> {
        self.now.passing(filter)
    }
    fn seen(&self) -> Seen<'_> {
        self.now.seen()
    }
    fn facts(&self, key: RequestKey) -> Option<&Facts> {
        self.frozen.facts.get(&key).or_else(|| self.now.facts(key))
    }
    fn request(&self, key: RequestKey) -> Option<RequestView<'_>> {
        let mut request = self.now.request(key)?;
        if let Some(facts) = self.frozen.facts.get(&key) {
            request.facts = facts;
        }
        Some(request)
    }
    fn matches(&self, query: &Query, key: RequestKey) -> bool {
        self.now.matches(query, key)
    }
    fn answers(&self, key: RequestKey) -> Option<&Answers> {
        self.now.answers(key)
    }
    fn checked(&self) -> &Checked {
        self.now.checked()
    }
    fn resolve(&self, key: RequestKey) -> Option<RequestKey> {
        if self.frozen.facts.contains_key(&key) { Some(key) } else { self.now.resolve(key) }
    }
}
