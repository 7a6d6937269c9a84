import { numberColumn, textColumn } from '../claims/evidence/documentRates.js';
import { counted, dayText, shortened, spanText, words } from '../claims/evidence/documentTexts.js';
import { isTerminal } from '../claims/lifecycle.js';
import { footCents } from '../footing.js';
import { centsFromPico, usdNumberFromPico } from '../money.js';
import { PROVIDER_FACTS } from '../providers.js';
import { GRADES, type Grade } from '../reconciliation/matching/cells.js';
import type { ReconciliationFigures, ReportedClaim, ReportFigures } from './figures.js';
import {
  asOfText,
  centsOfWhole,
  countText,
  type DocumentChart,
  type DocumentSection,
  moneyText,
  percentText,
  type SectionTable,
  sumOf,
} from './sectionParts.js';

/** Accounts' months and claims that are listed. */
const MONTHS_SHOWN = 24;
const CLAIMS_SHOWN = 30;
const ACCOUNT_CHARS = 30;

const GRADE_NAMES: Readonly<Record<Grade, string>> = {
  HIGH: 'Matched, high confidence',
  MEDIUM: 'Matched, medium confidence',
  LOW: 'Matched, low confidence',
  UNVERIFIED: 'Matched, unverified',
};

/** The section of reconciliation: billed amounts, the part that calls explain, and amounts to recover. */
export function reconciliationSection(figures: ReportFigures): DocumentSection {
  const { reconciliation, asOfMicros } = figures;
  const { billedPico, summary, claims } = reconciliation;
  const billed = centsFromPico(billedPico);
  const isEmpty = billedPico === 0n && claims.length === 0 && summary.breakdown.length === 0;
  const common = {
    key: 'reconciliation' as const,
    title: 'Reconciliation',
    sources: `Sources: providers’ bills as they were imported, synced or uploaded, the newest published comparison with recorded calls, findings and claims, ${asOfText(asOfMicros)}.`,
  };
  if (isEmpty)
    return {
      ...common,
      isEmpty,
      sentences: [
        'No provider’s bill covers this period, so nothing could be compared. Connect a provider or upload a bill.',
      ],
      chart: null,
      tables: [],
    };
  const grades = gradesOf(reconciliation);
  const { matchedCents } = grades;
  const recoverable = summary.recoverableConfirmedPico + summary.recoverableReviewPico;
  return {
    ...common,
    isEmpty,
    sentences: [
      billedPico === 0n
        ? 'No provider’s bill covers days of this period.'
        : `Providers billed ${moneyText(billed)} for usage; recorded calls explain ${moneyText(matchedCents)} of it (${percentText(matchedCents, billed)}).`,
      recoverable === 0n
        ? 'Nothing was found that can be asked back.'
        : `${moneyText(centsOfWhole(recoverable))} can be asked back: ${moneyText(centsOfWhole(summary.recoverableConfirmedPico))} is confirmed, ${moneyText(centsOfWhole(summary.recoverableReviewPico))} waits for review.`,
      ...provisionalText(reconciliation),
      claimsText(claims),
    ],
    chart: gradesChart(grades),
    tables: [
      ...(billedPico === 0n ? [] : [gradesTable(grades)]),
      ...recoverableTable(reconciliation),
      ...claimsTable(claims),
    ],
  };
}

/** Amounts that a provider may still restate are named apart, because no total contains them. */
function provisionalText({ summary }: ReconciliationFigures): string[] {
  const cents = centsFromPico(summary.provisionalPico);
  return cents === 0n
    ? []
    : [
        `Provisional: overcharges of ${moneyText(cents)} lie on days that the provider may still restate; they are in no total.`,
      ];
}

interface GradeRows {
  rows: { name: string; pico: bigint; cents: bigint }[];
  totalCents: bigint;
  matchedCents: bigint;
}

/** Billed usage by how surely it is matched; the rows sum to what was billed. */
function gradesOf({ billedPico, matchedByGrade }: ReconciliationFigures): GradeRows {
  const matched = GRADES.map((grade) => ({ name: GRADE_NAMES[grade], pico: matchedByGrade[grade] ?? 0n }));
  const rest = { name: 'Not matched by calls', pico: billedPico - sumOf(matched.map(({ pico }) => pico)) };
  const order = ['HIGH', 'MEDIUM', 'LOW', 'UNVERIFIED'] as const;
  const rows = [...order.map((grade) => matched[GRADES.indexOf(grade)] ?? rest), rest].filter(
    ({ pico }) => pico !== 0n,
  );
  const { partsPico, totalPico } = footCents(rows.map(({ pico }) => pico));
  const shown = rows.map((row, at) => ({ ...row, cents: centsOfWhole(partsPico[at] ?? 0n) }));
  return {
    rows: shown,
    totalCents: centsOfWhole(totalPico),
    matchedCents: sumOf(shown.filter(({ name }) => name !== rest.name).map(({ cents }) => cents)),
  };
}

function gradesChart({ rows, totalCents }: GradeRows): DocumentChart | null {
  const bars = rows.filter(({ pico }) => pico > 0n);
  if (bars.length === 0) return null;
  return {
    title: 'Billed usage by how surely calls explain it',
    alt: `Bars: ${bars.map(({ name, cents }) => `${name} ${moneyText(cents)}`).join(', ')}; ${moneyText(totalCents)} in all.`,
    drawing: {
      kind: 'rows',
      rows: bars.map(({ name, pico, cents }) => ({
        label: name,
        value: usdNumberFromPico(pico),
        text: moneyText(cents),
      })),
    },
  };
}

function gradesTable({ rows, totalCents }: GradeRows): SectionTable {
  return {
    title: 'Billed usage',
    note: '',
    table: {
      columns: [textColumn('How recorded calls explain it'), ...['Amount', 'Share'].map(numberColumn)],
      rows: rows.map(({ name, cents }) => [name, moneyText(cents), percentText(cents, totalCents)]),
      total: ['Billed', moneyText(totalCents), totalCents === 0n ? '–' : '100.0%'],
    },
  };
}

const providerName = (slug: string): string =>
  PROVIDER_FACTS.find((facts) => facts.slug === slug)?.displayName ?? slug;

function recoverableTable({ summary }: ReconciliationFigures): SectionTable[] {
  const { breakdown } = summary;
  if (breakdown.length === 0) return [];
  const amounts = (of: typeof breakdown) =>
    [
      sumOf(of.map((month) => month.recoverableConfirmedPico)),
      sumOf(of.map((month) => month.recoverableReviewPico)),
      sumOf(of.map((month) => month.unexplainedCriticalPico + month.unexplainedReviewPico)),
    ].map((pico) => moneyText(centsOfWhole(pico)));
  const others = breakdown.slice(MONTHS_SHOWN);
  return [
    {
      title: 'Recoverable and unexplained',
      note: 'Each amount is rounded as claims are; what was charged too little in the same month is taken off.',
      table: {
        columns: [
          ...['Provider', 'Account', 'Month'].map(textColumn),
          ...['Confirmed', 'In review', 'Unexplained'].map(numberColumn),
        ],
        rows: [
          ...breakdown
            .slice(0, MONTHS_SHOWN)
            .map((month) => [
              providerName(month.provider),
              shortened(month.accountId === '' ? '–' : month.accountId, ACCOUNT_CHARS),
              monthText(month.month),
              ...amounts([month]),
            ]),
          ...(others.length > 0 ? [[`${others.length} more`, '', '', ...amounts(others)]] : []),
        ],
        total: ['Total', '', '', ...amounts(breakdown)],
      },
    },
  ];
}

const monthText = (month: string): string => dayText(`${month}-01`).split(' ').slice(1).join(' ');

const claimedCents = (claims: readonly ReportedClaim[]): bigint =>
  sumOf(claims.map(({ recoverableCents }) => recoverableCents));
const creditedCents = (claims: readonly ReportedClaim[]): bigint =>
  sumOf(claims.map(({ creditIssuedCents }) => creditIssuedCents ?? 0n));

function claimsText(claims: readonly ReportedClaim[]): string {
  if (claims.length === 0) return 'No claim covers days of this period.';
  const open = claims.filter(({ status }) => !isTerminal(status));
  return `${counted(claims.length, 'claim')} over ${moneyText(claimedCents(claims))} cover${claims.length === 1 ? 's' : ''} days of this period; ${countText(open.length)} ${open.length === 1 ? 'is' : 'are'} open, and providers credited ${moneyText(creditedCents(claims))}.`;
}

function claimsTable(claims: readonly ReportedClaim[]): SectionTable[] {
  if (claims.length === 0) return [];
  const row = (of: readonly ReportedClaim[]) => [
    moneyText(claimedCents(of)),
    of.some(({ creditIssuedCents }) => creditIssuedCents !== null) ? moneyText(creditedCents(of)) : '–',
  ];
  const others = claims.slice(CLAIMS_SHOWN);
  return [
    {
      title: 'Claims',
      note: '',
      table: {
        columns: [
          ...['Provider', 'Account', 'Period', 'Status'].map(textColumn),
          ...['Claimed', 'Credited'].map(numberColumn),
        ],
        rows: [
          ...claims
            .slice(0, CLAIMS_SHOWN)
            .map((claim) => [
              providerName(claim.provider),
              shortened(claim.accountId === '' ? 'all' : claim.accountId, ACCOUNT_CHARS),
              spanText(claim.periodStart, claim.periodEnd),
              words(claim.status),
              ...row([claim]),
            ]),
          ...(others.length > 0 ? [[`${others.length} more`, '', '', '', ...row(others)]] : []),
        ],
        total: ['Total', '', '', '', ...row(claims)],
      },
    },
  ];
}
