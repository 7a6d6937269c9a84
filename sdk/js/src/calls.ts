import type { Configuration } from './configuration.js';
import { contextLabels, type Labels, mergeLabels } from './labels.js';
import { OpenVerdict, type PatternVerdict } from './patterns.js';
import { platform } from './platform.js';
import { messageOf, type Reporter, VERSION } from './reporter.js';
import { type CallBefore, type Enforcer, preventedUsd, type Rule, type Verdict } from './rules.js';
import { estimateTokens, promptText } from './texts.js';
import { tokensOf } from './usage.js';

/** One call from its request to its end: judged before, recorded once after. */

/** A call that a rule has stopped: it did not reach the provider. */
export class TrueupBlockedError extends Error {
  override readonly name = 'TrueupBlockedError';
  readonly ruleId: string;
  readonly ruleName: string | null;
  readonly ruleType: Rule['type'];
  /** Dollars as a decimal text; null: unknown. */
  readonly preventedUsd: string | null;

  constructor(rule: Rule, model: string, prevented: string | null) {
    super(`Trueup stopped this call of ${model}: ${sentenceOf(rule)} (rule ${rule.name ?? rule.id})`);
    this.ruleId = rule.id;
    this.ruleName = rule.name;
    this.ruleType = rule.type;
    this.preventedUsd = prevented;
  }
}

function sentenceOf(rule: Rule): string {
  switch (rule.type) {
    case 'token_ceiling':
      return `it has more than ${rule.maxTokens} tokens`;
    case 'session_budget_usd':
      return 'its session has spent its budget';
    case 'duplicate_window_seconds':
      return `an equal call began less than ${rule.windowMs / 1_000} seconds ago`;
    case 'max_tool_calls':
      return `its session has asked for tools more than ${rule.maxToolCalls} times`;
    case 'model_downgrade':
      return `calls of it are sent to ${rule.toModel}`;
  }
}

/** A request as a client makes it. */
export interface CallRequest {
  provider: string;
  model: string;
  /** Address of the API: it names who bills the call. */
  baseUrl: string | undefined;
  /** The parameters, only read. */
  body: unknown;
  maxOutputTokens: number | null;
  /** Of the observed client. */
  clientLabels: Labels | undefined;
  /** Of this call. */
  labels: Labels | undefined;
  /** The first characters of the provider's key, for the policy on keys and environments. */
  keyPrefix?: string | undefined;
}

/** The facts in an answer; each may be absent. */
export interface Reading {
  /** The provider's id of the request, where an answer has no id. */
  requestId?: string | undefined;
  responseId?: string | undefined;
  responseModel?: string | undefined;
  /** The provider's usage object, unchanged. */
  usage?: object | undefined;
  stopReason?: string | undefined;
  serviceTier?: string | undefined;
  /** The answer, where payloads are captured. */
  answer?: unknown;
}

export type EndStatus = 'ok' | 'error' | 'cancelled';

/** A call whose answer is read later: an item of a batch, or a response made in the background. */
export interface LaterCall extends Reading {
  provider: string;
  model: string;
  baseUrl: string | undefined;
  isBatch?: boolean;
  batchId?: string | undefined;
  /** Milliseconds since 1970; the same whenever the answer is read, so that it counts once. */
  at: number;
  status: EndStatus;
  labels: Labels | undefined;
}

export interface RecorderOptions {
  labels: Labels;
  service: string | undefined;
  capturePayloads: boolean;
  onVerdict:
    | ((verdict: { verdict: Verdict['verdict']; ruleId: string | null; observed: string[] }) => void)
    | undefined;
  onError: (error: Error) => void;
}

const PAYLOAD_CHARS_MAX = 262_144;
const ALLOWED: Verdict = { verdict: 'allowed', rule: null, model: null, observed: [] };

/** Takes the calls of observed clients. */
export interface Recorder {
  /** Whether it neither judges nor records. */
  readonly isSilent: boolean;
  readonly capturesPayloads: boolean;
  /** @throws TrueupBlockedError where a rule stops the call; never anything else. */
  begin(request: CallRequest): OpenCall;
  /** Records the end of a call that was made. */
  end(call: OpenCall, status: EndStatus, reading: Reading, httpStatus: number | undefined): void;
  /** Records a call whose answer is read later. No rule judges it: it was made before. */
  recordLater(call: LaterCall): void;
  reportError(error: unknown): void;
}

/** Of a connection to the service. */
export class ServiceRecorder implements Recorder {
  readonly isSilent = false;
  readonly #options: RecorderOptions;
  readonly #enforcer: Enforcer;
  readonly #configuration: Configuration;
  readonly #reporter: Reporter;

  constructor(
    options: RecorderOptions,
    parts: { enforcer: Enforcer; configuration: Configuration; reporter: Reporter },
  ) {
    this.#options = options;
    this.#enforcer = parts.enforcer;
    this.#configuration = parts.configuration;
    this.#reporter = parts.reporter;
  }

  get capturesPayloads(): boolean {
    return this.#options.capturePayloads;
  }

  begin(request: CallRequest): OpenCall {
    let verdict = ALLOWED;
    const labels = mergeLabels(this.#options.labels, request.clientLabels, contextLabels(), request.labels);
    const before = beforeOf(request, labels);
    try {
      if (!platform().hasTimers) this.#configuration.refreshIfDue();
      verdict = this.#enforcer.judge(before);
      if (verdict.verdict !== 'allowed' || verdict.observed.length > 0)
        this.#options.onVerdict?.({
          verdict: verdict.verdict,
          ruleId: verdict.rule?.id ?? null,
          observed: verdict.observed,
        });
    } catch (error) {
      this.reportError(error);
    }
    if (verdict.verdict === 'blocked' && verdict.rule) {
      const prevented = preventedUsd(before, this.#configuration.prices);
      this.#reporter.add(this.#blockedEvent(request, before, labels, verdict.rule, prevented));
      throw new TrueupBlockedError(verdict.rule, request.model, prevented);
    }
    return new OpenCall(this, request, before, labels, verdict, this.#openVerdict(request.body));
  }

  /** Undefined: the service sees the prompts, or there is no pattern to search for. */
  #openVerdict(body: unknown): OpenVerdict | undefined {
    const { patterns } = this.#configuration;
    return patterns === undefined || this.#options.capturePayloads
      ? undefined
      : new OpenVerdict(patterns, body);
  }

  end(call: OpenCall, status: EndStatus, reading: Reading, httpStatus: number | undefined): void {
    const { request, before, labels, verdict } = call;
    const model = verdict.model ?? request.model;
    const cost = this.#costOf(status, reading, model);
    const stopReason = reading.stopReason ?? (status === 'ok' ? 'unknown' : status);
    this.#enforcer.letThrough(before, { status, stopReason, cost });
    this.#reporter.add(
      eventOf(request, labels, before.at, reading, {
        model,
        durationMs: Math.max(0, Math.round(Date.now() - before.at)),
        status,
        httpStatus,
        service: this.#serviceOf(request, labels, verdict, this.#patternVerdictOf(call.patternVerdict)),
        payload: this.#payloadOf(request.body, reading.answer),
      }),
    );
  }

  recordLater(call: LaterCall): void {
    try {
      const labels = mergeLabels(this.#options.labels, call.labels, contextLabels());
      this.#reporter.add(
        eventOf(call, labels, call.at, call, {
          model: call.model,
          status: call.status,
          isBatch: call.isBatch,
          batchId: call.batchId,
          service: this.#serviceOf(undefined, labels, undefined),
        }),
      );
    } catch (error) {
      this.reportError(error);
    }
  }

  reportError(error: unknown): void {
    try {
      this.#options.onError(error instanceof Error ? error : new Error(messageOf(error)));
    } catch {
      // The application's own handler must not break its call.
    }
  }

  #costOf(status: EndStatus, { usage, responseModel }: Reading, model: string): bigint | null {
    const tokens = tokensOf(usage);
    if (tokens === undefined) return status === 'error' ? 0n : null;
    const { prices } = this.#configuration;
    const priced = responseModel !== undefined && prices.find(responseModel) ? responseModel : model;
    return prices.cost(priced, tokens) ?? null;
  }

  #blockedEvent(
    request: CallRequest,
    before: CallBefore,
    labels: Labels,
    rule: Rule,
    prevented: string | null,
  ): object {
    const service = this.#serviceOf(
      request,
      labels,
      undefined,
      this.#patternVerdictOf(this.#openVerdict(request.body)),
    );
    return eventOf(request, labels, before.at, NO_READING, {
      model: request.model,
      status: 'blocked',
      blockedRuleId: rule.id,
      preventedUsd: prevented,
      inputTokens: before.inputTokens(),
      outputTokens: before.maxOutputTokens,
      service,
      payload: this.#payloadOf(request.body, undefined),
    });
  }

  /** Undefined: no verdict, also where a prompt cannot be read. */
  #patternVerdictOf(open: OpenVerdict | undefined): PatternVerdict | undefined {
    try {
      return open?.get();
    } catch (error) {
      this.reportError(error);
      return undefined;
    }
  }

  #serviceOf(
    request: CallRequest | undefined,
    labels: Labels,
    verdict: Verdict | undefined,
    patternVerdict?: PatternVerdict,
  ) {
    const isDowngraded = verdict?.verdict === 'downgraded';
    return {
      sdk: `trueup-sdk-js/${VERSION}`,
      name: this.#options.service,
      environment: labels.environment,
      api_key_prefix: request?.keyPrefix,
      observed_rules: verdict && verdict.observed.length > 0 ? verdict.observed : undefined,
      downgraded_from: isDowngraded ? request?.model : undefined,
      downgraded_by: isDowngraded ? verdict.rule?.id : undefined,
      policy_verdict: patternVerdict,
    };
  }

  #payloadOf(body: unknown, answer: unknown): unknown {
    if (!this.#options.capturePayloads || typeof body !== 'object' || body === null) return undefined;
    try {
      const payload = answer === undefined ? body : { ...body, response: answer };
      const text = JSON.stringify(payload);
      return text.length > PAYLOAD_CHARS_MAX ? { _truncated: true, bytes: text.length } : JSON.parse(text);
    } catch {
      // A body that is no JSON, such as an upload.
      return undefined;
    }
  }
}

/** Of a connection without an address: it only takes the labels away that the provider must not see. */
export const SILENT_RECORDER: Recorder = {
  isSilent: true,
  capturesPayloads: false,
  begin: (request) => new OpenCall(SILENT_RECORDER, request, beforeOf(request, {}), {}, ALLOWED, undefined),
  end: () => undefined,
  recordLater: () => undefined,
  reportError: () => undefined,
};

const NO_READING: Reading = {};

interface EventFields {
  model: string;
  status: EndStatus | 'blocked';
  service: object;
  durationMs?: number;
  httpStatus?: number | undefined;
  isBatch?: boolean | undefined;
  batchId?: string | undefined;
  blockedRuleId?: string;
  preventedUsd?: string | null;
  inputTokens?: number | null;
  outputTokens?: number | null;
  payload?: unknown;
}

/** The event of a call. Undefined fields are not sent. One literal, because spreading is slower than all the rest. */
function eventOf(
  { provider, baseUrl }: Pick<CallRequest, 'provider' | 'baseUrl'>,
  labels: Labels,
  at: number,
  reading: Reading,
  fields: EventFields,
): object {
  return {
    provider,
    timestamp: new Date(at).toISOString(),
    base_url: baseUrl,
    session_id: labels.session,
    team_id: labels.team,
    feature: labels.feature,
    user_id: labels.user,
    project_id: labels.project,
    request_id: reading.responseId ?? reading.requestId ?? newId(),
    response_id: reading.responseId,
    response_model: reading.responseModel,
    usage: reading.usage,
    stop_reason: reading.stopReason,
    service_tier: reading.serviceTier,
    model: fields.model,
    duration_ms: fields.durationMs,
    status: fields.status,
    http_status: fields.httpStatus,
    is_batch: fields.isBatch,
    batch_id: fields.batchId,
    blocked_rule_id: fields.blockedRuleId,
    prevented_usd: fields.preventedUsd ?? undefined,
    input_tokens: fields.inputTokens ?? undefined,
    output_tokens: fields.outputTokens ?? undefined,
    _service: fields.service,
    payload: fields.payload,
  };
}

/** A call that was let through. The first end that is reported counts. */
export class OpenCall {
  readonly request: CallRequest;
  readonly before: CallBefore;
  readonly labels: Labels;
  readonly verdict: Verdict;
  /** On the banned patterns; undefined: none is made. */
  readonly patternVerdict: OpenVerdict | undefined;
  readonly #recorder: Recorder;
  #isEnded = false;

  constructor(
    recorder: Recorder,
    request: CallRequest,
    before: CallBefore,
    labels: Labels,
    verdict: Verdict,
    patternVerdict: OpenVerdict | undefined,
  ) {
    this.patternVerdict = patternVerdict;
    this.#recorder = recorder;
    this.request = request;
    this.before = before;
    this.labels = labels;
    this.verdict = verdict;
  }

  /** The model that replaces the requested one; undefined: none does. */
  get newModel(): string | undefined {
    return this.verdict.model ?? undefined;
  }

  get capturesPayloads(): boolean {
    return this.#recorder.capturesPayloads;
  }

  end(status: EndStatus, reading: Reading, httpStatus?: number): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    try {
      this.#recorder.end(this, status, reading, httpStatus);
    } catch (error) {
      this.#recorder.reportError(error);
    }
  }

  /** The call ended by an error: the caller's own end is `cancelled`. */
  fail(error: unknown, reading: Reading = {}): void {
    const { status, statusCode, $metadata } = (error ?? {}) as Record<string, unknown>;
    const http =
      status ?? statusCode ?? ($metadata as { httpStatusCode?: unknown } | undefined)?.httpStatusCode;
    const isHttp = typeof http === 'number' && http >= 100 && http <= 599;
    this.end(isAbort(error) ? 'cancelled' : 'error', reading, isHttp ? http : undefined);
  }
}

const ABORTED = /^(?:AbortError|APIUserAbortError|RequestAbortedError|ResponseAborted)$/;

function isAbort(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return false;
  const { name } = error as { name?: unknown };
  return (
    (typeof name === 'string' && ABORTED.test(name)) ||
    ABORTED.test((error as object).constructor?.name ?? '')
  );
}

/** The facts that rules need, computed at most once and only where a rule asks for them. */
function beforeOf(request: CallRequest, labels: Labels): CallBefore {
  let tokens: number | null | undefined;
  let digest: string | null | undefined;
  return {
    at: Date.now(),
    biller: `${request.provider} ${request.baseUrl ?? ''}`,
    model: request.model,
    team: labels.team ?? null,
    feature: labels.feature ?? null,
    session: labels.session === undefined || labels.session === '' ? null : labels.session,
    maxOutputTokens: request.maxOutputTokens,
    inputTokens() {
      if (tokens === undefined) tokens = estimateTokens(request.body);
      return tokens;
    },
    promptDigest() {
      if (digest === undefined) {
        const text = promptText(request.body);
        digest = text === null ? null : platform().digest(text);
      }
      return digest;
    },
  };
}

function newId(): string {
  return `trueup-${platform().randomId()}`;
}
