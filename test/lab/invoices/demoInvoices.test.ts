import { beforeAll, describe, expect, it } from 'vitest';
import { createInvoiceExtractor } from '../../../adapters/invoices/extractor.js';
import { Renderer } from '../../../adapters/typst/renderer.js';
import { checkInvoice, isAccepted } from '../../../domain/invoices/checkInvoice.js';
import type { InvoiceReading } from '../../../domain/invoices/invoiceReading.js';
import { readInvoice } from '../../../domain/invoices/readInvoice.js';
import { DOCUMENTED } from '../../../lab/demo/describe.js';
import { type Demo, generateDemo } from '../../../lab/demo/generateDemo.js';
import type { DemoInvoice } from '../../../lab/demo/invoices.js';
import { renderDemoInvoice } from '../../../lab/demo/renderInvoice.js';

const HALF_CENT = 5_000_000_000n;
const renderer = new Renderer();
const extractor = createInvoiceExtractor({ engines: ['text'] });

let demo: Demo;

beforeAll(() => {
  demo = generateDemo(DOCUMENTED);
}, 300_000);

const sum = (values: readonly bigint[]) => values.reduce((total, value) => total + value, 0n);

async function readBack(invoice: DemoInvoice): Promise<InvoiceReading> {
  const pdf = await renderDemoInvoice(renderer, invoice);
  const reading = readInvoice(await extractor.extract(new Uint8Array(pdf)), { provider: invoice.provider });
  if (!reading) throw new Error(`${invoice.number} is not read`);
  return reading;
}

/** Dollars of a provider's saved bill in these days, by the later copy of each. */
function billedPico(provider: DemoInvoice['provider'], firstDay: string, lastDay: string): bigint {
  const { costs, cost_report } = demo.truth[provider].reports;
  const inside = (costs ?? cost_report ?? []).filter(({ startSeconds }) => {
    const day = new Date(startSeconds * 1_000).toISOString().slice(0, 10);
    return day >= firstDay && day <= lastDay;
  });
  const pico = (text: string, digits: number) => {
    const [whole = '', part = ''] = text.split('.');
    return BigInt(whole + part.padEnd(digits, '0'));
  };
  return sum(
    inside.flatMap(({ results }) =>
      results.map((result) => {
        const { amount } = result as { amount: string | { value: { $number: string } } };
        // OpenAI writes dollars, Anthropic cents.
        return typeof amount === 'string' ? pico(amount, 10) : pico(amount.value.$number, 12);
      }),
    ),
  );
}

describe('the invoices of the demo', () => {
  it('come to what the bills come to, but for the line that is there twice', () => {
    for (const { provider, firstDay, lastDay, lines, subtotalPico, fault, faultPico } of demo.invoices) {
      const extra = fault === 'line_twice' ? (faultPico ?? 0n) : 0n;
      const difference = subtotalPico - extra - billedPico(provider, firstDay, lastDay);
      const tolerance = HALF_CENT * BigInt(lines.length);
      expect(difference <= tolerance && difference >= -tolerance, `${difference}`).toBe(true);
    }
  });

  it('have the same planted amounts whatever the last day is', () => {
    const planted = ({ invoices }: Demo) =>
      invoices.map(({ fault, faultPico }) => [fault, String(faultPico)]);
    expect(planted(generateDemo({ ...DOCUMENTED, endDay: '2028-02-29' }))).toEqual(planted(demo));
  });

  it('are set as the same bytes each time', async () => {
    const [invoice] = demo.invoices as [DemoInvoice];
    const [one, two] = [
      await renderDemoInvoice(renderer, invoice),
      await renderDemoInvoice(renderer, invoice),
    ];
    expect(one.equals(two)).toBe(true);
  });

  it('are read to the last digit, and only the wrong tax is refused', async () => {
    for (const invoice of demo.invoices) {
      const reading = await readBack(invoice);
      expect(reading.lines.map((line) => line.amount.value)).toEqual(invoice.lines.map(({ pico }) => pico));
      expect(reading.total?.value).toBe(invoice.totalPico);
      expect(reading.periodStart?.value).toBe(invoice.firstDay);
      expect(reading.periodEnd?.value).toBe(invoice.lastDay);
      const failed = checkInvoice(reading).filter((check) => !check.ok);
      expect(failed.map(({ check }) => check)).toEqual(invoice.fault === 'wrong_tax' ? ['tax'] : []);
      if (invoice.fault === 'wrong_tax') expect(failed[0]?.difference).toBeGreaterThan(0n);
      expect(isAccepted(checkInvoice(reading))).toBe(invoice.fault !== 'wrong_tax');
    }
  });
});
