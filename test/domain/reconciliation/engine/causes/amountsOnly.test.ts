import { expect, it } from 'vitest';
import { batchDiscountRate } from '../../../../../domain/reconciliation/engine/causes/batchAndTiers.js';

import { calls, dayOf, lines } from './support.js';

it('with amounts alone no finding states that calls were billed at the batch rate: half of all may be what events count twice', () => {
  const counts = { input: 3_000_000, output: 500_000 };
  const observed = [calls(counts)];
  const names = (billed: ReturnType<typeof lines>) => {
    const { day, context } = dayOf({ billed, observed });
    return batchDiscountRate.variants(day, context).map((one) => one.name);
  };
  const counted = lines(counts);
  expect(names(counted)).toContain('batch_rate');
  expect(names(counted.map((line) => ({ ...line, quantity: null })))).not.toContain('batch_rate');
});
