//! AIPerf's files: `profile_export.jsonl` and the `phase_manifest.json` beside it (spec request-trace.md).

use serde::Deserialize;

use super::{LoadPhase, LoadRecord, Seen, Usage, clean};

#[derive(Deserialize)]
struct Line {
    metadata: Metadata,
    #[serde(default)]
    metrics: Metrics,
    #[serde(default)]
    error: Option<Error>,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    x_request_id: String,
    #[serde(default)]
    benchmark_phase: String,
    #[serde(default)]
    request_end_ns: Option<u64>,
    #[serde(default)]
    request_start_ns: Option<u64>,
    #[serde(default)]
    was_cancelled: bool,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Metrics {
    usage_prompt_tokens: Option<Metric>,
    usage_completion_tokens: Option<Metric>,
    usage_prompt_cache_read_tokens: Option<Metric>,
}

#[derive(Deserialize)]
struct Metric {
    value: f64,
}

#[derive(Deserialize)]
struct Error {
    #[serde(default)]
    code: Option<u16>,
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    message: Option<String>,
}

/// Reads `profile_export.jsonl`: a line per finished request, of every phase.
///
/// # Errors
/// The first line that is no such record, with its number.
pub fn profile_export(text: &str) -> Result<Vec<LoadRecord>, String> {
    let lines = text.trim_start_matches('\u{feff}').lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(at, line)| {
            let line: Line = serde_json::from_str(line)
                .map_err(|error| format!("line {}: expected an AIPerf record with metadata, {error}", at + 1))?;
            Ok(record(line))
        })
        .collect()
}

fn record(line: Line) -> LoadRecord {
    let Line { metadata, metrics, error } = line;
    let count = |metric: Option<Metric>| metric.filter(|metric| metric.value >= 0.0).map(|metric| metric.value as u64);
    LoadRecord {
        x_request_id: clean(&metadata.x_request_id),
        phase: clean(&metadata.benchmark_phase),
        seen: seen(metadata.was_cancelled, error),
        usage: Usage {
            prompt: count(metrics.usage_prompt_tokens),
            completion: count(metrics.usage_completion_tokens),
            cached: count(metrics.usage_prompt_cache_read_tokens),
        },
        end_ns: metadata.request_end_ns,
        ran_ns: metadata.request_end_ns.zip(metadata.request_start_ns).map(|(end, start)| end.saturating_sub(start)),
    }
}

/// By code, never by type; the type speaks only where there is no code.
fn seen(cancelled: bool, error: Option<Error>) -> Seen {
    let Some(error) = error else { return if cancelled { Seen::Cancelled } else { Seen::Success } };
    if cancelled || error.code == Some(499) {
        return Seen::Cancelled;
    }
    if let Some(code) = error.code {
        return Seen::Code(code);
    }
    let kind = error.kind.unwrap_or_default();
    let message = error.message.unwrap_or_default();
    match kind.as_str() {
        "TimeoutError" => Seen::ClientTimeout,
        "InvalidInferenceResultError" => Seen::Invalid,
        kind if kind.contains("Connect") && (kind.contains("Refused") || message.contains("refused")) => Seen::Refused,
        kind if kind.starts_with("ClientConnector") => Seen::Refused,
        other => Seen::Other(clean(other)),
    }
}

#[derive(Deserialize)]
struct Manifest {
    phases: Vec<Phase>,
}

#[derive(Deserialize)]
struct Phase {
    phase_name: String,
    #[serde(default)]
    end_ns: Option<u64>,
    #[serde(default)]
    total_request_count: Option<u64>,
}

/// Reads `phase_manifest.json`.
///
/// # Errors
/// When it is no such manifest.
pub fn phase_manifest(text: &str) -> Result<Vec<LoadPhase>, String> {
    let manifest: Manifest = serde_json::from_str(text)
        .map_err(|error| format!("expected an AIPerf phase manifest with phases, {error}"))?;
    Ok(manifest
        .phases
        .into_iter()
        .map(|phase| LoadPhase {
            phase: clean(&phase.phase_name),
            end_ns: phase.end_ns,
            requests: phase.total_request_count,
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(error: &str, cancelled: bool) -> Seen {
        let line = format!(
            r#"{{"metadata":{{"x_request_id":"x","benchmark_phase":"profiling","was_cancelled":{cancelled}}},"metrics":{{}},"error":{error}}}"#
        );
        profile_export(&line).unwrap().remove(0).seen
    }

    #[test]
    fn errors_are_mapped_by_code_and_only_then_by_type() {
        assert_eq!(one("null", false), Seen::Success);
        assert_eq!(one(r#"{"code":499,"type":"RequestCancellationError","message":"m"}"#, true), Seen::Cancelled);
        assert_eq!(one(r#"{"code":529,"type":"<none>","message":"m"}"#, false), Seen::Code(529));
        assert_eq!(one(r#"{"code":404,"type":"TimeoutError"}"#, false), Seen::Code(404));
        assert_eq!(one(r#"{"type":"TimeoutError"}"#, false), Seen::ClientTimeout);
        assert_eq!(one(r#"{"code":null,"type":"InvalidInferenceResultError"}"#, false), Seen::Invalid);
        assert_eq!(one(r#"{"type":"ClientConnectorError","message":"Connect call failed"}"#, false), Seen::Refused);
        assert_eq!(one(r#"{"type":"Odd"}"#, false), Seen::Other("Odd".into()));
    }

    #[test]
    fn a_bad_line_is_named() {
        let error = profile_export("\n{\"a\":1}").unwrap_err();
        assert!(error.starts_with("line 2:") && error.contains("metadata"), "{error}");
        assert!(phase_manifest("[]").is_err());
        let phases = phase_manifest(
            r#"{"phases":[{"phase_name":"warmup","end_ns":null},{"phase_name":"p","end_ns":7,"total_request_count":3}]}"#,
        );
        let told: Vec<_> = phases.unwrap().into_iter().map(|phase| (phase.end_ns, phase.requests)).collect();
        assert_eq!(told, [(None, None), (Some(7), Some(3))]);
    }
}
