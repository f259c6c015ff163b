//! What stands beside the tree: a span's typed evidence, everything it carries, and the request's records, as rows of
//! label and value. A row knows where its whole value can be read again, so that long ones are cut but never lost (B41).

use super::tree::NodeId;
use crate::lifecycle::body::Attr;
use crate::lifecycle::catalogue::{Field, Row, Unit};
use crate::lifecycle::ids::{Worker, short_worker};
use crate::lifecycle::packed::Value;
use crate::lifecycle::request::{RequestView, SpanView};
use crate::view::{Line, Piece, Tone, format, otlp_json};

/// A row of label and value.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Detail {
    /// What it is.
    pub label: Piece,
    /// What it says.
    pub value: Line,
    /// A share from 0 to 1, drawn as a bar before the value.
    pub bar: Option<(f64, Tone)>,
    /// What Enter does.
    pub opens: Option<Opens>,
}

/// What is behind a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opens {
    /// The whole value of the span's attribute at this place.
    Attribute(usize),
    /// The whole value of an event's attribute.
    Event(usize, usize),
    /// The whole value of a link's attribute.
    Link(usize, usize),
    /// The whole value of the resource's attribute.
    Resource(usize),
    /// The record at this place, as it came.
    Record(usize),
    /// The folded boilerplate attributes: shows or hides them.
    Boilerplate,
}

/// A text to read in full.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Whole {
    /// What it is.
    pub title: String,
    /// All of it.
    pub text: String,
}

/// Characters of a value shown in its row; the rest is a key away.
const SHOWN: usize = 240;

impl Detail {
    /// A row.
    pub fn new(label: impl Into<String>, value: Line) -> Self {
        Self { label: Piece::dim(label), value, ..Self::default() }
    }

    /// A heading.
    pub fn heading(text: impl Into<String>) -> Self {
        Self { label: Piece::new(text, Tone::Strong), ..Self::default() }
    }

    fn opening(self, opens: Opens) -> Self {
        Self { opens: Some(opens), ..self }
    }
}

/// A value in one row: cut when long, with its full length told. Never looks at more of a text than it shows.
pub fn cut(value: Value<'_>) -> Line {
    let text = value.display();
    match text.char_indices().nth(SHOWN) {
        None => vec![match value {
            Value::Empty => Piece::dim("(no value)"),
            Value::Str("") => Piece::dim("(empty text)"),
            _ => Piece::plain(text),
        }],
        Some((end, _)) => vec![
            Piece::plain(&text[..end]),
            Piece::new(format!("… {} in all, Enter to read", format::bytes(text.len() as u64)), Tone::Accent),
        ],
    }
}

/// A value as its unit says; as it came when it is not what the unit expects.
pub fn typed(row: &Row, value: Value<'_>) -> Line {
    let is_worker = matches!(
        row.field,
        Field::SelectedWorker | Field::BestWorker | Field::DestinationWorker | Field::RouteWorker | Field::FromWorker
    );
    let text = match row.unit {
        _ if is_worker => value.as_u64().map(|id| {
            let short = short_worker(id);
            if short == id.to_string() { short } else { format!("{short} ({id})") }
        }),
        Unit::Count => value.as_u64().map(format::count),
        Unit::Cost => value.as_f64().map(format::cost),
        Unit::Millis => value.as_f64().filter(|ms| *ms >= 0.0).map(|ms| format::duration((ms * 1e6) as u64)),
        Unit::UnixNanos => value.as_u64().map(format::timestamp),
        Unit::Bytes => value.as_u64().map(format::bytes),
        Unit::Tokens => value.as_u64().map(|tokens| format!("{} tok", format::count(tokens))),
        Unit::Flag => value.as_bool().map(|flag| if flag { "yes" } else { "no" }.to_owned()),
        Unit::Text | Unit::Json => None,
    };
    text.map_or_else(|| cut(value), |text| vec![Piece::plain(text)])
}

/// Everything a span carries: ids and times, attributes with the tracing bridge's folded, events, links, resource, scope.
pub fn everything(span: &SpanView<'_>, with_boilerplate: bool) -> Vec<Detail> {
    let head = span.body.head();
    let mut rows = vec![
        Detail::new("trace", vec![Piece::plain(span.trace.to_string())]),
        Detail::new("span", vec![Piece::plain(span.id.to_string())]),
        Detail::new("parent", vec![span.parent.map_or(Piece::dim("none"), |parent| Piece::plain(parent.to_string()))]),
        Detail::new("kind", vec![named(span.kind, &KINDS)]),
        Detail::new("status", status(span)),
        Detail::new("start", moment(span.start_ns, "not known")),
        Detail::new("end", moment(span.end_ns, "not ended")),
    ];
    if !span.body.trace_state().is_empty() {
        rows.push(Detail::new("trace state", cut(Value::Str(span.body.trace_state()))));
    }
    if head.flags != 0 {
        rows.push(Detail::new("flags", vec![Piece::plain(head.flags.to_string())]));
    }
    let attrs = span.body.attrs();
    rows.push(counted("Attributes", attrs.len(), head.dropped[0]));
    let (mut folded, mut boilerplate) = (0, Vec::new());
    for (index, attr) in attrs.enumerate() {
        let row = attribute(attr, Opens::Attribute(index));
        if attr.field == Field::Boilerplate {
            folded += 1;
            boilerplate.push(row);
        } else {
            rows.push(row);
        }
    }
    if folded > 0 {
        let sign = if with_boilerplate { "▾" } else { "▸" };
        let text = format!("{sign} {folded} from the tracing bridge");
        rows.push(Detail { label: Piece::dim(text), ..Detail::default() }.opening(Opens::Boilerplate));
        if with_boilerplate {
            rows.extend(boilerplate);
        }
    }
    let events = span.body.events();
    if !events.is_empty() || head.dropped[1] > 0 {
        rows.push(counted("Events", events.len(), head.dropped[1]));
    }
    for (at, event) in events.into_iter().enumerate() {
        rows.push(Detail {
            label: Piece::new(format::offset(event.offset_ns), Tone::Accent),
            value: vec![Piece::new(event.name, Tone::Strong), dropped(event.dropped)],
            ..Detail::default()
        });
        rows.extend(event.attrs.enumerate().map(|(index, attr)| indented(attribute(attr, Opens::Event(at, index)))));
    }
    let links = span.body.links();
    if !links.is_empty() || head.dropped[2] > 0 {
        rows.push(counted("Links", links.len(), head.dropped[2]));
    }
    for (at, link) in links.into_iter().enumerate() {
        let ids = format!("{} {}", hex(link.trace), hex(link.span));
        rows.push(Detail::new("to", vec![Piece::plain(ids), Piece::dim(link.trace_state), dropped(link.dropped)]));
        rows.extend(link.attrs.enumerate().map(|(index, attr)| indented(attribute(attr, Opens::Link(at, index)))));
    }
    rows.push(counted("Resource", span.resource.attrs().count(), span.resource.dropped()));
    rows.extend(
        span.resource
            .attrs()
            .enumerate()
            .map(|(index, (key, value))| Detail::new(key, cut(value)).opening(Opens::Resource(index))),
    );
    let scope = span.scope;
    rows.push(counted("Scope", scope.attrs().count(), scope.dropped()));
    rows.push(Detail::new("name", vec![Piece::plain(scope.name()), Piece::dim(scope.version())]));
    rows.extend(scope.attrs().map(|(key, value)| Detail::new(key, cut(value))));
    rows
}

fn attribute(attr: Attr<'_>, opens: Opens) -> Detail {
    Detail::new(attr.key, cut(attr.value)).opening(opens)
}

fn indented(row: Detail) -> Detail {
    Detail { label: Piece { text: format!("  {}", row.label.text), ..row.label }, ..row }
}

fn counted(what: &str, count: usize, lost: u32) -> Detail {
    let mut row = Detail::heading(format!("{what}  {}", format::count(count as u64)));
    row.value.push(dropped(lost));
    row
}

fn dropped(count: u32) -> Piece {
    match count {
        0 => Piece::default(),
        count => Piece::new(format!("{} dropped by the sender", format::count(count.into())), Tone::Warn),
    }
}

const KINDS: [&str; 6] = ["unspecified", "internal", "server", "client", "producer", "consumer"];
const STATUSES: [&str; 3] = ["unset", "ok", "error"];

/// The name of an enum's number; an unknown number is shown as such.
fn named(number: i32, names: &[&'static str]) -> Piece {
    match usize::try_from(number).ok().and_then(|number| names.get(number)) {
        Some(name) => Piece::plain(*name),
        None => Piece::new(format!("{number} (not known)"), Tone::Warn),
    }
}

fn status(span: &SpanView<'_>) -> Line {
    let mut line = vec![named(span.body.head().status_code, &STATUSES)];
    if !span.body.status_message().is_empty() {
        line.push(Piece::plain(span.body.status_message()));
    }
    line
}

fn moment(ns: u64, when_zero: &str) -> Line {
    match ns {
        0 => vec![Piece::new(when_zero, Tone::Warn)],
        ns => vec![Piece::plain(format::timestamp(ns))],
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The whole value behind a row, for reading and copying.
pub fn whole(request: &RequestView<'_>, node: NodeId, opens: Opens) -> Option<Whole> {
    if let Opens::Record(index) = opens {
        let record = request.records.get(index)?;
        return Some(Whole { title: format!("record {}", record.event_type), text: pretty(&record.raw) });
    }
    let span = node.find(request)?;
    let whole = |key: &str, value: Value<'_>| {
        let text = value.display();
        let text = if matches!(value, Value::Str(_)) { pretty(&text) } else { text.into_owned() };
        Whole { title: format!("{key}  {}", format::bytes(value.display().len() as u64)), text }
    };
    let of = |attr: Attr<'_>| whole(attr.key, attr.value);
    match opens {
        Opens::Attribute(index) => span.body.attrs().nth(index).map(of),
        Opens::Event(at, index) => span.body.events().into_iter().nth(at)?.attrs.nth(index).map(of),
        Opens::Link(at, index) => span.body.links().into_iter().nth(at)?.attrs.nth(index).map(of),
        Opens::Resource(index) => span.resource.attrs().nth(index).map(|(key, value)| whole(key, value)),
        Opens::Record(_) | Opens::Boilerplate => None,
    }
}

/// Key and value of the attribute behind a row, for filters; `None` when there is none, or it is a list or map.
pub fn attribute_of(request: &RequestView<'_>, node: NodeId, opens: Opens) -> Option<(String, String)> {
    let span = node.find(request)?;
    let (key, value) = match opens {
        Opens::Attribute(index) => span.body.attrs().nth(index).map(|attr| (attr.key, attr.value))?,
        Opens::Event(at, index) => {
            span.body.events().into_iter().nth(at)?.attrs.nth(index).map(|attr| (attr.key, attr.value))?
        }
        Opens::Resource(index) => span.resource.attrs().nth(index)?,
        Opens::Link(..) | Opens::Record(_) | Opens::Boilerplate => return None,
    };
    let scalar = !matches!(value, Value::Array(_) | Value::Map(_) | Value::Bytes(_) | Value::Empty);
    scalar.then(|| (key.to_owned(), value.display().into_owned()))
}

/// A span as OTLP JSON.
pub fn raw(request: &RequestView<'_>, node: NodeId) -> Option<Whole> {
    let span = node.find(request)?;
    let text = serde_json::to_string_pretty(&otlp_json::Span(span)).ok()?;
    Some(Whole { title: format!("span {} as OTLP JSON", span.id), text })
}

/// JSON objects and lists one field a line; any other text as it is.
fn pretty(text: &str) -> String {
    if !text.starts_with(['{', '[']) {
        return text.to_owned();
    }
    match serde_json::from_str::<serde_json::Value>(text) {
        Ok(json) => serde_json::to_string_pretty(&json).unwrap_or_else(|_| text.to_owned()),
        Err(_) => text.to_owned(),
    }
}

/// A worker as shown beside numbers.
pub fn worker(id: u64, rank: Option<u32>) -> String {
    Worker { id, rank }.short()
}
