import { bookWithOwnPrices } from '../../../../../domain/pricing/ownPrices.js';
import { BOOK } from '../../support.js';

/** The shipped list with a contract over a model from 2026-01-01 on: so many percent off everything. */
export const contractOf = (percent: bigint, model = 'gpt-6-sol') =>
  bookWithOwnPrices(
    BOOK,
    [
      {
        id: '00000000-0000-0000-0000-000000000001',
        kind: 'contract',
        provider: 'openai',
        model,
        discountPercent: percent * 10n ** 12n,
        rates: null,
        batchMultiplier: null,
        effectiveFrom: '2026-01-01',
        effectiveTo: null,
        source: null,
        revision: 1,
        createdAtMicros: 0n,
        createdBy: '',
        endsOn: null,
        endedAtMicros: null,
      },
    ],
    { updatedAtMicros: 0n, contentHash: '00000001' },
  );
