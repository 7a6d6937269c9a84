import { numberColumn, textColumn } from '../claims/evidence/documentRates.js';
import { listed, shortened } from '../claims/evidence/documentTexts.js';
import { footCents } from '../footing.js';
import { centsFromPico, usdNumberFromPico } from '../money.js';
import { type Allocation, UNSET_KEY } from '../usage/chargeback.js';
import type { ReportFigures, SpendBy, SpendGroup } from './figures.js';
import { grainOf, partsOfPeriod, type ReportPeriod } from './report.js';
import {
  asOfText,
  callsText,
  centsOfWhole,
  changeText,
  comparisonText,
  countText,
  type DocumentSection,
  moneyText,
  partLabel,
  partName,
  percentText,
  periodText,
  type SectionTable,
  sumOf,
} from './sectionParts.js';

/** Models that are listed; the others are one row. */
const MODELS_SHOWN = 15;
/** Teams that are listed. */
const TEAMS_SHOWN = 60;
const NAME_CHARS = 44;

/** The section of spend: by time, model and team. */
export function spendSection(figures: ReportFigures): DocumentSection {
  const { period, spend, asOfMicros } = figures;
  const { totals } = spend.models;
  const total = centsFromPico(totals.costPico);
  const previous = centsFromPico(spend.previousModels.totals.costPico);
  const common = {
    key: 'spend' as const,
    title: 'Spend',
    sources: `Sources: recorded calls by model, day and team (usage summary and chargeback of the API), ${asOfText(asOfMicros)}. Days are UTC.`,
  };
  if (totals.calls === 0 && total === 0n)
    return {
      ...common,
      isEmpty: true,
      sentences: [
        `No calls were recorded in this period.${previous === 0n ? '' : ` Calls of the previous period cost ${moneyText(previous)}.`}`,
      ],
      chart: null,
      tables: [],
    };
  return {
    ...common,
    isEmpty: false,
    sentences: [
      `${callsText(totals.calls)} cost ${moneyText(total)}, ${comparisonText(total, previous, period, moneyText)}.`,
      ...largestModels(spend.models),
      ...(totals.unpriced === 0
        ? []
        : [
            `The cost of ${callsText(totals.unpriced)} is not known (no price, or no usage); ${totals.unpriced === 1 ? 'it is' : 'they are'} counted and add${totals.unpriced === 1 ? 's' : ''} nothing to the amounts.`,
          ]),
      ...(spend.adjustmentsPico === null || spend.adjustmentsPico === 0n
        ? []
        : [
            `${moneyText(centsFromPico(spend.adjustmentsPico))} of it are changes of closed months, on the days on which they came.`,
          ]),
    ],
    chart: trendChart(spend.days, period),
    tables: [
      modelTable(spend.models, spend.previousModels),
      trendTable(spend.days, period),
      teamTable(figures),
    ],
  };
}

function largestModels({ groups, totals }: SpendBy): string[] {
  const [first, ...others] = groups.filter(({ costPico }) => costPico > 0n).slice(0, 3);
  if (!first) return [];
  const share = ({ costPico }: SpendGroup) => percentText(costPico, totals.costPico);
  if (others.length === 0) return [`All of it went to ${nameOf(first.key)}.`];
  const texts = [first, ...others].map((group) => `${nameOf(group.key)} (${share(group)})`);
  return [`The most went to ${listed(texts)}.`];
}

const nameOf = (key: string): string => shortened(key === '' ? UNSET_KEY : key, NAME_CHARS);

/** Rows of groups in cents that sum to the total; the groups beyond `shown` are one row. */
function rowsOf({ totals, groups }: SpendBy, shown: number) {
  const listedPico = sumOf(groups.map(({ costPico }) => costPico));
  const rest = totals.costPico - listedPico;
  const cents = footCents([...groups.map(({ costPico }) => costPico), rest]).partsPico.map(centsOfWhole);
  const listedCalls = groups.slice(0, shown).reduce((sum, { calls }) => sum + calls, 0);
  return {
    rows: groups.slice(0, shown).map((group, at) => ({ group, cents: cents[at] ?? 0n })),
    others: {
      count: groups.length - Math.min(shown, groups.length),
      calls: totals.calls - listedCalls,
      cents: sumOf(cents.slice(Math.min(shown, groups.length))),
    },
  };
}

const tokensOf = (sums: {
  inputTokens: number;
  outputTokens: number;
  cacheRead: number;
  cacheCreation: number;
}) => sums.inputTokens + sums.outputTokens + sums.cacheRead + sums.cacheCreation;

function modelTable(models: SpendBy, previous: SpendBy): SectionTable {
  const { rows, others } = rowsOf(models, MODELS_SHOWN);
  const total = centsFromPico(models.totals.costPico);
  const before = new Map(previous.groups.map(({ key, costPico }) => [key, centsFromPico(costPico)]));
  const shownTokens = rows.reduce((sum, { group }) => sum + tokensOf(group), 0);
  return {
    title: 'By model',
    note: '',
    table: {
      columns: [textColumn('Model'), ...['Calls', 'Tokens', 'Cost', 'Share', 'Change'].map(numberColumn)],
      rows: [
        ...rows.map(({ group, cents }) => [
          nameOf(group.key),
          countText(group.calls),
          countText(tokensOf(group)),
          moneyText(cents),
          percentText(cents, total),
          changeText(centsFromPico(group.costPico), before.get(group.key) ?? 0n),
        ]),
        ...(others.count > 0
          ? [
              [
                `${others.count} other models`,
                countText(others.calls),
                countText(tokensOf(models.totals) - shownTokens),
                moneyText(others.cents),
                percentText(others.cents, total),
                '',
              ],
            ]
          : []),
      ],
      total: [
        'Total',
        countText(models.totals.calls),
        countText(tokensOf(models.totals)),
        moneyText(total),
        total === 0n ? '–' : '100.0%',
        changeText(total, centsFromPico(previous.totals.costPico)),
      ],
    },
  };
}

/** A trend's parts with their cents, which sum to the total. */
export function trendOf({ totals, groups }: SpendBy, period: ReportPeriod) {
  const days = new Map(groups.map((group) => [group.key, group]));
  const parts = partsOfPeriod(period).map((part) => {
    const within = [...days.values()].filter(({ key }) => key >= part.fromDay && key <= part.toDay);
    return {
      part,
      costPico: sumOf(within.map(({ costPico }) => costPico)),
      calls: within.reduce((sum, { calls }) => sum + calls, 0),
    };
  });
  const rest = totals.costPico - sumOf(parts.map(({ costPico }) => costPico));
  const cents = footCents([...parts.map(({ costPico }) => costPico), rest]).partsPico.map(centsOfWhole);
  return parts.map((one, at) => ({ ...one, cents: cents[at] ?? 0n }));
}

const GRAIN_TITLES = { day: 'By day', week: 'By week', month: 'By month' } as const;
export const GRAIN_NOUNS = { day: 'day', week: 'week', month: 'month' } as const;

function trendChart(days: SpendBy, period: ReportPeriod): DocumentSection['chart'] {
  const parts = trendOf(days, period);
  if (parts.length < 2 || parts.every(({ cents }) => cents === 0n)) return null;
  const grain = GRAIN_NOUNS[grainOf(period)];
  const most = parts.reduce((best, one) => (one.cents > best.cents ? one : best));
  return {
    title: `Spend by ${grain}`,
    alt: `Columns: spend by ${grain}, ${periodText(period)}. The highest is ${moneyText(most.cents)} (${partName(most.part, period)}). The table “${GRAIN_TITLES[grainOf(period)]}” has every number.`,
    drawing: {
      kind: 'columns',
      unit: 'dollars',
      series: ['Spend'],
      points: parts.map(({ part, costPico }) => ({
        label: partLabel(part, period),
        values: [Math.max(usdNumberFromPico(costPico), 0)],
      })),
    },
  };
}

function trendTable(days: SpendBy, period: ReportPeriod): SectionTable {
  const parts = trendOf(days, period);
  const total = centsFromPico(days.totals.costPico);
  return {
    title: GRAIN_TITLES[grainOf(period)],
    note: '',
    table: {
      columns: [
        textColumn(grainOf(period) === 'month' ? 'Month' : 'Days'),
        ...['Calls', 'Cost', 'Share'].map(numberColumn),
      ],
      rows: parts.map(({ part, calls, cents }) => [
        partName(part, period),
        countText(calls),
        moneyText(cents),
        percentText(cents, total),
      ]),
      total: ['Total', countText(days.totals.calls), moneyText(total), total === 0n ? '–' : '100.0%'],
    },
  };
}

const ALLOCATED: Readonly<Record<Exclude<Allocation, 'none'>, string>> = {
  by_share: 'in proportion to what the teams spent',
  even: 'to each team the same',
};

/** Who is charged what; with an allocation the total contains what no call shows. */
function teamTable({ spend: { chargeback } }: ReportFigures): SectionTable {
  const { buckets, totalCents, allocation } = chargeback;
  const shown = buckets.slice(0, TEAMS_SHOWN);
  const others = buckets.slice(TEAMS_SHOWN);
  const row = (name: string, of: typeof buckets) => {
    const cents = sumOf(of.map(({ costCents }) => costCents));
    const add = (value: (bucket: (typeof buckets)[number]) => number) =>
      countText(of.reduce((sum, bucket) => sum + value(bucket), 0));
    return [
      name,
      add(({ rows }) => rows),
      add(({ tokens }) => tokens),
      moneyText(cents),
      percentText(cents, totalCents),
    ];
  };
  return {
    title: 'Chargeback by team',
    note:
      allocation !== 'none'
        ? `Contains billed spend that no call shows and calls without a team, shared out ${ALLOCATED[allocation]}.`
        : buckets.some(({ key }) => key === UNSET_KEY)
          ? `Calls without a team are under ${UNSET_KEY}: label calls with team_id to charge them.`
          : '',
    table: {
      columns: [textColumn('Team'), ...['Calls', 'Tokens', 'Charged', 'Share'].map(numberColumn)],
      rows: [
        ...shown.map((bucket) => row(shortened(bucket.key, NAME_CHARS), [bucket])),
        ...(others.length > 0 ? [row(`${others.length} other teams`, others)] : []),
      ],
      total: row('Total', buckets),
    },
  };
}
