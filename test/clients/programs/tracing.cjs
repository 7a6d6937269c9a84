/**
 * The OpenTelemetry set-up of instrumentation guides: a tracer provider, a batch processor and an OTLP exporter,
 * configured by the standard environment variables alone.
 */
const { registerInstrumentations } = require('@opentelemetry/instrumentation');
const { detectResources, envDetector, resourceFromAttributes } = require('@opentelemetry/resources');
const { BatchSpanProcessor, NodeTracerProvider } = require('@opentelemetry/sdk-trace-node');

/** The exporter of OTEL_EXPORTER_OTLP_PROTOCOL: `http/json`, or protobuf as the SDK's default. */
function makeExporter() {
  if (process.env.OTEL_EXPORTER_OTLP_PROTOCOL === 'http/json') {
    const { OTLPTraceExporter } = require('@opentelemetry/exporter-trace-otlp-http');
    return new OTLPTraceExporter();
  }
  const { OTLPTraceExporter } = require('@opentelemetry/exporter-trace-otlp-proto');
  return new OTLPTraceExporter();
}

/** Registers tracing for the process; the returned provider is to be shut down before the process ends. */
function startTracing(serviceName, instrumentations) {
  const provider = new NodeTracerProvider({
    resource: detectResources({ detectors: [envDetector] }).merge(
      resourceFromAttributes({ 'service.name': serviceName }),
    ),
    spanProcessors: [new BatchSpanProcessor(makeExporter())],
  });
  provider.register();
  registerInstrumentations({ tracerProvider: provider, instrumentations });
  return provider;
}

module.exports = { startTracing };
