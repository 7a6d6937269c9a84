import { numberColumn, textColumn } from '../claims/evidence/documentRates.js';
import { counted, shortened, spanText } from '../claims/evidence/documentTexts.js';
import { footCents } from '../footing.js';
import { centsFromPico, usdNumberFromPico } from '../money.js';
import { dayOf } from '../period.js';
import type { ModeledFigures, ReportFigures } from './figures.js';
import {
  asOfText,
  callsText,
  centsOfWhole,
  comparisonText,
  countText,
  type DocumentChart,
  type DocumentSection,
  moneyText,
  type SectionTable,
} from './sectionParts.js';

const RULES_SHOWN = 12;
const NAME_CHARS = 48;

/** The section of enforcement: blocked calls and modeled savings. */
export function enforcementSection(figures: ReportFigures): DocumentSection {
  const { period, enforcement, asOfMicros } = figures;
  const { calls, preventedPico, previousPreventedPico, callsWithoutAmount, modeled } = enforcement;
  const prevented = centsFromPico(preventedPico);
  const previous = centsFromPico(previousPreventedPico);
  const isEmpty = calls === 0 && modeled === null;
  return {
    key: 'enforcement',
    title: 'Enforcement',
    isEmpty,
    sources: `Sources: calls that wrappers reported as blocked, and the newest savings run, ${asOfText(asOfMicros)}. Prevented spend is the wrappers’ estimate; it is no part of spend.`,
    sentences: [
      rulesText(figures),
      calls === 0
        ? `No call was blocked in this period${previous === 0n ? '' : `, after ${moneyText(previous)} prevented in the period before`}.`
        : `Rules blocked ${callsText(calls)} and prevented ${moneyText(prevented)}, ${comparisonText(prevented, previous, period, moneyText)}.`,
      ...(callsWithoutAmount === 0
        ? []
        : [
            `${callsText(callsWithoutAmount)} of them ${callsWithoutAmount === 1 ? 'has' : 'have'} no stated cost and add${callsWithoutAmount === 1 ? 's' : ''} nothing to the amount.`,
          ]),
      ...(modeled ? [modeledText(modeled)] : []),
    ],
    chart: preventedChart(figures),
    tables: [
      ...preventedTable(figures),
      ...(modeled && modeled.rules.length > 0 ? [modeledTable(modeled)] : []),
    ],
  };
}

function rulesText({ enforcement: { blocking, observing } }: ReportFigures): string {
  if (blocking + observing === 0) return 'No enforcement rule is switched on.';
  const parts = [
    ...(blocking > 0 ? [`${counted(blocking, 'rule')} that block${blocking === 1 ? 's' : ''}`] : []),
    ...(observing > 0
      ? [`${counted(observing, 'rule')} that only observe${observing === 1 ? 's' : ''}`]
      : []),
  ];
  return `Switched on: ${parts.join(' and ')}.`;
}

const modeledPeriod = ({ fromMicros, toMicros }: ModeledFigures): string =>
  spanText(dayOf(fromMicros), dayOf(toMicros - 1n));

function modeledText(modeled: ModeledFigures): string {
  const saved = moneyText(centsFromPico(modeled.savedPico));
  const of = modeled.isOfPeriod
    ? 'over this period'
    : `over ${modeledPeriod(modeled)}, the newest 30 days that were modeled,`;
  return `Applied to all calls ${of} the rules would have saved ${saved} (modeled ${asOfText(modeled.asOfMicros)}).`;
}

/** Rules with cents that sum to the total; those beyond `RULES_SHOWN` are one row. */
function footed<R extends { name: string; calls: number }>(
  rules: readonly R[],
  amountOf: (rule: R) => bigint,
) {
  const { partsPico, totalPico } = footCents(rules.map(amountOf));
  const rows = rules.map(({ name, calls }, at) => ({
    name,
    calls,
    cents: centsOfWhole(partsPico[at] ?? 0n),
  }));
  const rest = rows.slice(RULES_SHOWN);
  const others =
    rest.length === 0
      ? []
      : [
          {
            name: `${rest.length} other rules`,
            calls: rest.reduce((sum, { calls }) => sum + calls, 0),
            cents: rest.reduce((sum, { cents }) => sum + cents, 0n),
          },
        ];
  return { rows: [...rows.slice(0, RULES_SHOWN), ...others], totalCents: centsOfWhole(totalPico) };
}

function preventedTable({ enforcement }: ReportFigures): SectionTable[] {
  if (enforcement.calls === 0) return [];
  const { rows, totalCents } = footed(enforcement.rules, ({ preventedPico }) => preventedPico);
  return [
    {
      title: 'Prevented by rule',
      note: '',
      table: {
        columns: [textColumn('Rule'), ...['Blocked calls', 'Prevented'].map(numberColumn)],
        rows: rows.map(({ name, calls, cents }) => [
          shortened(name, NAME_CHARS),
          countText(calls),
          moneyText(cents),
        ]),
        total: ['Total', countText(enforcement.calls), moneyText(totalCents)],
      },
    },
  ];
}

function modeledTable(modeled: ModeledFigures): SectionTable {
  const { rows, totalCents } = footed(modeled.rules, ({ savedPico }) => savedPico);
  return {
    title: `Modeled savings by rule, ${modeledPeriod(modeled)}`,
    note: 'Modeled: what the rules would have saved, had each of them been applied to every call. It is not money that was saved.',
    table: {
      columns: [textColumn('Rule'), ...['Calls affected', 'Would have saved'].map(numberColumn)],
      rows: rows.map(({ name, calls, cents }) => [
        shortened(name, NAME_CHARS),
        countText(calls),
        moneyText(cents),
      ]),
      total: ['Total', countText(rows.reduce((sum, { calls }) => sum + calls, 0)), moneyText(totalCents)],
    },
  };
}

/** Of what was prevented; where nothing was, of what was modeled. */
function preventedChart({ enforcement }: ReportFigures): DocumentChart | null {
  const { modeled } = enforcement;
  if (enforcement.preventedPico > 0n)
    return rowsChart(
      'Prevented spend by rule',
      enforcement.rules.map(({ name, preventedPico }) => ({ name, pico: preventedPico })),
      'Prevented by rule',
    );
  if (!modeled || modeled.savedPico <= 0n) return null;
  return rowsChart(
    'Modeled savings by rule',
    modeled.rules.map(({ name, savedPico }) => ({ name, pico: savedPico })),
    'Modeled savings by rule',
  );
}

const BARS_MAX = 6;

function rowsChart(
  title: string,
  rules: readonly { name: string; pico: bigint }[],
  table: string,
): DocumentChart {
  const cents = footCents(rules.map(({ pico }) => pico)).partsPico.map(centsOfWhole);
  const bars = rules
    .map(({ name, pico }, at) => ({
      label: shortened(name, 34),
      value: usdNumberFromPico(pico),
      text: moneyText(cents[at] ?? 0n),
    }))
    .filter(({ value }) => value > 0)
    .slice(0, BARS_MAX);
  return {
    title,
    alt: `Bars: ${title.toLowerCase()}; the largest is ${bars[0]?.text ?? ''} (${bars[0]?.label ?? ''}). The table “${table}” has every number.`,
    drawing: { kind: 'rows', rows: bars },
  };
}
