//! What was already read from a store: a store is asked for whole traces again and again, and hands out all of each.
//!
//! Owns: which spans are news, which traces may still grow. Keeps out: asking (`mod`), keeping spans (the store of ours,
//! which would drop them too, but count them as duplicates of their senders).

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hash};

use bytes::Bytes;
use foldhash::fast::FixedState;

use crate::lifecycle::batch::Batch;
use crate::lifecycle::ids::TraceId;
use crate::lifecycle::stage::Stage;
use crate::source::otlp::wire;

/// Spans remembered in one of the two generations; the older one goes when the newer one is full.
const REMEMBERED: usize = 1 << 20;
/// Traces watched for what is still missing.
const WATCHED: usize = 4096;
/// How long a trace is watched after its root came: workers send later than the frontend.
const SETTLES_NS: u64 = 20_000_000_000;
/// How long a trace without a root is watched after its last news.
const WAITED_NS: u64 = 600_000_000_000;

/// Spans that were delivered, traces that may still grow.
#[derive(Default)]
pub struct Seen {
    spans: [HashSet<u64>; 2],
    watched: HashMap<TraceId, Watched>,
}

/// A trace of which more may come.
struct Watched {
    /// When it last brought something.
    news_ns: u64,
    /// When its root came.
    root_ns: Option<u64>,
    /// When it was last asked for.
    asked_ns: u64,
}

/// What an answer holds that was not delivered before.
#[derive(Debug, Default)]
pub struct News {
    /// The request without what is known; `None` when all is.
    pub request: Option<Bytes>,
    /// The traces it holds, known or not.
    pub traces: HashSet<TraceId>,
    /// How many of them were not known.
    pub begun: u64,
}

/// A key under which something is remembered.
pub fn hash(key: impl Hash) -> u64 {
    FixedState::with_seed(0).hash_one(key)
}

impl Seen {
    /// Takes from an export request in protobuf what is new. A resource goes on whole when one of its spans is new.
    ///
    /// # Errors
    /// When the bytes are no such request.
    pub fn news(&mut self, request: Bytes, now_ns: u64) -> Result<News, String> {
        let mut news = News::default();
        let mut kept = Vec::new();
        let parts = wire::each_resource(&request)?;
        for part in &parts {
            let mut batch = Batch::default();
            wire::traces(part, &mut batch)?;
            // A span whose id is refused is told by the store of ours, once, not silently dropped here.
            let mut fresh = batch.tally.refused_spans > 0 && self.insert(hash(part));
            for span in &batch.spans {
                news.begun += u64::from(self.insert(hash(span.trace)));
                let new = self.insert(hash((span.trace, span.id)));
                fresh |= new;
                news.traces.insert(span.trace);
                let stage = Stage::of(std::str::from_utf8(span.name).unwrap_or(""));
                self.watch(span.trace, stage, span.parent.is_none(), new, now_ns);
            }
            if fresh {
                kept.push(*part);
            }
        }
        news.request = match kept.len() {
            0 => None,
            all if all == parts.len() => Some(request.clone()),
            _ => Some(kept.concat().into()),
        };
        Ok(news)
    }

    /// Whether what has this key is met for the first time.
    pub fn insert(&mut self, key: u64) -> bool {
        if self.spans[0].contains(&key) || self.spans[1].contains(&key) {
            return false;
        }
        if self.spans[0].len() >= REMEMBERED {
            self.spans[1] = std::mem::take(&mut self.spans[0]);
        }
        self.spans[0].insert(key)
    }

    fn watch(&mut self, trace: TraceId, stage: Stage, top: bool, new: bool, now_ns: u64) {
        if !new {
            return;
        }
        let known = self.watched.contains_key(&trace);
        if !known && (stage == Stage::Other || self.watched.len() >= WATCHED) {
            return;
        }
        let watched = self.watched.entry(trace).or_insert(Watched { news_ns: now_ns, root_ns: None, asked_ns: now_ns });
        watched.news_ns = now_ns;
        if top || matches!(stage, Stage::Http | Stage::Root) {
            watched.root_ns = Some(now_ns);
        }
    }

    /// Up to `most` traces that may have grown and were not in what was just read, the longest unasked first.
    pub fn unfinished(&mut self, just_read: &HashSet<TraceId>, most: usize, now_ns: u64) -> Vec<TraceId> {
        self.watched.retain(|_, watched| match watched.root_ns {
            Some(root_ns) => now_ns.saturating_sub(root_ns.max(watched.news_ns)) < SETTLES_NS,
            None => now_ns.saturating_sub(watched.news_ns) < WAITED_NS,
        });
        let mut due: Vec<(u64, TraceId)> =
            self.watched.iter().map(|(trace, watched)| (watched.asked_ns, *trace)).collect();
        due.retain(|(_, trace)| !just_read.contains(trace));
        due.sort_unstable();
        due.truncate(most);
        for (_, trace) in &due {
            if let Some(watched) = self.watched.get_mut(trace) {
                watched.asked_ns = now_ns;
            }
        }
        due.into_iter().map(|(_, trace)| trace).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::intake::Signal;
    use crate::source::otlp::json::{Shape, transcode};

    fn request(spans: &[(u8, u8, &str, bool)]) -> Bytes {
        let each = spans.iter().map(|(trace, id, name, top)| {
            let parent = if *top { "" } else { "00000000000000ff" };
            format!(
                r#"{{"scopeSpans":[{{"spans":[{{"traceId":"{trace:032x}","spanId":"{id:016x}","parentSpanId":"{parent}","name":"{name}"}}]}}]}}"#
            )
        });
        let text = format!(r#"{{"resourceSpans":[{}]}}"#, each.collect::<Vec<_>>().join(","));
        let mut out = Vec::new();
        transcode(Shape::Request(Signal::Traces), text.as_bytes(), &mut out).unwrap();
        out.into()
    }

    #[test]
    fn only_news_goes_on() {
        let mut seen = Seen::default();
        let first = request(&[(1, 1, "router.queue", false), (2, 2, "x", true)]);
        let news = seen.news(first.clone(), 0).unwrap();
        assert_eq!((news.request.as_ref(), news.traces.len()), (Some(&first), 2));
        assert!(seen.news(first, 0).unwrap().request.is_none());
        let more = request(&[(1, 1, "router.queue", false), (1, 3, "router.selection", false)]);
        assert_eq!(seen.news(more, 0).unwrap().request, Some(request(&[(1, 3, "router.selection", false)])));
        assert!(seen.news(Bytes::from_static(b"\xff"), 0).is_err());
    }

    #[test]
    fn a_trace_is_watched_until_its_root_has_settled() {
        let mut seen = Seen::default();
        let none = HashSet::new();
        seen.news(request(&[(1, 1, "router.queue", false), (2, 2, "other", true)]), 0).unwrap();
        let one = TraceId::from_hex(&format!("{:032x}", 1)).unwrap();
        assert_eq!(seen.unfinished(&none, 9, 1), [one]);
        assert!(seen.unfinished(&HashSet::from([one]), 9, 2).is_empty());
        assert!(seen.unfinished(&none, 0, 2).is_empty());
        seen.news(request(&[(1, 9, "request.lifecycle", true)]), 3).unwrap();
        assert_eq!(seen.unfinished(&none, 9, SETTLES_NS), [one]);
        assert!(seen.unfinished(&none, 9, SETTLES_NS + 3).is_empty());
    }
}
