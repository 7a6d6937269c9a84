/** A call that costs less than a cent, for the examples. */
const CALL = { provider: 'openai', model: 'gpt-4o-mini', prompt: 1_200, completion: 350 };

export type Way = 'otel' | 'curl' | 'fetch';

/** Text to copy that reports calls to this address with this key. */
export const SNIPPETS: Record<
  Way,
  { name: string; label: string; text: (origin: string, key: string) => string }
> = {
  otel: {
    name: 'OpenTelemetry',
    label: 'Environment of your application',
    text: (origin, key) => `export OTEL_EXPORTER_OTLP_ENDPOINT=${origin}
export OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf
export OTEL_EXPORTER_OTLP_HEADERS="authorization=Bearer ${key}"
export OTEL_SERVICE_NAME=my-app
export OTEL_RESOURCE_ATTRIBUTES="team_id=my-team"`,
  },
  curl: {
    name: 'curl',
    label: 'Terminal',
    text: (origin, key) => `curl ${origin}/api/v1/ingest/events \\
  -H 'authorization: Bearer ${key}' \\
  -H 'content-type: application/json' \\
  -d '{"events": [{
    "provider": "${CALL.provider}", "model": "${CALL.model}", "team_id": "my-team",
    "timestamp": "'$(date -u +%Y-%m-%dT%H:%M:%SZ)'",
    "usage": {"prompt_tokens": ${CALL.prompt}, "completion_tokens": ${CALL.completion}}
  }]}'`,
  },
  fetch: {
    name: 'fetch',
    label: 'JavaScript on a server',
    text: (origin, key) => `await fetch('${origin}/api/v1/ingest/events', {
  method: 'POST',
  headers: {
    authorization: 'Bearer ${key}',
    'content-type': 'application/json',
  },
  body: JSON.stringify({
    events: [{
      provider: '${CALL.provider}',
      model: '${CALL.model}',
      team_id: 'my-team',
      timestamp: new Date().toISOString(),
      // The provider's own usage object, unchanged:
      usage: { prompt_tokens: ${CALL.prompt}, completion_tokens: ${CALL.completion} },
    }],
  }),
});`,
  },
};
