import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { FocusCharge, FocusPricing } from '../../../../domain/billing/focus/focusCharge.js';
import {
  priceless,
  pricePurchase,
  priceUnbilled,
  priceUsage,
} from '../../../../domain/billing/focus/focusPricing.js';
import { exactOf, sumTexts, textOfExact, timesExact } from '../../../support/exactTable.js';

const CHARGE: FocusCharge = {
  accountId: 'a',
  isOfMonth: false,
  chargeCategory: 'usage',
  lineItem: 'm, input',
  model: 'm',
  tokenClass: 'input',
  serviceTier: 'standard',
  isBatch: false,
  longContext: null,
  region: null,
  observable: true,
  project: null,
  apiKey: null,
  teamId: null,
  quantity: 1n,
  quantityUnit: 'tokens',
  amountPico: 1n,
  listPico: null,
  contractedPico: null,
  currency: 'USD',
  originalAmount: 1n,
};

const amounts = fc.bigInt({ min: -(10n ** 18n), max: 10n ** 18n });
const rates = fc.bigInt({ min: 0n, max: 10n ** 15n });
/** Bills in dollars, in another currency with its dollars, and in one without a rate. */
const charges = fc
  .record({
    originalAmount: amounts,
    usd: fc.oneof(amounts, fc.constant(null)),
    isForeign: fc.boolean(),
    listPico: fc.oneof(amounts, fc.constant(null)),
    contractedPico: fc.oneof(amounts, fc.constant(null)),
  })
  .map(
    ({ originalAmount, usd, isForeign, ...rest }): FocusCharge => ({
      ...CHARGE,
      ...rest,
      originalAmount,
      currency: isForeign ? 'EUR' : 'USD',
      amountPico: !isForeign
        ? originalAmount
        : usd === null
          ? null
          : originalAmount < 0n
            ? -(usd < 0n ? -usd : usd)
            : usd < 0n
              ? -usd
              : usd,
    }),
  );

const product = (a: string | null, b: string | null) =>
  textOfExact(timesExact(exactOf(a ?? ''), exactOf(b ?? '')));
const plain = (text: string) => sumTexts([text]);

function assertExact(pricing: FocusPricing) {
  expect(product(pricing.listUnitPrice, pricing.quantity)).toBe(plain(pricing.listCost));
  expect(product(pricing.contractedUnitPrice, pricing.quantity)).toBe(plain(pricing.contractedCost));
  for (const price of [
    pricing.listUnitPrice,
    pricing.contractedUnitPrice,
    pricing.currencyListUnitPrice,
    pricing.currencyContractedUnitPrice,
  ])
    expect(price?.startsWith('-')).toBe(false);
}

describe('prices of an export', () => {
  it('unit price × quantity is the cost to the last digit, and no unit price is negative', () => {
    fc.assert(
      fc.property(
        charges,
        fc.oneof(fc.bigInt({ min: 0n, max: 10n ** 24n }), fc.constant(null)),
        fc.oneof(fc.record({ list: rates, agreed: rates }), fc.constant(null)),
        fc.record({
          listPico: fc.oneof(rates, fc.constant(null)),
          agreedPico: fc.oneof(rates, fc.constant(null)),
        }),
        (charge, quantity, perMillion, known) => {
          assertExact(priceUsage(charge, quantity, perMillion, known));
          assertExact(pricePurchase(charge));
        },
      ),
    );
  });

  it('so little that comes back that it is nothing in dollars still comes back', () => {
    const little = { ...CHARGE, currency: 'EUR', amountPico: 0n, originalAmount: -1n };
    const pricing = priceUsage(little, 0n, null, { listPico: null, agreedPico: null });
    assertExact(pricing);
    expect([pricing.listCost, pricing.listUnitPrice]).toEqual(['-0.000000000001', '0.000000000001']);
  });

  it('without any price the costs are what was billed', () => {
    fc.assert(
      fc.property(charges, (given) => {
        const charge = { ...given, listPico: null, contractedPico: null };
        const billed = textOfExact({ value: charge.originalAmount, scale: 12 });
        const unknown = { listPico: null, agreedPico: null };
        for (const pricing of [
          priceUsage(charge, 5n, null, unknown),
          pricePurchase(charge),
          priceless(charge),
        ])
          expect([plain(pricing.listCost), plain(pricing.contractedCost)]).toEqual([billed, billed]);
      }),
    );
  });

  it('a rate keeps the quantity in millions, in dollars and in the bill’s own currency', () => {
    const quantity = 1_234_567n * 10n ** 12n;
    const perMillion = { list: 2_000_000_000_000n, agreed: 1_500_000_000_000n };
    const unknown = { listPico: null, agreedPico: null };
    expect(priceUsage(CHARGE, quantity, perMillion, unknown)).toMatchObject({
      quantity: '1.234567',
      unit: '1000000 Tokens',
      listUnitPrice: '2',
      listCost: '2.469134',
      contractedUnitPrice: '1.5',
      contractedCost: '1.8518505',
      listSource: 'price_list',
      currency: 'USD',
    });
    const euro = { ...CHARGE, currency: 'EUR', originalAmount: 3n * 10n ** 12n, amountPico: 4n * 10n ** 12n };
    expect(priceUsage(euro, quantity, perMillion, unknown)).toMatchObject({
      listUnitPrice: '1.5',
      currency: 'USD',
      currencyListUnitPrice: '2',
    });
  });

  it('the bill’s own list price applies to the whole charge where no price list knows it', () => {
    const charge = {
      ...CHARGE,
      originalAmount: 8n * 10n ** 12n,
      amountPico: 8n * 10n ** 12n,
      listPico: 10n ** 13n,
    };
    expect(priceUsage(charge, 5n, null, { listPico: null, agreedPico: null })).toMatchObject({
      quantity: '1',
      listCost: '10',
      contractedCost: '8',
      listSource: 'bill',
    });
  });

  it('use that no bill has costs nothing, at the price that it would have had', () => {
    expect(priceUnbilled({ list: 5n * 10n ** 12n, agreed: 4n * 10n ** 12n })).toMatchObject({
      quantity: '0',
      listUnitPrice: '5',
      listCost: '0',
      contractedCost: '0',
    });
  });
});
