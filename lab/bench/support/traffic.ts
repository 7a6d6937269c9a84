import { Random } from './random.js';

/** One call to a provider, as an application would trace it. */
export interface TrafficCall {
  provider: 'openai' | 'anthropic';
  host: string;
  model: string;
  responseModel: string;
  team: string;
  feature: string;
  userId: string;
  sessionId: string;
  inputTokens: number;
  cachedTokens: number;
  outputTokens: number;
  reasoningTokens: number;
  durationMs: number;
  stopReason: string;
  serviceName: string;
}

const MODELS = [
  { provider: 'openai', model: 'gpt-4o', responseModel: 'gpt-4o-2024-08-06' },
  { provider: 'openai', model: 'gpt-4o-mini', responseModel: 'gpt-4o-mini-2024-07-18' },
  { provider: 'openai', model: 'o3-mini', responseModel: 'o3-mini-2025-01-31' },
  { provider: 'anthropic', model: 'claude-sonnet-4-5', responseModel: 'claude-sonnet-4-5' },
  { provider: 'anthropic', model: 'claude-haiku-4-5', responseModel: 'claude-haiku-4-5' },
  { provider: 'anthropic', model: 'claude-opus-4-1', responseModel: 'claude-opus-4-1' },
] as const;

const HOSTS = { openai: 'api.openai.com', anthropic: 'api.anthropic.com' } as const;
const TEAMS = ['support', 'search', 'billing', 'growth', 'research', 'platform', 'legal', 'mobile'];
const FEATURES = ['chat', 'summarize', 'classify', 'extract', 'draft-reply', 'rerank', 'translate', 'agent'];
const SERVICES = ['assistant-api', 'ingest-worker', 'backoffice'];
/** A tenth of the calls starts a session, so the number of sessions grows with the calls. */
const CALLS_A_SESSION = 10;

/** The users of an organization, by number. */
export interface UserRange {
  first: number;
  count: number;
}

/** Draws calls of an organization's users, in sessions of ten calls on average. */
export class Traffic {
  readonly #random: Random;
  readonly #sessions: { id: string; userId: string }[] = [];

  readonly #openSessions: number;
  readonly #users: UserRange;

  /** @param openSessions concurrent sessions. */
  constructor(seed: number, openSessions: number, users: UserRange) {
    this.#random = new Random(seed);
    this.#openSessions = openSessions;
    this.#users = users;
  }

  draw(): TrafficCall {
    const random = this.#random;
    const model = random.pick(MODELS);
    const session = this.drawSession();
    const inputTokens = random.between(200, 8_000);
    const outputTokens = random.between(20, 1_500);
    return {
      ...model,
      host: HOSTS[model.provider],
      team: random.pick(TEAMS),
      feature: random.pick(FEATURES),
      userId: session.userId,
      sessionId: session.id,
      inputTokens,
      cachedTokens: random.below(3) === 0 ? random.below(inputTokens) : 0,
      outputTokens,
      reasoningTokens: model.model === 'o3-mini' ? random.below(outputTokens) : 0,
      durationMs: random.between(200, 20_000),
      stopReason: model.provider === 'openai' ? 'stop' : 'end_turn',
      serviceName: random.pick(SERVICES),
    };
  }

  /** The session and user of the next call; both ids have a fixed length. */
  drawSession(): { id: string; userId: string } {
    const random = this.#random;
    const place = random.below(this.#openSessions);
    const open = this.#sessions[place];
    if (open && random.below(CALLS_A_SESSION) !== 0) return open;
    const fresh = {
      id: `sess_${random.hex(24)}`,
      userId: `user-${String(this.#users.first + random.below(this.#users.count)).padStart(5, '0')}`,
    };
    this.#sessions[place] = fresh;
    return fresh;
  }
}
