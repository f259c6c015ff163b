//! Requests with every field set that OTLP has for them, for tests.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{
    AnyValue, ArrayValue, EntityRef, InstrumentationScope, KeyValue, KeyValueList,
};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::metrics::v1::exponential_histogram_data_point::Buckets;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::summary_data_point::ValueAtQuantile;
use opentelemetry_proto::tonic::metrics::v1::{
    Exemplar, ExponentialHistogram, ExponentialHistogramDataPoint, Gauge, Histogram, HistogramDataPoint, Metric,
    NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum, Summary, SummaryDataPoint, exemplar, number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::{Event, Link};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};

fn any(value: Value) -> Option<AnyValue> {
    Some(AnyValue { value: Some(value) })
}

fn attributes() -> Vec<KeyValue> {
    let list = ArrayValue { values: vec![AnyValue { value: Some(Value::BytesValue(vec![7, 8])) }] };
    // `key_strindex` is for profiles alone.
    let pair = |key: &str, value| KeyValue { key: key.into(), value: any(value), ..KeyValue::default() };
    vec![
        pair("text", Value::StringValue("ü\n".into())),
        pair("bool", Value::BoolValue(true)),
        pair("int", Value::IntValue(i64::MIN)),
        pair("double", Value::DoubleValue(-0.5)),
        pair("list", Value::ArrayValue(list)),
        pair("map", Value::KvlistValue(KeyValueList { values: vec![pair("k", Value::IntValue(1))] })),
    ]
}

fn resource() -> Option<Resource> {
    let entity = EntityRef {
        schema_url: "u".into(),
        r#type: "service".into(),
        id_keys: vec!["service.name".into(), "b".into()],
        description_keys: vec!["d".into()],
    };
    Some(Resource { attributes: attributes(), dropped_attributes_count: 1, entity_refs: vec![entity] })
}

fn scope() -> Option<InstrumentationScope> {
    let (name, version) = ("n".into(), "v".into());
    Some(InstrumentationScope { name, version, attributes: attributes(), dropped_attributes_count: 2 })
}

pub fn traces() -> ExportTraceServiceRequest {
    let span = Span {
        trace_id: vec![1; 16],
        span_id: vec![2; 8],
        trace_state: "a=b".into(),
        parent_span_id: vec![3; 8],
        flags: 0x101,
        name: "name".into(),
        kind: 2,
        start_time_unix_nano: 3,
        end_time_unix_nano: u64::MAX,
        attributes: attributes(),
        dropped_attributes_count: 4,
        events: vec![Event {
            time_unix_nano: 5,
            name: "e".into(),
            attributes: attributes(),
            dropped_attributes_count: 6,
        }],
        dropped_events_count: 7,
        links: vec![Link {
            trace_id: vec![8; 16],
            span_id: vec![9; 8],
            trace_state: "c=d".into(),
            attributes: attributes(),
            dropped_attributes_count: 10,
            flags: 11,
        }],
        dropped_links_count: 12,
        status: Some(Status { message: "m".into(), code: 2 }),
    };
    let scope_spans = vec![ScopeSpans { scope: scope(), spans: vec![span], schema_url: "s".into() }];
    let resource_spans = vec![ResourceSpans { resource: resource(), scope_spans, schema_url: "r".into() }];
    ExportTraceServiceRequest { resource_spans }
}

pub fn logs() -> ExportLogsServiceRequest {
    let record = LogRecord {
        time_unix_nano: 1,
        observed_time_unix_nano: 2,
        severity_number: 9,
        severity_text: "INFO".into(),
        body: any(Value::StringValue("body".into())),
        attributes: attributes(),
        dropped_attributes_count: 3,
        flags: 1,
        trace_id: vec![4; 16],
        span_id: vec![5; 8],
        event_name: "event".into(),
    };
    let scope_logs = vec![ScopeLogs { scope: scope(), log_records: vec![record], schema_url: "s".into() }];
    let resource_logs = vec![ResourceLogs { resource: resource(), scope_logs, schema_url: "r".into() }];
    ExportLogsServiceRequest { resource_logs }
}

fn exemplars() -> Vec<Exemplar> {
    let of = |value| Exemplar {
        filtered_attributes: attributes(),
        time_unix_nano: 1,
        span_id: vec![6; 8],
        trace_id: vec![7; 16],
        value: Some(value),
    };
    vec![of(exemplar::Value::AsInt(-2)), of(exemplar::Value::AsDouble(2.5))]
}

fn numbers() -> Vec<NumberDataPoint> {
    let of = |value| NumberDataPoint {
        attributes: attributes(),
        start_time_unix_nano: 1,
        time_unix_nano: 2,
        exemplars: exemplars(),
        flags: 1,
        value: Some(value),
    };
    vec![of(number_data_point::Value::AsInt(i64::MIN)), of(number_data_point::Value::AsDouble(f64::INFINITY))]
}

fn histogram() -> HistogramDataPoint {
    HistogramDataPoint {
        attributes: attributes(),
        start_time_unix_nano: 1,
        time_unix_nano: 2,
        count: 3,
        sum: Some(4.5),
        bucket_counts: vec![1, u64::MAX],
        explicit_bounds: vec![-1.5, 1e300],
        exemplars: exemplars(),
        flags: 1,
        min: Some(-3.0),
        max: Some(9.0),
    }
}

fn exponential() -> ExponentialHistogramDataPoint {
    ExponentialHistogramDataPoint {
        attributes: attributes(),
        start_time_unix_nano: 1,
        time_unix_nano: 2,
        count: 3,
        sum: Some(4.5),
        scale: i32::MIN,
        zero_count: 5,
        positive: Some(Buckets { offset: -7, bucket_counts: vec![1, u64::MAX] }),
        negative: Some(Buckets { offset: i32::MAX, bucket_counts: vec![300] }),
        flags: 1,
        exemplars: exemplars(),
        min: Some(-3.0),
        max: Some(9.0),
        zero_threshold: 1e-9,
    }
}

pub fn metrics() -> ExportMetricsServiceRequest {
    let summary = SummaryDataPoint {
        attributes: attributes(),
        start_time_unix_nano: 1,
        time_unix_nano: 2,
        count: 3,
        sum: 4.5,
        quantile_values: vec![ValueAtQuantile { quantile: 0.99, value: 1.5 }],
        flags: 1,
    };
    let (aggregation_temporality, is_monotonic) = (2, true);
    let all = [
        Data::Gauge(Gauge { data_points: numbers() }),
        Data::Sum(Sum { data_points: numbers(), aggregation_temporality, is_monotonic }),
        Data::Histogram(Histogram { data_points: vec![histogram()], aggregation_temporality }),
        Data::ExponentialHistogram(ExponentialHistogram { data_points: vec![exponential()], aggregation_temporality }),
        Data::Summary(Summary { data_points: vec![summary] }),
    ];
    let metric = |data| Metric {
        name: "n".into(),
        description: "d".into(),
        unit: "ms".into(),
        metadata: attributes(),
        data: Some(data),
    };
    let metrics = all.map(metric).into();
    let scope_metrics = vec![ScopeMetrics { scope: scope(), metrics, schema_url: "s".into() }];
    let resource_metrics = vec![ResourceMetrics { resource: resource(), scope_metrics, schema_url: "r".into() }];
    ExportMetricsServiceRequest { resource_metrics }
}
