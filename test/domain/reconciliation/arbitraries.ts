import fc from 'fast-check';
import { BILLED_CLASSES } from '../../../domain/billing/billedRow.js';
import { TOKEN_CLASSES, type TokenClass } from '../../../domain/events/event.js';
import {
  type BilledCell,
  CALL_STATUSES,
  type ObservedCell,
  type UsageCell,
} from '../../../domain/reconciliation/matching/cells.js';
import { DAY_MICROS, HOUR } from './support.js';

/** Arbitrary cells of OpenAI's bill and usage report, including contradictory ones. */
export const models = fc.constantFrom(
  'gpt-6-sol',
  'gpt-5',
  'gpt-5-2025-08-07',
  'gpt-4o',
  'gpt-4o-2024-05-13',
  'ft:gpt-4o-2024-08-06:o::x',
  'unheard-of',
);
const accounts = fc.constantFrom('a', 'b');
export const amounts = fc.bigInt({ min: 0n, max: 10n ** 18n });
const quantities = fc.bigInt({ min: 0n, max: 10n ** 24n });
const flags = fc.constantFrom(true, false, null);

const labelledTiers = fc.constantFrom({ tierNamed: true } as const, {});

const plainCells = fc.record({
  accountId: accounts,
  lineItem: fc.constantFrom('', 'gpt-6-sol', 'web search tool calls'),
  model: fc.option(models, { nil: null, freq: 8 }),
  tokenClass: fc.constantFrom(...BILLED_CLASSES),
  serviceTier: fc.constantFrom('standard', 'priority', 'flex', 'unheard-of'),
  isBatch: flags,
  longContext: flags,
  region: fc.constantFrom(null, 'us', 'mars'),
  observable: fc.boolean(),
  rowCount: fc.integer({ min: 1, max: 50 }),
  quantity: fc.option(quantities, { nil: null }),
  amountPico: amounts,
  listAmountPico: fc.option(amounts, { nil: null }),
  roundingPico: fc.bigInt({ min: 0n, max: 10n ** 10n }),
});

export const billedCells: fc.Arbitrary<BilledCell> = fc
  .tuple(plainCells, labelledTiers)
  .map(([cell, label]) => ({ ...cell, ...label }));

export const usageCells: fc.Arbitrary<UsageCell> = fc.record({
  accountId: accounts,
  model: fc.option(models, { nil: null, freq: 8 }),
  tokenClass: fc.constantFrom(...BILLED_CLASSES),
  serviceTier: fc.constantFrom('default', 'standard', 'priority', 'flex'),
  isBatch: flags,
  longContext: flags,
  region: fc.constantFrom(null, 'us'),
  quantity: quantities,
  hourMicros: fc.option(
    fc.integer({ min: 0, max: 23 }).map((hour) => DAY_MICROS + BigInt(hour) * HOUR),
    { nil: null, freq: 8 },
  ),
});

export const observedCells: fc.Arbitrary<ObservedCell> = fc.record({
  accountId: fc.constantFrom('a', 'b', '', 'elsewhere'),
  model: models,
  serviceTier: fc.constantFrom('', 'default', 'priority', 'flex'),
  isBatch: fc.boolean(),
  contextBand: fc.constantFrom(0, 272_000),
  status: fc.constantFrom(...CALL_STATUSES),
  hourMicros: fc.integer({ min: 0, max: 23 }).map((hour) => DAY_MICROS + BigInt(hour) * HOUR),
  calls: fc.integer({ min: 1, max: 10_000 }),
  tokens: fc.record(
    Object.fromEntries(
      TOKEN_CLASSES.map((name) => [name, fc.bigInt({ min: 0n, max: 10n ** 12n })]),
    ) as Record<TokenClass, fc.Arbitrary<bigint>>,
  ),
  computedCostPico: amounts,
  unpriced: fc.integer({ min: 0, max: 3 }),
  priceGaps: fc.integer({ min: 0, max: 3 }),
  unmetered: fc.integer({ min: 0, max: 3 }),
});
