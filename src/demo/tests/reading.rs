//! Reading deliveries back, independently of the code that wrote them.

use std::collections::HashMap;

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use prost::Message;

use crate::demo::{Cluster, Delivery, Settings, Signal};

/// The virtual start of every test.
pub const START: u64 = 1_796_000_000_000_000_000;

/// A span as it was delivered.
pub struct Read {
    pub at_ns: u64,
    pub process: String,
    pub name: String,
    pub id: Vec<u8>,
    pub parent: Vec<u8>,
    pub start: u64,
    pub end: u64,
    pub attrs: Vec<(String, Value)>,
}

impl Read {
    /// The last value of an attribute as text, whatever its kind.
    pub fn text(&self, key: &str) -> Option<String> {
        let value = &self.attrs.iter().rev().find(|(name, _)| name == key)?.1;
        Some(match value {
            Value::StringValue(text) => text.clone(),
            Value::BoolValue(flag) => flag.to_string(),
            Value::IntValue(number) => number.to_string(),
            Value::DoubleValue(number) => number.to_string(),
            other => panic!("no such kind is written: {other:?}"),
        })
    }

    /// An attribute that must be there.
    pub fn must(&self, key: &str) -> String {
        self.text(key).unwrap_or_else(|| panic!("{} carries no {key}", self.name))
    }

    /// A number that must be there, and is written as text.
    pub fn number(&self, key: &str) -> u64 {
        self.must(key).parse().unwrap()
    }

    /// A score that must be there.
    pub fn real(&self, key: &str) -> f64 {
        match self.attrs.iter().find(|(name, _)| name == key).unwrap().1 {
            Value::DoubleValue(number) => number,
            ref other => panic!("{key} is a double, not {other:?}"),
        }
    }
}

/// Everything that was delivered.
#[derive(Default)]
pub struct Reading {
    pub spans: Vec<Read>,
    /// Indexes of spans by trace, in order of arrival.
    pub traces: HashMap<Vec<u8>, Vec<usize>>,
    /// Scope, body and attributes of each log.
    pub logs: Vec<(String, String, HashMap<String, String>)>,
}

impl Reading {
    pub fn of(deliveries: &[Delivery]) -> Self {
        let mut reading = Self::default();
        for delivery in deliveries {
            match delivery.signal {
                Signal::Traces => reading.traces(delivery),
                Signal::Logs => reading.logs(delivery),
            }
        }
        reading
    }

    /// A cluster's first seconds and what followed from them, read back.
    pub fn run(settings: &Settings, seconds: u64) -> Self {
        let mut cluster = Cluster::new(settings, START);
        let mut deliveries = cluster.advance(START + seconds * 1_000_000_000);
        deliveries.extend(cluster.drain());
        Self::of(&deliveries)
    }

    /// The spans of each trace.
    pub fn requests(&self) -> impl Iterator<Item = Vec<&Read>> {
        self.traces.values().map(|trace| trace.iter().map(|at| &self.spans[*at]).collect())
    }

    fn traces(&mut self, delivery: &Delivery) {
        let request = ExportTraceServiceRequest::decode(delivery.body.clone()).unwrap();
        for resource in request.resource_spans {
            let service = resource.resource.unwrap().attributes.into_iter().map(pair).next().unwrap().1;
            let Value::StringValue(service) = service else { panic!("service.name is a text") };
            for scope in resource.scope_spans {
                assert_eq!(scope.scope.unwrap().name, service);
                for span in scope.spans {
                    self.traces.entry(span.trace_id.clone()).or_default().push(self.spans.len());
                    self.spans.push(Read {
                        at_ns: delivery.at_ns,
                        process: delivery.process.clone(),
                        name: span.name,
                        id: span.span_id,
                        parent: span.parent_span_id,
                        start: span.start_time_unix_nano,
                        end: span.end_time_unix_nano,
                        attrs: span.attributes.into_iter().map(pair).collect(),
                    });
                }
            }
        }
    }

    fn logs(&mut self, delivery: &Delivery) {
        let request = ExportLogsServiceRequest::decode(delivery.body.clone()).unwrap();
        for scope in request.resource_logs.into_iter().flat_map(|resource| resource.scope_logs) {
            let name = scope.scope.unwrap().name;
            for log in scope.log_records {
                let attrs = log.attributes.into_iter().map(pair).filter_map(|(key, value)| match value {
                    Value::StringValue(text) => Some((key, text)),
                    _ => None,
                });
                let Some(AnyValue { value: Some(Value::StringValue(body)) }) = log.body else { panic!("a text body") };
                self.logs.push((name.clone(), body, attrs.collect()));
            }
        }
    }
}

fn pair(attribute: KeyValue) -> (String, Value) {
    (attribute.key, attribute.value.unwrap().value.unwrap())
}

/// The spans of a request that have this name.
pub fn named<'a>(request: &[&'a Read], name: &str) -> Vec<&'a Read> {
    request.iter().copied().filter(|span| span.name == name).collect()
}
