import type { Pico } from '../money.js';
import type { ChargeCategory } from './billedRow.js';

/**
 * Words by which a label that names no usage says what it is. OpenAI's costs and Anthropic's cost report have no
 * field for it; grants and corrections come as labels of their own, mostly with a negative amount.
 */
const WORDS: readonly [ChargeCategory, RegExp][] = [
  ['refund', /\brefund(?:s|ed)?\b/i],
  ['credit', /\b(?:credits?|grants?|promo(?:tional|tion)?|discounts?)\b/i],
  ['tax', /\b(?:tax|taxes|vat|gst)\b/i],
  ['adjustment', /\b(?:adjustments?|corrections?|true-?ups?)\b/i],
  ['purchase', /\b(?:purchases?|top-?ups?|prepaid|commitments?)\b/i],
];

/**
 * The category of a cost row without a category field. `recognised` says that the label's grammar named usage. A
 * negative amount is never usage: netted into it, a day of use would look free. A label that is
 * not understood and not negative stays usage, so that it is shown until somebody explains it.
 */
export function categoryOfLabel(label: string, recognised: boolean, amountPico: Pico): ChargeCategory {
  if (!recognised) {
    for (const [category, words] of WORDS) if (words.test(label)) return category;
  }
  return amountPico < 0n ? 'adjustment' : 'usage';
}
