//! Metrics in OTLP/JSON as tables, like `fields`. reqtop counts their data points; all of them is here so that they are
//! recorded and passed on whole.

use super::fields::{Form, KEY_VALUE, Kind, Message, RESOURCE, SCOPE, field, message};

pub(super) static METRICS: Message =
    message(Form::Wide, &[field("resourceMetrics", "resource_metrics", 1, Kind::Many(&RESOURCE_METRICS))]);

pub(super) static RESOURCE_METRICS: Message = message(
    Form::Wide,
    &[
        field("resource", "resource", 1, Kind::One(&RESOURCE)),
        field("scopeMetrics", "scope_metrics", 2, Kind::Many(&SCOPE_METRICS)),
        field("schemaUrl", "schema_url", 3, Kind::Text),
    ],
);

static SCOPE_METRICS: Message = message(
    Form::Wide,
    &[
        field("scope", "scope", 1, Kind::One(&SCOPE)),
        field("metrics", "metrics", 2, Kind::Many(&METRIC)),
        field("schemaUrl", "schema_url", 3, Kind::Text),
    ],
);

static METRIC: Message = message(
    Form::Plain,
    &[
        field("name", "name", 1, Kind::Text),
        field("description", "description", 2, Kind::Text),
        field("unit", "unit", 3, Kind::Text),
        field("gauge", "gauge", 5, Kind::One(&GAUGE)),
        field("sum", "sum", 7, Kind::One(&SUM)),
        field("histogram", "histogram", 9, Kind::One(&HISTOGRAM)),
        field("exponentialHistogram", "exponential_histogram", 10, Kind::One(&EXPONENTIAL_HISTOGRAM)),
        field("summary", "summary", 11, Kind::One(&SUMMARY)),
        field("metadata", "metadata", 12, Kind::Many(&KEY_VALUE)),
    ],
);

static GAUGE: Message = message(Form::Plain, &[field("dataPoints", "data_points", 1, Kind::Many(&NUMBER_POINT))]);

static SUM: Message = message(
    Form::Plain,
    &[
        field("dataPoints", "data_points", 1, Kind::Many(&NUMBER_POINT)),
        field("aggregationTemporality", "aggregation_temporality", 2, Kind::Enum(&TEMPORALITIES)),
        field("isMonotonic", "is_monotonic", 3, Kind::Bool),
    ],
);

static HISTOGRAM: Message = message(
    Form::Plain,
    &[
        field("dataPoints", "data_points", 1, Kind::Many(&HISTOGRAM_POINT)),
        field("aggregationTemporality", "aggregation_temporality", 2, Kind::Enum(&TEMPORALITIES)),
    ],
);

static EXPONENTIAL_HISTOGRAM: Message = message(
    Form::Plain,
    &[
        field("dataPoints", "data_points", 1, Kind::Many(&EXPONENTIAL_POINT)),
        field("aggregationTemporality", "aggregation_temporality", 2, Kind::Enum(&TEMPORALITIES)),
    ],
);

static SUMMARY: Message = message(Form::Plain, &[field("dataPoints", "data_points", 1, Kind::Many(&SUMMARY_POINT))]);

static TEMPORALITIES: [&str; 3] =
    ["AGGREGATION_TEMPORALITY_UNSPECIFIED", "AGGREGATION_TEMPORALITY_DELTA", "AGGREGATION_TEMPORALITY_CUMULATIVE"];

static NUMBER_POINT: Message = message(
    Form::Point,
    &[
        field("attributes", "attributes", 7, Kind::Many(&KEY_VALUE)),
        field("startTimeUnixNano", "start_time_unix_nano", 2, Kind::Fixed64),
        field("timeUnixNano", "time_unix_nano", 3, Kind::Fixed64),
        field("asDouble", "as_double", 4, Kind::Double),
        field("asInt", "as_int", 6, Kind::SFixed64),
        field("exemplars", "exemplars", 5, Kind::Many(&EXEMPLAR)),
        field("flags", "flags", 8, Kind::Uint32),
    ],
);

static HISTOGRAM_POINT: Message = message(
    Form::Point,
    &[
        field("attributes", "attributes", 9, Kind::Many(&KEY_VALUE)),
        field("startTimeUnixNano", "start_time_unix_nano", 2, Kind::Fixed64),
        field("timeUnixNano", "time_unix_nano", 3, Kind::Fixed64),
        field("count", "count", 4, Kind::Fixed64),
        field("sum", "sum", 5, Kind::Double),
        field("bucketCounts", "bucket_counts", 6, Kind::List(&Kind::Fixed64)),
        field("explicitBounds", "explicit_bounds", 7, Kind::List(&Kind::Double)),
        field("exemplars", "exemplars", 8, Kind::Many(&EXEMPLAR)),
        field("flags", "flags", 10, Kind::Uint32),
        field("min", "min", 11, Kind::Double),
        field("max", "max", 12, Kind::Double),
    ],
);

static EXPONENTIAL_POINT: Message = message(
    Form::Point,
    &[
        field("attributes", "attributes", 1, Kind::Many(&KEY_VALUE)),
        field("startTimeUnixNano", "start_time_unix_nano", 2, Kind::Fixed64),
        field("timeUnixNano", "time_unix_nano", 3, Kind::Fixed64),
        field("count", "count", 4, Kind::Fixed64),
        field("sum", "sum", 5, Kind::Double),
        field("scale", "scale", 6, Kind::Sint32),
        field("zeroCount", "zero_count", 7, Kind::Fixed64),
        field("positive", "positive", 8, Kind::One(&BUCKETS)),
        field("negative", "negative", 9, Kind::One(&BUCKETS)),
        field("flags", "flags", 10, Kind::Uint32),
        field("exemplars", "exemplars", 11, Kind::Many(&EXEMPLAR)),
        field("min", "min", 12, Kind::Double),
        field("max", "max", 13, Kind::Double),
        field("zeroThreshold", "zero_threshold", 14, Kind::Double),
    ],
);

static BUCKETS: Message = message(
    Form::Plain,
    &[field("offset", "offset", 1, Kind::Sint32), field("bucketCounts", "bucket_counts", 2, Kind::List(&Kind::Uint64))],
);

static SUMMARY_POINT: Message = message(
    Form::Point,
    &[
        field("attributes", "attributes", 7, Kind::Many(&KEY_VALUE)),
        field("startTimeUnixNano", "start_time_unix_nano", 2, Kind::Fixed64),
        field("timeUnixNano", "time_unix_nano", 3, Kind::Fixed64),
        field("count", "count", 4, Kind::Fixed64),
        field("sum", "sum", 5, Kind::Double),
        field("quantileValues", "quantile_values", 6, Kind::Many(&QUANTILE)),
        field("flags", "flags", 8, Kind::Uint32),
    ],
);

static QUANTILE: Message =
    message(Form::Plain, &[field("quantile", "quantile", 1, Kind::Double), field("value", "value", 2, Kind::Double)]);

static EXEMPLAR: Message = message(
    Form::Plain,
    &[
        field("filteredAttributes", "filtered_attributes", 7, Kind::Many(&KEY_VALUE)),
        field("timeUnixNano", "time_unix_nano", 2, Kind::Fixed64),
        field("asDouble", "as_double", 3, Kind::Double),
        field("asInt", "as_int", 6, Kind::SFixed64),
        field("spanId", "span_id", 4, Kind::Pointer(8)),
        field("traceId", "trace_id", 5, Kind::Pointer(16)),
    ],
);
