import { LINK_MINUTES } from '../../domain/access/sessionRules.js';
import { footCents } from '../../domain/footing.js';
import { absPico, centsFromPico, type Pico, picoFromNumber } from '../../domain/money.js';
import { DAY_COUNT } from '../../lab/demo/calendar.js';
import { left, right, type TextColumn, textTable } from '../terminal/textTable.js';
import { ask, bodyOf, type LoadedDemo, type ServiceClient } from './demoLoad.js';

// biome-ignore lint/suspicious/noExplicitAny: answers are the API's own, whose schemas its tests hold
type Json = any;

/** Results of the product for the demo, from its API. */
export interface DemoFindings {
  /** Buckets of the last 90 days. */
  gaps: Json[];
  /** Differing rates, from the run. */
  rates: Json[];
  differences: Json[];
  /** Explanations of the differences. */
  findings: Json[];
  /** Sums of the findings, dollars. */
  financial: Json;
  /** Keys on the bill that are not listed or were revoked. */
  suspectKeys: Json[];
  /** Of the last complete month. */
  statement: Json;
  /** Calls that broke a policy. */
  alerts: Json[];
  /** The savings that the rules would have brought. */
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
  billedPico: Pico;
  oursPico: Pico;
  cause: string;
}

/** An amount of the API, exact. */
const picoOf = (usd: number): Pico => picoFromNumber(usd) ?? 0n;
const sumOf = (amounts: readonly Pico[]): Pico => amounts.reduce((sum, one) => sum + one, 0n);
const excessOf = (run: { billedPico: Pico; expectedPico: Pico }): Pico => run.billedPico - run.expectedPico;
const descending = (a: Pico, b: Pico): number => (a === b ? 0 : a < b ? 1 : -1);

const DAY_MS = 86_400_000;
const dayOf = (gap: Json): string => gap.bucket.slice(0, 10);
const isNextDay = (day: string, next: string): boolean => Date.parse(next) - Date.parse(day) === DAY_MS;

/** The cause of a flagged bucket, in words. */
function causeOf(gap: Json): string {
  if (gap.match_status === 'unmatched') return 'no call of ours';
  if (gap.unobserved_minutes) return `${gap.unobserved_minutes / 60} h without our calls`;
  const parts = gap.gap_parts;
  if (parts === null) return 'amount alone';
  return Math.abs(parts.rate_usd) >= Math.abs(parts.volume_usd) ? 'rate' : 'quantity';
}

/** Flagged buckets, oldest first, with consecutive days joined. */
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
      open.billedPico += picoOf(gap.provider_cost_usd);
      open.oursPico += picoOf(gap.our_cost_usd);
    } else
      runs.push({
        provider: gap.provider,
        model: gap.model,
        firstDay: dayOf(gap),
        lastDay: dayOf(gap),
        days: 1,
        billedPico: picoOf(gap.provider_cost_usd),
        oursPico: picoOf(gap.our_cost_usd),
        cause,
      });
  }
  return runs;
}

/** Equal findings of several models over the same days, as one line. */
export interface ExplainedRun {
  provider: string;
  models: string[];
  firstDay: string;
  lastDay: string;
  kind: string;
  blame: string;
  grade: string;
  billedPico: Pico;
  expectedPico: Pico;
}

/** Verifiable findings: the provider's mistakes first, largest first among them. */
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
      billedPico: 0n,
      expectedPico: 0n,
    };
    run.models.push(finding.model);
    run.billedPico += picoOf(finding.provider_cost_usd);
    run.expectedPico += picoOf(finding.our_cost_usd);
    runs.set(id, run);
  }
  const isProviders = (run: ExplainedRun) => Number(run.blame === 'provider');
  return [...runs.values()].sort(
    (a, b) => isProviders(b) - isProviders(a) || descending(excessOf(a), excessOf(b)),
  );
}

/** Wrong rates of one model over the same days, as one line. */
export interface RateRun {
  provider: string;
  model: string;
  firstDay: string;
  lastDay: string;
  classes: string[];
  /** Likely causes of all of them, by the taxonomy's keys. */
  looksLike: string[];
  billedPico: Pico;
  expectedPico: Pico;
}

/** Differing rates, joined over the classes of one model and days; largest first. */
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
        billedPico: picoOf(rate.billed_usd),
        expectedPico: picoOf(rate.expected_usd),
      });
      continue;
    }
    if (rate.first_day < open.firstDay) open.firstDay = rate.first_day;
    if (rate.last_day > open.lastDay) open.lastDay = rate.last_day;
    if (!open.classes.includes(name)) open.classes.push(name);
    open.looksLike = open.looksLike.filter((hint) => rate.looks_like.includes(hint));
    open.billedPico += picoOf(rate.billed_usd);
    open.expectedPico += picoOf(rate.expected_usd);
  }
  return runs.sort((a, b) => descending(excessOf(a), excessOf(b)));
}

const CENTS = new Intl.NumberFormat('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 2 });
/** In dollars and cents, rounded once. */
const money = (pico: Pico) => CENTS.format(Number(centsFromPico(pico)) / 100);
const signed = (pico: Pico) => `${pico < 0n ? '−' : '+'}${money(absPico(pico))}`;
const daysText = (first: string, last: string) => (first === last ? first : `${first} – ${last.slice(5)}`);

/** Places that the findings link to. */
export interface Place {
  base: string;
  /** As printed: relative where possible. */
  keyFile: string;
  /** A one-time link into the demo's organization. */
  link: string;
}

/** The findings as text for a terminal. */
export function renderFindings(findings: DemoFindings, place: Place): string {
  const sections = [
    gapSection(findings),
    explainedSection(findings),
    rateSection(findings),
    unobservedSection(findings),
    alertSection(findings),
    savingsSection(findings),
    statementSection(findings),
    goOnSection(findings, place),
  ];
  return `\n${sections.map((lines) => lines.join('\n')).join('\n\n')}\n`;
}

function section(title: string, lines: readonly string[]): string[] {
  return [`  ${title}`, ...lines.map((line) => `    ${line}`)];
}

function columnsOf(against: string, difference: string, what: string): TextColumn[] {
  return [
    left('days'),
    left('provider'),
    left('model'),
    right('billed $'),
    right(against),
    right(difference),
    left(what),
  ];
}

/** The cells of a row except the last: days, subject, billed and expected amounts. */
function cellsOf(
  run: (FlaggedRun | RateRun | ExplainedRun) & { model: string },
  againstPico: Pico,
): string[] {
  return [
    daysText(run.firstDay, run.lastDay),
    run.provider,
    run.model,
    money(run.billedPico),
    money(againstPico),
    signed(run.billedPico - againstPico),
  ];
}

function gapSection({ gaps }: DemoFindings): string[] {
  const runs = flaggedRuns(gaps);
  const flagged = runs.reduce((sum, run) => sum + run.days, 0);
  const rows = runs.map((run) => [...cellsOf(run, run.oursPico), run.cause]);
  return section(
    `Flagged: ${flagged} of ${gaps.length} model-days, where the bill is not what was used`,
    textTable(columnsOf('ours $', 'gap $', 'what differs'), rows),
  );
}

function explainedSection({ findings, financial }: DemoFindings): string[] {
  const rows = explainedRuns(findings).map((run) => {
    const model = run.models.length === 1 ? (run.models[0] ?? '') : `${run.models.length} models`;
    const whose = run.blame === 'provider' ? '' : ': no mistake of theirs';
    return [...cellsOf({ ...run, model }, run.expectedPico), run.grade, `${run.kind}${whose}`];
  });
  const confirmed = money(picoOf(financial.recoverable_confirmed_usd));
  const review = money(picoOf(financial.recoverable_review_usd));
  return section(
    `Explained: ${confirmed} $ can be claimed, ${review} $ need a review first`,
    textTable([...columnsOf('right $', 'too much $', 'grade'), left('explanation')], rows),
  );
}

function rateSection({ rates }: DemoFindings): string[] {
  const runs = rateRuns(rates);
  const excess = sumOf(runs.map(excessOf));
  const rows = runs.map((run) => [
    ...cellsOf(run, run.expectedPico),
    run.looksLike.join(', ') || `${run.classes.length} kinds of tokens`,
  ]);
  return section(
    `Rates that do not fit, from the bill alone: ${signed(excess)} $ against list and contract`,
    textTable(columnsOf('agreed $', 'too much $', 'looks like'), rows),
  );
}

function unobservedSection({ gaps, differences, suspectKeys }: DemoFindings): string[] {
  const lines: string[] = [];
  for (const key of suspectKeys)
    lines.push(
      `${key.provider} bills ${money(picoOf(key.billed_usd ?? 0))} $ for key ${key.provider_key_id}, which no entry and no call knows`,
    );
  const hours = gaps.filter(
    (gap) => gap.flagged_gap && gap.unobserved_minutes && gap.match_status === 'partial',
  );
  const [first] = hours;
  if (first) {
    const billed = sumOf(hours.map((gap) => picoOf(gap.gap_parts.volume_usd)));
    lines.push(
      `${first.provider} on ${first.bucket.slice(0, 10)}: ${first.unobserved_minutes / 60} hours without a call of ours, ${money(billed)} $ billed meanwhile`,
    );
  }
  const fees = new Map<string, Pico>();
  for (const gap of gaps.filter(({ reason }) => reason === 'not_observable'))
    fees.set(gap.model, (fees.get(gap.model) ?? 0n) + picoOf(gap.provider_cost_usd));
  for (const [label, fee] of fees) lines.push(`${label}: ${money(fee)} $; no call can show such a fee`);
  for (const difference of differences)
    lines.push(
      `${difference.provider} restated ${difference.day}: ${money(picoOf(difference.counted_usd))} $ instead of ${money(picoOf(difference.other_usd))} $; the later copy counts`,
    );
  return section('Not observed', lines);
}

/** The broken policies, each with one of its calls in words. */
function alertSection({ alerts }: DemoFindings): string[] {
  const types = [...new Set(alerts.map(({ policy_type }) => policy_type as string))].sort();
  const rows = types.map((type) => {
    const own = alerts.filter(({ policy_type }) => policy_type === type);
    const last = own.reduce((a, b) => (a.event_timestamp >= b.event_timestamp ? a : b));
    return [type, own.length.toLocaleString('en-US'), last.severity, last.message];
  });
  return section(
    `Alerts: ${alerts.length} calls that break a policy`,
    textTable([left('policy'), right('calls'), left('severity'), left('the latest says')], rows),
  );
}

function savingsSection({ savings }: DemoFindings): string[] {
  const rows = savings.modeled.by_rule.map((rule: Json) => [
    rule.name,
    (rule.blocked_calls || rule.downgraded_calls).toLocaleString('en-US'),
    rule.blocked_calls > 0 ? 'stopped' : 'moved',
    money(picoOf(rule.preventable_modeled_usd)),
  ]);
  return section(
    `Rules that only observe would have saved ${money(picoOf(savings.preventable_modeled_usd))} $ in ${DAY_COUNT} days`,
    textTable([left('rule'), right('calls'), left(''), right('saved $')], rows),
  );
}

const STATEMENT_ROWS: readonly [label: string, of: (figures: Json) => Pico][] = [
  ['usage at list', (one) => picoOf(one.list_usd)],
  ['discounts of the contract', (one) => -picoOf(one.contract_discount_usd)],
  ['charged above the agreed rates', (one) => picoOf(one.rate_difference_usd)],
  ['usage without a list price', (one) => picoOf(one.not_priced_usd)],
  ['credits', (one) => picoOf(one.credits_usd)],
];

/** The rows' amounts, and what else makes the invoice total. */
function statementAmounts(figures: Json): Pico[] {
  const named = STATEMENT_ROWS.map(([, of]) => of(figures));
  return [...named, picoOf(figures.invoice_total_usd) - sumOf(named)];
}

/**
 * The statement. Its rows are in cents that add up to the invoice total, which is rounded once, and that are the sums of
 * the providers' cents where both can hold, as on the dashboard.
 */
export function statementSection({ statement }: Pick<DemoFindings, 'statement'>): string[] {
  const { total, providers } = statement;
  const beside: Pico[][] = providers.map((one: Json) => footCents(statementAmounts(one)).partsPico);
  const amounts = statementAmounts(total);
  const across = amounts.map((_, at) => sumOf(beside.map((column) => column[at] ?? 0n)));
  const { partsPico, totalPico } = footCents(amounts, across);
  const rows = [...STATEMENT_ROWS.map(([label]) => label), 'other']
    .map((label, at) => [label, partsPico[at] ?? 0n] as const)
    .filter((_, at) => amounts[at] !== 0n);
  const verified = Object.values(total.verified_usd as Record<string, number>).map(picoOf);
  const usd = (name: string) => money(picoOf(total[name]));
  return section(`Statement of ${statement.period} (${statement.status})`, [
    ...textTable(
      [left(''), right('$')],
      [...rows.map(([label, pico]) => [label, money(pico)]), ['invoice total', money(totalPico)]],
    ),
    `of the usage, calls match ${money(sumOf(verified))} $ (${money(picoOf(total.verified_usd.HIGH))} $ at HIGH) and not ${usd('not_matched_by_calls_usd')} $`,
    `of these, findings explain ${usd('explained_by_findings_usd')} $, nothing explains ${usd('unexplained_usd')} $`,
  ]);
}

function goOnSection({ statement }: DemoFindings, { base, keyFile, link }: Place): string[] {
  const curl = (path: string) => `curl -H "Authorization: Bearer $(cat ${keyFile})" '${base}/api/v1${path}'`;
  return section('Go on', [
    `In the browser, once within ${LINK_MINUTES} minutes: ${link}`,
    curl('/reconciliation/gap-explorer?period=90d&flagged=true'),
    curl('/financial/review-queue'),
    curl(`/reconciliation/statement?period=${statement.period}`),
    curl('/alerts?policy_type=banned_patterns'),
    curl('/dashboard/breakdown/session'),
    'docs/demo.md names every planted fault. Remove it all: ./trueup demo reset',
  ]);
}
