/** Reads the generators' bills independently of the product, with exact amounts from their text. */
import type { BillDocument } from '../../../lab/generators/world.js';

export interface ReadLine {
  provider: string;
  accountId: string;
  day: string;
  /** The model where the line names one by itself, else its label. */
  label: string;
  pico: bigint;
  quantity: number | null;
}

const PICO_DIGITS = 12;

/** A decimal text, with an exponent too, × 10^digits. Digits beyond are an error. */
export function scaledDecimal(text: string, digits = PICO_DIGITS): bigint {
  const match = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(text);
  if (!match) throw new Error(`no number: ${text}`);
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = match;
  const shift = digits + Number(exponent) - fraction.length;
  const figure = BigInt(whole + fraction);
  if (shift < 0 && figure % 10n ** BigInt(-shift) !== 0n) throw new Error(`too many digits: ${text}`);
  const value = shift >= 0 ? figure * 10n ** BigInt(shift) : figure / 10n ** BigInt(-shift);
  return sign === '-' ? -value : value;
}

interface OpenaiPage {
  data: {
    start_time: number;
    results: { amount: { value: number }; line_item: string; quantity?: number }[];
  }[];
}

interface AnthropicPage {
  data: { starting_at: string; results: { amount: string; description: string; model: string | null }[] }[];
}

/** The lines of a document of costs; none of a usage report. */
export function readLines({ provider, accountId, feed, text }: BillDocument): ReadLine[] {
  if (feed === 'openai_costs')
    return (JSON.parse(text) as OpenaiPage[]).flatMap(({ data }) =>
      data.flatMap(({ start_time, results }) =>
        results.map(({ amount, line_item, quantity }) => ({
          provider,
          accountId,
          day: new Date(start_time * 1_000).toISOString().slice(0, 10),
          label: line_item,
          pico: scaledDecimal(String(amount.value)),
          quantity: quantity ?? null,
        })),
      ),
    );
  if (feed === 'anthropic_costs')
    return (JSON.parse(text) as AnthropicPage[]).flatMap(({ data }) =>
      data.flatMap(({ starting_at, results }) =>
        results.map(({ amount, description, model }) => ({
          provider,
          accountId,
          day: starting_at.slice(0, 10),
          label: model ?? description,
          pico: scaledDecimal(amount, PICO_DIGITS - 2),
          quantity: null,
        })),
      ),
    );
  if (feed !== 'plain_csv') return [];
  return text
    .trim()
    .split('\n')
    .slice(1)
    .map((line) => line.split(','))
    .map(([day = '', model = '', , quantity = '', amount = '', , , label = '']) => ({
      provider,
      accountId,
      day,
      label: model || label,
      pico: scaledDecimal(amount),
      quantity: quantity === '' ? null : Number(quantity),
    }));
}

/** Sums of the lines by a name. */
export function sumsBy(lines: readonly ReadLine[], nameOf: (line: ReadLine) => string): Map<string, bigint> {
  const sums = new Map<string, bigint>();
  for (const line of lines) sums.set(nameOf(line), (sums.get(nameOf(line)) ?? 0n) + line.pico);
  return sums;
}
