//! The attribute catalogue: every field of evidence with its id, label, unit, and the attribute names, old and new, under
//! which it arrives (spec lifecycle-spans §2, §3, §6). One row here is all a new field needs to be read and shown.

/// What a field's number counts, for labels and for the filter language's units.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Text or a word.
    Text,
    /// A plain count.
    Count,
    /// A unitless cost; lower is better.
    Cost,
    /// Milliseconds, as a decimal number.
    Millis,
    /// Nanoseconds since the Unix epoch.
    UnixNanos,
    /// Bytes.
    Bytes,
    /// Tokens.
    Tokens,
    /// A truth value.
    Flag,
    /// A JSON text.
    Json,
}

/// One row of the catalogue.
pub struct Row {
    /// The field.
    pub field: Field,
    /// Its id in reports and filters.
    pub id: &'static str,
    /// What a person reads.
    pub label: &'static str,
    /// What its value is measured in.
    pub unit: Unit,
    /// The attribute names, today's first.
    pub names: &'static [&'static str],
}

macro_rules! catalogue {
    ($($field:ident $id:literal $label:literal $unit:ident [$($name:literal),+];)+) => {
        /// A field of evidence. `Other` is any attribute that the catalogue does not name.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u8)]
        #[allow(missing_docs, reason = "the rows say it: id, label and unit")]
        pub enum Field { Other, $($field),+ }

        /// Every row, in the order of a request's life.
        pub static ROWS: &[Row] = &[
            $(Row { field: Field::$field, id: $id, label: $label, unit: Unit::$unit, names: &[$($name),+] }),+
        ];

        impl Field {
            /// The field an attribute name stands for.
            pub fn of(name: &str) -> Self {
                match name {
                    $($($name)|+ => Self::$field,)+
                    _ => Self::Other,
                }
            }
        }
    };
}

catalogue! {
    // Identity
    RequestId "request" "request" Text ["dynamo.request.id", "request_id"];
    XRequestId "x_request_id" "client's id" Text ["x_request_id"];
    OperationId "operation" "operation" Text ["dynamo.operation.id"];
    Role "role" "role" Text ["dynamo.operation.role"];
    Schema "schema" "schema" Text ["dynamo.lifecycle.schema"];
    Profile "profile" "profile" Text ["dynamo.lifecycle.profile"];
    Mode "mode" "mode" Text ["dynamo.lifecycle.mode"];
    Component "component" "component" Text ["dynamo.component"];
    Instance "instance" "instance" Text ["dynamo.instance.id"];
    Epoch "epoch" "process" Text ["dynamo.process.epoch"];
    IdentityState "identity" "identity" Text ["dynamo.lifecycle.identity.state"];
    Attempt "attempt" "attempt" Count ["dynamo.request.attempt", "request.attempt"];
    CaptureState "capture" "capture" Text ["dynamo.lifecycle.capture.state"];
    DetailSchema "detail_schema" "detail schema" Text ["dynamo.lifecycle.detail_schema"];
    SessionId "session" "session" Text ["dynamo.session.id"];
    SessionSource "session.source" "session source" Text ["dynamo.session.source"];
    // Root
    Outcome "outcome" "outcome" Text ["dynamo.request.terminal.outcome"];
    TerminalError "error" "error" Flag ["dynamo.request.terminal.error"];
    TerminalTime "terminal" "terminal moment" UnixNanos ["dynamo.request.terminal.timestamp_unix_ns"];
    // http-request
    Method "http.method" "method" Text ["method"];
    Uri "http.uri" "path" Text ["uri"];
    Model "model" "model" Text ["model"];
    InputTokens "tokens.in" "input tokens" Tokens ["input_tokens"];
    OutputTokens "tokens.out" "output tokens" Tokens ["output_tokens"];
    Ttft "ttft" "time to first token" Millis ["ttft_ms"];
    AvgItl "itl" "mean time between tokens" Millis ["avg_itl_ms"];
    PrefillWorker "http.prefill.worker" "prefill worker" Text ["prefill_worker_id"];
    DecodeWorker "http.decode.worker" "decode worker" Text ["decode_worker_id"];
    // Stages
    StageOutcome "stage.outcome" "stage outcome" Text ["dynamo.stage.outcome"];
    Checkpoint "stage.checkpoint" "checkpoint" Text ["dynamo.stage.checkpoint"];
    StreamEvents "events" "stream events" Count ["dynamo.stream.events"];
    // Queue
    QueueClass "queue.class" "class" Text ["dynamo.router.queue.class"];
    QueuePolicy "queue.policy" "policy" Text ["dynamo.router.queue.policy"];
    DepthIn "queue.depth.in" "depth on entering" Count ["dynamo.router.queue.depth.in"];
    DepthOut "queue.depth.out" "depth on leaving" Count ["dynamo.router.queue.depth.out"];
    Deferred "queue.deferred" "deferred" Flag ["dynamo.router.queue.deferred"];
    QueueOutcome "queue.outcome" "queue outcome" Text ["dynamo.router.queue.outcome"];
    QueueReason "queue.reason" "reason" Text ["dynamo.router.queue.reason"];
    // Selection
    Candidates "selection.candidates" "candidates" Count ["dynamo.router.candidate.count"];
    Eligible "selection.eligible" "eligible" Count ["dynamo.router.candidate.eligible.count"];
    Filtered "selection.filtered" "filtered" Count ["dynamo.router.candidate.filtered.count"];
    FilteredNotAllowed "selection.filtered.not_allowed" "not allowed" Count ["dynamo.router.candidate.filtered.not_allowed"];
    FilteredConstraints "selection.filtered.constraints" "constraints" Count ["dynamo.router.candidate.filtered.constraints"];
    FilteredOverloaded "selection.filtered.overloaded" "overloaded" Count ["dynamo.router.candidate.filtered.overloaded"];
    FilteredUnavailable "selection.filtered.unavailable" "unavailable" Count ["dynamo.router.candidate.filtered.unavailable"];
    FilteredPolicy "selection.filtered.policy" "filtered by policy" Count ["dynamo.router.candidate.filtered.policy"];
    Algorithm "selection.algorithm" "algorithm" Text ["dynamo.router.algorithm.id"];
    AlgorithmVersion "selection.algorithm.version" "algorithm version" Text ["dynamo.router.algorithm.version"];
    DecisionSchema "selection.schema" "decision schema" Text ["dynamo.router.decision.schema"];
    SelectionPolicy "selection.policy" "selection policy" Text ["dynamo.router.selection.policy"];
    Pool "selection.pool" "pool" Text ["dynamo.router.pool.role"];
    SelectionResult "selection.result" "result" Text ["dynamo.router.selection.result"];
    SelectedWorker "selected.worker" "chosen worker" Text ["dynamo.router.selected.worker.id"];
    SelectedRank "selected.rank" "chosen rank" Count ["dynamo.router.selected.dp.rank"];
    SelectedScore "selected.score" "chosen cost" Cost ["dynamo.router.selected.score"];
    BestWorker "best.worker" "best worker" Text ["dynamo.router.best.worker.id"];
    BestRank "best.rank" "best rank" Count ["dynamo.router.best.dp.rank"];
    BestScore "best.score" "least cost" Cost ["dynamo.router.best.score"];
    Margin "margin" "margin" Cost ["dynamo.router.best.margin"];
    TopKSchema "candidates.schema" "candidate schema" Text ["dynamo.router.candidates.detail_schema"];
    TopK "candidates" "candidates" Json ["dynamo.router.candidates.top_k"];
    // Dispatch
    DispatchRoute "dispatch.route" "route" Text ["dynamo.dispatch.route"];
    DispatchPhase "dispatch.phase" "phase" Text ["dynamo.dispatch.phase"];
    DestinationWorker "dispatch.worker" "destination" Text ["dynamo.dispatch.destination.worker.id"];
    DestinationRank "dispatch.rank" "destination rank" Count ["dynamo.dispatch.destination.dp.rank"];
    DispatchResult "dispatch.result" "result" Text ["dynamo.dispatch.result"];
    // Route
    RouterMode "route.mode" "router mode" Text ["router_mode"];
    RouteWorker "route.worker" "worker" Text ["worker_id"];
    RouteRank "route.rank" "rank" Count ["dp_rank"];
    Overlap "route.overlap" "overlap blocks" Count ["overlap_blocks"];
    RoutePhase "route.phase" "phase" Text ["phase"];
    RouteOutcome "route.outcome" "attempt outcome" Text ["request.outcome"];
    ErrorType "route.error" "error type" Text ["error.type"];
    IsRetry "route.retry" "retry" Flag ["migration.is_retry"];
    MigrationReason "migration.reason" "migration reason" Text ["migration.reason"];
    FromWorker "migration.from" "from worker" Text ["migration.from_worker_id"];
    TokensCompleted "migration.tokens" "tokens carried" Tokens ["migration.tokens_completed"];
    CancelSignal "cancellation" "cancellation signal" Text ["cancellation.signal"];
    // Worker side
    Transport "admission.transport" "transport" Text ["dynamo.worker.admission.transport"];
    PayloadBytes "admission.bytes" "payload" Bytes ["dynamo.worker.admission.payload.bytes"];
    AdmissionResult "admission.result" "admission" Text ["dynamo.worker.admission.result"];
    PayloadComponent "payload.component" "component" Text ["component"];
    PayloadEndpoint "payload.endpoint" "endpoint" Text ["endpoint"];
    PayloadInstance "payload.instance" "instance" Text ["instance_id"];
    DisaggRole "engine.role" "role" Text ["disagg_role"];
    FinishReason "engine.finish" "finish reason" Text ["finish_reason"];
    EngineCancelled "engine.cancelled" "cancelled" Flag ["cancelled"];
    // What the tracing bridge adds to every span; folded on screen.
    Boilerplate "boilerplate" "tracing bridge" Text [
        "code.file.path", "code.module.name", "code.line.number", "thread.id", "thread.name", "target", "busy_ns", "idle_ns"
    ];
}

impl Field {
    /// The field's row; `None` for [`Field::Other`].
    pub fn row(self) -> Option<&'static Row> {
        (self as usize).checked_sub(1).map(|index| &ROWS[index])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_row_is_found_by_each_of_its_names_and_ids_are_unique() {
        let mut ids = HashSet::new();
        for row in ROWS {
            assert!(ids.insert(row.id), "{} twice", row.id);
            assert!(std::ptr::eq(row.field.row().unwrap(), row));
            for name in row.names {
                assert_eq!(Field::of(name), row.field);
            }
        }
        assert_eq!(Field::of("zzz"), Field::Other);
        assert!(Field::Other.row().is_none());
    }
}
