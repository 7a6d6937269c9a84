import { type Command, Option } from 'commander';
import { writeAuditCsv } from '../../api/reconciliation/audit/csv.js';
import { presentAudit } from '../../api/reconciliation/audit/wire.js';
import {
  type AuditLine,
  differenceOf,
  perMtok,
  type UnjudgedLine,
} from '../../domain/reconciliation/audit/audit.js';
import type { DayRange } from '../../domain/reconciliation/statement/statementFigures.js';
import { type AuditReport, auditBills } from '../../usecases/reconciliation/billAudit.js';
import { billReportCommand, type MakeReport } from '../bills/billReport.js';
import type { Terminal } from '../terminal/terminal.js';
import { dollars, figure, fitText, left, right, textTable } from '../terminal/textTable.js';

/** The rates that a provider charged, compared with list and contract, from its bills alone. */
const makeAudit: MakeReport = async (orgDb, range, agreed) => {
  const report = await auditBills(orgDb, range, { agreed, list: agreed.list });
  return {
    table: () => auditTable(report),
    json: () => presentAudit(report, agreed.versionAt(range.nowMicros)),
    csv: () => writeAuditCsv(report),
    asksForAction: report.differences.length + report.omitted.lines > 0,
  };
};

export function command(terminal: Terminal): Command {
  const failOption = new Option(
    '--fail-on-difference',
    'exit code 1 where a charge is not at the agreed rate',
  );
  return billReportCommand('audit', failOption, makeAudit, terminal);
}

/** Most lines of each part on a terminal; --format csv has all. */
const LINES_MAX = 40;
const RANGES_MAX = 10;
const NAME_CHARS = 24;
const LABEL_CHARS = 52;
const TOKENS_PER_MTOK = 1_000_000n;
const RATE_DIGITS = 4;

/** The audit for a terminal: at most 120 columns, plain text. */
export function auditTable(report: AuditReport): string {
  if (report.billed === null) return `${withoutBills(report.provider)}\n`;
  const { totals } = report;
  const parts = [
    [
      `Bills of ${report.provider}, ${report.fromDay} to ${report.toDay}: ${count(report.days, 'day')} with a bill.`,
    ],
    report.days === 0
      ? [
          `There is none in these days; the bills go from ${report.billed.firstDay} to ${report.billed.lastDay}.`,
        ]
      : differences(report),
    causes(report.differences),
    asAgreed(report.asAgreed),
    notJudged(report.notJudged),
    [
      'In US dollars',
      ...textTable(
        [left(''), right('')],
        [
          ['billed for usage', dollars(totals.billedPico)],
          ['  not judged', dollars(totals.notJudgedPico)],
          ['  judged', dollars(totals.judgedPico)],
          ['at the agreed rates', dollars(totals.agreedPico)],
          ['difference', dollars(totals.judgedPico - totals.agreedPico)],
          ['  charged too much', dollars(totals.abovePico)],
          ['  charged too little', dollars(totals.belowPico)],
          ['  rounding', dollars(totals.roundingPico)],
        ],
      ).slice(2),
    ],
    ranges('Days without a bill (not free: their cost is unknown)', report.missing),
    ranges('Days that the provider may still restate', report.provisional),
  ];
  return `${parts
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n\n')}\n`;
}

export function withoutBills(provider: string): string {
  return `There is no bill of ${provider} yet. Import one:
  ./trueup import bills --provider ${provider} FILE
or, for OpenAI and Anthropic, connect the account, so that its bills are fetched (docs/connections.md).`;
}

export const count = (number: number, noun: string): string => `${number} ${noun}${number === 1 ? '' : 's'}`;

function rate(amountPico: bigint | null, quantity: bigint): string {
  const pico = perMtok(amountPico, quantity);
  return pico === null ? '?' : figure(pico, RATE_DIGITS);
}

const mtok = (quantity: bigint): string => figure(quantity / TOKENS_PER_MTOK, 3);

function differences({ differences: lines, omitted }: AuditReport): string[] {
  if (lines.length === 0) return ['Every charge that the bill lets one judge is at the agreed rate.'];
  const columns = [
    ...[left('model'), left('class'), left('from'), left('to'), right('days'), right('Mtok')],
    ...[right('charged/M'), right('agreed/M'), right('list/M'), right('difference')],
  ];
  const shown = lines.slice(0, LINES_MAX);
  const table = textTable(
    columns,
    shown.map((line) => [
      ...[fitText(line.label, NAME_CHARS), line.tokenClass, line.firstDay, line.lastDay, String(line.days)],
      ...[mtok(line.quantity), rate(line.billedPico, line.quantity), rate(line.agreedPico, line.quantity)],
      ...[rate(line.listPico, line.quantity), dollars(differenceOf(line))],
    ]),
    ' ',
  );
  const [headings = '', rule = '', ...rows] = table;
  const hasAccounts = new Set(lines.map((line) => line.accountId)).size > 1;
  return [
    'Charged at another than the agreed rate, dollars per million tokens',
    headings,
    rule,
    ...rows.flatMap((row, at) => [row, ...remarks(shown[at], hasAccounts)]),
    ...more(lines.length + omitted.lines - shown.length),
  ];
}

/** The differences grouped by their likely cause, because most errors affect many classes at once. */
function causes(lines: readonly AuditLine[]): string[] {
  const byCause = new Map<string, { from: string; to: string; lines: number; pico: bigint }>();
  for (const line of lines) {
    const cause = line.looksLike.join(' or ') || 'no known mistake';
    const known = byCause.get(cause) ?? { from: line.firstDay, to: line.lastDay, lines: 0, pico: 0n };
    byCause.set(cause, {
      from: line.firstDay < known.from ? line.firstDay : known.from,
      to: line.lastDay > known.to ? line.lastDay : known.to,
      lines: known.lines + 1,
      pico: known.pico + differenceOf(line),
    });
  }
  if (lines.length < 2) return [];
  return textTable(
    [left('what it looks like'), left('from'), left('to'), right('lines'), right('difference')],
    [...byCause].map(([cause, { from, to, lines: count, pico }]) => [
      ...[fitText(cause, LABEL_CHARS), from, to, String(count), dollars(pico)],
    ]),
  );
}

/** Details that the figures omit, below their line: the charge, and the likely cause. */
function remarks(line: AuditLine | undefined, hasAccounts: boolean): string[] {
  if (!line) return [];
  const place = placeCells(line, hasAccounts);
  const hint = line.looksLike.length === 0 ? [] : [`looks like ${line.looksLike.join(' or ')}`];
  const doubt = line.disputed ? ['price sources disagree'] : [];
  const words = [...place, ...hint, ...doubt];
  return words.length === 0 ? [] : [`    ${words.join('; ')}`];
}

function placeCells(line: AuditLine, hasAccounts: boolean): string[] {
  return [
    ...(hasAccounts ? [`account ${line.accountId}`] : []),
    ...(line.serviceTier === 'standard' ? [] : [`${line.serviceTier} tier`]),
    ...(line.isBatch ? ['batch'] : []),
    ...(line.longContext ? ['long context'] : []),
    ...(line.region === null ? [] : [`region ${line.region}`]),
    ...(line.isMixture ? ['mixture'] : []),
  ];
}

function asAgreed(lines: readonly AuditLine[]): string[] {
  if (lines.length === 0) return [];
  const columns = [
    ...[left('model'), left('class'), left('kind'), left('from'), left('to'), right('days'), right('Mtok')],
    ...[right('charged/M'), right('billed')],
  ];
  const shown = lines.slice(0, LINES_MAX);
  return [
    'Charged at the agreed rate, dollars per million tokens',
    ...textTable(
      columns,
      shown.map((line) => [
        ...[fitText(line.label, NAME_CHARS), line.tokenClass, placeCells(line, false).join(', ')],
        ...[line.firstDay, line.lastDay, String(line.days), mtok(line.quantity)],
        ...[rate(line.billedPico, line.quantity), dollars(line.billedPico)],
      ]),
      ' ',
    ),
    ...more(lines.length - shown.length),
  ];
}

function notJudged(lines: readonly UnjudgedLine[]): string[] {
  if (lines.length === 0) return [];
  const shown = lines.slice(0, LINES_MAX);
  return [
    'Not judged: the bill alone cannot prove it',
    ...textTable(
      [left('line of the bill'), left('class'), left('why'), right('days'), right('billed')],
      shown.map((line) => [
        ...[fitText(line.label, LABEL_CHARS), line.tokenClass, line.reason.replaceAll('_', ' ')],
        ...[String(line.days), dollars(line.billedPico)],
      ]),
    ),
    ...more(lines.length - shown.length),
  ];
}

function more(lines: number): string[] {
  return lines > 0 ? [`and ${count(lines, 'more line')}: --format csv has them all`] : [];
}

function ranges(heading: string, list: readonly DayRange[]): string[] {
  if (list.length === 0) return [];
  const words = list
    .slice(0, RANGES_MAX)
    .map(
      ({ accountId, firstDay, lastDay, days }) =>
        `  ${firstDay}${firstDay === lastDay ? '' : ` to ${lastDay}`} (${count(days, 'day')}, account ${accountId})`,
    );
  return [heading, ...words, ...(list.length > RANGES_MAX ? [`  and ${list.length - RANGES_MAX} more`] : [])];
}
