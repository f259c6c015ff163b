//! The decoder against prost: what it reads from any request is what the generated structs hold.

use std::borrow::Cow;

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, InstrumentationScope, KeyValue, KeyValueList};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status, span};
use proptest::prelude::*;
use prost::Message;

use super::*;
use crate::lifecycle::batch::SignKind;
use crate::lifecycle::packed;
use crate::lifecycle::record::RecordBody;
use crate::source::otlp::tests::messages;

/// Random OTLP from a seed.
struct Dice(fastrand::Rng);

impl Dice {
    fn text(&mut self) -> String {
        ["", "x", "request.dispatch", "推理服务", "a\nb"][self.0.usize(..5)].to_owned()
    }

    fn many<T>(&mut self, most: usize, mut one: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.0.usize(..=most)).map(|_| one(self)).collect()
    }

    fn value(&mut self, depth: usize) -> AnyValue {
        let value = match self.0.usize(..if depth > 3 { 6 } else { 8 }) {
            0 => None,
            1 | 2 => Some(Any::StringValue(self.text().repeat(self.0.usize(..40)))),
            3 => Some(Any::BoolValue(self.0.bool())),
            4 => Some(Any::IntValue(self.0.i64(..))),
            5 => Some(Any::DoubleValue(self.0.f64())),
            6 => Some(Any::ArrayValue(ArrayValue { values: self.many(3, |dice| dice.value(depth + 1)) })),
            _ => Some(Any::KvlistValue(KeyValueList { values: self.many(3, |dice| dice.attribute(depth + 1)) })),
        };
        AnyValue { value }
    }

    fn attribute(&mut self, depth: usize) -> KeyValue {
        let value = (self.0.u8(..9) > 0).then(|| self.value(depth));
        KeyValue { key: format!("k{}", self.text()), value, ..KeyValue::default() }
    }

    fn attributes(&mut self) -> Vec<KeyValue> {
        self.many(9, |dice| dice.attribute(0))
    }

    fn id(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.0.u8(1..)).collect()
    }

    fn span(&mut self) -> Span {
        Span {
            trace_id: self.id(16),
            span_id: self.id(8),
            trace_state: self.text(),
            parent_span_id: if self.0.bool() { self.id(8) } else { Vec::new() },
            flags: self.0.u32(..),
            name: self.text(),
            kind: self.0.i32(-2..100),
            start_time_unix_nano: self.0.u64(..),
            end_time_unix_nano: self.0.u64(..),
            attributes: self.attributes(),
            dropped_attributes_count: self.0.u32(..3),
            events: self.many(3, |dice| span::Event {
                time_unix_nano: dice.0.u64(..),
                name: dice.text(),
                attributes: dice.attributes(),
                dropped_attributes_count: dice.0.u32(..3),
            }),
            dropped_events_count: self.0.u32(..3),
            links: self.many(2, |dice| span::Link {
                trace_id: dice.id(16),
                span_id: dice.id(8),
                trace_state: dice.text(),
                attributes: dice.attributes(),
                dropped_attributes_count: dice.0.u32(..3),
                flags: dice.0.u32(..),
            }),
            dropped_links_count: self.0.u32(..3),
            status: (self.0.bool()).then(|| Status { message: self.text(), code: self.0.i32(-1..9) }),
        }
    }

    fn request(&mut self) -> ExportTraceServiceRequest {
        let resource_spans = self.many(3, |dice| ResourceSpans {
            resource: Some(Resource {
                attributes: dice.attributes(),
                dropped_attributes_count: dice.0.u32(..3),
                entity_refs: Vec::new(),
            }),
            scope_spans: dice.many(3, |dice| ScopeSpans {
                scope: Some(InstrumentationScope {
                    name: dice.text(),
                    version: dice.text(),
                    attributes: dice.attributes(),
                    dropped_attributes_count: dice.0.u32(..3),
                }),
                spans: dice.many(5, Self::span),
                schema_url: dice.text(),
            }),
            schema_url: dice.text(),
        });
        ExportTraceServiceRequest { resource_spans }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn attributes(batch: &Batch<'_>, range: &Slice) -> Vec<KeyValue> {
    batch.attrs(range).iter().map(|packed| KeyValue::decode(*packed).unwrap()).collect()
}

/// Everything about each span of a request, with its resource and scope.
fn flat(request: &ExportTraceServiceRequest) -> Vec<(Resource, String, InstrumentationScope, String, Span)> {
    let mut all = Vec::new();
    for resource in &request.resource_spans {
        for scope in &resource.scope_spans {
            for span in &scope.spans {
                all.push((
                    resource.resource.clone().unwrap_or_default(),
                    resource.schema_url.clone(),
                    scope.scope.clone().unwrap_or_default(),
                    scope.schema_url.clone(),
                    Span { status: Some(span.status.clone().unwrap_or_default()), ..span.clone() },
                ));
            }
        }
    }
    all
}

/// The same, of a batch.
fn flat_batch(batch: &Batch<'_>) -> Vec<(Resource, String, InstrumentationScope, String, Span)> {
    let one = |span: &SpanIn<'_>| {
        let resource = &batch.resources[span.resource as usize];
        let scope = &batch.scopes[span.scope as usize];
        let event = |event: &EventIn<'_>| span::Event {
            time_unix_nano: event.time_ns,
            name: text(event.name),
            attributes: attributes(batch, &event.attrs),
            dropped_attributes_count: event.dropped,
        };
        let link = |link: &LinkIn<'_>| span::Link {
            trace_id: link.trace.to_vec(),
            span_id: link.span.to_vec(),
            trace_state: text(link.trace_state),
            attributes: attributes(batch, &link.attrs),
            dropped_attributes_count: link.dropped,
            flags: link.flags,
        };
        (
            Resource {
                attributes: attributes(batch, &resource.attrs),
                dropped_attributes_count: resource.dropped,
                entity_refs: Vec::new(),
            },
            text(resource.schema_url),
            InstrumentationScope {
                name: text(scope.name),
                version: text(scope.version),
                attributes: attributes(batch, &scope.attrs),
                dropped_attributes_count: scope.dropped,
            },
            text(scope.schema_url),
            Span {
                trace_id: span.trace.0.to_vec(),
                span_id: span.id.0.to_vec(),
                trace_state: text(span.trace_state),
                parent_span_id: span.parent.map_or_else(Vec::new, |parent| parent.0.to_vec()),
                flags: span.flags,
                name: text(span.name),
                kind: span.kind,
                start_time_unix_nano: span.start_ns,
                end_time_unix_nano: span.end_ns,
                attributes: attributes(batch, &span.attrs),
                dropped_attributes_count: span.dropped[0],
                events: batch.events(&span.events).iter().map(event).collect(),
                dropped_events_count: span.dropped[1],
                links: batch.links(&span.links).iter().map(link).collect(),
                dropped_links_count: span.dropped[2],
                status: Some(Status { message: text(span.status_message), code: span.status_code }),
            },
        )
    };
    batch.spans.iter().map(one).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_request_reads_as_prost_reads_it(seed: u64) {
        let request = Dice(fastrand::Rng::with_seed(seed)).request();
        let bytes = request.encode_to_vec();
        let mut batch = Batch::default();
        traces(&bytes, &mut batch).unwrap();
        prop_assert_eq!(&batch.tally, &Tally::default());
        prop_assert_eq!(flat_batch(&batch), flat(&request));
        for packed in &batch.attrs {
            prop_assert!(matches!(packed::clean(packed), Cow::Borrowed(_)));
        }
        if !batch.spans.is_empty() {
            prop_assert_eq!(signal_of(&bytes), Some(Signal::Traces));
        }
    }

    #[test]
    fn broken_bytes_never_do_harm(seed: u64, flips in proptest::collection::vec((any::<u16>(), any::<u8>()), 1..8), cut: u16) {
        let mut bytes = Dice(fastrand::Rng::with_seed(seed)).request().encode_to_vec();
        for (at, byte) in flips {
            if let Some(place) = (!bytes.is_empty()).then(|| at as usize % bytes.len()) {
                bytes[place] = byte;
            }
        }
        bytes.truncate(bytes.len().min(usize::from(cut)));
        for signal in Signal::ALL {
            let mut batch = Batch::default();
            if decode(signal, &bytes, &mut batch).is_ok() {
                for span in &batch.spans {
                    let events = batch.events(&span.events).iter().map(|event| &event.attrs);
                    let links = batch.links(&span.links).iter().map(|link| &link.attrs);
                    let held = batch.attrs(&span.attrs).len() + events.chain(links).map(|attrs| batch.attrs(attrs).len()).sum::<usize>();
                    prop_assert!(held <= batch.attrs.len());
                }
            }
        }
        signal_of(&bytes);
    }
}

#[test]
fn captures_read_as_prost_reads_them() {
    for message in messages("dev-sim.traces.pb.gz") {
        let request = ExportTraceServiceRequest::decode(&message[..]).unwrap();
        let mut batch = Batch::default();
        traces(&message, &mut batch).unwrap();
        assert_eq!(flat_batch(&batch), flat(&request));
        assert_eq!(signal_of(&message), Some(Signal::Traces));
    }
}

/// A span without a valid id, an empty one or an empty part before the others costs only itself: the rest says what it is.
#[test]
fn a_broken_first_item_does_not_decide_the_signal() {
    type Change = fn(&mut ExportTraceServiceRequest);
    let changes: [Change; 6] = [
        |request| request.resource_spans[0].scope_spans[0].spans[0].trace_id.clear(),
        |request| request.resource_spans[0].scope_spans[0].spans[0].span_id.truncate(3),
        |request| request.resource_spans[0].scope_spans[0].spans.insert(0, Default::default()),
        |request| request.resource_spans[0].scope_spans.insert(0, Default::default()),
        |request| request.resource_spans.insert(0, Default::default()),
        |request| request.resource_spans[0].scope_spans[0].spans.truncate(1),
    ];
    for message in messages("dev-sim.traces.pb.gz") {
        for (at, change) in changes.iter().enumerate() {
            let mut request = ExportTraceServiceRequest::decode(&message[..]).unwrap();
            change(&mut request);
            assert_eq!(signal_of(&request.encode_to_vec()), Some(Signal::Traces), "{at}");
        }
    }
    assert_eq!(signal_of(&ExportTraceServiceRequest::default().encode_to_vec()), None);
}

#[test]
fn logs_of_a_capture_are_records_signs_and_others() {
    let (mut ends, mut selections, mut received, mut completed, mut other, mut all) = (0, 0, 0, 0, 0, 0);
    for message in messages("dev-sim.logs.pb.gz") {
        let request = ExportLogsServiceRequest::decode(&message[..]).unwrap();
        let scopes = request.resource_logs.iter().flat_map(|resource| &resource.scope_logs);
        all += scopes.map(|scope| scope.log_records.len() as u64).sum::<u64>();
        let mut batch = Batch::default();
        logs(&message, &mut batch).unwrap();
        assert_eq!((batch.tally.bad_records, &batch.tally.refusal), (0, &None));
        ends += batch.records.iter().filter(|record| matches!(record.body, RecordBody::End(_))).count();
        selections += batch.records.iter().filter(|record| matches!(record.body, RecordBody::Selection(_))).count();
        received += batch.signs.iter().filter(|sign| sign.kind == SignKind::Received).count();
        completed += batch.signs.iter().filter(|sign| sign.kind != SignKind::Received).count();
        other += batch.tally.other_logs;
        assert!(batch.signs.iter().all(|sign| sign.trace.is_some() && sign.time_ns > 0 && !sign.model.is_empty()));
        assert_eq!(signal_of(&message), Some(Signal::Logs));
    }
    // Captures' README: 76 request_end, 76 router_selection; 78 requests logged by the frontend, both times.
    assert_eq!((ends, selections, received, completed), (76, 76, 78, 78));
    assert_eq!(all, other + (ends + selections + received + completed) as u64);
}

/// B11: wrong ids cost their spans only; an empty, zero or absent parent is none.
#[test]
fn a_bad_id_costs_its_span() {
    let good = Dice(fastrand::Rng::with_seed(7)).span();
    let spans = vec![
        good.clone(),
        Span { trace_id: vec![0; 16], ..good.clone() },
        Span { trace_id: vec![1; 2], ..good.clone() },
        Span { trace_id: vec![1; 17], ..good.clone() },
        Span { span_id: Vec::new(), ..good.clone() },
        Span { parent_span_id: vec![1; 7], ..good.clone() },
        Span { parent_span_id: vec![0; 8], span_id: vec![2; 8], ..good.clone() },
    ];
    let scope_spans = vec![ScopeSpans { spans, ..ScopeSpans::default() }];
    let request =
        ExportTraceServiceRequest { resource_spans: vec![ResourceSpans { scope_spans, ..ResourceSpans::default() }] };
    let bytes = request.encode_to_vec();
    let mut batch = Batch::default();
    traces(&bytes, &mut batch).unwrap();
    assert_eq!((batch.spans.len(), batch.tally.refused_spans), (2, 5));
    // Those that name a trace are missed there.
    assert_eq!(batch.tally.torn, vec![batch.spans[0].trace; 2]);
    assert_eq!(batch.spans[1].parent, None);
    assert_eq!(batch.spans[0].attrs.len() * 2 + attrs_below(&batch), batch.attrs.len());
    let reason = batch.tally.refusal.unwrap();
    assert!(
        reason.contains("traceId") && reason.contains("32 hex digits") && reason.contains("only zeros"),
        "{reason}"
    );
}

fn attrs_below(batch: &Batch<'_>) -> usize {
    let events = batch.events.iter().map(|event| event.attrs.len());
    events.chain(batch.links.iter().map(|link| link.attrs.len())).sum()
}

#[test]
fn malformed_bytes_are_told_where() {
    let mut batch = Batch::default();
    let error = traces(&[0x0a, 0x05, 0x12], &mut batch).unwrap_err();
    assert!(error.contains("ExportTraceServiceRequest, field 1") && error.contains("length"), "{error}");
    let error = traces(&[0x0a, 0x02, 0x12, 0x7f], &mut batch).unwrap_err();
    assert!(error.contains("ResourceSpans, field 2"), "{error}");
    assert!(traces(&[0x0b], &mut batch).unwrap_err().contains("the end of a group"));
    assert!(traces(&[0x0e], &mut batch).unwrap_err().contains("wire type"));
    assert!(logs(&[0xff; 11], &mut batch).is_err() && metrics(&[0x0a], &mut batch).is_err());
    assert_eq!(traces(&[], &mut batch), Ok(()));
}

/// A message may come in pieces, in any order of its fields; the pieces belong together.
#[test]
fn pieces_of_a_message_are_joined() {
    let attribute = |key: &str| KeyValue { key: key.into(), ..KeyValue::default() };
    let resource = |key| Resource { attributes: vec![attribute(key)], ..Resource::default() }.encode_to_vec();
    let span = Dice(fastrand::Rng::with_seed(3)).span();
    let scope_spans = ScopeSpans { spans: vec![span], ..ScopeSpans::default() }.encode_to_vec();
    let (mut inner, mut bytes) = (Vec::new(), Vec::new());
    packed::put_bytes(&mut inner, 1, &resource("a"));
    packed::put_bytes(&mut inner, 2, &scope_spans);
    packed::put_bytes(&mut inner, 1, &resource("b"));
    packed::put_bytes(&mut bytes, 1, &inner);
    let mut batch = Batch::default();
    traces(&bytes, &mut batch).unwrap();
    let keys: Vec<_> =
        batch.attrs(&batch.resources[0].attrs).iter().map(|packed| packed::read(packed).0.to_owned()).collect();
    assert_eq!(keys, ["a", "b"]);
}

fn log(scope: &str, body: &str, attributes: &[(&str, Any)]) -> Vec<u8> {
    let any = |value: &Any| Some(AnyValue { value: Some(value.clone()) });
    let record = LogRecord {
        observed_time_unix_nano: 5_000_000,
        body: any(&Any::StringValue(body.into())),
        attributes: attributes
            .iter()
            .map(|(key, value)| KeyValue { key: (*key).into(), value: any(value), ..KeyValue::default() })
            .collect(),
        ..LogRecord::default()
    };
    let scope = Some(InstrumentationScope { name: scope.into(), ..InstrumentationScope::default() });
    let scope_logs = vec![ScopeLogs { scope, log_records: vec![record], ..ScopeLogs::default() }];
    ExportLogsServiceRequest { resource_logs: vec![ResourceLogs { scope_logs, ..ResourceLogs::default() }] }
        .encode_to_vec()
}

/// B45c: a payload that the producer dropped is a record all the same, labelled with the reason.
#[test]
fn a_dropped_payload_leaves_a_marker() {
    let reason = "otel_payload_too_large:max_bytes=392:actual_bytes=393";
    let text = |text: &str| Any::StringValue(text.into());
    let bytes = log(
        "",
        "request_payload",
        &[
            ("schema", text("dynamo.request.trace.v1")),
            ("event_type", text("request_payload")),
            ("rid", text("r-c")),
            ("payload_complete", Any::BoolValue(false)),
            ("payload_drop_reason", text(reason)),
        ],
    );
    let mut batch = Batch::default();
    logs(&bytes, &mut batch).unwrap();
    let [record] = &batch.records[..] else { panic!("{batch:?}") };
    let RecordBody::Payload(payload) = &record.body else { panic!("{record:?}") };
    assert_eq!((&*record.request_id, &*record.event_type, record.time_ms), ("r-c", "request_payload", 5));
    assert_eq!((payload.complete, &*payload.drop_reason), (false, reason));
    assert!(record.raw.contains("\"payload_complete\":false") && payload.is_marker);
}

#[test]
fn a_record_that_cannot_be_read_is_counted() {
    let bytes = log("dynamo.request_trace", "request_end", &[("payload", Any::StringValue("{\"event_".into()))]);
    let mut batch = Batch::default();
    logs(&bytes, &mut batch).unwrap();
    assert_eq!((batch.records.len(), batch.tally.bad_records, batch.tally.other_logs), (0, 1, 0));
    assert!(batch.tally.refusal.unwrap().contains("trace record"));
}

/// Requests of all signals nest alike: what was sent to the wrong address is told, not taken for logs of no interest.
#[test]
fn spans_and_metrics_are_no_logs() {
    let spans = messages("dev-sim.traces.pb.gz").remove(0);
    let mut told = Batch::default();
    traces(&spans, &mut told).unwrap();
    let mut batch = Batch::default();
    logs(&spans, &mut batch).unwrap();
    assert_eq!((batch.tally.bad_records, batch.tally.other_logs), (told.spans.len() as u64, 0));
    assert!(batch.tally.refusal.unwrap().contains("traces go to /v1/traces"));
}

#[test]
fn the_workers_logs_of_the_same_words_are_no_signs() {
    let id = ("request_id", Any::StringValue("r".into()));
    let kind = ("request_type", Any::StringValue("stream".into()));
    for (attributes, signs) in [(&[id.clone()][..], 0), (&[id, kind], 1)] {
        let bytes = log("push_handler", "request received", attributes);
        let mut batch = Batch::default();
        logs(&bytes, &mut batch).unwrap();
        assert_eq!((batch.signs.len(), batch.tally.other_logs), (signs, 1 - signs as u64));
        if let Some(sign) = batch.signs.first() {
            assert_eq!((sign.streaming, sign.trace, sign.time_ns), (Some(true), None, 5_000_000));
        }
    }
}
