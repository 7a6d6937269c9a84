import { expect, it } from 'vitest';
import type { ProviderAccess } from '../../../../adapters/billing/connector.js';
import { createBillingConnectors } from '../../../../adapters/billing/connectors.js';
import type { BilledRow } from '../../../../domain/billing/billedRow.js';
import { microsOfDay } from '../../../../domain/period.js';
import { type AwsCharge, startCostExplorer } from '../../../fakes/billing/costExplorer.js';
import { AWS_KEYS, AWS_PAYER } from '../../../support/awsBills.js';
import { billedLines, excessByDay, type PublishedCase, shiftDay } from '../../../support/published/case.js';
import { PUBLISHED_CASES } from '../../../support/published/cases.js';
import { decimalText, foundOf, gistOf, impactByDay } from '../../../support/published/foundOf.js';
import { fetchChunk } from '../support/connections.js';
import { readAwsPages } from '../support/readAwsPages.js';

const METERS: Readonly<Record<string, string>> = {
  input: 'input-tokens',
  cache_read: 'cache-read-tokens',
  cache_write_5m: 'cache-write-tokens',
  output: 'output-tokens',
};

/** The case's bill as the lines that Cost Explorer adds up. */
function chargesOf(one: PublishedCase): AwsCharge[] {
  return one.days.flatMap((day) =>
    billedLines(one, day).map((line) => ({
      day: day.day,
      recordType: 'Usage',
      service: 'Amazon Bedrock',
      usageType: `USE1-${one.model}-mantle-${METERS[line.tokenClass]}-standard`,
      account: AWS_PAYER,
      cost: decimalText(line.quantity * line.rate, 12),
      quantity: decimalText(line.quantity, 3),
    })),
  );
}

/** Rows as a connection fetches and reads them. */
async function fetchRows(one: PublishedCase): Promise<BilledRow[]> {
  const last = shiftDay(one.days.at(-1)?.day ?? '', 1);
  const nowMicros = microsOfDay(shiftDay(last, 40));
  const fake = await startCostExplorer({
    truth: {
      accessKeyId: AWS_KEYS.access_key_id,
      secretAccessKey: AWS_KEYS.secret_access_key,
      charges: chargesOf(one),
      finalBefore: last,
    },
    nowSeconds: () => Number(nowMicros / 1_000_000n),
  });
  try {
    const nowhere = 'http://127.0.0.1:1';
    const connector = createBillingConnectors(
      {
        openai: nowhere,
        anthropic: nowhere,
        azureManagement: nowhere,
        azureLogin: nowhere,
        awsCostExplorer: fake.origin,
      },
      { nowMicros: () => nowMicros, nowMs: () => performance.now(), requestGapMs: 0 },
    ).aws_bedrock;
    fake.limitGroups(17);
    const access: ProviderAccess = {
      credentials: AWS_KEYS,
      settings: {},
      signal: new AbortController().signal,
    };
    const rows: BilledRow[] = [];
    for (const chunk of connector.plan({ fromDay: one.days[0]?.day ?? '', toDay: last }, nowMicros))
      rows.push(...(await readAwsPages(connector, await fetchChunk(connector, access, chunk))));
    return rows;
  } finally {
    await fake.close();
  }
}

it('a published mistake of Bedrock that a connection fetches is the finding that its file is, to the dollar', async () => {
  const one = PUBLISHED_CASES.find(({ format }) => format === 'aws_ce_pages') as PublishedCase;
  const fetched = await foundOf(one, fetchRows);
  expect(gistOf(fetched)).toEqual(gistOf(await foundOf(one)));
  expect(impactByDay(fetched)).toEqual(excessByDay(one));
});
