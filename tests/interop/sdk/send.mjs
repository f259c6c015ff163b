// Sends spans with odd values through the OpenTelemetry SDK and says what it sent:
// node send.mjs grpc|http/protobuf|http/json none|gzip URL COUNT
import { createRequire } from "node:module";

// The packages are in the folder that the program is run in.
const packages = createRequire(process.cwd() + "/");
const { context, trace, SpanKind, SpanStatusCode } = packages("@opentelemetry/api");
const { resourceFromAttributes } = packages("@opentelemetry/resources");
const { BasicTracerProvider, BatchSpanProcessor } = packages("@opentelemetry/sdk-trace-base");

const [protocol, compression, url, count] = process.argv.slice(2);
const exporters = {
  grpc: "@opentelemetry/exporter-trace-otlp-grpc",
  "http/protobuf": "@opentelemetry/exporter-trace-otlp-proto",
  "http/json": "@opentelemetry/exporter-trace-otlp-http",
};
const { OTLPTraceExporter } = packages(exporters[protocol]);
const exporter = new OTLPTraceExporter({ url: protocol === "grpc" ? url : `${url}/v1/traces`, compression });
const provider = new BasicTracerProvider({
  resource: resourceFromAttributes({ "service.name": "sdk 服务" }),
  spanProcessors: [new BatchSpanProcessor(exporter, { maxQueueSize: 10000, maxExportBatchSize: 64 })],
});
const tracer = provider.getTracer("reqtop.interop", "1.2.3");

const attributes = {
  text: "推理服务 👩‍🔬 \"quoted\" \\ \n\t\u0000",
  "text.empty": "",
  "text.long": "x".repeat(5000),
  "int.zero": 0,
  "int.negative": -7,
  "int.safe": Number.MAX_SAFE_INTEGER,
  double: 0.1,
  "double.tiny": 5e-324,
  truth: true,
  "list.text": ["a", "", "ü"],
  "list.truth": [true, false],
};
const whole = (value) => ({ intValue: String(value) });
const expected = {
  text: { stringValue: attributes.text },
  "text.empty": { stringValue: "" },
  "text.long": { stringValue: attributes["text.long"] },
  "int.zero": whole(0),
  "int.negative": whole(-7),
  "int.safe": whole(Number.MAX_SAFE_INTEGER),
  double: { doubleValue: 0.1 },
  "double.tiny": { doubleValue: 5e-324 },
  truth: { boolValue: true },
  "list.text": { arrayValue: { values: attributes["list.text"].map((text) => ({ stringValue: text })) } },
  "list.truth": { arrayValue: { values: [{ boolValue: true }, { boolValue: false }] } },
};

const root = tracer.startSpan("request.lifecycle", { kind: SpanKind.SERVER, attributes });
const inside = trace.setSpan(context.active(), root);
for (let index = 1; index < Number(count); index++) {
  const span = tracer.startSpan("odd 名前", { kind: SpanKind.CLIENT, attributes }, inside);
  span.setAttribute("index", index);
  span.addEvent("event 事件", { at: index });
  span.setStatus({ code: SpanStatusCode.ERROR, message: "it broke" });
  span.end();
}
root.end();
await provider.shutdown();
console.log(JSON.stringify({ spans: Number(count), attributes: expected }));
