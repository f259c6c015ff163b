//! The hot path: from a batch's borrowed spans to rows and bodies.
//!
//! Each attribute is compared with the one at the same place of the last span of the same name, and hashed only when it
//! differs (two thirds do not). Nothing here looks at what attributes mean, but for the request id, which is noted in the
//! row as its piece is held.

use super::attrs::{Finder, Found, code, codes_of, hold, hold_one, release_one};
use super::interner::{Interner, NONE};
use super::rows::Row;
use super::trace::{Trace, UNGROUPED};
use super::{Ingested, Store, Tables, records};
use crate::lifecycle::batch::{Batch, Repeats, ResourceIn, ScopeIn, Slice, SpanIn};
use crate::lifecycle::body::{Head, Writer};
use crate::lifecycle::catalogue::Field;
use crate::lifecycle::context;
use crate::lifecycle::packed;
use crate::lifecycle::stage::Stage;
use crate::lifecycle::text;

/// Span names that keep a predecessor; a sender of more names than this is not Dynamo and pays for its hashes.
const MOST_PREDECESSORS: usize = 1024;

/// The attributes of the last span of one name.
#[derive(Default)]
struct Predecessor {
    /// Their packed bytes, one after the other.
    raw: Vec<u8>,
    places: Vec<Place>,
}

/// An attribute of the last span of one name.
#[derive(Clone, Copy)]
struct Place {
    /// Where it ends in [`Predecessor::raw`].
    end: u32,
    found: Found,
}

/// What a predecessor's buffers may have to spare, bytes; they are swapped from span to span.
const SPARE: usize = 4096;

impl Predecessor {
    fn size(&self) -> usize {
        self.raw.capacity() + self.places.capacity() * size_of::<Place>()
    }

    /// Gives back what a larger span before it needed.
    fn shrink(&mut self) {
        if self.raw.capacity() > self.raw.len() + SPARE {
            self.raw.shrink_to_fit();
        }
        if self.places.capacity() > self.places.len() + SPARE / size_of::<Place>() {
            self.places.shrink_to_fit();
        }
    }
}

/// A span name that was seen.
struct Name {
    /// As it came.
    bytes: Box<[u8]>,
    /// Its text piece, held.
    piece: u32,
    stage: Stage,
    before: Predecessor,
}

/// What the hot path remembers between spans.
#[derive(Default)]
pub struct Memory {
    names: Vec<Name>,
    /// Bytes that the names and their predecessors hold.
    held: usize,
    /// Where the last lookup of a name ended: spans of a batch come in runs and cycles of few names.
    last_name: usize,
    raw: Vec<u8>,
    places: Vec<Place>,
    /// How many texts never seen before each key has brought, halved whenever it brings a known one; by key piece.
    news: Vec<u8>,
    contexts: Vec<u32>,
}

impl Store {
    /// Takes in one batch. `now_ns` is the time of arrival.
    pub fn ingest(&mut self, batch: &Batch<'_>, now_ns: u64) -> Ingested {
        self.arrived_ns = now_ns;
        if !(batch.spans.is_empty() && batch.records.is_empty() && batch.signs.is_empty()) {
            self.delivered_ns = now_ns;
            if self.opening_ns > 0 {
                self.open();
            }
        }
        self.take(batch, now_ns)
    }

    /// What comes from now on was listened to from another moment than what came before, which is settled by its own.
    fn open(&mut self) {
        self.refresh(self.opening_ns);
        self.listening_ns = std::mem::take(&mut self.opening_ns);
    }

    /// Takes in one batch of which nobody noted when it arrived, but that it was before `by_ns`. As far as can be told that was
    /// when the last thing happened that it tells of.
    pub fn ingest_undated(&mut self, batch: &Batch<'_>, by_ns: u64) -> Ingested {
        self.arrived_ns = self.arrived_ns.max(batch.told_ns().unwrap_or(0).min(by_ns));
        self.take(batch, 0)
    }

    /// Takes in one batch that arrived then; 0 when nobody knows.
    fn take(&mut self, batch: &Batch<'_>, now_ns: u64) -> Ingested {
        let mut done = Ingested::default();
        self.whole = false;
        let mut memory = std::mem::take(&mut self.memory);
        memory.contexts.clear();
        memory.contexts.resize(batch.resources.len() + batch.scopes.len(), NONE);
        for span in &batch.spans {
            if self.full && !self.traces.has(span.trace) {
                done.shed += 1;
                continue;
            }
            let slot = self.traces.slot(span.trace);
            let trace = &mut self.traces[slot];
            if trace.open() && !trace.dirty {
                trace.dirty = true;
                self.dirty_traces.push(slot as u32);
            }
            if trace.find(span.id).is_some() {
                done.duplicates += 1;
                continue;
            }
            if self.full {
                done.shed += 1;
                continue;
            }
            let row = memory.row(&mut self.tables, &mut self.counts.texts_cleaned, trace, batch, span);
            trace.note_hold(self.holds);
            trace.push(row);
            trace.heard_ns = now_ns;
            done.kept += 1;
            if !trace.dirty {
                trace.dirty = true;
                self.dirty_traces.push(slot as u32);
            }
        }
        self.memory = memory;
        self.counts.spans_received += batch.spans.len() as u64 + batch.tally.refused_spans;
        self.counts.spans_kept += done.kept;
        self.counts.spans_duplicate += done.duplicates;
        self.counts.spans_shed += done.shed;
        self.counts.spans_refused += batch.tally.refused_spans;
        self.counts.other_logs += batch.tally.other_logs;
        self.counts.metric_points += batch.tally.metric_points;
        self.counts.records_received += batch.records.len() as u64 + batch.tally.bad_records;
        self.counts.records_bad += batch.tally.bad_records;
        self.counts.texts_cleaned += batch.tally.bad_texts;
        self.note_refused(batch);
        let mut written: super::Map<(u64, &str), usize> = super::Map::default();
        for record in &batch.records {
            let times = match batch.repeats {
                Repeats::Came => 1,
                Repeats::Written => {
                    let times = written.entry(records::by(record)).or_default();
                    *times += 1;
                    *times
                }
            };
            self.take_record(record, times, now_ns);
        }
        for sign in &batch.signs {
            self.take_sign(sign, now_ns);
        }
        self.version += 1;
        done
    }
}

impl Memory {
    /// The row of a span, its body appended to the trace's, every piece of it held.
    #[inline]
    fn row(
        &mut self,
        tables: &mut Tables,
        cleaned: &mut u64,
        trace: &mut Trace,
        batch: &Batch<'_>,
        span: &SpanIn<'_>,
    ) -> Row {
        let resource = self.context(tables, cleaned, span.resource as usize, |tables, cleaned| {
            resource(tables, cleaned, batch, &batch.resources[span.resource as usize])
        });
        let scope = self.context(tables, cleaned, batch.resources.len() + span.scope as usize, |tables, cleaned| {
            scope(tables, cleaned, batch, &batch.scopes[span.scope as usize])
        });
        tables.contexts.hold(resource);
        tables.contexts.hold(scope);
        let at = self.name(tables, cleaned, span.name);
        let Name { piece: name, stage, .. } = self.names[at];
        tables.texts.hold(name);

        let body = trace.bodies.len() as u32;
        let has_head = span.status_code != 0
            || span.flags != 0
            || !span.status_message.is_empty()
            || !span.trace_state.is_empty()
            || span.dropped != [0; 3];
        let mut head = Head::default();
        if has_head {
            head = Head {
                status_code: span.status_code,
                status_message: optional_text(&mut tables.texts, cleaned, span.status_message),
                trace_state: optional_text(&mut tables.texts, cleaned, span.trace_state),
                flags: span.flags,
                dropped: span.dropped,
            };
        }
        let (events, links) = (batch.events(&span.events), batch.links(&span.links));
        let mut writer = Writer(&mut trace.bodies);
        writer.head(&head, !events.is_empty(), !links.is_empty());

        let mut rid = NONE;
        self.raw.clear();
        self.places.clear();
        let before = &mut self.names[at].before;
        self.held -= before.size();
        let mut start = 0usize;
        let attrs = batch.attrs(&span.attrs);
        writer.count(attrs.len());
        for (index, raw) in attrs.iter().enumerate() {
            let old = before.places.get(index).copied();
            let mut finder = Finder { attrs: &mut tables.attrs, news: &mut self.news, cleaned };
            let found = match old {
                Some(old) => {
                    let same = before.raw[start..old.end as usize] == **raw;
                    start = old.end as usize;
                    if same { finder.again(old.found) } else { finder.other(old.found, raw) }
                }
                None => finder.keep_new(raw),
            };
            let code = code(&tables.attrs, found, raw);
            hold(&mut tables.attrs, code, &mut rid);
            writer.attr(code);
            // The predecessor holds its pieces too: without that a number could be used again under it.
            let of_old = old.map_or([NONE; 2], |old| [old.found.key, old.found.piece]);
            for (piece, old) in [found.key, found.piece].into_iter().zip(of_old) {
                if piece != old {
                    hold_one(&mut tables.attrs, piece);
                    release_one(&mut tables.attrs, old);
                }
            }
            self.raw.extend_from_slice(raw);
            self.places.push(Place { end: self.raw.len() as u32, found });
        }
        for place in before.places.iter().skip(self.places.len()) {
            release_one(&mut tables.attrs, place.found.key);
            release_one(&mut tables.attrs, place.found.piece);
        }
        std::mem::swap(&mut before.raw, &mut self.raw);
        std::mem::swap(&mut before.places, &mut self.places);
        before.shrink();
        self.held += before.size();

        if !events.is_empty() {
            writer.count(events.len());
            for event in events {
                let name = tables.keep_text(cleaned, event.name);
                tables.texts.hold(name);
                let codes = codes_of(&mut tables.attrs, &mut self.news, cleaned, batch.attrs(&event.attrs));
                writer.event(event.time_ns.wrapping_sub(span.start_ns) as i64, name, event.dropped, &codes);
            }
        }
        if !links.is_empty() {
            writer.count(links.len());
            for link in links {
                let state = optional_text(&mut tables.texts, cleaned, link.trace_state);
                let codes = codes_of(&mut tables.attrs, &mut self.news, cleaned, batch.attrs(&link.attrs));
                writer.link(link.trace, link.span, state, link.flags, link.dropped, &codes);
            }
        }
        Row {
            id: span.id,
            parent: span.parent,
            start_ns: span.start_ns,
            end_ns: span.end_ns,
            name,
            resource,
            scope,
            body,
            rid,
            kind: span.kind,
            stage,
            group: UNGROUPED,
        }
    }

    /// The context piece at a place of the batch, made once a batch.
    #[inline]
    fn context(
        &mut self,
        tables: &mut Tables,
        cleaned: &mut u64,
        at: usize,
        make: impl FnOnce(&mut Tables, &mut u64) -> u32,
    ) -> u32 {
        if self.contexts[at] == NONE {
            self.contexts[at] = make(tables, cleaned);
        }
        self.contexts[at]
    }

    /// Where a name stands in [`Memory::names`].
    #[inline]
    fn name(&mut self, tables: &mut Tables, cleaned: &mut u64, bytes: &[u8]) -> usize {
        let count = self.names.len();
        for step in 0..count.min(64) {
            let at = (self.last_name + step) % count;
            if *self.names[at].bytes == *bytes {
                self.last_name = at;
                return at;
            }
        }
        self.last_name = self.names.iter().position(|name| *name.bytes == *bytes).unwrap_or_else(|| {
            if self.names.len() >= MOST_PREDECESSORS {
                self.forget(tables);
            }
            let piece = tables.keep_text(cleaned, bytes);
            tables.texts.hold(piece);
            let stage = Stage::of(tables.texts.text(piece));
            self.held += size_of::<Name>() + bytes.len();
            self.names.push(Name { bytes: bytes.into(), piece, stage, before: Predecessor::default() });
            self.names.len() - 1
        });
        self.last_name
    }

    /// Lets go of every name and predecessor.
    pub fn forget(&mut self, tables: &mut Tables) {
        for name in self.names.drain(..) {
            tables.texts.release(name.piece);
            for place in name.before.places {
                release_one(&mut tables.attrs, place.found.key);
                release_one(&mut tables.attrs, place.found.piece);
            }
        }
        (self.last_name, self.held) = (0, 0);
    }

    /// Bytes it holds.
    pub fn size(&self) -> usize {
        self.held
    }
}

impl Tables {
    /// The text piece of these bytes, scrubbed.
    pub fn keep_text(&mut self, cleaned: &mut u64, bytes: &[u8]) -> u32 {
        keep_text(&mut self.texts, cleaned, bytes)
    }
}

fn keep_text(texts: &mut Interner, cleaned: &mut u64, bytes: &[u8]) -> u32 {
    if let Some(piece) = texts.find(bytes) {
        return piece;
    }
    let clean = text::scrub(bytes);
    *cleaned += u64::from(clean.as_bytes() != bytes);
    texts.keep(clean.as_bytes(), || Field::Other)
}

/// The piece of a text that may be empty, held.
fn optional_text(texts: &mut Interner, cleaned: &mut u64, bytes: &[u8]) -> Option<u32> {
    (!bytes.is_empty()).then(|| {
        let piece = keep_text(texts, cleaned, bytes);
        texts.hold(piece);
        piece
    })
}

fn resource(tables: &mut Tables, cleaned: &mut u64, batch: &Batch<'_>, resource: &ResourceIn<'_>) -> u32 {
    let url = text::scrub(resource.schema_url);
    keep_context(tables, cleaned, batch, resource.dropped, &[url.as_bytes()], &resource.attrs)
}

fn scope(tables: &mut Tables, cleaned: &mut u64, batch: &Batch<'_>, scope: &ScopeIn<'_>) -> u32 {
    let texts = [text::scrub(scope.name), text::scrub(scope.version), text::scrub(scope.schema_url)];
    let texts = [texts[0].as_bytes(), texts[1].as_bytes(), texts[2].as_bytes()];
    keep_context(tables, cleaned, batch, scope.dropped, &texts, &scope.attrs)
}

fn keep_context(
    tables: &mut Tables,
    cleaned: &mut u64,
    batch: &Batch<'_>,
    dropped: u32,
    texts: &[&[u8]],
    attrs: &Slice,
) -> u32 {
    let attrs: Vec<_> = batch.attrs(attrs).iter().map(|raw| packed::clean(raw)).collect();
    *cleaned += attrs.iter().filter(|attr| matches!(attr, std::borrow::Cow::Owned(_))).count() as u64;
    let attrs: Vec<&[u8]> = attrs.iter().map(AsRef::as_ref).collect();
    let mut bytes = Vec::new();
    context::write(&mut bytes, dropped, texts, &attrs);
    tables.contexts.keep(&bytes, || Field::Other)
}
