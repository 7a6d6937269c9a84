import type { PromptPlan } from './promptTexts.js';

/** One row of bench:ingest: what is sent, and what must be reached. */
export interface IngestLoad {
  name: string;
  organizations: number;
  connections: number;
  spansPerRequest: number;
  /** Percentage of requests that are sent twice. */
  repeatPercent: number;
  prompts?: PromptPlan;
  /** Minimum share of the ceiling. */
  ratioMin?: number;
  /** Minimum of committed events a second on two idle cores. */
  rateMin?: number;
  /** Minimum of committed events for one CPU second of all servers: API, worker and Postgres. */
  eventsOfCpuSecondMin?: number;
}

/** Longest time of 99 % of the answers at 200 connections, milliseconds. */
export const P99_MS_MAX = 250;
/** Most memory of the API, bytes. */
export const RSS_BYTES_MAX = 450 * 1_048_576;

/** Messages that make a span of 20 in a request 2.3 kB long. */
export const MESSAGES: PromptPlan = { chars: 400, answerChars: 160, matchPercent: 0 };

const ONE = { organizations: 1, repeatPercent: 0 } as const;
const TWENTY = { organizations: 20, repeatPercent: 0 } as const;

export const INGEST_LOADS: readonly IngestLoad[] = [
  { name: '20 organizations', ...TWENTY, connections: 200, spansPerRequest: 1, ratioMin: 0.2 },
  { name: '20 organizations', ...TWENTY, connections: 200, spansPerRequest: 20, ratioMin: 0.5 },
  { name: '1 organization', ...ONE, connections: 200, spansPerRequest: 1, ratioMin: 0.2 },
  { name: '1 organization', ...ONE, connections: 200, spansPerRequest: 20, ratioMin: 0.5 },
  { name: '1 organization', ...ONE, connections: 32, spansPerRequest: 1, ratioMin: 0.15 },
  {
    name: '1 organization with messages',
    ...ONE,
    connections: 32,
    spansPerRequest: 1,
    prompts: MESSAGES,
    rateMin: 6_000,
    eventsOfCpuSecondMin: 4_000,
  },
  {
    name: '1 organization with messages',
    ...ONE,
    connections: 32,
    spansPerRequest: 20,
    prompts: MESSAGES,
    rateMin: 20_000,
    eventsOfCpuSecondMin: 12_000,
  },
];

/** The load in words: `1 organization, 32 connections, 20 spans a request`. */
export function wordsOf({ name, connections, spansPerRequest }: IngestLoad): string {
  return `${name}, ${connections} connections, ${spansPerRequest} span${spansPerRequest > 1 ? 's' : ''} a request`;
}
