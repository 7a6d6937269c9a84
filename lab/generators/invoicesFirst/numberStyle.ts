import { type Decimal, decimalText, rounded } from './decimal.js';

export interface NumberStyle {
  point: '.' | ',';
  group: ',' | '.' | ' ' | "'" | '\u00a0' | '';
  /** Around an amount: `$` before or after it, or its code. */
  currency: 'symbol_before' | 'symbol_after' | 'code_before' | 'code_after' | 'none';
  minus: '-' | '\u2212' | 'parentheses' | 'trailing';
}

export interface Currency {
  code: string;
  symbol: string;
  digits: number;
}

export const CURRENCIES: Record<string, Currency> = {
  USD: { code: 'USD', symbol: '$', digits: 2 },
  EUR: { code: 'EUR', symbol: '€', digits: 2 },
  GBP: { code: 'GBP', symbol: '£', digits: 2 },
  CHF: { code: 'CHF', symbol: 'CHF ', digits: 2 },
  CAD: { code: 'CAD', symbol: 'CA$', digits: 2 },
  AUD: { code: 'AUD', symbol: 'A$', digits: 2 },
  SEK: { code: 'SEK', symbol: 'SEK ', digits: 2 },
  JPY: { code: 'JPY', symbol: '¥', digits: 0 },
};

/** Without a sign or currency. */
export function plainNumber(value: Decimal, style: NumberStyle, digits: number): string {
  const magnitude = value < 0n ? -value : value;
  const [whole = '0', part] = decimalText(magnitude, digits).split('.');
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, style.group);
  return part ? `${grouped}${style.point}${part}` : grouped;
}

export function quantityText(value: Decimal, style: NumberStyle): string {
  return value < 0n ? `-${plainNumber(value, style, 0)}` : plainNumber(value, style, 0);
}

/** As an amount with at least the currency's digits; more where the value has more. */
export function moneyText(value: Decimal, style: NumberStyle, currency: Currency): string {
  const number = plainNumber(value, style, currency.digits);
  const body = {
    symbol_before: `${currency.symbol}${number}`,
    symbol_after: `${number} ${currency.symbol.trim()}`,
    code_before: `${currency.code} ${number}`,
    code_after: `${number} ${currency.code}`,
    none: number,
  }[style.currency];
  if (value >= 0n) return body;
  if (style.minus === 'parentheses') return `(${body})`;
  if (style.minus === 'trailing') return `${body}-`;
  return `${style.minus}${body}`;
}

export function roundedMoney(value: Decimal, currency: Currency): Decimal {
  return rounded(value, currency.digits);
}
