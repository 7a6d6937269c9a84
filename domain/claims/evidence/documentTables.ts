/** The tables of a claim's document: its lines, netted undercharges, and a worked example. */
import type { ClaimEvidence, EvidenceCell, EvidenceDispute, EvidenceRow } from './claimEvidence.js';
import {
  type DocumentColumn,
  type DocumentTable,
  meterText,
  numberColumn,
  ratesOf,
  rightRateName,
  textColumn,
} from './documentRates.js';
import {
  aligned,
  alignedRates,
  counted,
  dayText,
  exactDollars,
  quantityText,
  spanText,
  unitOf,
  words,
} from './documentTexts.js';

export interface LineGroup extends DocumentTable {
  title: string;
  subtitle: string;
}

const NONE = '–';

/** The lines of a dispute. Columns that are empty or repeat another column are left out. */
export function groupOf(dispute: EvidenceDispute, evidence: ClaimEvidence): LineGroup {
  const cells = evidence.cells.filter((cell) => cell.dispute_id === dispute.dispute_id);
  const dollars = (of: (one: EvidenceCell | EvidenceDispute) => string) =>
    aligned([...cells.map(of), of(dispute)]);
  const quantities = (of: (one: EvidenceCell) => string | null) =>
    cells.map(of).map((text) => (text === null ? NONE : quantityText(text)));
  const chargedRates = alignedRates(cells.map((cell) => cell.billed_rate_usd));
  const rightRates = alignedRates(cells.map((cell) => cell.expected_rate_usd));
  const rightRate = rightRateName(ratesOf(cells, evidence));
  const isOneDay = dispute.period_start === dispute.period_end;
  const isOfUnits = cells.some(isOtherQuantity);
  const isOfRates = cells.some(isOtherRate);
  const columns: [DocumentColumn, string[]][] = [
    ...column(
      !isOneDay,
      textColumn('Day'),
      cells.map(({ day }) => dayText(day)),
    ),
    ...column(true, textColumn('Class'), cells.map(meterText)),
    ...column(
      true,
      numberColumn('Units charged'),
      quantities((cell) => cell.billed_quantity),
    ),
    ...column(
      isOfUnits,
      numberColumn('Usage report'),
      quantities((cell) => cell.usage_report_quantity),
    ),
    ...column(
      isOfUnits,
      numberColumn('Right units'),
      quantities((cell) => cell.right_quantity),
    ),
    ...column(isOfRates, numberColumn('Rate charged'), chargedRates),
    ...column(!isOfRates, numberColumn('Rate'), chargedRates),
    ...column(
      true,
      numberColumn('Charged, $'),
      dollars((one) => one.billed_usd_exact),
    ),
    ...column(isOfRates, numberColumn(rightRate), rightRates),
    ...column(
      true,
      numberColumn('Expected, $'),
      dollars((one) => one.expected_usd_exact),
    ),
    ...column(
      true,
      numberColumn('Difference, $'),
      dollars((one) => one.difference_usd_exact),
    ),
  ];
  return {
    title: dispute.model,
    subtitle: `${words(dispute.kind)}, ${spanText(dispute.period_start, dispute.period_end)}`,
    columns: columns.map(([one]) => one),
    rows: cells.map((_, at) => columns.map(([, texts]) => texts[at] ?? '')),
    total: columns.map(([, texts], at) => (at === 0 ? 'Total' : (texts[cells.length] ?? ''))),
  };
}

/** The column if it is shown and not empty. */
const column = (isShown: boolean, of: DocumentColumn, texts: string[]): [DocumentColumn, string[]][] =>
  isShown && texts.some((text) => text !== NONE) ? [[of, texts]] : [];

/** Whether a line was charged at a wrong rate; a mixture of rates has no single right one. */
const isOtherRate = (cell: EvidenceCell): boolean => /[1-9]/.test(cell.rate_usd_exact);

const isOtherQuantity = (cell: EvidenceCell): boolean =>
  cell.right_quantity !== null && cell.right_quantity !== cell.billed_quantity;

export function underchargesOf({ undercharges, totals }: ClaimEvidence): DocumentTable {
  const amounts = aligned([
    ...undercharges.map((one) => one.difference_usd_exact),
    `-${totals.netted_usd_exact}`,
  ]);
  return {
    columns: [...['Day', 'Model', 'Fault'].map(textColumn), numberColumn('Difference, $')],
    rows: undercharges.map((one, at) => [dayText(one.day), one.model, words(one.kind), amounts[at] ?? '']),
    total: ['Total', '', '', amounts.at(-1) ?? ''],
  };
}

export interface WorkedLine {
  title: string;
  steps: { name: string; value: string; from: string }[];
}

/** The calculation of the largest line of a dispute; undefined: no line follows from quantity and rate. */
export function workedLine(dispute: EvidenceDispute, evidence: ClaimEvidence): WorkedLine | undefined {
  const [first, ...rest] = evidence.cells.filter(
    (one) => one.dispute_id === dispute.dispute_id && one.basis === 'rates',
  );
  if (!first) return undefined;
  const cell = rest.reduce((best, one) => (one.difference_usd > best.difference_usd ? one : best), first);
  const unit = unitOf(cell);
  const units = (text: string) => `${quantityText(text)} ${unit}`;
  const isOther = isOtherQuantity(cell);
  const step = (name: string, value: string, from: string) => ({ name, value, from });
  return {
    title: `${dispute.model}: ${meterText(cell).toLowerCase()}, ${dayText(cell.day)}`,
    steps: [
      step('Charged', exactDollars(cell.billed_usd_exact), placeText(cell.rows)),
      step(
        'Units charged',
        units(cell.billed_quantity ?? '0'),
        cell.quantity_rows.length > 0
          ? `the usage report: ${placeText(cell.quantity_rows)}`
          : 'of the same records',
      ),
      ...(cell.usage_report_quantity === null
        ? []
        : [step('Usage report', units(cell.usage_report_quantity), reportText(cell, evidence))]),
      ...(cell.observed_quantity === null || !isOther
        ? []
        : [step('Calls', units(cell.observed_quantity), 'the usage of the recorded calls')]),
      ...(isOther
        ? [step('Right units', units(cell.right_quantity ?? '0'), 'charged less those too many')]
        : []),
      step('Expected', exactDollars(cell.expected_usd_exact), formulaOf(cell, evidence)),
      step('Difference', exactDollars(cell.difference_usd_exact), 'charged less expected'),
    ],
  };
}

function placeText(rows: readonly EvidenceRow[]): string {
  const [row] = rows;
  if (!row) return 'the bill as it was imported';
  const at = row.at.startsWith('#') ? `record ${row.at.slice(1)}` : row.at;
  const more = rows.length > 1 ? `, and ${counted(rows.length - 1, 'further record')}` : '';
  return `${row.page}, ${at}${more}`;
}

/** A report may count in one record what the bill charges on several lines. */
function reportText(cell: EvidenceCell, { cells }: ClaimEvidence): string {
  const total = cell.usage_report_total_quantity ?? cell.usage_report_quantity;
  const page = cell.usage_report_rows[0]?.page ?? 'the usage report';
  if (total === null || total === cell.usage_report_quantity) return page;
  const others = cells.filter(
    (one) =>
      one !== cell &&
      one.dispute_id === cell.dispute_id &&
      one.day === cell.day &&
      one.token_class === cell.token_class,
  );
  const rest = others.map(
    (one) => `${quantityText(one.usage_report_quantity ?? '0')} of ${meterText(one).toLowerCase()}`,
  );
  return `${page}; it counts ${quantityText(total)} in one sum with ${rest.join(', ')}`;
}

function formulaOf(cell: EvidenceCell, { pricing_snapshot }: ClaimEvidence): string {
  const rates = new Map(pricing_snapshot.rates.map((rate) => [rate.id, rate.usd_per_mtok_exact]));
  const billed = cell.billed_quantity ?? '0';
  const right = cell.right_quantity ?? billed;
  const [only, ...others] = cell.parts;
  const rateOf = (id: string) => exactDollars(rates.get(id) ?? '0');
  if (only && others.length === 0) return `${quantityText(right)} × ${rateOf(only.rate)} ÷ 1,000,000`;
  const sum = cell.parts
    .map(({ quantity, rate }) => `${quantityText(quantity)} × ${rateOf(rate)}`)
    .join(' + ');
  const share = right === billed ? '' : ` × ${quantityText(right)} ÷ ${quantityText(billed)}`;
  return `(${sum}) ÷ 1,000,000${share}`;
}
