import { describe, expect, it } from 'vitest';
import { decimalFromPico } from '../../../domain/money.js';
import { readBill } from '../../support/readBill.js';

const entry = (metric: string, group: string, over: object = {}) => ({
  usage_type: 'usage',
  event_type: 'api_tokens',
  billing_metric: metric,
  billing_display_name: metric,
  billing_group: group,
  timestamp: '2026-05-14',
  value: 11_121,
  value_paid: 11_121,
  ...over,
});

/** The answer of Mistral's usage report, with its own way of writing numbers. */
const report = (over: object = {}) =>
  JSON.stringify({
    chat: { models: {} },
    completion: {
      models: {
        'mistral-large-latest::mistral-large-2411': {
          input: [entry('mistral-large-2411', 'input')],
          output: [entry('mistral-large-2411', 'output', { value: 1_115, value_paid: 1_115 })],
        },
        'mistral-small-latest::mistral-small-2506': {
          input: [
            entry('mistral-small-2506', 'input', {
              timestamp: '2026-05-31T00:00:00Z',
              value: 100,
              value_paid: 100,
            }),
          ],
          cached: [],
        },
      },
    },
    ocr: { models: {} },
    libraries_api: { pages: { models: {} }, tokens: { models: {} } },
    fine_tuning: { training: {}, storage: {} },
    audio: { models: {} },
    vibe_usage: 0.0,
    start_date: '2026-05-01T00:00:00Z',
    end_date: '2026-05-31T23:59:59.999Z',
    currency: 'EUR',
    currency_symbol: '€',
    prices: [
      {
        event_type: 'api_tokens',
        billing_metric: 'mistral-large-2411',
        billing_group: 'input',
        price: '0.0000017000',
      },
      {
        event_type: 'api_audio_seconds',
        billing_metric: 'mistral-large-2411',
        billing_group: 'input',
        price: '0.01',
      },
      {
        event_type: 'api_tokens',
        billing_metric: 'mistral-large-2411',
        billing_group: 'output',
        price: '0.0000051000',
      },
      {
        event_type: 'api_tokens',
        billing_metric: 'mistral-small-2506',
        billing_group: 'input',
        price: '8.50E-8',
      },
      { event_type: 'ocr_pages', billing_metric: 'mistral-ocr', billing_group: 'pages', price: '0.001' },
    ],
    ...over,
  });

const MISTRAL = { provider: 'mistral', fxRate: '1' } as const;
const completion = (...entries: object[]) => ({ completion: { models: { m: { input: entries } } } });

describe('Mistral’s usage report', () => {
  it('is a charge for each day, model and class, at its own prices, exactly', async () => {
    const { rows, summary } = await readBill(report(), MISTRAL);
    expect(summary.format).toBe('mistral_usage');
    expect(
      rows.map(({ day, model, tokenClass, quantity, amountPico }) => [
        day,
        model,
        tokenClass,
        quantity,
        decimalFromPico(amountPico ?? -1n),
      ]),
    ).toEqual([
      ['2026-05-14', 'mistral-large-2411', 'input', 11_121n * 10n ** 12n, '0.0189057'],
      ['2026-05-14', 'mistral-large-2411', 'output', 1_115n * 10n ** 12n, '0.0056865'],
      ['2026-05-31', 'mistral-small-2506', 'input', 100n * 10n ** 12n, '0.0000085'],
    ]);
    expect(rows[0]).toMatchObject({ currency: 'EUR', originalAmount: 18_905_700_000n, isBatch: null });
  });

  it('usage that the plan covers is a credit, not cheaper use', async () => {
    const { rows } = await readBill(
      report(completion(entry('mistral-large-2411', 'input', { value: 1_000_000, value_paid: 400_000 }))),
      MISTRAL,
    );
    expect(
      rows.map(({ chargeCategory, amountPico }) => [chargeCategory, decimalFromPico(amountPico ?? 0n)]),
    ).toEqual([
      ['usage', '1.7'],
      ['credit', '-1.02'],
    ]);
  });

  it('pages, seconds and the like are charges that no call can show', async () => {
    const { rows } = await readBill(
      report({
        ocr: {
          models: {
            o: {
              input: [entry('mistral-ocr', 'pages', { event_type: 'ocr_pages', value: 12, value_paid: 12 })],
            },
          },
        },
        completion: { models: {} },
      }),
      MISTRAL,
    );
    expect(rows).toEqual([
      expect.objectContaining({
        observable: false,
        model: null,
        tokenClass: 'other',
        quantityUnit: 'ocr_pages',
        amountPico: 12_000_000_000n,
      }),
    ]);
  });

  it.each(['chat', 'completion', 'ocr', 'audio', 'connectors', 'libraries_api', 'fine_tuning'])(
    'the category %s is read, however deep its entries lie, with its money',
    async (category) => {
      const one = entry('mistral-ocr', 'pages', { event_type: 'ocr_pages', value: 3, value_paid: 3 });
      const { rows } = await readBill(
        report({ completion: { models: {} }, [category]: { a: { models: { m: { input: [one] } } } } }),
        MISTRAL,
      );
      expect(rows.map(({ amountPico }) => amountPico)).toEqual([3_000_000_000n]);
    },
  );

  it('without a rate is kept in its own currency', async () => {
    const { rows } = await readBill(report(), { provider: 'mistral' });
    expect(rows.every(({ amountPico, currency }) => amountPico === null && currency === 'EUR')).toBe(true);
  });

  it.each([
    [completion(entry('unknown-model', 'input')), 'prices names no price for unknown-model, input'],
    [
      completion(entry('mistral-large-2411', 'input', { timestamp: 'May' })),
      'timestamp of mistral-large-2411, input must be a day',
    ],
    [
      completion(entry('mistral-large-2411', 'input', { value: 1.5 })),
      'value of mistral-large-2411, input must be a whole number',
    ],
    [{ currency: '€' }, 'currency must be three letters'],
  ])('a fault is reported: %o', async (over, sentence) => {
    await expect(readBill(report(over), MISTRAL)).rejects.toThrow(sentence);
  });
});
