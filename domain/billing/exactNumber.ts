import { parseScaled } from '../money.js';

/**
 * A JSON number as it was written. A bill's amount read into a double and printed again is the same decimal, but a
 * quantity above 2^53 is not; the text is exact for both.
 */
export class ExactNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** A value of a page: what JSON has, with numbers as their text. */
export type PageValue = null | boolean | string | ExactNumber | PageValue[] | { [key: string]: PageValue };

/** An object of a page. */
export type PageObject = { [key: string]: PageValue };

export function isPageObject(value: PageValue | undefined): value is PageObject {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof ExactNumber)
  );
}

/**
 * The decimal of a field given as a number or as a numeric string (both occur in the same API), scaled by 10^scale
 * and rounded half to even beyond it. Undefined when absent or not a number.
 */
export function findScaled(value: PageValue | undefined, scale: number): bigint | undefined {
  if (value instanceof ExactNumber) return parseScaled(value.text, scale);
  return typeof value === 'string' && value.trim() !== '' ? parseScaled(value, scale) : undefined;
}

/** A non-empty string field; null when absent, null or empty. */
export function findText(value: PageValue | undefined): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}
