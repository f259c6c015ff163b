//! Building OTLP spans the way Dynamo's tracing bridge does: numbers as texts, boilerplate first, busy and idle last.

use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};
use opentelemetry_proto::tonic::trace::v1::{Span, Status, span::Event, span::Link, status::StatusCode};

/// Where in Dynamo's source a span or event is written.
#[derive(Clone, Copy)]
pub struct Code {
    /// `code.file.path` below `/opt/dynamo/lib/`.
    pub file: &'static str,
    /// `code.module.name`.
    pub module: &'static str,
    /// `code.line.number`.
    pub line: i64,
}

/// The lifecycle telemetry module, at a line of its own for each span.
pub fn telemetry(line: i64) -> Code {
    Code { file: "runtime/src/telemetry.rs", module: "dynamo_runtime::telemetry", line }
}

/// A text attribute.
pub fn text(key: &str, value: impl Into<String>) -> KeyValue {
    attribute(key, Value::StringValue(value.into()))
}

/// A number written as text, as nearly all of Dynamo's are.
pub fn number(key: &str, value: impl ToString) -> KeyValue {
    text(key, value.to_string())
}

/// A flag.
pub fn flag(key: &str, value: bool) -> KeyValue {
    attribute(key, Value::BoolValue(value))
}

/// A floating-point number.
pub fn real(key: &str, value: f64) -> KeyValue {
    attribute(key, Value::DoubleValue(value))
}

/// An integer.
pub fn integer(key: &str, value: i64) -> KeyValue {
    attribute(key, Value::IntValue(value))
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

/// `code.*` attributes.
pub fn code(code: Code) -> [KeyValue; 3] {
    [
        text("code.file.path", format!("/opt/dynamo/lib/{}", code.file)),
        text("code.module.name", code.module),
        integer("code.line.number", code.line),
    ]
}

/// Span kinds Dynamo uses.
#[derive(Clone, Copy)]
pub enum Kind {
    /// Most spans.
    Internal = 1,
    /// `handle_payload`.
    Server = 2,
    /// Route spans.
    Client = 3,
}

/// Ids and times of a span.
#[derive(Clone, Copy)]
pub struct Frame<'a> {
    /// Its name.
    pub name: &'static str,
    /// Its trace.
    pub trace: &'a [u8; 16],
    /// Its id.
    pub id: [u8; 8],
    /// Its parent; none for an HTTP span.
    pub parent: Option<[u8; 8]>,
    /// Start and end, nanoseconds since the epoch.
    pub time: (u64, u64),
}

/// A span being written.
pub struct Draft(pub Span);

impl Draft {
    /// A span with its boilerplate.
    pub fn new(frame: Frame<'_>, kind: Kind, at: Code, target: &str, thread: i64) -> Self {
        let mut attributes = Vec::with_capacity(32);
        attributes.extend(code(at));
        attributes.push(integer("thread.id", thread));
        attributes.push(text("thread.name", "tokio-rt-worker"));
        attributes.push(text("target", target));
        Self(Span {
            trace_id: frame.trace.to_vec(),
            span_id: frame.id.to_vec(),
            parent_span_id: frame.parent.map(|id| id.to_vec()).unwrap_or_default(),
            flags: if matches!(kind, Kind::Server) { 769 } else { 257 },
            name: frame.name.to_owned(),
            kind: kind as i32,
            start_time_unix_nano: frame.time.0,
            end_time_unix_nano: frame.time.1.max(frame.time.0),
            attributes,
            status: Some(Status::default()),
            ..Span::default()
        })
    }

    /// Adds attributes.
    pub fn with(mut self, attributes: impl IntoIterator<Item = KeyValue>) -> Self {
        self.0.attributes.extend(attributes);
        self
    }

    /// Sets the status to error.
    pub fn error(mut self, message: &str) -> Self {
        self.0.status = Some(Status { message: message.to_owned(), code: StatusCode::Error as i32 });
        self
    }

    /// Adds an event.
    pub fn event(
        mut self,
        name: impl Into<String>,
        at_ns: u64,
        level: &str,
        (target, at): (&str, Code),
        attributes: impl IntoIterator<Item = KeyValue>,
    ) -> Self {
        let mut all = vec![text("level", level), text("target", target)];
        all.extend(attributes);
        all.extend(code(at));
        self.0.events.push(Event {
            time_unix_nano: at_ns.max(self.0.start_time_unix_nano),
            name: name.into(),
            attributes: all,
            dropped_attributes_count: 0,
        });
        self
    }

    /// Links to a span of the same trace.
    pub fn link(mut self, span: [u8; 8]) -> Self {
        let link = Link { trace_id: self.0.trace_id.clone(), span_id: span.to_vec(), flags: 769, ..Link::default() };
        self.0.links.push(link);
        self
    }

    /// The finished span: `busy` of its duration is said to be busy, at most all of it.
    pub fn finish(mut self, busy: u64) -> Span {
        let duration = self.0.end_time_unix_nano - self.0.start_time_unix_nano;
        let busy = busy.min(duration);
        self.0.attributes.push(integer("busy_ns", busy as i64));
        self.0.attributes.push(integer("idle_ns", (duration - busy) as i64));
        self.0.events.sort_by_key(|event| event.time_unix_nano);
        self.0
    }
}

/// Lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
