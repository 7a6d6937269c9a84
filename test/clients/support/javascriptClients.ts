/**
 * The JavaScript clients under test: their programs, their tasks, how they reach Trueup, and their facts. Together they
 * use every path of exporters: the bare base URL and the specification's path, JSON and protobuf, plain and gzip,
 * Bearer and Basic.
 */
import { alone, type ClientCase, langfuse, langfuseLegacy, otlp, planScope } from './clientCase.js';
import {
  AI_SDK,
  ANTHROPIC_SDK,
  LANGFUSE_LEGACY_OPENAI,
  LANGFUSE_OPENAI,
  OPENINFERENCE_ANTHROPIC,
  OPENINFERENCE_OPENAI,
  OTEL_OPENAI,
  PLAIN_OTLP,
  TRACELOOP_ANTHROPIC,
  TRACELOOP_OPENAI,
} from './clientFacts.js';

const openAi = planScope(['chat', 'responses', 'embeddings']);
const anthropic = planScope(['messages'], { hasStreamHelper: true });

export const JAVASCRIPT_CLIENTS: readonly ClientCase[] = [
  {
    name: 'OpenInference for OpenAI',
    program: 'openInferenceOpenAi.cjs',
    scope: openAi,
    facts: OPENINFERENCE_OPENAI,
    environment: otlp('http/json', 'none'),
  },
  {
    name: 'OpenInference for Anthropic',
    program: 'openInferenceAnthropic.cjs',
    scope: anthropic,
    facts: OPENINFERENCE_ANTHROPIC,
    environment: alone(otlp('http/protobuf', 'none')),
  },
  {
    name: 'Traceloop for OpenAI',
    program: 'traceloopOpenAi.cjs',
    scope: openAi,
    facts: TRACELOOP_OPENAI,
    environment: otlp('http/protobuf', 'gzip'),
  },
  {
    name: 'Traceloop for Anthropic',
    program: 'traceloopAnthropic.cjs',
    scope: anthropic,
    facts: TRACELOOP_ANTHROPIC,
    environment: alone(otlp('http/json', 'gzip')),
  },
  {
    name: '@opentelemetry/instrumentation-openai',
    program: 'otelOpenAi.cjs',
    scope: openAi,
    facts: OTEL_OPENAI,
    environment: otlp('http/json', 'none', '/api/v1/ingest/trace'),
  },
  {
    name: 'the AI SDK with @ai-sdk/otel',
    program: 'aiSdk.mjs',
    scope: planScope(['chat', 'responses', 'embeddings', 'messages']),
    facts: AI_SDK,
    environment: otlp('http/protobuf', 'gzip', '/api/v1/ingest/trace'),
  },
  {
    name: '@langfuse/openai',
    program: 'langfuseOpenAi.mjs',
    scope: openAi,
    facts: LANGFUSE_OPENAI,
    environment: langfuse,
  },
  {
    name: 'langfuse before its version 4',
    program: 'langfuseLegacy.mjs',
    scope: openAi,
    facts: LANGFUSE_LEGACY_OPENAI,
    environment: langfuseLegacy,
  },
  {
    name: "the Anthropic SDK's own tracing",
    program: 'anthropicSdk.cjs',
    scope: anthropic,
    facts: ANTHROPIC_SDK,
    environment: otlp('http/json', 'none'),
  },
  {
    name: 'the plain OTLP exporter in JSON',
    program: 'plainOtlp.cjs',
    scope: planScope(['chat', 'messages'], { hasStreams: false }),
    facts: PLAIN_OTLP,
    environment: otlp('http/json', 'none'),
  },
  {
    name: 'the plain OTLP exporter in protobuf with gzip',
    program: 'plainOtlp.cjs',
    scope: planScope(['chat', 'messages'], { hasStreams: false }),
    facts: PLAIN_OTLP,
    environment: otlp('http/protobuf', 'gzip'),
  },
];

/**
 * An instrumentation in addition to the Anthropic client's spans: one call, two reports, one the child of the other.
 */
export const JAVASCRIPT_PAIRS: readonly ClientCase[] = [
  {
    name: "OpenInference beside the Anthropic SDK's own tracing",
    program: 'openInferenceAnthropic.cjs',
    scope: planScope(['messages']),
    facts: ANTHROPIC_SDK,
    environment: otlp('http/protobuf', 'gzip'),
  },
  {
    name: "Traceloop beside the Anthropic SDK's own tracing",
    program: 'traceloopAnthropic.cjs',
    scope: planScope(['messages']),
    facts: ANTHROPIC_SDK,
    environment: otlp('http/json', 'none'),
  },
];
