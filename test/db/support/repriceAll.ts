import { randomUUID } from 'node:crypto';
import type { OrgDb } from '../../../db/orgDb.js';
import { REPRICE_RUNS, repriceBatch, startRepriceRun } from '../../../db/pricing/repriceRuns.js';
import { insertRun } from '../../../db/runs/runTable.js';
import { DomainError } from '../../../domain/errors.js';
import { PriceBook } from '../../../domain/pricing/priceBook.js';
import type { Rates } from '../../../domain/pricing/pricedModel.js';
import { endRun } from '../../../usecases/runs/endRun.js';

/** The same prices times a whole number, without the named models. */
export function otherPrices(book: PriceBook, factor: bigint, without: readonly string[] = []): PriceBook {
  const scaled = (rates: Rates) =>
    Object.fromEntries(
      Object.entries(rates).map(([name, rate]) => [name, rate === null ? null : rate * factor]),
    ) as Rates;
  const versions = [...book.periods()].map(({ version }) => ({
    ...version,
    rates: scaled(version.rates),
    tiers: version.tiers.map((tier) => ({ ...tier, rates: scaled(tier.rates) })),
  }));
  const models = book.models.filter((entry) => !without.includes(entry.model));
  return PriceBook.from(models, versions, {
    updatedAtMicros: factor,
    contentHash: `${factor}`.padStart(8, '0'),
  });
}

/** A whole re-pricing, batch after batch, without the workflow around it. Returns the run's id. */
export async function repriceAll(
  orgDb: OrgDb,
  book: PriceBook,
  window: { fromMicros: bigint; toMicros: bigint },
  filter: { provider?: string; model?: string } = {},
): Promise<string> {
  const id = randomUUID();
  await insertRun(orgDb, REPRICE_RUNS, {
    id,
    windowStartMicros: window.fromMicros,
    windowEndMicros: window.toMicros,
    provider: filter.provider ?? null,
    model: filter.model ?? null,
    requestedBy: null,
  });
  await startRepriceRun(orgDb, id, book.version);
  for (let attempt = 0; attempt < 2_000; attempt += 1) {
    // A batch that loses to another transaction is repeated, as its activity is.
    const step = await orgDb
      .transaction((inside) => repriceBatch(inside, id, book))
      .catch((error: unknown) => {
        if (!(error instanceof DomainError) || error.code !== 'service_unavailable') throw error;
        return 'more' as const;
      });
    if (step === 'more') continue;
    await endRun(orgDb, 'reprice', id, { status: 'succeeded' });
    return id;
  }
  throw new Error('the re-pricing never ended');
}
