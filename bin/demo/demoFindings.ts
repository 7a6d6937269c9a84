import { ask, bodyOf, type LoadedDemo, type ServiceClient } from './demoLoad.js';

// biome-ignore lint/suspicious/noExplicitAny: answers are the API's own, whose schemas its tests hold
type Json = any;

/** What the product found in the demo, as its own answers say. */
export interface DemoFindings {
  /** Buckets of the last 90 days. */
  gaps: Json[];
  /** Rates that do not fit, from the run. */
  rates: Json[];
  differences: Json[];
  /** What explains the differences. */
  findings: Json[];
  /** What all of it comes to, in dollars. */
  financial: Json;
  /** Keys on the bill that nobody knows, or that were revoked. */
  suspectKeys: Json[];
  /** Of the last complete month. */
  statement: Json;
  /** Calls that break a policy. */
  alerts: Json[];
  /** What the rules would have saved. */
  savings: Json;
}

export async function readFindings(client: ServiceClient, loaded: LoadedDemo): Promise<DemoFindings> {
  const get = async (path: string) => bodyOf(await ask(client, 'GET', path), `GET ${path}`, [200]);
  const { gaps } = await get('/api/v1/reconciliation/gap-explorer?period=90d');
  const summary = await get('/api/v1/reconciliation/summary');
  const statement = await get(`/api/v1/reconciliation/statement?period=${summary.period}`);
  const { findings } = await get('/api/v1/financial/findings?limit=1000');
  const financial = await get('/api/v1/financial/summary');
  const { alerts } = await get('/api/v1/alerts?kind=policy&limit=1000');
  const { result } = loaded.run;
  return {
    gaps,
    rates: result.rate_mismatches,
    differences: result.source_differences,
    findings,
    financial,
    suspectKeys: result.suspect_keys,
    statement,
    alerts,
    savings: loaded.savings,
  };
}

/** Findings of consecutive days of one model and cause, as one line. */
export interface FlaggedRun {
  provider: string;
  model: string;
  firstDay: string;
  lastDay: string;
  days: number;
  billedUsd: number;
  oursUsd: number;
  cause: string;
}

const DAY_MS = 86_400_000;
const dayOf = (gap: Json): string => gap.bucket.slice(0, 10);
const isNextDay = (day: string, next: string): boolean => Date.parse(next) - Date.parse(day) === DAY_MS;

/** What a flagged bucket says of itself, in words. */
function causeOf(gap: Json): string {
  if (gap.match_status === 'unmatched') return 'no call of ours';
  if (gap.unobserved_minutes) return `${gap.unobserved_minutes / 60} h without our calls`;
  const parts = gap.gap_parts;
  if (parts === null) return 'amount alone';
  return Math.abs(parts.rate_usd) >= Math.abs(parts.volume_usd) ? 'rate' : 'quantity';
}

/** Flagged buckets, oldest first, with days that follow each other joined. */
export function flaggedRuns(gaps: readonly Json[]): FlaggedRun[] {
  const runs: FlaggedRun[] = [];
  const flagged = gaps.filter((gap) => gap.flagged_gap).sort((a, b) => (dayOf(a) < dayOf(b) ? -1 : 1));
  for (const gap of flagged) {
    const cause = causeOf(gap);
    const open = runs.find(
      (run) =>
        run.provider === gap.provider &&
        run.model === gap.model &&
        run.cause === cause &&
        isNextDay(run.lastDay, dayOf(gap)),
    );
    if (open) {
      open.lastDay = dayOf(gap);
      open.days += 1;
      open.billedUsd += gap.provider_cost_usd;
      open.oursUsd += gap.our_cost_usd;
    } else
      runs.push({
        provider: gap.provider,
        model: gap.model,
        firstDay: dayOf(gap),
        lastDay: dayOf(gap),
        days: 1,
        billedUsd: gap.provider_cost_usd,
        oursUsd: gap.our_cost_usd,
        cause,
      });
  }
  return runs;
}

/** What is said alike of several models over the same days, as one line. */
export interface ExplainedRun {
  provider: string;
  models: string[];
  firstDay: string;
  lastDay: string;
  kind: string;
  blame: string;
  grade: string;
  billedUsd: number;
  expectedUsd: number;
}

/** Findings that can be verified, the provider's mistakes first, the largest first among them. */
export function explainedRuns(findings: readonly Json[]): ExplainedRun[] {
  const runs = new Map<string, ExplainedRun>();
  for (const finding of findings) {
    const { kind, provider, period_start, period_end, confidence, blame } = finding;
    if (confidence === 'UNVERIFIED') continue;
    const id = [kind, provider, period_start, period_end, confidence].join('|');
    const run: ExplainedRun = runs.get(id) ?? {
      provider,
      models: [],
      firstDay: period_start,
      lastDay: period_end,
      kind,
      blame,
      grade: confidence,
      billedUsd: 0,
      expectedUsd: 0,
    };
    run.models.push(finding.model);
    run.billedUsd += finding.provider_cost_usd;
    run.expectedUsd += finding.our_cost_usd;
    runs.set(id, run);
  }
  const excess = (run: ExplainedRun) => run.billedUsd - run.expectedUsd;
  const isProviders = (run: ExplainedRun) => Number(run.blame === 'provider');
  return [...runs.values()].sort((a, b) => isProviders(b) - isProviders(a) || excess(b) - excess(a));
}

/** Wrong rates of one model over the same days, as one line. */
export interface RateRun {
  provider: string;
  model: string;
  firstDay: string;
  lastDay: string;
  classes: string[];
  /** What all of them look like, by the taxonomy's keys. */
  looksLike: string[];
  billedUsd: number;
  expectedUsd: number;
}

/** Rates that do not fit, classes of one model and days together; dearest first. */
export function rateRuns(rates: readonly Json[]): RateRun[] {
  const runs: RateRun[] = [];
  for (const rate of rates) {
    const open = runs.find(
      (run) =>
        run.provider === rate.provider &&
        run.model === rate.model &&
        run.firstDay <= rate.last_day &&
        run.lastDay >= rate.first_day,
    );
    const name = `${rate.token_class}${rate.is_batch ? ' (batch)' : ''}`;
    if (!open) {
      runs.push({
        provider: rate.provider,
        model: rate.model,
        firstDay: rate.first_day,
        lastDay: rate.last_day,
        classes: [name],
        looksLike: [...rate.looks_like],
        billedUsd: rate.billed_usd,
        expectedUsd: rate.expected_usd,
      });
      continue;
    }
    if (rate.first_day < open.firstDay) open.firstDay = rate.first_day;
    if (rate.last_day > open.lastDay) open.lastDay = rate.last_day;
    if (!open.classes.includes(name)) open.classes.push(name);
    open.looksLike = open.looksLike.filter((hint) => rate.looks_like.includes(hint));
    open.billedUsd += rate.billed_usd;
    open.expectedUsd += rate.expected_usd;
  }
  return runs.sort((a, b) => b.billedUsd - b.expectedUsd - (a.billedUsd - a.expectedUsd));
}
