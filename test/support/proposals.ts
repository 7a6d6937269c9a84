import { randomUUID } from 'node:crypto';
import type { OrgDb } from '../../db/orgDb.js';
import { storeProposals } from '../../db/pricing/proposals.js';
import { picoFromNumber } from '../../domain/money.js';
import { microsFromDate } from '../../domain/period.js';

const pico = (usd: number) => picoFromNumber(usd) ?? 0n;

/** Stores an open proposal of a feed of the model's name for a model of OpenAI, with the present rates as they are. */
export async function proposePrice(
  orgDb: OrgDb,
  model: 'gpt-4o-mini' | 'gpt-4o',
  feed = `list of ${model}`,
): Promise<void> {
  const present = model === 'gpt-4o' ? 2.5 : 0.15;
  const proposed = model === 'gpt-4o' ? 2 : 0.12;
  await orgDb.transaction((inside) =>
    storeProposals(inside, feed, [
      {
        ...{ id: randomUUID(), feed, source: 'litellm', provider: 'openai', model, kind: 'changed' },
        rates: [{ tier: 'standard', rateClass: 'input', before: pico(present), after: pico(proposed) }],
        terms: { rates: { input: pico(proposed) }, tiers: [], batchMultiplier: null },
        ...{ isJump: false, suspicions: [], retrievedOn: '2026-11-24' },
        effectUntilMicros: microsFromDate(new Date()),
        ...{ calls: 1_200, currentPico: pico(21.5), proposedPico: pico(17.25) },
      },
    ]),
  );
}
