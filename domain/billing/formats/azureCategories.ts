import type { Pico } from '../../money.js';
import type { ChargeCategory } from '../billedRow.js';
import { categoryOfLabel } from '../chargeCategory.js';

/** `ChargeType` of Microsoft's cost and usage details; what is used of a reservation or not is use that was paid for. */
const CATEGORIES: Readonly<Record<string, ChargeCategory>> = {
  usage: 'usage',
  unusedreservation: 'usage',
  unusedsavingsplan: 'usage',
  purchase: 'purchase',
  refund: 'refund',
  roundingadjustment: 'adjustment',
  adjustment: 'adjustment',
  tax: 'tax',
  credit: 'credit',
};

/** What a charge of Azure is, by its type and, where none is told, by its meter and sign. */
export function azureCategory(
  chargeType: string,
  meter: string,
  recognised: boolean,
  amount: Pico,
): ChargeCategory {
  const type = chargeType.toLowerCase().replace(/[\s_]/g, '');
  const category = CATEGORIES[type] ?? categoryOfLabel(type || meter, recognised, amount);
  // A negative line of use is a correction: netted into the day's use it would look free.
  return category === 'usage' && amount < 0n ? 'adjustment' : category;
}
