/** The calls that Demo Labs' wrappers reported, as items of POST /api/v1/ingest/events. */
import { rfc3339 } from '../bills/pages.js';
import { clockHour, type DemoCall } from './calls.js';
import { ACCOUNTS } from './company.js';
import { covers, MISSING_HOURS, SCHEDULE } from './schedule.js';

/**
 * Whether a client reported the call: none reported calls of the stray key, nor of OpenAI in the hours without a
 * wrapper.
 */
export function isReported(call: DemoCall): boolean {
  if (call.isStray) return false;
  const isMissing = call.provider === 'openai' && covers(SCHEDULE.missingWindow, call.offset);
  const hour = clockHour(call);
  return !(isMissing && hour >= MISSING_HOURS.from && hour < MISSING_HOURS.to);
}

export function eventOf(call: DemoCall): object {
  const { tokens } = call;
  return {
    provider: call.provider,
    provider_account_id: ACCOUNTS[call.provider],
    model: call.askedModel,
    response_model: call.model,
    request_id: call.id,
    session_id: call.sessionId,
    timestamp: rfc3339(call.startSeconds),
    end_at: rfc3339(call.endSeconds),
    input_tokens: tokens.input,
    cache_read: tokens.cache_read,
    cache_creation: tokens.cache_write_5m + tokens.cache_write_1h,
    cache_creation_5m: tokens.cache_write_5m,
    cache_creation_1h: tokens.cache_write_1h,
    output_tokens: tokens.output,
    is_batch: call.batchId !== null,
    ...(call.batchId === null ? {} : { batch_id: call.batchId }),
    ...(call.team === null ? {} : { team_id: call.team }),
    feature: call.feature,
    stop_reason: call.provider === 'openai' ? 'stop' : 'end_turn',
    _service: {
      name: call.service,
      environment: call.environment,
      provider_key_id: call.key.id,
      api_key_prefix: call.key.id,
    },
    ...(call.prompt === null ? {} : { payload: { prompt: call.prompt } }),
  };
}
