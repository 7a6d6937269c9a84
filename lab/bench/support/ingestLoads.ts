import type { ReportPlan } from './loadClient.js';
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
  /** Absent: each call is reported once. */
  reports?: ReportPlan;
  /** Minimum share of the ceiling. */
  ratioMin?: number;
  /** Minimum share of the rate of the same load with each call reported once, measured in the same round. */
  plainRatioMin?: number;
  /** Minimum of committed events a second on two idle cores. */
  rateMin?: number;
  /** Minimum of committed events for one CPU second of all servers: API, worker and Postgres. */
  eventsOfCpuSecondMin?: number;
}

/** Minimum share of its rate that an organization keeps beside another one's storm. */
export const NEIGHBOUR_RATIO_MIN = 0.7;
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
  ...[TWENTY, ONE].flatMap(({ organizations }) =>
    [1, 20].flatMap((spansPerRequest): IngestLoad[] => {
      const name = organizations === 1 ? '1 organization' : `${organizations} organizations`;
      const load = { organizations, connections: 200, spansPerRequest };
      return [
        {
          ...load,
          name: `${name}, calls reported twice`,
          repeatPercent: 0,
          reports: 'twice',
          plainRatioMin: 0.5,
        },
        { ...load, name: `${name}, 10 % repeats`, repeatPercent: 10, plainRatioMin: 0.5 },
      ];
    }),
  ),
  ...[1, 20].map(
    (spansPerRequest): IngestLoad => ({
      name: 'storm of repeats',
      ...ONE,
      connections: 64,
      spansPerRequest,
      reports: 'storm',
      plainRatioMin: 0.3,
    }),
  ),
];

/** The same load with each call reported once. */
export function plainLoadOf({ organizations, connections, spansPerRequest }: IngestLoad): IngestLoad {
  return { name: 'plain', organizations, connections, spansPerRequest, repeatPercent: 0 };
}

/** The load in words: `1 organization, 32 connections, 20 spans a request`. */
export function wordsOf({ name, connections, spansPerRequest }: IngestLoad): string {
  return `${name}, ${connections} connections, ${spansPerRequest} span${spansPerRequest > 1 ? 's' : ''} a request`;
}
