import { DAY_COUNT } from '../../lab/demo/calendar.js';
import { left, right, type TextColumn, textTable } from '../terminal/textTable.js';
import {
  type DemoFindings,
  type ExplainedRun,
  explainedRuns,
  type FlaggedRun,
  flaggedRuns,
  type RateRun,
  rateRuns,
} from './demoFindings.js';

// biome-ignore lint/suspicious/noExplicitAny: answers are the API's own, whose schemas its tests hold
type Json = any;

const money = new Intl.NumberFormat('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const signed = (usd: number) => `${usd < 0 ? '−' : '+'}${money.format(Math.abs(usd))}`;
const daysText = (first: string, last: string) => (first === last ? first : `${first} – ${last.slice(5)}`);

/** Where to go on from the findings. */
export interface Place {
  base: string;
  /** As it is shown: relative where it can be. */
  keyFile: string;
}

/** The findings as a person reads them on a terminal. */
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

/** The cells of a row but the last: which days of what, and what was billed against what should have been. */
function cellsOf(
  run: (FlaggedRun | RateRun | ExplainedRun) & { model: string },
  againstUsd: number,
): string[] {
  return [
    daysText(run.firstDay, run.lastDay),
    run.provider,
    run.model,
    money.format(run.billedUsd),
    money.format(againstUsd),
    signed(run.billedUsd - againstUsd),
  ];
}

function gapSection({ gaps }: DemoFindings): string[] {
  const runs = flaggedRuns(gaps);
  const flagged = runs.reduce((sum, run) => sum + run.days, 0);
  const rows = runs.map((run) => [...cellsOf(run, run.oursUsd), run.cause]);
  return section(
    `Flagged: ${flagged} of ${gaps.length} model-days, where the bill is not what was used`,
    textTable(columnsOf('ours $', 'gap $', 'what differs'), rows),
  );
}

function explainedSection({ findings, financial }: DemoFindings): string[] {
  const rows = explainedRuns(findings).map((run) => {
    const model = run.models.length === 1 ? (run.models[0] ?? '') : `${run.models.length} models`;
    const whose = run.blame === 'provider' ? '' : ': no mistake of theirs';
    return [...cellsOf({ ...run, model }, run.expectedUsd), run.grade, `${run.kind}${whose}`];
  });
  const confirmed = money.format(financial.recoverable_confirmed_usd);
  const review = money.format(financial.recoverable_review_usd);
  return section(
    `Explained: ${confirmed} $ can be asked back, ${review} $ somebody has to look into first`,
    textTable([...columnsOf('right $', 'too much $', 'grade'), left('explanation')], rows),
  );
}

function rateSection({ rates }: DemoFindings): string[] {
  const runs = rateRuns(rates);
  const excess = runs.reduce((sum, run) => sum + run.billedUsd - run.expectedUsd, 0);
  const rows = runs.map((run) => [
    ...cellsOf(run, run.expectedUsd),
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
      `${key.provider} bills ${money.format(key.billed_usd ?? 0)} $ for key ${key.provider_key_id}, which no entry and no call knows`,
    );
  const hours = gaps.filter(
    (gap) => gap.flagged_gap && gap.unobserved_minutes && gap.match_status === 'partial',
  );
  const [first] = hours;
  if (first) {
    const usd = hours.reduce((sum, gap) => sum + gap.gap_parts.volume_usd, 0);
    lines.push(
      `${first.provider} on ${first.bucket.slice(0, 10)}: ${first.unobserved_minutes / 60} hours without a call of ours, ${money.format(usd)} $ billed meanwhile`,
    );
  }
  const fees = new Map<string, number>();
  for (const gap of gaps.filter(({ reason }) => reason === 'not_observable'))
    fees.set(gap.model, (fees.get(gap.model) ?? 0) + gap.provider_cost_usd);
  for (const [label, usd] of fees)
    lines.push(`${label}: ${money.format(usd)} $; no call can show such a fee`);
  for (const difference of differences)
    lines.push(
      `${difference.provider} stated ${difference.day} anew: ${money.format(difference.counted_usd)} $ instead of ${money.format(difference.other_usd)} $; the later copy counts`,
    );
  return section('Not observed', lines);
}

/** The policies that calls break, each with one of its calls in words. */
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
    money.format(rule.preventable_modeled_usd),
  ]);
  return section(
    `Rules that only observe would have saved ${money.format(savings.preventable_modeled_usd)} $ in ${DAY_COUNT} days`,
    textTable([left('rule'), right('calls'), left(''), right('saved $')], rows),
  );
}

function statementSection({ statement }: DemoFindings): string[] {
  const { total } = statement;
  const { HIGH, MEDIUM, LOW, UNVERIFIED } = total.verified_usd;
  const rows: [string, number][] = [
    ['usage at list', total.list_usd],
    ['discounts of the contract', -total.contract_discount_usd],
    ['charged above the agreed rates', total.rate_difference_usd],
    ['usage without a list price', total.not_priced_usd],
    ['credits', total.credits_usd],
    ['invoice total', total.invoice_total_usd],
  ];
  const verified = HIGH + MEDIUM + LOW + UNVERIFIED;
  return section(`Statement of ${statement.period} (${statement.status})`, [
    ...textTable(
      [left(''), right('$')],
      rows.filter(([, usd]) => usd !== 0).map(([label, usd]) => [label, money.format(usd)]),
    ),
    `of the usage, calls match ${money.format(verified)} $ (${money.format(HIGH)} $ at HIGH) and not ${money.format(total.not_matched_by_calls_usd)} $`,
    `of these, findings explain ${money.format(total.explained_by_findings_usd)} $, nothing explains ${money.format(total.unexplained_usd)} $`,
  ]);
}

function goOnSection({ statement }: DemoFindings, { base, keyFile }: Place): string[] {
  const curl = (path: string) => `curl -H "Authorization: Bearer $(cat ${keyFile})" '${base}/api/v1${path}'`;
  return section('Go on', [
    curl('/reconciliation/gap-explorer?period=90d&flagged=true'),
    curl('/financial/review-queue'),
    curl(`/reconciliation/statement?period=${statement.period}`),
    curl('/alerts?policy_type=banned_patterns'),
    curl('/dashboard/breakdown/session'),
    'docs/demo.md names every planted fault. Remove it all: ./trueup demo reset',
  ]);
}
