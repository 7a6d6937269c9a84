import { drawPrompt, drawSecret, PROMPT_PLACE, type PromptPlan } from './promptTexts.js';
import type { Random } from './random.js';
import { randomHex, writeRandomHex } from './randomIds.js';
import type { Traffic, TrafficCall } from './traffic.js';

/** Positions of the fixed-length fields in a body. */
interface SpanPlaces {
  traceId: number;
  spanId: number;
  responseId: number;
  start: number;
  end: number;
  session: number;
  user: number;
  durationMs: number;
  /** Position of the prompt's variable part; undefined: no prompt is sent. */
  secret: number | undefined;
}

const RESPONSE_ID_DIGITS = 24;
const NANOS_A_MILLI = 1_000_000;
/** Times of reports of one call in a storm differ by at most this, milliseconds. */
const STORM_MS = 60_000;
/** Two instrumentations of a service; equally long names. */
const SCOPES = ['bench-instrumentation', 'other-instrumentation'] as const;

/** A call that is reported again and again, with the id that its provider gave it. */
export interface KnownCall {
  call: TrafficCall;
  responseId: string;
}

/** Draws calls that all bodies of a storm report. */
export function drawKnownCalls(traffic: Traffic, count: number): KnownCall[] {
  return Array.from({ length: count }, () => ({
    call: traffic.draw(),
    responseId: randomHex(RESPONSE_ID_DIGITS),
  }));
}

/**
 * OTLP/JSON requests that are built once and then only get new ids, times, sessions and users in place. The client
 * shares the machine with the server, so its CPU time would reduce the measured rate.
 */
export class TraceBody {
  readonly bytes: Buffer;
  readonly calls: readonly KnownCall[];
  /** Position of the name of the instrumentation. */
  readonly #scope: number;
  readonly #places: SpanPlaces[] = [];
  readonly #prompts: PromptPlan | undefined;

  /** @param known the calls that the spans report; absent: each span is a call of its own. */
  constructor(
    traffic: Traffic,
    random: Random,
    spans: number,
    prompts?: PromptPlan,
    known: readonly KnownCall[] = drawKnownCalls(traffic, spans),
  ) {
    this.calls = known;
    this.#prompts = prompts;
    const marks = known.map(({ call, responseId }) => ({
      call,
      traceId: randomHex(32),
      spanId: randomHex(16),
      responseId,
      prompt: prompts ? drawPrompt(random, prompts.chars) : undefined,
      answer: prompts?.answerChars ? drawPrompt(random, prompts.answerChars) : undefined,
    }));
    this.bytes = Buffer.from(JSON.stringify(requestOf(marks)));
    let from = 0;
    const find = (text: string) => {
      const place = this.bytes.indexOf(text, from, 'latin1');
      if (place < 0) throw new Error(`the body lacks ${text}`);
      return place;
    };
    this.#scope = find(SCOPES[0]);
    for (const { call, traceId, spanId, responseId, prompt } of marks) {
      from = find(traceId);
      this.#places.push({
        traceId: from,
        spanId: find(spanId),
        responseId: find(responseId),
        start: find(START_NANOS),
        end: find(END_NANOS),
        session: find(call.sessionId),
        user: find(call.userId),
        durationMs: call.durationMs,
        secret: prompt === undefined ? undefined : find(prompt) + PROMPT_PLACE,
      });
    }
  }

  /** Turns every span into a new call that has just ended. */
  renew(traffic: Traffic, random: Random): void {
    const { bytes } = this;
    this.#writeScope(SCOPES[0]);
    for (const places of this.#places) {
      this.#writeSpan(places, random, Date.now());
      writeRandomHex(RESPONSE_ID_DIGITS, bytes, places.responseId);
      const session = traffic.drawSession();
      bytes.write(session.id, places.session, 'latin1');
      bytes.write(session.userId, places.user, 'latin1');
      if (places.secret !== undefined && this.#prompts)
        bytes.write(drawSecret(random, this.#prompts), places.secret, 'latin1');
    }
  }

  /** Turns every span into the report of the same call by the service's other instrumentation. */
  reportByOther(random: Random): void {
    this.#writeScope(SCOPES[1]);
    for (const places of this.#places) this.#writeSpan(places, random, Date.now());
  }

  /** Turns every span into another report of the same call, at some time of the last minute. */
  reportAgain(random: Random): void {
    for (const places of this.#places) this.#writeSpan(places, random, Date.now() - random.below(STORM_MS));
  }

  #writeScope(name: string): void {
    this.bytes.write(name, this.#scope, 'latin1');
  }

  /** Writes a new place in a trace, and the time. */
  #writeSpan(places: SpanPlaces, random: Random, endMs: number): void {
    const { bytes } = this;
    writeRandomHex(32, bytes, places.traceId);
    writeRandomHex(16, bytes, places.spanId);
    const nanos = random.below(NANOS_A_MILLI).toString().padStart(6, '0');
    bytes.write(`${endMs - places.durationMs}${nanos}`, places.start, 'latin1');
    bytes.write(`${endMs}${nanos}`, places.end, 'latin1');
  }
}

const START_NANOS = '1111111111111111111';
const END_NANOS = '2222222222222222222';

interface SpanMark {
  call: TrafficCall;
  traceId: string;
  spanId: string;
  responseId: string;
  prompt: string | undefined;
  answer: string | undefined;
}

/** A batch as an exporter sends it: one service, one scope, its spans. */
function requestOf(marks: readonly SpanMark[]) {
  return {
    resourceSpans: [
      {
        resource: {
          attributes: [
            text('service.name', marks[0]?.call.serviceName ?? ''),
            text('telemetry.sdk.language', 'nodejs'),
            text('telemetry.sdk.name', 'opentelemetry'),
            text('deployment.environment.name', 'production'),
          ],
        },
        scopeSpans: [{ scope: { name: SCOPES[0], version: '1.0.0' }, spans: marks.map(spanOf) }],
      },
    ],
  };
}

/** The attributes of a chat call in the GenAI conventions, and an application's labels. */
function spanOf({ call, traceId, spanId, responseId, prompt, answer }: SpanMark) {
  const prefix = call.provider === 'openai' ? 'chatcmpl-' : 'msg_';
  return {
    traceId,
    spanId,
    name: `chat ${call.model}`,
    kind: 3,
    startTimeUnixNano: START_NANOS,
    endTimeUnixNano: END_NANOS,
    attributes: [
      text('gen_ai.operation.name', 'chat'),
      text('gen_ai.provider.name', call.provider),
      text('gen_ai.request.model', call.model),
      integer('gen_ai.request.max_tokens', 4096),
      { key: 'gen_ai.request.temperature', value: { doubleValue: 0.2 } },
      text('gen_ai.response.model', call.responseModel),
      text('gen_ai.response.id', prefix + responseId),
      {
        key: 'gen_ai.response.finish_reasons',
        value: { arrayValue: { values: [{ stringValue: call.stopReason }] } },
      },
      integer('gen_ai.usage.input_tokens', call.inputTokens),
      integer('gen_ai.usage.output_tokens', call.outputTokens),
      integer('gen_ai.usage.cache_read.input_tokens', call.cachedTokens),
      integer('gen_ai.usage.reasoning.output_tokens', call.reasoningTokens),
      text('server.address', call.host),
      integer('server.port', 443),
      text('session.id', call.sessionId),
      text('user.id', call.userId),
      text('team_id', call.team),
      text('feature', call.feature),
      ...(prompt === undefined
        ? []
        : [text('gen_ai.input.messages', JSON.stringify([messageOf('user', prompt)]))]),
      ...(answer === undefined
        ? []
        : [text('gen_ai.output.messages', JSON.stringify([messageOf('assistant', answer)]))]),
    ],
    status: { code: 0 },
  };
}

/** A message in the format of the GenAI conventions. */
const messageOf = (role: string, content: string) => ({ role, parts: [{ type: 'text', content }] });
const text = (key: string, value: string) => ({ key, value: { stringValue: value } });
const integer = (key: string, value: number) => ({ key, value: { intValue: value } });
