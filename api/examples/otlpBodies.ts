/** Bodies of OTLP as exporters write them. */

const attribute = (key: string, value: string | number) => ({
  key,
  value: typeof value === 'number' ? { intValue: String(value) } : { stringValue: value },
});

/** An OTLP trace with one call. */
export const TRACE = {
  resourceSpans: [
    {
      resource: { attributes: [attribute('service.name', 'answer-bot')] },
      scopeSpans: [
        {
          scope: { name: 'opentelemetry.instrumentation.openai', version: '0.40.0' },
          spans: [
            {
              traceId: '5b8efff798038103d269b633813fc60c',
              spanId: 'eee19b7ec3c1b174',
              name: 'chat gpt-4o',
              startTimeUnixNano: '1769860800000000000',
              endTimeUnixNano: '1769860801250000000',
              attributes: [
                attribute('gen_ai.operation.name', 'chat'),
                attribute('gen_ai.system', 'openai'),
                attribute('gen_ai.request.model', 'gpt-4o'),
                attribute('gen_ai.response.id', 'chatcmpl-example-1'),
                attribute('gen_ai.usage.input_tokens', 1_200),
                attribute('gen_ai.usage.output_tokens', 350),
              ],
            },
          ],
        },
      ],
    },
  ],
};

/** OTLP logs with one call of Claude Code. */
export const LOGS = {
  resourceLogs: [
    {
      resource: { attributes: [attribute('service.name', 'claude-code')] },
      scopeLogs: [
        {
          scope: { name: 'com.anthropic.claude_code.events', version: '2.1.0' },
          logRecords: [
            {
              timeUnixNano: '1769860801250000000',
              body: { stringValue: 'claude_code.api_request' },
              attributes: [
                attribute('event.name', 'api_request'),
                attribute('event.timestamp', '2026-01-31T12:00:01.250Z'),
                attribute('session.id', 'b1946ac9-2492-4d23-8c3d-a1f6cb6eafae'),
                attribute('model', 'claude-opus-4-5'),
                attribute('duration_ms', 1_250),
                attribute('input_tokens', 12),
                attribute('output_tokens', 350),
                attribute('cache_read_tokens', 21_000),
                attribute('cache_creation_tokens', 900),
                attribute('request_id', 'req_011CExample'),
              ],
            },
          ],
        },
      ],
    },
  ],
};

/** OTLP metrics with the tokens of Claude Code in a minute. */
export const METRICS = {
  resourceMetrics: [
    {
      resource: { attributes: [attribute('service.name', 'claude-code')] },
      scopeMetrics: [
        {
          scope: { name: 'com.anthropic.claude_code', version: '2.1.0' },
          metrics: [
            {
              name: 'claude_code.token.usage',
              unit: 'tokens',
              sum: {
                aggregationTemporality: 1,
                isMonotonic: true,
                dataPoints: [
                  {
                    attributes: [
                      attribute('type', 'input'),
                      attribute('model', 'claude-opus-4-5'),
                      attribute('session.id', 'b1946ac9-2492-4d23-8c3d-a1f6cb6eafae'),
                    ],
                    startTimeUnixNano: '1769860740000000000',
                    timeUnixNano: '1769860800000000000',
                    asDouble: 12,
                  },
                ],
              },
            },
          ],
        },
      ],
    },
  ],
};
