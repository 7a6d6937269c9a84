import type { ReconcileReport } from '../../../db/reconcileBills.js';
import {
  type CoverageFigures,
  coverageOfBuckets,
  dollarShare,
  tokenShare,
} from '../../../domain/reconciliation/coverage.js';
import { type FindingSums, sumsOfFindings } from '../../../domain/reconciliation/findingSums.js';
import type { Finding } from '../../../domain/reconciliation/inference/finding.js';
import { dollars, figure, fitText, left, right, textTable, wrapText } from '../textTable.js';

/** Findings and models that fit a screen; --format csv has all findings, --format json all of both. */
const FINDINGS_MAX = 40;
const MODELS_MAX = 20;
const KIND_CHARS = 30;
const MODEL_CHARS = 20;
const LABEL_CHARS = 40;
const LINE_CHARS = 112;
const INDENT = '    ';
const TOKENS_PER_MTOK = 1_000_000n;

/** The reconciliation for a terminal: at most 120 columns, plain text. */
export function reconcileTable(report: ReconcileReport): string {
  if (report.billed === null) return `${withoutBills(report.provider)}\n`;
  const { models, totals } = coverageOfBuckets(report.buckets);
  const parts = [
    [
      `Bills of ${report.provider} and the calls of ${report.fromDay} to ${report.toDay}: ${count(report.days, 'day')} with a bill.`,
    ],
    report.days === 0
      ? [
          `There is none in these days; the bills go from ${report.billed.firstDay} to ${report.billed.lastDay}.`,
        ]
      : findingsOf(report.findings),
    report.days === 0 ? [] : sumsOf(totals, sumsOfFindings(report.findings, report.explanations)),
    models.length === 0
      ? []
      : [
          'How much of what was billed was observed',
          ...textTable(
            [
              left('model'),
              right('days'),
              right('calls'),
              right('Mtok billed'),
              right('observed'),
              right('billed'),
              right('explained'),
            ],
            models
              .slice(0, MODELS_MAX)
              .map(({ model, days, figures }) => [
                ...[fitText(model, LABEL_CHARS), String(days), String(figures.calls)],
                ...[figure(figures.billedTokens / TOKENS_PER_MTOK, 3), percent(tokenShare(figures))],
                ...[dollars(figures.billedPico), percent(dollarShare(figures))],
              ]),
          ),
          ...more(models.length - MODELS_MAX, 'model', 'json'),
        ],
  ];
  return `${parts
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n\n')}\n`;
}

function withoutBills(provider: string): string {
  return `There is no bill of ${provider} yet. Import one:
  npm run billing:import -- --provider ${provider} FILE
or, for OpenAI and Anthropic, connect the account, so that its bills are fetched (docs/connections.md).`;
}

const count = (number: number, noun: string): string => `${number} ${noun}${number === 1 ? '' : 's'}`;

const percent = (share: number | null): string => (share === null ? '?' : `${(share * 100).toFixed(1)} %`);

function more(rest: number, noun: string, format: string): string[] {
  return rest > 0 ? [`and ${count(rest, `more ${noun}`)}: --format ${format} has them all`] : [];
}

/** How many times less likely the next best explanation is. */
function odds(finding: Finding): string {
  if (!finding.next) return '';
  return finding.next.odds >= 1e6 ? '>1e6:1' : `${finding.next.odds.toPrecision(3).replace(/\.0+$/, '')}:1`;
}

function findingsOf(findings: readonly Finding[]): string[] {
  if (findings.length === 0) return ['Nothing was found: bills and calls agree as far as both can tell.'];
  const shown = findings.slice(0, FINDINGS_MAX);
  const [headings = '', rule = '', ...rows] = textTable(
    [
      ...[left('finding'), left('way'), left('model'), left('from'), left('to'), right('days')],
      ...[right('dollars'), left('grade'), right('odds')],
    ],
    shown.map((finding) => [
      ...[fitText(finding.kind, KIND_CHARS), finding.direction === 'overcharge' ? 'over' : 'under'],
      ...[fitText(finding.model, MODEL_CHARS), finding.days[0]?.day ?? '', finding.days.at(-1)?.day ?? ''],
      ...[String(finding.days.length), dollars(finding.impactPico), finding.grade, odds(finding)],
    ]),
    ' ',
  );
  const hasAccounts = new Set(findings.map((finding) => finding.accountId)).size > 1;
  return [
    'What is wrong, dollars billed − right; odds against the next best explanation',
    headings,
    rule,
    ...rows.flatMap((row, at) => [row, ...remarks(shown[at], hasAccounts)]),
    ...more(findings.length - shown.length, 'finding', 'csv'),
  ];
}

const WHOSE = { provider: 'the provider’s mistake', own: 'your own to change', none: '' } as const;

/** What the figures leave out: whose it is, why, what else it could be, and what to do. */
function remarks(finding: Finding | undefined, hasAccounts: boolean): string[] {
  if (!finding) return [];
  const place = [
    WHOSE[finding.blame],
    hasAccounts ? `account ${finding.accountId || 'unknown'}` : '',
    finding.provisional ? 'the bill may still change' : '',
    finding.next ? `else ${finding.next.kind}` : '',
  ].filter((words) => words !== '');
  return [...(place.length === 0 ? [] : [`${place.join('; ')}.`]), finding.reason, ...finding.advice]
    .flatMap((sentence) => wrapText(sentence, LINE_CHARS))
    .map((line) => `${INDENT}${line}`);
}

function sumsOf(totals: CoverageFigures, sums: FindingSums): string[] {
  return [
    'In US dollars',
    ...textTable(
      [left(''), right('')],
      [
        ['billed for usage', dollars(totals.billedPico)],
        ['  explained by calls', dollars(totals.explainedPico)],
        ['  not explained by calls', dollars(totals.unexplainedPico)],
        ['  no call can show it', dollars(totals.notObservablePico)],
        ['  before the first call', dollars(totals.notYetObservedPico)],
        ['charged too much', dollars(sums.overchargedPico)],
        ['  to be asked back: HIGH', dollars(sums.recoverable.HIGH)],
        ['  to be asked back: MEDIUM', dollars(sums.recoverable.MEDIUM)],
        ['  to be asked back: LOW and below', dollars(sums.recoverable.LOW + sums.recoverable.UNVERIFIED)],
        ['charged too little', dollars(sums.underchargedPico)],
        ['your own to change', dollars(sums.ownPico)],
        ['without explanation', dollars(sums.unexplainedPico)],
        ['tokens observed', percent(tokenShare(totals))],
        ['dollars explained', percent(dollarShare(totals))],
      ],
    ).slice(2),
  ];
}
