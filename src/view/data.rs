//! What view models read: the store, or the store as it stood when the user paused.
//!
//! Owns: the seam between screens and store, and the frozen view. Keeps out: locking and time (`tui`).

use std::borrow::Cow;
use std::sync::Arc;

use super::filter::Filter;
use crate::checks::Answers;
use crate::lifecycle::facts::Facts;
use crate::lifecycle::request::{RequestKey, RequestView};
use crate::query::Query;
use crate::store::rollup::Rollup;
use crate::store::{Before, Counts, Past, Said, Standing, Store};

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
    /// How many requests were let go since what is shown stood still, so that it may have lost as many (they may be some that
    /// came since); 0 while it is live.
    fn gone(&self) -> u64 {
        0
    }
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
    fn said(&self) -> &Said;
    /// The requests as they are now, to be held.
    fn still(&self, now_ns: u64) -> Arc<Past>;
    /// The requests as they were at a moment.
    fn past(&self, at_ns: u64) -> Arc<Past>;
    /// When anything that is held was heard of first and last, nanoseconds since the epoch.
    fn heard(&self) -> Option<(u64, u64)>;
    /// The whole request as far as it was there then, but with the facts of now; follows joins.
    fn request_at(&self, key: RequestKey, past: &Past) -> Option<RequestView<'_>>;
    /// A request as it was when this was held, where it has changed since.
    fn before(&self, past: &Arc<Past>, key: RequestKey) -> Option<&Before>;
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
    /// The moment that is shown, by which ages are counted: the window of what has ended ends before it.
    pub now_ns: u64,
    /// Whether that is the present, and not a moment at which the screen stands still.
    pub is_now: bool,
    /// Whether every request has been asked.
    pub whole: bool,
    /// Whether the numbers are of some requests only, those that pass a filter.
    pub filtered: bool,
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
            now_ns: self.shown_ns(),
            is_now: !lens.is_held(),
            whole: lens.is_whole(),
            filtered: !lens.query().is_all(),
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
    fn said(&self) -> &Said {
        self.checked().said()
    }
    fn still(&self, now_ns: u64) -> Arc<Past> {
        self.still(now_ns)
    }
    fn past(&self, at_ns: u64) -> Arc<Past> {
        self.past(at_ns)
    }
    fn heard(&self) -> Option<(u64, u64)> {
        self.heard()
    }
    fn request_at(&self, key: RequestKey, past: &Past) -> Option<RequestView<'_>> {
        self.request_at(key, past)
    }
    fn before(&self, past: &Arc<Past>, key: RequestKey) -> Option<&Before> {
        self.before(past, key)
    }
}

/// What is shown as it stood at one moment: which requests there were and what was counted. What has changed of them since
/// is known to the store, which holds that moment for as long as it is shown ([`Data::before`]).
pub struct Frozen {
    past: Arc<Past>,
    version: u64,
    /// How many requests there had been.
    ever: u64,
    counts: Counts,
    memory: (usize, usize),
    /// What the checks had said; `None` where that is today's.
    said: Option<Said>,
}

impl Frozen {
    /// Freezes `data` as it is.
    pub fn new(data: &dyn Data, at_ns: u64) -> Self {
        Self { said: Some(data.said().clone()), ..Self::of(data, data.still(at_ns)) }
    }

    /// Looks back: `data` as it was at a moment.
    pub fn back(data: &dyn Data, at_ns: u64) -> Self {
        Self::of(data, data.past(at_ns))
    }

    fn of(data: &dyn Data, past: Arc<Past>) -> Self {
        // Another moment is another version.
        let version = data.version().rotate_left(40) ^ past.at_ns();
        let (ever, counts, memory) = (ever(data), data.counts().clone(), data.memory());
        Self { past, version, ever, counts, memory, said: None }
    }

    /// The requests as they were.
    pub fn past(&self) -> &Arc<Past> {
        &self.past
    }

    /// The moment, nanoseconds since the epoch.
    pub fn at_ns(&self) -> u64 {
        self.past.at_ns()
    }

    /// The frozen view over what the store holds now.
    pub fn over<'a>(&'a self, now: &'a dyn Data) -> FrozenData<'a> {
        FrozenData { frozen: self, now }
    }

    /// Requests that have come since, those included that were let go again.
    pub fn newer(&self, now: &dyn Data) -> u64 {
        ever(now).saturating_sub(self.ever)
    }
}

/// How many requests there have been, held or let go.
fn ever(data: &dyn Data) -> u64 {
    data.standing().total + data.counts().requests_evicted
}

/// See [`Frozen::over`].
pub struct FrozenData<'a> {
    frozen: &'a Frozen,
    now: &'a dyn Data,
}

impl FrozenData<'_> {
    /// A request as it was, where it has changed since it was held. Of one that was let go since there is nothing, whatever
    /// was known of it: what is listed can be opened, copied and exported.
    fn before(&self, key: RequestKey) -> Option<&Before> {
        self.now.resolve(key)?;
        self.now.before(&self.frozen.past, key)
    }

    /// Facts that are not those of now.
    fn other(&self, key: RequestKey) -> Option<&Facts> {
        self.now.resolve(key)?;
        self.frozen.past.changed(key).or_else(|| self.before(key).map(|before| &before.facts))
    }

    /// Whether a request was there; one that was joined into another since was.
    fn was_there(&self, key: RequestKey) -> bool {
        !self.frozen.past.looks_back() || self.now.resolve(key).is_some_and(|key| self.frozen.past.has(key))
    }
}

impl Data for FrozenData<'_> {
    fn version(&self) -> u64 {
        self.frozen.version
    }
    fn standing(&self) -> Standing {
        self.frozen.past.standing()
    }
    fn counts(&self) -> &Counts {
        &self.frozen.counts
    }
    fn memory(&self) -> (usize, usize) {
        self.frozen.memory
    }
    fn gone(&self) -> u64 {
        self.now.counts().requests_evicted.saturating_sub(self.frozen.counts.requests_evicted)
    }
    fn newest(&self) -> Box<dyn Iterator<Item = (RequestKey, &Facts)> + '_> {
        Box::new(self.frozen.past.keys().iter().filter_map(|key| Some((*key, self.facts(*key)?))))
    }
    fn passing(&self, filter: &Filter) -> Option<Passing<'_>> {
        self.now.passing(filter)
    }
    fn seen(&self) -> Seen<'_> {
        self.now.seen()
    }
    fn facts(&self, key: RequestKey) -> Option<&Facts> {
        self.other(key).or_else(|| self.now.facts(key).filter(|_| self.was_there(key)))
    }
    fn request(&self, key: RequestKey) -> Option<RequestView<'_>> {
        let mut request = self.now.request_at(key, &self.frozen.past).filter(|_| self.was_there(key))?;
        if let Some(facts) = self.other(key) {
            request.facts = facts;
        }
        Some(request)
    }
    fn matches(&self, query: &Query, key: RequestKey) -> bool {
        self.now.matches(query, key)
    }
    fn answers(&self, key: RequestKey) -> Option<&Answers> {
        // Looking back, what the checks say is today's; of a request that had not ended nothing could be said.
        let is_over = !self.frozen.past.looks_back() || self.facts(key).is_some_and(|facts| facts.end_ns.is_some());
        let said = self.before(key).map_or_else(|| self.now.answers(key), |before| before.answers.as_ref());
        said.filter(|_| is_over)
    }
    fn said(&self) -> &Said {
        self.frozen.said.as_ref().unwrap_or_else(|| self.now.said())
    }
    fn resolve(&self, key: RequestKey) -> Option<RequestKey> {
        if self.other(key).is_some() { Some(key) } else { self.now.resolve(key) }
    }
    fn still(&self, _: u64) -> Arc<Past> {
        Arc::clone(&self.frozen.past)
    }
    fn past(&self, at_ns: u64) -> Arc<Past> {
        self.now.past(at_ns)
    }
    fn heard(&self) -> Option<(u64, u64)> {
        self.now.heard()
    }
    fn request_at(&self, key: RequestKey, past: &Past) -> Option<RequestView<'_>> {
        self.now.request_at(key, past)
    }
    fn before(&self, past: &Arc<Past>, key: RequestKey) -> Option<&Before> {
        self.now.before(past, key)
    }
}
