/** Bills as plain files: `date, model, token_class, quantity, amount_usd` and other known columns. */
import { dayText } from '../support/days.js';
import { dollarText } from '../support/money.js';
import { grouped } from './grouped.js';
import { type CostRow, type ExtraLine, printedUnit } from './ledger.js';
import { CLASSES } from './rateBook.js';

const HEADER = 'date,model,token_class,quantity,amount_usd,project,api_key,line_item,service_tier';

/**
 * `full`: by project, key and service tier, with quantities. `merged`: by model and class, with quantities, batch and tier
 * in one line. `amounts`: by model and class, without quantities. `totals`: one amount for a model and day.
 */
export type CsvGrain = 'full' | 'merged' | 'amounts' | 'totals';

export function plainCsv(rows: readonly CostRow[], extras: readonly ExtraLine[], grain: CsvGrain): string {
  const lines = grouped(rows, (row) => nameOf(row, grain));
  const text = [...lines.values()].map((group) => {
    const [row] = group as [CostRow];
    const quantity = grain === 'full' || grain === 'merged';
    const isFull = grain === 'full';
    return [
      dayText(row.day),
      row.model,
      grain === 'totals' ? 'other' : (CLASSES[row.tokenClass] as string),
      quantity ? String(group.reduce((sum, one) => sum + one.quantity, 0)) : '',
      amount(
        group.reduce((sum, one) => sum + one.pico, 0n),
        row.provider,
      ),
      isFull ? (row.project ?? '') : '',
      isFull ? (row.keyId ?? '') : '',
      '',
      isFull ? tierOf(row) : '',
    ].join(',');
  });
  for (const line of extras) {
    const cells = [dayText(line.day), '', 'other', '', amount(line.pico, line.provider)];
    text.push([...cells, grain === 'full' ? (line.project ?? '') : '', '', line.label, ''].join(','));
  }
  return `${[HEADER, ...text].join('\n')}\n`;
}

function nameOf(row: CostRow, grain: CsvGrain): string {
  if (grain === 'totals') return `${row.day}|${row.model}`;
  if (grain !== 'full') return `${row.day}|${row.model}|${row.tokenClass}`;
  return [row.day, row.model, row.tokenClass, row.project, row.keyId, tierOf(row)].join('|');
}

const tierOf = (row: CostRow): string => (row.isBatch ? 'batch' : row.tier);

const FEMTO_DIGITS = 15;

/** With all digits of the bill including zeros, which show its rounding. */
function amount(pico: bigint, provider: string): string {
  return dollarText(pico, FEMTO_DIGITS - (String(printedUnit(provider)).length - 1));
}
