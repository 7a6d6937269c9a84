/**
 * Draws a plan of calls from a seed: every kind of usage and fate that the issue names, for the interfaces
 * that a client can use, with token counts by chance.
 */
import type { CallApi, CallFate, PlannedCall, TrueUsage } from '../../fakes/plannedCall.js';
import { SeededRandom } from '../../fakes/seededRandom.js';

/** The kinds of calls that a client can make. */
export interface PlanScope {
  apis: readonly CallApi[];
  /** The client has `messages.stream()`. */
  hasStreamHelper: boolean;
  /** false: the program makes no streams. */
  hasStreams: boolean;
}

type UsageKind = 'none' | 'all_cached' | 'partly_cached' | 'reasoning' | 'cache_write' | 'long';

interface ModelName {
  asked: string;
  answers: string;
}

/** Aliases and the snapshots behind them, as the price data knows them; one fine-tuned, one without a price. */
const CHAT_MODELS: readonly ModelName[] = [
  { asked: 'gpt-4o', answers: 'gpt-4o-2024-08-06' },
  // Answered by an older snapshot, which has a separate price and none for cached input.
  { asked: 'gpt-4o', answers: 'gpt-4o-2024-05-13' },
  { asked: 'gpt-4.1-mini', answers: 'gpt-4.1-mini-2025-04-14' },
  { asked: 'gpt-5-mini', answers: 'gpt-5-mini-2025-08-07' },
  { asked: 'o4-mini', answers: 'o4-mini-2025-04-16' },
];
const FINE_TUNED_MODEL: ModelName = {
  asked: 'ft:gpt-4o-2024-08-06:acme::a1b2c3',
  answers: 'ft:gpt-4o-2024-08-06:acme::a1b2c3',
};
const UNPRICED_MODEL: ModelName = { asked: 'gpt-0-unlisted', answers: 'gpt-0-unlisted' };
/** Has a long-context band above 272,000 input tokens and a price for cache writes. */
const LONG_MODEL: ModelName = { asked: 'gpt-6-sol', answers: 'gpt-6-sol' };
const EMBEDDING_MODELS: readonly ModelName[] = [
  { asked: 'text-embedding-3-small', answers: 'text-embedding-3-small' },
  { asked: 'text-embedding-3-large', answers: 'text-embedding-3-large' },
];
const CLAUDE_MODELS: readonly ModelName[] = [
  { asked: 'claude-haiku-4-5', answers: 'claude-haiku-4-5-20251001' },
  { asked: 'claude-opus-4-5', answers: 'claude-opus-4-5-20251101' },
  { asked: 'claude-opus-5-5', answers: 'claude-opus-5-5' },
  { asked: 'claude-sonnet-4-20250514', answers: 'claude-sonnet-4-20250514' },
];
/** Has a long-context band above 200,000 input tokens. */
const LONG_CLAUDE: ModelName = { asked: 'claude-sonnet-4-5', answers: 'claude-sonnet-4-5-20250929' };
const LONG_TOKENS_MIN = 300_000;
const LONG_TOKENS_MAX = 900_000;
const PARALLEL_CALLS = 3;

/** Equal seeds and scopes result in equal plans. */
export function drawPlan(seed: number, scope: PlanScope): PlannedCall[] {
  const drawing = new Drawing(new SeededRandom(seed));
  for (const api of scope.apis) {
    if (api === 'embeddings') drawing.addEmbeddings();
    else drawing.addConversations(api, scope.hasStreamHelper);
  }
  return scope.hasStreams ? drawing.calls : drawing.calls.filter((call) => !call.isStream);
}

class Drawing {
  readonly calls: PlannedCall[] = [];
  private batch = 0;

  constructor(private readonly random: SeededRandom) {}

  addConversations(api: Exclude<CallApi, 'embeddings'>, hasStreamHelper: boolean): void {
    for (const kind of ['none', 'all_cached', 'partly_cached', 'reasoning', 'cache_write', 'long'] as const) {
      this.add(api, this.modelFor(api, kind), kind, { isStream: this.random.integer(0, 1) === 1 });
    }
    if (api !== 'messages') this.add(api, FINE_TUNED_MODEL, 'partly_cached', {});
    if (api !== 'messages') this.add(api, UNPRICED_MODEL, 'none', {});
    this.add(api, this.modelFor(api, 'partly_cached'), 'partly_cached', { isStream: true });
    if (api === 'chat')
      this.add(api, this.modelFor(api, 'none'), 'none', { isStream: true, asksForUsage: false });
    if (hasStreamHelper) {
      this.add(api, this.modelFor(api, 'cache_write'), 'cache_write', {
        isStream: true,
        isStreamHelper: true,
      });
    }
    for (const fate of ['retry429', 'retry500', 'fail400', 'fail429'] as const) {
      this.add(api, this.modelFor(api, 'reasoning'), 'reasoning', { fate });
    }
    this.add(api, this.modelFor(api, 'none'), 'none', { isStream: true, fate: 'abort' });
    this.addParallelEqual(api);
  }

  addEmbeddings(): void {
    for (const fate of ['ok', 'retry429', 'fail400'] as const) {
      const usage = { ...NO_USAGE, uncachedInput: this.random.integer(1, 8_000) };
      this.addCall('embeddings', this.random.pick(EMBEDDING_MODELS), usage, { fate });
    }
  }

  /** Calls that are started at once and have the same model and the same usage: only their ids differ. */
  private addParallelEqual(api: CallApi): void {
    const model = this.modelFor(api, 'partly_cached');
    const usage = this.usageOf('partly_cached', api);
    for (let index = 0; index < PARALLEL_CALLS; index += 1) {
      this.addCall(api, model, usage, {});
      this.batch -= 1;
    }
    this.batch += 1;
  }

  private add(api: CallApi, model: ModelName, kind: UsageKind, details: Partial<PlannedCall>): void {
    this.addCall(api, model, this.usageOf(kind, api), details);
  }

  private addCall(api: CallApi, model: ModelName, usage: TrueUsage, details: Partial<PlannedCall>): void {
    this.calls.push({
      id: `call-${this.calls.length + 1}`,
      api,
      model: model.asked,
      responseModel: model.answers,
      isStream: false,
      isStreamHelper: false,
      asksForUsage: true,
      fate: 'ok' satisfies CallFate,
      batch: this.batch,
      usage,
      ...details,
    });
    this.batch += 1;
  }

  private modelFor(api: CallApi, kind: UsageKind): ModelName {
    if (api === 'messages') return kind === 'long' ? LONG_CLAUDE : this.random.pick(CLAUDE_MODELS);
    // OpenAI bills cache writes for its newest models only.
    return kind === 'long' || kind === 'cache_write' ? LONG_MODEL : this.random.pick(CHAT_MODELS);
  }

  private usageOf(kind: UsageKind, api: CallApi): TrueUsage {
    const { random } = this;
    const output = random.integer(1, 4_000);
    const usage = { ...NO_USAGE, output };
    switch (kind) {
      case 'none':
        return { ...usage, uncachedInput: random.integer(1, 20_000) };
      case 'all_cached':
        return { ...usage, cacheRead: random.integer(1_024, 50_000) };
      case 'partly_cached':
        return {
          ...usage,
          uncachedInput: random.integer(1, 5_000),
          cacheRead: random.integer(1_024, 50_000),
        };
      case 'reasoning':
        return { ...usage, uncachedInput: random.integer(1, 5_000), reasoning: random.integer(1, output) };
      case 'cache_write':
        return {
          ...usage,
          uncachedInput: random.integer(1, 5_000),
          cacheRead: random.integer(0, 2_000),
          cacheWrite5m: random.integer(1_024, 30_000),
          cacheWrite1h: api === 'messages' ? random.integer(1_024, 30_000) : 0,
        };
      case 'long':
        return {
          ...usage,
          uncachedInput: random.integer(LONG_TOKENS_MIN, LONG_TOKENS_MAX),
          cacheRead: random.integer(1_024, 50_000),
        };
    }
  }
}

const NO_USAGE: TrueUsage = {
  uncachedInput: 0,
  cacheRead: 0,
  cacheWrite5m: 0,
  cacheWrite1h: 0,
  output: 0,
  reasoning: 0,
};
