import pg from 'pg';
import { OrgDb } from '../../../db/orgDb.js';
import { type PolicyToPut, putPolicy } from '../../../db/policies/policies.js';
import { openBenchDatabase } from './cluster.js';
import { type IngestBench, type Measured, measureProduct, whereTheTimeWent } from './ingestRuns.js';
import { BENCH_PATTERNS, type PromptPlan } from './promptTexts.js';
import { formatCount, median } from './statistics.js';

/** Minimum share of the rate without policies. */
const TARGET = 0.85;
const PROMPTS: PromptPlan = { chars: 512, matchPercent: 5 };
const WARM_UP_SECONDS = 3;
const OF_PRODUCT = ['api', 'Postgres trueup-api'];

/** One policy of each of the four types; the traffic breaks only the patterns. */
const POLICIES: readonly PolicyToPut[] = [
  {
    type: 'approved_models',
    config: {
      models: [
        'gpt-4o',
        'gpt-4o-mini',
        'o3-mini',
        'claude-sonnet-4-5',
        'claude-haiku-4-5',
        'claude-opus-4-1',
      ],
    },
    enabled: true,
    skipped: [],
  },
  { type: 'banned_patterns', config: { regexes: BENCH_PATTERNS }, enabled: true, skipped: [] },
  {
    type: 'key_environment_check',
    config: { prod_key_prefixes: ['tu_live_'], allowed_envs: ['production'] },
    enabled: true,
    skipped: [],
  },
  {
    type: 'approval_required_threshold_cents',
    config: { threshold_cents: 100_000 },
    enabled: true,
    skipped: [],
  },
];

export interface PolicyPlan {
  /** Spans per request. */
  sizes: readonly number[];
  rounds: number;
  seconds: number;
  seed: number;
}

interface Pair {
  without: Measured;
  with: Measured;
}

/**
 * Alternates the same traffic with all four policies and without any, so that other load on the machine and the
 * growth of the tables affect both. Every call has a prompt in both cases.
 */
export async function comparePolicies(
  bench: IngestBench,
  plan: PolicyPlan,
): Promise<{ isGood: boolean; runs: Measured[] }> {
  const runs: Measured[] = [];
  const run = async (spansPerRequest: number, seconds: number, enabled: boolean) => {
    await putPolicies(bench, enabled);
    // Each run has another seed, since ids of an earlier run would be repeated calls.
    const seed = plan.seed + runs.length;
    const measured = await measureProduct(bench, { spansPerRequest, seconds, seed, prompts: PROMPTS });
    runs.push(measured);
    return measured;
  };
  let isGood = true;
  for (const size of plan.sizes) {
    for (const enabled of [false, true]) await run(size, WARM_UP_SECONDS, enabled);
    const pairs: Pair[] = [];
    for (let round = 0; round < plan.rounds; round += 1) {
      const measured: Partial<Pair> = {};
      const turns = round % 2 === 0 ? (['without', 'with'] as const) : (['with', 'without'] as const);
      for (const turn of turns) measured[turn] = await run(size, plan.seconds, turn === 'with');
      const pair = measured as Pair;
      pairs.push(pair);
      process.stdout.write(
        `round ${round + 1}, ${size} spans: without ${formatCount(pair.without.rate)}/s, with ${formatCount(pair.with.rate)}/s ` +
          `(${(pair.with.rate / pair.without.rate).toFixed(2)})\n`,
      );
    }
    if (!reportPairs(size, pairs)) isGood = false;
  }
  process.stdout.write(`alerts: ${await alertShare(bench)}\n`);
  return { isGood, runs };
}

function reportPairs(size: number, pairs: readonly Pair[]): boolean {
  const ratio = median(pairs.map((pair) => pair.with.rate / pair.without.rate));
  const refused = pairs.reduce((sum, pair) => sum + pair.with.refused + pair.without.refused, 0);
  for (const which of ['without', 'with'] as const) {
    const runs = pairs.map((pair) => pair[which]);
    process.stdout.write(
      `${which} policies, ${size} span${size > 1 ? 's' : ''} a request: ${formatCount(median(runs.map(({ rate }) => rate)))} committed events/s, ` +
        `p99 ${median(runs.map(({ p99Ms }) => p99Ms)).toFixed(1)} ms, CPU µs/event: ${whereTheTimeWent(runs)}\n`,
    );
  }
  process.stdout.write(
    `policies, ${size} span${size > 1 ? 's' : ''} a request: refused ${refused}, by CPU time of the API and its backends ${cpuRatio(pairs).toFixed(2)}, ` +
      `target ${TARGET.toFixed(2)}, ratio=${ratio.toFixed(2)}\n`,
  );
  return ratio >= TARGET && refused === 0;
}

/** CPU time per event without policies as a share of that with them, which is robust on a busy machine. */
function cpuRatio(pairs: readonly Pair[]): number {
  const costOf = (which: keyof Pair) => {
    const spent = pairs.map((pair) => OF_PRODUCT.map((name) => pair[which].cpuSecondsOf.get(name) ?? 0));
    const events = pairs.reduce((sum, pair) => sum + pair[which].accepted, 0);
    return spent.flat().reduce((sum, seconds) => sum + seconds, 0) / events;
  };
  return costOf('without') / costOf('with');
}

async function putPolicies({ url, organizations }: IngestBench, enabled: boolean): Promise<void> {
  const database = openBenchDatabase(url, 1);
  for (const { orgId } of organizations)
    for (const policy of POLICIES)
      await putPolicy(new OrgDb(database, orgId), { ...policy, enabled }, 'bench');
  await database.close();
}

/** Alerts as a share of the judged events; each run with policies counts its own. */
async function alertShare({ url }: IngestBench): Promise<string> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query<{ alerts: number; events: number }>(
    'select (select count(*)::int from alerts) as alerts, (select count(*)::int from events) as events',
  );
  await client.end();
  const { alerts = 0, events = 0 } = rows[0] ?? {};
  return `${formatCount(alerts)} for ${formatCount(events)} events, of which about half were judged`;
}
