//! OTLP/JSON as tables: which keys each message has, and the protobuf field behind each, as of OTLP 1.10. Owns: names and
//! numbers of spans, logs and what all signals share, nothing else. Metrics are in `metrics`.

/// What a field holds in JSON, and how it is written.
pub(super) enum Kind {
    /// Text.
    Text,
    /// Bytes, in base64.
    Bytes,
    /// A truth value.
    Bool,
    /// A span's own or parent id in hex digits, of this many bytes; a wrong one costs the span.
    Id(usize),
    /// An id that only points somewhere; a wrong one is left out.
    Pointer(usize),
    /// An unsigned 64-bit number in eight bytes.
    Fixed64,
    /// An unsigned 32-bit number in four bytes.
    Fixed32,
    /// An unsigned 32-bit varint.
    Uint32,
    /// A signed 64-bit varint.
    Int64,
    /// A floating-point number.
    Double,
    /// A number with names; the name's place in the list is its number.
    Enum(&'static [&'static str]),
    /// A message.
    One(&'static Message),
    /// A list of messages.
    Many(&'static Message),
    /// A signed 64-bit number in eight bytes.
    SFixed64,
    /// A signed 32-bit number, zigzag.
    Sint32,
    /// An unsigned 64-bit varint.
    Uint64,
    /// A list of such values: texts each with a tag, numbers packed.
    List(&'static Kind),
}

impl Kind {
    /// The wire type a value has in protobuf when it stands alone.
    pub fn wire(&self) -> u32 {
        match self {
            Self::Bool | Self::Uint32 | Self::Int64 | Self::Enum(_) | Self::Sint32 | Self::Uint64 => 0,
            Self::Fixed64 | Self::SFixed64 | Self::Double => 1,
            Self::Fixed32 => 5,
            Self::Text | Self::Bytes | Self::Id(_) | Self::Pointer(_) => 2,
            Self::One(_) | Self::Many(_) | Self::List(_) => 2,
        }
    }
}

impl Kind {
    /// What is expected of such a field, in words.
    pub fn expected(&self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Bytes => "bytes in base64",
            Self::Bool => "true or false",
            Self::Id(_) | Self::Pointer(_) => "hex digits",
            Self::Fixed64 | Self::Uint64 => "an unsigned 64-bit number or its decimal digits as text",
            Self::Sint32 => "a signed 32-bit number",
            Self::Int64 | Self::SFixed64 => "a 64-bit number or its decimal digits as text",
            Self::Fixed32 | Self::Uint32 => "an unsigned 32-bit number",
            Self::Double => "a number",
            Self::Enum(_) => "a number or one of its names",
            Self::One(_) => "an object",
            Self::Many(_) | Self::List(_) => "a list",
        }
    }
}

/// A field of a message.
pub(super) struct Field {
    pub camel: &'static str,
    pub snake: &'static str,
    pub number: u32,
    pub kind: Kind,
}

/// How a message is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// With the shortest length before it.
    Plain,
    /// With room for any length before it: large, and never compared byte by byte.
    Wide,
    /// Plain, and left out as a whole when something in it is wrong.
    Span,
    /// The same.
    Log,
    /// The same: a metric's data point.
    Point,
    /// Plain, the key always before the value.
    KeyValue,
    /// Plain, and only one of its fields is there: a value.
    Choice,
}

impl Form {
    /// Whether what is wrong within such a message costs the message, and nothing beside it.
    pub fn stands_alone(self) -> bool {
        matches!(self, Self::Span | Self::Log | Self::Point | Self::KeyValue)
    }
}

/// A message.
pub(super) struct Message {
    pub form: Form,
    pub fields: &'static [Field],
}

impl Field {
    /// Whether this is its key, in either spelling.
    pub fn is(&self, key: &str) -> bool {
        self.camel == key || self.snake == key
    }

    /// Whether its lists are joined where one message has several: those that spans and log records come in, as protobuf
    /// joins them, so that none is lost without a word.
    pub fn joins(&self, of: &Message) -> bool {
        of.form == Form::Wide && matches!(self.kind, Kind::Many(_))
    }

    /// Whether its values may have this wire type; numbers of a list may stand packed or each by itself.
    pub fn takes(&self, wire: u32) -> bool {
        wire == self.kind.wire() || matches!(self.kind, Kind::List(element) if wire == element.wire())
    }
}

pub(super) const fn field(camel: &'static str, snake: &'static str, number: u32, kind: Kind) -> Field {
    Field { camel, snake, number, kind }
}

pub(super) const fn message(form: Form, fields: &'static [Field]) -> Message {
    Message { form, fields }
}

pub(super) static TRACES: Message =
    message(Form::Wide, &[field("resourceSpans", "resource_spans", 1, Kind::Many(&RESOURCE_SPANS))]);

pub(super) static RESOURCE_SPANS: Message = message(
    Form::Wide,
    &[
        field("resource", "resource", 1, Kind::One(&RESOURCE)),
        field("scopeSpans", "scope_spans", 2, Kind::Many(&SCOPE_SPANS)),
        field("schemaUrl", "schema_url", 3, Kind::Text),
    ],
);

static SCOPE_SPANS: Message = message(
    Form::Wide,
    &[
        field("scope", "scope", 1, Kind::One(&SCOPE)),
        field("spans", "spans", 2, Kind::Many(&SPAN)),
        field("schemaUrl", "schema_url", 3, Kind::Text),
    ],
);

static SPAN: Message = message(
    Form::Span,
    &[
        field("traceId", "trace_id", 1, Kind::Id(16)),
        field("spanId", "span_id", 2, Kind::Id(8)),
        field("parentSpanId", "parent_span_id", 4, Kind::Id(8)),
        field("name", "name", 5, Kind::Text),
        field("kind", "kind", 6, Kind::Enum(&SPAN_KINDS)),
        field("startTimeUnixNano", "start_time_unix_nano", 7, Kind::Fixed64),
        field("endTimeUnixNano", "end_time_unix_nano", 8, Kind::Fixed64),
        field("attributes", "attributes", 9, Kind::Many(&KEY_VALUE)),
        field("status", "status", 15, Kind::One(&STATUS)),
        field("flags", "flags", 16, Kind::Fixed32),
        field("events", "events", 11, Kind::Many(&EVENT)),
        field("links", "links", 13, Kind::Many(&LINK)),
        field("traceState", "trace_state", 3, Kind::Text),
        field("droppedAttributesCount", "dropped_attributes_count", 10, Kind::Uint32),
        field("droppedEventsCount", "dropped_events_count", 12, Kind::Uint32),
        field("droppedLinksCount", "dropped_links_count", 14, Kind::Uint32),
    ],
);

static SPAN_KINDS: [&str; 6] = [
    "SPAN_KIND_UNSPECIFIED",
    "SPAN_KIND_INTERNAL",
    "SPAN_KIND_SERVER",
    "SPAN_KIND_CLIENT",
    "SPAN_KIND_PRODUCER",
    "SPAN_KIND_CONSUMER",
];

static EVENT: Message = message(
    Form::Plain,
    &[
        field("timeUnixNano", "time_unix_nano", 1, Kind::Fixed64),
        field("name", "name", 2, Kind::Text),
        field("attributes", "attributes", 3, Kind::Many(&KEY_VALUE)),
        field("droppedAttributesCount", "dropped_attributes_count", 4, Kind::Uint32),
    ],
);

static LINK: Message = message(
    Form::Plain,
    &[
        field("traceId", "trace_id", 1, Kind::Pointer(16)),
        field("spanId", "span_id", 2, Kind::Pointer(8)),
        field("traceState", "trace_state", 3, Kind::Text),
        field("attributes", "attributes", 4, Kind::Many(&KEY_VALUE)),
        field("droppedAttributesCount", "dropped_attributes_count", 5, Kind::Uint32),
        field("flags", "flags", 6, Kind::Fixed32),
    ],
);

static STATUS: Message = message(
    Form::Plain,
    &[
        field("code", "code", 3, Kind::Enum(&["STATUS_CODE_UNSET", "STATUS_CODE_OK", "STATUS_CODE_ERROR"])),
        field("message", "message", 2, Kind::Text),
    ],
);

pub(super) static RESOURCE: Message = message(
    Form::Plain,
    &[
        field("attributes", "attributes", 1, Kind::Many(&KEY_VALUE)),
        field("droppedAttributesCount", "dropped_attributes_count", 2, Kind::Uint32),
        field("entityRefs", "entity_refs", 3, Kind::Many(&ENTITY_REF)),
    ],
);

static ENTITY_REF: Message = message(
    Form::Plain,
    &[
        field("schemaUrl", "schema_url", 1, Kind::Text),
        field("type", "type", 2, Kind::Text),
        field("idKeys", "id_keys", 3, Kind::List(&Kind::Text)),
        field("descriptionKeys", "description_keys", 4, Kind::List(&Kind::Text)),
    ],
);

pub(super) static SCOPE: Message = message(
    Form::Plain,
    &[
        field("name", "name", 1, Kind::Text),
        field("version", "version", 2, Kind::Text),
        field("attributes", "attributes", 3, Kind::Many(&KEY_VALUE)),
        field("droppedAttributesCount", "dropped_attributes_count", 4, Kind::Uint32),
    ],
);

pub(super) static KEY_VALUE: Message =
    message(Form::KeyValue, &[field("key", "key", 1, Kind::Text), field("value", "value", 2, Kind::One(&ANY_VALUE))]);

static ANY_VALUE: Message = message(
    Form::Choice,
    &[
        field("stringValue", "string_value", 1, Kind::Text),
        field("intValue", "int_value", 3, Kind::Int64),
        field("boolValue", "bool_value", 2, Kind::Bool),
        field("doubleValue", "double_value", 4, Kind::Double),
        field("arrayValue", "array_value", 5, Kind::One(&ARRAY)),
        field("kvlistValue", "kvlist_value", 6, Kind::One(&KEY_VALUE_LIST)),
        field("bytesValue", "bytes_value", 7, Kind::Bytes),
    ],
);

static ARRAY: Message = message(Form::Plain, &[field("values", "values", 1, Kind::Many(&ANY_VALUE))]);

static KEY_VALUE_LIST: Message = message(Form::Plain, &[field("values", "values", 1, Kind::Many(&KEY_VALUE))]);

pub(super) static LOGS: Message =
    message(Form::Wide, &[field("resourceLogs", "resource_logs", 1, Kind::Many(&RESOURCE_LOGS))]);

pub(super) static RESOURCE_LOGS: Message = message(
    Form::Wide,
    &[
        field("resource", "resource", 1, Kind::One(&RESOURCE)),
        field("scopeLogs", "scope_logs", 2, Kind::Many(&SCOPE_LOGS)),
        field("schemaUrl", "schema_url", 3, Kind::Text),
    ],
);

static SCOPE_LOGS: Message = message(
    Form::Wide,
    &[
        field("scope", "scope", 1, Kind::One(&SCOPE)),
        field("logRecords", "log_records", 2, Kind::Many(&LOG_RECORD)),
        field("schemaUrl", "schema_url", 3, Kind::Text),
    ],
);

static LOG_RECORD: Message = message(
    Form::Log,
    &[
        field("timeUnixNano", "time_unix_nano", 1, Kind::Fixed64),
        field("observedTimeUnixNano", "observed_time_unix_nano", 11, Kind::Fixed64),
        field("severityNumber", "severity_number", 2, Kind::Enum(&SEVERITIES)),
        field("severityText", "severity_text", 3, Kind::Text),
        field("body", "body", 5, Kind::One(&ANY_VALUE)),
        field("attributes", "attributes", 6, Kind::Many(&KEY_VALUE)),
        field("droppedAttributesCount", "dropped_attributes_count", 7, Kind::Uint32),
        field("flags", "flags", 8, Kind::Fixed32),
        field("traceId", "trace_id", 9, Kind::Pointer(16)),
        field("spanId", "span_id", 10, Kind::Pointer(8)),
        field("eventName", "event_name", 12, Kind::Text),
    ],
);

static SEVERITIES: [&str; 25] = [
    "SEVERITY_NUMBER_UNSPECIFIED",
    "SEVERITY_NUMBER_TRACE",
    "SEVERITY_NUMBER_TRACE2",
    "SEVERITY_NUMBER_TRACE3",
    "SEVERITY_NUMBER_TRACE4",
    "SEVERITY_NUMBER_DEBUG",
    "SEVERITY_NUMBER_DEBUG2",
    "SEVERITY_NUMBER_DEBUG3",
    "SEVERITY_NUMBER_DEBUG4",
    "SEVERITY_NUMBER_INFO",
    "SEVERITY_NUMBER_INFO2",
    "SEVERITY_NUMBER_INFO3",
    "SEVERITY_NUMBER_INFO4",
    "SEVERITY_NUMBER_WARN",
    "SEVERITY_NUMBER_WARN2",
    "SEVERITY_NUMBER_WARN3",
    "SEVERITY_NUMBER_WARN4",
    "SEVERITY_NUMBER_ERROR",
    "SEVERITY_NUMBER_ERROR2",
    "SEVERITY_NUMBER_ERROR3",
    "SEVERITY_NUMBER_ERROR4",
    "SEVERITY_NUMBER_FATAL",
    "SEVERITY_NUMBER_FATAL2",
    "SEVERITY_NUMBER_FATAL3",
    "SEVERITY_NUMBER_FATAL4",
];
