/** An application that calls the providers with fetch and writes its spans by hand, by OpenTelemetry's conventions. */
const { SpanStatusCode, trace } = require('@opentelemetry/api');
const { makeCalls, promptOf, readRun, runProgram } = require('./run.cjs');
const { startTracing } = require('./tracing.cjs');

const provider = startTracing('plainOtlp', []);
const tracer = trace.getTracer('acme-llm-client', '1.0.0');
const RETRIES_MAX = 2;

/** Sends a request until it is answered, as clients do: again after 429 and 5xx. */
async function post(url, body) {
  for (let retries = 0; ; retries += 1) {
    const response = await fetch(url, { method: 'POST', body: JSON.stringify(body) });
    if (response.ok) return response.json();
    await response.text();
    if (response.status === 400 || retries === RETRIES_MAX) {
      throw Object.assign(new Error('refused'), { status: response.status });
    }
  }
}

async function traced(call, providerName, operation, request) {
  const span = tracer.startSpan(`${operation} ${call.model}`, {
    attributes: {
      'gen_ai.provider.name': providerName,
      'gen_ai.operation.name': operation,
      'gen_ai.request.model': call.model,
      'gen_ai.conversation.id': 'thread-1',
      'user.id': 'user-1',
    },
  });
  try {
    span.setAttributes(await request());
  } catch (error) {
    span.setStatus({ code: SpanStatusCode.ERROR });
    span.setAttribute('http.response.status_code', error.status);
    throw error;
  } finally {
    span.end();
  }
}

runProgram(async () => {
  const { plan, openAiBaseUrl, anthropicBaseUrl } = readRun();
  const failures = await makeCalls(plan, {
    chat: (call) =>
      traced(call, 'openai', 'chat', async () => {
        const messages = [{ role: 'user', content: promptOf(call) }];
        const answer = await post(`${openAiBaseUrl}/chat/completions`, { model: call.model, messages });
        const { usage } = answer;
        return {
          'gen_ai.response.id': answer.id,
          'gen_ai.response.model': answer.model,
          'gen_ai.response.finish_reasons': [answer.choices[0].finish_reason],
          'gen_ai.usage.input_tokens': usage.prompt_tokens,
          'gen_ai.usage.output_tokens': usage.completion_tokens,
          'gen_ai.usage.cache_read.input_tokens': usage.prompt_tokens_details.cached_tokens,
          'gen_ai.usage.cache_creation.input_tokens': usage.prompt_tokens_details.cache_write_tokens ?? 0,
          'gen_ai.usage.reasoning.output_tokens': usage.completion_tokens_details.reasoning_tokens,
        };
      }),
    messages: (call) =>
      traced(call, 'anthropic', 'chat', async () => {
        const messages = [{ role: 'user', content: promptOf(call) }];
        const answer = await post(`${anthropicBaseUrl}/v1/messages`, { model: call.model, messages });
        const { usage } = answer;
        const cacheRead = usage.cache_read_input_tokens;
        const cacheWrite = usage.cache_creation_input_tokens;
        return {
          'gen_ai.response.id': answer.id,
          'gen_ai.response.model': answer.model,
          'gen_ai.response.finish_reasons': [answer.stop_reason],
          'gen_ai.usage.input_tokens': usage.input_tokens + cacheRead + cacheWrite,
          'gen_ai.usage.output_tokens': usage.output_tokens,
          'gen_ai.usage.cache_read.input_tokens': cacheRead,
          'gen_ai.usage.cache_creation.input_tokens': cacheWrite,
          'gen_ai.usage.reasoning.output_tokens': usage.output_tokens_details.thinking_tokens,
        };
      }),
  });
  await provider.shutdown();
  return failures;
});
