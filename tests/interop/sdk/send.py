"""Sends spans with odd values through the OpenTelemetry SDK and says what it sent:
python send.py grpc|http/protobuf none|gzip|deflate URL COUNT
"""

import json
import sys

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, Status, StatusCode, set_span_in_context

protocol, compression, url, count = sys.argv[1:5]
if protocol == "grpc":
    import grpc
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter

    choice = {"none": grpc.Compression.NoCompression, "gzip": grpc.Compression.Gzip, "deflate": grpc.Compression.Deflate}
    exporter = OTLPSpanExporter(endpoint=url, insecure=True, compression=choice[compression])
else:
    from opentelemetry.exporter.otlp.proto.http import Compression
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    exporter = OTLPSpanExporter(endpoint=url + "/v1/traces", compression=Compression(compression))

provider = TracerProvider(resource=Resource.create({"service.name": "sdk 服务"}))
provider.add_span_processor(BatchSpanProcessor(exporter, max_queue_size=10000, max_export_batch_size=64))
tracer = provider.get_tracer("reqtop.interop", "1.2.3")

attributes = {
    "text": '推理服务 👩‍🔬 "quoted" \\ \n\t\0',
    "text.empty": "",
    "text.long": "x" * 5000,
    "int.zero": 0,
    "int.least": -(2**63),
    "int.most": 2**63 - 1,
    "double": 0.1,
    "double.tiny": 5e-324,
    "double.infinite": float("inf"),
    "double.nan": float("nan"),
    "truth": True,
    "bytes": b"\0\1\2\xfd\xfe\xff",
    "list.int": [1, -1, 2**62],
    "list.text": ["a", "", "ü"],
}
expected = {
    "text": {"stringValue": attributes["text"]},
    "text.empty": {"stringValue": ""},
    "text.long": {"stringValue": attributes["text.long"]},
    "int.zero": {"intValue": "0"},
    "int.least": {"intValue": str(-(2**63))},
    "int.most": {"intValue": str(2**63 - 1)},
    "double": {"doubleValue": 0.1},
    "double.tiny": {"doubleValue": 5e-324},
    "double.infinite": {"doubleValue": "Infinity"},
    "double.nan": {"doubleValue": "NaN"},
    "truth": {"boolValue": True},
    "bytes": {"bytesValue": "AAEC/f7/"},
    "list.int": {"arrayValue": {"values": [{"intValue": str(n)} for n in attributes["list.int"]]}},
    "list.text": {"arrayValue": {"values": [{"stringValue": text} for text in attributes["list.text"]]}},
}

root = tracer.start_span("request.lifecycle", kind=SpanKind.SERVER, attributes=attributes)
inside = set_span_in_context(root)
for index in range(1, int(count)):
    span = tracer.start_span("odd 名前", context=inside, kind=SpanKind.CLIENT, attributes=attributes)
    span.set_attribute("index", index)
    span.add_event("event 事件", {"at": index})
    span.set_status(Status(StatusCode.ERROR, "it broke"))
    span.end()
root.end()
provider.shutdown()
print(json.dumps({"spans": int(count), "attributes": expected}))
